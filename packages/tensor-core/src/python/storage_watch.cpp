// Watches of storages as objects of Python: capsules, whose end is the watch's.
#include "taeda/storage_watch.h"

#include "python/internal.h"
#include "taeda/levels.h"

namespace taeda::py {
namespace {
constexpr const char* kWatch = "taeda.storage_watch";

/// tensor: (number, watch) of its storage.
PyObject* watch_storage(PyObject*, PyObject* tensor) {
  return guarded([&] {
    check(is_tensor(tensor), ErrorKind::Type, "_watch_storage: expected a Tensor, found ", type_name(tensor));
    check_has_memory(tensor_of(tensor), "untyped_storage");
    const Storage* storage = tensor_of(tensor).impl()->storage.get();
    check(storage, ErrorKind::Runtime, "_watch_storage: the tensor has no storage");
    auto watch = std::make_unique<StorageWatch>(*storage);
    const Object capsule = own(PyCapsule_New(watch.get(), kWatch, [](PyObject* ended) {
      delete static_cast<StorageWatch*>(PyCapsule_GetPointer(ended, kWatch));
    }));
    const uint64_t number = watch.release()->number();
    return Py_BuildValue("(KO)", static_cast<unsigned long long>(number), capsule.get());
  });
}

/// watch: whether its storage has ended.
PyObject* storage_ended(PyObject*, PyObject* capsule) {
  const auto* watch = static_cast<const StorageWatch*>(PyCapsule_GetPointer(capsule, kWatch));
  return watch ? PyBool_FromLong(watch->ended()) : nullptr;
}
}  // namespace

PyMethodDef storage_watch_functions[] = {{"_watch_storage", watch_storage, METH_O, nullptr},
                                         {"_storage_ended", storage_ended, METH_O, nullptr},
                                         {nullptr, nullptr, 0, nullptr}};

}  // namespace taeda::py
