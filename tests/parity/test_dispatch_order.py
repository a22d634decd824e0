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
