// Note [Products on tile registers]
// Both operands are laid out in the order in which tiles read them, by all threads; a task then makes the sums of a
// strip of columns of some rows, while the rows stay in the second cache, and rounds them into the result. The order of
// a sum depends on its length alone, so the bits do not depend on the number of threads.
#include "cpu/amx/products.h"

#include <algorithm>

#include "core/fork.h"
#include "cpu/amx/loops.h"
#include "taeda/interrupt.h"
#include "taeda/parallel.h"
#ifdef TAEDA_WITH_ONEDNN
#include "cpu/onednn/engine.h"
#endif

namespace taeda::amx {
namespace {

using blas::Operand;

constexpr int64_t kLongestPart = 1 << 12;  // of the inner dimension, that is laid out at a time
constexpr int64_t kMostLaid = 1 << 22;     // numbers of an operand that are laid out at a time
constexpr int64_t kMostRows = 256;         // of a task
constexpr int64_t kFewColumns = 512;       // by which a left operand is multiplied where it stands
constexpr int64_t kRowsRoom = 1 << 19;     // numbers of its rows, which the second cache holds
constexpr int64_t kTaskWork = 1 << 21;     // multiplications that pay for another thread
constexpr int64_t kLayingWork = 1 << 15;   // numbers to be laid out that do

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

Side side(const Operand<BFloat16>& x) { return {reinterpret_cast<const Half*>(x.data), x.ld, x.transposed}; }

template <class Body>
void each(bool alone, int64_t count, int64_t grain, const Body& body) {
  if (alone) body(int64_t(0), count);
  else parallel_for(count, std::max<int64_t>(1, grain), body);
}

/// Room for blocks of an operand of k numbers each way.
class Room {
 public:
  Room(int64_t blocks, int64_t k)
      : steps_(ceil_div(k, kDeep)), memory_(empty(Shape{blocks * steps_ * kStep}, DType::BFloat16)) {}
  /// Lays out `size` rows or columns; `lay(i, count, to)` those from i on.
  template <class Lay>
  void fill(int64_t size, bool alone, const Lay& lay) {
    each(alone, ceil_div(size, kBlock), kLayingWork / (steps_ * kStep), [&](int64_t begin, int64_t end) {
      lay(begin * kBlock, std::min(size, end * kBlock) - begin * kBlock, at(begin));
    });
  }
  Half* at(int64_t block) const { return reinterpret_cast<Half*>(memory_.data<BFloat16>()) + block * steps_ * kStep; }

 private:
  int64_t steps_;
  Tensor memory_;
};

/// Rows [0, m) of a left operand (m, k).
class Rows {
 public:
  Rows(const Side& a, int64_t m, int64_t k, int64_t columns, bool alone)
      : a_(a),
        steps_(ceil_div(k, kDeep)),
        in_place_(!a.transposed && k % kDeep == 0 && columns <= kFewColumns ? m / kBlock : 0),
        room_(ceil_div(m, kBlock) - in_place_, k) {
    const int64_t from = in_place_ * kBlock;
    room_.fill(m - from, alone,
               [&](int64_t i, int64_t count, Half* to) { lay_left(a.from_row(from + i), count, k, to); });
  }
  /// Rows [begin, end), of whole blocks but for the last, by a block of columns, to `result` from its first row on.
  void multiply_by(const Right& right, int64_t begin, int64_t end, Result result, float* sums) const {
    const int64_t middle = std::clamp(in_place_ * kBlock, begin, end);
    if (begin < middle)
      multiply({a_.data + begin * a_.ld, a_.ld, kDeep, kBlock * a_.ld}, middle - begin, right, steps_, result, sums);
    if (middle == end) return;
    if (result.floats) result.floats += (middle - begin) * result.ld;
    else result.halves += (middle - begin) * result.ld;
    multiply(laid(room_.at(middle / kBlock - in_place_), steps_), end - middle, right, steps_, result, sums);
  }

 private:
  Side a_;
  int64_t steps_, in_place_;  // blocks that are read where they stand
  Room room_;
};

Result result_at(float* c, int64_t ld) { return {c, nullptr, ld, 0, nullptr, false}; }
Result result_at(BFloat16* c, int64_t ld) { return {nullptr, reinterpret_cast<Half*>(c), ld, 0, nullptr, false}; }

/// Columns [0, n) of a right operand (k, n), in strips of a block.
class Strips {
 public:
  /// What several tasks read is laid out beforehand.
  Strips(const Side& b, int64_t n, int64_t k, bool shared, bool alone)
      : b_(b), n_(n), k_(k), shared_(shared), room_(shared ? ceil_div(n, kBlock) : 0, k) {
    if (shared)
      room_.fill(n, alone, [&](int64_t j, int64_t count, Half* to) { lay_right(b.from_column(j), k, count, to); });
  }
  int64_t columns() const { return n_; }
  int64_t count() const { return ceil_div(n_, kBlock); }
  Right at(int64_t strip) const { return {shared_ ? room_.at(strip) : nullptr, b_.from_column(strip * kBlock), k_}; }

 private:
  Side b_;
  int64_t n_, k_;
  bool shared_;
  Room room_;
};

/// The numbers of a run of steps, and the rows of a task, which stay in the cache.
int64_t whole_steps(int64_t k) { return ceil_div(k, kDeep) * kDeep; }
int64_t task_rows(int64_t k) { return std::clamp(kRowsRoom / whole_steps(k) / kBlock * kBlock, kBlock, kMostRows); }

/// c (m, n) = left @ right, summed up in one go.
template <class C>
void multiply_strips(const Rows& left, int64_t m, int64_t k, const Strips& right, Onto onto, C* c, int64_t ldc,
                     bool alone) {
  const int64_t rows = task_rows(k), strips = right.count();
  const auto tasks = [&](int64_t begin, int64_t end) {
    alignas(64) float sums[kMostRows * kBlock];
    for (int64_t task = begin; task < end; ++task) {
      poll_signals();
      const int64_t i = task / strips * rows, strip = task % strips, j = strip * kBlock;
      Result result = result_at(c + i * ldc + j, ldc);
      result.columns = std::min(kBlock, right.columns() - j);
      result.row = onto.row ? onto.row + j : nullptr;
      result.onto = onto.result;
      left.multiply_by(right.at(strip), i, std::min(m, i + rows), result, sums);
    }
  };
  each(alone, ceil_div(m, rows) * strips, kTaskWork / (std::min(m, rows) * kBlock * whole_steps(k)), tasks);
}

/// A product of so short an inner dimension that its sums need not be kept in between.
template <class C>
void multiply_part(int64_t m, int64_t n, int64_t k, Operand<BFloat16> a, Operand<BFloat16> b, Onto onto, C* c,
                   int64_t ldc, bool alone) {
  const int64_t rows = task_rows(k), most = std::max(kMostLaid / whole_steps(k) / rows, int64_t(1)) * rows;
  for (int64_t i = 0; i < m; i += most) {
    const int64_t height = std::min(most, m - i);
    const Rows left(side(a).from_row(i), height, k, n, alone);
    for (int64_t j = 0; j < n; j += most) {
      const Strips right(side(b).from_column(j), std::min(most, n - j), k, height > rows, alone);
      multiply_strips(left, height, k, right, Onto{onto.row ? onto.row + j : nullptr, onto.result}, c + i * ldc + j,
                      ldc, alone);
    }
  }
}

}  // namespace

bool has_tiles() {
#ifdef TAEDA_WITH_ONEDNN
  // oneDNN asks the system for them, and ONEDNN_MAX_CPU_ISA may say that they are not wanted.
  return found_out([] { return built() && onednn::has_isa(dnnl::cpu_isa::avx512_core_amx); });
#else
  return false;
#endif
}

template <class C>
void multiply(int64_t m, int64_t n, int64_t k, Operand<BFloat16> a, Operand<BFloat16> b, Onto onto, C* c, bool alone) {
  if (k <= kLongestPart) return multiply_part(m, n, k, a, b, onto, c, n, alone);
  if constexpr (std::is_same_v<C, float>) {
    for (int64_t p = 0; p < k; p += kLongestPart) {
      const Operand<BFloat16> left{a.data + (a.transposed ? p * a.ld : p), a.ld, a.transposed},
          right{b.data + (b.transposed ? p : p * b.ld), b.ld, b.transposed};
      multiply_part(m, n, std::min(kLongestPart, k - p), left, right, p == 0 ? onto : Onto{nullptr, true}, c, n, alone);
    }
  } else {
    const Tensor sums = empty(Shape{m, n}, DType::Float32);
    multiply(m, n, k, a, b, onto, sums.data<float>(), alone);
    each(alone, m, kLayingWork / n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * n; i < end * n; ++i) c[i] = BFloat16(sums.data<float>()[i]);
    });
  }
}
template void multiply<float>(int64_t, int64_t, int64_t, Operand<BFloat16>, Operand<BFloat16>, Onto, float*, bool);
template void multiply<BFloat16>(int64_t, int64_t, int64_t, Operand<BFloat16>, Operand<BFloat16>, Onto, BFloat16*,
                                 bool);

}  // namespace taeda::amx
