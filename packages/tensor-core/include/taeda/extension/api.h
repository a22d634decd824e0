// taeda's C table as C++ sees it, and errors between the two. Part of taeda/extension.h.
#pragma once
#include <dlfcn.h>

#include <sstream>
#include <stdexcept>
#include <string>

#include "taeda/abi.h"

/// Everything here is compiled into the extension: nothing but the C table is shared with taeda, or with others.
namespace taeda {
inline namespace extension_v1 {

/// What an operator or a function of the table complains of.
class Error : public std::runtime_error {
 public:
  Error(int32_t status, const std::string& text) : std::runtime_error(text), status_(status) {}
  /// One of TAEDA_E_*.
  int32_t status() const noexcept { return status_; }

 private:
  int32_t status_;
};

namespace detail {

template <class... Parts>
std::string joined(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

/// The table of the taeda that this process has loaded.
inline const taeda_api* find_api() {
  void* library = dlopen("libtaeda.so", RTLD_LAZY | RTLD_NOLOAD);
  auto* get = library ? reinterpret_cast<taeda_abi_get_fn>(dlsym(library, "taeda_abi_get")) : nullptr;
  if (!get) throw Error(TAEDA_E_RUNTIME, "taeda/extension.h: taeda is not loaded; import taeda before the extension");
  const taeda_api* table = nullptr;
  const char* message = nullptr;
  if (get(TAEDA_ABI_MAJOR, 4, nullptr, &table, &message) != TAEDA_OK)
    throw Error(TAEDA_E_VERSION, message ? message : "taeda/extension.h: the versions do not fit");
  return table;
}

}  // namespace detail

/// The C table, for what this header has no word for.
inline const taeda_api& api() {
  static const taeda_api* const table = detail::find_api();
  return *table;
}

/// Throws what a function of the table complained of.
inline void check_status(int32_t status) {
  if (status != TAEDA_OK) throw Error(status, api().last_error());
}

}  // namespace extension_v1
}  // namespace taeda

/// RuntimeError with the text of the further arguments unless the condition holds.
#define TAEDA_CHECK(condition, ...)                                                                               \
  do {                                                                                                            \
    if (!(condition)) [[unlikely]]                                                                                \
      throw ::taeda::Error(TAEDA_E_RUNTIME, ::taeda::detail::joined("expected " #condition ". ", ##__VA_ARGS__)); \
  } while (false)
