// Values between C structs and boxed C++ ones.
#include <map>
#include <mutex>

#include "abi/bridge.h"
#include "taeda/backend.h"
#include "taeda/boxing.h"

namespace taeda::abi {

Device from_c(taeda_device device) {
  check(device.backend >= 0 && device.backend < backend_count(), ErrorKind::Value,
        "taeda ABI: there is no backend number ", device.backend);
  const int count = backend(BackendId(device.backend)).device_count();
  check(device.index >= 0 && device.index < count, ErrorKind::Value, "taeda ABI: device index ", device.index, " of '",
        backend(BackendId(device.backend)).name(), "' is out of range, it has ", count, " device(s)");
  return {BackendId(device.backend), int8_t(device.index)};
}
DType dtype_from_c(int32_t code) {
  check(code >= 0 && code < kDTypeCount, ErrorKind::Value, "taeda ABI: there is no element type number ", code);
  return DType(code);
}
static_assert(int(DType::Bool) == TAEDA_BOOL && int(DType::Int64) == TAEDA_INT64 &&
              int(DType::UInt64) == TAEDA_UINT64 && int(DType::Float16) == TAEDA_FLOAT16 &&
              int(DType::Complex128) == TAEDA_COMPLEX128);

Packed::Packed(const Values& values) {
  items_.reserve(values.size());
  for (const Value& v : values) {
    items_.push_back(std::visit(
        [&]<class T>(const T& held) -> taeda_value {
          if constexpr (std::is_same_v<T, std::monostate>) {
            return none();
          } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
            return pack(TensorList(held));
          } else if constexpr (std::is_same_v<T, std::vector<std::optional<Tensor>>>) {
            auto& list = lists_.emplace_back();
            for (const auto& item : held) list.push_back(item ? abi::handle(*item) : nullptr);
            return of_list(TAEDA_VALUE_TENSORS, list.data(), list.size());
          } else if constexpr (std::is_same_v<T, std::vector<double>>) {
            return pack(std::span<const double>(held));
          } else if constexpr (std::is_same_v<T, Shape>) {
            return pack(IntSpan(held));
          } else if constexpr (std::is_same_v<T, std::string>) {
            return pack(std::string_view(held));
          } else {
            return pack(held);
          }
        },
        v));
  }
}

namespace {

bool is_number(uint32_t kind) { return kind >= TAEDA_VALUE_BOOL && kind <= TAEDA_VALUE_COMPLEX; }

Scalar number(const taeda_value& v) {
  switch (v.kind) {
    case TAEDA_VALUE_BOOL:
      return v.as.integer != 0;
    case TAEDA_VALUE_INT:
      return v.as.integer;
    case TAEDA_VALUE_UINT:
      return v.as.natural;
    case TAEDA_VALUE_FLOAT:
      return v.as.real;
    default:
      return std::complex<double>(v.as.parts[0], v.as.parts[1]);
  }
}

/// The value by its own kind alone; tensors are borrowed.
Value plain(const taeda_value& v, const char* op) {
  const size_t count = size_t(v.count);
  switch (v.kind) {
    case TAEDA_VALUE_NONE:
      return {};
    case TAEDA_VALUE_TENSOR:
      return borrowed(v.as.tensor);
    case TAEDA_VALUE_BOOL:
      return v.as.integer != 0;
    case TAEDA_VALUE_INT:
      return v.as.integer;
    case TAEDA_VALUE_FLOAT:
      return v.as.real;
    case TAEDA_VALUE_UINT:
    case TAEDA_VALUE_COMPLEX:
      return number(v);
    case TAEDA_VALUE_TEXT:
      return std::string(v.as.text, count);
    case TAEDA_VALUE_DTYPE:
      return dtype_from_c(int32_t(v.as.integer));
    case TAEDA_VALUE_DEVICE:
      return from_c(v.as.device);
    case TAEDA_VALUE_INTS:
      return Shape(IntSpan(v.as.integers, count));
    case TAEDA_VALUE_FLOATS:
      return std::vector<double>(v.as.reals, v.as.reals + count);
    case TAEDA_VALUE_GENERATOR:
      return v.as.generator ? Value(Generator::share(reinterpret_cast<GeneratorImpl*>(v.as.generator))) : Value();
    case TAEDA_VALUE_TENSORS:
      break;
    default:
      fail(ErrorKind::Type, op, ": there is no kind of value number ", v.kind);
  }
  std::vector<std::optional<Tensor>> items;
  for (size_t i = 0; i < count; ++i)
    items.push_back(v.as.tensors[i] ? std::optional(borrowed(v.as.tensors[i])) : std::nullopt);
  return items;
}

}  // namespace

Value unpack(const taeda_value& v, const SchemaArgument& wanted, const char* op) {
  if (v.kind == TAEDA_VALUE_NONE) return {};
  const bool tensors = wanted.type == ArgumentType::Tensor || wanted.type == ArgumentType::Operand;
  if (v.kind == TAEDA_VALUE_TENSORS && wanted.list && !wanted.optional_items) {
    std::vector<Tensor> items;
    for (int64_t i = 0; i < v.count; ++i) items.push_back(borrowed(v.as.tensors[i]));
    return items;
  }
  if (is_number(v.kind) && !wanted.list) {
    if (tensors) return Tensor(number(v));
    if (wanted.type == ArgumentType::Scalar) return number(v);
    if (wanted.type == ArgumentType::Float && v.kind == TAEDA_VALUE_INT) return double(v.as.integer);
  }
  return plain(v, op);
}

Value take(const taeda_value& v, const char* op) {
  if (v.kind == TAEDA_VALUE_TENSOR) return adopt(v);
  check(v.kind != TAEDA_VALUE_TENSORS, ErrorKind::NotImplemented, op,
        ": a list of tensors as result of a C function is not offered");
  return plain(v, op);
}

taeda_value give(Value value, const char* op) {
  if (auto* t = std::get_if<Tensor>(&value)) {
    taeda_value out = pack(*t);
    if (t->defined()) (void)t->ref().release();
    return out;
  }
  return std::visit(
      [&]<class T>(const T& held) -> taeda_value {
        if constexpr (std::is_same_v<T, std::monostate>)
          return none();
        else if constexpr (std::is_same_v<T, Scalar> || std::is_same_v<T, int64_t> || std::is_same_v<T, bool> ||
                           std::is_same_v<T, double> || std::is_same_v<T, DType> || std::is_same_v<T, Device>)
          return pack(held);
        else
          fail(ErrorKind::NotImplemented, op, ": results of this kind cannot be given to C yet");
      },
      value);
}

const Schema& schema_of(const OpEntry& op) {
  static std::mutex lock;
  static auto* known = new std::map<const OpEntry*, Schema>;
  std::lock_guard guard(lock);
  auto found = known->find(&op);
  if (found == known->end()) found = known->emplace(&op, boxed_schema(op)).first;
  return found->second;
}

}  // namespace taeda::abi
