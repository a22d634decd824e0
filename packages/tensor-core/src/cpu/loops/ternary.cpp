// Inner loops of functions of three operands.
#include <bit>

#include "cpu/loops/loop.h"
#include "cpu/loops/tables.h"

namespace taeda::loops::TAEDA_ISA {
namespace {

template <class T>
struct Addcmul {
  T value;
  explicit Addcmul(const LoopParams* p) : value(p->get<T>(0)) {}
  T operator()(T x, T a, T b) const { return T(x + value * a * b); }
};
template <class T>
struct Addcdiv {
  T value;
  explicit Addcdiv(const LoopParams* p) : value(p->get<T>(0)) {}
  T operator()(T x, T a, T b) const { return T(x + value * a / b); }
};
template <class T>
struct Lerp {
  explicit Lerp(const LoopParams*) {}
  /// From the nearer end, so that weight 1 gives `b` exactly.
  T operator()(T a, T b, T w) const {
    if constexpr (is_complex_v<T>) return a + w * (b - a);
    else return w < T(0.5) ? a + w * (b - a) : b - (b - a) * (T(1) - w);
  }
};
template <class T>
struct Where {
  explicit Where(const LoopParams*) {}
  /// The condition is a bool read as a byte, which vectorises where bool does not.
  T operator()(uint8_t condition, T a, T b) const {
    if constexpr (sizeof(T) == 16) {
      return condition ? a : b;
    } else {
      // By bits: the compiler would sink the loads of `a` and `b` into branches and then not vectorise.
      using U = std::conditional_t<sizeof(T) == 1, uint8_t, std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
      const U mask = U(-U(condition));
      return std::bit_cast<T>(U((std::bit_cast<U>(a) & mask) | (std::bit_cast<U>(b) & U(~mask))));
    }
  }
};

template <class... Ts>
constexpr LoopRow where_row(Types<Ts...>) {
  LoopRow row;
  ((row.fn[int(dtype_of<Ts>)] = &ternary_loop<Where, Ts, uint8_t>), ...);
  return row;
}

constexpr TernaryTable make() {
  TernaryTable t;
  t.rows[kAddcmul] = ternary_row<Addcmul>(Numbers{});
  t.rows[kAddcdiv] = ternary_row<Addcdiv>(Inexact{});
  t.rows[kLerp] = ternary_row<Lerp>(Inexact{});
  t.rows[kWhere] = where_row(All{});
  return t;
}

}  // namespace

constinit const TernaryTable ternary = make();

}  // namespace taeda::loops::TAEDA_ISA
