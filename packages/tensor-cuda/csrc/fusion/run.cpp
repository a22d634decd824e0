// Runs graphs, and hands them to taeda.
#include <algorithm>
#include <cstring>
#include <exception>

#include "backend/machine.h"
#include "fusion/graph.h"
#include "ops/dimensions.h"

namespace taeda::cuda {

/// The tensors of a run.
struct FusedGraph::Values {
  std::vector<taeda_tensor> tensors;
  std::vector<bool> owned;
  explicit Values(size_t count) : tensors(count, nullptr), owned(count, false) {}
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;
  ~Values() {
    for (size_t i = 0; i < tensors.size(); ++i) release(i);
  }
  void release(size_t i) {
    if (!owned[i]) return;
    owned[i] = false;
    api->tensor_release(tensors[i]);
  }
  void put(int place, taeda_tensor made) {
    if (place < 0) return api->tensor_release(made);
    tensors[size_t(place)] = made;
    owned[size_t(place)] = true;
  }
};

int32_t FusedGraph::run_call(const GraphCall& call, Values& values) const {
  const auto tensor = [&](int place) { return place < 0 ? nullptr : values.tensors[size_t(place)]; };
  std::vector<taeda_value> arguments;
  std::vector<std::vector<taeda_tensor>> lists;
  for (const KeptArgument& kept : call.arguments) {
    taeda_value& value = arguments.emplace_back(kept.value);
    switch (value.kind) {
      case TAEDA_VALUE_TENSOR: value.as.tensor = tensor(kept.place); break;
      case TAEDA_VALUE_TENSORS:
        std::ranges::transform(kept.places, std::back_inserter(lists.emplace_back()), tensor);
        value.as.tensors = lists.back().data();
        break;
      case TAEDA_VALUE_INTS: value.as.integers = kept.integers.data(); break;
      case TAEDA_VALUE_FLOATS: value.as.reals = kept.reals.data(); break;
      case TAEDA_VALUE_TEXT: value.as.text = kept.text.data(); break;
      default: break;
    }
  }
  std::vector<taeda_value> results(call.results.size());
  const int32_t status =
      api->op_call(call.op, arguments.data(), uint32_t(arguments.size()), results.data(), uint32_t(results.size()));
  for (size_t i = 0; status == TAEDA_OK && i < results.size(); ++i)
    if (results[i].kind == TAEDA_VALUE_TENSOR) values.put(call.results[i], results[i].as.tensor);
  return status;
}

namespace {

/// What is folded: the dimensions that are kept come before the others.
void stand_for(StandIn& made, const std::vector<int64_t>& sizes, uint64_t folded) {
  made.sizes = sizes;
  made.strides.resize(sizes.size());
  int64_t behind = 1;
  for (const bool kept : {false, true})
    for (size_t d = sizes.size(); d-- > 0;)
      if ((folded >> d & 1) != kept) made.strides[d] = behind, behind *= sizes[d];
  made.facts.ndim = int32_t(sizes.size());
  made.facts.sizes = made.sizes.data();
  made.facts.strides = made.strides.data();
  made.facts.numel = behind;
}
int64_t blocks_of(const FusedEnd& end) { return (end.outputs + end.rows - 1) / end.rows; }

}  // namespace

int32_t FusedGraph::run_chain(const Unit& unit, Values& values, StreamHandle stream) const {
  constexpr int kMost = 32;
  const Chain& chain = unit.chain;
  const int count = chain.operands(), elements = chain.pack();
  std::vector<Tensor> tensors;
  std::vector<taeda_value> arguments;
  for (const int value : unit.inputs) tensors.emplace_back(values.tensors[size_t(value)]);
  const auto make = [&](int value) {
    const Value& facts = values_[size_t(value)];
    taeda_tensor made = nullptr;
    const int32_t ndim = int32_t(facts.sizes.size());
    const taeda_device device{backend_number, device_};
    passed(api->tensor_empty(ndim, facts.sizes.data(), facts.strides.data(), facts.dtype, device, &made));
    values.put(value, made);
    tensors.emplace_back(made);
  };
  for (const int value : unit.outputs) make(value);
  if (chain.end) make(unit.fold);
  for (const Tensor& t : tensors) {
    taeda_value& value = arguments.emplace_back();
    value.kind = TAEDA_VALUE_TENSOR;
    value.as.tensor = t.handle();
  }
  Tensor folded;
  StandIn whole;
  if (chain.end) {
    folded = std::move(tensors.back());
    tensors.pop_back();
    stand_for(whole, values_[size_t(unit.folded)].sizes, unit.dimensions);
    tensors.emplace_back(whole.handle());
  }
  // The last operand is the last output, or what is folded, whose dimensions are all that there are.
  std::vector<const Tensor*> all;
  for (const Tensor& t : tensors) all.push_back(&t);
  const auto layout = merged_dimensions<kMost>(all);
  if (layout.ndim > kFusedDims) {
    for (const int value : unit.outputs) values.release(size_t(value));
    if (chain.end) values.release(size_t(unit.fold));
    for (const int call : unit.calls)
      if (const int32_t status = run_call(calls_[size_t(call)], values); status != TAEDA_OK) return status;
    return TAEDA_OK;
  }
  std::vector<unsigned char> body(unit.kernel->kernel.size, 0);
  FusedHead head{};
  head.on_host = unit.kernel->on_host;
  head.n = tensors.back().numel();
  head.ndim = layout.ndim;
  head.straight = 1;
  head.in_rows = layout.ndim > 0 && layout.sizes[layout.ndim - 1] % elements == 0;
  std::copy_n(layout.sizes, layout.ndim, head.sizes);
  FusedEnd end{};
  if (chain.end) {
    Fold& f = end.fold;
    end.outputs = folded.numel();
    f.length = head.n / end.outputs;
    f.out = folded.array();
    f.divisor = unit.divisor;
    end.rows = int32_t(outputs_of_block(f.length, end.outputs));
    while (kEachThreads / end.rows >> end.halvings > 1) ++end.halvings;
    divide(f, blocks_of(end));
  }
  const bool in_packs = !chain.end || end.outputs == 1 || end.fold.length % elements == 0;
  std::vector<FusedOperand> operands(static_cast<size_t>(count));
  for (int k = 0; k < count; ++k) {
    FusedOperand& o = operands[size_t(k)];
    const Tensor& t = tensors[size_t(k)];
    std::copy_n(layout.strides[k], layout.ndim, o.strides);
    o.data = t.address();
    bool alone = true, rows = true, straight = true;
    int64_t behind = 1;
    for (int d = layout.ndim - 1; d >= 0; behind *= layout.sizes[d--]) {
      alone = alone && o.strides[d] == 0;
      straight = straight && o.strides[d] == behind;
      rows = rows && (d == layout.ndim - 1 || o.strides[d] % elements == 0);
    }
    o.lies = straight ? Lies::Straight : alone ? Lies::Alone : Lies::Strided;
    o.aligned = in_packs && t.address() % uint64_t(t.item_size() * elements) == 0 && (straight || rows);
    if (o.lies == Lies::Strided) head.straight = 0;
  }
  std::memcpy(body.data(), &head, sizeof head);
  std::memcpy(body.data() + sizeof head, operands.data(), operands.size() * sizeof(FusedOperand));
  if (!unit.numbers.empty())
    std::memcpy(body.data() + sizeof head + operands.size() * sizeof(FusedOperand), unit.numbers.data(),
                unit.numbers.size() * sizeof(FusedNumber));
  taeda_call given{};
  given.size = sizeof given;
  given.arguments = arguments.data();
  given.argument_count = uint32_t(arguments.size());
  given.device = {backend_number, device_};
  given.stream = stream;
  const Call call("fused operators", 0, given);
  if (chain.end) {
    Tensor partial;
    if (end.fold.parts > 1) {
      partial = call.empty({end.outputs * end.fold.parts * int64_t(chain.end->state_size)}, TAEDA_UINT8);
      end.fold.partial = partial.address();
    }
    std::memcpy(body.data() + body.size() - sizeof end, &end, sizeof end);
    call.launch(unit.kernel->kernel, body.data(), blocks_of(end) * end.fold.parts);
    if (end.fold.parts > 1) chain.end->join(call, end.fold, end.outputs);
    return TAEDA_OK;
  }
  call.launch(unit.kernel->kernel, body.data(), (head.n + elements - 1) / elements);
  return TAEDA_OK;
}

int32_t FusedGraph::run(const taeda_tensor* inputs, taeda_tensor* outputs, StreamHandle stream) const {
  Values values(values_.size());
  std::copy_n(inputs, inputs_, values.tensors.begin());
  for (size_t i = 0; i < values_.size(); ++i)
    if (values_[i].constant) values.tensors[i] = values_[i].constant;
  for (size_t u = 0; u < units_.size(); ++u) {
    const Unit& unit = units_[u];
    int32_t status = TAEDA_OK;
    if (unit.kernel) status = run_chain(unit, values, stream);
    else
      for (size_t c = 0; c < unit.calls.size() && status == TAEDA_OK; ++c)
        status = run_call(calls_[size_t(unit.calls[c])], values);
    if (status != TAEDA_OK) return status;
    for (size_t i = 0; i < values_.size(); ++i)
      if (values_[i].last_unit == int(u)) values.release(i);
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    outputs[i] = values.tensors[size_t(outputs_[i])];
    api->tensor_retain(outputs[i]);
  }
  return TAEDA_OK;
}

namespace {

/// Nothing may be thrown across the border.
template <class Body>
int32_t guarded(const Body& body) noexcept {
  try {
    return body();
  } catch (const Failure& failure) {
    return failure.status;
  } catch (const std::exception& error) {
    return api->set_error(TAEDA_E_RUNTIME, (std::string("cuda: graph: ") + error.what()).c_str());
  }
}
int32_t graph_compile(void*, int32_t index, const taeda_graph* graph, taeda_executable* executable) {
  return guarded([&] {
    std::string why;
    *executable = FusedGraph::make(index, *graph, why).release();
    return *executable ? TAEDA_OK : api->set_error(TAEDA_DECLINED, why.c_str());
  });
}
int32_t graph_run(void*, taeda_executable executable, const taeda_tensor* inputs, taeda_tensor* outputs,
                  taeda_stream stream) {
  return guarded([&] { return static_cast<const FusedGraph*>(executable)->run(inputs, outputs, stream); });
}
void graph_release(void*, taeda_executable executable) { delete static_cast<const FusedGraph*>(executable); }

}  // namespace

void offer_graphs(taeda_backend& backend) {
  backend.graph_compile = graph_compile;
  backend.graph_run = graph_run;
  backend.graph_release = graph_release;
}

}  // namespace taeda::cuda
