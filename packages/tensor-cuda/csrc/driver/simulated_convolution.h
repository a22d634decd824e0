// Convolutions on the host, by their definition, for the simulated driver.
#pragma once
#include "driver/convolution.h"

namespace taeda::cuda {

bool convolves_on_host(const Convolution& convolution);
/// Whether sizes fit together as cuDNN wants it.
bool is_valid(const Convolution& convolution);
/// `shift` is what lies between addresses of the device and the host's.
void convolve_on_host(const Convolution& convolution, uint64_t shift);

}  // namespace taeda::cuda
