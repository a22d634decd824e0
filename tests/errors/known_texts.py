"""Words of PyTorch's messages, which programs and their tests look for, inside ours."""

import taeda as t
import taeda.nn.functional as F

M = t.arange(6.0).reshape(2, 3)
V = t.arange(3.0)


def twice():
    x = t.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    y.backward()


def changed():
    x = t.ones(2, requires_grad=True)
    y = x.exp()
    y.add_(1)
    y.sum().backward()


def unused():
    x, y = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
    t.autograd.grad(x.sum(), y)


ROWS = [
    (
        "dim",
        lambda: M.sum(5),
        IndexError,
        "sum",
        "Dimension out of range (expected to be in range of [-2, 1], but got 5)",
    ),
    (
        "dim-vector",
        lambda: V.softmax(1),
        IndexError,
        "softmax",
        "(expected to be in range of [-1, 0], but got 1)",
    ),
    (
        "sizes",
        lambda: V + t.ones(4),
        RuntimeError,
        "add",
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0",
    ),
    (
        "sizes-order",
        lambda: V * t.ones(2, 4),
        RuntimeError,
        "mul",
        "tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1",
    ),
    ("bounds", lambda: M[5], IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
    ("bounds-second", lambda: M[0, 5], IndexError, "index 5 is out of bounds for dimension 1 with size 3"),
    ("bounds-new", lambda: M[None, 0, 5], IndexError, "index 5 is out of bounds for dimension 1 with size 3"),
    (
        "bounds-tensor",
        lambda: M[t.tensor([5])],
        IndexError,
        "index 5 is out of bounds for dimension 0 with size 2",
    ),
    (
        "bounds-gather",
        lambda: M.gather(0, t.tensor([[5]])),
        RuntimeError,
        "index 5 is out of bounds for dimension 0 with size 2",
    ),
    ("too-many", lambda: M[0, 0, 0], IndexError, "too many indices for tensor of dimension 2"),
    ("view", lambda: M.view(4), RuntimeError, "view", "shape '[4]' is invalid for input of size 6"),
    (
        "view-hole",
        lambda: M.reshape(-1, 4),
        RuntimeError,
        "reshape",
        "shape '[-1, 4]' is invalid for input of size 6",
    ),
    (
        "view-strides",
        lambda: M.t().view(6),
        RuntimeError,
        "view size is not compatible with input tensor's size and stride",
    ),
    (
        "expand",
        lambda: M.expand(2, 4),
        RuntimeError,
        "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 1.",
        "Target sizes: [2, 4].  Tensor sizes: [2, 3]",
    ),
    (
        "mm",
        lambda: M @ t.ones(4, 5),
        RuntimeError,
        "matmul",
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
    ),
    (
        "linear",
        lambda: F.linear(M, t.ones(4, 5)),
        RuntimeError,
        "linear",
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 5x4)",
    ),
    (
        "cat",
        lambda: t.cat([M, t.ones(2, 4)]),
        RuntimeError,
        "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4.",
    ),
    (
        "cat-dims",
        lambda: t.cat([M, V]),
        RuntimeError,
        "Tensors must have same number of dimensions: got 2 and 1",
    ),
    ("stack", lambda: t.stack([V, t.ones(2)]), RuntimeError, "stack expects each tensor to be equal size"),
    (
        "cast",
        lambda: t.arange(3).add_(1.5),
        RuntimeError,
        "result type Float can't be cast to the desired output type Long",
    ),
    (
        "cast-out",
        lambda: t.add(V, V, out=t.arange(3)),
        RuntimeError,
        "result type Float can't be cast to the desired output type Long",
    ),
    ("item", lambda: V.item(), RuntimeError, "a Tensor with 3 elements cannot be converted to Scalar"),
    ("float", lambda: float(V), ValueError, "only one element tensors can be converted to Python scalars"),
    ("bool", lambda: bool(V), RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"),
    (
        "numpy",
        lambda: t.ones(2, requires_grad=True).numpy(),
        RuntimeError,
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
    ),
    ("class", lambda: F.cross_entropy(M, t.tensor([0, 5])), IndexError, "Target 5 is out of bounds."),
    ("embedding", lambda: F.embedding(t.tensor([5]), M), IndexError, "index out of range in self"),
    ("topk", lambda: V.topk(5), RuntimeError, "selected index k out of range"),
    (
        "integer-leaf",
        lambda: t.arange(3).requires_grad_(),
        RuntimeError,
        "Only Tensors of floating point and complex dtype can require gradients",
    ),
    (
        "leaf",
        lambda: t.ones(2, requires_grad=True).add_(1),
        RuntimeError,
        "a leaf Variable that requires grad is being used in an in-place operation",
    ),
    (
        "leaf-view",
        lambda: t.ones(2, requires_grad=True)[0].add_(1),
        RuntimeError,
        "a view of a leaf Variable that requires grad is being used in an in-place operation",
    ),
    ("twice", twice, RuntimeError, "Trying to backward through the graph a second time"),
    (
        "changed",
        changed,
        RuntimeError,
        "one of the variables needed for gradient computation has been modified by an inplace operation",
    ),
    ("unused", unused, RuntimeError, "appears to not have been used in the graph"),
    (
        "vector",
        lambda: t.ones(2, requires_grad=True).exp().backward(),
        RuntimeError,
        "grad can be implicitly created only for scalar outputs",
    ),
    (
        "no-graph",
        lambda: V.sum().backward(),
        RuntimeError,
        "element 0 of tensors",
        "does not require grad and does not have a grad_fn",
    ),
    ("polar", lambda: t.polar(V, V.double()), RuntimeError, "polar", "'abs' and 'angle'"),
    ("polar-integers", lambda: t.polar(V, t.arange(3)), RuntimeError, "polar", "'angle'", "int64"),
]
