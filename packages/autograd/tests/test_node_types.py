"""Types of graph nodes, as programs read them that draw graphs."""

import pytest

import taeda_autograd as autograd
from taeda_registry.slots import tensor as tt


def test_a_type_has_the_name_of_the_operation():
    """One type for all nodes of a name, derived from Node; leaves alone have a variable."""
    x = tt.ones(3, requires_grad=True)
    first, second = (x * 2).grad_fn, (x * 3).grad_fn
    assert type(first).__name__ == "MulBackward0"
    assert type(first) is type(second)
    assert isinstance(first, autograd.graph.Node)
    assert not hasattr(first, "variable")
    leaf = first.next_functions[0][0]
    assert type(leaf).__name__ == "AccumulateGrad"
    assert leaf.variable is x
    assert first == (first.next_functions and first)
    assert first != second


def test_nodes_of_functions_are_named_by_their_class():
    """And give what their context holds."""

    class Double(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.kept = 3
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    node = Double.apply(tt.ones(2, requires_grad=True)).grad_fn
    assert type(node).__name__ == "DoubleBackward"
    assert node.kept == 3


def test_nodes_are_made_by_recording_alone():
    """Neither they nor types derived from them can be made."""
    kind = type((tt.ones(1, requires_grad=True) * 2).grad_fn)
    with pytest.raises(TypeError):
        kind()
    with pytest.raises(TypeError):
        type("Own", (kind,), {})
    with pytest.raises(TypeError):
        type("Own", (autograd.graph.Node,), {})


def test_a_gradient_can_be_a_sparse_tensor():
    """It is given like any other, and steps use it."""
    x = tt.zeros(3, requires_grad=True)
    x.grad = tt.sparse_coo_tensor(tt.tensor([[1]]), tt.tensor([2.0]), (3,))
    assert x.grad.to_dense().tolist() == [0.0, 2.0, 0.0]


def test_names_of_saved_tensors_are_listed():
    """Programs that draw graphs look for them; several of one name are a tuple."""
    x, y = tt.ones(3, requires_grad=True), tt.full((3,), 2.0, requires_grad=True)
    node = (x * y).grad_fn
    assert [name for name in dir(node) if name.startswith("_saved_")] == ["_saved_other", "_saved_self"]
    assert node._saved_self is x and node._saved_other is y
    assert "name" in dir(node) and "_saved_self" not in dir(x.sum().grad_fn)
    with pytest.raises(AttributeError, match="no saved tensor"):
        node._saved_third  # noqa: B018


def test_nodes_name_the_tensor_of_an_order_that_is_free_first():
    x = tt.ones(2, requires_grad=True)
    for made in (2 * x.sin(), 2 + x.sin(), x.sin() * 2):
        (first, _), *rest = made.grad_fn.next_functions
        assert type(first).__name__ == "SinBackward0" and all(node is None for node, _ in rest)


def test_one_saved_tensor_can_be_packed_by_hooks_of_its_own():
    x = tt.tensor([3.0], requires_grad=True)
    node = (y := x * x).grad_fn
    saved = node._raw_saved_self
    assert [name for name in dir(node) if name.startswith("_raw")] == ["_raw_saved_other", "_raw_saved_self"]
    saved.register_hooks(lambda tensor: tensor.tolist(), lambda values: tt.tensor(values) * 10)
    assert node._saved_self.tolist() == [30.0] and node._saved_other is x
    with pytest.raises(RuntimeError, match="has hooks already"):
        saved.register_hooks(lambda tensor: tensor, lambda tensor: tensor)
    with pytest.raises(TypeError, match="callable"):
        node._raw_saved_other.register_hooks(None, None)
    y.backward()
    assert x.grad.tolist() == [33.0]
    with pytest.raises(RuntimeError, match="freed"):
        saved.register_hooks(lambda tensor: tensor, lambda tensor: tensor)
    with pytest.raises(AttributeError, match="no saved tensor"):
        node._raw_saved_third  # noqa: B018


@pytest.mark.parametrize("wrong", ["writes", "frees", "raises"])
def test_hooks_of_a_saved_tensor_that_fail_leave_it_as_it_is(wrong):
    x = tt.tensor([3.0], requires_grad=True)
    y = (x * 1).exp()

    def pack(tensor):
        if wrong == "writes":
            tensor.zero_()
        elif wrong == "frees":
            y.backward()
        raise ValueError("no")

    before = y.tolist()
    with pytest.raises((RuntimeError, ValueError)):
        y.grad_fn._raw_saved_result.register_hooks(pack, pack)
    if wrong == "raises":
        y.backward()
    if wrong != "writes":
        assert x.grad.tolist() == before


def test_backward_takes_its_arguments_by_position():
    x = tt.ones(2, requires_grad=True)
    y = x * 3
    autograd.backward([y.sum()], None, None, False, None, [x])
    with pytest.warns(FutureWarning, match="grad_tensors"):
        autograd.backward([x * 2], grad_variables=[tt.ones(2)])
    assert x.grad.tolist() == [5.0, 5.0]
    with pytest.raises(RuntimeError, match="exclude each other"):
        autograd.backward([x * 2], [tt.ones(2)], grad_variables=[tt.ones(2)])


def test_a_node_is_a_function_from_gradients_to_gradients():
    x = tt.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    assert [g if g is None else g.tolist() for g in y.grad_fn(tt.tensor([1.0, 10.0]))] == [[3.0, 30.0], None]
    assert y.sum().grad_fn(tt.tensor(2.0)).tolist() == [2.0, 2.0]
    twice = (x * x).grad_fn  # each operand has a gradient of its own
    assert [g.tolist() for g in twice(tt.ones(2))] == [[1.0, 2.0], [1.0, 2.0]]
    assert twice(tt.ones(2))[0].requires_grad  # recorded, as any function of x
    with autograd.no_grad():
        assert not twice(tt.ones(2))[0].requires_grad
    assert x.grad is None
    leaf = y.grad_fn.next_functions[0][0]
    assert leaf(tt.ones(2)) == () and leaf(tt.ones(2)) == ()
    assert x.grad.tolist() == [2.0, 2.0]


def test_the_call_of_a_node_checks_its_gradients():
    x = tt.ones(2, requires_grad=True)
    node = (x * 3).grad_fn
    with pytest.raises(TypeError, match="MulBackward0: got 2 gradients, expected 1"):
        node(tt.ones(2), tt.ones(2))
    with pytest.raises(RuntimeError, match=r"MulBackward0: gradient 0 has shape \(3,\), expected \(2,\)"):
        node(tt.ones(3))
    with pytest.raises(TypeError, match="expected a Tensor or None, found int"):
        node(1)
    with pytest.raises(TypeError, match="takes no keywords"):
        node(grad=tt.ones(2))
    assert node(tt.ones(2, dtype=tt.float64))[0].dtype is tt.float32
    (y := x * x).sum().backward()
    with pytest.raises(RuntimeError, match="freed"):
        y.grad_fn(tt.ones(2))


def test_nodes_have_the_names_that_programs_look_for():
    x = tt.ones(1, 2, 3, 3, requires_grad=True)
    assert (x * 2).grad_fn.name() == "MulBackward0" and tt.log1p(x).grad_fn.name() == "Log1PBackward0"
    assert tt.avg_pool2d(x, 2).grad_fn.name() == "AvgPool2DBackward0"
    assert tt.conv2d(x, tt.ones(1, 2, 1, 1)).grad_fn.name() == "ConvolutionBackward0"
    assert x.double().grad_fn.name() == "ToCopyBackward0"
    assert tt.linalg.vector_norm(x).grad_fn.name() == "LinalgVectorNormBackward0"
