// Inner loops of pooling.
#pragma once
#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "cpu/loops/lanes.h"
#include "cpu/loops/layers.h"

namespace taeda::loops::TAEDA_ISA {

constexpr int64_t kChannels = 128;  // channels handled at a time, so that running maxima stay in cache

inline int32_t window_number(const Windows& s, int64_t y, int64_t xo, int64_t row, int64_t column) {
  return int32_t((row - s.row_first[y]) / s.row_step * s.kernel_w + (column - s.column_first[xo]) / s.column_step);
}

/// Whether a value takes the best one's place: it is larger, or no number.
template <class T>
inline bool takes(T value, T best) {
  if constexpr (std::is_floating_point_v<T>) return (value > best) | (value != value);
  else return value > best;
}

/// A register of elements that lie `stride` apart, none of what is behind the last one.
template <int Stride, class T, size_t... J>
inline auto spaced(const T* x, int64_t stride, std::index_sequence<J...>) {
  constexpr int64_t width = int64_t(sizeof...(J));
  typename Register<T, int(width * sizeof(T))>::type low, high;
  if constexpr (Stride == 1 || Stride == 2) __builtin_memcpy(&low, x, sizeof low);
  if constexpr (Stride == 2) {
    __builtin_memcpy(&high, x + width - 1, sizeof high);
    return __builtin_shufflevector(low, high, (2 * J < sizeof...(J) ? int(2 * J) : int(2 * J) + 1)...);
  } else if constexpr (Stride != 1) {
    ((low[J] = x[int64_t(J) * stride]), ...);
  }
  return low;
}
/// One column of n windows: where it is larger than the best, or no number, it and its number take its place.
template <int Stride, class T>
inline void take_larger(const T* x, int64_t stride, int32_t number, int64_t n, T* __restrict best,
                        int32_t* __restrict numbers) {
  if constexpr (Stride != 0) stride = Stride;
  if constexpr (std::is_floating_point_v<T>) {
    const auto take = [=]<size_t... J>(int64_t first, std::index_sequence<J...> indices) {
      typedef int32_t Numbers __attribute__((vector_size(sizeof...(J) * 4)));
      const auto value = spaced<Stride>(x + first * stride, stride, indices);
      auto old = value;
      Numbers counts;
      __builtin_memcpy(&old, best + first, sizeof old);
      __builtin_memcpy(&counts, numbers + first, sizeof counts);
      const auto taken = (value > old) | (value != value);
      old = taken ? value : old;
      counts = __builtin_convertvector(taken, Numbers) ? Numbers{} + number : counts;
      __builtin_memcpy(best + first, &old, sizeof old);
      __builtin_memcpy(numbers + first, &counts, sizeof counts);
    };
    if (in_registers<T>(n, take)) return;
  }
  for (int64_t j = 0; j < n; ++j) {
    const T value = x[j * stride];
    const bool taken = takes(value, best[j]);
    best[j] = taken ? value : best[j];
    numbers[j] = taken ? number : numbers[j];
  }
}
/// Calls `body(pixel, number)` for the elements of a window that lie within the image, in order; the numbers are those
/// within the window, where windows have such.
template <class Body>
inline void for_window(const Windows& s, int64_t y, int64_t xo, const Body& body) {
  const int64_t top = s.row_begin[y], left = s.column_begin[xo];
  const bool clipped = s.row_first && (top != s.row_first[y] || left != s.column_first[xo]);
  int32_t first = clipped ? window_number(s, y, xo, top, left) : 0;
  for (int64_t row = top; row < s.row_end[y]; row += s.row_step, first += int32_t(s.kernel_w)) {
    int32_t number = first;
    for (int64_t column = left; column < s.column_end[xo]; column += s.column_step) body(row * s.w + column, number++);
  }
}

/// The maxima of `c` channels over one window, and their numbers or their pixels; NaN wins, the first of equals stays.
template <bool Pixels, class T, class Code>
inline void max_window(const Windows& s, const T* x, int64_t y, int64_t xo, T* __restrict out, Code* __restrict codes) {
  const auto chunk = [&]<size_t... J>(int64_t first, std::index_sequence<J...>) {
    constexpr int width = int(sizeof...(J));
    using Numbers = typename Register<int32_t, width* int(sizeof(int32_t))>::type;
    using Codes = typename Register<Code, width* int(sizeof(Code))>::type;
    typename Register<T, width* int(sizeof(T))>::type best{}, value;
    Numbers numbers{};
    bool start = true;
    for_window(s, y, xo, [&](int64_t pixel, int32_t number) {
      __builtin_memcpy(&value, x + pixel * s.c + first, sizeof value);
      const auto taken = (value > best) | (value != value);
      const int32_t code = Pixels ? int32_t(pixel) : number;
      if (start) {
        best = value;
        numbers += code;
        start = false;
      } else {
        best = taken ? value : best;
        numbers = __builtin_convertvector(taken, Numbers) ? Numbers{} + code : numbers;
      }
    });
    const Codes narrow = __builtin_convertvector(numbers, Codes);
    __builtin_memcpy(out + first, &best, sizeof best);
    __builtin_memcpy(codes + first, &narrow, sizeof narrow);
  };
  if (in_registers<T>(s.c, chunk)) return;
  for (int64_t c = 0; c < s.c; ++c) {
    bool start = true;
    for_window(s, y, xo, [&](int64_t pixel, int32_t number) {
      const T value = x[pixel * s.c + c];
      if (!start && !takes(value, out[c])) return;
      out[c] = value;
      codes[c] = Code(Pixels ? int32_t(pixel) : number);
      start = false;
    });
  }
}

template <class T>
void max_pool(const Windows& s, const void* x, void* out, uint8_t* offsets, int64_t* positions, int64_t row_begin,
              int64_t row_end) {
  for (int64_t r = row_begin; r < row_end; ++r) {
    const T* const image = static_cast<const T*>(x) + r / s.oh * s.h * s.w * s.c;
    for (int64_t xo = 0; xo < s.ow; ++xo) {
      const int64_t at = (r * s.ow + xo) * s.c;
      T* const to = static_cast<T*>(out) + at;
      if (offsets) max_window<false>(s, image, r % s.oh, xo, to, offsets + at);
      else max_window<true>(s, image, r % s.oh, xo, to, positions + at);
    }
  }
}

/// Windows that lie `stride` columns apart and are whole: those of results [begin, end) of each row.
struct WholeWindows {
  int64_t begin = 0, end = 0, stride = 1;
  explicit WholeWindows(const Windows& s) {
    if (!s.column_first || !s.row_first || s.kernel_w < 1 || s.ow < 4 ||
        s.h * s.w > std::numeric_limits<int32_t>::max())
      return;
    stride = s.column_first[1] - s.column_first[0];
    const int64_t width = (s.kernel_w - 1) * s.column_step + 1;
    for (int64_t xo = 0; xo < s.ow; ++xo) {
      if (s.column_first[xo] != s.column_first[0] + xo * stride) {
        begin = end = 0;
        return;
      }
      const bool whole = s.column_begin[xo] == s.column_first[xo] && s.column_first[xo] + width <= s.w;
      if (whole && end == 0) begin = xo;
      if (whole) end = xo + 1;
    }
  }
};
/// Windows of two elements, two apart: the larger one, and whether it is the second.
template <class T>
inline void larger_of_two(const T* x, int64_t step, int64_t n, T* __restrict out, uint8_t* __restrict seconds) {
  const auto choose = [=]<size_t... J>(int64_t first, std::index_sequence<J...> indices) {
    typedef uint8_t Bytes __attribute__((vector_size(sizeof...(J))));
    const auto a = spaced<2>(x + 2 * first, 2, indices), b = spaced<2>(x + 2 * first + step, 2, indices);
    const auto second = (b > a) | (b != b);
    const auto larger = second ? b : a;
    const Bytes flags = __builtin_convertvector(second, Bytes) & 1;
    __builtin_memcpy(out + first, &larger, sizeof larger);
    __builtin_memcpy(seconds + first, &flags, sizeof flags);
  };
  if (in_registers<T>(n, choose)) return;
  for (int64_t j = 0; j < n; ++j) {
    const T a = x[2 * j], b = x[2 * j + step];
    const bool second = takes(b, a);
    out[j] = second ? b : a;
    seconds[j] = second;
  }
}
/// The same of one row of whole windows, column after column; `x` is the plane.
template <int Stride, class T>
inline void max_whole(const Windows& s, const WholeWindows& whole, const T* x, int64_t y, int64_t at, T* out,
                      uint8_t* offsets, int64_t* positions) {
  constexpr int64_t block = 128;
  alignas(64) T best[block];
  alignas(64) int32_t numbers[block];
  const int64_t above = (s.row_begin[y] - s.row_first[y]) / s.row_step * s.kernel_w;
  if constexpr (Stride == 2 && std::is_floating_point_v<T>)
    if (offsets && s.kernel_w == 2 && above == 0 && s.row_end[y] - s.row_begin[y] <= s.row_step)
      return larger_of_two(x + s.row_begin[y] * s.w + s.column_first[whole.begin], s.column_step,
                           whole.end - whole.begin, out + at + whole.begin, offsets + at + whole.begin);
  for (int64_t done = whole.begin; done < whole.end; done += block) {
    const int64_t n = std::min(block, whole.end - done);
    const T* row = x + s.row_begin[y] * s.w + s.column_first[done];
    for (int64_t j = 0; j < n; ++j) best[j] = row[j * whole.stride];
    std::fill_n(numbers, n, int32_t(above));
    int64_t first = above;
    int64_t k = 1;  // the first column is there already
    for (int64_t r = s.row_begin[y]; r < s.row_end[y];
         r += s.row_step, row += s.row_step * s.w, first += s.kernel_w, k = 0)
      for (; k < s.kernel_w; ++k)
        take_larger<Stride>(row + k * s.column_step, whole.stride, int32_t(first + k), n, best, numbers);
    std::copy_n(best, n, out + at + done);
    for (int64_t j = 0; offsets && j < n; ++j) offsets[at + done + j] = uint8_t(numbers[j]);
    for (int64_t j = 0; positions && j < n; ++j) {
      const int32_t down = numbers[j] / int32_t(s.kernel_w), along = numbers[j] - down * int32_t(s.kernel_w);
      positions[at + done + j] =
          (s.row_first[y] + down * s.row_step) * s.w + s.column_first[done + j] + along * s.column_step;
    }
  }
}

template <class T>
void max_pool_planes(const Windows& s, const void* x_, void* out_, uint8_t* offsets, int64_t* positions, int64_t begin,
                     int64_t end) {
  T* const out = static_cast<T*>(out_);
  const WholeWindows whole(s);
  const auto max_one = [&](const T* x, int64_t y, int64_t xo, int64_t at) {
    const int64_t top = s.row_begin[y], left = s.column_begin[xo];
    // Choices instead of branches, which would follow the data: the number of the best in the window, and its place.
    const bool clipped = offsets && (top != s.row_first[y] || left != s.column_first[xo]);
    int64_t first = clipped ? window_number(s, y, xo, top, left) : 0, number = first, place = top * s.w + left;
    T best = x[place];
    for (int64_t row = top; row < s.row_end[y]; row += s.row_step, first += s.kernel_w) {
      int64_t next = first;
      for (int64_t column = left; column < s.column_end[xo]; column += s.column_step, ++next) {
        const T value = x[row * s.w + column];
        const bool taken = takes(value, best);
        best = taken ? value : best;
        number = taken ? next : number;
        place = taken ? row * s.w + column : place;
      }
    }
    out[at] = best;
    if (positions) positions[at] = place;
    else offsets[at] = uint8_t(number);
  };
  for (int64_t plane = begin; plane < end; ++plane) {
    const T* const x = static_cast<const T*>(x_) + plane * s.h * s.w;
    for (int64_t y = 0; y < s.oh; ++y) {
      const int64_t at = (plane * s.oh + y) * s.ow;
      for (int64_t xo = 0; xo < whole.begin; ++xo) max_one(x, y, xo, at + xo);
      if (whole.end > 0 && whole.stride == 1) {
        max_whole<1>(s, whole, x, y, at, out, offsets, positions);
      } else if (whole.end > 0 && whole.stride == 2) {
        max_whole<2>(s, whole, x, y, at, out, offsets, positions);
      } else if (whole.end > 0) {
        max_whole<0>(s, whole, x, y, at, out, offsets, positions);
      }
      for (int64_t xo = whole.end; xo < s.ow; ++xo) max_one(x, y, xo, at + xo);
    }
  }
}

template <class T>
void avg_pool(const Windows& s, const void* x, void* out, const double* divisors, int64_t row_begin, int64_t row_end) {
  alignas(64) T sum[kChannels];
  for (int64_t r = row_begin; r < row_end; ++r) {
    const int64_t y = r % s.oh;
    const T* const image = static_cast<const T*>(x) + r / s.oh * s.h * s.w * s.c;
    for (int64_t xo = 0; xo < s.ow; ++xo)
      for (int64_t c0 = 0; c0 < s.c; c0 += kChannels) {
        const int64_t width = std::min(kChannels, s.c - c0);
        std::fill_n(sum, width, T(0));
        for (int64_t row = s.row_begin[y]; row < s.row_end[y]; ++row)
          for (int64_t column = s.column_begin[xo]; column < s.column_end[xo]; ++column) {
            const T* const from = image + (row * s.w + column) * s.c + c0;
            for (int64_t c = 0; c < width; ++c) sum[c] += from[c];
          }
        T* const to = static_cast<T*>(out) + (r * s.ow + xo) * s.c + c0;
        const T divisor = T(divisors[y * s.ow + xo]);
        for (int64_t c = 0; c < width; ++c) to[c] = sum[c] / divisor;
      }
  }
}
template <class T>
void avg_pool_planes(const Windows& s, const void* x_, void* out_, const double* divisors, int64_t begin, int64_t end) {
  for (int64_t plane = begin; plane < end; ++plane) {
    const T* const x = static_cast<const T*>(x_) + plane * s.h * s.w;
    T* const out = static_cast<T*>(out_) + plane * s.oh * s.ow;
    for (int64_t y = 0; y < s.oh; ++y)
      for (int64_t xo = 0; xo < s.ow; ++xo) {
        const int64_t first = s.row_begin[y], last = s.row_end[y], from = s.column_begin[xo],
                      width = s.column_end[xo] - from;
        T sum(0);
        if (width == s.w) {  // whole rows are one run
          sum = sum_contiguous(x + first * s.w, (last - first) * s.w);
        } else if (width >= 16) {
          for (int64_t row = first; row < last; ++row) sum += sum_contiguous(x + row * s.w + from, width);
        } else if (width == 2) {
          for (const T* p = x + first * s.w + from; p < x + last * s.w; p += s.w) sum += p[0] + p[1];
        } else if (width == 3) {
          for (const T* p = x + first * s.w + from; p < x + last * s.w; p += s.w) sum += p[0] + p[1] + p[2];
        } else {
          for (int64_t row = first; row < last; ++row)
            for (int64_t column = from; column < from + width; ++column) sum += x[row * s.w + column];
        }
        out[y * s.ow + xo] = sum / T(divisors[y * s.ow + xo]);
      }
  }
}

template <class T>
inline void clear_channels(const Windows& s, T* image, int64_t c0, int64_t c1) {
  if (c0 == 0 && c1 == s.c) {
    std::fill_n(image, s.h * s.w * s.c, T(0));
    return;
  }
  for (int64_t p = 0; p < s.h * s.w; ++p) std::fill_n(image + p * s.c + c0, c1 - c0, T(0));
}

template <class T>
void max_pool_backward(const Windows& s, const void* grad_, const uint8_t* offsets, void* grad_x, int64_t image,
                       int64_t c0, int64_t c1) {
  T* const to = static_cast<T*>(grad_x) + image * s.h * s.w * s.c;
  clear_channels(s, to, c0, c1);
  // One channel after the other adds once, all at once in every element of a window.
  const int64_t vectors = (c1 - c0) * int64_t(sizeof(T)) / kRegister + 1;
  const bool one_by_one = s.elements * (2 + vectors) > c1 - c0;
  for (int64_t y = 0; y < s.oh; ++y)
    for (int64_t xo = 0; xo < s.ow; ++xo) {
      const int64_t at = ((image * s.oh + y) * s.ow + xo) * s.c;
      const T* const grad = static_cast<const T*>(grad_) + at;
      const uint8_t* const codes = offsets + at;
      if (one_by_one) {
        const int64_t first = s.row_first[y] * s.w + s.column_first[xo];
        for (int64_t c = c0; c < c1; ++c) {
          const int64_t pixel = first + s.apart[codes[c]];
          if (uint64_t(pixel) < uint64_t(s.h * s.w)) [[likely]]
            to[pixel * s.c + c] += grad[c];
        }
        continue;
      }
      for_window(s, y, xo, [&](int64_t pixel, int32_t number_) {
        const uint8_t number = uint8_t(number_);
        T* const place = to + pixel * s.c;
#pragma GCC ivdep
        for (int64_t c = c0; c < c1; ++c) place[c] += codes[c] == number ? grad[c] : T(0);
      });
    }
}
template <class T>
void avg_pool_backward(const Windows& s, const void* grad_, void* grad_x, const double* divisors, int64_t image,
                       int64_t c0, int64_t c1) {
  alignas(64) T part[kChannels];
  T* const to = static_cast<T*>(grad_x) + image * s.h * s.w * s.c;
  clear_channels(s, to, c0, c1);
  for (int64_t y = 0; y < s.oh; ++y)
    for (int64_t xo = 0; xo < s.ow; ++xo)
      for (int64_t first = c0; first < c1; first += kChannels) {
        const int64_t width = std::min(kChannels, c1 - first);
        const T* const grad = static_cast<const T*>(grad_) + ((image * s.oh + y) * s.ow + xo) * s.c + first;
        const T divisor = T(divisors[y * s.ow + xo]);
        for (int64_t c = 0; c < width; ++c) part[c] = grad[c] / divisor;
        for (int64_t row = s.row_begin[y]; row < s.row_end[y]; ++row)
          for (int64_t column = s.column_begin[xo]; column < s.column_end[xo]; ++column) {
            T* const place = to + (row * s.w + column) * s.c + first;
#pragma GCC ivdep
            for (int64_t c = 0; c < width; ++c) place[c] += part[c];
          }
      }
}

}  // namespace taeda::loops::TAEDA_ISA
