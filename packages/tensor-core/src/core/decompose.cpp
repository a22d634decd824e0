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
  bool on_host = false, as_given = false;
};
using Table = std::map<std::string, Entry, std::less<>>;
Table& table() {
  static auto* instance = new Table;
  return *instance;
}
[[maybe_unused]] const auto* const made_at_load = &table();

/// Halves are computed with in float32, so that several steps round as one does.
Value widened(Value value) {
  if (auto* t = std::get_if<Tensor>(&value)) *t = in_float32(*t);
  if (auto* list = std::get_if<std::vector<Tensor>>(&value)) *list = in_float32(TensorList(*list));
  if (auto* dtype = std::get_if<DType>(&value); dtype && is_half(*dtype)) *dtype = DType::Float32;
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
  const Schema& schema = schema_of(op);
  const size_t outputs = op.kind == Kind::Structured ? arguments.size() - schema.arguments.size() : 0;
  Values inputs(std::make_move_iterator(arguments.begin() + std::ptrdiff_t(outputs)),
                std::make_move_iterator(arguments.end()));
  const DType dtype = dtype_of(inputs);
  // What is written to is handed on as it is; an operator without results rounds with what it writes.
  const Entry& entry = table().find(op.name)->second;
  for (size_t i = 0; i < inputs.size() && !schema.results.empty() && !entry.as_given; ++i)
    if (!schema.arguments[i].written) inputs[i] = widened(std::move(inputs[i]));
  Values results = entry.boxed(std::move(inputs));
  for (size_t i = 0; i < outputs; ++i) stub::copy_into(std::get<Tensor>(arguments[i]), std::get<Tensor>(results[i]));
  if (outputs) return {};
  for (Value& r : results)
    if (auto* t = std::get_if<Tensor>(&r)) *t = narrowed(*t, dtype);
  return results;
}

}  // namespace

Tensor narrowed(const Tensor& t, DType first) {
  return t.defined() && is_floating(first) && is_floating(t.dtype()) && t.dtype() != first ? ops::to_dtype(t, first)
                                                                                           : t;
}

void add_decomposition(const char* op, Decomposition decomposition, void* typed) {
  table().emplace(op, Entry{decomposition, typed});
}
void note_on_host(const char* op) { table().at(op).on_host = true; }
void note_as_given(const char* op) { table().at(op).as_given = true; }
bool is_in_parts(std::string_view op) {
  const auto found = table().find(op);
  return found != table().end() && !found->second.on_host;
}
Decomposition decomposition_of(std::string_view op) {
  const auto found = table().find(op);
  return found == table().end() ? nullptr : found->second.boxed;
}
void* typed_decomposition(std::string_view op) {
  const auto found = table().find(op);
  check(found != table().end() && found->second.typed, ErrorKind::Runtime, op,
        ": there is no decomposition of this operator to differentiate");
  return found->second.typed;
}

const BoxedFn* decomposed_kernel(const OpEntry& op) {
  static auto* kernel = new BoxedFn(run);
  return decomposition_of(op.name) ? kernel : nullptr;
}

}  // namespace taeda
