// The thread's hooks for saved tensors: pairs of Python functions, the innermost in use. See Note [Packed tensors].
#include <optional>
#include <string>

#include "python/objects.h"
#include "taeda/autograd/saved.h"

namespace taeda::autograd::py {
namespace {

struct Pair {
  Shared pack, unpack;
};
struct Hooks {
  std::vector<Pair> pairs;
  std::optional<std::string> refusal;
};
Hooks& hooks() {
  static thread_local Hooks mine;
  return mine;
}

/// While a hook packs, what it records itself is saved as it is.
struct NotPacking {
  bool saved = std::exchange(packing, false);
  ~NotPacking() { packing = saved; }
};

Unpack pack_by_hook(const Tensor& values) {
  Gil gil;
  const NotPacking scope;
  const Pair pair = hooks().pairs.back();
  const Object given = own(wrap(values));
  const Object made = own(called_out([&] { return PyObject_CallOneArg(pair.pack.get(), given.get()); }));
  return [unpack = pair.unpack, kept = shared(made.get())] {
    Gil gil;
    const Object result = own(called_out([&] { return PyObject_CallOneArg(unpack.get(), kept.get()); }));
    check(is_tensor(result.get()), ErrorKind::Type, "saved_tensors_hooks: the unpack hook returned ",
          Py_TYPE(result.get())->tp_name, ", expected a Tensor");
    return tensor_of(result.get());
  };
}

PyObject* push(PyObject*, PyObject* args) {
  PyObject *pack, *unpack;
  if (!PyArg_ParseTuple(args, "OO", &pack, &unpack)) return nullptr;
  return guarded([&]() -> PyObject* {
    const auto& refusal = hooks().refusal;
    check(!refusal, ErrorKind::Runtime, refusal.value_or(""));
    hooks().pairs.push_back({shared(pack), shared(unpack)});
    packing = true;
    Py_RETURN_NONE;
  });
}
PyObject* pop(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    check(!hooks().pairs.empty(), ErrorKind::Runtime,
          "saved_tensors_hooks: left without having been entered on this thread");
    const Pair last = std::move(hooks().pairs.back());  // dies when the list is in order
    hooks().pairs.pop_back();
    packing = !hooks().pairs.empty();
    Py_RETURN_NONE;
  });
}

/// refuse(message or None) -> the message before, or None
PyObject* refuse(PyObject*, PyObject* message) {
  return guarded([&]() -> PyObject* {
    std::optional<std::string> next;
    if (message != Py_None) {
      const char* text = PyUnicode_AsUTF8(message);
      ensure(text != nullptr);
      check(hooks().pairs.empty(), ErrorKind::Runtime, text);
      next = text;
    }
    const auto before = std::exchange(hooks().refusal, std::move(next));
    if (!before) Py_RETURN_NONE;
    return PyUnicode_FromString(before->c_str());
  });
}

PyMethodDef methods[] = {
    {"push_saved_hooks", push, METH_VARARGS, "Hooks for what this thread saves from now on."},
    {"pop_saved_hooks", pop, METH_NOARGS, "Takes the innermost hooks off."},
    {"refuse_saved_hooks", refuse, METH_O,
     "Lets push_saved_hooks raise with a message; None allows them. Returns what was set before."},
    {nullptr},
};

}  // namespace

void pack_saved(SavedTensor& saved, PyObject* pack, PyObject* unpack) {
  struct Scope {
    ~Scope() { hooks().pairs.pop_back(); }
  };
  hooks().pairs.push_back({shared(pack), shared(unpack)});
  const Scope scope;
  saved.pack();
}

bool init_saved_hooks(PyObject* module) {
  pack_values = pack_by_hook;
  return PyModule_AddFunctions(module, methods) == 0;
}

}  // namespace taeda::autograd::py
