"""Floating-point operations: what single operators need, and a mode that counts those of a program.

A multiplication and an addition are two operations. The formulas are those of the definitions: a matrix product of
(m, k) and (k, n) takes 2mkn; a convolution twice the elements of its result times those of the window that each one
sees; the gradient of either as much for each of its two factors.

Example:
    >>> with taeda.utils.flop_counter.FlopCounterMode(display=False) as counter:
    ...     _ = taeda.ones(2, 3) @ taeda.ones(3, 4)
    >>> counter.get_total_flops()
    48
"""

from __future__ import annotations

import functools
import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from taeda_profiler.arguments import TensorFacts, Told

__all__ = ["FlopCounterMode", "flop_registry", "register_flop_formula"]

Formula = Callable[..., int]
Shape = tuple[int, ...]

#: Formulas of whole calls by the name of the operator ("aten::mm"): they get shapes in the place of tensors.
flop_registry: dict[Any, Formula] = {}

_PREFIX = "aten::"


def _name(target: Any) -> str:
    """The name of an operator under which its formula stands."""
    text = target
    if not isinstance(target, str):  # an operator, or one of its overloads
        text = target.name() if callable(target.name) else target.name
    text = text.replace("taeda::", _PREFIX)
    return (text if "::" in text else _PREFIX + text).split(".")[0]


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Formula], Formula]:
    """A decorator for formulas of operators.

    Args:
        targets: An operator, its name, or a list of them.
        get_raw: The formula gets tensors as they are; otherwise their shapes. The result stands in ``out_shape`` or,
            for raw formulas, ``out_val``.

    Raises:
        ValueError: There is a formula already.

    Example:
        >>> @taeda.utils.flop_counter.register_flop_formula("mypkg::twice")
        ... def twice(x, out_shape=None, **kwargs):
        ...     return math.prod(x)
    """
    wanted = targets if isinstance(targets, list | tuple) else [targets]

    def register(formula: Formula) -> Formula:
        names = [_name(target) for target in wanted]
        taken = [name for name in names if name in flop_registry]
        if taken:
            raise ValueError(f"register_flop_formula: there is a formula already for {', '.join(taken)}")
        formula._get_raw = get_raw  # type: ignore[attr-defined]
        for name in names:
            flop_registry[name] = formula
        return formula

    return register


# --- formulas of operators that are not written in terms of others ---


@register_flop_formula(["mm", "bmm", "mv", "dot"])
def product_flop(a: Shape, b: Shape, out_shape: Any = None, **_: Any) -> int:
    """Products of matrices and vectors, and batches of them."""
    return 2 * math.prod(a) * (b[-1] if len(b) > 1 else 1)


@register_flop_formula(["addmm", "addmv", "baddbmm"])
def sum_and_product_flop(
    _sum: Shape, a: Shape, b: Shape, *scales: Any, out_shape: Any = None, **_: Any
) -> int:
    """The product; the sum is not counted, as in PyTorch."""
    return product_flop(a, b)


@register_flop_formula("linear")
def linear_flop(x: Shape, weight: Shape, bias: Any = None, out_shape: Any = None, **_: Any) -> int:
    """A row of the weight for each number of the result."""
    return 2 * math.prod(x) * math.prod(weight[:-1])


def _spread(value: Any, count: int) -> tuple[int, ...]:
    """A number or a list for each dimension."""
    items = list(value) if isinstance(value, Iterable) else [value]
    return tuple(items * count if len(items) == 1 else items)


@register_flop_formula(["conv2d", "conv3d"])
def conv_flop(
    x: Shape,
    weight: Shape,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    out_shape: Any = None,
    **_: Any,
) -> int:
    """A window of the weight for each number of the result."""
    dims = len(weight) - 2
    steps, edges, gaps = _spread(stride, dims), _spread(padding, dims), _spread(dilation, dims)
    places = [
        (size + 2 * edge - gap * (window - 1) - 1) // step + 1
        for size, window, step, edge, gap in zip(x[-dims:], weight[2:], steps, edges, gaps, strict=True)
    ]
    return 2 * math.prod(x[: len(x) - dims - 1]) * math.prod(places) * math.prod(weight)


@register_flop_formula("convolution")
def convolution_flop(
    x: Shape, weight: Shape, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, *rest: Any, **_: Any
) -> int:  # fmt: skip
    """The one operator of all convolutions: a transposed one takes a window for each place of its argument."""
    if not transposed:
        return conv_flop(x, weight, bias, stride, padding, dilation)
    dims = len(weight) - 2
    return 2 * math.prod(x[: len(x) - dims - 1]) * math.prod(x[-dims:]) * math.prod(weight)


@register_flop_formula("convolution_backward")
def convolution_backward_flop(
    grad: Shape, x: Shape, weight: Shape, bias_sizes: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, output_mask: Sequence[bool], **_: Any,
) -> int:  # fmt: skip
    """A window of the weight for each place, for each of the gradients of input and weight that is asked for."""
    dims = len(weight) - 2
    around = x if transposed else grad  # where windows are taken, as in the forward pass
    places = (*around[: len(around) - dims - 1], *around[-dims:])
    return 2 * math.prod(places) * math.prod(weight) * sum(output_mask[:2])


@register_flop_formula("fused_attention")
def attention_flop(
    query: Shape, key: Shape, value: Shape, *rest: Any, out_shape: Any = None, **_: Any
) -> int:
    """The scores and their product with the values."""
    return 2 * math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


@register_flop_formula("fused_attention_backward")
def attention_backward_flop(
    grad: Shape, query: Shape, key: Shape, value: Shape, *rest: Any, out_shape: Any = None, **_: Any
) -> int:
    """The scores anew, and two products for each of the forward's."""
    scores = 2 * math.prod(query[:-1]) * key[-2]
    return scores * (3 * query[-1] + 2 * value[-1])


def flops_of(name: str, arguments: Told) -> int:
    """Operations of a recorded call; 0 where there is no formula, or too little is known."""
    formula = flop_registry.get(name)
    if formula is None or getattr(formula, "_get_raw", False) or not arguments.whole:
        return 0
    return int(formula(*(_as_shape(value) for value in arguments.values)))


def _as_shape(value: Any) -> Any:
    if isinstance(value, TensorFacts):
        return value.sizes
    if isinstance(value, list):
        return [_as_shape(item) for item in value]
    return value


# --- a mode that counts ---

_GLOBAL = "Global"
_UNITS = ("", "K", "M", "B", "T")
_TITLES = ("Module", "FLOP", "% Total")
Modules = Any


class FlopCounterMode:
    """A block whose floating-point operations are counted, by module and operator, in forward and backward.

    Args:
        mods: Not needed any more, with a warning; modules are found by themselves.
        depth: Rows of the table go so deep into modules.
        display: Print the table at the end.
        custom_mapping: Formulas of further operators; raw ones (see `register_flop_formula`) say so by ``_get_raw``.

    Example:
        >>> net = taeda.nn.Linear(3, 4)
        >>> with FlopCounterMode(display=False) as counter:
        ...     _ = net(taeda.ones(2, 3))
        >>> counter.get_total_flops()
        48
    """

    def __init__(
        self,
        mods: Modules = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: Mapping[Any, Formula] | None = None,
    ) -> None:
        if mods is not None:
            warnings.warn("FlopCounterMode: argument 'mods' is not needed: modules are found", stacklevel=2)
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.flop_registry = {**flop_registry, **{_name(t): f for t, f in (custom_mapping or {}).items()}}
        self._mode: Any = None
        self._modules: Any = None

    def __enter__(self) -> FlopCounterMode:
        from taeda_profiler.module_names import Tracker

        self.flop_counts.clear()
        self._mode, self._modules = _dispatch_mode(self._count), Tracker()
        self._modules.__enter__()
        self._mode.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._mode.__exit__(*exception)
        self._modules.__exit__(*exception)
        self._mode = self._modules = None
        if self.display:
            print(self.get_table(self.depth))

    def _count(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        formula = self.flop_registry.get(_name(func))
        if formula is None:
            return
        if getattr(formula, "_get_raw", False):
            count = formula(*args, **kwargs, out_val=out)
        else:
            shapes = {name: _shaped(value) for name, value in kwargs.items()}
            count = formula(*map(_shaped, args), **shapes, out_shape=_shaped(out))
        packet = func.overloadpacket
        for name in {_GLOBAL, *self._modules.names()}:
            self.flop_counts[name][packet] += count

    def get_total_flops(self) -> int:
        """Operations of the block."""
        return sum(self.flop_counts[_GLOBAL].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Operations by the name of the module ("Global" for all) and the operator."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Modules and their operators with their operations and their part of all."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        names = sorted(name for name in self.flop_counts if name != _GLOBAL and name.count(".") < depth)
        # A module that does all of it is as good as the row of everything.
        whole = any(sum(self.flop_counts[name].values()) >= total for name in names)
        rows = [] if whole else self._rows(_GLOBAL, 0)
        rows += [row for name in names for row in self._rows(name, name.count(".") + (not whole))]
        unit = max(0, min((len(str(total)) - 2) // 3, len(_UNITS) - 1))
        cells = [_TITLES, *((text, _scaled(count, unit), _part(count, total)) for text, count in rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(3)]
        lines = [f"{a.ljust(widths[0])}  {b.rjust(widths[1])}  {c.rjust(widths[2])}" for a, b, c in cells]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join(lines)

    def _rows(self, name: str, depth: int) -> list[tuple[str, int]]:
        counts, indent = self.flop_counts[name], " " * depth
        parts = [(f"{indent} - {_name(op).replace('::', '.')}", count) for op, count in counts.items()]
        return [(indent + name, sum(counts.values())), *parts]


def _scaled(count: int, unit: int) -> str:
    return f"{count / 1000**unit:.3f}{_UNITS[unit]}" if unit and count else str(count)


def _part(count: int, total: int) -> str:
    return f"{count / total:.2%}" if total else "0%"


def _shaped(value: Any) -> Any:
    if hasattr(value, "shape"):
        return tuple(value.shape)
    if isinstance(value, list | tuple):
        return type(value)(_shaped(item) for item in value) if type(value) in (list, tuple) else value
    return value


def _dispatch_mode(count: Callable[..., None]) -> Any:
    """A mode that tells of each operator below autograd and what it gave."""
    return _dispatch_class()(count)


@functools.cache
def _dispatch_class() -> type:
    from taeda_registry.slots import tensor

    base: Any = tensor.python_dispatch.TorchDispatchMode

    class Counting(base):
        def __init__(self, count: Callable[..., None]) -> None:
            super().__init__()
            self._count = count

        def __torch_dispatch__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            out = func(*args, **(kwargs or {}))
            self._count(func, args, kwargs or {}, out)
            return out

    return Counting
