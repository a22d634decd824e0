// Which image is which family's. The images themselves are put into the library by setup.py, which writes the list.
#include "driver/images.h"

#include <map>
#include <mutex>
#include <string_view>

namespace taeda::cuda {

#define TAEDA_IMAGE(FAMILY) extern "C" const char taeda_image_##FAMILY[];
#ifdef TAEDA_IMAGES
#include TAEDA_IMAGES
#endif
#undef TAEDA_IMAGE

namespace {
std::mutex lock;
std::map<std::string, std::string, std::less<>>& kept() {
  static auto* const all = new std::map<std::string, std::string, std::less<>>;
  return *all;
}
}  // namespace

void keep_image(const std::string& family, const std::string& image) {
  const std::lock_guard held(lock);
  kept().emplace(family, image);
}
const void* image_of(const char* family) {
#ifdef TAEDA_IMAGES
#define TAEDA_IMAGE(FAMILY) \
  if (std::string_view(family) == #FAMILY) return taeda_image_##FAMILY;
#include TAEDA_IMAGES
#undef TAEDA_IMAGE
#endif
  const std::lock_guard held(lock);
  const auto found = kept().find(std::string_view(family));
  return found == kept().end() ? nullptr : found->second.data();
}

}  // namespace taeda::cuda
