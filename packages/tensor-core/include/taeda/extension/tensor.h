// The tensor, and calls of operators with C++ values. Part of taeda/extension.h.
#pragma once
#include <array>
#include <tuple>
#include <utility>

#include "taeda/extension/accessor.h"
#include "taeda/extension/values.h"

namespace taeda {
inline namespace extension_v1 {

class Tensor;
class Operand;
namespace indexing {
class TensorIndex;
}
using TensorList = ArrayRef<Tensor>;

/// What a new tensor is to be: each part may be left open.
class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType type) : dtype_(type) {}
  TensorOptions(Device device) : device_(device) {}
  TensorOptions(DeviceType device) : device_(device) {}
  TensorOptions dtype(ScalarType type) const {
    return with(*this, [&](TensorOptions& o) { o.dtype_ = type; });
  }
  TensorOptions device(Device device) const {
    return with(*this, [&](TensorOptions& o) { o.device_ = device; });
  }
  TensorOptions requires_grad(bool wanted) const {
    return with(*this, [&](TensorOptions& o) { o.grad_ = wanted; });
  }
  std::optional<ScalarType> dtype_opt() const { return dtype_; }
  std::optional<Device> device_opt() const { return device_; }
  bool requires_grad() const { return grad_; }
  ScalarType dtype() const { return dtype_.value_or(kFloat); }
  Device device() const { return device_.value_or(Device()); }

 private:
  template <class Change>
  static TensorOptions with(TensorOptions options, const Change& change) {
    change(options);
    return options;
  }
  std::optional<ScalarType> dtype_;
  std::optional<Device> device_;
  bool grad_ = false;
};
inline TensorOptions dtype(ScalarType type) { return type; }
inline TensorOptions device(Device device) { return device; }
inline TensorOptions requires_grad(bool wanted = true) { return TensorOptions().requires_grad(wanted); }

/// A counted handle of a tensor; an undefined one stands for None.
class Tensor : public detail::AsksForDevices<Tensor> {
 public:
  Tensor() = default;
  Tensor(const Tensor& other) : handle_(other.handle_) {
    if (handle_) api().tensor_retain(handle_);
  }
  Tensor(Tensor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Tensor() {
    if (handle_) api().tensor_release(handle_);
  }
  /// Takes a reference over, as results of the table give it.
  static Tensor adopt(taeda_tensor handle) {
    Tensor out;
    out.handle_ = handle;
    return out;
  }
  /// A further reference to what an argument lends.
  static Tensor share(taeda_tensor handle) {
    if (handle) api().tensor_retain(handle);
    return adopt(handle);
  }
  taeda_tensor c() const { return handle_; }
  taeda_tensor release() { return std::exchange(handle_, nullptr); }

  bool defined() const { return handle_ != nullptr; }
  bool is_same(const Tensor& other) const { return handle_ == other.handle_; }
  /// All facts at once; each of the functions below reads them.
  taeda_tensor_info info() const {
    taeda_tensor_info out{};
    out.size = sizeof out;
    check_status(api().tensor_read(handle_, &out));
    return out;
  }
  int64_t dim() const { return info().ndim; }
  int64_t ndimension() const { return dim(); }
  int64_t numel() const { return info().numel; }
  IntArrayRef sizes() const { return {info().sizes, size_t(info().ndim)}; }
  IntArrayRef strides() const { return {info().strides, size_t(info().ndim)}; }
  int64_t size(int64_t d) const { return sizes()[place(d)]; }
  int64_t stride(int64_t d) const { return strides()[place(d)]; }
  ScalarType scalar_type() const { return ScalarType(info().dtype); }
  ScalarType dtype() const { return scalar_type(); }
  ScalarType type() const { return scalar_type(); }
  Device device() const { return Device(info().device); }
  int64_t get_device() const { return info().device.index; }
  TensorOptions options() const { return TensorOptions(scalar_type()).device(device()); }
  bool is_contiguous() const { return info().flags & TAEDA_TENSOR_CONTIGUOUS; }
  bool requires_grad() const { return info().flags & TAEDA_TENSOR_REQUIRES_GRAD; }
  bool is_cpu() const { return device().is_cpu(); }
  bool is_on(std::string_view name) const { return device().is_on(name); }
  bool is_floating_point() const { return isFloatingType(scalar_type()); }
  bool is_complex() const { return isComplexType(scalar_type()); }
  int64_t element_size() const { return info().item_size; }
  int64_t itemsize() const { return element_size(); }
  size_t nbytes() const { return size_t(numel() * element_size()); }

  /// The first element; RuntimeError unless `T` is the element type. Only the cpu's can be read through it.
  template <class T>
  T* data_ptr() const {
    using Plain = std::remove_const_t<T>;
    const taeda_tensor_info facts = info();
    TAEDA_CHECK(ScalarType(facts.dtype) == type_of<Plain>(), "data_ptr: elements are ",
                toString(ScalarType(facts.dtype)), ", asked for ", toString(type_of<Plain>()));
    return static_cast<T*>(facts.data);
  }
  void* data_ptr() const { return info().data; }
  template <class T>
  T* data() const {
    return data_ptr<T>();
  }
  template <class T>
  const T* const_data_ptr() const {
    return data_ptr<T>();
  }
  template <class T>
  T* mutable_data_ptr() const {
    return data_ptr<T>();
  }
  /// What kernels take by value. RuntimeError for another number of dimensions or element type.
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, Traits> packed_accessor64() const {
    return packed<PackedTensorAccessor64<T, N, Traits>, T, N>(INT64_MAX);
  }
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, Traits> packed_accessor32() const {
    return packed<PackedTensorAccessor32<T, N, Traits>, T, N>(INT32_MAX);
  }
  template <class T, size_t N>
  TensorAccessor<T, N> accessor() const {
    const taeda_tensor_info facts = info();
    check_rank(facts, N);
    TAEDA_CHECK(facts.device.backend == 0, "accessor: the tensor is on device '", device().str(), "', not on the cpu");
    return {data_ptr<T>(), facts.sizes, facts.strides};
  }
  /// The one element as a number.
  Scalar item() const;
  template <class T>
  T item() const {
    return item().to<T>();
  }

  /// On the cpu copies are done when the call returns.
  Tensor to(ScalarType type, bool non_blocking = false, bool copy = false) const;
  Tensor toType(ScalarType type) const { return to(type); }
  Tensor to(Device device) const;
  Tensor to(DeviceType device) const { return to(Device(device)); }
  Tensor to(const TensorOptions& options) const;
  Tensor type_as(const Tensor& other) const { return to(other.options()); }
  Tensor cpu() const { return to(Device()); }
  Tensor slice(int64_t dim = 0, std::optional<int64_t> start = std::nullopt, std::optional<int64_t> end = std::nullopt,
               int64_t step = 1) const;
  Tensor operator[](int64_t i) const;
  /// What stands between brackets in Python; see taeda/extension/indexing.h.
  Tensor index(ArrayRef<indexing::TensorIndex> indices) const;
  Tensor index(std::initializer_list<indexing::TensorIndex> indices) const;
  Tensor index(TensorList indices) const;
  Tensor& index_put_(ArrayRef<indexing::TensorIndex> indices, const Operand& values);
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices, const Operand& values);
  Tensor& operator+=(const Operand& other);
  Tensor& operator-=(const Operand& other);
  Tensor& operator*=(const Operand& other);
  Tensor& operator/=(const Operand& other);
  Tensor& operator&=(const Operand& other);
  Tensor& operator|=(const Operand& other);
  Tensor& operator^=(const Operand& other);
  // Python's operators of bits, under the names by which sources for PyTorch's C++ API call them.
  Tensor __and__(const Operand& other) const;
  Tensor __or__(const Operand& other) const;
  Tensor __xor__(const Operand& other) const;
  Tensor __lshift__(const Operand& other) const;
  Tensor __rshift__(const Operand& other) const;
  Tensor& __iand__(const Operand& other) const;
  Tensor& __ior__(const Operand& other) const;
  Tensor& __ixor__(const Operand& other) const;
  Tensor& __ilshift__(const Operand& other) const;
  Tensor& __irshift__(const Operand& other) const;

#include "taeda/extension/methods.inc"

#ifndef TAEDA_WITHOUT_PYTHON
  Tensor& requires_grad_(bool wanted = true);
  Tensor& set_requires_grad(bool wanted) { return requires_grad_(wanted); }
  void backward() const;
  void backward(const Tensor& gradient, std::optional<bool> retain_graph = std::nullopt,
                bool create_graph = false) const;
  /// The gradient that has been added up; undefined without.
  Tensor grad() const;
#endif

 private:
  static void check_rank(const taeda_tensor_info& facts, size_t asked) {
    TAEDA_CHECK(facts.ndim == int(asked), "accessor: the tensor has ", facts.ndim, " dimensions, asked for ", asked);
  }
  template <class Accessor, class T, size_t N>
  Accessor packed(int64_t most) const {
    const taeda_tensor_info facts = info();
    check_rank(facts, N);
    TAEDA_CHECK(facts.numel <= most, "accessor: ", facts.numel, " elements are too many for its index");
    return {data_ptr<T>(), facts.sizes, facts.strides};
  }
  size_t place(int64_t d) const {
    const int64_t rank = dim();
    if (d < -rank || d >= rank)
      throw Error(TAEDA_E_INDEX, detail::joined("dimension ", d, " is out of range for ", rank, " dimension(s)"));
    return size_t(d < 0 ? d + rank : d);
  }
  taeda_tensor handle_ = nullptr;
};
static_assert(sizeof(Tensor) == sizeof(taeda_tensor), "a list of tensors is a list of handles");

/// A tensor or a number, where an operator takes both.
class Operand {
 public:
  Operand(const Tensor& tensor) : tensor_(tensor) {}
  Operand(const Scalar& number) : number_(number) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  Operand(T number) : number_(number) {}
  const Tensor& tensor() const { return tensor_; }
  const Scalar& number() const { return number_; }

 private:
  Tensor tensor_;
  Scalar number_;
};

namespace detail {

inline taeda_value integer(uint32_t kind, int64_t value) {
  taeda_value out{};
  out.kind = kind;
  out.as.integer = value;
  return out;
}
template <class Pointer>
taeda_value list(uint32_t kind, Pointer items, size_t count) {
  taeda_value out{};
  out.kind = kind;
  out.count = int64_t(count);
  out.as.text = reinterpret_cast<const char*>(items);
  return out;
}
inline taeda_value pack(const Tensor& tensor) {
  taeda_value out{};
  out.kind = tensor.defined() ? TAEDA_VALUE_TENSOR : TAEDA_VALUE_NONE;
  out.as.tensor = tensor.c();
  return out;
}
inline taeda_value pack(const Operand& operand) {
  return operand.tensor().defined() ? pack(operand.tensor()) : operand.number().c();
}
inline taeda_value pack(TensorList tensors) { return list(TAEDA_VALUE_TENSORS, tensors.data(), tensors.size()); }
inline taeda_value pack(const Scalar& number) { return number.c(); }
inline taeda_value pack(int64_t number) { return integer(TAEDA_VALUE_INT, number); }
inline taeda_value pack(bool truth) { return integer(TAEDA_VALUE_BOOL, truth); }
inline taeda_value pack(double number) { return Scalar(number).c(); }
inline taeda_value pack(IntArrayRef items) { return list(TAEDA_VALUE_INTS, items.data(), items.size()); }
inline taeda_value pack(ArrayRef<double> items) { return list(TAEDA_VALUE_FLOATS, items.data(), items.size()); }
inline taeda_value pack(std::string_view text) { return list(TAEDA_VALUE_TEXT, text.data(), text.size()); }
inline taeda_value pack(ScalarType type) { return integer(TAEDA_VALUE_DTYPE, int64_t(type)); }
inline taeda_value pack(const OptionalIntArrayRef& items) {
  if (!items.has_value()) return taeda_value{};
  // One int stands in the wrapper itself, which lives as long as the call.
  return pack(items.value());
}
inline taeda_value pack(const Device& device) {
  taeda_value out{};
  out.kind = TAEDA_VALUE_DEVICE;
  out.as.device = device.c();
  return out;
}
inline taeda_value pack(const Generator& generator) {
  taeda_value out{};
  out.kind = TAEDA_VALUE_GENERATOR;
  out.as.generator = generator.c();
  return out;
}
template <class T>
taeda_value pack(const std::optional<T>& value) {
  return value ? pack(*value) : taeda_value{};
}

/// The results of a call; what nobody has taken over is given back.
template <size_t N>
struct Results {
  taeda_value items[N + 1] = {};
  Results() = default;
  Results(const Results&) = delete;
  ~Results() {
    for (size_t i = 0; i < N; ++i) api().value_release(&items[i]);
  }
};

template <class T>
T taken(taeda_value& value) {
  if constexpr (std::is_same_v<T, Tensor>) {
    const taeda_tensor handle = value.kind == TAEDA_VALUE_TENSOR ? value.as.tensor : nullptr;
    value.kind = TAEDA_VALUE_NONE;
    return Tensor::adopt(handle);
  } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
    std::vector<Tensor> out;
    for (int64_t i = 0; i < value.count; ++i) out.push_back(Tensor::share(value.as.tensors[i]));
    return out;
  } else if constexpr (std::is_same_v<T, Scalar>) {
    return Scalar(value);
  } else {
    return Scalar(value).to<T>();
  }
}
template <class T>
struct ResultsOf {
  static constexpr size_t count = 1;
  static T from(taeda_value* items) { return taken<T>(items[0]); }
};
template <>
struct ResultsOf<void> {
  static constexpr size_t count = 0;
  static void from(taeda_value*) {}
};
template <class... T>
struct ResultsOf<std::tuple<T...>> {
  static constexpr size_t count = sizeof...(T);
  static std::tuple<T...> from(taeda_value* items) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return std::tuple<T...>{taken<T>(items[I])...};
    }(std::index_sequence_for<T...>());
  }
};

/// An operator, looked up once.
struct Op {
  taeda_op handle = nullptr;
  explicit Op(const char* name) { check_status(api().op_find(name, &handle)); }
};
template <class R, class... A>
R call(const Op& op, const A&... arguments) {
  const taeda_value packed[] = {pack(arguments)..., taeda_value{}};
  Results<ResultsOf<R>::count> results;
  check_status(api().op_call(op.handle, packed, sizeof...(A), results.items, ResultsOf<R>::count));
  return ResultsOf<R>::from(results.items);
}

}  // namespace detail

/// Calls any operator by its name, those of other plug-ins included: `call_op<Tensor>("mypkg::scale", x, 2.0)`.
template <class R, class... A>
R call_op(const char* name, const A&... arguments) {
  return detail::call<R>(detail::Op(name), arguments...);
}

/// Calls of operators as sources for PyTorch write them:
/// `Dispatcher::singleton().findSchemaOrThrow("mypkg::scale", "").typed<decltype(scale)>().call(x, 2.0)`.
template <class Signature>
class TypedOperatorHandle;
template <class R, class... A>
class TypedOperatorHandle<R(A...)> {
 public:
  explicit TypedOperatorHandle(const detail::Op& op) : op_(op) {}
  R call(A... arguments) const { return detail::call<R>(op_, std::decay_t<A>(arguments)...); }

 private:
  detail::Op op_;
};
class OperatorHandle {
 public:
  explicit OperatorHandle(const char* name) : op_(name) {}
  template <class Signature>
  TypedOperatorHandle<Signature> typed() const {
    return TypedOperatorHandle<Signature>(op_);
  }

 private:
  detail::Op op_;
};
struct Dispatcher {
  static Dispatcher singleton() { return {}; }
  /// ValueError where there is no operator of the name.
  OperatorHandle findSchemaOrThrow(const char* name, const char* overload) const {
    const std::string whole = *overload ? std::string(name) + "." + overload : std::string(name);
    return OperatorHandle(whole.c_str());
  }
};

}  // namespace extension_v1
}  // namespace taeda
