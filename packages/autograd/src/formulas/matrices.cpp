// Gradients of factorisations, solutions, spectra and functions of matrices. G stands for the gradient that arrives, ^H
// for the adjoint; sources: Giles 2008; for spectra Wan and Zhang 2019, and Boeddeker et al. 2017.
#include "taeda/autograd/formulas/matrices.h"

#include <algorithm>

#include "taeda/autograd/formulas.h"
#include "taeda/wrappers.h"

namespace taeda::formulas {
namespace {

Tensor mul(const Tensor& a, const Tensor& b) { return ops::matmul(a, b); }
template <class... Rest>
Tensor mul(const Tensor& a, const Tensor& b, const Rest&... rest) {
  return mul(mul(a, b), rest...);
}
Tensor h(const Tensor& t) { return ops::adjoint(t); }
Tensor diagonal_of(const Tensor& t) { return ops::diagonal(t, 0, -2, -1); }
Tensor from_diagonal(const Tensor& t) { return ops::diag_embed(t); }
Tensor real_part(const Tensor& t) { return is_complex(t.dtype()) ? ops::real(t) : t; }
/// Numbers by which columns, or rows, are multiplied.
Tensor row(const Tensor& t) { return ops::unsqueeze(t, -2); }
Tensor column(const Tensor& t) { return ops::unsqueeze(t, -1); }

/// What the factors of A gave, which have no history: while gradients are recorded with that of A's own equations.
template <class Computed>
Tensor of_factors(const Tensor& given, const Computed& computed) {
  return recording() ? with_history(ops::detach(given), computed()) : given;
}
/// A^-H by the LU factors of A.
Tensor inverse_adjoint(const Tensor& A, const Tensor& LU, const Tensor& pivots) {
  const Tensor identity = ops::expand(ops::eye(A.size(-1), std::nullopt, A.dtype(), stated_device(A)), A.sizes());
  return of_factors(ops::linalg_lu_solve(LU, pivots, identity, true, true),
                    [&] { return h(std::get<0>(ops::linalg_inv_ex(A, false))); });
}

/// X with A X = B, or X A = B, for triangular A.
Tensor solve(const Tensor& A, const Tensor& B, bool upper, bool left = true, bool unit = false) {
  return ops::linalg_solve_triangular(A, B, upper, left, unit);
}

}  // namespace

Tensor no_derivative(const char* op) {
  fail(ErrorKind::NotImplemented, op, ": has no derivative, but a gradient by its results was asked for");
}

Tensor cholesky_grad(const Tensor& grad, const Tensor& factor, bool upper) {
  const Tensor L = upper ? h(factor) : factor, G = upper ? h(grad) : grad;
  // L^-H of the symmetrised lower triangle of L^H G, L^-1.
  const Tensor inner = mul(h(L), G), whole = ops::tril(inner, 0) + h(ops::tril(inner, -1));
  return solve(L, solve(h(L), whole * Tensor(0.5), true), false, false);
}

Tensor lu_grad(const Tensor& grad, const Tensor& LU, const Tensor& pivots) {
  const int64_t m = LU.size(-2), n = LU.size(-1), k = std::min(m, n);
  const auto [P, L, U] = ops::lu_unpack(LU, pivots, true, true);
  const auto head = [k](const Tensor& t) { return ops::narrow(ops::narrow(t, -1, 0, k), -2, 0, k); };
  const Tensor L1 = head(L), U1 = head(U), G1 = head(grad);
  Tensor lower = mul(h(L1), ops::tril(G1, -1)), upper = mul(ops::triu(G1, 0), h(U1)), beside;
  if (m < n) {  // further columns of U: L^-1 of the matrix's own
    const Tensor G2 = ops::narrow(grad, -1, k, n - k);
    lower = lower - mul(G2, h(ops::narrow(U, -1, k, n - k)));
    beside = solve(h(L1), G2, true, true, true);
  } else if (m > n) {  // further rows of L
    const Tensor G2 = ops::narrow(grad, -2, k, m - k);
    upper = upper - mul(h(ops::narrow(L, -2, k, m - k)), G2);
    beside = solve(h(U1), G2, false, false);
  }
  const Tensor inner = ops::tril(lower, -1) + ops::triu(upper, 0);
  Tensor full = solve(h(U1), solve(h(L1), inner, true, true, true), false, false);
  if (beside.defined()) {
    const Tensor parts[] = {full, beside};
    full = ops::cat(parts, m < n ? -1 : -2);
  }
  return mul(P, full);
}

Tensor qr_grad(TensorList grads, const Tensor& Q, const Tensor& R, std::string_view mode) {
  check(mode != "r", ErrorKind::Runtime,
        "linalg_qr: the gradient needs Q, which mode 'r' does not compute: use mode "
        "'reduced' instead");
  const int64_t m = Q.size(-2), n = R.size(-1);
  check(mode != "complete" || m <= n, ErrorKind::Runtime,
        "linalg_qr: the gradient of mode 'complete' is not defined for "
        "matrices with more rows than columns, found ",
        m, " and ", n);
  Tensor GQ = grads[0], GR = grads[1], beside;
  Tensor U = R;
  if (m < n) {
    U = ops::narrow(R, -1, 0, m);
    if (GR.defined()) {
      // Further columns Y = Q V of the matrix.
      const Tensor GV = ops::narrow(GR, -1, m, n - m), V = ops::narrow(R, -1, m, n - m);
      beside = mul(Q, GV);
      GQ = plus(GQ, mul(Q, V, h(GV)));
      GR = ops::narrow(GR, -1, 0, m);
    }
  }
  Tensor inner;
  if (GR.defined()) inner = mul(GR, h(U));
  if (GQ.defined()) inner = inner.defined() ? inner - mul(h(Q), GQ) : -mul(h(Q), GQ);
  const Tensor above = ops::triu(inner, 1), middle = real_part(diagonal_of(inner));
  Tensor full = mul(Q, above + h(above) + from_diagonal(ops::to_dtype(middle, inner.dtype())));
  if (GQ.defined()) full = full + GQ;
  full = solve(h(U), full, false, false);
  if (m >= n) return full;
  const Tensor parts[] = {full, beside.defined() ? beside : ops::zeros_like(ops::narrow(R, -1, m, n - m))};
  return ops::cat(parts, -1);
}

Tensor det_grad(const Tensor& grad, const Tensor& A, const Tensor& det, const Tensor& LU, const Tensor& pivots) {
  if (A.numel() == 0) return ops::zeros_like(A);
  const Tensor singular = ops::any(ops::eq(diagonal_of(LU), Tensor(0)), Shape{-1});
  const auto scale = [&](const Tensor& inverse) { return column(column(grad * conj_of(det))) * inverse; };
  if (!truth_of(ops::any(singular))) return scale(inverse_adjoint(A, LU, pivots));
  // The adjugate by singular values, of which products without one of them are wanted. Others have an inverse.
  const Tensor mask = column(column(singular)),
               identity = ops::eye(A.size(-1), std::nullopt, A.dtype(), stated_device(A));
  const Tensor regular = scale(h(ops::linalg_inv(ops::where(mask, identity, A))));
  const auto [U, S, Vh] = ops::linalg_svd(A, false);
  const Tensor unit = column(grad * conj_of(ops::linalg_det(U) * ops::linalg_det(Vh)));
  const Tensor others = prod_grad(ops::ones_like(ops::select(S, -1, 0)), S, ops::prod(S, Shape{-1}), Shape{-1}, false);
  return ops::where(mask, mul(U * row(unit * others), Vh), regular);
}

Tensor slogdet_grad(TensorList grads, const Tensor& A, const Tensor& sign, const Tensor& LU, const Tensor& pivots) {
  if (A.numel() == 0) return ops::zeros_like(A);
  Tensor factor = grads[1];
  if (is_complex(A.dtype()) && grads[0].defined()) {
    const Tensor turning = ops::imag(conj_of(grads[0]) * sign);
    factor = ops::complex(factor.defined() ? factor : ops::zeros_like(turning), -turning);
  }
  if (!factor.defined()) return ops::zeros_like(A);  // the sign of a real determinant is constant
  return column(column(factor)) * inverse_adjoint(A, LU, pivots);
}

Two solve_grad(const Tensor& grad, const Tensor& A, IntSpan side, const Tensor& result, const Tensor& LU,
               const Tensor& pivots, bool left, const std::array<bool, 2>& wanted) {
  const bool vector = side.size() == 1 ||
                      (A.dim() - 1 == int64_t(side.size()) && std::ranges::equal(A.sizes().first(side.size()), side));
  const Tensor G = vector ? column(grad) : grad, X = vector ? column(result) : result;
  const Tensor GB = of_factors(ops::linalg_lu_solve(LU, pivots, G, left, true),
                               [&] { return std::get<0>(ops::_linalg_solve_ex(h(A), G, left, false)); });
  Two out;
  if (wanted[0]) std::get<0>(out) = left ? -mul(GB, h(X)) : -mul(h(X), GB);
  if (wanted[1]) std::get<1>(out) = vector ? ops::squeeze_dims(GB, Shape{-1}) : GB;
  return out;
}

Two lu_solve_grad(const Tensor& grad, const Tensor& LU, const Tensor& pivots, const Tensor& result, bool left,
                  bool adjoint, const std::array<bool, 2>& wanted) {
  const Tensor GB = ops::linalg_lu_solve(LU, pivots, grad, left, !adjoint);
  Two out{Tensor(), GB};
  if (!wanted[0]) return out;
  const Tensor &X = result, product = left ? mul(GB, h(X)) : mul(h(X), GB);
  const Tensor GA = -(adjoint ? h(product) : product);
  const auto [P, L, U] = ops::lu_unpack(LU, pivots, true, true);
  const Tensor rows = mul(h(P), GA);
  std::get<0>(out) = ops::tril(mul(rows, h(U)), -1) + ops::triu(mul(h(L), rows), 0);
  return out;
}

Two triangular_grad(const Tensor& grad, const Tensor& A, const Tensor& result, bool upper, bool left,
                    bool unitriangular, const std::array<bool, 2>& wanted) {
  const Tensor GB = solve(h(A), grad, !upper, left, unitriangular);
  Two out{Tensor(), GB};
  if (!wanted[0]) return out;
  const Tensor GA = left ? -mul(GB, h(result)) : -mul(h(result), GB);
  std::get<0>(out) = upper ? ops::triu(GA, unitriangular ? 1 : 0) : ops::tril(GA, unitriangular ? -1 : 0);
  return out;
}

Tensor ldl_solve_grad(const Tensor& grad, const Tensor& LD, const Tensor& pivots, bool hermitian) {
  if (hermitian) return ops::linalg_ldl_solve(LD, pivots, grad, true);
  return conj_of(ops::linalg_ldl_solve(LD, pivots, conj_of(grad), false));  // A^T = A
}

Tensor pinv_grad(const Tensor& grad, const Tensor& A, const Tensor& pinv) {
  const Tensor X = pinv, Xh = h(X), G = h(grad);
  if (A.size(-2) <= A.size(-1)) {
    const Tensor K = mul(G, X), KXh = mul(K, Xh);
    return KXh - h(mul(X, K)) - mul(mul(A, X), KXh) + mul(mul(Xh, X), G - mul(K, A));
  }
  const Tensor K = mul(X, G), XhK = mul(Xh, K);
  return XhK - h(mul(K, X)) - mul(mul(XhK, X), A) + mul(mul(G - mul(A, K), X), Xh);
}

Two lstsq_grad(TensorList grads, const Tensor& A, const Tensor& B, const Tensor& solution,
               const std::array<bool, 2>& wanted) {
  const bool vector =
      B.dim() == 1 || (A.dim() - 1 == B.dim() && std::ranges::equal(A.sizes().first(size_t(B.dim())), B.sizes()));
  const auto wide = [vector](const Tensor& t) { return vector && t.defined() ? column(t) : t; };
  const Tensor b = wide(B), G = wide(grads[0]), X = wide(solution);
  Two out;
  if (G.defined()) {
    const Tensor pinv = ops::linalg_pinv(A);
    if (wanted[0]) std::get<0>(out) = pinv_grad(mul(G, h(b)), A, pinv);
    if (wanted[1]) std::get<1>(out) = mul(h(pinv), G);
  }
  if (grads[1].defined() && grads[1].numel()) {  // of the squared norms of A X - B
    const Tensor slope = (mul(A, X) - b) * (row(grads[1]) * Tensor(2));
    if (wanted[0]) std::get<0>(out) = plus(std::get<0>(out), mul(slope, h(X)));
    if (wanted[1]) std::get<1>(out) = std::get<1>(out).defined() ? std::get<1>(out) - slope : -slope;
  }
  if (vector && std::get<1>(out).defined()) std::get<1>(out) = ops::squeeze_dims(std::get<1>(out), Shape{-1});
  return out;
}

namespace {

/// RuntimeError where a loss depends on a factor of size 1 that vectors are defined up to: then the imaginary part of
/// `depends` is not 0.
void expect_invariant(const char* op, const char* vectors, const Tensor& depends) {
  if (!is_complex(depends.dtype()) || depends.device().backend != kCPU) return;
  const Tensor size = ops::abs(ops::imag(ops::detach(depends)));
  check(truth_of(ops::all(ops::le(size, Tensor(1e-2)))), ErrorKind::Runtime, op,
        ": the gradient is not defined: ", vectors,
        " of complex matrices are specified up to a factor of size 1, on which the loss depends");
}
/// Differences x[j] - x[i], and 1 on the diagonal.
Tensor differences(const Tensor& x) {
  const Tensor ones = ops::ones_like(x);
  return row(x) - column(x) + from_diagonal(ones);
}
Tensor without_diagonal(const Tensor& t) { return t - from_diagonal(diagonal_of(t)); }
void expect_vectors(const char* op, bool with_vectors) {
  check(with_vectors, ErrorKind::Runtime, op, ": the gradient needs the vectors, which were not computed");
}

}  // namespace

Tensor eigh_grad(TensorList grads, const Tensor& values, const Tensor& vectors) {
  const Tensor &GL = grads[0], &GV = grads[1], &V = vectors;
  expect_vectors("linalg_eigh", V.dim() >= 2);
  if (!GV.defined()) return mul(V * row(GL), h(V));
  const Tensor inner = mul(h(V), GV);
  expect_invariant("linalg_eigh", "eigenvectors", diagonal_of(inner));
  Tensor middle = without_diagonal(inner) / differences(values);
  if (GL.defined()) middle = middle + from_diagonal(GL);
  const Tensor full = mul(V, middle, h(V));
  return (full + h(full)) * Tensor(0.5);
}

Tensor eig_grad(TensorList grads, const Tensor& values, const Tensor& vectors) {
  const Tensor &GL = grads[0], &GV = grads[1], &V = vectors;
  expect_vectors("linalg_eig", V.dim() >= 2);
  if (!GV.defined()) return ops::linalg_solve(h(V), column(GL) * h(V));
  const Tensor inner = mul(h(V), GV), along = diagonal_of(inner);
  expect_invariant("linalg_eig", "eigenvectors", along);
  // Eigenvectors keep the norm 1.
  const Tensor normed = inner - mul(h(V), V * row(ops::to_dtype(ops::real(along), V.dtype())));
  Tensor middle = without_diagonal(normed) / conj_of(differences(values));
  if (GL.defined()) middle = middle + from_diagonal(GL);
  return ops::linalg_solve(h(V), mul(middle, h(V)));
}

Tensor svd_grad(TensorList grads, const Tensor& U_, const Tensor& S, const Tensor& Vh_, bool with_vectors) {
  expect_vectors("linalg_svd", with_vectors);
  const int64_t m = U_.size(-2), n = Vh_.size(-1), k = S.size(-1);
  const auto columns = [k](const Tensor& t) { return t.defined() ? ops::narrow(t, -1, 0, k) : t; };
  const auto rows = [k](const Tensor& t) { return t.defined() ? ops::narrow(t, -2, 0, k) : t; };
  // Of full matrices the further vectors are anything that is orthonormal: no gradient comes by them.
  const Tensor U = columns(U_), Vh = rows(Vh_), GU = columns(grads[0]), GVh = rows(grads[2]), &GS = grads[1];
  if (!GU.defined() && !GVh.defined()) return m >= n ? mul(U, column(GS) * Vh) : mul(U * row(GS), Vh);
  const auto skew = [](const Tensor& t) { return t - h(t); };
  const Tensor left = GU.defined() ? skew(mul(h(U), GU)) : Tensor(),
               right = GVh.defined() ? skew(mul(Vh, h(GVh))) : Tensor();
  expect_invariant("linalg_svd", "singular vectors", diagonal_of(plus(left, right)));
  Tensor inner;
  if (left.defined()) inner = left * row(S);
  if (right.defined()) inner = plus(inner, column(S) * right);
  inner = inner / differences(S * S);
  if (is_complex(inner.dtype())) {  // on the diagonal the differences are 1: there the turn of U and V is shared
    inner = without_diagonal(inner);
    if (left.defined() && right.defined()) inner = inner + from_diagonal(diagonal_of(left) / (S * Tensor(2)));
  }
  if (GS.defined()) inner = inner + from_diagonal(GS);
  if (m > k && GU.defined()) {
    const Tensor scaled = GU / row(S);
    return mul(mul(U, inner) + scaled - mul(U, mul(h(U), scaled)), Vh);
  }
  if (n > k && GVh.defined()) {
    const Tensor scaled = GVh / column(S);
    return mul(U, mul(inner, Vh) + scaled - mul(mul(scaled, h(Vh)), Vh));
  }
  return mul(mul(U, inner), Vh);
}

Tensor matrix_exp_grad(const Tensor& grad, const Tensor& self) {
  // exp of [[A^H, G], [0, A^H]] has the gradient in its corner.
  if (self.numel() == 0) return ops::zeros_like(self);
  const int64_t n = self.size(-1);
  const Tensor A = h(self), above[] = {A, grad}, below[] = {ops::zeros_like(A), A};
  const Tensor halves[] = {ops::cat(above, -1), ops::cat(below, -1)};
  return ops::narrow(ops::narrow(ops::linalg_matrix_exp(ops::cat(halves, -2)), -2, 0, n), -1, n, n);
}

}  // namespace taeda::formulas
