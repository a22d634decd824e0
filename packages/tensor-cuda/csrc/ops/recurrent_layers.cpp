// Whole recurrent layers by NVIDIA's library: kernels of the composites `lstm`, `gru`, `rnn_tanh` and `rnn_relu`, which
// call an operator of the backend's own, and its gradient. Where the library has no way they decline, and the layers
// are computed step by step (recurrent.cpp).
#include "ops/recurrent_layers.h"

#include <algorithm>
#include <array>
#include <exception>
#include <optional>

#include "driver/cudnn.h"
#include "ops/elementwise.h"
#include "ops/read.h"

namespace taeda::cuda {
namespace {

constexpr const char* kLayers = "cuda::recurrent_layers";
constexpr const char* kBackward = "cuda::recurrent_layers_backward";
/// Arguments of the operator behind its tensors, and of its gradient: those that say what the layers are, and a flag.
#define TAEDA_LAYERS_SETTINGS \
  "int cell, int num_layers, bool has_biases, bool bidirectional, bool batch_first, int[] lengths"
constexpr const char* kLayersSchema =
    "cuda::recurrent_layers(Tensor input, Tensor h, Tensor? c, Tensor[] params, " TAEDA_LAYERS_SETTINGS
    ", bool keep) -> (Tensor output, Tensor h_out, Tensor c_out, Tensor kept)";
constexpr const char* kBackwardSchema =
    "cuda::recurrent_layers_backward(Tensor? grad_output, Tensor? grad_h, Tensor? grad_c, Tensor input, Tensor h, "
    "Tensor? c, Tensor[] params, Tensor output, Tensor kept, " TAEDA_LAYERS_SETTINGS
    ", bool of_params) -> (Tensor grad_input, Tensor grad_h_in, Tensor grad_c_in, Tensor grad_params)";
constexpr int kSettings = 4, kBackwardSettings = 9, kFlag = 6;

// --- values ---

taeda_value value_of(const Tensor& t) {
  taeda_value value{};
  if (!t) return value;
  value.kind = TAEDA_VALUE_TENSOR;
  value.as.tensor = t.handle();
  return value;
}
taeda_value value_of(uint32_t kind, int64_t integer) {
  taeda_value value{};
  value.kind = kind;
  value.as.integer = integer;
  return value;
}
taeda_value value_of(std::span<const int64_t> integers) {
  taeda_value value{};
  value.kind = TAEDA_VALUE_INTS;
  value.count = int64_t(integers.size());
  value.as.integers = integers.data();
  return value;
}
/// A list of borrowed tensors, as long as this lives.
struct List {
  std::vector<taeda_tensor> handles;
  explicit List(std::span<const Tensor> tensors) {
    for (const Tensor& t : tensors) handles.push_back(t.handle());
  }
  taeda_value value() const {
    taeda_value value{};
    value.kind = TAEDA_VALUE_TENSORS;
    value.count = int64_t(handles.size());
    value.as.tensors = handles.data();
    return value;
  }
};
/// Calls an operator from its top; its results are tensors.
template <size_t N>
std::array<Tensor, N> results_of(const char* name, std::span<const taeda_value> arguments) {
  taeda_op op = nullptr;
  passed(api->op_find(name, &op));
  std::array<taeda_value, N> made{};
  passed(api->op_call(op, arguments.data(), uint32_t(arguments.size()), made.data(), uint32_t(N)));
  std::array<Tensor, N> found;
  for (size_t i = 0; i < N; ++i)
    if (made[i].kind == TAEDA_VALUE_TENSOR) found[i] = Tensor(made[i].as.tensor, true);
  return found;
}
Tensor view_of(const Tensor& of, std::span<const int64_t> sizes, std::span<const int64_t> strides, int64_t offset) {
  taeda_tensor made = nullptr;
  passed(api->tensor_view(of.handle(), int32_t(sizes.size()), sizes.data(), strides.data(), offset, &made));
  return Tensor(made, true);
}
bool requires_grad(const Tensor& t) {
  taeda_tensor_info info{};
  info.size = sizeof info;
  return t && api->tensor_read(t.handle(), &info) == TAEDA_OK && (info.flags & TAEDA_TENSOR_REQUIRES_GRAD);
}

// --- what layers are ---

/// What a call is given: layers, and what they work with. h and c are (layers * directions, batch, features).
struct Given {
  Recurrence layers;
  Tensor input, h, c;
  std::vector<Tensor> params;
  size_t params_each() const { return (layers.biased ? 4 : 2) + (layers.projected ? 1 : 0); }
};
bool has_sizes(const Tensor& t, std::initializer_list<int64_t> sizes) { return std::ranges::equal(t.sizes(), sizes); }

/// Fills in the sizes of layers whose settings are known; whether all tensors are such as the library takes.
bool measure(Given& given) {
  Recurrence& r = given.layers;
  const int64_t stacked = int64_t(r.layers) * r.directions;
  if (r.layers < 1 || given.params.empty() || (r.cell == Cell::Lstm) != bool(given.c)) return false;
  if (given.input.ndim() != (r.lengths.empty() ? 3 : 2) || given.h.ndim() != 3) return false;
  r.dtype = given.input.dtype();
  r.tf32 = r.dtype == TAEDA_FLOAT32 && cudnn_tf32_allowed;
  r.inputs = given.input.size(-1);
  if (r.lengths.empty()) {
    r.steps = given.input.size(r.batch_first ? 1 : 0), r.batch = given.input.size(r.batch_first ? 0 : 1);
  } else {
    r.steps = r.lengths.front(), r.batch = int64_t(r.lengths.size());
  }
  r.hidden = given.params[0].ndim() == 2 ? given.params[0].size(0) / r.gates() : 0;
  if (given.h.size(2) != r.hidden) r.projected = given.h.size(2);
  if (!is_float_type(r.dtype) || given.input.numel() == 0 || given.h.numel() == 0 || r.hidden == 0) return false;
  if (given.input.numel() != r.rows() * r.inputs || !has_sizes(given.h, {stacked, r.batch, r.features()})) return false;
  if (given.c && !has_sizes(given.c, {stacked, r.batch, r.hidden})) return false;
  const size_t each = given.params_each();
  if (given.params.size() != size_t(stacked) * each) return false;
  const int64_t rows = r.gates() * r.hidden;
  for (int64_t i = 0; i < stacked; ++i) {
    const Tensor* const w = &given.params[size_t(i) * each];
    bool fits = has_sizes(w[0], {rows, r.inputs_of(int(i / r.directions))}) && has_sizes(w[1], {rows, r.features()});
    if (r.biased) fits = fits && has_sizes(w[2], {rows}) && has_sizes(w[3], {rows});
    if (r.projected) fits = fits && has_sizes(w[each - 1], {r.projected, r.hidden});
    if (!fits) return false;
  }
  const auto meets = [&](const Tensor& t) { return !t || (t.dtype() == r.dtype && !t.on_host()); };
  return meets(given.input) && meets(given.h) && meets(given.c) && std::ranges::all_of(given.params, meets);
}
SharedRecurrencePlan plan_of(const Recurrence& layers, taeda_device device, StreamHandle stream) {
  return own_machine()->driver().plan_recurrence(device.index, layers, stream);
}

/// Rows of a parameter that lie beside each other in the plan's weights too, which begin there at this byte.
struct Part {
  size_t param;
  int64_t row, rows, columns, begin;
};
std::vector<Part> parts_of(const RecurrencePlan& plan, size_t each, int item) {
  const Recurrence& r = plan.layers;
  std::vector<Part> parts;
  const auto add = [&](size_t param, int64_t row, int64_t rows, int64_t columns, int64_t begin) {
    Part* const last = parts.empty() ? nullptr : &parts.back();
    if (last && last->param == param && last->begin + last->rows * columns * item == begin) last->rows += rows;
    else parts.push_back({param, row, rows, columns, begin});
  };
  for (int i = 0; i < r.layers * r.directions; ++i) {
    const RecurrencePlan::Place* const places = &plan.places[size_t(i) * plan.places_each()];
    const size_t first = size_t(i) * each;
    for (int side = 0; side < 2; ++side) {
      const RecurrencePlan::Place* const own = places + side * r.gates();
      const int64_t columns = side == 0 ? r.inputs_of(i / r.directions) : r.features();
      for (int g = 0; g < r.gates(); ++g) add(first + size_t(side), g * r.hidden, r.hidden, columns, own[g].matrix);
      for (int g = 0; r.biased && g < r.gates(); ++g)
        add(first + size_t(2 + side), g * r.hidden, r.hidden, 1, own[g].bias);
    }
    if (r.projected) add(first + each - 1, 0, r.projected, r.hidden, places[2 * r.gates()].matrix);
  }
  return parts;
}
/// Of a matrix or vector of `columns`, the rows that a part is.
Tensor rows_of(const Tensor& of, const Part& part, int64_t offset, std::span<const int64_t> strides) {
  const std::array<int64_t, 2> sizes{part.rows, part.columns};
  return view_of(of, std::span(sizes).first(strides.size()), strides, offset);
}

/// The parameters as the library wants them: where they lie so already (after `flatten_parameters`) the memory itself.
class Weights {
 public:
  Weights(const Call& call, const RecurrencePlan& plan, const Given& given) {
    const int item = given.input.item_size();
    const std::vector<Part> parts = parts_of(plan, given.params_each(), item);
    if (lie_so(plan, parts, given.params, item)) {
      address_ =
          given.params[parts[0].param].address() - Address(parts[0].begin - parts[0].row * row_bytes(parts[0], item));
      return;
    }
    packed_ = call.empty({int64_t(plan.weights) / item}, given.input.dtype());
    address_ = packed_.address();
    for (const Part& part : parts) {
      const Tensor& from = given.params[part.param];
      const std::array<int64_t, 2> strides{part.columns, 1};
      const size_t dims = size_t(from.ndim());
      const Tensor to = rows_of(packed_, part, part.begin / item, std::span(strides).last(dims));
      call.copy(to, rows_of(from, part, part.row * from.stride(0), from.strides()));
    }
  }
  Address address() const { return address_; }

 private:
  static int64_t row_bytes(const Part& part, int item) { return part.columns * item; }
  static bool lie_so(const RecurrencePlan& plan, const std::vector<Part>& parts, const std::vector<Tensor>& params,
                     int item) {
    std::optional<Address> begin;
    for (const Part& part : parts) {
      const Tensor& t = params[part.param];
      const Address found = t.address() + Address(part.row * row_bytes(part, item)) - Address(part.begin);
      if (!t.contiguous() || found != begin.value_or(found)) return false;
      begin = found;
    }
    return params[0].holds(*begin, plan.weights) &&
           std::ranges::all_of(params, [&](const Tensor& t) { return t.shares_with(params[0]); });
  }
  Address address_ = 0;
  Tensor packed_;
};

/// The operator's layers, from `tensors` (input, h, c, params) and `settings` on.
Given given_to(const taeda_value* tensors, const taeda_value* settings) {
  Given given;
  const auto tensor = [&](int i) {
    return tensors[i].kind == TAEDA_VALUE_TENSOR ? Tensor(tensors[i].as.tensor) : Tensor();
  };
  given.input = tensor(0), given.h = tensor(1), given.c = tensor(2);
  for (int64_t i = 0; i < tensors[3].count; ++i) given.params.emplace_back(tensors[3].as.tensors[i]);
  Recurrence& r = given.layers;
  r.cell = Cell(settings[0].as.integer);
  r.layers = int32_t(settings[1].as.integer);
  r.biased = settings[2].as.integer != 0;
  r.directions = settings[3].as.integer ? 2 : 1;
  r.batch_first = settings[4].as.integer != 0;
  r.lengths.assign(settings[5].as.integers, settings[5].as.integers + settings[5].count);
  return given;
}
/// What a kernel begins with: layers that the library takes.
SharedRecurrencePlan planned(const Call& call, Given& given) {
  SharedRecurrencePlan plan;
  if (measure(given)) plan = plan_of(given.layers, call.device(), call.stream());
  if (!plan) fail(TAEDA_E_NOT_IMPLEMENTED, std::string(call.name()) + ": cuDNN has no way to compute such layers");
  return plan;
}
void put(const Call& call, const SharedRecurrencePlan& plan, RecurrenceRun& run) {
  const Tensor workspace = plan->workspace ? call.empty({int64_t(plan->workspace)}, TAEDA_UINT8) : Tensor();
  run.workspace = workspace ? workspace.address() : 0;
  call.done(own_machine()->driver().recur(call.device().index, plan, run, call.stream()), "recurrent layers");
}
Address address_of(const Tensor& t) { return t ? t.address() : 0; }

void recurrent_layers(const Call& call) {
  Given given = given_to(&call.value(0), &call.value(kSettings));
  given.layers.keeps = call.flag(kSettings + kFlag);
  const SharedRecurrencePlan plan = planned(call, given);
  const Recurrence& r = plan->layers;
  const Weights weights(call, *plan, given);
  const Read x(call, given.input), h(call, given.h), c(call, given.c);
  std::vector<int64_t> sizes(given.input.sizes().begin(), given.input.sizes().end());
  sizes.back() = r.directions * r.features();
  Tensor y = call.empty(sizes, r.dtype), h_out = call.empty(given.h.sizes(), r.dtype);
  Tensor c_out = given.c ? call.empty(given.c.sizes(), r.dtype) : call.empty({0}, r.dtype);
  Tensor kept = call.empty({int64_t(plan->kept)}, TAEDA_UINT8);
  RecurrenceRun run;
  run.x = x.rows().address(), run.h = h.rows().address(), run.c = address_of(c.rows());
  run.weights = weights.address();
  run.y = y.address(), run.h_out = h_out.address(), run.c_out = given.c ? c_out.address() : 0;
  run.kept = plan->kept ? kept.address() : 0;
  put(call, plan, run);
  call.result(0, std::move(y)), call.result(1, std::move(h_out)), call.result(2, std::move(c_out));
  call.result(3, std::move(kept));
}
void recurrent_layers_backward(const Call& call) {
  Given given = given_to(&call.value(3), &call.value(kBackwardSettings));
  given.layers.keeps = true;
  const SharedRecurrencePlan plan = planned(call, given);
  const Recurrence& r = plan->layers;
  const Tensor output = call.tensor(7), given_kept = call.tensor(8);
  if (given_kept.numel() != int64_t(plan->kept))
    fail(TAEDA_E_RUNTIME, std::string(call.name()) + ": argument 'kept' has " + std::to_string(given_kept.numel()) +
                              " bytes, expected " + std::to_string(plan->kept) + ", as the layers keep with 'keep'");
  const Weights weights(call, *plan, given);
  const Read x(call, given.input), h(call, given.h), c(call, given.c), y(call, output);
  const Read of_h(call, call.tensor(1)), of_c(call, given.c ? call.tensor(2) : Tensor());
  Tensor of_y = call.tensor(0) ? call.rows(call.tensor(0), r.dtype) : call.empty(output.sizes(), r.dtype);
  if (!call.tensor(0)) fill_elements(call, of_y, {}, TAEDA_FLOAT64);
  // The library overwrites what it kept; a graph that is retained needs it again.
  const Tensor kept = call.empty(given_kept.sizes(), TAEDA_UINT8);
  call.copy(kept, given_kept);
  Tensor to_x = call.empty(given.input.sizes(), r.dtype), to_h = call.empty(given.h.sizes(), r.dtype);
  Tensor to_c = given.c ? call.empty(given.c.sizes(), r.dtype) : call.empty({0}, r.dtype);
  const bool of_params = call.flag(kBackwardSettings + kFlag);
  Tensor to_weights = call.empty({of_params ? int64_t(plan->weights) / given.input.item_size() : 0}, r.dtype);
  if (of_params) fill_elements(call, to_weights, {}, TAEDA_FLOAT64);
  RecurrenceRun run;
  run.backward = true;
  run.x = x.rows().address(), run.h = h.rows().address(), run.c = address_of(c.rows()), run.y = y.rows().address();
  run.weights = weights.address(), run.kept = plan->kept ? kept.address() : 0;
  run.of_y = of_y.address(), run.of_h_out = address_of(of_h.rows()), run.of_c_out = address_of(of_c.rows());
  run.to_x = to_x.address(), run.to_h = to_h.address(), run.to_c = given.c ? to_c.address() : 0;
  run.to_weights = of_params ? to_weights.address() : 0;
  put(call, plan, run);
  call.result(0, std::move(to_x)), call.result(1, std::move(to_h)), call.result(2, std::move(to_c));
  call.result(3, std::move(to_weights));
}

// --- derivatives ---

/// A parameter's gradient, from those of all weights.
Tensor gradient_of(const Tensor& all, const Tensor& param, std::span<const Part> parts, int item) {
  std::vector<Tensor> views;
  for (const Part& part : parts) {
    const std::array<int64_t, 2> strides{part.columns, 1};
    views.push_back(rows_of(all, part, part.begin / item, std::span(strides).last(size_t(param.ndim()))));
  }
  if (views.size() == 1) return std::move(views[0]);
  const List list(views);
  const taeda_value arguments[] = {list.value(), value_of(TAEDA_VALUE_INT, 0)};
  return std::move(results_of<1>("cat", arguments)[0]);
}
void gradients_of(const taeda_call& call, const taeda_value* outputs, const taeda_value* gradients) {
  const taeda_value* const a = call.arguments;
  for (uint32_t i = 0; i < call.result_count; ++i) call.results[i] = {};
  Given given = given_to(a, a + kSettings);
  given.layers.keeps = true;
  const taeda_tensor handle = given.input.handle();
  taeda_tensor_info info{};
  info.size = sizeof info;
  passed(api->tensor_read(handle, &info));
  const bool of_params = std::ranges::any_of(given.params, requires_grad);
  std::vector<taeda_value> arguments{gradients[0], gradients[1], gradients[2], a[0],      a[1],
                                     a[2],         a[3],         outputs[0],   outputs[3]};
  if (!given.c) arguments[2] = {};
  arguments.insert(arguments.end(), a + kSettings, a + kSettings + kFlag);
  arguments.push_back(value_of(TAEDA_VALUE_BOOL, of_params));
  auto made = results_of<4>(kBackward, arguments);
  const auto give = [&](int i, Tensor& t) { call.results[i] = value_of(t), t.release(); };
  if (of_params && measure(given)) {
    const SharedRecurrencePlan plan = plan_of(given.layers, info.device, api->stream_current(info.device));
    const std::vector<Part> parts = parts_of(*plan, given.params_each(), given.input.item_size());
    std::vector<taeda_tensor> found(given.params.size());
    std::vector<Tensor> owned;
    for (size_t i = 0; i < found.size(); ++i) {
      std::vector<Part> own;
      std::ranges::copy_if(parts, std::back_inserter(own), [&](const Part& part) { return part.param == i; });
      found[i] = owned.emplace_back(gradient_of(made[3], given.params[i], own, given.input.item_size())).handle();
    }
    passed(api->value_tensors(found.data(), int64_t(found.size()), &call.results[3]));
    for (Tensor& t : owned) t.release();
  }
  give(0, made[0]), give(1, made[1]);
  if (given.c) give(2, made[2]);
}

// --- kernels of composites ---

/// What `lstm` and the others are called with.
struct Asked {
  Given given;
  double dropout = 0;
};
/// Lengths of packed sequences, from how many are running at each step; none where they are no such numbers.
std::vector<int64_t> lengths_of(const Tensor& batch_sizes) {
  if (!batch_sizes || batch_sizes.ndim() != 1 || batch_sizes.dtype() != TAEDA_INT64) return {};
  std::vector<int64_t> running(static_cast<size_t>(batch_sizes.numel()));
  passed(api->tensor_to_host(batch_sizes.handle(), running.data(), running.size() * sizeof(int64_t)));
  if (running.empty() || running.back() < 1 || !std::ranges::is_sorted(running, std::greater{})) return {};
  std::vector<int64_t> lengths(static_cast<size_t>(running.front()));
  for (size_t n = 0; n < lengths.size(); ++n)
    lengths[n] = std::ranges::count_if(running, [&](int64_t still) { return still > int64_t(n); });
  return lengths;
}
/// Reads a call; false where it is none for the library.
bool read(const Call& call, Cell cell, bool packed, Asked& asked) {
  Given& given = asked.given;
  Recurrence& r = given.layers;
  const int hx = packed ? 2 : 1, rest = hx + 2;
  r.cell = cell;
  given.input = call.tensor(0);
  if (packed && (r.lengths = lengths_of(call.tensor(1))).empty()) return false;
  std::vector<Tensor> states = call.tensors(hx);
  if (cell == Cell::Lstm) {
    if (states.size() != 2 || !states[0] || !states[1]) return false;
    given.h = std::move(states[0]), given.c = std::move(states[1]);
  } else {
    given.h = call.tensor(hx);
  }
  given.params = call.tensors(hx + 1);
  if (!given.input || !given.h || !std::ranges::all_of(given.params, [](const Tensor& t) { return bool(t); }))
    return false;
  r.biased = call.flag(rest);
  r.layers = int32_t(std::clamp<int64_t>(call.integer(rest + 1), 0, 1 << 20));
  asked.dropout = call.flag(rest + 3) ? call.real(rest + 2) : 0;
  r.directions = call.flag(rest + 4) ? 2 : 1;
  r.batch_first = !packed && call.flag(rest + 5);
  return measure(given);
}
/// Whether a gradient will be asked for: of what requires one, while such are recorded.
bool is_recorded(const Given& given) {
  const auto recorded = [](const Tensor& t) {
    return requires_grad(t) && requires_grad(view_of(t, t.sizes(), t.strides(), 0));
  };
  return recorded(given.input) || recorded(given.h) || recorded(given.c) || std::ranges::any_of(given.params, recorded);
}
/// One run of the library.
std::array<Tensor, 4> run_layers(const Given& given) {
  const Recurrence& r = given.layers;
  const List params(given.params);
  const taeda_value arguments[] = {value_of(given.input),
                                   value_of(given.h),
                                   value_of(given.c),
                                   params.value(),
                                   value_of(TAEDA_VALUE_INT, int64_t(r.cell)),
                                   value_of(TAEDA_VALUE_INT, r.layers),
                                   value_of(TAEDA_VALUE_BOOL, r.biased),
                                   value_of(TAEDA_VALUE_BOOL, r.directions == 2),
                                   value_of(TAEDA_VALUE_BOOL, r.batch_first),
                                   value_of(r.lengths),
                                   value_of(TAEDA_VALUE_BOOL, r.keeps)};
  return results_of<4>(kLayers, arguments);
}
/// Layer `i` alone.
Given layer_of(const Given& all, int i, const Tensor& input) {
  Given one;
  one.layers = all.layers;
  one.layers.layers = 1;
  one.layers.inputs = all.layers.inputs_of(i);
  const auto own = [&](const Tensor& t) {
    const std::array<int64_t, 3> sizes{all.layers.directions, t.size(1), t.size(2)};
    return view_of(t, sizes, t.strides(), i * all.layers.directions * t.stride(0));
  };
  one.input = Tensor(input.handle());
  one.h = own(all.h);
  if (all.c) one.c = own(all.c);
  const size_t count = all.params_each() * size_t(all.layers.directions);
  for (size_t k = 0; k < count; ++k) one.params.emplace_back(all.params[size_t(i) * count + k].handle());
  return one;
}
/// Layer by layer, with taeda's own dropout between them: its numbers are those of the device's generator.
std::array<Tensor, 4> run_with_dropout(const Given& given, double dropout) {
  std::vector<Tensor> h, c;
  Tensor sequence(given.input.handle());
  for (int i = 0; i < given.layers.layers; ++i) {
    if (i > 0) {
      taeda_value share{};
      share.kind = TAEDA_VALUE_FLOAT, share.as.real = dropout;
      const taeda_value arguments[] = {value_of(sequence), share, value_of(TAEDA_VALUE_BOOL, 1)};
      sequence = std::move(results_of<1>("dropout", arguments)[0]);
    }
    auto made = run_layers(layer_of(given, i, sequence));
    sequence = std::move(made[0]);
    h.push_back(std::move(made[1])), c.push_back(std::move(made[2]));
  }
  const auto joined = [](std::span<const Tensor> parts) {
    const List list(parts);
    const taeda_value arguments[] = {list.value(), value_of(TAEDA_VALUE_INT, 0)};
    return std::move(results_of<1>("cat", arguments)[0]);
  };
  return {std::move(sequence), joined(h), given.c ? joined(c) : Tensor(), Tensor()};
}
bool has_plans(const Given& given, const Call& call, bool apart) {
  Recurrence one = given.layers;
  if (apart) one.layers = 1;
  for (int i = 0; i < (apart ? std::min(given.layers.layers, 2) : 1); ++i) {
    one.inputs = given.layers.inputs_of(i);
    if (!plan_of(one, call.device(), call.stream())) return false;
  }
  return true;
}
/// Whether the layers were computed; the results are then in place.
bool compute(const Call& call, Cell cell, bool packed) {
  // Its sums may come in another order in each run.
  if (!cudnn_enabled || cudnn_deterministic || (TAEDA_API_HAS(api, deterministic) && api->deterministic()))
    return false;
  Asked asked;
  if (!read(call, cell, packed, asked)) return false;
  asked.given.layers.keeps = is_recorded(asked.given);
  const bool apart = asked.dropout > 0 && asked.given.layers.layers > 1;
  if (!has_plans(asked.given, call, apart)) return false;
  auto made = apart ? run_with_dropout(asked.given, asked.dropout) : run_layers(asked.given);
  for (int i = 0; i < (cell == Cell::Lstm ? 3 : 2); ++i) call.result(i, std::move(made[size_t(i)]));
  return true;
}

/// Nothing may be thrown across the border.
template <class Work>
int32_t guarded(const char* name, const Work& work) noexcept {
  try {
    return work();
  } catch (const Failure& failure) {
    return failure.status;
  } catch (const std::exception& error) {
    return api->set_error(TAEDA_E_MEMORY, (std::string(name) + ": " + error.what()).c_str());
  }
}
struct Composite {
  const char* name;
  Cell cell;
  bool packed;
};
constexpr Composite kComposites[] = {{"lstm", Cell::Lstm, false},         {"gru", Cell::Gru, false},
                                     {"rnn_tanh", Cell::Tanh, false},     {"rnn_relu", Cell::Relu, false},
                                     {"lstm.data", Cell::Lstm, true},     {"gru.data", Cell::Gru, true},
                                     {"rnn_tanh.data", Cell::Tanh, true}, {"rnn_relu.data", Cell::Relu, true}};
int32_t compute_composite(void* context, const taeda_call* call) {
  const Composite& own = *static_cast<const Composite*>(context);
  return guarded(own.name,
                 [&] { return compute(Call(own.name, 0, *call), own.cell, own.packed) ? TAEDA_OK : TAEDA_DECLINED; });
}
int32_t differentiate(void*, const taeda_call* call, const taeda_value* outputs, const taeda_value* gradients) {
  return guarded(kLayers, [&] { return gradients_of(*call, outputs, gradients), TAEDA_OK; });
}
int32_t refuse_second(void*, const taeda_call*, const taeda_value*, const taeda_value*) {
  return api->set_error(TAEDA_E_NOT_IMPLEMENTED,
                        "recurrent layers by cuDNN have no second derivatives: compute forward within "
                        "taeda.backends.cudnn.flags(enabled=False)");
}
int32_t define(const char* schema, decltype(taeda_operator::derivative) derivative) {
  taeda_operator definition{};
  definition.size = sizeof definition;
  definition.schema = schema;
  definition.owner = "taeda-tensor-cuda";
  definition.derivative = derivative;
  return api->op_define(&definition, nullptr);
}

}  // namespace

int32_t define_recurrent_layers() {
  const int32_t status = define(kLayersSchema, differentiate);
  return status == TAEDA_OK ? define(kBackwardSchema, refuse_second) : status;
}
int32_t register_recurrent_composites() {
  if (api->minor < 5) return TAEDA_OK;  // kernels of composites would not be asked while gradients are recorded
  for (const Composite& composite : kComposites) {
    taeda_kernel kernel{};
    kernel.size = sizeof kernel;
    kernel.op = composite.name;
    kernel.kind = TAEDA_KIND_DIRECT;
    kernel.backend = backend_number;
    kernel.flags = TAEDA_KERNEL_RECORDED;
    kernel.function = compute_composite;
    kernel.context = const_cast<Composite*>(&composite);
    kernel.owner = "taeda-tensor-cuda";
    const int32_t status = api->kernel_add(&kernel, nullptr);
    if (status != TAEDA_OK && status != TAEDA_ABSENT) return status;
  }
  return TAEDA_OK;
}
const std::vector<Operation>& recurrent_layer_operations() {
  static const std::vector<Operation> operations{{kLayers, recurrent_layers}, {kBackward, recurrent_layers_backward}};
  return operations;
}

}  // namespace taeda::cuda
