// The CUDA driver of this machine, from the library that came with it.
#pragma once
#include <memory>
#include <string>

#include "driver/driver.h"

namespace taeda::cuda {

/// Opens and starts the driver. Null where that fails; `why` then says so, with what may help.
std::unique_ptr<Driver> open_driver(std::string& why);

}  // namespace taeda::cuda
