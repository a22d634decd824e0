// Memory of the simulated devices that several processes see.
#pragma once
#include <cstddef>
#include <map>

#include "driver/driver.h"

namespace taeda::cuda {

/// Of one device. What is shared moves, where it is, to a memory file that others open by the number of this process;
/// what others share is mapped into a room of its own. All places are the host's.
class SharedPages {
 public:
  SharedPages() = default;
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;
  ~SharedPages();

  /// Where the memory of others may be mapped.
  void start(char* room, size_t size) { room_ = room, room_size_ = size; }
  bool share(char* block, size_t size, SharedHandle& handle);
  /// The block is given back: it is shared no more.
  void end(char* block);
  /// Null: these are no such bytes, or the other process has ended.
  char* open(const SharedHandle& handle);
  bool close(char* block);

 private:
  struct File {
    int descriptor;
    char* pages;
    size_t size;
  };
  struct Window {
    char* pages;
    size_t size;
  };
  std::map<char*, File> shared_;    // by the block
  std::map<char*, Window> opened_;  // likewise
  char* room_ = nullptr;
  size_t room_size_ = 0;
};

}  // namespace taeda::cuda
