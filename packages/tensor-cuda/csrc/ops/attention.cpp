// Attention and its gradients.
#include "kernels/attention.h"

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
  a.heads = query.size(1), a.queries = query.size(2), a.keys = key.size(2);
  a.width = query.size(3), a.value_width = value.size(3);
  return a;
}
/// Blocks for all rows of all heads, and all pieces of what is made.
int64_t blocks(const Tensor& query, int64_t rows, int64_t width) {
  return query.size(0) * query.size(1) * ((rows + kAttentionThreads - 1) / kAttentionThreads) * pieces_of(width);
}
void fused_attention(const Call& call) {
  const Tensor out = call.output(0), lse = call.output(1);
  const Tensor query = call.tensor(0), key = call.tensor(1), value = call.tensor(2), mask = call.tensor(3);
  const Target to_lse(call, lse);
  Attended a = attended(query, key, value, mask);
  a.result = heads_of(out), a.logsumexp = to_lse.array();
  a.causal = call.flag(4), a.scale = call.real(5);
  launch_in<Attention>(call, out.dtype(), blocks(query, a.queries, a.value_width), a);
  to_lse.done();
}
void fused_attention_backward(const Call& call) {
  const Tensor grad = call.tensor(0), query = call.tensor(1), key = call.tensor(2), value = call.tensor(3),
               mask = call.tensor(4), result = call.tensor(5);
  const Read lse(call, call.tensor(6));
  const int64_t wanted = call.integer(9);
  const int dtype = query.dtype();
  Attended a = attended(query, key, value, mask);
  a.logsumexp = lse.array();
  a.causal = call.flag(7), a.scale = call.real(8);
  const Tensor shares = call.empty({query.size(0), a.heads, a.queries}, dtype == TAEDA_FLOAT64 ? dtype : TAEDA_FLOAT32);
  if (wanted & 3)
    launch_in<AttentionShares>(call, dtype, shares.numel(), heads_of(grad), heads_of(result), shares.array(), a.heads,
                               a.queries, a.value_width);
  const Tensor* const inputs[] = {&query, &key, &value};
  for (int i = 0; i < 3; ++i) {
    if (!(wanted & 1 << i)) continue;
    Tensor made = call.empty(inputs[i]->sizes(), inputs[i]->dtype());
    const int64_t count = made.numel() ? blocks(query, inputs[i]->size(2), inputs[i]->size(3)) : 0;
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
