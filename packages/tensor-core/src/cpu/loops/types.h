// Sets of element types, for rows of loops.
#pragma once
#include <complex>
#include <cstdint>
#include <type_traits>

#include "taeda/elementwise.h"

#if defined(__AVX512F__) || defined(__AVX2__) || defined(__SSE4_2__)
#include <immintrin.h>
#endif

namespace taeda::loops::TAEDA_ISA {

template <class T> inline constexpr bool is_complex_v = std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>;
template <class T> inline constexpr bool is_half_v = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// Whether this is the copy for the least instruction set, which has the loops that are compiled once.
#define TAEDA_IS_base true
#define TAEDA_IS(ISA) TAEDA_IS_##ISA
#define TAEDA_IS_OF(ISA) TAEDA_IS(ISA)
#if TAEDA_IS_OF(TAEDA_ISA)
inline constexpr bool everything = true;
#else
inline constexpr bool everything = false;
#endif
#undef TAEDA_IS_OF
#undef TAEDA_IS
#undef TAEDA_IS_base

template <class... Ts> struct Types {};
using Truths = Types<bool>;
using Ints = Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
using Bits16 = Types<int16_t>;  // halves as they are stored
using BoolInts = Types<bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
using Floats = Types<float, double>;
using Complexes = Types<Complex64, Complex128>;
using Inexact = Types<float, double, Complex64, Complex128>;
using Numbers = Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, float, double,
                      Complex64, Complex128>;
using Ordered = Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, float, double>;
using BoolOrdered =
    Types<bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, float, double>;
using All = Types<bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, float, double,
                  Complex64, Complex128>;

}  // namespace taeda::loops::TAEDA_ISA
