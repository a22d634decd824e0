// pybind11's conversions of tensors, element types, devices and numbers. Part of taeda/extension.h.
#pragma once
#include <pybind11/complex.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "taeda/extension/library.h"

namespace taeda {
inline namespace extension_v1 {
namespace detail {

inline pybind11::module_ core() { return pybind11::module_::import("taeda_tensor_core"); }

/// Whether a Python object is of one of the core's types.
inline bool is_a(pybind11::handle object, const char* type) { return pybind11::isinstance(object, core().attr(type)); }

/// Sets the exception of Python that an error stands for; the very one where it came from Python.
inline void set_python_error(const Error& error) {
  if (error.what() == std::string_view(api().last_error())) return api().error_object(error.status());
  api().set_error(error.status(), error.what());
  api().error_object(error.status());
}

/// When all statics are made: blocks that still wait have nothing to wait for.
inline int finish_blocks(void*) {
  try {
    run_blocks(true);
  } catch (const std::exception& e) {
    failure() = e.what();
  }
  if (failure().empty()) return 0;
  PyErr_SetString(PyExc_RuntimeError, std::exchange(failure(), "").c_str());
  return -1;
}

/// An import cannot fail while statics are made: the interpreter raises an error as soon as it goes on.
inline bool settle_python() {
  if (!Py_IsInitialized()) return false;
  try {
    core().attr("Tensor");  // `import taeda` alone has loaded nothing yet
  } catch (const std::exception& e) {
    failure() = e.what();
  }
  look_later() = [] {
    if (!failure().empty() || !blocks().empty()) Py_AddPendingCall(finish_blocks, nullptr);
  };
  pybind11::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Error& error) {
      set_python_error(error);
    }
  });
  return true;
}
/// `taeda.ops.<library>.<name>`, for what gives no tensors.
template <class R, class... A>
void add_plain_function(const std::string& library, const std::string& name, R (*function)(A...)) {
  const pybind11::gil_scoped_acquire lock;
  const size_t colon = name.find("::");
  const std::string plain = colon == name.npos ? name : name.substr(colon + 2);
  const pybind11::object space = core().attr("ops").attr(library.c_str());
  pybind11::setattr(space, plain.c_str(), pybind11::cpp_function(function, pybind11::name(plain.c_str())));
}

/// A library of Python's in whose name the extension's operators are known; it lives as long as the process.
inline pybind11::object python_library(const std::string& name) {
  return pybind11::module_::import("taeda_tensor_core.library").attr("Library")(name, "FRAGMENT");
}
/// Whether Python runs; then the operator is defined.
inline bool define_in_python(const std::string& library, const std::string& schema) {
  if (!Py_IsInitialized()) return false;
  const pybind11::gil_scoped_acquire lock;
  (void)python_library(library).attr("define")(schema);
  return true;
}
/// Whether a kernel for the device can be asked for: not where a known kind of device has no plug-in or no device.
inline bool may_be_asked(const std::string& device) {
  int32_t number = 0;
  if (api().backend_find(device.c_str(), &number) == TAEDA_OK || !Py_IsInitialized()) return true;
  const pybind11::gil_scoped_acquire lock;
  try {
    return core().attr("get_device_module")(device).attr("is_available")().cast<bool>();
  } catch (const pybind11::error_already_set&) {
    return true;  // nobody knows the device: registering says so
  }
}
template <class R, class... A>
void add_rule(const std::string& library, const std::string& op, const std::string& key, R (*function)(A...)) {
  const pybind11::gil_scoped_acquire lock;
  python_library(library).attr("impl")(op, pybind11::cpp_function(function), key);
}

inline const bool python_settled = settle_python();

}  // namespace detail
}  // namespace extension_v1
}  // namespace taeda

namespace pybind11::detail {

template <>
struct type_caster<taeda::Tensor> {
  PYBIND11_TYPE_CASTER(taeda::Tensor, const_name("taeda.Tensor"));
  bool load(handle source, bool) {
    taeda_tensor found = nullptr;
    if (taeda::api().object_tensor(source.ptr(), &found) != TAEDA_OK) return false;
    value = taeda::Tensor::adopt(found);
    return true;
  }
  static handle cast(const taeda::Tensor& tensor, return_value_policy, handle) {
    void* object = nullptr;
    taeda::check_status(taeda::api().tensor_object(tensor.c(), &object));
    return static_cast<PyObject*>(object);
  }
};

template <>
struct type_caster<taeda::ScalarType> {
  PYBIND11_TYPE_CASTER(taeda::ScalarType, const_name("taeda.dtype"));
  bool load(handle source, bool) {
    const module_ core = taeda::detail::core();
    for (size_t i = 0; i < std::size(taeda::kTypeNames); ++i)
      if (source.is(core.attr(taeda::kTypeNames[i]))) {
        value = taeda::ScalarType(i);
        return true;
      }
    return false;
  }
  static handle cast(taeda::ScalarType type, return_value_policy, handle) {
    return taeda::detail::core().attr(taeda::toString(type)).cast<object>().release();
  }
};

template <>
struct type_caster<taeda::Device> {
  PYBIND11_TYPE_CASTER(taeda::Device, const_name("taeda.device"));
  bool load(handle source, bool) {
    if (!isinstance<str>(source) && !taeda::detail::is_a(source, "device")) return false;
    value = taeda::Device(std::string(str(source)));
    return true;
  }
  static handle cast(const taeda::Device& device, return_value_policy, handle) {
    return taeda::detail::core().attr("device")(device.str()).release();
  }
};

template <>
struct type_caster<taeda::Scalar> {
  PYBIND11_TYPE_CASTER(taeda::Scalar, const_name("Number"));
  bool load(handle source, bool) {
    if (isinstance<bool_>(source)) value = source.cast<bool>();
    else if (isinstance<int_>(source)) value = source.cast<int64_t>();
    else if (isinstance<float_>(source)) value = source.cast<double>();
    else if (PyComplex_Check(source.ptr()))
      value = std::complex<double>(PyComplex_RealAsDouble(source.ptr()), PyComplex_ImagAsDouble(source.ptr()));
    else {
      taeda_tensor found = nullptr;
      if (taeda::api().object_tensor(source.ptr(), &found) != TAEDA_OK) return false;
      value = taeda::Tensor::adopt(found).item();
    }
    return true;
  }
  static handle cast(const taeda::Scalar& number, return_value_policy, handle) {
    if (number.isBoolean()) return bool_(number.toBool()).release();
    if (number.isComplex()) return pybind11::cast(number.to<std::complex<double>>()).release();
    if (number.isFloatingPoint()) return float_(number.toDouble()).release();
    return int_(number.toLong()).release();
  }
};

/// A sequence of Python, kept for the time of the call.
template <class T>
struct type_caster<taeda::ArrayRef<T>> {
  PYBIND11_TYPE_CASTER(taeda::ArrayRef<T>, const_name("Sequence[") + make_caster<T>::name + const_name("]"));
  bool load(handle source, bool convert) {
    make_caster<std::vector<T>> items;
    if (!items.load(source, convert)) return false;
    kept_ = cast_op<std::vector<T>&&>(std::move(items));
    value = kept_;
    return true;
  }
  static handle cast(const taeda::ArrayRef<T>& items, return_value_policy policy, handle parent) {
    return make_caster<std::vector<T>>::cast(items.vec(), policy, parent);
  }

 private:
  std::vector<T> kept_;
};

}  // namespace pybind11::detail

namespace py = pybind11;

#ifdef TAEDA_EXTENSION_NAME
/// The function by which Python imports the module: to be found also where a source defines it by itself, unmarked.
extern "C" TAEDA_PLUGIN_EXPORT PyObject* TAEDA_EXTENSION_JOIN(PyInit_, TAEDA_EXTENSION_NAME)(void);
#endif
