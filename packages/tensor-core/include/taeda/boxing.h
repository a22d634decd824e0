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

// --- Value -> C++. A boxed argument is first made to hold what the parameter reads (`fit`), then read where it lies,
// so that nothing is made and taken down again for each list of types.

/// Where T stands among the alternatives of a Value.
template <class T, size_t I = 0>
constexpr uint8_t alternative_of() {
  if constexpr (std::is_same_v<std::variant_alternative_t<I, Value>, T>) return uint8_t(I);
  else return alternative_of<T, I + 1>();
}
inline constexpr uint8_t kMayBeNone = 0x80;

/// How a parameter of type T reads a value that holds what `kind` says.
template <class T>
struct Parameter;
template <class T, class Held>
struct Reads {
  static constexpr uint8_t kind = alternative_of<Held>();
  static T of(const Value& value) {
    const Held* held = std::get_if<Held>(&value);
    if (!held) __builtin_unreachable();
    return T(*held);
  }
};
template <> struct Parameter<const Tensor&> : Reads<const Tensor&, Tensor> {};
template <> struct Parameter<TensorList> : Reads<TensorList, std::vector<Tensor>> {};
template <> struct Parameter<const Scalar&> : Reads<const Scalar&, Scalar> {};
template <> struct Parameter<int64_t> : Reads<int64_t, int64_t> {};
template <> struct Parameter<bool> : Reads<bool, bool> {};
template <> struct Parameter<double> : Reads<double, double> {};
template <> struct Parameter<IntSpan> : Reads<IntSpan, Shape> {};
template <> struct Parameter<std::span<const double>> : Reads<std::span<const double>, std::vector<double>> {};
template <> struct Parameter<std::string_view> : Reads<std::string_view, std::string> {};
template <> struct Parameter<DType> : Reads<DType, DType> {};
template <> struct Parameter<Device> : Reads<Device, Device> {};
template <> struct Parameter<const Generator&> : Reads<const Generator&, Generator> {};
template <class T, class Read>
struct OrNone {
  static constexpr uint8_t kind = Read::kind | kMayBeNone;
  static std::optional<T> of(const Value& value) {
    return std::holds_alternative<std::monostate>(value) ? std::optional<T>() : std::optional<T>(Read::of(value));
  }
};
template <class T>
struct Parameter<std::optional<T>> : OrNone<T, Parameter<T>> {};
template <>
struct Parameter<const std::optional<Scalar>&> : OrNone<Scalar, Parameter<const Scalar&>> {};

/// Makes each value hold what its kind says; TypeError where it cannot, or where there are too few or too many.
TAEDA_API void fit(Values& arguments, std::span<const uint8_t> kinds);

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
/// What a value holds, or can be taken for.
template <class T> T taken(const Value& value);
template <> TAEDA_API Tensor taken(const Value& value);
template <> TAEDA_API std::vector<Tensor> taken(const Value& value);
template <> TAEDA_API Scalar taken(const Value& value);
template <> TAEDA_API int64_t taken(const Value& value);
template <> TAEDA_API bool taken(const Value& value);
template <class R>
struct Results {
  static R get(const Values& v) { return taken<R>(first_result(v)); }
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
      return std::tuple<T...>(taken<T>(v[I])...);
    }(std::index_sequence_for<T...>());
  }
};

// --- adapters. The work is done once for every list of types; what an operator adds is a jump that names its entry,
// which stands behind the arguments so that these stay where they are.

/// Calls something typed with boxed arguments, which it makes fit.
template <class R, class... A, class Function>
[[gnu::always_inline]] inline Values unbox_and_call(const Function& function, Values& arguments) {
  static constexpr std::array<uint8_t, sizeof...(A)> kinds{Parameter<A>::kind...};
  fit(arguments, kinds);
  Values results;
  [&]<size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
    if constexpr (std::is_void_v<R>) function(Parameter<A>::of(arguments[I])...);
    else push_results(results, function(Parameter<A>::of(arguments[I])...));
  }(std::index_sequence_for<A...>());
  return results;
}
template <class R, class... A>
[[gnu::noinline, gnu::cold]] Values call_typed(R (*function)(A...), Values& arguments) {
  return unbox_and_call<R, A...>(function, arguments);
}

/// The layers of `keys` from the highest on, and below them the computation.
template <class R, class... A>
R go_on(const OpEntry& op, KeySet keys, A... arguments) {
  using Fn = R(KeySet, A...);
  return stub::Layers<Fn>::call(keys, arguments..., op, reinterpret_cast<Fn*>(op.compute));
}
template <class R, class... A>
[[gnu::cold]] Values go_on_unboxed(const OpEntry& op, KeySet rest, Values& arguments) {
  const auto next = [&](A... given) __attribute__((always_inline)) { return go_on<R, A...>(op, rest, given...); };
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

/// Hands a typed call to the boxed layer named by the highest key: the typed entry of all boxed layers.
template <class Fn>
struct ToBoxedLayer;
template <class R, class... A>
struct ToBoxedLayer<R(KeySet, A...)> {
  [[gnu::noinline, gnu::cold]] static R call(KeySet keys, A... arguments, const OpEntry& op) {
    return Results<R>::get((*op.boxed_layers[keys.top_slot()])(op, keys, box_all(arguments...)));
  }
};

/// Lets the thread's observers see a typed call.
template <class Fn>
struct ObservedLayer;
template <class R, class... A>
struct ObservedLayer<R(KeySet, A...)> {
  static R call(KeySet keys, A... arguments, const OpEntry& op) {
    const TypedCall<A...> call(op, arguments...);
    Observation observation(call);
    if constexpr (std::is_void_v<R>) {
      go_on<R, A...>(op, keys.without(Layer::Observer), arguments...);
      observation.succeeded();
    } else {
      R result = go_on<R, A...>(op, keys.without(Layer::Observer), arguments...);
      observation.succeeded();
      return result;
    }
  }
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

/// What a declaration says of one form of an operator.
struct Declared {
  const char *name, *schema;
  Form form;
  Kind kind;
  bool core = false;
  Kernels* kernels = nullptr;
  Values (*call_boxed)(Values arguments) = nullptr;
};
/// What follows from the form's type.
struct Adapters {
  void* compute;
  decltype(OpEntry::go_on_boxed) go_on_boxed;
  void *observed, *boxed_layer;
};
/// Fills an entry and puts it into the table.
TAEDA_API void enter_form(OpEntry& entry, Declared form, Adapters adapters);

template <class Op>
inline void declare(Declared form, typename Op::Fn* compute) {
  using Observed = ObservedLayer<typename Op::Fn>;
  enter_form(Op::entry, form,
             {reinterpret_cast<void*>(compute), Observed::go_on_boxed, reinterpret_cast<void*>(&Observed::call),
              reinterpret_cast<void*>(&ToBoxedLayer<typename Op::Fn>::call)});
  if constexpr (requires { typename Op::Kernel; })
    if (form.kind == Kind::Structured || form.kind == Kind::Direct) {
      Op::entry.boxed_kernel_adapter = reinterpret_cast<void*>(&BoxedKernel<Op>::call);
      Op::entry.c_kernel_adapter = reinterpret_cast<void*>(&CKernelCall<Op>::call);
    }
}

}  // namespace taeda
