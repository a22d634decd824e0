"""Behaviour of a device: memory, copies, indexing, randomness, and kernels that no record reaches directly."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np

from taeda_registry.slots import tensor
from taeda_testing.conformance.capability import DTYPES
from taeda_testing.conformance.checks import Suite, array_of, close, equal, raises, true

suite = Suite("device")
CHECKS = suite.checks
_PLAIN = tuple(name for name in DTYPES if name in ("bool", "uint8", "int32", "int64", "float32"))


def put(array: Any, device: str, grad: bool = False) -> Any:
    """An array as a tensor on the device."""
    moved = tensor.from_numpy(np.array(array)).to(device)
    return moved.requires_grad_(True) if grad else moved


def rng() -> np.random.Generator:
    """The source of every suite's inputs."""
    return np.random.default_rng(20250301)


def slope(loss: Callable[[np.ndarray], float], at: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """Central differences of a function of one array."""
    out = np.zeros(at.shape)
    for i in np.ndindex(at.shape):
        ends = []
        for sign in (1, -1):
            moved = at.astype(np.float64)
            moved[i] += sign * step
            ends.append(loss(moved))
        out[i] = (ends[0] - ends[1]) / (2 * step)
    return out


@suite.check()
def name_of_the_device(device: str) -> None:
    """A tensor made on the device says so, and tensors made like it stand there too."""
    name = device.partition(":")[0]
    for made in (tensor.empty(2, 3, device=device), tensor.zeros(2, device=device)):
        equal(f"empty(device={device!r}).device.type", tensor.device(str(made.device)).type, name)
        equal("zeros_like(x).device", str(tensor.zeros_like(made).device), str(made.device))


@suite.check()
def round_trip(device: str) -> None:
    """Host memory goes to the device and back unchanged, in every plain dtype and shape."""
    source = rng()
    for dtype in _PLAIN:
        for shape in ((), (0,), (5,), (3, 4), (257, 33)):
            array = source.integers(0, 2, shape).astype(dtype)
            close(f"{dtype}{list(shape)} to {device} and back", put(array, device), array, 0, 0)


@suite.check()
def copies(device: str) -> None:
    """`copy_` converts, broadcasts, and honours strides on both sides."""
    array = rng().standard_normal((4, 6)).astype(np.float32)
    target = put(np.zeros((6, 4), np.float32), device)
    target.t().copy_(put(array, device))
    close("zeros(6, 4).t().copy_(x)", target, array.T, 0, 0)
    part = put(np.zeros((4, 6), np.float32), device)
    part[:, ::2].copy_(put(array, device)[:, 1::2])
    close("zeros(4, 6)[:, ::2].copy_(x[:, 1::2])", part[:, ::2], array[:, 1::2], 0, 0)
    whole = put(np.zeros((4, 6), np.int64), device)
    whole.copy_(put(np.float32([1, 2, 3, 4, 5, 6]), device))
    close("int64 zeros(4, 6).copy_(float32[6])", whole, np.tile(np.arange(1, 7), (4, 1)), 0, 0)


@suite.check()
def copies_are_copies(device: str) -> None:
    """A clone, and a tensor moved to another device, do not share memory with the original."""
    first = put(np.float32([1, 2, 3]), device)
    second, host = first.clone(), first.detach().to("cpu").clone()
    first.add_(1)
    close("clone after the original changed", second, [1, 2, 3])
    close("host copy after the original changed", host, [1, 2, 3])


@suite.check()
def views_share_memory(device: str) -> None:
    """A write through a view is seen by the whole, and the other way round."""
    whole = put(np.zeros((3, 4), np.float32), device)
    view = whole[1:, ::2].t()
    view.fill_(5)
    expected = np.zeros((3, 4), np.float32)
    expected[1:, ::2] = 5
    close("zeros(3, 4)[1:, ::2].t().fill_(5)", whole, expected)
    whole.zero_()
    close("the view after whole.zero_()", view, np.zeros((2, 2)))


_VIEWS: dict[str, Callable[[Any], Any]] = {
    "as_strided((2, 3), (1, 4), 2)": lambda x: x.as_strided((2, 3), (1, 4), 2),
    "chunk(2)[1]": lambda x: x.chunk(2)[1],
    "contiguous()": lambda x: x.contiguous(),
    "detach()": lambda x: x.detach(),
    "diagonal()": lambda x: x.diagonal(),
    "expand(2, 4, 4)": lambda x: x.expand(2, 4, 4),
    "flatten()": lambda x: x.flatten(),
    "movedim(0, 1)": lambda x: x.movedim(0, 1),
    "narrow(1, 1, 2)": lambda x: x.narrow(1, 1, 2),
    "permute(1, 0)": lambda x: x.permute(1, 0),
    "ravel()": lambda x: x.ravel(),
    "reshape(2, 8)": lambda x: x.reshape(2, 8),
    "select(1, -1)": lambda x: x.select(1, -1),
    "slice(x, 1, None, None, -2)": lambda x: tensor.slice(x, 1, None, None, -2),
    "split([1, 3])[1]": lambda x: x.split([1, 3])[1],
    "squeeze(0) of unsqueeze(0)": lambda x: x.unsqueeze(0).squeeze(0),
    "swapaxes(0, 1)": lambda x: x.swapaxes(0, 1),
    "t()": lambda x: x.t(),
    "tensor_split([1])[1]": lambda x: x.tensor_split([1])[1],
    "unbind(1)[2]": lambda x: x.unbind(1)[2],
    "unflatten(0, (2, 2))": lambda x: x.unflatten(0, (2, 2)),
    "unfold(0, 2, 1)": lambda x: x.unfold(0, 2, 1),
    "view(8, 2)": lambda x: x.view(8, 2),
    "view(int32)": lambda x: x.view(tensor.int32),
}


@suite.check()
def every_view_shares_memory(device: str) -> None:
    """What is a view by its definition shows a write into its base, and hands its own writes on."""
    array = rng().standard_normal((4, 4)).astype(np.float32)
    for call, view in _VIEWS.items():
        base, whole = put(np.zeros((4, 4), np.float32), device), put(array, device)
        found = view(base)
        base.copy_(whole)
        close(f"x.{call} after x changed", found, array_of(view(whole)), 0, 0)
        with tensor.no_grad():
            found.zero_()
        close(f"x.{call} after it was zeroed", view(base), np.zeros(tuple(found.shape)), 0, 0)


@suite.check()
def views_need_strides(device: str) -> None:
    """`view` of a layout that it cannot express is an error that tells of `reshape`, which copies."""
    array = rng().standard_normal((2, 3)).astype(np.float32)
    turned = put(array, device).t()
    with raises("x.t().view(6)", RuntimeError, words=["view", "reshape"]):
        turned.view(6)
    copied = turned.reshape(6)
    turned.zero_()
    close("x.t().reshape(6) after x changed", copied, array.T.ravel(), 0, 0)


@suite.check()
def layouts(device: str) -> None:
    """`contiguous` gives the layout it is asked for, and the tensor itself when it has that layout."""
    array = rng().standard_normal((2, 3, 4, 5)).astype(np.float32)
    x = put(array, device)
    true("x.contiguous() is x", x.contiguous() is x, "the tensor itself")
    for call, found, strides in (
        ("x.permute(3, 0, 2, 1).contiguous()", x.permute(3, 0, 2, 1).contiguous(), (24, 12, 3, 1)),
        ("channels_last", x.contiguous(memory_format="channels_last"), (60, 1, 15, 3)),
    ):
        equal(f"strides of {call}", tuple(found.stride()), strides)
    close("x.contiguous(channels_last)", x.contiguous(memory_format="channels_last"), array, 0, 0)


@suite.check()
def uninitialised(device: str) -> None:
    """`empty` and its relatives have the shape, dtype, strides and device that are asked for."""
    like = put(np.zeros((2, 3), np.int32), device).t()
    for call, made, dtype, shape, strides in (
        ("empty(2, 3)", tensor.empty(2, 3, device=device), "float32", (2, 3), (3, 1)),
        ("empty(())", tensor.empty((), dtype=tensor.int64, device=device), "int64", (), ()),
        ("empty_like(x.t())", tensor.empty_like(like), "int32", (3, 2), (1, 3)),
        ("empty_like(x.t(), dtype)", tensor.empty_like(like, dtype=tensor.bool), "bool", (3, 2), (1, 3)),
        ("x.new_empty(2, 0)", like.new_empty(2, 0), "int32", (2, 0), None),
        ("x.new_empty((2,), dtype)", like.new_empty((2,), dtype=tensor.uint8), "uint8", (2,), (1,)),
        ("empty_strided", tensor.empty_strided((2, 3), (1, 2), device=device), "float32", (2, 3), (1, 2)),
    ):
        found = (tuple(made.shape), made.dtype, str(made.device))
        equal(f"shape, dtype and device of {call}", found, (shape, getattr(tensor, dtype), str(like.device)))
        if strides is not None:
            equal(f"strides of {call}", tuple(made.stride()), strides)
    with raises("empty(2, -1)", RuntimeError, ValueError, words=["size", "-1"]):
        tensor.empty(2, -1, device=device)
    with raises("empty_strided((2, 2), (1,))", RuntimeError, ValueError, words=["empty_strided", "stride"]):
        tensor.empty_strided((2, 2), (1,), device=device)


@suite.check(needs=["gradients"])
def created_leaves(device: str) -> None:
    """What makes tensors makes leaves that require gradients when told so; integers cannot."""
    like, given = put(np.float32([1, 2]), device), {"device": device, "requires_grad": True}
    for call, made in (
        ("arange(3.0)", tensor.arange(3.0, **given)),
        ("empty(2)", tensor.empty(2, **given)),
        ("empty_like(x)", tensor.empty_like(like, **given)),
        ("empty_strided((2,), (1,))", tensor.empty_strided((2,), (1,), **given)),
        ("eye(2)", tensor.eye(2, **given)),
        ("full((2,), 1.0)", tensor.full((2,), 1.0, **given)),
        ("full_like(x, 1)", tensor.full_like(like, 1, **given)),
        ("linspace(0, 1, 3)", tensor.linspace(0, 1, 3, **given)),
        ("logspace(0, 1, 3)", tensor.logspace(0, 1, 3, **given)),
        ("x.new_empty(2)", like.new_empty(2, **given)),
        ("x.new_full((2,), 1)", like.new_full((2,), 1, **given)),
        ("x.new_ones(2)", like.new_ones(2, **given)),
        ("x.new_zeros(2)", like.new_zeros(2, **given)),
        ("ones(2)", tensor.ones(2, **given)),
        ("ones_like(x)", tensor.ones_like(like, **given)),
        ("scalar_tensor(1.0)", tensor.scalar_tensor(1.0, **given)),
        ("zeros(2)", tensor.zeros(2, **given)),
        ("zeros_like(x)", tensor.zeros_like(like, **given)),
    ):
        found = (made.requires_grad, made.is_leaf, str(made.device))
        equal(f"requires_grad, is_leaf and device of {call}", found, (True, True, str(like.device)))
    with raises("zeros(2, dtype=int64, requires_grad=True)", RuntimeError):
        tensor.zeros(2, dtype=tensor.int64, **given)


@suite.check(needs=["gradients", "float64"])
def gradients_across_devices_and_dtypes(device: str) -> None:
    """A gradient comes back through a move and a conversion, on the device and in the dtype of its tensor."""
    start = put(np.float64([1, -2, 3]), "cpu", grad=True)
    moved = start.to(device)
    (moved.to(tensor.float32) * put(np.float32([2, 4, 8]), device)).sum().backward()
    equal(
        "device and dtype of the gradient",
        (str(start.grad.device), start.grad.dtype),
        ("cpu", tensor.float64),
    )
    close("gradient of (x.to(device).to(float32) * w).sum()", start.grad, [2, 4, 8])
    target = put(np.zeros((2, 3), np.float32), device)
    start.grad = None
    target.copy_(start)
    (target * target).sum().backward()
    close("gradient of zeros(2, 3).copy_(x).square().sum()", start.grad, [4, -8, 12])


@suite.check(needs=["gradients", "complex", "float64"])
def gradients_through_complex_numbers(device: str) -> None:
    """Gradients of real numbers that were parts, or modulus and argument, of complex ones on the way."""
    source = rng()
    array, other = source.standard_normal((3, 2)), source.standard_normal(3)
    weights = source.standard_normal((3, 2))

    def parts(z: np.ndarray) -> float:
        return float((np.stack([(z * z).real, (z * z).imag], -1) * weights).sum())

    for call, make, reference in (
        ("view_as_complex(x)", tensor.view_as_complex, lambda a: a[:, 0] + 1j * a[:, 1]),
        (
            "complex(x, y)",
            lambda x: tensor.complex(x[:, 0], put(other, device)),
            lambda a: a[:, 0] + 1j * other,
        ),
        (
            "complex(y, x)",
            lambda x: tensor.complex(put(other, device), x[:, 1]),
            lambda a: other + 1j * a[:, 1],
        ),
        ("polar(r, phi)", lambda x: tensor.polar(x[:, 0], x[:, 1]), lambda a: a[:, 0] * np.exp(1j * a[:, 1])),
    ):
        x = put(array, device, grad=True)
        z = make(x)
        (tensor.view_as_real(z * z) * put(weights, device)).sum().backward()
        expected = slope(lambda at, of=reference: parts(of(at)), array)
        close(f"gradient of view_as_real(z * z), z = {call}", x.grad, expected, 1e-4, 1e-5)


@suite.check()
def casts(device: str) -> None:
    """`to(dtype)` converts between all plain dtypes as NumPy does."""
    for source in _PLAIN:
        for target in _PLAIN:
            array = np.array([0, 1, 1, 0, 1], source)
            found = put(array, device).to(getattr(tensor, target))
            close(f"{source} to {target}", found, array.astype(target), 0, 0)


@suite.check()
def fills(device: str) -> None:
    """`fill_`, `zero_`, `full` and `ones` write every element, also of strided views."""
    close("full((2, 3), 7)", tensor.full((2, 3), 7.0, device=device), np.full((2, 3), 7))
    close("ones(3)", tensor.ones(3, device=device), np.ones(3))
    part = put(np.zeros((4, 4), np.float32), device)
    part[::2, 1].fill_(2)
    expected = np.zeros((4, 4), np.float32)
    expected[::2, 1] = 2
    close("zeros(4, 4)[::2, 1].fill_(2)", part, expected)
    equal("fill_ of an empty tensor", part[:0].fill_(1).numel(), 0)


@suite.check()
def arange(device: str) -> None:
    """`arange` counts up and down, in integers and floats."""
    close("arange(5)", tensor.arange(5, device=device), np.arange(5), 0, 0)
    close("arange(1, 9, 3)", tensor.arange(1, 9, 3, device=device), np.arange(1, 9, 3), 0, 0)
    close("arange(5, 0, -2)", tensor.arange(5, 0, -2, device=device), np.arange(5, 0, -2), 0, 0)
    close("arange(0, 1, 0.25)", tensor.arange(0, 1, 0.25, device=device), np.arange(0, 1, 0.25))


@suite.check()
def items(device: str) -> None:
    """`item`, `tolist`, truth and printing read values from the device."""
    x = put(np.float32([1.5, -2]), device)
    equal("x[1].item()", x[1].item(), -2.0)
    equal("x.tolist()", x.tolist(), [1.5, -2.0])
    equal("bool((x > 0).any())", bool((x > 0).any()), True)
    true("repr(x)", "1.5" in repr(x), "a text with the values")


@suite.check()
def mixed_devices(device: str) -> None:
    """Operands on two devices are an error that names both, or the host's for the host itself."""
    if device.partition(":")[0] == "cpu":
        with raises("empty(2, device='no_such_device')", RuntimeError, ValueError, words=["no_such_device"]):
            tensor.empty(2, device="no_such_device")
        return
    with raises("add(host, device)", RuntimeError, words=["cpu", device.partition(":")[0]]):
        tensor.add(put(np.float32([1, 2]), "cpu"), put(np.float32([1, 2]), device))


@suite.check()
def wrong_index(device: str) -> None:
    """An index out of range is an IndexError, and the tensor is unchanged."""
    x = put(np.float32([1, 2, 3]), device)
    with raises("x[3]", IndexError):
        x[3]
    with raises("x[[0, 5]]", IndexError):
        array_of(x[put(np.int64([0, 5]), device)])
    close("x after the errors", x, [1, 2, 3])


@suite.check()
def memory_is_returned(device: str) -> None:
    """Thousands of tensors made and dropped leave the device usable: memory goes back with the last reference."""
    for _ in range(2000):
        tensor.empty(256, 256, device=device)
    gc.collect()
    close("ones(2) afterwards", tensor.ones(2, device=device), [1, 1])


@suite.check()
def advanced_indexing(device: str) -> None:
    """Indexing by integer tensors, masks and mixtures of them gives NumPy's result."""
    array = rng().standard_normal((4, 5, 3)).astype(np.float32)
    x, rows, columns = put(array, device), np.int64([2, 0, -1]), np.int64([1, 4, 0])
    close("x[rows]", x[put(rows, device)], array[rows])
    close("x[rows, columns]", x[put(rows, device), put(columns, device)], array[rows, columns])
    close("x[1:, columns]", x[1:, put(columns, device)], array[1:, columns])
    close("x[x > 0]", x[x > 0], array[array > 0])


@suite.check()
def advanced_assignment(device: str) -> None:
    """Assignment through integer tensors and masks, and accumulation of repeated indices."""
    array = rng().standard_normal((4, 5)).astype(np.float32)
    x, rows = put(array, device), np.int64([2, 0])
    x[put(rows, device)] = 1.0
    array[rows] = 1
    close("x[rows] = 1", x, array)
    x[x < 0] = 0.0
    array[array < 0] = 0
    close("x[x < 0] = 0", x, array)
    twice = put(np.zeros(3, np.float32), device)
    places, ones = put(np.int64([1, 1, 2]), device), put(np.ones(3, np.float32), device)
    twice.index_put_((places,), ones, accumulate=True)
    close("zeros(3).index_put_([1, 1, 2], 1, accumulate=True)", twice, [0, 2, 1])


@suite.check()
def unique_values(device: str) -> None:
    """`unique` gives sorted values, the inverse and the counts."""
    array = np.int64([3, 1, 3, 2, 1, 3])
    values, inverse, counts = tensor.unique(put(array, device), return_inverse=True, return_counts=True)
    expected = np.unique(array, return_inverse=True, return_counts=True)
    for name, found, wanted in zip(
        ("values", "inverse", "counts"), (values, inverse, counts), expected, strict=True
    ):
        close(f"unique([3, 1, 3, 2, 1, 3]) {name}", found, wanted, 0, 0)


def _moments(call: str, found: Any, mean: float, deviation: float) -> None:
    """Sample mean within five standard errors."""
    values = array_of(found).astype(np.float64).ravel()
    close(f"mean of {call}", values.mean(), mean, 0, 5 * deviation / values.size**0.5 + 1e-6)


def _generator(device: str) -> Any:
    return tensor.Generator(device).manual_seed(7)


def _repeats(call: str, draw: Callable[[Any], Any], device: str) -> Any:
    """The draw of a seeded generator, which must be the same a second time and another one after it."""
    source = _generator(device)
    first, again, other = draw(source), draw(_generator(device)), draw(source)
    close(f"{call} from an equal generator", again, array_of(first), 0, 0)
    true(f"{call} a second time", not np.array_equal(array_of(first), array_of(other)), "other values")
    return first


@suite.check(needs=["random"])
def uniform_and_normal(device: str) -> None:
    """`uniform_` and `normal_` have the right bounds and moments, and repeat with the seed."""

    def uniform(source: Any) -> Any:
        return tensor.empty(4000, device=device).uniform_(-1, 3, generator=source)

    found = _repeats("uniform_(-1, 3)", uniform, device)
    values = array_of(found)
    true("bounds of uniform_(-1, 3)", values.min() >= -1 and values.max() < 3, "values in [-1, 3)")
    _moments("uniform_(-1, 3)", found, 1, 4 / 12**0.5)

    def normal(source: Any) -> Any:
        return tensor.empty(4000, device=device).normal_(2, 3, generator=source)

    found = _repeats("normal_(2, 3)", normal, device)
    _moments("normal_(2, 3)", found, 2, 3)
    close("deviation of normal_(2, 3)", array_of(found).std(), 3, 0.1)

    def log_normal(source: Any) -> Any:
        return tensor.empty(4000, device=device).log_normal_(0.5, 0.25, generator=source)

    found = _repeats("log_normal_(0.5, 0.25)", log_normal, device)
    logarithms = np.log(array_of(found))
    _moments("log(log_normal_(0.5, 0.25))", logarithms, 0.5, 0.25)
    close("deviation of log(log_normal_(0.5, 0.25))", logarithms.std(), 0.25, 0.1)


@suite.check(needs=["random"])
def random_tensors(device: str) -> None:
    """`rand`, `randn`, `randint`, `normal` and their relatives make the right shape on the device, and repeat."""
    like = tensor.empty(40, 100, device=device)
    means = put(np.float32([[-5], [5]]), device)
    made = {
        "rand(40, 100)": (lambda g: tensor.rand(40, 100, generator=g, device=device), 0.5, 0.29),
        "randn(40, 100)": (lambda g: tensor.randn(40, 100, generator=g, device=device), 0, 1),
        "randint(-2, 3, (4000,))": (lambda g: tensor.randint(-2, 3, (4000,), generator=g, device=device), 0, 1.42),
        "normal(2, 3, (4000,))": (lambda g: tensor.normal(2.0, 3.0, (4000,), generator=g, device=device), 2, 3),
        "normal([[-5], [5]], ones(2000))": (
            lambda g: tensor.normal(means, tensor.ones(2000, device=device), generator=g) - means, 0, 1
        ),
    }  # fmt: skip
    for call, (draw, mean, deviation) in made.items():
        found = _repeats(call, draw, device)
        equal(f"number of elements of {call}", found.numel(), 4000)
        equal(f"device of {call}", str(found.device), str(like.device))
        _moments(call, found, mean, deviation)
        close(f"deviation of {call}", array_of(found).std(), deviation, 0.1)
    alike = {
        "rand_like(x)": (tensor.rand_like, 0.5, 0.29),
        "randn_like(x)": (tensor.randn_like, 0, 1),
        "randint_like(x, 0, 3)": (lambda x: tensor.randint_like(x, 0, 3), 1, 0.82),
    }
    for call, (draw, mean, deviation) in alike.items():
        tensor.manual_seed(7)
        found = draw(like)
        tensor.manual_seed(7)
        close(f"{call} after an equal seed", draw(like), array_of(found), 0, 0)
        equal(f"shape, dtype and device of {call}", (found.shape, found.dtype, str(found.device)),
              (like.shape, like.dtype, str(like.device)))  # fmt: skip
        _moments(call, found, mean, deviation)
        close(f"deviation of {call}", array_of(found).std(), deviation, 0.1)


@suite.check(needs=["random"])
def permutations(device: str) -> None:
    """`randperm` has every number once, in an order that repeats with the seed; first numbers are uniform."""
    found = _repeats("randperm(50)", lambda g: tensor.randperm(50, generator=g, device=device), device)
    equal("sorted randperm(50)", sorted(array_of(found).tolist()), list(range(50)))
    source = _generator(device)
    firsts = [int(tensor.randperm(3, generator=source, device=device)[0]) for _ in range(300)]
    close("shares of the first of randperm(3)", np.bincount(firsts, minlength=3) / 300, [1 / 3] * 3, 0, 0.12)


@suite.check(needs=["random"])
def random_integers(device: str) -> None:
    """`random_` and `randint` draw every value of the range and none outside."""

    def draw(source: Any) -> Any:
        return tensor.empty(2000, dtype=tensor.int64, device=device).random_(3, 8, generator=source)

    found = _repeats("random_(3, 8)", draw, device)
    equal("values of random_(3, 8)", sorted(set(array_of(found).tolist())), [3, 4, 5, 6, 7])


@suite.check(needs=["random"])
def bernoulli_and_geometric(device: str) -> None:
    """`bernoulli_` and `geometric_` have the right support and mean."""
    ones = _repeats(
        "bernoulli_(0.3)", lambda g: tensor.empty(4000, device=device).bernoulli_(0.3, generator=g), device
    )
    equal("values of bernoulli_(0.3)", sorted(set(array_of(ones).tolist())), [0.0, 1.0])
    _moments("bernoulli_(0.3)", ones, 0.3, 0.46)
    chances = put(np.float32([[0.0], [0.25], [1.0]]), device).expand(3, 4000)
    drawn = array_of(_repeats("bernoulli(chances)", lambda g: tensor.bernoulli(chances, generator=g), device))
    close("means of bernoulli([[0], [0.25], [1]])", drawn.mean(1), [0, 0.25, 1], 0, 0.04)
    counted = _repeats("bernoulli(x, 0.75)", lambda g: tensor.bernoulli(ones, 0.75, generator=g), device)
    _moments("bernoulli(x, 0.75)", counted, 0.75, 0.43)
    counts = _repeats(
        "geometric_(0.5)", lambda g: tensor.empty(4000, device=device).geometric_(0.5, generator=g), device
    )
    true("least of geometric_(0.5)", array_of(counts).min() == 1, "1")
    _moments("geometric_(0.5)", counts, 2, 1.42)


@suite.check(needs=["random"])
def cauchy_and_exponential(device: str) -> None:
    """`exponential_` has the right mean, `cauchy_` the right median and quartiles."""
    found = _repeats(
        "exponential_(2)", lambda g: tensor.empty(4000, device=device).exponential_(2, generator=g), device
    )
    true("least of exponential_(2)", array_of(found).min() >= 0, "no negative value")
    _moments("exponential_(2)", found, 0.5, 0.5)
    wide = _repeats(
        "cauchy_(1, 2)", lambda g: tensor.empty(4000, device=device).cauchy_(1, 2, generator=g), device
    )
    close("quartiles of cauchy_(1, 2)", np.quantile(array_of(wide), [0.25, 0.5, 0.75]), [-1, 1, 3], 0, 0.4)


@suite.check(needs=["random"])
def poisson(device: str) -> None:
    """`poisson` draws whole numbers with the given mean."""
    rates = put(np.full(4000, 4, np.float32), device)
    found = _repeats("poisson(4)", lambda g: tensor.poisson(rates, generator=g), device)
    values = array_of(found)
    true("values of poisson(4)", (values == np.round(values)).all() and values.min() >= 0, "whole numbers")
    _moments("poisson(4)", found, 4, 2)


@suite.check(needs=["random"])
def multinomial(device: str) -> None:
    """`multinomial` draws by weight, and without replacement never the same twice."""
    weights = put(np.float32([1, 0, 3]), device)
    found = _repeats(
        "multinomial([1, 0, 3], 4000, True)",
        lambda g: tensor.multinomial(weights, 4000, True, generator=g),
        device,
    )
    shares = np.bincount(array_of(found), minlength=3) / 4000
    close("shares of multinomial([1, 0, 3])", shares, [0.25, 0, 0.75], 0, 0.04)
    drawn = array_of(tensor.multinomial(weights, 2, False, generator=_generator(device)))
    equal("multinomial([1, 0, 3], 2, False)", sorted(drawn.tolist()), [0, 2])


@suite.check(needs=["random", "gradients"])
def dropout(device: str) -> None:
    """Dropout zeroes the given share, rescales the rest, and its gradient has the same mask."""
    x = put(np.ones(4000, np.float32), device, grad=True)
    out = tensor.dropout(x, 0.25, True)
    values = array_of(out)
    close("values of dropout(ones, 0.25)", np.unique(values), [0, 1 / 0.75])
    close("share of zeros in dropout(ones, 0.25)", (values == 0).mean(), 0.25, 0, 0.05)
    out.sum().backward()
    close("gradient of dropout(ones, 0.25)", x.grad, values)
    close("dropout while not training", tensor.dropout(x, 0.25, False), np.ones(4000))
    y = put(np.ones(4000, np.float32), device)
    true("dropout_(y, 0.25)", tensor.dropout_(y, 0.25, True) is y, "y itself")
    close("values of dropout_(y, 0.25)", np.unique(array_of(y)), [0, 1 / 0.75])


@suite.check(needs=["random", "gradients"])
def random_slopes(device: str) -> None:
    """`rrelu` in training scales each negative element by a slope of its own, and its gradient has the same slopes."""
    x = put(np.full(4000, -2, np.float32), device, grad=True)
    out = _repeats("rrelu(x, 0.2, 0.6, True)", lambda g: tensor.rrelu(x, 0.2, 0.6, True, generator=g), device)
    slopes = array_of(out) / -2
    true(
        "slopes of rrelu(x, 0.2, 0.6, True)",
        slopes.min() >= 0.2 and slopes.max() <= 0.6,
        "slopes in [0.2, 0.6]",
    )
    _moments("slopes of rrelu(x, 0.2, 0.6, True)", slopes, 0.4, 0.12)
    out.sum().backward()
    close("gradient of rrelu(x, 0.2, 0.6, True)", x.grad, slopes)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _lstm_step(x: np.ndarray, h: np.ndarray, c: np.ndarray, w: list[np.ndarray]) -> tuple[Any, Any]:
    i, f, g, o = np.split(x @ w[0].T + w[2] + h @ w[1].T + w[3], 4, axis=-1)
    c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(c), c


def _gru_step(x: np.ndarray, h: np.ndarray, w: list[np.ndarray]) -> np.ndarray:
    a, b = x @ w[0].T + w[2], h @ w[1].T + w[3]
    (r1, z1, n1), (r2, z2, n2) = np.split(a, 3, axis=-1), np.split(b, 3, axis=-1)
    r, z = _sigmoid(r1 + r2), _sigmoid(z1 + z2)
    n = np.tanh(n1 + r * n2)
    return n + z * (h - n)


def _weights(source: np.random.Generator, gates: int, inputs: int, hidden: int) -> list[np.ndarray]:
    shapes = ((gates * hidden, inputs), (gates * hidden, hidden), (gates * hidden,), (gates * hidden,))
    return [source.standard_normal(shape) * 0.5 for shape in shapes]


@suite.check(needs=["gradients", "recurrent", "float64"])
def lstm_cell(device: str) -> None:
    """One step of an LSTM and its gradients."""
    source = rng()
    x, h, c = (source.standard_normal((2, n)) for n in (3, 4, 4))
    w = _weights(source, 4, 3, 4)
    tx = put(x, device, grad=True)
    ht, ct = tensor.ops.lstm_cell(tx, [put(h, device), put(c, device)], *[put(a, device) for a in w])
    expected = _lstm_step(x, h, c, w)
    close("lstm_cell h", ht, expected[0])
    close("lstm_cell c", ct, expected[1])
    (ht.sum() + 2 * ct.sum()).backward()

    def loss(at: np.ndarray) -> float:
        hidden, cell = _lstm_step(at, h, c, w)
        return hidden.sum() + 2 * cell.sum()

    close("gradient of lstm_cell", tx.grad, slope(loss, x), 1e-4, 1e-5)


@suite.check(needs=["gradients", "recurrent", "float64"])
def gru_cell(device: str) -> None:
    """One step of a GRU and its gradients."""
    source = rng()
    x, h = source.standard_normal((2, 3)), source.standard_normal((2, 4))
    w = _weights(source, 3, 3, 4)
    tx = put(x, device, grad=True)
    found = tensor.ops.gru_cell(tx, put(h, device), *[put(a, device) for a in w])
    close("gru_cell", found, _gru_step(x, h, w))
    found.sum().backward()
    close("gradient of gru_cell", tx.grad, slope(lambda at: _gru_step(at, h, w).sum(), x), 1e-4, 1e-5)


@suite.check(needs=["gradients", "recurrent", "float64"])
def lstm_over_a_sequence(device: str) -> None:
    """An LSTM over several steps and its gradients."""
    source = rng()
    x, w = source.standard_normal((5, 2, 3)), _weights(source, 4, 3, 4)
    zeros = np.zeros((2, 4))

    def run(at: np.ndarray) -> np.ndarray:
        h, c, out = zeros, zeros, []
        for step in at:
            h, c = _lstm_step(step, h, c, w)
            out.append(h)
        return np.stack(out)

    tx, start = put(x, device, grad=True), put(zeros[None], device)
    output, _, _ = tensor.ops.lstm(
        tx, [start, start], [put(a, device) for a in w], True, 1, 0.0, True, False, False
    )
    close("lstm over 5 steps", output, run(x))
    output.sum().backward()
    close("gradient of lstm", tx.grad, slope(lambda at: run(at).sum(), x), 1e-4, 1e-5)


@suite.check(needs=["gradients", "convolution"])
def max_pooling_with_indices(device: str) -> None:
    """Maxima, their places in the plane, and the gradient that goes to these places."""
    array = rng().permutation(36).reshape(1, 1, 6, 6).astype(np.float32)
    x = put(array, device, grad=True)
    values, indices = tensor.ops.max_pool2d_with_indices(x, (2, 2))
    windows = array.reshape(3, 2, 3, 2).transpose(0, 2, 1, 3).reshape(3, 3, 4)
    close("max_pool2d_with_indices values", values, windows.max(-1)[None, None])
    places = [[int(np.flatnonzero(array.ravel() == m)[0]) for m in row] for row in windows.max(-1)]
    close("max_pool2d_with_indices indices", indices, np.array(places)[None, None])
    values.sum().backward()
    close("gradient of max_pool2d_with_indices", x.grad, np.isin(array, windows.max(-1)).astype(np.float32))


@suite.check(needs=["gradients", "higher-order", "convolution", "float64"])
def second_gradient_of_max_pooling(device: str) -> None:
    """The gradient of max pooling can itself be differentiated."""
    array = rng().permutation(16).reshape(1, 1, 4, 4).astype(np.float64)
    x = put(array, device, grad=True)
    tensor.max_pool2d(x * x * x, (2, 2)).sum().backward(create_graph=True)
    x.grad.sum().backward()
    first = np.zeros_like(array)
    tops = array.reshape(2, 2, 2, 2).transpose(0, 2, 1, 3).reshape(2, 2, 4).max(-1)
    mask = np.isin(array, tops)
    first[mask] = 3 * array[mask] ** 2
    second = np.where(mask, 6 * array, 0)
    close("first and second gradient together", x.grad, first + second)


@suite.check(needs=["gradients", "convolution"])
def adaptive_max_pooling(device: str) -> None:
    """Adaptive maxima over windows that do not divide the plane, and their gradient."""
    array = rng().permutation(35).reshape(1, 1, 5, 7).astype(np.float32)
    x = put(array, device, grad=True)
    values, _ = tensor.ops.adaptive_max_pool2d(x, (2, 3))
    rows, columns = [(0, 3), (2, 5)], [(0, 3), (2, 5), (4, 7)]
    expected = np.array([[array[0, 0, a:b, c:d].max() for c, d in columns] for a, b in rows])
    close("adaptive_max_pool2d(5x7 to 2x3)", values, expected[None, None])
    values.sum().backward()
    counts = sum((array == value).astype(np.float32) for value in expected.ravel())
    close("gradient of adaptive_max_pool2d", x.grad, counts)


def _fused(device: str, call: str, step: Callable[..., None], formula: Callable[..., Any], n: int) -> None:
    """Three fused steps of two parameters against a formula; ``n`` tensors of state for each."""
    source = rng()
    shapes = ((5,), (2, 3))
    values = [source.standard_normal(shape) for shape in shapes]
    grads = [[source.standard_normal(shape) for shape in shapes] for _ in range(3)]
    params = [put(value.astype(np.float32), device) for value in values]
    state = [[tensor.zeros_like(p) for p in params] for _ in range(n)]
    for t, given in enumerate(grads):
        step(params, [put(g.astype(np.float32), device) for g in given], state, t)
    for i, param in enumerate(params):
        close(f"{call} after 3 steps", param, formula(values[i], [g[i] for g in grads]), 1e-4, 1e-5)


@suite.check()
def fused_sgd(device: str) -> None:
    """The fused step of SGD equals its formula, with momentum, weight decay and all other options."""
    for options in (
        (0.0, 0.0, 0.0, False, False),
        (0.9, 0.0, 0.1, False, False),
        (0.9, 0.3, 0.0, False, True),
        (0.8, 0.0, 0.1, True, False),
    ):
        _fused_sgd(device, *options)


def _fused_sgd(
    device: str, momentum: float, dampening: float, decay: float, nesterov: bool, maximize: bool
) -> None:
    def step(params: list[Any], grads: list[Any], state: list[list[Any]], t: int) -> None:
        options = (0.05, momentum, dampening, decay, nesterov, maximize, t == 0)
        tensor.ops._fused_sgd_(params, grads, state[0] if momentum else [], *options)

    def formula(p: np.ndarray, grads: list[np.ndarray]) -> np.ndarray:
        buffer = None
        for given in grads:
            grad = (-given if maximize else given) + decay * p
            buffer = grad if buffer is None else momentum * buffer + (1 - dampening) * grad
            p = p - 0.05 * (grad if not momentum else grad + momentum * buffer if nesterov else buffer)
        return p

    call = f"_fused_sgd_({momentum=}, {dampening=}, {decay=}, {nesterov=}, {maximize=})"
    _fused(device, call, step, formula, 1)


@suite.check()
def fused_adam(device: str) -> None:
    """The fused step of Adam equals its formula, with weight decay of both kinds and all other options."""
    for options in (
        (0.0, False, False, False),
        (0.1, False, True, False),
        (0.1, False, False, True),
        (0.0, True, False, False),
    ):
        _fused_adam(device, *options)


def _fused_adam(device: str, decay: float, amsgrad: bool, maximize: bool, decoupled: bool) -> None:
    def step(params: list[Any], grads: list[Any], state: list[list[Any]], t: int) -> None:
        options = ([t + 1] * len(params), 0.05, 0.9, 0.99, 1e-8, decay, amsgrad, maximize, decoupled)
        tensor.ops._fused_adam_(params, grads, state[0], state[1], state[2] if amsgrad else [], *options)

    def formula(p: np.ndarray, grads: list[np.ndarray]) -> np.ndarray:
        m = v = top = np.zeros_like(p)
        for t, given in enumerate(grads, 1):
            grad = (-given if maximize else given) + (0 if decoupled else decay * p)
            p = p * (1 - 0.05 * decay) if decoupled else p
            m, v = 0.9 * m + 0.1 * grad, 0.99 * v + 0.01 * grad**2
            top = np.maximum(top, v) if amsgrad else v
            p = p - 0.05 * (m / (1 - 0.9**t)) / (np.sqrt(top / (1 - 0.99**t)) + 1e-8)
        return p

    call = f"_fused_adam_({decay=}, {amsgrad=}, {maximize=}, {decoupled=})"
    _fused(device, call, step, formula, 3)


@suite.check()
def running_statistics(device: str) -> None:
    """Batch normalisation moves its running statistics towards the batch's while training, and reads them after."""
    source = rng()
    x, mean, var = source.standard_normal((4, 3, 2)), source.standard_normal(3), source.uniform(0.5, 2, 3)
    array, *running = (put(a.astype(np.float32), device) for a in (x, mean, var))
    tensor.native_batch_norm(array, None, None, *running, False, 0.3, 1e-5)
    close("running_mean outside of training", running[0], mean)
    tensor.native_batch_norm(array, None, None, *running, True, 0.3, 1e-5)
    close("running_mean", running[0], 0.7 * mean + 0.3 * x.mean((0, 2)), 1e-4)
    close("running_var", running[1], 0.7 * var + 0.3 * x.var((0, 2), ddof=1), 1e-4)


@suite.check(needs=["convolution"])
def gradients_asked_for(device: str) -> None:
    """Operators that give several gradients leave out those that are not asked for and do not change the others."""
    source = rng()

    def random(*shape: int) -> Any:
        return put(source.standard_normal(shape).astype(np.float32), device)

    calls = {
        "conv2d_backward": (random(2, 3, 2, 2), random(2, 2, 3, 3), random(3, 2, 2, 2), [1], [0], [1], 1),
        "linear_backward": (random(2, 3), random(2, 4), random(3, 4)),
        "batch_norm_backward": (random(4, 3), random(4, 3), random(3), random(3), random(3), True),
        "layer_norm_backward": (random(2, 3), random(2, 3), [3], random(2, 1), random(2, 1), random(3)),
        "group_norm_backward": (random(2, 4, 3), random(2, 4, 3), 2, random(2, 2), random(2, 2), random(4)),
    }
    for name, args in calls.items():
        function = getattr(tensor.ops, name)
        whole = [array_of(gradient) for gradient in function(*args, 7)]
        for mask in range(7):
            for bit, found in enumerate(function(*args, mask)):
                if mask >> bit & 1:
                    close(f"{name}, gradient {bit} with output_mask={mask}", found, whole[bit])
                else:
                    equal(f"{name}, gradient {bit} with output_mask={mask}", found, None)


@suite.check(needs=["gradients"])
def training(device: str) -> None:
    """A linear model trained on the device finds the weights it was made from."""
    source = rng()
    inputs = source.standard_normal((64, 3)).astype(np.float32)
    wanted = np.float32([[1.0], [-2.0], [0.5]])
    x, y = put(inputs, device), put(inputs @ wanted, device)
    w = put(np.zeros((3, 1), np.float32), device, grad=True)
    for _ in range(60):
        loss = ((x @ w - y) ** 2).mean()
        loss.backward()
        with tensor.no_grad():
            w -= 0.2 * w.grad
        w.grad = None
    close("weights after 60 steps", w, wanted, 0, 1e-2)
