// The host's compiler in the place of NVRTC, for the simulated driver.
#pragma once
#include "driver/compiler.h"

namespace taeda::cuda {

/// TAEDA_CUDA_SIMULATED_COMPILER names it; without, there is none.
class SimulatedCompiler final : public Compiler {
 public:
  std::string identity(int device, std::string& why) override;
  bool compile(int device, const std::string& source, std::string& image, std::string& why) override;
  bool load(const std::string& name, const std::string& image, uint64_t& on_host, std::string& why) override;
};

}  // namespace taeda::cuda
