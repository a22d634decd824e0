// Finds graphs that only keep themselves alive.
//
// Note [Cycles through .grad]
// After backward(create_graph=True) a leaf owns its gradient, the gradient owns its graph, and the graph owns the leaf
// again (by its accumulator and by saved tensors). Counting alone never frees such a ring. When the Python object of a
// tensor with a recorded gradient dies, the objects reachable from it are counted: a set of them that is referenced
// from nowhere else is garbage, and the gradients in it are taken off, which lets the ring fall apart.
//
// Note [Witnesses]
// A search looks at the whole ring, so it must not be repeated for each of the ring's tensors. One that finds the ring
// alive notes who keeps it so: a witness, a tensor with a living Python object from which the others are reached. While
// the witness lives and no gradient or history among its tensors is replaced, the others may die without a search: they
// wait in the watch. What ends a watch (the witness dies, a path may be cut) searches from those that wait. Witnesses
// are chosen at random, so that n tensors of one ring that die in any order need about log(n) searches.
#pragma once
#include "taeda/autograd/meta.h"

namespace taeda::autograd {

/// The Python object of `impl` dies: frees the rings that hold `impl` alive, if nothing else does.
void collect_cycle(TensorImpl* impl) noexcept;
/// `impl` has taken over what another tensor had.
void moved_home(TensorImpl* impl) noexcept;
/// A gradient or a history of a watched tensor was replaced.
void path_cut(AutogradMeta& meta) noexcept;
/// A watched tensor dies; what waits for it is searched from by search_due, as soon as no nodes are being destroyed.
void leave_watch(const AutogradMeta& meta) noexcept;
void search_due() noexcept;
/// Whether leave_watch left something to do.
inline constinit thread_local bool searches_are_due __attribute__((tls_model("initial-exec"))) = false;

/// Number of objects that the searches of this process have looked at.
uint64_t searched_objects() noexcept;

}  // namespace taeda::autograd
