// CPU kernels of the attention family.
//
// Note [Attention in blocks]
// A block is some rows of queries of one head, against all keys that they may see. Its scores are made, turned into
// weights and used while they are in the cache; what is kept of a row is the logarithm of its sum of exponentials, from
// which backward makes the same weights again. Forward shares blocks out among threads; backward shares heads of keys,
// because the blocks of all queries' heads that attend to one add to the same gradients of keys and values, in order.
//
// bfloat16 operands stay so where the processor multiplies them faster than float32: scores, weights and sums are
// float32, and weights and slopes are rounded to bfloat16 where they are factors of a product.
#include "taeda/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "cpu/blas.h"
#include "cpu/dense_rows.h"
#include "cpu/loops/layers.h"
#include "cpu/loops/softmax.h"
#include "cpu/prepare.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using blas::Operand;
using loops::layers;

bool has_rows(const Tensor& t) {
  return (t.stride(3) == 1 || t.size(3) == 1) && (t.stride(2) >= t.size(3) || t.size(2) == 1);
}
/// `t` in `dtype`, with unit stride in its last dimension and rows that do not overlap.
Tensor with_rows(const Tensor& t, DType dtype) {
  return t.dtype() == dtype && has_rows(t) ? t : cpu::row_major(t, dtype);
}
/// A mask of numbers in the dtype that is computed in.
Tensor as_mask(const Tensor& t, DType dtype) {
  return !t.defined() || t.dtype() == DType::Bool || t.dtype() == dtype ? t : cpu::row_major(t, dtype);
}

/// to[i] = from[i], rounded.
void narrow(const float* from, int64_t n, BFloat16* to) {
  cpu::convert_row(DType::Float32, from, n, DType::BFloat16, to);
}
/// row[j] *= factor.
template <class T>
void multiply(T* row, int64_t n, T factor) {
  cpu::apply_line(cpu::SharedLine::mul, row, n, factor);
}

/// Rows of a block: its scores stay in the cache, and products are worth their call.
int64_t block_rows(int64_t length, int64_t places, int64_t most) {
  return std::min(length, std::clamp<int64_t>(65536 / std::max<int64_t>(places, 1), 32, most));
}
/// Most of them where heads are few, whose blocks and products are shared out, and where they are many.
constexpr int64_t kMostOfFew = 128, kMostOfMany = 256;

/// The four dimensions, and the operands ready for products. T: what is computed in; S: what operands and results are.
template <class T, class S = T>
struct Attention {
  static constexpr bool halves = !std::is_same_v<T, S>;

  Tensor query, key, value, mask;
  int64_t n, heads, shared, group;  // heads of queries, of keys, and of queries for each of keys
  int64_t length, places, features, outputs;
  bool causal, backward;
  T scale;

  Attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& attn_mask, bool is_causal, double factor,
            bool is_backward)
      : query(with_rows(q, dtype_of<S>)),
        key(with_rows(k, dtype_of<S>)),
        value(with_rows(v, dtype_of<S>)),
        mask(as_mask(attn_mask, dtype_of<T>)),
        n(q.size(0)),
        heads(q.size(1)),
        shared(k.size(1)),
        group(shared > 0 ? heads / shared : 0),
        length(q.size(2)),
        places(k.size(2)),
        features(q.size(3)),
        outputs(v.size(3)),
        causal(is_causal),
        backward(is_backward),
        scale(T(factor)) {}

  /// Heads, of which a thread of backward takes those of one group.
  int64_t tasks() const { return n * (backward ? shared : heads); }
  /// Few heads are shared out by their blocks, and the products in them too.
  bool few() const { return tasks() < 8; }
  /// c = a @ b, added to c when `add`, with a (rows, inner); ldc is `columns` for bfloat16 operands.
  void product(int64_t rows, int64_t columns, int64_t inner, Operand<S> a, Operand<S> b, bool add, T* c,
               int64_t ldc) const {
    if constexpr (halves)
      few() ? blas::gemm_bfloat16(rows, columns, inner, a, b, add, c)
            : blas::gemm_whole_bfloat16(rows, columns, inner, a, b, add, c);
    else
      few() ? blas::gemm<T>(rows, columns, inner, T(1), a, b, T(add), c, ldc)
            : blas::gemm_whole<T>(rows, columns, inner, a, b, T(add), c, ldc);
  }
  int64_t rows() const { return block_rows(length, places, few() ? kMostOfFew : kMostOfMany); }
  /// Numbers of scratch for the scores of a block and its queries.
  size_t room() const { return size_t(rows() * (places + features)); }
  int64_t blocks() const { return (length + rows() - 1) / rows(); }
  int64_t work() const { return length * places * (features + outputs); }
  /// Keys that the rows before `end` may see.
  int64_t seen(int64_t end) const { return causal ? std::min(places, end) : places; }

  template <class E = S>
  static E* at(const Tensor& t, int64_t b, int64_t h, int64_t row) {
    return t.data<E>() + b * t.stride(0) + h * t.stride(1) + row * t.stride(2);
  }
  static Operand<S> matrix(const Tensor& t, int64_t b, int64_t h, int64_t row, bool transposed = false) {
    return {at(t, b, h, row), std::max({t.stride(2), t.size(3), int64_t(1)}), transposed};
  }

  /// query key^T * scale + mask of rows [begin, end), each of `keys` numbers; scaled queries may stand behind them.
  void scores(int64_t b, int64_t h, int64_t begin, int64_t end, int64_t keys, T* out) const {
    const int64_t count = end - begin;
    const Operand<S> right = matrix(key, b, h / group, 0, true);
    if constexpr (halves) {
      product(count, keys, features, matrix(query, b, h, begin), right, false, out, keys);
      multiply(out, count * keys, scale);
    } else {
      T* const scaled = out + count * keys;
      // Small products by a transposed operand are quicker if the other one is transposed, too.
      constexpr int64_t small = 160'000;
      const bool turned = count * keys * features <= small;
      for (int64_t i = 0; i < count; ++i) {
        const T* const row = at(query, b, h, begin + i);
        if (turned)
          for (int64_t j = 0; j < features; ++j) scaled[j * count + i] = row[j] * scale;
        else
#pragma GCC ivdep
          for (int64_t j = 0; j < features; ++j) scaled[i * features + j] = row[j] * scale;
      }
      product(count, keys, features, {scaled, std::max<int64_t>(turned ? count : features, 1), turned}, right, false,
              out, keys);
    }
    if (mask.defined())
      mask.dtype() == DType::Bool ? forbid(b, h, begin, end, keys, out) : add(b, h, begin, end, keys, out);
    if (causal)
      for (int64_t i = begin; i + 1 < std::min(end, keys); ++i)
        std::fill(out + (i - begin) * keys + i + 1, out + (i - begin + 1) * keys, kNever);
  }
  void forbid(int64_t b, int64_t h, int64_t begin, int64_t end, int64_t keys, T* out) const {
    const loops::ForbidFn loop = loops::softmax_table().forbid[sizeof(T) == 8];
    const auto allowed = [&](int64_t i) { return reinterpret_cast<const uint8_t*>(at<bool>(mask, b, h, i)); };
    const int64_t step = mask.stride(3);
    if (step == 1 && mask.stride(2) == keys) return loop(out, (end - begin) * keys, allowed(begin), 1);
    for (int64_t i = begin; i < end; ++i, out += keys) loop(out, keys, allowed(i), step);
  }
  void add(int64_t b, int64_t h, int64_t begin, int64_t end, int64_t keys, T* out) const {
    const Loop loop = cpu::row(cpu::SharedLine::add).fn[int(dtype_of<T>)];
    constexpr int64_t item = sizeof(T);
    const auto sum = [&](T* to, int64_t i, int64_t count) {
      char *const place = reinterpret_cast<char*>(to), *const more = reinterpret_cast<char*>(at<T>(mask, b, h, i));
      char* const places[] = {place, place, more};
      const int64_t steps[] = {item, item, mask.stride(3) * item};
      loop(places, steps, count, nullptr);
    };
    if (mask.stride(3) == 1 && mask.stride(2) == keys) return sum(out, begin, (end - begin) * keys);
    for (int64_t i = begin; i < end; ++i, out += keys) sum(out, i, keys);
  }
  /// Scores of a row as weights; 0 where nothing may be attended to.
  static void weigh(T* row, int64_t keys, double lse) {
    if (lse == -std::numeric_limits<double>::infinity()) std::fill_n(row, keys, T(0));
    else layers<T>().softmax_scaled(row, lse, 1.0, 0.0, keys, row);
    // Of float32 numbers, weights made from a rounded logarithm sum up to 1 already.
    if constexpr (std::is_same_v<T, double>) {
      const double total = layers<T>().row_sum(row, keys);
      multiply(row, keys, T(total > 0 ? 1 / total : 1));
    }
  }

  static constexpr T kNever = -std::numeric_limits<T>::infinity();
};

/// Calls `body` with what is computed in and what operands are.
template <class Body>
void visit_float(const Tensor& query, const Tensor& key, const Tensor& value, const Body& body) {
  const int64_t rows =
      block_rows(query.size(2), key.size(2), kMostOfFew);  // that every block but the last has at least
  if (query.dtype() == DType::Float64) body.template operator()<double, double>();
  else if (query.dtype() == DType::BFloat16 && key.dtype() == DType::BFloat16 && value.dtype() == DType::BFloat16 &&
           blas::worth_bfloat16(rows, key.size(2), std::min(query.size(3), value.size(3))))
    body.template operator()<float, BFloat16>();
  else body.template operator()<float, float>();
}

template <class T, class S>
void forward(const Attention<T, S>& s, const Tensor& result, const Tensor& logsumexp) {
  const int64_t rows = s.rows(), blocks = s.blocks(), tasks = s.tasks() * blocks;
  const int64_t grain = std::max<int64_t>(1, (int64_t(1) << 17) / std::max<int64_t>(1, s.work() / blocks));
  const Unlocked unlocked(s.n * s.heads * s.work() > blas::kUnlockFlops);
  parallel_for(tasks, grain, [&](int64_t first, int64_t last) {
    const auto scratch = std::make_unique_for_overwrite<T[]>(s.room());
    const auto factors = std::make_unique_for_overwrite<T[]>(size_t(rows));
    const auto weights = std::make_unique_for_overwrite<S[]>(s.halves ? size_t(rows * s.places) : 0);
    const auto sums = std::make_unique_for_overwrite<T[]>(s.halves ? size_t(rows * s.outputs) : 0);
    const loops::WeighFn weigh = loops::softmax_table().weigh[sizeof(T) == 8];
    for (int64_t task = first; task < last; ++task) {
      const int64_t b = task / blocks / s.heads, h = task / blocks % s.heads, begin = task % blocks * rows,
                    end = std::min(s.length, begin + rows), keys = s.seen(end);
      s.scores(b, h, begin, end, keys, scratch.get());
      weigh(scratch.get(), end - begin, keys, logsumexp.data<T>() + (b * s.heads + h) * s.length + begin,
            factors.get());
      const Operand<S> values = s.matrix(s.value, b, h / s.group, 0);
      if constexpr (Attention<T, S>::halves) {
        narrow(scratch.get(), (end - begin) * keys, weights.get());
        s.product(end - begin, s.outputs, keys, {weights.get(), keys}, values, false, sums.get(), s.outputs);
        for (int64_t i = begin; i < end; ++i) {
          T* const row = sums.get() + (i - begin) * s.outputs;
          multiply(row, s.outputs, factors[size_t(i - begin)]);
          narrow(row, s.outputs, s.at(result, b, h, i));
        }
      } else {
        s.product(end - begin, s.outputs, keys, {scratch.get(), keys}, values, false, s.at(result, b, h, begin),
                  result.stride(2));
        for (int64_t i = begin; i < end; ++i) {
          T* const row = s.at(result, b, h, i);
          const T factor = factors[size_t(i - begin)];
#pragma GCC ivdep
          for (int64_t j = 0; j < s.outputs; ++j) row[j] *= factor;
        }
      }
    }
  });
}

void fused_attention_kernel(const Tensor& result, const Tensor& logsumexp, const Tensor& query, const Tensor& key,
                            const Tensor& value, const Tensor& attn_mask, bool is_causal, double scale) {
  visit_float(query, key, value, [&]<class T, class S>() {
    const bool fits = result.dtype() == dtype_of<S> && has_rows(result);
    const Tensor place = fits ? result : empty(result.sizes(), dtype_of<S>);
    const cpu::Target sums(logsumexp, dtype_of<T>);
    forward(Attention<T, S>(query, key, value, attn_mask, is_causal, scale, false), place, sums.tensor());
    if (!fits) ops::copy_(result, place);
    sums.finish();
  });
}

/// Room for a gradient in the layout of `t` where that is dense with unit stride, else row-major.
Tensor room_for(const Tensor& t, DType dtype) {
  return t.dense() && has_rows(t) ? empty_strided(t.sizes(), t.strides(), dtype) : empty(t.sizes(), dtype);
}
/// The same, of zeros that are added to.
Tensor zeros_for(const Tensor& t, DType dtype) {
  const Tensor made = room_for(t, dtype);
  std::fill_n(static_cast<char*>(made.bytes()), size_t(made.numel() * made.item_bytes()), char(0));
  return made;
}

struct Gradients {
  Tensor grad, result, lse, query, key, value;  // the last three are undefined where they are not wanted
};

/// Weights of rows [begin, end) of a head and, where they are wanted, the slopes of its scores.
template <class T, class S>
void weights_and_slopes(const Attention<T, S>& s, const Gradients& g, int64_t b, int64_t h, int64_t begin, int64_t end,
                        int64_t keys, bool with_slopes, T* weights, T* slopes) {
  const T* const lse = g.lse.template data<T>() + (b * s.heads + h) * s.length;
  s.scores(b, h, begin, end, keys, weights);
  for (int64_t i = begin; i < end; ++i) {
    s.weigh(weights + (i - begin) * keys, keys, double(lse[i]));
  }
  if (!with_slopes) return;
  s.product(end - begin, keys, s.outputs, s.matrix(g.grad, b, h, begin), s.matrix(s.value, b, h / s.group, 0, true),
            false, slopes, keys);
  for (int64_t i = 0; i < end - begin; ++i) {
    const T* const p = weights + i * keys;
    T* const d = slopes + i * keys;
    // Of the very numbers that it is taken from: where one weight is nearly 1 they cancel to the last digit.
    const T along = blas::dot<T>(keys, p, 1, d, 1);
#pragma GCC ivdep
    for (int64_t j = 0; j < keys; ++j) d[j] = p[j] * (d[j] - along) * s.scale;
  }
}

/// Adds what one head gives.
template <class T>
void backward_head(const Attention<T>& s, const Gradients& g, int64_t b, int64_t h, T* weights, T* slopes) {
  const int64_t shared = h / s.group;
  for (int64_t begin = 0, step = s.rows(); begin < s.length; begin += step) {
    const int64_t end = std::min(s.length, begin + step), rows = end - begin, keys = s.seen(end);
    weights_and_slopes(s, g, b, h, begin, end, keys, g.query.defined() || g.key.defined(), weights, slopes);
    if (g.value.defined())
      s.product(keys, s.outputs, rows, {weights, keys, true}, s.matrix(g.grad, b, h, begin), true,
                s.at(g.value, b, shared, 0), g.value.stride(2));
    if (g.query.defined())
      s.product(rows, s.features, keys, {slopes, keys}, s.matrix(s.key, b, shared, 0), false,
                s.at(g.query, b, h, begin), g.query.stride(2));
    if (g.key.defined())
      s.product(keys, s.features, rows, {slopes, keys, true}, s.matrix(s.query, b, h, begin), true,
                s.at(g.key, b, shared, 0), g.key.stride(2));
  }
}

/// Scratch of a thread for the gradients of a group of heads of bfloat16 numbers.
struct HalfRoom {
  std::unique_ptr<BFloat16[]> factors;
  std::unique_ptr<float[]> query, key, value;
  explicit HalfRoom(const Attention<float, BFloat16>& s)
      : factors(std::make_unique_for_overwrite<BFloat16[]>(size_t(s.rows() * s.places))),
        query(std::make_unique_for_overwrite<float[]>(size_t(s.rows() * s.features))),
        key(std::make_unique_for_overwrite<float[]>(size_t(s.places * s.features))),
        value(std::make_unique_for_overwrite<float[]>(size_t(s.places * s.outputs))) {}
};

/// Writes rows [begin, begin + rows) of a head of a gradient.
void write_rounded(const Attention<float, BFloat16>& s, const float* from, int64_t rows, const Tensor& to, int64_t b,
                   int64_t h, int64_t begin) {
  for (int64_t i = 0; i < rows; ++i) narrow(from + i * to.size(3), to.size(3), s.at(to, b, h, begin + i));
}

/// Writes the gradient of one head of queries, and adds what it gives to those of keys and values in `room`.
void backward_head(const Attention<float, BFloat16>& s, const Gradients& g, int64_t b, int64_t h, float* weights,
                   float* slopes, const HalfRoom& room) {
  for (int64_t begin = 0, step = s.rows(); begin < s.length; begin += step) {
    const int64_t end = std::min(s.length, begin + step), rows = end - begin, keys = s.seen(end);
    weights_and_slopes(s, g, b, h, begin, end, keys, g.query.defined() || g.key.defined(), weights, slopes);
    BFloat16* const factors = room.factors.get();
    if (g.value.defined()) {
      narrow(weights, rows * keys, factors);
      s.product(keys, s.outputs, rows, {factors, keys, true}, s.matrix(g.grad, b, h, begin), true, room.value.get(),
                s.outputs);
    }
    if (g.query.defined() || g.key.defined()) narrow(slopes, rows * keys, factors);
    if (g.query.defined()) {
      s.product(rows, s.features, keys, {factors, keys}, s.matrix(s.key, b, h / s.group, 0), false, room.query.get(),
                s.features);
      write_rounded(s, room.query.get(), rows, g.query, b, h, begin);
    }
    if (g.key.defined())
      s.product(keys, s.features, rows, {factors, keys, true}, s.matrix(s.query, b, h, begin), true, room.key.get(),
                s.features);
  }
}

/// Gradients of one head of keys and values, and of the queries that attend to it.
template <class T, class S>
void backward_group(const Attention<T, S>& s, const Gradients& g, int64_t b, int64_t shared, T* weights, T* slopes) {
  for (int64_t h = shared * s.group; h < (shared + 1) * s.group; ++h) backward_head(s, g, b, h, weights, slopes);
}
/// The same: sums of float32 over all blocks, rounded at the end.
void backward_group(const Attention<float, BFloat16>& s, const Gradients& g, int64_t b, int64_t shared, float* weights,
                    float* slopes, const HalfRoom& room) {
  std::fill_n(room.key.get(), s.places * s.features, 0.f);
  std::fill_n(room.value.get(), s.places * s.outputs, 0.f);
  for (int64_t h = shared * s.group; h < (shared + 1) * s.group; ++h) backward_head(s, g, b, h, weights, slopes, room);
  if (g.key.defined()) write_rounded(s, room.key.get(), s.places, g.key, b, shared, 0);
  if (g.value.defined()) write_rounded(s, room.value.get(), s.places, g.value, b, shared, 0);
}

std::tuple<Tensor, Tensor, Tensor> fused_attention_backward_kernel(const Tensor& grad, const Tensor& query,
                                                                   const Tensor& key, const Tensor& value,
                                                                   const Tensor& attn_mask, const Tensor& result,
                                                                   const Tensor& logsumexp, bool is_causal,
                                                                   double scale, int64_t output_mask) {
  Gradients g;
  visit_float(query, key, value, [&]<class T, class S>() {
    const Attention<T, S> s(query, key, value, attn_mask, is_causal, scale, true);
    const auto place = [&](int64_t bit, const Tensor& t) {
      if (!(output_mask & bit)) return Tensor();
      return s.halves ? room_for(t, dtype_of<S>) : zeros_for(t, dtype_of<S>);
    };
    g = {with_rows(grad, dtype_of<S>),
         with_rows(result, dtype_of<S>),
         cpu::row_major(logsumexp, dtype_of<T>),
         place(1, query),
         place(2, key),
         place(4, value)};
    const Unlocked unlocked(s.n * s.heads * s.work() > blas::kUnlockFlops);
    parallel_for(s.tasks(), std::max<int64_t>(1, (int64_t(1) << 17) / std::max<int64_t>(1, s.group * s.work())),
                 [&](int64_t first, int64_t last) {
                   const size_t size = s.room();
                   const auto scratch = std::make_unique_for_overwrite<T[]>(2 * size);
                   T *const weights = scratch.get(), *const slopes = weights + size;
                   if constexpr (Attention<T, S>::halves) {
                     const HalfRoom room(s);
                     for (int64_t i = first; i < last; ++i)
                       backward_group(s, g, i / s.shared, i % s.shared, weights, slopes, room);
                   } else {
                     for (int64_t i = first; i < last; ++i)
                       backward_group(s, g, i / s.shared, i % s.shared, weights, slopes);
                   }
                 });
  });
  const auto back = [&](const Tensor& t) {
    return t.defined() && t.dtype() != query.dtype() ? ops::to_dtype(t, query.dtype()) : t;
  };
  return {back(g.query), back(g.key), back(g.value)};
}

const bool registered = [] {
  kernel<op::fused_attention>(kCPU, fused_attention_kernel);
  kernel<op::fused_attention_backward>(kCPU, fused_attention_backward_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
