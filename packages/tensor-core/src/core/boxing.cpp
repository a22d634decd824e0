// Between single C++ arguments and boxed Values.
#include "taeda/boxing.h"

namespace taeda {

namespace {

/// Nearly all calls have room in the first allocation.
constexpr size_t kUsual = 8;

template <class... Item>
void append(Values& to, Item&&... item) {
  if (to.capacity() == 0) to.reserve(kUsual);
  to.emplace_back(std::forward<Item>(item)...);
}

}  // namespace

void push(Values& to, const Tensor& v) { v.defined() ? append(to, v) : append(to); }
void push(Values& to, TensorList v) { append(to, std::vector<Tensor>(v.begin(), v.end())); }
void push(Values& to, const std::vector<Tensor>& v) { append(to, v); }
void push(Values& to, const Scalar& v) { append(to, v); }
void push(Values& to, int64_t v) { append(to, v); }
void push(Values& to, bool v) { append(to, v); }
void push(Values& to, double v) { append(to, v); }
void push(Values& to, IntSpan v) { append(to, Shape(v)); }
void push(Values& to, std::span<const double> v) { append(to, std::vector<double>(v.begin(), v.end())); }
void push(Values& to, std::string_view v) { append(to, std::string(v)); }
void push(Values& to, DType v) { append(to, v); }
void push(Values& to, Device v) { append(to, v); }
void push(Values& to, const Generator& v) { v ? append(to, v) : append(to); }
void push_none(Values& to) { append(to); }

namespace {

template <class T>
const T& expect(const Value& v, const char* what) {
  const T* found = std::get_if<T>(&v);
  check(found != nullptr, ErrorKind::Type, "boxed call: expected ", what);
  return *found;
}
bool is_none(const Value& v) { return std::holds_alternative<std::monostate>(v); }
/// A list without items does not tell of what it is one.
bool empty_list(const Value& v) {
  return std::visit(
      []<class T>(const T& held) {
        if constexpr (requires { held.begin(); } && !std::is_same_v<T, std::string>) return held.begin() == held.end();
        else return false;
      },
      v);
}

Shape shape_of(const Value& v) {
  if (empty_list(v)) return {};
  if (auto* i = std::get_if<int64_t>(&v)) return Shape{*i};
  return expect<Shape>(v, "a list of ints");
}
std::vector<double> doubles_of(const Value& v) {
  return empty_list(v) ? std::vector<double>() : expect<std::vector<double>>(v, "a list of floats");
}
double double_of(const Value& v) {
  if (auto* i = std::get_if<int64_t>(&v)) return double(*i);
  if (auto* s = std::get_if<Scalar>(&v); s && !s->is_complex()) return s->to_double();
  return expect<double>(v, "a float");
}

/// A value that does not hold what it should yet.
Value made_of(const Value& v, uint8_t kind) {
  switch (kind & ~kMayBeNone) {
    case alternative_of<Tensor>(): return taken<Tensor>(v);
    case alternative_of<std::vector<Tensor>>(): return taken<std::vector<Tensor>>(v);
    case alternative_of<Scalar>(): return taken<Scalar>(v);
    case alternative_of<int64_t>(): return taken<int64_t>(v);
    case alternative_of<bool>(): return taken<bool>(v);
    case alternative_of<double>(): return double_of(v);
    case alternative_of<Shape>(): return shape_of(v);
    case alternative_of<std::vector<double>>(): return doubles_of(v);
    case alternative_of<std::string>(): return expect<std::string>(v, "a string");
    case alternative_of<DType>(): return expect<DType>(v, "a dtype");
    case alternative_of<Device>(): return expect<Device>(v, "a device");
    default: return is_none(v) ? Generator() : expect<Generator>(v, "a generator");
  }
}

}  // namespace

template <>
Tensor taken(const Value& v) {
  return is_none(v) ? Tensor() : expect<Tensor>(v, "a tensor");
}
template <>
std::vector<Tensor> taken(const Value& v) {
  if (empty_list(v)) return {};
  if (auto* items = std::get_if<std::vector<std::optional<Tensor>>>(&v)) {
    std::vector<Tensor> out;
    for (const auto& item : *items) out.push_back(item.value_or(Tensor()));
    return out;
  }
  return expect<std::vector<Tensor>>(v, "a list of tensors");
}
template <>
Scalar taken(const Value& v) {
  if (auto* i = std::get_if<int64_t>(&v)) return *i;
  if (auto* b = std::get_if<bool>(&v)) return *b;
  if (auto* f = std::get_if<double>(&v)) return *f;
  return expect<Scalar>(v, "a number");
}
template <>
int64_t taken(const Value& v) {
  if (auto* s = std::get_if<Scalar>(&v); s && s->is_integral()) return s->to<int64_t>();
  return expect<int64_t>(v, "an int");
}
template <>
bool taken(const Value& v) {
  return expect<bool>(v, "a bool");
}

void fit(Values& arguments, std::span<const uint8_t> kinds) {
  check_count(arguments, kinds.size(), "arguments");
  for (size_t i = 0; i < kinds.size(); ++i) {
    Value& v = arguments[i];
    if (v.index() == size_t(kinds[i] & ~kMayBeNone) || (kinds[i] & kMayBeNone && is_none(v))) continue;
    v = made_of(v, kinds[i]);
  }
}

void check_count(const Values& values, size_t expected, const char* what) {
  check(values.size() == expected, ErrorKind::Type, "boxed call: expected ", expected, " ", what, ", got ",
        values.size());
}
const Value& first_result(const Values& values) {
  check(!values.empty(), ErrorKind::Type, "boxed call: expected a result, got none");
  return values[0];
}

void enter_form(OpEntry& entry, Declared form, Adapters adapters) {
  entry.name = form.name;
  entry.schema = form.schema;
  entry.form = form.form;
  entry.kind = form.kind;
  entry.core = form.core;
  entry.kernels = form.kernels;
  entry.call_boxed = form.call_boxed;
  entry.compute = adapters.compute;
  entry.go_on_boxed = adapters.go_on_boxed;
  entry.layers[slot_of(Layer::Observer)] = adapters.observed;
  entry.boxed_layer_adapter = adapters.boxed_layer;
  register_op(&entry);
}

}  // namespace taeda
