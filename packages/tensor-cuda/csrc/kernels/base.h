// What kernels are written with. nvcc compiles this text for devices, the host's compiler for the simulated driver.
//
// A kernel is a struct of plain data, its body, with either `operator()(int64_t item)`, called once for each item on
// whichever thread, or phases: see Note [Phases] in launch.h. It reaches memory through `at` alone.
#pragma once
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#include <cuda_fp16.h>
#define TAEDA_APART __noinline__
#define TAEDA_UNROLL _Pragma("unroll")
#else
#define TAEDA_APART [[gnu::noinline]]
#define TAEDA_UNROLL
#endif
#include "scalar/complex.h"
#include "taeda/abi.h"

#ifndef TAEDA_HD
#define TAEDA_HD
#endif

namespace taeda::cuda {

using Address = uint64_t;
using Complex64 = loops::TAEDA_ISA::Complex<float>;
using Complex128 = loops::TAEDA_ISA::Complex<double>;
template <class T> inline constexpr bool is_complex = loops::TAEDA_ISA::is_complex_number<T>;
template <class A, class B> inline constexpr bool is_same = loops::TAEDA_ISA::is_same<A, B>;
template <class T> inline constexpr bool is_float = is_same<T, float> || is_same<T, double>;

// --- memory ---

#ifdef __CUDACC__
template <class T>
TAEDA_HD inline T* at(Address address) {
  return reinterpret_cast<T*>(address);
}
#else
/// Where the memory of the device lies that the calling thread simulates, less its first address.
extern constinit thread_local uint64_t simulated_shift;
template <class T>
inline T* at(Address address) {
  return reinterpret_cast<T*>(address + simulated_shift);
}
#endif

/// Elements in a row, of an element type that is known at run time alone.
struct Array {
  Address data = 0;
  int32_t dtype = 0;
  int32_t reserved = 0;
};

// --- element types ---

struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

TAEDA_HD inline float to_float(Half h) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(h.bits));
#else
  const uint32_t sign = uint32_t(h.bits & 0x8000) << 16, exponent = h.bits >> 10 & 31, fraction = h.bits & 1023;
  uint32_t bits = sign | (exponent + 112) << 23 | fraction << 13;
  if (exponent == 31) bits = sign | 0x7f800000u | fraction << 13;
  float value = 0;
  if (exponent == 0) value = float(fraction) * 0x1p-24f, std::memcpy(&bits, &value, 4), bits |= sign;
  std::memcpy(&value, &bits, 4);
  return value;
#endif
}
TAEDA_HD inline Half to_half(float value) {
#ifdef __CUDA_ARCH__
  return {__half_as_ushort(__float2half_rn(value))};
#else
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  const uint16_t sign = uint16_t(bits >> 16 & 0x8000);
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u) return {uint16_t(sign | 0x7e00)};
  if (bits >= 0x477ff000u) return {uint16_t(sign | 0x7c00)};
  if (bits < 0x38800000u) {  // subnormal: adding a half's smallest step rounds it
    float size;
    std::memcpy(&size, &bits, 4);
    size += 0.5f;
    std::memcpy(&bits, &size, 4);
    return {uint16_t(sign | (bits - 0x3f000000u))};
  }
  bits += 0xfff + (bits >> 13 & 1);
  return {uint16_t(sign | ((bits - 0x38000000u) >> 13))};
#endif
}
TAEDA_HD inline float to_float(BFloat16 h) { return loops::TAEDA_ISA::bit_cast<float>(uint32_t(h.bits) << 16); }
TAEDA_HD inline BFloat16 to_bfloat16(float value) {
  const uint32_t bits = loops::TAEDA_ISA::bit_cast<uint32_t>(value);
  if (value != value) return {uint16_t(bits >> 16 | 0x40)};
  return {uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

/// Calls `f.template operator()<T>()` with the type of elements; those of 8 bits that are no integers are none of ours.
template <class F>
TAEDA_HD inline void with_type(int dtype, const F& f) {
  switch (dtype) {
    case TAEDA_BOOL: return f.template operator()<bool>();
    case TAEDA_INT8: return f.template operator()<int8_t>();
    case TAEDA_INT16: return f.template operator()<int16_t>();
    case TAEDA_INT32: return f.template operator()<int32_t>();
    case TAEDA_INT64: return f.template operator()<int64_t>();
    case TAEDA_UINT8: return f.template operator()<uint8_t>();
    case TAEDA_UINT16: return f.template operator()<uint16_t>();
    case TAEDA_UINT32: return f.template operator()<uint32_t>();
    case TAEDA_UINT64: return f.template operator()<uint64_t>();
    case TAEDA_FLOAT16: return f.template operator()<Half>();
    case TAEDA_BFLOAT16: return f.template operator()<BFloat16>();
    case TAEDA_FLOAT32: return f.template operator()<float>();
    case TAEDA_FLOAT64: return f.template operator()<double>();
    case TAEDA_COMPLEX64: return f.template operator()<Complex64>();
    case TAEDA_COMPLEX128: return f.template operator()<Complex128>();
    default: return;
  }
}

/// Beyond the range as the host's processor does it.
TAEDA_HD inline int64_t whole(double v) {
  return v >= -0x1p63 && v < 0x1p63 ? int64_t(v) : v >= 0x1p63 && v < 0x1p64 ? int64_t(uint64_t(v)) : INT64_MIN;
}

/// A number of one type as one of another; what kernels compute in are bool, int64, uint64, float, double, Complex128.
template <class To, class From>
TAEDA_HD inline To number_as(From v) {
  if constexpr (is_same<To, From>) {
    return v;
  } else if constexpr (is_same<From, Half> || is_same<From, BFloat16>) {
    return number_as<To>(to_float(v));
  } else if constexpr (is_complex<From>) {
    if constexpr (is_complex<To>) return To(typename To::Real(v.re), typename To::Real(v.im));
    else if constexpr (is_same<To, bool>) return v.re != 0 || v.im != 0;
    else return number_as<To>(v.re);
  } else if constexpr (is_complex<To>) {
    return To(number_as<typename To::Real>(v));
  } else if constexpr (is_same<To, bool>) {
    return v != From(0);
  } else if constexpr (is_same<To, Half>) {
    return to_half(float(v));
  } else if constexpr (is_same<To, BFloat16>) {
    return to_bfloat16(float(v));
  } else if constexpr (is_float<From> && !is_float<To>) {
    return To(whole(double(v)));
  } else {
    return To(v);
  }
}

template <class C>
TAEDA_APART TAEDA_HD C load_any(Address data, int dtype, int64_t i) {
  C value{};
  with_type(dtype, [&]<class T>() { value = number_as<C>(at<const T>(data)[i]); });
  return value;
}
template <class C>
TAEDA_APART TAEDA_HD void store_any(Address data, int dtype, int64_t i, C value) {
  with_type(dtype, [&]<class T>() { at<T>(data)[i] = number_as<T>(value); });
}
/// The usual types at once, the others by a call.
template <class C>
TAEDA_HD inline C load(Array a, int64_t i) {
  if constexpr (is_float<C>)
    if (a.dtype == TAEDA_FLOAT32) return C(at<const float>(a.data)[i]);
  if constexpr (is_float<C>)
    if (a.dtype == TAEDA_BFLOAT16) return C(to_float(at<const BFloat16>(a.data)[i]));
  if constexpr (is_same<C, int64_t>)
    if (a.dtype == TAEDA_INT64) return at<const int64_t>(a.data)[i];
  return load_any<C>(a.data, a.dtype, i);
}
template <class C>
TAEDA_HD inline void store(Array a, int64_t i, C value) {
  if constexpr (is_float<C>)
    if (a.dtype == TAEDA_FLOAT32) return void(at<float>(a.data)[i] = float(value));
  if constexpr (is_same<C, float>)
    if (a.dtype == TAEDA_BFLOAT16) return void(at<BFloat16>(a.data)[i] = to_bfloat16(value));
  store_any<C>(a.data, a.dtype, i, value);
}

/// A number among the arguments, in each of the forms that kernels compute in.
struct Number {
  double re = 0, im = 0;
  int64_t whole = 0;
  template <class C>
  TAEDA_HD C as() const {
    if constexpr (is_complex<C>) return C(re, im);
    else if constexpr (is_float<C>) return C(re);
    else if constexpr (is_same<C, bool>) return re != 0 || im != 0;
    else return C(whole);
  }
};

// --- places ---

inline constexpr int kDims = 25;

/// Dimensions to go through, with strides in elements.
struct Walk {
  int32_t ndim = 0, reserved = 0;
  int64_t sizes[kDims], strides[kDims];
  TAEDA_HD int64_t offset(int64_t i) const {
    if (ndim == 1) return i * strides[0];
    int64_t to = 0;
    for (int d = ndim - 1; d > 0; --d) {
      const int64_t next = i / sizes[d];
      to += (i - next * sizes[d]) * strides[d];
      i = next;
    }
    return ndim ? to + i * strides[0] : 0;
  }
};

// --- errors ---

/// What kernels find; backend/trouble.cpp has the errors that come of it.
enum class Wrong : int32_t {
  Index,
  Zero,
  Weights,
  NoWeights,
  Offsets,
  Pivots,
  InputLength,
  TargetLength,
  Label,
  // What was found is a float64, by its bits.
  Probability,
  TargetProbability,
  Rate
};
/// In host memory that the device writes to: the first thing that went wrong since the host looked.
struct Trouble {
  uint32_t state;  // 0: nothing; 1: it is being written; 2: it is there
  Wrong what;
  int32_t kernel;  // number of the kernel's operator
  int32_t reserved;
  int64_t found, limit;
};
/// How a kernel says so.
struct Report {
  Trouble* trouble = nullptr;  // an address that host and device share
  int32_t op = 0, reserved = 0;
  TAEDA_HD void operator()(Wrong what, int64_t found = 0, int64_t limit = 0) const {
#ifdef __CUDA_ARCH__
    if (atomicCAS_system(&trouble->state, 0u, 1u) != 0u) return;
#else
    if (trouble->state != 0) return;
#endif
    trouble->what = what;
    trouble->kernel = op;
    trouble->found = found;
    trouble->limit = limit;
#ifdef __CUDA_ARCH__
    __threadfence_system();
#endif
    trouble->state = 2;
  }
};
/// Whether a place is one of `limit`; if not, that is reported.
TAEDA_HD inline bool within(const Report& report, int64_t place, int64_t limit, Wrong what = Wrong::Index) {
  const bool good = place >= 0 && place < limit;
  if (!good) report(what, place, limit);
  return good;
}

}  // namespace taeda::cuda
