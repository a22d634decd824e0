// Operators of C++ on tensors, and what tensors are made of. Part of taeda/extension.h.
#pragma once
#include "taeda/extension/ops.h"

namespace taeda {
inline namespace extension_v1 {

#define TAEDA_EXTENSION_BINARY(sign, function)                                                    \
  inline auto operator sign(const Tensor& a, const Tensor& b) { return function(a, Operand(b)); } \
  inline auto operator sign(const Tensor& a, const Scalar& b) { return function(a, Operand(b)); } \
  inline auto operator sign(const Scalar& a, const Tensor& b) { return function(Operand(a), Operand(b)); }
TAEDA_EXTENSION_BINARY(+, extension_v1::add)
TAEDA_EXTENSION_BINARY(-, extension_v1::sub)
TAEDA_EXTENSION_BINARY(*, extension_v1::mul)
TAEDA_EXTENSION_BINARY(/, extension_v1::div)
TAEDA_EXTENSION_BINARY(%, extension_v1::remainder)
TAEDA_EXTENSION_BINARY(<, extension_v1::lt)
TAEDA_EXTENSION_BINARY(<=, extension_v1::le)
TAEDA_EXTENSION_BINARY(>, extension_v1::gt)
TAEDA_EXTENSION_BINARY(>=, extension_v1::ge)
TAEDA_EXTENSION_BINARY(==, extension_v1::eq)
TAEDA_EXTENSION_BINARY(!=, extension_v1::ne)
TAEDA_EXTENSION_BINARY(&, extension_v1::bitwise_and)
TAEDA_EXTENSION_BINARY(|, extension_v1::bitwise_or)
TAEDA_EXTENSION_BINARY(^, extension_v1::bitwise_xor)
#undef TAEDA_EXTENSION_BINARY
inline Tensor operator-(const Tensor& a) { return extension_v1::neg(a); }
inline Tensor operator~(const Tensor& a) { return extension_v1::bitwise_not(a); }

inline Tensor& Tensor::operator+=(const Operand& other) { return add_(other); }
inline Tensor& Tensor::operator-=(const Operand& other) { return sub_(other); }
inline Tensor& Tensor::operator*=(const Operand& other) { return mul_(other); }
inline Tensor& Tensor::operator/=(const Operand& other) { return div_(other); }
inline Tensor& Tensor::operator&=(const Operand& other) { return bitwise_and_(other); }
inline Tensor& Tensor::operator|=(const Operand& other) { return bitwise_or_(other); }
inline Tensor& Tensor::operator^=(const Operand& other) { return bitwise_xor_(other); }
inline Tensor Tensor::__and__(const Operand& other) const { return bitwise_and(other); }
inline Tensor& Tensor::__iand__(const Operand& other) const { return bitwise_and_(other); }
inline Tensor Tensor::__or__(const Operand& other) const { return bitwise_or(other); }
inline Tensor& Tensor::__ior__(const Operand& other) const { return bitwise_or_(other); }
inline Tensor Tensor::__xor__(const Operand& other) const { return bitwise_xor(other); }
inline Tensor& Tensor::__ixor__(const Operand& other) const { return bitwise_xor_(other); }
inline Tensor Tensor::__lshift__(const Operand& other) const { return bitwise_left_shift(other); }
inline Tensor& Tensor::__ilshift__(const Operand& other) const { return bitwise_left_shift_(other); }
inline Tensor Tensor::__rshift__(const Operand& other) const { return bitwise_right_shift(other); }
inline Tensor& Tensor::__irshift__(const Operand& other) const { return bitwise_right_shift_(other); }
inline Tensor Tensor::slice(int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) const {
  return extension_v1::slice(*this, dim, start, end, step);
}
inline Tensor Tensor::operator[](int64_t i) const { return extension_v1::select(*this, 0, i); }

inline Tensor Tensor::to(ScalarType type, bool /*non_blocking*/, bool copy) const {
  const Tensor out = call_op<Tensor>("to_dtype", *this, type);
  return copy && out.is_same(*this) ? extension_v1::clone(out) : out;
}
inline Tensor Tensor::to(Device device) const { return call_op<Tensor>("to_device", *this, device); }
inline Tensor Tensor::to(const TensorOptions& options) const {
  Tensor out = *this;
  if (options.device_opt() && !(*options.device_opt() == device())) out = out.to(*options.device_opt());
  if (options.dtype_opt() && *options.dtype_opt() != scalar_type()) out = out.to(*options.dtype_opt());
  return out;
}

inline Scalar Tensor::item() const {
  const taeda_tensor_info facts = info();
  TAEDA_CHECK(facts.numel == 1, "item: the tensor has ", facts.numel, " elements");
  const auto read = [&]<class T>(T) {
    T value{};
    check_status(api().tensor_to_host(handle_, &value, sizeof value));
    return Scalar(value);
  };
  switch (ScalarType(facts.dtype)) {
    case kBool: {
      uint8_t value = 0;
      check_status(api().tensor_to_host(handle_, &value, 1));
      return value != 0;
    }
    case kInt8: return read(int8_t());
    case kInt16: return read(int16_t());
    case kInt32: return read(int32_t());
    case kInt64: return read(int64_t());
    case kUInt8: return read(uint8_t());
    case kFloat: return read(float());
    case kDouble: return read(double());
    case kComplexFloat: return read(std::complex<float>());
    case kComplexDouble: return read(std::complex<double>());
    case kHalf:
    case kBFloat16: return to(kDouble).item();
    default: return to(kInt64).item();
  }
}

/// A tensor over memory of the caller's, row-major, which must live as long; `release` is called when nobody uses it
/// any more.
inline Tensor from_blob(void* data, IntArrayRef sizes, void (*release)(void* data, size_t nbytes, void* context),
                        void* context = nullptr, const TensorOptions& options = {}) {
  static constexpr uint8_t kBytes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  size_t nbytes = kBytes[int(options.dtype())];
  for (const int64_t size : sizes) nbytes *= size_t(size);
  taeda_tensor made = nullptr;
  check_status(api().tensor_wrap(data, nbytes, options.device().c(), int32_t(sizes.size()), sizes.data(), nullptr,
                                 int32_t(options.dtype()), 0, release, context, &made));
  return Tensor::adopt(made);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {}) {
  return from_blob(data, sizes, nullptr, nullptr, options);
}

namespace detail {
/// The type of a tensor of such numbers where none is asked for: whole ones are int64, broken ones float.
template <class T>
constexpr ScalarType made_of() {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) return kFloat;
  else if constexpr (std::is_same_v<T, int>) return kInt64;
  else return type_of<T>();
}
template <class T>
Tensor filled(const T* values, std::initializer_list<int64_t> sizes, const TensorOptions& options) {
  size_t count = 1;
  for (const int64_t size : sizes) count *= size_t(size);
  taeda_tensor made = nullptr;
  check_status(api().tensor_empty(int32_t(sizes.size()), sizes.begin(), nullptr, int32_t(type_of<T>()), {0, 0}, &made));
  const Tensor out = Tensor::adopt(made);
  if (count) check_status(api().tensor_from_host(out.c(), values, count * sizeof(T)));
  return out.to(options.dtype_opt() ? options : options.dtype(made_of<T>()));
}
}  // namespace detail

/// A tensor of the given numbers.
template <class T>
Tensor tensor(ArrayRef<T> values, const TensorOptions& options = {}) {
  return detail::filled(values.data(), {int64_t(values.size())}, options);
}
template <class T>
Tensor tensor(std::initializer_list<T> values, const TensorOptions& options = {}) {
  return tensor(ArrayRef<T>(values), options);
}
template <class T>
Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) {
  return tensor(ArrayRef<T>(values), options);
}
template <class T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> rows, const TensorOptions& options = {}) {
  std::vector<T> values;
  const size_t width = rows.size() == 0 ? 0 : rows.begin()->size();
  for (const auto& row : rows) {
    if (row.size() != width)
      throw Error(TAEDA_E_VALUE, detail::joined("tensor: rows of ", width, " and ", row.size(), " numbers"));
    values.insert(values.end(), row);
  }
  return detail::filled(values.data(), {int64_t(rows.size()), int64_t(width)}, options);
}
template <class T>
  requires std::is_arithmetic_v<T>
Tensor tensor(T value, const TensorOptions& options = {}) {
  return detail::filled(&value, {}, options);
}

// Options that follow arguments which may be left out.
inline Tensor arange(const Scalar& end, const TensorOptions& options) {
  return extension_v1::arange(Scalar(0), end, Scalar(1), options);
}
inline Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& options) {
  return extension_v1::arange(start, end, Scalar(1), options);
}
inline Tensor eye(int64_t n, const TensorOptions& options) { return extension_v1::eye(n, std::nullopt, options); }

namespace internal {
/// How much work PyTorch gives a thread at least.
inline constexpr int64_t GRAIN_SIZE = 32768;
}  // namespace internal
inline int get_num_threads() { return 1; }

/// Runs `body(from, to)` for all of a range; one call here, as extensions are written for any number of them.
template <class Body>
void parallel_for(int64_t begin, int64_t end, int64_t /*grain_size*/, const Body& body) {
  if (begin < end) body(begin, end);
}

/// Calls `body` with an object of the C++ type of the elements, for a switch over types: `[&]<class T>(T) { ... }`.
template <class Body>
decltype(auto) for_floating_type(ScalarType type, const char* name, const Body& body) {
  if (type == kFloat) return body(float());
  if (type == kDouble) return body(double());
  throw Error(TAEDA_E_NOT_IMPLEMENTED, detail::joined(name, ": not for elements of ", toString(type)));
}
template <class Body>
decltype(auto) for_real_type(ScalarType type, const char* name, const Body& body) {
  switch (type) {
    case kInt8: return body(int8_t());
    case kInt16: return body(int16_t());
    case kInt32: return body(int32_t());
    case kInt64: return body(int64_t());
    case kUInt8: return body(uint8_t());
    default: return for_floating_type(type, name, body);
  }
}

template <class Body>
void for_integral_type(ScalarType type, const char* name, const Body& body) {
  for_real_type(type, name, [&]<class T>(T zero) {
    if constexpr (std::is_integral_v<T>) body(zero);
    else throw Error(TAEDA_E_NOT_IMPLEMENTED, detail::joined(name, ": not for elements of ", toString(type)));
  });
}

}  // namespace extension_v1
}  // namespace taeda

/// PyTorch's switches: the further argument is a function without arguments, in which `scalar_t` is the C++ type.
#define TAEDA_DISPATCH_FLOATING_TYPES(type, name, ...) \
  ::taeda::for_floating_type(type, name, [&]<class scalar_t>(scalar_t) { return __VA_ARGS__(); })
#define TAEDA_DISPATCH_ALL_TYPES(type, name, ...) \
  ::taeda::for_real_type(type, name, [&]<class scalar_t>(scalar_t) { return __VA_ARGS__(); })
#define TAEDA_DISPATCH_INTEGRAL_TYPES(type, name, ...) \
  ::taeda::for_integral_type(type, name, [&]<class scalar_t>(scalar_t) { return __VA_ARGS__(); })
