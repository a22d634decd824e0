// oneDNN's engine, streams, scratch space.
#include "cpu/onednn/engine.h"

#ifdef TAEDA_WITH_ONEDNN
#include <atomic>
#include <memory>
#include <vector>

#include "core/fork.h"
#include "core/pool.h"
#include "taeda/parallel.h"
#include "taeda/storage.h"

namespace taeda::onednn {

const dnnl::engine& engine() {
  static constinit std::atomic<dnnl::engine*> only{nullptr};  // outlives static destruction
  dnnl::engine* engine = only.load(std::memory_order_acquire);
  if (engine) return *engine;
  auto made = std::make_unique<dnnl::engine>(dnnl::engine::kind::cpu, 0);
  return only.compare_exchange_strong(engine, made.get()) ? *made.release() : *engine;
}

static ForkLock& builder = *new ForkLock;

std::unique_lock<ForkLock> building() {
  load();  // under a lock of its own, which is free again before this one is taken
  return std::unique_lock(builder);
}

dnnl::stream& stream() {
  thread_local dnnl::stream own(engine());
  return own;
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

Scratch::Scratch(const dnnl::memory::desc& desc) : desc_(desc) {
  if (desc.get_size() == 0) return;
  Storage* storage = new_storage(desc.get_size(), Device{}).release();
  storage_ = storage;
  data_ = storage->data;
}
Scratch::~Scratch() {
  if (storage_) Ref<Storage>::adopt(static_cast<Storage*>(storage_)).reset();
}

namespace {

/// How a thread copies from one layout to another: weights of layers, which come again in each step.
struct Copying {
  dnnl::memory::desc from, to, scratch;
  int threads;  // 1 too where it must not use others
  dnnl::reorder primitive;
};

const Copying& copying(const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
  constexpr size_t kMost = 16;
  // On the heap: room for what belongs to a thread is short where libraries are loaded late.
  thread_local const auto known = std::make_unique<std::vector<Copying>>();
  const int threads = alone() > 0 ? 1 : num_threads();
  for (const Copying& one : *known)
    if (one.threads == threads && one.from == from && one.to == to) return one;
  const std::unique_lock turn = building();
  const dnnl::reorder::primitive_desc pd(engine(), from, engine(), to, attributes());
  Copying made{from, to, pd.scratchpad_desc(), threads, dnnl::reorder(pd)};
  if (known->size() == kMost) known->erase(known->begin());
  return known->emplace_back(std::move(made));
}

}  // namespace

void reorder(const dnnl::memory::desc& from, const void* source, const dnnl::memory::desc& to, void* target) {
  const Copying& by = copying(from, to);
  const Scratch scratch(by.scratch);
  by.primitive.execute(stream(), {{DNNL_ARG_FROM, dnnl::memory(from, engine(), const_cast<void*>(source))},
                                  {DNNL_ARG_TO, dnnl::memory(to, engine(), target)},
                                  {DNNL_ARG_SCRATCHPAD, scratch.memory()}});
}

}  // namespace taeda::onednn
#endif
