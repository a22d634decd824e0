// Node: one recorded operation of the graph; knows how to turn gradients of its outputs into gradients of its inputs.
#pragma once
#include <memory>
#include <vector>

#include "taeda/autograd/pool.h"
#include "taeda/tensor.h"

namespace taeda::autograd {

struct Node;
class SavedTensor;
struct NodeExtras;
void destroy(Node* node) noexcept;

/// "The gradient goes to output number `output` of `node`"; a null node takes none.
struct Edge {
  Ref<Node> node;
  uint32_t output = 0;
};

/// What the gradient of a forward output must look like.
struct OutputInfo {
  Shape sizes;
  DType dtype = DType::Float32;
  Device device;
  bool known = false;
};

/// Sees every tensor that a node saved: used to release them, to show them, and to look for cycles.
class SavedVisitor {
 public:
  virtual ~SavedVisitor() = default;
  virtual void operator()(const char* name, SavedTensor& saved) = 0;
  void operator()(const char* name, std::vector<SavedTensor>& saved);
};

enum NodeFlag : uint8_t {
  kWeaklyHeld = 1,     // somebody keeps a weak pointer: the count must truly reach zero
  kAccumulates = 2,    // AccumulateGrad
  kPython = 4,         // PyNode: backward is Python code
  kReleased = 8,       // saved tensors were freed by a backward without retain_graph
  kOverwrites = 16,    // in place: nothing is left of the old value, whose gradient (edge 0) is zero
  kOfDirections = 32,  // leads to dual tensors alone: Note [Histories of directions]
  kAsked = 64,         // of a dual tensor that was told to require grad
};

/// Note [Order of execution]
/// `sequence` is taken from one global counter when a node is attached to its first output, so each edge leads from a
/// higher to a lower number. The engine runs nodes in falling order, which needs no count of dependencies. Leaves have
/// number 0 and come last; those with hooks, whose programs may use and drop gradients early, as soon as all that is on
/// its way to them has arrived.
struct Node : Counted, Pooled {
  uint8_t flags = 0;
  uint32_t edge_count = 0;
  uint32_t output_count = 0;
  uint64_t sequence = 0;
  Edge* edges = nullptr;          // one per differentiable argument of the forward call
  OutputInfo* outputs = nullptr;  // one per forward output
  Tensor* incoming = nullptr;     // gradients gathered so far by the run that owns the node
  std::atomic<void*> owner{nullptr};
  NodeExtras* extras = nullptr;  // hooks, Python wrapper, anomaly record: rare; owned
  Node* next_dead = nullptr;     // deletion without recursion

  Node() = default;
  Node(const Node&) = delete;
  virtual ~Node();

  /// "MulBackward0"
  virtual const char* name() const = 0;
  /// `grads`: one per output, undefined means zero, may be moved from. `result`: one per edge, undefined at first.
  virtual void apply(Tensor* grads, Tensor* result) = 0;
  virtual void each_saved(SavedVisitor&) {}
  /// The operation that this node wraps (CopySlices), or null.
  virtual Node* inner() const noexcept { return nullptr; }

  /// Whether the gradient of edge `i` is asked for; formulas skip the others.
  bool wanted(size_t i) const noexcept { return edges[i].node && (!filter || filter_wants(edges[i].node.get())); }
  void release_saved();

  // Weakly held nodes count down to a true zero (see AccumulateGrad); the others take the cheap way.
  bool drop() noexcept {
    if (flags & kWeaklyHeld) return refs.fetch_sub(1, std::memory_order_acq_rel) == 1;
    return Counted::drop();
  }

  /// Set while the engine runs with `inputs=`: only nodes on a path to these inputs compute gradients.
  static inline thread_local constinit const void* filter __attribute__((tls_model("initial-exec"))) = nullptr;
  static bool filter_wants(const Node* node) noexcept;
  static uint64_t next_sequence() noexcept;
};

/// A node with room for `E` edges and `O` outputs in itself.
template <size_t E, size_t O = 1>
struct FixedNode : Node {
  Edge edge_room[E == 0 ? 1 : E];
  OutputInfo output_room[O];
  Tensor incoming_room[O];
  FixedNode() noexcept {
    edge_count = E;
    output_count = O;
    edges = edge_room;
    outputs = output_room;
    incoming = incoming_room;
  }
};

/// A node whose numbers of edges and outputs are known only at run time (operators on lists).
struct DynamicNode : Node {
  std::unique_ptr<Edge[]> edge_room;
  std::unique_ptr<OutputInfo[]> output_room;
  std::unique_ptr<Tensor[]> incoming_room;
  void reserve(size_t edge_total, size_t output_total = 1);
};

template <class T, class... A>
Ref<T> make_node(A&&... arguments) {
  return Ref<T>::adopt(new T(std::forward<A>(arguments)...));
}

}  // namespace taeda::autograd
