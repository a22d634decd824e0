// Operators of the Tensor type: arithmetic, comparison, truth, conversion to Python numbers.
#include "python/errors.h"
#include "python/internal.h"
#include "python/numpy_bridge.h"
#include "taeda/ops.h"

namespace taeda::py {
namespace {

/// The number that an operand is: Python's and NumPy's. Objects that can become one know operators of their own.
std::optional<Scalar> operand_number(PyObject* o) {
  if (!PyFloat_Check(o) && !PyLong_Check(o) && !PyComplex_Check(o) && !optional_attribute(o, "item"))
    return std::nullopt;
  return number_for(o, "operator", nullptr);
}

/// One side of a binary operator: a tensor as it is, a Python number as wrapped number, an array of NumPy's as a tensor
/// over it.
class Side {
 public:
  explicit Side(PyObject* o) {
    if (is_plain(o) || is_tensor(o)) [[likely]] {
      tensor_ = &tensor_of(o);
    } else if (std::optional<Scalar> number = operand_number(o)) {
      made_ = Tensor(*number);
      tensor_ = &made_;
    } else if (std::optional<Tensor> array = from_array_interface(in_own_order(o).get(), "operator")) {
      if (!is_ndarray(o) && optional_attribute(o, "mask") && optional_attribute(o, "filled")) [[unlikely]]
        fail(ErrorKind::Type,
             "operator: an operand is a masked array, whose mask would be lost; use array.filled(value)");
      made_ = std::move(*array);
      tensor_ = &made_;
      is_array_ = true;
    }
  }
  explicit operator bool() const { return tensor_ != nullptr; }
  const Tensor& operator*() const { return *tensor_; }
  bool is_array() const { return is_array_; }

 private:
  const Tensor* tensor_ = nullptr;
  Tensor made_;
  bool is_array_ = false;
};

/// Whether an array widens the target of an in-place operator: Python then computes the plain one, as for arrays.
bool widens(const Tensor& target, const Tensor& array, std::string_view name) {
  const Tensor both[] = {target, array};
  const DType result = result_type(both);
  return !can_cast(name == "div_" && is_integral(result) ? DType::Float32 : result, target.dtype());
}

bool either_overrides(PyObject* a, PyObject* b) { return may_override(a) || may_override(b); }

/// Whether an operand is an array of what is no number (text, objects, times): no tensor is equal to it.
bool is_array_of_others(PyObject* o) {
  if (is_tensor(o) || !optional_attribute(o, "__array_interface__")) return false;
  try {
    from_array_interface(in_own_order(o).get(), "operator");
  } catch (const Error& error) {
    return error.kind() == ErrorKind::Type;
  }
  return false;
}

/// What an operand is to an operator whose tensor answers for itself.
enum class Partner { Known, Array, Foreign };
Partner partner_of(PyObject* o) {
  if (is_tensor(o) || may_override(o) || operand_number(o)) return Partner::Known;
  return optional_attribute(o, "__array_interface__") && !is_array_of_others(o) ? Partner::Array : Partner::Foreign;
}

/// What to do about a TypeError of a class: nullptr to keep it, NotImplemented, or the tensor to ask again with.
/// Python goes on with what is no partner of tensors, so that `x == None` is False, and NumPy with arrays where the
/// class tells it how; classes that change nothing need not look for either.
PyObject* instead_of(std::string_view name, PyObject* self, PyObject* other) {
  const Partner partner = partner_of(other);
  if (partner == Partner::Known) return nullptr;
  if (partner == Partner::Foreign || optional_attribute(self, "__array_ufunc__")) Py_RETURN_NOTIMPLEMENTED;
  std::optional<Tensor> array = from_array_interface(in_own_order(other).get(), "operator");
  if (!array) return nullptr;
  const bool by_numpy = name == "matmul"      ? array->dtype() != tensor_of(self).dtype()
                        : name.ends_with("_") ? !name.starts_with("_") && widens(tensor_of(self), *array, name)
                                              : false;
  if (by_numpy) Py_RETURN_NOTIMPLEMENTED;
  return wrap(std::move(*array));
}

/// What the class of a tensor, or a mode, answers to an operator.
PyObject* asked(const char* name, PyObject* self, PyObject* other) noexcept {
  PyObject* answer = override_operator(name, {self, other});
  if (answer || !PyErr_ExceptionMatches(PyExc_TypeError)) return answer;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const Object instead(guarded([&] { return instead_of(name, self, other); }));
  if (!instead) {
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
    return nullptr;
  }
  for (PyObject* o : {type, value, trace}) Py_XDECREF(o);
  return instead.get() == Py_NotImplemented ? Py_NewRef(Py_NotImplemented)
                                            : override_operator(name, {self, instead.get()});
}

/// An operator whose operand answers for itself: the method of the tensor, which is the right operand where the left is
/// none.
PyObject* override_binary(const char* name, const char* reflected, PyObject* a, PyObject* b) {
  return is_tensor(a) || !is_tensor(b) ? asked(name, a, b) : asked(reflected, b, a);
}

template <auto Op, auto Name>
PyObject* binary_mixed(PyObject* a, PyObject* b) noexcept {
  if (either_overrides(a, b)) return override_binary(Name().plain, Name().reflected, a, b);
  return guarded([&]() -> PyObject* {
    const Side left(a), right(b);
    if (!left || !right) Py_RETURN_NOTIMPLEMENTED;
    // Where the order is free the tensor comes first, so that graphs name it first.
    if constexpr (std::string_view(Name().plain) == Name().reflected)
      if (!is_tensor(a)) return wrap(Op(*right, *left));
    return wrap(Op(*left, *right));
  });
}

template <auto Op, auto Name>
PyObject* binary(PyObject* a, PyObject* b) noexcept {
  if (!is_plain(a) || !is_plain(b)) return binary_mixed<Op, Name>(a, b);
  return guarded([&] { return wrap(Op(tensor_of(a), tensor_of(b))); });
}

template <auto Op, auto Name>
PyObject* inplace(PyObject* a, PyObject* b) noexcept {
  if (!is_plain(a) || !is_plain(b)) [[unlikely]]
    if (either_overrides(a, b)) return asked(Name(), a, b);
  return guarded([&]() -> PyObject* {
    const Side right(b);
    if (!right || (right.is_array() && widens(tensor_of(a), *right, Name()))) Py_RETURN_NOTIMPLEMENTED;
    Op(tensor_of(a), *right);
    return Py_NewRef(a);
  });
}

template <auto Op, auto Name>
PyObject* unary(PyObject* a) noexcept {
  if (!is_plain(a)) [[unlikely]]
    if (overrides(a)) return override_operator(Name(), {a});
  return guarded([&] { return wrap(Op(tensor_of(a))); });
}

/// Public names of a binary operator: the method, and that of the right operand.
struct BinaryName {
  const char *plain, *reflected;
};
#define TAEDA_OPERATOR(OP, REFLECTED) \
  binary<[](const Tensor& x, const Tensor& y) { return ops::OP(x, y); }, [] { return BinaryName{#OP, #REFLECTED}; }>
#define TAEDA_INPLACE_OPERATOR(OP) inplace<[](const Tensor& x, const Tensor& y) { ops::OP(x, y); }, [] { return #OP; }>
#define TAEDA_UNARY_OPERATOR(OP) unary<[](const Tensor& x) { return ops::OP(x); }, [] { return #OP; }>

/// Numbers have no matrix product: Python says so with the operator's name.
PyObject* matrix_product(PyObject* a, PyObject* b) noexcept {
  for (PyObject* o : {a, b})
    if (PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o)) Py_RETURN_NOTIMPLEMENTED;
  if (is_tensor(a) == is_tensor(b) || either_overrides(a, b)) return TAEDA_OPERATOR(matmul, __rmatmul__)(a, b);
  return guarded([&]() -> PyObject* {
    if (operand_number(is_tensor(a) ? b : a)) Py_RETURN_NOTIMPLEMENTED;  // one of NumPy's
    const Side left(a), right(b);  // of which one is an array: NumPy's dtype is found as for other operators
    if (!left || !right) Py_RETURN_NOTIMPLEMENTED;
    const Tensor both[] = {*left, *right};
    const DType dtype = result_type(both);
    return wrap(ops::matmul(ops::cast(*left, dtype), ops::cast(*right, dtype)));
  });
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) noexcept {
  if (modulus != Py_None) {
    PyErr_SetString(PyExc_TypeError, "pow: a modulus (third argument) is not supported for tensors");
    return nullptr;
  }
  return TAEDA_OPERATOR(pow, __rpow__)(a, b);
}
/// `+=`, which in classes derived in Python stands where sequences are joined in place, too. There Python takes what it
/// returns for the result, NotImplemented as well: the plain operator says what becomes of such operands.
PyObject* inplace_add(PyObject* a, PyObject* b) noexcept {
  PyObject* result = TAEDA_INPLACE_OPERATOR(add_)(a, b);
  if (result != Py_NotImplemented || Py_TYPE(a) == TensorType) [[likely]]
    return result;
  Py_DECREF(result);
  return PyNumber_Add(a, b);
}
PyObject* inplace_power(PyObject* a, PyObject* b, PyObject*) noexcept { return TAEDA_INPLACE_OPERATOR(pow_)(a, b); }

/// `~`, whose operand Python calls of a wrong type where it has no bits; the function of the operator's name says that
/// it has no kernel.
Tensor inverted(const Tensor& x) {
  check(!is_floating(x.dtype()) && !is_complex(x.dtype()), ErrorKind::Type,
        "bitwise_not (~): expected a tensor of an integer or bool dtype, found ", name(x.dtype()));
  return ops::bitwise_not(x);
}

PyObject* divmod(PyObject* a, PyObject* b) noexcept {
  if (either_overrides(a, b)) return override_binary("__divmod__", "__rdivmod__", a, b);
  return guarded([&]() -> PyObject* {
    const Side left(a), right(b);
    if (!left || !right) Py_RETURN_NOTIMPLEMENTED;
    const Object quotient = own(wrap(ops::floor_divide(*left, *right))),
                 rest = own(wrap(ops::remainder(*left, *right)));
    return PyTuple_Pack(2, quotient.get(), rest.get());
  });
}

PyObject* compared(PyObject* a, PyObject* b, int op) {
  const Side left(a), right(b);
  if (!left || !right) Py_RETURN_NOTIMPLEMENTED;
  switch (op) {
    case Py_EQ: return wrap(ops::eq(*left, *right));
    case Py_NE: return wrap(ops::ne(*left, *right));
    case Py_LT: return wrap(ops::lt(*left, *right));
    case Py_LE: return wrap(ops::le(*left, *right));
    case Py_GT: return wrap(ops::gt(*left, *right));
    default: return wrap(ops::ge(*left, *right));
  }
}

PyObject* compare(PyObject* a, PyObject* b, int op) noexcept {
  if (!is_plain(a) || !is_plain(b)) [[unlikely]] {
    static constexpr const char* kNames[] = {"lt", "le", "eq", "ne", "gt", "ge"};
    if (either_overrides(a, b)) return asked(kNames[op], a, b);
  }
  return guarded([&]() -> PyObject* {
    try {
      return compared(a, b, op);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Type || (op != Py_EQ && op != Py_NE)) throw;
      if (!is_array_of_others(a) && !is_array_of_others(b)) throw;
      Py_RETURN_NOTIMPLEMENTED;
    }
  });
}

/// Whether the class of a tensor, or a mode, answers for it.
bool answered_elsewhere(PyObject* self) { return !is_plain(self) && overrides(self); }

/// What somebody answered, as a truth value or a length; -1 with the Python error set.
int truth_of(PyObject* answer) {
  const Object held(answer);
  if (!held || PyBool_Check(held.get())) return held ? held.get() == Py_True : -1;
  // A tensor would be asked in turn, and might answer with itself.
  if (!is_tensor(held.get())) return PyObject_IsTrue(held.get());
  PyErr_Format(PyExc_TypeError, "__bool__ should return bool, returned %s", type_name(held.get()));
  return -1;
}
Py_ssize_t size_of(PyObject* answer) {
  const Object held(answer);
  return held ? PyNumber_AsSsize_t(held.get(), PyExc_OverflowError) : -1;
}

int truth(PyObject* self) noexcept {
  if (answered_elsewhere(self)) [[unlikely]]
    return truth_of(override_operator("__bool__", {self}));
  const Turn turn;
  try {
    const Tensor& t = tensor_of(self);
    check(t.numel() == 1, ErrorKind::Runtime, "bool: Boolean value of Tensor with ",
          t.numel() ? "more than one value" : "no values", " is ambiguous; found shape ", shape_text(t.sizes()),
          ". Use any() or all()");
    return scalar_of(t, "bool").to<bool>();
  } catch (...) {
    set_python_error();
    return -1;
  }
}

/// RuntimeError for numbers off the real line.
void expect_real(const Scalar& v, const char* kind) {
  check(v.imag() == 0, ErrorKind::Runtime, kind, ": a complex number with an imaginary part cannot become ",
        kind[0] == 'i' ? "an " : "a ", kind, "; take .real first");
}

PyObject* as_int(PyObject* self) noexcept {
  if (answered_elsewhere(self)) [[unlikely]]
    return override_operator("__int__", {self});
  return guarded([&]() -> PyObject* {
    const Scalar v = scalar_of(tensor_of(self), "int");
    expect_real(v, "int");
    if (v.is_floating() || v.is_complex()) return PyLong_FromDouble(v.to_double());
    return v.kind() == Scalar::Kind::UInt ? PyLong_FromUnsignedLongLong(v.to<uint64_t>())
                                          : PyLong_FromLongLong(v.to<int64_t>());
  });
}
PyObject* as_float(PyObject* self) noexcept {
  if (answered_elsewhere(self)) [[unlikely]]
    return override_operator("__float__", {self});
  return guarded([&] {
    const Scalar v = scalar_of(tensor_of(self), "float");
    expect_real(v, "float");
    return PyFloat_FromDouble(v.to_double());
  });
}
PyObject* as_index(PyObject* self) noexcept {
  if (answered_elsewhere(self)) [[unlikely]]
    return override_operator("__index__", {self});
  return guarded([&]() -> PyObject* {
    const Tensor& t = tensor_of(self);
    if (!is_integral(t.dtype()) || t.numel() != 1) [[unlikely]]
      fail(ErrorKind::Type, "index: only integer tensors of one element can be used as an index, found ", describe(t));
    return as_int(self);
  });
}

Py_ssize_t length(PyObject* self) noexcept {
  if (answered_elsewhere(self)) [[unlikely]]
    return size_of(override_operator("__len__", {self}));
  const Tensor& t = tensor_of(self);
  if (t.dim() == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return Py_ssize_t(t.size(0));
}

int contains(PyObject* self, PyObject* value) noexcept {
  if (answered_elsewhere(self) || answered_elsewhere(value)) [[unlikely]]
    return truth_of(override_named("__contains__", self, &value, 1, nullptr));
  const Turn turn;
  try {
    const Side right(value);
    if (!right) {
      PyErr_Format(data_error(), "in: expected a Tensor or a number on the left, found %s", type_name(value));
      return -1;
    }
    return scalar_of(ops::any(ops::eq(tensor_of(self), *right)), "in").to<bool>();
  } catch (...) {
    set_python_error();
    return -1;
  }
}

PyObject* zero() {
  static PyObject* const number = PyLong_FromLong(0);
  return number;
}
PyObject* iterate_items(const Object& items) {
  // A class may answer with a tensor that is asked in turn, and so on.
  if (!items || Py_EnterRecursiveCall(" while iterating over a tensor")) return nullptr;
  PyObject* found = PyObject_GetIter(items.get());
  Py_LeaveRecursiveCall();
  return found;
}

PyObject* iterate(PyObject* self) noexcept {
  if (answered_elsewhere(self)) [[unlikely]]
    return iterate_items(Object(override_operator("unbind", {self, zero()})));
  return guarded([&] {
    const Tensor& t = tensor_of(self);
    check(t.dim() > 0, ErrorKind::Type, "iter: iteration over a 0-d tensor");
    const Object items = own(PyTuple_New(Py_ssize_t(t.size(0))));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
      if ((i & 0x3fff) == 0x3fff) [[unlikely]]
        ensure(PyErr_CheckSignals() == 0);
      PyTuple_SET_ITEM(items.get(), i, own(tensor_sequence_item(self, i)).release());
    }
    return PyObject_GetIter(items.get());
  });
}

Py_hash_t hash(PyObject* self) noexcept { return Py_hash_t(reinterpret_cast<uintptr_t>(self) >> 4); }

}  // namespace

std::vector<PyType_Slot> number_slots() {
  std::vector<PyType_Slot> slots;
  const auto slot = [&](int id, auto function) { slots.push_back({id, reinterpret_cast<void*>(function)}); };
  slot(Py_nb_add, &TAEDA_OPERATOR(add, add));
  slot(Py_nb_subtract, &TAEDA_OPERATOR(sub, __rsub__));
  slot(Py_nb_multiply, &TAEDA_OPERATOR(mul, mul));
  slot(Py_nb_true_divide, &TAEDA_OPERATOR(div, __rtruediv__));
  slot(Py_nb_floor_divide, &TAEDA_OPERATOR(floor_divide, __rfloordiv__));
  slot(Py_nb_remainder, &TAEDA_OPERATOR(remainder, __rmod__));
  slot(Py_nb_matrix_multiply, &matrix_product);
  slot(Py_nb_and, &TAEDA_OPERATOR(bitwise_and, __rand__));
  slot(Py_nb_or, &TAEDA_OPERATOR(bitwise_or, __ror__));
  slot(Py_nb_xor, &TAEDA_OPERATOR(bitwise_xor, __rxor__));
  slot(Py_nb_lshift, &TAEDA_OPERATOR(bitwise_left_shift, __rlshift__));
  slot(Py_nb_rshift, &TAEDA_OPERATOR(bitwise_right_shift, __rrshift__));
  slot(Py_nb_power, &power);
  slot(Py_nb_divmod, &divmod);
  slot(Py_nb_inplace_add, &inplace_add);
  slot(Py_nb_inplace_subtract, &TAEDA_INPLACE_OPERATOR(sub_));
  slot(Py_nb_inplace_multiply, &TAEDA_INPLACE_OPERATOR(mul_));
  slot(Py_nb_inplace_true_divide, &TAEDA_INPLACE_OPERATOR(div_));
  slot(Py_nb_inplace_floor_divide, &TAEDA_INPLACE_OPERATOR(floor_divide_));
  slot(Py_nb_inplace_remainder, &TAEDA_INPLACE_OPERATOR(remainder_));
  slot(Py_nb_inplace_and, &TAEDA_INPLACE_OPERATOR(bitwise_and_));
  slot(Py_nb_inplace_or, &TAEDA_INPLACE_OPERATOR(bitwise_or_));
  slot(Py_nb_inplace_xor, &TAEDA_INPLACE_OPERATOR(bitwise_xor_));
  slot(Py_nb_inplace_lshift, &TAEDA_INPLACE_OPERATOR(bitwise_left_shift_));
  slot(Py_nb_inplace_rshift, &TAEDA_INPLACE_OPERATOR(bitwise_right_shift_));
  slot(Py_nb_inplace_power, &inplace_power);
  slot(Py_nb_negative, &TAEDA_UNARY_OPERATOR(neg));
  slot(Py_nb_positive, &TAEDA_UNARY_OPERATOR(positive));
  slot(Py_nb_absolute, &TAEDA_UNARY_OPERATOR(abs));
  slot(Py_nb_invert, &unary<inverted, [] { return "bitwise_not"; }>);
  slot(Py_nb_bool, &truth);
  slot(Py_nb_int, &as_int);
  slot(Py_nb_float, &as_float);
  slot(Py_nb_index, &as_index);
  slot(Py_tp_richcompare, &compare);
  slot(Py_tp_hash, &hash);
  slot(Py_tp_iter, &iterate);
  slot(Py_mp_length, &length);
  slot(Py_sq_length, &length);
  slot(Py_sq_contains, &contains);
  return slots;
}

}  // namespace taeda::py
