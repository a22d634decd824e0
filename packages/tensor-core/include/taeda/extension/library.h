// Operators that an extension defines, with kernels and derivatives of C++. Part of taeda/extension.h.
#pragma once
#include <cstdio>
#include <functional>
#include <memory>

#include "taeda/extension/indexing.h"

namespace taeda {
inline namespace extension_v1 {

namespace detail {

/// An argument of a call as a parameter of type T reads it.
template <class T>
struct Argument;
template <>
struct Argument<Tensor> {
  static Tensor from(const taeda_value& v) {
    if (v.kind == TAEDA_VALUE_NONE) return {};
    if (v.kind != TAEDA_VALUE_TENSOR) throw Error(TAEDA_E_TYPE, "expected a tensor");
    return Tensor::share(v.as.tensor);
  }
};
template <>
struct Argument<Scalar> {
  static Scalar from(const taeda_value& v) {
    if (v.kind == TAEDA_VALUE_TENSOR) return Tensor::share(v.as.tensor).item();
    return Scalar(v);
  }
};
template <class T>
  requires std::is_arithmetic_v<T>
struct Argument<T> {
  static T from(const taeda_value& v) { return Argument<Scalar>::from(v).template to<T>(); }
};
template <>
struct Argument<ScalarType> {
  static ScalarType from(const taeda_value& v) { return ScalarType(v.as.integer); }
};
template <>
struct Argument<Device> {
  static Device from(const taeda_value& v) { return Device(v.as.device); }
};
template <>
struct Argument<std::string_view> {
  static std::string_view from(const taeda_value& v) { return {v.as.text, size_t(v.count)}; }
};
template <>
struct Argument<std::string> {
  static std::string from(const taeda_value& v) { return std::string(v.as.text, size_t(v.count)); }
};
template <>
struct Argument<IntArrayRef> {
  static IntArrayRef from(const taeda_value& v) { return {v.as.integers, size_t(v.count)}; }
};
template <>
struct Argument<TensorList> {
  // A list of handles is a list of tensors, lent for the call.
  static TensorList from(const taeda_value& v) {
    return {reinterpret_cast<const Tensor*>(v.as.tensors), size_t(v.count)};
  }
};
template <class T>
struct Argument<std::vector<T>> {
  static std::vector<T> from(const taeda_value& v) { return Argument<ArrayRef<T>>::from(v).vec(); }
};
template <class T>
struct Argument<std::optional<T>> {
  static std::optional<T> from(const taeda_value& v) {
    if (v.kind == TAEDA_VALUE_NONE) return std::nullopt;
    return Argument<T>::from(v);
  }
};

inline void give(Tensor tensor, taeda_value& to) {
  to = pack(tensor);
  tensor.release();
}
inline void give(std::vector<Tensor> tensors, taeda_value& to) {
  check_status(
      api().value_tensors(reinterpret_cast<const taeda_tensor*>(tensors.data()), int64_t(tensors.size()), &to));
  for (Tensor& t : tensors) t.release();
}
template <class... T>
void give(std::tuple<T...> results, taeda_value* to) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    (give(std::get<I>(std::move(results)), to[I]), ...);
  }(std::index_sequence_for<T...>());
}

/// Runs what C has called; no exception leaves it.
template <class Body>
int32_t guarded(const Body& body) noexcept {
  try {
    body();
    return TAEDA_OK;
  } catch (const Error& e) {
    return api().set_error(e.status(), e.what());
  } catch (const std::bad_alloc&) {
    return api().set_error(TAEDA_E_MEMORY, "out of memory");
  } catch (const std::invalid_argument& e) {
    return api().set_error(TAEDA_E_VALUE, e.what());
  } catch (const std::out_of_range& e) {
    return api().set_error(TAEDA_E_INDEX, e.what());
  } catch (const std::exception& e) {
    return api().set_error(TAEDA_E_RUNTIME, e.what());
  } catch (...) {
    return api().set_error(TAEDA_E_RUNTIME, "unknown error");
  }
}

/// How a schema names a type of C++.
template <class T>
struct TypeName;
#define TAEDA_EXTENSION_TYPE(type, text)      \
  template <>                                 \
  struct TypeName<type> {                     \
    static std::string get() { return text; } \
  };
TAEDA_EXTENSION_TYPE(Tensor, "Tensor")
TAEDA_EXTENSION_TYPE(Scalar, "Scalar")
TAEDA_EXTENSION_TYPE(int64_t, "int")
TAEDA_EXTENSION_TYPE(double, "float")
TAEDA_EXTENSION_TYPE(bool, "bool")
TAEDA_EXTENSION_TYPE(std::string, "str")
TAEDA_EXTENSION_TYPE(std::string_view, "str")
TAEDA_EXTENSION_TYPE(ScalarType, "ScalarType")
TAEDA_EXTENSION_TYPE(Device, "Device")
#undef TAEDA_EXTENSION_TYPE
template <class T>
struct TypeName<std::optional<T>> {
  static std::string get() { return TypeName<T>::get() + "?"; }
};
template <class T>
struct TypeName<std::vector<T>> {
  static std::string get() { return TypeName<T>::get() + "[]"; }
};
template <class T>
struct TypeName<ArrayRef<T>> : TypeName<std::vector<T>> {};
template <class... T>
struct TypeName<std::tuple<T...>> {
  static std::string get() {
    std::string out;
    ((out += (out.empty() ? "" : ", ") + TypeName<T>::get()), ...);
    return "(" + out + ")";
  }
};
template <>
struct TypeName<void> {
  static std::string get() { return "()"; }
};

/// The schema of a function, whose arguments have no names.
template <class R, class... A>
std::string schema_of(const std::string& name, R (*)(A...)) {
  std::string out;
  int place = 0;
  ((out += (place ? ", " : "") + TypeName<std::decay_t<A>>::get() + " _" + std::to_string(place), ++place), ...);
  return name + "(" + out + ") -> " + TypeName<std::decay_t<R>>::get();
}

/// Whether operators may give such a result: others are plain functions of Python.
template <class R>
inline constexpr bool is_tensors =
    std::is_void_v<R> || std::is_same_v<R, Tensor> || std::is_same_v<R, std::vector<Tensor>> ||
    requires(R r) { std::tuple_size<R>::value; };

/// A function of C++ as one of the table: its parameters are the arguments of the schema.
template <class R, class... A>
struct Adapter {
  using Function = R (*)(A...);
  static int32_t call(void* context, const taeda_call* call) {
    return guarded([&] {
      if (call->argument_count != sizeof...(A))
        throw Error(TAEDA_E_TYPE,
                    joined("the function takes ", sizeof...(A), " arguments, the schema says ", call->argument_count));
      const auto function = reinterpret_cast<Function>(context);
      [&]<size_t... I>(std::index_sequence<I...>) {
        // Named, so that the function may take them by a reference that it writes to.
        std::tuple<std::decay_t<A>...> arguments{Argument<std::decay_t<A>>::from(call->arguments[I])...};
        const auto run = [&]() -> std::decay_t<R> { return std::apply(function, arguments); };
        if constexpr (std::is_void_v<R>) run();
        else if constexpr (requires(R r) { std::tuple_size<R>::value; }) give(run(), call->results);
        else give(run(), call->results[0]);
      }(std::index_sequence_for<A...>());
    });
  }
};

}  // namespace detail

/// The arguments, results and gradients of a call that is differentiated.
class Recorded {
 public:
  Recorded(const taeda_call* call, const taeda_value* outputs, const taeda_value* gradients)
      : call_(call), outputs_(outputs), gradients_(gradients) {}
  /// An argument of the forward call: `argument<Tensor>(0)`, `argument<double>(1)`.
  template <class T>
  T argument(size_t i) const {
    return detail::Argument<T>::from(call_->arguments[i]);
  }
  Tensor result(size_t i = 0) const { return detail::Argument<Tensor>::from(outputs_[i]); }
  /// The gradient of a result; undefined where it had none.
  Tensor gradient(size_t i = 0) const { return detail::Argument<Tensor>::from(gradients_[i]); }

 private:
  const taeda_call* call_;
  const taeda_value *outputs_, *gradients_;
};
/// Gives a gradient for each argument of the schema, an undefined tensor for none.
using Derivative = std::vector<Tensor> (*)(const Recorded& recorded);

namespace detail {

#ifndef TAEDA_WITHOUT_PYTHON
/// taeda/extension/python.h.
template <class R, class... A>
void add_plain_function(const std::string& library, const std::string& name, R (*function)(A...));
bool define_in_python(const std::string& library, const std::string& schema);
bool may_be_asked(const std::string& device);
template <class R, class... A>
void add_rule(const std::string& library, const std::string& op, const std::string& key, R (*function)(A...));
#else
template <class R, class... A>
void add_plain_function(const std::string& library, const std::string& name, R (*)(A...)) {
  throw Error(TAEDA_E_TYPE, joined(library, "::", name, ": operators give tensors; other functions need Python"));
}
inline bool define_in_python(const std::string&, const std::string&) { return false; }
inline bool may_be_asked(const std::string&) { return true; }
template <class R, class... A>
void add_rule(const std::string& library, const std::string& op, const std::string& key, R (*)(A...)) {
  throw Error(TAEDA_E_VALUE,
              joined("impl: ", library, "::", op, ": the key '", key, "' needs Python; give the function to def()"));
}
#endif

}  // namespace detail

/// What one block of TAEDA_LIBRARY or TAEDA_LIBRARY_IMPL registers.
class Library {
 public:
  Library(std::string name, std::string key) : name_(std::move(name)), key_(std::move(key)) {}

  /// Defines an operator: "scale(Tensor self, float k=1.0) -> Tensor". Its kernels follow in TAEDA_LIBRARY_IMPL.
  Library& def(const std::string& schema) {
    // Functions of blocks that are no device's can be added to operators that Python knows.
    if (!detail::define_in_python(name_, full(schema))) check_status(define(schema, {}));
    return *this;
  }
  /// Defines it in terms of other operators, which are differentiated; the function's parameters are those of the
  /// schema, which may be a name alone. One without tensors as results is a function of Python, not an operator.
  template <class R, class... A>
  Library& def(const std::string& schema, R (*function)(A...)) {
    const bool whole = schema.find('(') != schema.npos;
    const auto text = [&] { return whole ? schema : detail::schema_of(schema, function); };
    if constexpr (!detail::is_tensors<std::decay_t<R>>) {
      detail::add_plain_function(name_, schema.substr(0, schema.find('(')), function);
    } else if constexpr (std::is_same_v<std::decay_t<R>, std::vector<Tensor>>) {
      // As many tensors as the function gives: operators of Python's libraries alone have a list as result.
      def(text());
      const std::string named = full(schema);
      detail::add_rule(name_, named.substr(0, named.find('(')), "CompositeImplicitAutograd", function);
    } else {
      Functions functions;
      functions.composite = detail::Adapter<R, A...>::call;
      functions.context = reinterpret_cast<void*>(function);
      check_status(define(text(), functions));
    }
    return *this;
  }
  /// The same of a lambda that captures nothing.
  template <class F>
    requires requires(F f) { +f; }
  Library& def(const std::string& schema, F function) {
    return def(schema, +function);
  }
  /// Defines it with a derivative of its own; kernels follow in TAEDA_LIBRARY_IMPL.
  Library& def(const std::string& schema, Derivative derivative) {
    Functions functions;
    functions.derivative = derivative;
    check_status(define(schema, functions));
    return *this;
  }
  /// A kernel of an operator on the device of the block, or in a block without one on the named device. It gives the
  /// results; built-in operators are meant by their plain names. In a block "Autograd" it is what recorded calls do,
  /// and what it calls is recorded; in one "CompositeImplicitAutograd" what devices without a kernel do.
  template <class R, class... A>
  Library& impl(const std::string& op, R (*function)(A...)) {
    if (key_.starts_with("Autograd") || key_.starts_with("Composite") || key_ == "CatchAll") {
      const std::string key = key_ == "CatchAll" ? "CompositeImplicitAutograd" : key_;
      rules_.push_back({op, [=, library = name_] { detail::add_rule(library, op, key, function); }});
      return *this;
    }
    return add(op, key_, detail::Adapter<R, A...>::call, reinterpret_cast<void*>(function));
  }
  template <class F>
    requires requires(F f) { +f; }
  Library& impl(const std::string& op, F function) {
    return impl(op, +function);
  }
  template <class R, class... A>
  Library& impl(const std::string& op, const std::string& device, R (*function)(A...)) {
    return add(op, device, detail::Adapter<R, A...>::call, reinterpret_cast<void*>(function));
  }

 private:
  struct Functions {
    taeda_call_fn composite = nullptr;
    void* context = nullptr;
    Derivative derivative = nullptr;
  };

  static int32_t run_composite(void* context, const taeda_call* call) {
    const auto* functions = static_cast<const Functions*>(context);
    return functions->composite(functions->context, call);
  }
  static int32_t run_derivative(void* context, const taeda_call* call, const taeda_value* outputs,
                                const taeda_value* gradients) {
    return detail::guarded([&] {
      const auto* functions = static_cast<const Functions*>(context);
      std::vector<Tensor> found = functions->derivative(Recorded(call, outputs, gradients));
      TAEDA_CHECK(found.size() == call->result_count, "the derivative gave ", found.size(), " gradients for ",
                  call->result_count, " arguments");
      for (size_t i = 0; i < found.size(); ++i)
        if (found[i].defined()) detail::give(std::move(found[i]), call->results[i]);
    });
  }

  std::string full(const std::string& name) const {
    return name.substr(0, name.find('(')).find("::") == name.npos ? name_ + "::" + name : name;
  }
  int32_t define(const std::string& schema, Functions functions) {
    const std::string text = full(schema);
    auto kept = std::make_unique<Functions>(functions);
    taeda_operator definition = {};
    definition.size = sizeof definition;
    definition.schema = text.c_str();
    definition.owner = name_.c_str();
    definition.context = kept.get();
    if (functions.composite) definition.composite = run_composite;
    if (functions.derivative) definition.derivative = run_derivative;
    const int32_t status = api().op_define(&definition, nullptr);
    if (status == TAEDA_OK) (void)kept.release();  // lives as long as the operator, which is for ever
    return status;
  }
  /// "CPU" and "cpu" are one device.
  static std::string lower(std::string text) {
    for (char& c : text)
      if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
    return text;
  }
  Library& add(const std::string& op, const std::string& device, taeda_call_fn function, void* context) {
    if (device.empty())
      throw Error(TAEDA_E_VALUE, detail::joined("impl: ", op, ": no device is named; give the function to def()"));
    kernels_.push_back({op, lower(device), function, context});
    return *this;
  }

  struct Kernel {
    std::string op, device;
    taeda_call_fn function;
    void* context;
  };
  std::string name_, key_;
  struct Rule {
    std::string op;
    std::function<void()> add;
  };
  std::vector<Kernel> kernels_;
  std::vector<Rule> rules_;

  bool is_defined(const std::string& op) const {
    taeda_op found = nullptr;
    return api().op_find(full(op).c_str(), &found) == TAEDA_OK || api().op_find(op.c_str(), &found) == TAEDA_OK;
  }

 public:
  /// Name of an operator that has not been defined yet; null when all of them have.
  const std::string* awaited() const {
    for (const Kernel& k : kernels_)
      if (!is_defined(k.op)) return &k.op;
    for (const Rule& rule : rules_)
      if (!is_defined(rule.op)) return &rule.op;
    return nullptr;
  }
  /// Puts the kernels into their places.
  void commit() const {
    for (const Kernel& k : kernels_) {
      if (!detail::may_be_asked(k.device)) continue;
      taeda_op known = nullptr;
      const std::string own = full(k.op);
      const bool ours = api().op_find(own.c_str(), &known) == TAEDA_OK;
      taeda_kernel kernel = {};
      kernel.size = sizeof kernel;
      kernel.op = ours ? own.c_str() : k.op.c_str();
      kernel.kind = TAEDA_KIND_DIRECT;
      kernel.flags = ours ? 0u : uint32_t(TAEDA_KERNEL_REPLACE);
      kernel.function = k.function;
      kernel.context = k.context;
      kernel.owner = name_.c_str();
      check_status(api().backend_find(k.device.c_str(), &kernel.backend));
      check_status(api().kernel_add(&kernel, nullptr));
    }
    for (const Rule& rule : rules_) rule.add();
  }
};

namespace detail {

/// A block of the extension that has not been run. Blocks of several files may come in any order, so one with kernels
/// waits for the operators that it names.
struct Block {
  const char *library, *device;
  void (*fill)(Library& library);
};
inline std::vector<Block>& blocks() {
  static std::vector<Block> waiting;
  return waiting;
}
/// Runs what can be run now; `last`: nothing will be defined any more.
inline void run_blocks(bool last) {
  for (size_t before = 0; blocks().size() != before;) {
    std::vector<Block> waiting;
    before = blocks().size();
    for (const Block& block : std::exchange(blocks(), {})) {
      Library library(block.library, block.device);
      block.fill(library);
      const std::string* awaited = library.awaited();
      if (!awaited) library.commit();
      else waiting.push_back(block);
    }
    blocks() = std::move(waiting);
    // What this round has defined may be what blocks before it wait for.
  }
  if (last && !blocks().empty())
    throw Error(TAEDA_E_VALUE, joined("a block of '", blocks()[0].library, "' for device '", blocks()[0].device,
                                      "' names an operator that nobody defines"));
}
/// What went wrong while statics were made, where nobody waits for an error.
inline std::string& failure() {
  static std::string text;
  return text;
}
/// Called after each block: Python is asked to have a look when it goes on (taeda/extension/python.h).
inline void (*&look_later())() {
  static void (*look)() = [] {
    if (!failure().empty()) std::fprintf(stderr, "taeda: an extension is not registered: %s\n", failure().c_str());
  };
  return look;
}

struct AddBlock {
  AddBlock(const char* library, const char* device, void (*fill)(Library& library)) noexcept {
    blocks().push_back({library, device, fill});
#ifndef TAEDA_EXTENSION_PLUGIN
    try {
      run_blocks(false);
    } catch (const std::exception& e) {
      failure() = e.what();
    }
    look_later()();
#endif
  }
};

/// Registrations that wait for the start of a plug-in.
inline std::vector<std::function<void()>>& waiting() {
  static std::vector<std::function<void()>> functions;
  return functions;
}

/// Registers operators while the statics of a file are made, as PyTorch's older name does.
class RegisterOperators {
 public:
  RegisterOperators() = default;
  template <class F>
  RegisterOperators(const std::string& schema, F function) {
    std::move(*this).op(schema, function);
  }
  /// "mypkg::scale", or with the whole schema, and its function.
  template <class F>
  RegisterOperators&& op(const std::string& schema, F function) && {
    const auto add = [schema, function] {
      const size_t end = schema.find("::");
      TAEDA_CHECK(end != schema.npos, "op: '", schema, "' has no namespace");
      Library(schema.substr(0, end), "").def(schema, +function);
    };
#ifdef TAEDA_EXTENSION_PLUGIN
    waiting().push_back(add);
#else
    try {
      add();
    } catch (const std::exception& e) {
      failure() = e.what();
      look_later()();
    }
#endif
    return std::move(*this);
  }
};

inline int32_t start_plugin(const taeda_api*) {
  return guarded([] {
    for (const auto& add : std::exchange(waiting(), {})) add();
    run_blocks(true);
  });
}

#ifdef TAEDA_EXTENSION_PLUGIN
/// Hidden, since a process has one object of an exported function's statics: libraries would be taken for one another.
__attribute__((visibility("hidden"))) inline const taeda_plugin* description() {
  static const taeda_plugin plugin = {sizeof(taeda_plugin), TAEDA_ABI_MAJOR, 4,
                                      "an extension",       "an extension",  start_plugin};
  return &plugin;
}
#endif

}  // namespace detail
using detail::RegisterOperators;

}  // namespace extension_v1
}  // namespace taeda

#define TAEDA_EXTENSION_JOIN_(a, b) a##b
#define TAEDA_EXTENSION_JOIN(a, b) TAEDA_EXTENSION_JOIN_(a, b)
#define TAEDA_EXTENSION_BLOCK(library, key, m, number)                                     \
  static void TAEDA_EXTENSION_JOIN(taeda_block_, number)(::taeda::Library&);               \
  static const ::taeda::detail::AddBlock TAEDA_EXTENSION_JOIN(taeda_block_entry_, number)( \
      library, key, &TAEDA_EXTENSION_JOIN(taeda_block_, number));                          \
  static void TAEDA_EXTENSION_JOIN(taeda_block_, number)([[maybe_unused]] ::taeda::Library & m)

/// `TAEDA_LIBRARY(mypkg, m) { m.def("scale(Tensor self, float k=1.0) -> Tensor"); }`
#define TAEDA_LIBRARY(library, m) TAEDA_EXTENSION_BLOCK(#library, "", m, __COUNTER__)
#define TAEDA_LIBRARY_FRAGMENT(library, m) TAEDA_LIBRARY(library, m)
/// `TAEDA_LIBRARY_IMPL(mypkg, CPU, m) { m.impl("scale", &scale); }`
#define TAEDA_LIBRARY_IMPL(library, device, m) TAEDA_EXTENSION_BLOCK(#library, #device, m, __COUNTER__)

/// Says that a library which is no plug-in registers its operators while it is opened.
extern "C" TAEDA_PLUGIN_EXPORT __attribute__((used)) inline int32_t taeda_extension_version() { return 1; }

#ifdef TAEDA_EXTENSION_PLUGIN
/// The library is loaded as a plug-in, by `taeda.ops.load_library`, and not imported.
extern "C" TAEDA_PLUGIN_EXPORT __attribute__((used)) inline const taeda_plugin* taeda_plugin_describe() {
  return ::taeda::detail::description();
}
#endif
