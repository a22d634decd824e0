// Typed errors: each C++ exception maps onto one Python exception class at the binding.
#pragma once
#include <sstream>
#include <stdexcept>
#include <string>

#include "taeda/export.h"

namespace taeda {

enum class ErrorKind : uint8_t { Type, Value, Index, Runtime, NotImplemented, Memory, ZeroDivision, Overflow, Buffer };

/// The one exception type of libtaeda; `kind` names the Python class it becomes.
class TAEDA_API Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

namespace detail {
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}
}  // namespace detail

/// Usage: `fail(ErrorKind::Value, "add: argument 'other' has shape ", shape_text(...), ", expected ...")`.
template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(ErrorKind kind, const Parts&... parts) {
  throw Error(kind, detail::concat(parts...));
}

/// `check(cond, kind, parts...)`: the message is built only on failure.
template <class... Parts>
inline void check(bool condition, ErrorKind kind, const Parts&... parts) {
  if (!condition) [[unlikely]]
    fail(kind, parts...);
}

}  // namespace taeda
