// All operators of the backend, and how a call comes to their functions.
#include <exception>
#include <map>
#include <string>

#include "ops/elementwise.h"
#include "ops/recurrent_layers.h"

namespace taeda::cuda {

const taeda_api* api = nullptr;
int32_t backend_number = 0;

const std::vector<Operation>&attention_operations(), &bag_operations(), &batch_norm_operations(),
    &convolution_operations(), &ctc_operations(), &distance_operations(), &factor_operations(), &index_operations(),
    &loss_operations(), &matrix_operations(), &named_operations(), &norm_operations(), &pair_operations(),
    &point_operations(), &pool_operations(), &recurrent_layer_operations(), &recurrent_operations(),
    &random_operations(), &reduce_operations(), &resize_operations(), &row_operations(), &transform_operations(),
    &triangular_operations(), &window_operations();

namespace {

/// What is registered with an operator, for the life of the process.
struct Entry {
  const char* name;
  const Row* row;
  Function function;
  int32_t number;
};
const std::vector<const std::vector<Operation>*>& operation_tables() {
  static const std::vector<const std::vector<Operation>*> tables{&attention_operations(),
                                                                 &bag_operations(),
                                                                 &batch_norm_operations(),
                                                                 &convolution_operations(),
                                                                 &ctc_operations(),
                                                                 &distance_operations(),
                                                                 &factor_operations(),
                                                                 &index_operations(),
                                                                 &loss_operations(),
                                                                 &matrix_operations(),
                                                                 &named_operations(),
                                                                 &norm_operations(),
                                                                 &pair_operations(),
                                                                 &point_operations(),
                                                                 &pool_operations(),
                                                                 &random_operations(),
                                                                 &recurrent_layer_operations(),
                                                                 &recurrent_operations(),
                                                                 &reduce_operations(),
                                                                 &resize_operations(),
                                                                 &row_operations(),
                                                                 &transform_operations(),
                                                                 &triangular_operations(),
                                                                 &window_operations()};
  return tables;
}
std::vector<Entry>& entries() {
  static std::vector<Entry> all = [] {
    std::vector<Entry> made;
    const auto add = [&](const char* name, const Row* row, Function function) {
      made.push_back({name, row, function, int32_t(made.size())});
    };
    for (const LineOperation& o : line_operations()) add(o.name, o.row, o.function);
    for (const auto* table : operation_tables())
      for (const Operation& o : *table) add(o.name, nullptr, o.function);
    return made;
  }();
  return all;
}

/// Nothing may be thrown across the border.
int32_t run(void* context, const taeda_call* given) noexcept {
  const Entry& entry = *static_cast<const Entry*>(context);
  try {
    const Call call(entry.name, entry.number, *given);
    if (entry.row) run_plain_line(call, *entry.row);
    else entry.function(call);
    return TAEDA_OK;
  } catch (const Failure& failure) {
    return failure.status;
  } catch (const std::exception& error) {
    return api->set_error(TAEDA_E_MEMORY, (std::string(entry.name) + ": " + error.what()).c_str());
  }
}

}  // namespace

const char* operation_name(int32_t number) { return entries()[size_t(number)].name; }

bool record_operation(const char* name, const taeda_call& given, Recorder& recorder) {
  static const auto* const by_name = [] {
    auto* const made = new std::map<std::string_view, LineOperation>;
    for (const LineOperation& o : line_operations())
      if (std::string_view(o.name).back() != '_') made->emplace(o.name, o);
    for (const Operation& o : reduce_operations()) made->emplace(o.name, LineOperation{o.name, nullptr, o.function});
    return made;
  }();
  const auto found = by_name->find(name);
  if (found == by_name->end()) return false;
  const LineOperation& operation = found->second;
  const Call call(operation.name, given, recorder);
  if (operation.row) run_plain_line(call, *operation.row);
  else operation.function(call);
  return true;
}

int32_t register_operations() {
  if (const int32_t status = define_recurrent_layers(); status != TAEDA_OK) return status;
  for (Entry& entry : entries()) {
    const int32_t status = api->kernel_register(entry.name, backend_number, run, &entry, "taeda-tensor-cuda", nullptr);
    if (status != TAEDA_OK) return status;
  }
  return register_recurrent_composites();
}

}  // namespace taeda::cuda
