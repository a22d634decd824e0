"""Behaviour of a tensor provider, held against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from taeda_testing.conformance.checks import Suite, array_of, close, equal, raises, true

suite = Suite("tensor")
CHECKS = suite.checks
_X = np.array([[0.5, -1.5, 2.0], [3.0, -0.25, 1.0]], np.float32)
_Y = np.array([[2.0, 0.5, -1.0]], np.float32)


def _t(part: Any, array: Any) -> Any:
    return part.from_numpy(np.array(array))


def _each(part: Any, names: str, *arrays: np.ndarray, reference: Any = np) -> None:
    """Functions of the provider against NumPy's of the same or a similar name."""
    spelled = {"sub": "subtract", "mul": "multiply", "div": "true_divide", "pow": "power"}
    for name in names.split():
        found = getattr(part, name)(*(_t(part, a) for a in arrays))
        with np.errstate(all="ignore"):
            expected = getattr(reference, spelled.get(name, name))(*arrays)
        shapes = ", ".join(str(a.shape) for a in arrays)
        close(f"{name}({shapes})", found, expected)


@suite.check("tensor", "Tensor.shape", "Tensor.dtype", "Tensor.dim", "Tensor.numel", "Tensor.tolist")
def from_python_data(part: Any) -> None:
    """`tensor` takes numbers and nested lists, finds the dtype, and always copies."""
    for data, dtype in (
        ([1.5, 2], "float32"),
        ([1, 2], "int64"),
        ([True, False], "bool"),
        (3.5, "float32"),
        (7, "int64"),
    ):
        made = part.tensor(data)
        equal(f"tensor({data}).dtype", made.dtype, getattr(part, dtype))
        equal(f"tensor({data}).tolist()", made.tolist(), data)
    made = part.tensor([[1, 2, 3], [4, 5, 6]])
    equal("tensor(2x3).shape", tuple(made.shape), (2, 3))
    equal("tensor(2x3).dim()", made.dim(), 2)
    equal("tensor(2x3).numel()", made.numel(), 6)
    array = np.ones(2, np.float32)
    copied = part.tensor(array)
    array[0] = 5
    close("tensor(array) after the array changed", copied, [1, 1])


@suite.check("tensor")
def wrong_data(part: Any) -> None:
    """Lists of unequal lengths and objects that are no numbers are errors."""
    with raises("tensor([[1, 2], [3]])", ValueError, TypeError):
        part.tensor([[1, 2], [3]])
    with raises("tensor(object())", TypeError, ValueError, RuntimeError):
        part.tensor(object())


@suite.check("empty", "zeros", "ones", "full", "empty_like", "zeros_like", "ones_like", "arange", "eye")
def creation(part: Any) -> None:
    """Factories take sizes one by one or as a tuple, and a dtype."""
    close("zeros(2, 3)", part.zeros(2, 3), np.zeros((2, 3)))
    close("ones((2, 3))", part.ones((2, 3)), np.ones((2, 3)))
    close("full((2,), 1.5)", part.full((2,), 1.5), [1.5, 1.5])
    close("arange(4)", part.arange(4), np.arange(4))
    close("arange(1, 2, 0.25)", part.arange(1, 2, 0.25), np.arange(1, 2, 0.25))
    close("eye(3)", part.eye(3), np.eye(3))
    equal("empty(0, 3).shape", tuple(part.empty(0, 3).shape), (0, 3))
    like = part.zeros_like(_t(part, _X), dtype=part.int64)
    equal("zeros_like(x, dtype=int64).dtype", like.dtype, part.int64)
    close("ones_like(x)", part.ones_like(_t(part, _X)), np.ones((2, 3)))
    equal("empty_like(x).shape", tuple(part.empty_like(_t(part, _X)).shape), (2, 3))


@suite.check("set_default_dtype", "get_default_dtype")
def default_dtype(part: Any) -> None:
    """Floats without a dtype get the default one, float32 at first."""
    equal("get_default_dtype()", part.get_default_dtype(), part.float32)
    part.set_default_dtype(part.float64)
    try:
        equal("tensor(1.5).dtype with default float64", part.tensor(1.5).dtype, part.float64)
        equal("zeros(2).dtype with default float64", part.zeros(2).dtype, part.float64)
    finally:
        part.set_default_dtype(part.float32)


@suite.check("from_numpy", "as_tensor", "Tensor.numpy", needs=["shared-memory"])
def numpy_shares_memory(part: Any) -> None:
    """`from_numpy`, `as_tensor` and `numpy` share memory both ways."""
    array = np.zeros(3, np.float32)
    first, second = part.from_numpy(array), part.as_tensor(array)
    array[1] = 2
    close("from_numpy(a) after a changed", first, [0, 2, 0])
    close("as_tensor(a) after a changed", second, [0, 2, 0])
    first[0] = 7.0
    equal("the array after from_numpy(a)[0] = 7", array.tolist(), [7, 2, 0])
    first.numpy()[2] = 4
    close("t after t.numpy()[2] = 4", first, [7, 2, 4])


@suite.check("Tensor.item", "Tensor.tolist")
def python_scalars(part: Any) -> None:
    """`item`, `int`, `float` and `bool` of one element; more elements are an error."""
    equal("tensor([2.5]).item()", part.tensor([2.5]).item(), 2.5)
    equal("int(tensor(3))", int(part.tensor(3)), 3)
    equal("bool(tensor(0))", bool(part.tensor(0)), False)
    with raises("zeros(2).item()", RuntimeError, ValueError):
        part.zeros(2).item()
    with raises("bool(zeros(2))", RuntimeError, ValueError):
        bool(part.zeros(2))


@suite.check("add", "sub", "mul", "div", "pow")
def arithmetic(part: Any) -> None:
    """Element-wise functions and Python's operators broadcast and agree with NumPy."""
    _each(part, "add sub mul div", _X, _Y)
    _each(part, "pow", np.abs(_X), _Y)
    x, y = _t(part, _X), _t(part, _Y)
    close("x + y", x + y, _X + _Y)
    close("x - 1", x - 1, _X - 1)
    close("2 * x", 2 * x, 2 * _X)
    close("1 / x", 1 / x, 1 / _X)
    close("-x", -x, -_X)
    close("x ** 2", x**2, _X**2)
    close("x > y", x > y, _X > _Y)
    close("x == x", x == x, np.ones((2, 3), bool))


@suite.check("add")
def promotion(part: Any) -> None:
    """Integers meet floats in the float's dtype, Python numbers do not widen a tensor."""
    ints, floats = part.tensor([1, 2]), part.tensor([0.5, 0.5])
    equal("(int64 + float32).dtype", (ints + floats).dtype, part.float32)
    equal("(float32 + 1.5).dtype", (floats + 1.5).dtype, part.float32)
    equal("(int64 + 1).dtype", (ints + 1).dtype, part.int64)
    equal("(int64 + 0.5).dtype", (ints + 0.5).dtype, part.float32)
    equal("(int64 / int64).dtype", (ints / ints).dtype, part.float32)
    equal("(float32 < 1).dtype", (floats < 1).dtype, part.bool)


@suite.check("add")
def shapes_that_do_not_fit(part: Any) -> None:
    """Shapes that do not broadcast are an error that names them."""
    with raises("ones(2, 3) + ones(4)", RuntimeError, ValueError, words=["3", "4"]):
        part.ones(2, 3) + part.ones(4)


@suite.check("sqrt", "exp", "log", "tanh", "sigmoid", "relu", "where")
def functions(part: Any) -> None:
    """Element-wise functions agree with NumPy, NaN and infinity included."""
    _each(part, "sqrt log", np.abs(_X))
    _each(part, "exp tanh", _X)
    x = _t(part, _X)
    close("sigmoid(x)", part.sigmoid(x), 1 / (1 + np.exp(-_X)))
    close("relu(x)", part.relu(x), np.maximum(_X, 0))
    close("where(x > 0, x, 0)", part.where(x > 0, x, part.zeros_like(x)), np.where(_X > 0, _X, 0))
    special = np.float32([np.nan, np.inf, -np.inf])
    close("exp([nan, inf, -inf])", part.exp(_t(part, special)), np.exp(special))
    close("relu([nan, inf, -inf])", part.relu(_t(part, special)), np.maximum(special, 0))


@suite.check("sum", "mean", "max", "argmax")
def reductions(part: Any) -> None:
    """Reductions over all, one and several dimensions."""
    x = _t(part, _X)
    close("sum(x)", part.sum(x), _X.sum())
    close("x.sum(0)", x.sum(0), _X.sum(0))
    close("x.sum(dim=-1, keepdim=True)", x.sum(dim=-1, keepdim=True), _X.sum(-1, keepdims=True))
    close("x.mean((0, 1))", x.mean((0, 1)), _X.mean())
    close("max(x)", part.max(x), _X.max())
    values, indices = part.max(x, 1)
    close("max(x, 1) values", values, _X.max(1))
    close("max(x, 1) indices", indices, _X.argmax(1))
    close("argmax(x)", part.argmax(x), _X.argmax())
    equal("sum of int32 has dtype", part.sum(_t(part, np.int32([1, 2]))).dtype, part.int64)
    close("sum(empty)", part.sum(part.zeros(0)), 0)
    with raises("x.sum(2)", IndexError):
        x.sum(2)


@suite.check("matmul")
def products(part: Any) -> None:
    """`matmul` of vectors, matrices and batches; inner sizes that differ are an error."""
    source = np.random.default_rng(1)
    for a, b in (((3,), (3,)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((5, 1, 2, 3), (4, 3, 2))):
        x, y = (source.standard_normal(shape).astype(np.float32) for shape in (a, b))
        close(f"matmul({a}, {b})", _t(part, x) @ _t(part, y), x @ y)
    with raises("ones(2, 3) @ ones(2, 3)", RuntimeError, ValueError):
        part.ones(2, 3) @ part.ones(2, 3)


@suite.check("Tensor.view", "Tensor.reshape", "Tensor.permute", "Tensor.transpose", "Tensor.expand")
def shapes(part: Any) -> None:
    """Shape operations give the right elements; `view` refuses what strides do not allow."""
    x = _t(part, _X)
    close("x.view(3, 2)", x.view(3, 2), _X.reshape(3, 2))
    close("x.reshape(-1)", x.reshape(-1), _X.ravel())
    close("x.permute(1, 0)", x.permute(1, 0), _X.T)
    close("x.transpose(0, 1).reshape(6)", x.transpose(0, 1).reshape(6), _X.T.ravel())
    close("x[:1].expand(4, 3)", x[:1].expand(4, 3), np.tile(_X[:1], (4, 1)))
    close("x.t().contiguous()", x.transpose(0, 1).contiguous(), _X.T)
    with raises("x.t().view(6)", RuntimeError, ValueError):
        x.transpose(0, 1).view(6)
    with raises("x.view(4)", RuntimeError, ValueError):
        x.view(4)


@suite.check("Tensor.view", "Tensor.clone", "Tensor.detach")
def views(part: Any) -> None:
    """Views and `detach` share memory with their base, `clone` does not."""
    x = part.zeros(2, 3)
    copy = x.clone()
    x.view(6)[4] = 1.0
    x.transpose(0, 1)[0, 0] = 2.0
    x.detach()[0, 1] = 3.0
    close("zeros(2, 3) after writes through views", x, [[2, 3, 0], [0, 1, 0]])
    close("its clone", copy, np.zeros((2, 3)))


@suite.check("Tensor.__getitem__")
def indexing(part: Any) -> None:
    """Integers, slices, None, Ellipsis, index lists and masks, with NumPy's semantics."""
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    x = _t(part, array)
    cases: list[Any] = [1, -1, slice(0, 1), (0, slice(1, None)), (..., 2), (slice(None), None, 1), (0, 1, 2)]
    for index in cases:
        close(f"x[{index}]", x[index], array[index])
    rows, columns = np.int64([1, 0, 1]), np.int64([2, 0, -1])
    close("x[rows]", x[_t(part, rows)], array[rows])
    close("x[rows, columns]", x[_t(part, rows), _t(part, columns)], array[rows, columns])
    close("x[x > 11]", x[x > 11], array[array > 11])
    with raises("x[2]", IndexError):
        x[2]
    with raises("x[0, 0, 0, 0]", IndexError):
        x[0, 0, 0, 0]


@suite.check("Tensor.__setitem__")
def assignment(part: Any) -> None:
    """Assignment through slices, index lists and masks broadcasts."""
    array = np.zeros((3, 4), np.float32)
    x = _t(part, array)
    array = array.copy()
    for index, value in (((slice(None), 1), 2.0), (2, 3.0)):
        x[index], array[index] = value, value
    x[_t(part, np.int64([0, 1])), 3], array[[0, 1], 3] = 5.0, 5.0
    x[x == 0], array[array == 0] = -1.0, -1.0
    x[0] = _t(part, np.float32([9, 8, 7, 6]))
    array[0] = [9, 8, 7, 6]
    close("zeros(3, 4) after assignments", x, array)


@suite.check("Tensor.copy_", "Tensor.zero_", "Tensor.fill_")
def in_place(part: Any) -> None:
    """In-place methods change the tensor and return it; results that do not fit are errors."""
    x = part.zeros(2, 3)
    true("x.fill_(2) is x", x.fill_(2) is x, "the same object")
    x += 1
    close("zeros.fill_(2) += 1", x, np.full((2, 3), 3))
    x.copy_(part.tensor([1, 2, 3]))
    close("x.copy_(int64 [3])", x, [[1, 2, 3]] * 2)
    close("x.add_(x).mul_(2).zero_()", x.add_(x).mul_(2).zero_(), np.zeros((2, 3)))
    with raises("zeros(3) += ones(2, 3)", RuntimeError, ValueError):
        part.zeros(3).add_(part.ones(2, 3))


@suite.check("cat", "stack")
def joining(part: Any) -> None:
    """`cat` and `stack` along any dimension; sizes that do not fit are an error."""
    x = _t(part, _X)
    close("cat([x, x], 1)", part.cat([x, x], 1), np.concatenate([_X, _X], 1))
    close("stack([x, x], -1)", part.stack([x, x], -1), np.stack([_X, _X], -1))
    with raises("cat of (2, 3) and (2, 2) along 0", RuntimeError, ValueError):
        part.cat([x, part.zeros(2, 2)], 0)
    with raises("stack([])", RuntimeError, ValueError):
        part.stack([])


@suite.check("Tensor.to", "Tensor.device", "device", "dtype")
def conversion(part: Any) -> None:
    """`to` converts, returns itself when nothing changes, and unknown devices are an error."""
    x = _t(part, _X)
    true("x.to(x.dtype) is x", x.to(part.float32) is x, "the same object")
    equal("x.to(float64).dtype", x.to(part.float64).dtype, part.float64)
    close("x.to(int64)", x.to(part.int64), _X.astype(np.int64))
    equal("str(x.device)", str(x.device), "cpu")
    true("x.dtype", isinstance(x.dtype, part.dtype), "an instance of dtype")
    true("device('cpu') == x.device", part.device("cpu") == x.device, "True")
    with raises("zeros(1, device='no_such_device')", RuntimeError, ValueError, words=["no_such_device"]):
        part.zeros(1, device="no_such_device")


@suite.check("rand", "randn", "randperm", "manual_seed", "Generator", "Tensor.normal_", "Tensor.uniform_")
def randomness(part: Any) -> None:
    """Draws have the right range and moments, and repeat with the seed."""
    for name in ("rand", "randn", "randperm"):
        draw = getattr(part, name)
        part.manual_seed(3)
        first, second = array_of(draw(500)), array_of(draw(500))
        part.manual_seed(3)
        close(f"{name}(500) after the same seed", draw(500), first, 0, 0)
        true(f"{name}(500) twice", not np.array_equal(first, second), "different draws")
        own = part.Generator().manual_seed(5)
        third = array_of(draw(500, generator=own))
        close(
            f"{name} from equal generators", draw(500, generator=part.Generator().manual_seed(5)), third, 0, 0
        )
    part.manual_seed(0)
    uniform = array_of(part.rand(4000))
    true("range of rand", uniform.min() >= 0 and uniform.max() < 1, "[0, 1)")
    close("mean of rand(4000)", uniform.mean(), 0.5, 0, 0.03)
    normal = array_of(part.empty(4000).normal_(1, 2))
    close("mean of normal_(1, 2)", normal.mean(), 1, 0, 0.2)
    close("deviation of normal_(1, 2)", normal.std(), 2, 0, 0.2)
    spread = array_of(part.empty(4000).uniform_(-2, 4))
    true("range of uniform_(-2, 4)", spread.min() >= -2 and spread.max() <= 4, "[-2, 4]")
    close("mean of uniform_(-2, 4)", spread.mean(), 1, 0, 0.2)
    equal("sorted(randperm(9))", sorted(part.randperm(9).tolist()), list(range(9)))


@suite.check("softmax", "log_softmax", "embedding", "layer_norm", "dropout")
def network_functions(part: Any) -> None:
    """Softmax, its logarithm, embedding, layer norm and dropout against formulas."""
    x = _t(part, _X)
    powers = np.exp(_X - _X.max(1, keepdims=True))
    expected = powers / powers.sum(1, keepdims=True)
    close("softmax(x, 1)", part.softmax(x, 1), expected)
    close("log_softmax(x, 1)", part.log_softmax(x, 1), np.log(expected))
    large = part.tensor([1000.0, 1000.0])
    close("log_softmax([1000, 1000], 0)", part.log_softmax(large, 0), np.log([0.5, 0.5]))
    close("embedding(x, [1, 0, 1])", part.embedding(x, part.tensor([1, 0, 1])), _X[[1, 0, 1]])
    mean, var = _X.mean(1, keepdims=True), _X.var(1, keepdims=True)
    close("layer_norm(x, (3,))", part.layer_norm(x, (3,)), (_X - mean) / np.sqrt(var + 1e-5), 1e-4)
    close("dropout(x, 0.5, False)", part.dropout(x, 0.5, False), _X)
    part.manual_seed(0)
    dropped = array_of(part.dropout(part.ones(1000), 0.5, True))
    equal("values of dropout(ones, 0.5)", sorted(set(dropped.tolist())), [0.0, 2.0])


@suite.check("conv2d", "max_pool2d", "batch_norm", needs=["convolution"])
def images(part: Any) -> None:
    """Convolution with groups, stride and padding, max pooling and batch norm against loops."""
    source = np.random.default_rng(2)
    x = source.standard_normal((2, 4, 5, 6)).astype(np.float32)
    w = source.standard_normal((6, 2, 3, 3)).astype(np.float32)
    b = source.standard_normal(6).astype(np.float32)
    found = part.conv2d(_t(part, x), _t(part, w), _t(part, b), (2, 1), (1, 1), (1, 1), 2)
    wide = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    expected = np.zeros((2, 6, 3, 6), np.float32)
    for n, o, i, j in np.ndindex(expected.shape):
        group = o // 3
        window = wide[n, 2 * group : 2 * group + 2, 2 * i : 2 * i + 3, j : j + 3]
        expected[n, o, i, j] = (window * w[o]).sum() + b[o]
    close(
        "conv2d((2, 4, 5, 6), (6, 2, 3, 3), stride (2, 1), padding 1, groups 2)", found, expected, 1e-4, 1e-4
    )
    pooled = part.max_pool2d(_t(part, x), (2, 2))
    close("max_pool2d(x, 2)", pooled, x[:, :, :4].reshape(2, 4, 2, 2, 3, 2).max((3, 5)))
    mean, var = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
    normed = part.batch_norm(_t(part, x), None, None, None, None, True, 0.1, 1e-5)
    close("batch_norm(x, training)", normed, (x - mean) / np.sqrt(var + 1e-5), 1e-4, 1e-5)


@suite.check("no_grad", "enable_grad", "is_grad_enabled", "Tensor.requires_grad")
def recording_mode(part: Any) -> None:
    """`no_grad` and `enable_grad` nest as contexts and decorators."""
    before = part.is_grad_enabled()
    with part.no_grad():
        equal("is_grad_enabled() in no_grad", part.is_grad_enabled(), False)
        with part.enable_grad():
            equal("is_grad_enabled() in enable_grad", part.is_grad_enabled(), True)
        equal("is_grad_enabled() back in no_grad", part.is_grad_enabled(), False)
    equal("is_grad_enabled() afterwards", part.is_grad_enabled(), before)
    equal("no_grad()(is_grad_enabled)()", part.no_grad()(part.is_grad_enabled)(), False)
    equal("zeros(1).requires_grad", part.zeros(1).requires_grad, False)


@suite.check("Tensor._make_subclass")
def subclasses(part: Any) -> None:
    """A subclass made of a tensor shares its memory; operations on it give plain tensors' values."""

    class Special(part.Tensor):
        pass

    base = part.zeros(2)
    special = part.Tensor._make_subclass(Special, base, False)
    true("type of the result", type(special) is Special, "Special")
    base[0] = 3.0
    close("the subclass after the base changed", special, [3, 0])
    close("special + 1", special + 1, [4, 1])
