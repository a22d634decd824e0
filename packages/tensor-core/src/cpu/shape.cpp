// CPU kernels of the shape family: joining and triangles.
#include "taeda/ops/shape.h"

#include "cpu/indexing.h"
#include "infer/dims.h"
#include "taeda/ops/cast.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

/// All row-major and of the output's dtype: each input is one run of bytes per outer index.
bool plain(const Tensor& out, TensorList tensors) {
  if (!out.contiguous()) return false;
  for (const Tensor& t : tensors)
    if (!t.contiguous() || t.dtype() != out.dtype()) return false;
  return true;
}

/// Two tensors element by element in turn, as `stack` along a new last dimension has them.
template <class T>
void interleave(T* out, const T* a, const T* b, int64_t n) {
  parallel_for(n, 1 << 15, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      out[2 * i] = a[i];
      out[2 * i + 1] = b[i];
    }
  });
}

void cat_kernel(const Tensor& out, TensorList tensors, int64_t dim) {
  const int64_t d = infer::axis_of(dim, out.dim());
  const Unlocked unlocked(out.numel() > 32768);
  if (plain(out, tensors)) {
    const int64_t outer = product(out.sizes().first(size_t(d)));
    const int64_t row = outer ? out.numel() / outer * out.item_bytes() : 0;
    if (tensors.size() == 2 && tensors[0].numel() == outer && tensors[1].numel() == outer)
      return cpu::visit_width(out.dtype(), [&]<class T>() {
        interleave(reinterpret_cast<T*>(out.bytes()), reinterpret_cast<const T*>(tensors[0].bytes()),
                   reinterpret_cast<const T*>(tensors[1].bytes()), outer);
      });
    int64_t at = 0;
    for (const Tensor& t : tensors) {
      const int64_t run = outer ? t.numel() / outer * t.item_bytes() : 0;
      if (run == 0) continue;
      char* const to = out.bytes() + at;
      const char* const from = t.bytes();
      parallel_for(outer, std::max<int64_t>(1, (1 << 18) / run), [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) std::memcpy(to + i * row, from + i * run, size_t(run));
      });
      at += run;
    }
    return;
  }
  int64_t at = 0;
  for (const Tensor& t : tensors) {
    if (t.numel() == 0) continue;
    Shape sizes(out.sizes());
    sizes[d] = t.size(d);
    ops::copy_(alias(out, sizes, out.strides(), at * out.stride(d)), t);
    at += t.size(d);
  }
}

/// The same where both are row-major: each row is copied once, up to where it is cleared. Rows that stay or go as a
/// whole are taken together: of a narrow matrix these are nearly all.
template <class Keep>
void triangle_of_rows(const Tensor& out, const Tensor& self, const Keep& keep) {
  const int64_t rows = out.size(-2), columns = out.size(-1), bytes = out.item_bytes(), width = columns * bytes;
  if (width == 0) return;
  const auto kept = [&](int64_t row) {
    const auto [begin, end] = keep(row);
    const int64_t from = std::clamp<int64_t>(begin, 0, columns);
    return std::pair(from * bytes, std::max(from, std::clamp<int64_t>(end, 0, columns)) * bytes);
  };
  parallel_for(out.numel() / columns, std::max<int64_t>(1, (1 << 18) / width), [&](int64_t first, int64_t last) {
    for (int64_t i = first, row = first % rows; i < last;) {
      const auto [from, to] = kept(row);
      char* const place = out.bytes() + i * width;
      int64_t length = width;
      const bool whole = from == 0 && to == width, none = from == to;
      const auto step = [&] {
        ++i;
        if (++row == rows) row = 0;
      };
      for (step(); (whole || none) && i < last; length += width, step()) {
        const auto [next_from, next_to] = kept(row);
        if (whole ? next_from > 0 || next_to < width : next_from < next_to) break;
      }
      if (none) {
        std::memset(place, 0, size_t(length));
        continue;
      }
      const int64_t end = whole ? length : to;
      std::memset(place, 0, size_t(from));
      if (!out.same(self)) std::memcpy(place + from, self.bytes() + (place - out.bytes()) + from, size_t(end - from));
      std::memset(place + end, 0, size_t(length - end));
    }
  });
}
/// Clears elements `from` to `to` of a row whose elements lie `step` bytes apart.
template <class T>
void clear_apart(char* row, int64_t step, int64_t from, int64_t to) {
  constexpr T zero{};
  for (int64_t j = from; j < to; ++j) std::memcpy(row + j * step, &zero, sizeof zero);
}
void clear_row(char* row, int64_t step, int64_t bytes, int64_t from, int64_t to) {
  if (from >= to) return;
  if (step == bytes) {
    std::memset(row + from * bytes, 0, size_t((to - from) * bytes));
    return;
  }
  switch (bytes) {
    case 1: return clear_apart<uint8_t>(row, step, from, to);
    case 2: return clear_apart<uint16_t>(row, step, from, to);
    case 4: return clear_apart<uint32_t>(row, step, from, to);
    case 8: return clear_apart<uint64_t>(row, step, from, to);
    default: return clear_apart<Complex128>(row, step, from, to);
  }
}
/// Copies the kept part of every row and clears the rest.
template <class Keep>
void triangle(const Tensor& out, const Tensor& self, const Keep& keep) {
  const Unlocked unlocked(out.numel() > 32768);
  if (out.contiguous() && self.contiguous() && out.dtype() == self.dtype()) return triangle_of_rows(out, self, keep);
  if (!out.same(self)) ops::copy_(out, self);
  if (out.contiguous()) return triangle_of_rows(out, out, keep);
  const int64_t rows = out.size(-2), columns = out.size(-1), bytes = out.item_bytes();
  const int64_t row_step = out.stride(-2) * bytes, column_step = out.stride(-1) * bytes;
  const int64_t planes = rows > 0 && columns > 0 ? out.numel() / (rows * columns) : 0;
  for (int64_t p = 0; p < planes; ++p) {
    char* plane = out.bytes();
    for (int64_t d = out.dim() - 3, rest = p; d >= 0; --d) {
      plane += rest % out.size(d) * out.stride(d) * bytes;
      rest /= out.size(d);
    }
    for (int64_t i = 0; i < rows; ++i) {
      const auto [begin, end] = keep(i);  // columns to keep
      char* const row = plane + i * row_step;
      clear_row(row, column_step, bytes, 0, std::clamp<int64_t>(begin, 0, columns));
      clear_row(row, column_step, bytes, std::clamp<int64_t>(end, 0, columns), columns);
    }
  }
}

/// A diagonal beyond all of the matrix is the same as the next one outside: it can be added to row numbers.
int64_t near_diagonal(const Tensor& self, int64_t diagonal) {
  return std::clamp<int64_t>(diagonal, -self.size(-2) - 1, self.size(-1) + 1);
}

void tril_kernel(const Tensor& out, const Tensor& self, int64_t diagonal) {
  diagonal = near_diagonal(self, diagonal);
  triangle(out, self, [=](int64_t i) { return std::pair<int64_t, int64_t>(0, i + diagonal + 1); });
}
void triu_kernel(const Tensor& out, const Tensor& self, int64_t diagonal) {
  const int64_t columns = self.size(-1);
  diagonal = near_diagonal(self, diagonal);
  triangle(out, self, [=](int64_t i) { return std::pair<int64_t, int64_t>(i + diagonal, columns); });
}

const bool registered = [] {
  kernel<op::cat>(kCPU, cat_kernel);
  kernel<op::tril>(kCPU, tril_kernel);
  kernel<op::triu>(kCPU, triu_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
