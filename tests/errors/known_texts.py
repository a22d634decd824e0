"""Words of PyTorch's messages, which programs and their tests look for, inside ours."""

import copy

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


class Twofold(t.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return a + b

    @staticmethod
    def backward(ctx, grad):
        return grad


class Keeps(t.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(3)
        return a + 1


class NoForward(t.autograd.Function):
    pass


def leaf():
    return t.ones(2, requires_grad=True)


def hooked_both_ways():
    layer = t.nn.Linear(2, 2)
    layer.register_backward_hook(lambda *_: None)
    layer.register_full_backward_hook(lambda *_: None)


def hook_of_three():
    layer = t.nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda *_: (None, None, None))
    layer(leaf()).sum().backward()


def wrong_gradient():
    class Wrong(Twofold):
        @staticmethod
        def backward(ctx, grad):
            return grad * 2, grad

    pair = [t.ones(2, dtype=t.float64, requires_grad=True) for _ in range(2)]
    t.autograd.gradcheck(Wrong.apply, pair)


def loader(**options):
    return lambda: t.utils.data.DataLoader(range(4), **options)


ROWS = [
    ("hook-untracked", lambda: V.register_hook(abs), RuntimeError, "cannot register a hook on a tensor"),
    (
        "hook-inner",
        lambda: leaf().exp().register_post_accumulate_grad_hook(abs),
        RuntimeError,
        "post accumulate grad hooks cannot be registered on non-leaf tensors",
    ),
    ("hook-kinds", hooked_both_ways, RuntimeError, "Cannot use both regular backward hooks and full"),
    (
        "hook-count",
        hook_of_three,
        RuntimeError,
        "Backward hook returned an invalid number of grad_input, got 3, but expected 1",
    ),
    (
        "gradients",
        lambda: Twofold.apply(leaf(), leaf()).sum().backward(),
        RuntimeError,
        "returned an incorrect number of gradients (expected 2",
        "got 1)",
    ),
    (
        "saved",
        lambda: Keeps.apply(leaf()),
        TypeError,
        "save_for_backward can only save",
        "argument 0 is of type int",
    ),
    (
        "forward-less",
        lambda: NoForward.apply(V),
        NotImplementedError,
        "You must implement the forward function",
    ),
    (
        "given-gradient",
        lambda: leaf().exp().backward(t.ones(3)),
        RuntimeError,
        "Mismatch in shape: grad_output[0] has a shape of (3,) and output[0] has a shape of (2,)",
    ),
    (
        "flag",
        lambda: leaf().exp().requires_grad_(False),
        RuntimeError,
        "you can only change requires_grad flags of leaf variables",
    ),
    (
        "deepcopy",
        lambda: copy.deepcopy(leaf().exp()),
        RuntimeError,
        "Only Tensors created explicitly by the user",
    ),
    ("gradcheck", wrong_gradient, RuntimeError, "Jacobian mismatch for output 0 with respect to input 0"),
    (
        "gradcheck-untracked",
        lambda: t.autograd.gradcheck(t.sin, V.double()),
        ValueError,
        "gradcheck expects at least one input tensor to require gradient",
    ),
    (
        "meta",
        lambda: t.nn.Linear(2, 2, device="meta").to("cpu"),
        NotImplementedError,
        "Cannot copy out of meta tensor; no data!",
    ),
    (
        "classes",
        lambda: F.one_hot(t.tensor([3]), 2),
        RuntimeError,
        "Class values must be smaller than num_classes",
    ),
    (
        "split",
        lambda: t.utils.data.random_split(V, [5]),
        ValueError,
        "Sum of input lengths does not equal the length",
    ),
    (
        "order",
        loader(sampler=[0], shuffle=True),
        ValueError,
        "sampler option is mutually exclusive with shuffle",
    ),
    (
        "batches",
        loader(batch_sampler=[[0]], batch_size=2),
        ValueError,
        "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last",
    ),
    ("workers", loader(num_workers=-1), ValueError, "num_workers option should be"),
    ("no-forward", lambda: t.nn.Module()(V), NotImplementedError, 'missing the required "forward" function'),
    (
        "one-value",
        lambda: t.nn.BatchNorm1d(3)(V[None]),
        ValueError,
        "Expected more than 1 value per channel when training",
    ),
    (
        "dropout",
        lambda: t.nn.Dropout(1.5),
        ValueError,
        "dropout probability has to be between 0 and 1, but got 1.5",
    ),
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
        "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4",
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
    ("memory", lambda: t.ones(2**44), RuntimeError, "DefaultCPUAllocator: can't allocate memory"),
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
