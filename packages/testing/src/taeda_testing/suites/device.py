"""Behaviour of a device: memory, views, copies, indexing, gradients; and what the suites of devices share."""

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
def memory_of_another_tensor(device: str) -> None:
    """After `set_` a tensor shows what its source shows, and writes to it reach the source."""
    source, target = put(np.zeros((2, 3), np.float32), device), put(np.ones(4, np.float32), device)
    target.set_(source.t())
    target[0, 1] = 7
    expected = np.zeros((2, 3), np.float32)
    expected[1, 0] = 7
    close("source after a write to what shows it", source, expected)
    close("ones(4).set_(x.t())", target, expected.T)


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
def current_device(device: str) -> None:
    """The bare name stands for the device that the thread has chosen, inside a block and after it."""
    name = device.partition(":")[0]
    module = tensor.get_device_module(name)
    before = module.current_device()
    for index in range(module.device_count()):
        with module.device(index):
            equal(f"current_device() in device({index})", module.current_device(), index)
            made = tensor.zeros(2, device=name)
            equal(f"zeros(2, device={name!r}).device in device({index})", made.device.index or 0, index)
    equal("current_device() after it", module.current_device(), before)


@suite.check()
def memory_is_counted(device: str) -> None:
    """What tensors hold of the device's memory rises when one is made and falls when it goes."""
    module = tensor.get_device_module(device.partition(":")[0])
    gc.collect()
    before = module.memory_allocated(device)
    held = tensor.empty(1 << 16, dtype=tensor.float32, device=device)
    counted = module.memory_allocated(device) - before
    true("memory_allocated() while a tensor lives", device == "cpu" or counted >= 1 << 18, "its bytes")
    del held
    equal("memory_allocated() after it", module.memory_allocated(device), before)
    true(
        "max_memory_allocated()",
        module.max_memory_allocated(device) >= before + counted,
        "the most there was",
    )


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
