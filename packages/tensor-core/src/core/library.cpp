// Operators made at run time: their definition, and what a call of one does.
#include "taeda/library.h"

#include <mutex>

#include "core/fork.h"
#include "taeda/backend.h"
#include "taeda/observer.h"
#include "taeda/stub.h"

namespace taeda {

Values (*record_runtime_op)(RuntimeOp& op, KeySet keys, Values arguments) = nullptr;

namespace {

/// Stands where generated operators have a typed adapter: run-time operators have only boxed entries, and are known by
/// it.
char boxed_only;

using Tensors = SmallVec<const Tensor*, 8>;
Tensors tensors_of(const Values& arguments) {
  Tensors out;
  for (const Value& value : arguments) each_tensor_of(value, [&](const Tensor& t) { out.push_back(&t); });
  return out;
}

Device device_of(const RuntimeOp& op, KeySet keys, const Values& arguments) {
  const Tensors tensors = tensors_of(arguments);
  if (tensors.empty()) {
    for (const Value& value : arguments)
      if (auto* device = std::get_if<Device>(&value)) return *device;
    return {};
  }
  const BackendId id = resolve_backend(op, keys, tensors);
  for (const Tensor* t : tensors)
    if (t->device().backend == id) return t->device();
  return {id, 0};
}

Values outputs_of(const RuntimeOp& op, const RuntimeFunctions& fn, const Values& arguments, Device device) {
  const std::vector<Spec> specs = fn.infer(arguments);
  check(specs.size() == op.parsed.results.size(), ErrorKind::Value, op.name, ": inference gave ", specs.size(),
        " result(s), expected ", op.parsed.results.size(), " as in '", op.schema, "'");
  Values out;
  out.reserve(specs.size());
  for (const Spec& s : specs)
    out.push_back(s.strides.empty() ? empty(s.sizes, s.dtype, device)
                                    : empty_strided(s.sizes, s.strides, s.dtype, device));
  return out;
}

void check_results(const RuntimeOp& op, const Values& results) {
  check(results.size() == op.parsed.results.size(), ErrorKind::Type, op.name, ": expected ", op.parsed.results.size(),
        " result(s), got ", results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor* made = std::get_if<Tensor>(&results[i]);
    check(made && made->defined(), ErrorKind::Type, op.name, ": result ", i, " must be a Tensor, found none");
  }
}

/// What a call writes to, by its schema: checked before, counted after.
class Targets {
 public:
  Targets(const RuntimeOp& op, const Values& arguments) : op_(op) {
    for (size_t i = 0; i < arguments.size(); ++i)
      if (writes_to(op.parsed, i, arguments))
        each_tensor_of(arguments[i], [&](const Tensor& t) {
          stub::check_writable(op, t, op.parsed.arguments[i].name.c_str());
          written_.push_back({t, t.version()});
        });
  }
  /// A composite's writes have been counted by what it calls.
  void count() const {
    for (const auto& [target, before] : written_) {
      if (target.version() == before) stub::bump(op_, target);
      stub::blame(op_, target);
    }
  }

 private:
  const RuntimeOp& op_;
  std::vector<std::pair<Tensor, uint32_t>> written_;
};

Values compute_plain(const RuntimeOp& op, KeySet keys, Values arguments) {
  const std::shared_ptr<const RuntimeFunctions> fn = op.functions();
  const Device device = device_of(op, keys, arguments);
  BoxedFn* kernel = op.kernels->typed[device.backend] ? op.kernels->boxed[device.backend] : nullptr;
  const bool memory = backend(device.backend).has_memory();
  if (kernel || (!memory && fn->infer)) {
    if (!fn->infer) {
      Values results = (*kernel)(op, keys, std::move(arguments));
      check_results(op, results);
      return results;
    }
    Values outputs = outputs_of(op, *fn, arguments, device);
    if (!kernel) return outputs;
    Values all;
    all.reserve(outputs.size() + arguments.size());
    all.insert(all.end(), outputs.begin(), outputs.end());
    all.insert(all.end(), std::make_move_iterator(arguments.begin()), std::make_move_iterator(arguments.end()));
    (*kernel)(op, keys, std::move(all));
    return outputs;
  }
  if (!fn->composite) {
    const bool falls_back = memory && op.kernels->typed[kCPU] && fallback_of(device.backend) == Fallback::Cpu;
    if (!falls_back) no_kernel(op, device.backend);
    return compute_on_cpu(op, device, std::move(arguments));
  }
  Values results = fn->composite(arguments);
  check_results(op, results);
  return results;
}

Values compute(const RuntimeOp& op, KeySet keys, Values arguments) {
  const Targets targets(op, arguments);
  Values results = compute_plain(op, keys, std::move(arguments));
  targets.count();
  return results;
}

void check_live(const RuntimeOp& op) {
  check(op.live, ErrorKind::Runtime, op.name, ": this operator was removed by its library (", op.who, ")");
}

}  // namespace

RuntimeOp::RuntimeOp(Schema schema, std::string owner) : OpEntry(), parsed(std::move(schema)), who(std::move(owner)) {
  name = parsed.name.c_str();
  this->schema = parsed.text.c_str();
  form = Form::Function;
  kind = Kind::Structured;
  core = false;
  kernels = &own_kernels;
  boxed_layer_adapter = boxed_kernel_adapter = &boxed_only;
  new HeldAtFork(lock_);  // operators are never destroyed
}

std::shared_ptr<const RuntimeFunctions> RuntimeOp::functions() const {
  std::shared_lock guard(lock_);
  return functions_;
}
void RuntimeOp::set_functions(RuntimeFunctions functions) {
  auto fresh = std::make_shared<const RuntimeFunctions>(std::move(functions));
  {
    std::unique_lock guard(lock_);
    functions_.swap(fresh);
  }
}

RuntimeOp* as_runtime(const OpEntry* op) {
  const bool own = op && op->boxed_layer_adapter == &boxed_only;
  return own ? static_cast<RuntimeOp*>(const_cast<OpEntry*>(op)) : nullptr;
}

RuntimeOp* define_operator(std::string_view text, RuntimeFunctions functions, std::string who) {
  Schema schema = parse_schema(text);
  const size_t colons = schema.name.find("::");
  check(colons != std::string::npos && colons > 0 && colons + 2 < schema.name.size(), ErrorKind::Value,
        "define_operator: name '", schema.name, "' has no namespace, expected 'package::operator'");
  for (const SchemaResult& r : schema.results)
    check(r.type == ArgumentType::Tensor && !r.list, ErrorKind::Value, "define_operator: '", schema.name,
          "': results must be of type Tensor");
  if (OpEntry* taken = find_op(schema.name)) {
    RuntimeOp* old = as_runtime(taken);
    check(old && !old->live, ErrorKind::Runtime, "define_operator: '", schema.name, "' asked for by ", who,
          " is defined already by ", old ? old->who : "taeda-tensor-core");
    if (old->parsed.text != schema.text) {  // what was recorded before goes on to say that it was removed
      auto* anew = new RuntimeOp(std::move(schema), std::move(who));
      anew->set_functions(std::move(functions));
      replace_op(anew);
      return anew;
    }
    old->who = std::move(who);
    old->set_functions(std::move(functions));
    old->live = true;
    return old;
  }
  auto* op = new RuntimeOp(std::move(schema),
                           std::move(who));  // lives as long as the process: graphs and tools point to entries
  op->set_functions(std::move(functions));
  register_op(op);
  return op;
}

void remove_operator(RuntimeOp* op) {
  op->live = false;
  op->set_functions({});
}

KeySet keys_of_call(const Values& arguments) {
  KeySet of_arguments;
  for (const Value& value : arguments)
    each_tensor_of(value, [&](const Tensor& t) { of_arguments = of_arguments | t.keys(); });
  return active(of_arguments);
}

Values go_on(const OpEntry& entry, KeySet keys, Values arguments) {
  if (entry.go_on_boxed) return entry.go_on_boxed(entry, keys, arguments);
  RuntimeOp& op = *as_runtime(&entry);
  for (KeySet rest = keys; rest.has_layers(); rest = rest.without_slot(rest.top_slot())) {
    const int slot = rest.top_slot();
    if (op.layers[slot] && op.boxed_layers[slot]) return (*op.boxed_layers[slot])(op, rest, std::move(arguments));
    if (slot == slot_of(Layer::Autograd) && record_runtime_op) return record_runtime_op(op, rest, std::move(arguments));
  }
  return compute(op, keys, std::move(arguments));
}

namespace {

/// An operator without typed calls as observers see it.
class BoxedCall final : public ObservedCall {
 public:
  BoxedCall(const OpEntry& called, const Values& arguments) : ObservedCall(called), arguments_(arguments) {}
  Values arguments() const override { return arguments_; }

 private:
  void each(Visitor visit, const void* to) const override {
    for (const Value& value : arguments_) each_tensor_of(value, [&](const Tensor& t) { visit(to, t); });
  }
  const Values& arguments_;
};

Values call_observed(RuntimeOp& op, KeySet keys, Values arguments) {
  const BoxedCall call(op, arguments);
  Observation observation(call);
  Values results = go_on(op, keys.without(Layer::Observer), arguments);
  observation.succeeded();
  return results;
}

}  // namespace

Values call_operator(const OpEntry& op, Values arguments) {
  if (op.call_boxed) return op.call_boxed(std::move(arguments));
  if (op.go_on_boxed) return op.go_on_boxed(op, keys_of_call(arguments), arguments);
  RuntimeOp* own = as_runtime(&op);
  check(own != nullptr, ErrorKind::Runtime, op.name, ": this operator cannot be called by boxed arguments");
  check_live(*own);
  check(arguments.size() == own->parsed.arguments.size(), ErrorKind::Type, op.name, ": expected ",
        own->parsed.arguments.size(), " arguments, got ", arguments.size());
  const KeySet keys = keys_of_call(arguments);
  if (keys.has(Layer::Observer)) [[unlikely]]
    return call_observed(*own, keys, std::move(arguments));
  return go_on(*own, keys, std::move(arguments));
}

}  // namespace taeda
