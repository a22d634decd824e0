// NumPy arrays without a detour through Python: the quick way of from_numpy() and numpy().
#pragma once
#include "python/pytensor.h"

namespace taeda::py {

/// What an array of native byte order holds, where it lies and how.
struct ArrayView {
  char* first;
  Shape sizes, byte_steps;
  DType dtype;
  bool readonly;
};

/// Whether the object is exactly a numpy.ndarray; does not import NumPy.
bool is_ndarray(PyObject* o);
/// Whether the bytes of an ndarray's numbers are in foreign order.
bool is_swapped(PyObject* array);
/// Nothing for arrays whose dtype has no counterpart here or is byte-swapped. `array` must be an ndarray.
std::optional<ArrayView> view_of(PyObject* array);
/// A new ndarray over the tensor's memory, which it exports. Imports NumPy at the first call.
PyObject* array_over(const Tensor& tensor);

}  // namespace taeda::py
