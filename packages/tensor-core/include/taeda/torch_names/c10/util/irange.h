// What PyTorch has under this name: the integers of a range, for loops over them.
#pragma once
#include <ranges>

#include "taeda/torch_names/names.h"

namespace taeda {
template <class T>
auto irange(T end) {
  return std::views::iota(T(), end < T() ? T() : end);
}
template <class T, class U>
auto irange(T begin, U end) {
  return std::views::iota(U(begin), end < U(begin) ? U(begin) : end);
}
}  // namespace taeda
