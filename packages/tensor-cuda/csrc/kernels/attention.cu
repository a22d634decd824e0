// Kernels of attention.
#include "kernels/attention_rows.h"

#define TAEDA_FAMILY "attention"

namespace taeda::cuda {

TAEDA_KERNEL(attention_f, Attention<float>)
TAEDA_KERNEL(attention_d, Attention<double>)
TAEDA_KERNEL(attention_shares_f, AttentionShares<float>)
TAEDA_KERNEL(attention_shares_d, AttentionShares<double>)
TAEDA_KERNEL(attention_gradient_f, AttentionGradient<float>)
TAEDA_KERNEL(attention_gradient_d, AttentionGradient<double>)
TAEDA_KERNEL(attention_rows_f, AttentionRows<float>)
TAEDA_KERNEL(attention_rows_d, AttentionRows<double>)
TAEDA_KERNEL(attention_slopes_f, AttentionSlopes<float>)
TAEDA_KERNEL(attention_slopes_d, AttentionSlopes<double>)

}  // namespace taeda::cuda
