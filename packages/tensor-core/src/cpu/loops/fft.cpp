// Fourier transforms of lines by pocketfft: as many lines side by side as a vector register has lanes.
//
// pocketfft (Martin Reinecke and Peter Bell; BSD) is a header; it transforms vectors of lines as it does numbers. What
// stands here brings lines into such vectors and back.
#include "cpu/loops/fft.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

// Functions of one name that are compiled for several instruction sets would become one when linked.
#define TAEDA_JOINED(A, B) A##B
#define TAEDA_NAME_OF(ISA) TAEDA_JOINED(pocketfft_, ISA)
#define pocketfft TAEDA_NAME_OF(TAEDA_ISA)
#define POCKETFFT_CACHE_SIZE 32
#define POCKETFFT_NO_MULTITHREADING
#include <pocketfft.hpp>

#include "cpu/loops/register.h"

namespace taeda::loops::TAEDA_ISA {
namespace {

namespace lib = pocketfft::detail;

// pocketfft names vectors for some processors alone.
template <class T> inline constexpr int kLanes = kRegister / int(sizeof(T));
template <class T> using Lanes = typename Register<T>::type;
template <class T>
inline Lanes<T> read(const T* p) {
  return Lanes<T>(*reinterpret_cast<const typename Loose<T>::type*>(p));
}
template <class T>
inline void write(T* p, Lanes<T> v) {
  *reinterpret_cast<typename Loose<T>::type*>(p) = typename Loose<T>::type(v);
}

/// What each lane of a mixture of two vectors is taken from, by a rule; the second vector's lanes count on.
template <class T, class Rule, size_t... K>
inline Lanes<T> mix(Lanes<T> a, Lanes<T> b, Rule, std::index_sequence<K...>) {
  return __builtin_shufflevector(a, b, Rule::at(int(K))...);
}
template <class T, class Rule>
inline Lanes<T> mix(Lanes<T> a, Lanes<T> b) {
  return mix<T>(a, b, Rule(), std::make_index_sequence<size_t(kLanes<T>)>());
}
/// Groups of `Unit` lanes whose number has the bit `Step` change places between two rows.
template <int Lane, int Unit, int Step, bool High>
struct Exchange {
  static constexpr int at(int k) {
    const bool set = (k / Unit) & Step;
    return High ? (set ? Lane + k : k + Step * Unit) : (set ? Lane + k - Step * Unit : k);
  }
};
template <int Lane, int Odd>
struct Unzip {
  static constexpr int at(int k) { return 2 * k + Odd; }
};
template <int Lane, int Half>
struct Zip {
  static constexpr int at(int k) { return (k & 1 ? Lane : 0) + Half * Lane / 2 + k / 2; }
};

/// Transposes a square of groups of `Unit` lanes.
template <class T, int Unit, int Step = kLanes<T> / Unit / 2>
inline void transpose(Lanes<T>* rows) {
  constexpr int lanes = kLanes<T>, size = lanes / Unit;
  if constexpr (Step > 0) {
    for (int i = 0; i < size; ++i) {
      if (i & Step) continue;
      const Lanes<T> a = rows[i], b = rows[i + Step];
      rows[i] = mix<T, Exchange<lanes, Unit, Step, false>>(a, b);
      rows[i + Step] = mix<T, Exchange<lanes, Unit, Step, true>>(a, b);
    }
    transpose<T, Unit, Step / 2>(rows);
  }
}

/// The lines that lie side by side in vectors: `count` of them, the rest of the lanes repeats the last.
template <class T>
struct Group {
  static constexpr int lanes = kLanes<T>;
  int64_t at[kLanes<T>];
  int64_t step;
  int count;
  bool adjacent;  // lane by lane the next element in memory
  Group(const int64_t* places, int n, int64_t step) : step(step), count(n), adjacent(n == lanes) {
    for (int j = 0; j < lanes; ++j) {
      at[j] = places[std::min(j, n - 1)];
      adjacent &= at[j] == at[0] + j;
    }
  }
};

/// Points [first, first + points) of complex lines into pairs of vectors.
template <class T>
void load_complex(Lanes<T>* to, const T* in, const Group<T>& g, int64_t first, int64_t points) {
  constexpr int lanes = kLanes<T>, tile = lanes / 2;
  int64_t i = 0;
  if (g.adjacent) {
    for (; i < points; ++i) {
      const T* p = in + 2 * (g.at[0] + (first + i) * g.step);
      const Lanes<T> a = read(p), b = read(p + lanes);
      to[2 * i] = mix<T, Unzip<lanes, 0>>(a, b);
      to[2 * i + 1] = mix<T, Unzip<lanes, 1>>(a, b);
    }
    return;
  }
  if (g.step == 1 && tile > 1) {
    for (; i + tile <= points; i += tile) {
      Lanes<T> low[tile], high[tile];
      for (int j = 0; j < tile; ++j) low[j] = read(in + 2 * (g.at[j] + first + i));
      for (int j = 0; j < tile; ++j) high[j] = read(in + 2 * (g.at[tile + j] + first + i));
      transpose<T, 2>(low);
      transpose<T, 2>(high);
      for (int k = 0; k < tile; ++k) {
        to[2 * (i + k)] = mix<T, Unzip<lanes, 0>>(low[k], high[k]);
        to[2 * (i + k) + 1] = mix<T, Unzip<lanes, 1>>(low[k], high[k]);
      }
    }
  }
  for (; i < points; ++i)
    for (int j = 0; j < lanes; ++j) {
      const T* p = in + 2 * (g.at[j] + (first + i) * g.step);
      to[2 * i][j] = p[0];
      to[2 * i + 1][j] = p[1];
    }
}
template <class T>
void store_complex(T* out, const Lanes<T>* from, const Group<T>& g, int64_t first, int64_t points) {
  constexpr int lanes = kLanes<T>, tile = lanes / 2;
  int64_t i = 0;
  if (g.adjacent) {
    for (; i < points; ++i) {
      T* p = out + 2 * (g.at[0] + (first + i) * g.step);
      write(p, mix<T, Zip<lanes, 0>>(from[2 * i], from[2 * i + 1]));
      write(p + lanes, mix<T, Zip<lanes, 1>>(from[2 * i], from[2 * i + 1]));
    }
    return;
  }
  if (g.step == 1 && tile > 1) {
    for (; i + tile <= points; i += tile) {
      Lanes<T> rows[2][tile];
      for (int k = 0; k < tile; ++k) {
        rows[0][k] = mix<T, Zip<lanes, 0>>(from[2 * (i + k)], from[2 * (i + k) + 1]);
        rows[1][k] = mix<T, Zip<lanes, 1>>(from[2 * (i + k)], from[2 * (i + k) + 1]);
      }
      transpose<T, 2>(rows[0]);
      transpose<T, 2>(rows[1]);
      for (int j = 0; j < g.count; ++j) write(out + 2 * (g.at[j] + first + i), rows[j / tile][j % tile]);
    }
  }
  for (; i < points; ++i)
    for (int j = 0; j < g.count; ++j) {
      T* p = out + 2 * (g.at[j] + (first + i) * g.step);
      p[0] = from[2 * i][j];
      p[1] = from[2 * i + 1][j];
    }
}
template <class T>
void load_real(Lanes<T>* to, const T* in, const Group<T>& g, int64_t points) {
  constexpr int lanes = kLanes<T>;
  int64_t i = 0;
  if (g.adjacent) {
    for (; i < points; ++i) to[i] = read(in + g.at[0] + i * g.step);
    return;
  }
  if (g.step == 1)
    for (; i + lanes <= points; i += lanes) {
      for (int j = 0; j < lanes; ++j) to[i + j] = read(in + g.at[j] + i);
      transpose<T, 1>(to + i);
    }
  for (; i < points; ++i)
    for (int j = 0; j < lanes; ++j) to[i][j] = in[g.at[j] + i * g.step];
}
template <class T>
void store_real(T* out, const Lanes<T>* from, const Group<T>& g, int64_t points) {
  constexpr int lanes = kLanes<T>;
  int64_t i = 0;
  if (g.adjacent) {
    for (; i < points; ++i) write(out + g.at[0] + i * g.step, from[i]);
    return;
  }
  if (g.step == 1)
    for (; i + lanes <= points; i += lanes) {
      Lanes<T> rows[lanes];
      std::copy_n(from + i, lanes, rows);
      transpose<T, 1>(rows);
      for (int j = 0; j < g.count; ++j) write(out + g.at[j] + i, rows[j]);
    }
  for (; i < points; ++i)
    for (int j = 0; j < g.count; ++j) out[g.at[j] + i * g.step] = from[i][j];
}

/// Calls `one` with groups of at most as many lines as there are lanes, and `single` where there is but one.
template <class T, class Many, class Single>
void in_groups(const FftLines& l, Many many, Single single) {
  for (int64_t first = 0; first < l.count; first += kLanes<T>) {
    const int n = int(std::min<int64_t>(kLanes<T>, l.count - first));
    if (n == 1) single(first);
    else many(Group<T>(l.in_at + first, n, l.in_step), Group<T>(l.out_at + first, n, l.out_step));
  }
}

template <class T>
void c2c(const FftLines& l) {
  using Wide = Lanes<T>;
  const auto plan = lib::get_plan<lib::pocketfft_c<T>>(size_t(l.n));
  const T *in = static_cast<const T*>(l.in), scale = T(l.scale);
  T* out = static_cast<T*>(l.out);
  lib::arr<Wide> room(size_t(l.count == 1 ? (2 * l.n + kLanes<T> - 1) / kLanes<T> : 2 * l.n));
  in_groups<T>(
      l,
      [&](const Group<T>& from, const Group<T>& to) {
        load_complex(room.data(), in, from, 0, l.n);
        plan->exec(reinterpret_cast<lib::cmplx<Wide>*>(room.data()), scale, l.forward);
        store_complex(out, room.data(), to, 0, l.n);
      },
      [&](int64_t k) {
        const bool direct = l.out_step == 1;
        auto* line = direct ? reinterpret_cast<lib::cmplx<T>*>(out) + l.out_at[k]
                            : reinterpret_cast<lib::cmplx<T>*>(room.data());
        const auto* source = reinterpret_cast<const lib::cmplx<T>*>(in) + l.in_at[k];
        if (source != line)
          for (int64_t i = 0; i < l.n; ++i) line[i] = source[i * l.in_step];
        plan->exec(line, scale, l.forward);
        if (!direct)
          for (int64_t i = 0; i < l.n; ++i)
            reinterpret_cast<lib::cmplx<T>*>(out)[l.out_at[k] + i * l.out_step] = line[i];
      });
}

/// The numbers above the middle of lines of a real signal's transform: conjugates of those below.
template <class T>
void mirror(T* out, const int64_t* at, int64_t count, int64_t step, int64_t n) {
  for (int64_t j = 0; j < count; ++j)
    for (int64_t k = n / 2 + 1; k < n; ++k) {
      const T* p = out + 2 * (at[j] + (n - k) * step);
      T* q = out + 2 * (at[j] + k * step);
      q[0] = p[0];
      q[1] = -p[1];
    }
}

/// What transforms of real signals have in common, whichever way they go.
template <class T>
struct RealLines {
  explicit RealLines(const FftLines& l)
      : plan(lib::get_plan<lib::pocketfft_r<T>>(size_t(l.n))),
        room(size_t(l.count == 1 ? (l.n + kLanes<T> - 1) / kLanes<T> : l.n)),
        scale(T(l.scale)),
        pairs((l.n - 1) / 2),
        even(l.n % 2 == 0) {}

  /// Lines side by side, and one by itself.
  Lanes<T>* lines() { return room.data(); }
  T* line() { return reinterpret_cast<T*>(room.data()); }
  template <class Line>
  void exec(Line* at, bool forward) const {
    plan->exec(at, scale, forward);
  }

  std::shared_ptr<lib::pocketfft_r<T>> plan;
  lib::arr<Lanes<T>> room;
  T scale;
  int64_t pairs;  // of numbers between the first and the middle one, which even lengths have
  bool even;
};

template <class T>
void r2c(const FftLines& l) {
  using Wide = Lanes<T>;
  const T* const in = static_cast<const T*>(l.in);
  T* const out = static_cast<T*>(l.out);
  RealLines<T> real(l);
  const int64_t pairs = real.pairs;
  const bool even = real.even;
  const auto set = [&](int64_t place, T value) {
    out[2 * place] = value;
    out[2 * place + 1] = 0;
  };
  in_groups<T>(
      l,
      [&](const Group<T>& from, const Group<T>& to) {
        Wide* line = real.lines();  // r0 r1 i1 r2 i2 ..., and the middle one
        load_real(line, in, from, l.n);
        real.exec(line, true);
        for (int j = 0; j < to.count; ++j) set(to.at[j], line[0][j]);
        store_complex(out, line + 1, to, 1, pairs);
        if (even)
          for (int j = 0; j < to.count; ++j) set(to.at[j] + (pairs + 1) * to.step, line[l.n - 1][j]);
      },
      [&](int64_t k) {
        T* line = real.line();
        for (int64_t i = 0; i < l.n; ++i) line[i] = in[l.in_at[k] + i * l.in_step];
        real.exec(line, true);
        set(l.out_at[k], line[0]);
        for (int64_t i = 1; i <= pairs; ++i) std::copy_n(line + 2 * i - 1, 2, out + 2 * (l.out_at[k] + i * l.out_step));
        if (even) set(l.out_at[k] + (pairs + 1) * l.out_step, line[l.n - 1]);
      });
  if (l.full) mirror(out, l.out_at, l.count, l.out_step, l.n);
}

template <class T>
void c2r(const FftLines& l) {
  using Wide = Lanes<T>;
  const T* const in = static_cast<const T*>(l.in);
  T* const out = static_cast<T*>(l.out);
  RealLines<T> real(l);
  const int64_t pairs = real.pairs;
  const bool even = real.even;
  in_groups<T>(
      l,
      [&](const Group<T>& from, const Group<T>& to) {
        Wide* line = real.lines();
        for (int j = 0; j < kLanes<T>; ++j) line[0][j] = in[2 * from.at[j]];
        load_complex(line + 1, in, from, 1, pairs);
        if (even)
          for (int j = 0; j < kLanes<T>; ++j) line[l.n - 1][j] = in[2 * (from.at[j] + (pairs + 1) * from.step)];
        real.exec(line, false);
        store_real(out, line, to, l.n);
      },
      [&](int64_t k) {
        T* line = real.line();
        line[0] = in[2 * l.in_at[k]];
        for (int64_t i = 1; i <= pairs; ++i) std::copy_n(in + 2 * (l.in_at[k] + i * l.in_step), 2, line + 2 * i - 1);
        if (even) line[l.n - 1] = in[2 * (l.in_at[k] + (pairs + 1) * l.in_step)];
        real.exec(line, false);
        for (int64_t i = 0; i < l.n; ++i) out[l.out_at[k] + i * l.out_step] = line[i];
      });
}

}  // namespace

constinit const FftTable fft = {{&c2c<float>, &c2c<double>}, {&r2c<float>, &r2c<double>}, {&c2r<float>, &c2r<double>}};

}  // namespace taeda::loops::TAEDA_ISA
