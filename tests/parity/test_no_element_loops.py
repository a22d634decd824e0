"""No operator of PyTorch's database is a loop of Python over elements: more elements cost no more steps of Python."""

import itertools
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))

from op_checks import SEED, label
from op_functions import function_of, known
from op_samples import convert, op_records

FEW = 12  # steps of Python around an operator of the core
SAMPLES = 200  # at most; four of an operator of the core
GROWN = 1000  # elements more
# Dimensions along which operands are repeated, until the operator takes them.
ALONG = ((0,), (-1,), (0, -1), (-2,), (-2, -1), (0, 1, 2, 3, 4))
# Operands that the sizes among the arguments, or there being one element, keep from growing: read by eye.
FIXED = {"item", "native_group_norm", "nn.functional.multi_head_attention_forward"}
# One step of Python for each block of rows, whose number the samples give: single rows.
BLOCKS = {"nn.functional.linear_cross_entropy.chunked", "nn.functional.linear_cross_entropy.chunked_none"}


def steps(call: Callable[[], object]) -> int:
    """Instructions of the interpreter that the call takes."""
    counted = 0

    def trace(frame: Any, event: str, _argument: object) -> Any:
        nonlocal counted
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        counted += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return counted


def each(value: Any, function: Callable[[Any], Any]) -> Any:
    """The value with the function's results in place of its tensors."""
    if isinstance(value, torch.Tensor):
        return function(value.detach())
    if type(value) in (list, tuple):
        return type(value)(each(v, function) for v in value)
    if isinstance(value, dict):
        return {name: each(v, function) for name, v in value.items()}
    return value


def elements(value: Any) -> int:
    counts: list[int] = []
    each(value, lambda t: counts.append(t.numel()))
    return sum(counts)


def repeated(value: Any, along: tuple[int, ...], times: int) -> Any:
    def more(t: Any) -> Any:
        dims = {d % t.dim() for d in along if -t.dim() <= d < t.dim()}
        return t.repeat([times if d in dims else 1 for d in range(t.dim())])

    return each(value, more)


def calls(function: Callable, arguments: list, keywords: dict) -> int | None:
    """Steps of the second call of taeda's function; None where it takes no such arguments."""
    try:
        ours, named = [convert(a, []) for a in arguments], {k: convert(v, []) for k, v in keywords.items()}
        function(*ours, **named)
        return steps(lambda: function(*ours, **named))
    except Exception:  # whatever: operands of these sizes are not for it
        return None


def larger_sizes(value: Any) -> Any:
    """Numbers of elements, as functions that make tensors take them, a thousand times as large."""
    if isinstance(value, (list, tuple)) and value and all(type(v) is int for v in value):
        return type(value)([value[0] * GROWN, *value[1:]])
    return value * GROWN if type(value) is int else value


def grown(function: Callable, arguments: list, keywords: dict) -> Iterator[tuple[int, int]]:
    """How many steps came with how many elements."""
    size = elements([*arguments, *keywords.values()])
    before = calls(function, arguments, keywords) or 0
    if not size and type(arguments[0]) in (int, tuple, list):
        after = calls(function, [larger_sizes(arguments[0]), *arguments[1:]], keywords)
        if after is not None and larger_sizes(arguments[0]) != arguments[0]:
            yield after - before, GROWN
        return
    for along in ALONG:
        times = max(2, math.ceil((2 * GROWN / max(1, size)) ** (1 / min(len(along), 3))))
        larger, named = repeated(arguments, along, times), repeated(keywords, along, times)
        more = elements([*larger, *named.values()]) - size
        if GROWN <= more <= 1000 * GROWN and (after := calls(function, larger, named)) is not None:
            yield after - before, more
            return


def examined(record: Any) -> tuple[int, list[tuple[int, int]]]:
    """The most steps of a call of the record's samples, and what came of larger ones."""
    function = function_of(record)
    dtypes = [d for d in (torch.float32, torch.complex64, torch.int64, torch.bool) if d in record.dtypes]
    torch.manual_seed(SEED)
    most, found = 0, []
    samples = itertools.islice(record.sample_inputs("cpu", dtypes[0]), SAMPLES) if dtypes else ()
    for number, sample in enumerate(samples):
        arguments, keywords = [sample.input, *sample.args], sample.kwargs
        taken = calls(function, arguments, keywords) or 0
        most = max(most, taken)
        if taken > FEW:
            found += grown(function, arguments, keywords)
        if found or (number >= 3 and most <= FEW):
            break
    return most, found


def test_steps_of_python_do_not_grow_with_elements():
    native, loops, small = 0, {}, set()
    for record in op_records():
        if not known(record):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            most, found = examined(record)
        native += most <= FEW
        if most > FEW and not found:
            small.add(label(record))
        if any(more_steps * 2 > more_elements for more_steps, more_elements in found):
            loops[label(record)] = found
    assert native > 400
    assert small <= FIXED, small
    assert loops.keys() <= BLOCKS, loops
