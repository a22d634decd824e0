// Functions about the process and the thread: gradient mode, threads, defaults, randomness, memory, the operator table.
#include "core/container.h"
#include "core/pool.h"
#include "python/arguments.h"
#include "python/internal.h"
#include "python/library.h"
#include "taeda/backend.h"
#include "taeda/derived.h"
#include "taeda/deterministic.h"
#include "taeda/generator_state.h"
#include "taeda/parallel.h"
#include "taeda/stream.h"
#include "taeda/warn.h"

namespace taeda::py {
namespace {

void show_warning(const char* text) {
  const Gil gil;
  ensure(PyErr_WarnEx(PyExc_UserWarning, text, 1) == 0);
}

PyObject* nothing() { Py_RETURN_NONE; }

PyObject* is_grad_enabled(PyObject*, PyObject*) { return PyBool_FromLong(thread_state.grad_enabled); }
PyObject* is_inference_mode_enabled(PyObject*, PyObject*) { return PyBool_FromLong(thread_state.inference_mode); }

// --- threads, memory ---

PyObject* get_num_threads(PyObject*, PyObject*) { return PyLong_FromLong(num_threads()); }
PyObject* py_set_num_threads(PyObject*, PyObject* count) {
  return guarded([&] {
    if (!PyLong_Check(count))
      fail(ErrorKind::Type, "set_num_threads: argument 'count' must be an int, found ", type_name(count));
    const int64_t n = number_for(count, "set_num_threads", "count")->to<int64_t>();
    check(n >= 1 && n <= 4096, ErrorKind::Runtime, "set_num_threads: argument 'count' must be 1 to 4096, found ", n);
    set_num_threads(int(n));
    return nothing();
  });
}
/// For tests: cores by the quotas of control groups, from the text of /proc/self/cgroup and the folder of their mounts.
PyObject* py_quota_cores(PyObject*, PyObject* args) {
  const char *groups, *root;
  if (!PyArg_ParseTuple(args, "ss:_quota_cores", &groups, &root)) return nullptr;
  return guarded([&] { return PyFloat_FromDouble(quota_cores(groups, root)); });
}
PyObject* py_derivations(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(derivations()); }
PyObject* py_derived_bytes(PyObject*, PyObject*) { return PyLong_FromSize_t(derived_bytes()); }
PyObject* py_set_derived_limit(PyObject*, PyObject* bytes) {
  return guarded([&] {
    const size_t limit = PyLong_AsSize_t(bytes);
    ensure(!PyErr_Occurred());
    set_derived_limit(limit);
    return nothing();
  });
}
PyObject* live_bytes(PyObject*, PyObject*) { return PyLong_FromSize_t(cpu_live_bytes()); }
PyObject* cached_bytes(PyObject*, PyObject*) { return PyLong_FromSize_t(cpu_cached_bytes()); }
PyObject* empty_cache(PyObject*, PyObject*) {
  empty_cpu_cache();
  return nothing();
}
PyObject* set_cache_limit(PyObject*, PyObject* bytes) {
  return guarded([&] {
    const size_t limit = PyLong_AsSize_t(bytes);
    ensure(!PyErr_Occurred());
    set_cpu_cache_limit(limit);
    return nothing();
  });
}
PyObject* container_memory(PyObject*, PyObject* root) {
  return guarded([&] {
    return PyLong_FromSize_t(
        detail::container_memory(std::string(text_of(root, "_container_memory: argument 'root'"))));
  });
}
PyObject* synchronize(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    static Names known{"synchronize", 1, {"device"}};
    const Given given(known, args, count, names);
    const Device device = given.device(0).value_or(Device{});
    backend(device.backend).synchronize(device);
    release_passed_pinned();
    return nothing();
  });
}

// --- deterministic algorithms ---

PyObject* get_determinism(PyObject*, PyObject*) { return PyLong_FromLong(long(determinism())); }
PyObject* py_set_determinism(PyObject*, PyObject* wanted) {
  const long level = PyLong_AsLong(wanted);
  if (level == -1 && PyErr_Occurred()) return nullptr;
  set_determinism(Determinism(level));
  return nothing();
}

PyObject* py_fill_unwritten(PyObject*, PyObject* wanted) {
  set_fills_unwritten(wanted == Py_True);
  return nothing();
}

// --- dtypes ---

PyObject* get_default_dtype(PyObject*, PyObject*) { return wrap(default_dtype()); }
PyObject* py_set_default_dtype(PyObject*, PyObject* dtype) {
  return guarded([&] {
    const std::optional<DType> chosen = as_dtype(dtype);
    if (!chosen || !is_floating(*chosen)) {
      const Object shown = own(PyObject_Repr(dtype));
      fail(ErrorKind::Type, "set_default_dtype: argument 'd' must be a floating dtype, found ",
           PyUnicode_AsUTF8(shown.get()));
    }
    set_default_dtype(*chosen);
    return nothing();
  });
}
PyObject* promote_types(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    static Names known{"promote_types", 2, {"type1", "type2"}};
    const Given given(known, args, count, names);
    given.need(0), given.need(1);
    return wrap(promote(*given.dtype(0), *given.dtype(1)));
  });
}
PyObject* py_can_cast(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    static Names known{"can_cast", 2, {"from_", "to"}};
    const Given given(known, args, count, names);
    given.need(0), given.need(1);
    return PyBool_FromLong(
        can_cast(is_tensor(given[0]) ? tensor_of(given[0]).dtype() : *given.dtype(0), *given.dtype(1)));
  });
}
PyObject* py_result_type(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    check(count >= 1, ErrorKind::Type, "result_type: expected at least one argument");
    std::vector<Tensor> operands;
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (is_tensor(args[i])) {
        operands.push_back(tensor_of(args[i]));
      } else if (is_dtype(args[i])) {
        // A dtype counts as a tensor with dimensions.
        operands.push_back(empty(Shape{0}, *as_dtype(args[i])));
      } else if (std::optional<Scalar> number = as_number(args[i])) {
        operands.push_back(Tensor(*number));
      } else {
        fail(ErrorKind::Type, "result_type: argument ", i + 1, " must be a Tensor, a dtype or a number, found ",
             type_name(args[i]));
      }
    }
    return wrap(result_type(operands));
  });
}

// --- randomness ---

PyObject* manual_seed(PyObject*, PyObject* seed) {
  return guarded([&] {
    const Object number = PyFloat_Check(seed) ? own(PyNumber_Long(seed)) : share(seed);
    seed_all(seed_of(number.get()));
    return wrap(default_generator());
  });
}
PyObject* py_default_generator(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    static Names known{"_default_generator", 1, {"device"}};
    return wrap(default_generator(Given(known, args, count, names).device(0).value_or(Device{})));
  });
}
PyObject* py_set_engine(PyObject*, PyObject* engine) {
  return guarded([&] {
    set_default_engine(engine_of_name("set_engine", engine));
    Py_RETURN_NONE;
  });
}
PyObject* py_get_engine(PyObject*, PyObject*) { return PyUnicode_FromString(name_of(default_engine())); }

// --- the operator table ---

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::Structured: return "structured";
    case Kind::Direct: return "direct";
    case Kind::View: return "view";
    default: return "composite";
  }
}
const char* form_name(Form form) { return form == Form::Out ? "out" : form == Form::InPlace ? "inplace" : "function"; }
/// (name, schema, kind, core, form) of every entry that is found by its name.
PyObject* operators(PyObject*, PyObject*) {
  return guarded([&] {
    Object list = own(PyList_New(0));
    for (const OpEntry* op : all_ops()) {
      if (!op || find_op(op->name) != op) continue;
      const Object row = own(Py_BuildValue("(sssOs)", op->name, op->schema, kind_name(op->kind),
                                           op->core ? Py_True : Py_False, form_name(op->form)));
      ensure(PyList_Append(list.get(), row.get()) == 0);
    }
    return list.release();
  });
}

PyObject* operator_count(PyObject*, PyObject*) {
  return guarded([] { return PyLong_FromSize_t(all_ops().size()); });
}

#define TAEDA_FAST(FUNCTION) reinterpret_cast<PyCFunction>(FUNCTION), METH_FASTCALL | METH_KEYWORDS

}  // namespace

void show_warnings() { host_warning = show_warning; }

PyMethodDef runtime_functions[] = {
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS,
     "is_grad_enabled() -> bool\n\nWhether operations are recorded in this thread."},
    {"is_inference_mode_enabled", is_inference_mode_enabled, METH_NOARGS,
     "is_inference_mode_enabled() -> bool\n\nWhether inference_mode is on in this thread."},
    {"get_num_threads", get_num_threads, METH_NOARGS, "get_num_threads() -> int\n\nThreads that operators may use."},
    {"set_num_threads", py_set_num_threads, METH_O,
     "set_num_threads(count)\n\nLimits the threads that operators use; results do not depend on it."},
    {"_quota_cores", py_quota_cores, METH_VARARGS, nullptr},
    {"_determinism", get_determinism, METH_NOARGS, nullptr},
    {"_set_determinism", py_set_determinism, METH_O, nullptr},
    {"_fill_unwritten", py_fill_unwritten, METH_O, nullptr},
    {"_set_public_name", set_public_name, METH_O, nullptr},
    {"empty_cache", empty_cache, METH_NOARGS,
     "empty_cache()\n\nGives the memory that the cpu allocator keeps for reuse, for all threads, back to the "
     "system.\n\n"
     "This happens by itself when memory runs out, and when none of it was used for some seconds."},
    {"set_cache_limit", set_cache_limit, METH_O,
     "set_cache_limit(bytes)\n\nBound of the memory that the cpu allocator keeps for reuse.\n\nWithout it: 4 GiB, or a "
     "quarter of what the process may use where its container has less. Never is more kept than tensors lately took at "
     "once."},
    {"_container_memory", container_memory, METH_O, nullptr},
    {"_derivations", py_derivations, METH_NOARGS,
     "_derivations() -> int\n\nHow often kernels brought weights to a layout of their own."},
    {"_derived_bytes", py_derived_bytes, METH_NOARGS, "_derived_bytes() -> int\n\nBytes of what is kept of that."},
    {"_set_derived_limit", py_set_derived_limit, METH_O, nullptr},
    {"_live_bytes", live_bytes, METH_NOARGS, "_live_bytes() -> int\n\nBytes of all living cpu storages."},
    {"_cached_bytes", cached_bytes, METH_NOARGS, "_cached_bytes() -> int\n\nBytes kept for reuse."},
    {"synchronize", TAEDA_FAST(synchronize),
     "synchronize(device=None)\n\nWaits until the device has done all its work."},
    {"get_default_dtype", get_default_dtype, METH_NOARGS,
     "get_default_dtype() -> dtype\n\nDtype of floating results when none is given."},
    {"set_default_dtype", py_set_default_dtype, METH_O,
     "set_default_dtype(d, /)\n--\n\nChanges the dtype of floating results when none is given."},
    {"promote_types", TAEDA_FAST(promote_types),
     "promote_types(type1, type2) -> dtype\n\nThe smallest dtype that holds both."},
    {"can_cast", TAEDA_FAST(py_can_cast),
     "can_cast(from_, to) -> bool\n\nWhether an in-place result of the first dtype may be stored in the second."},
    {"result_type", reinterpret_cast<PyCFunction>(py_result_type), METH_FASTCALL,
     "result_type(*operands) -> dtype\n\nDtype of an element-wise operation on tensors, dtypes and numbers."},
    {"manual_seed", manual_seed, METH_O,
     "manual_seed(seed) -> Generator\n\nSeeds the default generators of all devices, also of those that are found "
     "later.\n\nExample:\n    >>> "
     "taeda.manual_seed(0).initial_seed()\n    0"},
    {"_default_generator", TAEDA_FAST(py_default_generator), nullptr},
    {"_set_random_engine", py_set_engine, METH_O, nullptr},
    {"_random_engine", py_get_engine, METH_NOARGS, nullptr},
    {"_operators", operators, METH_NOARGS, nullptr},
    {"_operator_count", operator_count, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace taeda::py
