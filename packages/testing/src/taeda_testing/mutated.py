"""Right calls with one or two arguments made wrong: ``python -m taeda_testing.mutated SEED SAMPLES DEVICE LOG FIRST``.

Run as a process of its own, because what is looked for is that it dies (``taeda_testing.survival``). The call under way
stands in LOG. SAMPLES of every operator's record, in a few dtypes, are the right calls; wrong ones that begin there get
further into an operator than random arguments do. What is accepted is differentiated too, where that can be done.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from taeda_registry.slots import tensor
from taeda_testing.conformance.capability import DTYPES
from taeda_testing.conformance.devices import load_autograd
from taeda_testing.record import OpRecord, Sample, all_records
from taeda_testing.runner import function_of

NUMBERS = [
    -(2**63),
    -(2**31),
    -3,
    -1,
    0,
    1,
    2,
    7,
    2**31 - 1,
    2**31,
    2**62,
    2**63 - 1,
    0.5,
    float("nan"),
    float("inf"),
]
MODEST = [n for n in NUMBERS if not n >= 2**31 - 1]
WORDS = ["", "none", "mean", "sum", "same", "valid"]
# Their numbers are sizes or counts: large ones ask for memory or time that a test does not have.
SIZES = (
    "arange", "cartesian", "combinations", "empty", "eye", "full", "matrix_power", "ones", "pad", "repeat", "resize",
    "space", "tri", "vander", "window", "zeros",
)  # fmt: skip


def tensors(array: np.ndarray) -> Iterator[Any]:
    """The array's wrong neighbours: other shapes, layouts, dtypes, values and devices."""
    like = tensor.from_numpy(array.copy())
    shape = tuple(like.shape)
    yield like
    shapes = {
        (0, *shape),
        (1, *shape),
        (2, *shape),
        (*shape, 1),
        (*shape, 0),
        (*shape, 3),
        (),
        (0,),
        (1,),
        (5,),
        (2, 3),
    }
    shapes |= {shape[:-1], shape[1:], shape[::-1]}
    for at, size in enumerate(shape):
        shapes |= {
            (*shape[:at], other, *shape[at + 1 :]) for other in (0, 1, size + 1, max(size - 1, 0), 2 * size)
        }
    for other in sorted(shapes - {shape}):
        yield tensor.ones(other, dtype=like.dtype)
    for name in DTYPES:
        if name != str(array.dtype):
            yield like.to(getattr(tensor, name))
    if like.dim() > 1:
        yield like.transpose(0, -1)
        yield like.transpose(0, -1).contiguous().transpose(0, -1)
    if like.dim() > 0:
        yield tensor.ones((), dtype=like.dtype).expand(shape)
        yield like.flip(0)
    if array.dtype.kind in "iuf":
        info = np.iinfo(array.dtype) if array.dtype.kind in "iu" else np.finfo(array.dtype)
        for value in (info.min, info.max, -1 if array.dtype.kind != "u" else 200, 100):
            yield tensor.full(shape, value, dtype=like.dtype)
    if array.dtype.kind == "f":
        yield tensor.full(shape, float("nan"), dtype=like.dtype)
        yield tensor.full(shape, float("inf"), dtype=like.dtype)
    yield like.to("meta")


def others(value: Any, large: bool) -> Iterator[Any]:
    """What may stand in the place of a right argument."""
    if isinstance(value, np.ndarray):
        yield from tensors(value)
    elif isinstance(value, (bool, np.bool_)):
        yield not value
        yield None
    elif isinstance(value, (int, float, complex)) or value is None:
        yield from NUMBERS if large else MODEST
        yield None
        yield tensor.ones(2, 3)
        yield "x"
        yield [1, -1]
    elif isinstance(value, str):
        yield from WORDS
    elif isinstance(value, np.dtype):
        yield from (tensor.bool, tensor.uint8, tensor.int64, tensor.float16, tensor.float64, tensor.complex64)
    elif isinstance(value, (list, tuple)):
        yield []
        yield [*map(right, value), *map(right, value)]
        yield [right(v) for v in value][:-1]
        yield right(value[0]) if value else 1
        for at in range(len(value)):
            for other in others(value[at], large):
                yield [other if i == at else right(v) for i, v in enumerate(value)]
    yield right(value)


def right(value: Any) -> Any:
    """The argument as the record gives it."""
    if isinstance(value, np.ndarray):
        return tensor.from_numpy(value.copy())
    if isinstance(value, np.dtype):
        return getattr(tensor, value.name)
    return type(value)(map(right, value)) if isinstance(value, (list, tuple)) else value


def calls(sample: Sample, random: Random, large: bool) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Each argument made wrong in every way by itself, and some pairs at random."""
    places = [*range(len(sample.args)), *sample.kwargs]
    given = {**dict(enumerate(sample.args)), **sample.kwargs}
    choices = {place: list(others(given[place], large)) for place in places}

    def call(changes: dict[Any, Any]) -> tuple[list[Any], dict[str, Any]]:
        made = {place: changes[place] if place in changes else right(given[place]) for place in places}
        return [made[i] for i in range(len(sample.args))], {key: made[key] for key in sample.kwargs}

    for place in places:
        for other in choices[place]:
            yield call({place: other})
    for _ in range(10 * (len(places) - 1)):
        yield call({place: random.choice(choices[place]) for place in random.sample(places, 2)})


def on(value: Any, device: str) -> Any:
    """The argument with its tensors of the host on the device; on the host they stay what they are."""
    if isinstance(value, (list, tuple)):
        return type(value)(on(item, device) for item in value)
    if not isinstance(value, tensor.Tensor) or value.device.type != "cpu":
        return value
    return value if device == "cpu" else value.to(device)


def shown(value: Any) -> str:
    """An argument in a line: small tensors whole, larger ones by their first values."""
    if isinstance(value, tensor.Tensor):
        if value.device.type == "meta":
            return f"meta({list(value.shape)}, {value.dtype})"
        values = value.detach().reshape(-1)[:12].tolist()
        return (
            f"tensor({list(value.shape)}, {value.dtype}, strides {list(value.stride())}, values {values}...)"
        )
    return f"[{', '.join(map(shown, value))}]" if isinstance(value, (list, tuple)) else repr(value)


def differentiate(result: Any) -> None:
    for one in result if isinstance(result, (list, tuple)) else [result]:
        if isinstance(one, tensor.Tensor) and one.requires_grad:
            one.abs().sum().backward(retain_graph=True)


def attempt(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], gradient: bool) -> None:
    """The call and its gradient. Any refusal is fine, except that an extension broke the interpreter's rules."""
    try:
        for one in args if gradient else ():
            if isinstance(one, tensor.Tensor) and one.is_floating_point() and one.is_leaf:
                one.requires_grad_()
        differentiate(function(*args, **kwargs))
    except SystemError:
        raise
    except Exception:
        pass  # what a wrong call should end in; looked for is a process that dies


def run(
    record: OpRecord, seed: int, samples: int, device: str, gradient: bool, announce: Callable[[str], None]
) -> None:
    """All wrong calls of one operator; each is announced before it is made."""
    random, large = Random(f"{seed} {record.name}"), not any(word in record.name for word in SIZES)
    function = function_of(record)
    for dtype in dict.fromkeys((record.dtypes[0], record.dtypes[-1], *record.differentiated[:1])):
        rights = list(record.samples(dtype, np.random.default_rng(seed)))
        for sample in random.sample(rights, min(samples, len(rights))):
            if record.creates:
                sample.kwargs["device"] = device
            if device == "cpu":  # what is right is accepted, or the calls made of it would show nothing
                announce("the record's own arguments")
                function(*right(sample.args), **{key: right(value) for key, value in sample.kwargs.items()})
            for args, kwargs in calls(sample, random, large):
                announce(", ".join([*map(shown, args), *(f"{k}={shown(v)}" for k, v in kwargs.items())]))
                try:
                    placed = on(args, device), {key: on(value, device) for key, value in kwargs.items()}
                except Exception:
                    continue  # the device lacks the dtype
                attempt(function, *placed, gradient)


def main(seed: str, samples: str, device: str, log: str, first: str) -> None:
    warnings.simplefilter("ignore")
    gradients = not load_autograd()
    with Path(log).open("w", encoding="utf-8") as out:
        for at, record in enumerate(all_records()):
            if at < int(first):
                continue

            def announce(arguments: str, place: str = f"{at} {record.name}") -> None:
                out.seek(0)
                out.truncate()
                out.write(f"{place}({arguments})")
                out.flush()

            run(record, int(seed), int(samples), device, gradients and record.differentiable, announce)


if __name__ == "__main__":
    main(*sys.argv[1:])
