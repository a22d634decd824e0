// Runs nodes backwards: a heap by sequence number, gathering of gradients, hooks, capture for chosen inputs.
#include "taeda/autograd/directions.h"
#include "taeda/autograd/engine.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "taeda/arithmetic.h"
#include "taeda/autograd/accumulate.h"
#include "taeda/autograd/anomaly.h"
#include "taeda/autograd/hooks.h"
#include "taeda/autograd/saved.h"
#include "taeda/autograd/streams.h"
#include "taeda/interrupt.h"
#include "taeda/ops.h"
#include "taeda/spans.h"

namespace taeda::autograd {
namespace {

using NodeSet = std::unordered_map<const Node*, bool>;

/// What formulas may skip: of one run; restored at its end, so that runs nest.
class Filter {
 public:
  Filter() : saved_(std::exchange(Node::filter, nullptr)) {}
  ~Filter() { Node::filter = saved_; }
  Filter(const Filter&) = delete;

 private:
  const void* saved_;
};

/// Gradients of one node, on the stack for the usual numbers.
class Gradients {
 public:
  explicit Gradients(size_t count) : count_(count) {
    if (count > kRoom) heap_ = std::make_unique<Tensor[]>(count);
  }
  Tensor* data() noexcept { return heap_ ? heap_.get() : room_; }
  size_t size() const noexcept { return count_; }

 private:
  static constexpr size_t kRoom = 4;
  size_t count_;
  Tensor room_[kRoom];
  std::unique_ptr<Tensor[]> heap_;
};

/// What a hook of a tensor has returned in a gradient's place.
Tensor replaced(Tensor by, const OutputInfo& info) {
  if (!is_differentiable(by.dtype()) || (info.known && !std::ranges::equal(by.sizes(), IntSpan(info.sizes))))
    fail(ErrorKind::Runtime, "tensor hook returned an invalid gradient: it has shape ", shape_text(by.sizes()),
         " and dtype ", name(by.dtype()), ", expected shape ", shape_text(info.sizes), " and dtype ", name(info.dtype));
  return fit_gradient(std::move(by), info, "tensor hook", 0);
}

bool any_defined(const Tensor* tensors, size_t count) noexcept {
  return std::any_of(tensors, tensors + count, [](const Tensor& t) { return t.defined(); });
}

/// One call of backward or grad.
class Run {
 public:
  explicit Run(const RunOptions& options)
      : options_(options), mode_(options.create_graph), outer_(std::exchange(innermost, this)) {}
  ~Run() {
    innermost = outer_;
    let_go();
  }
  static inline thread_local constinit Run* innermost __attribute__((tls_model("initial-exec"))) = nullptr;

  void start(std::span<const Edge> roots, std::span<Tensor> grads);
  void capture_at(const Edge& edge, size_t input) { captures_[edge.node.get()].push_back({edge.output, input}); }
  /// Limits the run to nodes on a path from the roots to a captured one.
  void restrict(std::span<const Edge> roots);
  void run();
  void call_back();
  bool add_at_once(std::string_view name, IntSpan sizes, DType dtype, const std::function<void(const Tensor&)>& add);
  std::vector<Tensor> captured;
  std::vector<std::function<void()>> callbacks;
  const uint64_t number = count.fetch_add(1, std::memory_order_relaxed) + 1;

 private:
  struct Item {
    uint64_t sequence;
    Ref<Node> node;
    friend bool operator<(const Item& a, const Item& b) noexcept { return a.sequence < b.sequence; }
  };
  struct Capture {
    uint32_t output;
    size_t input;
  };

  Tensor* buffer_of(const Ref<Node>& node);
  void push(const Ref<Node>& node);
  void deliver(const Edge& edge, Tensor grad, const char* who, size_t index);
  void deliver_there(const Edge& edge, Tensor grad);
  void put(const Edge& edge, Tensor grad);
  void take_buffer(Node* node, Tensor* into);
  void execute(Node* node);
  void before(Node* node, Tensor* grads);
  void retain(Node* node, const Tensor* grads);
  void after(Node* node, Gradients& results, Gradients& grads);
  /// A leaf that nobody watches takes each gradient as it comes, without a buffer.
  bool direct(const Node* node) const noexcept;
  bool ends_here(Node* node) const;
  void count_awaited();
  void advance_leaves();
  void let_go() noexcept;

  const RunOptions& options_;
  static inline std::atomic<uint64_t> count{0};
  GradMode mode_;
  Filter filter_;
  Run* outer_;
  UsedStreams streams_;
  std::vector<Item> heap_;
  std::unordered_map<Node*, std::vector<Tensor>> elsewhere_;  // buffers for nodes that another run owns
  NodeSet needed_;
  std::unordered_map<const Node*, std::vector<Capture>> captures_;
  Node* executing_ = nullptr;
  bool reached_any_ = false;
  std::vector<Node*> reached_;                                // leaves with hooks, once for each gradient
  std::optional<std::unordered_map<Node*, size_t>> awaited_;  // how many gradients are still to come to each of them
  uint64_t turn_ = UINT64_MAX;
};

void Run::start(std::span<const Edge> roots, std::span<Tensor> grads) {
  for (size_t i = 0; i < roots.size(); ++i) deliver(roots[i], std::move(grads[i]), "backward", i);
}

void Run::restrict(std::span<const Edge> roots) {
  // Depth first without recursion; a node is needed when it is captured or one of its edges leads to a needed one.
  // Edges lead to lower numbers, so that none from below the lowest captured one does: a program that asks for
  // gradients again and again while its graph grows pays for the new part alone.
  uint64_t lowest = UINT64_MAX;
  for (const auto& [node, _] : captures_) lowest = std::min(lowest, node->sequence);
  struct Frame {
    Node* node;
    size_t next;
  };
  std::vector<Frame> stack;
  const auto enter = [&](Node* node) {
    if (node && node->sequence >= lowest && needed_.emplace(node, captures_.contains(node)).second)
      stack.push_back({node, 0});
  };
  for (const Edge& root : roots) {
    enter(root.node.get());
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      Node* inner = node->inner();
      const size_t total = node->edge_count + (inner ? inner->edge_count : 0);
      const auto child = [&](size_t i) {
        return (i < node->edge_count ? node->edges[i] : inner->edges[i - node->edge_count]).node.get();
      };
      if (next < total) {
        enter(child(next++));
        continue;
      }
      for (size_t i = 0; i < total; ++i)
        if (const auto found = needed_.find(child(i)); found != needed_.end() && found->second) needed_[node] = true;
      stack.pop_back();
    }
  }
  Node::filter = &needed_;
}

bool Run::direct(const Node* node) const noexcept {
  if (!(node->flags & kAccumulates) || node->extras || Node::filter) return false;
  const AutogradMeta* meta = meta_of(static_cast<const AccumulateGrad*>(node)->leaf);
  return !meta->hooks;
}

void Run::push(const Ref<Node>& node) {
  heap_.push_back({node->sequence, node});
  std::push_heap(heap_.begin(), heap_.end());
}

Tensor* Run::buffer_of(const Ref<Node>& node) {
  Node* n = node.get();
  void* owner = n->owner.load(std::memory_order_relaxed);
  if (owner == this) return n->incoming;
  if (!elsewhere_.empty())
    if (auto found = elsewhere_.find(n); found != elsewhere_.end()) return found->second.data();
  push(node);  // before the node is claimed: without memory for it, nobody's run owns the node afterwards
  void* nobody = nullptr;
  if (n->owner.compare_exchange_strong(nobody, this, std::memory_order_acquire)) return n->incoming;
  return elsewhere_.emplace(n, std::vector<Tensor>(n->output_count)).first->second.data();
}

void Run::deliver(const Edge& edge, Tensor grad, const char* who, size_t index) {
  if (!edge.node) return;
  Node* node = edge.node.get();
  if (Node::filter && !Node::filter_wants(node)) return;
  if (grad.defined()) grad = fit_gradient(std::move(grad), node->outputs[edge.output], who, index);
  if (grad.defined() && on_device(grad.device())) [[unlikely]]
    return deliver_there(edge, std::move(grad));
  put(edge, std::move(grad));
}

/// On a device: in the order of the stream that will use the gradient.
void Run::deliver_there(const Edge& edge, Tensor grad) {
  const Device device = grad.device();
  hand_over(grad, edge.node.get());
  const OnStream scope(edge.node.get(), device);
  streams_.add(device);
  put(edge, std::move(grad));
}

void Run::put(const Edge& edge, Tensor grad) {
  Node* node = edge.node.get();
  if (node->flags & kAccumulates) {
    if (direct(node)) {
      if (grad.defined()) accumulate_grad(static_cast<AccumulateGrad*>(node)->leaf, std::move(grad));
      return;
    }
    reached_.push_back(node);
    reached_any_ = true;
  }
  Tensor& slot = buffer_of(edge.node)[edge.output];
  if (!grad.defined()) return;
  slot = slot.defined() ? accumulate(std::move(slot), std::move(grad), options_.create_graph) : std::move(grad);
}

void Run::count_awaited() {
  awaited_.emplace();
  std::vector<Node*> stack;
  std::unordered_set<const Node*> seen;
  const auto enter = [&](Node* node) {
    if (seen.insert(node).second) stack.push_back(node);
  };
  for (const Item& item : heap_) enter(item.node.get());
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    for (size_t i = 0; i < node->edge_count; ++i) {
      Node* next = node->edges[i].node.get();
      if (!next) continue;
      if (!(next->flags & kAccumulates)) enter(next);
      else if (!direct(next)) ++(*awaited_)[next];
    }
  }
}

// See Note [Order of execution].
void Run::advance_leaves() {
  reached_any_ = false;
  const bool counted = bool(awaited_);
  if (!counted) count_awaited();
  for (Node* leaf : std::exchange(reached_, {})) {
    const auto found = awaited_->find(leaf);
    if (counted && (found == awaited_->end() || found->second == 0 || --found->second > 0)) continue;
    if (!counted && found != awaited_->end() && found->second > 0) continue;
    const auto item = std::ranges::find_if(heap_, [&](const Item& i) { return i.node.get() == leaf; });
    if (item == heap_.end()) continue;
    item->sequence = turn_--;
    std::push_heap(heap_.begin(), item + 1);
  }
}

void Run::take_buffer(Node* node, Tensor* into) {
  if (node->owner.load(std::memory_order_relaxed) == this) {
    std::move(node->incoming, node->incoming + node->output_count, into);
    node->owner.store(nullptr, std::memory_order_release);
    return;
  }
  auto found = elsewhere_.find(node);
  std::move(found->second.begin(), found->second.end(), into);
  elsewhere_.erase(found);
}

/// A retained gradient of its own memory, row by row: programs write to it.
Tensor own_rows(const Tensor& grad) {
  return is_wrapper(grad) || grad.contiguous() ? ops::clone(grad) : ops::contiguous(grad);
}

/// Adds to the .grad of tensors that keep it. While the sum is computed other threads may run: they may let go of the
/// tensor, or add too.
void Run::retain(Node* node, const Tensor* grads) {
  if (!node->extras) return;
  const auto list = node->extras->retained;
  const auto kept = [node](const auto& item) {
    const auto& now = node->extras->retained;
    return std::find(now.begin(), now.end(), item) != now.end();
  };
  for (const auto& item : list) {
    const auto& [output, meta] = item;
    while (grads[output].defined() && kept(item)) {
      const Tensor before = meta->grad;
      Tensor sum =
          before.defined() ? accumulate(before, grads[output], options_.create_graph) : own_rows(grads[output]);
      if (!kept(item) || !meta->grad.same(before)) continue;
      meta->grad = std::move(sum);
      break;
    }
  }
}

// See Note [Order of hooks].
void Run::before(Node* node, Tensor* grads) {
  if (node->flags & kAccumulates) {
    const AutogradMeta* meta = meta_of(static_cast<AccumulateGrad*>(node)->leaf);
    if (meta->hooks) {
      const auto hooks = meta->hooks->on_grad;  // a hook may remove itself
      UserCode scope;
      for (const auto& hook : hooks)
        if (Tensor changed = hook.call(grads[0]); changed.defined())
          grads[0] = replaced(std::move(changed), node->outputs[0]);
    }
  }
  if (node->extras) {
    const auto on_output = node->extras->on_output;
    UserCode scope;
    for (const auto& hook : on_output)
      if (Tensor changed = hook.call(grads[hook.output]); changed.defined())
        grads[hook.output] = replaced(std::move(changed), node->outputs[hook.output]);
    retain(node, grads);
  }
  if (const auto found = captures_.find(node); options_.collect && found != captures_.end())
    for (const Capture& c : found->second) captured[c.input] = grads[c.output];
  if (!node->extras || ends_here(node)) return;
  const auto hooks = node->extras->before;
  UserCode scope;
  for (const auto& hook : hooks) hook.call(node, grads, node->output_count);
}

bool Run::ends_here(Node* node) const {
  if (!Node::filter) return false;
  if (node->flags & kAccumulates) return options_.collect;                          // captured, not accumulated
  if (!options_.collect && node->extras && captures_.contains(node)) return false;  // its hooks are called
  for (size_t i = 0; i < node->edge_count; ++i)
    if (node->wanted(i)) return false;
  return true;
}

void Run::after(Node* node, Gradients& results, Gradients& grads) {
  if (node->extras && !node->extras->after.empty()) {
    const auto hooks = node->extras->after;
    UserCode scope;
    for (const auto& hook : hooks) hook.call(node, results.data(), results.size(), grads.data(), grads.size());
  }
  if (anomaly_enabled) [[unlikely]]
    check_finite(node, {results.data(), results.size()});
}

void Run::execute(Node* node) {
  const Within span({node->name(), SpanKind::Backward, node->sequence});
  Gradients grads(node->output_count);
  take_buffer(node, grads.data());
  if (node->extras || (node->flags & kAccumulates) || !captures_.empty()) [[unlikely]]
    before(node, grads.data());
  if (ends_here(node)) return;
  Gradients results(node->edge_count);
  if ((node->flags & (kPython | kAccumulates)) || any_defined(grads.data(), grads.size())) {
    try {
      executing_ = node;
      node->apply(grads.data(), results.data());
      executing_ = nullptr;
    } catch (...) {
      if (anomaly_enabled) report_failure(node);
      throw;
    }
  }
  if (node->extras || anomaly_enabled) [[unlikely]]
    after(node, results, grads);
  if (!options_.retain_graph) node->release_saved();
  // So that a result which shows the memory of a gradient is the only one that does: a leaf then keeps it as it is.
  for (size_t i = 0; i < grads.size(); ++i) grads.data()[i] = Tensor();
  for (size_t i = 0; i < node->edge_count; ++i) deliver(node->edges[i], std::move(results.data()[i]), node->name(), i);
}

bool Run::add_at_once(std::string_view name, IntSpan sizes, DType dtype,
                      const std::function<void(const Tensor&)>& add) {
  Node* const node = executing_;
  if (!node || node->edge_count != 1 || node->extras || name != node->name()) return false;
  if (options_.create_graph || thread_state.grad_enabled || anomaly_enabled || Node::filter) return false;
  const Edge& edge = node->edges[0];
  Node* const next = edge.node.get();
  if (!next) return false;
  if (direct(next)) return add_to_grad(static_cast<AccumulateGrad*>(next)->leaf, sizes, dtype, add);
  if ((next->flags & kAccumulates) || next->owner.load(std::memory_order_relaxed) != this) return false;
  Tensor& sum = next->incoming[edge.output];
  if (!sum.defined() || !can_take(sum, sizes, dtype) || !own_alone(sum) || !sum.dense()) return false;
  add(sum);
  return true;
}

void Run::run() {
  uint32_t executed = 0;
  while (!heap_.empty()) {
    if ((++executed & 31) == 0) poll_signals();  // long kernels do it themselves
    std::pop_heap(heap_.begin(), heap_.end());
    const Ref<Node> node = std::move(heap_.back().node);
    heap_.pop_back();
    const Device device = node->outputs[0].device;
    if (on_device(device)) [[unlikely]] {
      const OnStream scope(node.get(), device);
      streams_.add(device);
      execute(node.get());
    } else {
      execute(node.get());
    }
    if (reached_any_ && !Node::filter) [[unlikely]]
      advance_leaves();
  }
  streams_.join();
}

void Run::call_back() {
  for (size_t i = 0; i < callbacks.size(); ++i) {  // one may queue another
    const auto callback = std::move(callbacks[i]);
    UserCode scope;
    callback();
  }
}

void Run::let_go() noexcept {
  for (Item& item : heap_) {
    Node* node = item.node.get();
    if (node->owner.load(std::memory_order_relaxed) != this) continue;
    for (size_t i = 0; i < node->output_count; ++i) node->incoming[i] = Tensor();
    node->owner.store(nullptr, std::memory_order_release);
  }
}

/// What is known of the tensor at a place.
OutputInfo info_of(const Place& place) {
  if (!place.tensor.defined()) return place.edge.node->outputs[place.edge.output];
  return {Shape(place.tensor.sizes()), place.tensor.dtype(), stated_device(place.tensor), true};
}
std::string describe(const Place& place) {
  if (place.tensor.defined()) return taeda::describe(place.tensor);
  return detail::concat("output ", place.edge.output, " of ", place.edge.node->name());
}

/// The gradient that a root starts with. Descriptions take longer than all else here: only failures make them.
Tensor root_gradient(const Place& root, const Tensor& given, size_t index) {
  const OutputInfo info = info_of(root);
  if (!given.defined()) {
    if (product(info.sizes) != 1)
      fail(ErrorKind::Runtime, "backward: grad can be implicitly created only for scalar outputs; tensor ", index,
           " is ", describe(root), ": pass its gradient explicitly");
    if (is_complex(info.dtype))
      fail(ErrorKind::Runtime, "backward: grad can be implicitly created only for real scalar outputs; tensor ", index,
           " is ", describe(root), ": pass its gradient");
    return root.tensor.defined() ? ops::ones_like(root.tensor) : ops::ones(info.sizes, info.dtype, info.device);
  }
  if (!std::equal(info.sizes.begin(), info.sizes.end(), given.sizes().begin(), given.sizes().end()))
    fail(ErrorKind::Runtime, "backward: Mismatch in shape: grad_output[", index, "] has a shape of ",
         shape_text(given.sizes()), " and output[", index, "] has a shape of ", shape_text(info.sizes));
  if (is_complex(info.dtype) != is_complex(given.dtype()))
    fail(ErrorKind::Runtime, "backward: the gradient of tensor ", index, " is ", taeda::describe(given),
         ", expected the kind of number of the tensor, ", describe(root));
  return given;
}

/// The edge of a place; null where no gradients flow.
Edge edge_of(const Place& place) {
  return place.edge.node ? place.edge : place.tensor.defined() ? collect_edge(place.tensor) : Edge();
}

}  // namespace

bool Node::filter_wants(const Node* node) noexcept {
  const auto& needed = *static_cast<const NodeSet*>(filter);
  const auto found = needed.find(node);
  return found != needed.end() && found->second;
}

bool add_at_once(std::string_view node, IntSpan sizes, DType dtype, const std::function<void(const Tensor&)>& add) {
  Run* const run = Run::innermost;
  return run && run->add_at_once(node, sizes, dtype, add);
}

uint64_t current_run() noexcept { return Run::innermost ? Run::innermost->number : 0; }

void queue_callback(std::function<void()> callback) {
  check(Run::innermost != nullptr, ErrorKind::Runtime,
        "queue_callback: no backward is running on this thread; call it from a hook");
  Run::innermost->callbacks.push_back(std::move(callback));
}

std::vector<Tensor> run_backward(std::span<const Place> roots, TensorList grads, const RunOptions& options) {
  std::vector<Edge> edges, input_edges;
  std::vector<Tensor> starts;
  for (size_t i = 0; i < roots.size(); ++i) {
    edges.push_back(edge_of(roots[i]));
    if (!edges[i].node || (options.inputs.empty() && roots[i].tensor.defined() && of_directions(roots[i].tensor)))
      fail(ErrorKind::Runtime, "backward: element ", i, " of tensors (",
           roots[i].tensor.defined() ? describe(roots[i]) : "None",
           ") does not require grad and does not have a grad_fn");
  }
  for (size_t i = 0; i < options.inputs.size(); ++i) {
    const Place& input = options.inputs[i];
    const bool flows = input.edge.node || (input.tensor.defined() && tracked(input.tensor));
    if (!flows)
      fail(ErrorKind::Runtime, "grad: input ", i, " (", input.tensor.defined() ? describe(input) : "None",
           ") does not require grad");
    input_edges.push_back(edge_of(input));
    // What an edge leads to is reached, too: a leaf gets its gradient, another place has no .grad to add to.
    if (!options.collect && input.tensor.defined()) retain_grad(input.tensor);
  }
  Run run(options);
  for (size_t i = 0; i < roots.size(); ++i)
    starts.push_back(root_gradient({roots[i].tensor, edges[i]}, i < grads.size() ? grads[i] : Tensor(), i));
  if (!options.inputs.empty()) {
    run.captured.resize(options.inputs.size());
    for (size_t i = 0; i < input_edges.size(); ++i)
      if (input_edges[i].node) run.capture_at(input_edges[i], i);  // a view made under no_grad is reached by nothing
    run.restrict(edges);
  }
  run.start(edges, starts);
  run.run();
  run.call_back();
  if (!options.collect) return {};
  for (size_t i = 0; i < run.captured.size() && !options.allow_unused; ++i)
    if (!run.captured[i].defined())
      fail(ErrorKind::Runtime, "grad: input ", i, " (", describe(options.inputs[i]),
           "): One of the differentiated Tensors appears to not have been used in the graph; pass allow_unused=True to "
           "get None for it");
  return std::move(run.captured);
}

}  // namespace taeda::autograd
