// Kernels of images sampled at points.
#include "kernels/points.h"

#define TAEDA_FAMILY "points"

namespace taeda::cuda {

TAEDA_KERNEL(sample_points_f, SamplePoints<float>)
TAEDA_KERNEL(sample_points_d, SamplePoints<double>)
TAEDA_KERNEL(sample_grid_gradient_f, SampleGridGradient<float>)
TAEDA_KERNEL(sample_grid_gradient_d, SampleGridGradient<double>)
TAEDA_KERNEL(name_taps_f, NameTaps<float>)
TAEDA_KERNEL(name_taps_d, NameTaps<double>)
TAEDA_KERNEL(tap_begins, TapBegins)
TAEDA_KERNEL(sample_image_gradient_f, SampleImageGradient<float>)
TAEDA_KERNEL(sample_image_gradient_d, SampleImageGradient<double>)

}  // namespace taeda::cuda
