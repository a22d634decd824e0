// Kernels that were written at run time: compiled once for a text and a compiler, kept in memory and in files.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "driver/driver.h"
#include "fusion/cache.h"
#include "fusion/chain.h"
#include "kernels/launch.h"

namespace taeda::cuda {

struct FusedKernel {
  Kernel kernel{};
  std::string family;  // under which its image is known
  uint64_t on_host = 0;
};

class FusedKernels {
 public:
  FusedKernels() : files_(ImageFiles::usual_folder()) {}
  /// The kernel of a chain, for the life of the process; null where it cannot be had, and `why`.
  const FusedKernel* find(Driver& driver, int device, const Chain& chain, std::string& why);
  /// What was done so far, as a JSON object.
  std::string report(Driver& driver);

 private:
  std::unique_ptr<FusedKernel> make(Compiler& compiler, int device, const std::string& key, const std::string& source,
                                    std::string& why);

  const ImageFiles files_;
  std::mutex lock_;
  std::map<std::string, std::unique_ptr<FusedKernel>> kernels_;  // by the compiler's identity and the text
  std::map<std::string, std::string> failures_;
  uint64_t compiled_ = 0, from_files_ = 0, damaged_ = 0, others_ = 0, unwritten_ = 0;
};

/// The process's.
FusedKernels& fused_kernels();

}  // namespace taeda::cuda
