// LAPACK's routines on raw memory, by element type. Matrices are stored by columns; sizes fit LAPACK's 32-bit integers.
#pragma once
#include "cpu/room.h"
#include "taeda/dtype.h"

namespace taeda::lapack {

template <class T> struct RealOf {
  using type = T;
};
template <class R> struct RealOf<std::complex<R>> {
  using type = R;
};
template <class T> using Real = typename RealOf<T>::type;
template <class T> inline constexpr bool is_complex = !std::is_same_v<T, Real<T>>;

/// NotImplementedError in a build without LAPACK, which has the factors of lapack_plain.h alone.
void expect_routines(const char* op);

using cpu::Room;
/// Memory for routines, kept from one matrix to the next.
template <class T>
struct Rooms {
  Room<T> work, more;
  Room<Real<T>> real;
  Room<int> integers;
};

/// Scope in which the routines may use the pool's number of threads: for single large matrices. Their results can then
/// depend on that number in the last bits, so not while deterministic algorithms are asked for.
class Threads {
 public:
  explicit Threads(bool wanted);
  ~Threads();
  Threads(const Threads&) = delete;

 private:
  bool mine_;
};

// Factorisations; each returns LAPACK's `info`.

/// `a` (n, n) becomes its Cholesky factor in the upper or lower triangle; the other one is not touched.
template <class T>
int potrf(bool upper, int n, T* a, int lda);
/// `a` (m, n) becomes L and U; pivots count from 1.
template <class T>
int getrf(int m, int n, T* a, int lda, int* pivots);
template <class T>
int sytrf(bool hermitian, int n, T* a, int lda, int* pivots, Rooms<T>& rooms);
template <class T>
void geqrf(int m, int n, T* a, int lda, T* tau, Rooms<T>& rooms);
/// The first n columns of the product of k reflectors, in their place.
template <class T>
void orgqr(int m, int n, int k, T* a, int lda, const T* tau, Rooms<T>& rooms);

// Solutions in the place of the right sides. `op`: 'N' for A, 'T' for its transpose, 'C' for its adjoint.

template <class T>
void getrs(char op, int n, int columns, const T* a, int lda, const int* pivots, T* b, int ldb);
template <class T>
void sytrs(bool hermitian, int n, int columns, const T* a, int lda, const int* pivots, T* b, int ldb);
/// op(A) X = B with B (m, n), or X op(A) = B.
template <class T>
void trsm(bool left, bool upper, char op, bool unit, int m, int n, const T* a, int lda, T* b, int ldb);

// Spectra; each returns `info`.

/// Real eigenvalues in ascending order; with `vectors` these in the place of `a`.
template <class T>
int syevd(bool vectors, bool upper, int n, T* a, int lda, Real<T>* values, Rooms<T>& rooms);
/// Complex eigenvalues; right eigenvectors (n, n) where `vectors` is not null. `a` is overwritten.
template <class T>
int geev(int n, T* a, int lda, std::complex<Real<T>>* values, std::complex<Real<T>>* vectors, int ldv, Rooms<T>& rooms);
/// `job`: 'A' all vectors, 'S' the first min(m, n), 'N' none. `a` is overwritten.
template <class T>
int gesdd(char job, int m, int n, T* a, int lda, Real<T>* s, T* u, int ldu, T* vt, int ldvt, Rooms<T>& rooms);

// Least squares: `b` has max(m, n) rows and becomes the solution; `a` is overwritten.

template <class T>
int gels(int m, int n, int columns, T* a, int lda, T* b, int ldb, Rooms<T>& rooms);
template <class T>
int gelsy(int m, int n, int columns, T* a, int lda, T* b, int ldb, Real<T> rcond, int* rank, Rooms<T>& rooms);
/// By singular values `s`: divide and conquer (gelsd), or QR iterations (gelss).
template <class T>
int gelsd(int m, int n, int columns, T* a, int lda, T* b, int ldb, Real<T>* s, Real<T> rcond, int* rank,
          Rooms<T>& rooms);
template <class T>
int gelss(int m, int n, int columns, T* a, int lda, T* b, int ldb, Real<T>* s, Real<T> rcond, int* rank,
          Rooms<T>& rooms);

/// Calls `body.operator()<T>()` for the four dtypes that LAPACK knows.
template <class Body>
void visit_exact(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::Float32: return body.template operator()<float>();
    case DType::Float64: return body.template operator()<double>();
    case DType::Complex64: return body.template operator()<Complex64>();
    default: return body.template operator()<Complex128>();
  }
}

}  // namespace taeda::lapack
