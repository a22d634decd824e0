// oneDNN's library, loaded from the folder of this one.
#include "cpu/onednn/library.h"

#ifdef TAEDA_WITH_ONEDNN
#include <dlfcn.h>

#include <string>

#include "core/fork.h"
#include "cpu/onednn/threads.h"
#include "taeda/error.h"

namespace taeda::onednn {
namespace {

constinit std::atomic<void*> loaded{nullptr};
ForkLock& loading = *new ForkLock;

std::string path_beside_this_library(const char* name) {
  Dl_info own;
  check(dladdr(&loaded, &own) != 0, ErrorKind::Runtime, "libtaeda's own file is not found in the process");
  const std::string file = own.dli_fname;
  return file.substr(0, file.rfind('/') + 1) + name;
}

void* open() {
  const std::string path = path_beside_this_library("libdnnl.so.3");
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  check(library != nullptr, ErrorKind::Runtime, "oneDNN's library at ", path,
        " cannot be loaded: ", library ? "" : dlerror());
  void* map = nullptr;
  check(dlinfo(library, RTLD_DI_LINKMAP, &map) == 0, ErrorKind::Runtime, "oneDNN's library at ", path,
        " is not found in the process");
  join_threads(*static_cast<link_map*>(map));
  return library;
}

}  // namespace

void load() {
  if (loaded.load(std::memory_order_acquire)) return;
  const std::lock_guard turn(loading);
  if (!loaded.load(std::memory_order_relaxed)) loaded.store(open(), std::memory_order_release);
}

void* find(const char* name) {
  load();
  void* const function = dlsym(loaded.load(std::memory_order_acquire), name);
  check(function != nullptr, ErrorKind::Runtime, "oneDNN's library has no function ", name,
        ": use onednn-devel-cpu-gomp 2023.2.0");
  return function;
}

}  // namespace taeda::onednn
#endif
