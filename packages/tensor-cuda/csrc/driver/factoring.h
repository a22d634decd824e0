// Factors of matrices as libraries of linear algebra find them.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>

namespace taeda::cuda {

/// What is computed, each by LAPACK's definition: potrf, getrf, getrs, geqrf, orgqr or ungqr, syevd or heevd, gesvd.
enum class Factored : int32_t { Cholesky, Lu, LuSolution, Reflectors, Orthogonal, Eigenvalues, SingularValues };
/// How the factors of a system are taken.
enum class Taken : int32_t { AsTheyAre, Turned, Adjoint };

/// The same for each matrix of a batch. Matrices lie column by column, packed.
struct Factoring {
  struct Matrix {
    uint64_t data = 0;
    int64_t rows = 0, columns = 0, step = 0;  // from one to the next, in elements; 0: one for all
    auto operator<=>(const Matrix&) const = default;
    int64_t ld() const { return rows > 1 ? rows : 1; }
  };
  Factored kind = Factored::Cholesky;
  int32_t dtype = 0;  // of the ABI: float32, float64 or their complex numbers
  int64_t batch = 1;
  bool upper = false;    // Cholesky, Eigenvalues: the triangle that is read
  bool vectors = false;  // Eigenvalues: in the place of `a`; SingularValues: in `b` and `c`
  Taken taken = Taken::AsTheyAre;
  int64_t reflectors = 0;  // Orthogonal: how many there are
  Matrix a;  // is factored in its place; of a system the factors. SingularValues: no fewer rows than columns; is lost
  Matrix b;  // LuSolution: right sides, and then solutions; SingularValues: U, of as many columns as are wanted
  Matrix c;  // SingularValues: V^H
  /// Numbers that belong to each matrix, so many apart: pivots (int64), factors of reflectors, or real values.
  uint64_t beside = 0;
  int64_t beside_step = 0;
  uint64_t infos = 0;     // int32, one for each matrix: 0, or LAPACK's `info`
  uint64_t pointers = 0;  // Cholesky of several: where each of `a` lies, on the device
  auto operator<=>(const Factoring&) const = default;

  /// The same without addresses: what a plan depends on.
  Factoring shape() const {
    Factoring found = *this;
    found.a.data = found.b.data = found.c.data = found.beside = found.infos = found.pointers = 0;
    return found;
  }
};

/// What a driver has found out about factorings of one shape, and keeps.
struct FactoringPlan {
  virtual ~FactoringPlan() = default;
  size_t workspace = 0;  // bytes wanted beside the operands
};

}  // namespace taeda::cuda
