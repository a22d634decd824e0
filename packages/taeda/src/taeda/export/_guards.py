"""What an exported program asks of its inputs: sizes, bounds of sizes that may vary, and values that are no tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from taeda.export._dims import Dim, _DimHint
from taeda.export._symbols import symbol_of
from taeda.utils import _pytree
from taeda_registry.slots import tensor

__all__ = ["Guards", "ValueRanges", "guards_of"]


class ValueRanges:
    """The values that a size may have.

    Attributes:
        lower: The smallest.
        upper: The largest; None where there is none.
    """

    def __init__(self, lower: int, upper: int | None) -> None:
        self.lower, self.upper = lower, upper

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueRanges) and (self.lower, self.upper) == (other.lower, other.upper)

    def __hash__(self) -> int:
        return hash((self.lower, self.upper))

    def __contains__(self, size: int) -> bool:
        return self.lower <= size and (self.upper is None or size <= self.upper)

    def __repr__(self) -> str:
        return f"VR[{self.lower}, {'int_oo' if self.upper is None else self.upper}]"


class _Guard(NamedTuple):
    """A condition on one input: its text, what kind it is, and what is compared."""

    way: tuple[Any, ...]
    spelled: str
    text: str
    kind: str  # "value", "size", "at least", "at most", or "same" for all sizes of one symbol
    dim: int
    bound: Any

    def holds(self, value: Any, sizes: dict[str, int]) -> bool:
        """Whether an input meets it; `sizes` are those of the symbols met so far."""
        if self.kind == "value":
            return bool(value == self.bound)
        if not isinstance(value, tensor.Tensor) or value.dim() <= self.dim:
            return False
        size = value.shape[self.dim]
        if self.kind == "same":
            symbol, factor, shift = self.bound
            root, rest = divmod(size - shift, factor)
            return not rest and sizes.setdefault(symbol, root) == root
        if self.kind == "size":
            return bool(size == self.bound)
        return bool(size >= self.bound if self.kind == "at least" else size <= self.bound)


class Size(NamedTuple):
    """A size of an input that may vary.

    Attributes:
        leaf: The place of the tensor among all inputs.
        dim: Its dimension.
        size: What it was in the example.
        symbol, factor, shift: It is `factor*symbol + shift`.
        bounds: What the symbol may be.
        name, text: How it is called where it was said, and how it is read.
        hint: "AUTO" or "DYNAMIC" where nothing more was said of it.
    """

    leaf: int
    dim: int
    size: int
    symbol: str
    factor: int
    shift: int
    bounds: ValueRanges
    name: str
    text: str
    hint: str

    @property
    def root(self) -> int:
        """What the symbol was in the example."""
        return (self.size - self.shift) // self.factor

    def at(self, root: int) -> int:
        """What it is where the symbol is another."""
        return self.factor * root + self.shift


class Guards:
    """The conditions of one program.

    Args:
        names: Names of the arguments that are given by position.
        guards: The conditions.
        ranges: Bounds of sizes that may vary, by their symbols.
    """

    def __init__(
        self, names: list[str], guards: list[_Guard], ranges: dict[str, ValueRanges], sizes: list[Size]
    ) -> None:
        self.names, self._guards, self.ranges, self._sizes = names, guards, ranges, sizes

    def sizes(self) -> list[Size]:
        """The sizes that may vary."""
        return list(self._sizes)

    def fix(self, symbol: str) -> None:
        """Let the sizes of a symbol be what they were in the example."""
        fixed = {(size.text, size.size) for size in self._sizes if size.symbol == symbol}
        self._sizes = [size for size in self._sizes if size.symbol != symbol]
        del self.ranges[symbol]
        for text, size in fixed:
            own = [guard for guard in self._guards if guard.spelled == text]
            place = self._guards.index(own[0])
            self._guards = [guard for guard in self._guards if guard.spelled != text]
            self._guards.insert(place, own[0]._replace(text=f"{text} == {size}", kind="size", bound=size))

    def narrow(self, symbol: str, bounds: ValueRanges) -> None:
        """Let the sizes of a symbol be within closer bounds."""
        self.ranges[symbol] = bounds
        self._sizes = [s._replace(bounds=bounds) if s.symbol == symbol else s for s in self._sizes]
        for size in [one for one in self._sizes if one.symbol == symbol]:
            first = next(guard for guard in self._guards if guard.spelled == size.text)
            ends = [("at least", ">=", size.at(bounds.lower))]
            if bounds.upper is not None:
                ends.append(("at most", "<=", size.at(bounds.upper)))
            place = self._guards.index(first)
            self._guards = [g for g in self._guards if g.spelled != size.text or g.kind == "same"]
            self._guards[place:place] = [
                first._replace(text=f"{size.text} {sign} {bound}", kind=kind, bound=bound)
                for kind, sign, bound in ends
            ]

    def unite(self, symbols: list[str]) -> None:
        """Let sizes of several symbols be the same size, under the last of these symbols."""
        *others, last = symbols
        leader = next(size.text for size in self._sizes if size.symbol in symbols)
        self._sizes = [s._replace(symbol=last) if s.symbol in others else s for s in self._sizes]
        for other in others:
            del self.ranges[other]
        self._guards = [
            g._replace(bound=(last, 1, 0), text=f"{g.spelled} == {leader}")
            if g.kind == "same" and g.bound[0] in symbols
            else g
            for g in self._guards
        ]

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Check a call's arguments.

        Raises:
            AssertionError: A condition does not hold; the text is the first that does not.
        """
        leaves = dict(_leaves(_by_name(self.names, args, kwargs)))
        sizes: dict[str, int] = {}
        for guard in self._guards:
            if guard.way in leaves and not guard.holds(leaves[guard.way], sizes):
                raise AssertionError(f"Guard failed: {guard.text}")


def _by_name(names: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _leaves(values: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    for name, value in values.items():
        for way, leaf in _pytree.tree_flatten_with_path(value)[0]:
            yield (name, *(_pytree.keystr((key,)) for key in way)), leaf


def guards_of(names: list[str], args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any) -> Guards:
    """The conditions that follow from example inputs and what is said of their sizes.

    Args:
        names: Names of the arguments, in their order.
        args: The example inputs by position.
        kwargs: Those by name.
        dynamic_shapes: By argument, or one for each in their order: what is said of its sizes, by dimension or one for
            each; None where they stay as they are.

    Raises:
        UserError: What is said does not fit the inputs.
    """
    given = _by_name(names, args, kwargs)
    said = _said_of(given, dynamic_shapes)
    made: list[_Guard] = []
    ranges: dict[str, ValueRanges] = {}
    symbols: dict[str, str] = {}
    firsts: dict[str, str] = {}
    sizes: list[Size] = []
    for place, (way, leaf) in enumerate(_leaves(given)):
        spelled = way[0] + "".join(way[1:])
        if isinstance(leaf, tensor.Tensor):
            for dim, size in enumerate(leaf.shape):
                found = said.get((way, dim))
                conditions = _of_size(
                    way, f"{spelled}.size()[{dim}]", dim, int(size), found, symbols, firsts, ranges
                )
                made += conditions
                if conditions[-1].kind == "same":
                    sizes.append(_size_of(place, conditions[-1], int(size), found, ranges))
        elif isinstance(leaf, (int, float, str, bool)):
            made.append(_Guard(way, spelled, f"{spelled} == {leaf!r}", "value", 0, leaf))
    guards = Guards(names, made, ranges, sizes)
    try:
        guards.check(args, kwargs)
    except AssertionError as error:
        raise _error(
            f"Constraints violated! The example inputs are not what dynamic_shapes says: {error}"
        ) from None
    return guards


def _size_of(place: int, guard: _Guard, size: int, said: Any, ranges: dict[str, ValueRanges]) -> Size:
    hint = said._kind if isinstance(said, _DimHint) else ""
    name = f"L['{guard.way[0]}']{guard.spelled[len(guard.way[0]) :]}" if hint else said.__name__
    return Size(place, guard.dim, size, *guard.bound, ranges[guard.bound[0]], name, guard.spelled, hint)


def _of_size(
    way: tuple[Any, ...], text: str, dim: int, size: int, said: Any, symbols: dict[str, str],
    firsts: dict[str, str], ranges: dict[str, ValueRanges],
) -> list[_Guard]:  # fmt: skip
    """The conditions on one size of one tensor."""
    if said is None or said is Dim.STATIC or isinstance(said, int):
        if isinstance(said, int) and said != size:
            raise _error(f"{text} is {size}, but dynamic_shapes says {said}")
        return [_Guard(way, text, f"{text} == {size}", "size", dim, size)]
    own = ValueRanges(said.min or 0, said.max)
    if size not in own:
        from taeda.fx.experimental.symbolic_shapes import ConstraintViolationError

        name = getattr(said, "__name__", repr(said))
        raise ConstraintViolationError(f"{size} not in range {own}: {text}, which is said to be {name}")
    hint = isinstance(said, _DimHint)
    root, factor, shift = (said, 1, 0) if hint else (said.root, said.factor, said.shift)
    bounds = ValueRanges(root.min or 0, root.max)
    name = f"{text} {len(symbols)}" if hint else root.__name__
    known = name in symbols
    if known and ranges[symbols[name]] != bounds:
        raise _error(
            f"Found different definitions {ranges[symbols[name]]} and {bounds} for the same symbolic dimension {name}"
        )
    symbol = symbols.setdefault(name, symbol_of(f"L['{way[0]}']{text[len(way[0]) :]}", set(symbols.values())))
    ranges[symbol] = bounds
    first = firsts.setdefault(symbol, text)
    made = [_Guard(way, text, f"{text} >= {own.lower}", "at least", dim, own.lower)]
    if own.upper is not None:
        made.append(_Guard(way, text, f"{text} <= {own.upper}", "at most", dim, own.upper))
    equal = f"{text} is a size"
    if known or (factor, shift) != (1, 0):
        of = said.__name__ if (factor, shift) != (1, 0) else first
        equal = f"{text} == {of}"
    return [*made, _Guard(way, text, equal, "same", dim, (symbol, factor, shift))]


def _said_of(given: dict[str, Any], dynamic_shapes: Any) -> dict[tuple[tuple[Any, ...], int], Any]:
    """What is said of each size of each tensor."""
    if dynamic_shapes is None:
        return {}
    if isinstance(dynamic_shapes, (tuple, list)):
        if len(dynamic_shapes) != len(given):
            raise _error(
                f"dynamic_shapes has {len(dynamic_shapes)} entries, expected one for each of {len(given)} inputs"
            )
        dynamic_shapes = dict(zip(given, dynamic_shapes, strict=True))
    if set(dynamic_shapes) - set(given):
        raise _error(
            "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names "
            f"{list(given)} of `inputs`, but here they are {list(dynamic_shapes)}. Alternatively, you could also "
            "ignore arg names entirely and specify `dynamic_shapes` as a list/tuple matching `inputs`."
        )
    found: dict[tuple[tuple[Any, ...], int], Any] = {}
    for name, said in dynamic_shapes.items():
        _note((name,), given[name], said, found)
    return found


def _note(way: tuple[Any, ...], value: Any, said: Any, found: dict[Any, Any]) -> None:
    if said is None or isinstance(said, _DimHint):
        if isinstance(said, _DimHint) and isinstance(value, tensor.Tensor):
            found.update({(way, dim): said for dim in range(value.dim())})
        return
    if isinstance(value, tensor.Tensor):
        _note_sizes(way, value, said, found)
        return
    parts = said if isinstance(said, dict) else dict(enumerate(member for _, member in _members(said)))
    for place, (keys, member) in enumerate(_members(value)):
        if not keys:
            raise _error(
                f"dynamic_shapes says {said!r} of {''.join(way)}, which is no tensor: {type(value).__name__}"
            )
        name = getattr(keys[0], "key", getattr(keys[0], "name", place))
        _note((*way, _pytree.keystr(keys)), member, parts.get(name, parts.get(place)), found)


def _members(value: Any) -> list[tuple[Any, Any]]:
    """What a container holds, of a registered class too, each with its path; of no container the value itself."""
    return _pytree.tree_flatten_with_path(value, is_leaf=lambda one: one is not value)[0]


def _note_sizes(way: tuple[Any, ...], value: Any, said: Any, found: dict[Any, Any]) -> None:
    if isinstance(said, (tuple, list)) and len(said) != value.dim():
        raise _error(
            f"Expected dynamic shape spec {said} specified at `dynamic_shapes['{way[0]}']` to have the same length as "
            f"the actual tensor shape {value.shape} (expected {value.dim()}, but got {len(said)} instead)"
        )
    for dim, one in (said if isinstance(said, dict) else dict(enumerate(said))).items():
        if type(dim) is not int or not -value.dim() <= dim < value.dim():
            raise _error(f"dynamic_shapes of {way[0]} names dimension {dim!r}, and it has {value.dim()}")
        if not (one is None or isinstance(one, (int, Dim, _DimHint))):
            raise _error(
                f"dynamic_shapes of {way[0]}: expected Dim, an int or None for a size, found {one!r}"
            )
        found[way, dim % value.dim()] = one


def _error(text: str) -> Exception:
    from taeda._dynamo.exc import UserError

    return UserError(text)  # type: ignore[no-any-return]
