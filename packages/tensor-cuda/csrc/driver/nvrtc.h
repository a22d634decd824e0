// NVRTC, NVIDIA's compiler as a library, opened when the first text is to be compiled.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "driver/compiler.h"
#include "driver/libraries.h"

namespace taeda::cuda {

class Nvrtc final : public Compiler {
 public:
  /// `capability` gives a device's compute capability, 90 for 9.0; 0 where it is not known.
  explicit Nvrtc(std::function<int(int device)> capability);
  ~Nvrtc() override;

  bool there() { return functions(), library_.is_open(); }
  /// Its path; where there is none, what was looked for.
  std::string description();
  std::string identity(int device, std::string& why) override;
  bool compile(int device, const std::string& source, std::string& image, std::string& why) override;
  bool load(const std::string& name, const std::string& image, uint64_t& on_host, std::string& why) override;
  /// The same for an architecture: code of a capability, or its PTX.
  bool compile_for(const std::string& architecture, const std::string& source, std::string& image, std::string& why);

 private:
  struct Table;
  const Table& functions();
  /// "sm_90": code of the device's own; "compute_120" for devices that are newer than the library.
  std::string architecture(int device);

  std::function<int(int)> capability_;
  LateLibrary library_;
  std::unique_ptr<Table> table_;
};

}  // namespace taeda::cuda
