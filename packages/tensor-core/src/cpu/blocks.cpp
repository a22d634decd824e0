// Gathering operands into blocks for loops over contiguous elements.
#include "cpu/loops/blocks.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "taeda/dtype.h"

namespace taeda::loops {
namespace {

/// Every second element, as of rotated pairs and of real parts, by shuffles; says how many it took.
template <class T, size_t... K>
int64_t gather_halves(T* to, const char* from, int64_t n, std::index_sequence<K...>) {
  constexpr int64_t lanes = sizeof...(K);
  using Vector [[gnu::vector_size(16)]] = T;
  int64_t i = 0;
  for (; i + lanes < n; i += lanes) {  // not the last ones: what follows them may be nobody's
    Vector first, second;
    std::memcpy(&first, from + 2 * i * int64_t(sizeof(T)), 16);
    std::memcpy(&second, from + 2 * i * int64_t(sizeof(T)) + 16, 16);
    const Vector picked = __builtin_shufflevector(first, second, int(2 * K)...);
    std::memcpy(to + i, &picked, 16);
  }
  return i;
}
template <class T>
void gather_as(char* to_, const char* from, int64_t stride, int64_t n) {
  T* to = reinterpret_cast<T*>(to_);
  int64_t i = 0;
  if constexpr (sizeof(T) > 1 && sizeof(T) <= 8)
    if (stride == 2 * int64_t(sizeof(T))) i = gather_halves(to, from, n, std::make_index_sequence<16 / sizeof(T)>());
  for (; i < n; ++i) std::memcpy(to + i, from + i * stride, sizeof(T));
}
template <class T>
void scatter_as(char* to, int64_t stride, const char* from_, int64_t n) {
  const T* from = reinterpret_cast<const T*>(from_);
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * stride, from + i, sizeof(T));
}

}  // namespace

void gather(char* to, const char* from, int64_t stride, int64_t size, int64_t n) {
  if (stride == size) {
    std::memcpy(to, from, size_t(n * size));
    return;
  }
  switch (size) {
    case 1: return gather_as<uint8_t>(to, from, stride, n);
    case 2: return gather_as<uint16_t>(to, from, stride, n);
    case 4: return gather_as<uint32_t>(to, from, stride, n);
    case 8: return gather_as<uint64_t>(to, from, stride, n);
    default: return gather_as<Complex128>(to, from, stride, n);
  }
}

namespace {

void scatter(char* to, int64_t stride, const char* from, int64_t size, int64_t n) {
  if (stride == size) {
    std::memcpy(to, from, size_t(n * size));
    return;
  }
  switch (size) {
    case 1: return scatter_as<uint8_t>(to, stride, from, n);
    case 2: return scatter_as<uint16_t>(to, stride, from, n);
    case 4: return scatter_as<uint32_t>(to, stride, from, n);
    case 8: return scatter_as<uint64_t>(to, stride, from, n);
    default: return scatter_as<Complex128>(to, stride, from, n);
  }
}

/// Copies m elements and repeats the last of them, up to kMultiple in all.
template <class T>
void pad_as(char* to_, const char* from_, int64_t m) {
  T* const to = reinterpret_cast<T*>(to_);
  const T* const from = reinterpret_cast<const T*>(from_);
  for (int64_t i = 0; i < m; ++i) to[i] = from[i];
  for (int64_t i = m; i < kMultiple; ++i) to[i] = from[m - 1];
}
void pad(char* to, const char* from, int64_t size, int64_t m) {
  switch (size) {
    case 1: return pad_as<uint8_t>(to, from, m);
    case 2: return pad_as<uint16_t>(to, from, m);
    case 4: return pad_as<uint32_t>(to, from, m);
    case 8: return pad_as<uint64_t>(to, from, m);
    default: return pad_as<Complex128>(to, from, m);
  }
}
/// The last m < kMultiple elements of contiguous operands: small tensors have no others.
void run_rest(const Blocks& how, char* const* data, int64_t done, int64_t m, const LoopParams* params) {
  alignas(64) char buffers[4][kMultiple * sizeof(Complex128)];
  char* const at[4] = {buffers[0], buffers[1], buffers[2], buffers[3]};
  for (int k = 1; k <= how.operands; ++k) pad(at[k], data[k] + done * how.sizes[k], how.sizes[k], m);
  how.body(at, kMultiple, params);
  std::memcpy(data[0] + done * how.sizes[0], at[0], size_t(m * how.sizes[0]));
}

}  // namespace

void run_blocks(const Blocks& how, char* const* data, const int64_t* strides, int64_t n, const LoopParams* params) {
  constexpr int most = 4;
  const int count = how.operands + 1;
  bool straight = true;
  for (int k = 0; k < count; ++k) straight &= strides[k] == how.sizes[k];
  char* at[most];
  if (straight) {
    const int64_t whole = n - n % kMultiple, step = how.by_blocks ? kBlock : whole;
    for (int64_t done = 0; done < whole; done += step) {
      for (int k = 0; k < count; ++k) at[k] = data[k] + done * strides[k];
      how.body(at, std::min(step, whole - done), params);
    }
    if (whole < n) run_rest(how, data, whole, n - whole, params);
    return;
  }
  alignas(64) char buffers[most][kBlock * sizeof(Complex128)];
  // Numbers give one number.
  if (std::all_of(strides + 1, strides + count, [](int64_t stride) { return stride == 0; })) {
    for (int k = 1; k < count; ++k) gather(buffers[k], data[k], 0, how.sizes[k], kMultiple);
    for (int k = 0; k < count; ++k) at[k] = buffers[k];
    how.body(at, kMultiple, params);
    for (int64_t filled = kMultiple; filled < std::min(kBlock, n); filled *= 2)
      std::memcpy(buffers[0] + filled * how.sizes[0], buffers[0], size_t(filled * how.sizes[0]));
    for (int64_t done = 0; done < n; done += kBlock)
      scatter(data[0] + done * strides[0], strides[0], buffers[0], how.sizes[0], std::min(kBlock, n - done));
    return;
  }
  // One number for all elements is spread once.
  for (int k = 1; k < count; ++k)
    if (strides[k] == 0) gather(buffers[k], data[k], 0, how.sizes[k], std::min(kBlock, n + kMultiple - 1));
  for (int64_t done = 0; done < n; done += kBlock) {
    const int64_t m = std::min(kBlock, n - done), rounded = (m + kMultiple - 1) / kMultiple * kMultiple;
    for (int k = 0; k < count; ++k) {
      const int64_t size = how.sizes[k];
      char* const place = data[k] + done * strides[k];
      at[k] = strides[k] == size && m == rounded ? place : buffers[k];
      if (k == 0 || at[k] == place || strides[k] == 0) continue;
      gather(buffers[k], place, strides[k], size, m);
      gather(buffers[k] + m * size, place + (m - 1) * strides[k], 0, size, rounded - m);
    }
    how.body(at, rounded, params);
    if (at[0] == buffers[0]) scatter(data[0] + done * strides[0], strides[0], buffers[0], how.sizes[0], m);
  }
}

}  // namespace taeda::loops
