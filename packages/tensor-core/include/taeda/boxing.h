// Between typed C++ arguments and boxed Values: how Python kernels, layers and tools call and are called.
#pragma once
#include <tuple>
#include <utility>

#include "taeda/abi_call.h"
#include "taeda/dispatch.h"
#include "taeda/observer.h"
#include "taeda/stub.h"

namespace taeda {

// Everything here runs where a call leaves typed C++, for Python or for tools: it is written for size, and what depends
// on one type alone stands in src/core/boxing.cpp.

// --- C++ -> Value: each appends one value.
TAEDA_API void push(Values& to, const Tensor& v);
TAEDA_API void push(Values& to, TensorList v);
TAEDA_API void push(Values& to, const std::vector<Tensor>& v);
TAEDA_API void push(Values& to, const Scalar& v);
TAEDA_API void push(Values& to, int64_t v);
TAEDA_API void push(Values& to, bool v);
TAEDA_API void push(Values& to, double v);
TAEDA_API void push(Values& to, IntSpan v);
TAEDA_API void push(Values& to, std::span<const double> v);
TAEDA_API void push(Values& to, std::string_view v);
TAEDA_API void push(Values& to, DType v);
TAEDA_API void push(Values& to, Device v);
TAEDA_API void push(Values& to, const Generator& v);
TAEDA_API void push_none(Values& to);
template <class T>
void push(Values& to, const std::optional<T>& v) {
  if (v) push(to, *v);
  else push_none(to);
}

// --- Value -> C++. What `Unboxed<T>::get` returns keeps what a parameter of type T refers to alive during the call.
template <class T>
struct Unboxed;
#define TAEDA_UNBOXED(PARAMETER, HELD)             \
  template <>                                      \
  struct Unboxed<PARAMETER> {                      \
    static TAEDA_API HELD get(const Value& value); \
  };
TAEDA_UNBOXED(const Tensor&, Tensor)
TAEDA_UNBOXED(TensorList, std::vector<Tensor>)
TAEDA_UNBOXED(const Scalar&, Scalar)
TAEDA_UNBOXED(int64_t, int64_t)
TAEDA_UNBOXED(bool, bool)
TAEDA_UNBOXED(double, double)
TAEDA_UNBOXED(IntSpan, Shape)
TAEDA_UNBOXED(std::span<const double>, std::vector<double>)
TAEDA_UNBOXED(std::string_view, std::string)
TAEDA_UNBOXED(DType, DType)
TAEDA_UNBOXED(Device, Device)
TAEDA_UNBOXED(const Generator&, Generator)
#undef TAEDA_UNBOXED
template <class T>
struct UnboxedOptional {
  using Held = std::optional<decltype(Unboxed<T>::get(std::declval<const Value&>()))>;
  static Held get(const Value& v) {
    return std::holds_alternative<std::monostate>(v) ? Held() : Held(Unboxed<T>::get(v));
  }
};
template <class T>
struct Unboxed<std::optional<T>> : UnboxedOptional<T> {};
template <>
struct Unboxed<const std::optional<Scalar>&> : UnboxedOptional<const Scalar&> {};

// --- results
/// TypeError unless a boxed call has been given, or has returned, as many values as it takes.
TAEDA_API void check_count(const Values& values, size_t expected, const char* what);
TAEDA_API const Value& first_result(const Values& values);

template <class T>
void push_results(Values& to, const T& result) {
  push(to, result);
}
template <class... T>
void push_results(Values& to, const std::tuple<T...>& results) {
  std::apply([&](const auto&... each) { (push(to, each), ...); }, results);
}
template <class R>
struct Results {
  static R take(const Value& v) {
    if constexpr (std::is_same_v<R, Tensor>) return Unboxed<const Tensor&>::get(v);
    else if constexpr (std::is_same_v<R, std::vector<Tensor>>) return Unboxed<TensorList>::get(v);
    else if constexpr (std::is_same_v<R, Scalar>) return Unboxed<const Scalar&>::get(v);
    else return Unboxed<R>::get(v);
  }
  static R get(const Values& v) { return take(first_result(v)); }
};
template <>
struct Results<void> {
  static void get(const Values&) {}
};
template <class... T>
struct Results<std::tuple<T...>> {
  static std::tuple<T...> get(const Values& v) {
    check_count(v, sizeof...(T), "results");
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return std::tuple<T...>(Results<T>::take(v[I])...);
    }(std::index_sequence_for<T...>());
  }
};

// --- adapters. The work is done once for every list of types; what an operator adds is a jump that names its entry,
// which stands behind the arguments so that these stay where they are.

/// Calls something typed with boxed arguments.
template <class R, class... A, class Function>
Values unbox_and_call(const Function& function, const Values& arguments) {
  check_count(arguments, sizeof...(A), "arguments");
  return [&]<size_t... I>(std::index_sequence<I...>) {
    auto held = std::make_tuple(Unboxed<A>::get(arguments[I])...);
    Values results;
    if constexpr (std::is_void_v<R>) function(std::get<I>(held)...);
    else push_results(results, function(std::get<I>(held)...));
    return results;
  }(std::index_sequence_for<A...>());
}
template <class R, class... A>
[[gnu::noinline, gnu::cold]] Values call_typed(R (*function)(A...), const Values& arguments) {
  return unbox_and_call<R, A...>(function, arguments);
}

/// The layers of `keys` from the highest on, and below them the computation.
template <class R, class... A>
R go_on(const OpEntry& op, KeySet keys, A... arguments) {
  using Fn = R(KeySet, A...);
  return stub::Layers<Fn>::call(keys, arguments..., op, reinterpret_cast<Fn*>(op.compute));
}
template <class R, class... A>
[[gnu::cold]] Values go_on_unboxed(const OpEntry& op, KeySet rest, const Values& arguments) {
  const auto next = [&](const auto&... given) { return go_on<R, A...>(op, rest, given...); };
  return unbox_and_call<R, A...>(next, arguments);
}

template <auto F>
struct Boxed {
  static Values call(Values arguments) { return call_typed(F, arguments); }
};

template <class... A>
Values box_all(const A&... arguments) {
  Values boxed;
  (push(boxed, arguments), ...);
  return boxed;
}

/// Hands a typed call to the boxed layer named by the highest key.
template <class Fn>
struct ToBoxedLayer;
template <class R, class... A>
struct ToBoxedLayer<R(KeySet, A...)> {
  [[gnu::noinline, gnu::cold]] static R call(KeySet keys, A... arguments, const OpEntry& op) {
    return Results<R>::get((*op.boxed_layers[keys.top_slot()])(op, keys, box_all(arguments...)));
  }
};
template <class Op, class Fn = typename Op::Fn>
struct BoxedLayer;
template <class Op, class R, class... A>
struct BoxedLayer<Op, R(KeySet, A...)> {
  static R call(KeySet keys, A... arguments) {
    return ToBoxedLayer<R(KeySet, A...)>::call(keys, arguments..., Op::entry);
  }
};

/// Lets the thread's observers see a typed call.
template <class R, class... A>
[[gnu::noinline]] R call_observed(const OpEntry& op, KeySet keys, A... arguments) {
  const TypedCall<A...> call(op, arguments...);
  const Observation observation(call);
  return go_on<R, A...>(op, keys.without(Layer::Observer), arguments...);
}
template <class Op, class Fn = typename Op::Fn>
struct ObservedLayer;
template <class Op, class R, class... A>
struct ObservedLayer<Op, R(KeySet, A...)> {
  static R call(KeySet keys, A... arguments) { return call_observed<R, A...>(Op::entry, keys, arguments...); }
  static constexpr auto go_on_boxed = &go_on_unboxed<R, A...>;
};

/// Hands a typed call to the boxed kernel of its output's (or first tensor's) backend.
template <class Fn>
struct ToBoxedKernel;
template <class R, class... A>
struct ToBoxedKernel<R(A...)> {
  [[gnu::noinline, gnu::cold]] static R call(A... arguments, const OpEntry& op) {
    const BackendId id = abi::device_among(arguments...).backend;
    return Results<R>::get((*op.kernels->boxed[id])(op, KeySet::backend(id), box_all(arguments...)));
  }
};
template <class Op, class Kernel = typename Op::Kernel>
struct BoxedKernel;
template <class Op, class R, class... A>
struct BoxedKernel<Op, R(A...)> {
  static R call(A... arguments) { return ToBoxedKernel<R(A...)>::call(arguments..., Op::entry); }
};

/// Hands a typed call to the C kernel of its output's (or first tensor's) backend. The arguments of the kernel are
/// those of the form behind `outputs` outputs.
template <class Fn>
struct ToCKernel;
template <class R, class... A>
struct ToCKernel<R(A...)> {
  [[gnu::noinline]] static R call(A... arguments, const OpEntry& op, size_t outputs) {
    const taeda_value packed[] = {abi::pack(arguments)...};
    abi::Returned<abi::Taken<R>::count> results;
    abi::run(op, abi::device_among(arguments...), packed, sizeof...(A), outputs, results.items, abi::Taken<R>::count);
    return abi::Taken<R>::from(op, results.items);
  }
};
template <class Op, class Fn = typename Op::Fn, class Kernel = typename Op::Kernel>
struct CKernelCall;
template <class Op, class Result, class... F, class R, class... A>
struct CKernelCall<Op, Result(KeySet, F...), R(A...)> {
  static R call(A... arguments) {
    return ToCKernel<R(A...)>::call(arguments..., Op::entry, sizeof...(A) - sizeof...(F));
  }
};

/// Puts an operator's entry into the table with its computation and its adapters.
template <class Op>
void declare(typename Op::Fn* compute) {
  Op::entry.compute = reinterpret_cast<void*>(compute);
  Op::entry.go_on_boxed = ObservedLayer<Op>::go_on_boxed;
  Op::entry.layers[slot_of(Layer::Observer)] = reinterpret_cast<void*>(&ObservedLayer<Op>::call);
  Op::entry.boxed_layer_adapter = reinterpret_cast<void*>(&BoxedLayer<Op>::call);
  if constexpr (requires { typename Op::Kernel; })
    if (Op::entry.kind == Kind::Structured || Op::entry.kind == Kind::Direct) {
      Op::entry.boxed_kernel_adapter = reinterpret_cast<void*>(&BoxedKernel<Op>::call);
      Op::entry.c_kernel_adapter = reinterpret_cast<void*>(&CKernelCall<Op>::call);
    }
  register_op(&Op::entry);
}

}  // namespace taeda
