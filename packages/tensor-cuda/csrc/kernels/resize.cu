// Kernels of images of another size.
#include "kernels/resize.h"

#define TAEDA_FAMILY "resize"

namespace taeda::cuda {

TAEDA_KERNEL(write_taps_f, WriteTaps<float>)
TAEDA_KERNEL(write_taps_d, WriteTaps<double>)
TAEDA_KERNEL(resize_nearest, ResizeNearest)
TAEDA_KERNEL(resize_f, Resize<float>)
TAEDA_KERNEL(resize_d, Resize<double>)
TAEDA_KERNEL(resize_lines_f, ResizeLines<float>)
TAEDA_KERNEL(resize_lines_d, ResizeLines<double>)

}  // namespace taeda::cuda
