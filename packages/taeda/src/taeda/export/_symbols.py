"""Sizes as expressions of the sizes of inputs, found from what they were in several runs.

A program that runs with inputs of other sizes has other sizes within. The simplest expression that gives each of them
in every run is taken for the rule: a number, a symbol, a product of symbols, a multiple moved by a number, a quotient
as layers with strides have it.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

__all__ = ["Expression", "Symbol", "fitted", "products", "symbol_of"]

_LARGEST_STRIDE = 64
#: How many sizes products are looked for among.
_MOST = 12


class Symbol(str):
    """The name of a size, which stands in texts as it is."""

    def __repr__(self) -> str:
        return str(self)


def symbol_of(source: str, taken: set[str]) -> Symbol:
    """The symbol of a size by where it is read, `L['x'].size()[0]`; PyTorch names the sizes of inputs so too."""
    number = int(hashlib.sha256(source.encode()).hexdigest(), 16) % 100
    while f"s{number}" in taken:
        number += 1
    return Symbol(f"s{number}")


class Expression(NamedTuple):
    """A size: a symbol, or an operation on expressions and numbers.

    Attributes:
        kind: "symbol", "add", "mul" or "floordiv".
        parts: The name of the symbol, or the two operands.
    """

    kind: str
    parts: tuple[Any, ...]

    def __str__(self) -> str:
        if self.kind == "symbol":
            return str(self.parts[0])
        left, right = self.parts
        if self.kind == "add":
            return f"{left} - {-right}" if isinstance(right, int) and right < 0 else f"{left} + {right}"
        if self.kind == "floordiv":
            return f"({_operand(left)}//{_operand(right)})"
        first, second = (right, left) if isinstance(right, int) else (left, right)  # numbers stand first
        return f"{_operand(first)}*{_operand(second)}"

    @property
    def divides(self) -> bool:
        """Whether there is a quotient in it, which few values tell badly from others."""
        inner = any(isinstance(part, Expression) and part.divides for part in self.parts)
        return self.kind == "floordiv" or inner

    def value(self, sizes: dict[str, int]) -> int:
        """What it is where symbols have these sizes."""
        if self.kind == "symbol":
            return sizes[self.parts[0]]
        left, right = (p.value(sizes) if isinstance(p, Expression) else p for p in self.parts)
        return left + right if self.kind == "add" else left * right if self.kind == "mul" else left // right


def _operand(part: Any) -> str:
    return f"({part})" if isinstance(part, Expression) and part.kind == "add" else str(part)


def _of(kind: str, left: Any, right: Any) -> Any:
    """An operation, without those that change nothing."""
    if (kind == "add" and right == 0) or (kind in ("mul", "floordiv") and right == 1):
        return left
    return Expression(kind, (left, right))


def _products(symbols: dict[str, Sequence[int]]) -> Iterator[tuple[Expression, list[int]]]:
    """Symbols, then products of two and more."""
    for count in range(1, min(len(symbols), 4) + 1):
        for chosen in itertools.combinations(sorted(symbols), count):
            made = Expression("symbol", (chosen[0],))
            for name in chosen[1:]:
                made = Expression("mul", (made, Expression("symbol", (name,))))
            yield made, [math.prod(sizes) for sizes in zip(*(symbols[n] for n in chosen), strict=True)]


def _linear(base: Any, sizes: list[int], values: Sequence[int]) -> Any:
    """`a*base + b`, or None."""
    pairs = sorted(set(zip(sizes, values, strict=True)))
    if len(pairs) < 2:
        return None
    (x, y), (further, other) = pairs[0], pairs[1]
    if x == further or (other - y) % (further - x):
        return None
    factor = (other - y) // (further - x)
    moved = y - factor * x
    if not factor or any(factor * size + moved != value for size, value in pairs):
        return None
    return _of("add", _of("mul", base, factor), moved)


def _divided(base: Any, sizes: list[int], values: Sequence[int]) -> Any:
    """`a*((base + b)//k) + c`, or None; one without a factor before others."""
    common = math.gcd(*(value - values[0] for value in values))
    found = (_quotient(base, sizes, values, factor) for factor in dict.fromkeys((1, common)))
    return next((one for one in found if one is not None), None)


def _quotient(base: Any, sizes: list[int], values: Sequence[int], factor: int) -> Any:
    moved = values[0] % factor
    steps = [(value - moved) // factor for value in values]
    for divisor in range(2, _LARGEST_STRIDE + 1):
        for shift in range(divisor):
            rest = steps[0] - (sizes[0] + shift) // divisor
            if all((x + shift) // divisor + rest == y for x, y in zip(sizes, steps, strict=True)):
                inner = _of(
                    "floordiv", _of("add", base, shift - divisor if shift > divisor // 2 else shift), divisor
                )
                rest += shift > divisor // 2
                return _of("add", _of("mul", _of("add", inner, rest), factor), moved)
    return None


def fitted(values: Sequence[int], symbols: dict[str, Sequence[int]]) -> Any:
    """The expression that gives these values, an int where they are one; None where there is none.

    Args:
        values: A size in each run.
        symbols: Each symbol's in each run.

    Example:
        >>> str(fitted([12, 18, 30], {"s0": [2, 3, 5], "s1": [4, 7, 9]}))
        '6*s0'
    """
    if len(set(values)) == 1:
        return values[0]
    bases = list(_products(symbols))
    rules: tuple[Callable[..., Any], ...] = (_linear, _divided)
    for rule in rules:
        for base, sizes in bases:
            if (found := rule(base, sizes, values)) is not None:
                return found
    return None


def products(values: Sequence[int], sizes: dict[str, Sequence[int]]) -> Any:
    """`a*product + b` of sizes that stand in a graph, by their expressions; None where there is none."""
    known = {tuple(each): name for name, each in list(sizes.items())[-_MOST:]}
    bases = _products({name: list(each) for each, name in known.items()})
    found = (_linear(base, sizes, values) for base, sizes in bases)
    return next((one for one in found if one is not None), None)
