// Tensors whose class answers for operators (`__torch_dispatch__`): what they are, only the class knows.
#pragma once
#include "taeda/tensor.h"

namespace taeda {

/// Note [Wrapping tensors]
/// An instance of such a class carries a bit in its key set, so that every operator meets the class. Classes of
/// programs stand below autograd (`Layer::BelowAutograd`): a wrapper is a leaf or a result like any other tensor, and
/// formulas compute with it through the class. Those of the library, which record gradients through what they hold,
/// stand above
/// (`Layer::PreDispatch`). What an instance knows lies in its Python object; the tensor itself has often no memory and
/// then counts as `meta`, so that no path reads bytes that are not there.
inline constexpr KeySet kClassBits = KeySet::of(Layer::PreDispatch) | KeySet::of(Layer::BelowAutograd);
inline bool is_wrapper(const Tensor& t) noexcept { return (t.keys() & kClassBits).bits(); }

/// What Python's bindings know of wrappers; null where there are none.
struct WrapperApi {
  /// Another instance of the class that knows the same, without history.
  Tensor (*alias)(const Tensor& self) = nullptr;
  /// Where it says that it is.
  Device (*device)(const Tensor& self) = nullptr;
  /// Its one element.
  Scalar (*item)(const Tensor& self) = nullptr;
};
extern TAEDA_API WrapperApi wrapper_api;

/// The device that programs see: of a tensor without memory that of its class.
inline Device stated_device(const Tensor& t) {
  return is_wrapper(t) && wrapper_api.device ? wrapper_api.device(t) : t.device();
}

}  // namespace taeda
