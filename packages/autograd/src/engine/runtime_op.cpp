// Gradients of operators made at run time: one node for all of them, which asks the operator's derivative callback.
#include "taeda/autograd/layer.h"
#include "taeda/library.h"

namespace taeda::autograd {
namespace {

/// Calls `visit(tensor)` for every tensor of an argument, undefined ones included, so that edges keep their numbers.
template <class V, class Visit>
void each_tensor(V& value, const Visit& visit) {
  if (auto* t = std::get_if<Tensor>(&value)) {
    visit(*t);
  } else if (auto* list = std::get_if<std::vector<Tensor>>(&value)) {
    for (auto& item : *list) visit(item);
  } else if (auto* some = std::get_if<std::vector<std::optional<Tensor>>>(&value)) {
    for (auto& item : *some) {
      Tensor held = item.value_or(Tensor());
      visit(held);
      if constexpr (!std::is_const_v<V>) item = held;
    }
  }
}

struct RuntimeBackward final : DynamicNode {
  RuntimeOp& op;
  std::string text;
  Values arguments;  // tensors taken out: they are in `inputs`
  std::vector<SavedTensor> inputs, results;
  std::shared_ptr<const RuntimeFunctions> functions;

  explicit RuntimeBackward(RuntimeOp& made_by)
      : op(made_by), text(made_by.parsed.name + "Backward"), functions(made_by.functions()) {}
  const char* name() const override { return text.c_str(); }
  void each_saved(SavedVisitor& visit) override {
    visit("arguments", inputs);
    visit("results", results);
  }

  /// What the call writes to is kept after it, as the derivative sees it.
  void save_written(const Values& given) {
    size_t at = 0;
    for (size_t i = 0; i < given.size(); ++i)
      each_tensor(given[i], [&](const Tensor& t) {
        if (writes_to(op.parsed, i, given)) inputs[at].save(t, this, "arguments");
        ++at;
      });
  }

  void save(const Values& given) {
    size_t count = 0;
    for (const Value& value : given) each_tensor(value, [&](const Tensor&) { ++count; });
    reserve(count, op.parsed.results.size());
    inputs.resize(count);
    arguments = given;
    size_t at = 0;
    for (size_t i = 0; i < given.size(); ++i) {
      const bool kept = !writes_to(op.parsed, i, given);
      each_tensor(given[i], [&](const Tensor& t) {
        edges[at] = collect_edge(t);
        if (kept) inputs[at].save(t, this, "arguments");
        ++at;
      });
    }
    for (Value& value : arguments) each_tensor(value, [](Tensor& t) { t = Tensor(); });
  }

  Values unpacked() {
    Values out = arguments;
    size_t at = 0;
    for (Value& value : out) each_tensor(value, [&](Tensor& t) { t = inputs[at++].unpack(this, "arguments"); });
    return out;
  }

  void apply(Tensor* grads, Tensor* result) override {
    check(bool(functions->derivative), ErrorKind::NotImplemented, op.parsed.name,
          ": this operator has no derivative; give it one with ", "operator.derivative, or a composite form");
    Values given, made;
    bool any = false;
    for (size_t i = 0; i < output_count; ++i) {
      any = any || grads[i].defined();
      given.push_back(grads[i].defined() ? Value(grads[i]) : Value());
      made.push_back(results[i].unpack(this, "results"));
    }
    if (!any) return;
    const Values call = unpacked();
    const Values found = functions->derivative(call, made, given);
    check(found.size() == call.size(), ErrorKind::Type, op.parsed.name, ": the derivative gave ", found.size(),
          " gradients, expected ", call.size(), ", one for each argument");
    size_t at = 0;
    for (size_t i = 0; i < call.size(); ++i) place(call[i], found[i], result, at);
  }

 private:
  /// Puts the gradient of one argument at its edges, and moves `at` past them.
  void place(const Value& argument, const Value& gradient, Tensor* result, size_t& at) const {
    std::vector<Tensor> items;
    each_tensor(gradient, [&](const Tensor& t) { items.push_back(t); });
    size_t wants = 0;
    each_tensor(argument, [&](const Tensor&) { ++wants; });
    check(items.empty() || items.size() == wants, ErrorKind::Type, op.parsed.name, ": the derivative gave ",
          items.size(), " tensors for an argument of ", wants);
    for (size_t i = 0; i < wants; ++i, ++at)
      if (!items.empty() && wanted(at)) result[at] = items[i];
  }
};

bool any_tracked(const Values& arguments) {
  bool found = false;
  for (const Value& value : arguments) each_tensor(value, [&](const Tensor& t) { found = found || tracked(t); });
  return found;
}

/// An operator that writes to its arguments has no formula for what these were.
void refuse_tracked_targets(const RuntimeOp& op, const Values& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (writes_to(op.parsed, i, arguments))
      each_tensor(arguments[i], [&](const Tensor& t) {
        if (tracked(t)) refuse_argument(op, op.parsed.arguments[i].name.c_str());
      });
}

Values record(RuntimeOp& op, KeySet keys, Values arguments) {
  Ref<RuntimeBackward> node;
  Values written;
  if (thread_state.grad_enabled && any_tracked(arguments)) {
    const auto functions = op.functions();
    // A composite form without a derivative of its own is differentiated by what it calls.
    if (!functions->derivative && functions->composite) return functions->composite(arguments);
    refuse_tracked_targets(op, arguments);
    node = make_node<RuntimeBackward>(op);
    node->save(arguments);
    written = arguments;
  }
  Values results;
  {
    const Below below(Layer::Autograd);
    results = go_on(op, keys.without(Layer::Autograd), std::move(arguments));
  }
  if (!node) return results;
  node->save_written(written);
  node->results.resize(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor& made = std::get<Tensor>(results[i]);
    set_history(made, node.get(), uint32_t(i));
    node->results[i].save_output(made, uint32_t(i));
  }
  return results;
}

[[maybe_unused]] const bool installed = [] {
  record_runtime_op = record;
  return true;
}();

}  // namespace
}  // namespace taeda::autograd
