// float32 and bfloat16 matrix products by oneDNN's brgemm on one thread.
#include "cpu/onednn/matmul.h"

#ifdef TAEDA_WITH_ONEDNN
#include <array>
#include <cstring>
#include <memory>
#include <optional>

#include "core/fork.h"
#include "core/quiet.h"
#include "cpu/dense_rows.h"
#include "cpu/one_thread.h"
#include "cpu/onednn/engine.h"

namespace taeda::onednn {
namespace {

using dnnl::memory;

constexpr size_t kPlans = 256;  // that each thread keeps

struct Key {
  int64_t m, n, k, lda, ldb;
  bool ta, tb, accumulate, biased, halves;
  int64_t packed_for = 0;                     // the rows for which the layout of a packed right operand was chosen
  int64_t batch = 0, step_a = 0, step_b = 0;  // many products at once, whose results lie together
  bool rounded = false;                       // halves in the result too
  friend bool operator==(const Key&, const Key&) = default;
  size_t slot() const {
    uint64_t hash = uint64_t(rounded) * 32 + uint64_t(biased) * 16 + uint64_t(halves) * 8 + uint64_t(ta) * 4 +
                    uint64_t(tb) * 2 + accumulate;
    for (int64_t part : {m, n, k, lda, ldb, packed_for, batch, step_a, step_b})
      hash = (hash ^ uint64_t(part)) * 0x9E3779B97F4A7C15ull, hash ^= hash >> 31;
    return size_t(hash % kPlans);
  }
};
/// How products of one kind are computed on this thread. What says where operands lie is made once and pointed to
/// others in each call: making it anew takes as long as a small product.
struct Plan {
  Key key{};
  dnnl::primitive primitive;
  memory::desc a, b, c, row, scratch;
  bool by_gemm = false;  // no brgemm: the routines that signals must not interrupt, see cpu/blas.cpp
  std::array<memory, 5> memories;
  std::array<dnnl_exec_arg_t, 5> arguments;
  int argument_count = 0;

  void take(int number, const memory::desc& desc) {
    memory& one = memories[size_t(argument_count)];
    one = memory(desc, engine(), DNNL_MEMORY_NONE);
    arguments[size_t(argument_count++)] = {number, one.get()};
  }
  /// False where oneDNN cannot.
  bool run(const void* left, const void* right, void* result, void* workspace, const float* added = nullptr) const;
};

memory::desc matrix(int64_t rows, int64_t columns, int64_t ld, bool transposed,
                    memory::data_type type = memory::data_type::f32) {
  return memory::desc({rows, columns}, type, transposed ? memory::dims{1, ld} : memory::dims{ld, 1});
}

/// The same, many times.
memory::desc matrices(int64_t batch, int64_t step, int64_t rows, int64_t columns, int64_t ld, bool transposed,
                      memory::data_type type) {
  return memory::desc({batch, rows, columns}, type, transposed ? memory::dims{step, 1, ld} : memory::dims{step, ld, 1});
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

/// `layout`: of a packed right operand; null leaves it to oneDNN.
std::unique_ptr<Plan> make_plan(const Key& key, const memory::desc* layout) {
  // The primitive then stays on one thread wherever it is called, even in a parallel region.
  const cpu::OneThread scope;
  const std::unique_lock turn = building();
  auto plan = std::make_unique<Plan>();
  plan->key = key;
  const auto type = key.halves ? memory::data_type::bf16 : memory::data_type::f32;
  plan->a = matrix(key.m, key.k, key.lda, key.ta, type);
  if (layout) plan->b = *layout;
  else if (key.packed_for) plan->b = memory::desc({key.k, key.n}, type, memory::format_tag::any);
  else plan->b = matrix(key.k, key.n, key.ldb, key.tb, type);
  const auto result = key.rounded ? type : memory::data_type::f32;
  plan->c = matrix(key.m, key.n, key.n, false, result);
  plan->row = matrix(1, key.n, key.n, false);
  if (key.batch) {
    plan->a = matrices(key.batch, key.step_a, key.m, key.k, key.lda, key.ta, type);
    plan->b = matrices(key.batch, key.step_b, key.k, key.n, key.ldb, key.tb, type);
    plan->c = matrices(key.batch, key.m * key.n, key.m, key.n, key.n, false, result);
  }
  const dnnl::matmul::primitive_desc pd = describe(*plan, key.accumulate);
  plan->b = pd.weights_desc();
  plan->scratch = pd.scratchpad_desc();
  plan->by_gemm = std::strstr(pd.impl_info_str(), "brg") == nullptr;
  plan->primitive = dnnl::matmul(pd);
  plan->take(DNNL_ARG_SRC, plan->a);
  plan->take(DNNL_ARG_WEIGHTS, plan->b);
  plan->take(DNNL_ARG_DST, plan->c);
  plan->take(DNNL_ARG_SCRATCHPAD, plan->scratch);
  if (key.biased) plan->take(DNNL_ARG_BIAS, plan->row);
  return plan;
}

const Plan& plan_of(const Key& key, const memory::desc* layout = nullptr) {
  // On the heap: room for what belongs to a thread is short where libraries are loaded late, and shared with others.
  thread_local const auto plans = std::make_unique<std::array<std::unique_ptr<Plan>, kPlans>>();
  std::unique_ptr<Plan>& place = (*plans)[key.slot()];
  if (!place || !(place->key == key)) place = make_plan(key, layout);
  return *place;
}

dnnl::stream& plain_stream() {
  thread_local dnnl::stream own(engine());
  return own;
}

bool Plan::run(const void* left, const void* right, void* result, void* workspace, const float* added) const {
  const void* const places[] = {left, right, result, workspace, added};
  for (int i = 0; i < argument_count; ++i)
    if (dnnl_memory_set_data_handle(arguments[size_t(i)].memory, const_cast<void*>(places[i])) != dnnl_success)
      return false;
  return dnnl_primitive_execute(primitive.get(), plain_stream().get(), argument_count, arguments.data()) ==
         dnnl_success;
}

/// Workspace of one call on this thread: a block that it keeps, where a small one is enough.
class Workspace {
 public:
  explicit Workspace(const memory::desc& desc) {
    constexpr size_t kMostKept = 1 << 18;
    const size_t size = desc.get_size();
    if (size > kMostKept) {
      own_.emplace(desc);
      return;
    }
    thread_local const auto kept = std::make_unique<std::unique_ptr<Scratch>>();
    thread_local size_t held = 0;
    if (size > held) {
      *kept = std::make_unique<Scratch>(desc);
      held = size;
    }
    if (size) data_ = (*kept)->data();
  }
  void* data() const { return own_ ? own_->data() : data_; }

 private:
  std::optional<Scratch> own_;
  void* data_ = nullptr;
};

void store(const float* from, int64_t m, int64_t n, bool accumulate, float* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i, from += n, c += ldc) {
    if (accumulate)
      for (int64_t j = 0; j < n; ++j) c[j] += from[j];
    else std::memcpy(c, from, size_t(n) * sizeof(float));
  }
}

void store(const BFloat16* from, int64_t m, int64_t n, bool, BFloat16* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i, from += n, c += ldc) std::memcpy(c, from, size_t(n) * sizeof(BFloat16));
}

/// c = a @ b, c += a @ b or c = row + a @ b by the plan of `key`, which is for a dense c.
template <class C>
bool execute(Key key, const memory::desc* layout, const void* a, const void* b, const float* row, C* c, int64_t ldc) {
  try {
    // brgemm writes dense results only: a part of a larger matrix goes through a block of its own.
    const bool dense = ldc == key.n, accumulate = key.accumulate;
    key.accumulate = accumulate && dense;
    key.rounded = std::is_same_v<C, BFloat16>;
    const Plan& plan = plan_of(key, layout);
    if (plan.by_gemm && !key.halves) return false;
    std::optional<Quiet> quiet;
    if (plan.by_gemm) quiet.emplace();
    const Workspace workspace(plan.scratch);
    std::optional<Scratch> block;
    void* const to = dense ? static_cast<void*>(c) : block.emplace(plan.c).data();
    if (!plan.run(a, b, to, workspace.data(), row)) return false;
    if (!dense) store(static_cast<const C*>(to), key.m, key.n, accumulate, c, ldc);
    return true;
  } catch (const dnnl::error&) {
    return false;  // the caller has another routine
  }
}

}  // namespace

bool matmul(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, bool ta, const float* b, int64_t ldb, bool tb,
            bool accumulate, const float* row, float* c, int64_t ldc) {
  return execute({m, n, k, lda, ldb, ta, tb, accumulate, row != nullptr, false}, nullptr, a, b, row, c, ldc);
}
bool matmul(int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t lda, bool ta, const BFloat16* b, int64_t ldb,
            bool tb, bool accumulate, float* c, int64_t ldc) {
  return execute({m, n, k, lda, ldb, ta, tb, accumulate, false, true}, nullptr, a, b, nullptr, c, ldc);
}

bool matmul(int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t lda, bool ta, const BFloat16* b, int64_t ldb,
            bool tb, const float* row, BFloat16* c, int64_t ldc) {
  return execute({m, n, k, lda, ldb, ta, tb, false, row != nullptr, true}, nullptr, a, b, row, c, ldc);
}

template <class C>
bool matmul(int64_t batch, int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t step_a, int64_t lda, bool ta,
            const BFloat16* b, int64_t step_b, int64_t ldb, bool tb, C* c) {
  try {
    Key key{m, n, k, lda, ldb, ta, tb, false, false, true};
    key.batch = batch, key.step_a = step_a, key.step_b = step_b, key.rounded = std::is_same_v<C, BFloat16>;
    const Plan& plan = plan_of(key);
    if (plan.by_gemm) return false;
    const Workspace workspace(plan.scratch);
    return plan.run(a, b, c, workspace.data());
  } catch (const dnnl::error&) {
    return false;
  }
}
template bool matmul(int64_t, int64_t, int64_t, int64_t, const BFloat16*, int64_t, int64_t, bool, const BFloat16*,
                     int64_t, int64_t, bool, float*);
template bool matmul(int64_t, int64_t, int64_t, int64_t, const BFloat16*, int64_t, int64_t, bool, const BFloat16*,
                     int64_t, int64_t, bool, BFloat16*);

struct Packed::State {
  int64_t rows, n, k;
  memory::desc layout;
  Scratch block;

  /// The right operand as oneDNN wants it for `rows` rows; null where it cannot, or has no brgemm for it.
  static std::unique_ptr<State> make(int64_t rows, int64_t n, int64_t k, const void* b, int64_t ldb, bool tb,
                                     bool halves) {
    try {
      Key key{rows, n, k, k, 0, false, false, false, false, halves, rows};
      key.rounded = halves;
      const Plan& plan = plan_of(key);
      if (plan.by_gemm) return nullptr;
      auto made = std::unique_ptr<State>(new State{rows, n, k, plan.b, Scratch(plan.b)});
      const auto type = halves ? memory::data_type::bf16 : memory::data_type::f32;
      reorder(matrix(k, n, ldb, tb, type), b, made->layout, made->block.data());
      return made;
    } catch (const dnnl::error&) {
      return nullptr;
    }
  }
  template <class T, class C>
  bool multiply(int64_t m, const T* a, int64_t lda, bool accumulate, const float* row, C* c, int64_t ldc) const {
    constexpr bool halves = std::is_same_v<T, BFloat16>;
    return execute({m, n, k, lda, 0, false, false, accumulate, row != nullptr, halves, rows}, &layout, a, block.data(),
                   row, c, ldc);
  }
};

Packed::Packed(int64_t rows, int64_t n, int64_t k, const float* b, int64_t ldb, bool tb)
    : state_(State::make(rows, n, k, b, ldb, tb, false)) {}
Packed::Packed(int64_t rows, int64_t n, int64_t k, const BFloat16* b, int64_t ldb, bool tb)
    : state_(State::make(rows, n, k, b, ldb, tb, true)) {}
Packed::Packed(Packed&&) noexcept = default;
Packed::~Packed() = default;

bool Packed::multiply(int64_t m, const float* a, int64_t lda, bool accumulate, const float* row, float* c,
                      int64_t ldc) const {
  return state_->multiply(m, a, lda, accumulate, row, c, ldc);
}
bool Packed::multiply(int64_t m, const BFloat16* a, int64_t lda, bool accumulate, float* c, int64_t ldc) const {
  return state_->multiply(m, a, lda, accumulate, nullptr, c, ldc);
}
bool Packed::multiply(int64_t m, const BFloat16* a, int64_t lda, const float* row, BFloat16* c, int64_t ldc) const {
  return state_->multiply(m, a, lda, false, row, c, ldc);
}

Turned::Turned(int64_t m, int64_t k, const float* from, int64_t ld) {
  try {
    const memory::desc to = matrix(m, k, k, false);
    block_ = std::make_unique<Scratch>(to);
    reorder(matrix(m, k, ld, true), from, to, block_->data());
  } catch (const dnnl::error&) {
    block_.reset();
  }
}
Turned::~Turned() = default;
const float* Turned::data() const { return block_ ? static_cast<const float*>(block_->data()) : nullptr; }

bool has_bfloat16() {
  // Measured: products of bfloat16 on tiles (AMX) are several times as fast as of float32 copies, on vectors faster on
  // AMD's processors and slower on Intel's.
  return found_out([] {
    return has_isa(dnnl::cpu_isa::avx512_core_amx) ||
           (has_isa(dnnl::cpu_isa::avx512_core_bf16) && __builtin_cpu_is("amd"));
  });
}

}  // namespace taeda::onednn

#else
namespace taeda::onednn {
struct Packed::State {};
Packed::Packed(int64_t, int64_t, int64_t, const float*, int64_t, bool) {}
Packed::Packed(int64_t, int64_t, int64_t, const BFloat16*, int64_t, bool) {}
Packed::Packed(Packed&&) noexcept = default;
Packed::~Packed() = default;
bool Packed::multiply(int64_t, const float*, int64_t, bool, const float*, float*, int64_t) const { return false; }
bool Packed::multiply(int64_t, const BFloat16*, int64_t, bool, float*, int64_t) const { return false; }
bool Packed::multiply(int64_t, const BFloat16*, int64_t, const float*, BFloat16*, int64_t) const { return false; }
bool matmul(int64_t, int64_t, int64_t, const BFloat16*, int64_t, bool, const BFloat16*, int64_t, bool, bool, float*,
            int64_t) {
  return false;
}
bool matmul(int64_t, int64_t, int64_t, const BFloat16*, int64_t, bool, const BFloat16*, int64_t, bool, const float*,
            BFloat16*, int64_t) {
  return false;
}
template <class C>
bool matmul(int64_t, int64_t, int64_t, int64_t, const BFloat16*, int64_t, int64_t, bool, const BFloat16*, int64_t,
            int64_t, bool, C*) {
  return false;
}
template bool matmul(int64_t, int64_t, int64_t, int64_t, const BFloat16*, int64_t, int64_t, bool, const BFloat16*,
                     int64_t, int64_t, bool, float*);
template bool matmul(int64_t, int64_t, int64_t, int64_t, const BFloat16*, int64_t, int64_t, bool, const BFloat16*,
                     int64_t, int64_t, bool, BFloat16*);
bool has_bfloat16() { return false; }
bool matmul(int64_t, int64_t, int64_t, const float*, int64_t, bool, const float*, int64_t, bool, bool, const float*,
            float*, int64_t) {
  return false;
}
}  // namespace taeda::onednn
#endif
