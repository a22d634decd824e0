// A driver, and what is kept beside it: memory for each device, pinned memory, streams for reuse.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/graphs.h"
#include "backend/imports.h"
#include "driver/driver.h"
#include "driver/simulated.h"
#include "memory/allocator.h"

namespace taeda::cuda {

class Machine {
 public:
  explicit Machine(std::unique_ptr<Driver> driver);
  /// Of so many devices, each with memory of that size.
  static std::unique_ptr<Machine> simulated(int devices, uint64_t bytes_each);

  Driver& driver() { return *driver_; }
  /// Null for a real machine; what was asked for before has reached it.
  SimulatedDriver* simulation() {
    if (simulation_) driver_->issue();
    return simulation_;
  }
  Allocator& memory(int device) { return *memory_[size_t(device)]; }
  Allocator& pinned() { return *pinned_; }
  Imports& imports() { return imports_; }
  Graphs& graphs() { return graphs_; }
  /// Whether the lines of the program that ask for memory are noted.
  std::atomic<bool>& notes_sites() { return notes_sites_; }

  Status create_stream(int device, int priority, StreamHandle& stream);
  /// Nobody will put work there; it serves the next one who asks. Memory may know it as its home, so it stays.
  void end_stream(int device, StreamHandle stream);

 private:
  using Kind = std::pair<int, int>;  // device and priority
  std::unique_ptr<Driver> driver_;
  SimulatedDriver* simulation_ = nullptr;
  std::vector<std::unique_ptr<Allocator>> memory_;
  std::unique_ptr<Allocator> pinned_;
  Imports imports_;
  Graphs graphs_;
  std::atomic<bool> notes_sites_ = false;
  std::mutex lock_;
  std::map<Kind, std::vector<StreamHandle>> unused_;
  std::map<StreamHandle, int> priorities_;
};

/// The backend's; null before it has been started.
Machine* own_machine();
/// "train.py:31, in step", of a number that the allocator was given.
std::string text_of_site(uint64_t site);

}  // namespace taeda::cuda
