// Where NVIDIA's libraries lie, and how they are opened.
#pragma once
#include <atomic>
#include <initializer_list>
#include <mutex>
#include <string>

namespace taeda::cuda {

/// Opens the first library that is found under one of the names. Looked at, in order: the folders of
/// TAEDA_CUDA_LIBRARIES (apart by colons; "none": no library at all), the folders of NVIDIA's wheels beside this
/// package (site-packages/nvidia/<part>/lib), what the system finds by itself, CUDA_HOME and /usr/local/cuda. Null
/// where there is none; `why` says then what was looked for, `path` else what was opened.
void* open_library(std::initializer_list<const char*> names, std::initializer_list<const char*> parts,
                   std::string& path, std::string& why);

/// A library that is opened when a function of it is first wanted.
class LateLibrary {
 public:
  /// Opens it, at the first call. `look_up(library)` gives the names of functions that it lacks, each behind a space.
  template <class LookUp>
  void open(std::initializer_list<const char*> names, std::initializer_list<const char*> parts, const LookUp& look_up) {
    std::call_once(once_, [&] {
      std::string why;
      void* const library = open_library(names, parts, description_, why);
      if (!library) return void(description_ = why);
      const std::string absent = look_up(library);
      opened_ = absent.empty();
      if (!opened_) description_ += " lacks" + absent;
    });
  }
  /// Whether it was found with all functions.
  bool is_open() const { return opened_; }
  /// Its path and what it lacks; where there is none, what was looked for. Empty before `open`.
  const std::string& description() const { return description_; }

 private:
  std::once_flag once_;
  std::atomic<bool> opened_ = false;
  std::string description_;
};

/// For a list of functions, where `library`, `absent` and a `table_` of pointers by their names are at hand.
#define TAEDA_LIBRARY_LOOK_UP(RESULT, NAME, PARAMETERS)                           \
  table_->NAME = reinterpret_cast<decltype(table_->NAME)>(dlsym(library, #NAME)); \
  if (!table_->NAME) absent += " " #NAME;

}  // namespace taeda::cuda
