"""Right calls with extreme values: ``python -m taeda_testing.values SEED CALLS LOG FIRST [NAME...]``.

Elements of operands and numbers among the options become zeros of both signs, the smallest and largest of their dtype,
infinities and NaN. A call and its gradient must come back within seconds, since the operands of records are small, and
an error must be one of taeda's own that names the operator. Run as a process of its own (``taeda_testing.survival``):
the call under way stands in LOG, and the process ends at the first that breaks this rule.
"""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from taeda_registry.slots import tensor
from taeda_testing.conformance.devices import load_autograd
from taeda_testing.mutated import SIZES, differentiate, right, shown
from taeda_testing.record import OpRecord, Sample, all_records
from taeda_testing.runner import function_of

FLOATS = [
    0.0, -0.0, 5e-324, -1e-310, 1e-45, 1e-38, -1e-30, 0.5, -1.0, 1e8, -1e17, 3e38, -3e38, 1e300, -1.7e308,
    float("inf"), -float("inf"), float("nan"),
]  # fmt: skip
INTEGERS = [-(2**63), -(2**31), -1, 0, 1, 2, 2**31 - 1, 2**62, 2**63 - 1]
#: Seconds of the processor that a call and its gradient may take.
SECONDS = 2.0
REFUSALS = (RuntimeError, ValueError, TypeError, IndexError, OverflowError, MemoryError, ZeroDivisionError)


class Slow(Exception):
    """A call on small operands that took too long."""


class Foreign(Exception):
    """An error that is none of taeda's refusals, or does not name the operator."""


def extremes(dtype: np.dtype) -> list[Any]:
    """Extreme numbers that the dtype has."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return [n for n in (*INTEGERS, info.min, info.max, info.max - 1) if info.min <= n <= info.max]
    if dtype.kind == "c":
        parts = extremes(np.dtype(f"f{dtype.itemsize // 2}"))
        return [complex(a, b) for a, b in zip(parts, parts[5:] + parts[:5], strict=True)]
    info = np.finfo(dtype)
    return [*FLOATS, float(info.max), float(info.min), float(info.tiny), float(info.smallest_subnormal)]


def array(values: np.ndarray, random: Random) -> np.ndarray:
    """The array with one, some or all elements extreme, in the layout that it has."""
    if values.dtype.kind not in "iufc" or not values.size:
        return values
    changed, numbers = values.copy(), extremes(values.dtype)
    with np.errstate(all="ignore"):
        match random.randrange(3):
            case 0:
                changed[...] = random.choice(numbers)
            case 1:
                changed.flat[random.randrange(changed.size)] = random.choice(numbers)
            case _:
                for at in range(changed.size):
                    changed.flat[at] = random.choice(numbers)
    return changed


def other(value: Any, random: Random, large: bool) -> Any:
    """What stands in the place of a right argument; of its kind, but extreme."""
    if isinstance(value, np.ndarray):
        return array(value, random)
    if isinstance(value, (list, tuple)):
        return type(value)(other(v, random, large) if random.random() < 0.5 else v for v in value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if isinstance(value, float):
        return random.choice(FLOATS)
    return random.choice([n for n in INTEGERS if large or n <= 2])


def calls(record: OpRecord, seed: int, count: int) -> Iterator[tuple[list[Any], dict[str, Any], bool]]:
    """Random calls of an operator, and whether their dtype is one that is differentiated."""
    random = Random(f"{seed} {record.name}")
    large = not any(word in record.name for word in SIZES)
    names = [n for n in record.dtypes if n != "bool"] or list(record.dtypes)
    samples: dict[str, list[Sample]] = {}
    for _ in range(count):
        name = random.choice(names)
        if name not in samples:
            samples[name] = list(record.samples(name, np.random.default_rng(seed)))
        sample = random.choice(samples[name])
        given = {**dict(enumerate(sample.args)), **sample.kwargs}
        operands = [place for place, v in given.items() if isinstance(v, (np.ndarray, list, tuple))]
        changed = set(random.sample(operands, random.randint(1, len(operands))) if operands else ())
        changed |= {place for place in given if place not in operands and random.random() < 0.25}
        made = {
            place: right(other(v, random, large) if place in changed else v) for place, v in given.items()
        }
        args = [made[i] for i in range(len(sample.args))]
        yield args, {key: made[key] for key in sample.kwargs}, name in record.differentiated


def spoken_of(record: OpRecord, text: str) -> bool:
    """Whether a message names the operator, or that of several variants: `layer_norm` of `native_layer_norm`."""
    subject, own = text.partition(":")[0].rstrip("_"), record.name.strip("_").split(".")[0]
    said, words = set(subject.replace(".", "_").split("_")), set(own.split("_"))
    return own in text or said <= words or words <= said


def attempt(
    record: OpRecord, function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], gradient: bool
) -> None:
    """The call and its gradient.

    Raises:
        Slow: they took more than `SECONDS`.
        Foreign: an error that a program cannot have expected.
    """
    began = time.process_time()
    try:
        if gradient:
            for one in args:
                if isinstance(one, tensor.Tensor) and (one.is_floating_point() or one.is_complex()):
                    one.requires_grad_()
        result = function(*args, **kwargs)
    except REFUSALS as error:
        if not spoken_of(record, str(error)):
            raise Foreign(f"{type(error).__name__}: {error}") from error
    else:
        with contextlib.suppress(*REFUSALS):  # told by the name of a derivative
            differentiate(result)
    if (spent := time.process_time() - began) > SECONDS:
        raise Slow(f"{spent:.1f} s")


def main(seed: str, count: str, log: str, first: str, *names: str) -> None:
    warnings.simplefilter("ignore")
    gradients = not load_autograd()
    with Path(log).open("w", encoding="utf-8") as out:
        for at, record in enumerate(all_records()):
            if at < int(first) or (names and record.name not in names):
                continue
            function = function_of(record)
            for args, kwargs, differentiated in calls(record, int(seed), int(count)):
                text = ", ".join([*map(shown, args), *(f"{k}={shown(v)}" for k, v in kwargs.items())])
                out.seek(0)
                out.truncate()
                out.write(f"{at} {record.name}({text})")
                out.flush()
                attempt(
                    record, function, args, kwargs, gradients and differentiated and record.differentiable
                )


if __name__ == "__main__":
    main(*sys.argv[1:])
