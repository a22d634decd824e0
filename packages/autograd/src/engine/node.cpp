// Life of nodes: pooled memory, numbering, deletion without recursion.
#include "taeda/autograd/node.h"

#include "taeda/autograd/accumulate.h"
#include "taeda/autograd/cycles.h"
#include "taeda/autograd/hooks.h"
#include "taeda/autograd/saved.h"
#include "taeda/spans.h"
#include "taeda/thread_end.h"

namespace taeda::autograd {

Pool::State* Pool::arm() noexcept {
  if (at_thread_end<drop>()) state = new State;
  return state;
}
void Pool::drop() noexcept {
  State* s = std::exchange(state, nullptr);
  if (!s) return;
  for (Block*& list : s->free)
    while (Block* block = list) {
      list = block->next;
      ::operator delete(block);
    }
  delete s;
}

Node::~Node() { delete extras; }

uint64_t Node::next_sequence() noexcept {
  static std::atomic<uint64_t> counter{0};
  return recorded_sequence = counter.fetch_add(1, std::memory_order_relaxed) + 1;
}

void DynamicNode::reserve(size_t edge_total, size_t output_total) {
  edge_room = std::make_unique<Edge[]>(edge_total);
  output_room = std::make_unique<OutputInfo[]>(output_total);
  incoming_room = std::make_unique<Tensor[]>(output_total);
  edges = edge_room.get();
  outputs = output_room.get();
  incoming = incoming_room.get();
  edge_count = uint32_t(edge_total);
  output_count = uint32_t(output_total);
}

void Node::release_saved() {
  struct Releaser final : SavedVisitor {
    void operator()(const char*, SavedTensor& saved) override { saved.release(); }
  } releaser;
  each_saved(releaser);
  flags |= kReleased;
}

// A graph of any depth dies in a loop: nodes freed while one is being deleted wait in a list.
void destroy(Node* node) noexcept {
  if ((node->flags & kAccumulates) && rest(node)) return;
  static thread_local constinit Node* waiting __attribute__((tls_model("initial-exec"))) = nullptr;
  static thread_local constinit bool running __attribute__((tls_model("initial-exec"))) = false;
  node->next_dead = waiting;
  waiting = node;
  if (running) return;
  running = true;
  while (Node* next = waiting) {
    waiting = next->next_dead;
    delete next;
  }
  running = false;
  if (searches_are_due) [[unlikely]]
    search_due();
}

}  // namespace taeda::autograd
