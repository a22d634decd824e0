// Shortest texts of floating numbers that read back as the same value, for printing; access to a wrapper's __dict__.
#include <charconv>
#include <cmath>

#include "python/arguments.h"
#include "python/internal.h"

namespace taeda::py {
namespace {

template <class T>
std::string shortest(T value, std::chars_format format) {
  char text[512];
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    const auto end = std::to_chars(text, text + sizeof text, value, format);
    return {text, end.ptr};
  } else {
    // 16-bit types: the fewest digits that come back to the same bits.
    const float wide = float(value);
    for (int digits = 0;; ++digits) {
      const auto end = std::to_chars(text, text + sizeof text, wide, format, digits);
      float back = 0;
      std::from_chars(text, end.ptr, back);
      if (T(back).bits == value.bits || digits == 50) return {text, end.ptr};
    }
  }
}

template <class T>
std::string text_of_number(T value, bool scientific) {
  const double wide = double(value);
  if (std::isnan(wide)) return "nan";
  if (std::isinf(wide)) return wide > 0 ? "inf" : "-inf";
  return shortest(value, scientific ? std::chars_format::scientific : std::chars_format::fixed);
}

/// (1-d real floating tensor on cpu, scientific): a list of texts.
PyObject* shortest_texts(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    check(count == 2 && is_tensor(args[0]), ErrorKind::Type, "_shortest: expected a Tensor and a bool");
    const Tensor& t = tensor_of(args[0]);
    if (t.dim() != 1 || !is_floating(t.dtype()) || t.device().backend != kCPU) [[unlikely]]
      fail(ErrorKind::Value, "_shortest: expected a 1-d floating tensor on cpu, found ", describe(t));
    const bool scientific = is_true(args[1]);
    Object list = own(PyList_New(Py_ssize_t(t.numel())));
    visit_dtype(t.dtype(), [&]<class T>() {
      if constexpr (is_floating(dtype_of<T>)) {
        for (int64_t i = 0; i < t.numel(); ++i) {
          const std::string text = text_of_number(t.data<T>()[i * t.stride(0)], scientific);
          PyList_SET_ITEM(list.get(), Py_ssize_t(i),
                          own(PyUnicode_FromStringAndSize(text.data(), Py_ssize_t(text.size()))).release());
        }
      }
    });
    return list.release();
  });
}

/// The wrapper's __dict__, or None when it has none yet.
PyObject* state_of(PyObject*, PyObject* tensor) {
  return guarded([&] {
    if (!is_tensor(tensor)) fail(ErrorKind::Type, "_state_of: expected a Tensor, found ", type_name(tensor));
    PyObject* dict = reinterpret_cast<PyTensor*>(tensor)->dict;
    return Py_NewRef(dict ? dict : Py_None);
  });
}

}  // namespace

PyMethodDef text_functions[] = {{"_shortest", reinterpret_cast<PyCFunction>(shortest_texts), METH_FASTCALL, nullptr},
                                {"_state_of", state_of, METH_O, nullptr},
                                {nullptr, nullptr, 0, nullptr}};

}  // namespace taeda::py
