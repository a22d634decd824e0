// Products of matrices as libraries of linear algebra have them.
#pragma once
#include <cstdint>

namespace taeda::cuda {

/// A batch of c = alpha * op(a) @ op(b) + beta * c, matrices lying column by column: op(a) is (m, k), op(b) (k, n), c
/// (m, n); `ld` is the distance of two columns and `step` that of two matrices, in elements.
struct BlasProduct {
  struct Matrix {
    uint64_t data = 0;
    int64_t ld = 1, step = 0;
    bool turned = false;  // op() transposes what lies there
  };
  int dtype = 0;   // of the ABI: of the factors, TAEDA_FLOAT16 to TAEDA_COMPLEX128
  int result = 0;  // of c: the same, or TAEDA_FLOAT32 for factors of 16 bits
  bool tf32 = false;  // products of float32 may round their factors to 10 bits
  int64_t m = 0, n = 0, k = 0, batch = 1;
  Matrix a, b, c;
  double alpha[2] = {1, 0}, beta[2] = {0, 0};  // real and imaginary part
};

}  // namespace taeda::cuda
