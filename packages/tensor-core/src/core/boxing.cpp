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

}  // namespace

Tensor Unboxed<const Tensor&>::get(const Value& v) { return is_none(v) ? Tensor() : expect<Tensor>(v, "a tensor"); }
std::vector<Tensor> Unboxed<TensorList>::get(const Value& v) {
  if (empty_list(v)) return {};
  if (auto* items = std::get_if<std::vector<std::optional<Tensor>>>(&v)) {
    std::vector<Tensor> out;
    for (const auto& item : *items) out.push_back(item.value_or(Tensor()));
    return out;
  }
  return expect<std::vector<Tensor>>(v, "a list of tensors");
}
Scalar Unboxed<const Scalar&>::get(const Value& v) {
  if (auto* i = std::get_if<int64_t>(&v)) return *i;
  if (auto* b = std::get_if<bool>(&v)) return *b;
  if (auto* f = std::get_if<double>(&v)) return *f;
  return expect<Scalar>(v, "a number");
}
int64_t Unboxed<int64_t>::get(const Value& v) {
  if (auto* s = std::get_if<Scalar>(&v); s && s->is_integral()) return s->to<int64_t>();
  return expect<int64_t>(v, "an int");
}
bool Unboxed<bool>::get(const Value& v) { return expect<bool>(v, "a bool"); }
double Unboxed<double>::get(const Value& v) {
  if (auto* i = std::get_if<int64_t>(&v)) return double(*i);
  if (auto* s = std::get_if<Scalar>(&v); s && !s->is_complex()) return s->to_double();
  return expect<double>(v, "a float");
}
Shape Unboxed<IntSpan>::get(const Value& v) {
  if (empty_list(v)) return {};
  if (auto* i = std::get_if<int64_t>(&v)) return Shape{*i};
  return expect<Shape>(v, "a list of ints");
}
std::vector<double> Unboxed<std::span<const double>>::get(const Value& v) {
  return empty_list(v) ? std::vector<double>() : expect<std::vector<double>>(v, "a list of floats");
}
std::string Unboxed<std::string_view>::get(const Value& v) { return expect<std::string>(v, "a string"); }
DType Unboxed<DType>::get(const Value& v) { return expect<DType>(v, "a dtype"); }
Device Unboxed<Device>::get(const Value& v) { return expect<Device>(v, "a device"); }
Generator Unboxed<const Generator&>::get(const Value& v) {
  return is_none(v) ? Generator() : expect<Generator>(v, "a generator");
}

void check_count(const Values& values, size_t expected, const char* what) {
  check(values.size() == expected, ErrorKind::Type, "boxed call: expected ", expected, " ", what, ", got ",
        values.size());
}
const Value& first_result(const Values& values) {
  check(!values.empty(), ErrorKind::Type, "boxed call: expected a result, got none");
  return values[0];
}

}  // namespace taeda
