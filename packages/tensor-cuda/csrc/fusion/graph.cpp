// From the calls of a graph to the units in which they run.
#include "fusion/graph.h"

#include <algorithm>
#include <map>
#include <set>

#include "backend/machine.h"
#include "driver/compiler.h"
#include "ops/elementwise.h"

namespace taeda::cuda {
namespace {

/// Most operands and steps of a chain: its body has to fit the 4 KiB that a launch takes.
constexpr size_t kMostInputs = 12, kMostSteps = 16;
constexpr uint32_t kMostBody = 4000;

/// What a line, or a fold, makes of a call: its operands are values of the graph where `place` is not negative.
struct Ending {
  const FoldEnd* end;
  int of;  // value
  uint64_t dimensions;
  double divisor;
};
struct Line {
  std::optional<Step> step;
  std::optional<Ending> ending;
  std::string why_not;
};

}  // namespace

/// Takes the calls in their order. A call that is a line joins the last unit of its shape that may take it.
struct FusedGraph::Maker final : Recorder {
  FusedGraph& made;
  std::map<taeda_tensor, int> known;   // values by their handles
  std::deque<StandIn> stand_ins;       // of the values
  std::vector<int> unit_of;            // of each value: which unit makes it; -1: none
  std::vector<Line> lines;             // of each call
  std::map<taeda_tensor, int> places;  // of the call that is taken down: values by the handles that its function sees
  Line taken;

  explicit Maker(FusedGraph& graph) : made(graph) {}
  virtual ~Maker() = default;

  // --- values ---

  int new_value(taeda_tensor handle) {
    const int place = int(made.values_.size());
    Value& value = made.values_.emplace_back();
    unit_of.push_back(-1);
    known[handle] = place;
    taeda_tensor_info info{};
    info.size = sizeof info;
    passed(api->tensor_read(handle, &info));
    value.dtype = info.dtype;
    value.sizes.assign(info.sizes, info.sizes + info.ndim);
    value.strides.assign(info.strides, info.strides + info.ndim);
    StandIn& shown = stand_ins.emplace_back();
    shown.facts = info;
    shown.sizes = value.sizes;
    shown.strides = value.strides;
    shown.facts.sizes = shown.sizes.data();
    shown.facts.strides = shown.strides.data();
    shown.facts.device = {backend_number, made.device_};
    return place;
  }
  /// A tensor that is neither an input nor a result is a constant.
  int value_of(taeda_tensor handle) {
    if (!handle) return -1;
    if (const auto found = known.find(handle); found != known.end()) return found->second;
    const Tensor facts(handle);
    const bool on_host = facts.on_host();
    const int place = new_value(handle);
    api->tensor_retain(handle);
    made.values_[size_t(place)].constant = handle;
    if (on_host) api->tensor_read(handle, &stand_ins.back().facts);
    return place;
  }
  KeptArgument kept(const taeda_value& value) {
    KeptArgument k;
    k.value = value;
    const size_t count = size_t(value.count);
    switch (value.kind) {
      case TAEDA_VALUE_TENSOR: k.place = value_of(value.as.tensor); break;
      case TAEDA_VALUE_TENSORS:
        for (size_t i = 0; i < count; ++i) k.places.push_back(value_of(value.as.tensors[i]));
        break;
      case TAEDA_VALUE_INTS: k.integers.assign(value.as.integers, value.as.integers + count); break;
      case TAEDA_VALUE_FLOATS: k.reals.assign(value.as.reals, value.as.reals + count); break;
      case TAEDA_VALUE_TEXT: k.text.assign(value.as.text, count); break;
      default: break;
    }
    return k;
  }

  // --- lines ---

  void line(const Row& row, Class c, const Tensor& out, std::span<const Tensor* const> operands, const Numbers& numbers,
            bool may_divide_by_zero) override {
    if (taken.step) refuse("it is more than one line");
    if (may_divide_by_zero) refuse("it may divide by zero, which is told");
    if (c == Class::Complex) refuse("it computes with complex numbers");
    const char* const family = row.kernels[int(c)]->family;
    if (!has_line(family)) refuse(std::string("its line is of the family ") + family);
    if (!has_dtype(out.dtype())) refuse("its dtype is none that chains have");
    Step step{row.name, family, c, out.dtype(), {}, {}};
    for (int k = 0; k < 3; ++k) step.numbers[k] = {numbers.as[size_t(k)], numbers.real[size_t(k)]};
    for (const Tensor* operand : operands) {
      if (operand->on_host()) {
        step.operands.push_back({-1, {number_of(*operand), 0}});
        continue;
      }
      if (!has_dtype(operand->dtype())) refuse("its dtype is none that chains have");
      step.operands.push_back({places.at(operand->handle()), {}});
    }
    taken.step = std::move(step);
  }
  void fold(const FoldEnd& end, const Tensor& out, const Tensor& self, uint64_t dimensions, double divisor) override {
    if (taken.step || taken.ending) refuse("it is more than a fold");
    if (!out.contiguous()) refuse("its result does not lie row by row");
    const auto found = places.find(self.handle());
    if (found == places.end()) refuse("it folds what is no value of the graph");
    taken.ending = {&end, found->second, dimensions, divisor};
  }
  Line line_of(const taeda_graph_node& node, const GraphCall& call) {
    taken = {};
    places.clear();
    std::vector<taeda_value> arguments;
    const auto shown = [&](int place) {
      StandIn& stand_in = stand_ins[size_t(place)];
      places[stand_in.handle()] = place;
      return stand_in.handle();
    };
    taeda_op_info op{};
    op.size = sizeof op;
    passed(api->op_read(node.op, &op));
    if (call.results.size() != 1 || call.results[0] < 0) return {{}, {}, "it has not one result"};
    taeda_value out{};
    out.kind = TAEDA_VALUE_TENSOR;
    out.as.tensor = shown(call.results[0]);
    arguments.push_back(out);
    for (const KeptArgument& argument : call.arguments) {
      arguments.push_back(argument.value);
      if (argument.place >= 0) arguments.back().as.tensor = shown(argument.place);
      if (argument.value.kind == TAEDA_VALUE_TENSORS) return {{}, {}, "it has a list of tensors"};
    }
    taeda_call given{};
    given.size = sizeof given;
    given.op = node.op;
    given.arguments = arguments.data();
    given.argument_count = uint32_t(arguments.size());
    given.output_count = 1;
    given.device = {backend_number, made.device_};
    try {
      if (!record_operation(op.name, given, *this)) return {{}, {}, "it is not element-wise"};
    } catch (const Refused& refused) {
      return {{}, {}, refused.why};
    }
    if (!taken.step) taken.why_not = taken.ending ? "it folds what no chain makes" : "it has no elements";
    return taken;
  }

  // --- units ---

  /// Whether a unit needs another one's results, directly or not.
  bool needs(int unit, int other, std::set<int>& seen) const {
    if (unit == other) return true;
    if (!seen.insert(unit).second) return false;
    for (const int call : made.units_[size_t(unit)].calls) {
      bool found = false;
      each_operand(made.calls_[size_t(call)], [&](int value) {
        const int before = unit_of[size_t(value)];
        found = found || (before >= 0 && before != unit && needs(before, other, seen));
      });
      if (found) return true;
    }
    return false;
  }
  template <class F>
  static void each_operand(const GraphCall& call, const F& f) {
    for (const KeptArgument& argument : call.arguments) {
      if (argument.place >= 0) f(argument.place);
      for (const int place : argument.places)
        if (place >= 0) f(place);
    }
  }
  /// Values that a unit with these calls would read.
  std::set<int> read_by(const std::vector<int>& calls) const {
    std::set<int> read, own;
    for (const int call : calls) {
      if (!lines[size_t(call)].step) continue;
      for (const Read& source : lines[size_t(call)].step->operands)
        if (source.place >= 0 && !own.contains(source.place)) read.insert(source.place);
      own.insert(made.calls_[size_t(call)].results[0]);
    }
    return read;
  }
  /// Whether a unit may take a call: of the same shape, not too much, and needing nothing that needs the unit.
  bool may_take(int place, int call) const {
    const Unit& unit = made.units_[size_t(place)];
    const auto shape_of = [&](int c) { return made.values_[size_t(made.calls_[size_t(c)].results[0])].sizes; };
    if (!lines[size_t(unit.calls[0])].step || unit.calls.size() >= kMostSteps ||
        shape_of(unit.calls[0]) != shape_of(call))
      return false;
    std::vector<int> calls = unit.calls;
    calls.push_back(call);
    if (read_by(calls).size() > kMostInputs) return false;
    bool free = true;
    each_operand(made.calls_[size_t(call)], [&](int value) {
      const int before = unit_of[size_t(value)];
      std::set<int> seen;
      if (before == place && unit.end >= 0) free = free && value != made.calls_[size_t(unit.end)].results[0];
      free = free && (before < 0 || before == place || !needs(before, place, seen));
    });
    return free;
  }
  /// Whether a value's neighbours in memory are folded into one, and enough of them.
  bool worth_folding(const Value& value, uint64_t dimensions) const {
    int64_t length = 1;
    int nearest = -1;
    for (int d = 0; d < int(value.sizes.size()); ++d) {
      const int64_t size = value.sizes[size_t(d)], step = std::abs(value.strides[size_t(d)]);
      if (size == 1) continue;
      if (dimensions >> d & 1) length *= size;
      if (nearest < 0 || step < std::abs(value.strides[size_t(nearest)])) nearest = d;
    }
    return nearest >= 0 && dimensions >> nearest & 1 && length >= kAlone;
  }
  /// The chain that a fold may end; -1: there is none.
  int ended_by(int call) const {
    const Ending& ending = *lines[size_t(call)].ending;
    const int place = unit_of[size_t(ending.of)];
    if (place < 0) return -1;
    const Unit& unit = made.units_[size_t(place)];
    const bool chain = lines[size_t(unit.calls[0])].step && unit.end < 0;
    return chain && worth_folding(made.values_[size_t(ending.of)], ending.dimensions) ? place : -1;
  }
  void put(int call) {
    int unit = int(made.units_.size());
    if (lines[size_t(call)].ending)
      if (const int place = ended_by(call); place >= 0) made.units_[size_t(unit = place)].end = call;
    if (lines[size_t(call)].step)
      for (int k = unit - 1; k >= 0; --k)
        if (may_take(k, call)) {
          unit = k;
          break;
        }
    if (unit == int(made.units_.size())) made.units_.emplace_back();
    made.units_[size_t(unit)].calls.push_back(call);
    for (const int value : made.calls_[size_t(call)].results)
      if (value >= 0) unit_of[size_t(value)] = unit;
  }
  /// Each after those that it needs, else in the order of their first calls.
  void order() {
    std::vector<Unit> ordered;
    std::vector<bool> done(made.units_.size(), false);
    const auto visit = [&](const auto& self, int unit) -> void {
      if (done[size_t(unit)]) return;
      done[size_t(unit)] = true;
      for (const int call : made.units_[size_t(unit)].calls)
        each_operand(made.calls_[size_t(call)], [&](int value) {
          if (const int before = unit_of[size_t(value)]; before >= 0 && before != unit) self(self, before);
        });
      ordered.push_back(made.units_[size_t(unit)]);
    };
    for (int unit = 0; unit < int(made.units_.size()); ++unit) visit(visit, unit);
    made.units_ = std::move(ordered);
  }
  /// When values are used last; what is wanted of chains.
  void settle() {
    for (size_t u = 0; u < made.units_.size(); ++u)
      for (const int call : made.units_[u].calls)
        each_operand(made.calls_[size_t(call)], [&](int value) { made.values_[size_t(value)].last_unit = int(u); });
    const std::set<int> wanted(made.outputs_.begin(), made.outputs_.end());
    for (size_t u = 0; u < made.units_.size(); ++u) {
      Unit& unit = made.units_[u];
      for (const int call : unit.calls)
        for (const int value : made.calls_[size_t(call)].results)
          if (value >= 0)
            made.values_[size_t(value)].last_unit = std::max(made.values_[size_t(value)].last_unit, int(u));
      if (unit.calls.size() < 2) continue;
      const std::set<int> read = read_by(unit.calls);
      unit.inputs.assign(read.begin(), read.end());
      std::map<int, int> places;
      for (const int value : unit.inputs) {
        places[value] = int(unit.chain.inputs.size());
        unit.chain.inputs.push_back(made.values_[size_t(value)].dtype);
      }
      for (const int call : unit.calls) {
        const int result = made.calls_[size_t(call)].results[0];
        if (const auto& ending = lines[size_t(call)].ending) {
          unit.chain.end = ending->end;
          unit.chain.folded = places.at(ending->of) - int(unit.inputs.size());
          unit.folded = ending->of, unit.fold = result;
          unit.dimensions = ending->dimensions, unit.divisor = ending->divisor;
          continue;
        }
        Step step = *lines[size_t(call)].step;
        for (Read& source : step.operands)
          if (source.place >= 0) source.place = places.at(source.place);
        places[result] = int(unit.inputs.size() + unit.chain.steps.size());
        unit.chain.steps.push_back(std::move(step));
        if (wanted.contains(result) || made.values_[size_t(result)].last_unit > int(u)) {
          unit.chain.outputs.push_back(int(unit.chain.steps.size()) - 1);
          unit.outputs.push_back(result);
        }
      }
    }
    for (const int value : wanted) made.values_[size_t(value)].last_unit = int(made.units_.size());
  }
  /// Whether there is a kernel for a chain at least; else the first reason why not.
  bool compile(std::string& why) {
    bool some = false, chains = false;
    for (Unit& unit : made.units_) {
      if (unit.outputs.empty() && unit.fold < 0) continue;
      chains = true;
      std::string text;
      if (unit.chain.body_size() > kMostBody) continue;
      unit.numbers = unit.chain.numbers();
      unit.kernel = fused_kernels().find(own_machine()->driver(), made.device_, unit.chain, text);
      some = some || unit.kernel;
      if (!unit.kernel && why.empty()) why = text;
    }
    if (!chains) {
      why = "no two calls of it make a chain of element-wise operators of one shape";
      for (size_t call = 0; call < lines.size(); ++call)
        if (!lines[call].step) {
          taeda_op_info op{};
          op.size = sizeof op;
          passed(api->op_read(made.calls_[call].op, &op));
          why += std::string("; '") + op.name + "' does not: " + lines[call].why_not;
          break;
        }
    }
    return some;
  }
};

std::unique_ptr<FusedGraph> FusedGraph::make(int device, const taeda_graph& graph, std::string& why) {
  auto made = std::make_unique<FusedGraph>();
  made->device_ = device;
  made->inputs_ = graph.input_count;
  // Where there is no compiler nothing else is worth a look.
  if (own_machine()->driver().compiler().identity(device, why).empty()) return nullptr;
  Maker maker(*made);
  for (uint32_t i = 0; i < graph.input_count; ++i) maker.new_value(graph.inputs[i]);
  for (uint32_t n = 0; n < graph.node_count; ++n) {
    const taeda_graph_node& node = graph.nodes[n];
    GraphCall call{node.op, {}, {}};
    for (uint32_t i = 0; i < node.argument_count; ++i) call.arguments.push_back(maker.kept(node.arguments[i]));
    for (uint32_t i = 0; i < node.result_count; ++i)
      call.results.push_back(node.results[i] ? maker.new_value(node.results[i]) : -1);
    maker.lines.push_back(maker.line_of(node, call));
    made->calls_.push_back(std::move(call));
    maker.put(int(n));
  }
  for (uint32_t i = 0; i < graph.output_count; ++i) made->outputs_.push_back(maker.value_of(graph.outputs[i]));
  maker.order();
  maker.settle();
  return maker.compile(why) ? std::move(made) : nullptr;
}
FusedGraph::~FusedGraph() {
  for (const Value& value : values_)
    if (value.constant) api->tensor_release(value.constant);
}

}  // namespace taeda::cuda
