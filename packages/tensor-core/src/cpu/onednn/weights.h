// Weights of layers in the layouts that oneDNN's primitives want; those that stay the same are reordered once.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/onednn/engine.h"
#include "taeda/derived.h"
#include "taeda/tensor.h"

namespace taeda::onednn {

class Packed;

/// The weight of one layer, in any dtype and layout, for the time of a call.
class Weights {
 public:
  /// What is computed of `frozen` weights is kept beside their storage, see Note [Derived data]; `given` must outlive
  /// this. With `as_it_lies` it is dense, of the dtype that is computed in, and read where it is.
  Weights(const Tensor& given, bool frozen, bool as_it_lies = false);
  ~Weights();
  /// Whether a layout of their own is made once, rather than in each call.
  bool keeps() const { return frozen_; }
  Weights(const Weights&) = delete;
  /// Hands what was computed to the storage. With the host's lock, under which `x.data` and exports are made.
  void keep();

#ifdef TAEDA_WITH_ONEDNN
  /// In the layout and dtype of `wanted`; `plain` describes row-major weights of that dtype, or those that are read as
  /// they lie. Valid as long as this and, where nothing is kept, `space`, which is then filled.
  dnnl::memory in_layout(const dnnl::memory::desc& wanted, const dnnl::memory::desc& plain,
                         std::unique_ptr<Scratch>& space);
#endif

 private:
  const Tensor& given_;
  Tensor plain_;  // row-major in the dtype that is computed in, once needed
  uint32_t version_ = 0;
  bool frozen_, fresh_ = false;
  std::vector<std::shared_ptr<const Packed>> packed_;
};

}  // namespace taeda::onednn
