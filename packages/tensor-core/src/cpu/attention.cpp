// CPU kernels of the attention family.
//
// Note [Attention in blocks]
// A block is some rows of queries of one head, against all keys that they may see. Its scores are made, turned into
// weights and used while they are in the cache; what is kept of a row is the logarithm of its sum of exponentials, from
// which backward makes the same weights again. Forward shares blocks out among threads; backward shares heads, because
// the blocks of a head add to the same gradients of keys and values, in order.
#include "taeda/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "cpu/blas.h"
#include "cpu/loops/layers.h"
#include "cpu/loops/softmax.h"
#include "cpu/prepare.h"
#include "infer/dtypes.h"
#include "taeda/elementwise.h"
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

/// The four dimensions, and the operands ready for products.
template <class T>
struct Attention {
  Tensor query, key, value, mask;
  int64_t n, heads, length, places, features, outputs;
  bool causal;
  T scale;

  Attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& attn_mask, bool is_causal, double factor)
      : query(with_rows(q, dtype_of<T>)),
        key(with_rows(k, dtype_of<T>)),
        value(with_rows(v, dtype_of<T>)),
        mask(as_mask(attn_mask, dtype_of<T>)),
        n(q.size(0)),
        heads(q.size(1)),
        length(q.size(2)),
        places(k.size(2)),
        features(q.size(3)),
        outputs(v.size(3)),
        causal(is_causal),
        scale(T(factor)) {}

  /// Few heads are shared out by their blocks, and the products in them too.
  bool few() const { return n * heads < 8; }
  /// c = a @ b + beta * c with a (rows, inner).
  void product(int64_t rows, int64_t columns, int64_t inner, Operand<T> a, Operand<T> b, T beta, T* c,
               int64_t ldc) const {
    few() ? blas::gemm<T>(rows, columns, inner, T(1), a, b, beta, c, ldc)
          : blas::gemm_whole<T>(rows, columns, inner, a, b, beta, c, ldc);
  }
  /// Rows of a block: its scores stay in the cache, and products are worth their call.
  int64_t rows() const {
    const int64_t most = few() ? 128 : 256;
    return std::min(length, std::clamp<int64_t>(65536 / std::max<int64_t>(places, 1), 32, most));
  }
  /// Numbers of scratch for the scores of a block and its queries.
  size_t room() const { return size_t(rows() * (places + features)); }
  int64_t blocks() const { return (length + rows() - 1) / rows(); }
  int64_t work() const { return length * places * (features + outputs); }
  /// Keys that the rows before `end` may see.
  int64_t seen(int64_t end) const { return causal ? std::min(places, end) : places; }

  static T* at(const Tensor& t, int64_t b, int64_t h, int64_t row) {
    return t.data<T>() + b * t.stride(0) + h * t.stride(1) + row * t.stride(2);
  }
  static Operand<T> matrix(const Tensor& t, int64_t b, int64_t h, int64_t row, bool transposed = false) {
    return {at(t, b, h, row), std::max({t.stride(2), t.size(3), int64_t(1)}), transposed};
  }

  /// query key^T * scale + mask of rows [begin, end), each of `keys` numbers; the scaled queries stand behind them.
  void scores(int64_t b, int64_t h, int64_t begin, int64_t end, int64_t keys, T* out) const {
    T* const scaled = out + (end - begin) * keys;
    for (int64_t i = begin; i < end; ++i) {
      const T* const row = at(query, b, h, i);
#pragma GCC ivdep
      for (int64_t j = 0; j < features; ++j) scaled[(i - begin) * features + j] = row[j] * scale;
    }
    product(end - begin, keys, features, {scaled, std::max<int64_t>(features, 1)}, matrix(key, b, h, 0, true), T(0),
            out, keys);
    if (mask.defined())
      mask.dtype() == DType::Bool ? forbid(b, h, begin, end, keys, out) : add(b, h, begin, end, keys, out);
    if (causal)
      for (int64_t i = begin; i < end; ++i)
        for (int64_t j = i + 1; j < keys; ++j) out[(i - begin) * keys + j] = kNever;
  }
  void forbid(int64_t b, int64_t h, int64_t begin, int64_t end, int64_t keys, T* out) const {
    for (int64_t i = begin; i < end; ++i, out += keys) {
      const bool* const allowed = mask.data<bool>() + b * mask.stride(0) + h * mask.stride(1) + i * mask.stride(2);
      for (int64_t j = 0; j < keys; ++j) out[j] = allowed[j * mask.stride(3)] ? out[j] : kNever;
    }
  }
  void add(int64_t b, int64_t h, int64_t begin, int64_t end, int64_t keys, T* out) const {
    for (int64_t i = begin; i < end; ++i, out += keys) {
      const T* const more = at(mask, b, h, i);
      for (int64_t j = 0; j < keys; ++j) out[j] += more[j * mask.stride(3)];
    }
  }
  /// Scores of a row as weights; 0 where nothing may be attended to.
  static void weigh(T* row, int64_t keys, double lse) {
    if (lse == -std::numeric_limits<double>::infinity()) std::fill_n(row, keys, T(0));
    else layers<T>().softmax_scaled(row, lse, 1.0, 0.0, keys, row);
  }
  /// Weights made from a rounded logarithm miss 1 by what it was rounded by, which is much where scores are large.
  static void normalise(T* row, int64_t keys) {
    const double total = layers<T>().row_sum(row, keys);
    const T factor = T(total > 0 ? 1 / total : 1);
#pragma GCC ivdep
    for (int64_t j = 0; j < keys; ++j) row[j] *= factor;
  }

  static constexpr T kNever = -std::numeric_limits<T>::infinity();
};

template <class Body>
void visit_float(DType dtype, const Body& body) {
  if (dtype == DType::Float64) body.template operator()<double>();
  else body.template operator()<float>();
}

template <class T>
void forward(const Attention<T>& s, const Tensor& result, const Tensor& logsumexp) {
  const int64_t rows = s.rows(), blocks = s.blocks(), tasks = s.n * s.heads * blocks;
  const int64_t grain = std::max<int64_t>(1, (int64_t(1) << 17) / std::max<int64_t>(1, s.work() / blocks));
  const Unlocked unlocked(s.n * s.heads * s.work() > blas::kUnlockFlops);
  parallel_for(tasks, grain, [&](int64_t first, int64_t last) {
    const auto scratch = std::make_unique_for_overwrite<T[]>(s.room());
    const auto factors = std::make_unique_for_overwrite<T[]>(size_t(rows));
    const auto exponentials = loops::softmax_table().exponentials[sizeof(T) == 8];
    for (int64_t task = first; task < last; ++task) {
      const int64_t b = task / blocks / s.heads, h = task / blocks % s.heads, begin = task % blocks * rows,
                    end = std::min(s.length, begin + rows), keys = s.seen(end);
      s.scores(b, h, begin, end, keys, scratch.get());
      T* const lse = logsumexp.data<T>() + (b * s.heads + h) * s.length;
      for (int64_t i = begin; i < end; ++i) {
        T* const row = scratch.get() + (i - begin) * keys;
        double sum = 1;
        const double top = keys ? exponentials(row, keys, &sum) : double(s.kNever);
        const bool nothing = top == double(s.kNever);  // may be attended to
        if (nothing) std::fill_n(row, keys, T(0));
        lse[i] = nothing ? s.kNever : T(top + std::log(sum));
        factors[size_t(i - begin)] = T(nothing ? 1 : 1 / sum);
      }
      s.product(end - begin, s.outputs, keys, {scratch.get(), keys}, s.matrix(s.value, b, h, 0), T(0),
                s.at(result, b, h, begin), result.stride(2));
      for (int64_t i = begin; i < end; ++i) {
        T* const row = s.at(result, b, h, i);
        const T factor = factors[size_t(i - begin)];
#pragma GCC ivdep
        for (int64_t j = 0; j < s.outputs; ++j) row[j] *= factor;
      }
    }
  });
}

void fused_attention_kernel(const Tensor& result, const Tensor& logsumexp, const Tensor& query, const Tensor& key,
                            const Tensor& value, const Tensor& attn_mask, bool is_causal, double scale) {
  const DType dtype = infer::statistics_dtype(query.dtype());
  const bool fits = result.dtype() == dtype && has_rows(result);
  const Tensor place = fits ? result : empty(result.sizes(), dtype);
  const cpu::Target sums(logsumexp, dtype);
  visit_float(dtype, [&]<class T>() {
    forward(Attention<T>(query, key, value, attn_mask, is_causal, scale), place, sums.tensor());
  });
  if (!fits) ops::copy_(result, place);
  sums.finish();
}

/// Zeros in the layout of `t` where that is dense with unit stride, else row-major: what gradients are added to.
Tensor zeros_for(const Tensor& t, DType dtype) {
  const Tensor made = t.dense() && has_rows(t) ? empty_strided(t.sizes(), t.strides(), dtype) : empty(t.sizes(), dtype);
  std::fill_n(static_cast<char*>(made.bytes()), size_t(made.numel() * made.item_bytes()), char(0));
  return made;
}

template <class T>
struct Gradients {
  Tensor grad, result, lse, query, key, value;  // the last three are undefined where they are not wanted
};

/// Adds what one head gives.
template <class T>
void backward_head(const Attention<T>& s, const Gradients<T>& g, int64_t b, int64_t h, T* weights, T* slopes) {
  const T* const lse = g.lse.template data<T>() + (b * s.heads + h) * s.length;
  for (int64_t begin = 0, step = s.rows(); begin < s.length; begin += step) {
    const int64_t end = std::min(s.length, begin + step), rows = end - begin, keys = s.seen(end);
    s.scores(b, h, begin, end, keys, weights);
    for (int64_t i = begin; i < end; ++i) {
      T* const row = weights + (i - begin) * keys;
      s.weigh(row, keys, double(lse[i]));
      s.normalise(row, keys);
    }
    const Operand<T> up = s.matrix(g.grad, b, h, begin);
    if (g.value.defined())
      s.product(keys, s.outputs, rows, {weights, keys, true}, up, T(1), s.at(g.value, b, h, 0), g.value.stride(2));
    if (!g.query.defined() && !g.key.defined()) continue;
    s.product(rows, keys, s.outputs, up, s.matrix(s.value, b, h, 0, true), T(0), slopes, keys);
    for (int64_t i = 0; i < rows; ++i) {
      const T* const p = weights + i * keys;
      T* const d = slopes + i * keys;
      // Of the very numbers that it is taken from: where one weight is nearly 1 they cancel to the last digit.
      const T along = blas::dot<T>(keys, p, 1, d, 1);
#pragma GCC ivdep
      for (int64_t j = 0; j < keys; ++j) d[j] = p[j] * (d[j] - along) * s.scale;
    }
    if (g.query.defined())
      s.product(rows, s.features, keys, {slopes, keys}, s.matrix(s.key, b, h, 0), T(0), s.at(g.query, b, h, begin),
                g.query.stride(2));
    if (g.key.defined())
      s.product(keys, s.features, rows, {slopes, keys, true}, s.matrix(s.query, b, h, begin), T(1),
                s.at(g.key, b, h, 0), g.key.stride(2));
  }
}

std::tuple<Tensor, Tensor, Tensor> fused_attention_backward_kernel(const Tensor& grad, const Tensor& query,
                                                                   const Tensor& key, const Tensor& value,
                                                                   const Tensor& attn_mask, const Tensor& result,
                                                                   const Tensor& logsumexp, bool is_causal,
                                                                   double scale, int64_t output_mask) {
  const DType dtype = infer::statistics_dtype(query.dtype());
  const Tensor to_query = output_mask & 1 ? zeros_for(query, dtype) : Tensor(),
               to_key = output_mask & 2 ? zeros_for(key, dtype) : Tensor(),
               to_value = output_mask & 4 ? zeros_for(value, dtype) : Tensor();
  visit_float(dtype, [&]<class T>() {
    const Attention<T> s(query, key, value, attn_mask, is_causal, scale);
    const Gradients<T> g{
        with_rows(grad, dtype), with_rows(result, dtype), cpu::row_major(logsumexp, dtype), to_query, to_key, to_value};
    const Unlocked unlocked(s.n * s.heads * s.work() > blas::kUnlockFlops);
    parallel_for(s.n * s.heads, std::max<int64_t>(1, (int64_t(1) << 17) / std::max<int64_t>(1, s.work())),
                 [&](int64_t first, int64_t last) {
                   const size_t size = s.room();
                   const auto scratch = std::make_unique_for_overwrite<T[]>(2 * size);
                   for (int64_t i = first; i < last; ++i)
                     backward_head(s, g, i / s.heads, i % s.heads, scratch.get(), scratch.get() + size);
                 });
  });
  const auto back = [&](const Tensor& t) {
    return t.defined() && t.dtype() != query.dtype() ? ops::to_dtype(t, query.dtype()) : t;
  };
  return {back(to_query), back(to_key), back(to_value)};
}

const bool registered = [] {
  kernel<op::fused_attention>(kCPU, fused_attention_kernel);
  kernel<op::fused_attention_backward>(kCPU, fused_attention_backward_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
