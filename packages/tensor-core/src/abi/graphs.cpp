// Offers graphs of calls to a plug-in's backend.
#include "taeda/graphs.h"

#include <algorithm>
#include <deque>

#include "abi/bridge.h"
#include "taeda/backend.h"
#include "taeda/stream.h"

namespace taeda {
namespace {

taeda_tensor handle(const Tensor& t) { return t.defined() ? reinterpret_cast<taeda_tensor>(t.impl()) : nullptr; }
std::vector<taeda_tensor> handles(const std::vector<Tensor>& tensors) {
  std::vector<taeda_tensor> out;
  for (const Tensor& t : tensors) out.push_back(handle(t));
  return out;
}

class PluginExecutable final : public Executable {
 public:
  PluginExecutable(const taeda_backend& backend, std::string name, Device device, taeda_executable made,
                   const Graph& graph)
      : backend_(backend), name_(std::move(name)), device_(device), made_(made), outputs_(graph.outputs.size()) {
    for (const Tensor& t : graph.inputs) wanted_.push_back({Shape(t.sizes()), t.dtype()});
  }
  ~PluginExecutable() override { backend_.graph_release(backend_.context, made_); }

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) override {
    check(inputs.size() == wanted_.size(), ErrorKind::Value, "graph: expected ", wanted_.size(), " inputs, got ",
          inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto& [sizes, dtype] = wanted_[i];
      const Tensor& t = inputs[i];
      if (t.device() != device_ || t.dtype() != dtype || !std::ranges::equal(t.sizes(), IntSpan(sizes)))
        fail(ErrorKind::Value, "graph: input ", i, " must be of shape ", shape_text(sizes), " and dtype ", name(dtype),
             " on device '", to_string(device_), "'");
    }
    const std::vector<taeda_tensor> given = handles(inputs);
    std::vector<taeda_tensor> found(outputs_, nullptr);
    const int32_t status =
        backend_.graph_run(backend_.context, made_, given.data(), found.data(), current_stream_handle(device_));
    if (status != TAEDA_OK) abi::throw_error(status, name_ + ": graph_run");
    abi::settle_errors();
    std::vector<Tensor> out;
    for (taeda_tensor each : found) {
      check(each != nullptr, ErrorKind::Runtime, name_, ": graph_run gave TAEDA_OK but null as an output");
      out.push_back(Tensor(Ref<TensorImpl>::adopt(reinterpret_cast<TensorImpl*>(each))));
    }
    return out;
  }

 private:
  const taeda_backend& backend_;
  std::string name_;
  Device device_;
  taeda_executable made_;
  size_t outputs_;
  std::vector<std::pair<Shape, DType>> wanted_;
};

}  // namespace

std::unique_ptr<Executable> compile_graph(Device device, const Graph& graph, std::string& why) {
  Backend& owner = backend(device.backend);
  const taeda_backend* plugin = owner.plugin();
  if (!plugin || !plugin->graph_compile || !plugin->graph_run || !plugin->graph_release) return nullptr;
  std::deque<abi::Packed> packed;
  std::vector<std::vector<taeda_tensor>> results;
  std::vector<taeda_graph_node> nodes;
  for (const GraphCall& call : graph.calls) {
    const abi::Packed& arguments = packed.emplace_back(call.arguments);
    results.push_back(handles(call.results));
    nodes.push_back({abi::handle(*call.op), arguments.data(), results.back().data(), uint32_t(arguments.size()),
                     uint32_t(call.results.size())});
  }
  const std::vector<taeda_tensor> inputs = handles(graph.inputs), outputs = handles(graph.outputs);
  const taeda_graph offered{.size = sizeof offered,
                            .nodes = nodes.data(),
                            .inputs = inputs.data(),
                            .outputs = outputs.data(),
                            .node_count = uint32_t(nodes.size()),
                            .input_count = uint32_t(inputs.size()),
                            .output_count = uint32_t(outputs.size()),
                            .reserved = 0};
  taeda_executable made = nullptr;
  const uint32_t before = abi::errors_noted;
  const int32_t status = plugin->graph_compile(plugin->context, device.index, &offered, &made);
  if (status == TAEDA_DECLINED) {
    if (abi::errors_noted != before) why = abi::last_error();
    abi::settle_errors();
    return nullptr;
  }
  if (status != TAEDA_OK) abi::throw_error(status, owner.name() + ": graph_compile");
  abi::settle_errors();
  check(made != nullptr, ErrorKind::Runtime, owner.name(), ": graph_compile gave TAEDA_OK but null as its result");
  return std::make_unique<PluginExecutable>(*plugin, owner.name(), device, made, graph);
}

}  // namespace taeda
