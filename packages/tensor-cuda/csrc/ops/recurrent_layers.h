// Operators of the backend's own for whole recurrent layers, and kernels of the composites that they compute.
#pragma once
#include <cstdint>

namespace taeda::cuda {

/// Before any kernel is registered.
int32_t define_recurrent_layers();
int32_t register_recurrent_composites();

}  // namespace taeda::cuda
