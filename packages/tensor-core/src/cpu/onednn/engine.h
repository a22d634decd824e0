// oneDNN's engine, a stream per thread, and memory for its scratch space.
#pragma once
#ifdef TAEDA_WITH_ONEDNN
#include <atomic>
#include <mutex>
#include <string_view>

#include "core/fork.h"
#include "cpu/onednn/library.h"
#include "taeda/error.h"

namespace taeda::onednn {

const dnnl::engine& engine();
/// Whether oneDNN's kernels may use these instructions: the processor has them and ONEDNN_MAX_CPU_ISA lets them.
inline bool has_isa(dnnl::cpu_isa wanted) {
  return (unsigned(dnnl::get_effective_cpu_isa()) & unsigned(wanted)) == unsigned(wanted);
}
/// The calling thread's stream.
dnnl::stream& stream();

/// Held while oneDNN builds primitives or its kernels for the first time, which it does under locks of its own; see
/// Note [Locks and fork].
std::unique_lock<ForkLock> building();

/// User-managed scratch space, so that one primitive may run in several threads at once.
dnnl::primitive_attr attributes();

/// A scratch block from the CPU allocator's cache for the time of one execution.
class Scratch {
 public:
  explicit Scratch(const dnnl::memory::desc& desc);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  void* data() const { return data_; }
  dnnl::memory memory() const { return dnnl::memory(desc_, engine(), data_); }

 private:
  dnnl::memory::desc desc_;
  void* data_ = nullptr;
  void* storage_ = nullptr;
};

/// `data` in the layout of `desc`; a primitive that reads it does not write to it.
inline dnnl::memory wrap(const dnnl::memory::desc& desc, const void* data) {
  return dnnl::memory(desc, engine(), const_cast<void*>(data));
}

/// Whether it is none of oneDNN's reference routines, which take minutes.
template <class Description>
bool is_fast(const Description& pd) {
  return std::string_view(pd.impl_info_str()).find("ref") == std::string_view::npos;
}

/// Note [Kernels that are kept]
/// oneDNN (3.2) keeps the kernels of its "brg" convolutions in a table of the process that only grows: by some 30 KB
/// with each new shape where processors have tiles. Networks have hundreds of shapes, programs with images of ever new
/// sizes any number; from some thousands on, convolutions of bfloat16 and int8 numbers go other ways than oneDNN's.
template <class Description>
bool may_keep_kernels(const Description& pd) {
  static std::atomic<int> kept = 0;
  constexpr int most = 8192;
  const bool keeps = std::string_view(pd.impl_info_str()).find("brg") != std::string_view::npos;
  return !keeps || kept.fetch_add(1) < most;
}

/// Runs `body`, turning oneDNN's exceptions into the library's.
template <class Body>
bool guarded(const char* op, const Body& body) {
  try {
    return body();
  } catch (const dnnl::error& e) {
    fail(ErrorKind::Runtime, op, ": oneDNN failed: ", e.what());
  }
}

/// Copies between two layouts of the same values.
void reorder(const dnnl::memory::desc& from, const void* source, const dnnl::memory::desc& to, void* target);

}  // namespace taeda::onednn
#endif
