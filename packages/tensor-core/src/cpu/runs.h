// Copies of contiguous runs that are too short for calls.
#pragma once
#include <cstdint>
#include <cstring>

namespace taeda::cpu {

/// The first and the last kPart bytes, which meet or overlap.
template <int kPart>
struct Ends {
  static void copy(char* to, const char* from, int64_t bytes) {
    typedef char Part __attribute__((vector_size(kPart)));
    Part first, last;
    std::memcpy(&first, from, kPart);
    std::memcpy(&last, from + bytes - kPart, kPart);
    std::memcpy(to, &first, kPart);
    std::memcpy(to + bytes - kPart, &last, kPart);
  }
};
/// Pieces of 64 bytes, and the last 64 again.
struct Pieces {
  static void copy(char* to, const char* from, int64_t bytes) {
    constexpr int64_t piece = 64;
    for (int64_t i = 0; i < bytes - piece; i += piece) std::memcpy(to + i, from + i, piece);
    std::memcpy(to + bytes - piece, from + bytes - piece, piece);
  }
};
struct Whole {
  static void copy(char* to, const char* from, int64_t bytes) { std::memcpy(to, from, size_t(bytes)); }
};

/// Calls `body` with what copies runs of so many bytes.
template <class Body>
auto with_run_of(int64_t bytes, const Body& body) {
  if (bytes > 512) return body(Whole());
  if (bytes > 64) return body(Pieces());
  if (bytes > 32) return body(Ends<32>());
  if (bytes > 16) return body(Ends<16>());
  if (bytes > 8) return body(Ends<8>());
  if (bytes > 4) return body(Ends<4>());
  return bytes > 2 ? body(Ends<2>()) : body(Ends<1>());
}
template <class Run>
void copy_rows(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t bytes, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) Run::copy(to + r * to_step, from + r * from_step, bytes);
}
[[gnu::noinline]] inline void copy_rows(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t bytes,
                                        int64_t rows) {
  with_run_of(bytes, [=](auto run) { copy_rows<decltype(run)>(to, to_step, from, from_step, bytes, rows); });
}

}  // namespace taeda::cpu
