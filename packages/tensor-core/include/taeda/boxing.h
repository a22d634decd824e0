// Between typed C++ arguments and boxed Values: how Python kernels, layers and tools call and are called.
#pragma once
#include <tuple>
#include <utility>

#include "taeda/abi_call.h"
#include "taeda/dispatch.h"

namespace taeda {

// --- C++ -> Value ---------------------------------------------------------------------------------------------------
inline Value box(const Tensor& v) { return v.defined() ? Value(v) : Value(); }
inline Value box(TensorList v) { return std::vector<Tensor>(v.begin(), v.end()); }
inline Value box(const std::vector<Tensor>& v) { return v; }
inline Value box(const Scalar& v) { return v; }
inline Value box(int64_t v) { return v; }
inline Value box(bool v) { return v; }
inline Value box(double v) { return v; }
inline Value box(IntSpan v) { return Shape(v); }
inline Value box(std::span<const double> v) { return std::vector<double>(v.begin(), v.end()); }
inline Value box(std::string_view v) { return std::string(v); }
inline Value box(DType v) { return v; }
inline Value box(Device v) { return v; }
inline Value box(const Generator& v) { return v ? Value(v) : Value(); }
template <class T>
Value box(const std::optional<T>& v) {
  return v ? box(*v) : Value();
}

// --- Value -> C++. `Unboxed<T>` keeps what a parameter of type T refers to alive during the call. ---------------------
template <class T>
const T& expect(const Value& v, const char* what) {
  const T* found = std::get_if<T>(&v);
  check(found != nullptr, ErrorKind::Type, "boxed call: expected ", what);
  return *found;
}
/// A list without items does not tell of what it is one.
inline bool empty_list(const Value& v) {
  return std::visit([]<class T>(const T& held) {
    if constexpr (requires { held.begin(); } && !std::is_same_v<T, std::string>) return held.begin() == held.end();
    else return false;
  }, v);
}
template <class T>
struct Unboxed;
template <>
struct Unboxed<const Tensor&> {
  static Tensor get(const Value& v) { return std::holds_alternative<std::monostate>(v) ? Tensor() : expect<Tensor>(v, "a tensor"); }
};
template <>
struct Unboxed<TensorList> {
  static std::vector<Tensor> get(const Value& v) {
    if (empty_list(v)) return {};
    if (auto* items = std::get_if<std::vector<std::optional<Tensor>>>(&v)) {
      std::vector<Tensor> out;
      for (const auto& item : *items) out.push_back(item.value_or(Tensor()));
      return out;
    }
    return expect<std::vector<Tensor>>(v, "a list of tensors");
  }
};
template <>
struct Unboxed<const Scalar&> {
  static Scalar get(const Value& v) {
    if (auto* i = std::get_if<int64_t>(&v)) return *i;
    if (auto* b = std::get_if<bool>(&v)) return *b;
    if (auto* f = std::get_if<double>(&v)) return *f;
    return expect<Scalar>(v, "a number");
  }
};
template <>
struct Unboxed<int64_t> {
  static int64_t get(const Value& v) {
    if (auto* s = std::get_if<Scalar>(&v); s && s->is_integral()) return s->to<int64_t>();
    return expect<int64_t>(v, "an int");
  }
};
template <>
struct Unboxed<bool> {
  static bool get(const Value& v) { return expect<bool>(v, "a bool"); }
};
template <>
struct Unboxed<double> {
  static double get(const Value& v) {
    if (auto* i = std::get_if<int64_t>(&v)) return double(*i);
    if (auto* s = std::get_if<Scalar>(&v); s && !s->is_complex()) return s->to_double();
    return expect<double>(v, "a float");
  }
};
template <>
struct Unboxed<IntSpan> {
  static Shape get(const Value& v) {
    if (empty_list(v)) return {};
    if (auto* i = std::get_if<int64_t>(&v)) return Shape{*i};
    return expect<Shape>(v, "a list of ints");
  }
};
template <>
struct Unboxed<std::span<const double>> {
  static std::vector<double> get(const Value& v) { return empty_list(v) ? std::vector<double>() : expect<std::vector<double>>(v, "a list of floats"); }
};
template <>
struct Unboxed<std::string_view> {
  static std::string get(const Value& v) { return expect<std::string>(v, "a string"); }
};
template <>
struct Unboxed<DType> {
  static DType get(const Value& v) { return expect<DType>(v, "a dtype"); }
};
template <>
struct Unboxed<Device> {
  static Device get(const Value& v) { return expect<Device>(v, "a device"); }
};
template <>
struct Unboxed<const Generator&> {
  static Generator get(const Value& v) { return std::holds_alternative<std::monostate>(v) ? Generator() : expect<Generator>(v, "a generator"); }
};
template <class T>
struct UnboxedOptional {
  using Held = std::optional<decltype(Unboxed<T>::get(std::declval<const Value&>()))>;
  static Held get(const Value& v) { return std::holds_alternative<std::monostate>(v) ? Held() : Held(Unboxed<T>::get(v)); }
};
template <class T>
struct Unboxed<std::optional<T>> : UnboxedOptional<T> {};
template <>
struct Unboxed<const std::optional<Scalar>&> : UnboxedOptional<const Scalar&> {};

// --- results ----------------------------------------------------------------------------------------------------------
template <class T>
Values box_results(const T& result) {
  Values out;
  out.push_back(box(result));
  return out;
}
template <class... T>
Values box_results(const std::tuple<T...>& results) {
  Values out;
  std::apply([&](const auto&... r) { (out.push_back(box(r)), ...); }, results);
  return out;
}
template <class R>
struct Results {
  static R take(const Value& v) {
    if constexpr (std::is_same_v<R, Tensor>) return Unboxed<const Tensor&>::get(v);
    else if constexpr (std::is_same_v<R, std::vector<Tensor>>) return Unboxed<TensorList>::get(v);
    else if constexpr (std::is_same_v<R, Scalar>) return Unboxed<const Scalar&>::get(v);
    else return expect<R>(v, "the operator's result type");
  }
  static R get(Values& v) {
    check(!v.empty(), ErrorKind::Type, "boxed call: expected a result, got none");
    return take(v[0]);
  }
};
template <>
struct Results<void> {
  static void get(Values&) {}
};
template <class... T>
struct Results<std::tuple<T...>> {
  static std::tuple<T...> get(Values& v) {
    check(v.size() == sizeof...(T), ErrorKind::Type, "boxed call: expected ", sizeof...(T), " results, got ", v.size());
    return [&]<size_t... I>(std::index_sequence<I...>) { return std::tuple<T...>(Results<T>::take(v[I])...); }(std::index_sequence_for<T...>());
  }
};

// --- adapters ---------------------------------------------------------------------------------------------------------
// The work is done once for every list of types, out of line; what an operator adds is a call that names its entry.
// Unary operators, for instance, share one of each, and a family of them compiles in a third of the time.

/// Calls a typed function with boxed arguments.
template <class R, class... A>
[[gnu::noinline]] Values call_typed(R (*function)(A...), Values& arguments) {
  check(arguments.size() == sizeof...(A), ErrorKind::Type, "boxed call: expected ", sizeof...(A), " arguments, got ", arguments.size());
  return [&]<size_t... I>(std::index_sequence<I...>) {
    auto held = std::make_tuple(Unboxed<A>::get(arguments[I])...);
    if constexpr (std::is_void_v<R>) {
      function(std::get<I>(held)...);
      return Values();
    } else {
      return box_results(function(std::get<I>(held)...));
    }
  }(std::index_sequence_for<A...>());
}

template <auto F>
struct Boxed {
  static Values call(Values arguments) { return call_typed(F, arguments); }
};

template <class... A>
Values box_all(const A&... arguments) {
  Values boxed;
  boxed.reserve(sizeof...(A));
  (boxed.push_back(box(arguments)), ...);
  return boxed;
}

/// Hands a typed call to the boxed layer named by the highest key.
template <class R, class... A>
[[gnu::noinline]] R call_boxed_layer(const OpEntry& op, KeySet keys, A... arguments) {
  Values results = (*op.boxed_layers[keys.top_layer()])(op, keys, box_all(arguments...));
  return Results<R>::get(results);
}
template <class Op, class Fn = typename Op::Fn>
struct BoxedLayer;
template <class Op, class R, class... A>
struct BoxedLayer<Op, R(KeySet, A...)> {
  static R call(KeySet keys, A... arguments) { return call_boxed_layer<R, A...>(Op::entry, keys, arguments...); }
};

/// Hands a typed call to the boxed kernel of its output's (or first tensor's) backend.
template <class R, class... A>
[[gnu::noinline]] R call_boxed_kernel(const OpEntry& op, A... arguments) {
  const BackendId id = abi::device_among(arguments...).backend;
  Values results = (*op.boxed_kernels[id])(op, KeySet::backend(id), box_all(arguments...));
  return Results<R>::get(results);
}
template <class Op, class Kernel = typename Op::Kernel>
struct BoxedKernel;
template <class Op, class R, class... A>
struct BoxedKernel<Op, R(A...)> {
  static R call(A... arguments) { return call_boxed_kernel<R, A...>(Op::entry, arguments...); }
};

/// Hands a typed call to the C kernel of its output's (or first tensor's) backend. The arguments of the kernel are those
/// of the form behind `outputs` outputs.
template <class R, class... A>
[[gnu::noinline]] R call_c_kernel(const OpEntry& op, size_t outputs, A... arguments) {
  const taeda_value packed[] = {abi::pack(arguments)...};
  abi::Returned<abi::Taken<R>::count> results;
  abi::run(op, abi::device_among(arguments...), packed, sizeof...(A), outputs, results.items, abi::Taken<R>::count);
  return abi::Taken<R>::from(op, results.items);
}
template <class Op, class Fn = typename Op::Fn, class Kernel = typename Op::Kernel>
struct CKernelCall;
template <class Op, class Result, class... F, class R, class... A>
struct CKernelCall<Op, Result(KeySet, F...), R(A...)> {
  static R call(A... arguments) {
    return call_c_kernel<R, A...>(Op::entry, sizeof...(A) - sizeof...(F), arguments...);
  }
};

/// Puts an operator's entry into the table with its adapters.
template <class Op>
void declare() {
  Op::entry.boxed_layer_adapter = reinterpret_cast<void*>(&BoxedLayer<Op>::call);
  if constexpr (requires { typename Op::Kernel; })
    if (Op::entry.kind == Kind::Structured || Op::entry.kind == Kind::Direct) {
      Op::entry.boxed_kernel_adapter = reinterpret_cast<void*>(&BoxedKernel<Op>::call);
      Op::entry.c_kernel_adapter = reinterpret_cast<void*>(&CKernelCall<Op>::call);
    }
  register_op(&Op::entry);
}

}  // namespace taeda
