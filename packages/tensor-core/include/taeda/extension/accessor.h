// Elements of a tensor by their indices, on the host and in kernels. Part of taeda/extension.h.
#pragma once
#include <cstddef>
#include <cstdint>

// What marks functions that kernels call too; the build says it where there are any.
#ifndef TAEDA_HOST_DEVICE
#define TAEDA_HOST_DEVICE
#endif

namespace taeda {
inline namespace extension_v1 {

/// How an accessor points to elements: as they are, or promising that nothing else does.
template <class T>
struct DefaultPtrTraits {
  using PtrType = T*;
};
template <class T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict__;
};

/// Elements of a tensor of N dimensions; the tensor must live as long.
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits, class Index = int64_t>
class TensorAccessor {
 public:
  using Pointer = typename Traits<T>::PtrType;
  TAEDA_HOST_DEVICE TensorAccessor(Pointer data, const Index* sizes, const Index* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  TAEDA_HOST_DEVICE decltype(auto) operator[](Index i) const {
    if constexpr (N == 1) return (data_[i * strides_[0]]);
    else return TensorAccessor<T, N - 1, Traits, Index>(data_ + i * strides_[0], sizes_ + 1, strides_ + 1);
  }
  TAEDA_HOST_DEVICE Index size(Index d) const { return sizes_[d]; }
  TAEDA_HOST_DEVICE Index stride(Index d) const { return strides_[d]; }
  TAEDA_HOST_DEVICE Pointer data() const { return data_; }

 private:
  Pointer data_;
  const Index *sizes_, *strides_;
};

/// The same with sizes and strides of its own, as kernels take it by value.
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits, class Index = int64_t>
class PackedTensorAccessor {
 public:
  using Pointer = typename Traits<T>::PtrType;
  PackedTensorAccessor(Pointer data, const int64_t* sizes, const int64_t* strides) : data_(data) {
    for (size_t d = 0; d < N; ++d) sizes_[d] = Index(sizes[d]), strides_[d] = Index(strides[d]);
  }
  TAEDA_HOST_DEVICE decltype(auto) operator[](Index i) const {
    return TensorAccessor<T, N, Traits, Index>(data_, sizes_, strides_)[i];
  }
  TAEDA_HOST_DEVICE Index size(Index d) const { return sizes_[d]; }
  TAEDA_HOST_DEVICE Index stride(Index d) const { return strides_[d]; }
  TAEDA_HOST_DEVICE Pointer data() const { return data_; }

 private:
  Pointer data_;
  Index sizes_[N], strides_[N];
};
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = PackedTensorAccessor<T, N, Traits, int32_t>;
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = PackedTensorAccessor<T, N, Traits, int64_t>;

}  // namespace extension_v1
}  // namespace taeda
