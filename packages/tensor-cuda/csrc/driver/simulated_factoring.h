// Factors of matrices on the host, for the simulated driver.
#pragma once
#include "driver/factoring.h"

namespace taeda::cuda {

bool factors_on_host(const Factoring& factoring);
/// Whether sizes and distances are ones that cuSOLVER takes.
bool is_valid(const Factoring& factoring);
/// `shift` is what lies between addresses of the device and the host's.
void factor_on_host(const Factoring& factoring, uint64_t shift);

}  // namespace taeda::cuda
