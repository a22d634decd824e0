// CPU kernels of the linalg family: dtype, strides and batches around the products of cpu/blas.h.
#include "taeda/ops/linalg.h"

#include <algorithm>
#include <vector>

#include "cpu/arith.h"
#include "cpu/blas.h"
#include "cpu/column_sums.h"
#include "cpu/converted.h"
#include "cpu/lines.h"
#include "cpu/prepare.h"
#include "taeda/elementwise.h"
#include "taeda/half.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using blas::Operand;
using blas::visit_numeric;
using cpu::row_major;

/// Whether the last two dimensions can be handed to BLAS as they are: one of them has unit stride.
bool blas_layout(const Tensor& t, bool& transposed, int64_t& ld) {
  const int64_t rows = t.size(-2), columns = t.size(-1), row = t.stride(-2), column = t.stride(-1);
  if ((column == 1 || columns == 1) && (row >= std::max<int64_t>(1, columns) || rows == 1)) {
    transposed = false;
    ld = std::max({row, columns, int64_t(1)});
    return true;
  }
  if ((row == 1 || rows == 1) && (column >= std::max<int64_t>(1, rows) || columns == 1)) {
    transposed = true;
    ld = std::max({column, rows, int64_t(1)});
    return true;
  }
  return false;
}

/// The transpose of a matrix, or of each of a batch.
Tensor turned(const Tensor& t) {
  Shape sizes(t.sizes()), strides(t.strides());
  std::swap(sizes[t.dim() - 1], sizes[t.dim() - 2]);
  std::swap(strides[t.dim() - 1], strides[t.dim() - 2]);
  return alias(t, sizes, strides, 0);
}

/// A matrix or batch of matrices in a layout that BLAS takes, of the dtype to compute in.
struct Matrices {
  Tensor tensor;
  int64_t ld = 1;
  bool transposed = false;
  Matrices(const Tensor& t, DType dtype) : tensor(t) {
    if (t.dtype() == dtype && blas_layout(t, transposed, ld)) return;
    // A copy is read along the memory of what it is a copy of.
    const bool columns_lie_together = t.stride(-2) < t.stride(-1) && t.size(-2) > 1 && t.size(-1) > 1;
    tensor = columns_lie_together ? turned(row_major(turned(t), dtype)) : row_major(t, dtype);
    blas_layout(tensor, transposed, ld);
  }
  template <class T>
  Operand<T> operand(int64_t batch = 0) const {
    return {tensor.data<T>() + (batch ? batch * tensor.stride(0) : 0), ld, transposed};
  }
};

/// A product of a batch, whose calls would take longer than they compute.
template <class T>
void one_of_many(int64_t m, int64_t n, int64_t k, T alpha, Operand<T> a, Operand<T> b, T beta, T* to) {
  constexpr int64_t least = 400;  // multiplications that a call of BLAS is worth
  const int64_t along_a = a.transposed ? a.ld : 1, along_b = b.transposed ? 1 : b.ld;  // the inner dimension
  if (m == 1 && n == 1 && k > 16) {
    const T sum = blas::dot<T>(k, a.data, along_a, b.data, along_b);
    *to = beta == T(0) ? alpha * sum : alpha * sum + beta * *to;
  } else if (m * n * k <= least) {
    const int64_t down_a = a.transposed ? 1 : a.ld, down_b = b.transposed ? b.ld : 1;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        T sum(0);
        for (int64_t p = 0; p < k; ++p) sum += a.data[i * down_a + p * along_a] * b.data[p * along_b + j * down_b];
        to[i * n + j] = beta == T(0) ? alpha * sum : alpha * sum + beta * to[i * n + j];
      }
  } else if (n == 1) {
    blas::gemv<T>(m, k, alpha, a, b.data, along_b, beta, to, 1);
  } else if (m == 1) {
    blas::gemv<T>(n, k, alpha, {b.data, b.ld, !b.transposed}, a.data, along_a, beta, to, 1);
  } else {
    blas::gemm<T>(m, n, k, alpha, a, b, beta, to, n);
  }
}

/// How many products of a batch are a thread's share, where each is too small to be cut inside.
int64_t share_of_batch(int64_t work) { return std::max<int64_t>(1, (1 << 17) / std::max<int64_t>(1, work)); }
constexpr int64_t kCutInside = int64_t(1) << 22;  // multiplications

/// out = beta * out + alpha * a @ b for row-major out of the computing dtype; batches along dimension 0 of 3-d tensors.
template <class T>
void products(const Tensor& out, const Matrices& a, const Matrices& b, T alpha, T beta) {
  const int64_t m = out.size(-2), n = out.size(-1), k = a.tensor.size(-1);
  const int64_t batch = out.dim() == 3 ? out.size(0) : 1;
  T* const to = out.data<T>();
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Operand<T> left = a.operand<T>(i), right = b.operand<T>(i);
      if (batch == 1 || k == 0) blas::gemm<T>(m, n, k, alpha, left, right, beta, to + i * m * n, n);
      else one_of_many<T>(m, n, k, alpha, left, right, beta, to + i * m * n);
    }
  };
  const Unlocked unlocked(batch * m * n * k > blas::kUnlockFlops);
  // Many small products are shared out among threads; each large one is cut inside.
  if (batch > 1 && m * n * k < kCutInside) parallel_for(batch, share_of_batch(m * n * k), run);
  else run(0, batch);
}

/// What is added to every row of a result of n columns, in float32; undefined where rows differ.
Tensor same_row(const Tensor& self, int64_t n) {
  const int64_t d = self.dim();
  if (d == 0 || d > 2 || self.size(-1) != n || (d == 2 && self.size(0) != 1 && self.stride(0) != 0)) return {};
  return row_major(alias(self, Shape{n}, Shape{self.stride(-1)}, 0), DType::Float32);
}

/// to = a @ b, or added to the same `added` in each row, without float32 copies of bfloat16
/// operands; false where copies are as good. `to` is row-major, of float32 or bfloat16; `added` is for the latter.
bool bfloat16_products(const Tensor& to, const Tensor& a, const Tensor& b, const Tensor& added = {}) {
  if (a.dtype() != DType::BFloat16 || b.dtype() != DType::BFloat16) return false;
  const int64_t m = to.size(-2), n = to.size(-1), k = a.size(-1), batch = to.dim() == 3 ? to.size(0) : 1;
  if (!blas::worth_bfloat16(m, n, k, batch)) return false;
  const Tensor row = added.defined() ? same_row(added, n) : Tensor();
  if (added.defined() && !row.defined()) return false;
  const Matrices left(a, DType::BFloat16), right(b, DType::BFloat16);
  const Unlocked unlocked(batch * m * n * k > blas::kUnlockFlops);
  const auto one_by_one = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Operand<BFloat16> x = left.operand<BFloat16>(i), y = right.operand<BFloat16>(i);
      if (to.dtype() == DType::BFloat16)
        blas::gemm_bfloat16(m, n, k, x, y, row.defined() ? row.data<float>() : nullptr,
                            to.data<BFloat16>() + i * m * n);
      else blas::gemm_bfloat16(m, n, k, x, y, false, to.data<float>() + i * m * n);
    }
  };
  if (batch == 1 || m * n * k >= kCutInside) {
    one_by_one(0, batch);
    return true;
  }
  const int64_t share =
      std::max(share_of_batch(m * n * k), (batch + 31) / 32);  // of sizes that do not depend on threads
  parallel_for((batch + share - 1) / share, 1, [&](int64_t first, int64_t last) {
    for (int64_t begin = first * share; begin < std::min(batch, last * share); begin += share) {
      const int64_t count = std::min(share, batch - begin);
      const auto at_once = [&]<class C>(C* results) {
        return blas::gemm_bfloat16(count, m, n, k, left.operand<BFloat16>(begin), left.tensor.stride(0),
                                   right.operand<BFloat16>(begin), right.tensor.stride(0), results + begin * m * n);
      };
      if (row.defined() || !(to.dtype() == DType::Float32 ? at_once(to.data<float>()) : at_once(to.data<BFloat16>())))
        one_by_one(begin, begin + count);
    }
  });
  return true;
}

// Note [Few rows of halves]
// A large matrix of halves that is multiplied by a few rows, as the weights of a model that generates one word after
// another, is read once: its parts are converted in the cache. A float32 copy of it would go through memory twice more.

constexpr int64_t kFewRows = 8, kPartOfHalves = 1 << 17;

/// Whether the product of m rows is computed so.
bool few_rows_of_halves(int64_t m, const Tensor& matrix) {
  return m > 0 && m <= kFewRows && is_half(matrix) && matrix.numel() >= kPartOfHalves / 2;
}
/// to (m, n) = a (m, k) @ b + row, where `b` (k, n) is of halves; `row` may be null.
void products_of_parts(int64_t m, const float* a, const Matrices& b, int64_t k, int64_t n, const float* row,
                       float* to) {
  const Unlocked unlocked(m * n * k > blas::kUnlockFlops);
  // Rows of b^T one after another, or, where those of b lie in memory, long pieces of many, whose products are added.
  constexpr int64_t kLongPiece = 1024;
  const int64_t width = std::min(
                    n, b.transposed ? std::max<int64_t>(16, kPartOfHalves / std::max<int64_t>(k, 1)) : kLongPiece),
                height = b.transposed ? k : std::max<int64_t>(16, kPartOfHalves / width),
                parts = (n + width - 1) / width;
  parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
    cpu::Reader<float> reader(b.tensor);
    cpu::Room<float> room, products;
    for (int64_t p = begin; p < end; ++p) {
      const int64_t j = p * width, columns = std::min(width, n - j);
      std::vector<double> sums(size_t(m * columns), 0.0);
      for (int64_t i = 0; i == 0 || i < k; i += height) {
        const int64_t rows = std::min(height, k - i);
        Operand<float> part{nullptr, b.transposed ? rows : columns, b.transposed};
        if (b.ld == part.ld) {
          part.data = reader.at(b.transposed ? j * k : i * n, rows * columns);
        } else {
          float* const copy = room.get(rows * columns);
          for (int64_t l = 0; l < (b.transposed ? columns : rows); ++l)
            std::copy_n(reader.at(b.transposed ? (j + l) * b.ld : (i + l) * b.ld + j, part.ld), part.ld,
                        copy + l * part.ld);
          part.data = copy;
        }
        float* const found = products.get(m * columns);
        if (m == 1)
          blas::gemv<float>(columns, rows, 1.f, {part.data, part.ld, !part.transposed}, a + i, 1, 0.f, found, 1);
        else blas::gemm_whole<float>(m, columns, rows, {a + i, k}, part, 0.f, found, columns);
        for (int64_t l = 0; l < m * columns; ++l) sums[size_t(l)] += double(found[l]);
      }
      for (int64_t l = 0; l < m; ++l)
        for (int64_t c = 0; c < columns; ++c)
          to[l * n + j + c] = float(sums[size_t(l * columns + c)] + (row ? double(row[j + c]) : 0.0));
    }
  });
}
/// beta * self + alpha * products into `out`, computed in float32; `products` are written over.
void combine(const char* op, const Tensor& out, const Tensor& self, const Tensor& products, const Scalar& beta,
             const Scalar& alpha) {
  using cpu::SharedLine;
  const DType d = DType::Float32;
  const bool read = self.defined() && !beta.equal(0);
  if (!read && alpha.equal(1)) return ops::copy_(out, products);
  if (!read) return cpu::run_line(row(SharedLine::mul), op, d, out, products, Tensor(alpha));
  const bool once = beta.equal(1);
  if (!once && !alpha.equal(1)) cpu::run_line(row(SharedLine::mul), op, d, products, products, Tensor(alpha));
  const LoopParams by{once ? alpha : beta};
  cpu::run_line(row(SharedLine::add_alpha), op, d, out, once ? self : products, once ? products : self, &by);
}

/// beta * self + alpha * a @ b into `out`; `self` undefined means beta 0.
void add_products(const char* op, const Tensor& out, const Tensor& self, const Tensor& a, const Tensor& b,
                  const Scalar& beta, const Scalar& alpha) {
  const DType dtype = compute_dtype(out.dtype());
  const bool read = self.defined() && !beta.equal(0);
  if (alpha.equal(1) && out.dtype() == DType::BFloat16 && out.contiguous() && (!read || beta.equal(1)) &&
      bfloat16_products(out, a, b, read ? self : Tensor()))
    return;
  if (a.dtype() == DType::BFloat16) {
    const Tensor found = empty(out.sizes(), dtype);
    if (bfloat16_products(found, a, b)) return combine(op, out, self, found, beta, alpha);
  }
  const cpu::Target target(out, dtype);
  if (read && !target.tensor().same(self)) ops::copy_(target.tensor(), self);
  if (out.dim() == 2 && dtype == DType::Float32 && !read && alpha.equal(1)) {
    if (few_rows_of_halves(a.size(0), b)) {
      products_of_parts(a.size(0), row_major(a, dtype).data<float>(), Matrices(b, b.dtype()), a.size(1), b.size(1),
                        nullptr, target.data<float>());
      return target.finish();
    }
    if (b.size(1) == 1 && few_rows_of_halves(1, a)) {
      products_of_parts(1, row_major(b, dtype).data<float>(), Matrices(turned(a), a.dtype()), a.size(1), a.size(0),
                        nullptr, target.data<float>());
      return target.finish();
    }
  }
  const Matrices left(a, dtype), right(b, dtype);
  visit_numeric(op, dtype, [&]<class T>() {
    products<T>(target.tensor(), left, right, alpha.to<T>(), read ? beta.to<T>() : T(0));
  });
  target.finish();
}

void mm_kernel(const Tensor& out, const Tensor& self, const Tensor& mat2) {
  if (out.dtype() == DType::Float32 && out.contiguous() && self.contiguous() && mat2.contiguous() && !out.same(self) &&
      !out.same(mat2)) [[likely]] {
    const int64_t m = self.size(0), k = self.size(1), n = mat2.size(1);
    const Unlocked unlocked(m * n * k > blas::kUnlockFlops);
    blas::gemm<float>(m, n, k, 1.f, {self.data<float>(), std::max<int64_t>(k, 1)}, {mat2.data<float>(), n}, 0.f,
                      out.data<float>(), n);
    return;
  }
  add_products("mm", out, Tensor(), self, mat2, 0, 1);
}
void bmm_kernel(const Tensor& out, const Tensor& self, const Tensor& mat2) {
  add_products("bmm", out, Tensor(), self, mat2, 0, 1);
}
void addmm_kernel(const Tensor& out, const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                  const Scalar& alpha) {
  add_products("addmm", out, self, mat1, mat2, beta, alpha);
}
void baddbmm_kernel(const Tensor& out, const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                    const Scalar& beta, const Scalar& alpha) {
  add_products("baddbmm", out, self, batch1, batch2, beta, alpha);
}

void addmv_into(const char* op, const Tensor& out, const Tensor& self, const Tensor& mat, const Tensor& vec,
                const Scalar& beta, const Scalar& alpha) {
  const DType dtype = compute_dtype(out.dtype());
  const cpu::Target target(out, dtype);
  const bool read = self.defined() && !beta.equal(0);
  if (read && !target.tensor().same(self)) ops::copy_(target.tensor(), self);
  const Tensor vector = row_major(vec, dtype);
  if (!read && alpha.equal(1) && dtype == DType::Float32 && few_rows_of_halves(1, mat)) {
    products_of_parts(1, vector.data<float>(), Matrices(turned(mat), mat.dtype()), mat.size(1), mat.size(0), nullptr,
                      target.data<float>());
    return target.finish();
  }
  const Matrices matrix(mat, dtype);
  visit_numeric(op, dtype, [&]<class T>() {
    const Unlocked unlocked(mat.numel() > blas::kUnlockFlops);
    T* const y = target.data<T>();
    const T factor = read ? beta.to<T>() : T(0);
    if (mat.size(1) == 0) {
      for (int64_t i = 0; i < mat.size(0); ++i) y[i] = read ? T(factor * y[i]) : T(0);
      return;
    }
    constexpr int64_t kRows = 512;  // a fixed piece of the result
    parallel_for(mat.size(0), mat.numel() > (1 << 18) ? kRows : mat.size(0), [&](int64_t begin, int64_t end) {
      Operand<T> a = matrix.operand<T>();
      a.data += a.transposed ? begin : begin * a.ld;
      blas::gemv<T>(end - begin, mat.size(1), alpha.to<T>(), a, vector.data<T>(), 1, factor, y + begin, 1);
    });
  });
  target.finish();
}
void mv_kernel(const Tensor& out, const Tensor& self, const Tensor& vec) {
  addmv_into("mv", out, Tensor(), self, vec, 0, 1);
}
void addmv_kernel(const Tensor& out, const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
                  const Scalar& alpha) {
  addmv_into("addmv", out, self, mat, vec, beta, alpha);
}

void dot_kernel(const Tensor& out, const Tensor& self, const Tensor& tensor) {
  const DType dtype = compute_dtype(out.dtype());
  const cpu::Target target(out, dtype);
  const Tensor a = self.dtype() == dtype ? self : row_major(self, dtype),
               b = tensor.dtype() == dtype ? tensor : row_major(tensor, dtype);
  const int64_t n = a.size(0);
  visit_numeric("dot", dtype, [&]<class T>() {
    const Unlocked unlocked(n > 32768);
    // An expanded operand (stride 0) is left to the plain loop inside.
    *target.data<T>() = n == 0 ? T(0) : blas::dot<T>(n, a.data<T>(), a.stride(0), b.data<T>(), b.stride(0));
  });
  target.finish();
}

/// Whether a weight is the transpose of a row-major matrix, which products take as it stands.
bool stands_turned(const Tensor& weight, DType dtype) {
  return weight.dim() == 2 && weight.dtype() == dtype && weight.stride(0) == 1 && weight.stride(1) == weight.size(0) &&
         weight.size(0) > 1 && weight.size(1) > 1;
}

template <class T>
void linear_typed(const Tensor& out, const Tensor& input, const Tensor& weight, const Tensor& bias) {
  const int64_t in = input.size(-1),
                rows = in ? input.numel() / in : out.numel() / (weight.dim() == 2 ? weight.size(0) : 1);
  const int64_t columns = weight.dim() == 2 ? weight.size(0) : 1;
  const Unlocked unlocked(rows * in * columns > blas::kUnlockFlops);
  T* const to = out.data<T>();
  // Row-major weight (columns, in) is the transposed right operand.
  const bool turned = stands_turned(weight, dtype_of<T>);
  blas::gemm<T>(rows, columns, in, T(1), {input.data<T>(), std::max<int64_t>(in, 1)},
                {weight.data<T>(), turned ? columns : std::max<int64_t>(in, 1), !turned}, T(0), to, columns,
                bias.defined() ? bias.data<T>() : nullptr);
}

/// As bfloat16_products, for the layer.
bool bfloat16_linear(const Tensor& out, const Tensor& input, const Tensor& weight, const Tensor& bias) {
  const int64_t in = input.size(-1), columns = out.size(-1);
  if (out.dtype() != DType::BFloat16 || input.dtype() != DType::BFloat16 || weight.dtype() != DType::BFloat16 ||
      weight.dim() != 2 || in == 0)
    return false;
  const int64_t rows = input.numel() / in;
  if (!blas::worth_bfloat16(rows, columns, in)) return false;
  const cpu::Target target(out, DType::BFloat16);
  const Tensor x = row_major(input), w = row_major(weight), b = cpu::row_major_or_none(bias, DType::Float32);
  const Unlocked unlocked(rows * in * columns > blas::kUnlockFlops);
  blas::gemm_bfloat16(rows, columns, in, {x.data<BFloat16>(), in}, {w.data<BFloat16>(), in, true},
                      b.defined() ? b.data<float>() : nullptr, target.data<BFloat16>());
  target.finish();
  return true;
}

void linear_kernel(const Tensor& out, const Tensor& input, const Tensor& weight, const Tensor& bias) {
  if (bfloat16_linear(out, input, weight, bias)) return;
  const DType dtype = compute_dtype(out.dtype());
  const cpu::Target target(out, dtype);
  if (const int64_t in = input.size(-1);
      dtype == DType::Float32 && weight.dim() == 2 && in > 0 && few_rows_of_halves(input.numel() / in, weight)) {
    const Tensor x = row_major(input, dtype), b = cpu::row_major_or_none(bias, dtype);
    products_of_parts(input.numel() / in, x.data<float>(), Matrices(turned(weight), weight.dtype()), in, weight.size(0),
                      b.defined() ? b.data<float>() : nullptr, target.data<float>());
    return target.finish();
  }
  const Tensor x = row_major(input, dtype), w = stands_turned(weight, dtype) ? weight : row_major(weight, dtype),
               b = cpu::row_major_or_none(bias, dtype);
  visit_numeric("linear", dtype, [&]<class T>() { linear_typed<T>(target.tensor(), x, w, b); });
  target.finish();
}

/// The product of bfloat16 matrices, the first as it stands or turned, of these sizes; undefined where float32 copies
/// are as good.
Tensor bfloat16_gradient(IntSpan sizes, int64_t m, int64_t n, int64_t k, const Tensor& left, bool turned,
                         const Tensor& right) {
  if (!blas::worth_bfloat16(m, n, k)) return {};
  const Tensor x = row_major(left), y = row_major(right), made = empty(sizes, DType::BFloat16);
  const Operand<BFloat16> a{x.data<BFloat16>(), turned ? m : k, turned}, b{y.data<BFloat16>(), n};
  const Unlocked unlocked(m * n * k > blas::kUnlockFlops);
  blas::gemm_bfloat16(m, n, k, a, b, nullptr, made.data<BFloat16>());
  return made;
}

std::tuple<Tensor, Tensor, Tensor> linear_backward_kernel(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                                          int64_t output_mask) {
  const DType dtype = compute_dtype(grad.dtype());
  const int64_t columns = weight.dim() == 2 ? weight.size(0) : 1, in = weight.size(-1);
  const int64_t rows = product(input.sizes().first(size_t(input.dim() - 1)));
  Tensor grad_input, grad_weight, grad_bias;
  const int64_t ldg = std::max<int64_t>(columns, 1), ldi = std::max<int64_t>(in, 1);
  if (grad.dtype() == DType::BFloat16 && input.dtype() == grad.dtype() && weight.dtype() == grad.dtype()) {
    if (output_mask & 1) grad_input = bfloat16_gradient(input.sizes(), rows, in, columns, grad, false, weight);
    if (output_mask & 2) grad_weight = bfloat16_gradient(weight.sizes(), columns, in, rows, grad, true, input);
  }
  const bool input_is_missing = output_mask & 1 && !grad_input.defined(),
             weight_is_missing = output_mask & 2 && !grad_weight.defined();
  const Tensor g = input_is_missing || weight_is_missing || output_mask & 4 ? row_major(grad, dtype) : Tensor();
  const bool turned = stands_turned(weight, dtype);
  visit_numeric("linear_backward", dtype, [&]<class T>() {
    if (input_is_missing) {
      grad_input = empty(input.sizes(), dtype);
      const Tensor w = turned ? weight : row_major(weight, dtype);
      const Unlocked unlocked(rows * in * columns > blas::kUnlockFlops);
      if (grad_input.numel())
        blas::gemm<T>(rows, in, columns, T(1), {g.data<T>(), ldg}, {w.data<T>(), turned ? ldg : ldi, turned}, T(0),
                      grad_input.data<T>(), ldi);
    }
    if (weight_is_missing) {
      grad_weight = turned ? empty_strided(weight.sizes(), weight.strides(), dtype) : empty(weight.sizes(), dtype);
      const Tensor x = row_major(input, dtype);
      const Unlocked unlocked(rows * in * columns > blas::kUnlockFlops);
      if (turned)
        blas::gemm<T>(in, columns, rows, T(1), {x.data<T>(), ldi, true}, {g.data<T>(), ldg}, T(0),
                      grad_weight.data<T>(), ldg);
      else if (grad_weight.numel())
        blas::gemm<T>(columns, in, rows, T(1), {g.data<T>(), ldg, true}, {x.data<T>(), ldi}, T(0),
                      grad_weight.data<T>(), ldi);
    }
    if (output_mask & 4) {
      grad_bias = empty(weight.sizes().first(size_t(weight.dim() - 1)), dtype);
      if (grad_bias.numel()) cpu::column_sums(grad_bias.data<T>(), g.data<T>(), rows, columns);
    }
  });
  const auto back = [&](const Tensor& t) {
    return t.defined() && t.dtype() != grad.dtype() ? row_major(t, grad.dtype()) : t;
  };
  return {back(grad_input), back(grad_weight), back(grad_bias)};
}

const bool registered = [] {
  kernel<op::mm>(kCPU, mm_kernel);
  kernel<op::bmm>(kCPU, bmm_kernel);
  kernel<op::addmm>(kCPU, addmm_kernel);
  kernel<op::baddbmm>(kCPU, baddbmm_kernel);
  kernel<op::mv>(kCPU, mv_kernel);
  kernel<op::addmv>(kCPU, addmv_kernel);
  kernel<op::dot>(kCPU, dot_kernel);
  kernel<op::linear>(kCPU, linear_kernel);
  kernel<op::linear_backward>(kCPU, linear_backward_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
