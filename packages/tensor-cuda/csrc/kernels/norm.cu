// Kernels of normalisation.
#include "kernels/norm.h"

#define TAEDA_FAMILY "norm"

namespace taeda::cuda {

TAEDA_KERNEL(row_gradient_f, RowGradient<float>)
TAEDA_KERNEL(row_gradient_d, RowGradient<double>)
TAEDA_KERNEL(column_sums_f, ColumnSums<float>)
TAEDA_KERNEL(column_sums_d, ColumnSums<double>)
TAEDA_KERNEL(channel_gradient_f, ChannelGradient<float>)
TAEDA_KERNEL(channel_gradient_d, ChannelGradient<double>)

}  // namespace taeda::cuda
