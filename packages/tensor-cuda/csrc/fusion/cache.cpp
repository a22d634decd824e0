// Reads and writes the files (Note [Files of images]).
#include "fusion/cache.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include "fusion/number.h"

namespace taeda::cuda {
namespace {

namespace fs = std::filesystem;

struct FileHead {
  char mark[16];
  uint64_t key_size, image_size, sum;
};
constexpr char kMark[16] = "taeda fused 001";

uint64_t sum_of(std::string_view key, std::string_view image) { return number_of_text(image, number_of_text(key)); }

}  // namespace

std::string ImageFiles::usual_folder() {
  const auto told = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (const std::string own = told("TAEDA_CUDA_FUSION_CACHE"); !own.empty()) return own == "none" ? "" : own;
  if (const std::string caches = told("XDG_CACHE_HOME"); !caches.empty()) return caches + "/taeda/cuda";
  const std::string home = told("HOME");
  return home.empty() ? "" : home + "/.cache/taeda/cuda";
}
std::string ImageFiles::path_of(const std::string& key) const {
  char name[32];
  std::snprintf(name, sizeof name, "%016llx.image", number_of_text(key));
  return folder_ + "/" + name;
}
ImageFiles::Found ImageFiles::find(const std::string& key, std::string& image) const {
  if (folder_.empty()) return Found::No;
  std::ifstream file(path_of(key), std::ios::binary);
  if (!file) return Found::No;
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  FileHead head;
  if (all.size() < sizeof head) return Found::Damaged;
  std::memcpy(&head, all.data(), sizeof head);
  const uint64_t rest = all.size() - sizeof head;
  const bool fits = std::memcmp(head.mark, kMark, sizeof kMark) == 0 && head.key_size <= rest &&
                    head.image_size == rest - head.key_size;
  if (!fits) return Found::Damaged;
  const std::string_view body(all.data() + sizeof head, rest), found = body.substr(0, head.key_size),
                                                               made = body.substr(head.key_size);
  if (head.sum != sum_of(found, made)) return Found::Damaged;
  if (found != key) return Found::Other;
  image = made;
  return Found::Yes;
}
bool ImageFiles::keep(const std::string& key, const std::string& image, std::string& why) const {
  if (folder_.empty()) return true;
  static std::atomic<unsigned> written = 0;
  const std::string path = path_of(key);
  const std::string beside = path + "." + std::to_string(getpid()) + "." + std::to_string(written++);
  FileHead head{};
  std::memcpy(head.mark, kMark, sizeof kMark);
  head.key_size = key.size();
  head.image_size = image.size();
  head.sum = sum_of(key, image);
  std::error_code error;
  fs::create_directories(folder_, error);
  std::ofstream file(beside, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&head), sizeof head);
  file.write(key.data(), std::streamsize(key.size()));
  file.write(image.data(), std::streamsize(image.size()));
  file.close();
  if (file) fs::rename(beside, path, error);
  if (file && !error) return true;
  why = "cannot write " + path;
  std::error_code ignored;  // it may not be there
  fs::remove(beside, ignored);
  return false;
}

}  // namespace taeda::cuda
