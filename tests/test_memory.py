"""Memory is free the moment its last user goes, without the cycle collector: by bytes and by weak references."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable

import pytest

import taeda as t
from taeda.utils import data
from taeda_tensor_core import _C
from taeda_testing.settling import without_collector

nn = t.nn
SIZE = 1000


@pytest.fixture(autouse=True)
def _no_collector():
    with without_collector():
        yield


def leaf(*sizes: int) -> t.Tensor:
    return t.ones(*(sizes or (SIZE,)), requires_grad=True)


class Square(t.autograd.Function):
    """Saves its input and its output."""

    @staticmethod
    def forward(ctx, x):
        y = x * x
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, _ = ctx.saved_tensors
        return grad * x * 2


class Trouble(t.autograd.Function):
    """Fails in backward, with tensors of its own alive."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        unused = grad * 2  # noqa: F841
        raise ArithmeticError("trouble")


# Each returns objects that must be gone as soon as it has returned them as weak references.


def plain():
    x = t.ones(SIZE)
    return x, x + 1


def views():
    x = t.arange(float(SIZE))
    return x, x[::2], x.reshape(10, -1).t()[3:], x[None].expand(4, SIZE)


def graph_not_run():
    x = leaf()
    y = (x * 2).exp().sin()
    return x, y, y.sum()


def graph_run():
    x = leaf()
    y = (x * 2).exp()
    y.sum().backward()
    return x, y, x.grad


def graph_kept():
    x = leaf()
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x, y


def forward_fails():
    x = leaf()
    y = x * 2
    try:
        y + t.ones(SIZE + 1)
    except RuntimeError as error:
        return x, y, error.__class__("kept")
    raise AssertionError


def backward_fails():
    x = leaf()
    y = Trouble.apply(x * 2)
    try:
        y.sum().backward()
    except ArithmeticError:
        return x, y
    raise AssertionError


def hook_on_tensor():
    x = leaf()
    y = x * 2
    y.register_hook(lambda grad: grad * y.detach().new_ones(1))
    z = y.sum()
    z.backward()
    return x, z


def hook_on_own_leaf():
    x = leaf()
    seen = []
    x.register_hook(lambda grad: seen.append(grad))
    (x * 3).sum().backward()
    return x, seen[0]


def retained_gradient():
    x = leaf()
    y = x * 2
    y.retain_grad()
    y.sum().backward()
    return x, y, y.grad


def changed_in_place():
    x = leaf()
    y = x * 2
    y.mul_(3)
    y[10:20].exp_()
    y.sum().backward()
    return x, y


def custom_function():
    x = leaf()
    y = Square.apply(x)
    y.sum().backward()
    return x, y


def custom_function_not_run():
    x = leaf()
    return x, Square.apply(x)


def output_saved_by_its_node():
    x = leaf()
    y = x.exp()
    z = y.sigmoid().tanh()
    return x, y, z


def second_derivative():
    x = leaf()
    (g,) = t.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = t.autograd.grad(g.sum(), x)
    return x, g, h


def second_derivative_not_run():
    x = leaf()
    (g,) = t.autograd.grad((x**3).sum(), x, create_graph=True)
    return x, g


def deep_copies():
    x = leaf()
    (x * 2).sum().backward()
    module = nn.Linear(30, 30)
    twin = copy.deepcopy(module)
    other = copy.deepcopy(x)
    return x, other, module.weight, twin.weight


def module_step():
    module = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 1))
    optimizer = t.optim.Adam(module.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        loss = module(t.ones(5, 20)).sum()
        loss.backward()
        optimizer.step()
    return loss, module[0].weight, optimizer


def loader():
    loaded = data.DataLoader(data.TensorDataset(t.ones(20, 5), t.arange(20)), batch_size=4, shuffle=True)
    return next(iter(loaded))[0], loaded


def through_numpy():
    x = t.ones(SIZE)
    array = x.numpy()
    y = t.from_numpy(array[::-1])
    return x, y


def attributes_on_tensor():
    x = t.ones(SIZE)
    x.note = t.ones(SIZE)
    return x, x.note


def detached_and_no_grad():
    x = leaf()
    with t.no_grad():
        y = x * 2
    return x, y, (x * 2).detach()


def long_chain():
    x = leaf(10)
    y = x
    for _ in range(20000):
        y = y + 1
    return x, y


def split_graph():
    x = leaf(10, 10)
    parts = x.unbind()
    parts[3].sum().backward()
    return x, parts[0], parts[9]


PROGRAMS = [
    plain,
    views,
    graph_not_run,
    graph_run,
    graph_kept,
    forward_fails,
    backward_fails,
    hook_on_own_leaf,
    retained_gradient,
    changed_in_place,
    custom_function,
    custom_function_not_run,
    output_saved_by_its_node,
    second_derivative,
    second_derivative_not_run,
    deep_copies,
    module_step,
    loader,
    through_numpy,
    attributes_on_tensor,
    detached_and_no_grad,
    long_chain,
    split_graph,
]


def references(program: Callable) -> list[weakref.ref]:
    return [weakref.ref(item) for item in program() if not isinstance(item, Exception)]


@pytest.mark.parametrize("program", PROGRAMS)
def test_nothing_outlives_its_last_user(program):
    references(program)  # what is made once, is made now
    before = _C._live_bytes()
    left = [reference for reference in references(program) if reference() is not None]
    assert not left
    assert _C._live_bytes() == before


def test_a_hook_that_holds_its_tensor_goes_with_the_collector():
    """The one real cycle: a function registered on a tensor's node that names the tensor."""
    references(hook_on_tensor)
    gc.collect()
    before = _C._live_bytes()
    references(hook_on_tensor)
    gc.collect()
    assert _C._live_bytes() == before


def test_backward_frees_what_the_graph_saved():
    x = leaf()
    start = _C._live_bytes()
    y = (x.exp() * 2).sin().sum()
    assert _C._live_bytes() > start
    y.backward()
    item = 4
    assert _C._live_bytes() <= start + SIZE * item + 2 * 64  # the gradient, the sum, rounding


def test_a_view_keeps_exactly_its_base():
    start = _C._live_bytes()
    x = t.ones(SIZE)
    full = _C._live_bytes() - start
    assert full >= 4 * SIZE
    y = x[3:5]
    assert _C._live_bytes() - start == full
    del x
    assert _C._live_bytes() - start == full
    del y
    assert _C._live_bytes() == start


def test_training_needs_the_same_memory_at_every_step():
    module = nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 1))
    optimizer = t.optim.SGD(module.parameters(), lr=0.01, momentum=0.9)
    seen = []
    for _ in range(5):
        optimizer.zero_grad()
        module(t.ones(8, 20)).sum().backward()
        optimizer.step()
        seen.append(_C._live_bytes())
    assert len(set(seen[1:])) == 1


def test_identity_survives_and_ends():
    x = leaf()
    y = x * 2
    assert y.grad_fn is not None
    x.grad = t.ones(SIZE)
    assert x.grad is x.grad
    reference = weakref.ref(x.grad)
    x.grad = None
    assert reference() is None


def test_an_error_with_a_kept_traceback_frees_when_it_is_dropped():
    start = _C._live_bytes()
    kept = None
    try:
        t.ones(SIZE) + t.ones(3)
    except RuntimeError as error:
        kept = error
    assert "add" in str(kept)
    kept = None
    assert _C._live_bytes() == start
