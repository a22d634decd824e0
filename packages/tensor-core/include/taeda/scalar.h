// Scalar: a Python number (bool, int, float, complex) without a tensor around it.
#pragma once
#include <complex>
#include <cstdint>

#include "taeda/dtype.h"

namespace taeda {

class Scalar {
 public:
  enum class Kind : uint8_t { Bool, Int, UInt, Float, Complex };
  Scalar() : Scalar(int64_t(0)) {}
  Scalar(bool v) : kind_(Kind::Bool) { value_.i = v; }
  Scalar(int v) : Scalar(int64_t(v)) {}
  Scalar(int64_t v) : kind_(Kind::Int) { value_.i = v; }
  Scalar(uint64_t v) : kind_(Kind::UInt) { value_.u = v; }
  Scalar(float v) : Scalar(double(v)) {}
  Scalar(double v) : kind_(Kind::Float) { value_.f = v; }
  Scalar(std::complex<double> v) : kind_(Kind::Complex) {
    value_.f = v.real();
    imag_ = v.imag();
  }

  Kind kind() const noexcept { return kind_; }
  bool is_integral() const noexcept { return kind_ <= Kind::UInt; }
  bool is_floating() const noexcept { return kind_ == Kind::Float; }
  bool is_complex() const noexcept { return kind_ == Kind::Complex; }
  /// bool, int64, default float or default complex.
  DType dtype() const noexcept {
    switch (kind_) {
      case Kind::Bool: return DType::Bool;
      case Kind::Int: return DType::Int64;
      case Kind::UInt: return DType::UInt64;
      case Kind::Float: return default_dtype();
      default: return complex_of(default_dtype());
    }
  }
  template <class T>
  T to() const noexcept {
    if constexpr (DTypeOf<T>::value == DType::Complex64 || DTypeOf<T>::value == DType::Complex128) {
      using R = typename T::value_type;
      return T(R(to_double()), R(kind_ == Kind::Complex ? imag_ : 0.0));
    } else if constexpr (std::is_same_v<T, bool>) {
      return kind_ <= Kind::UInt ? value_.i != 0 : (value_.f != 0 || (kind_ == Kind::Complex && imag_ != 0));
    } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      return T(float(to_double()));
    } else {
      switch (kind_) {
        case Kind::Bool:
        case Kind::Int: return T(value_.i);
        case Kind::UInt: return T(value_.u);
        default: return T(value_.f);
      }
    }
  }
  double to_double() const noexcept {
    return kind_ <= Kind::Int ? double(value_.i) : kind_ == Kind::UInt ? double(value_.u) : value_.f;
  }
  double imag() const noexcept { return kind_ == Kind::Complex ? imag_ : 0.0; }
  bool equal(double v) const noexcept { return to_double() == v && imag() == 0.0; }

 private:
  union {
    int64_t i;
    uint64_t u;
    double f;
  } value_;
  double imag_ = 0.0;
  Kind kind_;
};

}  // namespace taeda
