// What C functions store as results is checked before it is taken over.
#include <algorithm>

#include "abi/bridge.h"

namespace taeda::abi {
namespace {

[[noreturn]] void wrong(const Stored& stored, size_t i, const char* found) {
  const SchemaResult& wanted = stored.schema.results[i];
  const std::string which = stored.results.size() == 1 ? "its result" : "result '" + wanted.name + "'";
  fail(ErrorKind::Type, stored.op.name, ": the plug-in's function must store ",
       wanted.list                           ? "a list that value_tensors made"
       : wanted.type == ArgumentType::Tensor ? "a tensor"
                                             : "a value",
       " as ", which, ", found ", found, " (", stored.who, ")");
}

int64_t mask_of(const Stored& stored) {
  const auto& arguments = stored.schema.arguments;
  for (size_t i = 0; i < arguments.size() && i < stored.arguments.size(); ++i)
    if (arguments[i].name == "output_mask") return stored.arguments[i].as.integer;
  return 0;
}

size_t times(std::span<const taeda_value> values, taeda_tensor handle) {
  size_t count = 0;
  for (const taeda_value& v : values) {
    count += v.kind == TAEDA_VALUE_TENSOR && v.as.tensor == handle;
    if (v.kind == TAEDA_VALUE_TENSORS) count += size_t(std::count(v.as.tensors, v.as.tensors + v.count, handle));
  }
  return count;
}

/// Each place of a result needs a reference beside those of the arguments. Others may hide a missing one, never feign
/// it.
void check_retained(const Stored& stored, size_t i) {
  const taeda_tensor handle = stored.results[i].as.tensor;
  const size_t given = times(stored.arguments, handle);
  if (given == 0) [[likely]]
    return;
  const size_t held = stored.copied ? given : 1;
  if (reinterpret_cast<const TensorImpl*>(handle)->use_count() >= held + times(stored.results, handle)) return;
  for (taeda_value& v : stored.results)
    if (v.kind == TAEDA_VALUE_TENSOR && v.as.tensor == handle) v = none();  // not ours to release
  wrong(stored, i, "an argument without a reference of its own; call tensor_retain before storing it");
}

}  // namespace

void check_stored(const Stored& stored) {
  for (size_t i = 0; i < stored.results.size(); ++i) {
    taeda_value& v = stored.results[i];
    const SchemaResult& wanted = stored.schema.results[i];
    const bool tensor = wanted.type == ArgumentType::Tensor && !wanted.list;
    if (v.kind == TAEDA_VALUE_NONE) {
      if (!may_be_absent(stored.schema, i, mask_of(stored))) wrong(stored, i, kind_name(v.kind));
    } else if (tensor && v.kind != TAEDA_VALUE_TENSOR) {
      wrong(stored, i, kind_name(v.kind));
    } else if (v.kind == TAEDA_VALUE_TENSOR) {
      if (!v.as.tensor) {
        v = none();
        wrong(stored, i, "a null handle");
      }
      check_retained(stored, i);
    }
  }
}

void check_direct(const Stored& stored, Device device) {
  check_stored(stored);
  std::vector<Tensor> arguments(stored.arguments.size()), results(stored.results.size());
  for (size_t i = 0; i < arguments.size(); ++i)
    if (stored.arguments[i].kind == TAEDA_VALUE_TENSOR) arguments[i] = borrowed(stored.arguments[i].as.tensor);
  for (size_t i = 0; i < results.size(); ++i)
    if (stored.results[i].kind == TAEDA_VALUE_TENSOR) results[i] = borrowed(stored.results[i].as.tensor);
  check_kernel_results({stored.op, stored.schema, stored.who, arguments}, device, results);
}

}  // namespace taeda::abi
