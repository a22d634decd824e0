// Opens libraries of NVIDIA's where they lie.
#include "driver/libraries.h"

#include <dlfcn.h>

#include <cstdlib>
#include <sstream>
#include <vector>

namespace taeda::cuda {
namespace {

/// The folder in which the folder of this library lies: site-packages, where the package was installed.
std::string beside() {
  Dl_info own{};
  if (!dladdr(reinterpret_cast<void*>(&open_library), &own) || !own.dli_fname) return "";
  const std::string path = own.dli_fname;
  const size_t folder = path.rfind('/');
  const size_t above = folder == std::string::npos ? folder : path.rfind('/', folder - 1);
  return above == std::string::npos ? "" : path.substr(0, above);
}

}  // namespace

void* open_library(std::initializer_list<const char*> names, std::initializer_list<const char*> parts,
                   std::string& path, std::string& why) {
  std::vector<std::string> folders;
  const char* const told = std::getenv("TAEDA_CUDA_LIBRARIES");
  if (told && std::string(told) == "none") {
    why = "TAEDA_CUDA_LIBRARIES is 'none'";
    return nullptr;
  }
  std::istringstream list(told ? told : "");
  for (std::string folder; std::getline(list, folder, ':');)
    if (!folder.empty()) folders.push_back(folder + "/");
  if (const std::string packages = beside(); !packages.empty())
    for (const char* part : parts) folders.push_back(packages + "/nvidia/" + part + "/lib/");
  folders.emplace_back();  // as the system looks
  if (const char* const home = std::getenv("CUDA_HOME")) folders.push_back(std::string(home) + "/lib64/");
  folders.emplace_back("/usr/local/cuda/lib64/");
  for (const char* name : names)
    for (const std::string& folder : folders)
      if (void* const library = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL)) {
        path = folder + name;
        return library;
      }
  why = "there is no " + std::string(*names.begin()) + " (nor an older one)";
  return nullptr;
}

}  // namespace taeda::cuda
