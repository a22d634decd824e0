// DLPack both ways: __dlpack__, __dlpack_device__ and from_dlpack.
#include "python/dlpack.h"

#include <algorithm>

#include "python/arguments.h"
#include "python/internal.h"
#include "python/library.h"
#include "python/override.h"
#include "taeda/lent.h"
#include "taeda/backend.h"
#include "taeda/checked.h"
#include "taeda/exported.h"
#include "taeda/levels.h"
#include "taeda/ops.h"
#include "taeda/reach.h"
#include "taeda/reserved.h"
#include "taeda/stream.h"
#include "taeda/tracking.h"

namespace taeda::py {
namespace {

constexpr const char* kName = "dltensor";
constexpr const char* kUsed = "used_dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";
constexpr const char* kVersionedUsed = "used_dltensor_versioned";

uint8_t float8_code(DType dtype) {
  switch (dtype) {
    case DType::Float8E4M3fn: return dlpack::kFloat8E4M3fn;
    case DType::Float8E4M3fnuz: return dlpack::kFloat8E4M3fnuz;
    case DType::Float8E5M2: return dlpack::kFloat8E5M2;
    case DType::Float8E5M2fnuz: return dlpack::kFloat8E5M2fnuz;
    default: return dlpack::kFloat8E8M0fnu;
  }
}
dlpack::DataType type_of(DType dtype) {
  const uint8_t bits = uint8_t(item_size(dtype) * 8);
  if (dtype == DType::Bool) return {dlpack::kBool, 8, 1};
  if (dtype == DType::BFloat16) return {dlpack::kBfloat, 16, 1};
  check(!is_custom(dtype), ErrorKind::Buffer, "__dlpack__: dtype ", name(dtype), " of a plug-in has no code there");
  if (is_float8(dtype)) return {float8_code(dtype), 8, 1};
  if (is_floating(dtype)) return {dlpack::kFloat, bits, 1};
  if (is_complex(dtype)) return {dlpack::kComplex, bits, 1};
  return {is_signed(dtype) ? dlpack::kInt : dlpack::kUInt, bits, 1};
}

DType dtype_from(const dlpack::DataType& type) {
  for (int i = 0; i < kBuiltInDTypes; ++i) {
    const dlpack::DataType mine = type_of(DType(i));
    if (type.lanes == 1 && mine.code == type.code && mine.bits == type.bits) return DType(i);
  }
  fail(ErrorKind::Buffer, "from_dlpack: elements of type code ", int(type.code), ", ", int(type.bits), " bits, ",
       type.lanes, " lanes have no corresponding dtype");
}

void check_bytes(const Tensor& t, const char* op) {
  check_has_memory(t, op);
  if (!backend(t.device().backend).has_memory()) [[unlikely]]
    fail(ErrorKind::Buffer, op, ": only tensors with elements can be exported, found ", describe(t));
}

/// The kind of device that DLPack has a number of its own for; null for others.
const ReservedDevice* known_kind(taeda::Device device) {
  const std::string name = backend(device.backend).name();
  const auto* found = std::ranges::find_if(kReservedDevices, [&](const ReservedDevice& d) { return d.name == name; });
  return found == std::end(kReservedDevices) ? nullptr : found;
}
const ReservedDevice* known_kind(int32_t type) {
  const auto* found = std::ranges::find(kReservedDevices, type, &ReservedDevice::dlpack);
  return found == std::end(kReservedDevices) ? nullptr : found;
}

/// Other devices of plug-ins are extensions, whose numbers are those of this process.
constexpr int kIndices = 128;
dlpack::Device place_of(taeda::Device device) {
  if (device.backend == kCPU) return {dlpack::kCPU, 0};
  if (const ReservedDevice* kind = known_kind(device)) return {dlpack::DeviceType(kind->dlpack), device.index};
  return {dlpack::kExtension, device.backend * kIndices + device.index};
}

/// Memory kept alive for the consumer, with the lists the structure points to.
template <class Structure>
struct Export {
  Structure managed;
  Exported memory;
  std::vector<int64_t> dims;

  explicit Export(const Tensor& tensor) : managed{}, memory(tensor.impl()->storage) {
    const size_t n = size_t(tensor.dim());
    dims.assign(tensor.sizes().begin(), tensor.sizes().end());
    dims.insert(dims.end(), tensor.strides().begin(), tensor.strides().end());
    dims.push_back(0);
    managed.array = {tensor.bytes(), place_of(tensor.device()), int32_t(n), type_of(tensor.dtype()),
                     dims.data(),    dims.data() + n,           0};
    managed.context = this;
    managed.deleter = end;
  }
  static void end(Structure* self) { delete static_cast<Export*>(self->context); }
};

/// A capsule that nobody consumed frees what it holds.
template <class Structure>
void drop_capsule(PyObject* capsule) {
  const char* name = PyCapsule_GetName(capsule);
  if (!name || (std::strcmp(name, kName) && std::strcmp(name, kVersionedName))) return;
  auto* managed = static_cast<Structure*>(PyCapsule_GetPointer(capsule, name));
  if (managed && managed->deleter) managed->deleter(managed);
}

/// (major, minor) of max_version, or nothing.
bool wants_versioned(PyObject* max_version) {
  if (!max_version || max_version == Py_None) return false;
  if (!PyTuple_Check(max_version) || PyTuple_GET_SIZE(max_version) < 1)
    fail(ErrorKind::Type, "__dlpack__: argument 'max_version' must be a tuple (major, minor), found ",
         type_name(max_version));
  const long major = PyLong_AsLong(PyTuple_GET_ITEM(max_version, 0));
  ensure(major != -1 || !PyErr_Occurred());
  return major >= 1;
}

/// Whether the consumer wants the bytes on the cpu that lie elsewhere.
bool wants_host(const Given& given, int i, dlpack::Device here) {
  if (!given.has(i)) return false;
  int type, id;
  ensure(PyArg_ParseTuple(given[i], "ii", &type, &id));
  if (type == here.type && id == here.id) return false;
  check(type == dlpack::kCPU, ErrorKind::Buffer, "__dlpack__: argument 'dl_device' is (", type, ", ", id,
        "), expected (1, 0), the cpu", here.type == dlpack::kCPU ? "" : ", or where the tensor is");
  return here.type != dlpack::kCPU;
}

/// The cpu has no streams: None, 0 and -1 ("do not synchronise") are the same to it.
void check_stream(const Given& given, int i) {
  if (!given.has(i)) return;
  const int64_t stream = given.integer(i, 0);
  check(stream == 0 || stream == -1, ErrorKind::Buffer, "__dlpack__: argument 'stream' is ", stream,
        ", expected None for the cpu");
}

/// What the consumer gets of a device is done, whatever stream it names; -1 asks for no wait.
void settle(const Given& given, int i, taeda::Device device) {
  const int64_t stream = given.has(i) ? given.integer(i, 0) : 1;
  if (stream == 0 && known_kind(device))
    fail(ErrorKind::Buffer,
         "__dlpack__: argument 'stream' is 0, expected 1 (the default stream), a stream's address or -1 of device ",
         to_string(device));
  if (stream != -1) backend(device.backend).synchronize(device);
}

PyObject* export_tensor(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    static Names known{"__dlpack__", 0, {"stream", "max_version", "dl_device", "copy"}};
    const Given given(known, args, count, names);
    Tensor t = tensor_of(self);
    check_bytes(t, "__dlpack__");
    check(!shows_grad(t), ErrorKind::Buffer,
          "__dlpack__: a tensor that requires grad cannot be exported; use detach()");
    const bool moved = wants_host(given, 2, place_of(t.device())), copied = moved || given.truth(3, false);
    if (moved) t = converted(t, std::nullopt, taeda::Device{});
    else if (copied) t = ops::clone(t);
    if (t.device().backend == kCPU) check_stream(given, 0);
    else settle(given, 0, t.device());
    const bool readonly = is_fixed(*t.impl()->storage);
    if (!wants_versioned(given[1])) {
      check(
          !readonly, ErrorKind::Buffer,
          "__dlpack__: the memory is read-only, which only consumers that pass max_version=(1, 0) or more can be told");
      auto* out = new Export<dlpack::Managed>(t);
      return PyCapsule_New(&out->managed, kName, drop_capsule<dlpack::Managed>);
    }
    auto* out = new Export<dlpack::ManagedVersioned>(t);
    out->managed.version = {dlpack::kMajor, dlpack::kMinor};
    out->managed.flags = (readonly ? uint64_t(dlpack::kReadOnly) : 0) | (copied ? uint64_t(dlpack::kIsCopied) : 0);
    return PyCapsule_New(&out->managed, kVersionedName, drop_capsule<dlpack::ManagedVersioned>);
  });
}

PyObject* device_pair(PyObject* self, PyObject*) {
  return guarded([&] {
    check_bytes(tensor_of(self), "__dlpack_device__");
    const dlpack::Device place = place_of(tensor_of(self).device());
    return Py_BuildValue("(ii)", int(place.type), int(place.id));
  });
}

template <class Structure>
void release_managed(void*, size_t, void* context) {
  auto* managed = static_cast<Structure*>(context);
  if (!managed->deleter) return;
  // The producer may be Python code.
  std::optional<Gil> gil;
  if (Py_IsInitialized()) gil.emplace();
  managed->deleter(managed);
}

/// The sizes that a producer tells, whom nobody needs to believe.
IntSpan sizes_of(const dlpack::Array& array) {
  check(array.ndim >= 0 && array.ndim <= kMaxDims && (array.shape || array.ndim == 0), ErrorKind::Buffer,
        "from_dlpack: the data has ", array.ndim, " dimensions, expected 0 to ", kMaxDims, " and their sizes");
  const IntSpan sizes(array.shape, size_t(array.ndim));
  const int64_t count = count_of(sizes, "from_dlpack");
  check(count == 0 || array.data, ErrorKind::Buffer, "from_dlpack: the data of shape ", shape_text(sizes),
        " has no address");
  return sizes;
}

/// Numbers of extensions are each library's own: those of others mean something else.
taeda::Device device_from(const dlpack::Device& place, bool ours) {
  if (place.type == dlpack::kExtension && ours) return {BackendId(place.id / kIndices), int8_t(place.id % kIndices)};
  if (const ReservedDevice* kind = known_kind(place.type)) {
    const taeda::Device device = parse_device(kind->name);
    check(place.id >= 0 && place.id < backend(device.backend).device_count(), ErrorKind::Buffer,
          "from_dlpack: the data is on ", kind->name, " device ", place.id, ", expected one of the ",
          backend(device.backend).device_count(), " that are there");
    return {device.backend, int8_t(place.id)};
  }
  check(place.type == dlpack::kCPU, ErrorKind::Buffer, "from_dlpack: the data is on a device of type ", place.type,
        ", expected 1 (cpu) or that of a device with a backend",
        place.type == dlpack::kExtension ? ", or one of taeda's own" : "");
  return {};
}

template <class Structure>
Tensor adopt(Structure* managed, bool readonly) {
  const dlpack::Array& array = managed->array;
  const taeda::Device device = device_from(array.device, managed->deleter == Export<Structure>::end);
  const DType dtype = dtype_from(array.dtype);
  const IntSpan sizes = sizes_of(array);
  const Shape strides =
      array.strides ? settled_strides(sizes, IntSpan(array.strides, sizes.size())) : contiguous_strides(sizes);
  const auto [low, high] = reach_of("from_dlpack", sizes, strides, item_size(dtype));
  char* first = static_cast<char*>(array.data) + array.byte_offset;
  check(reinterpret_cast<uintptr_t>(first) % uintptr_t(std::min<int64_t>(item_size(dtype), 8)) == 0 || high == 0,
        ErrorKind::Buffer, "from_dlpack: the data is not aligned for ", name(dtype), "; copy it first");
  // Nothing is refused from here on: the memory is given back once, by the storage.
  Ref<Storage> storage =
      borrow_storage(first + low, size_t(high - low), device, readonly, release_managed<Structure>, managed);
  return from_storage(std::move(storage), sizes, strides, -low, dtype);
}

Tensor import_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kVersionedName)) {
    auto* managed = static_cast<dlpack::ManagedVersioned*>(PyCapsule_GetPointer(capsule, kVersionedName));
    check(managed->version.major == dlpack::kMajor, ErrorKind::Buffer, "from_dlpack: the producer speaks DLPack ",
          managed->version.major, ".", managed->version.minor, ", understood is major version ", dlpack::kMajor);
    Tensor made = adopt(managed, managed->flags & dlpack::kReadOnly);
    PyCapsule_SetName(capsule, kVersionedUsed);
    return made;
  }
  if (PyCapsule_IsValid(capsule, kName)) {
    Tensor made = adopt(static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule, kName)), false);
    PyCapsule_SetName(capsule, kUsed);
    return made;
  }
  fail(ErrorKind::Buffer,
       "from_dlpack: expected a capsule named 'dltensor' or 'dltensor_versioned' that was not consumed yet");
}

/// The stream that will use a producer's memory, as DLPack numbers it: 1 is the default one; none of the cpu.
Object consuming_stream(PyObject* producer) {
  const Object method = optional_attribute(producer, "__dlpack_device__");
  const Object place = method ? own(PyObject_CallNoArgs(method.get())) : Object();
  int type, id;
  if (!place || !PyTuple_Check(place.get())) return {};
  ensure(PyArg_ParseTuple(place.get(), "ii", &type, &id));
  if (!known_kind(int32_t(type))) return {};
  const auto handle = reinterpret_cast<uintptr_t>(current_stream_handle(device_from({type, id}, false)));
  return own(PyLong_FromUnsignedLongLong(handle ? handle : 1));
}

/// Asks the producer for a capsule: versioned first, then as older producers understand it.
Object request_capsule(PyObject* producer, const Given& given) {
  const Object method = own(PyObject_GetAttrString(producer, "__dlpack__")), stream = consuming_stream(producer);
  const Object kwargs = own(Py_BuildValue("{s:(ii)}", "max_version", int(dlpack::kMajor), int(dlpack::kMinor)));
  if (given.has(2)) ensure(PyDict_SetItemString(kwargs.get(), "copy", given[2]) == 0);
  if (stream) ensure(PyDict_SetItemString(kwargs.get(), "stream", stream.get()) == 0);
  const Object none = own(PyTuple_New(0));
  if (PyObject* capsule = PyObject_Call(method.get(), none.get(), kwargs.get())) return Object(capsule);
  ensure(PyErr_ExceptionMatches(PyExc_TypeError) && !given.has(2));
  PyErr_Clear();
  ensure(PyDict_DelItemString(kwargs.get(), "max_version") == 0);
  return own(PyObject_Call(method.get(), none.get(), kwargs.get()));
}

PyObject* py_from_dlpack(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    static Names known{"from_dlpack", 1, {"ext_tensor", "device", "copy"}};
    const Given given(known, args, count, names);
    PyObject* producer = given.need(0);
    const std::optional<taeda::Device> device = given.device(1);
    if (PyCapsule_CheckExact(producer)) return wrap(converted(import_capsule(producer), std::nullopt, device));
    if (!PyObject_HasAttrString(producer, "__dlpack__"))
      fail(ErrorKind::Type,
           "from_dlpack: argument 'ext_tensor' must have the method __dlpack__ or be a DLPack capsule, found ",
           type_name(producer));
    const Object capsule = request_capsule(producer, given);
    return wrap(converted(import_capsule(capsule.get()), std::nullopt, device));
  });
}

}  // namespace

PyMethodDef dlpack_methods[] = {
    {"__dlpack__", reinterpret_cast<PyCFunction>(method_fast<export_tensor>), METH_FASTCALL | METH_KEYWORDS,
     "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)\n\nDLPack capsule over the tensor's "
     "memory: versioned for max_version >= (1, 0)."},
    {"__dlpack_device__", method0<device_pair>, METH_NOARGS,
     "__dlpack_device__() -> tuple[int, int]\n\nDLPack's device type and number."},
    {nullptr, nullptr, 0, nullptr}};
PyMethodDef dlpack_functions[] = {
    {"from_dlpack", reinterpret_cast<PyCFunction>(py_from_dlpack), METH_FASTCALL | METH_KEYWORDS,
     "from_dlpack(ext_tensor, *, device=None, copy=None)\n--\n\nTensor that shares memory with an object of "
     "another library through DLPack.\n\n"
     "Raises:\n    TypeError: The object has no __dlpack__.\n    BufferError: The producer's device, dtype or version "
     "is not understood.\n\n"
     "Source:\n    DLPack and its Python specification, https://dmlc.github.io/dlpack"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace taeda::py
