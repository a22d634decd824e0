// The device code that lies in the library: an image for each family of kernels.
#pragma once

namespace taeda::cuda {

/// As the driver loads it; null where the library was built without nvcc.
const void* image_of(const char* family);

}  // namespace taeda::cuda
