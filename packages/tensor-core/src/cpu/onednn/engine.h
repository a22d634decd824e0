// oneDNN's engine, a stream per thread, and memory for its scratch space.
#pragma once
#ifdef TAEDA_WITH_ONEDNN
#include <dnnl.hpp>
#include <mutex>

namespace taeda::onednn {

const dnnl::engine& engine();
/// The calling thread's stream.
dnnl::stream& stream();

/// Held while oneDNN builds primitives or its kernels for the first time, which it does under locks of its own; see
/// Note [Locks and fork].
std::unique_lock<std::mutex> building();

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

/// Copies between two layouts of the same values.
void reorder(const dnnl::memory::desc& from, const void* source, const dnnl::memory::desc& to, void* target);

}  // namespace taeda::onednn
#endif
