// Attention of halves on tensor cores.
#include "ops/flash.h"

#include <algorithm>

#include "kernels/flash_gradient.h"
#include "ops/tensor_cores.h"

namespace taeda::cuda {
namespace {

constexpr int64_t kNarrow = 64, kWide = 128;

bool fits(const Tensor& t) { return t.size(3) > 0 && t.size(3) <= kWide && t.size(2) < Seen::kMost; }

Heads heads_of(const Tensor& t) {
  Heads made{};
  if (!t) return made;
  made.array = t.array();
  for (int d = 0; d < 4; ++d) made.strides[d] = t.stride(d);
  return made;
}
/// The first `rows` of each head.
HeadRows rows_of(const Tensor& t, int32_t rows) {
  constexpr int64_t kElements = Chunk<Half>::kElements;
  if (!t) return {};
  const auto whole = [&](int d) { return t.size(d) == 1 || t.stride(d) % kElements == 0; };
  const bool packs = t.stride(3) == 1 && whole(0) && whole(1) && whole(2) && t.size(3) % kElements == 0 &&
                     t.address() % sizeof(Chunk<Half>) == 0;
  return {heads_of(t), rows, int32_t(t.size(3)), packs};
}
Seen seen_of(const AttentionOperands& o) {
  const auto queries = int32_t(o.query.size(2)), keys = int32_t(o.key.size(2));
  const int32_t seen = o.causal ? std::min(keys, queries) : keys;
  return {heads_of(o.mask), int32_t(o.query.size(1)), int32_t(o.query.size(1) / o.key.size(1)), queries, seen, o.causal,
          float(o.scale)};
}
/// Calls `f.template operator()<T, W>()` with the type of the operands and the width that holds their rows.
template <class F>
void with_shape(const AttentionOperands& o, const F& f) {
  const bool half = o.query.dtype() == TAEDA_FLOAT16, narrow = std::max(o.query.size(3), o.value.size(3)) <= kNarrow;
  if (half) narrow ? f.template operator()<Half, kNarrow>() : f.template operator()<Half, kWide>();
  else narrow ? f.template operator()<BFloat16, kNarrow>() : f.template operator()<BFloat16, kWide>();
}
template <class Body>
void launch_rows(const Call& call, const Body& body, const Tensor& of) {
  call.launch(body, of.size(0) * of.size(1) * ((of.size(2) + Body::kOwn - 1) / Body::kOwn));
}

}  // namespace

bool takes_flash(const Call& call, const AttentionOperands& o) {
  const auto near = [&](int d) { return std::abs(o.mask.stride(d)) < Seen::kFarthest; };
  return is_half_type(o.query.dtype()) && fits(o.query) && fits(o.value) && o.query.numel() > 0 &&
         (!o.mask || ((o.mask.dtype() == TAEDA_BOOL || o.mask.dtype() == o.query.dtype()) && near(2) && near(3))) &&
         has_tensor_cores(call.device().index);
}
void flash_attention(const Call& call, const AttentionOperands& o, const Tensor& out, Address logsumexp) {
  const Seen seen = seen_of(o);
  with_shape(o, [&]<class T, int W>() {
    launch_rows(call,
                FlashAttention<T, W>{seen, rows_of(o.query, seen.queries), rows_of(o.key, seen.keys),
                                     rows_of(o.value, seen.keys), rows_of(out, seen.queries), logsumexp},
                o.query);
  });
}
void flash_attention_backward(const Call& call, const AttentionOperands& o, const Tensor& grad, const Tensor& result,
                              Address logsumexp, int64_t wanted) {
  const Seen seen = seen_of(o);
  const Tensor shares = call.empty({o.query.size(0), seen.heads, seen.queries}, TAEDA_FLOAT32);
  Tensor made[3];
  const Tensor* const inputs[] = {&o.query, &o.key, &o.value};
  for (int i = 0; i < 3; ++i)
    if (wanted & 1 << i) made[i] = call.empty(inputs[i]->sizes(), inputs[i]->dtype());
  with_shape(o, [&]<class T, int W>() {
    const HeadRows up = rows_of(grad, seen.queries);
    const FlashShares<T> sums{up, rows_of(result, seen.queries), shares.address(), seen.heads, shares.numel()};
    call.launch(sums, (shares.numel() + FlashShares<T>::kRows - 1) / FlashShares<T>::kRows);
    const HeadRows query = rows_of(o.query, seen.queries), key = rows_of(o.key, seen.keys),
                   value = rows_of(o.value, seen.keys);
    const auto gradient = [&](const Tensor& t) { return rows_of(t, t ? int32_t(t.size(2)) : 0); };
    if (made[0])
      launch_rows(
          call,
          FlashGradient<T, W, true>{seen, query, key, value, up, gradient(made[0]), {}, logsumexp, shares.address()},
          o.query);
    if (made[1] || made[2])
      launch_rows(call,
                  FlashGradient<T, W, false>{seen, query, key, value, up, gradient(made[1]), gradient(made[2]),
                                             logsumexp, shares.address()},
                  o.key);
  });
  for (int i = 0; i < 3; ++i)
    if (made[i]) call.result(i, std::move(made[i]));
}

}  // namespace taeda::cuda
