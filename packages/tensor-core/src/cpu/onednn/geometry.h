// What oneDNN is told of the shape of a convolution.
#pragma once
#ifdef TAEDA_WITH_ONEDNN
#include "cpu/onednn/engine.h"
#include "infer/conv.h"

namespace taeda::onednn {

/// Sizes of the operands (weights with the groups first where there are several), steps and borders of the windows.
struct ConvGeometry {
  dnnl::memory::dims x, y, weights, strides, dilates, padding_low, padding_high;
};
ConvGeometry geometry(const infer::ConvPlan& plan);

/// The layout of row-major weights (o, c / groups, kd, kh, kw).
dnnl::memory::format_tag row_major_weights(const infer::ConvPlan& plan);

}  // namespace taeda::onednn
#endif
