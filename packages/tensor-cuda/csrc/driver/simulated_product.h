// Products of matrices on the host, by their definition, for the simulated driver.
#pragma once
#include "driver/product.h"

namespace taeda::cuda {

bool multiplies_on_host(const BlasProduct& product);
/// Whether the sizes and distances are ones that cuBLAS takes.
bool is_valid(const BlasProduct& product);
/// `shift` is what lies between addresses of the device and the host's.
void multiply_on_host(const BlasProduct& product, uint64_t shift);

}  // namespace taeda::cuda
