// Shared memory with other libraries: NumPy's array interface and the buffer protocol.
#include <cstring>

#include "python/arguments.h"
#include "python/internal.h"
#include "python/library.h"
#include "python/override.h"
#include "python/numpy_bridge.h"
#include "taeda/lent.h"
#include "taeda/checked.h"
#include "taeda/exported.h"
#include "taeda/levels.h"
#include "taeda/reach.h"
#include "taeda/tracking.h"

namespace taeda::py {
namespace {

constexpr struct {
  DType dtype;
  const char* typestr;
  const char* format;  // PEP 3118, native sizes
} kTypes[kBuiltInDTypes] = {
    {DType::Bool, "|b1", "?"},       {DType::Int8, "|i1", "b"},       {DType::Int16, "<i2", "h"},
    {DType::Int32, "<i4", "i"},      {DType::Int64, "<i8", "l"},      {DType::UInt8, "|u1", "B"},
    {DType::UInt16, "<u2", "H"},     {DType::UInt32, "<u4", "I"},     {DType::UInt64, "<u8", "L"},
    {DType::Float16, "<f2", "e"},    {DType::BFloat16, "", ""},       {DType::Float32, "<f4", "f"},
    {DType::Float64, "<f8", "d"},    {DType::Complex64, "<c8", "Zf"}, {DType::Complex128, "<c16", "Zd"},
    {DType::Float8E4M3fn, "", ""},   {DType::Float8E5M2, "", ""},     {DType::Float8E4M3fnuz, "", ""},
    {DType::Float8E5M2fnuz, "", ""}, {DType::Float8E8M0fnu, "", ""},
};

/// Memory of a Python object, given back when the last tensor over it goes.
void release_owner(void*, size_t, void* owner) {
  if (!Py_IsInitialized()) return;
  const Gil gil;
  Py_DECREF(static_cast<PyObject*>(owner));
}

/// Whoever keeps the memory alive, and how it is told that the memory is no longer used. Owned by the one who holds it.
struct Keeper {
  void (*release)(void*, size_t, void*);
  void* context;
};
Keeper keep(PyObject* owner) { return {release_owner, Py_NewRef(owner)}; }

Tensor over_memory(Keeper keeper, char* first, IntSpan sizes, IntSpan byte_steps, DType dtype, bool readonly,
                   const char* op) {
  // From here on the storage gives the memory back, whatever is found to be wrong with it.
  Ref<Storage> storage = borrow_storage(first, 0, Device{}, readonly, keeper.release, keeper.context);
  const int64_t item = item_size(dtype), count = count_of(sizes, op);
  const bool none = count == 0;
  Shape strides = contiguous_strides(sizes);
  bool dense = !none;
  for (size_t d = 0; d < sizes.size(); ++d) dense &= sizes[d] == 1 || byte_steps[d] == strides[d] * item;
  int64_t low = 0, high = 0;
  if (dense) [[likely]] {
    high = (Count(count) * item).of(op, "the array's bytes");
  } else if (!none) {
    const Reach reach = reach_of(op, sizes, byte_steps, 1);
    low = reach.low;
    high = (Count(reach.high) - 1 + item - low).of(op, "the array's bytes") + low;
    // Dimensions of size 1 may carry any stride; they keep the one of a dense layout, so that contiguity is seen.
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] <= 1) continue;
      check(byte_steps[d] % item == 0, ErrorKind::Value, op, ": the array's strides are no multiples of its item size ",
            item, "; copy it first");
      strides[d] = byte_steps[d] / item;
    }
  }
  check(none || reinterpret_cast<uintptr_t>(first) % uintptr_t(std::min<int64_t>(item, 8)) == 0, ErrorKind::Value, op,
        ": the array's memory is not aligned for ", name(dtype), "; copy it first");
  storage->data = first + low;
  storage->nbytes = size_t(high - low);
  return from_storage(std::move(storage), sizes, strides, -low, dtype);
}

/// Whether elements lie where a tensor's may: aligned, and whole elements apart.
bool lies_well(const char* first, IntSpan sizes, IntSpan byte_steps, DType dtype) {
  const int64_t item = item_size(dtype);
  bool well = reinterpret_cast<uintptr_t>(first) % uintptr_t(std::min<int64_t>(item, 8)) == 0;
  for (size_t d = 0; d < sizes.size(); ++d) well &= sizes[d] <= 1 || byte_steps[d] % item == 0;
  return well;
}
/// A copy of an array whose elements do not lie well, which has the common layout.
Object copy_of(PyObject* o) { return own(PyObject_CallMethod(o, "copy", nullptr)); }

/// The quick way for NumPy's own arrays of native byte order; nothing when the long way must find out what is wrong.
std::optional<Tensor> from_ndarray(PyObject* o, const char* op, bool shared) {
  const std::optional<ArrayView> view = view_of(o);
  if (!view) return std::nullopt;
  if (!shared && !lies_well(view->first, view->sizes, view->byte_steps, view->dtype)) [[unlikely]]
    return from_ndarray(copy_of(o).get(), op, true);
  return over_memory(keep(o), view->first, view->sizes, view->byte_steps, view->dtype, view->readonly, op);
}

/// What one buffer of a tensor holds: the memory, then sizes and strides as Python reads them.
struct Shown {
  Exported memory;
  Shape numbers;
};
static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));

Shape ints_of(PyObject* tuple) {
  Shape out;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    out.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i)));
    ensure(out.back() != -1 || !PyErr_Occurred());
  }
  return out;
}

PyObject* py_from_numpy(PyObject*, PyObject* array) {
  return guarded([&] {
    const bool plain = is_ndarray(array);
    if (!plain && !(optional_attribute(array, "__array_interface__") && PyObject_HasAttrString(array, "flags") &&
                    PySequence_Check(array)))
      fail(ErrorKind::Type, "from_numpy: argument 'ndarray' must be a NumPy array, found ", type_name(array));
    return wrap(std::move(*from_array_interface(array, "from_numpy", true)));
  });
}

PyObject* py_numpy(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    static Names known{"numpy", 0, {"force"}};
    Object owner = share(self);
    if (Given(known, args, count, names).truth(0, false))
      owner = own(wrap(converted(detached_alias(tensor_of(self)), std::nullopt, Device{})));
    const Tensor& t = tensor_of(owner.get());
    check(!thread_state.grad_enabled || !shows_grad(t), ErrorKind::Runtime,
          "numpy: Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
    check_has_memory(t, "numpy");
    check(t.device().backend != kMeta || !t.keys().has(Layer::BelowAutograd), ErrorKind::Runtime,
          "numpy: not supported for tensor subclasses without memory, found ", type_name(owner.get()));
    if (t.device().backend != kCPU) [[unlikely]]
      fail(ErrorKind::Type, "numpy: only tensors on cpu share memory with NumPy, found ", describe(t),
           "; use tensor.cpu()");
    check(*buffer_format(t.dtype()), ErrorKind::Type, "numpy: NumPy has no ", name(t.dtype()),
          "; use tensor.float().numpy()");
    return array_over(t.requires_grad() ? bare_alias(t) : t);
  });
}

PyObject* py_frombuffer(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    static Names known{"frombuffer", 1, {"buffer", "dtype", "count", "offset", "requires_grad"}};
    const Given given(known, args, count, names);
    given.need(1);
    PyObject* buffer = given.need(0);
    check(PyObject_CheckBuffer(buffer), ErrorKind::Value,
          "frombuffer: argument 'buffer' must implement Python's buffer protocol, found ", type_name(buffer));
    Tensor made = over_buffer(buffer, *given.dtype(1), given.integer(2, -1), given.integer(3, 0), "frombuffer");
    if (given.truth(4, false)) set_requires_grad(made, true);
    return wrap(std::move(made));
  });
}

}  // namespace

Tensor over_buffer(PyObject* buffer, DType dtype, int64_t count, int64_t offset, const char* op) {
  const Object view = own(PyMemoryView_FromObject(buffer));  // keeps the export, and with it the memory
  const Py_buffer& raw = *PyMemoryView_GET_BUFFER(view.get());
  check(PyBuffer_IsContiguous(&raw, 'C'), ErrorKind::Buffer, op, ": the buffer is not contiguous");
  const bool readonly = raw.readonly;
  const int64_t bytes = raw.len, item = item_size(dtype);
  char* memory = static_cast<char*>(raw.buf);
  check(offset >= 0 && offset <= bytes, ErrorKind::Value, op, ": argument 'offset' is ", offset, ", expected 0 to ",
        bytes);
  if (count < 0) {
    check((bytes - offset) % item == 0, ErrorKind::Value, op, ": the ", bytes - offset,
          " bytes of the buffer are no multiple of the item size ", item, " of ", name(dtype));
    count = (bytes - offset) / item;
  }
  check(count <= (bytes - offset) / item, ErrorKind::Value, op, ": argument 'count' is ", count, ", but only ",
        (bytes - offset) / item, " items follow");
  return over_memory(keep(view.get()), memory + offset, Shape{count}, Shape{item}, dtype, readonly, op);
}

std::optional<DType> dtype_from_typestr(std::string_view text) {
  for (const auto& type : kTypes)
    if (text.size() > 1 && text == type.typestr) return type.dtype;
  return std::nullopt;
}
const char* buffer_format(DType dtype) { return is_custom(dtype) ? "" : kTypes[size_t(dtype)].format; }

Object in_own_order(PyObject* o) {
  if (!is_ndarray(o) || !is_swapped(o)) return Object(Py_NewRef(o));
  const Object type = own(PyObject_GetAttrString(o, "dtype"));
  const Object turned = own(PyObject_CallMethod(type.get(), "newbyteorder", "s", "="));
  return own(PyObject_CallMethod(o, "astype", "O", turned.get()));
}

std::optional<Tensor> from_array_interface(PyObject* o, const char* op, bool shared) {
  if (is_ndarray(o))
    if (std::optional<Tensor> quick = from_ndarray(o, op, shared)) return quick;
  const Object interface = optional_attribute(o, "__array_interface__");
  if (!interface || !PyDict_Check(interface.get())) return std::nullopt;
  // Held: the items' __index__ may empty the dict.
  const auto entry = [&](const char* key) { return Object(Py_XNewRef(PyDict_GetItemString(interface.get(), key))); };
  const Object type = entry("typestr"), extent = entry("shape"), memory = entry("data"), layout = entry("strides");
  PyObject *typestr = type.get(), *shape = extent.get(), *data = memory.get(), *steps = layout.get();
  if (!typestr || !shape || !data || !PyTuple_Check(shape) || !PyTuple_Check(data) || PyTuple_GET_SIZE(data) != 2)
    return std::nullopt;
  const std::string_view text = text_of(typestr, "typestr");
  const std::optional<DType> dtype = dtype_from_typestr(text);
  if (!dtype) {
    if (text.starts_with('>'))
      fail(ErrorKind::Value, op, ": the array has foreign byte order (", text,
           "); convert it with .astype(array.dtype.newbyteorder('='))");
    fail(ErrorKind::Type, op, ": arrays of type '", text,
         "' have no corresponding dtype; supported are bool, integers, float16/32/64 and complex64/128");
  }
  const Shape sizes = ints_of(shape);
  Shape byte_steps;
  if (steps && PyTuple_Check(steps)) {
    byte_steps = ints_of(steps);
    check(byte_steps.size() == sizes.size(), ErrorKind::Value, op, ": the array has ", sizes.size(), " sizes and ",
          byte_steps.size(), " strides");
  } else {
    byte_steps = contiguous_strides(sizes);
    for (int64_t& s : byte_steps) s *= item_size(*dtype);
  }
  char* first = static_cast<char*>(PyLong_AsVoidPtr(PyTuple_GET_ITEM(data, 0)));
  ensure(first || !PyErr_Occurred());
  check(first || count_of(sizes, op) == 0, ErrorKind::Value, op, ": the array of shape ", shape_text(sizes),
        " has no address");
  if (!shared && !lies_well(first, sizes, byte_steps, *dtype) && PyObject_HasAttrString(o, "copy"))
    return from_array_interface(copy_of(o).get(), op, true);
  return over_memory(keep(o), first, sizes, byte_steps, *dtype, is_true(PyTuple_GET_ITEM(data, 1)), op);
}

int tensor_get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  const Turn turn;
  try {
    const Tensor& t = tensor_of(self);
    view->obj = nullptr;
    const bool readonly = t.impl()->storage && is_fixed(*t.impl()->storage);
    check_has_memory(t, "buffer");
    if (t.device().backend != kCPU) [[unlikely]]
      fail(ErrorKind::Buffer, "buffer: only tensors on cpu share memory, found ", describe(t));
    check(!shows_grad(t), ErrorKind::Buffer,
          "buffer: a tensor that requires grad does not share its memory; use detach()");
    check(*buffer_format(t.dtype()), ErrorKind::Buffer, "buffer: ", name(t.dtype()),
          " has no buffer format; use .float() or .view(taeda.uint", 8 * t.item_bytes(), ")");
    check(!(flags & PyBUF_WRITABLE) || !readonly, ErrorKind::Buffer, "buffer: the tensor's memory is read-only");
    check((flags & PyBUF_STRIDES) == PyBUF_STRIDES || t.contiguous(), ErrorKind::Buffer,
          "buffer: the tensor is not contiguous");
    check((flags & PyBUF_C_CONTIGUOUS) != PyBUF_C_CONTIGUOUS || t.contiguous(), ErrorKind::Buffer,
          "buffer: the tensor is not contiguous");
    const size_t n = size_t(t.dim());
    auto* shown = new Shown{Exported(t.impl()->storage), Shape(2 * n + 1)};
    auto* numbers = reinterpret_cast<Py_ssize_t*>(shown->numbers.data());
    for (size_t d = 0; d < n; ++d) {
      numbers[d] = Py_ssize_t(t.size(int64_t(d)));
      numbers[n + d] = Py_ssize_t(t.stride(int64_t(d)) * t.item_bytes());
    }
    view->buf = t.bytes();
    view->obj = Py_NewRef(self);
    view->len = Py_ssize_t(t.numel() * t.item_bytes());
    view->readonly = readonly;
    view->itemsize = Py_ssize_t(t.item_bytes());
    view->format = (flags & PyBUF_FORMAT) ? const_cast<char*>(buffer_format(t.dtype())) : nullptr;
    view->ndim = int(n);
    view->shape = (flags & PyBUF_ND) ? numbers : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? numbers + n : nullptr;
    view->suboffsets = nullptr;
    view->internal = shown;
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

void tensor_release_buffer(PyObject*, Py_buffer* view) noexcept { delete static_cast<Shown*>(view->internal); }

PyMethodDef buffer_methods[] = {
    {"numpy", reinterpret_cast<PyCFunction>(method_fast<py_numpy>), METH_FASTCALL | METH_KEYWORDS,
     "numpy(*, force=False) -> numpy.ndarray\n\nNumPy array that shares the tensor's "
     "memory.\n\nArgs:\n    force: Detach, "
     "move to the cpu and copy as needed instead of raising.\n\nRaises:\n    RuntimeError: "
     "The tensor requires grad.\n    "
     "TypeError: It is not on the cpu, or NumPy has no such dtype."},
    {nullptr, nullptr, 0, nullptr}};
PyMethodDef buffer_functions[] = {
    {"from_numpy", py_from_numpy, METH_O,
     "from_numpy(ndarray) -> Tensor\n\nTensor that shares the array's memory, strides included. Tensors over read-only "
     "arrays refuse in-place operators.\n\n"
     "Raises:\n    TypeError: No array, or a type without corresponding dtype.\n    ValueError: Foreign byte order or "
     "unaligned memory."},
    {"frombuffer", reinterpret_cast<PyCFunction>(py_frombuffer), METH_FASTCALL | METH_KEYWORDS,
     "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False) -> Tensor\n\n1-d tensor over the bytes of "
     "an object with the buffer protocol, shared; `offset` in bytes."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace taeda::py
