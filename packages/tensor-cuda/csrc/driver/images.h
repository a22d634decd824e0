// The device code that lies in the library: an image for each family of kernels.
#pragma once
#include <string>

namespace taeda::cuda {

/// As the driver loads it; null where the library was built without nvcc.
const void* image_of(const char* family);
/// Adds one, made at run time, for as long as the process lives; the first under a name stays.
void keep_image(const std::string& family, const std::string& image);

}  // namespace taeda::cuda
