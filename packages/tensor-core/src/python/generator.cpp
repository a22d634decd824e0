// Generator objects: a stream of random numbers with a seed and a position.
#include <random>

#include "python/internal.h"
#include "taeda/generator_state.h"
#include "taeda/levels.h"
#include "taeda/ops/cast.h"

namespace taeda::py {

PyTypeObject* GeneratorType = nullptr;

const char* name_of(Engine engine) { return engine == Engine::Twister ? "mt19937" : "philox"; }
Engine engine_of_name(const char* op, PyObject* o) {
  const char* given = PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : nullptr;
  if (!given) fail(ErrorKind::Type, op, ": argument 'engine' must be 'philox' or 'mt19937', found ", type_name(o));
  for (const Engine engine : {Engine::Philox, Engine::Twister})
    if (std::string_view(given) == name_of(engine)) return engine;
  fail(ErrorKind::Value, op, ": argument 'engine' must be 'philox' or 'mt19937', found '", given, "'");
}

namespace {

/// That of PyTorch's generators which were given none.
constexpr uint64_t kTwisterSeed = 67280421310721;

Generator& value_of(PyObject* self) { return reinterpret_cast<PyGenerator*>(self)->value; }

PyObject* make(PyTypeObject* type, Generator generator) {
  PyObject* object = type->tp_alloc(type, 0);
  if (object) new (&value_of(object)) Generator(std::move(generator));
  return object;
}

PyObject* construct(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* const names[] = {"device", "engine", nullptr};
  PyObject *device = Py_None, *engine = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$O:Generator", const_cast<char**>(names), &device, &engine))
    return nullptr;
  return guarded([&] {
    const std::optional<Device> chosen = device == Py_None ? Device{} : as_device(device);
    if (!chosen)
      fail(ErrorKind::Type, "Generator: argument 'device' must be a device or its name, found ", type_name(device));
    const Engine made = engine == Py_None ? default_engine() : engine_of_name("Generator", engine);
    check(engine == Py_None || made == Engine::Philox || chosen->backend == kCPU, ErrorKind::Value,
          "Generator: argument 'engine' must be 'philox' on devices other than the cpu, found 'mt19937'");
    Generator fresh = new_generator(made == Engine::Twister ? kTwisterSeed : 0x7aeda5eedull, *chosen);
    if (engine_of(fresh) != made && chosen->backend == kCPU) set_engine(fresh, made);
    return make(type, std::move(fresh));
  });
}

void dealloc(PyObject* self) {
  const Turn turn;
  PyTypeObject* type = Py_TYPE(self);
  if (value_of(self) && value_of(self)->python == self) value_of(self)->python = nullptr;
  value_of(self).~Generator();
  type->tp_free(self);
  Py_DECREF(type);
}

void reseed(const Generator& generator, uint64_t seed) { set_generator(generator, seed, 0); }

PyObject* manual_seed(PyObject* self, PyObject* seed) {
  return guarded([&] {
    reseed(value_of(self), seed_of(seed));
    return Py_NewRef(self);
  });
}
PyObject* seed(PyObject* self, PyObject*) {
  return guarded([&] {
    std::random_device source;
    const uint64_t fresh = (uint64_t(source()) << 32 | source()) >> 11;
    reseed(value_of(self), fresh);
    return PyLong_FromUnsignedLongLong(fresh);
  });
}
PyObject* initial_seed(PyObject* self, PyObject*) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(generator_position(value_of(self)).seed); });
}

/// A uint8 tensor: seed and position in 16 bytes, or a twister's state as PyTorch lays it out.
PyObject* get_state(PyObject* self, PyObject*) {
  return guarded([&] {
    if (engine_of(value_of(self)) == Engine::Twister) {
      const std::vector<char> saved = twister_state(value_of(self));
      Tensor state = empty(Shape{int64_t(saved.size())}, DType::UInt8);
      std::memcpy(state.bytes(), saved.data(), saved.size());
      return wrap(std::move(state));
    }
    Tensor state = empty(Shape{16}, DType::UInt8);
    const PhiloxRange at = generator_position(value_of(self));
    std::memcpy(state.bytes(), &at.seed, 8);
    std::memcpy(state.bytes() + 8, &at.offset, 8);
    return wrap(std::move(state));
  });
}
PyObject* set_state(PyObject* self, PyObject* state) {
  return guarded([&] {
    if (!is_tensor(state))
      fail(ErrorKind::Type, "Generator.set_state: argument 'new_state' must be a Tensor, found ", type_name(state));
    check_has_memory(tensor_of(state), "Generator.set_state");
    const Tensor bytes = ops::to_device(tensor_of(state), Device{});
    const bool twister = value_of(self)->device.backend == kCPU && bytes.numel() == int64_t(Twister::kStateBytes);
    // A sparse tensor stays where it is: on no device with memory.
    if (bytes.dtype() != DType::UInt8 || !(bytes.numel() == 16 || twister) || !bytes.contiguous() ||
        bytes.device().backend != kCPU) [[unlikely]]
      fail(ErrorKind::Value,
           "Generator.set_state: argument 'new_state' must be the uint8 tensor that get_state gave, of 16 elements or, "
           "of an mt19937 on the cpu, 5056, found ",
           describe(bytes));
    if (twister) {
      check(set_twister_state(value_of(self), bytes.bytes()), ErrorKind::Value,
            "Generator.set_state: argument 'new_state' holds no state of an mt19937");
      return Py_NewRef(self);
    }
    if (engine_of(value_of(self)) == Engine::Twister) set_engine(value_of(self), Engine::Philox);
    uint64_t at[2];
    std::memcpy(at, bytes.bytes(), sizeof at);
    set_generator(value_of(self), at[0], at[1]);
    return Py_NewRef(self);
  });
}
PyObject* clone_state(PyObject* self, PyObject*) {
  return guarded([&] {
    const PhiloxRange at = generator_position(value_of(self));
    Generator copy = new_generator(at.seed, value_of(self)->device);
    if (const Engine engine = engine_of(value_of(self)); engine_of(copy) != engine) set_engine(copy, engine);
    if (copy->twister) set_twister_state(copy, twister_state(value_of(self)).data());
    else copy->offset = at.offset;
    return make(GeneratorType, std::move(copy));
  });
}
PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([&] {
    const Object state = own(get_state(self, nullptr));
    const Object device = own(wrap(value_of(self)->device));
    const Object rebuild =
        own(PyObject_GetAttrString(own(PyImport_ImportModule("taeda_tensor_core._copies")).get(), "rebuild_generator"));
    return Py_BuildValue("O(OO)", rebuild.get(), device.get(), state.get());
  });
}
PyObject* get_engine(PyObject* self, void*) { return PyUnicode_FromString(name_of(engine_of(value_of(self)))); }
PyObject* get_device(PyObject* self, void*) { return wrap(value_of(self)->device); }

PyMethodDef methods[] = {
    {"manual_seed", manual_seed, METH_O,
     "manual_seed(seed) -> Generator\n\nStarts the stream of `seed` from its beginning."},
    {"seed", seed, METH_NOARGS, "seed() -> int\n\nSeeds from the system's entropy and returns the seed."},
    {"initial_seed", initial_seed, METH_NOARGS, "initial_seed() -> int\n\nThe seed in use."},
    {"get_state", get_state, METH_NOARGS, "get_state() -> Tensor\n\nSeed and position as a uint8 tensor."},
    {"set_state", set_state, METH_O, "set_state(new_state) -> Generator\n\nGoes to a position that get_state gave."},
    {"clone_state", clone_state, METH_NOARGS, "clone_state() -> Generator\n\nA new generator at the same position."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef attributes[] = {{"device", get_device, nullptr, "Device whose operators use the stream.", nullptr},
                            {"engine", get_engine, nullptr, "'philox' or 'mt19937': what makes the numbers.", nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(construct)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_doc,
     const_cast<char*>(
         "Generator(device='cpu', *, engine=None)\n\nIndependent stream of random numbers: reproducible, saved and "
         "restored by state. Made of a Philox counter, or of the Mersenne twister whose numbers are "
         "PyTorch's where `engine` is 'mt19937' or `taeda.random.set_engine` has chosen that.\n\n"
         "Source:\n    Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011).\n\n"
         "Example:\n    >>> g = taeda.Generator().manual_seed(3)\n    >>> g.initial_seed()\n    3")},
    {0, nullptr}};
PyType_Spec spec{"taeda_tensor_core.Generator", sizeof(PyGenerator), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                 slots};

}  // namespace

PyObject* wrap(const Generator& generator) {
  if (!generator) Py_RETURN_NONE;
  if (PyObject* known = share_living(generator->python)) return known;
  PyObject* object = make(GeneratorType, generator);
  if (!object) return nullptr;
  let_be_shared(object);
  generator->python = object;
  return object;
}

bool init_generator(PyObject* module) {
  GeneratorType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return GeneratorType && PyModule_AddObjectRef(module, "Generator", reinterpret_cast<PyObject*>(GeneratorType)) == 0;
}

uint64_t seed_of(PyObject* o) {
  if (!PyIndex_Check(o)) fail(ErrorKind::Type, "manual_seed: argument 'seed' must be an int, found ", type_name(o));
  const Object index = own(PyNumber_Index(o));
  int overflow;
  const long long seed = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  if (!overflow) return uint64_t(seed);
  const unsigned long long high = overflow > 0 ? PyLong_AsUnsignedLongLong(index.get()) : 0;
  if (overflow < 0 || PyErr_Occurred()) {
    PyErr_Clear();
    fail(ErrorKind::Overflow, "manual_seed: argument 'seed' must be at least -2**63 and below 2**64");
  }
  return high;
}

}  // namespace taeda::py
