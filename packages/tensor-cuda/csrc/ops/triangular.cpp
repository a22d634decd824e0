// Systems of triangular matrices: blocks of the diagonal by a kernel, what they have found by products of matrices.
#include <algorithm>
#include <array>
#include <optional>

#include "kernels/factor.h"
#include "ops/elementwise.h"
#include "ops/matrix.h"

namespace taeda::cuda {
namespace {

using Three = std::array<int64_t, 3>;
constexpr int64_t kBlock = TriangularBlock<float>::kMost;

/// Matrices of a batch, one as far from the next as the one before.
struct Batch {
  Tensor tensor;
  int64_t step, row, column;

  Tensor part(const Call& call, int64_t count, int64_t first_row, int64_t rows, int64_t first_column,
              int64_t columns) const {
    return call.view(tensor, Three{count, rows, columns}, Three{step, row, column},
                     first_row * row + first_column * column);
  }
  Array array(int64_t first_row, int64_t first_column) const {
    const int64_t offset = (first_row * row + first_column * column) * tensor.item_size();
    return {tensor.address() + uint64_t(offset), tensor.dtype(), 0};
  }
  Batch turned() && { return {std::move(tensor), step, column, row}; }
};
/// The distance of matrices, where it is one.
std::optional<int64_t> step_of(const Tensor& t) {
  int64_t step = 0, behind = 1;
  for (int d = t.ndim() - 3; d >= 0; --d) {
    if (t.size(d) == 1) continue;
    if (step == 0 && behind == 1) step = t.stride(d);
    else if (t.stride(d) != step * behind) return std::nullopt;
    behind *= t.size(d);
  }
  return step;
}
Batch batch_of(const Tensor& t, int64_t step) {
  Tensor borrowed(t.handle());
  return {std::move(borrowed), step, t.stride(-2), t.stride(-1)};
}
/// Triangles for each of the matrices of unknowns; one stands for all where there is one.
Batch triangles_for(const Call& call, const Tensor& given, const Tensor& unknowns) {
  const int64_t n = given.size(-1);
  if (given.numel() == n * n) return batch_of(given, 0);
  const auto batch = unknowns.sizes().first(size_t(unknowns.ndim() - 2));
  const bool same = std::ranges::equal(batch, given.sizes().first(size_t(given.ndim() - 2)));
  if (const auto step = step_of(given); same && step) return batch_of(given, *step);
  std::vector<int64_t> sizes(batch.begin(), batch.end());
  sizes.push_back(n), sizes.push_back(n);
  Tensor made = call.empty(sizes, given.dtype());
  call.copy(made, given);
  return {std::move(made), n * n, n, 1};
}

struct System {
  Batch a, x;
  int64_t count, rows, columns;  // of x
  bool upper, left, ones;
};
template <class C>
void solve_block(const Call& call, const System& s, int64_t first, int64_t size, bool backward) {
  TriangularBlock<C> b{};
  b.a = s.a.array(first, first);
  b.x = s.left ? s.x.array(first, 0) : s.x.array(0, first);
  // X A = B is A' X' = B'.
  b.batch_a = s.a.step, b.row_a = s.left ? s.a.row : s.a.column, b.column_a = s.left ? s.a.column : s.a.row;
  b.batch_x = s.x.step, b.line_x = s.left ? s.x.column : s.x.row, b.row_x = s.left ? s.x.row : s.x.column;
  b.lines = s.left ? s.columns : s.rows;
  b.chunks = (b.lines + b.kThreads - 1) / b.kThreads;
  b.rows = int32_t(size), b.backward = backward, b.ones = s.ones;
  call.launch(b, s.count * b.chunks);
}
/// Takes what the unknowns `done` say of those of a block off these.
void take_off(const Call& call, const System& s, int64_t first, int64_t size, int64_t done, int64_t known) {
  const Number minus{-1, 0, -1}, one{1, 0, 1};
  const int64_t triangles = s.a.step ? s.count : 1;
  if (s.left) {
    const Tensor to = s.x.part(call, s.count, first, size, 0, s.columns);
    multiply(call, to, s.a.part(call, triangles, first, size, done, known),
             s.x.part(call, s.count, done, known, 0, s.columns), &to, minus, one);
  } else {
    const Tensor to = s.x.part(call, s.count, 0, s.rows, first, size);
    multiply(call, to, s.x.part(call, s.count, 0, s.rows, done, known),
             s.a.part(call, triangles, done, known, first, size), &to, minus, one);
  }
}
void solve(const Call& call, const System& s) {
  const int64_t n = s.left ? s.rows : s.columns, blocks = (n + kBlock - 1) / kBlock;
  const bool backward = s.upper == s.left;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t first = (backward ? blocks - 1 - i : i) * kBlock, size = std::min(kBlock, n - first);
    const int64_t done = backward ? first + size : 0, known = backward ? n - done : first;
    if (known > 0) take_off(call, s, first, size, done, known);
    switch (class_for(s.x.tensor.dtype())) {
      case Class::Float: solve_block<float>(call, s, first, size, backward); break;
      case Class::Complex: solve_block<Complex128>(call, s, first, size, backward); break;
      default: solve_block<double>(call, s, first, size, backward); break;
    }
  }
}
void solve_triangular(const Call& call) {
  const Tensor out = call.output(0), given = call.tensor(0);
  if (out.numel() == 0) return;
  const auto step = step_of(out);
  const bool by_columns = out.stride(-2) == 1, by_rows = out.stride(-1) == 1;
  const Tensor made = step && (by_columns || by_rows) ? Tensor() : call.empty(out.sizes(), out.dtype());
  const Tensor& to = made ? made : out;
  call.copy(to, call.tensor(1));
  System s{triangles_for(call, given, to),
           batch_of(to, made ? to.size(-2) * to.size(-1) : *step),
           to.numel() / (to.size(-2) * to.size(-1)),
           to.size(-2),
           to.size(-1),
           call.flag(2),
           call.flag(3),
           call.flag(4)};
  // Products are made row by row: what lies by columns is the transposed system.
  if (!made && by_columns && !by_rows)
    s = {std::move(s.a).turned(), std::move(s.x).turned(), s.count, s.columns, s.rows, !s.upper, !s.left, s.ones};
  solve(call, s);
  if (made) call.copy(out, made);
}

}  // namespace

const std::vector<Operation>& triangular_operations() {
  static const std::vector<Operation> operations{{"linalg_solve_triangular", solve_triangular}};
  return operations;
}

}  // namespace taeda::cuda
