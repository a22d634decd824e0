"""Right calls with sizes made extreme: ``python -m taeda_testing.extreme SEED CALLS DEVICE [NAME...]``.

Numbers become those at the borders of 64 bits, tensors views of one element with up to 2**63 - 1 of them, so that every
size, stride, offset and count of bytes that an operator computes is made to overflow. Each of the CALLS random calls of
an operator runs in a process of its own, for a tenth of a second at most: what is accepted may go on for years. Printed
are calls that ended their process, results that leave their memory, and last how many calls there were.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import warnings
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np

from taeda_registry.slots import tensor
from taeda_testing.mutated import on, right, shown
from taeda_testing.record import OpRecord, all_records
from taeda_testing.runner import function_of

NUMBERS = [
    -(2**63), -(2**63) + 1, -(2**62), -(2**32), -(2**31), -1, 0, 2, 2**31 - 1, 2**31, 2**32, 2**32 + 1, 2**40, 2**47,
    2**60, 2**61 + 1, 2**62 - 1, 2**62, 2**63 - 2, 2**63 - 1, -1e300, 1e19, 1e300, 2.0**63, -(2.0**63),
]  # fmt: skip
SIZES = [0, 1, 2, 2**16, 2**31 - 1, 2**31, 2**32, 2**40, 2**60, 2**61, 2**62 - 1, 2**62, 2**63 - 1]
SECONDS = 0.1
MEMORY = 4 << 30


def expanded(shape: tuple[int, ...], random: Random) -> tuple[int, ...]:
    """The shape with some sizes extreme, as large as can be counted."""
    sizes = list(shape)
    for at in random.sample(range(len(sizes)), random.randint(1, len(sizes))):
        sizes[at] = random.choice(SIZES)
    return tuple(sizes)


def tensors(array: np.ndarray, random: Random) -> Any:
    """The array with an extreme shape or extreme values."""
    like = tensor.from_numpy(array.copy())
    if array.dtype.kind in "iu" and random.random() < 0.5:
        info = np.iinfo(array.dtype)
        numbers = [n for n in (*NUMBERS[:20], info.max, info.min) if info.min <= n <= info.max]
        for at in np.ndindex(array.shape):
            if random.random() < 0.5:
                like[at] = random.choice(numbers)
        return like
    if not array.ndim:
        return like
    one = like.reshape(-1)[:1].reshape((1,) * array.ndim) if array.size else tensor.ones((1,) * array.ndim)
    return one.expand(expanded(array.shape, random))


def other(value: Any, random: Random) -> Any:
    """What stands in the place of a right argument."""
    if isinstance(value, np.ndarray):
        return tensors(value, random)
    if isinstance(value, (list, tuple)):
        changed = set(random.sample(range(len(value)), random.randint(1, len(value)))) if value else set()
        return type(value)(other(v, random) if i in changed else right(v) for i, v in enumerate(value))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return random.choice(NUMBERS)
    return random.choice(NUMBERS) if value is None else right(value)


def calls(record: OpRecord, seed: int, count: int) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Random calls, mostly with one argument changed."""
    random = Random(f"{seed} {record.name}")
    samples = [s for name in record.dtypes[:1] for s in record.samples(name, np.random.default_rng(seed))]
    for _ in range(count):
        sample = random.choice(samples)
        given = {**dict(enumerate(sample.args)), **sample.kwargs}
        most = len(given) if random.random() < 0.3 else 1
        changed = random.sample(list(given), min(most, len(given)))
        try:
            made = {place: other(v, random) if place in changed else right(v) for place, v in given.items()}
        except (RuntimeError, MemoryError, OverflowError):
            continue  # more elements than can be counted
        yield [made[i] for i in range(len(sample.args))], {key: made[key] for key in sample.kwargs}


def placed(value: Any, device: str) -> Any:
    """The argument on the device; views of one element stay that, where they cannot be copied."""
    if isinstance(value, (list, tuple)):
        return type(value)(placed(item, device) for item in value)
    if device == "meta" and isinstance(value, tensor.Tensor) and value.dim():
        return tensor.empty((1,) * value.dim(), dtype=value.dtype, device=device).expand(value.shape)
    return on(value, device)


def fault(result: Any) -> str:
    """What is wrong with the tensors of a result: their counts, and whether they lie inside their memory."""
    if isinstance(result, (list, tuple)):
        return next(filter(None, map(fault, result)), "")
    if not isinstance(result, tensor.Tensor):
        return ""
    exact = 1
    for size in result.shape:
        exact *= size
    if exact != result.numel() or any(size < 0 for size in result.shape):
        return f"shape {tuple(result.shape)} has {result.numel()} elements"
    if result.device.type != "cpu" or not exact:
        return ""
    storage = result.untyped_storage()
    first = result.data_ptr() - storage.data_ptr()
    spans = [(n - 1) * step * result.itemsize for n, step in zip(result.shape, result.stride(), strict=True)]
    low, high = (
        first + sum(s for s in spans if s < 0),
        first + sum(s for s in spans if s > 0) + result.itemsize,
    )
    return "" if low >= 0 and high <= storage.nbytes() else f"bytes {low} to {high} of {storage.nbytes()}"


def attempt(function: Any, args: list[Any], kwargs: dict[str, Any]) -> int:
    """The call in a process of its own: how that ended (``os.waitpid``)."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        status = 4  # something that is no Exception
        try:
            found = fault(function(*args, **kwargs))
            if found:
                print("  ", found, flush=True)
            status = 2 if found else 0
        except SystemError as error:
            print("  ", error, flush=True)
            status = 3
        except Exception:
            status = 0  # refused, as is expected of most of these calls
        finally:
            os._exit(status)  # whatever comes, the child goes no further
    return os.waitpid(child, 0)[1]


def main(seed: str, count: str, device: str, *names: str) -> None:
    warnings.simplefilter("ignore")
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    made = slow = 0
    for record in all_records():
        if names and record.name not in names:
            continue
        function = function_of(record)
        for args, kwargs in calls(record, int(seed), int(count)):
            if record.creates:
                kwargs["device"] = device
            try:
                at_place = placed(args, device), {key: placed(value, device) for key, value in kwargs.items()}
            except (RuntimeError, TypeError, ValueError, MemoryError, OverflowError):
                continue  # the device lacks the dtype, or the elements cannot be copied there
            made += 1
            status = attempt(function, *at_place)
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGVTALRM:
                slow += 1
            elif status:
                text = ", ".join([*map(shown, args), *(f"{k}={shown(v)}" for k, v in kwargs.items())])
                print(f"CRASH {status} {record.name}({text})", flush=True)
    print(f"{made} calls, {slow} of them too long to end")


if __name__ == "__main__":
    main(*sys.argv[1:])
