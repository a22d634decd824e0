// Typed errors: each C++ exception maps onto one Python exception class at the binding.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

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

/// A kernel says that it has no way for these arguments, so that another is taken; an error where there is none.
class TAEDA_API KernelDeclined : public Error {
 public:
  explicit KernelDeclined(const std::string& what) : Error(ErrorKind::NotImplemented, what) {}
};

/// "(2, 3)", written only when the message is: checks that hold pay nothing for their texts.
struct ShapeText {
  std::span<const int64_t> sizes;
  TAEDA_API operator std::string() const;
};
inline ShapeText shape_text(std::span<const int64_t> sizes) { return {sizes}; }

namespace detail {

/// One piece of a message, read before the statement that makes it ends.
class Part {
 public:
  Part(std::string_view v) noexcept : kind_(Kind::Text), text_(v) {}
  Part(const char* v) noexcept : Part(v ? std::string_view(v) : std::string_view()) {}
  Part(char v) noexcept : kind_(Kind::Letter), letter_(v) {}
  Part(int64_t v) noexcept : kind_(Kind::Integer), integer_(v) {}
  Part(uint64_t v) noexcept : kind_(Kind::Natural), natural_(v) {}
  Part(double v) noexcept : kind_(Kind::Real), real_(v) {}
  Part(ShapeText v) noexcept : kind_(Kind::Shape), shape_(v) {}
  TAEDA_API void append_to(std::string& text) const;

 private:
  enum class Kind : uint8_t { Text, Letter, Integer, Natural, Real, Shape } kind_;
  union {
    std::string_view text_;
    char letter_;
    int64_t integer_;
    uint64_t natural_;
    double real_;
    ShapeText shape_;
  };
};

// What a caller may put into a message, in the few types that parts are made of: literals of all lengths and integers
// of all widths share one function each.
inline const char* part(const char* v) noexcept { return v; }
inline std::string_view part(std::string_view v) noexcept { return v; }
inline std::string_view part(const std::string& v) noexcept { return v; }
inline ShapeText part(ShapeText v) noexcept { return v; }
inline char part(char v) noexcept { return v; }
inline double part(double v) noexcept { return v; }
template <std::signed_integral T>
int64_t part(T v) noexcept {
  return v;
}
template <std::unsigned_integral T>
uint64_t part(T v) noexcept {
  return v;
}

TAEDA_API std::string joined(std::initializer_list<Part> parts);
[[noreturn, gnu::cold]] TAEDA_API void raise(ErrorKind kind, std::initializer_list<Part> parts);

template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void raise_of(ErrorKind kind, Parts... parts) {
  raise(kind, {Part(parts)...});
}
template <class... Parts>
std::string concat(const Parts&... parts) {
  return joined({Part(part(parts))...});
}
}  // namespace detail

/// Usage: `fail(ErrorKind::Value, "add: argument 'other' has shape ", shape_text(...), ", expected ...")`.
template <class... Parts>
[[noreturn]] inline void fail(ErrorKind kind, const Parts&... parts) {
  detail::raise_of(kind, detail::part(parts)...);
}

/// `check(cond, kind, parts...)`: the message is built only on failure.
template <class... Parts>
inline void check(bool condition, ErrorKind kind, const Parts&... parts) {
  if (!condition) [[unlikely]]
    fail(kind, parts...);
}

}  // namespace taeda
