// Indices as PyTorch writes them in C++: `x.index({Slice(1), None, 0, mask})`. Part of taeda/extension.h.
#pragma once
#include "taeda/extension/operators.h"

namespace taeda {
inline namespace extension_v1 {
namespace indexing {

enum class EllipsisIndexType { Ellipsis };
inline constexpr EllipsisIndexType Ellipsis = EllipsisIndexType::Ellipsis;
inline constexpr std::nullopt_t None = std::nullopt;

/// Every `step`-th place from `start` to `stop`, which may be left open.
class Slice {
 public:
  explicit Slice(std::optional<int64_t> start = std::nullopt, std::optional<int64_t> stop = std::nullopt,
                 std::optional<int64_t> step = std::nullopt)
      : start_(start), stop_(stop), step_(step.value_or(1)) {}
  std::optional<int64_t> start() const { return start_; }
  std::optional<int64_t> stop() const { return stop_; }
  int64_t step() const { return step_; }

 private:
  std::optional<int64_t> start_, stop_;
  int64_t step_;
};

/// One of the indices in a pair of brackets.
class TensorIndex {
 public:
  enum class Kind { kNone, kEllipsis, kPlace, kTruth, kSlice, kTensor };
  TensorIndex(std::nullopt_t) : kind_(Kind::kNone) {}
  TensorIndex(EllipsisIndexType) : kind_(Kind::kEllipsis) {}
  TensorIndex(const char* text) : kind_(Kind::kEllipsis) {
    TAEDA_CHECK(std::string_view(text) == "...", "index: expected \"...\" as a text, got \"", text, "\"");
  }
  template <class T>
    requires std::is_integral_v<T>
  TensorIndex(T place) : kind_(std::is_same_v<T, bool> ? Kind::kTruth : Kind::kPlace), place_(int64_t(place)) {}
  TensorIndex(const Slice& slice) : kind_(Kind::kSlice), slice_(slice) {}
  TensorIndex(const Tensor& tensor) : kind_(Kind::kTensor), tensor_(tensor) {}
  Kind kind() const { return kind_; }
  int64_t place() const { return place_; }
  const Slice& slice() const { return slice_; }
  const Tensor& tensor() const { return tensor_; }

 private:
  Kind kind_;
  int64_t place_ = 0;
  Slice slice_;
  Tensor tensor_;
};

}  // namespace indexing

namespace detail {
/// What is left of indices when places, slices and new dimensions have been taken: a view, and tensors for its first
/// dimensions, undefined where one is kept whole.
struct Indexed {
  Tensor view;
  std::vector<Tensor> tensors;

  Indexed(const Tensor& self, ArrayRef<indexing::TensorIndex> indices) : view(self) {
    const int64_t rank = self.dim(), given = dimensions(indices);
    if (given > rank)
      throw Error(TAEDA_E_INDEX, joined("index: too many indices for tensor of dimension ", rank, ", got ", given));
    int64_t dim = 0;
    for (const auto& index : indices) take(index, dim, rank - given);
  }

 private:
  using Kind = indexing::TensorIndex::Kind;

  static bool is_mask(const Tensor& tensor) { return tensor.scalar_type() == kBool || tensor.scalar_type() == kUInt8; }
  static int64_t dimensions(ArrayRef<indexing::TensorIndex> indices) {
    int64_t count = 0;
    for (const auto& index : indices) {
      if (index.kind() == Kind::kPlace || index.kind() == Kind::kSlice) ++count;
      else if (index.kind() == Kind::kTensor) count += is_mask(index.tensor()) ? index.tensor().dim() : 1;
    }
    return count;
  }
  void take(const indexing::TensorIndex& index, int64_t& dim, int64_t left) {
    switch (index.kind()) {
      case Kind::kNone: view = view.unsqueeze(dim++); break;
      case Kind::kEllipsis: dim += left; break;
      case Kind::kPlace: view = view.select(dim, index.place()); break;
      case Kind::kTruth: masked(dim, full({}, Scalar(bool(index.place())), TensorOptions(kBool))); break;
      case Kind::kSlice:
        view = view.slice(dim++, index.slice().start(), index.slice().stop(), index.slice().step());
        break;
      case Kind::kTensor: take(index.tensor(), dim);
    }
  }
  void take(const Tensor& tensor, int64_t& dim) {
    if (tensor.dim() == 0 && is_mask(tensor)) return masked(dim, tensor);
    if (tensor.dim() == 0) {
      view = view.select(dim, tensor.item<int64_t>());
      return;
    }
    at(dim, tensor);
    dim += is_mask(tensor) ? tensor.dim() : 1;
  }
  /// A truth without dimensions keeps a new dimension, or leaves nothing of it.
  void masked(int64_t& dim, const Tensor& truth) {
    view = view.unsqueeze(dim);
    at(dim++, truth.reshape({1}));
  }
  void at(int64_t dim, const Tensor& tensor) {
    tensors.resize(size_t(dim - below_masks_));
    tensors.push_back(tensor.to(view.device()));
    if (is_mask(tensor)) below_masks_ += tensor.dim() - 1;
  }

  int64_t below_masks_ = 0;  // dimensions that have no tensor of their own, as a mask before them takes them too
};
}  // namespace detail

inline Tensor Tensor::index(ArrayRef<indexing::TensorIndex> indices) const {
  const detail::Indexed found(*this, indices);
  return found.tensors.empty() ? found.view : extension_v1::index(found.view, found.tensors);
}
inline Tensor Tensor::index(std::initializer_list<indexing::TensorIndex> indices) const {
  return index(ArrayRef<indexing::TensorIndex>(indices));
}
inline Tensor Tensor::index(TensorList indices) const { return extension_v1::index(*this, indices); }
inline Tensor& Tensor::index_put_(ArrayRef<indexing::TensorIndex> indices, const Operand& values) {
  const detail::Indexed found(*this, indices);
  if (found.tensors.empty()) found.view.copy_(values);
  else found.view.index_put_(TensorList(found.tensors), values);
  return *this;
}
inline Tensor& Tensor::index_put_(std::initializer_list<indexing::TensorIndex> indices, const Operand& values) {
  return index_put_(ArrayRef<indexing::TensorIndex>(indices), values);
}

}  // namespace extension_v1
}  // namespace taeda
