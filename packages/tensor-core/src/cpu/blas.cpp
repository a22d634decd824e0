// Matrix products on raw memory.
#include "cpu/blas.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cpu/arith.h"
#include "cpu/loops/gemm.h"
#include "cpu/onednn/matmul.h"
#include "cpu/pieces.h"
#include "cpu/tiles.h"
#include "taeda/interrupt.h"
#include "taeda/parallel.h"

#ifdef TAEDA_WITH_ONEDNN
#include "core/fork.h"
#include "core/quiet.h"
#include "cpu/one_thread.h"
#include "cpu/onednn/engine.h"
#endif
#ifdef TAEDA_WITH_OPENBLAS
extern "C" {
void scipy_openblas_set_num_threads(int);
char* scipy_openblas_get_corename();
void scipy_cblas_sgemm(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
void scipy_cblas_dgemm(int, int, int, int, int, int, double, const double*, int, const double*, int, double, double*,
                       int);
void scipy_cblas_cgemm(int, int, int, int, int, int, const void*, const void*, int, const void*, int, const void*,
                       void*, int);
void scipy_cblas_zgemm(int, int, int, int, int, int, const void*, const void*, int, const void*, int, const void*,
                       void*, int);
void scipy_cblas_sgemv(int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
void scipy_cblas_dgemv(int, int, int, int, double, const double*, int, const double*, int, double, double*, int);
void scipy_cblas_cgemv(int, int, int, int, const void*, const void*, int, const void*, int, const void*, void*, int);
void scipy_cblas_zgemv(int, int, int, int, const void*, const void*, int, const void*, int, const void*, void*, int);
float scipy_cblas_sdot(int, const float*, int, const float*, int);
double scipy_cblas_ddot(int, const double*, int, const double*, int);
void scipy_cblas_cdotu_sub(int, const void*, int, const void*, int, void*);
void scipy_cblas_zdotu_sub(int, const void*, int, const void*, int, void*);
}
#endif

namespace taeda::blas {
namespace {

#ifdef TAEDA_WITH_OPENBLAS
const bool single_threaded = [] {
  scipy_openblas_set_num_threads(1);
  return true;
}();
constexpr int kRowMajor = 101, kPlain = 111, kTransposed = 112;
#endif

template <class T>
inline constexpr bool has_vendor =
#ifdef TAEDA_WITH_OPENBLAS
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, Complex64> ||
    std::is_same_v<T, Complex128>;
#elif defined(TAEDA_WITH_ONEDNN)
    std::is_same_v<T, float>;
#else
    false;
#endif

/// Plain loops, row by row; wraps around like NumPy for integers.
template <class T>
void plain_gemm(int64_t m, int64_t n, int64_t k, T alpha, Operand<T> a, Operand<T> b, T beta, T* c, int64_t ldc) {
  constexpr int64_t kBlock = 256;
  for (int64_t i = 0; i < m; ++i) {
    T* row = c + i * ldc;
    for (int64_t j = 0; j < n; ++j) row[j] = beta == T(0) ? T(0) : T(beta * row[j]);
  }
  for (int64_t p0 = 0; p0 < k; p0 += kBlock) {
    const int64_t p1 = std::min(k, p0 + kBlock);
    for (int64_t i = 0; i < m; ++i) {
      T* row = c + i * ldc;
      if (b.transposed) {
        for (int64_t j = 0; j < n; ++j) {
          T sum(0);
          for (int64_t p = p0; p < p1; ++p)
            sum += (a.transposed ? a.data[p * a.ld + i] : a.data[i * a.ld + p]) * b.data[j * b.ld + p];
          row[j] += T(alpha * sum);
        }
      } else {
        for (int64_t p = p0; p < p1; ++p) {
          const T factor = T(alpha * (a.transposed ? a.data[p * a.ld + i] : a.data[i * a.ld + p]));
          const T* from = b.data + p * b.ld;
          for (int64_t j = 0; j < n; ++j) row[j] += T(factor * from[j]);
        }
      }
    }
  }
}

/// BLAS where it is built in, else plain loops.
template <class T>
void vendor_gemm(int64_t m, int64_t n, int64_t k, T alpha, Operand<T> a, Operand<T> b, T beta, T* c, int64_t ldc) {
#ifdef TAEDA_WITH_OPENBLAS
  // BLAS counts in 32 bits, and refuses the strides of an empty operand.
  if (k == 0 || std::max({m, n, k, a.ld, b.ld, ldc}) > std::numeric_limits<int>::max())
    return plain_gemm(m, n, k, alpha, a, b, beta, c, ldc);
  const int ta = a.transposed ? kTransposed : kPlain, tb = b.transposed ? kTransposed : kPlain;
  const int im = int(m), in = int(n), ik = int(k), la = int(a.ld), lb = int(b.ld), lc = int(ldc);
  if constexpr (std::is_same_v<T, float>) {
    scipy_cblas_sgemm(kRowMajor, ta, tb, im, in, ik, alpha, a.data, la, b.data, lb, beta, c, lc);
  } else if constexpr (std::is_same_v<T, double>) {
    scipy_cblas_dgemm(kRowMajor, ta, tb, im, in, ik, alpha, a.data, la, b.data, lb, beta, c, lc);
  } else if constexpr (std::is_same_v<T, Complex64>) {
    scipy_cblas_cgemm(kRowMajor, ta, tb, im, in, ik, &alpha, a.data, la, b.data, lb, &beta, c, lc);
  } else if constexpr (std::is_same_v<T, Complex128>) {
    scipy_cblas_zgemm(kRowMajor, ta, tb, im, in, ik, &alpha, a.data, la, b.data, lb, &beta, c, lc);
  } else
#endif
      if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    const auto bits = [](const T* numbers) { return reinterpret_cast<const U*>(numbers); };
    loops::gemm_table().integers.of<U>()({m, n, k, U(alpha), U(beta), bits(a.data), a.ld, a.transposed, bits(b.data),
                                          b.ld, b.transposed, reinterpret_cast<U*>(c), ldc});
  } else {
    plain_gemm(m, n, k, alpha, a, b, beta, c, ldc);
  }
}

template <class T>
T vendor_dot(int64_t n, const T* x, int64_t incx, const T* y, int64_t incy) {
#ifdef TAEDA_WITH_OPENBLAS
  const int count = int(n), ix = int(incx), iy = int(incy);
  // BLAS takes the first element of a reversed vector at its lowest address.
  const T* const x0 = incx < 0 ? x + (n - 1) * incx : x;
  const T* const y0 = incy < 0 ? y + (n - 1) * incy : y;
  if constexpr (std::is_same_v<T, float>) return scipy_cblas_sdot(count, x0, ix, y0, iy);
  if constexpr (std::is_same_v<T, double>) return scipy_cblas_ddot(count, x0, ix, y0, iy);
  T found(0);
  if constexpr (std::is_same_v<T, Complex64>) return scipy_cblas_cdotu_sub(count, x0, ix, y0, iy, &found), found;
  if constexpr (std::is_same_v<T, Complex128>) return scipy_cblas_zdotu_sub(count, x0, ix, y0, iy, &found), found;
#endif
  if constexpr (std::is_integral_v<T>)
    if (incx == 1 && incy == 1) {
      using U = std::make_unsigned_t<T>;
      return T(
          loops::gemm_table().integer_dots.of<U>()(n, reinterpret_cast<const U*>(x), reinterpret_cast<const U*>(y)));
    }
  T sum(0);
  for (int64_t i = 0; i < n; ++i) sum += T(x[i * incx] * y[i * incy]);
  return sum;
}

template <class T>
void vendor_gemv(int64_t m, int64_t k, T alpha, Operand<T> a, const T* x, int64_t incx, T beta, T* y, int64_t incy) {
#ifdef TAEDA_WITH_OPENBLAS
  const int ta = a.transposed ? kTransposed : kPlain, rows = int(a.transposed ? k : m),
            columns = int(a.transposed ? m : k), ld = int(a.ld), ix = int(incx), iy = int(incy);
  const T* const x0 = incx < 0 ? x + (k - 1) * incx : x;
  if constexpr (std::is_same_v<T, float>)
    return scipy_cblas_sgemv(kRowMajor, ta, rows, columns, alpha, a.data, ld, x0, ix, beta, y, iy);
  if constexpr (std::is_same_v<T, double>)
    return scipy_cblas_dgemv(kRowMajor, ta, rows, columns, alpha, a.data, ld, x0, ix, beta, y, iy);
  if constexpr (std::is_same_v<T, Complex64>)
    return scipy_cblas_cgemv(kRowMajor, ta, rows, columns, &alpha, a.data, ld, x0, ix, &beta, y, iy);
  if constexpr (std::is_same_v<T, Complex128>)
    return scipy_cblas_zgemv(kRowMajor, ta, rows, columns, &alpha, a.data, ld, x0, ix, &beta, y, iy);
#endif
  for (int64_t i = 0; i < m; ++i) {
    const T* const row = a.data + i * (a.transposed ? 1 : a.ld);
    const T sum = vendor_dot(k, row, a.transposed ? a.ld : 1, x, incx);
    y[i * incy] = beta == T(0) ? T(alpha * sum) : T(alpha * sum + beta * y[i * incy]);
  }
}

// OpenBLAS takes products up to this work without packing, at its best; a strip of columns at a time gets there.
constexpr int64_t kSmallWork = 1'000'000, kStrip = 32;
constexpr int64_t kLongestChain = 2048;  // addends of one sum in such a strip, whose roundings add up
// ... and without its kernels for small products not above this.
constexpr int64_t kPackedWork = 200'000;

/// A product by a transposed right operand, a strip of columns at a time.
template <class T>
void in_strips(int64_t m, int64_t n, int64_t k, T alpha, Operand<T> a, Operand<T> b, T beta, T* c, int64_t ldc) {
  for (int64_t j = 0; j < n; j += kStrip)
    vendor_gemm<T>(m, std::min(kStrip, n - j), k, alpha, a, columns_from(b, j), beta, c + j, ldc);
}

/// OpenBLAS has kernels for small products, which lay out no operand, beside those for AVX-512 alone.
bool has_small_kernels() noexcept {
#ifdef TAEDA_WITH_OPENBLAS
  static const bool has = [] {
    const std::string_view kernels = scipy_openblas_get_corename();
    return kernels == "SkylakeX" || kernels == "Cooperlake" || kernels == "SapphireRapids";
  }();
  return has;
#else
  return false;
#endif
}

// Where OpenBLAS has no kernels for small products, oneDNN's sgemm is the best routine for so few rows (brgemm, where
// the right operand is transposed, takes up to twice as long unless that comes from memory) from so much work on. Below
// it, and in other dtypes, rows one by one are. Measured on Zen 5.
constexpr int64_t kFewRows = 12, kFewRowsWork = 40'000;

/// Rows that are best multiplied one by one.
template <class T>
int64_t lone_rows(int64_t work, bool transposed) {
  if (has_small_kernels()) return 1;
  if (std::is_same_v<T, float>) return work > kFewRowsWork ? 1 : 4;
  return transposed ? 5 : 8;
}

/// Few rows, each a product of a matrix and a vector.
template <class T>
bool one_by_one(int64_t m, int64_t n, int64_t k, T alpha, Operand<T> a, Operand<T> b, T beta, T* c, int64_t ldc) {
  if (k == 0 || m > lone_rows<T>(m * n * k, b.transposed)) return false;
  for (int64_t i = 0; i < m; ++i)
    vendor_gemv(n, k, alpha, {b.data, b.ld, !b.transposed}, rows_from(a, i).data, a.transposed ? a.ld : 1, beta,
                c + i * ldc, 1);
  return true;
}

/// A column by a row: products of the row by one number each.
template <class T>
void outer(int64_t m, int64_t n, T alpha, Operand<T> a, Operand<T> b, T* c, int64_t ldc) {
  const Loop multiply = cpu::row(cpu::SharedLine::mul).fn[int(dtype_of<T>)];
  for (int64_t i = 0; i < m; ++i) {
    T factor = alpha * a.data[a.transposed ? i : i * a.ld];
    char* const places[] = {reinterpret_cast<char*>(c + i * ldc), reinterpret_cast<char*>(const_cast<T*>(b.data)),
                            reinterpret_cast<char*>(&factor)};
    const int64_t steps[] = {sizeof(T), (b.transposed ? b.ld : 1) * int64_t(sizeof(T)), 0};
    multiply(places, steps, n, nullptr);
  }
}

/// Puts `row`, where given, into all rows of c; the beta of a product that is then added.
template <class T>
[[gnu::noinline]] T fill_rows(int64_t m, int64_t n, const T* row, T beta, T* c, int64_t ldc) {
  if (row && n == 1 && ldc == 1) std::fill_n(c, m, *row);
  else
    for (int64_t i = 0; row && i < m; ++i) std::copy_n(row, n, c + i * ldc);
  return row ? T(1) : beta;
}

#ifdef TAEDA_WITH_ONEDNN
/// dnnl_sgemm builds its kernels at its first call, under a lock of its own.
bool build_sgemm() {
  const std::unique_lock turn = onednn::building();
  const cpu::OneThread scope;
  const Quiet quiet;
  const float one[4] = {};
  float sum[4];
  return dnnl_sgemm('N', 'N', 2, 2, 2, 1.f, one, 2, one, 2, 0.f, sum, 2) == dnnl_success;
}
#endif

/// One call of the fastest routine on this thread; `row`, where given, is what c's rows are before it.
template <class T>
void serial_gemm(int64_t m, int64_t n, int64_t k, T alpha, Operand<T> a, Operand<T> b, T beta, T* c, int64_t ldc,
                 const T* row = nullptr) {
  if constexpr (has_vendor<T>)
    if (k == 1 && m > 1 && beta == T(0) && !row) return outer(m, n, alpha, a, b, c, ldc);
  if constexpr (has_vendor<T>)
    if (n == 1 && m > 1 && k > 1)
      return gemv(m, k, alpha, a, b.data, b.transposed ? 1 : b.ld, fill_rows(m, n, row, beta, c, ldc), c, ldc);
#ifdef TAEDA_WITH_ONEDNN
  if constexpr (std::is_same_v<T, float>) {
    // Measured: OpenBLAS is several times faster on small products; brgemm by a third where the right operand is
    // transposed (linear layers) or narrow; sgemm by a few percent elsewhere, and by more for few rows.
    const int64_t work = m * n * k;
    const bool small_kernels = has_small_kernels();
    const bool few_rows = !small_kernels && m <= (b.transposed && b.streamed ? kFewRows / 4 : kFewRows);
    const bool few = has_vendor<T> && b.transposed && n > kStrip && m <= 48 && small_kernels;
    const bool strips = few && (m <= 16 || m * kStrip * k <= kSmallWork);
    const bool brgemm = m > (small_kernels ? 4 : 1) && !few_rows && work > 100'000 && (b.transposed || n <= 64) &&
                        alpha == 1.f && (beta == 0.f || beta == 1.f);
    if (brgemm && !strips &&
        onednn::matmul(m, n, k, a.data, a.ld, a.transposed, b.data, b.ld, b.transposed, beta == 1.f, row, c, ldc))
      return;
    beta = fill_rows(m, n, row, beta, c, ldc);
    if (has_vendor<T> && one_by_one(m, n, k, alpha, a, b, beta, c, ldc)) return;
    if (strips) {
      if (m * kStrip * k <= kSmallWork && k <= kLongestChain) return in_strips(m, n, k, alpha, a, b, beta, c, ldc);
      // So few rows are worth a sum in parts.
      const int64_t parts = std::max(m * kStrip * k / kSmallWork, k / kLongestChain) + 1,
                    step = (k / parts + 63) / 64 * 64;
      for (int64_t from = 0; from < k; from += step)
        in_strips(m, n, std::min(step, k - from), alpha, columns_from(a, from), rows_from(b, from),
                  from == 0 ? beta : T(1), c, ldc);
      return;
    }
    // dnnl_sgemm (oneDNN 3.2) keeps values below its stack pointer, where the handler of a signal overwrites them: none
    // may come. That takes a microsecond, so smaller products go to OpenBLAS.
    if (!has_vendor<T> || work > (small_kernels ? kSmallWork : few_rows ? kFewRowsWork : kPackedWork)) {
      found_out([] { return build_sgemm(); });
      const cpu::OneThread scope;
      const Quiet quiet;
      dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, alpha, a.data, a.ld, b.data, b.ld, beta,
                 c, ldc);
      return;
    }
    return vendor_gemm(m, n, k, alpha, a, b, beta, c, ldc);
  }
#endif
  beta = fill_rows(m, n, row, beta, c, ldc);
  if constexpr (has_vendor<T>)
    if (one_by_one(m, n, k, alpha, a, b, beta, c, ldc)) return;
  vendor_gemm(m, n, k, alpha, a, b, beta, c, ldc);
}

/// Multiplications that one call of a routine may take, so that signals are looked at several times a second.
template <class T>
constexpr double kPatientWork = std::is_same_v<T, float>        ? 0x1p31
                                : std::is_same_v<T, double>     ? 0x1p30
                                : std::is_same_v<T, Complex64>  ? 0x1p29
                                : std::is_same_v<T, Complex128> ? 0x1p28
                                                                : 0x1p26;

/// serial_gemm() in halves that are short enough: of the result's longer side, or of a long sum.
template <class T>
void patient_gemm(int64_t m, int64_t n, int64_t k, T alpha, Operand<T> a, Operand<T> b, T beta, T* c, int64_t ldc,
                  const T* row) {
  poll_signals();
  if constexpr (std::is_same_v<T, double>)
    if (worth_tiles<T>(m, n, k, b.transposed)) return tiled_gemm(m, n, k, alpha, a, b, beta, c, ldc, row);
  if (double(m) * double(n) * double(k) <= kPatientWork<T>) return serial_gemm(m, n, k, alpha, a, b, beta, c, ldc, row);
  constexpr int64_t whole = 256;  // halves below this cost speed
  const auto half = [](int64_t size) { return (size / 2 + 15) / 16 * 16; };
  if (k >= 16 * std::max(m, n) || std::max(m, n) < 2 * whole) {
    const int64_t first = half(k);
    patient_gemm(m, n, first, alpha, a, b, beta, c, ldc, row);
    patient_gemm<T>(m, n, k - first, alpha, columns_from(a, first), rows_from(b, first), T(1), c, ldc, nullptr);
  } else if (m >= n) {
    const int64_t first = half(m);
    patient_gemm(first, n, k, alpha, a, b, beta, c, ldc, row);
    patient_gemm(m - first, n, k, alpha, rows_from(a, first), b, beta, c + first * ldc, ldc, row);
  } else {
    const int64_t first = half(n);
    patient_gemm(m, first, k, alpha, a, b, beta, c, ldc, row);
    patient_gemm(m, n - first, k, alpha, a, columns_from(b, first), beta, c + first, ldc, row ? row + first : row);
  }
}

constexpr int64_t kTinyWork = 4096;  // up to here the choice between routines takes longer than one

/// Longest runs of the inner dimension that a vendor's routine sums up in the operands' own dtype: of dot, which keeps
/// blocks apart itself, and of matrix products.
constexpr int64_t kLongestDot = 1 << 16, kLongestSum = 1 << 13;

/// The dtype in which the sums of pieces are added.
template <class T> struct Wide {
  using type = T;
};
template <> struct Wide<float> {
  using type = double;
};
template <> struct Wide<Complex64> {
  using type = Complex128;
};

/// A small result of a long sum: pieces of the inner dimension, added in order.
template <class T>
void split_inner(int64_t m, int64_t n, int64_t k, T alpha, Operand<T> a, Operand<T> b, T beta, T* c, int64_t ldc,
                 int64_t pieces) {
  const int64_t step = (k + pieces - 1) / pieces;
  const auto parts = std::make_unique_for_overwrite<T[]>(size_t(pieces * m * n));
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t from = p * step, count = std::min(k, from + step) - from;
      patient_gemm<T>(m, n, std::max<int64_t>(count, 0), alpha, columns_from(a, from), rows_from(b, from), T(0),
                      parts.get() + p * m * n, n, nullptr);
    }
  });
  parallel_for(m, std::max<int64_t>(1, 4096 / n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t j = 0; j < n; ++j) {
        using W = typename Wide<T>::type;
        W sum = beta == T(0) ? W(0) : W(beta * c[i * ldc + j]);
        for (int64_t p = 0; p < pieces; ++p) sum += W(parts[size_t((p * m + i) * n + j)]);
        c[i * ldc + j] = T(sum);
      }
  });
}

constexpr int64_t kMostCached = 1 << 22;            // numbers of an operand that may lie in a cache
constexpr int64_t kMostInParts = 1 << 17;           // numbers of a result that is summed up in parts
constexpr int64_t kPatientRows = int64_t(1) << 31;  // multiplications of one piece of rows

/// Rows that lie a multiple of this apart have their columns in the same few lines of the cache: a left operand that
/// stands so transposed is turned first. Measured: a (2048, 1024) operand of a product of 512 columns takes 14.6
/// instead of 16.3 ms.
constexpr int64_t kSameLines = 1024;

/// Whole rows, for brgemm writes no narrower results in place; the right operand is laid out once for all of them.
void in_rows(int64_t m, int64_t n, int64_t k, float alpha, Operand<float> a, Operand<float> b, float beta, float* c,
             const float* row) {
  const int64_t count = m < 4 * kManyRows ? kMaxPieces / 2 : kMaxPieces,
                step = std::min(((m + count - 1) / count + 3) / 4 * 4, std::max<int64_t>(64, kPatientRows / (n * k)));
  std::optional<onednn::Packed> packed;
  if (n * k <= kMostPacked && !a.transposed && alpha == 1.f && (beta == 0.f || beta == 1.f))
    packed.emplace(step, n, k, b.data, b.ld, b.transposed);
  parallel_for((m + step - 1) / step, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * step; i < std::min(m, end * step); i += step) {
      const int64_t rows = std::min(step, m - i);
      poll_signals();
      if (packed && *packed && packed->multiply(rows, a.data + i * a.ld, a.ld, beta == 1.f, row, c + i * n, n))
        continue;
      patient_gemm(rows, n, k, alpha, rows_from(a, i), b, beta, c + i * n, n, row);
    }
  });
}

}  // namespace

template <class T>
void gemm(int64_t m, int64_t n, int64_t k, T alpha, Operand<T> a, Operand<T> b, T beta, T* c, int64_t ldc,
          const T* row) {
  const int64_t work = m * n * k;
  if (has_vendor<T> && work <= kTinyWork && n <= kStrip && !row) return vendor_gemm(m, n, k, alpha, a, b, beta, c, ldc);
  // By few rows a matrix is multiplied no faster than it is read.
  const int64_t effort = std::max<int64_t>(m, 4) * n * k, pieces = count_pieces(effort);
#ifdef TAEDA_WITH_ONEDNN
  if constexpr (std::is_same_v<T, float>)
    if (a.transposed && a.ld % kSameLines == 0 && pieces == kMaxPieces && n >= 256 && m * k <= kMostPacked &&
        !worth_tiles<float>(m, n, k, b.transposed)) {
      const onednn::Turned turned(m, k, a.data, a.ld);
      if (turned.data()) return gemm<float>(m, n, k, alpha, {turned.data(), k}, b, beta, c, ldc, row);
    }
#endif
  // Parts of the sum also where pieces of the result would read the operands several times: in the gradient of a
  // language model's last layer.
  b.streamed = n * k > kMostCached;
  const bool wide = m > 1 && m <= kFewRows && n >= 64 * kMaxPieces;  // has columns enough to be cut by
  const bool few = (m * n <= 128 * 128 && !wide) || (m * n <= kMostInParts && k >= 32 * std::max(m, n));
  if (few && (k > kLongestSum || (k >= 4096 && work > kPieceFlops)))
    return split_inner(m, n, k, alpha, a, b, fill_rows(m, n, row, beta, c, ldc), c, ldc,
                       std::max(std::min<int64_t>(pieces, k / 1024), k / kLongestSum));
  if (effort <= kPieceFlops) return serial_gemm(m, n, k, alpha, a, b, beta, c, ldc, row);
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    if (worth_tiles<T>(m, n, k, b.transposed)) return tiled_gemm(m, n, k, alpha, a, b, beta, c, ldc, row);
  if constexpr (std::is_same_v<T, float>)
    if (n > 1 && b.transposed && ldc == n && m >= kManyRows && pieces > kMaxPieces / 2)
      return in_rows(m, n, k, alpha, a, b, beta, c, row);
  const Grid grid(m, n, pieces, pieces == kMaxPieces ? 128 : 64);
  grid.each([&](int64_t i, int64_t j, int64_t rows, int64_t columns) {
    patient_gemm(rows, columns, k, alpha, rows_from(a, i), columns_from(b, j), beta, c + i * ldc + j, ldc,
                 row ? row + j : row);
  });
}

struct Packed::State {
  int64_t n, k, step;
  Operand<float> b;
  std::vector<onednn::Packed> pieces;
  std::optional<TiledRight<float>> tiles;
};

Packed::Packed(int64_t m, int64_t n, int64_t k, Operand<float> b) : state_(new State{n, k, n, b, {}, {}}) {
  if (worth_tiles_of_right(m, n, k)) {
    state_->tiles.emplace(n, k, b);
    return;
  }
  const int64_t step = state_->step = packed_columns(n);
  for (int64_t j = 0; j < n; j += step) {
    const Operand<float> part = columns_from(b, j);
    state_->pieces.emplace_back(m, std::min(step, n - j), k, part.data, part.ld, part.transposed);
    if (!state_->pieces.back()) {
      state_->pieces.clear();
      break;
    }
  }
}
Packed::~Packed() = default;

void Packed::multiply(int64_t m, const float* a, int64_t lda, float* c, const float* row) const {
  const State& s = *state_;
  if (s.tiles) return s.tiles->multiply(m, a, lda, c, row);
  if (s.pieces.empty()) return gemm<float>(m, s.n, s.k, 1.f, {a, lda}, s.b, 0.f, c, s.n, row);
  parallel_for(int64_t(s.pieces.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t j = p * s.step;
      check(s.pieces[size_t(p)].multiply(m, a, lda, false, row ? row + j : row, c + j, s.n), ErrorKind::Runtime,
            "matmul: oneDNN could not multiply matrices (", m, ", ", s.k, ") and (", s.k, ", ", s.n, ")");
    }
  });
}

template <class T>
void gemm_whole(int64_t m, int64_t n, int64_t k, Operand<T> a, Operand<T> b, T beta, T* c, int64_t ldc) {
  patient_gemm<T>(m, n, k, T(1), a, b, beta, c, ldc, nullptr);
}
template void gemm_whole<float>(int64_t, int64_t, int64_t, Operand<float>, Operand<float>, float, float*, int64_t);
template void gemm_whole<double>(int64_t, int64_t, int64_t, Operand<double>, Operand<double>, double, double*, int64_t);

template <class T>
void gemv(int64_t m, int64_t k, T alpha, Operand<T> a, const T* x, int64_t incx, T beta, T* y, int64_t incy) {
  if (k <= kLongestSum) return vendor_gemv(m, k, alpha, a, x, incx, beta, y, incy);
  using W = typename Wide<T>::type;
  const int64_t pieces = (k + kLongestSum - 1) / kLongestSum;
  const auto parts = std::make_unique_for_overwrite<T[]>(size_t(pieces * m));
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t from = p * kLongestSum;
      vendor_gemv(m, std::min(kLongestSum, k - from), alpha, columns_from(a, from), x + from * incx, incx, T(0),
                  parts.get() + p * m, 1);
    }
  });
  for (int64_t i = 0; i < m; ++i) {
    W sum = beta == T(0) ? W(0) : W(beta * y[i * incy]);
    for (int64_t p = 0; p < pieces; ++p) sum += W(parts[size_t(p * m + i)]);
    y[i * incy] = T(sum);
  }
}

template <class T>
T dot(int64_t n, const T* x, int64_t incx, const T* y, int64_t incy) {
  if (n <= kLongestDot) return vendor_dot(n, x, incx, y, incy);
  using W = typename Wide<T>::type;
  const int64_t pieces = (n + kLongestDot - 1) / kLongestDot;
  const auto parts = std::make_unique_for_overwrite<T[]>(size_t(pieces));
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t from = p * kLongestDot;
      parts[size_t(p)] = vendor_dot(std::min(kLongestDot, n - from), x + from * incx, incx, y + from * incy, incy);
    }
  });
  W sum(0);
  for (int64_t p = 0; p < pieces; ++p) sum += W(parts[size_t(p)]);
  return T(sum);
}

#define TAEDA_INSTANTIATE(T)                                                                             \
  template void gemm<T>(int64_t, int64_t, int64_t, T, Operand<T>, Operand<T>, T, T*, int64_t, const T*); \
  template void gemv<T>(int64_t, int64_t, T, Operand<T>, const T*, int64_t, T, T*, int64_t);             \
  template T dot<T>(int64_t, const T*, int64_t, const T*, int64_t);
TAEDA_INSTANTIATE(float)
TAEDA_INSTANTIATE(double)
TAEDA_INSTANTIATE(Complex64)
TAEDA_INSTANTIATE(Complex128)
TAEDA_INSTANTIATE(int8_t)
TAEDA_INSTANTIATE(int16_t)
TAEDA_INSTANTIATE(int32_t)
TAEDA_INSTANTIATE(int64_t)
TAEDA_INSTANTIATE(uint8_t)
TAEDA_INSTANTIATE(uint16_t)
TAEDA_INSTANTIATE(uint32_t)
TAEDA_INSTANTIATE(uint64_t)
#undef TAEDA_INSTANTIATE

}  // namespace taeda::blas
