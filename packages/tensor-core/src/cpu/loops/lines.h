// From the lines of one family (scalar/<family>.inc) to its rows of inner loops, for one instruction set.
//
// To be included once by loops/<family>.cpp, which names TAEDA_ROWS and TAEDA_LINES. A line's cost says how much code
// it is worth: `Light` expressions get a loop for each way that operands lie in memory; `Heavy` ones a single loop over
// contiguous elements, to which others are brought by blocks; what is compiled `Once` has a plain loop for the base
// instruction set. So have the rare dtypes, whatever the cost.
#include <type_traits>

#include "cpu/loops/blocks.h"
#include "cpu/loops/rows.h"
#include "cpu/loops/types.h"
#include "scalar/complex.h"

// Without the instruction the library's function is called, which is slow.
#if defined(__x86_64__) && !defined(__FMA__) && defined(__GNUC__) && !defined(__clang__)
#define TAEDA_CALLS_FMA
#endif

namespace taeda::loops::TAEDA_ISA {
namespace {

enum class Cost { Light, Heavy, Once, LightReal, HeavyReal, HeavyFloat, HeavyWhole };

/// What expressions compute with, for each element type: the type itself, but for complex numbers.
template <class T> struct ValueOf {
  using type = T;
};
template <class R> struct ValueOf<std::complex<R>> {
  using type = Complex<R>;
};
template <class T> using Value = typename ValueOf<T>::type;

template <class V>
constexpr Cost cost_of(Cost cost) {
  constexpr bool floating = is_same<V, float> || is_same<V, double>;
  switch (cost) {
    case Cost::LightReal: return floating || everything ? Cost::Light : Cost::Once;
    case Cost::HeavyReal: return floating ? Cost::Heavy : Cost::Once;
    case Cost::HeavyFloat: return is_same<V, float> ? Cost::Heavy : Cost::Once;
    case Cost::HeavyWhole:
      return floating || everything || is_same<V, int32_t> || is_same<V, int64_t> ? Cost::Heavy : Cost::Once;
    default: return cost;
  }
}
template <class V> inline constexpr bool rare =
    is_same<V, int8_t> || is_same<V, int16_t> || is_same<V, uint16_t> || is_same<V, uint32_t> || is_same<V, uint64_t>;
template <class V>
constexpr bool compiled(Cost cost) {
  return everything || (cost != Cost::Once && !rare<V>);
}

template <class R> inline constexpr DType dtype_of_value = dtype_of<R>;
template <class R> inline constexpr DType dtype_of_value<Complex<R>> = dtype_of<std::complex<R>>;

/// The numbers that a line may use: p, q, r in the computing type, real[...] as they are.
template <class V>
struct Parameters {
  V p, q, r;
  const double* real;
  explicit Parameters(const LoopParams* n) : p(get(n, 0)), q(get(n, 1)), r(get(n, 2)), real(n ? n->real : nullptr) {}
  static V get(const LoopParams* n, int k) {
    if (!n) return V(0);
    if constexpr (is_complex_number<V>) return {typename V::Real(n->real[k]), typename V::Real(n->imag[k])};
    else return n->get<V>(k);
  }
};
/// Of an expression's value: small integers are computed as int, and complex numbers may give real ones.
template <class V, class E>
inline auto result(E value) {
  if constexpr (is_same<E, bool>) return value;
  else if constexpr (is_complex_number<V>) return value;
  else return V(value);
}

// A functor for each line: its domain, its expression there, and elsewhere.
#define TAEDA_FUNCTOR(NAME, COST, OPERANDS, PLAIN, EXPRESSION, EXACT) \
  template <class T>                                                  \
  struct NAME##_line : Parameters<T> {                                \
    using Parameters<T>::p;                                           \
    using Parameters<T>::q;                                           \
    using Parameters<T>::r;                                           \
    using Parameters<T>::real;                                        \
    using Parameters<T>::Parameters;                                  \
    static constexpr Cost cost = cost_of<T>(Cost::COST);              \
    auto plain OPERANDS const { return PLAIN; }                       \
    auto operator() OPERANDS const { return result<T>(EXPRESSION); }  \
    auto exact OPERANDS const { return result<T>(EXACT); }            \
  };
#define TAEDA_UNARY_WHERE(NAME, TYPES, OPERANDS, COST, PLAIN, EXPRESSION, EXACT) \
  TAEDA_FUNCTOR(NAME, COST, (T x), PLAIN, EXPRESSION, EXACT)
#define TAEDA_BINARY_WHERE(NAME, TYPES, OPERANDS, COST, PLAIN, EXPRESSION, EXACT) \
  TAEDA_FUNCTOR(NAME, COST, (T a, T b), PLAIN, EXPRESSION, EXACT)
#define TAEDA_UNARY(NAME, TYPES, OPERANDS, COST, EXPRESSION) TAEDA_FUNCTOR(NAME, COST, (T x), Always(), EXPRESSION, x)
#define TAEDA_BINARY(NAME, TYPES, OPERANDS, COST, EXPRESSION) \
  TAEDA_FUNCTOR(NAME, COST, (T a, T b), Always(), EXPRESSION, a)
#define TAEDA_TERNARY(NAME, TYPES, OPERANDS, COST, EXPRESSION) \
  TAEDA_FUNCTOR(NAME, COST, (T a, T b, T c), Always(), EXPRESSION, a)
#include TAEDA_LINES
#undef TAEDA_UNARY
#undef TAEDA_UNARY_WHERE
#undef TAEDA_BINARY
#undef TAEDA_BINARY_WHERE
#undef TAEDA_TERNARY
#undef TAEDA_FUNCTOR

/// How a value lies in memory. A bool is read as a byte: see Note [Bytes of truth values].
template <class V> using Stored = std::conditional_t<is_same<V, bool>, uint8_t, V>;
template <class V>
inline V value(Stored<V> stored) {
  if constexpr (is_same<V, bool>) return stored != 0;
  else return stored;
}
template <class V>
inline V at(const char* place) {
  return value<V>(*reinterpret_cast<const Stored<V>*>(place));
}

/// The loops of F over operands of type V, one parameter In for each.
template <class F, class V, class... In>
struct Loops {
  using R = std::invoke_result_t<F, In...>;
  static constexpr int operands = sizeof...(In);
  static constexpr bool guarded = !is_same<decltype(std::declval<F>().plain(In()...)), Always>;
  using Index = std::make_index_sequence<operands>;

  static R one(const F& f, const In&... x) {
    if constexpr (guarded) return f.plain(x...) ? f(x...) : f.exact(x...);
    else return f(x...);
  }
  template <size_t... K>
  static void one_by_one(const F& f, char* const* p, const int64_t* s, int64_t n, std::index_sequence<K...>) {
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<R*>(p[0] + i * s[0]) = one(f, at<V>(p[K + 1] + i * s[K + 1])...);
  }
  static void plain_loop(char* const* p, const int64_t* s, int64_t n, const LoopParams* params) {
#ifdef TAEDA_CALLS_FMA
    if constexpr (is_real<V> && F::cost == Cost::Once)
      if (fuses()) return fused_loop(p, s, n, params);
#endif
    one_by_one(F(params), p, s, n, Index());
  }
#ifdef TAEDA_CALLS_FMA
  /// What is compiled once is called where multiply-adds are instructions, too.
  [[gnu::target("avx2,fma"), gnu::flatten]] static void fused_loop(char* const* p, const int64_t* s, int64_t n,
                                                                   const LoopParams* params) {
    one_by_one(F(params), p, s, n, Index());
  }
#endif

  /// Contiguous elements; of an expression that is not right everywhere, at most a block. Flattened, since a loop with
  /// a call of a long expression in it would not vectorise.
  template <size_t... K>
  [[gnu::flatten]] static void contiguous(const F& f, char* const* p, int64_t n, std::index_sequence<K...>) {
    R* const out = reinterpret_cast<R*>(p[0]);
    const Stored<V>* const in[] = {reinterpret_cast<const Stored<V>*>(p[K + 1])...};
    n &= -kMultiple;  // as it is: so the compiler knows
    if constexpr (guarded) {
      int beyond = 0;
      for (int64_t i = 0; i < n; ++i) beyond |= !f.plain(value<V>(in[K][i])...);
      R values[kBlock];
      R* const to = beyond ? values : out;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) to[i] = f(value<V>(in[K][i])...);
      if (beyond) [[unlikely]]
        for (int64_t i = 0; i < n; ++i)
          out[i] = f.plain(value<V>(in[K][i])...) ? values[i] : f.exact(value<V>(in[K][i])...);
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = f(value<V>(in[K][i])...);
    }
  }
  // Not inlined, so that each expression is compiled once for all ways that lead here.
  [[gnu::noinline]] static void body(char* const* p, int64_t n, const LoopParams* params) {
    if constexpr (F::cost == Cost::Heavy || guarded) contiguous(F(params), p, n, Index());
    else straight<0>(F(params), p, n, Index());
  }
  static constexpr Blocks blocks{&body, {sizeof(R), sizeof(In)...}, operands, guarded};
  static void block_loop(char* const* p, const int64_t* s, int64_t n, const LoopParams* params) {
    // So few are sooner computed than brought into a block.
    if (n <= (is_complex_number<V> ? 1 : 4)) return one_by_one(F(params), p, s, n, Index());
    run_blocks(blocks, p, s, n, params);
  }

  /// Which operands are one number is told by the bits of Numbers; the others are contiguous.
  template <unsigned Numbers, size_t... K>
  static void straight(const F& f, char* const* p, int64_t n, std::index_sequence<K...>) {
    R* const out = reinterpret_cast<R*>(p[0]);
    // Bytes may be anything's: were the places read in the loop, they would be read again behind each byte stored.
    const Stored<V>* const in[] = {reinterpret_cast<const Stored<V>*>(p[K + 1])...};
    const Stored<V> first[] = {*in[K]...};
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f(value<V>(Numbers >> K & 1 ? first[K] : in[K][i])...);
  }
  static void light_loop(char* const* p, const int64_t* s, int64_t n, const LoopParams* params) {
    const F f(params);
    unsigned numbers = 0, apart = s[0] != sizeof(R) || (operands > 1 && n == 1);
    for (int k = 0; k < operands; ++k) {
      numbers |= unsigned(s[k + 1] == 0) << k;
      apart |= s[k + 1] != sizeof(V) && s[k + 1] != 0;
    }
    if (!apart) {
      if (numbers == 0) return body(p, n, params);
      if constexpr (operands > 1) {
        if (numbers == 1) return straight<1>(f, p, n, Index());
        if (numbers == 2) return straight<2>(f, p, n, Index());
      }
      if constexpr (operands > 2) {
        if (numbers == 4) return straight<4>(f, p, n, Index());
        if (numbers == 6) return straight<6>(f, p, n, Index());
      }
    }
    if (n > kMultiple) return run_blocks(blocks, p, s, n, params);
    one_by_one(f, p, s, n, Index());
  }

  static constexpr Loop loop = F::cost == Cost::Once               ? &plain_loop
                               : F::cost == Cost::Heavy || guarded ? &block_loop
                                                                   : &light_loop;
};

template <template <class> class F, class T>
constexpr void set_unary(ElementRow& row) {
  using V = Value<T>;
  if constexpr (compiled<V>(F<V>::cost)) {
    using L = Loops<F<V>, V, V>;
    row.set(dtype_of<T>, L::loop, dtype_of_value<typename L::R>);
  }
}
template <template <class> class F, class T>
constexpr void set_binary(ElementRow& row) {
  using V = Value<T>;
  if constexpr (compiled<V>(F<V>::cost)) {
    using L = Loops<F<V>, V, V, V>;
    row.set(dtype_of<T>, L::loop, dtype_of_value<typename L::R>);
  }
}
template <template <class> class F, class T>
constexpr void set_ternary(ElementRow& row) {
  using V = Value<T>;
  if constexpr (compiled<V>(F<V>::cost)) {
    using L = Loops<F<V>, V, V, V, V>;
    row.set(dtype_of<T>, L::loop, dtype_of_value<typename L::R>);
  }
}
template <template <class> class F, class... T>
constexpr ElementRow unary_row(Types<T...>) {
  ElementRow row;
  (set_unary<F, T>(row), ...);
  return row;
}
template <template <class> class F, class... T>
constexpr ElementRow binary_row(Types<T...>) {
  ElementRow row;
  (set_binary<F, T>(row), ...);
  return row;
}
template <template <class> class F, class... T>
constexpr ElementRow ternary_row(Types<T...>) {
  ElementRow row;
  (set_ternary<F, T>(row), ...);
  return row;
}

}  // namespace

extern const ElementRow TAEDA_ROWS[];
constinit const ElementRow TAEDA_ROWS[] = {
#define TAEDA_UNARY(NAME, TYPES, ...) unary_row<NAME##_line>(TYPES{}),
#define TAEDA_BINARY(NAME, TYPES, ...) binary_row<NAME##_line>(TYPES{}),
#define TAEDA_TERNARY(NAME, TYPES, ...) ternary_row<NAME##_line>(TYPES{}),
#define TAEDA_UNARY_WHERE TAEDA_UNARY
#define TAEDA_BINARY_WHERE TAEDA_BINARY
#include TAEDA_LINES
};

}  // namespace taeda::loops::TAEDA_ISA
