// CPU kernels of the solve family.
#include "cpu/matrices.h"
#include "infer/matrices.h"
#include "infer/solve.h"
#include "taeda/arithmetic.h"
#include "taeda/decompose.h"
#include "taeda/ops.h"

namespace taeda {
namespace {

using namespace cpu;
using infer::batch_of;

/// LU factors of each matrix of A, with pivots and `infos` in row-major order.
template <class T>
void factor_all(const Tensor& LU, const Tensor& A, int* pivots, int* infos) {
  const int64_t n = A.size(-1);
  const Stack<T> from(A), to(LU);
  each_matrix(product(batch_of(A)), double(n) * double(n) * double(n), [&](int64_t begin, int64_t end) {
    lapack::Room<T> room;
    for (int64_t i = begin; i < end; ++i) {
      const Columns<T> factors(to[i], room);
      copy_elements(from[i], factors.matrix());
      infos[i] = lapack::getrf(int(n), int(n), factors.data(), factors.ld(), pivots + i * n);
      factors.store();
    }
  });
}

/// op(A) X = B, or X op(A) = B, by the LU factors of A; all batches broadcast to that of `X`. A vector for each matrix
/// counts as a column.
template <class T>
void solve_all(const Tensor& X, const Tensor& LU, const int* pivots, const Tensor& B, bool left, bool adjoint) {
  const int64_t n = LU.size(-1), columns = X.size(left ? -1 : -2);
  const IntSpan batch = batch_of(X);
  const Stack<T> factors_of(LU, 2, batch), from(B, 2, batch), to(X);
  // X op(A) = B is op(A)^H X^H = B^H.
  const char op = adjoint == left ? 'C' : 'N';
  each_matrix(product(batch), double(n) * double(n) * double(columns), [&](int64_t begin, int64_t end) {
    lapack::Room<T> room, factors_room;
    for (int64_t i = begin; i < end; ++i) {
      const Columns<T> factors = read_columns(factors_of[i], factors_room);
      const Strided<T> target = left ? to[i] : to[i].turned(), source = left ? from[i] : from[i].turned();
      const bool direct = left && target.by_columns();
      const Strided<T> work{direct ? target.data : room.get(n * columns), n, columns, 1,
                            direct ? target.leading() : std::max<int64_t>(1, n)};
      copy_elements(source, work, !left);
      lapack::getrs(op, int(n), int(columns), factors.data(), factors.ld(), pivots + factors_of.own_number(i) * n,
                    work.data, int(work.across));
      if (!direct) copy_elements(work, target, !left);
    }
  });
}

/// What is wrong with a matrix whose U has a zero.
std::string singular(int) { return "The solver failed because the input matrix is singular."; }

void solve_kernel(const Tensor& result, const Tensor& LU, const Tensor& pivots, const Tensor& info, const Tensor& A,
                  const Tensor& B, bool left, bool check_errors) {
  expect_countable("_linalg_solve_ex", A);
  expect_countable("_linalg_solve_ex", B);
  const Target infos(info), exchanges(pivots);
  const bool vector = infer::is_vector_side(A, B);
  const Tensor X = vector ? ops::unsqueeze(result, -1) : result, side = vector ? ops::unsqueeze(B, -1) : B;
  visit_exact(A.dtype(), [&]<class T>() {
    factor_all<T>(LU, A, exchanges.data<int>(), infos.data<int>());
    if (check_errors) check_infos("_linalg_solve_ex", infos.data<int>(), product(batch_of(A)), A.dim() == 2, singular);
    if (X.numel()) solve_all<T>(X, LU, exchanges.data<int>(), side, left, false);
  });
  exchanges.finish();
  infos.finish();
}

void lu_solve_kernel(const Tensor& out, const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left,
                     bool adjoint) {
  const char* const op = "linalg_lu_solve";
  expect_countable(op, LU);
  expect_countable(op, B);
  const Tensor exchanges = row_major(pivots);
  const int64_t n = LU.size(-1);
  const int* const rows = exchanges.data<int>();
  for (int64_t i = 0; i < exchanges.numel(); ++i)
    check(rows[i] >= 1 && rows[i] <= n, ErrorKind::Runtime, op, ": argument 'pivots' has ", rows[i],
          ", expected numbers from 1 to ", n, ", as linalg.lu_factor gives them");
  visit_exact(LU.dtype(), [&]<class T>() { solve_all<T>(out, LU, rows, B, left, adjoint); });
}

/// Pivots of LDL: numbers of rows, those of a block of two rows negative; LAPACK would read beyond the end otherwise.
void expect_blocks(const char* op, const Tensor& pivots, int64_t n) {
  for (int64_t i = 0; i < pivots.numel(); ++i) {
    const int* const row = pivots.data<int>() + i;
    const bool pair = *row < 0, whole = !pair || (i % n + 1 < n && row[1] < 0 && row[1] >= -n);
    check(*row != 0 && *row <= n && *row >= -n && whole, ErrorKind::Runtime, op, ": argument 'pivots' has ", *row,
          " in place ", i % n, ", expected numbers from 1 to ", n,
          " or pairs of their negatives, as linalg.ldl_factor gives them");
    i += pair;
  }
}

void ldl_solve_kernel(const Tensor& out, const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian) {
  const char* const op = "linalg_ldl_solve";
  lapack::expect_routines(op);
  expect_countable(op, LD);
  expect_countable(op, B);
  const Tensor exchanges = row_major(pivots);
  const int64_t n = LD.size(-1), columns = B.size(-1);
  expect_blocks(op, exchanges, n);
  const IntSpan batch = batch_of(out);
  visit_exact(LD.dtype(), [&]<class T>() {
    const Stack<T> factors_of(LD, 2, batch), from(B, 2, batch), to(out);
    each_matrix(product(batch), double(n) * double(n) * double(columns), [&](int64_t begin, int64_t end) {
      lapack::Room<T> room, factors_room;
      for (int64_t i = begin; i < end; ++i) {
        const Columns<T> factors = read_columns(factors_of[i], factors_room), work(to[i], room);
        copy_elements(from[i], work.matrix());
        lapack::sytrs(hermitian, int(n), int(columns), factors.data(), factors.ld(),
                      exchanges.data<int>() + factors_of.own_number(i) * n, work.data(), work.ld());
        work.store();
      }
    });
  });
}

void triangular_kernel(const Tensor& out, const Tensor& self, const Tensor& B, bool upper, bool left,
                       bool unitriangular) {
  const char* const op = "linalg_solve_triangular";
  expect_countable(op, self);
  expect_countable(op, B);
  const Tensor right = ops::to_dtype(B, self.dtype());
  const int64_t n = self.size(-1), rows = out.size(-2), columns = out.size(-1);
  const IntSpan batch = batch_of(out);
  visit_exact(self.dtype(), [&]<class T>() {
    const Stack<T> from(right, 2, batch), to(out), triangles(self, 2, batch);
    each_matrix(product(batch), double(rows) * double(columns) * double(n) / 2, [&](int64_t begin, int64_t end) {
      lapack::Room<T> room, triangle_room;
      for (int64_t i = begin; i < end; ++i) {
        // A matrix that is stored by rows is its transpose stored by columns.
        const Strided<T> given = triangles[i];
        const bool turned = !given.by_columns() && given.turned().by_columns();
        const Columns<T> triangle = read_columns(turned ? given.turned() : given, triangle_room);
        const Columns<T> work(to[i], room);
        copy_elements(from[i], work.matrix());
        lapack::trsm(left, upper != turned, turned ? 'T' : 'N', unitriangular, int(rows), int(columns), triangle.data(),
                     triangle.ld(), work.data(), work.ld());
        work.store();
      }
    });
  });
}

void inverse_kernel(const Tensor& inverse, const Tensor& info, const Tensor& A, bool check_errors) {
  const char* const op = "linalg_inv_ex";
  expect_countable(op, A);
  const Target infos(info);
  const int64_t n = A.size(-1), count = product(batch_of(A));
  visit_exact(A.dtype(), [&]<class T>() {
    const Stack<T> from(A), to(inverse);
    each_matrix(count, 2 * double(n) * double(n) * double(n), [&](int64_t begin, int64_t end) {
      Rooms<T> rooms;
      for (int64_t i = begin; i < end; ++i) {
        const Strided<T> factors{rooms.more.get(n * n), n, n, 1, std::max<int64_t>(1, n)};
        int* const pivots = rooms.integers.get(n);
        copy_elements(from[i], factors);
        infos.data<int>()[i] = lapack::getrf(int(n), int(n), factors.data, int(factors.across), pivots);
        const Columns<T> work(to[i], rooms.work);
        for (int64_t j = 0; j < n; ++j) {
          std::fill_n(&work.at(0, j), n, T(0));
          work.at(j, j) = T(1);
        }
        lapack::getrs('N', int(n), int(n), factors.data, int(factors.across), pivots, work.data(), work.ld());
        work.store();
      }
    });
  });
  if (check_errors)
    check_infos(op, infos.data<int>(), count, A.dim() == 2, [](int at) {
      return "The diagonal element " + std::to_string(at) +
             " is zero, the inversion could not be completed because the input matrix is singular.";
    });
  infos.finish();
}

/// Whether the exchanges of rows change the determinant's sign.
bool odd(const int* pivots, int64_t n) {
  bool changes = false;
  for (int64_t i = 0; i < n; ++i) changes ^= pivots[i] != i + 1;
  return changes;
}

/// Factors each matrix of a stack and calls `body(i, sign, factors)`: what determinants are made of.
template <class T, class Body>
void each_factored(const Tensor& LU, const Tensor& A, int* pivots, const Body& body) {
  const int64_t n = A.size(-1), count = product(batch_of(A));
  std::vector<int> infos(static_cast<size_t>(count));
  factor_all<T>(LU, A, pivots, infos.data());
  const Stack<T> factors(LU);
  for (int64_t i = 0; i < count; ++i) body(i, T(odd(pivots + i * n, n) ? -1 : 1), factors[i]);
}

void det_kernel(const Tensor& result, const Tensor& LU, const Tensor& pivots, const Tensor& A) {
  expect_countable("_linalg_det", A);
  const Target exchanges(pivots), target(result);
  const int64_t n = A.size(-1);
  visit_exact(A.dtype(), [&]<class T>() {
    each_factored<T>(LU, A, exchanges.data<int>(), [&](int64_t i, T value, const Strided<T>& f) {
      for (int64_t j = 0; j < n; ++j) value *= f.at(j, j);
      target.data<T>()[i] = value;
    });
  });
  exchanges.finish();
  target.finish();
}

void slogdet_kernel(const Tensor& sign, const Tensor& logabsdet, const Tensor& LU, const Tensor& pivots,
                    const Tensor& A) {
  expect_countable("_linalg_slogdet", A);
  const Target exchanges(pivots), signs(sign), logarithms(logabsdet);
  const int64_t n = A.size(-1);
  visit_exact(A.dtype(), [&]<class T>() {
    each_factored<T>(LU, A, exchanges.data<int>(), [&](int64_t i, T direction, const Strided<T>& f) {
      Real<T> logarithm = 0;
      for (int64_t j = 0; j < n; ++j) {
        const T value = f.at(j, j);
        const Real<T> size = std::abs(value);
        direction *= size == 0 ? T(0) : value / size;
        logarithm += std::log(size);
      }
      signs.data<T>()[i] = direction;
      logarithms.data<Real<T>>()[i] = logarithm;
    });
  });
  exchanges.finish();
  signs.finish();
  logarithms.finish();
}

void pinv_kernel(const Tensor& out, const Tensor& self, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  ops::copy_(out, decomposed<op::_linalg_pinv>(self, atol, rtol, hermitian));
}

/// One system of least squares by LAPACK's routine; its `info`.
template <class T>
int least_squares(char routine, int m, int n, int columns, const Strided<T>& a, const Strided<T>& b, Real<T> rcond,
                  Real<T>* s, int* rank, Rooms<T>& rooms) {
  const int lda = int(a.across), ldb = int(b.across);
  switch (routine) {
    case 's': return lapack::gels(m, n, columns, a.data, lda, b.data, ldb, rooms);
    case 'y': return lapack::gelsy(m, n, columns, a.data, lda, b.data, ldb, rcond, rank, rooms);
    case 'd': return lapack::gelsd(m, n, columns, a.data, lda, b.data, ldb, s, rcond, rank, rooms);
    default: return lapack::gelss(m, n, columns, a.data, lda, b.data, ldb, s, rcond, rank, rooms);
  }
}

/// What belongs to the matrices alone, of what was computed for each pair of a matrix and its sides: their own batch.
Tensor of_matrices(const Tensor& pairs, IntSpan sizes) {
  if (std::ranges::equal(pairs.sizes(), sizes)) return pairs;
  if (pairs.numel() == 0) return ops::zeros(sizes, pairs.dtype());
  Tensor own = pairs;
  while (own.dim() > int64_t(sizes.size())) own = ops::select(own, 0, 0);
  for (int64_t d = 0; d < own.dim(); ++d) own = ops::narrow(own, d, 0, sizes[size_t(d)]);
  return ops::contiguous(own);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq_kernel(const Tensor& self, const Tensor& b,
                                                        std::optional<double> rcond,
                                                        std::optional<std::string_view> driver) {
  const char* const op = "linalg_lstsq";
  lapack::expect_routines(op);
  expect_countable(op, self);
  expect_countable(op, b);
  const std::string_view name = driver.value_or("gelsy");
  const char routine = name == "gels" ? 's' : name == "gelsy" ? 'y' : name == "gelsd" ? 'd' : 'l';
  const bool ranks = routine != 's', vector = infer::is_vector_side(self, b);
  const Tensor B = vector ? ops::unsqueeze(b, -1) : b;
  const int64_t m = self.size(-2), n = self.size(-1), k = std::min(m, n), most = std::max(m, n), columns = B.size(-1);
  const auto [shape, left, ranks_shape, s_shape] = infer::lstsq_results(self, b, driver);
  const DType dtype = self.dtype(), real = left.dtype;
  const double precision = real == DType::Float32 ? 0x1p-23 : 0x1p-52;
  const Shape batch = broadcast_shapes(batch_of(self), batch_of(B), op);
  const int64_t count = product(batch);

  const Tensor solution = vector ? empty(shape.sizes, dtype) : empty_strided(shape.sizes, shape.strides, dtype);
  const Tensor X = vector ? ops::unsqueeze(solution, -1) : solution,
               squares = empty(infer::with_tail(batch, {columns}), real);
  const bool values = routine == 'd' || routine == 'l';
  const Tensor rank = empty(ranks ? batch : Shape{0}, DType::Int64),
               s = empty(values ? infer::with_tail(batch, {k}) : Shape{0}, real);
  bool full = true;
  if (k == 0) {
    ops::zero_(X);
    if (ranks) ops::zero_(rank);
    full = n == 0;
    const Tensor sizes = ops::abs(ops::expand(B, infer::with_tail(batch, {m, columns})));
    ops::copy_(squares, ops::sum(sizes * sizes, Shape{-2}));
  } else if (count > 0) {
    std::vector<int> infos(static_cast<size_t>(count)), found(static_cast<size_t>(count), int(k));
    visit_exact(dtype, [&]<class T>() {
      using R = Real<T>;
      const Stack<T> matrices(self, 2, batch), sides(B, 2, batch), to(X);
      each_matrix(count, 2.0 * double(m) * double(n) * double(k + columns), [&](int64_t begin, int64_t end) {
        Rooms<T> rooms;
        lapack::Room<T> a_room, b_room;
        lapack::Room<R> s_room;
        for (int64_t i = begin; i < end; ++i) {
          const Strided<T> A = matrices[i], a{a_room.get(m * n), m, n, 1, m},
                           side{b_room.get(most * std::max<int64_t>(1, columns)), most, columns, 1, most};
          copy_elements(A, a);
          const Strided<T> given = sides[i];
          copy_elements(given, {side.data, m, columns, 1, most});
          const bool finite = all_finite(a) && all_finite(given);
          infos[size_t(i)] = finite
                                 ? least_squares(routine, int(m), int(n), int(columns), a, side,
                                                 R(rcond.value_or(precision * double(most))),
                                                 values ? s.data<R>() + i * k : s_room.get(k), &found[size_t(i)], rooms)
                                 : -1;
          for (int64_t j = 0; j < columns; ++j) {
            for (int64_t row = 0; row < n; ++row) to[i].at(row, j) = side.at(row, j);
            R square = 0;
            for (int64_t row = n; row < m; ++row) square += std::norm(side.at(row, j));
            squares.data<R>()[i * columns + j] = square;
          }
        }
      });
    });
    check_infos(op, infos.data(), count, batch.empty(), [](int info) {
      return info < 0
                 ? std::string(
                       "The least squares problem could not be solved because the input contains "
                       "infinities or NaN.")
                 : "The least squares problem could not be solved because the input matrix does not have full rank "
                   "(error code: " +
                       std::to_string(info) + ").";
    });
    for (int64_t i = 0; i < count; ++i) {
      full = full && found[size_t(i)] == n;
      if (ranks) rank.data<int64_t>()[i] = found[size_t(i)];
    }
  }
  const bool residuals = m > n && routine != 'y' && (full || routine == 's');
  return {solution, residuals ? squares : empty(Shape{0}, real), of_matrices(rank, ranks_shape.sizes),
          of_matrices(s, s_shape.sizes)};
}

const bool registered = [] {
  kernel<op::_linalg_solve_ex>(kCPU, solve_kernel);
  kernel<op::linalg_lu_solve>(kCPU, lu_solve_kernel);
  kernel<op::linalg_ldl_solve>(kCPU, ldl_solve_kernel);
  kernel<op::linalg_solve_triangular>(kCPU, triangular_kernel);
  kernel<op::linalg_inv_ex>(kCPU, inverse_kernel);
  kernel<op::_linalg_det>(kCPU, det_kernel);
  kernel<op::_linalg_slogdet>(kCPU, slogdet_kernel);
  kernel<op::_linalg_pinv>(kCPU, pinv_kernel);
  kernel<op::linalg_lstsq>(kCPU, lstsq_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
