// Reading of bound arguments as values of C++: what is not inline.
#include <string>
#include <string_view>
#include <utility>

#include "python/arg_kinds.h"
#include "python/args.h"
#include "python/internal.h"
#include "taeda/ops/shape.h"

namespace taeda::py {

const Tensor& tensor_slow(const Signature& sig, int i, Slots& slots) {
  PyObject* o = slots.values[i];
  if (o && overrides(o)) throw Overridden();
  if (!o || !is_tensor(o)) wrong_type(sig, i, o);
  return tensor_of(o);
}
const Tensor& opt_tensor_arg(const Signature& sig, int i, Slots& slots) {
  static const Tensor none;
  return slots.given(i) ? tensor_arg(sig, i, slots) : none;
}

int64_t int_slow(const Signature& sig, int i, PyObject* o) {
  if (!o || !is_item(o)) wrong_type(sig, i, o);
  if (is_tensor(o)) return scalar_of(tensor_of(o), sig.name).to<int64_t>();
  PyObject* index = PyNumber_Index(o);
  if (!index) throw PythonError();
  int overflow;
  const long long v = PyLong_AsLongLongAndOverflow(index, &overflow);
  Py_DECREF(index);
  if (overflow)
    fail(ErrorKind::Overflow, sig.name, ": argument '", sig.specs[i].name,
         "' does not fit into 64 bits: ", type_text(o));
  return v;
}

Scalar scalar_value(const Signature& sig, int i, PyObject* o) {
  if (!o) wrong_type(sig, i, o);
  if (PyFloat_CheckExact(o)) return PyFloat_AS_DOUBLE(o);
  if (PyLong_CheckExact(o)) {
    int overflow;
    const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow) return int64_t(v);
  }
  if (is_tensor(o) && tensor_of(o).dim() == 0) return scalar_of(tensor_of(o), sig.name);
  if (is_tensor(o) || PyUnicode_Check(o) || PyTuple_Check(o) || PyList_Check(o)) wrong_type(sig, i, o);
  if (const std::optional<Scalar> number = number_for(o, sig.name, sig.specs[i].name)) return *number;
  wrong_type(sig, i, o);
}

namespace {

/// Whether results of real tensors and a complex number are complex.
bool turns_complex(std::string_view name) {
  for (const std::string_view one :
       {"addcdiv", "addcmul", "cumulative_trapezoid", "full_like", "new_full", "trapezoid"})
    if (name == one) return true;
  return false;
}
void expect_complex_tensor(const Signature& sig, int i, const Slots& slots) {
  if (turns_complex(sig.name)) return;
  const Tensor* real = nullptr;
  for (int k = 0; k < sig.count; ++k) {
    if (!slots.values[k] || !is_tensor(slots.values[k])) continue;
    const Tensor& t = tensor_of(slots.values[k]);
    if (is_complex(t.dtype())) return;
    if (!real) real = &t;
  }
  if (real)
    fail(ErrorKind::Runtime, sig.name, ": argument '", sig.specs[i].name,
         "' is complex, expected a real number beside a tensor of ", name(real->dtype()));
}

}  // namespace

Scalar scalar_arg(const Signature& sig, int i, Slots& slots) {
  const Scalar v = scalar_value(sig, i, slots.values[i]);
  if (v.imag() != 0) [[unlikely]]
    expect_complex_tensor(sig, i, slots);
  return v;
}

double float_arg(const Signature& sig, int i, Slots& slots) {
  PyObject* o = slots.values[i];
  if (o && PyFloat_CheckExact(o)) return PyFloat_AS_DOUBLE(o);
  if (o && PyLong_CheckExact(o)) {  // of any size that a double has
    const double v = PyLong_AsDouble(o);
    if (v != -1 || !PyErr_Occurred()) return v;
    PyErr_Clear();
  }
  const Scalar v = scalar_value(sig, i, o);
  if (v.is_complex()) wrong_type(sig, i, o);
  return v.to_double();
}

bool bool_slow(const Signature& sig, int i, PyObject* o) {
  if (!o || !is_bool(o)) wrong_type(sig, i, o);
  return is_true(o);
}

std::string_view str_arg(const Signature& sig, int i, Slots& slots) {
  PyObject* o = slots.values[i];
  if (!o || !PyUnicode_Check(o)) wrong_type(sig, i, o);
  Py_ssize_t size;
  const char* text = PyUnicode_AsUTF8AndSize(o, &size);
  if (!text) throw PythonError();
  return {text, size_t(size)};
}

DType dtype_arg(const Signature& sig, int i, Slots& slots) {
  PyObject* o = slots.values[i];
  if (o && is_dtype(o)) return reinterpret_cast<PyDType*>(o)->value;
  if (o)
    if (const std::optional<DType> found = as_dtype(o)) return *found;
  wrong_type(sig, i, o);
}

Device device_arg(const Signature& sig, int i, Slots& slots) {
  PyObject* o = slots.values[i];
  if (o)
    if (const std::optional<Device> found = as_device(o)) return *found;
  wrong_type(sig, i, o);
}

const Generator& opt_generator_arg(const Signature& sig, int i, Slots& slots) {
  static const Generator none;
  if (!slots.given(i)) return none;
  if (!is_generator(slots.values[i])) wrong_type(sig, i, slots.values[i]);
  return reinterpret_cast<PyGenerator*>(slots.values[i])->value;
}

const Tensor* OperandArg::take(const Signature& sig, int i, PyObject* o) {
  if (!o) wrong_type(sig, i, o);
  if (!PyFloat_CheckExact(o) && !PyLong_CheckExact(o)) {
    if (overrides(o)) throw Overridden();
    if (is_tensor(o)) return &tensor_of(o);
    if (!is_number(o)) wrong_type(sig, i, o);
  }
  return &(made_ = Tensor(scalar_value(sig, i, o)));
}

TensorListArg::TensorListArg(const Signature& sig, int i, Slots& slots) {
  const bool none_allowed = sig.specs[i].kind == ArgKind::OptTensorList;
  const auto take = [&](PyObject* item) {
    if (item == Py_None && none_allowed) return void(tensors_.emplace_back());
    if (!is_plain(item) && overrides(item)) throw Overridden();
    if (!is_tensor(item)) {
      fail(ErrorKind::Type, sig.name, ": argument '", sig.specs[i].name, "' must be ", expected_text(sig.specs[i].kind),
           ", found ", type_text(item), " at item ", tensors_.size());
    }
    tensors_.emplace_back(tensor_of(item));
  };
  if (slots.tail && i == sig.varargs) {
    for (Py_ssize_t k = 0; k < slots.tail_count; ++k) take(slots.tail[k]);
    return;
  }
  PyObject* o = slots.values[i];
  if (!o || o == Py_None) {
    if (sig.specs[i].required) wrong_type(sig, i, o);
    return;
  }
  if (!is_plain(o) && !PyList_CheckExact(o) && !PyTuple_CheckExact(o) && overrides(o)) throw Overridden();
  if (is_tensor(o) || PyUnicode_Check(o) || !PySequence_Check(o)) wrong_type(sig, i, o);
  const Object owner = PyList_Check(o) || PyTuple_Check(o) ? share(o) : items_of(o);
  PyObject* fast = owner.get();
  tensors_.reserve(size_t(PySequence_Fast_GET_SIZE(fast)));
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(fast); ++k) take(share(PySequence_Fast_GET_ITEM(fast, k)).get());
}

IntListArg::IntListArg(const Signature& sig, int i, Slots& slots, const Shape& missing) {
  if (slots.tail && i == sig.varargs) {
    for (Py_ssize_t k = 0; k < slots.tail_count; ++k) {
      PyObject* item = slots.tail[k];
      values_.push_back(k > 0 && PyBool_Check(item) ? item == Py_True : int_value(sig, i, item));
    }
    return;
  }
  PyObject* o = slots.values[i];
  if (!o || o == Py_None) {
    if (!o || !sig.specs[i].required) {
      values_ = missing;
      return;
    }
    wrong_type(sig, i, o);
  }
  if (PyTuple_Check(o) || PyList_Check(o)) [[likely]] {
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); ++k) {
      // Another object's __index__ may drop the item or shorten the list.
      const Object item = share(PySequence_Fast_GET_ITEM(o, k));
      if (!PyLong_CheckExact(item.get()) && !is_item_at(k, item.get())) wrong_type(sig, i, o);
      values_.push_back(PyBool_Check(item.get()) ? item.get() == Py_True : int_value(sig, i, item.get()));
    }
    return;
  }
  if (is_integer(o)) {
    values_.push_back(int_value(sig, i, o));
    return;
  }
  if (!is_int_sequence(o)) wrong_type(sig, i, o);
  if (PySequence_Size(o) < 0) wrong_type(sig, i, o);
  const Object items = items_of(o);
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(items.get()); ++k)
    values_.push_back(int_value(sig, i, share(PyList_GET_ITEM(items.get(), k)).get()));
}

void NamedAlone::part() {
  static constexpr int64_t kLast[] = {-1};
  parted_ = ops::unsqueeze(self_, -1);
  dim_ = kLast, keepdim_ = false;
}

FloatListArg::FloatListArg(const Signature& sig, int i, Slots& slots) {
  if (!slots.given(i)) return;
  PyObject* o = slots.values[i];
  if (!PyTuple_Check(o) && !PyList_Check(o)) wrong_type(sig, i, o);
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); ++k) {
    const Object item = share(PySequence_Fast_GET_ITEM(o, k));  // its __float__ may drop it
    values_.push_back(scalar_value(sig, i, item.get()).to_double());
  }
}

OutArg::OutArg(const Signature& sig, int i, Slots& slots, int count) : given_(slots.values[i]), count_(count) {
  if (!is_plain(given_) && overrides(given_)) throw Overridden();
  if (count == 1 && is_tensor(given_)) {
    items_[0] = given_;
    return;
  }
  const bool listed = count > 1 && (PyTuple_Check(given_) || PyList_Check(given_));
  Object held = listed ? own(PySequence_Tuple(given_)) : Object();
  if (!listed || PyTuple_GET_SIZE(held.get()) != count)
    fail(ErrorKind::Type, sig.name, ": argument 'out' must be ",
         count == 1 ? std::string("a Tensor") : "a tuple of " + std::to_string(count) + " Tensors", ", found ",
         type_text(given_));
  for (int k = 0; k < count; ++k) {
    items_[k] = PyTuple_GET_ITEM(held.get(), k);
    if (!is_plain(items_[k]) && overrides(items_[k])) throw Overridden();
    if (!is_tensor(items_[k])) wrong_type(sig, i, given_);
    for (int other = 0; other < k; ++other)
      if (items_[other] == items_[k])
        fail(ErrorKind::Runtime, sig.name, ": argument 'out' names one Tensor for results ", other, " and ", k);
  }
  held_ = held.release();
}

PyObject* OutArg::result(PyTypeObject* type) const {
  PyObject* items[8];
  for (int k = 0; k < count_; ++k) items[k] = Py_NewRef(items_[k]);
  return pack_results(type, items, count_);
}

}  // namespace taeda::py
