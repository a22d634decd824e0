// Compilers of kernels that are written at run time.
#pragma once
#include <cstdint>
#include <string>

namespace taeda::cuda {

/// What compiles for the devices of a driver. Its functions may be called on any thread.
class Compiler {
 public:
  Compiler() = default;
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;
  virtual ~Compiler() = default;

  /// The compiler, its version, its settings and what it compiles for: of the same text and the same identity the same
  /// image is made. Empty where there is no compiler, and `why`.
  virtual std::string identity(int device, std::string& why) = 0;
  /// The image of a text; false where it cannot be made, and `why`.
  virtual bool compile(int device, const std::string& source, std::string& image, std::string& why) = 0;
  /// Makes an image known under a name, to be launched by; `on_host` is what the bodies of its kernel begin with. False
  /// where the image is none, and `why`.
  virtual bool load(const std::string& name, const std::string& image, uint64_t& on_host, std::string& why) = 0;
};

}  // namespace taeda::cuda
