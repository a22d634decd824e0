"""Arguments of recorded operators: from the words that the recorder keeps to shapes, dtypes and numbers."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

# Kinds of values, as the C ABI numbers them.
NONE, TENSOR, BOOL, INT, TEXT_LIKE, INTS, TENSORS = 0, 1, 2, 3, 5, 10, 12

# Element types by their number in the C ABI: the name that PyTorch's traces use, and bytes of one.
DTYPES = (
    ("bool", 1),
    ("signed char", 1),
    ("short int", 2),
    ("int", 4),
    ("long int", 8),
    ("unsigned char", 1),
    ("unsigned short", 2),
    ("unsigned int", 4),
    ("unsigned long", 8),
    ("c10::Half", 2),
    ("c10::BFloat16", 2),
    ("float", 4),
    ("double", 8),
    ("c10::complex<float>", 8),
    ("c10::complex<double>", 16),
)


class TensorFacts(NamedTuple):
    """Shape and element type of an argument."""

    sizes: tuple[int, ...]
    dtype: int


class Told(NamedTuple):
    """What is known of the arguments of a call.

    Attributes:
        values: In the order of the schema; None for what was not kept.
        whole: Whether numbers are among them; otherwise only tensors are.
    """

    values: tuple[Any, ...]
    whole: bool


def _split(text: str) -> list[str]:
    """The parts between commas that stand in no bracket."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        if letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    return [part for part in (*parts, text[start:].strip()) if part and part != "*"]


@functools.cache
def tensor_places(schema: str) -> tuple[str, ...]:
    """Of each argument of a schema: "one", "maybe" and "list" for tensors, "" for others."""
    inside = schema[schema.find("(") + 1 : schema.rfind(") ->")] if ") ->" in schema else ""
    kinds = []
    for part in _split(inside):
        kind = part.rpartition(" ")[0].split("=")[0]
        bare = kind.partition("(")[0] + kind.rpartition(")")[2] if "(" in kind else kind
        if not bare.startswith("Tensor"):
            kinds.append("")
        elif "[" in bare:
            kinds.append("list")
        else:
            kinds.append("maybe" if "?" in bare else "one")
    return tuple(kinds)


def _read(words: tuple[int, ...], place: int) -> tuple[Any, int]:
    kind, count = words[place] >> 32, words[place] & 0xFFFFFFFF
    place += 1
    if kind == TENSOR:
        ndim = count & 0xFFFF
        return TensorFacts(words[place : place + ndim], count >> 16), place + ndim
    if kind == TENSORS:
        items = []
        for _ in range(count):
            item, place = _read(words, place)
            items.append(item)
        return items, place
    if kind in (INT, BOOL):
        return (bool(words[place]) if kind == BOOL else words[place]), place + 1
    if kind == INTS:
        return list(words[place : place + count]), place + count
    return None, place


def _read_all(words: tuple[int, ...]) -> list[Any]:
    found, place = [], 2
    while place < len(words):
        value, place = _read(words, place)
        found.append(value)
    return found


def _placed(tensors: list[Any], places: tuple[str, ...]) -> list[Any]:
    """Gives tensors their places among the arguments of a schema; as they came where that is not clear."""
    lists, sure, open_ = places.count("list"), places.count("one"), places.count("maybe")
    spare = len(tensors) - sure
    if spare < 0 or lists > 1 or (lists and open_) or (not lists and spare > open_):
        return tensors
    rest, found = iter(tensors), []
    for kind in places:
        if kind == "one":
            found.append(next(rest))
        elif kind == "list":
            found.append([next(rest) for _ in range(spare)])
        elif kind == "maybe" and spare > 0:
            spare -= 1
            found.append(next(rest))
        else:
            found.append(None)
    return found


def told(words: tuple[int, ...], schema: str) -> Told:
    """The arguments in a detail of a trace."""
    if len(words) < 2:
        return Told((), False)
    values = _read_all(words)
    if words[1]:
        return Told(tuple(values), True)
    return Told(tuple(_placed(values, tensor_places(schema))), False)


def _shape(value: Any) -> list[Any]:
    if isinstance(value, TensorFacts):
        return list(value.sizes)
    if isinstance(value, list) and any(isinstance(item, TensorFacts) for item in value):
        return [_shape(item) for item in value]
    return []


def shapes(arguments: Told) -> list[Any]:
    """The shape of each argument, a list of them for a list, [] for what is no tensor."""
    return [_shape(value) for value in arguments.values]


def _dtype(value: Any) -> str:
    if isinstance(value, TensorFacts):
        return DTYPES[value.dtype][0]
    if isinstance(value, list) and any(isinstance(item, TensorFacts) for item in value):
        return "TensorList"
    return "Scalar" if isinstance(value, int) else ""


def dtypes(arguments: Told) -> list[str]:
    """The element type of each argument as PyTorch's traces name it, "" for what is no tensor."""
    return [_dtype(value) for value in arguments.values]


def concrete(arguments: Told) -> list[str]:
    """Numbers among the arguments as texts, "" for the others."""
    values = arguments.values if arguments.whole else ()
    return [str(v) if isinstance(v, int | list) and not _shape(v) else "" for v in values]
