// Values between C structs and boxed C++ ones.
#include <cstdlib>
#include <map>
#include <mutex>

#include "abi/bridge.h"
#include "core/fork.h"
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
  check(code >= 0 && code < kDTypeCount && !name(DType(code)).empty(), ErrorKind::Value,
        "taeda ABI: there is no element type number ", code);
  return DType(code);
}
static_assert(int(DType::Bool) == TAEDA_BOOL && int(DType::Int64) == TAEDA_INT64 &&
              int(DType::UInt64) == TAEDA_UINT64 && int(DType::Float16) == TAEDA_FLOAT16 &&
              int(DType::Complex128) == TAEDA_COMPLEX128);

Packed::Packed(const Values& values) : size_(values.size()) {
  if (size_ > std::size(few_)) many_ = std::make_unique<taeda_value[]>(size_);
  items_ = many_ ? many_.get() : few_;
  for (size_t i = 0; i < size_; ++i) items_[i] = packed(values[i]);
}

taeda_value Packed::packed(const Value& value) {
  return std::visit(
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
      value);
}

namespace {}  // namespace

const char* kind_name(uint32_t kind) {
  static const char* const names[] = {
      "nothing", "a tensor", "a bool",   "an int",         "an int",           "a float",           "a complex number",
      "a text",  "a dtype",  "a device", "a list of ints", "a list of floats", "a list of tensors", "a generator"};
  return kind < std::size(names) ? names[kind] : "a value of unknown kind";
}

namespace {

const char* type_name(const SchemaArgument& wanted) {
  static const char* const one[] = {
      "a tensor", "a tensor or a number", "a number", "an int", "a float", "a bool", "a text", "a dtype",
      "a device", "a generator"};
  if (!wanted.list) return one[int(wanted.type)];
  return wanted.type == ArgumentType::Tensor ? "a list of tensors"
         : wanted.type == ArgumentType::Int  ? "a list of ints"
                                             : "a list of floats";
}

bool is_number(uint32_t kind) { return kind >= TAEDA_VALUE_BOOL && kind <= TAEDA_VALUE_COMPLEX; }

Scalar number(const taeda_value& v) {
  switch (v.kind) {
    case TAEDA_VALUE_BOOL: return v.as.integer != 0;
    case TAEDA_VALUE_INT: return v.as.integer;
    case TAEDA_VALUE_UINT: return v.as.natural;
    case TAEDA_VALUE_FLOAT: return v.as.real;
    default: return std::complex<double>(v.as.parts[0], v.as.parts[1]);
  }
}

/// How many items a list has; none are read through a null pointer.
size_t count_of(const taeda_value& v, const char* op, const char* name) {
  check(v.count >= 0 && (v.as.text || v.count == 0), ErrorKind::Value, op, ": argument '", name, "' is ",
        kind_name(v.kind), " of ", v.count, " items at a null pointer or of negative length");
  return size_t(v.count);
}

std::vector<double> floats_of(const taeda_value& v, size_t count) {
  if (v.kind == TAEDA_VALUE_FLOATS) return {v.as.reals, v.as.reals + count};
  return {v.as.integers, v.as.integers + count};
}

/// Whether a value of this kind can be an argument of that type.
bool fits(const taeda_value& v, const SchemaArgument& wanted) {
  switch (wanted.type) {
    case ArgumentType::Tensor:
    case ArgumentType::Operand:
      return wanted.list ? v.kind == TAEDA_VALUE_TENSORS : v.kind == TAEDA_VALUE_TENSOR || is_number(v.kind);
    case ArgumentType::Scalar: return is_number(v.kind);
    case ArgumentType::Int: return v.kind == TAEDA_VALUE_INT || (wanted.list && v.kind == TAEDA_VALUE_INTS);
    case ArgumentType::Float:
      if (wanted.list) return v.kind == TAEDA_VALUE_FLOATS || v.kind == TAEDA_VALUE_INTS;
      return v.kind == TAEDA_VALUE_FLOAT || v.kind == TAEDA_VALUE_INT || v.kind == TAEDA_VALUE_UINT;
    case ArgumentType::Bool: return v.kind == TAEDA_VALUE_BOOL;
    case ArgumentType::Str: return v.kind == TAEDA_VALUE_TEXT;
    case ArgumentType::DType: return v.kind == TAEDA_VALUE_DTYPE;
    case ArgumentType::Device: return v.kind == TAEDA_VALUE_DEVICE;
    case ArgumentType::Generator: return v.kind == TAEDA_VALUE_GENERATOR;
  }
  return false;
}

Value tensors_of(const taeda_value& v, size_t count, const SchemaArgument& wanted, const char* op) {
  if (wanted.optional_items) {
    std::vector<std::optional<Tensor>> items;
    for (size_t i = 0; i < count; ++i)
      items.push_back(v.as.tensors[i] ? std::optional(borrowed(v.as.tensors[i])) : std::nullopt);
    return items;
  }
  std::vector<Tensor> items;
  for (size_t i = 0; i < count; ++i) {
    check(v.as.tensors[i] != nullptr, ErrorKind::Type, op, ": item ", i, " of argument '", wanted.name,
          "' must be a tensor, found nothing");
    items.push_back(borrowed(v.as.tensors[i]));
  }
  return items;
}

}  // namespace

Value unpack(const taeda_value& v, const SchemaArgument& wanted, const char* op) {
  if (v.kind == TAEDA_VALUE_NONE) return {};
  check(fits(v, wanted), ErrorKind::Type, op, ": argument '", wanted.name, "' must be ", type_name(wanted),
        wanted.optional ? " or nothing" : "", ", found ", kind_name(v.kind));
  const char* name = wanted.name.c_str();
  switch (wanted.type) {
    case ArgumentType::Tensor:
    case ArgumentType::Operand:
      if (wanted.list) return tensors_of(v, count_of(v, op, name), wanted, op);
      if (v.kind != TAEDA_VALUE_TENSOR) return Tensor(number(v));
      check(v.as.tensor != nullptr, ErrorKind::Value, op, ": argument '", name, "' is a null handle");
      return borrowed(v.as.tensor);
    case ArgumentType::Scalar: return number(v);
    case ArgumentType::Int:
      if (!wanted.list) return v.as.integer;
      return v.kind == TAEDA_VALUE_INT ? Shape{v.as.integer} : Shape(IntSpan(v.as.integers, count_of(v, op, name)));
    case ArgumentType::Float:
      if (wanted.list) return floats_of(v, count_of(v, op, name));
      return number(v).to_double();
    case ArgumentType::Bool: return v.as.integer != 0;
    case ArgumentType::Str: return std::string(v.as.text ? v.as.text : "", count_of(v, op, name));
    case ArgumentType::DType:
      check(v.as.integer >= 0 && v.as.integer < kDTypeCount && !taeda::name(DType(v.as.integer)).empty(),
            ErrorKind::Value, op, ": argument '", name, "': there is no element type number ", v.as.integer);
      return DType(v.as.integer);
    case ArgumentType::Device: return from_c(v.as.device);
    case ArgumentType::Generator:
      return v.as.generator ? Value(Generator::share(reinterpret_cast<GeneratorImpl*>(v.as.generator))) : Value();
  }
  return {};
}

// --- results ---

namespace {

/// In `reserved` of a list that `value_tensors` made. Another one's array is not ours to free.
constexpr uint32_t kMadeHere = 0x7465616d;

taeda_value make_list(const void* handles, size_t count) {
  auto* items = static_cast<taeda_tensor*>(std::malloc(std::max<size_t>(count, 1) * sizeof(taeda_tensor)));
  if (!items) throw std::bad_alloc();
  if (count) std::memcpy(items, handles, count * sizeof(taeda_tensor));
  taeda_value out = of_list(TAEDA_VALUE_TENSORS, items, count);
  out.reserved = kMadeHere;
  return out;
}

/// Takes handles over into a vector.
std::vector<Tensor> adopt_list(taeda_value& v) {
  const taeda_value list = std::exchange(v, none());
  std::vector<Tensor> out;
  out.reserve(size_t(list.count));
  for (int64_t i = 0; i < list.count; ++i)
    out.emplace_back(Ref<TensorImpl>::adopt(reinterpret_cast<TensorImpl*>(list.as.tensors[i])));
  std::free(const_cast<taeda_tensor*>(list.as.tensors));
  return out;
}

taeda_value give_list(std::vector<Tensor> items) {
  const taeda_value out = make_list(items.data(), items.size());
  for (Tensor& t : items)
    if (t.defined()) (void)t.ref().release();
  return out;
}

}  // namespace

bool made_here(const taeda_value& list) noexcept { return list.reserved == kMadeHere; }

void release_result(taeda_value& v) noexcept {
  if (v.kind == TAEDA_VALUE_TENSOR) tensor_release(v.as.tensor);
  else if (v.kind == TAEDA_VALUE_TENSORS && made_here(v)) adopt_list(v);
  v = none();
}

int32_t value_tensors(const taeda_tensor* tensors, int64_t count, taeda_value* result) {
  return guarded([&] {
    check(result && count >= 0 && (tensors || !count), ErrorKind::Value,
          "value_tensors: the place of the result or the list is null, or its length negative");
    *result = make_list(tensors, size_t(count));
  });
}
void value_release(taeda_value* result) {
  if (result) release_result(*result);
}

void wrong_result(const OpEntry& op, const taeda_value& found, const char* expected) {
  fail(ErrorKind::Type, op.name, ": the plug-in's function must store ", expected, " as its result, found ",
       kind_name(found.kind));
}

std::vector<Tensor> take_list(const OpEntry& op, taeda_value& v) {
  if (v.kind != TAEDA_VALUE_TENSORS || !made_here(v)) wrong_result(op, v, "a list that value_tensors made");
  return adopt_list(v);
}

Value take(const OpEntry& op, taeda_value& v) {
  switch (v.kind) {
    case TAEDA_VALUE_NONE: return {};
    case TAEDA_VALUE_TENSOR: return take_tensor(op, v);
    case TAEDA_VALUE_TENSORS: return take_list(op, v);
    case TAEDA_VALUE_BOOL: return v.as.integer != 0;
    case TAEDA_VALUE_INT: return v.as.integer;
    case TAEDA_VALUE_UINT:
    case TAEDA_VALUE_FLOAT:
    case TAEDA_VALUE_COMPLEX: return number(v);
    default: wrong_result(op, v, "a tensor, a list of tensors or a number");
  }
}

taeda_value give(Value value, const OpEntry& op) {
  if (auto* t = std::get_if<Tensor>(&value)) {
    taeda_value out = pack(*t);
    if (t->defined()) (void)t->ref().release();
    return out;
  }
  if (auto* list = std::get_if<std::vector<Tensor>>(&value)) return give_list(std::move(*list));
  return std::visit(
      [&]<class T>(const T& held) -> taeda_value {
        if constexpr (std::is_same_v<T, std::monostate>) return none();
        else if constexpr (std::is_same_v<T, Scalar> || std::is_same_v<T, int64_t> || std::is_same_v<T, bool> ||
                           std::is_same_v<T, double>)
          return pack(held);
        else fail(ErrorKind::NotImplemented, op.name, ": a result of this kind cannot be given to C");
      },
      value);
}

}  // namespace taeda::abi
