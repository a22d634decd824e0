// The processor's vector registers, as the instruction set that is compiled for has them.
#pragma once

namespace taeda::loops::TAEDA_ISA {

/// As many bytes as a register has: longer vectors are compared one element at a time, and folded through memory.
#if defined(__AVX512F__)
inline constexpr int kRegister = 64;
#elif defined(__AVX2__)
inline constexpr int kRegister = 32;
#else
inline constexpr int kRegister = 16;  // of processors of other kinds too
#endif
template <class T, int Bytes = kRegister>
struct Register {
  typedef T type __attribute__((vector_size(Bytes)));
};

/// The same at any address, over elements of any type. (A template of a name alone would lose the alignment with
/// Clang.)
template <class T>
struct Loose {
  using type [[gnu::vector_size(kRegister), gnu::aligned(1), gnu::may_alias]] = T;
};

}  // namespace taeda::loops::TAEDA_ISA
