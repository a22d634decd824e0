// Arithmetic on sizes, strides, offsets and counts of bytes: what leaves 64 bits is an error, never another number.
#pragma once
#include "taeda/error.h"
#include "taeda/small_vec.h"

namespace taeda {

/// Note [Sizes that can be counted]
/// No tensor has more than kMostElements elements, sizes of 0 left aside, whether or not it has memory: the bytes of
/// any tensor in any dtype, products of some of its sizes and sums of a few of them stay within 64 bits, and kernels
/// need not ask. What is computed from numbers that a user gave, or from several tensors, goes through Count.
inline constexpr int64_t kMostElements = (int64_t(1) << 59) - 1;

/// A whole number that remembers whether it was computed within 64 bits.
class Count {
 public:
  constexpr Count(int64_t value) noexcept : value_(value) {}
  friend constexpr Count operator+(Count a, Count b) noexcept {
    Count out(0);
    const bool left = __builtin_add_overflow(a.value_, b.value_, &out.value_);
    return out.after(a, b, left);
  }
  friend constexpr Count operator-(Count a, Count b) noexcept {
    Count out(0);
    const bool left = __builtin_sub_overflow(a.value_, b.value_, &out.value_);
    return out.after(a, b, left);
  }
  friend constexpr Count operator*(Count a, Count b) noexcept {
    Count out(0);
    const bool left = __builtin_mul_overflow(a.value_, b.value_, &out.value_);
    return out.after(a, b, left);
  }
  Count& operator+=(Count b) noexcept { return *this = *this + b; }
  Count& operator*=(Count b) noexcept { return *this = *this * b; }

  constexpr bool fits() const noexcept { return fits_; }
  /// Whether this is exactly `value`.
  constexpr bool is(int64_t value) const noexcept { return fits_ && value_ == value; }
  /// The number; RuntimeError of operator `op` that says what it is of where it left 64 bits.
  template <class... Parts>
  int64_t of(const char* op, const Parts&... what) const {
    if (!fits_) [[unlikely]]
      fail(ErrorKind::Runtime, op, ": ", what..., " cannot be counted in 64 bits");
    return value_;
  }

 private:
  constexpr Count after(Count a, Count b, bool left) const noexcept {
    Count out(value_);
    out.fits_ = a.fits_ && b.fits_ && !left;
    return out;
  }
  int64_t value_;
  bool fits_ = true;
};

/// Number of elements of a shape. Negative sizes are a RuntimeError, more than kMostElements a MemoryError.
TAEDA_API int64_t count_of(IntSpan sizes, const char* op);

}  // namespace taeda
