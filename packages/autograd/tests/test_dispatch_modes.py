"""Dispatch modes above and below autograd: what each sees, and whose calls are recorded."""

import pytest

import taeda_tensor_core as taeda
from taeda_autograd import grad
from taeda_tensor_core.python_dispatch import PreDispatchMode, TorchDispatchMode


def seeing(base):
    class Sees(base):
        def __init__(self):
            self.seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append(func.__name__.removesuffix(".default"))
            return func(*args, **(kwargs or {}))

    return Sees()


@pytest.fixture
def leaf():
    return taeda.tensor([1.0, -2.0], requires_grad=True)


def test_both_see_calls_and_backward(leaf):
    with seeing(PreDispatchMode) as above, seeing(TorchDispatchMode) as below:
        (leaf * leaf).relu().sum().backward()
    assert leaf.grad.tolist() == [2.0, -4.0]
    assert above.seen == below.seen
    assert below.seen[:3] == ["mul.Tensor", "relu", "sum"] and "threshold_backward" in below.seen


def test_calls_of_a_method_are_recorded_above_only(leaf):
    recorded = {}

    def asks(base):
        class Asks(base):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                recorded[base] = (args[0] * 2).requires_grad
                return func(*args, **(kwargs or {}))

        return Asks()

    for base in (PreDispatchMode, TorchDispatchMode):
        with asks(base):
            assert leaf.exp().requires_grad
    assert recorded == {PreDispatchMode: True, TorchDispatchMode: False}


def test_the_operators_gradient_stands_whatever_a_mode_below_computes(leaf):
    class Zero(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return taeda.zeros_like(result) if func.name() == "aten::mul.Tensor" else result

    with Zero():
        y = leaf * 3
    assert y.tolist() == [0.0, 0.0] and y.grad_fn.name().startswith("MulBackward")
    y.sum().backward()
    assert leaf.grad.tolist() == [3.0, 3.0]


def test_results_that_stand_in_the_graph_already_are_taken_by_value(leaf):
    other = taeda.tensor([5.0, 6.0], requires_grad=True)

    class Gives(TorchDispatchMode):
        def __init__(self, result):
            self.result = result

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return self.result

    for given in (leaf, other):
        with Gives(given):
            y = leaf.exp()
        assert y is not given and given.is_leaf and y.tolist() == given.tolist()
        assert y.grad_fn.name().startswith("ExpBackward")


def test_modes_nest_below(leaf):
    outer, inner = seeing(TorchDispatchMode), seeing(TorchDispatchMode)
    with outer, inner:
        leaf.sin()
    assert outer.seen == inner.seen == ["sin"]
    with outer:
        leaf.cos()
    assert outer.seen == ["sin", "cos"] and inner.seen == ["sin"]


def test_errors_of_a_mode_leave_recording_on(leaf):
    class Fails(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise KeyError(func.name())

    with Fails(), pytest.raises(KeyError, match="aten::exp"):
        leaf.exp()
    assert leaf.exp().requires_grad


def test_backward_passes_of_layers_have_the_operators_that_programs_count():
    """Products for a linear layer, and one operator of PyTorch's for the others, with their gradients."""
    x, image = taeda.ones(2, 3, requires_grad=True), taeda.ones(1, 2, 4, 4, requires_grad=True)
    weight, kernel = taeda.ones(4, 3, requires_grad=True), taeda.ones(2, 2, 3, 3, requires_grad=True)
    table = taeda.ones(5, 3, requires_grad=True)
    cases = {
        "mm": (lambda: taeda.ops.linear(x, weight, None), (x, weight)),
        "convolution_backward": (lambda: taeda.conv2d(image, kernel), (image, kernel)),
        "_softmax_backward_data": (lambda: x.softmax(1), (x,)),
        "_log_softmax_backward_data": (lambda: x.log_softmax(1), (x,)),
        "native_layer_norm_backward": (lambda: taeda.ops.layer_norm(x, [3]), (x,)),
        "native_group_norm_backward": (lambda: taeda.ops.group_norm(image, 2), (image,)),
        "embedding_dense_backward": (lambda: taeda.ops.embedding(table, taeda.tensor([1, 2])), (table,)),
    }
    for name, (layer, leaves) in cases.items():
        y = layer()
        found = grad(y.sum(), leaves, retain_graph=True)
        total = y.sum()
        with seeing(TorchDispatchMode) as mode:
            again = grad(total, leaves)
        assert name in mode.seen, (name, mode.seen)
        assert all(taeda.equal(a, b) for a, b in zip(found, again, strict=True)), name
