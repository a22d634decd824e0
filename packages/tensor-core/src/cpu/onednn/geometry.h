// What oneDNN is told of the shape of a convolution, and which shapes it is not told of.
#pragma once
#include "infer/conv.h"
#ifdef TAEDA_WITH_ONEDNN
#include "cpu/onednn/engine.h"
#endif

namespace taeda::onednn {

/// How wide borders may be beside the kernel.
enum class Borders { Whole, Half };
/// Whether oneDNN (3.2) computes this correctly on tile registers. It was seen to give wrong numbers, or to write where
/// it must not, for steps that pass over elements, borders as wide as the kernel (of volumes and of int8 images as half
/// of it), kernels wider than the image, rows of whole windows side by side, and slices of a volume that no window
/// reaches, also those between windows of one slice.
inline bool is_right_on_tiles(const infer::ConvPlan& s, Borders borders) {
  const int64_t times = borders == Borders::Half ? 2 : 1;
  const auto covers = [times](int64_t size, int64_t kernel, int64_t step, int64_t border, int64_t apart) {
    return (step <= kernel || (kernel == 1 && step <= size)) && times * border <= kernel - (times == 1) &&
           apart * (kernel - 1) < size;
  };
  const bool reached = !s.deep() || ((s.od - 1) * s.sd + (s.kd - 1) * s.dd + 1 >= s.d + s.pd &&
                                     (s.kd > 1 || s.sd == 1 || s.kernel() == 1));
  const bool in_windows = s.kw > 1 && s.kw == s.sw && s.pw == 0;
  return covers(s.d, s.kd, s.sd, s.pd, s.dd) && covers(s.h, s.kh, s.sh, s.ph, s.dh) &&
         covers(s.w, s.kw, s.sw, s.pw, s.dw) && !in_windows && reached;
}

#ifdef TAEDA_WITH_ONEDNN
/// Sizes of the operands (weights with the groups first where there are several), steps and borders of the windows.
struct ConvGeometry {
  dnnl::memory::dims x, y, weights, strides, dilates, padding_low, padding_high;
};
ConvGeometry geometry(const infer::ConvPlan& plan);

/// The layout of row-major weights (o, c / groups, kd, kh, kw).
dnnl::memory::format_tag row_major_weights(const infer::ConvPlan& plan);
#endif

}  // namespace taeda::onednn
