// Tensors from Python data and back: numbers, nested sequences, arrays of others.
#include <algorithm>
#include <cmath>
#include <limits>

#include "python/args.h"
#include "python/arguments.h"
#include "python/errors.h"
#include "python/internal.h"
#include "python/numpy_bridge.h"
#include "python/override.h"
#include "taeda/backend.h"
#include "taeda/elementwise.h"
#include "taeda/levels.h"
#include "taeda/ops.h"
#include "taeda/reserved.h"
#include "taeda/warn.h"

namespace taeda::py {
namespace {

bool is_nested(PyObject* o) { return PyList_Check(o) || PyTuple_Check(o); }

/// Sequences other than list and tuple (range, deque, array.array ...), which become lists first.
bool is_other_sequence(PyObject* o) {
  return !is_nested(o) && !is_tensor(o) && PySequence_Check(o) && !PyUnicode_Check(o) && !PyBytes_Check(o) &&
         !PyDict_Check(o);
}

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  PyErr_SetString(data_error(), detail::concat(parts...).c_str());
  throw PythonError();
}
[[noreturn]] void no_numbers(PyObject* o) { refuse("tensor: argument 'data' must hold numbers, found ", type_name(o)); }

/// Of NumPy's own numbers, which are told by the name of their class: lists of them are many programs' results.
std::optional<DType> numpy_dtype(PyObject* o) {
  const PyTypeObject* const type = Py_TYPE(o);
  const std::string_view name = type->tp_name, module = "numpy.";
  if (type->tp_flags & Py_TPFLAGS_HEAPTYPE || !name.starts_with(module)) return std::nullopt;
  static constexpr std::pair<std::string_view, DType> kinds[] = {
      {"float32", DType::Float32}, {"float64", DType::Float64}, {"float16", DType::Float16}, {"int64", DType::Int64},
      {"int32", DType::Int32},     {"int16", DType::Int16},     {"int8", DType::Int8},       {"uint8", DType::UInt8}};
  for (const auto& [kind, dtype] : kinds)
    if (name.substr(module.size()) == kind) return dtype;
  return std::nullopt;
}
DType leaf_dtype(PyObject* o) {
  if (PyFloat_CheckExact(o)) return default_dtype();
  if (PyLong_CheckExact(o)) return DType::Int64;
  if (PyBool_Check(o)) return DType::Bool;
  if (PyComplex_CheckExact(o)) return complex_of(default_dtype());
  if (is_tensor(o)) return tensor_of(o).dtype();
  if (const std::optional<DType> dtype = numpy_dtype(o)) return *dtype;
  if (Object kind = optional_attribute(o, "dtype"); kind)
    if (std::optional<DType> dtype = as_dtype(kind.get())) return *dtype;
  if (std::optional<Scalar> number = number_for(o, "tensor", "data")) return number->dtype();
  no_numbers(o);
}

/// Fractions, decimals, symbols: no numbers, but a tensor of a dtype that is given stores the floats that they become.
bool becomes_float(PyObject* o) {
  const PyNumberMethods* const number = Py_TYPE(o)->tp_as_number;
  return number && number->nb_float && !PySequence_Check(o) && !PyUnicode_Check(o);
}

template <class T>
T checked_integer(PyObject* o) {
  if (PyFloat_Check(o)) {
    const double v = PyFloat_AS_DOUBLE(o);
    if (!std::isfinite(v)) refuse("tensor: argument 'data' holds ", v, ", which no integer dtype can hold");
    return T(int64_t(v));
  }
  const std::optional<Scalar> number =
      is_tensor(o) ? scalar_of(tensor_of(o), "tensor") : number_for(o, "tensor", "data");
  if (!number) no_numbers(o);
  // A float tensor is cut off by no sequence of integers, a complex number by nothing.
  check(!number->is_complex() && (number->is_integral() || !is_tensor(o)), ErrorKind::Type,
        "tensor: argument 'data' holds ", is_tensor(o) ? "a tensor" : "a number", " of dtype ", name(number->dtype()),
        ", which dtype ", name(dtype_of<T>), " cannot hold");
  if (!number->is_integral()) return T(int64_t(number->to_double()));
  // A negative number of an unsigned dtype counts down from the largest, as in fill_.
  constexpr bool wraps = std::is_unsigned_v<T> && !std::is_same_v<T, uint64_t>;
  const bool fits =
      number->kind() == Scalar::Kind::UInt ? number->to<uint64_t>() <= uint64_t(std::numeric_limits<T>::max())
      : std::is_same_v<T, uint64_t>        ? number->to<int64_t>() >= 0
                                           : std::in_range<T>(number->to<int64_t>()) ||
                                                 (wraps && number->to<int64_t>() < 0 &&
                                                  number->to<int64_t>() >= -int64_t(std::numeric_limits<T>::max()));
  if (!fits) {
    const Object shown = own(PyObject_Str(o));
    fail(ErrorKind::Overflow, "tensor: argument 'data' holds ", PyUnicode_AsUTF8(shown.get()),
         ", out of range for dtype ", name(dtype_of<T>));
  }
  return number->kind() == Scalar::Kind::UInt ? T(number->to<uint64_t>()) : T(number->to<int64_t>());
}

template <class T>
T leaf(PyObject* o) {
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, float>) {
    if (PyFloat_CheckExact(o)) [[likely]]
      return T(PyFloat_AS_DOUBLE(o));
    if (PyLong_CheckExact(o)) {  // of any size
      const double value = PyLong_AsDouble(o);
      ensure(value != -1 || !PyErr_Occurred());
      return T(value);
    }
    if (const std::optional<DType> dtype = numpy_dtype(o); dtype && is_floating(*dtype)) {
      const double value = PyFloat_AsDouble(o);
      ensure(value != -1 || !PyErr_Occurred());
      return T(value);
    }
  }
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) return checked_integer<T>(o);
  std::optional<Scalar> number = is_tensor(o) ? scalar_of(tensor_of(o), "tensor") : number_for(o, "tensor", "data");
  if (!number && becomes_float(o)) number = as_number(own(PyNumber_Float(o)).get());
  if (!number) no_numbers(o);
  check(!number->is_complex() || is_complex(dtype_of<T>) || dtype_of<T> == DType::Bool, ErrorKind::Type,
        "tensor: argument 'data' holds a complex number, which dtype ", name(dtype_of<T>), " cannot hold");
  return number->to<T>();
}

/// Numbers whose conversion runs no Python code.
bool is_plain(PyObject* o) { return PyFloat_CheckExact(o) || PyLong_CheckExact(o); }

/// Loops over Python objects look at signals before every so many of them; handlers may change what is read.
class Looks {
 public:
  /// False with Python's error set when a handler raised.
  bool next() {
    if ((++items_ & 0x3fff) != 0) [[likely]]
      return true;
    return PyErr_CheckSignals() == 0;
  }

 private:
  uint32_t items_ = 0;
};

void check_depth(size_t depth) {
  check(depth <= size_t(kMaxDims), ErrorKind::Value, "tensor: argument 'data' is nested more than ", kMaxDims, " deep");
}

/// Shape and dtype of nested sequences, found before anything is allocated; a dtype that is given is not looked for.
struct Scan {
  Shape sizes;
  std::optional<DType> dtype;
  bool has_arrays = false;  // items with dimensions of their own

  Scan(PyObject* data, std::optional<DType> given) : dtype(given), looks_for_dtype(!given) {
    // Nothing here runs Python code, so the items stay where they are.
    for (PyObject* o = data; is_nested(o); o = PySequence_Fast_GET_ITEM(o, 0)) {
      sizes.push_back(PySequence_Fast_GET_SIZE(o));
      check_depth(sizes.size());
      if (PySequence_Fast_GET_SIZE(o) == 0) break;
    }
    visit(data, 0);
  }

 private:
  bool looks_for_dtype;
  Looks looks;
  void visit(PyObject* o, size_t depth) {
    check(PySequence_Fast_GET_SIZE(o) == sizes[depth], ErrorKind::Value,
          "tensor: argument 'data' is ragged: expected a sequence of length ", sizes[depth], " at dimension ", depth,
          ", found length ", PySequence_Fast_GET_SIZE(o));
    const bool last = depth + 1 == sizes.size();
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
      ensure(looks.next());
      if (i >= PySequence_Fast_GET_SIZE(o)) break;
      PyObject* item = PySequence_Fast_GET_ITEM(o, i);
      if (is_plain(item) && last) {
        visit_leaf(item, depth);
        continue;
      }
      const Object held = share(item);  // looking at it may run Python code, which could empty the list
      if (last) visit_leaf(item, depth);
      else if (is_nested(item)) visit(item, depth + 1);
      else if (is_other_sequence(item) || (is_tensor(item) && tensor_of(item).dim() > 0)) has_arrays = true;
      else
        refuse("tensor: argument 'data' is ragged: expected a sequence of length ", sizes[depth + 1], " at dimension ",
               depth + 1, ", found ", type_name(item));
    }
  }
  void visit_leaf(PyObject* item, size_t depth) {
    if (!is_plain(item)) {
      if (is_nested(item))
        fail(ErrorKind::Type, "tensor: argument 'data' is ragged: expected a number at dimension ", depth + 1,
             ", found a sequence of length ", PySequence_Fast_GET_SIZE(item));
      // A tensor of one element is a number, whatever its dimensions.
      has_arrays = has_arrays || is_other_sequence(item) || (is_tensor(item) && tensor_of(item).numel() != 1);
      if (has_arrays) return;
    }
    if (!looks_for_dtype) return;
    const DType found = leaf_dtype(item);
    if (!dtype) dtype = found;
    else if (*dtype != found) dtype = promote(*dtype, found);
  }
};

/// Writes the numbers at `to`. Converting an item may run Python code that changes the sequences: what was found by the
/// scan is checked again before each step, and each item is held.
template <class T>
T* fill(PyObject* o, IntSpan sizes, T* to, Looks& looks) {
  const auto unchanged = [](bool ok) {
    check(ok, ErrorKind::Runtime, "tensor: argument 'data' changed while it was read");
  };
  unchanged(is_nested(o));
  for (int64_t i = 0; i < sizes[0]; ++i) {
    ensure(looks.next());
    unchanged(PySequence_Fast_GET_SIZE(o) == sizes[0]);
    PyObject* item = PySequence_Fast_GET_ITEM(o, Py_ssize_t(i));
    if (sizes.size() == 1 && is_plain(item)) [[likely]] {
      *to++ = leaf<T>(item);
      continue;
    }
    const Object held = share(item);
    if (sizes.size() == 1) *to++ = leaf<T>(item);
    else to = fill(item, sizes.subspan(1), to, looks);
  }
  unchanged(PySequence_Fast_GET_SIZE(o) == sizes[0]);
  return to;
}

/// A sequence whose items are arrays or tensors: each is converted, then they are stacked.
Tensor stacked(PyObject* data, std::optional<DType> dtype) {
  thread_local size_t depth = 0;
  struct Level {  // an item may be made anew each time that it is asked for
    Level() { check_depth(depth + 1), ++depth; }
    ~Level() { --depth; }
  } level;
  std::vector<Tensor> items;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(data); ++i) {
    const Object held = share(PySequence_Fast_GET_ITEM(data, i));  // its conversion may change the list
    items.push_back(tensor_sharing(held.get(), dtype, std::nullopt, "tensor"));
    const Tensor &first = items.front(), &last = items.back();
    if (!std::ranges::equal(last.sizes(), first.sizes())) [[unlikely]]
      fail(last.dim() == first.dim() ? ErrorKind::Value : ErrorKind::Type,
           "tensor: argument 'data' is ragged: expected items of shape ", shape_text(first.sizes()), ", found ",
           shape_text(last.sizes()), " at ", i);
  }
  return ops::stack(items, 0);
}

Tensor from_sequence(PyObject* data, std::optional<DType> dtype) {
  const Scan scan(data, dtype);
  if (scan.has_arrays) return stacked(data, dtype);
  const DType chosen = scan.dtype.value_or(default_dtype());
  if (is_float8(chosen)) return ops::cast(from_sequence(data, DType::Float32), chosen);
  Tensor out = empty(scan.sizes, chosen);
  Looks looks;
  if (out.numel()) visit_dtype(chosen, [&]<class T>() { fill(data, IntSpan(scan.sizes), out.data<T>(), looks); });
  return out;
}

Tensor from_number(PyObject* data, std::optional<DType> dtype) {
  const DType chosen = dtype ? *dtype : leaf_dtype(data);
  if (is_float8(chosen)) return ops::cast(from_number(data, DType::Float32), chosen);
  Tensor out = empty({}, chosen);
  visit_dtype(chosen, [&]<class T>() { *out.data<T>() = leaf<T>(data); });
  return out;
}

Tensor on_device(Tensor made, std::optional<Device> device) {
  return device && *device != made.device() ? ops::to_device(made, *device) : made;
}

/// Numbers and sequences; nothing for objects of another kind.
std::optional<Tensor> from_plain(PyObject* data, std::optional<DType> dtype) {
  if (is_nested(data)) return from_sequence(data, dtype);
  if (PyFloat_CheckExact(data) || PyLong_CheckExact(data) || PyBool_Check(data) || PyComplex_CheckExact(data))
    return from_number(data, dtype);
  return std::nullopt;
}

/// A copy of a sequence that NumPy reads, such as a column of a table, whose iteration gives Python's numbers and so
/// would lose the dtype; nothing for other sequences, and for elements that are no numbers.
std::optional<Tensor> from_array_method(PyObject* sequence, std::optional<DType> dtype) {
  if (!optional_attribute(reinterpret_cast<PyObject*>(Py_TYPE(sequence)), "__array__")) return std::nullopt;
  const Object array = in_own_order(own(PyObject_CallMethod(sequence, "__array__", nullptr)).get());
  const Object kind = optional_attribute(array.get(), "dtype");
  if (!kind || !as_dtype(kind.get())) return std::nullopt;
  const std::optional<Tensor> read = from_array_interface(array.get(), "tensor");
  if (!read) return std::nullopt;
  return ops::clone(converted(*read, dtype, std::nullopt), "contiguous_format");
}

Tensor from_other(PyObject* data, std::optional<DType> dtype) {
  if (!PySequence_Check(data) && (as_number(data) || (dtype && becomes_float(data)))) return from_number(data, dtype);
  if (is_other_sequence(data))
    if (std::optional<Tensor> array = from_array_method(data, dtype)) return std::move(*array);
  if (is_other_sequence(data)) return from_sequence(items_of(data).get(), dtype);
  refuse("tensor: argument 'data' must be a number, a (nested) sequence of numbers, an array or a Tensor, found ",
         type_name(data));
}

Tensor import_dlpack(PyObject* o) {
  const Object import =
      own(PyObject_GetAttrString(own(PyImport_ImportModule("taeda_tensor_core._C")).get(), "from_dlpack"));
  const Object made = own(PyObject_CallOneArg(import.get(), o));
  return tensor_of(made.get());
}

template <class T>
PyObject* leaf_object(T v) {
  if constexpr (std::is_same_v<T, bool>) return PyBool_FromLong(v);
  else if constexpr (is_complex(dtype_of<T>)) return PyComplex_FromDoubles(double(v.real()), double(v.imag()));
  else if constexpr (!std::is_integral_v<T>) return PyFloat_FromDouble(double(v));
  else if constexpr (std::is_unsigned_v<T>) return PyLong_FromUnsignedLongLong(v);
  else return PyLong_FromLongLong(v);
}

/// Nested lists of elements of type T; the element itself beyond the last dimension. Null with Python's error set.
template <class T>
PyObject* nested(const Tensor& t, int64_t dim, const char* at, Looks& looks) {
  if (dim == t.dim()) return leaf_object(*reinterpret_cast<const T*>(at));
  const int64_t size = t.size(dim), step = t.stride(dim) * t.item_bytes();
  PyObject* list = PyList_New(Py_ssize_t(size));
  for (int64_t i = 0; list && i < size; ++i, at += step) {
    // Rows of elements are most of the work: no call for each of them.
    PyObject* item = !looks.next()        ? nullptr
                     : dim + 1 == t.dim() ? leaf_object(*reinterpret_cast<const T*>(at))
                                          : nested<T>(t, dim + 1, at, looks);
    if (!item) [[unlikely]]
      Py_CLEAR(list);
    else PyList_SET_ITEM(list, Py_ssize_t(i), item);
  }
  return list;
}

constexpr int64_t kFew = 4;

/// A list of at most kFew numbers.
template <class T>
PyObject* short_list(const Tensor& t) {
  T numbers[kFew];
  const int64_t size = t.numel(), step = t.stride(0) * t.item_bytes();
  for (int64_t i = 0; i < size; ++i) numbers[i] = *reinterpret_cast<const T*>(t.bytes() + i * step);
  Object list = own(PyList_New(Py_ssize_t(size)));
  for (int64_t i = 0; i < size; ++i) PyList_SET_ITEM(list.get(), Py_ssize_t(i), own(leaf_object(numbers[i])).release());
  return list.release();
}

Tensor on_host(const Tensor& t) { return t.device().backend == kCPU ? t : ops::to_device(t, Device{}); }

namespace {

/// The number that only the class of a wrapping tensor knows; nothing for tensors that the host can have.
std::optional<Scalar> wrapped_scalar(const Tensor& tensor, const char* op) {
  if (!is_wrapper(tensor)) return std::nullopt;
  const Object module = own(PyImport_ImportModule("taeda_tensor_core.python_dispatch"));
  const Object self = own(wrap(tensor));
  const Object found = own(PyObject_CallMethod(module.get(), "wrapped_number", "O", self.get()));
  if (found.get() == Py_NotImplemented) return std::nullopt;
  if (const std::optional<Scalar> number = number_for(found.get(), op, "self")) return number;
  fail(ErrorKind::Type, op, ": __torch_dispatch__ of ", type_name(self.get()), " gave ", type_name(found.get()),
       " for aten::_local_scalar_dense, expected a number");
}

/// A copy in the host's memory, which wrapping tensors cannot give: what they give is wrapped again.
Tensor memory_on_host(const Tensor& t, const char* op) {
  if (!(t.impl()->flags & kCarries) && !is_wrapper(t) && !backend(t.device().backend).has_memory()) [[unlikely]]
    fail(ErrorKind::NotImplemented, op, ": its numbers are not known: Cannot copy out of ", to_string(t.device()),
         " tensor; no data!");
  Tensor here = on_host(t);
  if (here.device().backend == kCPU) return here;
  const Object self = own(wrap(t));
  fail(ErrorKind::Runtime, op, ": not supported for tensor subclasses without memory, found ", type_name(self.get()));
}

}  // namespace

// --- Python functions ---

PyObject* py_tensor(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  if (mode_in_force()) return override_named("tensor", nullptr, args, count, names);
  return guarded([&] {
    static Names known{"tensor", 1, {"data", "dtype", "device", "requires_grad", "pin_memory"}};
    const Given given(known, args, count, names);
    if (PyObject* other = packing(given[1])) return packed(other, tensor_from_data(given.need(0), {}, given.device(2)));
    if (is_tensor(given.need(0)))
      warn(
          "To copy construct from a tensor, use sourceTensor.detach().clone(), with .requires_grad_(True) where "
          "gradients are wanted, rather than taeda.tensor(sourceTensor)");
    Tensor made = tensor_from_data(given.need(0), given.dtype(1), given.device(2));
    if (given.truth(4, false)) {
      const Object plain(wrap(std::move(made))), pinned(PyObject_CallMethod(plain.get(), "pin_memory", nullptr));
      if (!pinned) throw PythonError();
      made = tensor_of(pinned.get());
    }
    if (given.truth(3, false)) set_requires_grad(made, true);
    return wrap(std::move(made));
  });
}

PyObject* py_as_tensor(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  if (mode_in_force()) return override_named("as_tensor", nullptr, args, count, names);
  return guarded([&] {
    static Names known{"as_tensor", 3, {"data", "dtype", "device"}};
    const Given given(known, args, count, names);
    return wrap(tensor_sharing(given.need(0), given.dtype(1), given.device(2), "as_tensor"));
  });
}

/// Its class says so: objects that answer to any name have no elements.
bool gives_dlpack(PyObject* o) {
  return bool(optional_attribute(reinterpret_cast<PyObject*>(Py_TYPE(o)), "__dlpack__"));
}
/// The kind of device on which another library has this array, shown by that kind's array interface; null: none.
const ReservedDevice* place_of_array(PyObject* o) {
  for (const ReservedDevice& kind : kReservedDevices)
    if (kind.arrays && optional_attribute(reinterpret_cast<PyObject*>(Py_TYPE(o)), kind.arrays) &&
        optional_attribute(o, kind.arrays))
      return &kind;
  return nullptr;
}
/// The backend of that kind reads it.
std::optional<Tensor> from_device_array(PyObject* o) {
  const ReservedDevice* kind = place_of_array(o);
  if (!kind) return std::nullopt;
  const Object core = own(PyImport_ImportModule("taeda_tensor_core"));
  const Object module = own(PyObject_CallMethod(core.get(), "get_device_module", "s", kind->name));
  return tensor_of(own(PyObject_CallMethod(module.get(), "from_array_interface", "O", o)).get());
}
bool is_array(PyObject* o) {
  return is_tensor(o) || optional_attribute(o, "__array_interface__") || gives_dlpack(o) || place_of_array(o);
}

/// Storage without a dtype: its bytes are elements of the dtype that is asked for.
std::optional<Tensor> from_bytes(PyObject* o, std::optional<DType> dtype, const char* op) {
  if (!dtype || is_ndarray(o) || !optional_attribute(reinterpret_cast<PyObject*>(Py_TYPE(o)), "_is_untyped_memory"))
    return std::nullopt;
  const std::optional<Tensor> bytes = from_array_interface(o, op);
  if (!bytes) return std::nullopt;
  check(bytes->numel() % item_size(*dtype) == 0, ErrorKind::Runtime, op, ": the ", bytes->numel(),
        " bytes of the storage are no whole number of elements of ", name(*dtype));
  return ops::view_dtype(*bytes, *dtype);
}

/// Memory without dtype and shape of its own: a DLPack capsule or a buffer, whose bytes are elements of the dtype.
std::optional<Tensor> over_raw(PyObject* o, std::optional<DType> dtype, std::optional<Device> device) {
  if (PyCapsule_CheckExact(o)) return converted(import_dlpack(o), dtype, device);
  if (!PyObject_CheckBuffer(o) || is_array(o) || as_number(o)) return std::nullopt;
  return on_device(over_buffer(o, dtype.value_or(default_dtype()), -1, 0, "asarray"), device);
}

PyObject* py_asarray(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  if (mode_in_force()) return override_named("asarray", nullptr, args, count, names);
  return guarded([&] {
    static Names known{"asarray", 1, {"obj", "dtype", "device", "copy", "requires_grad"}};
    const Given given(known, args, count, names);
    PyObject* copy = given[3];
    const bool says = copy && copy != Py_None, must_copy = says && is_true(copy), must_share = says && !must_copy;
    const std::optional<Tensor> raw = over_raw(given.need(0), given.dtype(1), given.device(2));
    Tensor made = raw ? *raw
                  : must_copy && !is_tensor(given[0])
                      ? tensor_from_data(given[0], given.dtype(1), given.device(2))
                      : tensor_sharing(given[0], given.dtype(1), given.device(2), "asarray");
    if (must_copy && (raw || (is_tensor(given[0]) && made.same(tensor_of(given[0]))))) made = ops::clone(made);
    if (must_share && !raw) {
      const bool array = is_array(given[0]);
      const Tensor plain = array ? tensor_sharing(given[0], std::nullopt, std::nullopt, "asarray") : Tensor();
      check(array && plain.bytes() == made.bytes(), ErrorKind::Value, "asarray: argument 'copy' is False, but '",
            type_name(given[0]), "' cannot become this tensor without a copy");
    }
    // What is not said stays as it is with the object.
    const bool wanted = given.truth(4, made.requires_grad());
    if (made.requires_grad() && !wanted) made = detached_alias(made);
    if (wanted && !made.requires_grad()) set_requires_grad(made, true);
    return wrap(std::move(made));
  });
}

}  // namespace

Object items_of(PyObject* sequence) {
  if (Py_TYPE(sequence)->tp_iter) return own(PySequence_List(sequence));
  const Py_ssize_t count = PySequence_Size(sequence);
  ensure(count >= 0);
  Object items = own(PyList_New(0));
  for (Py_ssize_t i = 0; i < count; ++i)
    ensure(PyList_Append(items.get(), own(PySequence_GetItem(sequence, i)).get()) == 0);
  return items;
}

Tensor converted(const Tensor& self, std::optional<DType> dtype, std::optional<Device> device) {
  Tensor out = self;
  if (dtype && *dtype != out.dtype()) out = ops::to_dtype(out, *dtype);
  return on_device(std::move(out), device);
}

Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype, std::optional<Device> device) {
  if (std::optional<Tensor> made = from_plain(data, dtype)) return on_device(std::move(*made), device);
  if (is_tensor(data)) {
    const Tensor source = detached_alias(tensor_of(data));
    Tensor out = converted(source, dtype, device);
    return out.same(source) ? ops::clone(source) : out;
  }
  if (!PySequence_Check(data) && as_number(data)) return on_device(from_number(data, dtype), device);
  if (std::optional<Tensor> bytes = from_bytes(data, dtype, "tensor")) return on_device(ops::clone(*bytes), device);
  if (std::optional<Tensor> array = from_array_interface(data, "tensor")) {
    const Tensor out = converted(*array, dtype, device);
    return out.same(*array) ? ops::clone(out) : out;
  }
  if (gives_dlpack(data)) return ops::clone(converted(import_dlpack(data), dtype, device));
  if (std::optional<Tensor> array = from_device_array(data)) return ops::clone(converted(*array, dtype, device));
  return on_device(from_other(data, dtype), device);
}

Tensor tensor_sharing(PyObject* data, std::optional<DType> dtype, std::optional<Device> device, const char* op) {
  if (is_tensor(data)) return converted(tensor_of(data), dtype, device);
  if (std::optional<Tensor> made = from_plain(data, dtype)) return on_device(std::move(*made), device);
  if (!PySequence_Check(data) && as_number(data)) return on_device(from_number(data, dtype), device);
  if (std::optional<Tensor> bytes = from_bytes(data, dtype, op)) return on_device(std::move(*bytes), device);
  if (std::optional<Tensor> array = from_array_interface(data, op)) return converted(*array, dtype, device);
  if (gives_dlpack(data)) return converted(import_dlpack(data), dtype, device);
  if (std::optional<Tensor> array = from_device_array(data)) return converted(*array, dtype, device);
  return on_device(from_other(data, dtype), device);
}

Scalar scalar_of(const Tensor& tensor, const char* op) {
  if (tensor.numel() != 1) [[unlikely]] {
    // Python's own conversions refuse a value; what asks for an item refuses a call.
    const std::string_view asked = op;
    const bool converts = asked == "int" || asked == "float" || asked == "complex" || asked == "tensor";
    check(!converts, ErrorKind::Value, op, ": found shape ", shape_text(tensor.sizes()),
          ": only one element tensors can be converted to Python scalars");
    fail(ErrorKind::Runtime, op, ": found shape ", shape_text(tensor.sizes()), ": a Tensor with ", tensor.numel(),
         " elements cannot be converted to Scalar");
  }
  if (tensor.device().backend != kCPU || (tensor.impl()->flags & kCarries)) [[unlikely]] {
    check_has_memory(tensor, op);
    if (const std::optional<Scalar> number = wrapped_scalar(tensor, op)) return *number;
    if (tensor.device().backend != kCPU) return scalar_of(memory_on_host(tensor, op), op);
  }
  if (is_float8(tensor.dtype())) return taeda::scalar_of(tensor);
  return visit_dtype(tensor.dtype(), [&]<class T>() -> Scalar {
    const T v = *tensor.data<T>();
    if constexpr (is_complex(dtype_of<T>)) return Scalar(std::complex<double>(v));
    else if constexpr (std::is_same_v<T, bool>) return Scalar(v);
    else if constexpr (std::is_same_v<T, uint64_t>) return v > uint64_t(INT64_MAX) ? Scalar(v) : Scalar(int64_t(v));
    else if constexpr (std::is_integral_v<T>) return Scalar(int64_t(v));
    else if constexpr (std::is_same_v<T, double>) return Scalar(v);
    else return Scalar(double(float(v)));
  });
}

PyObject* number_of(const Scalar& scalar) {
  switch (scalar.kind()) {
    case Scalar::Kind::Bool: return PyBool_FromLong(scalar.to<bool>());
    case Scalar::Kind::Int: return PyLong_FromLongLong(scalar.to<int64_t>());
    case Scalar::Kind::UInt: return PyLong_FromUnsignedLongLong(scalar.to<uint64_t>());
    case Scalar::Kind::Float: return PyFloat_FromDouble(scalar.to_double());
    default: return PyComplex_FromDoubles(scalar.to_double(), scalar.imag());
  }
}

PyObject* to_nested_list(const Tensor& t) {
  check_has_memory(t, "tolist");
  if (t.device().backend != kCPU) return to_nested_list(memory_on_host(t, "tolist"));
  if (is_float8(t.dtype())) return to_nested_list(ops::cast(t, DType::Float32));
  // Making lists may run the collector or the handler of a signal, and these any code, which may give `t` itself
  // another storage or shape: few numbers are read before, else what is read stays.
  if (t.dim() == 1 && t.numel() <= kFew) return visit_dtype(t.dtype(), [&]<class T>() { return short_list<T>(t); });
  const Ref<Storage> kept = t.impl()->storage;
  const Tensor held = t.numel() >= 0x4000 ? bare_alias(t) : t;
  Looks looks;
  return own(visit_dtype(t.dtype(), [&]<class T>() { return nested<T>(held, 0, held.bytes(), looks); })).release();
}

/// Another tensor over the same memory, through which gradients go.
Tensor shown(const Tensor& t) {
  if (t.requires_grad()) return ops::expand(t, t.sizes(), false);
  return alias(t, t.sizes(), t.strides(), 0);
}

/// The arguments of `Tensor(size=...)` or `Tensor(data=...)`, as they would stand by position.
Object arguments_by_name(PyObject* args, PyObject* kwargs) {
  Object found;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, &key, &value);) {
    const char* text = PyUnicode_AsUTF8(key);
    ensure(text);
    const std::string_view name = text;
    if (name == "device") continue;
    const bool is_size = name == "size";
    if (found || PyTuple_GET_SIZE(args) || !(is_size || name == "data" || name == "other" || name == "storage"))
      fail(ErrorKind::Type, "Tensor: unexpected keyword argument '", name,
           "'; expected 'device' and one of sizes by position, 'size', 'data', 'other' and 'storage'");
    if (!is_size) {
      found = own(PyTuple_Pack(1, value));
    } else {
      if (!PyTuple_Check(value) && !PyList_Check(value))
        fail(ErrorKind::Type, "Tensor: argument 'size' must be a tuple of ints, found ", type_name(value));
      found = own(PyTuple_Pack(1, own(PyObject_CallOneArg(reinterpret_cast<PyObject*>(SizeType), value)).get()));
    }
  }
  return found;
}

PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) noexcept {
  return guarded([&]() -> PyObject* {
    std::optional<Device> device;
    Object named;  // arguments by their names, in the place of those by position
    if (kwargs && PyDict_Size(kwargs)) {
      PyObject* given = PyDict_GetItemString(kwargs, "device");
      if (given && given != Py_None && !(device = as_device(given)))
        fail(ErrorKind::Type, "Tensor: argument 'device' must be a device or its name, found ", type_name(given));
      if (!given || PyDict_Size(kwargs) > 1) args = (named = arguments_by_name(args, kwargs)).get();
    }
    const Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyObject* first = n ? PyTuple_GET_ITEM(args, 0) : nullptr;
    if (n == 1 && is_tensor(first)) return wrap_fresh(converted(shown(tensor_of(first)), std::nullopt, device), type);
    const bool is_size = n == 1 && PyType_IsSubtype(Py_TYPE(first), SizeType);
    if (n == 1 && !PyLong_Check(first) && !is_integer(first) && !is_size)
      return wrap_fresh(tensor_from_data(first, default_dtype(), device), type);
    Shape sizes;
    PyObject* list = is_size ? first : args;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list); ++i) {
      PyObject* item = PyTuple_GET_ITEM(list, i);
      if (!PyLong_Check(item) && !is_integer(item))
        fail(ErrorKind::Type, "Tensor: sizes must be ints, found ", type_name(item), " at position ", i + 1);
      sizes.push_back(PyLong_AsLongLong(own(PyNumber_Index(item)).get()));
      ensure(sizes.back() != -1 || !PyErr_Occurred());
    }
    if (n == 0) sizes.push_back(0);
    return wrap_fresh(ops::empty(sizes, default_dtype(), device), type);
  });
}

#define TAEDA_FAST(FUNCTION) reinterpret_cast<PyCFunction>(FUNCTION), METH_FASTCALL | METH_KEYWORDS
PyMethodDef data_functions[] = {
    {"tensor", TAEDA_FAST(py_tensor),
     "tensor(data, *, dtype=None, device=None, requires_grad=False) -> Tensor\n\nNew tensor from a number, nested "
     "sequences, an array or a tensor; always a copy.\n\n"
     "Without `dtype`: floats give the default dtype, ints int64; arrays keep theirs.\n\nRaises:\n    TypeError: An "
     "item is no number, or a sequence stands beside one.\n    ValueError: The sequences are ragged.\n"
     "    OverflowError: An integer does not fit the dtype.\n\nExample:\n    >>> taeda.tensor([[1, 2], [3, "
     "4]]).shape\n    Size([2, 2])"},
    {"as_tensor", TAEDA_FAST(py_as_tensor),
     "as_tensor(data, dtype=None, device=None) -> Tensor\n\nTensor from data that shares memory with arrays and "
     "tensors where nothing must change.\n\n"
     "Example:\n    >>> t = taeda.ones(2)\n    >>> taeda.as_tensor(t) is t\n    True"},
    {"asarray", TAEDA_FAST(py_asarray),
     "asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None) -> Tensor\n\nTensor from any object; "
     "the bytes of a buffer (bytes, bytearray, memoryview) are elements of `dtype`, else of the default one. "
     "copy=True always copies, copy=False raises ValueError where a copy is needed."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace taeda::py
