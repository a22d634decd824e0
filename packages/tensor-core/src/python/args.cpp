// What Python arguments are, and their binding to signature tables.
#include "python/args.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "python/arg_kinds.h"
#include "python/internal.h"

namespace taeda::py {

bool is_bool(PyObject* o) {
  const std::string_view type = Py_TYPE(o)->tp_name;
  return PyBool_Check(o) || type == "numpy.bool" || type == "numpy.bool_" ||
         (is_tensor(o) && tensor_of(o).dim() == 0 && tensor_of(o).dtype() == DType::Bool);
}

namespace {

bool has_index(PyObject* o) { return Py_TYPE(o)->tp_as_number && Py_TYPE(o)->tp_as_number->nb_index; }

}  // namespace

bool is_integer(PyObject* o) {
  if (PyLong_Check(o)) return !PyBool_Check(o);
  if (is_tensor(o))
    return tensor_of(o).dim() == 0 && is_integral(tensor_of(o).dtype()) && tensor_of(o).dtype() != DType::Bool;
  if (!has_index(o)) return false;
  if (!PySequence_Check(o)) return true;
  if (PyObject_Length(o) >= 0) return false;
  PyErr_Clear();  // an array of no dimensions: it has no length, and an index if it is one of integers
  PyObject* const index = PyNumber_Index(o);
  if (!index) PyErr_Clear();
  Py_XDECREF(index);
  return index;
}

bool is_item(PyObject* o) {
  if (is_integer(o)) return true;
  if (!is_tensor(o)) return false;
  const Tensor& t = tensor_of(o);
  return t.numel() == 1 && is_integral(t.dtype()) && t.dtype() != DType::Bool;
}

bool is_item_at(Py_ssize_t k, PyObject* o) { return is_item(o) || (k > 0 && PyBool_Check(o)); }
bool is_number(PyObject* o) {
  if (PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o)) return true;
  if (is_tensor(o)) return tensor_of(o).dim() == 0;
  // Strings and containers are the usual other arguments; they are told apart without a look at their methods.
  if (PyUnicode_Check(o) || PyTuple_Check(o) || PyList_Check(o) || o == Py_None) return false;
  return as_number(o).has_value();
}
bool is_int_sequence(PyObject* o) {
  if (is_integer(o)) return true;
  if (!PyTuple_Check(o) && !PyList_Check(o))
    return PySequence_Check(o) && !PyUnicode_Check(o) && !is_tensor(o) && !PyBytes_Check(o);
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!is_item_at(i, PySequence_Fast_GET_ITEM(o, i))) return false;
  return true;
}

const char* expected_text(ArgKind kind) {
  switch (kind) {
    case ArgKind::Tensor: return "a Tensor";
    case ArgKind::Operand: return "a Tensor or a number";
    case ArgKind::OptTensor: return "a Tensor or None";
    case ArgKind::TensorList: return "a sequence of Tensors";
    case ArgKind::OptTensorList: return "a sequence of Tensors or None";
    case ArgKind::Scalar: return "a number";
    case ArgKind::OptScalar: return "a number or None";
    case ArgKind::Int: return "an int";
    case ArgKind::OptInt: return "an int or None";
    case ArgKind::IntList: return "an int or a sequence of ints";
    case ArgKind::OptIntList: return "an int, a sequence of ints or None";
    case ArgKind::Float: return "a float";
    case ArgKind::OptFloat: return "a float or None";
    case ArgKind::FloatList: return "a sequence of floats";
    case ArgKind::Bool: return "a bool";
    case ArgKind::OptBool: return "a bool or None";
    case ArgKind::Str: return "a str";
    case ArgKind::OptStr: return "a str or None";
    case ArgKind::DType: return "a dtype";
    case ArgKind::OptDType: return "a dtype or None";
    case ArgKind::Device: return "a device or a device name";
    case ArgKind::OptDevice: return "a device, a device name or None";
    case ArgKind::OptGenerator: return "a Generator or None";
    case ArgKind::Out: return "a Tensor or a tuple of Tensors";
  }
  return "something else";
}

std::string type_text(PyObject* o) {
  if (o == Py_None) return "None";
  if (is_tensor(o)) return "Tensor " + describe(tensor_of(o));
  std::string text = Py_TYPE(o)->tp_name;
  if (PyTuple_Check(o) || PyList_Check(o)) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    text += " of (";
    for (Py_ssize_t i = 0; i < std::min<Py_ssize_t>(n, 4); ++i)
      text += (i ? ", " : "") + std::string(Py_TYPE(PySequence_Fast_GET_ITEM(o, i))->tp_name);
    text += n > 4 ? ", ...)" : ")";
  } else if (PyLong_Check(o) || PyFloat_Check(o) || PyUnicode_Check(o)) {
    const Object shown(PyObject_Repr(o));
    const char* utf8 = shown ? PyUnicode_AsUTF8(shown.get()) : nullptr;
    if (!utf8) PyErr_Clear();
    if (utf8) text += " " + std::string(utf8).substr(0, 60);
  }
  return text;
}

namespace {

bool optional_kind(ArgKind kind) {
  switch (kind) {
    case ArgKind::OptTensor:
    case ArgKind::OptScalar:
    case ArgKind::OptInt:
    case ArgKind::OptIntList:
    case ArgKind::OptFloat:
    case ArgKind::OptBool:
    case ArgKind::OptStr:
    case ArgKind::OptDType:
    case ArgKind::OptDevice:
    case ArgKind::OptGenerator:
    case ArgKind::Out: return true;
    default: return false;
  }
}

bool of_tensors(ArgKind kind) { return kind <= ArgKind::OptTensorList || kind == ArgKind::Out; }
bool of_one_tensor(ArgKind kind) { return kind <= ArgKind::OptTensor; }
/// Lists with a default: None stands for it.
bool list_kind(ArgKind kind) { return kind == ArgKind::IntList || kind == ArgKind::FloatList; }

/// Python's own numbers, told without a look at any class's bases.
bool is_plain_number(PyObject* o) { return PyFloat_CheckExact(o) || PyLong_CheckExact(o); }
/// A tensor, or an object whose class answers for the operator.
bool is_tensor_like(PyObject* o) { return is_plain(o) || (!is_plain_number(o) && (is_tensor(o) || may_override(o))); }
bool is_tensor_sequence(PyObject* o, bool none) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(o, i);
    if (!(none && item == Py_None) && !is_tensor_like(item)) return false;
  }
  return true;
}

bool matches(ArgKind kind, PyObject* o) {
  if (o == Py_None) return optional_kind(kind);
  switch (kind) {
    case ArgKind::Tensor:
    case ArgKind::OptTensor: return is_tensor_like(o);
    case ArgKind::Operand: return is_plain(o) || is_number(o) || is_tensor_like(o);
    case ArgKind::TensorList: return is_tensor_sequence(o, false);
    case ArgKind::OptTensorList: return is_tensor_sequence(o, true);
    case ArgKind::Scalar:
    case ArgKind::OptScalar: return is_number(o);
    case ArgKind::Int:
    case ArgKind::OptInt: return is_integer(o);
    case ArgKind::IntList:
    case ArgKind::OptIntList: return is_int_sequence(o);
    case ArgKind::Float:
    case ArgKind::OptFloat: return is_number(o) && !PyComplex_Check(o);
    case ArgKind::FloatList: return PyTuple_Check(o) || PyList_Check(o);
    case ArgKind::Bool:
    case ArgKind::OptBool: return is_bool(o);
    case ArgKind::Str:
    case ArgKind::OptStr: return PyUnicode_Check(o);
    case ArgKind::DType:
    case ArgKind::OptDType: return as_dtype(o).has_value();
    case ArgKind::Device:
    case ArgKind::OptDevice: return is_device(o) || PyUnicode_Check(o);
    case ArgKind::OptGenerator: return is_generator(o);
    case ArgKind::Out: return is_tensor_like(o) || is_tensor_sequence(o, false);
  }
  return false;
}

/// NumPy's and PyTorch's spellings of the same arguments.
bool synonym(const char* declared, const char* given) {
  static constexpr const char* kPairs[][2] = {{"dim", "axis"},
                                              {"dims", "axes"},
                                              {"dim", "dims"},
                                              {"keepdim", "keepdims"},
                                              {"self", "input"},
                                              {"self", "x"},
                                              {"dim0", "axis0"},
                                              {"dim1", "axis1"},
                                              {"tensors", "arrays"},
                                              {"other", "x2"},
                                              {"self", "x1"},
                                              {"self", "a"},
                                              {"tensor", "input"},
                                              {"other", "values"},
                                              {"indices_or_sections", "sections"},
                                              {"indices_or_sections", "indices"},
                                              {"shape", "size"},
                                              {"size", "shape"},
                                              {"dims", "dim"},
                                              {"dims", "axis"},
                                              {"self", "tensor"},
                                              {"self", "a"},
                                              {"tensor", "input"},
                                              {"a", "from"},
                                              {"b", "to"},
                                              {"low", "from"},
                                              {"high", "to"},
                                              {"axis0", "dim0"},
                                              {"axis1", "dim1"},
                                              {"other", "values"},
                                              {"src", "other"},
                                              {"training", "train"},
                                              {"elements", "element"},
                                              {"test_elements", "test_element"},
                                              {"indices_or_sections", "sections"},
                                              {"indices_or_sections", "indices"},
                                              {"split_size", "split_size_or_sections"},
                                              {"split_sizes", "split_size"},
                                              {"split_sizes", "split_size_or_sections"}};
  for (const auto& pair : kPairs)
    if (!std::strcmp(declared, pair[0]) && !std::strcmp(given, pair[1])) return true;
  return false;
}

int find_keyword(Signature& sig, PyObject* name) {
  for (int i = 0; i < sig.count; ++i) {
    if (!sig.specs[i].interned) sig.specs[i].interned = PyUnicode_InternFromString(sig.specs[i].name);
    if (sig.specs[i].interned == name) return i;
  }
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) {  // no name of ours has characters that UTF-8 lacks
    PyErr_Clear();
    return -1;
  }
  for (int i = 0; i < sig.count; ++i)
    if (!std::strcmp(sig.specs[i].name, text)) return i;
  for (int i = 0; i < sig.count; ++i)
    if (synonym(sig.specs[i].name, text)) return i;
  return -1;
}

/// Whether normalisation is told to use a vendor's library or not, on which no result depends.
bool picks_library(const Signature& sig, PyObject* value) {
  static constexpr std::string_view kTold[] = {"batch_norm", "group_norm", "instance_norm", "layer_norm"};
  return PyBool_Check(value) && std::ranges::find(kTold, sig.name) != std::end(kTold);
}

bool makes_tensors(const Signature& sig) {
  return std::any_of(sig.specs, sig.specs + sig.count,
                     [](const ArgSpec& spec) { return spec.kind == ArgKind::OptDevice; });
}

/// Keywords that ask for what is so in any case: of a function which makes tensors dense memory that is not pinned,
/// laid out like that of the argument.
bool asks_nothing(const Signature& sig, PyObject* name, PyObject* value) {
  const auto is = [](PyObject* o, const char* text) {
    return PyUnicode_Check(o) && PyUnicode_CompareWithASCIIString(o, text) == 0;
  };
  if (is(name, "cudnn_enabled") || is(name, "cudnn_enable")) return picks_library(sig, value);
  if (!makes_tensors(sig)) return false;
  if (is(name, "pin_memory")) return value == Py_False || value == Py_None;
  if (is(name, "layout")) return value == Py_None || is(value, "strided");
  return is(name, "memory_format") && (value == Py_None || is(value, "preserve_format"));
}

/// Whether a function that makes tensors is asked for another order of their elements than it gives.
bool asks_format(const Signature& sig, PyObject* name) {
  const std::string_view function = sig.name;
  return (function == "empty" || function.ends_with("_like")) && PyUnicode_Check(name) &&
         PyUnicode_CompareWithASCIIString(name, "memory_format") == 0;
}

/// Whether a function that makes tensors is asked for memory from which devices copy without blocking.
bool asks_pinned(const Signature& sig, PyObject* name, PyObject* value) {
  return value == Py_True && makes_tensors(sig) && PyUnicode_Check(name) &&
         PyUnicode_CompareWithASCIIString(name, "pin_memory") == 0;
}

/// Whether a function whose results may be without elements is asked for them in a sparse layout.
bool asks_layout(const Signature& sig, PyObject* name, PyObject* value) {
  static constexpr std::string_view kEmptied[] = {"empty",      "zeros",     "empty_like",
                                                  "zeros_like", "new_empty", "new_zeros"};
  if (!PyUnicode_Check(name) || PyUnicode_CompareWithASCIIString(name, "layout")) return false;
  if (!PyUnicode_Check(value) || PyUnicode_CheckExact(value) ||
      std::ranges::find(kEmptied, sig.name) == std::end(kEmptied))
    return false;
  static const Object prefix = Object(PyUnicode_FromString("sparse_"));
  return PyUnicode_Tailmatch(value, prefix.get(), 0, PY_SSIZE_T_MAX, -1) == 1;
}
/// A flag that a program passes on without having chosen it.
bool left_out(const ArgSpec& spec, PyObject* value) {
  return value == Py_None && spec.kind == ArgKind::Bool && !std::strcmp(spec.name, "requires_grad");
}

/// A sparse tensor that holds no element, of the shape and dtype that the call would give.
[[gnu::cold, gnu::noinline]] PyObject* in_layout(const Signature& sig, Slots& slots) {
  const ArgSpec *const begin = sig.specs, *const end = begin + sig.count;
  const ArgSpec* spec = std::find_if(begin, end, [](const ArgSpec& s) { return s.kind == ArgKind::OptDevice; });
  PyObject*& place = slots.values[spec - sig.specs];
  const Object device(Py_NewRef(place ? place : Py_None)), meta(PyUnicode_FromString("meta"));
  if (!meta) return nullptr;
  place = meta.get();
  const Object shown(sig.call(sig, slots));
  if (!shown) return nullptr;
  const Object module(PyImport_ImportModule("taeda_tensor_core.sparse._making"));
  if (!module) return nullptr;
  PyObject* like = sig.count && of_one_tensor(sig.specs[0].kind) ? slots.values[0] : Py_None;
  return PyObject_CallMethod(module.get(), "without_elements", "sOOOO", sig.name, shown.get(), slots.layout,
                             device.get(), like);
}

/// The same elements in another order, or in row-major one.
PyObject* in_order(PyObject* plain, PyObject* format) {
  const bool in_rows = PyUnicode_Check(format) && PyUnicode_CompareWithASCIIString(format, "contiguous_format") == 0;
  // Where both orders fit the shape, the steps of the one that was asked for are wanted.
  const Object method(PyObject_GetAttrString(plain, in_rows ? "contiguous" : "clone")), nothing(PyTuple_New(0)),
      named(Py_BuildValue("{s:O}", "memory_format", format));
  return method && nothing && named ? PyObject_Call(method.get(), nothing.get(), named.get()) : nullptr;
}
/// A fresh tensor in the order and the memory that were asked for; takes `made`, and nullptr stays nullptr.
[[gnu::cold, gnu::noinline]] PyObject* as_asked(PyObject* made, const Slots& slots) {
  if (!made) return made;
  const Object owner(made);
  const bool recorded = is_tensor(made) && tensor_of(made).requires_grad();
  const Object plain(recorded ? PyObject_CallMethod(made, "detach", nullptr) : Py_NewRef(made));
  if (!plain) return nullptr;
  Object result(slots.format == Py_None ? Py_NewRef(plain.get()) : in_order(plain.get(), slots.format));
  if (result && slots.pinned) result = Object(PyObject_CallMethod(result.get(), "pin_memory", nullptr));
  if (result && recorded) set_requires_grad(tensor_of(result.get()), true);
  return result.release();
}

inline PyObject* called(const Signature& sig, Slots& slots) {
  if (slots.layout) [[unlikely]]
    return in_layout(sig, slots);
  PyObject* made = sig.call(sig, slots);
  if (slots.format) [[unlikely]]
    return as_asked(made, slots);
  return made;
}

/// The factors that an operator takes as keywords, in the order in which older programs give them.
std::vector<int> factors_of(const Signature& sig) {
  std::vector<int> found;
  for (const char* name : {"beta", "alpha", "value"})
    for (int i = sig.positional; i < sig.count; ++i)
      if (sig.specs[i].kind == ArgKind::Scalar && !std::strcmp(sig.specs[i].name, name)) found.push_back(i);
  return found;
}

/// Whether an argument that may be a factor is one: a number, or a tensor of no dimension that stands for one.
bool is_factor(PyObject* o) {
  if (!is_plain(o) && !is_tensor_like(o)) return is_number(o);
  return is_tensor(o) && tensor_of(o).dim() == 0 && !tensor_of(o).requires_grad();
}

/// The order of arguments that PyTorch still takes, with a warning: factors stand before the tensors that they belong
/// to, as in `add_(alpha, other)`, `addcmul(self, value, tensor1, tensor2)` and `addmm(beta, self, alpha, mat1, mat2)`.
bool bind_older(const Signature& sig, PyObject* self, PyObject* const* args, Py_ssize_t nargs, Slots& slots) {
  const std::vector<int> factors = factors_of(sig);
  int at = 0;
  for (int i = 0; i < sig.count; ++i) slots.values[i] = nullptr;
  if (self) slots.values[at++] = self;
  const Py_ssize_t count = nargs - (sig.positional - at);
  if (count < 1 || count > Py_ssize_t(factors.size())) return false;
  const bool before_self = !self && !std::strcmp(sig.specs[factors[0]].name, "beta");
  Py_ssize_t found = 0;
  const auto factor_due = [&](Py_ssize_t i) {
    return found < count && i == (self ? found : before_self ? 2 * found : found + 1);
  };
  for (Py_ssize_t i = 0; i < nargs; ++i) {
    const bool tensor = is_plain(args[i]) || is_tensor_like(args[i]);
    if (factor_due(i) ? !is_factor(args[i]) : !tensor) return false;
    slots.values[factor_due(i) ? factors[size_t(found++)] : at++] = args[i];
  }
  return !PyErr_WarnFormat(PyExc_UserWarning, 1,
                           "This order of the arguments of %s is deprecated: give its factors by name; signature: %s",
                           sig.name, sig.text);
}

enum class Bound { Yes, No, Perhaps };

/// Fills the slots from positional arguments alone: nearly every call. No: there are too many of them. Perhaps: `bind`
/// knows more.
inline Bound bind_positional(const Signature& sig, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                             Slots& slots) {
  int at = 0;
  if (self) slots.values[at++] = self;
  int end = at + int(nargs);
  slots.tail = nullptr;
  if (sig.varargs >= at && sig.varargs < end) {
    PyObject* const first = args[sig.varargs - at];
    if (PyLong_CheckExact(first)) {
      slots.tail = args + (sig.varargs - at);
      slots.tail_count = end - sig.varargs;
      end = sig.varargs + 1;
    } else if (!PyTuple_Check(first)) {
      return Bound::Perhaps;
    }
  }
  if (end > sig.positional) return Bound::No;
  for (; at < end; ++at) slots.values[at] = *args++;
  for (; at < sig.count; ++at) {
    if (sig.specs[at].required) return Bound::Perhaps;
    slots.values[at] = nullptr;
  }
  return Bound::Yes;
}

/// Fills the slots; on failure returns false with, when `loud`, a TypeError set. `older`: also from the order of older
/// programs.
bool bind(Signature& sig, PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, Slots& slots,
          bool loud, bool older) {
  for (int i = 0; i < sig.count; ++i) slots.values[i] = nullptr;
  slots.tail = nullptr;
  slots.tail_count = 0;
  slots.format = slots.layout = nullptr;
  slots.pinned = false;
  int at = 0;
  if (self) slots.values[at++] = self;
  Py_ssize_t taken = 0;
  for (; taken < nargs && at < sig.positional; ++taken, ++at) {
    if (at == sig.varargs && (nargs - taken > 1 || is_integer(args[taken]) || is_tensor(args[taken])) &&
        !(PyTuple_Check(args[taken]) || PyList_Check(args[taken]))) {
      slots.tail = args + taken;
      slots.tail_count = nargs - taken;
      slots.values[at] = args[taken];
      taken = nargs;
      break;
    }
    slots.values[at] = args[taken];
  }
  const bool told = taken + 1 == nargs && picks_library(sig, args[taken]);
  if (taken < nargs && !told && !(older && bind_older(sig, self, args, nargs, slots))) {
    // `x.sum(())`-like calls without any positional argument left, `zeros()` and so on end here too.
    if (loud)
      PyErr_Format(PyExc_TypeError, "%s: expected at most %d positional arguments, got %zd; signature: %s", sig.name,
                   sig.positional - (self ? 1 : 0), nargs, sig.text);
    return false;
  }
  const Py_ssize_t keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t k = 0; k < keywords; ++k) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, k);
    const int i = find_keyword(sig, name);
    if (i < 0 && asks_nothing(sig, name, args[nargs + k])) continue;
    if (i < 0 && asks_pinned(sig, name, args[nargs + k])) {
      slots.pinned = true;
      if (!slots.format) slots.format = Py_None;
      continue;
    }
    if (i < 0 && asks_format(sig, name)) {
      slots.format = args[nargs + k];
      continue;
    }
    if (i < 0 && asks_layout(sig, name, args[nargs + k])) {
      slots.layout = args[nargs + k];
      continue;
    }
    if (i >= 0 && left_out(sig.specs[i], args[nargs + k])) continue;
    if (i < 0 || slots.values[i]) {
      if (loud)
        PyErr_Format(PyExc_TypeError, "%s: %s argument '%U'; signature: %s", sig.name,
                     i < 0 ? "unexpected keyword" : "got several values for", name, sig.text);
      return false;
    }
    slots.values[i] = args[nargs + k];
  }
  for (int i = 0; i < sig.count; ++i) {
    if (!slots.values[i] && sig.specs[i].required) {
      // There may be no tensors, `block_diag()`; sizes are stated, if as (): a program that passes none forgot them.
      if (i == sig.varargs && !kwnames && of_tensors(sig.specs[i].kind)) {
        static PyObject* const empty = PyTuple_New(0);
        slots.values[i] = empty;
        continue;
      }
      if (loud)
        PyErr_Format(PyExc_TypeError, "%s: missing argument '%s', expected %s; signature: %s", sig.name,
                     sig.specs[i].name, expected_text(sig.specs[i].kind), sig.text);
      return false;
    }
  }
  return true;
}

/// Whether the arguments have the signature's types. A tensor of no dimension may stand for a number, but not if
/// `strict`: an overload that takes tensors goes first.
bool fits(Signature& sig, Slots& slots, bool strict) {
  for (int i = 0; i < sig.count; ++i) {
    PyObject* o = slots.values[i];
    if (!o || (slots.tail && i == sig.varargs)) continue;
    const ArgKind kind = sig.specs[i].kind;
    if (is_plain(o) && of_one_tensor(kind)) continue;
    if (strict && !of_tensors(kind) && !is_plain_number(o) && is_tensor(o)) return false;
    if (o == Py_None && !sig.specs[i].required && list_kind(kind)) continue;
    if (!matches(kind, o)) return false;
  }
  return true;
}

void no_signature(Signature* signatures, int count, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                  PyObject* kwnames) {
  std::string text = std::string(signatures[0].name) + ": no signature fits the arguments (";
  bool first = true;
  const auto add = [&](const std::string& item) {
    text += (first ? "" : ", ") + item;
    first = false;
  };
  if (self) add(type_text(self));
  for (Py_ssize_t i = 0; i < nargs; ++i) add(type_text(args[i]));
  for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
    const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames, k));
    if (!name) PyErr_Clear();
    add(std::string(name ? name : "?") + "=" + type_text(args[nargs + k]));
  }
  text += "); expected one of:";
  for (int s = 0; s < count; ++s) text += std::string("\n  ") + signatures[s].text;
  PyErr_SetString(PyExc_TypeError, text.c_str());
}

}  // namespace

void wrong_type(const Signature& sig, int i, PyObject* found) {
  if (PyErr_Occurred()) PyErr_Clear();
  // What stands for a number, such as a size while a program is traced, may answer too.
  if (found && may_override_in(found)) throw Overridden();
  fail(ErrorKind::Type, sig.name, ": argument '", sig.specs[i].name, "' must be ", expected_text(sig.specs[i].kind),
       ", found ", found ? type_text(found) : "nothing");
}

namespace {

/// `name` gives the public name, which only a call that is answered elsewhere needs.
template <class Name>
PyObject* run_named(Name name, Signature* signatures, int count, PyObject* self, PyObject* const* args,
                    Py_ssize_t nargs, PyObject* kwnames) {
  const Turn turn;
  Slots slots;
  try {
    if (count == 1) {
      if (!kwnames && bind_positional(*signatures, self, args, nargs, slots) == Bound::Yes) [[likely]]
        return signatures->call(*signatures, slots);
      if (!bind(*signatures, self, args, nargs, kwnames, slots, true, true)) return nullptr;
      return called(*signatures, slots);
    }
    const auto bound = [&](Signature& sig) {
      const Bound plain = kwnames ? Bound::Perhaps : bind_positional(sig, self, args, nargs, slots);
      return plain == Bound::Perhaps ? bind(sig, self, args, nargs, kwnames, slots, false, false) : plain == Bound::Yes;
    };
    for (const bool strict : {true, false})
      for (int s = 0; s < count; ++s)
        if (bound(signatures[s]) && fits(signatures[s], slots, strict)) return called(signatures[s], slots);
    for (int s = 0; s < count; ++s)
      if (bind(signatures[s], self, args, nargs, kwnames, slots, false, true) && fits(signatures[s], slots, false))
        return called(signatures[s], slots);
    for (Py_ssize_t i = 0; i < nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0); ++i)
      if (may_override_in(args[i])) throw Overridden();
    no_signature(signatures, count, self, args, nargs, kwnames);
    return nullptr;
  } catch (const Overridden&) {
    return override_named(name(), self, args, nargs, kwnames);
  } catch (...) {
    set_python_error(signatures[0].name);
    return nullptr;
  }
}

}  // namespace

PyObject* run(Signature* signatures, int count, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
              PyObject* kwnames) {
  return run_named([=] { return signatures->name; }, signatures, count, self, args, nargs, kwnames);
}
PyObject* run_as(const char* name, Signature* signatures, int count, PyObject* self, PyObject* const* args,
                 Py_ssize_t nargs, PyObject* kwnames) {
  return run_named([=] { return name; }, signatures, count, self, args, nargs, kwnames);
}

}  // namespace taeda::py
