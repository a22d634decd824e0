// The ABI's functions that call and define operators, and the way of a call into a plug-in's function.
#include "abi/bridge.h"
#include "taeda/backend.h"
#include "taeda/stream.h"

namespace taeda::abi {
namespace {

taeda_call make_call(const OpEntry& op, Device device, const taeda_value* arguments, size_t count, size_t outputs,
                     taeda_value* results, size_t result_count) {
  taeda_call call{};
  call.size = sizeof call;
  call.op = handle(op);
  call.arguments = arguments;
  call.argument_count = uint32_t(count);
  call.output_count = uint32_t(outputs);
  call.results = results;
  call.result_count = uint32_t(result_count);
  call.device = to_c(device);
  call.stream = current_stream_handle(device);
  return call;
}

/// After a plug-in's function came back: throws what it complains of. `before`: errors_noted when it was called.
void finish(int32_t status, const OpEntry& op, uint32_t before) {
  if (status != TAEDA_OK) [[unlikely]]
    throw_error(status, op.name, before);
  settle_errors();
  if (exception_kept) [[unlikely]]
    forget_exception();
}

/// Room for results; gives back what nobody has taken over.
class Results {
 public:
  explicit Results(size_t count) : count_(count) {
    if (count > std::size(few_)) many_ = std::make_unique<taeda_value[]>(count);
    items_ = many_ ? many_.get() : few_;
  }
  Results(const Results&) = delete;
  ~Results() {
    for (size_t i = 0; i < count_; ++i) release_result(items_[i]);
  }
  taeda_value* data() { return items_; }
  size_t size() const { return count_; }
  Values taken(const OpEntry& op) {
    Values out;
    out.reserve(count_);
    for (size_t i = 0; i < count_; ++i) out.push_back(take(op, items_[i]));
    return out;
  }

 private:
  size_t count_;
  taeda_value* items_;
  taeda_value few_[4] = {};
  std::unique_ptr<taeda_value[]> many_;
};

Device device_of(const Values& arguments) {
  Device device{};
  bool found = false;
  const auto look = [&](const Tensor& t) {
    if (!t.defined() || t.is_wrapped_number() || (found && device.backend != kCPU)) return;
    if (!found || t.device().backend != kCPU) device = t.device();
    found = true;
  };
  for (const Value& v : arguments) {
    if (auto* t = std::get_if<Tensor>(&v)) look(*t);
    if (auto* list = std::get_if<std::vector<Tensor>>(&v))
      for (const Tensor& t : *list) look(t);
  }
  return device;
}

}  // namespace

void run(const OpEntry& op, Device device, const taeda_value* arguments, size_t count, size_t outputs,
         taeda_value* results, size_t result_count) {
  const taeda_call call = make_call(op, device, arguments, count, outputs, results, result_count);
  const CKernel& kernel = *op.kernels->c[device.backend];
  Lent lent;
  if (result_count) lent.add({arguments, count}, false);
  const uint32_t before = errors_noted;
  finish(kernel.fn(kernel.context, &call), op, before);
  if (result_count == 0) return;
  const char* owner = op.kernels->registered_by[device.backend];
  const std::string who = "the kernel of " + std::string(owner ? owner : "a plug-in");
  check_direct({op, schema_of(op), who, {arguments, count}, lent, {results, result_count}}, device);
}

Values call_boxed(const CKernel& fn, const OpEntry& op, const Schema& schema, KeySet keys, const Values& arguments,
                  size_t outputs, size_t result_count, const std::string& who) {
  const Packed packed(arguments);
  Results results(result_count);
  taeda_call call =
      make_call(op, device_of(arguments), packed.data(), packed.size(), outputs, results.data(), result_count);
  call.layers = keys.bits();
  Lent lent;
  lent.add({packed.data(), packed.size()}, true);
  const uint32_t before = errors_noted;
  finish(fn.fn(fn.context, &call), op, before);
  check_stored({op, schema, who, {packed.data(), packed.size()}, lent, {results.data(), result_count}});
  return results.taken(op);
}

// --- reading and calling
// --------------------------------------------------------------------------------------------

namespace {
/// Operators that are found by their names; those whose place another has taken are not.
std::vector<OpEntry*> named_ops() {
  std::vector<OpEntry*> found;
  for (OpEntry* op : all_ops())
    if (op && find_op(op->name) == op) found.push_back(op);
  return found;
}
}  // namespace

uint32_t op_count() { return uint32_t(named_ops().size()); }
int32_t op_at(uint32_t at, taeda_op* result) {
  return guarded([&] {
    const std::vector<OpEntry*> found = named_ops();
    check(at < found.size(), ErrorKind::Index, "op_at: place ", at, " is out of range, there are ", found.size(),
          " operators");
    place(result, "op_at") = handle(*found[at]);
  });
}
int32_t op_find(const char* name, taeda_op* result) {
  return guarded([&] {
    const OpEntry* found = name ? find_op(name) : nullptr;
    check(found != nullptr, ErrorKind::Value, "op_find: there is no operator named '", name ? name : "(null)", "'");
    place(result, "op_find") = handle(*found);
  });
}

namespace {
/// Operators made at run time are what their functions make them.
Kind kind_of(const OpEntry& op) {
  const RuntimeOp* own = as_runtime(&op);
  if (!own || own->functions()->infer) return op.kind;
  return own->functions()->composite ? Kind::Composite : Kind::Direct;
}
}  // namespace

int32_t op_read(taeda_op op, taeda_op_info* info) {
  return guarded([&] {
    static_assert(int(Kind::Structured) == TAEDA_KIND_STRUCTURED && int(Kind::Composite) == TAEDA_KIND_COMPOSITE);
    const OpEntry& e = entry(op);
    fill_part(info, taeda_op_info{sizeof(taeda_op_info), e.name, e.schema, int32_t(kind_of(e)), e.core});
  });
}

namespace {

bool may_be_absent(const SchemaArgument& wanted) {
  return wanted.optional || wanted.type == ArgumentType::Generator ||
         (wanted.has_default && std::holds_alternative<std::monostate>(wanted.missing));
}

Value argument_of(const OpEntry& op, const SchemaArgument& wanted, const taeda_value* given) {
  if (given && given->kind != TAEDA_VALUE_NONE) return unpack(*given, wanted, op.name);
  if (given && may_be_absent(wanted)) return {};
  check(given == nullptr, ErrorKind::Type, op.name, ": argument '", wanted.name, "' must not be none");
  check(wanted.has_default || wanted.optional, ErrorKind::Type, op.name, ": argument '", wanted.name, "' is missing");
  if (wanted.type == ArgumentType::Operand && wanted.has_default) return Tensor(std::get<Scalar>(wanted.missing));
  return wanted.missing;
}

/// Stores results where they go over to C.
void store(const OpEntry& op, Values found, taeda_value* results, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) results[i] = none();
  for (uint32_t i = 0; i < count && i < found.size(); ++i) results[i] = give(std::move(found[i]), op);
}

}  // namespace

int32_t op_call(taeda_op op, const taeda_value* arguments, uint32_t argument_count, taeda_value* results,
                uint32_t result_count) {
  return guarded([&] {
    const OpEntry& e = entry(op);
    const Schema& schema = schema_of(e);
    check((arguments || !argument_count) && (results || !result_count), ErrorKind::Value, e.name,
          ": the array of the arguments or of the results is null");
    check(argument_count <= schema.arguments.size(), ErrorKind::Type, e.name, ": expected at most ",
          schema.arguments.size(), " arguments, got ", argument_count);
    Values boxed;
    boxed.reserve(schema.arguments.size());
    for (size_t i = 0; i < schema.arguments.size(); ++i)
      boxed.push_back(argument_of(e, schema.arguments[i], i < argument_count ? arguments + i : nullptr));
    store(e, call_operator(e, std::move(boxed)), results, result_count);
  });
}

int32_t call_below(const taeda_call* call) {
  return guarded([&] {
    check(call != nullptr && call->layers != 0, ErrorKind::Value,
          "call_below: expected the call that a layer was given");
    const OpEntry& e = entry(call->op);
    const Schema& schema = schema_of(e);
    check(call->argument_count == schema.arguments.size(), ErrorKind::Type, e.name, ": expected ",
          schema.arguments.size(), " arguments, got ", call->argument_count);
    Values boxed;
    boxed.reserve(schema.arguments.size());
    for (uint32_t i = 0; i < call->argument_count; ++i)
      boxed.push_back(unpack(call->arguments[i], schema.arguments[i], e.name));
    store(e, call_operator(e, std::move(boxed)), call->results, call->result_count);
  });
}

// --- defining
// -------------------------------------------------------------------------------------------------------

namespace {

/// The callbacks see the operator, which exists only after they were handed over.
using Self = std::shared_ptr<const RuntimeOp*>;

std::vector<Spec> infer_with(const taeda_operator& given, const RuntimeOp& op, const Values& arguments) {
  const Packed packed(arguments);
  std::vector<taeda_spec> specs(op.parsed.results.size());
  for (taeda_spec& s : specs) s.ndim = s.dtype = -1;
  const taeda_call call = make_call(op, device_of(arguments), packed.data(), packed.size(), 0, nullptr, 0);
  const uint32_t before = errors_noted;
  finish(given.infer(given.context, &call, specs.data()), op, before);
  std::vector<Spec> out;
  for (const taeda_spec& s : specs) {
    check(s.ndim >= 0 && s.ndim <= TAEDA_MAX_DIMS, ErrorKind::Value, op.name, ": inference gave ", s.ndim,
          " dimensions");
    check(s.dtype >= 0 && s.dtype < kDTypeCount && !name(DType(s.dtype)).empty(), ErrorKind::Value, op.name,
          ": inference gave element type number ", s.dtype);
    const IntSpan sizes(s.sizes, size_t(s.ndim));
    for (int64_t size : sizes) check(size >= 0, ErrorKind::Value, op.name, ": inference gave a negative size ", size);
    out.push_back(spec(sizes, DType(s.dtype)));
  }
  return out;
}

Values differentiate_with(const taeda_operator& given, const RuntimeOp& op, const Values& arguments, const Values& made,
                          const Values& gradients) {
  const Packed inputs(arguments), outputs(made), grads(gradients);
  Results found(arguments.size());
  const taeda_call call =
      make_call(op, device_of(arguments), inputs.data(), inputs.size(), 0, found.data(), found.size());
  Lent lent;
  for (const Packed* part : {&inputs, &outputs, &grads}) lent.add({part->data(), part->size()}, true);
  const uint32_t before = errors_noted;
  finish(given.derivative(given.context, &call, outputs.data(), grads.data()), op, before);
  check_gradients(op, lent, {found.data(), found.size()});
  return found.taken(op);
}

RuntimeFunctions functions_of(const taeda_operator& given, const Self& self) {
  RuntimeFunctions fn;
  if (given.infer) fn.infer = [given, self](const Values& arguments) { return infer_with(given, **self, arguments); };
  if (given.composite)
    fn.composite = [given, self](const Values& arguments) {
      const RuntimeOp& op = **self;
      return call_boxed({given.composite, given.context}, op, op.parsed, {}, arguments, 0, op.parsed.results.size(),
                        "the composite form of " + op.who);
    };
  if (given.derivative)
    fn.derivative = [given, self](const Values& arguments, const Values& results, const Values& gradients) {
      return differentiate_with(given, **self, arguments, results, gradients);
    };
  return fn;
}

}  // namespace

int32_t op_define(const taeda_operator* definition, taeda_op* result) {
  return guarded([&] {
    const taeda_operator given = known_part(definition, "taeda_operator");
    check(given.schema != nullptr, ErrorKind::Value, "op_define: the schema is null");
    const Self self = std::make_shared<const RuntimeOp*>(nullptr);
    RuntimeOp* made = define_operator(given.schema, functions_of(given, self), owner_or(given.owner));
    *self = made;
    note_started([made] { remove_operator(made); });
    if (result) *result = handle(*made);
  });
}

}  // namespace taeda::abi
