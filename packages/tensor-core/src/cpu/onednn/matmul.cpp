// float32 and bfloat16 matrix products by oneDNN's brgemm on one thread.
#include "cpu/onednn/matmul.h"

#ifdef TAEDA_WITH_ONEDNN
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <unordered_map>

#include "cpu/one_thread.h"
#include "cpu/onednn/engine.h"
#include "core/quiet.h"

namespace taeda::onednn {
namespace {

using dnnl::memory;

struct Key {
  int64_t m, n, k, lda, ldb;
  bool ta, tb, accumulate, biased, halves;
  friend bool operator==(const Key&, const Key&) = default;
  size_t slot() const {
    uint64_t hash = uint64_t(biased) * 16 + uint64_t(halves) * 8 + uint64_t(ta) * 4 + uint64_t(tb) * 2 + accumulate;
    for (int64_t part : {m, n, k, lda, ldb}) hash = (hash ^ uint64_t(part)) * 0x9E3779B97F4A7C15ull, hash ^= hash >> 31;
    return size_t(hash % 64);
  }
};
struct Plan {
  Key key{};
  dnnl::primitive primitive;
  memory::desc a, b, c, row, scratch;
  bool by_gemm = false;  // no brgemm: the routines that signals must not interrupt, see cpu/blas.cpp
};

memory::desc matrix(int64_t rows, int64_t columns, int64_t ld, bool transposed,
                    memory::data_type type = memory::data_type::f32) {
  return memory::desc({rows, columns}, type, transposed ? memory::dims{1, ld} : memory::dims{ld, 1});
}

dnnl::matmul::primitive_desc describe(const Plan& plan, bool accumulate) {
  dnnl::primitive_attr attr = attributes();
  if (accumulate) {
    dnnl::post_ops add;
    add.append_sum(1.f);
    attr.set_post_ops(add);
  }
  if (plan.key.biased) return {engine(), plan.a, plan.b, plan.row, plan.c, attr};
  return {engine(), plan.a, plan.b, plan.c, attr};
}

std::unique_ptr<Plan> make_plan(const Key& key) {
  // The primitive then stays on one thread wherever it is called, even in a parallel region.
  const cpu::OneThread scope;
  const std::unique_lock turn = building();
  auto plan = std::make_unique<Plan>();
  plan->key = key;
  const auto type = key.halves ? memory::data_type::bf16 : memory::data_type::f32;
  plan->a = matrix(key.m, key.k, key.lda, key.ta, type);
  plan->b = matrix(key.k, key.n, key.ldb, key.tb, type);
  plan->c = matrix(key.m, key.n, key.n, false);
  plan->row = matrix(1, key.n, key.n, false);
  const dnnl::matmul::primitive_desc pd = describe(*plan, key.accumulate);
  plan->scratch = pd.scratchpad_desc();
  plan->by_gemm = std::strstr(pd.impl_info_str(), "brg") == nullptr;
  plan->primitive = dnnl::matmul(pd);
  return plan;
}

const Plan& plan_of(const Key& key) {
  // On the heap: room for what belongs to a thread is short where libraries are loaded late, and shared with others.
  thread_local const auto plans = std::make_unique<std::array<std::unique_ptr<Plan>, 64>>();
  std::unique_ptr<Plan>& place = (*plans)[key.slot()];
  if (!place || !(place->key == key)) place = make_plan(key);
  return *place;
}

dnnl::stream& plain_stream() {
  thread_local dnnl::stream own(engine());
  return own;
}

void store(const float* from, int64_t m, int64_t n, bool accumulate, float* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i, from += n, c += ldc) {
    if (accumulate)
      for (int64_t j = 0; j < n; ++j) c[j] += from[j];
    else std::memcpy(c, from, size_t(n) * sizeof(float));
  }
}

/// c = a @ b, c += a @ b or c = row + a @ b, for float32 or (`halves`) bfloat16 operands.
bool multiply(int64_t m, int64_t n, int64_t k, const void* a, int64_t lda, bool ta, const void* b, int64_t ldb, bool tb,
              bool accumulate, const float* row, bool halves, float* c, int64_t ldc) {
  try {
    // brgemm writes dense results only: a part of a larger matrix goes through a block of its own.
    const bool dense = ldc == n;
    const Plan& plan = plan_of(Key{m, n, k, lda, ldb, ta, tb, accumulate && dense, row != nullptr, halves});
    if (plan.by_gemm && !halves) return false;
    std::optional<Quiet> quiet;
    if (plan.by_gemm) quiet.emplace();
    const Scratch scratch(plan.scratch), block(dense ? memory::desc() : plan.c);
    float* const to = dense ? c : static_cast<float*>(block.data());
    std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, memory(plan.a, engine(), const_cast<void*>(a))},
                                              {DNNL_ARG_WEIGHTS, memory(plan.b, engine(), const_cast<void*>(b))},
                                              {DNNL_ARG_DST, memory(plan.c, engine(), to)},
                                              {DNNL_ARG_SCRATCHPAD, scratch.memory()}};
    if (row) arguments.emplace(DNNL_ARG_BIAS, memory(plan.row, engine(), const_cast<float*>(row)));
    plan.primitive.execute(plain_stream(), arguments);
    if (!dense) store(to, m, n, accumulate, c, ldc);
    return true;
  } catch (const dnnl::error&) {
    return false;  // the caller has another routine
  }
}

}  // namespace

bool matmul(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, bool ta, const float* b, int64_t ldb, bool tb,
            bool accumulate, const float* row, float* c, int64_t ldc) {
  return multiply(m, n, k, a, lda, ta, b, ldb, tb, accumulate, row, false, c, ldc);
}
bool matmul(int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t lda, bool ta, const BFloat16* b, int64_t ldb,
            bool tb, bool accumulate, float* c, int64_t ldc) {
  return multiply(m, n, k, a, lda, ta, b, ldb, tb, accumulate, nullptr, true, c, ldc);
}

bool has_bfloat16() {
  static const bool found = [] {
    try {
      const cpu::OneThread scope;
      Plan plan;
      plan.a = plan.b = matrix(64, 64, 64, false, memory::data_type::bf16);
      plan.c = matrix(64, 64, 64, false);
      // Elsewhere oneDNN has reference loops only, slower than products of float32 copies.
      return std::strstr(describe(plan, false).impl_info_str(), "bf16") != nullptr;
    } catch (const dnnl::error&) {
      return false;
    }
  }();
  return found;
}

}  // namespace taeda::onednn

#else
namespace taeda::onednn {
bool matmul(int64_t, int64_t, int64_t, const BFloat16*, int64_t, bool, const BFloat16*, int64_t, bool, bool, float*,
            int64_t) {
  return false;
}
bool has_bfloat16() { return false; }
bool matmul(int64_t, int64_t, int64_t, const float*, int64_t, bool, const float*, int64_t, bool, bool, const float*,
            float*, int64_t) {
  return false;
}
}  // namespace taeda::onednn
#endif
