// Finds graphs that only keep themselves alive.
//
// Note [Cycles through .grad]
// After backward(create_graph=True) a leaf owns its gradient, the gradient owns its graph, and the graph owns the leaf again (by its
// accumulator and by saved tensors). Counting alone never frees such a ring. When the Python object of a tensor with a recorded
// gradient dies, the objects reachable from it are counted: a set of them that is referenced from nowhere else is garbage, and the gradients in it are
// taken off, which lets the ring fall apart.
#pragma once
#include "taeda/autograd/meta.h"

namespace taeda::autograd {

/// Frees the rings that hold `impl` alive, if nothing else does.
void collect_cycle(TensorImpl* impl) noexcept;

}  // namespace taeda::autograd
