// Fourier transforms on the host, by their definition, for the simulated driver.
#pragma once
#include "driver/transform.h"

namespace taeda::cuda {

/// Whether sizes, distances and addresses are ones that cuFFT takes.
bool is_valid(const Transform& transform);
/// Whether it is said to need memory of its own.
bool wants_workspace(const Transform& transform);
/// `shift` is what lies between addresses of the device and the host's.
void transform_on_host(const Transform& transform, uint64_t shift);

}  // namespace taeda::cuda
