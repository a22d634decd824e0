// Whether a Python number fits the dtype it meets.
#include "infer/numbers.h"

#include <cmath>
#include <limits>
#include <utility>

#include "taeda/levels.h"
#include "taeda/ops/cast.h"

namespace taeda::infer {
namespace {

template <class T>
int side_in(const Scalar& value) {
  using Limits = std::numeric_limits<T>;
  if (!value.is_integral()) {
    const double whole = std::trunc(value.to_double());
    // The largest number may not be a double; the power of two above it is one.
    return whole < double(Limits::lowest()) ? -1 : whole >= std::ldexp(1.0, Limits::digits) ? 1 : 0;
  }
  if (value.kind() == Scalar::Kind::UInt) return std::cmp_greater(value.to<uint64_t>(), Limits::max());
  const int64_t whole = value.to<int64_t>();
  return std::cmp_less(whole, Limits::lowest()) ? -1 : std::cmp_greater(whole, Limits::max());
}

std::string text_of(const Scalar& value) {
  if (value.is_complex()) return detail::concat("(", value.to_double(), ", ", value.imag(), ")");
  if (value.kind() == Scalar::Kind::UInt) return std::to_string(value.to<uint64_t>());
  return value.is_integral() ? std::to_string(value.to<int64_t>()) : detail::concat(value.to_double());
}

/// A count of that dtype that shifts every bit out.
Tensor all_bits(DType dtype) {
  const Tensor count = empty(Shape{}, dtype);
  store_scalar(count.bytes(), dtype, 64);
  return count;
}

/// The end of the dtype's range on one side, as a number of that dtype.
Tensor end_of(DType dtype, bool upper) {
  return visit_dtype(dtype, [&]<class T>() -> Tensor {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      using Limits = std::numeric_limits<T>;
      if constexpr (std::is_same_v<T, uint64_t>) return Tensor(Scalar(upper ? Limits::max() : uint64_t(0)));
      else return Tensor(Scalar(int64_t(upper ? Limits::max() : Limits::lowest())));
    } else {
      return Tensor(Scalar(upper));
    }
  });
}
const Tensor& bound_of(const char* op, const char* argument, const Tensor& bound, const Tensor& self, bool upper,
                       Tensor& room) {
  if (!bound.is_wrapped_number() || !is_integral(bound.dtype()) || !is_integral(self.dtype())) return bound;
  const Scalar value = scalar_of(bound);
  const int side = side_of(value, self.dtype());
  if (side == 0) return bound;
  if ((side > 0) != upper) out_of_range(op, argument, value, self.dtype());
  return room = end_of(self.dtype(), upper);
}

}  // namespace

void out_of_range(const char* op, const char* argument, const Scalar& value, DType dtype) {
  fail(ErrorKind::Overflow, op, ": argument '", argument, "' is ", text_of(value), ", out of range for dtype ",
       name(dtype));
}
int side_of(const Scalar& value, DType dtype) {
  return visit_dtype(dtype, [&]<class T>() -> int {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) return side_in<T>(value);
    else return 0;
  });
}

static void check_floating(const char* op, const char* argument, const Scalar& value, DType dtype) {
  const bool infinite = dtype == DType::Float8E5M2 || !is_float8(dtype);
  const auto fits = [&](double part) {
    return !(std::abs(part) > largest_of(dtype)) || (infinite && std::isinf(part));
  };
  if (!fits(value.to_double()) || !fits(value.imag())) out_of_range(op, argument, value, dtype);
}
void check_number_slow(const char* op, const char* argument, const Scalar& value, DType dtype) {
  if (dtype == DType::Bool) return;
  if (!is_complex(dtype) && value.is_complex()) {
    check(value.imag() == 0, ErrorKind::Runtime, op, ": argument '", argument, "' is the complex ", text_of(value),
          ", which cannot be stored into dtype ", name(dtype), ": it has an imaginary part");
    return check_number_slow(op, argument, Scalar(value.to_double()), dtype);
  }
  if (!is_integral(dtype)) return check_floating(op, argument, value, dtype);
  check(std::isfinite(value.to_double()), ErrorKind::Overflow, op, ": argument '", argument, "' is ", value.to_double(),
        ", which no integer dtype can hold, found dtype ", name(dtype));
  const int side = side_of(value, dtype);
  if (side == 0) return;
  const bool complement = side < 0 && value.is_integral() && !is_signed(dtype) &&
                          (dtype == DType::UInt64 || side_of(Scalar(-value.to<int64_t>()), dtype) == 0);
  if (!complement) out_of_range(op, argument, value, dtype);
}
void check_wrapped_slow(const char* op, const char* argument, const Tensor& value, DType dtype) {
  check_number_slow(op, argument, scalar_of(value), dtype);
}
void check_exact_slow(const char* op, const char* argument, const Tensor& value, DType dtype) {
  const Scalar number = scalar_of(value);
  if (side_of(number, dtype) != 0) out_of_range(op, argument, number, dtype);
}

Scalar rounded_slow(const Scalar& number, DType dtype) {
  if (number.is_complex() || !(std::abs(number.to_double()) <= largest_of(dtype))) return number;
  const float value = float(number.to_double());
  return Scalar(double(dtype == DType::Float16 ? float(Half(value)) : float(BFloat16(value))));
}
const Tensor& rounded_slow(const Tensor& number, const Tensor& beside, Tensor& room) {
  const DType dtype = beside.dtype();
  if (number.is_wrapped_number())
    return surely_fits(number, dtype) ? room = Tensor(rounded_slow(scalar_of(number), dtype)) : number;
  const bool meets = beside.dim() != 0 && number.dtype() != dtype && is_floating(number.dtype());
  return meets ? room = ops::to_dtype(number, dtype) : number;
}
const Tensor& compared_slow(const Tensor& number, const Tensor& beside, Tensor& room) {
  if (!is_integral(number.dtype()) || beside.is_wrapped_number()) return number;
  const int side = side_of(scalar_of(number), beside.dtype());
  return side == 0 ? number : room = Tensor(side > 0 ? INFINITY : -INFINITY);
}
const Tensor& upper_bound(const char* op, const Tensor& bound, const Tensor& self, Tensor&& room) {
  return bound_of(op, "max", bound, self, true, room);
}
const Tensor& lower_bound(const char* op, const Tensor& bound, const Tensor& self, Tensor&& room) {
  return bound_of(op, "min", bound, self, false, room);
}
const Tensor& shift_count(const Tensor& count, Tensor&& room) {
  if (count.dim() != 0 || !is_integral(count.dtype()) || count.device().backend != kCPU || is_carrier(count))
    return count;
  const Scalar bits = scalar_of(count);
  if (bits.to<uint64_t>() <= 64) return count;
  return room = count.is_wrapped_number() ? Tensor(64) : all_bits(count.dtype());
}

}  // namespace taeda::infer
