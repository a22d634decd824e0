// Weights in vendors' layouts, kept beside the storage that they come from.
#include "cpu/onednn/weights.h"

#include <algorithm>
#include <cstring>

#include "cpu/prepare.h"

namespace taeda::onednn {

#ifdef TAEDA_WITH_ONEDNN

/// One layout of them.
struct Packed {
  dnnl::memory::desc desc;
  Ref<Storage> bytes;
};

namespace {

/// All layouts of what one tensor shows of its storage.
struct PackedWeights final : Derived {
  DType dtype;
  int64_t offset;
  Shape sizes, strides;
  std::vector<std::shared_ptr<const Packed>> layouts;

  explicit PackedWeights(const Tensor& t)
      : dtype(t.dtype()), offset(t.storage_offset()), sizes(t.sizes()), strides(t.strides()) {}
  bool of(const Tensor& t) const {
    return dtype == t.dtype() && offset == t.storage_offset() && std::ranges::equal(sizes, t.sizes()) &&
           std::ranges::equal(strides, t.strides());
  }
};
/// Passes and sizes of images may want different layouts; a network with ever new sizes must not keep them all.
constexpr size_t kMostLayouts = 4;

DType dtype_of_layout(const dnnl::memory::desc& layout) {
  switch (layout.get_data_type()) {
    case dnnl::memory::data_type::bf16: return DType::BFloat16;
    case dnnl::memory::data_type::s8: return DType::Int8;
    default: return DType::Float32;
  }
}

}  // namespace

Weights::Weights(const Tensor& given, bool frozen, bool as_it_lies)
    : given_(given), version_(given.version()), frozen_(frozen && may_keep_derived(given)) {
  if (as_it_lies) plain_ = given;
  if (!given.impl()->storage) return;
  const auto kept = std::dynamic_pointer_cast<const PackedWeights>(derived_of(*given.impl()->storage));
  if (kept && kept->of(given)) packed_ = kept->layouts;
}
Weights::~Weights() = default;

dnnl::memory Weights::in_layout(const dnnl::memory::desc& wanted, const dnnl::memory::desc& plain,
                                std::unique_ptr<Scratch>& space) {
  for (const auto& one : packed_)
    if (one->desc == wanted) return wrap(wanted, one->bytes->data);
  const DType dtype = dtype_of_layout(wanted);
  if (!plain_.defined() || plain_.dtype() != dtype) plain_ = cpu::row_major(given_, dtype);
  const bool as_it_is = wanted == plain;
  if (as_it_is && (plain_.same(given_) || !frozen_)) return wrap(plain, plain_.bytes());
  count_derivation();
  if (!frozen_) {
    space = std::make_unique<Scratch>(wanted);
    reorder(plain, plain_.bytes(), wanted, space->data());
    return wrap(wanted, space->data());
  }
  const auto made = std::make_shared<Packed>(Packed{wanted, new_storage(wanted.get_size(), Device{})});
  if (as_it_is) std::memcpy(made->bytes->data, plain_.bytes(), wanted.get_size());
  else reorder(plain, plain_.bytes(), wanted, made->bytes->data);
  packed_.push_back(made);
  fresh_ = true;
  return wrap(wanted, made->bytes->data);
}

void Weights::keep() {
  if (!fresh_) return;
  fresh_ = false;
  const auto kept = std::make_shared<PackedWeights>(given_);
  kept->version = version_;
  kept->layouts.assign(packed_.size() > kMostLayouts ? packed_.end() - kMostLayouts : packed_.begin(), packed_.end());
  for (const auto& one : kept->layouts) kept->nbytes += one->desc.get_size();
  keep_derived(given_, kept);
}

#else
struct Packed {};
Weights::Weights(const Tensor& given, bool frozen, bool) : given_(given), frozen_(frozen) {}
Weights::~Weights() = default;
void Weights::keep() {}
#endif

}  // namespace taeda::onednn
