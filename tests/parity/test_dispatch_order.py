"""TorchDispatchMode beside PyTorch's: both see the same operators below autograd, in the same order."""

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch", reason="the reference is PyTorch")

#: Operators that only show or mark memory; each library has its own ways there.
SHOWS = frozenset({"detach", "view", "reshape", "t", "transpose", "permute", "expand"})
#: What is one operator in taeda and several in PyTorch, and the first gradient, which PyTorch makes by `ones_like`.
SAME = {
    "fill_": ["ones_like"],
    "linear": ["addmm"],
    "linear_backward": ["mm", "sum"],
    "add_": ["add"],  # taeda adds gradients in place where nobody else holds the sum
}


def network(torch, x, w, b, v):
    y = (x @ w + b).relu()
    (y * y).sum().backward()


def layer(torch, x, w, b, v):
    made = torch.tanh(torch.nn.functional.linear(x, v, b))
    loss = torch.nn.functional.mse_loss(made, torch.zeros(2, 4))
    loss.backward()


def used_twice(torch, x, w, b, v):
    (w.exp() * w).mean().backward()


def second_order(torch, x, w, b, v):
    (gradient,) = torch.autograd.grad((w * w).sum(), w, create_graph=True)
    gradient.sum().backward()


def no_grad(torch, x, w, b, v):
    with torch.no_grad():
        x.sin() @ w + b


PROGRAMS = [network, layer, used_twice, second_order, no_grad]


def seen_by(library, mode_class, program):
    seen = []

    class Names(mode_class):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func).split(".")[1])
            return func(*args, **(kwargs or {}))

    x, leaves = library.ones(2, 3), [library.ones(*s).requires_grad_() for s in ((3, 4), (4,), (4, 3))]
    with Names():
        program(library, x, *leaves)
    names = [same for name in seen for same in SAME.get(name, [name])]
    return [name for name in names if name not in SHOWS and name not in ("zeros", "zero_")], leaves


@pytest.mark.parametrize("program", PROGRAMS)
def test_order_of_calls(program):
    from torch.utils._python_dispatch import TorchDispatchMode as Theirs

    from taeda.utils._python_dispatch import TorchDispatchMode as Ours

    expected, reference = seen_by(torch, Theirs, program)
    found, leaves = seen_by(taeda, Ours, program)
    assert found == expected
    for leaf, other in zip(leaves, reference, strict=True):
        assert (leaf.grad is None) == (other.grad is None)
        if leaf.grad is not None:
            np.testing.assert_allclose(leaf.grad.numpy(), other.grad.numpy(), rtol=1e-4)


FORMS = """x + 1; x + y; 1 - x; x * 2; x / y; x // 2; x % 2; x % y; x ** 2; x ** y; 2 ** x; x > 0; x == y; i & 1; i | i
torch.lerp(x, y, 0.5); torch.lerp(x, y, y); torch.xlogy(x, 2); torch.where(b, x, y); x.masked_fill(b, 1.0)
torch.clamp(x, 0, 1); torch.clamp_min(x, y); x.clone().add_(y).mul_(2).pow_(2).fill_(3).zero_()
x.sum(); x.sum(0); x.sum((0, 1), keepdim=True); x.mean(); x.mean(1); x.prod(1); x.max(); x.max(1); b.any(); b.any(1)
b.all((0, 1)); x.var(); x.var(1, unbiased=False); x.var((0, 1), correction=2, keepdim=True); x.norm(dim=1)
x.sort(); x.sort(stable=True); x.topk(1); x.argmax(1); x.softmax(1); x.log_softmax(1); x.cumsum(0); x.round(decimals=1)
x.t(); x.permute(1, 0); x.view(-1); x[None].transpose(0, 2); x[None].squeeze(0); x.expand(2, 2, 3); x[0]; x[:, 1]
x[0:1]; x[b]; x.gather(1, i); x.scatter(1, i, y); x.scatter(1, i, 1.0); x.scatter_reduce(1, i, y, "sum")
torch.cat([x, y]); x @ y.t(); torch.nn.functional.linear(x, y, y[:, 0]); x.double(); x.clone(); x.t().clone()
x.detach(); torch.zeros_like(x); x.square(); torch.nn.functional.gelu(x); torch.nn.functional.layer_norm(x, (3,))
torch.nn.functional.mse_loss(x, y); torch.nn.functional.conv2d(p, p[:, :, :2, :2], stride=2)
torch.nn.functional.avg_pool2d(p, 2); torch.isnan(x); x.copy_(y); torch.sigmoid(x); torch.nn.functional.relu6(x)"""


def calls_of(library, mode_class, text):
    """The operators that a mode sees in an expression, with what is no tensor in their arguments."""
    seen = []

    class Calls(mode_class):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            plain = ["tensor" if hasattr(a, "shape") or "tensor(" in str(a) else a for a in args]
            options = [
                f"{name}={value}"
                for name, value in (kwargs or {}).items()
                if name not in ("pin_memory", "layout")
            ]
            seen.append(f"{func} {plain} {sorted(options)}".replace("taeda.", "torch."))
            return func(*args, **(kwargs or {}))

    names = {
        "torch": library,
        "x": library.tensor([[0.5, -1.5, 2.0], [1.0, 3.0, -0.25]]),
        "y": library.tensor([[1.5, 1.5, 2.5], [1.0, 0.5, 2.0]]),
        "i": library.tensor([[0, 1, 2], [2, 1, 0]]),
        "b": library.tensor([[True, False, True], [False, False, True]]),
        "p": library.ones(1, 1, 4, 4),
    }
    with Calls():
        eval(text, names)
    return seen


@pytest.mark.parametrize("text", [part.strip() for part in FORMS.replace("\n", ";").split(";")])
def test_forms_of_calls(text):
    from torch.utils._python_dispatch import TorchDispatchMode as Theirs

    from taeda.utils._python_dispatch import TorchDispatchMode as Ours

    assert calls_of(taeda, Ours, text) == calls_of(torch, Theirs, text)
