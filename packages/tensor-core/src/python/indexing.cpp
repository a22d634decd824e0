// x[...] and x[...] = v: basic keys become one view, advanced ones go to ops::index and ops::index_put_.
#include <algorithm>

#include "infer/numbers.h"
#include "python/internal.h"
#include "taeda/levels.h"
#include "taeda/ops.h"
#include "taeda/texts.h"

namespace taeda::py {
namespace {

constexpr int64_t kAbsent = INT64_MIN;

/// A slice whose bounds are numbers by now: reading them may run Python code, which must not happen under a View.
struct Bounds {
  Py_ssize_t start, stop, step;
  bool has_start, has_stop;
};
Bounds bounds_of(PyObject* key) {
  const auto* raw = reinterpret_cast<PySliceObject*>(key);
  Bounds made{0, 0, 0, raw->start != Py_None, raw->stop != Py_None};
  ensure(PySlice_Unpack(key, &made.start, &made.stop, &made.step) == 0);
  return made;
}

/// A view under construction. Without layers it is arithmetic that ends in one alias(); with them every step is an
/// operator call, so that autograd sees it.
class View {
 public:
  explicit View(const Tensor& self) : self_(self), layered_(active(self.keys()).has_layers()) {
    if (!layered_) {
      sizes_.assign(self.sizes());
      strides_.assign(self.strides());
    }
  }
  int64_t size(int64_t dim) const { return layered_ ? current().size(dim) : sizes_[size_t(dim)]; }
  int64_t dim() const { return layered_ ? current().dim() : int64_t(sizes_.size()); }

  void select(int64_t dim, int64_t index) {
    const int64_t n = size(dim);
    if (index < -n || index >= n) [[unlikely]]
      fail(ErrorKind::Index, "index: ", out_of_bounds(index, self_.dim() - this->dim() + dim, n),
           " of a tensor of shape ", shape_text(self_.sizes()));
    if (layered_) return step(ops::select(current(), dim, index));
    offset_ += (index < 0 ? index + n : index) * strides_[size_t(dim)];
    sizes_.erase(size_t(dim));
    strides_.erase(size_t(dim));
  }
  void slice(int64_t dim, const Bounds& bounds) {
    Py_ssize_t start = bounds.start, stop = bounds.stop, stride = bounds.step;
    // Longer steps leave the dimension as well, but the strides they would give cannot be scaled to bytes.
    const Py_ssize_t longest = std::max<Py_ssize_t>(Py_ssize_t(size(dim)), 1);
    stride = std::clamp(stride, -longest, longest);
    const Py_ssize_t count = PySlice_AdjustIndices(Py_ssize_t(size(dim)), &start, &stop, stride);
    if (start == 0 && stride == 1 && count == size(dim)) return;
    if (layered_) {
      const auto bound = [](bool given, Py_ssize_t value) {
        return given ? std::optional<int64_t>(value) : std::nullopt;
      };
      return step(ops::slice(current(), dim, bound(bounds.has_start, bounds.start), bound(bounds.has_stop, bounds.stop),
                             stride));
    }
    if (count) offset_ += start * strides_[size_t(dim)];
    sizes_[size_t(dim)] = count;
    strides_[size_t(dim)] *= stride;
  }
  void unsqueeze(int64_t dim) {
    if (layered_) return step(ops::unsqueeze(current(), dim));
    const int64_t stride = dim < int64_t(sizes_.size()) ? sizes_[size_t(dim)] * strides_[size_t(dim)] : 1;
    sizes_.insert(size_t(dim), 1);
    strides_.insert(size_t(dim), stride);
  }
  Tensor finish() const {
    if (!layered_) return alias(self_, sizes_, strides_, offset_);
    if (changed_.defined()) return changed_;
    return self_.dim() ? ops::slice(self_, 0, std::nullopt, std::nullopt, 1) : ops::view(self_, IntSpan());
  }
  /// The tensor itself when no step was needed: what advanced indexing starts from.
  Tensor finish_or_self() const {
    if (layered_) return current();
    const bool same = std::ranges::equal(sizes_, self_.sizes()) && std::ranges::equal(strides_, self_.strides());
    return same && offset_ == 0 ? self_ : finish();
  }

 private:
  const Tensor& current() const { return changed_.defined() ? changed_ : self_; }
  void step(Tensor next) { changed_ = std::move(next); }

  const Tensor& self_;
  const bool layered_;
  Tensor changed_;
  Shape sizes_, strides_;
  int64_t offset_ = 0;
};

bool is_plain_int(PyObject* o) { return PyLong_CheckExact(o); }
/// A slice whose bounds are read without running Python code.
bool is_plain_slice(PyObject* o) {
  if (!PySlice_Check(o)) return false;
  const auto* raw = reinterpret_cast<PySliceObject*>(o);
  const auto plain = [](PyObject* bound) { return bound == Py_None || is_plain_int(bound); };
  return plain(raw->start) && plain(raw->stop) && plain(raw->step);
}

/// Python's and NumPy's integers, and integer tensors of no dimension outside of advanced indexing; kAbsent for
/// anything else.
int64_t int_of(PyObject* o) {
  if (PyBool_Check(o) || is_tensor(o) || !PyIndex_Check(o)) return kAbsent;
  if (!PyLong_Check(o) && PySequence_Check(o)) return kAbsent;  // arrays of one element have __index__ too
  const Object index = own(PyNumber_Index(o));
  const Py_ssize_t v = PyLong_AsSsize_t(index.get());
  if (v != -1 || !PyErr_Occurred()) return v;
  PyErr_Clear();
  fail(ErrorKind::Index, "index: the integer does not fit into 64 bits, so it is out of range for every dimension");
}

bool is_bool_like(PyObject* o) {
  if (PyBool_Check(o)) return true;
  const std::string_view type = type_name(o);
  return type == "numpy.bool_" || type == "numpy.bool";
}

/// One item of a key once it is known what it is.
struct Item {
  enum class Kind : uint8_t { Int, Slice, NewAxis, Ellipsis, Truth, Index } kind;
  int64_t value = 0;
  Tensor index;
  Bounds bounds{};
};

/// Bytes choose as booleans do, which they were before there were any.
Tensor mask_of_bytes(const Tensor& index) {
  ensure(PyErr_WarnEx(PyExc_UserWarning,
                      "indexing with dtype uint8 is deprecated, since it means a mask; use bool for masks and int64 "
                      "for places",
                      1) == 0);
  return ops::to_dtype(index, DType::Bool);
}

Tensor index_tensor(PyObject* o) {
  Tensor index = is_tensor(o) ? tensor_of(o) : tensor_sharing(o, std::nullopt, std::nullopt, "index");
  // Lists and arrays are read as places, whatever their numbers: an empty list has no dtype of its own, and what NumPy
  // joined with an empty array is floating.
  if (!is_tensor(o) && is_floating(index.dtype()) && PySequence_Check(o)) index = ops::to_dtype(index, DType::Int64);
  if (!is_integral(index.dtype())) [[unlikely]]
    fail(ErrorKind::Index, "index: tensors used as indices must be of integer or bool dtype, found ", describe(index));
  return index.dtype() == DType::UInt8 ? mask_of_bytes(index) : index;
}

Item classify(PyObject* o) {
  if (o == Py_None) return {Item::Kind::NewAxis};
  if (o == Py_Ellipsis) return {Item::Kind::Ellipsis};
  if (PySlice_Check(o)) return {Item::Kind::Slice, 0, {}, bounds_of(o)};
  if (is_bool_like(o)) return {Item::Kind::Truth, is_true(o)};
  if (const int64_t v = int_of(o); v != kAbsent) return {Item::Kind::Int, v};
  const bool listed = PySequence_Check(o) && !PyUnicode_Check(o) && !PyBytes_Check(o);
  if (!is_tensor(o) && !listed && !optional_attribute(o, "__array_interface__"))
    fail(PyUnicode_Check(o) || PyBytes_Check(o) ? ErrorKind::Type : ErrorKind::Index,
         "index: expected int, slice, None, Ellipsis, bool, a sequence or an integer or bool tensor, found ",
         type_name(o));
  Item item{Item::Kind::Index, 0, index_tensor(o)};
  if (item.index.dim() == 0 && item.index.device().backend == kCPU && !is_carrier(item.index)) {
    const Scalar value = scalar_of(item.index, "index");
    const bool truth = item.index.dtype() == DType::Bool;
    return {truth ? Item::Kind::Truth : Item::Kind::Int, value.to<int64_t>()};
  }
  // On a device nobody looks at the value before its kernel does.
  if (item.index.dim() == 0 && item.index.dtype() == DType::Bool)
    return {Item::Kind::Truth, 0, ops::unsqueeze(item.index, 0)};
  return item;
}

/// A key applied to a tensor: the view of its basic part and, when there are index tensors, where they stand.
struct Selection {
  Tensor view;
  std::vector<Tensor> indices;  // empty: basic
};

int64_t consumed(const Item& item) {
  switch (item.kind) {
    case Item::Kind::Int:
    case Item::Kind::Slice: return 1;
    case Item::Kind::Index: return item.index.dtype() == DType::Bool ? item.index.dim() : 1;
    default: return 0;
  }
}

Tensor truth_mask(bool value) {
  Tensor mask = empty(Shape{1}, DType::Bool);
  *mask.data<bool>() = value;
  return mask;
}

Selection select_items(const Tensor& self, std::span<PyObject* const> keys) {
  std::vector<Item> items;
  items.reserve(keys.size() + 1);
  int64_t used = 0;
  bool ellipsis = false, advanced = false;
  // All that may run Python code, which may change `self`, comes before the view.
  for (PyObject* key : keys) {
    items.push_back(classify(key));
    const Item& item = items.back();
    used += consumed(item);
    // The first one leaves nothing for others to stand for.
    if (item.kind == Item::Kind::Ellipsis && std::exchange(ellipsis, true)) {
      items.pop_back();
      continue;
    }
    advanced = advanced || item.kind == Item::Kind::Index || item.kind == Item::Kind::Truth;
  }
  check(used <= self.dim(), ErrorKind::Index, "index: too many indices for tensor of dimension ", self.dim(),
        ": the shape is ", shape_text(self.sizes()), ", found ", used);
  View view(self);
  std::vector<Tensor> indices;
  int64_t dim = 0;
  // With masks of several dimensions, an entry of the list stands for more than one dimension of the view.
  int64_t mask_extra = 0;
  // Places may be told from the host: numbers, lists, arrays and cpu tensors follow the tensor to its device.
  PyObject* object = static_cast<PyObject*>(self.impl()->python);
  const Device home = object ? shown_device(object) : self.device();
  const bool elsewhere = home.backend != kCPU;
  const auto place = [&](Tensor index, int64_t width) {
    if (elsewhere && index.device().backend == kCPU) index = ops::to_device(index, home);
    indices.resize(size_t(dim - mask_extra));
    indices.push_back(std::move(index));
    mask_extra += width - 1;
    dim += width;
  };
  for (const Item& item : items) {
    switch (item.kind) {
      case Item::Kind::Int:
        // As PyTorch has it and NumPy has not: a number takes its dimension away, also beside index tensors.
        view.select(dim, item.value);
        break;
      case Item::Kind::Slice: view.slice(dim++, item.bounds); break;
      case Item::Kind::NewAxis: view.unsqueeze(dim++); break;
      case Item::Kind::Ellipsis: dim += self.dim() - used; break;
      case Item::Kind::Truth:
        view.unsqueeze(dim);
        place(item.index.defined() ? item.index : ops::to_device(truth_mask(item.value), home), 1);
        break;
      case Item::Kind::Index: place(item.index, consumed(item)); break;
    }
  }
  if (!advanced) return {view.finish(), {}};
  return {view.finish_or_self(), std::move(indices)};
}

/// A list that holds more than numbers stands for a tuple; longer ones are tables of places.
bool stands_for_tuple(PyObject* key) {
  constexpr Py_ssize_t kLongest = 32;
  if (!PyList_Check(key) || PyList_GET_SIZE(key) >= kLongest) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(key); ++i) {
    PyObject* item = PyList_GET_ITEM(key, i);
    if (is_tensor(item) || PySlice_Check(item) || item == Py_Ellipsis || item == Py_None || PySequence_Check(item))
      return true;
  }
  return false;
}

Selection select_key(const Tensor& self, PyObject* key) {
  if (stands_for_tuple(key)) {
    const Object keys = own(PyList_AsTuple(key));
    return select_key(self, keys.get());
  }
  if (PyTuple_Check(key)) return select_items(self, {&PyTuple_GET_ITEM(key, 0), size_t(PyTuple_GET_SIZE(key))});
  return select_items(self, {&key, 1});
}

/// The frequent keys, without any list of items; false when the key needs the general way.
bool quick_view(const Tensor& self, PyObject* key, View& view) {
  const auto one = [&](PyObject* o, int64_t& dim) {
    if (o == Py_None) {
      view.unsqueeze(dim++);
      return true;
    }
    if (dim >= view.dim()) return false;
    if (is_plain_int(o)) {
      view.select(dim, int_of(o));
      return true;
    }
    if (!is_plain_slice(o)) return false;
    view.slice(dim++, bounds_of(o));
    return true;
  };
  int64_t dim = 0;
  if (!PyTuple_Check(key)) return one(key, dim);
  const Py_ssize_t n = PyTuple_GET_SIZE(key);
  int64_t named = 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(key, i);
    if (item == Py_None) continue;
    if (!is_plain_int(item) && !is_plain_slice(item)) return false;
    ++named;
  }
  if (n == 0 || named > self.dim()) return false;
  for (Py_ssize_t i = 0; i < n; ++i) one(PyTuple_GET_ITEM(key, i), dim);
  return true;
}

/// NumPy lets a value have more leading dimensions of size 1 than the place it goes to.
Tensor without_leading_ones(Tensor value, int64_t dim) {
  while (value.dim() > dim && value.size(0) == 1) value = ops::select(value, 0, 0);
  return value;
}

Tensor value_of(PyObject* o, const Tensor& self) {
  if (is_tensor(o)) return tensor_of(o);
  if (std::optional<Scalar> number = as_number(o)) {
    const bool real = number->is_complex() && number->imag() == 0 && !is_complex(self.dtype());
    return Tensor(real ? Scalar(number->to_double()) : *number);
  }
  return tensor_sharing(o, std::nullopt, std::nullopt, "index assignment");
}

void assign(const Tensor& view, PyObject* given, const Tensor& self) {
  const Tensor value = value_of(given, self);
  if (value.is_wrapped_number() || value.dim() == 0) {
    const DType way = infer::computing(view.dtype());
    infer::check_number("index assignment", "value", value, way);
    if (value.is_wrapped_number() && (way == view.dtype() || infer::surely_fits(value, view.dtype())))
      ops::fill_(view, value);
    else ops::copy_(view, value);
    return;
  }
  ops::copy_(view, without_leading_ones(value, view.dim()));
}

/// Number of dimensions of the place that the index tensors name.
int64_t dims_of(const Selection& chosen) {
  int64_t used = 0, broadcast = 0;
  for (const Tensor& index : chosen.indices) {
    if (!index.defined()) continue;
    const bool mask = index.dtype() == DType::Bool;
    used += mask ? index.dim() : 1;
    broadcast = std::max(broadcast, mask ? 1 : index.dim());
  }
  return chosen.view.dim() - used + broadcast;
}

void assign_selection(const Selection& chosen, PyObject* given, const Tensor& self) {
  if (chosen.indices.empty()) return assign(chosen.view, given, self);
  const Tensor value = value_of(given, self);
  infer::check_number("index assignment", "value", value, infer::computing(self.dtype()));
  const Tensor placed = without_leading_ones(value, dims_of(chosen));
  // What is no tensor has no dtype that its writer chose.
  ops::index_put_(chosen.view, chosen.indices,
                  is_tensor(given) || placed.is_wrapped_number() ? placed : ops::to_dtype(placed, self.dtype()), false);
}

}  // namespace

PyObject* tensor_getitem(PyObject* self, PyObject* key) noexcept {
  if (!is_plain(self)) [[unlikely]]
    if (overrides(self)) return override_named("__getitem__", self, &key, 1, nullptr);
  return guarded([&]() -> PyObject* {
    const Tensor& t = tensor_of(self);
    {
      View view(t);
      if (quick_view(t, key, view)) return wrap(view.finish());
    }
    if (may_override_in(key)) return override_named("__getitem__", self, &key, 1, nullptr);
    Selection chosen = select_key(t, key);
    return wrap(chosen.indices.empty() ? std::move(chosen.view) : ops::index(chosen.view, chosen.indices));
  });
}

int tensor_setitem(PyObject* self, PyObject* key, PyObject* value) noexcept {
  if (!is_plain(self) || (value && !is_plain(value))) [[unlikely]]
    if (value && (overrides(self) || may_override(value)))
      return Object(override_operator("__setitem__", {self, key, value})) ? 0 : -1;
  const Turn turn;
  try {
    if (!value) fail(ErrorKind::Type, "index: elements of a tensor cannot be deleted");
    const Tensor& t = tensor_of(self);
    View view(t);
    if (quick_view(t, key, view)) assign(view.finish(), value, t);
    else if (may_override_in(key)) return Object(override_operator("__setitem__", {self, key, value})) ? 0 : -1;
    else assign_selection(select_key(t, key), value, t);
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

PyObject* tensor_sequence_item(PyObject* self, Py_ssize_t i) noexcept {
  return guarded([&] {
    View view(tensor_of(self));
    check(view.dim() > 0, ErrorKind::Index, "index: a 0-d tensor cannot be indexed with an int; use item()");
    view.select(0, i);
    return wrap(view.finish());
  });
}

}  // namespace taeda::py
