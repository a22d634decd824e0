"""The tensor that wraps parts of several sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from taeda_tensor_core import _C, _info
from taeda_tensor_core._C import Tensor
from taeda_tensor_core._inner_gradients import Inner, is_of_engine, through_inner
from taeda_tensor_core.overrides import misplaced, path_of

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


def nested(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: what functions of these names compute where a nested tensor is among their arguments."""

    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        _table.update(dict.fromkeys(names, function))
        return function

    return put


def _no_part() -> Tensor:
    """What stands for the parts where there is none."""
    return _C.empty((0,))


class NestedTensor(Tensor):
    """Tensors of one dtype and number of dimensions as one. Made by `nested_tensor` and `as_nested_tensor`.

    Attributes:
        layout: "strided" or "jagged".
    """

    _parts: tuple[Tensor, ...]
    _way: Any

    @staticmethod
    def around(parts: Sequence[Tensor], way: Any) -> NestedTensor:
        """The nested tensor of parts that fit together."""
        sizes = [max(column) for column in zip(*(p.shape for p in parts), strict=True)] if parts else []
        first = parts[0] if parts else _no_part()
        made = Tensor._make_wrapper_subclass(
            NestedTensor, (len(parts), *sizes), dtype=first.dtype, device=first.device
        )
        made._parts, made._way = tuple(parts), way
        return made

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        parts = path_of(func)
        name = parts[-1]
        if is_of_engine(parts) and parts[-2] != "Tensor":  # the method has a form of its own
            return through_inner(_INNER, func, args, kwargs)
        if name in ("__get__", "__set__"):
            name = parts[-2] if name == "__get__" else f"{parts[-2]}{name}"
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
        """The part that says what is alike in all."""
        return self._parts[0] if self._parts else _no_part()

    @property
    def _rank(self) -> int:
        """How many dimensions there are: those of a part and that of the parts, which is alone where there is none."""
        return 1 + (self._parts[0].dim() if self._parts else 0)

    # As programs ask for them that look inside.

    @property
    def _values(self) -> Tensor:
        return _table["values"](self)  # type: ignore[no-any-return]

    @property
    def _offsets(self) -> Tensor:
        return _table["offsets"](self)  # type: ignore[no-any-return]

    @property
    def _lengths(self) -> None:
        return None

    @property
    def _ragged_idx(self) -> int:
        return 1

    @property
    def _max_seqlen(self) -> int:
        return max(part.shape[0] for part in self._parts)

    @property
    def _min_seqlen(self) -> int:
        return min(part.shape[0] for part in self._parts)

    def _nested_tensor_size(self) -> Tensor:
        return _C.tensor([list(part.shape) for part in self._parts], dtype=_C.int64)

    def _nested_tensor_strides(self) -> Tensor:
        return _C.tensor([list(part.stride()) for part in self._parts], dtype=_C.int64)

    def __repr__(self) -> str:
        if self._way is _info.jagged:
            graph = (
                f", grad_fn={self.grad_fn}"
                if self.grad_fn
                else ", requires_grad=True"
                if self.requires_grad
                else ""
            )
            return f"NestedTensor(size={tuple(self.shape)}, offsets={self.offsets()}{graph}, contiguous=True)"
        inner = ",\n  ".join(repr(p).replace("\n", "\n  ") for p in self._parts)
        return f"nested_tensor([\n  {inner}\n])"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __len__(self) -> int:
        return len(self._parts)

    def __iter__(self) -> Any:
        return iter(self._parts)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return NestedTensor.around, (self._parts, self._way)

    def __copy__(self) -> NestedTensor:
        import copy

        return NestedTensor.around([copy.copy(part) for part in self._parts], self._way)

    def __deepcopy__(self, memo: dict[int, Any]) -> NestedTensor:
        import copy

        return NestedTensor.around([copy.deepcopy(part, memo) for part in self._parts], self._way)

    __hash__ = Tensor.__hash__


def _part_of(value: Any, i: int, count: int, name: str) -> Any:
    if isinstance(value, NestedTensor):
        if len(value._parts) != count:
            raise RuntimeError(
                f"{name}: found nested tensors of {count} and {len(value._parts)} parts, expected one number"
            )
        return value._parts[i]
    if isinstance(value, Tensor) and value.dim() and value.shape[0] == count and value.dim() > 2:
        return value[i]
    return value


def _fitting(name: str, every: list[NestedTensor]) -> None:
    """Raises RuntimeError where parts of two nested tensors differ in length along a dimension that is irregular."""
    if len({len(x._parts) for x in every}) > 1 or len({x._parts[0].dim() for x in every if x._parts}) > 1:
        return  # refused elsewhere
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
    count = len(first._parts)
    if len(every) > 1 and "matmul" not in name:
        _fitting(name, every)
    made = [
        function(
            *(_part_of(v, i, count, name) for v in args),
            **{k: _part_of(v, i, count, name) for k, v in kwargs.items()},
        )
        for i in range(count)
    ]
    if all(new is part for new, part in zip(made, first._parts, strict=True)):
        return first
    return NestedTensor.around(made, first._way)


def _weights(x: NestedTensor, gradient: Any) -> list[Any]:
    parts = gradient._parts if isinstance(gradient, NestedTensor) else None
    if parts is None or [p.shape for p in parts] != [p.shape for p in x._parts]:
        raise RuntimeError(
            "grad: the gradient of a nested tensor must be nested, of parts of the same shapes"
        )
    return list(parts)


_INNER = Inner(
    NestedTensor,
    lambda x: x,
    lambda x: list(x._parts),
    _weights,
    lambda x, grads: NestedTensor.around(grads, x._way),
)
