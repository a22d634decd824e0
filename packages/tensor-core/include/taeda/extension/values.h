// Numbers, element types, devices and lists: what operators take beside tensors. Part of taeda/extension.h.
#pragma once
#include <array>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "taeda/extension/api.h"
#include "taeda/extension/reserved.h"

namespace taeda {
inline namespace extension_v1 {

template <class T>
using optional = std::optional<T>;
using std::nullopt;
using std::nullopt_t;

/// Element types, with PyTorch's names of C++ and those of Python.
enum class ScalarType : int32_t {
  Bool = TAEDA_BOOL,
  Char = TAEDA_INT8,
  Short = TAEDA_INT16,
  Int = TAEDA_INT32,
  Long = TAEDA_INT64,
  Byte = TAEDA_UINT8,
  UInt16 = TAEDA_UINT16,
  UInt32 = TAEDA_UINT32,
  UInt64 = TAEDA_UINT64,
  Half = TAEDA_FLOAT16,
  BFloat16 = TAEDA_BFLOAT16,
  Float = TAEDA_FLOAT32,
  Double = TAEDA_FLOAT64,
  ComplexFloat = TAEDA_COMPLEX64,
  ComplexDouble = TAEDA_COMPLEX128
};
using Dtype = ScalarType;
inline constexpr ScalarType kBool = ScalarType::Bool, kInt8 = ScalarType::Char, kChar = kInt8,
                            kInt16 = ScalarType::Short, kShort = kInt16, kInt32 = ScalarType::Int, kInt = kInt32,
                            kInt64 = ScalarType::Long, kLong = kInt64, kUInt8 = ScalarType::Byte, kByte = kUInt8,
                            kFloat16 = ScalarType::Half, kHalf = kFloat16, kBFloat16 = ScalarType::BFloat16,
                            kFloat32 = ScalarType::Float, kFloat = kFloat32, kFloat64 = ScalarType::Double,
                            kDouble = kFloat64, kComplexFloat = ScalarType::ComplexFloat,
                            kComplexDouble = ScalarType::ComplexDouble;

/// Names of the element types in the order of their numbers, as in Python.
inline constexpr const char* kTypeNames[] = {"bool",     "int8",    "int16",   "int32",     "int64",
                                             "uint8",    "uint16",  "uint32",  "uint64",    "float16",
                                             "bfloat16", "float32", "float64", "complex64", "complex128"};
inline const char* toString(ScalarType type) { return kTypeNames[int(type)]; }
inline bool isFloatingType(ScalarType type) {
  return type == kHalf || type == kBFloat16 || type == kFloat || type == kDouble;
}
inline bool isComplexType(ScalarType type) { return type == kComplexFloat || type == kComplexDouble; }
inline std::ostream& operator<<(std::ostream& out, ScalarType type) { return out << toString(type); }

/// The element type of a C++ type; only for those that have one.
template <class T>
constexpr ScalarType type_of() {
  if constexpr (std::is_same_v<T, bool>) return kBool;
  else if constexpr (std::is_same_v<T, float>) return kFloat;
  else if constexpr (std::is_same_v<T, double>) return kDouble;
  else if constexpr (std::is_same_v<T, std::complex<float>>) return kComplexFloat;
  else if constexpr (std::is_same_v<T, std::complex<double>>) return kComplexDouble;
  else {
    static_assert(std::is_integral_v<T>, "there is no element type for this C++ type");
    constexpr int size = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return ScalarType((std::is_signed_v<T> ? TAEDA_INT8 : TAEDA_UINT8) + size);
  }
}

/// A device, by its name ("cpu", "sim:1") or its type.
class Device : public detail::AsksForDevices<Device> {
 public:
  Device() = default;
  explicit Device(taeda_device given) : device_(given) {}
  Device(DeviceType type, int index = 0) {
    if (type != kCPU) *this = Device(toString(type), index);
  }
  Device(std::string_view name) {
    const size_t colon = name.find(':');
    const std::string digits(colon == name.npos ? "" : name.substr(colon + 1));
    *this = Device(std::string(name.substr(0, colon)).c_str(), digits.empty() ? 0 : std::atoi(digits.c_str()));
  }
  Device(const std::string& name) : Device(std::string_view(name)) {}
  Device(const char* name) : Device(std::string_view(name)) {}
  /// The backend's name.
  std::string type() const { return api().backend_name(device_.backend); }
  int index() const { return device_.index; }
  bool is_cpu() const { return device_.backend == 0; }
  bool is_on(std::string_view name) const { return !is_cpu() && type() == name; }
  taeda_device c() const { return device_; }
  std::string str() const { return is_cpu() ? "cpu" : type() + ":" + std::to_string(index()); }
  friend bool operator==(const Device& a, const Device& b) {
    return a.device_.backend == b.device_.backend && a.device_.index == b.device_.index;
  }

 private:
  Device(const char* backend, int index) {
    check_status(api().backend_find(backend, &device_.backend));
    device_.index = index;
  }
  taeda_device device_ = {0, 0};
};
inline std::ostream& operator<<(std::ostream& out, const Device& device) { return out << device.str(); }

/// A number of any kind.
class Scalar {
 public:
  Scalar() : Scalar(0) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  Scalar(T value) {
    if constexpr (std::is_same_v<T, bool>) value_.kind = TAEDA_VALUE_BOOL, value_.as.integer = value;
    else if constexpr (std::is_floating_point_v<T>) value_.kind = TAEDA_VALUE_FLOAT, value_.as.real = double(value);
    else value_.kind = TAEDA_VALUE_INT, value_.as.integer = int64_t(value);
  }
  template <class T>
  Scalar(std::complex<T> value) {
    value_.kind = TAEDA_VALUE_COMPLEX;
    value_.as.parts[0] = double(value.real()), value_.as.parts[1] = double(value.imag());
  }
  explicit Scalar(const taeda_value& value) : value_(value) {}
  const taeda_value& c() const { return value_; }
  bool isFloatingPoint() const { return value_.kind == TAEDA_VALUE_FLOAT; }
  bool isComplex() const { return value_.kind == TAEDA_VALUE_COMPLEX; }
  bool isBoolean() const { return value_.kind == TAEDA_VALUE_BOOL; }
  template <class T>
  T to() const {
    if (value_.kind == TAEDA_VALUE_FLOAT) return T(value_.as.real);
    if (value_.kind == TAEDA_VALUE_UINT) return T(value_.as.natural);
    if constexpr (requires(T t) {
                    t.real();
                    t.imag();
                  }) {
      using Part = typename T::value_type;
      if (isComplex()) return T(Part(value_.as.parts[0]), Part(value_.as.parts[1]));
      return T(Part(value_.as.integer));
    } else {
      TAEDA_CHECK(!isComplex(), "a complex number cannot be taken for a real one");
      return T(value_.as.integer);
    }
  }
  double toDouble() const { return to<double>(); }
  float toFloat() const { return to<float>(); }
  int64_t toLong() const { return to<int64_t>(); }
  int toInt() const { return to<int>(); }
  bool toBool() const { return to<bool>(); }

 private:
  taeda_value value_ = {};
};

/// Items that lie in a row elsewhere, for the time of a call.
template <class T>
class ArrayRef {
 public:
  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T* items, size_t count) : items_(items), count_(count) {}
  constexpr ArrayRef(const T& item) : items_(&item), count_(1) {}
  // Braces in a call live as long as the call.
  constexpr ArrayRef(std::initializer_list<T> items) : ArrayRef(std::data(items), items.size()) {}
  ArrayRef(const std::vector<T>& items) : items_(items.data()), count_(items.size()) {}
  template <size_t N>
  constexpr ArrayRef(const std::array<T, N>& items) : items_(items.data()), count_(N) {}
  constexpr const T* data() const { return items_; }
  constexpr size_t size() const { return count_; }
  constexpr bool empty() const { return count_ == 0; }
  constexpr const T* begin() const { return items_; }
  constexpr const T* end() const { return items_ + count_; }
  constexpr const T& operator[](size_t i) const { return items_[i]; }
  constexpr const T& front() const { return items_[0]; }
  constexpr const T& back() const { return items_[count_ - 1]; }
  std::vector<T> vec() const { return {begin(), end()}; }
  friend bool operator==(ArrayRef a, ArrayRef b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i)
      if (!(a[i] == b[i])) return false;
    return true;
  }

 private:
  const T* items_ = nullptr;
  size_t count_ = 0;
};
using IntArrayRef = ArrayRef<int64_t>;
/// Sizes that graphs may leave open have their numbers here.
using SymInt = int64_t;
using SymIntArrayRef = IntArrayRef;
using string_view = std::string_view;
/// PyTorch's lists of its interpreter.
template <class T>
using List = std::vector<T>;
inline std::ostream& operator<<(std::ostream& out, IntArrayRef items) {
  out << "[";
  for (size_t i = 0; i < items.size(); ++i) out << (i ? ", " : "") << items[i];
  return out << "]";
}

/// Dimensions, or none at all. One int is a list of one.
class OptionalIntArrayRef {
 public:
  OptionalIntArrayRef(std::nullopt_t = std::nullopt) {}
  OptionalIntArrayRef(IntArrayRef items) : given_(true), items_(items) {}
  OptionalIntArrayRef(std::initializer_list<int64_t> items) : given_(true), items_(items) {}
  OptionalIntArrayRef(const std::vector<int64_t>& items) : given_(true), items_(items) {}
  OptionalIntArrayRef(int64_t item) : given_(true), single_(item), one_(true) {}
  bool has_value() const { return given_; }
  IntArrayRef value() const { return one_ ? IntArrayRef(&single_, 1) : items_; }

 private:
  bool given_ = false;
  IntArrayRef items_;
  int64_t single_ = 0;
  bool one_ = false;
};

/// The default generator of a device; others come from Python.
class Generator {
 public:
  explicit Generator(taeda_generator borrowed) : handle_(borrowed) {}
  taeda_generator c() const { return handle_; }

 private:
  taeda_generator handle_;
};

}  // namespace extension_v1
}  // namespace taeda
