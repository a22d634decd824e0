// Argument parsing of generated functions: tables in, borrowed slots out, conversion without temporaries.
#pragma once
#include <optional>
#include <vector>

#include "python/override.h"

namespace taeda::py {

enum class ArgKind : uint8_t {
  Tensor,
  Operand,
  OptTensor,
  TensorList,
  OptTensorList,
  Scalar,
  OptScalar,
  Int,
  OptInt,
  IntList,
  OptIntList,
  Float,
  OptFloat,
  FloatList,
  Bool,
  OptBool,
  Str,
  OptStr,
  DType,
  OptDType,
  Device,
  OptDevice,
  OptGenerator,
  Out,
};

struct ArgSpec {
  const char* name;
  ArgKind kind;
  bool required;
  bool keyword_only;
  PyObject* interned = nullptr;  // the name, made at first use
};

inline constexpr int kMaxArguments = 24;

/// Borrowed arguments of one call. With varargs the tail of the positional arguments stands for one list argument.
struct Slots {
  PyObject* values[kMaxArguments];
  PyObject* const* tail = nullptr;
  Py_ssize_t tail_count = 0;
  PyObject* format = nullptr;  // the order of elements that a function which makes tensors is asked for besides
  PyObject* layout = nullptr;  // a way in which such a function is to keep no elements, for it makes zeros
  bool pinned = false;  // whether such a function is to take pinned memory; then there is a `format`, if only None
  bool present(int i) const { return values[i] != nullptr; }
  /// Neither left out nor None.
  bool given(int i) const { return values[i] != nullptr && values[i] != Py_None; }
  PyObject* self() const { return Py_NewRef(values[0]); }
};

struct Signature;
using Caller = PyObject* (*)(const Signature&, Slots&);
struct Signature {
  const char* name;
  ArgSpec* specs;
  int count;
  int positional;
  int varargs;
  const char* text;
  Caller call;
};

/// Finds the signature that fits, converts and calls; sets the Python error and returns null on failure.
PyObject* run(Signature* signatures, int count, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
              PyObject* kwnames);
/// The same under another public name of the operator.
PyObject* run_as(const char* name, Signature* signatures, int count, PyObject* self, PyObject* const* args,
                 Py_ssize_t nargs, PyObject* kwnames);

/// TypeError "op: argument 'name' must be X, found Y".
[[noreturn]] void wrong_type(const Signature& sig, int i, PyObject* found);

const Tensor& tensor_slow(const Signature& sig, int i, Slots& slots);
inline const Tensor& tensor_arg(const Signature& sig, int i, Slots& slots) {
  PyObject* o = slots.values[i];
  if (o && is_plain(o)) [[likely]]
    return tensor_of(o);
  return tensor_slow(sig, i, slots);
}
const Tensor& opt_tensor_arg(const Signature& sig, int i, Slots& slots);
/// Ints and what stands for one; bools are refused, as a flag in the place of a size is a mistake.
bool is_integer(PyObject* o);
int64_t int_slow(const Signature& sig, int i, PyObject* o);
/// One int from any object with __index__ or a one-element integer tensor.
inline int64_t int_value(const Signature& sig, int i, PyObject* o) {
  if (PyLong_CheckExact(o)) [[likely]] {
    int overflow;
    const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow) [[likely]]
      return v;
  }
  return int_slow(sig, i, o);
}
inline int64_t int_arg(const Signature& sig, int i, Slots& slots) { return int_value(sig, i, slots.values[i]); }
inline std::optional<int64_t> opt_int_arg(const Signature& sig, int i, Slots& slots) {
  return slots.given(i) ? std::optional<int64_t>(int_arg(sig, i, slots)) : std::nullopt;
}
Scalar scalar_value(const Signature& sig, int i, PyObject* o);
/// The same; a number with an imaginary part beside real tensors is refused where only its real part would be used.
Scalar scalar_arg(const Signature& sig, int i, Slots& slots);
inline std::optional<Scalar> opt_scalar_arg(const Signature& sig, int i, Slots& slots) {
  return slots.given(i) ? std::optional<Scalar>(scalar_arg(sig, i, slots)) : std::nullopt;
}
double float_arg(const Signature& sig, int i, Slots& slots);
inline std::optional<double> opt_float_arg(const Signature& sig, int i, Slots& slots) {
  return slots.given(i) ? std::optional<double>(float_arg(sig, i, slots)) : std::nullopt;
}
bool bool_slow(const Signature& sig, int i, PyObject* o);
inline bool bool_arg(const Signature& sig, int i, Slots& slots) {
  PyObject* o = slots.values[i];
  return o == Py_True ? true : o == Py_False ? false : bool_slow(sig, i, o);
}
inline std::optional<bool> opt_bool_arg(const Signature& sig, int i, Slots& slots) {
  return slots.given(i) ? std::optional<bool>(bool_arg(sig, i, slots)) : std::nullopt;
}
std::string_view str_arg(const Signature& sig, int i, Slots& slots);
inline std::optional<std::string_view> opt_str_arg(const Signature& sig, int i, Slots& slots) {
  return slots.given(i) ? std::optional<std::string_view>(str_arg(sig, i, slots)) : std::nullopt;
}
DType dtype_arg(const Signature& sig, int i, Slots& slots);
inline std::optional<DType> opt_dtype_arg(const Signature& sig, int i, Slots& slots) {
  return slots.given(i) ? std::optional<DType>(dtype_arg(sig, i, slots)) : std::nullopt;
}
Device device_arg(const Signature& sig, int i, Slots& slots);
inline std::optional<Device> opt_device_arg(const Signature& sig, int i, Slots& slots) {
  return slots.given(i) ? std::optional<Device>(device_arg(sig, i, slots)) : std::nullopt;
}
const Generator& opt_generator_arg(const Signature& sig, int i, Slots& slots);

/// A tensor, or a number as wrapped number.
class OperandArg {
 public:
  OperandArg(const Signature& sig, int i, Slots& slots) {
    PyObject* o = slots.values[i];
    if (o && is_plain(o)) [[likely]]
      tensor_ = &tensor_of(o);
    else tensor_ = take(sig, i, o);
  }
  const Tensor& get() const { return *tensor_; }

 private:
  const Tensor* take(const Signature& sig, int i, PyObject* o);
  const Tensor* tensor_;
  Tensor made_;
};

/// A sequence of tensors (None allowed where the kind says so); single tensors stand for a list where varargs do.
class TensorListArg {
 public:
  TensorListArg(const Signature& sig, int i, Slots& slots);
  TensorList get() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
};

/// A sequence of ints, one int, or the positional tail.
class IntListArg {
 public:
  IntListArg(const Signature& sig, int i, Slots& slots, const Shape& missing = {});
  IntSpan get() const { return values_; }

 private:
  Shape values_;
};
class OptIntListArg {
 public:
  OptIntListArg(const Signature& sig, int i, Slots& slots) {
    if (slots.given(i) || slots.tail) values_.emplace(sig, i, slots);
  }
  std::optional<IntSpan> get() const { return values_ ? std::optional<IntSpan>(values_->get()) : std::nullopt; }

 private:
  std::optional<IntListArg> values_;
};
/// The arguments of a reduction where an empty list names no dimension, not all: each element is reduced alone, along a
/// dimension that only it has.
class NamedAlone {
 public:
  NamedAlone(const Tensor& self, std::optional<IntSpan> dim, bool keepdim) : self_(self), dim_(dim), keepdim_(keepdim) {
    if (dim && dim->empty()) [[unlikely]]
      part();
  }
  NamedAlone(const NamedAlone&) = delete;
  const Tensor& self() const { return parted_.defined() ? parted_ : self_; }
  const std::optional<IntSpan>& dim() const { return dim_; }
  bool keepdim() const { return keepdim_; }

 private:
  void part();

  const Tensor& self_;
  Tensor parted_;
  std::optional<IntSpan> dim_;
  bool keepdim_;
};
class FloatListArg {
 public:
  FloatListArg(const Signature& sig, int i, Slots& slots);
  std::span<const double> get() const { return values_; }

 private:
  std::vector<double> values_;
};

/// out=: one tensor, or a tuple of as many as the operator has results.
class OutArg {
 public:
  OutArg(const Signature& sig, int i, Slots& slots, int count);
  ~OutArg() { Py_XDECREF(held_); }
  OutArg(const OutArg&) = delete;
  const Tensor& operator[](int i) const { return tensor_of(items_[i]); }
  PyObject* result() const { return Py_NewRef(given_); }
  /// Several of them, by their names.
  PyObject* result(PyTypeObject* type) const;

 private:
  PyObject* given_;
  PyObject* held_ = nullptr;  // keeps the items of a list, which others may change meanwhile
  PyObject* items_[8];
  int count_;
};

// --- results ---
inline PyObject* wrap(bool v) { return PyBool_FromLong(v); }
inline PyObject* wrap(int64_t v) { return PyLong_FromLongLong(v); }
inline PyObject* wrap(double v) { return PyFloat_FromDouble(v); }
inline PyObject* wrap(const Scalar& v) { return number_of(v); }
PyObject* wrap(std::vector<Tensor> tensors);
/// A named-tuple type `taeda.return_types.<name>`.
PyTypeObject* result_type(const char* name, const char* const* fields, int count);
PyObject* pack_results(PyTypeObject* type, PyObject** items, int count);
template <class... T>
PyObject* wrap_results(PyTypeObject* type, std::tuple<T...> results) {
  return std::apply(
      [&](auto&... r) {
        PyObject* items[] = {wrap(std::move(r))...};
        return pack_results(type, items, int(sizeof...(T)));
      },
      results);
}

}  // namespace taeda::py
