// Element-wise operators of batches at a level, which need no rule in Python: operands of fewer dimensions get sizes of
// 1 behind the batch's.
#include "python/levels.h"
#include "taeda/ops/shape.h"

namespace taeda::py {
namespace {

/// The tensor of all the batch; null for what does not depend on it.
const Tensor* whole_of(const Tensor& example, const PythonLevel& level) {
  const auto* found = payload_of<PythonPayload>(example, level);
  return found && found->object && is_tensor(found->object) ? &tensor_of(found->object) : nullptr;
}

/// What the operands of a call are together.
struct Operands {
  int64_t dims = 0;
  bool batched = false, plain = true;

  Operands(const Values& arguments, const PythonLevel& level) {
    std::optional<DType> type;
    bool several = false, numbers = false;  // dtypes; examples without a dimension
    for (const Value& value : arguments) {
      plain &= !std::holds_alternative<std::vector<Tensor>>(value) &&
               !std::holds_alternative<std::vector<std::optional<Tensor>>>(value);
      const auto* operand = std::get_if<Tensor>(&value);
      if (!operand || !operand->defined()) continue;
      dims = std::max(dims, operand->dim());
      if (operand->is_wrapped_number()) continue;
      several |= type && *type != operand->dtype();
      type = operand->dtype();
      if (!whole_of(*operand, level)) continue;
      batched = true;
      numbers |= operand->dim() == 0;
    }
    // Tensors without dimensions promote less than those with dimensions do, which is what they are in a batch.
    plain &= !(several && numbers);
  }
};

Tensor padded(const Tensor& whole, int64_t dims) {
  const int64_t missing = dims - (whole.dim() - 1);
  if (missing <= 0) return whole;
  Shape sizes{whole.size(0)};
  for (int64_t i = 0; i < missing; ++i) sizes.push_back(1);
  for (int64_t d = 1; d < whole.dim(); ++d) sizes.push_back(whole.size(d));
  return ops::reshape(whole, sizes);
}

}  // namespace

std::optional<Values> call_element_wise(PythonLevel& level, const OpEntry& op, const Values& arguments) {
  const Operands operands(arguments, level);
  if (!operands.plain) return std::nullopt;
  Values given = arguments;
  if (operands.batched)
    for (Value& value : given)
      if (auto* operand = std::get_if<Tensor>(&value); operand && operand->defined())
        if (const Tensor* whole = whole_of(*operand, level)) *operand = padded(*whole, operands.dims);
  Values results = call_operator(op, std::move(given));
  if (operands.batched)
    for (Value& value : results) {
      const Tensor whole = std::get<Tensor>(value);
      const Object object = own(wrap(whole));
      const Object made = carrier_of(level, object.get(), whole.sizes().subspan(1), whole.dtype(), whole.device());
      value = tensor_of(made.get());
    }
  return results;
}

}  // namespace taeda::py
