// Products of matrices as libraries of linear algebra have them.
#pragma once
#include <compare>
#include <cstdint>
#include <initializer_list>

namespace taeda::cuda {

/// What a library does to a product before it stores it, in the same pass over memory (cuBLASLt's epilogues). Rows and
/// columns are those of `BlasProduct::c`, vectors and what is kept have its elements.
struct Epilogue {
  enum class Activation : int8_t { None, Relu, Gelu };  // Gelu is the one by tanh
  /// What `vector` is: added to each column; the sums of the rows of c; or of op(a)'s rows, or op(b)'s columns.
  enum class Vector : int8_t { None, Bias, Sums, SumsOfA, SumsOfB };
  Activation activation = Activation::None;
  bool backward = false;  // times the activation's slope at what was kept, in place of the activation
  Vector role = Vector::None;
  uint64_t vector = 0;  // one element for each row of c; for each column, as sums of b
  /// What the activation is applied to, written, or read by its slope: of Gelu the elements, of Relu a bit for each,
  /// whether it is above 0. 0: nothing is kept. The distance of two columns is counted in elements, or in bits.
  uint64_t kept = 0;
  int64_t kept_ld = 0;
  auto operator<=>(const Epilogue&) const = default;
  explicit operator bool() const { return activation != Activation::None || role != Vector::None; }
};

/// A batch of c = alpha * op(a) @ op(b) + beta * c, matrices lying column by column: op(a) is (m, k), op(b) (k, n), c
/// (m, n); `ld` is the distance of two columns and `step` that of two matrices, in elements.
struct BlasProduct {
  struct Matrix {
    uint64_t data = 0;
    int64_t ld = 1, step = 0;
    bool turned = false;  // op() transposes what lies there
    auto operator<=>(const Matrix&) const = default;
  };
  int dtype = 0;      // of the ABI: of the factors, TAEDA_FLOAT16 to TAEDA_COMPLEX128
  int result = 0;     // of c: the same, or TAEDA_FLOAT32 for factors of 16 bits
  bool tf32 = false;  // products of float32 may round their factors to 10 bits
  int64_t m = 0, n = 0, k = 0, batch = 1;
  Matrix a, b, c;
  double alpha[2] = {1, 0}, beta[2] = {0, 0};  // real and imaginary part
  Epilogue epilogue;
  auto operator<=>(const BlasProduct&) const = default;

  /// The same with what divides the addresses in their place, and without factors: what a way to compute it depends on.
  BlasProduct shape() const {
    BlasProduct found = *this;
    for (uint64_t* address :
         {&found.a.data, &found.b.data, &found.c.data, &found.epilogue.vector, &found.epilogue.kept})
      *address = alignment_of(*address);
    found.alpha[0] = found.alpha[1] = found.beta[0] = found.beta[1] = 0;
    return found;
  }
  /// The power of 2 that divides an address, of at most 256; 0 of no address.
  static uint64_t alignment_of(uint64_t address) {
    const uint64_t low = address & (~address + 1);
    return low > 256 ? 256 : low;
  }
};

}  // namespace taeda::cuda
