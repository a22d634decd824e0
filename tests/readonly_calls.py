"""Gives operators read-only memory to write to: `python readonly_calls.py {array|map} FOLDER` prints what is wrong."""

from __future__ import annotations

import functools
import itertools
import sys
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import taeda
from taeda import library
from taeda_testing import all_records
from taeda_testing.record import OpRecord, Sample
from taeda_testing.runner import function_of, to_tensors

SEED = 20260307
SAMPLES = 6  # of each dtype
numbers = itertools.count()


def frozen(array: np.ndarray, kind: str, folder: Path) -> np.ndarray:
    """The array in memory that must not be written to: NumPy says so, or the operating system does."""
    if kind == "array":
        kept = array.copy()
        kept.flags.writeable = False
        return kept
    path = folder / f"{next(numbers)}"
    np.ascontiguousarray(array).tofile(path)
    return np.memmap(path, array.dtype, "r", shape=array.shape)


VIEWS = (
    "t_",
    "swapaxes_",
)  # composites that change what is shown: like operators of kind view they write to no byte


def writing() -> dict[str, set[str]]:
    """The forms that write to memory, by Python name: "" for functions, "_" and ".out"."""
    found: dict[str, set[str]] = defaultdict(set)
    for op in library.operators():
        if op.kind != "view" and op.name not in VIEWS and any(a.written for a in op.arguments):
            name, suffix = op.name.partition(".")[0], {"out": ".out"}.get(op.form, "")
            stem = name.removesuffix("_")
            in_place = op.form == "inplace" and stem in KNOWN
            found[stem if in_place else name].add("_" if in_place else suffix)
    return found


KNOWN = {op.name.partition(".")[0] for op in library.operators()}
WRITING = writing()

Call = Callable[[list[Any], Any], Any]
Form = tuple[
    str, int, Call
]  # name, position of the argument that is written, -1 - k for the k-th tensor of out=


def owner(name: str) -> Any:
    return next(place for place in (taeda, taeda.ops, taeda.Tensor) if hasattr(place, name))


def forms(record: OpRecord, sample: Sample) -> Iterator[Form]:
    """The ways of calling a record's operator that write to an argument."""
    kwargs = {key: to_tensors(value) for key, value in sample.kwargs.items()}
    function = functools.partial(function_of(record), **kwargs)
    for place in record.writes if "" in WRITING[record.name] else ():
        yield record.name, place, lambda args, _: function(*args)
    if "_" in WRITING[record.name]:
        name = record.name + "_"
        if isinstance(sample.args[0], int):  # a function whose number comes first: `x.polygamma_(n)`
            yield name, 1, lambda args, _: getattr(args[1], name)(args[0], *args[2:], **kwargs)
        else:
            yield name, 0, lambda args, _: getattr(owner(name), name)(*args, **kwargs)
    if ".out" in WRITING[record.name]:
        for k in range(len(results(record, sample))):
            yield record.name + ".out", -1 - k, lambda args, out: function(*args, out=out)


def results(record: OpRecord, sample: Sample) -> list[Any]:
    args = [to_tensors(value) for value in sample.args]
    made = function_of(record)(*args, **{key: to_tensors(value) for key, value in sample.kwargs.items()})
    return [made] if isinstance(made, taeda.Tensor) else list(made)


def tensors(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in tensors(item)]
    return [value] if isinstance(value, taeda.Tensor) else []


def attempt(call: Call, args: list[Any], out: Any) -> Exception | None:
    try:
        call(args, out)
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError) as error:
        return error
    return None


def target_of(record: OpRecord, sample: Sample, place: int) -> np.ndarray | None:
    """The array that the call writes to; of a list the last one, which would come after others were written."""
    if place >= 0:
        value = sample.args[place] if place < len(sample.args) else None
        value = value[-1] if isinstance(value, list) and value else value
        return value if isinstance(value, np.ndarray) and value.size else None
    made = results(record, sample)[-1 - place]
    return np.zeros_like(made.numpy()) if made.numel() else None


def given(record: OpRecord, sample: Sample, place: int, target: Any) -> tuple[list[Any], Any]:
    """Arguments of a call with the target in its place, and what goes to out=."""
    args = [to_tensors(value) for value in sample.args]
    if place >= 0:
        args[place] = [*args[place][:-1], target] if isinstance(args[place], list) else target
        return args, None
    outs = [taeda.zeros_like(made) for made in results(record, sample)]
    outs[-1 - place] = target
    return args, outs[0] if len(outs) == 1 else tuple(outs)


def tried(record: OpRecord, sample: Sample, form: Form, kind: str, folder: Path) -> str | None:
    """What is wrong with the call on read-only memory; "" when it is right, None when it says nothing."""
    name, place, call = form
    array = target_of(record, sample, place)
    if array is None:
        return None
    target = to_tensors(array)
    if attempt(call, *given(record, sample, place, target)) is not None:
        return None
    writes = target._version != 0
    kept = frozen(array, kind, folder)
    before = kept.tobytes()
    args, out = given(record, sample, place, taeda.from_numpy(kept))
    error = attempt(call, args, out)
    if kept.tobytes() != before:
        return f"{name}: read-only memory was changed"
    if writes and (not isinstance(error, RuntimeError) or "read-only" not in str(error)):
        return f"{name}: argument {place} is written to, expected a RuntimeError, found {error!r}"
    if writes and any(t._version for value in args for t in tensors(value)):
        return f"{name}: a refused call has written to other tensors than argument {place}"
    if not writes and error is not None:
        return f"{name}: argument {place} is only read, found {error!r}"
    return ""


def missing(seen: set[str]) -> list[str]:
    """Operators that write, by their schemas, and were not called."""
    return sorted({name + suffix for name, suffixes in WRITING.items() for suffix in suffixes} - seen)


def main() -> int:
    kind, folder = sys.argv[1], Path(sys.argv[2])
    wrong, seen, counts = set(), set(), defaultdict(int)
    for record in all_records():
        for dtype in record.dtypes:
            rng = np.random.default_rng(SEED + zlib.crc32(f"{record.name} {dtype}".encode()))
            for sample in itertools.islice(record.samples(dtype, rng), SAMPLES):
                for form in forms(record, sample):
                    print(form[0], file=sys.stderr, flush=True)  # the last line names the culprit of a crash
                    problem = tried(record, sample, form, kind, folder)
                    if problem is not None:
                        seen.add(form[0])
                        counts[form[0]] += 1
                        wrong |= {problem} - {""}
    print("seed", SEED, "calls", sum(counts.values()), "forms", len(seen))
    print("not called:", *missing(seen))
    print("\n".join(sorted(wrong)))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
