"""Function: derivatives, what is saved and marked, missing gradients, and how long all of it lives."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import taeda_autograd as autograd
import taeda_tensor_core as taeda
from taeda_autograd import Function, grad, gradcheck, gradgradcheck


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


class Exp(Function):
    """Saves its output."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class Power(Function):
    """A number among the arguments, and setup_context."""

    @staticmethod
    def forward(x, n):
        return x**n

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.n = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.n * x ** (ctx.n - 1), None


class Rows(Function):
    """Defaults of forward, which setup_context and backward see where a call leaves them out."""

    @staticmethod
    def forward(x, rows=(1,), factor=2.0):
        return x[rows] * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.rows, ctx.factor = inputs
        ctx.shape = x.shape

    @staticmethod
    def backward(ctx, g):
        whole = g.new_zeros(ctx.shape)
        whole[ctx.rows] = g * ctx.factor
        return whole, None, None


class RowsOfClass(Rows):
    """The same by methods of the class."""

    @classmethod
    def forward(cls, x, rows=(1,), factor=2.0):
        return Rows.forward(x, rows, factor)

    @classmethod
    def setup_context(cls, ctx, inputs, output):
        Rows.setup_context(ctx, inputs, output)


@pytest.mark.parametrize("given", [(), ((2,),), ((0,), 3.0)])
@pytest.mark.parametrize("function", [Rows, RowsOfClass])
def test_functions_with_setup_context_take_defaults_of_forward(given, function):
    rows, factor = (*given, *((1,), 2.0)[len(given) :])
    x = taeda.arange(6.0).reshape(3, 2).requires_grad_()
    made = function.apply(x, *given)
    made.sum().backward()
    expected = np.zeros((3, 2))
    expected[rows] = factor
    assert made.tolist() == (np.arange(6.0).reshape(3, 2)[rows] * factor).tolist()
    assert x.grad.tolist() == expected.tolist()


class SinCos(Function):
    @staticmethod
    def forward(ctx, x):
        s, c = x.sin(), x.cos()
        ctx.save_for_backward(s, c)
        return s, c

    @staticmethod
    def backward(ctx, gs, gc_):
        s, c = ctx.saved_tensors
        return gs * c - gc_ * s


FUNCTIONS = {
    "cube": Cube.apply,
    "exp": Exp.apply,
    "power": lambda x: Power.apply(x, 3),
    "sincos": SinCos.apply,
    "chain": lambda x: Cube.apply(Exp.apply(x * 0.5)),
}


@pytest.fixture
def x():
    return taeda.tensor([1.0, 2.0], requires_grad=True)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_and_second_derivatives(name, make):
    assert gradcheck(FUNCTIONS[name], make(2, 3))
    assert gradgradcheck(FUNCTIONS[name], make(2, 3))


def test_third_derivative(x):
    y = Cube.apply(x)
    for _ in range(3):
        (y,) = grad(y.sum(), x, create_graph=True)
    assert y.tolist() == [6, 6]


def test_node_is_named_after_the_class_and_holds_ctx(x):
    y = Power.apply(x, 4)
    assert y.grad_fn.name() == "PowerBackward" and y.grad_fn.n == 4
    assert y.grad_fn.saved_tensors[0] is x


def test_what_is_written_to_a_node_is_kept_by_its_ctx(x):
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.factor = 2.0
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor

    y = Twice.apply(x)
    y.grad_fn.factor = 5.0
    y.grad_fn.note = "kept"
    assert (y.grad_fn.factor, y.grad_fn.note) == (5.0, "kept")
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full(x.shape, 5.0))
    del y.grad_fn.note
    assert not hasattr(y.grad_fn, "note")
    with pytest.raises(AttributeError):
        y.grad_fn.next_functions = ()
    with pytest.raises(AttributeError):
        (x * 2).grad_fn.note = "a node of an operator has no ctx"


def test_nothing_is_recorded_without_need(x):
    assert Cube.apply(x.detach()).grad_fn is None
    with taeda.no_grad():
        assert not Cube.apply(x).requires_grad


def test_forward_runs_without_recording():
    class Probe(Function):
        @staticmethod
        def forward(ctx, x):
            assert not taeda.is_grad_enabled()
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = taeda.ones(1, requires_grad=True)
    assert Probe.apply(x).requires_grad and taeda.is_grad_enabled()


def test_needs_input_grad(x):
    class Product(Function):
        @staticmethod
        def forward(ctx, a, b, note):
            seen.append(ctx.needs_input_grad)
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            seen.append(ctx.needs_input_grad)
            return (
                (g * b if ctx.needs_input_grad[0] else None),
                (g * a if ctx.needs_input_grad[1] else None),
                None,
            )

    seen = []
    Product.apply(x, taeda.tensor([5.0, 7.0]), "note").sum().backward()
    assert seen == [(True, False, False)] * 2 and x.grad.tolist() == [5, 7]


def test_numbers_and_objects_pass_through(make):
    class Keep(Function):
        @staticmethod
        def forward(ctx, x, settings, label=None):
            assert settings == {"a": 1} and label == "name"
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g, None, None

    x = make(2)
    Keep.apply(x, {"a": 1}, "name").sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_mark_dirty(x):
    class DoubleInPlace(Function):
        @staticmethod
        def forward(ctx, t):
            t.mul_(2)
            ctx.mark_dirty(t)
            return t

        @staticmethod
        def backward(ctx, g):
            return g * 2

    y = x * 3
    version = y._version
    z = DoubleInPlace.apply(y)
    assert z is y and y._version > version and y.tolist() == [6, 12]
    (y * y).sum().backward()
    assert x.grad.tolist() == [72, 144]
    with pytest.raises(RuntimeError, match="leaf"):
        DoubleInPlace.apply(taeda.ones(2, requires_grad=True))


def test_mark_non_differentiable(x):
    class Sorted(Function):
        @staticmethod
        def forward(ctx, t):
            values, order = t.sort()
            order = order.to(taeda.float32)
            ctx.mark_non_differentiable(order)
            return values, order

        @staticmethod
        def backward(ctx, g, g_order):
            given.append(g_order)
            return g

    given = []
    values, order = Sorted.apply(x)
    assert values.requires_grad and not order.requires_grad
    values.sum().backward()
    assert x.grad.tolist() == [1, 1]


@pytest.mark.parametrize("materialize", [True, False])
def test_missing_gradients(x, materialize):
    class Two(Function):
        @staticmethod
        def forward(ctx, t):
            ctx.set_materialize_grads(materialize)
            return t * 1, t.sum().reshape(1, 1)

        @staticmethod
        def backward(ctx, a, b):
            seen.append(None if b is None else b.tolist())
            return a

    seen = []
    Two.apply(x)[0].sum().backward()
    assert seen == [[[0.0]] if materialize else None]


def test_missing_gradients_of_integers_are_zeros_too(x):
    class Largest(Function):
        @staticmethod
        def forward(ctx, t):
            values, places = t.max(0)
            ctx.mark_non_differentiable(places)
            ctx.save_for_backward(places)
            return values, places

        @staticmethod
        def backward(ctx, g, g_places):
            seen.append((g_places.dtype, g_places.tolist()))
            return taeda.zeros(2).index_fill(0, ctx.saved_tensors[0].reshape(1), float(g))

    seen = []
    Largest.apply(x)[0].backward()
    assert seen == [(taeda.int64, 0)] and x.grad.tolist() == [0, 1]


def test_output_that_is_an_input_gets_a_history_of_its_own(x):
    class Same(Function):
        @staticmethod
        def forward(ctx, t):
            return t

        @staticmethod
        def backward(ctx, g):
            return g * 5

    y = Same.apply(x)
    assert y is not x and y.grad_fn.name() == "SameBackward" and x.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == [5, 5]


def test_a_view_of_the_input_is_returned_as_one(make):
    class Row(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.sizes = x.shape
            return x[0]

        @staticmethod
        def backward(ctx, g):
            out = taeda.zeros(*ctx.sizes, dtype=g.dtype)
            out[0] = g
            return out

    x = make(2, 3)
    Row.apply(x).sum().backward()
    assert x.grad.tolist() == [[1, 1, 1], [0, 0, 0]]


@pytest.mark.parametrize("named", [False, True])
def test_derivatives_by_a_saved_output_are_there_in_a_first_backward(named):
    """Implicit layers find the derivative of their equation by its solution."""

    class Root(Function):
        """y with y**3 = x."""

        @staticmethod
        def forward(ctx, x):
            y = x ** (1 / 3)
            if named:
                ctx.y = y
            else:
                ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            y = ctx.y if named else ctx.saved_tensors[0]
            assert y.requires_grad and not y.is_leaf
            assert not (y * 1).requires_grad
            with taeda.enable_grad():
                (slope,) = grad((y**3).sum(), y)
            return g / slope

    x = taeda.tensor([8.0, 27.0], dtype=taeda.float64, requires_grad=True)
    Root.apply(x).sum().backward()
    assert x.grad.tolist() == pytest.approx([1 / 12, 1 / 27])


def test_none_among_the_saved(x):
    class Optional(Function):
        @staticmethod
        def forward(ctx, t, other):
            ctx.save_for_backward(t, other)
            return t * 1

        @staticmethod
        def backward(ctx, g):
            assert ctx.saved_tensors[1] is None
            return g, None

    Optional.apply(x, None).sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_gradient_that_broadcasts_is_summed(x):
    class Wide(Function):
        @staticmethod
        def forward(ctx, t):
            return t.expand(3, 2).clone()

        @staticmethod
        def backward(ctx, g):
            return g

    Wide.apply(x).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_ctx_dies_with_the_graph(x):
    y = Cube.apply(x)
    dead = weakref.ref(y.grad_fn.saved_tensors[0] * 1)
    assert dead() is None

    class Note:
        pass

    class Keeps(Function):
        @staticmethod
        def forward(ctx, t):
            ctx.note = Note()
            notes.append(weakref.ref(ctx.note))
            ctx.out = t * 2
            return ctx.out

        @staticmethod
        def backward(ctx, g):
            return g * 2

    notes = []
    gc.disable()
    try:
        y = Keeps.apply(x)
        y.sum().backward()
        del y
        assert notes[0]() is None
    finally:
        gc.enable()


def test_names_that_programs_import():
    from taeda_autograd.function import Function, FunctionCtx, once_differentiable

    assert Function is autograd.Function and once_differentiable is autograd.once_differentiable
    assert issubclass(Function._context_type, FunctionCtx)


def test_variables_are_tensors():
    data = taeda.ones(2)
    x = autograd.Variable(data, requires_grad=True)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3] and isinstance(x, autograd.Variable) and not data.requires_grad
    assert x.data_ptr() == data.data_ptr() and not autograd.Variable(data).requires_grad
    with pytest.warns(UserWarning, match="volatile was removed"):
        old = autograd.Variable(data, volatile=True)
    with pytest.warns(UserWarning, match="always False"):
        assert old.volatile is False
    with pytest.raises(TypeError, match="Variable: argument 'data' must be a Tensor, found list"):
        autograd.Variable([1.0])


class Solver(Function):
    """Works under no_grad inside, and calls another Function, as solvers and checkpoints do."""

    @staticmethod
    def forward(ctx, x):
        with autograd.no_grad():
            y = x
            for _ in range(3):
                y = y * 2
        Inner.apply(x)
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, g):
        with autograd.enable_grad():
            (x,) = ctx.saved_tensors
            again = x.detach().requires_grad_()
            (inner,) = grad((again * 8).sum(), again)
        return g * inner


class Inner(Function):
    @staticmethod
    def forward(ctx, x):
        with autograd.no_grad():
            return x * 1

    @staticmethod
    def backward(ctx, g):
        return g


def test_results_of_a_forward_under_no_grad_are_recorded(x):
    y = Solver.apply(x)
    total = y.sum() + x.sum()
    assert y.requires_grad and total.requires_grad
    total.backward()
    assert x.grad.tolist() == [9.0] * x.numel()


def test_a_result_kept_as_an_attribute_can_be_deleted():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.result = x.exp()
            return ctx.result

        @staticmethod
        def backward(ctx, grad):
            found = grad * ctx.result
            del ctx.result
            assert not hasattr(ctx, "result")
            with pytest.raises(AttributeError):
                del ctx.result
            return found

    x = taeda.tensor([0.5, 1.0], requires_grad=True)
    Exp.apply(x).sum().backward()
    assert x.grad.tolist() == x.detach().exp().tolist()


@pytest.mark.parametrize("dtype", [taeda.int64, taeda.bool, taeda.uint8])
def test_gradients_of_whole_numbers_are_converted(dtype):
    class Signs(Function):
        @staticmethod
        def forward(ctx, x, index):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return taeda.ones(grad.shape, dtype=dtype), taeda.ones(grad.shape, dtype=dtype)

    for kind in (taeda.float32, taeda.bfloat16):
        x = taeda.ones(2, dtype=kind, requires_grad=True)
        Signs.apply(x, taeda.tensor([1, 2])).sum().backward()
        assert x.grad.dtype is kind and x.grad.tolist() == [1.0, 1.0]
    z = taeda.ones(2, dtype=taeda.complex64, requires_grad=True)
    with pytest.raises(RuntimeError, match="invalid gradient"):
        Signs.apply(z, taeda.tensor([1, 2])).abs().sum().backward()
