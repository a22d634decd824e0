// Factors of matrices by NVIDIA's library, where it is there; else on the host, which also tells what a matrix that has
// no factors is refused with.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/factor.h"
#include "ops/elementwise.h"
#include "ops/hosted.h"

namespace taeda::cuda {
namespace {

// --- matrices by columns ---

std::vector<int64_t> column_strides(std::span<const int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size());
  const size_t last = sizes.size() - 1;
  strides[last - 1] = 1;
  strides[last] = std::max<int64_t>(1, sizes[last - 1]);
  int64_t behind = sizes[last] * sizes[last - 1];
  for (size_t d = last - 1; d-- > 0; behind *= sizes[d]) strides[d] = behind;
  return strides;
}
bool by_columns(const Tensor& t) {
  const auto strides = column_strides(t.sizes());
  for (int d = 0; d < t.ndim(); ++d)
    if (t.size(d) != 1 && t.stride(d) != strides[size_t(d)]) return false;
  return true;
}
Tensor empty_columns(const Call& call, std::span<const int64_t> sizes, int dtype) {
  return call.view(call.empty(sizes, dtype), sizes, column_strides(sizes));
}
/// An output that is filled by columns: the tensor itself, or memory that is copied to it at the end.
class ColumnTarget {
 public:
  ColumnTarget(const Call& call, const Tensor& to)
      : call_(call), to_(to), made_(by_columns(to) ? Tensor() : empty_columns(call, to.sizes(), to.dtype())) {}
  const Tensor& tensor() const { return made_ ? made_ : to_; }
  void done() const {
    if (made_) call_.copy(to_, made_);
  }

 private:
  const Call& call_;
  const Tensor& to_;
  Tensor made_;
};
int64_t batch_of(const Tensor& t) {
  int64_t count = 1;
  for (int d = 0; d < t.ndim() - 2; ++d) count *= t.size(d);
  return count;
}
/// The sizes with other numbers of rows and columns.
std::vector<int64_t> with_matrices(const Tensor& t, int64_t rows, int64_t columns) {
  std::vector<int64_t> sizes(t.sizes().begin(), t.sizes().end());
  sizes[sizes.size() - 2] = rows;
  sizes[sizes.size() - 1] = columns;
  return sizes;
}
/// The first rows and columns of each matrix.
Tensor corner(const Call& call, const Tensor& t, int64_t rows, int64_t columns) {
  return call.view(t, with_matrices(t, rows, columns), t.strides());
}
Tensor turned(const Call& call, const Tensor& t) {
  std::vector<int64_t> strides(t.strides().begin(), t.strides().end());
  std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
  return call.view(t, with_matrices(t, t.size(-1), t.size(-2)), strides);
}
/// `to` becomes the adjoint of each matrix of `from`, to which it is broadcast.
void copy_adjoint(const Call& call, const Tensor& to, const Tensor& from) {
  static const Row& conjugate = line("conj");
  const Tensor other = turned(call, from);
  if (is_complex_type(to.dtype())) run_line(call, conjugate, to.dtype(), to, {&other});
  else call.copy(to, other);
}
/// `to` becomes a triangle of each matrix, over or below zeros.
void copy_triangle(const Call& call, const Tensor& to, const Tensor& from, bool upper) {
  taeda_value value{};
  value.kind = TAEDA_VALUE_TENSOR;
  value.as.tensor = from.handle();
  call.copy(to, call.other(upper ? "triu" : "tril", std::array{value}));
}
Factoring::Matrix matrix_of(const Tensor& t) { return {t.address(), t.size(-2), t.size(-1), t.size(-2) * t.size(-1)}; }
Factoring::Matrix matrix_like(const Tensor& t, int64_t rows, int64_t columns) {
  return {t.address(), rows, columns, rows * columns};
}

// --- calls of the library ---

Factoring factoring(Factored kind, const Tensor& of) {
  Factoring f;
  f.kind = kind;
  f.dtype = of.dtype();
  f.batch = batch_of(of);
  f.a = matrix_like(of, of.size(-2), of.size(-1));
  f.beside_step = std::min(of.size(-2), of.size(-1));
  return f;
}
/// What the library needs for it; null where it is not there or has no way.
const FactoringPlan* plan_of(const Call& call, const Factoring& f) {
  return own_machine()->driver().plan_factoring(call.device().index, f, call.stream());
}
void run(const Call& call, const FactoringPlan& plan, const Factoring& f) {
  const Tensor workspace = plan.workspace ? call.empty({int64_t(plan.workspace)}, TAEDA_UINT8) : Tensor();
  call.done(
      own_machine()->driver().factor(call.device().index, plan, f, workspace ? workspace.address() : 0, call.stream()),
      "factors");
}
/// Waits, and looks whether a matrix has no factors.
bool any_failed(const Call& call, const Tensor& infos) {
  std::vector<int32_t> found(size_t(infos.numel()));
  call.read(found.data(), infos);
  return std::ranges::any_of(found, [](int32_t info) { return info != 0; });
}
/// Waits, and looks whether all numbers, of a real type, are finite.
bool all_finite(const Call& call, const Tensor& values) {
  const auto finite = [&]<class T>(T) {
    std::vector<T> found(size_t(values.numel()));
    call.read(found.data(), values);
    return std::ranges::all_of(found, [](T value) { return std::isfinite(value); });
  };
  return values.dtype() == TAEDA_FLOAT64 ? finite(double()) : finite(float());
}

// --- many small matrices ---

/// The library takes LU factors of one matrix after the other.
bool are_small(const Factoring& f, int64_t rows, int64_t columns) {
  return f.batch > 1 && std::max(rows, columns) <= SmallLu<float>::kMost;
}
void factor_small(const Call& call, const Factoring& f) {
  const Array a{f.a.data, f.dtype, 0};
  const auto body = [&]<class C>() {
    call.launch(SmallLu<C>{a, f.beside, f.infos, int32_t(f.a.rows), int32_t(f.a.columns)}, f.batch);
  };
  if (is_complex_type(f.dtype)) body.template operator()<Complex128>();
  else if (f.dtype == TAEDA_FLOAT64) body.template operator()<double>();
  else body.template operator()<float>();
}
void solve_small(const Call& call, const Factoring& f) {
  const Array a{f.a.data, f.dtype, 0}, b{f.b.data, f.dtype, 0};
  const auto body = [&]<class C>() {
    const int64_t chunks = (f.b.columns + SmallSystems<C>::kThreads - 1) / SmallSystems<C>::kThreads;
    call.launch(SmallSystems<C>{a, b, f.beside, f.a.step, f.beside_step, f.b.columns, chunks, int32_t(f.a.rows),
                                f.taken != Taken::AsTheyAre, f.taken == Taken::Adjoint, 0},
                f.batch * chunks);
  };
  if (is_complex_type(f.dtype)) body.template operator()<Complex128>();
  else if (f.dtype == TAEDA_FLOAT64) body.template operator()<double>();
  else body.template operator()<float>();
}

// --- operators ---

void cholesky(const Call& call) {
  const Tensor L = call.output(0), info = call.output(1), self = call.tensor(0);
  Factoring f = factoring(Factored::Cholesky, self);
  f.upper = call.flag(1);
  const FactoringPlan* const plan = self.numel() ? plan_of(call, f) : nullptr;
  if (!plan) return compute_on_host(call, 2);
  const ColumnTarget to(call, L);
  const Target infos(call, info);
  copy_triangle(call, to.tensor(), self, f.upper);
  f.a = matrix_of(to.tensor());
  f.infos = infos.tensor().address();
  const Tensor places = f.batch > 1 ? call.empty({f.batch}, TAEDA_INT64) : Tensor();
  if (places) {
    f.pointers = places.address();
    call.launch(Places{places.address(), f.a.data, uint64_t(f.a.step * self.item_size())}, f.batch);
  }
  run(call, *plan, f);
  if (call.flag(2) && any_failed(call, infos.tensor())) return compute_on_host(call, 2);
  to.done();
  infos.done();
}
/// LU factors of each matrix of A; `infos` is row-major.
void factor_all(const Call& call, const FactoringPlan& plan, Factoring f, const Tensor& LU, const Tensor& pivots,
                const Tensor& infos, const Tensor& A) {
  const ColumnTarget to(call, LU);
  const Tensor exchanges = call.empty(pivots.sizes(), TAEDA_INT64);
  call.copy(to.tensor(), A);
  f.a = matrix_of(to.tensor());
  f.beside = exchanges.address();
  f.infos = infos.address();
  if (are_small(f, f.a.rows, f.a.columns)) factor_small(call, f);
  else run(call, plan, f);
  call.copy(pivots, exchanges);
  to.done();
}
void lu_factor(const Call& call) {
  const Tensor LU = call.output(0), pivots = call.output(1), info = call.output(2), A = call.tensor(0);
  const Factoring f = factoring(Factored::Lu, A);
  const FactoringPlan* const plan = A.numel() ? plan_of(call, f) : nullptr;
  if (!plan) return compute_on_host(call, 3);
  const Target infos(call, info);
  factor_all(call, *plan, f, LU, pivots, infos.tensor(), A);
  if (call.flag(2) && any_failed(call, infos.tensor())) return compute_on_host(call, 3);
  infos.done();
}

/// Systems op(A) X = B, or X op(A) = B, which is op(A)^H X^H = B^H, by the LU factors of A: those of each, or the same
/// for all.
class Systems {
 public:
  Systems(const Call& call, const Tensor& X, const Tensor& A, bool left, bool adjoint)
      : call_(call), left_(left), n_(A.size(-1)), sides_(X.size(left ? -1 : -2)), one_(batch_of(A) == 1) {
    f_ = factoring(Factored::LuSolution, X);
    f_.a = {0, n_, n_, one_ ? 0 : n_ * n_};
    f_.b = {0, n_, sides_, n_ * sides_};
    f_.beside_step = one_ ? 0 : n_;
    if (adjoint == left) f_.taken = is_complex_type(A.dtype()) ? Taken::Adjoint : Taken::Turned;
    plan_ = X.numel() && n_ ? plan_of(call, f_) : nullptr;
  }
  /// Whether the library is there and has a way.
  explicit operator bool() const { return plan_; }
  void solve(const Tensor& X, const Tensor& LU, const Tensor& pivots, const Tensor& B) {
    const auto sizes = one_ ? std::vector<int64_t>(LU.sizes().begin(), LU.sizes().end()) : with_matrices(X, n_, n_);
    const bool lies = by_columns(LU) && std::ranges::equal(LU.sizes(), sizes);
    const Tensor copied = lies ? Tensor() : empty_columns(call_, sizes, LU.dtype());
    if (copied) call_.copy(copied, LU);
    const std::span<const int64_t> lines = std::span(sizes).first(sizes.size() - 1);
    const Tensor rows = call_.empty(lines, TAEDA_INT32), exchanges = call_.empty(lines, TAEDA_INT64);
    call_.copy(rows, pivots);
    call_.launch(Pivots{exchanges.address(), rows.address(), n_, call_.report()}, rows.numel());
    const ColumnTarget to(call_, X);
    const Tensor turned_sides = left_ ? Tensor() : empty_columns(call_, with_matrices(X, n_, sides_), X.dtype());
    const Tensor& work = left_ ? to.tensor() : turned_sides;
    if (left_) call_.copy(work, B);
    else copy_adjoint(call_, work, B);
    const Tensor infos = call_.empty({f_.batch}, TAEDA_INT32);
    f_.a.data = (lies ? LU : copied).address();
    f_.b.data = work.address();
    f_.beside = exchanges.address();
    f_.infos = infos.address();
    if (are_small(f_, n_, n_)) solve_small(call_, f_);
    else run(call_, *plan_, f_);
    if (left_) to.done();
    else copy_adjoint(call_, X, work);
  }

 private:
  const Call& call_;
  bool left_;
  int64_t n_, sides_;
  bool one_;
  Factoring f_;
  const FactoringPlan* plan_ = nullptr;
};
void lu_solve(const Call& call) {
  const Tensor out = call.output(0), LU = call.tensor(0);
  Systems systems(call, out, LU, call.flag(3), call.flag(4));
  if (!systems) return compute_on_host(call, 1);
  systems.solve(out, LU, call.tensor(1), call.tensor(2));
}
/// A vector for each matrix as a column.
Tensor as_column(const Call& call, const Tensor& t) {
  std::vector<int64_t> sizes(t.sizes().begin(), t.sizes().end()), strides(t.strides().begin(), t.strides().end());
  sizes.push_back(1);
  strides.push_back(1);
  return call.view(t, sizes, strides);
}
void solve(const Call& call) {
  const Tensor result = call.output(0), LU = call.output(1), pivots = call.output(2), info = call.output(3);
  const Tensor A = call.tensor(0), B = call.tensor(1);
  const bool vector = result.ndim() < A.ndim();
  const Tensor column = vector ? as_column(call, result) : Tensor(), sides = vector ? as_column(call, B) : Tensor();
  const Tensor& X = vector ? column : result;
  const Factoring f = factoring(Factored::Lu, A);
  const FactoringPlan* const plan = A.numel() ? plan_of(call, f) : nullptr;
  Systems systems(call, X, A, call.flag(2), false);
  if (!plan || !systems) return compute_on_host(call, 4);
  const Target infos(call, info);
  factor_all(call, *plan, f, LU, pivots, infos.tensor(), A);
  if (call.flag(3) && any_failed(call, infos.tensor())) return compute_on_host(call, 4);
  systems.solve(X, LU, pivots, vector ? sides : B);
  infos.done();
}
/// Memory for LU factors and pivots that no output asks for.
struct OwnFactors {
  Tensor LU, pivots;
  OwnFactors(const Call& call, const Tensor& A)
      : LU(empty_columns(call, A.sizes(), A.dtype())),
        pivots(call.empty(A.sizes().first(size_t(A.ndim() - 1)), TAEDA_INT32)) {}
};
void inverse(const Call& call) {
  const Tensor out = call.output(0), info = call.output(1), A = call.tensor(0);
  const Factoring f = factoring(Factored::Lu, A);
  const FactoringPlan* const plan = A.numel() ? plan_of(call, f) : nullptr;
  Systems systems(call, out, A, true, false);
  if (!plan || !systems) return compute_on_host(call, 2);
  const OwnFactors factors(call, A);
  const Target infos(call, info);
  factor_all(call, *plan, f, factors.LU, factors.pivots, infos.tensor(), A);
  if (call.flag(1) && any_failed(call, infos.tensor())) return compute_on_host(call, 2);
  const int64_t n = A.size(-1);
  const Tensor identity = call.empty({n, n}, A.dtype());
  fill_elements(call, identity, {}, A.dtype());
  fill_elements(call, call.view(identity, std::array{n}, std::array{n + 1}), {1, 0, 1}, A.dtype());
  systems.solve(out, factors.LU, factors.pivots, identity);
  infos.done();
}
/// The outputs before the factors are the determinant, or its sign and logarithm.
void determinant(const Call& call, int outputs) {
  const bool logs = outputs == 4;
  const Tensor LU = call.output(outputs - 2), pivots = call.output(outputs - 1), A = call.tensor(0);
  const Factoring f = factoring(Factored::Lu, A);
  const FactoringPlan* const plan = A.numel() ? plan_of(call, f) : nullptr;
  if (!plan) return compute_on_host(call, outputs);
  const OwnFactors factors(call, A);
  const Tensor infos = call.empty({f.batch}, TAEDA_INT32);
  factor_all(call, *plan, f, factors.LU, factors.pivots, infos, A);
  const Tensor out = call.output(0), logarithm = logs ? call.output(1) : Tensor();
  const Target to(call, out), logarithms(call, logs ? logarithm : out);
  DeterminantParts parts{factors.LU.array(), factors.pivots.address(),           A.size(-1), logs,
                         to.array(),         logs ? logarithms.array() : Array{}};
  if (is_complex_type(A.dtype())) call.launch(Determinant<Complex128>{parts}, f.batch);
  else call.launch(Determinant<double>{parts}, f.batch);
  to.done();
  if (logs) logarithms.done();
  call.copy(LU, factors.LU);
  call.copy(pivots, factors.pivots);
}
void det(const Call& call) { determinant(call, 3); }
void slogdet(const Call& call) { determinant(call, 4); }

void geqrf(const Call& call) {
  const Tensor a = call.output(0), tau = call.output(1), self = call.tensor(0);
  Factoring f = factoring(Factored::Reflectors, self);
  const FactoringPlan* const plan = self.numel() ? plan_of(call, f) : nullptr;
  if (!plan) return compute_on_host(call, 2);
  const ColumnTarget to(call, a);
  const Target taus(call, tau);
  const Tensor infos = call.empty({f.batch}, TAEDA_INT32);
  call.copy(to.tensor(), self);
  f.a = matrix_of(to.tensor());
  f.beside = taus.tensor().address();
  f.infos = infos.address();
  run(call, *plan, f);
  to.done();
  taus.done();
}
void qr(const Call& call) {
  const Tensor Q = call.output(0), R = call.output(1), A = call.tensor(0);
  const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n);
  const bool with_q = call.text(1) != "r";
  Factoring f = factoring(Factored::Reflectors, A), g = f;
  g.kind = Factored::Orthogonal;
  g.a = matrix_like(A, m, with_q ? Q.size(-1) : k);
  g.reflectors = k;
  const FactoringPlan* const plan = A.numel() ? plan_of(call, f) : nullptr;
  const FactoringPlan* const q_plan = plan && with_q ? plan_of(call, g) : nullptr;
  if (!plan || (with_q && !q_plan)) return compute_on_host(call, 2);
  const Tensor work = empty_columns(call, A.sizes(), A.dtype()), taus = call.empty({f.batch * k}, A.dtype());
  const Tensor infos = call.empty({f.batch}, TAEDA_INT32);
  call.copy(work, A);
  f.a = matrix_of(work);
  f.beside = g.beside = taus.address();
  f.infos = g.infos = infos.address();
  run(call, *plan, f);
  copy_triangle(call, R, corner(call, work, R.size(-2), n), true);
  if (!with_q) return;
  const ColumnTarget to(call, Q);
  call.copy(corner(call, to.tensor(), m, k), corner(call, work, m, k));
  g.a = matrix_of(to.tensor());
  run(call, *q_plan, g);
  to.done();
}
void eigh(const Call& call) {
  const Tensor values = call.output(0), vectors = call.output(1), A = call.tensor(0);
  Factoring f = factoring(Factored::Eigenvalues, A);
  f.upper = call.text(1) == "U" || call.text(1) == "u";
  f.vectors = call.flag(2);
  const FactoringPlan* const plan = A.numel() ? plan_of(call, f) : nullptr;
  if (!plan) return compute_on_host(call, 2);
  const Tensor none = f.vectors ? Tensor() : empty_columns(call, A.sizes(), A.dtype());
  const ColumnTarget to(call, f.vectors ? vectors : none);
  const Target found(call, values);
  const Tensor infos = call.empty({f.batch}, TAEDA_INT32);
  call.copy(to.tensor(), A);
  f.a = matrix_of(to.tensor());
  f.beside = found.tensor().address();
  f.infos = infos.address();
  run(call, *plan, f);
  // Infinities and NaN in the matrix show themselves in the values.
  if (any_failed(call, infos) || !all_finite(call, found.tensor())) return compute_on_host(call, 2);
  to.done();
  found.done();
}
/// Of matrices with fewer rows than columns, which the library does not take, by their adjoints.
void svd(const Call& call) {
  const Tensor U = call.output(0), S = call.output(1), Vh = call.output(2), A = call.tensor(0);
  constexpr int kDriver = 3;
  const std::string_view driver = call.given(kDriver) ? call.text(kDriver) : "gesvd";
  if (driver != "gesvd" && driver != "gesvdj" && driver != "gesvda")
    fail(TAEDA_E_RUNTIME,
         "_linalg_svd: argument 'driver' is '" + std::string(driver) + "', expected 'gesvd', 'gesvdj' or 'gesvda'");
  const bool full = call.flag(1), wide = A.size(-2) < A.size(-1);
  const int64_t m = std::max(A.size(-2), A.size(-1)), n = std::min(A.size(-2), A.size(-1));
  Factoring f = factoring(Factored::SingularValues, A);
  f.vectors = call.flag(2);
  f.a = {0, m, n, m * n};
  f.b = {0, m, full ? m : n, m * (full ? m : n)};
  f.c = {0, n, n, n * n};
  const FactoringPlan* const plan = A.numel() ? plan_of(call, f) : nullptr;
  if (!plan) return compute_on_host(call, 3, kDriver);
  const auto matrices = [&](const Factoring::Matrix& matrix) {
    return empty_columns(call, with_matrices(A, matrix.rows, matrix.columns), A.dtype());
  };
  const Tensor work = matrices(f.a);
  if (wide) copy_adjoint(call, work, A);
  else call.copy(work, A);
  const bool keeps = f.vectors && !wide && by_columns(U) && by_columns(Vh);
  const Tensor left = !f.vectors ? Tensor() : keeps ? Tensor(U.handle()) : matrices(f.b);
  const Tensor right = !f.vectors ? Tensor() : keeps ? Tensor(Vh.handle()) : matrices(f.c);
  const Target found(call, S);
  const Tensor infos = call.empty({f.batch}, TAEDA_INT32);
  f.a.data = work.address();
  if (f.vectors) f.b.data = left.address(), f.c.data = right.address();
  f.beside = found.tensor().address();
  f.infos = infos.address();
  run(call, *plan, f);
  if (any_failed(call, infos) || !all_finite(call, found.tensor())) return compute_on_host(call, 3, kDriver);
  found.done();
  if (!f.vectors || keeps) return;
  if (wide) copy_adjoint(call, U, right), copy_adjoint(call, Vh, left);
  else call.copy(U, left), call.copy(Vh, right);
}

}  // namespace

const std::vector<Operation>& factor_operations() {
  static const std::vector<Operation> operations{
      {"_linalg_det", det},
      {"_linalg_eigh", eigh},
      {"_linalg_slogdet", slogdet},
      {"_linalg_solve_ex", solve},
      {"_linalg_svd", svd},
      {"geqrf", geqrf},
      {"linalg_cholesky_ex", cholesky},
      {"linalg_inv_ex", inverse},
      {"linalg_lu_factor_ex", lu_factor},
      {"linalg_lu_solve", lu_solve},
      {"linalg_qr", qr},
  };
  return operations;
}

}  // namespace taeda::cuda
