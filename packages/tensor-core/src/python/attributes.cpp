// Attributes of the Tensor type.
#include "python/library.h"
#include "taeda/autograd_api.h"
#include "taeda/derived.h"
#include "taeda/exported.h"
#include "taeda/backend.h"
#include "taeda/levels.h"
#include "taeda/ops.h"
#include "taeda/reserved.h"
#include "taeda/tracking.h"
#include "taeda/warn.h"

namespace taeda::py {
namespace {

PyObject* shape(PyObject* self, void*) { return wrap_size(tensor_of(self).sizes()); }
PyObject* dtype(PyObject* self, void*) { return wrap(tensor_of(self).dtype()); }
/// A tensor that wraps others has no memory of its own and says where theirs is; borrowed, null for other tensors.
PyObject* wrapped_device(PyObject* self) {
  if (is_plain(self)) [[likely]]
    return nullptr;
  PyObject* dict = reinterpret_cast<PyTensor*>(self)->dict;
  return dict ? PyDict_GetItemString(dict, "_wrapped_device") : nullptr;
}
PyObject* device(PyObject* self, void*) {
  if (PyObject* shown = wrapped_device(self)) return Py_NewRef(shown);
  return wrap(tensor_of(self).device());
}
PyObject* ndim(PyObject* self, void*) { return PyLong_FromLongLong(tensor_of(self).dim()); }
PyObject* itemsize(PyObject* self, void*) { return PyLong_FromLongLong(tensor_of(self).item_bytes()); }
PyObject* nbytes(PyObject* self, void*) {
  return PyLong_FromLongLong(tensor_of(self).item_bytes() * tensor_of(self).numel());
}
PyObject* version(PyObject* self, void*) {
  const Tensor& t = tensor_of(self);
  if (!(t.impl()->flags & kInference)) return PyLong_FromUnsignedLong(t.version());
  PyErr_SetString(PyExc_RuntimeError, "Inference tensors do not track version counter.");
  return nullptr;
}

PyObject* transposed(PyObject* self, void*) {
  return guarded([&] {
    const Tensor& t = tensor_of(self);
    if (t.dim() == 2) return wrap(ops::transpose(t, 0, 1));
    if (t.dim() != 1)
      warn("T: the use of `x.T` on tensors of dimension other than 2 is deprecated, found shape ",
           shape_text(t.sizes()),
           "; `x.mT` exchanges the last two, `x.permute(*range(x.ndim - 1, -1, -1))` reverses all");
    Shape order;
    for (int64_t d = t.dim() - 1; d >= 0; --d) order.push_back(d);
    return wrap(ops::permute(t, order));
  });
}
/// With its last two dimensions exchanged; a number has none to exchange.
Tensor exchanged(const Tensor& t, const char* op) {
  if (t.dim() == 0) return ops::view(t, Shape{});
  check(t.dim() >= 2, ErrorKind::Runtime, op, ": expected a tensor of at least 2 dimensions, found shape ",
        shape_text(t.sizes()));
  return ops::transpose(t, -2, -1);
}
PyObject* matrix_transposed(PyObject* self, void*) {
  return guarded([&] {
    const Tensor& t = tensor_of(self);
    return wrap(exchanged(t, "mT"));
  });
}
PyObject* adjoint(PyObject* self, void*) {
  return guarded([&] {
    const Tensor& t = tensor_of(self);
    const Tensor turned = exchanged(t, "mH");
    return wrap(is_complex(t.dtype()) ? ops::conj(turned) : turned);
  });
}
PyObject* real(PyObject* self, void*) {
  return guarded(
      [&] { return is_complex(tensor_of(self).dtype()) ? wrap(ops::real(tensor_of(self))) : Py_NewRef(self); });
}
PyObject* imag(PyObject* self, void*) {
  return guarded([&] { return wrap(ops::imag(tensor_of(self))); });
}
int set_part(PyObject* self, PyObject* value, void* which) {
  const Object part = Object(which ? imag(self, nullptr) : real(self, nullptr));
  return part ? tensor_setitem(part.get(), Py_Ellipsis, value) : -1;
}
int set_real(PyObject* self, PyObject* value, void*) { return set_part(self, value, nullptr); }
int set_imag(PyObject* self, PyObject* value, void*) { return set_part(self, value, self); }

// --- autograd ---

PyObject* data(PyObject* self, void*) {
  // Only its class knows what a wrapper's elements are.
  if (is_wrapper(tensor_of(self))) return PyObject_CallMethod(self, "detach", nullptr);
  return guarded([&] {
    Tensor shown = detached_alias(tensor_of(self));
    shown.impl()->flags |= kDetachedData;
    if (const auto& storage = shown.impl()->storage) drop_derived(*storage);  // writes to it do not count
    return wrap(std::move(shown));
  });
}
/// What instances of one class wrap stands in their attributes.
void take_wrapped(PyObject* self, PyObject* value) {
  if (self == value || !is_wrapper(tensor_of(self)) || Py_TYPE(self) != Py_TYPE(value)) return;
  PyObject* const held = reinterpret_cast<PyTensor*>(value)->dict;
  PyObject*& own_dict = reinterpret_cast<PyTensor*>(self)->dict;
  if (!held) return;
  if (!own_dict) own_dict = own(PyDict_New()).release();
  ensure(PyDict_Update(own_dict, held) == 0);
}
/// A wrapper's elements stand in its own attributes, which an instance of another class does not read.
void check_same_kind(PyObject* self, PyObject* value) {
  const bool to_wraps = is_wrapper(tensor_of(self)), from_wraps = is_wrapper(tensor_of(value));
  if (!to_wraps && !from_wraps) [[likely]]
    return;
  PyTypeObject *to = Py_TYPE(self), *from = Py_TYPE(value);
  const bool related = to_wraps && from_wraps && (PyType_IsSubtype(to, from) || PyType_IsSubtype(from, to));
  check(to == from || related, ErrorKind::Runtime, "data: a ", type_name(self), " and a ", type_name(value),
        " have an incompatible tensor type; use a new tensor");
}
int set_data(PyObject* self, PyObject* value, void*) {
  const Turn turn;
  try {
    if (!value || !is_tensor(value))
      fail(ErrorKind::Type, "data: expected a Tensor, found ", value ? type_name(value) : "nothing");
    const Tensor &to = tensor_of(self), &from = tensor_of(value);
    check_has_memory(to, "data");
    check_has_memory(from, "data");
    check_same_kind(self, value);
    const auto has_memory = [](const Tensor& t) {
      return t.device().backend == kMeta || backend(t.device().backend).has_memory();
    };
    if (to.device() != from.device() && (to.is_view() || !has_memory(to) || !has_memory(from))) [[unlikely]]
      fail(ErrorKind::Runtime, "data: expected a tensor on ", to_string(to.device()), ", found ", describe(from));
    if (to.requires_grad() && !is_differentiable(from.dtype())) [[unlikely]]
      fail(ErrorKind::Runtime, "data: a tensor that requires grad needs a floating dtype, found ", describe(from));
    if (!same_place(to, from)) {
      const bool fits = !to.is_view() && to.dtype() == from.dtype() && to.device() == from.device() &&
                        std::ranges::equal(to.sizes(), from.sizes());
      const uint32_t before = to.version();
      assign_storage(to, from);
      // What was saved of the tensor goes on with the new values, unless they do not fit.
      if (!fits) to.bump_version(0);
      else if (autograd_api.data_set) autograd_api.data_set(to, before);
    }
    TensorImpl* impl = to.impl();
    take_wrapped(self, value);
    impl->device = from.device();
    impl->keys = KeySet(impl->keys.bits() & ~impl->keys.inherent().bits()) | from.keys().inherent();
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

PyObject* requires_grad(PyObject* self, void*) {
  const Tensor& t = tensor_of(self);
  if (!t.requires_grad() && is_carrier(t)) [[unlikely]]
    return guarded([&] { return PyBool_FromLong(carrier_history(self).recorded); });
  return guarded([&] { return PyBool_FromLong(shows_grad(t)); });
}
int set_requires_grad_attribute(PyObject* self, PyObject* value, void*) {
  const Turn turn;
  try {
    if (!value || !is_bool(value))
      fail(ErrorKind::Type, "requires_grad: expected a bool, found ", value ? type_name(value) : "nothing");
    set_requires_grad(tensor_of(self), is_true(value));
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}
PyObject* is_leaf(PyObject* self, void*) {
  const Tensor& t = tensor_of(self);
  if (is_carrier(t) && !t.requires_grad() && !(autograd_api.tracked && autograd_api.tracked(t))) [[unlikely]]
    return guarded([&] { return PyBool_FromLong(carrier_history(self).leaf); });
  return guarded([&] { return PyBool_FromLong(!autograd_api.is_leaf || autograd_api.is_leaf(t)); });
}
/// Warns whoever expects a gradient where backward leaves none.
void warn_of_no_leaf(const Tensor& t) {
  if (autograd_api.is_leaf(t) || !autograd_api.tracked(t) || autograd_api.retains_grad(t)) return;
  const int stop = PyErr_WarnEx(
      PyExc_UserWarning,
      "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
      "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, "
      "use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access "
      "the leaf Tensor instead.",
      1);
  ensure(stop == 0);
}
PyObject* grad(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    if (!autograd_api.grad) Py_RETURN_NONE;
    Tensor found = autograd_api.grad(tensor_of(self));
    if (!found.defined()) warn_of_no_leaf(tensor_of(self));
    return wrap(std::move(found));
  });
}
int set_grad(PyObject* self, PyObject* value, void*) {
  const Turn turn;
  try {
    const bool clear = !value || value == Py_None;
    if (!clear && !is_tensor(value)) fail(ErrorKind::Type, "grad: expected a Tensor or None, found ", type_name(value));
    if (autograd_api.set_grad) autograd_api.set_grad(tensor_of(self), clear ? Tensor() : tensor_of(value));
    else if (!clear) needs_autograd("grad");
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}
PyObject* matrix_adjoint(PyObject* self, void* context) {
  return guarded([&] {
    const Tensor& t = tensor_of(self);
    check(t.dim() <= 2, ErrorKind::Runtime, "H: argument 'self' must be a matrix, found shape ", shape_text(t.sizes()),
          " (tensor.H is only supported on matrices); use mH for batches of them");
    return adjoint(self, context);
  });
}
PyObject* grad_fn(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    if (!autograd_api.grad_fn) Py_RETURN_NONE;
    return static_cast<PyObject*>(autograd_api.grad_fn(tensor_of(self)));
  });
}
PyObject* base(PyObject* self, void*) {
  return guarded([&] { return wrap(Tensor(tensor_of(self).impl()->base)); });
}

// --- state of the wrapper ---

PyObject* get_dict(PyObject* self, void* context) {
  PyObject* dict = PyObject_GenericGetDict(self, context);
  if (dict) track_state(self);
  return dict;
}
int set_dict(PyObject* self, PyObject* value, void* context) {
  const int status = PyObject_GenericSetDict(self, value, context);
  if (status == 0) track_state(self);
  return status;
}

PyObject* is_on(PyObject* self, void* name) {
  return guarded(
      [&] { return PyBool_FromLong(backend(shown_device(self).backend).name() == static_cast<const char*>(name)); });
}
PyObject* never(PyObject*, void*) { Py_RETURN_FALSE; }

constexpr PyGetSetDef on_reserved(size_t i) {
  const ReservedDevice& device = kReservedDevices[i];
  return {device.attribute, get<is_on>, nullptr, device.doc, const_cast<char*>(device.name)};
}
static_assert(std::size(kReservedDevices) == 3, "the table below has one attribute for each");

}  // namespace

Device shown_device(PyObject* tensor) {
  PyObject* shown = wrapped_device(tensor);
  const std::optional<Device> device = shown ? as_device(shown) : std::nullopt;
  return device ? *device : tensor_of(tensor).device();
}

PyGetSetDef tensor_attributes[] = {
    {"shape", get<shape>, nullptr, "Size of every dimension.", nullptr},
    {"dtype", get<dtype>, nullptr, "Element type.", nullptr},
    {"device", get<device>, nullptr, "Where the elements are.", nullptr},
    {"ndim", get<ndim>, nullptr, "Number of dimensions.", nullptr},
    {"itemsize", get<itemsize>, nullptr, "Bytes per element.", nullptr},
    {"nbytes", get<nbytes>, nullptr, "Bytes of all elements.", nullptr},
    {"T", get<transposed>, nullptr, "View with all dimensions reversed.", nullptr},
    {"mT", get<matrix_transposed>, nullptr, "View with the last two dimensions exchanged.", nullptr},
    {"H", get<matrix_adjoint>, nullptr, "Conjugate transpose of a matrix.", nullptr},
    {"mH", get<adjoint>, nullptr, "Conjugate transpose of the last two dimensions.", const_cast<char*>("mH")},
    {"real", get<real>, set<set_real>, "Real part; the tensor itself when it is real.", nullptr},
    {"imag", get<imag>, set<set_imag>, "Imaginary part.", nullptr},
    {"data", get<data>, set<set_data>,
     "The same elements without history; in-place writes through it are not seen by autograd.", nullptr},
    {"requires_grad", get<requires_grad>, set<set_requires_grad_attribute>,
     "Whether operations on the tensor are recorded.", nullptr},
    {"is_leaf", get<is_leaf>, nullptr, "Whether the tensor was not computed by a recorded operation.", nullptr},
    {"grad", get<grad>, set<set_grad>, "Gradient accumulated by backward(), or None.", nullptr},
    {"_grad", get<grad>, set<set_grad>, "The same as `grad`: programs of several processes share gradients by it.",
     const_cast<char*>("_grad")},
    {"grad_fn", get<grad_fn>, nullptr, "Graph node that computed the tensor, or None.", nullptr},
    {"_base", get<base>, nullptr, "The tensor that a view shows, or None.", nullptr},
    {"_version", get<version>, nullptr, "Number of in-place writes to the storage.", nullptr},
    {"is_cpu", get<is_on>, nullptr, "Whether the tensor is on the cpu.", const_cast<char*>("cpu")},
    on_reserved(0),
    on_reserved(1),
    on_reserved(2),
    {"is_meta", get<is_on>, nullptr, "Whether the tensor has a shape but no elements.", const_cast<char*>("meta")},
    {"is_sparse", get<never>, nullptr, "Always False.", nullptr},
    {"is_quantized", get<never>, nullptr, "Always False.", const_cast<char*>("is_quantized")},
    {"__dict__", get_dict, set_dict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace taeda::py
