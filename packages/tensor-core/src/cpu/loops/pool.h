// Inner loops of pooling.
#pragma once
#include <algorithm>

#include "cpu/loops/lanes.h"
#include "cpu/loops/layers.h"

namespace taeda::loops::TAEDA_ISA {

constexpr int64_t kChannels = 128;  // channels handled at a time, so that running maxima stay in cache

inline int32_t window_number(const Windows& s, int64_t y, int64_t xo, int64_t row, int64_t column) {
  return int32_t((row - s.row_first[y]) / s.row_step * s.kernel_w + (column - s.column_first[xo]) / s.column_step);
}

/// Maximum over one window for up to kChannels channels; NaN wins, the first of equals stays.
template <class T>
inline void max_window(const Windows& s, const T* x, int64_t y, int64_t xo, int64_t width, bool positions,
                       T* __restrict best, int32_t* __restrict code) {
  bool start = true;
  for (int64_t row = s.row_begin[y]; row < s.row_end[y]; row += s.row_step)
    for (int64_t column = s.column_begin[xo]; column < s.column_end[xo]; column += s.column_step) {
      const int32_t number = positions ? int32_t(row * s.w + column) : window_number(s, y, xo, row, column);
      const T* const from = x + (row * s.w + column) * s.c;
      if (start) {
        std::copy_n(from, width, best);
        std::fill_n(code, width, number);
        start = false;
        continue;
      }
      for (int64_t c = 0; c < width; ++c) {
        const bool take = from[c] > best[c] || from[c] != from[c];
        best[c] = take ? from[c] : best[c];
        code[c] = take ? number : code[c];
      }
    }
}

template <class T>
void max_pool(const Windows& s, const void* x, void* out, uint8_t* offsets, int64_t* positions, int64_t row_begin,
              int64_t row_end) {
  alignas(64) T best[kChannels];
  alignas(64) int32_t code[kChannels];
  for (int64_t r = row_begin; r < row_end; ++r) {
    const T* const image = static_cast<const T*>(x) + r / s.oh * s.h * s.w * s.c;
    for (int64_t xo = 0; xo < s.ow; ++xo)
      for (int64_t c0 = 0; c0 < s.c; c0 += kChannels) {
        const int64_t width = std::min(kChannels, s.c - c0), at = (r * s.ow + xo) * s.c + c0;
        max_window(s, image + c0, r % s.oh, xo, width, positions != nullptr, best, code);
        std::copy_n(best, width, static_cast<T*>(out) + at);
        if (offsets)
          for (int64_t c = 0; c < width; ++c) offsets[at + c] = uint8_t(code[c]);
        else
          for (int64_t c = 0; c < width; ++c) positions[at + c] = code[c];
      }
  }
}

template <class T>
void max_pool_planes(const Windows& s, const void* x_, void* out, uint8_t* offsets, int64_t* positions, int64_t begin,
                     int64_t end) {
  for (int64_t plane = begin; plane < end; ++plane) {
    const T* const x = static_cast<const T*>(x_) + plane * s.h * s.w;
    int64_t at = plane * s.oh * s.ow;
    for (int64_t y = 0; y < s.oh; ++y)
      for (int64_t xo = 0; xo < s.ow; ++xo, ++at) {
        int64_t best_row = s.row_begin[y], best_column = s.column_begin[xo];
        T best = x[best_row * s.w + best_column];
        for (int64_t row = s.row_begin[y]; row < s.row_end[y]; row += s.row_step)
          for (int64_t column = s.column_begin[xo]; column < s.column_end[xo]; column += s.column_step) {
            const T value = x[row * s.w + column];
            if (value > best || value != value) best = value, best_row = row, best_column = column;
          }
        static_cast<T*>(out)[at] = best;
        if (positions) positions[at] = best_row * s.w + best_column;
        else offsets[at] = uint8_t(window_number(s, y, xo, best_row, best_column));
      }
  }
}

template <class T>
void avg_pool(const Windows& s, const void* x, void* out, const double* scale, int64_t row_begin, int64_t row_end) {
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
        const T factor = T(scale[y * s.ow + xo]);
        for (int64_t c = 0; c < width; ++c) to[c] = sum[c] * factor;
      }
  }
}
template <class T>
void avg_pool_planes(const Windows& s, const void* x_, void* out_, const double* scale, int64_t begin, int64_t end) {
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
        out[y * s.ow + xo] = sum * T(scale[y * s.ow + xo]);
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
  for (int64_t y = 0; y < s.oh; ++y)
    for (int64_t xo = 0; xo < s.ow; ++xo) {
      const int64_t at = ((image * s.oh + y) * s.ow + xo) * s.c;
      const T* const grad = static_cast<const T*>(grad_) + at;
      const uint8_t* const codes = offsets + at;
      for (int64_t row = s.row_begin[y]; row < s.row_end[y]; row += s.row_step)
        for (int64_t column = s.column_begin[xo]; column < s.column_end[xo]; column += s.column_step) {
          const uint8_t number = uint8_t(window_number(s, y, xo, row, column));
          T* const place = to + (row * s.w + column) * s.c;
#pragma GCC ivdep
          for (int64_t c = c0; c < c1; ++c) place[c] += codes[c] == number ? grad[c] : T(0);
        }
    }
}
template <class T>
void avg_pool_backward(const Windows& s, const void* grad_, void* grad_x, const double* scale, int64_t image,
                       int64_t c0, int64_t c1) {
  T* const to = static_cast<T*>(grad_x) + image * s.h * s.w * s.c;
  clear_channels(s, to, c0, c1);
  for (int64_t y = 0; y < s.oh; ++y)
    for (int64_t xo = 0; xo < s.ow; ++xo) {
      const T* const grad = static_cast<const T*>(grad_) + ((image * s.oh + y) * s.ow + xo) * s.c;
      const T factor = T(scale[y * s.ow + xo]);
      for (int64_t row = s.row_begin[y]; row < s.row_end[y]; ++row)
        for (int64_t column = s.column_begin[xo]; column < s.column_end[xo]; ++column) {
          T* const place = to + (row * s.w + column) * s.c;
#pragma GCC ivdep
          for (int64_t c = c0; c < c1; ++c) place[c] += grad[c] * factor;
        }
    }
}

}  // namespace taeda::loops::TAEDA_ISA
