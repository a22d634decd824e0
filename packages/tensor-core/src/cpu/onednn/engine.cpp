// oneDNN's engine, streams, scratch space.
#include "cpu/onednn/engine.h"

#ifdef TAEDA_WITH_ONEDNN
#include "core/fork.h"
#include "cpu/onednn/threads.h"
#include "taeda/storage.h"

namespace taeda::onednn {

const dnnl::engine& engine() {
  join_threads();
  static auto* only = new dnnl::engine(dnnl::engine::kind::cpu, 0);  // outlives static destruction
  return *only;
}

std::unique_lock<std::mutex> building() {
  static auto* lock = new std::mutex;
  static auto* held = new HeldAtFork(*lock);
  static_cast<void>(held);
  join_threads();
  return std::unique_lock(*lock);
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

void reorder(const dnnl::memory::desc& from, const void* source, const dnnl::memory::desc& to, void* target) {
  dnnl::memory in(from, engine(), const_cast<void*>(source)), out(to, engine(), target);
  std::unique_lock turn = building();
  const dnnl::reorder::primitive_desc pd(engine(), from, engine(), to, attributes());
  const dnnl::reorder primitive(pd);
  turn.unlock();
  const Scratch scratch(pd.scratchpad_desc());
  primitive.execute(stream(), {{DNNL_ARG_FROM, in}, {DNNL_ARG_TO, out}, {DNNL_ARG_SCRATCHPAD, scratch.memory()}});
}

}  // namespace taeda::onednn
#endif
