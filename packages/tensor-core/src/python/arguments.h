// Arguments of hand-written METH_FASTCALL functions, by position or name.
#pragma once
#include <cstring>
#include <initializer_list>

#include "python/internal.h"

namespace taeda::py {

inline constexpr int kMaxNames = 8;

/// Name of a function, how many arguments may be given by position, and the names of all.
struct Names {
  const char* op;
  int positional;
  const char* names[kMaxNames];
  int count;
  Names(const char* op_, int positional_, std::initializer_list<const char*> list)
      : op(op_), positional(positional_), names{}, count(int(list.size())) {
    std::copy(list.begin(), list.end(), names);
  }
};

/// Borrowed arguments of one call; missing ones are null.
class Given {
 public:
  Given(const Names& known, PyObject* const* args, Py_ssize_t count, PyObject* keywords) : known_(known) {
    if (count > known.positional)
      fail(ErrorKind::Type, known.op, ": expected at most ", known.positional, " positional arguments, found ", count);
    for (Py_ssize_t i = 0; i < count; ++i) values_[i] = args[i];
    for (Py_ssize_t k = 0; keywords && k < PyTuple_GET_SIZE(keywords); ++k)
      take(PyTuple_GET_ITEM(keywords, k), args[count + k]);
  }
  PyObject* operator[](int i) const { return values_[i]; }
  bool has(int i) const { return values_[i] && values_[i] != Py_None; }
  PyObject* need(int i) const {
    if (!values_[i]) fail(ErrorKind::Type, known_.op, ": missing argument '", known_.names[i], "'");
    return values_[i];
  }
  std::optional<DType> dtype(int i) const {
    if (!has(i)) return std::nullopt;
    const std::optional<DType> found = as_dtype(values_[i]);
    if (!found) wrong(i, "a dtype");
    return found;
  }
  std::optional<Device> device(int i) const {
    if (!has(i)) return std::nullopt;
    const std::optional<Device> found = as_device(values_[i]);
    if (!found) wrong(i, "a device or its name");
    return found;
  }
  bool truth(int i, bool missing) const {
    if (!has(i)) return missing;
    if (!is_bool(values_[i])) wrong(i, "a bool");
    return is_true(values_[i]);
  }
  int64_t integer(int i, int64_t missing) const {
    if (!has(i)) return missing;
    if (!PyIndex_Check(values_[i])) wrong(i, "an int");
    const Py_ssize_t v = PyNumber_AsSsize_t(values_[i], PyExc_OverflowError);
    ensure(v != -1 || !PyErr_Occurred());
    return v;
  }
  std::string_view text(int i, std::string_view missing) const {
    if (!has(i)) return missing;
    if (!PyUnicode_Check(values_[i])) wrong(i, "a str");
    return text_of(values_[i], known_.names[i]);
  }
  [[noreturn]] void wrong(int i, const char* expected) const {
    fail(ErrorKind::Type, known_.op, ": argument '", known_.names[i], "' must be ", expected, ", found ",
         type_name(values_[i]));
  }

 private:
  void take(PyObject* keyword, PyObject* value) {
    const char* text = PyUnicode_AsUTF8(keyword);
    ensure(text != nullptr);
    for (int i = 0; i < known_.count; ++i) {
      if (std::strcmp(known_.names[i], text)) continue;
      if (values_[i]) fail(ErrorKind::Type, known_.op, ": got several values for argument '", text, "'");
      values_[i] = value;
      return;
    }
    fail(ErrorKind::Type, known_.op, ": unexpected keyword argument '", text, "'");
  }

  const Names& known_;
  PyObject* values_[kMaxNames] = {};
};

}  // namespace taeda::py
