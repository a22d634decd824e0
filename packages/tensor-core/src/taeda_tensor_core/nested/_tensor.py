"""The tensor that wraps parts of several sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from taeda_tensor_core import _C, _info
from taeda_tensor_core._C import Tensor
from taeda_tensor_core._inner_gradients import Inner, is_of_engine, through_inner
from taeda_tensor_core._sizes import as_tuple
from taeda_tensor_core.overrides import answers_in, misplaced, name_at, path_of

#: What each function or method computes with nested arguments, by its name.
_table: dict[str, Callable[..., Any]] = {}
#: Functions that are called for each part alone, with the arguments that they were given: those of layers take others
#: than the operators of their names.
_for_each = frozenset({
    "alpha_dropout", "celu", "dropout", "elu", "embedding", "gelu", "hardshrink", "hardsigmoid", "hardswish",
    "hardtanh", "layer_norm", "leaky_relu", "linear", "logsigmoid", "mish", "prelu", "relu", "relu6", "rms_norm",
    "scaled_dot_product_attention", "selu", "silu", "softplus", "softshrink", "softsign", "tanhshrink", "threshold",
    "where",
})  # fmt: skip


#: Decorator: what functions of these names compute where a nested tensor is among their arguments.
nested = answers_in(_table)


def _no_part() -> Tensor:
    """What stands for the parts where there is none."""
    return _C.empty((0,))


class NestedTensor(Tensor):
    """Tensors of one dtype and number of dimensions as one. Made by `nested_tensor` and `as_nested_tensor`.

    Jagged parts that lie line after line are kept as one tensor of all lines, with which functions of each line are
    called once; others are kept one by one.

    Attributes:
        layout: "strided" or "jagged".
    """

    _kept: tuple[Tensor, ...]
    _whole: Tensor | None
    _borders: Tensor
    _lines: tuple[int, ...]
    _way: Any
    _at: int
    _holes: Tensor | None

    @staticmethod
    def around(parts: Sequence[Tensor], way: Any, at: int = 1) -> NestedTensor:
        """The nested tensor of parts that fit together, which differ in dimension `at` where it is jagged."""
        sizes = [max(column) for column in zip(*(p.shape for p in parts), strict=True)] if parts else []
        first = parts[0] if parts else _no_part()
        made = Tensor._make_wrapper_subclass(
            NestedTensor, (len(parts), *sizes), dtype=first.dtype, device=first.device
        )
        made._kept, made._whole, made._way, made._at, made._holes = tuple(parts), None, way, at, None
        return made

    @staticmethod
    def packed(whole: Tensor, borders: Tensor, lines: tuple[int, ...]) -> NestedTensor:
        """The jagged tensor of parts that lie line after line: `borders` say where they begin and the last one ends,
        `lines` how many each has."""
        made = Tensor._make_wrapper_subclass(
            NestedTensor,
            (len(lines), max(lines, default=0), *whole.shape[1:]),
            dtype=whole.dtype,
            device=whole.device,
        )
        made._whole, made._borders, made._lines = whole, borders, lines
        made._way, made._at, made._holes = _info.jagged, 1, None
        return made

    @staticmethod
    def in_lines(parts: Sequence[Tensor]) -> NestedTensor:
        """The jagged tensor of parts, line after line where they have lines of one shape."""
        if not parts or not parts[0].dim() or len({p.shape[1:] for p in parts}) > 1:
            return NestedTensor.around(parts, _info.jagged)
        lines = tuple(p.shape[0] for p in parts)
        whole = _C.cat(list(parts))
        return NestedTensor.packed(whole, borders_of(lines, whole.device), lines)

    def like(self, whole: Tensor) -> NestedTensor:
        """Parts of as many lines as these have, out of a tensor of all lines."""
        return NestedTensor.packed(whole, self._borders.to(whole.device), self._lines)

    def _with_parts(self, parts: Sequence[Tensor]) -> NestedTensor:
        """Other parts in this layout."""
        return (
            NestedTensor.in_lines(parts)
            if self._way is _info.jagged
            else NestedTensor.around(parts, self._way)
        )

    @property
    def _parts(self) -> tuple[Tensor, ...]:
        if self._whole is not None:
            return tuple(self._whole.split(list(self._lines)))
        return self._kept

    @property
    def _count(self) -> int:
        """How many parts there are."""
        return len(self._lines if self._whole is not None else self._kept)

    @property
    def _roots(self) -> list[Tensor]:
        """The tensors that it is made of: that of all lines, or the parts."""
        return [self._whole] if self._whole is not None else list(self._kept)

    def _made_of(self, roots: Sequence[Tensor]) -> NestedTensor:
        """As this one, of other tensors of these shapes."""
        if self._whole is not None:
            return self.like(roots[0])
        return NestedTensor.around(roots, self._way, self._at)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        parts = path_of(func)
        if is_of_engine(parts) and parts[-2] != "Tensor":  # the method has a form of its own
            return through_inner(_INNER, func, args, kwargs)
        name = name_at(parts)
        if name in _for_each:
            return by_parts(name, func, *args, **(kwargs or {}))
        known = _table.get(name)
        if known is None:
            raise NotImplementedError(
                f"{name}: not defined for nested tensors; use unbind() or nested.to_padded_tensor first"
            )
        try:
            return known(*args, **(kwargs or {}))
        except AttributeError as error:
            raise misplaced(error, name, NestedTensor) from None

    _asks_for_own_form = True

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Operators that are met by another way than a public function: none reads memory that is not there."""
        raise NotImplementedError(f"{func.operator.name}: not defined for nested tensors; use unbind() first")

    @property
    def _first(self) -> Tensor:
        """A tensor that says what is alike in all parts."""
        return next(iter(self._roots), _no_part())

    @property
    def _rank(self) -> int:
        """How many dimensions there are: those of a part and that of the parts, which is alone where there is none."""
        return 1 + (self._first.dim() if self._roots else 0)

    # As programs ask for them that look inside.

    @property
    def _values(self) -> Tensor:
        return _table["values"](self)  # type: ignore[no-any-return]

    @property
    def _offsets(self) -> Tensor:
        return _table["offsets"](self)  # type: ignore[no-any-return]

    @property
    def _lengths(self) -> Tensor | None:
        return self._holes

    @property
    def _ragged_idx(self) -> int:
        return self._at

    def _counted(self) -> tuple[int, ...]:
        """How long each part is where they differ."""
        return self._lines if self._whole is not None else tuple(p.shape[self._at - 1] for p in self._kept)

    @property
    def _max_seqlen(self) -> int:
        return max(self._counted())

    @property
    def _min_seqlen(self) -> int:
        return min(self._counted())

    _maybe_max_seqlen, _maybe_min_seqlen = _max_seqlen, _min_seqlen

    def _get_max_seqlen(self) -> int:
        return self._max_seqlen

    def _get_min_seqlen(self) -> int:
        return self._min_seqlen

    def _nested_tensor_size(self) -> Tensor:
        return _C.tensor([list(part.shape) for part in self._parts], dtype=_C.int64, device="cpu")

    def _nested_tensor_strides(self) -> Tensor:
        return _C.tensor([list(part.stride()) for part in self._parts], dtype=_C.int64, device="cpu")

    def __repr__(self) -> str:
        if self._way is _info.jagged:
            graph = (
                f", grad_fn={self.grad_fn}"
                if self.grad_fn
                else ", requires_grad=True"
                if self.requires_grad
                else ""
            )
            together = self.is_contiguous()
            return f"NestedTensor(size={tuple(self.shape)}, offsets={self.offsets()}{graph}, contiguous={together})"
        inner = ",\n  ".join(repr(p).replace("\n", "\n  ") for p in self._parts)
        return f"nested_tensor([\n  {inner}\n])"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Any:
        return iter(self._parts)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._whole is not None:
            return restored, (self._whole, self._borders, self._lines)
        return restored, (self._kept, self._way, self._at)

    def __copy__(self) -> NestedTensor:
        import copy

        return self._made_of([copy.copy(root) for root in self._roots])

    def __deepcopy__(self, memo: dict[int, Any]) -> NestedTensor:
        import copy

        made = self._made_of([copy.deepcopy(root, memo) for root in self._roots])
        memo[id(self)] = made
        return made

    __hash__ = Tensor.__hash__


def restored(first: Any, second: Any, third: Any) -> NestedTensor:
    """A nested tensor of what it was pickled by: all lines, borders and numbers of lines, or parts, layout and the
    dimension in which they differ."""
    if isinstance(first, Tensor):
        return NestedTensor.packed(first, second, tuple(third))
    return NestedTensor.around(first, second, third)


def borders_of(lines: Sequence[int], device: Any) -> Tensor:
    """Where parts of so many lines begin, and where the last one ends."""
    return _C.tensor([0, *accumulate(lines)], dtype=_C.int64, device=device)


# Functions that do with each line alone what they do with one part: they take all lines at once. Of those that are
# called for each part this holds for all but these.
_OF_WHOLE_PARTS = frozenset({"scaled_dot_product_attention", "matmul", "__matmul__"})


def _through_lines(name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> NestedTensor | None:
    """What a function of lines makes of all lines at once; None where operands do not lie so."""
    every = [v for v in (*args, *kwargs.values()) if isinstance(v, NestedTensor)]
    first = every[0]
    if name in _OF_WHOLE_PARTS and (len(every) > 1 or args[0] is not first or args[1].dim() != 2):
        return None
    if any(v._whole is None or v._lines != first._lines for v in every):
        return None
    if name in ("layer_norm", "rms_norm") and len(_as_sizes(args, kwargs)) >= first._rank - 1:
        return None
    whole = first._whole
    given = name in _for_each or name in _OF_WHOLE_PARTS  # weights are taken as they are

    def line_of(value: Any) -> Any:
        if isinstance(value, NestedTensor):
            return value._whole
        if not isinstance(value, Tensor) or given:
            return value
        if value.dim() == first._rank and value.shape[0] == value.shape[1] == 1:
            return value[0, 0]
        if value.dim() > first._rank - 2:
            raise _Spread
        return value

    try:
        made = function(*map(line_of, args), **{k: line_of(v) for k, v in kwargs.items()})
    except _Spread:
        return None
    if made is whole:
        return first
    return first.like(made)


class _Spread(Exception):
    """A tensor has a size for the lines."""


def _as_sizes(args: Any, kwargs: Any) -> tuple[int, ...]:
    sizes = kwargs.get("normalized_shape", args[1] if len(args) > 1 else ())
    return as_tuple(sizes)


def _parts_of(value: Any, count: int, rank: int, name: str) -> list[Any]:
    """An operand for each part."""
    if isinstance(value, NestedTensor):
        if value._count != count:
            raise RuntimeError(
                f"{name}: found nested tensors of {count} and {value._count} parts, expected one number"
            )
        return list(value._parts)
    return [_part_of(value, i, count, rank, name) for i in range(count)]


def _part_of(value: Any, i: int, count: int, rank: int, name: str) -> Any:
    if isinstance(value, Tensor) and value.dim() > 2 and name not in _for_each:
        if value.shape[0] == count:
            return value[i]
        if value.shape[0] == 1 and value.dim() == rank:
            return value[0]
    return value


def _fitting(name: str, every: list[NestedTensor]) -> None:
    """Raises RuntimeError where parts of two nested tensors differ in length along a dimension that is irregular."""
    if len({x._count for x in every}) > 1 or len({x._rank for x in every if x._count}) > 1:
        return  # refused elsewhere
    if every[0]._whole is not None and all(
        x._whole is not None and x._lines == every[0]._lines and x._whole.shape == every[0]._whole.shape
        for x in every
    ):
        return
    for sizes in zip(*(zip(*(p.shape for p in x._parts), strict=True) for x in every), strict=True):
        kinds = {column for column in sizes if set(column) != {1}}
        if len(kinds) > 1 and any(len(set(column)) > 1 for column in kinds):
            raise RuntimeError(
                f"cannot call binary pointwise function {name} on nested tensors whose parts differ: found sizes "
                f"{' and '.join(map(str, map(list, kinds)))} along one dimension"
            )


def by_parts(name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> NestedTensor:
    """What a function makes of each part alone; the first nested tensor itself, where it writes into its parts."""
    every = [v for v in (*args, *kwargs.values()) if isinstance(v, NestedTensor)]
    first = every[0]
    count = first._count
    if len(every) > 1 and "matmul" not in name and name != "scaled_dot_product_attention":
        _fitting(name, every)
    if (
        first._whole is not None
        and (made_at_once := _through_lines(name, function, args, kwargs)) is not None
    ):
        return made_at_once
    parts = first._parts
    columns = [parts if v is first else _parts_of(v, count, first._rank, name) for v in args]
    named = {k: parts if v is first else _parts_of(v, count, first._rank, name) for k, v in kwargs.items()}
    made = [
        function(*(column[i] for column in columns), **{k: column[i] for k, column in named.items()})
        for i in range(count)
    ]
    if all(new is part for new, part in zip(made, parts, strict=True)):
        return first
    if first._whole is not None and made and all(m.dim() == first._rank - 1 for m in made):
        return NestedTensor.in_lines(made)
    return NestedTensor.around(made, first._way, first._at)


def _weights(x: NestedTensor, gradient: Any) -> list[Any]:
    shapes = [p.shape for p in x._parts]
    if not isinstance(gradient, NestedTensor) or [p.shape for p in gradient._parts] != shapes:
        raise RuntimeError(
            "grad: the gradient of a nested tensor must be nested, of parts of the same shapes"
        )
    if x._whole is None:
        return list(gradient._parts)
    return [gradient._whole if gradient._whole is not None else _C.cat(list(gradient._parts))]


_INNER = Inner(
    NestedTensor,
    lambda x: x,
    lambda x: x._roots,
    _weights,
    lambda x, grads: x._made_of(grads),
)
