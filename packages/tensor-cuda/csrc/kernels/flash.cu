// Kernels of attention on tensor cores.
#include "kernels/flash_gradient.h"

#define TAEDA_FAMILY "flash"

namespace taeda::cuda {

TAEDA_KERNEL(flash_h64, FlashAttention<Half, 64>)
TAEDA_KERNEL(flash_h128, FlashAttention<Half, 128>)
TAEDA_KERNEL(flash_b64, FlashAttention<BFloat16, 64>)
TAEDA_KERNEL(flash_b128, FlashAttention<BFloat16, 128>)
TAEDA_KERNEL(flash_shares_h, FlashShares<Half>)
TAEDA_KERNEL(flash_shares_b, FlashShares<BFloat16>)
TAEDA_KERNEL(flash_query_h64, FlashGradient<Half, 64, true>)
TAEDA_KERNEL(flash_query_h128, FlashGradient<Half, 128, true>)
TAEDA_KERNEL(flash_query_b64, FlashGradient<BFloat16, 64, true>)
TAEDA_KERNEL(flash_query_b128, FlashGradient<BFloat16, 128, true>)
TAEDA_KERNEL(flash_keys_h64, FlashGradient<Half, 64, false>)
TAEDA_KERNEL(flash_keys_h128, FlashGradient<Half, 128, false>)
TAEDA_KERNEL(flash_keys_b64, FlashGradient<BFloat16, 64, false>)
TAEDA_KERNEL(flash_keys_b128, FlashGradient<BFloat16, 128, false>)

}  // namespace taeda::cuda
