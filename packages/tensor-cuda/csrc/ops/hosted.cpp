// Operators for which there is no way on the device.
#include "ops/hosted.h"

#include <array>

namespace taeda::cuda {
namespace {

taeda_value of_tensor(const Tensor& t) {
  taeda_value value{};
  value.kind = TAEDA_VALUE_TENSOR;
  value.as.tensor = t.handle();
  return value;
}
Tensor on_host(const Call& call, const Tensor& t) {
  taeda_value host{};
  host.kind = TAEDA_VALUE_DEVICE;
  return call.other("to_device", std::array{of_tensor(t), host});
}

}  // namespace

void compute_on_host(const Call& call, int outputs, int left_out) {
  std::vector<Tensor> operands;
  std::vector<taeda_value> arguments;
  for (int i = 0; i < call.count(); ++i) {
    arguments.push_back(i == left_out ? taeda_value{} : call.value(i));
    if (const Tensor given = call.tensor(i)) arguments.back() = of_tensor(operands.emplace_back(on_host(call, given)));
  }
  taeda_op op = nullptr;
  passed(api->op_find(call.name(), &op));
  std::vector<taeda_value> results(static_cast<size_t>(outputs));
  passed(api->op_call(op, arguments.data(), uint32_t(arguments.size()), results.data(), uint32_t(outputs)));
  std::vector<Tensor> found;
  for (const taeda_value& result : results)
    found.emplace_back(result.kind == TAEDA_VALUE_TENSOR ? result.as.tensor : nullptr, true);
  for (int i = 0; i < outputs; ++i) {
    const Tensor &result = found[size_t(i)], out = call.output(i);
    if (!result || result.numel() == 0) continue;
    std::vector<char> bytes(size_t(result.numel()) * size_t(result.item_size()));
    passed(api->tensor_to_host(result.handle(), bytes.data(), bytes.size()));
    passed(api->tensor_from_host(out.handle(), bytes.data(), bytes.size()));
  }
}

}  // namespace taeda::cuda
