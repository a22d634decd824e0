// Calls of LAPACK in OpenBLAS: the one place that knows its names and arguments.
#include "cpu/lapack.h"

#include <algorithm>
#include <atomic>

#include "cpu/lapack_plain.h"
#include "taeda/deterministic.h"
#include "taeda/error.h"
#include "taeda/parallel.h"

#ifdef TAEDA_WITH_OPENBLAS
namespace taeda::lapack {
namespace {

using Text = const char*;
using Int = const int*;
using Length = size_t;  // of each text: Fortran passes them behind the other arguments

/// cblas takes real factors by value and complex ones by address.
template <class T> using Factor = std::conditional_t<is_complex<T>, const void*, T>;

}  // namespace
}  // namespace taeda::lapack

// NAME is the library's, P the letter of the type T with real numbers R, and KIND `or` or `un`.
#define TAEDA_SHARED(P, T, KIND)                                                       \
  void scipy_##P##potrf_(Text, Int, T*, Int, int*, Length);                            \
  void scipy_##P##getrf_(Int, Int, T*, Int, int*, int*);                               \
  void scipy_##P##getrs_(Text, Int, Int, const T*, Int, Int, T*, Int, int*, Length);   \
  void scipy_##P##geqrf_(Int, Int, T*, Int, T*, T*, Int, int*);                        \
  void scipy_##P##KIND##gqr_(Int, Int, Int, T*, Int, const T*, T*, Int, int*);         \
  void scipy_##P##sytrf_(Text, Int, T*, Int, int*, T*, Int, int*, Length);             \
  void scipy_##P##sytrs_(Text, Int, Int, const T*, Int, Int, T*, Int, int*, Length);   \
  void scipy_##P##gels_(Text, Int, Int, Int, T*, Int, T*, Int, T*, Int, int*, Length); \
  void scipy_cblas_##P##trsm(int, int, int, int, int, int, int, Factor<T>, const void*, int, void*, int);
#define TAEDA_REAL(P, T)                                                                                    \
  TAEDA_SHARED(P, T, or)                                                                                    \
  void scipy_##P##syevd_(Text, Text, Int, T*, Int, T*, T*, Int, int*, Int, int*, Length, Length);           \
  void scipy_##P##geev_(Text, Text, Int, T*, Int, T*, T*, T*, Int, T*, Int, T*, Int, int*, Length, Length); \
  void scipy_##P##gesdd_(Text, Int, Int, T*, Int, T*, T*, Int, T*, Int, T*, Int, int*, int*, Length);       \
  void scipy_##P##gelsy_(Int, Int, Int, T*, Int, T*, Int, int*, const T*, int*, T*, Int, int*);             \
  void scipy_##P##gelsd_(Int, Int, Int, T*, Int, T*, Int, T*, const T*, int*, T*, Int, int*, int*);         \
  void scipy_##P##gelss_(Int, Int, Int, T*, Int, T*, Int, T*, const T*, int*, T*, Int, int*);
#define TAEDA_COMPLEX(P, T, R)                                                                              \
  TAEDA_SHARED(P, T, un)                                                                                    \
  void scipy_##P##hetrf_(Text, Int, T*, Int, int*, T*, Int, int*, Length);                                  \
  void scipy_##P##hetrs_(Text, Int, Int, const T*, Int, Int, T*, Int, int*, Length);                        \
  void scipy_##P##heevd_(Text, Text, Int, T*, Int, R*, T*, Int, R*, Int, int*, Int, int*, Length, Length);  \
  void scipy_##P##geev_(Text, Text, Int, T*, Int, T*, T*, Int, T*, Int, T*, Int, R*, int*, Length, Length); \
  void scipy_##P##gesdd_(Text, Int, Int, T*, Int, R*, T*, Int, T*, Int, T*, Int, R*, int*, int*, Length);   \
  void scipy_##P##gelsy_(Int, Int, Int, T*, Int, T*, Int, int*, const R*, int*, T*, Int, R*, int*);         \
  void scipy_##P##gelsd_(Int, Int, Int, T*, Int, T*, Int, R*, const R*, int*, T*, Int, R*, int*, int*);     \
  void scipy_##P##gelss_(Int, Int, Int, T*, Int, T*, Int, R*, const R*, int*, T*, Int, R*, int*);
namespace taeda::lapack {
extern "C" {
void scipy_openblas_set_num_threads(int);
TAEDA_REAL(s, float)
TAEDA_REAL(d, double)
TAEDA_COMPLEX(c, Complex64, float)
TAEDA_COMPLEX(z, Complex128, double)
}

namespace {

/// The routines of one type, under names without its letter.
template <class T> struct Routines;
#define TAEDA_NAMES(P, T, KIND, EIGH)                     \
  template <> struct Routines<T> {                        \
    static constexpr auto& potrf = scipy_##P##potrf_;     \
    static constexpr auto& getrf = scipy_##P##getrf_;     \
    static constexpr auto& getrs = scipy_##P##getrs_;     \
    static constexpr auto& geqrf = scipy_##P##geqrf_;     \
    static constexpr auto& orgqr = scipy_##P##KIND##gqr_; \
    static constexpr auto& sytrf = scipy_##P##sytrf_;     \
    static constexpr auto& sytrs = scipy_##P##sytrs_;     \
    static constexpr auto& hetrf = scipy_##P##EIGH##trf_; \
    static constexpr auto& hetrs = scipy_##P##EIGH##trs_; \
    static constexpr auto& syevd = scipy_##P##EIGH##evd_; \
    static constexpr auto& geev = scipy_##P##geev_;       \
    static constexpr auto& gesdd = scipy_##P##gesdd_;     \
    static constexpr auto& gels = scipy_##P##gels_;       \
    static constexpr auto& gelsy = scipy_##P##gelsy_;     \
    static constexpr auto& gelsd = scipy_##P##gelsd_;     \
    static constexpr auto& gelss = scipy_##P##gelss_;     \
    static constexpr auto& trsm = scipy_cblas_##P##trsm;  \
  };
TAEDA_NAMES(s, float, or, sy)
TAEDA_NAMES(d, double, or, sy)
TAEDA_NAMES(c, Complex64, un, he)
TAEDA_NAMES(z, Complex128, un, he)
#undef TAEDA_NAMES

/// Whether somebody has turned the library's threads on, which are of the whole process.
std::atomic<bool> threads_taken{false};

constexpr int kAsk = -1;  // for the size of the work space

/// What a routine answers that was asked so; in float32 the size may have been rounded down.
template <class T>
int answered(T size) {
  return std::max(1, int(double(std::real(size)) * (1 + 0x1p-22)) + 1);
}

}  // namespace

Threads::Threads(bool wanted)
    : mine_(wanted && num_threads() > 1 && !deterministic() && !threads_taken.exchange(true)) {
  if (mine_) scipy_openblas_set_num_threads(num_threads());
}
Threads::~Threads() {
  if (!mine_) return;
  scipy_openblas_set_num_threads(1);
  threads_taken = false;
}

void expect_routines(const char*) {}

namespace {
/// Up to this many rows and columns plain loops are faster than the library's calls.
constexpr int kSmall = 16;
}  // namespace

template <class T>
int potrf(bool upper, int n, T* a, int lda) {
  if (n <= kSmall) return upper ? plain::potrf_upper(n, a, lda) : plain::potrf_lower(n, a, lda);
  int info = 0;
  Routines<T>::potrf(upper ? "U" : "L", &n, a, &lda, &info, 1);
  return info;
}
template <class T>
int getrf(int m, int n, T* a, int lda, int* pivots) {
  if (std::max(m, n) <= kSmall) return plain::getrf(m, n, a, lda, pivots);
  int info = 0;
  Routines<T>::getrf(&m, &n, a, &lda, pivots, &info);
  return info;
}
template <class T>
void getrs(char op, int n, int columns, const T* a, int lda, const int* pivots, T* b, int ldb) {
  if (n <= kSmall) return plain::getrs(op, n, columns, a, lda, pivots, b, ldb);
  int info = 0;
  Routines<T>::getrs(&op, &n, &columns, a, &lda, pivots, b, &ldb, &info, 1);
}
template <class T>
void trsm(bool left, bool upper, char op, bool unit, int m, int n, const T* a, int lda, T* b, int ldb) {
  if ((left ? m : n) <= kSmall) return plain::trsm(left, upper, op, unit, m, n, a, lda, b, ldb);
  constexpr int kColumnMajor = 102;
  const int side = left ? 141 : 142,
            how = op == 'N'   ? 111
                  : op == 'T' ? 112
                              : 113,
            triangle = upper ? 121 : 122, diagonal = unit ? 132 : 131;
  const T one(1);
  const auto call = [&](Factor<T> factor) {
    Routines<T>::trsm(kColumnMajor, side, triangle, how, diagonal, m, n, factor, a, lda, b, ldb);
  };
  if constexpr (is_complex<T>) call(&one);
  else call(one);
}

template <class T>
int sytrf(bool hermitian, int n, T* a, int lda, int* pivots, Rooms<T>& rooms) {
  constexpr auto& routine = Routines<T>::sytrf;
  constexpr auto& hermitian_routine = Routines<T>::hetrf;
  const auto call = [&](T* work, int size) {
    int info = 0;
    (hermitian ? hermitian_routine : routine)("L", &n, a, &lda, pivots, work, &size, &info, 1);
    return info;
  };
  T size{};
  call(&size, kAsk);
  const int count = answered(size);
  return call(rooms.work.get(count), count);
}
template <class T>
void sytrs(bool hermitian, int n, int columns, const T* a, int lda, const int* pivots, T* b, int ldb) {
  int info = 0;
  (hermitian ? Routines<T>::hetrs : Routines<T>::sytrs)("L", &n, &columns, a, &lda, pivots, b, &ldb, &info, 1);
}

template <class T>
void geqrf(int m, int n, T* a, int lda, T* tau, Rooms<T>& rooms) {
  if (std::max(m, n) <= kSmall) return plain::geqrf(m, n, a, lda, tau);
  const auto call = [&](T* work, int size) {
    int info = 0;
    Routines<T>::geqrf(&m, &n, a, &lda, tau, work, &size, &info);
  };
  T size{};
  call(&size, kAsk);
  const int count = answered(size);
  call(rooms.work.get(count), count);
}
template <class T>
void orgqr(int m, int n, int k, T* a, int lda, const T* tau, Rooms<T>& rooms) {
  if (m <= kSmall) return plain::orgqr(m, n, k, a, lda, tau);
  const auto call = [&](T* work, int size) {
    int info = 0;
    Routines<T>::orgqr(&m, &n, &k, a, &lda, tau, work, &size, &info);
  };
  T size{};
  call(&size, kAsk);
  const int count = answered(size);
  call(rooms.work.get(count), count);
}

template <class T>
int syevd(bool vectors, bool upper, int n, T* a, int lda, Real<T>* values, Rooms<T>& rooms) {
  const char *job = vectors ? "V" : "N", *triangle = upper ? "U" : "L";
  int info = 0, whole = 0;
  T size{};
  if constexpr (is_complex<T>) {
    const auto call = [&](T* work, int count, Real<T>* real, int reals, int* integers, int wholes) {
      Routines<T>::syevd(job, triangle, &n, a, &lda, values, work, &count, real, &reals, integers, &wholes, &info, 1,
                         1);
    };
    Real<T> real{};
    call(&size, kAsk, &real, kAsk, &whole, kAsk);
    const int count = answered(size), reals = answered(real);
    call(rooms.work.get(count), count, rooms.real.get(reals), reals, rooms.integers.get(whole), whole);
  } else {
    const auto call = [&](T* work, int count, int* integers, int wholes) {
      Routines<T>::syevd(job, triangle, &n, a, &lda, values, work, &count, integers, &wholes, &info, 1, 1);
    };
    call(&size, kAsk, &whole, kAsk);
    const int count = answered(size);
    call(rooms.work.get(count), count, rooms.integers.get(whole), whole);
  }
  return info;
}

namespace {
/// geev of real matrices gives conjugate pairs as two real columns.
template <class R>
void join_pairs(int n, const R* real, const R* imaginary, const R* columns, std::complex<R>* values,
                std::complex<R>* vectors, int ldv) {
  for (int j = 0; j < n; ++j) values[j] = {real[j], imaginary[j]};
  if (!vectors) return;
  for (int j = 0; j < n; ++j) {
    const R* const column = columns + int64_t(j) * n;
    std::complex<R>* const to = vectors + int64_t(j) * ldv;
    if (imaginary[j] == 0) {
      std::copy_n(column, n, to);
    } else {
      for (int i = 0; i < n; ++i) {
        to[i] = {column[i], column[i + n]};
        to[i + ldv] = {column[i], -column[i + n]};
      }
      ++j;
    }
  }
}
}  // namespace

template <class T>
int geev(int n, T* a, int lda, std::complex<Real<T>>* values, std::complex<Real<T>>* vectors, int ldv,
         Rooms<T>& rooms) {
  const char* const job = vectors ? "V" : "N";
  const int one = 1;
  int info = 0;
  T size{};
  if constexpr (is_complex<T>) {
    const auto call = [&](T* work, int count) {
      Routines<T>::geev("N", job, &n, a, &lda, values, nullptr, &one, vectors, &ldv, work, &count,
                        rooms.real.get(2 * int64_t(n)), &info, 1, 1);
    };
    call(&size, kAsk);
    const int count = answered(size);
    call(rooms.work.get(count), count);
  } else {
    T *const real = rooms.real.get(2 * int64_t(n)), *const imaginary = real + n;
    T* const columns = vectors ? rooms.more.get(int64_t(n) * n) : nullptr;
    const auto call = [&](T* work, int count) {
      Routines<T>::geev("N", job, &n, a, &lda, real, imaginary, nullptr, &one, columns, &n, work, &count, &info, 1, 1);
    };
    call(&size, kAsk);
    const int count = answered(size);
    call(rooms.work.get(count), count);
    if (!info) join_pairs(n, real, imaginary, columns, values, vectors, ldv);
  }
  return info;
}

template <class T>
int gesdd(char job, int m, int n, T* a, int lda, Real<T>* s, T* u, int ldu, T* vt, int ldvt, Rooms<T>& rooms) {
  const int64_t least = std::min(m, n), most = std::max(m, n);
  int* const integers = rooms.integers.get(8 * least);
  int info = 0;
  T size{};
  const auto call = [&](T* work, int count) {
    if constexpr (is_complex<T>) {
      const int64_t reals = job == 'N' ? 7 * least : least * std::max(5 * least + 7, 2 * most + 2 * least + 1);
      Routines<T>::gesdd(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &count,
                         rooms.real.get(std::max<int64_t>(1, reals)), integers, &info, 1);
    } else {
      Routines<T>::gesdd(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &count, integers, &info, 1);
    }
  };
  call(&size, kAsk);
  const int count = answered(size);
  call(rooms.work.get(count), count);
  return info;
}

template <class T>
int gels(int m, int n, int columns, T* a, int lda, T* b, int ldb, Rooms<T>& rooms) {
  int info = 0;
  const auto call = [&](T* work, int count) {
    Routines<T>::gels("N", &m, &n, &columns, a, &lda, b, &ldb, work, &count, &info, 1);
  };
  T size{};
  call(&size, kAsk);
  const int count = answered(size);
  call(rooms.work.get(count), count);
  return info;
}
template <class T>
int gelsy(int m, int n, int columns, T* a, int lda, T* b, int ldb, Real<T> rcond, int* rank, Rooms<T>& rooms) {
  int info = 0;
  int* const order = rooms.integers.get(n);
  std::fill_n(order, n, 0);
  const auto call = [&](T* work, int count) {
    if constexpr (is_complex<T>)
      Routines<T>::gelsy(&m, &n, &columns, a, &lda, b, &ldb, order, &rcond, rank, work, &count,
                         rooms.real.get(2 * int64_t(n)), &info);
    else Routines<T>::gelsy(&m, &n, &columns, a, &lda, b, &ldb, order, &rcond, rank, work, &count, &info);
  };
  T size{};
  call(&size, kAsk);
  const int count = answered(size);
  call(rooms.work.get(count), count);
  return info;
}
template <class T>
int gelsd(int m, int n, int columns, T* a, int lda, T* b, int ldb, Real<T>* s, Real<T> rcond, int* rank,
          Rooms<T>& rooms) {
  int info = 0, wholes = 0;
  T size{};
  if constexpr (is_complex<T>) {
    Real<T> reals{};
    int count = kAsk;
    Routines<T>::gelsd(&m, &n, &columns, a, &lda, b, &ldb, s, &rcond, rank, &size, &count, &reals, &wholes, &info);
    count = answered(size);
    Routines<T>::gelsd(&m, &n, &columns, a, &lda, b, &ldb, s, &rcond, rank, rooms.work.get(count), &count,
                       rooms.real.get(answered(reals)), rooms.integers.get(wholes), &info);
  } else {
    int count = kAsk;
    Routines<T>::gelsd(&m, &n, &columns, a, &lda, b, &ldb, s, &rcond, rank, &size, &count, &wholes, &info);
    count = answered(size);
    Routines<T>::gelsd(&m, &n, &columns, a, &lda, b, &ldb, s, &rcond, rank, rooms.work.get(count), &count,
                       rooms.integers.get(wholes), &info);
  }
  return info;
}
template <class T>
int gelss(int m, int n, int columns, T* a, int lda, T* b, int ldb, Real<T>* s, Real<T> rcond, int* rank,
          Rooms<T>& rooms) {
  int info = 0;
  const auto call = [&](T* work, int count) {
    if constexpr (is_complex<T>)
      Routines<T>::gelss(&m, &n, &columns, a, &lda, b, &ldb, s, &rcond, rank, work, &count,
                         rooms.real.get(5 * int64_t(std::min(m, n))), &info);
    else Routines<T>::gelss(&m, &n, &columns, a, &lda, b, &ldb, s, &rcond, rank, work, &count, &info);
  };
  T size{};
  call(&size, kAsk);
  const int count = answered(size);
  call(rooms.work.get(count), count);
  return info;
}

}  // namespace taeda::lapack

#else

namespace taeda::lapack {

Threads::Threads(bool) : mine_(false) {}
Threads::~Threads() = default;

void expect_routines(const char* op) {
  fail(ErrorKind::NotImplemented, op, ": taeda-tensor-core was built without OpenBLAS, whose LAPACK this needs");
}

namespace {
[[noreturn]] void absent() {
  expect_routines("LAPACK");
  __builtin_unreachable();
}
}  // namespace

template <class T>
int potrf(bool upper, int n, T* a, int lda) {
  return upper ? plain::potrf_upper(n, a, lda) : plain::potrf_lower(n, a, lda);
}
template <class T>
int getrf(int m, int n, T* a, int lda, int* pivots) {
  return plain::getrf(m, n, a, lda, pivots);
}
template <class T>
void getrs(char op, int n, int columns, const T* a, int lda, const int* pivots, T* b, int ldb) {
  plain::getrs(op, n, columns, a, lda, pivots, b, ldb);
}
template <class T>
void trsm(bool left, bool upper, char op, bool unit, int m, int n, const T* a, int lda, T* b, int ldb) {
  plain::trsm(left, upper, op, unit, m, n, a, lda, b, ldb);
}
template <class T> int sytrf(bool, int, T*, int, int*, Rooms<T>&) { absent(); }
template <class T> void sytrs(bool, int, int, const T*, int, const int*, T*, int) { absent(); }
template <class T>
void geqrf(int m, int n, T* a, int lda, T* tau, Rooms<T>&) {
  plain::geqrf(m, n, a, lda, tau);
}
template <class T>
void orgqr(int m, int n, int k, T* a, int lda, const T* tau, Rooms<T>&) {
  plain::orgqr(m, n, k, a, lda, tau);
}
template <class T> int syevd(bool, bool, int, T*, int, Real<T>*, Rooms<T>&) { absent(); }
template <class T>
int geev(int, T*, int, std::complex<Real<T>>*, std::complex<Real<T>>*, int, Rooms<T>&) {
  absent();
}
template <class T> int gesdd(char, int, int, T*, int, Real<T>*, T*, int, T*, int, Rooms<T>&) { absent(); }
template <class T> int gels(int, int, int, T*, int, T*, int, Rooms<T>&) { absent(); }
template <class T> int gelsy(int, int, int, T*, int, T*, int, Real<T>, int*, Rooms<T>&) { absent(); }
template <class T> int gelsd(int, int, int, T*, int, T*, int, Real<T>*, Real<T>, int*, Rooms<T>&) { absent(); }
template <class T> int gelss(int, int, int, T*, int, T*, int, Real<T>*, Real<T>, int*, Rooms<T>&) { absent(); }

}  // namespace taeda::lapack

#endif

namespace taeda::lapack {

#define TAEDA_INSTANTIATE(T)                                                                          \
  template int potrf<T>(bool, int, T*, int);                                                          \
  template int getrf<T>(int, int, T*, int, int*);                                                     \
  template void getrs<T>(char, int, int, const T*, int, const int*, T*, int);                         \
  template void trsm<T>(bool, bool, char, bool, int, int, const T*, int, T*, int);                    \
  template int sytrf<T>(bool, int, T*, int, int*, Rooms<T>&);                                         \
  template void sytrs<T>(bool, int, int, const T*, int, const int*, T*, int);                         \
  template void geqrf<T>(int, int, T*, int, T*, Rooms<T>&);                                           \
  template void orgqr<T>(int, int, int, T*, int, const T*, Rooms<T>&);                                \
  template int syevd<T>(bool, bool, int, T*, int, Real<T>*, Rooms<T>&);                               \
  template int geev<T>(int, T*, int, std::complex<Real<T>>*, std::complex<Real<T>>*, int, Rooms<T>&); \
  template int gesdd<T>(char, int, int, T*, int, Real<T>*, T*, int, T*, int, Rooms<T>&);              \
  template int gels<T>(int, int, int, T*, int, T*, int, Rooms<T>&);                                   \
  template int gelsy<T>(int, int, int, T*, int, T*, int, Real<T>, int*, Rooms<T>&);                   \
  template int gelsd<T>(int, int, int, T*, int, T*, int, Real<T>*, Real<T>, int*, Rooms<T>&);         \
  template int gelss<T>(int, int, int, T*, int, T*, int, Real<T>*, Real<T>, int*, Rooms<T>&);
TAEDA_INSTANTIATE(float)
TAEDA_INSTANTIATE(double)
TAEDA_INSTANTIATE(Complex64)
TAEDA_INSTANTIATE(Complex128)
#undef TAEDA_INSTANTIATE

}  // namespace taeda::lapack
