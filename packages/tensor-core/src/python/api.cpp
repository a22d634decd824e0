// Fills taeda::python_api: the extension's objects as other compiled packages see them.
#include "python/pytensor.h"
#include "taeda/python_api.h"

namespace taeda::py {

void fill_python_api() {
  python_api.is_tensor = [](void* object) { return is_tensor(static_cast<PyObject*>(object)); };
  python_api.tensor_of = [](void* object) { return &tensor_of(static_cast<PyObject*>(object)); };
  python_api.wrap = [](const Tensor& tensor) -> void* { return wrap(tensor); };
  python_api.set_error = []() noexcept { set_python_error(); };
  python_api.throw_error = [] { throw PythonError(); };
  python_api.carry_error = carry_error;
  python_api.user_line = user_line;
  python_api.line_text = line_text;
}

}  // namespace taeda::py
