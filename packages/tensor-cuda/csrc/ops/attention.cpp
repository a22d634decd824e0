// Attention and its gradients.
#include "kernels/attention.h"

#include <algorithm>
#include <array>

#include "kernels/attention_rows.h"
#include "ops/flash.h"
#include "ops/matrix.h"
#include "ops/read.h"

namespace taeda::cuda {
namespace {

Heads heads_of(const Tensor& t) {
  Heads made{};
  if (!t) return made;
  made.array = t.array();
  for (int d = 0; d < 4; ++d) made.strides[d] = t.stride(d);
  return made;
}
Attended attended(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask) {
  Attended a{};
  a.query = heads_of(query), a.key = heads_of(key), a.value = heads_of(value), a.mask = heads_of(mask);
  a.heads = query.size(1), a.key_heads = key.size(1), a.queries = query.size(2), a.keys = key.size(2);
  a.width = query.size(3), a.value_width = value.size(3);
  return a;
}
/// Blocks for all rows of all heads, and all pieces of what is made.
int64_t blocks(const Tensor& own, int64_t rows, int64_t width) {
  return own.size(0) * own.size(1) * ((rows + kAttentionThreads - 1) / kAttentionThreads) * pieces_of(width);
}
// --- by products of matrices, with scores in memory ---

using Three = std::array<int64_t, 3>;

/// Some samples of (N, H, rows, elements), as a batch of matrices, or of turned ones.
Tensor matrices(const Call& call, const Tensor& t, int64_t first, int64_t samples, bool turned = false) {
  const int64_t step = samples > 1 && t.size(1) == 1 ? t.stride(0) : t.stride(1);
  const Three sizes{samples * t.size(1), t.size(turned ? 3 : 2), t.size(turned ? 2 : 3)};
  return call.view(t, sizes, Three{step, t.stride(turned ? 3 : 2), t.stride(turned ? 2 : 3)}, first * t.stride(0));
}
/// The same where so many heads share one of keys: their rows follow each other in one matrix. Of (N, H, rows,
/// elements) that lie in that order; see in_groups.
Tensor grouped_matrices(const Call& call, const Tensor& t, int64_t first, int64_t samples, int64_t group) {
  if (group == 1) return matrices(call, t, first, samples);
  const Three sizes{samples * (t.size(1) / group), group * t.size(2), t.size(3)};
  return call.view(t, sizes, Three{group * t.stride(1), t.stride(2), t.stride(3)}, first * t.stride(0));
}
/// Row-major where heads are taken together.
Tensor in_groups(const Call& call, const Tensor& t, int64_t group) {
  return group == 1 ? Tensor(t.handle()) : call.rows(t);
}
/// Scores of so many samples at a time, so that they take no more than some memory.
class Portions {
 public:
  Portions(const Attended& a, std::initializer_list<const Tensor*> operands) {
    constexpr int64_t kMostScores = int64_t(1) << 28;
    samples_ = (*operands.begin())->size(0);
    const bool merge = std::ranges::all_of(
        operands, [&](const Tensor* t) { return t->size(1) == 1 || t->stride(0) == t->size(1) * t->stride(1); });
    at_once_ = merge ? std::clamp<int64_t>(kMostScores / (a.heads * a.queries * a.keys), 1, samples_) : 1;
  }
  int64_t at_once() const { return at_once_; }
  template <class Body>
  void each(const Body& body) const {
    for (int64_t n = 0; n < samples_; n += at_once_) body(n, std::min(at_once_, samples_ - n));
  }

 private:
  int64_t samples_, at_once_;
};
/// Scores are worth their memory where there is a library that multiplies, and something to multiply.
bool takes_products(const Attended& a, int dtype) {
  constexpr int64_t kFewest = 64;
  BlasProduct p;
  p.dtype = p.result = dtype;
  return a.queries > 0 && a.keys >= kFewest && a.queries * a.keys >= kFewest * kFewest && a.width > 0 &&
         a.value_width > 0 && own_machine()->driver().can_multiply(p);
}
int score_type(int dtype) { return dtype == TAEDA_FLOAT64 ? TAEDA_FLOAT64 : TAEDA_FLOAT32; }

void attend_by_products(const Call& call, const Attended& a, const Tensor& result, const Tensor& queries,
                        const Tensor& key, const Tensor& value) {
  const int64_t group = a.group();
  const Tensor query = in_groups(call, queries, group);
  const Tensor made = group == 1 || result.contiguous() ? Tensor() : call.empty(result.sizes(), result.dtype());
  const Tensor& out = made ? made : result;
  const Portions portions(a, {&query, &key, &value, &out});
  const int64_t batch = portions.at_once() * a.heads, dtype = query.dtype();
  const Tensor scores = call.empty({batch, a.queries, a.keys}, score_type(int(dtype)));
  const Tensor shares = dtype == scores.dtype() ? Tensor(scores.handle()) : call.empty(scores.sizes(), int(dtype));
  portions.each([&](int64_t n, int64_t samples) {
    const Three sizes{samples * a.key_heads, group * a.queries, a.keys}, strides{group * a.queries * a.keys, a.keys, 1};
    multiply(call, call.view(scores, sizes, strides), grouped_matrices(call, query, n, samples, group),
             matrices(call, key, n, samples, true));
    launch_in<AttentionRows>(call, int(dtype), samples * a.heads * a.queries, a, scores.array(), shares.array(), n);
    multiply(call, grouped_matrices(call, out, n, samples, group), call.view(shares, sizes, strides),
             matrices(call, value, n, samples));
  });
  if (made) call.copy(result, made);
}
void gradients_by_products(const Call& call, const Attended& a, int64_t wanted, const Array& rows) {
  const int64_t group = a.group();
  const Tensor grad = in_groups(call, call.tensor(0), group), query = in_groups(call, call.tensor(1), group),
               key = call.tensor(2), value = call.tensor(3);
  const int dtype = query.dtype();
  const Portions portions(a, {&query, &key, &value, &grad});
  const int64_t batch = portions.at_once() * a.heads;
  const Tensor scores = call.empty({batch, a.queries, a.keys}, score_type(dtype)),
               ups = call.empty(scores.sizes(), scores.dtype());
  const bool same = dtype == scores.dtype();
  const Tensor shares = same ? Tensor(scores.handle()) : call.empty(scores.sizes(), dtype);
  const Tensor slopes = same ? Tensor(ups.handle()) : call.empty(scores.sizes(), dtype);
  Tensor made[3];
  const Tensor* const inputs[] = {&query, &key, &value};
  for (int i = 0; i < 3; ++i)
    if (wanted & 1 << i) made[i] = call.empty(inputs[i]->sizes(), dtype);
  portions.each([&](int64_t n, int64_t samples) {
    const int64_t batch = samples * a.key_heads, rows_each = group * a.queries;
    const Three sizes{batch, rows_each, a.keys}, strides{rows_each * a.keys, a.keys, 1};
    const Three turned{batch, a.keys, rows_each}, turned_strides{rows_each * a.keys, 1, a.keys};
    const Tensor up = grouped_matrices(call, grad, n, samples, group),
                 asked = grouped_matrices(call, query, n, samples, group);
    multiply(call, call.view(scores, sizes, strides), asked, matrices(call, key, n, samples, true));
    if (wanted & 3) multiply(call, call.view(ups, sizes, strides), up, matrices(call, value, n, samples, true));
    launch_in<AttentionSlopes>(call, dtype, samples * a.heads * a.queries, a, scores.array(), ups.array(), rows,
                               shares.array(), slopes.array(), n, int32_t((wanted & 3) != 0), 0);
    if (made[0])
      multiply(call, grouped_matrices(call, made[0], n, samples, group), call.view(slopes, sizes, strides),
               matrices(call, key, n, samples));
    if (made[1]) multiply(call, matrices(call, made[1], n, samples), call.view(slopes, turned, turned_strides), asked);
    if (made[2]) multiply(call, matrices(call, made[2], n, samples), call.view(shares, turned, turned_strides), up);
  });
  for (int i = 0; i < 3; ++i)
    if (made[i]) call.result(i, std::move(made[i]));
}

void fused_attention(const Call& call) {
  const Tensor out = call.output(0), lse = call.output(1);
  const Tensor query = call.tensor(0), key = call.tensor(1), value = call.tensor(2), mask = call.tensor(3);
  const Target to_lse(call, lse);
  Attended a = attended(query, key, value, mask);
  a.result = heads_of(out), a.logsumexp = to_lse.array();
  a.causal = call.flag(4), a.scale = call.real(5);
  const AttentionOperands operands{query, key, value, mask, a.causal != 0, a.scale};
  if (a.logsumexp.dtype == TAEDA_FLOAT32 && takes_flash(call, operands))
    flash_attention(call, operands, out, a.logsumexp.data);
  else if (takes_products(a, out.dtype()) && out.numel() > 0) attend_by_products(call, a, out, query, key, value);
  else launch_in<Attention>(call, out.dtype(), blocks(query, a.queries, a.value_width), a);
  to_lse.done();
}
void fused_attention_backward(const Call& call) {
  const Tensor grad = call.tensor(0), query = call.tensor(1), key = call.tensor(2), value = call.tensor(3),
               mask = call.tensor(4), result = call.tensor(5);
  const int64_t wanted = call.integer(9);
  const int dtype = query.dtype();
  const AttentionOperands operands{query, key, value, mask, call.flag(7), call.real(8)};
  if (takes_flash(call, operands)) {
    const Tensor rows = call.rows(call.tensor(6), TAEDA_FLOAT32);
    return flash_attention_backward(call, operands, grad, result, rows.address(), wanted);
  }
  const Read lse(call, call.tensor(6));
  Attended a = attended(query, key, value, mask);
  a.logsumexp = lse.array();
  a.causal = call.flag(7), a.scale = call.real(8);
  const Tensor shares = call.empty({query.size(0), a.heads, a.queries}, dtype == TAEDA_FLOAT64 ? dtype : TAEDA_FLOAT32);
  if (wanted & 3)
    launch_in<AttentionShares>(call, dtype, shares.numel(), heads_of(grad), heads_of(result), shares.array(), a.heads,
                               a.queries, a.value_width);
  if (takes_products(a, dtype) && query.numel() > 0) return gradients_by_products(call, a, wanted, shares.array());
  const Tensor* const inputs[] = {&query, &key, &value};
  for (int i = 0; i < 3; ++i) {
    if (!(wanted & 1 << i)) continue;
    Tensor made = call.empty(inputs[i]->sizes(), inputs[i]->dtype());
    const int64_t count = made.numel() ? blocks(*inputs[i], inputs[i]->size(2), inputs[i]->size(3)) : 0;
    launch_in<AttentionGradient>(call, dtype, count, a, heads_of(grad), shares.array(), made.array(), Slope(i));
    call.result(i, std::move(made));
  }
}

}  // namespace

const std::vector<Operation>& attention_operations() {
  static const std::vector<Operation> operations{
      {"fused_attention", fused_attention},
      {"fused_attention_backward", fused_attention_backward},
  };
  return operations;
}

}  // namespace taeda::cuda
