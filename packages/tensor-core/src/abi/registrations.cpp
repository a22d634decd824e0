// The ABI's functions that put kernels and layers into the operator table and take them away.
#include "abi/bridge.h"
#include "core/contract.h"
#include "taeda/backend.h"

namespace taeda::abi {

std::string owner_or(const char* owner) { return owner ? owner : "a plug-in"; }

namespace {

/// A kernel that is called with boxed values.
WrittenKernel boxed_kernel(CKernel kernel, const std::string& who) {
  return [kernel, who](const OpEntry& op, KeySet keys, size_t outputs, Values arguments) {
    const Schema& schema = schema_of(op);
    Values results = call_boxed(kernel, op, schema, keys, arguments, outputs, outputs ? 0 : schema.results.size(), who);
    if (results.empty() || as_runtime(&op)) return results;
    const std::vector<Tensor> given = tensor_arguments(arguments);
    check_kernel_results({op, schema, who, given}, device_of_call(arguments).value_or(Device()),
                         tensor_arguments(results));
    return results;
  };
}

BoxedFn boxed_layer(CKernel layer, const std::string& owner) {
  return [layer, who = "the layer of " + owner](const OpEntry& op, KeySet keys, Values arguments) {
    // Inside, the layer is off: what it calls goes on below.
    const BelowLayer below(layer_at(keys.top_slot()));
    const Schema& schema = schema_of(op);
    Values results = call_boxed(layer, op, schema, keys, arguments, 0, schema.results.size(), who);
    check_layer_results({op, schema, who}, arguments, results);
    return results;
  };
}

OpEntry* named(const char* name, const char* function) {
  OpEntry* op = name ? find_op(name) : nullptr;
  check(op != nullptr, ErrorKind::Value, function, ": there is no operator named '", name ? name : "(null)", "'");
  return op;
}

/// What the functions that register kernels are given, beside the name.
struct Given {
  const char* function;  // of the table
  int32_t backend;
  CKernel kernel;
  const char* owner;
  bool replace;
  bool recorded = false;  // of a composite or view: taken for calls that are recorded too
};

void add(OpEntry* op, const Given& given, const WrittenFor& author, uint64_t* registration) {
  check(given.kernel.fn != nullptr, ErrorKind::Value, given.function, ": the kernel is null");
  check(op->form == Form::Function, ErrorKind::Value, given.function, ": '", op->name,
        "' is a form of another operator; kernels are registered for the function form and serve all");
  check(given.backend >= 0 && given.backend < backend_count(), ErrorKind::Value, given.function,
        ": there is no backend number ", given.backend);
  const BackendId id = BackendId(given.backend);
  const std::string owner = owner_or(given.owner), who = "the kernel of " + owner;
  const bool typed = op->c_kernel_adapter && serves_as_it_is(*op, author);
  BoxedFn boxed = typed ? BoxedFn() : adapted(*op, author, boxed_kernel(given.kernel, who), who);
  const uint64_t made = typed ? add_c_kernel(op, id, given.kernel, owner, given.replace)
                        : op->kernels
                            ? add_kernel(op, id, std::move(boxed), owner, given.replace)
                            : add_composite_kernel(op, id, std::move(boxed), owner, given.replace, given.recorded);
  note_started([made] { remove_registration(made); });
  if (registration) *registration = made;
}

int32_t add(const Given& given, const char* name, uint64_t* registration) {
  return guarded([&] {
    OpEntry* op = named(name, given.function);
    add(op, given, {.convention = convention_of(*op)}, registration);
  });
}

void check_position(const char* function, int32_t position) {
  check(position >= 0 && position < kMaxLayers, ErrorKind::Value, function, ": position must be from 0 to ",
        kMaxLayers - 1, ", found ", position);
}

}  // namespace

int32_t kernel_register(const char* op, int32_t backend_number, taeda_call_fn kernel, void* context, const char* owner,
                        uint64_t* registration) {
  return add({"kernel_register", backend_number, {kernel, context}, owner, false}, op, registration);
}
int32_t kernel_replace(const char* op, int32_t backend_number, taeda_call_fn kernel, void* context, const char* owner,
                       uint64_t* registration) {
  return add({"kernel_replace", backend_number, {kernel, context}, owner, true}, op, registration);
}
int32_t kernel_add(const taeda_kernel* kernel, uint64_t* registration) {
  bool known = true;
  const int32_t status = guarded([&] {
    const taeda_kernel given = known_part(kernel, "taeda_kernel");
    check(given.kind == TAEDA_KIND_STRUCTURED || given.kind == TAEDA_KIND_DIRECT, ErrorKind::Value,
          "kernel_add: the kind of a kernel is TAEDA_KIND_STRUCTURED or TAEDA_KIND_DIRECT, found ", given.kind);
    OpEntry* op = given.op ? find_op(given.op) : nullptr;
    check(given.op != nullptr, ErrorKind::Value, "kernel_add: the name of the operator is null");
    known = op != nullptr;
    if (!known) return;
    const Given what{"kernel_add",
                     given.backend,
                     {given.function, given.context},
                     given.owner,
                     (given.flags & TAEDA_KERNEL_REPLACE) != 0,
                     (given.flags & TAEDA_KERNEL_RECORDED) != 0};
    add(op, what, {given.schema ? given.schema : "", Kind(given.kind)}, registration);
  });
  return status == TAEDA_OK && !known ? TAEDA_ABSENT : status;
}

int32_t layer_register(const char* name, int32_t position, taeda_call_fn layer, void* context, const char* owner,
                       uint64_t* registration) {
  return guarded([&] {
    check(layer != nullptr, ErrorKind::Value, "layer_register: the layer is null");
    check_position("layer_register", position);
    std::vector<OpEntry*> chosen;
    if (name) chosen.push_back(named(name, "layer_register"));
    else chosen.assign(all_ops().begin() + 1, all_ops().end());
    const uint64_t made =
        add_layers(chosen, Layer(position), boxed_layer({layer, context}, owner_or(owner)), owner_or(owner));
    note_started([made] { remove_registration(made); });
    if (registration) *registration = made;
  });
}

int32_t layer_switch(int32_t position, int32_t on, int32_t* before) {
  return guarded([&] {
    check_position("layer_switch", position);
    const uint64_t bit = KeySet::of(Layer(position)).bits();
    if (before) *before = (thread_state.included & bit) != 0;
    if (on) thread_state.included |= bit;
    else thread_state.included &= ~bit;
  });
}

int32_t registration_remove(uint64_t registration) {
  return guarded([&] { remove_registration(registration); });
}

}  // namespace taeda::abi
