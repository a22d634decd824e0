// Gradients of factorisations, solutions, spectra and functions of matrices.
#pragma once
#include <array>
#include <string_view>
#include <tuple>

#include "taeda/tensor.h"

namespace taeda::formulas {

/// NotImplementedError in a backward that reaches an operator without a derivative.
[[noreturn]] Tensor no_derivative(const char* op);

// --- factorisations ---
Tensor cholesky_grad(const Tensor& grad, const Tensor& factor, bool upper);
Tensor lu_grad(const Tensor& grad, const Tensor& LU, const Tensor& pivots);
Tensor qr_grad(TensorList grads, const Tensor& Q, const Tensor& R, std::string_view mode);

// --- solutions, inverses, determinants ---
Tensor det_grad(const Tensor& grad, const Tensor& A, const Tensor& det, const Tensor& LU, const Tensor& pivots);
Tensor slogdet_grad(TensorList grads, const Tensor& A, const Tensor& sign, const Tensor& LU, const Tensor& pivots);
std::tuple<Tensor, Tensor> solve_grad(const Tensor& grad, const Tensor& A, IntSpan side, const Tensor& result,
                                      const Tensor& LU, const Tensor& pivots, bool left,
                                      const std::array<bool, 2>& wanted);
std::tuple<Tensor, Tensor> lu_solve_grad(const Tensor& grad, const Tensor& LU, const Tensor& pivots,
                                         const Tensor& result, bool left, bool adjoint,
                                         const std::array<bool, 2>& wanted);
std::tuple<Tensor, Tensor> triangular_grad(const Tensor& grad, const Tensor& A, const Tensor& result, bool upper,
                                           bool left, bool unitriangular, const std::array<bool, 2>& wanted);
Tensor ldl_solve_grad(const Tensor& grad, const Tensor& LD, const Tensor& pivots, bool hermitian);
std::tuple<Tensor, Tensor> lstsq_grad(TensorList grads, const Tensor& A, const Tensor& B, const Tensor& solution,
                                      const std::array<bool, 2>& wanted);
Tensor pinv_grad(const Tensor& grad, const Tensor& A, const Tensor& pinv);

// --- spectra ---
Tensor eigh_grad(TensorList grads, const Tensor& values, const Tensor& vectors);
Tensor eig_grad(TensorList grads, const Tensor& values, const Tensor& vectors);
Tensor svd_grad(TensorList grads, const Tensor& U, const Tensor& S, const Tensor& Vh, bool with_vectors);

// --- functions ---
Tensor matrix_exp_grad(const Tensor& grad, const Tensor& self);

}  // namespace taeda::formulas
