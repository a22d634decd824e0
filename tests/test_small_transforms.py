"""Levels by use: a small vmap and a small forward mode, as strangers would write them on `taeda.library.Level` alone;
nested, and combined with autograd."""

import numpy as np
import pytest

import taeda
from taeda.library import Level


class Batching(Level):
    """Tensors carry a tensor with one dimension more, the first, over which a program is mapped."""

    def __init__(self, size):
        super().__init__("vmap", composites=("matmul",))
        self.size = size

    def batch(self, tensor):
        """A tensor of this level, by one of the level outside whose first dimension is the batch's."""
        return self.wrap(tensor, tensor.shape[1:], tensor.dtype, tensor.device)

    def batched(self, tensor, dims=0):
        """The batch behind a tensor, with at least `dims` dimensions of its own: where it has fewer, sizes of 1 stand
        before them. What does not depend on the batch has one of size 1."""
        found = self.payload(tensor)
        found = tensor.unsqueeze(0) if found is None else found
        missing = max(0, dims - (found.dim() - 1))
        return found.reshape(found.shape[0], *[1] * missing, *found.shape[1:])

    def taken(self, tensor):
        """The results of the whole batch."""
        found = self.batched(tensor)
        return found.expand(self.size, *found.shape[1:])

    def __call__(self, op, args, kwargs):
        rule = getattr(self, f"rule_{op.name}", None)
        if rule is None:
            raise NotImplementedError(f"vmap has no rule for {op.name}")
        return self.batch(rule(op, *args, **kwargs))

    def elementwise(self, op, *args, **kwargs):
        dims = max(a.dim() for a in args)
        return op(*(self.batched(a, dims) for a in args), **kwargs)

    rule_add = rule_mul = rule_relu = rule_gt = elementwise

    def rule_to_dtype(self, op, tensor, *args, **kwargs):
        return op(self.batched(tensor), *args, **kwargs)

    def rule_sum(self, op, tensor, dim=None, keepdim=False, *, dtype=None):
        found = self.batched(tensor)
        dims = range(tensor.dim()) if dim is None else [d % tensor.dim() for d in dim]
        return op(found, [d + 1 for d in dims], keepdim, dtype=dtype) if dims else found

    def rule_matmul(self, op, a, b):
        """Vectors become matrices, and lose that dimension again."""
        left, right = self.batched(a), self.batched(b)
        left = left.unsqueeze(-2) if a.dim() == 1 else left
        right = right.unsqueeze(-1) if b.dim() == 1 else right
        dims = max(left.dim(), right.dim())
        left, right = (t.reshape(t.shape[0], *[1] * (dims - t.dim()), *t.shape[1:]) for t in (left, right))
        made = op(left, right)
        rows = made.shape[-2:-1] if a.dim() > 1 else ()
        columns = made.shape[-1:] if b.dim() > 1 else ()
        return made.reshape(*made.shape[:-2], *rows, *columns)

    # Shapes: what a rule does with tensors of the level outside comes here when that is a vmap too.

    def rule_view(self, op, tensor, size):
        found = self.batched(tensor)
        return op(found, [found.shape[0], *size])

    def rule_unsqueeze(self, op, tensor, dim):
        return op(self.batched(tensor), dim % (tensor.dim() + 1) + 1)

    def rule_expand(self, op, tensor, size, **kwargs):
        found = self.batched(tensor, len(size))
        return op(found, [found.shape[0], *size], **kwargs)


def vmap(function):
    """`function` over the first dimension of every argument."""

    def mapped(*args):
        with Batching(args[0].shape[0]) as level:
            return level.taken(function(*map(level.batch, args)))

    return mapped


class Tangents(Level):
    """Tensors carry their value at the level outside and the derivative along one direction."""

    def __init__(self):
        super().__init__("jvp", composites=("matmul",))

    def dual(self, value, tangent):
        return self.wrap((value, tangent), value.shape, value.dtype, value.device)

    def parts(self, tensor):
        """Value and tangent; None for what does not move."""
        return self.payload(tensor, (tensor, None))

    def __call__(self, op, args, kwargs):
        rule = getattr(self, f"rule_{op.name}", None)
        if rule is None:
            raise NotImplementedError(f"jvp has no rule for {op.name}")
        tensors = [self.parts(a) for a in args if isinstance(a, taeda.Tensor)]
        others = [a for a in args if not isinstance(a, taeda.Tensor)]
        values, tangents = zip(*tensors, strict=True)
        made = op(*values, *others, **kwargs)
        return self.dual(made, rule(op, values, tangents, *others, **kwargs))

    def rule_add(self, op, values, tangents, *, alpha=1):
        first, second = tangents
        second = None if second is None else second * alpha
        return total(like(first, values), like(second, values))

    def bilinear(self, op, values, tangents):
        (a, b), (da, db) = values, tangents
        return total(None if da is None else op(da, b), None if db is None else op(a, db))

    rule_mul = rule_matmul = bilinear

    def linear(self, op, values, tangents, *args, **kwargs):
        return op(*tangents, *args, **kwargs)

    rule_sum = rule_view = rule_unsqueeze = rule_expand = linear

    def rule_relu(self, op, values, tangents):
        return tangents[0] * (values[0] > 0).to(values[0].dtype)


def like(tangent, values):
    """A tangent with the shape of the sum of both values."""
    return None if tangent is None else tangent + sum(v * 0 for v in values)


def total(a, b):
    return b if a is None else a if b is None else a + b


def jvp(function):
    """Value and derivative of `function` of one argument along a direction."""

    def moved(value, tangent):
        with Tangents() as level:
            return level.parts(function(level.dual(value, tangent)))

    return moved


def derivative(function):
    """Of a scalar function of a scalar."""
    return lambda x: jvp(function)(x, taeda.ones_like(x))[1]


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def double(array):
    return taeda.tensor(np.asarray(array), dtype=taeda.float64)


def network(x, w, v):
    """A network of two layers for one example."""
    return ((x @ w).relu() @ v * 0.5 + x.sum()).sum()


def network_of(x, w, v):
    return (np.maximum(x @ w, 0) @ v * 0.5 + x.sum()).sum()


def test_vmap_is_a_loop(rng):
    x, w, v = rng.standard_normal((6, 3)), rng.standard_normal((3, 4)), rng.standard_normal((4, 2))
    found = vmap(lambda one: network(one, double(w), double(v)))(double(x))
    np.testing.assert_allclose(found.numpy(), [network_of(one, w, v) for one in x], rtol=1e-13)


def test_vmap_over_several_arguments(rng):
    x, w, v = rng.standard_normal((5, 3)), rng.standard_normal((5, 3, 4)), rng.standard_normal((5, 4, 2))
    found = vmap(network)(double(x), double(w), double(v))
    expected = [network_of(*each) for each in zip(x, w, v, strict=True)]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-13)


def test_vmap_in_vmap(rng):
    """All pairs: an argument of the outer map is used inside the inner one."""
    x, y = rng.standard_normal((4, 3)), rng.standard_normal((5, 3))
    pairs = vmap(lambda a: vmap(lambda b: (a * b + a).sum())(double(y)))(double(x))
    np.testing.assert_allclose(pairs.numpy(), x @ y.T + x.sum(1)[:, None], rtol=1e-13)
    both = vmap(vmap(lambda a: (a @ double(y).T).relu()))(double(rng.standard_normal((2, 4, 3))))
    assert both.shape == (2, 4, 5)


def test_results_that_do_not_depend_on_the_batch():
    assert vmap(lambda a: taeda.ones(3, dtype=taeda.float64))(double(np.zeros((4, 2)))).shape == (4, 3)


def test_jvp_is_the_derivative_along_a_direction(rng):
    x, t, w, v = (rng.standard_normal(s) for s in ((3,), (3,), (3, 4), (4, 2)))
    value, tangent = jvp(lambda one: network(one, double(w), double(v)))(double(x), double(t))
    h = 1e-7
    slope = (network_of(x + h * t, w, v) - network_of(x - h * t, w, v)) / (2 * h)
    np.testing.assert_allclose(value.item(), network_of(x, w, v), rtol=1e-13)
    np.testing.assert_allclose(tangent.item(), slope, rtol=1e-6)


@pytest.mark.parametrize("x", [0.5, -1.25])
def test_jvp_in_jvp(x):
    """Derivatives of x^4 + 2 x^3 up to the third, each by one level more."""

    def cube(a):
        return a * a * a

    def function(a):
        return cube(a) * a + cube(a) * 2

    at = double(x)
    first, second = derivative(function), derivative(derivative(function))
    assert first(at).item() == pytest.approx(4 * x**3 + 6 * x**2, rel=1e-13)
    assert second(at).item() == pytest.approx(12 * x**2 + 12 * x, rel=1e-13)
    assert derivative(second)(at).item() == pytest.approx(24 * x + 12, rel=1e-13)


def test_levels_are_not_confused():
    """d/dx (x * d/dy (x + y)) = 1: the inner derivative does not see the outer direction."""
    x = double(3.0)
    found = derivative(lambda a: a * derivative(lambda b: a + b)(double(2.0)))(x)
    assert found.item() == 1.0


def test_jvp_in_vmap_and_vmap_in_jvp(rng):
    x = rng.standard_normal(7)
    expected = 3 * x**2
    inner = vmap(derivative(lambda a: a * a * a))(double(x))
    np.testing.assert_allclose(inner.numpy(), expected, rtol=1e-13)
    _, outer = jvp(lambda a: vmap(lambda b: b * b * b)(a))(double(x), double(np.ones(7)))
    np.testing.assert_allclose(outer.numpy(), expected, rtol=1e-13)


def test_gradients_through_vmap(rng):
    """What the mapped program reads from outside gets the sum of the examples' gradients."""
    x, w, v = rng.standard_normal((6, 3)), rng.standard_normal((3, 4)), rng.standard_normal((4, 2))

    def gradients(run):
        leaves = [double(a).requires_grad_() for a in (x, w, v)]
        run(*leaves).backward()
        return [leaf.grad.numpy() for leaf in leaves]

    mapped = gradients(lambda a, b, c: vmap(lambda one: network(one, b, c))(a).sum())
    plain = gradients(lambda a, b, c: sum(network(a[i], b, c) for i in range(6)))
    for found, expected in zip(mapped, plain, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_gradient_of_a_tangent(rng):
    """Reverse over forward: the product of the second derivative and a direction."""
    x, t = rng.standard_normal(4), rng.standard_normal(4)
    leaf = double(x).requires_grad_()
    _, tangent = jvp(lambda a: (a * a * a).sum())(leaf, double(t))
    tangent.backward()
    np.testing.assert_allclose(leaf.grad.numpy(), 6 * x * t, rtol=1e-13)


def test_gradient_through_vmap_of_jvp(rng):
    x = rng.standard_normal(5)
    leaf = double(x).requires_grad_()
    vmap(derivative(lambda a: a * a * a))(leaf).sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), 6 * x, rtol=1e-13)
