// Tensor: a counted handle to sizes, signed strides, dtype and a place in a storage.
#pragma once
#include "taeda/dtype.h"
#include "taeda/error.h"
#include "taeda/keys.h"
#include "taeda/scalar.h"
#include "taeda/small_vec.h"
#include "taeda/storage.h"

namespace taeda {

class Tensor;
struct PayloadLink;  // taeda/levels.h

/// What the autograd layer hangs on a tensor; libtaeda only owns it.
struct GradMeta {
  virtual ~GradMeta() = default;
};

/// Facts about the order of bytes, refreshed whenever sizes or strides change.
enum LayoutFlag : uint8_t {
  kContiguous = 1,    // row-major without gaps
  kChannelsLast = 2,  // 4-d, NHWC strides without gaps (may hold together with kContiguous)
  kDense = 4,         // some permutation of the dimensions is contiguous: non-overlapping, no gaps, positive strides
};
enum TensorFlag : uint8_t {
  kWrappedNumber = 1,   // came from a Python number: takes part in promotion by category only
  kRequiresGrad = 2,    // leaf or result that autograd tracks
  kInference = 4,       // made under inference_mode
  kDetachedData = 8,    // from `.data`: in-place writes do not bump the version
  kOwnsPython = 16,     // this object keeps its Python wrapper alive (wrapper has state of its own)
  kUntrackedView = 32,  // a view made while gradients were not recorded
  kCarries = 64,        // has a payload for some level
};
inline constexpr int kMaxDims = 64;

struct TensorImpl : Counted {
  static constexpr int kInlineDims = 5;

  KeySet keys;
  Ref<Storage> storage;
  char* data = nullptr;  // address of element [0,...,0]
  int64_t numel = 1;
  int64_t* dims;  // sizes, then strides (in elements); points to inline_dims or to the heap
  DType dtype = DType::Float32;
  uint8_t ndim = 0;
  uint8_t layout = kContiguous | kDense;
  uint8_t flags = 0;
  Device device;
  Ref<TensorImpl> base;      // root of a view; null for a tensor that owns its storage alone
  GradMeta* grad = nullptr;  // owned
  void* python = nullptr;    // PyObject* of the wrapper, or null
  PayloadLink* payload;      // owned; there only with kCarries, so that no other tensor need even clear it
  int64_t inline_dims[2 * kInlineDims];

  TensorImpl() noexcept : dims(inline_dims) {}
};
TAEDA_API void destroy(TensorImpl* impl) noexcept;
/// What a float8 tensor has in its keys; the first call enters the rules into the operators' table.
TAEDA_API KeySet float8_key();
inline void set_dtype(TensorImpl* impl, DType dtype) {
  if (is_float8(dtype)) [[unlikely]]
    impl->keys = impl->keys | float8_key();
  else if (is_float8(impl->dtype)) [[unlikely]] impl->keys = impl->keys.without(Layer::Float8);
  impl->dtype = dtype;
}

/// Called (with the host lock taken as needed) when a dying tensor owns its Python wrapper.
extern TAEDA_API void (*release_python_wrapper)(void* wrapper) noexcept;

class TAEDA_API Tensor {
 public:
  Tensor() noexcept = default;
  explicit Tensor(Ref<TensorImpl> impl) noexcept : impl_(std::move(impl)) {}
  /// A 0-d CPU tensor marked as wrapped number: how Python numbers reach tensor arguments.
  Tensor(const Scalar& number);
  Tensor(double number) : Tensor(Scalar(number)) {}
  Tensor(int number) : Tensor(Scalar(int64_t(number))) {}
  Tensor(int64_t number) : Tensor(Scalar(number)) {}

  bool defined() const noexcept { return bool(impl_); }
  explicit operator bool() const = delete;
  TensorImpl* impl() const noexcept { return impl_.get(); }
  Ref<TensorImpl>& ref() noexcept { return impl_; }

  DType dtype() const noexcept { return impl_->dtype; }
  Device device() const noexcept { return impl_->device; }
  KeySet keys() const noexcept { return impl_ ? impl_->keys : KeySet(); }
  int64_t dim() const noexcept { return impl_->ndim; }
  int64_t numel() const noexcept { return impl_->numel; }
  IntSpan sizes() const noexcept { return {impl_->dims, impl_->ndim}; }
  IntSpan strides() const noexcept { return {impl_->dims + impl_->ndim, impl_->ndim}; }
  /// Negative `d` counts from the end; out of range is undefined: wrap with `wrap_dim` first.
  int64_t size(int64_t d) const noexcept { return impl_->dims[d < 0 ? d + impl_->ndim : d]; }
  int64_t stride(int64_t d) const noexcept { return impl_->dims[impl_->ndim + (d < 0 ? d + impl_->ndim : d)]; }
  int64_t item_bytes() const noexcept { return item_size(impl_->dtype); }
  int64_t storage_offset() const noexcept;
  bool contiguous() const noexcept { return impl_->layout & kContiguous; }
  bool channels_last() const noexcept { return impl_->layout & kChannelsLast; }
  bool dense() const noexcept { return impl_->layout & kDense; }
  bool is_wrapped_number() const noexcept { return impl_->flags & kWrappedNumber; }
  bool requires_grad() const noexcept { return impl_ && (impl_->flags & kRequiresGrad); }
  bool is_view() const noexcept { return bool(impl_->base); }
  uint32_t version() const noexcept { return impl_->storage ? impl_->storage->version : 0; }
  /// After an in-place write; `op` is the mutating operator's id.
  void bump_version(uint16_t op) const noexcept {
    if (impl_->storage && !(impl_->flags & kDetachedData)) {
      ++impl_->storage->version;
      impl_->storage->last_mutator = op;
    }
  }
  bool same(const Tensor& other) const noexcept { return impl_ == other.impl_; }
  template <class T>
  T* data() const noexcept {
    return reinterpret_cast<T*>(impl_->data);
  }
  char* bytes() const noexcept { return impl_->data; }

 private:
  Ref<TensorImpl> impl_;
};

using TensorList = std::span<const Tensor>;

// --- Making tensors (src/core/tensor.cpp). None of these goes through dispatch. ---

/// Uninitialised, row-major.
TAEDA_API Tensor empty(IntSpan sizes, DType dtype, Device device = {});
/// Uninitialised with given strides, which must be dense (a permutation of row-major).
TAEDA_API Tensor empty_strided(IntSpan sizes, IntSpan strides, DType dtype, Device device = {});
/// A view of `self`'s storage; `offset` in elements from `self`'s first element; records the root as base.
TAEDA_API Tensor alias(const Tensor& self, IntSpan sizes, IntSpan strides, int64_t offset);
/// Same bytes without base and history (`detach`); of a tensor whose class answers for operators an instance that knows
/// the same (taeda/wrappers.h).
TAEDA_API Tensor detached_alias(const Tensor& self);
/// The same, never an instance of a class: for what reads the bytes.
TAEDA_API Tensor bare_alias(const Tensor& self);
/// Sizes, dtype and device without any memory: for tensors that are nothing but their payload.
TAEDA_API Tensor shape_only(IntSpan sizes, DType dtype, Device device);
/// A tensor over a storage from elsewhere (NumPy, DLPack).
TAEDA_API Tensor from_storage(Ref<Storage> storage, IntSpan sizes, IntSpan strides, int64_t byte_offset, DType dtype);
/// Makes `self` point to `other`'s storage, sizes and strides (set_, resize of out=).
TAEDA_API void assign_storage(const Tensor& self, const Tensor& other);
/// Gives an out= tensor another shape, reallocating when it is too small; RuntimeError when it cannot.
TAEDA_API void resize_output(const Tensor& out, IntSpan sizes, const char* op);

// --- Small helpers. ---

/// 0 <= result < max(ndim,1), or IndexError naming `op`.
TAEDA_API int64_t wrap_dim(int64_t dim, int64_t ndim, const char* op);
/// "float32[2, 3] on cpu" for error messages.
TAEDA_API std::string describe(const Tensor& tensor);
TAEDA_API int64_t product(IntSpan sizes);
TAEDA_API Shape contiguous_strides(IntSpan sizes);
TAEDA_API Shape channels_last_strides(IntSpan sizes);
/// NumPy broadcasting of two shapes; RuntimeError names `op` and both shapes.
TAEDA_API Shape broadcast_shapes(IntSpan a, IntSpan b, const char* op);
/// PyTorch's promotion over operands: dimensioned > 0-d > wrapped numbers by category.
TAEDA_API DType result_type(TensorList operands);
/// Recomputes numel and layout flags after dims were written.
TAEDA_API void refresh_layout(TensorImpl* impl) noexcept;

}  // namespace taeda
