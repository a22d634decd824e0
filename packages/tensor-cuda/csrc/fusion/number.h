// A number for a text, by which it is found again; different texts may have the same.
#pragma once
#include <string_view>

namespace taeda::cuda {

// Fowler, Noll and Vo's 64 bits.
inline constexpr unsigned long long kNumberOfNothing = 0xcbf29ce484222325ull;
constexpr unsigned long long number_of_text(std::string_view text, unsigned long long before = kNumberOfNothing) {
  for (const char c : text) before = (before ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return before;
}

}  // namespace taeda::cuda
