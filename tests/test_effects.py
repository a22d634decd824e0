"""What schemas say of writing and sharing memory, held against what every record's calls do."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import taeda
from taeda import library
from taeda_testing import all_records
from taeda_testing.record import OpRecord
from taeda_testing.runner import function_of, to_tensors

SEED = 20260101
RECORDS = all_records()


def overloads() -> dict[str, list[library.Operator]]:
    """Function forms by Python name."""
    found: dict[str, list[library.Operator]] = defaultdict(list)
    for op in library.operators():
        if op.form != "out":
            found[op.name.partition(".")[0]].append(op)
    return found


OVERLOADS = overloads()


def tensors(value: Any, place: int) -> Iterator[tuple[int, Any]]:
    """Tensors of an argument, each with the position of the argument."""
    if isinstance(value, taeda.Tensor):
        yield place, value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item, place)


def facts(given: list[tuple[int, Any]]) -> list[tuple[int, bytes]]:
    return [(t._version, t.detach().contiguous().numpy().tobytes()) for _, t in given]


def memory(tensor: Any) -> int | None:
    return tensor.untyped_storage().data_ptr() if tensor.numel() else None


def calls(record: OpRecord) -> Iterator[tuple[str, list[tuple[int, Any]], Any]]:
    """Every call of a record: what it was, its tensors, and what is left to do to make it."""
    for dtype in record.dtypes:
        rng = np.random.default_rng(SEED + zlib.crc32(f"{record.name} {dtype}".encode()))
        for number, sample in enumerate(record.samples(dtype, rng)):
            args = [to_tensors(value) for value in sample.args]
            kwargs = {key: to_tensors(value) for key, value in sample.kwargs.items()}
            kwargs |= {"device": "cpu"} if record.creates else {}
            given = [pair for place, value in enumerate(args) for pair in tensors(value, place)]
            yield (
                f"{record.name} {dtype} sample {number}",
                given,
                lambda a=args, k=kwargs: function_of(record)(*a, **k),
            )


def declared(name: str, what: str) -> set[int]:
    """Positions of arguments that some overload writes to, or whose memory one of its results may show."""
    found = set()
    for op in OVERLOADS[name]:
        shown = {result.alias for result in op.results} - {""}
        for place, argument in enumerate(op.arguments):
            if argument.written if what == "written" else argument.alias in shown:
                # Lists may be given as separate arguments.
                last = all(later.keyword_only for later in op.arguments[place + 1 :])
                found |= {*range(place, 9)} if argument.list and last else {place}
    return found


def named() -> list[OpRecord]:
    return [record for record in RECORDS if record.name in OVERLOADS]


#: What `set_` is for, sharing the memory of its second argument from then on, no mark of a schema says.
UNSAID = {"set_"}


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.filterwarnings("ignore:.*degrees of freedom is <= 0")
def test_calls_write_and_share_what_their_schemas_say() -> None:
    print("seed", SEED)
    wrong, count, showed = set(), 0, set()
    for record in named():
        if record.name in UNSAID:
            continue
        written, shared = declared(record.name, "written"), declared(record.name, "shared")
        for call, given, make in calls(record):
            before = facts(given)
            result = make()
            count += 1
            for (place, tensor), then, now in zip(given, before, facts(given), strict=True):
                if then != now and place not in written:
                    wrong.add(
                        f"{call.partition(' sample')[0]}: argument {place} is written, version {then[0]} -> {now[0]}"
                    )
                if then[1] != now[1] and then[0] == now[0]:
                    wrong.add(f"{call}: argument {place} is written without a new version")
                if any(memory(r) is not None and memory(r) == memory(tensor) for _, r in tensors(result, 0)):
                    showed.add(record.name)
                    itself = place in written and record.name.endswith("_")
                    if place not in shared and not itself:
                        wrong.add(
                            f"{call.partition(' sample')[0]}: the result shows the memory of argument {place}"
                        )
    print(count, "calls of", len(named()), "records")
    assert not wrong, "\n".join(sorted(wrong))
    quiet = {name for name, ops in OVERLOADS.items() for op in ops if op.kind == "view"}
    assert quiet & {record.name for record in RECORDS} - UNSAID <= showed


@pytest.mark.parametrize("record", named(), ids=lambda r: r.name)
def test_records_say_what_schemas_say(record: OpRecord) -> None:
    assert set(record.writes) == declared(record.name, "written")
