// Functions of C++ with a backward of their own, and what of gradients only Python can switch. Part of
// taeda/extension.h; left out with TAEDA_WITHOUT_PYTHON, since a Function of C++ is one of Python underneath.
#pragma once
#include <memory>
#include <string>
#include <typeinfo>
#include <unordered_map>
#include <variant>

#include "taeda/extension/python.h"

namespace taeda {
inline namespace extension_v1 {

/// A value of one of several kinds, as contexts keep it.
class IValue {
 public:
  IValue() = default;
  template <class T>
    requires std::is_arithmetic_v<T>
  IValue(T number) {
    if constexpr (std::is_same_v<T, bool>) value_ = number;
    else if constexpr (std::is_floating_point_v<T>) value_ = double(number);
    else value_ = int64_t(number);
  }
  IValue(Tensor tensor) : value_(std::move(tensor)) {}
  IValue(std::string text) : value_(std::move(text)) {}
  IValue(const char* text) : value_(std::string(text)) {}
  IValue(std::vector<Tensor> tensors) : value_(std::move(tensors)) {}
  IValue(std::vector<int64_t> numbers) : value_(std::move(numbers)) {}
  IValue(IntArrayRef numbers) : value_(numbers.vec()) {}
  IValue(std::vector<double> numbers) : value_(std::move(numbers)) {}
  template <class T>
  IValue(const std::optional<T>& value) {
    if (value) *this = IValue(*value);
  }

  bool isNone() const { return holds<std::monostate>(); }
  bool isBool() const { return holds<bool>(); }
  bool isInt() const { return holds<int64_t>(); }
  bool isDouble() const { return holds<double>(); }
  bool isString() const { return holds<std::string>(); }
  bool isTensor() const { return holds<Tensor>(); }
  bool isIntList() const { return holds<std::vector<int64_t>>(); }
  bool toBool() const { return get<bool>("a bool"); }
  int64_t toInt() const { return get<int64_t>("an int"); }
  double toDouble() const { return get<double>("a float"); }
  const std::string& toStringRef() const { return get<std::string>("a string"); }
  const Tensor& toTensor() const { return get<Tensor>("a tensor"); }
  const std::vector<Tensor>& toTensorVector() const { return get<std::vector<Tensor>>("a list of tensors"); }
  const List<int64_t>& toIntList() const { return toIntVector(); }
  const List<double>& toDoubleList() const { return toDoubleVector(); }
  const List<Tensor>& toTensorList() const { return toTensorVector(); }
  const std::vector<int64_t>& toIntVector() const { return get<std::vector<int64_t>>("a list of ints"); }
  const std::vector<double>& toDoubleVector() const { return get<std::vector<double>>("a list of floats"); }
  Scalar toScalar() const {
    if (isBool()) return toBool();
    return isInt() ? Scalar(toInt()) : Scalar(toDouble());
  }

 private:
  template <class T>
  bool holds() const {
    return std::holds_alternative<T>(value_);
  }
  template <class T>
  const T& get(const char* wanted) const {
    if (!holds<T>()) throw Error(TAEDA_E_TYPE, detail::joined("IValue: the value is not ", wanted));
    return std::get<T>(value_);
  }
  std::variant<std::monostate, bool, int64_t, double, std::string, Tensor, std::vector<Tensor>, std::vector<int64_t>,
               std::vector<double>>
      value_;
};

/// Whether calls of this thread are recorded.
struct GradMode {
  static bool is_enabled() {
    const pybind11::gil_scoped_acquire lock;
    return detail::core().attr("is_grad_enabled")().cast<bool>();
  }
  static void set_enabled(bool enabled) {
    const pybind11::gil_scoped_acquire lock;
    detail::core().attr("set_grad_enabled")(enabled);
  }
};
/// Switches recording for a scope.
class AutoGradMode {
 public:
  AutoGradMode(bool enabled) : before_(GradMode::is_enabled()) { GradMode::set_enabled(enabled); }
  ~AutoGradMode() { GradMode::set_enabled(before_); }
  AutoGradMode(const AutoGradMode&) = delete;

 private:
  bool before_;
};
struct NoGradGuard : AutoGradMode {
  NoGradGuard() : AutoGradMode(false) {}
};
/// Within a forward nothing is recorded anyway: names that PyTorch's sources use there.
using AutoDispatchBelowADInplaceOrView = NoGradGuard;
using AutoDispatchBelowAutograd = NoGradGuard;
using AutoNonVariableTypeMode = NoGradGuard;

namespace autograd {

using Variable = Tensor;
using variable_list = std::vector<Tensor>;
using tensor_list = std::vector<Tensor>;

/// Whether a gradient is asked for of one of the tensors.
inline bool any_variable_requires_grad(const variable_list& variables) {
  for (const Tensor& tensor : variables)
    if (tensor.defined() && tensor.requires_grad()) return true;
  return false;
}

/// What a forward leaves for its backward.
class AutogradContext {
 public:
  /// Numbers and texts, and tensors that are neither arguments nor results.
  std::unordered_map<std::string, IValue> saved_data;

  /// Keeps arguments or results; a write to one before the backward is an error there.
  void save_for_backward(const variable_list& tensors) { call("save_for_backward", tensors); }
  variable_list get_saved_variables() const {
    variable_list out;
    for (const pybind11::handle tensor : context_.attr("saved_tensors"))
      out.push_back(tensor.is_none() ? Tensor() : tensor.cast<Tensor>());
    return out;
  }
  /// Arguments that the forward has written to; it must give them as results.
  void mark_dirty(const variable_list& tensors) { call("mark_dirty", tensors); }
  void mark_non_differentiable(const variable_list& tensors) { call("mark_non_differentiable", tensors); }
  /// Whether gradients that did not come are zeros, as without this call, or undefined.
  void set_materialize_grads(bool value) { context_.attr("set_materialize_grads")(value); }
  /// Whether a gradient is asked for, of the tensors among the arguments counted from 0.
  bool needs_input_grad(size_t i) const {
    const pybind11::tuple needed = context_.attr("needs_input_grad");
    return i + 1 < needed.size() && needed[i + 1].cast<bool>();
  }

 private:
  template <class T>
  friend class Function;
  void call(const char* method, const variable_list& tensors) {
    pybind11::tuple given(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) given[i] = pybind11::cast(tensors[i]);
    context_.attr(method)(*given);
  }
  pybind11::handle context_;  // lent for the time of a forward or backward
};

/// A function with a backward: `struct Mine : Function<Mine>` with static functions
/// `Tensor forward(AutogradContext* ctx, arguments...)`, or with a `variable_list` as result, and
/// `variable_list backward(AutogradContext* ctx, variable_list gradients)`, which gives a gradient for each argument,
/// lists item by item, and undefined tensors for those that are none. Used as `Mine::apply(arguments...)`.
template <class T>
class Function {
 public:
  template <class... A>
  static auto apply(A&&... arguments) {
    using Result = decltype(T::forward(std::declval<AutogradContext*>(), std::forward<A>(arguments)...));
    const pybind11::gil_scoped_acquire lock;
    Given given;
    (given.add(arguments), ...);
    const std::function<pybind11::object(AutogradContext*)> forward = [&](AutogradContext* context) {
      return to_python(T::forward(context, std::forward<A>(arguments)...));
    };
    Run run{forward, given.is_tensor};
    pybind11::list passed;
    passed.append(pybind11::capsule(&run, kRun));
    for (const Tensor& tensor : given.tensors) passed.append(pybind11::cast(tensor));
    return from_python<std::decay_t<Result>>(type().attr("apply")(*pybind11::tuple(passed)));
  }

 private:
  static constexpr char kRun[] = "taeda.extension.run", kKept[] = "taeda.extension.kept";
  /// The arguments of a call: which of them are tensors, lists item by item.
  struct Given {
    std::vector<bool> is_tensor;
    variable_list tensors;
    void add(const Tensor& tensor) {
      is_tensor.push_back(true);
      tensors.push_back(tensor);
    }
    void add(const std::optional<Tensor>& tensor) { add(tensor.value_or(Tensor())); }
    void add(const variable_list& list) {
      for (const Tensor& tensor : list) add(tensor);
    }
    void add(TensorList list) {
      for (const Tensor& tensor : list) add(tensor);
    }
    template <class Other>
    void add(const Other&) {
      is_tensor.push_back(false);
    }
  };
  struct Run {
    const std::function<pybind11::object(AutogradContext*)>& forward;
    const std::vector<bool>& is_tensor;
  };
  /// What lives as long as the context of Python.
  struct Kept {
    AutogradContext context;
    std::vector<bool> is_tensor;
  };

  static pybind11::object to_python(const Tensor& tensor) { return pybind11::cast(tensor); }
  static pybind11::object to_python(const variable_list& tensors) {
    pybind11::tuple out(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) out[i] = pybind11::cast(tensors[i]);
    return std::move(out);
  }
  template <class Result>
  static Result from_python(const pybind11::object& given) {
    if constexpr (std::is_same_v<Result, Tensor>) {
      return given.is_none() ? Tensor() : given.cast<Tensor>();
    } else {
      variable_list out;
      for (const pybind11::handle item : given) out.push_back(item.is_none() ? Tensor() : item.cast<Tensor>());
      return out;
    }
  }

  static pybind11::object forward(const pybind11::object& context, const pybind11::capsule& given,
                                  const pybind11::args&) {
    const Run& run = *given.get_pointer<Run>();
    auto kept = std::make_unique<Kept>();
    kept->is_tensor = run.is_tensor;
    kept->context.context_ = context;
    pybind11::object made = run.forward(&kept->context);
    context.attr("_kept") = pybind11::capsule(kept.release(), kKept, [](PyObject* capsule) {
      delete static_cast<Kept*>(PyCapsule_GetPointer(capsule, kKept));
    });
    return made;
  }
  static pybind11::object backward(const pybind11::object& context, const pybind11::args& gradients) {
    const pybind11::capsule holder = context.attr("_kept");
    Kept& kept = *holder.get_pointer<Kept>();
    kept.context.context_ = context;
    const variable_list made = T::backward(&kept.context, from_python<variable_list>(gradients));
    const size_t count = kept.is_tensor.size();
    bool rest = true;  // of more than there are arguments
    for (size_t i = count; i < made.size(); ++i) rest = rest && !made[i].defined();
    if (made.size() < count || !rest)
      throw Error(TAEDA_E_RUNTIME,
                  detail::joined(name(), ": backward gave ", made.size(), " gradients for ", count, " arguments"));
    pybind11::list out;
    out.append(pybind11::none());
    for (size_t i = 0; i < count; ++i) {
      if (kept.is_tensor[i]) out.append(pybind11::cast(made[i]));
      else if (made[i].defined())
        throw Error(TAEDA_E_RUNTIME,
                    detail::joined(name(), ": backward gave a gradient for argument ", i, ", which is no tensor"));
    }
    return pybind11::tuple(out);
  }

  static std::string name() {
    std::string text = pybind11::detail::clean_type_id(typeid(T).name());
    const size_t colon = text.rfind(':');
    return colon == text.npos ? text : text.substr(colon + 1);
  }
  /// The class of Python behind it, made once.
  static pybind11::handle type() {
    static const pybind11::handle made = [] {
      const pybind11::object base = pybind11::module_::import("taeda.autograd").attr("Function");
      const pybind11::object fixed = pybind11::module_::import("builtins").attr("staticmethod");
      pybind11::dict members;
      members["forward"] = fixed(pybind11::cpp_function(forward));
      members["backward"] = fixed(pybind11::cpp_function(backward));
      return pybind11::type::of(base)(name(), pybind11::make_tuple(base), members).release();
    }();
    return made;
  }
};

}  // namespace autograd

inline Tensor& Tensor::requires_grad_(bool wanted) {
  const pybind11::gil_scoped_acquire lock;
  pybind11::cast(*this).attr("requires_grad_")(wanted);
  return *this;
}
inline void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph) const {
  const pybind11::gil_scoped_acquire lock;
  pybind11::cast(*this).attr("backward")(gradient, retain_graph, create_graph);
}
inline void Tensor::backward() const { backward(Tensor()); }
inline Tensor Tensor::grad() const {
  const pybind11::gil_scoped_acquire lock;
  const pybind11::object found = pybind11::cast(*this).attr("grad");
  return found.is_none() ? Tensor() : found.cast<Tensor>();
}

}  // namespace extension_v1
}  // namespace taeda
