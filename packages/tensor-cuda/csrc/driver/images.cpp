// Which image is which family's. The images themselves are put into the library by setup.py, which writes the list.
#include "driver/images.h"

#include <string_view>

namespace taeda::cuda {

#define TAEDA_IMAGE(FAMILY) extern "C" const char taeda_image_##FAMILY[];
#ifdef TAEDA_IMAGES
#include TAEDA_IMAGES
#endif
#undef TAEDA_IMAGE

const void* image_of([[maybe_unused]] const char* family) {
#ifdef TAEDA_IMAGES
#define TAEDA_IMAGE(FAMILY) \
  if (std::string_view(family) == #FAMILY) return taeda_image_##FAMILY;
#include TAEDA_IMAGES
#undef TAEDA_IMAGE
#endif
  return nullptr;
}

}  // namespace taeda::cuda
