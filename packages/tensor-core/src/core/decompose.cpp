// The table of decompositions, and boxed kernels made of them.
#include "taeda/decompose.h"

#include <map>

#include "core/decompose.h"
#include "taeda/library.h"
#include "taeda/ops/cast.h"
#include "taeda/stub.h"

namespace taeda {
namespace {

struct Entry {
  Decomposition boxed;
  void* typed;
};
using Table = std::map<std::string, Entry, std::less<>>;
Table& table() {
  static auto* instance = new Table;
  return *instance;
}

bool is_half(const Tensor& t) { return t.defined() && (t.dtype() == DType::Float16 || t.dtype() == DType::BFloat16); }

Value widened(Value value) {
  if (auto* t = std::get_if<Tensor>(&value)) *t = taeda::widened(*t);
  if (auto* list = std::get_if<std::vector<Tensor>>(&value))
    for (Tensor& t : *list) t = taeda::widened(t);
  if (auto* dtype = std::get_if<DType>(&value); dtype && (*dtype == DType::Float16 || *dtype == DType::BFloat16))
    *dtype = DType::Float32;
  return value;
}

/// Dtype of the first tensor: that of results which the core has not made.
DType dtype_of(const Values& inputs) {
  for (const Value& v : inputs)
    if (auto* t = std::get_if<Tensor>(&v); t && t->defined()) return t->dtype();
  return DType::Float32;
}

Values run(const OpEntry& op, KeySet, Values arguments) {
  const Below below(Layer::Autograd);
  const size_t outputs = op.kind == Kind::Structured ? arguments.size() - boxed_schema(op).arguments.size() : 0;
  Values inputs(std::make_move_iterator(arguments.begin() + std::ptrdiff_t(outputs)),
                std::make_move_iterator(arguments.end()));
  const bool writes = std::string_view(op.name).ends_with("_");
  const DType dtype = dtype_of(inputs);
  // Running statistics are written to, so they are handed on as they are.
  const size_t kept = std::string_view(op.name) == "native_batch_norm" ? 3 : inputs.size();
  for (size_t i = 0; i < inputs.size() && !writes; ++i)
    if (i != kept && i != kept + 1) inputs[i] = widened(std::move(inputs[i]));
  Values results = decomposition_of(op.name)(std::move(inputs));
  for (size_t i = 0; i < outputs; ++i) stub::copy_into(std::get<Tensor>(arguments[i]), std::get<Tensor>(results[i]));
  if (outputs) return {};
  for (Value& r : results)
    if (auto* t = std::get_if<Tensor>(&r)) *t = narrowed(*t, dtype);
  return results;
}

}  // namespace

Tensor widened(const Tensor& t) { return is_half(t) ? ops::to_dtype(t, DType::Float32) : t; }
Tensor narrowed(const Tensor& t, DType first) {
  return t.defined() && is_floating(first) && is_floating(t.dtype()) && t.dtype() != first ? ops::to_dtype(t, first) : t;
}

void add_decomposition(const char* op, Decomposition decomposition, void* typed) { table().emplace(op, Entry{decomposition, typed}); }
Decomposition decomposition_of(std::string_view op) {
  const auto found = table().find(op);
  return found == table().end() ? nullptr : found->second.boxed;
}
void* typed_decomposition(std::string_view op) {
  const auto found = table().find(op);
  check(found != table().end() && found->second.typed, ErrorKind::Runtime, op, ": there is no decomposition of this operator to differentiate");
  return found->second.typed;
}

const BoxedFn* decomposed_kernel(const OpEntry& op) {
  static auto* kernel = new BoxedFn(run);
  return decomposition_of(op.name) ? kernel : nullptr;
}

}  // namespace taeda
