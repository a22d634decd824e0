// Arguments of calls, memory for them, and launches.
#include "ops/call.h"

#include <algorithm>
#include <cstring>

#include "backend/trouble.h"
#include "ops/elementwise.h"

namespace taeda::cuda {

void fail(int32_t status, const std::string& text) { throw Failure{api->set_error(status, text.c_str())}; }

Tensor::Tensor(taeda_tensor handle, bool owned) : handle_(handle), owned_(owned) {
  const auto address = reinterpret_cast<uintptr_t>(handle);
  if (address & 1) {
    facts_ = *reinterpret_cast<const taeda_tensor_info*>(address - 1);
    return;
  }
  facts_.size = sizeof facts_;
  if (handle) api->tensor_read(handle, &facts_);
}

// --- dtypes ---

bool is_complex_type(int dtype) { return dtype == TAEDA_COMPLEX64 || dtype == TAEDA_COMPLEX128; }
bool is_float_type(int dtype) { return dtype >= TAEDA_FLOAT16 && dtype <= TAEDA_FLOAT64; }
bool is_half_type(int dtype) { return dtype == TAEDA_FLOAT16 || dtype == TAEDA_BFLOAT16; }

namespace {

int promoted(int a, int b) {
  if (a < 0 || a == b) return b;
  if (b < 0) return a;
  if (a > b) std::swap(a, b);
  if (is_complex_type(b)) {
    const bool wide = a == TAEDA_FLOAT64 || a == TAEDA_COMPLEX128 || b == TAEDA_COMPLEX128;
    return wide ? TAEDA_COMPLEX128 : TAEDA_COMPLEX64;
  }
  if (is_float_type(b)) return a == TAEDA_FLOAT16 && b == TAEDA_BFLOAT16 ? TAEDA_FLOAT32 : b;
  if (a == TAEDA_BOOL) return b;
  // a < b: signed ones come first, in the order of their size, and so do unsigned ones.
  const int wide_a = a <= TAEDA_INT64 ? a - TAEDA_INT8 : a - TAEDA_UINT8;
  if ((a <= TAEDA_INT64) == (b <= TAEDA_INT64)) return b;
  const int wide_b = b - TAEDA_UINT8;
  if (wide_b == 3) return TAEDA_FLOAT32;
  return wide_a > wide_b ? a : TAEDA_INT8 + wide_b + 1;
}
/// `high` decides unless `low` is of a higher kind: whole, floating, complex.
int joined(int high, int low) {
  const auto kind = [](int d) {
    return d < 0 ? -1 : d == TAEDA_BOOL ? 0 : is_whole_type(d) ? 1 : is_float_type(d) ? 2 : 3;
  };
  if (kind(low) <= kind(high)) return high;
  if (kind(high) == 2) return high == TAEDA_FLOAT64 ? TAEDA_COMPLEX128 : TAEDA_COMPLEX64;
  return promoted(high, low);
}

}  // namespace

int common_dtype(std::initializer_list<const Tensor*> tensors) {
  int by_kind[3] = {-1, -1, -1};  // tensors, those without dimensions, numbers
  for (const Tensor* t : tensors) {
    int& found = by_kind[t->number() ? 2 : t->ndim() == 0 ? 1 : 0];
    int dtype = t->dtype();
    if (t->number() && dtype == TAEDA_FLOAT64) dtype = TAEDA_FLOAT32;
    if (t->number() && dtype == TAEDA_COMPLEX128) dtype = TAEDA_COMPLEX64;
    found = promoted(found, dtype);
  }
  return joined(by_kind[0], joined(by_kind[1], by_kind[2]));
}

// --- calls ---

Call::Call(const char* name, int32_t number, const taeda_call& call)
    : name_(name), number_(number), call_(call), trouble_(trouble_of(call.device.index)) {
  Allocator& memory = own_machine()->memory(call.device.index);
  const auto note = [&](taeda_tensor handle) {
    if (!handle) return;
    taeda_tensor_info info{};
    info.size = sizeof info;
    if (api->tensor_read(handle, &info) == TAEDA_OK && info.device.backend == backend_number && info.numel > 0)
      memory.launched(Address(reinterpret_cast<uintptr_t>(info.storage)), call.stream);
  };
  if (!memory.watches(call.stream)) return;
  for (uint32_t i = 0; i < call.argument_count; ++i) {
    const taeda_value& value = call.arguments[i];
    if (value.kind == TAEDA_VALUE_TENSOR) note(value.as.tensor);
    if (value.kind == TAEDA_VALUE_TENSORS) std::for_each_n(value.as.tensors, value.count, note);
  }
}

Tensor Call::tensor(int i) const { return value(i).kind == TAEDA_VALUE_TENSOR ? Tensor(value(i).as.tensor) : Tensor(); }
double Call::real(int i) const { return number(i).re; }
Number Call::number(int i) const {
  const taeda_value& v = value(i);
  switch (v.kind) {
    case TAEDA_VALUE_FLOAT: return {v.as.real, 0, cuda::whole(v.as.real)};
    case TAEDA_VALUE_COMPLEX: return {v.as.parts[0], v.as.parts[1], cuda::whole(v.as.parts[0])};
    case TAEDA_VALUE_UINT: return {double(v.as.natural), 0, int64_t(v.as.natural)};
    case TAEDA_VALUE_NONE: return {};
    default: return {double(v.as.integer), 0, v.as.integer};
  }
}
std::vector<int64_t> Call::integers(int i) const {
  const taeda_value& v = value(i);
  if (v.kind == TAEDA_VALUE_INT) return {v.as.integer};
  if (v.kind != TAEDA_VALUE_INTS) return {};
  return {v.as.integers, v.as.integers + v.count};
}
std::vector<double> Call::reals(int i) const {
  const taeda_value& v = value(i);
  if (v.kind == TAEDA_VALUE_FLOAT) return {v.as.real};
  if (v.kind != TAEDA_VALUE_FLOATS) return {};
  return {v.as.reals, v.as.reals + v.count};
}
std::vector<Tensor> Call::tensors(int i) const {
  std::vector<Tensor> all;
  const taeda_value& v = value(i);
  if (v.kind == TAEDA_VALUE_TENSORS)
    for (int64_t k = 0; k < v.count; ++k) all.emplace_back(v.as.tensors[k]);
  return all;
}
void Call::result(int i, Tensor&& tensor) const {
  taeda_value& to = call_.results[i];
  to = {};
  if (!tensor) return;
  to.kind = TAEDA_VALUE_TENSOR;
  to.as.tensor = tensor.release();
}

// --- memory ---

Tensor Call::empty(std::span<const int64_t> sizes, int dtype) const {
  if (recorder_) recorder_->refuse("it needs memory of its own");
  taeda_tensor made = nullptr;
  passed(api->tensor_empty(int32_t(sizes.size()), sizes.data(), nullptr, dtype, call_.device, &made));
  return Tensor(made, true);
}
Tensor Call::view(const Tensor& of, std::span<const int64_t> sizes, std::span<const int64_t> strides,
                  int64_t offset) const {
  if (recorder_) recorder_->refuse("it takes parts of its operands");
  taeda_tensor made = nullptr;
  passed(api->tensor_view(of.handle(), int32_t(sizes.size()), sizes.data(), strides.data(), offset, &made));
  return Tensor(made, true);
}
Tensor Call::at_least_row(const Tensor& of) const {
  if (of.ndim() > 0) return Tensor(of.handle());
  return view(of, std::array<int64_t, 1>{1}, std::array<int64_t, 1>{1});
}
Tensor Call::last(const Tensor& of, int dim) const {
  std::vector<int64_t> sizes(of.sizes().begin(), of.sizes().end()), strides(of.strides().begin(), of.strides().end());
  if (of.ndim() == 0) return view(of, std::array<int64_t, 1>{1}, std::array<int64_t, 1>{1});
  std::rotate(sizes.begin() + dim, sizes.begin() + dim + 1, sizes.end());
  std::rotate(strides.begin() + dim, strides.begin() + dim + 1, strides.end());
  return view(of, sizes, strides);
}
Tensor Call::rows(const Tensor& of, int dtype) const {
  if (dtype < 0) dtype = of.dtype();
  if (of.contiguous() && of.dtype() == dtype && !of.on_host()) {
    api->tensor_retain(of.handle());
    return Tensor(of.handle(), true);
  }
  Tensor made = empty(of.sizes(), dtype);
  copy(made, of);
  return made;
}
Tensor Call::here(const Tensor& of) const {
  if (!of.on_host()) return Tensor(of.handle());
  taeda_value arguments[2]{};
  arguments[0].kind = TAEDA_VALUE_TENSOR, arguments[0].as.tensor = of.handle();
  arguments[1].kind = TAEDA_VALUE_DEVICE, arguments[1].as.device = call_.device;
  return other("to_device", arguments);
}
void Call::copy(const Tensor& to, const Tensor& from) const { copy_elements(*this, to, from); }
void Call::read(void* to, const Tensor& from) const {
  passed(api->tensor_to_host(from.handle(), to, size_t(from.numel()) * size_t(from.item_size())));
}
Tensor Call::other(const char* name, std::span<const taeda_value> arguments) const {
  if (recorder_) recorder_->refuse("it calls another operator");
  taeda_op op = nullptr;
  passed(api->op_find(name, &op));
  taeda_value result{};
  passed(api->op_call(op, arguments.data(), uint32_t(arguments.size()), &result, 1));
  return Tensor(result.kind == TAEDA_VALUE_TENSOR ? result.as.tensor : nullptr, true);
}

// --- launches ---

void Call::launch(const Kernel& kernel, const void* body, int64_t items) const {
  if (recorder_) recorder_->refuse(std::string("it launches ") + kernel.name);
  const Status status = own_machine()->driver().launch(call_.device.index, kernel, body, items, call_.stream);
  if (status != Status::Ok) done(status, std::string("launch of ") + kernel.name);
}
void Call::done(Status status, const std::string& what) const {
  if (status == Status::Ok) return;
  fail(status == Status::OutOfMemory ? TAEDA_E_MEMORY : TAEDA_E_RUNTIME,
       std::string(name_) + ": cuda: " + what + ": " + own_machine()->driver().text_of(status));
}

}  // namespace taeda::cuda
