"""Wrong use of gradients: graphs that are gone or stale, leaves, roots, hooks and custom functions."""

import taeda as t


def leaf():
    return t.ones(3, requires_grad=True)


def freed():
    y = (leaf() ** 2).sum()
    y.backward()
    y.backward()


def stale():
    x = leaf()
    a = x * 2
    b = a * a
    a.add_(1)
    b.sum().backward()


def stale_result():
    a = leaf().exp()
    a.mul_(2)
    a.sum().backward()


def stale_view():
    x = leaf() * 1
    y = x * x
    x[0] = 5
    y.sum().backward()


def stale_weight():
    layer = t.nn.Linear(3, 1)
    h = layer(t.ones(1, 3, requires_grad=True))
    with t.no_grad():
        layer.weight.add_(1)
    h.sum().backward()


class Halves(t.autograd.Function):
    """Gives too few gradients."""

    @staticmethod
    def forward(ctx, a, b):
        return a + b

    @staticmethod
    def backward(ctx, grad):
        return grad


class Misshapen(t.autograd.Function):
    """Gives a gradient of another shape."""

    @staticmethod
    def forward(ctx, a):
        return a * 2

    @staticmethod
    def backward(ctx, grad):
        return t.ones(7)


class Wordy(t.autograd.Function):
    """Gives something that is no gradient."""

    @staticmethod
    def forward(ctx, a):
        return a * 2

    @staticmethod
    def backward(ctx, grad):
        return "gradient"


class Failing(t.autograd.Function):
    """Fails of its own accord."""

    @staticmethod
    def forward(ctx, a):
        return a * 2

    @staticmethod
    def backward(ctx, grad):
        raise KeyError("inner trouble")


class Bare(t.autograd.Function):
    """Has no backward."""

    @staticmethod
    def forward(ctx, a):
        return a * 2


def bad_hook():
    x = leaf()
    x.register_hook(lambda grad: t.ones(9))
    (x * 2).sum().backward()


def failing_hook():
    x = leaf()

    def hook(grad):
        raise LookupError("hook trouble")

    x.register_hook(hook)
    (x * 2).sum().backward()


def inference_result():
    with t.inference_mode():
        x = t.ones(3)
    leaf() * x


def inference_list():
    with t.inference_mode():
        x = t.ones(3)
    t.einsum("i,i->", leaf(), x)


ROWS = [
    ("freed-graph", freed, RuntimeError, "backward", "retain_graph"),
    ("stale-saved", stale, RuntimeError, "MulBackward", "version", "inplace|in-place"),
    ("stale-result", stale_result, RuntimeError, "ExpBackward", "version"),
    ("stale-by-setitem", stale_view, RuntimeError, "MulBackward", "version"),
    ("stale-weight", stale_weight, RuntimeError, "version"),
    ("backward-of-many", lambda: (leaf() * 2).backward(), RuntimeError, "backward", "scalar"),
    ("backward-no-grad", lambda: t.ones(()).backward(), RuntimeError, "backward", "does not require grad"),
    (
        "backward-under-no_grad",
        lambda: t.no_grad()(lambda: leaf().sum())().backward(),
        RuntimeError,
        "does not require grad",
    ),
    ("backward-detached", lambda: leaf().sum().detach().backward(), RuntimeError, "does not require grad"),
    ("backward-gradient-shape", lambda: (leaf() * 2).backward(t.ones(4)), RuntimeError, "(4,)", "(3,)"),
    ("backward-gradient-text", lambda: (leaf() * 2).backward("x"), TypeError, "str"),
    ("grad-unused", lambda: t.autograd.grad(leaf().sum(), leaf()), RuntimeError, "grad", "allow_unused"),
    (
        "grad-of-constant",
        lambda: t.autograd.grad(leaf().sum(), t.ones(2)),
        RuntimeError,
        "grad",
        "does not require grad",
    ),
    ("grad-of-many", lambda: t.autograd.grad(leaf() * 2, leaf()), RuntimeError, "scalar"),
    ("grad-inputs-text", lambda: t.autograd.grad(leaf().sum(), "x"), TypeError, "str"),
    (
        "requires-grad-integer",
        lambda: t.ones(2, dtype=t.int64).requires_grad_(),
        RuntimeError,
        "int64",
        "floating",
    ),
    (
        "requires-grad-result",
        lambda: (leaf() * 2).requires_grad_(False),
        RuntimeError,
        "requires_grad",
        "leaf|detach",
    ),
    (
        "function-count",
        lambda: Halves.apply(leaf(), leaf()).sum().backward(),
        RuntimeError,
        "Halves",
        "2",
        "1",
    ),
    (
        "function-shape",
        lambda: Misshapen.apply(leaf()).sum().backward(),
        RuntimeError,
        "Misshapen",
        "(7,)",
        "(3,)",
    ),
    (
        "function-kind",
        lambda: Wordy.apply(leaf()).sum().backward(),
        (TypeError, RuntimeError),
        "Wordy",
        "str",
    ),
    ("function-raises", lambda: Failing.apply(leaf()).sum().backward(), KeyError, "inner trouble"),
    (
        "function-no-backward",
        lambda: Bare.apply(leaf()).sum().backward(),
        NotImplementedError,
        "Bare",
        "backward",
    ),
    ("hook-shape", bad_hook, RuntimeError, "(9,)", "(3,)"),
    ("hook-raises", failing_hook, LookupError, "hook trouble"),
    ("hook-on-constant", lambda: t.ones(2).register_hook(print), RuntimeError, "register_hook", "require"),
    ("hook-not-callable", lambda: leaf().register_hook(3), TypeError, "hook", "int"),
    (
        "saved-in-inference",
        inference_result,
        RuntimeError,
        "MulBackward",
        "'other'",
        "inference_mode",
        "clone",
    ),
    ("saved-in-inference-einsum", inference_list, RuntimeError, "inference_mode", "clone"),
    ("retain_grad-constant", lambda: t.ones(2).retain_grad(), RuntimeError, "retain_grad", "require"),
    ("grad-set-text", lambda: setattr(leaf(), "grad", "x"), TypeError, "grad", "str"),
    ("grad-set-shape", lambda: setattr(leaf(), "grad", t.ones(4)), RuntimeError, "grad", "(4,)", "(3,)"),
    (
        "grad-set-dtype",
        lambda: setattr(leaf(), "grad", t.ones(3).double()),
        RuntimeError,
        "grad",
        "float64",
        "float32",
    ),
    ("set_grad_enabled-missing", lambda: t.set_grad_enabled(), TypeError, "set_grad_enabled|mode"),
    (
        "deepcopy-of-result",
        lambda: __import__("copy").deepcopy(leaf() * 2),
        RuntimeError,
        "deepcopy",
        "leaf|detach",
    ),
]

INPLACE_ROWS = [
    ("leaf-add_", leaf, lambda x: x.add_(1), RuntimeError, "add_", "leaf"),
    ("leaf-setitem", leaf, lambda x: x.__setitem__(0, 5.0), RuntimeError, "leaf"),
    ("leaf-view-mul_", leaf, lambda x: x[1:].mul_(2), RuntimeError, "mul_", "leaf"),
    ("leaf-zero_", leaf, lambda x: x.zero_(), RuntimeError, "zero_", "leaf"),
    ("leaf-fill_", leaf, lambda x: x.fill_(1), RuntimeError, "fill_", "leaf"),
    ("leaf-normal_", leaf, lambda x: x.normal_(), RuntimeError, "normal_", "leaf"),
    ("leaf-copy_", leaf, lambda x: x.copy_(t.ones(3)), RuntimeError, "copy_", "leaf"),
    ("leaf-out", leaf, lambda x: t.add(t.ones(3), 1, out=x), RuntimeError, "add", "out"),
    ("leaf-numpy", leaf, lambda x: x.numpy(), RuntimeError, "grad"),
    ("leaf-backward-twice-wide", leaf, lambda x: (x * 1).backward(t.ones(2)), RuntimeError, "(2,)", "(3,)"),
]
