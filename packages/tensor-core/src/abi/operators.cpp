// The ABI's functions on operators: calling and defining them, kernels and layers.
#include "abi/bridge.h"
#include "taeda/backend.h"
#include "taeda/stream.h"

namespace taeda::abi {

// --- kernels, from typed calls
// ----------------------------------------------------------------------------------------

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

void drop(taeda_value* results, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (results[i].kind == TAEDA_VALUE_TENSOR) tensor_release(results[i].as.tensor);
}

void call_kernel(const CKernel& kernel, const OpEntry& op, const taeda_call& call) {
  const int32_t status = kernel.fn(kernel.context, &call);
  if (status == TAEDA_OK) [[likely]]
    return;
  drop(call.results, call.result_count);
  throw_error(status, op.name);
}

[[gnu::cold]] void check_tensors(const OpEntry& op, taeda_value* results, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const uint32_t kind = results[i].kind;
    if (kind == TAEDA_VALUE_TENSOR || kind == TAEDA_VALUE_NONE) continue;
    drop(results, count);
    fail(ErrorKind::Type, op.name, ": result ", i, " of the kernel of ", op.name,
         " must be a tensor, found a value of kind ", kind);
  }
}

}  // namespace

void run(const OpEntry& op, Device device, const taeda_value* arguments, size_t count, size_t outputs,
         taeda_value* results, size_t result_count) {
  const taeda_call call = make_call(op, device, arguments, count, outputs, results, result_count);
  call_kernel(*op.c_kernels[device.backend], op, call);
  if (result_count) check_tensors(op, results, result_count);
}

void no_such_result(const OpEntry& op) {
  fail(ErrorKind::NotImplemented, op.name, ": results other than tensors cannot come from a C kernel");
}

// --- callbacks in boxed form
// --------------------------------------------------------------------------------------------

namespace {

Device device_of(const Values& arguments) {
  Device device{};
  bool found = false;
  const auto look = [&](const Tensor& t) {
    if (!found && t.defined() && !t.is_wrapped_number()) device = t.device(), found = true;
  };
  for (const Value& v : arguments) {
    if (auto* t = std::get_if<Tensor>(&v)) look(*t);
    if (auto* list = std::get_if<std::vector<Tensor>>(&v))
      for (const Tensor& t : *list) look(t);
  }
  return device;
}

/// Calls a C function with boxed values and takes its results over.
Values call_boxed(const CKernel& fn, const OpEntry& op, KeySet keys, const Values& arguments, size_t outputs,
                  size_t result_count) {
  const Packed packed(arguments);
  std::vector<taeda_value> results(result_count + 1);
  taeda_call call =
      make_call(op, device_of(arguments), packed.data(), packed.size(), outputs, results.data(), result_count);
  call.layers = keys.bits();
  call_kernel(fn, op, call);
  Values out;
  for (size_t i = 0; i < result_count; ++i) out.push_back(take(results[i], op.name));
  return out;
}

std::string owner_or(const char* owner) { return owner ? owner : "a plug-in"; }

/// Kernels of operators that were made at run time: these have no typed form.
BoxedFn boxed_kernel(CKernel kernel) {
  return [kernel](const OpEntry& op, KeySet keys, Values arguments) {
    const RuntimeOp* own = as_runtime(&op);
    const size_t outputs = own ? arguments.size() - own->parsed.arguments.size() : 0;
    return call_boxed(kernel, op, keys, arguments, outputs, outputs || !own ? 0 : own->parsed.results.size());
  };
}

BoxedFn boxed_layer(CKernel layer) {
  return [layer](const OpEntry& op, KeySet keys, Values arguments) {
    // Inside, the layer is off: what it calls goes on below.
    const Below below{Layer(keys.top_layer())};
    return call_boxed(layer, op, keys, arguments, 0, schema_of(op).results.size());
  };
}

}  // namespace

// --- functions of the table
// -----------------------------------------------------------------------------------------------

uint32_t op_count() { return uint32_t(all_ops().size() - 1); }
int32_t op_at(uint32_t place, taeda_op* result) {
  return guarded([&] {
    OpEntry* found = place < op_count() ? op_by_id(uint16_t(place + 1)) : nullptr;
    check(found != nullptr, ErrorKind::Index, "op_at: place ", place, " is out of range, there are ", op_count(),
          " operators");
    *result = handle(*found);
  });
}
int32_t op_find(const char* name, taeda_op* result) {
  return guarded([&] {
    const OpEntry* found = name ? find_op(name) : nullptr;
    check(found != nullptr, ErrorKind::Value, "op_find: there is no operator named '", name ? name : "(null)", "'");
    *result = handle(*found);
  });
}
int32_t op_read(taeda_op op, taeda_op_info* info) {
  return guarded([&] {
    static_assert(int(Kind::Structured) == TAEDA_KIND_STRUCTURED && int(Kind::Composite) == TAEDA_KIND_COMPOSITE);
    const OpEntry& e = entry(op);
    fill_part(info, taeda_op_info{sizeof(taeda_op_info), e.name, e.schema, int32_t(e.kind), e.core});
  });
}

int32_t op_call(taeda_op op, const taeda_value* arguments, uint32_t argument_count, taeda_value* results,
                uint32_t result_count) {
  return guarded([&] {
    const OpEntry& e = entry(op);
    const Schema& schema = schema_of(e);
    check(argument_count <= schema.arguments.size(), ErrorKind::Type, e.name, ": expected at most ",
          schema.arguments.size(), " arguments, got ", argument_count);
    Values boxed;
    for (size_t i = 0; i < schema.arguments.size(); ++i) {
      const SchemaArgument& wanted = schema.arguments[i];
      check(i < argument_count || wanted.has_default || wanted.optional, ErrorKind::Type, e.name, ": argument '",
            wanted.name, "' is missing");
      boxed.push_back(i < argument_count ? unpack(arguments[i], wanted, e.name) : wanted.missing);
    }
    Values out = call_operator(e, std::move(boxed));
    for (uint32_t i = 0; i < result_count; ++i) results[i] = i < out.size() ? give(std::move(out[i]), e.name) : none();
  });
}

int32_t op_define(const taeda_operator* definition, taeda_op* result) {
  return guarded([&] {
    const taeda_operator given = known_part(definition, "taeda_operator");
    check(given.schema != nullptr, ErrorKind::Value, "op_define: the schema is null");
    // Callbacks see the operator, which exists only after they were handed over.
    auto self = std::make_shared<const OpEntry*>(nullptr);
    RuntimeFunctions fn;
    if (given.infer)
      fn.infer = [given, self](const Values& arguments) {
        const RuntimeOp* op = as_runtime(*self);
        const Packed packed(arguments);
        std::vector<taeda_spec> specs(op->parsed.results.size());
        const taeda_call call = make_call(*op, device_of(arguments), packed.data(), packed.size(), 0, nullptr, 0);
        check_status(given.infer(given.context, &call, specs.data()), op->name);
        std::vector<Spec> out;
        for (const taeda_spec& s : specs) {
          check(s.ndim >= 0 && s.ndim <= TAEDA_MAX_DIMS, ErrorKind::Value, op->name, ": inference gave ", s.ndim,
                " dimensions");
          out.push_back(spec(IntSpan(s.sizes, size_t(s.ndim)), dtype_from_c(s.dtype)));
        }
        return out;
      };
    if (given.composite)
      fn.composite = [given, self](const Values& arguments) {
        return call_boxed({given.composite, given.context}, **self, {}, arguments, 0,
                          as_runtime(*self)->parsed.results.size());
      };
    if (given.derivative)
      fn.derivative = [given, self](const Values& arguments, const Values& results, const Values& gradients) {
        const Packed inputs(arguments), outputs(results), grads(gradients);
        std::vector<taeda_value> found(arguments.size() + 1);
        const taeda_call call =
            make_call(**self, device_of(arguments), inputs.data(), inputs.size(), 0, found.data(), arguments.size());
        const int32_t status = given.derivative(given.context, &call, outputs.data(), grads.data());
        if (status != TAEDA_OK) {
          drop(found.data(), arguments.size());
          throw_error(status, (*self)->name);
        }
        Values out;
        for (size_t i = 0; i < arguments.size(); ++i) out.push_back(take(found[i], (*self)->name));
        return out;
      };
    RuntimeOp* made = define_operator(given.schema, std::move(fn), owner_or(given.owner));
    *self = made;
    if (result) *result = handle(*made);
  });
}

int32_t kernel_register(const char* name, int32_t backend_number, taeda_call_fn kernel, void* context,
                        const char* owner, uint64_t* registration) {
  return guarded([&] {
    check(name && kernel, ErrorKind::Value, "kernel_register: the operator's name or the kernel is null");
    OpEntry* op = find_op(name);
    check(op != nullptr, ErrorKind::Value, "kernel_register: there is no operator named '", name, "'");
    check(backend_number >= 0 && backend_number < backend_count(), ErrorKind::Value,
          "kernel_register: there is no backend number ", backend_number);
    const CKernel given{kernel, context};
    const uint64_t made = as_runtime(op)
                              ? add_kernel(op, BackendId(backend_number), boxed_kernel(given), owner_or(owner))
                              : add_c_kernel(op, BackendId(backend_number), given, owner_or(owner));
    if (registration) *registration = made;
  });
}

int32_t layer_register(const char* name, int32_t position, taeda_call_fn layer, void* context, const char* owner,
                       uint64_t* registration) {
  return guarded([&] {
    check(layer != nullptr, ErrorKind::Value, "layer_register: the layer is null");
    check(position >= 0 && position < kMaxLayers, ErrorKind::Value, "layer_register: position must be from 0 to ",
          kMaxLayers - 1, ", found ", position);
    std::vector<OpEntry*> chosen;
    if (name) {
      OpEntry* op = find_op(name);
      check(op != nullptr, ErrorKind::Value, "layer_register: there is no operator named '", name, "'");
      chosen.push_back(op);
    } else {
      chosen.assign(all_ops().begin() + 1, all_ops().end());
    }
    const uint64_t made = add_layers(chosen, Layer(position), boxed_layer({layer, context}), owner_or(owner));
    if (registration) *registration = made;
  });
}

int32_t call_below(const taeda_call* call) {
  return guarded([&] {
    check(call != nullptr && call->layers != 0, ErrorKind::Value,
          "call_below: expected the call that a layer was given");
    const OpEntry& e = entry(call->op);
    const Schema& schema = schema_of(e);
    Values boxed;
    for (uint32_t i = 0; i < call->argument_count; ++i)
      boxed.push_back(unpack(call->arguments[i], schema.arguments.at(i), e.name));
    Values out = call_operator(e, std::move(boxed));
    for (uint32_t i = 0; i < call->result_count; ++i)
      call->results[i] = i < out.size() ? give(std::move(out[i]), e.name) : none();
  });
}

int32_t layer_switch(int32_t position, int32_t on, int32_t* before) {
  return guarded([&] {
    check(position >= 0 && position < kMaxLayers, ErrorKind::Value, "layer_switch: position must be from 0 to ",
          kMaxLayers - 1, ", found ", position);
    const uint64_t bit = KeySet::of(Layer(position)).bits();
    if (before) *before = (thread_state.included & bit) != 0;
    if (on)
      thread_state.included |= bit;
    else
      thread_state.included &= ~bit;
  });
}

int32_t registration_remove(uint64_t registration) {
  return guarded([&] { remove_registration(registration); });
}

}  // namespace taeda::abi
