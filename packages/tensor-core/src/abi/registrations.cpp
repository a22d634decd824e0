// The ABI's functions that put kernels and layers into the operator table and take them away.
#include "abi/bridge.h"
#include "taeda/backend.h"

namespace taeda::abi {

std::string owner_or(const char* owner) { return owner ? owner : "a plug-in"; }

namespace {

/// Kernels of operators that were made at run time: these have no typed form.
BoxedFn boxed_kernel(CKernel kernel, const std::string& owner) {
  return [kernel, who = "the kernel of " + owner](const OpEntry& op, KeySet keys, Values arguments) {
    const RuntimeOp& own = static_cast<const RuntimeOp&>(op);
    const size_t outputs = arguments.size() - own.parsed.arguments.size();
    return call_boxed(kernel, op, own.parsed, keys, arguments, outputs, outputs ? 0 : own.parsed.results.size(), who);
  };
}

BoxedFn boxed_layer(CKernel layer, const std::string& owner) {
  return [layer, who = "the layer of " + owner](const OpEntry& op, KeySet keys, Values arguments) {
    // Inside, the layer is off: what it calls goes on below.
    const Below below(layer_at(keys.top_slot()));
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

int32_t add(const char* function, bool replace, const char* name, int32_t backend_number, taeda_call_fn kernel,
            void* context, const char* owner, uint64_t* registration) {
  return guarded([&] {
    check(kernel != nullptr, ErrorKind::Value, function, ": the kernel is null");
    OpEntry* op = named(name, function);
    check(op->form == Form::Function, ErrorKind::Value, function, ": '", name,
          "' is a form of another operator; kernels are registered for the function form and serve all");
    check(backend_number >= 0 && backend_number < backend_count(), ErrorKind::Value, function,
          ": there is no backend number ", backend_number);
    const CKernel given{kernel, context};
    const BackendId id = BackendId(backend_number);
    const uint64_t made = as_runtime(op)
                              ? add_kernel(op, id, boxed_kernel(given, owner_or(owner)), owner_or(owner), replace)
                              : add_c_kernel(op, id, given, owner_or(owner), replace);
    note_started([made] { remove_registration(made); });
    if (registration) *registration = made;
  });
}

void check_position(const char* function, int32_t position) {
  check(position >= 0 && position < kMaxLayers, ErrorKind::Value, function, ": position must be from 0 to ",
        kMaxLayers - 1, ", found ", position);
}

}  // namespace

int32_t kernel_register(const char* op, int32_t backend_number, taeda_call_fn kernel, void* context, const char* owner,
                        uint64_t* registration) {
  return add("kernel_register", false, op, backend_number, kernel, context, owner, registration);
}
int32_t kernel_replace(const char* op, int32_t backend_number, taeda_call_fn kernel, void* context, const char* owner,
                       uint64_t* registration) {
  return add("kernel_replace", true, op, backend_number, kernel, context, owner, registration);
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
