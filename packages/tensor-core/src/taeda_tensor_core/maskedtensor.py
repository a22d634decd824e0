"""Tensors with a mask that says which of their elements are there: `taeda.masked.MaskedTensor`.

What is computed is computed on the elements that are there; the others have no value. The functions of `taeda.masked`
do the same with a tensor and a mask as arguments, and are what reductions here are made of.

Example:
    >>> x = taeda.masked.masked_tensor(taeda.tensor([1.0, 2.0, 3.0]), taeda.tensor([True, False, True]))
    >>> x.mean()
    MaskedTensor(  2.0000, True)
"""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable
from typing import Any

from taeda_tensor_core import _C, _info
from taeda_tensor_core._C import Tensor
from taeda_tensor_core._inner_gradients import Inner, is_of_engine, through_inner
from taeda_tensor_core._printing import formatted
from taeda_tensor_core.overrides import misplaced, path_of

_table: dict[str, Callable[..., Any]] = {}


class MaskedTensor(Tensor):
    """A tensor and a mask of its shape.

    Args:
        data: The elements. mask: bool, of the same shape; True where an element is there.
        requires_grad: Whether gradients are kept, as `grad`, with the same mask.

    Raises:
        TypeError: No tensors, or a mask of another dtype. ValueError: Another shape.
    """

    _data: Tensor
    _mask: Tensor

    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
        if not isinstance(data, Tensor) or not isinstance(mask, Tensor):
            raise TypeError("MaskedTensor: arguments 'data' and 'mask' must be tensors")
        if mask.dtype is not _C.bool:
            raise TypeError(f"MaskedTensor: argument 'mask' has dtype {mask.dtype}, expected bool")
        if data.shape != mask.shape:
            raise ValueError(
                f"MaskedTensor: argument 'mask' has shape {tuple(mask.shape)}, expected {tuple(data.shape)} as 'data'"
            )
        made = Tensor._make_wrapper_subclass(cls, tuple(data.shape), dtype=data.dtype, device=data.device)
        made._data, made._mask = data, mask
        if requires_grad:
            data.requires_grad_()
        return made

    def __init__(self, data: Any, mask: Any, requires_grad: bool = False) -> None:
        pass

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        parts = path_of(func)
        if is_of_engine(parts) and parts[-2] != "Tensor":
            return through_inner(_INNER, func, args, kwargs)
        name = parts[-2] if parts[-1] == "__get__" else parts[-1]
        known = _table.get(name)
        if known is None:
            raise _undefined(name)
        try:
            return known(*args, **(kwargs or {}))
        except AttributeError as error:
            raise misplaced(error, name, MaskedTensor) from None

    _asks_for_own_form = True

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Operators that are met by another way than a public function: none reads memory that is not there."""
        name = func.operator.name.partition(".")[0]
        known = _table.get(name)
        if known is None:
            raise _undefined(func.operator.name)
        return known(*args, **(kwargs or {}))

    def get_data(self) -> Tensor:
        """The elements, also those that are not there."""
        return self._data

    def get_mask(self) -> Tensor:
        """Where elements are."""
        return self._mask

    def to_tensor(self, value: float) -> Tensor:
        """The elements, and `value` where there are none."""
        return self._data.masked_fill(~self._mask, value)

    def __repr__(self) -> str:
        return _text(self)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return formatted(self, spec)

    def __len__(self) -> int:
        return len(self._data)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return MaskedTensor, (self._data, self._mask)

    def __copy__(self) -> MaskedTensor:
        return MaskedTensor(self._data, self._mask)

    def __deepcopy__(self, memo: dict[int, Any]) -> MaskedTensor:
        import copy

        made = MaskedTensor(copy.deepcopy(self._data, memo), copy.deepcopy(self._mask, memo))
        memo[id(self)] = made
        return made

    __hash__ = Tensor.__hash__


class _Undefined(NotImplementedError, TypeError):
    """No form for masked tensors: a TypeError too, as where no class of tensors answers for a function."""


def _undefined(name: str) -> NotImplementedError:
    return _Undefined(f"{name}: not defined for masked tensors; use to_tensor(value) or get_data() first")


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A masked tensor of its own: a copy of `data` without its history.

    Raises:
        TypeError: No tensors, or a mask of another dtype. ValueError: A mask of another shape.

    Example:
        >>> taeda.masked.masked_tensor(taeda.ones(2), taeda.tensor([True, False])).to_tensor(0.0)
        tensor([1., 0.])
    """
    data = _checked("masked_tensor", data, mask)
    if data.requires_grad:
        warnings.warn(
            "masked_tensor: It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid "
            "this, you can use data.detach().clone()",
            UserWarning,
            stacklevel=2,
        )
    return MaskedTensor(data.detach().clone(), mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """A masked tensor of the very `data`, whose history it keeps; it is refused as `masked_tensor` refuses."""
    return MaskedTensor(_checked("as_masked_tensor", data, mask), mask)


def _checked(name: str, data: Any, mask: Any) -> Any:
    """The data, at the places of the mask where both are sparse and have another number of them.

    Raises:
        TypeError: No tensors, or another layout. ValueError: As many places, which are others.
    """
    for argument, value in (("data", data), ("mask", mask)):
        if not isinstance(value, Tensor) or isinstance(value, MaskedTensor):
            raise TypeError(
                f"{name}: argument {argument!r} is a {type(value).__name__}, expected a tensor: {argument} must be a "
                "Tensor"
            )
    if data.layout is not mask.layout:
        raise TypeError(
            f"{name}: data and mask must have the same layout, found {data.layout} and {mask.layout}"
        )
    if data.layout is _info.strided:
        return data
    known = {_info.sparse_coo: ("_indices",), _info.sparse_csr: ("crow_indices", "col_indices")}
    if data.layout not in known:
        raise TypeError(f"{name}: data layout of {data.layout} is not supported")
    one, other = (x.coalesce() if data.layout is _info.sparse_coo else x for x in (data, mask))
    if one._nnz() != other._nnz() and data.shape == mask.shape:
        return data.to_dense().sparse_mask(other)
    for part in known[data.layout]:
        places = getattr(one, part)(), getattr(other, part)()
        if places[0].shape != places[1].shape or not _C.equal(*places):
            kind = "COO" if data.layout is _info.sparse_coo else "CSR"
            raise ValueError(
                f"{name}: data and mask are both sparse {kind} tensors but do not share the same indices."
            )
    return one


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether an object is a masked tensor."""
    return issubclass(type(obj), MaskedTensor)


_HIDDEN = "--"


def _text(x: MaskedTensor) -> str:
    def shown(data: Any, mask: Any) -> Any:
        if isinstance(data, list):
            return [shown(d, m) for d, m in zip(data, mask, strict=True)]
        if not mask:
            return _HIDDEN
        return f"{data:8.4f}" if isinstance(data, float) else str(data)

    def longest(rows: Any) -> int:
        return len(rows) if isinstance(rows, str) else max(map(longest, rows), default=0)

    def text(rows: Any, indent: int) -> str:
        if isinstance(rows, str):
            return rows
        if not rows or isinstance(rows[0], str):
            return "[" + ", ".join(row.rjust(width) if row is _HIDDEN else row for row in rows) + "]"
        pad = "\n" + " " * (indent + 2)
        return "[" + ",".join(pad + text(row, indent + 2) for row in rows) + "\n" + " " * indent + "]"

    mask = _plain(x._mask)
    rows = shown(_plain(x._data.detach()).tolist(), mask.tolist())
    if isinstance(rows, str):
        return f"MaskedTensor({rows}, {bool(mask)})"
    width = max(8, longest(rows))
    return f"MaskedTensor(\n  {text(rows, 2)}\n)"


_INNER = Inner(
    MaskedTensor,
    lambda x: x,
    lambda x: [x._data],
    lambda x, gradient: [gradient._data if isinstance(gradient, MaskedTensor) else gradient],
    lambda x, grads: MaskedTensor(grads[0], x._mask),
)


# Facts

_ATTRIBUTES: dict[str, Callable[[MaskedTensor], Any]] = {
    "shape": lambda x: x._data.shape,
    "dtype": lambda x: x._data.dtype,
    "device": lambda x: x._data.device,
    "ndim": lambda x: x._data.ndim,
    "layout": lambda x: x._data.layout,
    "requires_grad": lambda x: x._data.requires_grad,
    "is_leaf": lambda x: x._data.is_leaf,
    "grad_fn": lambda x: x._data.grad_fn,
    "grad": lambda x: None if x._data.grad is None else MaskedTensor(x._data.grad, x._mask),
    "is_sparse": lambda x: x._data.is_sparse,
    "is_nested": lambda x: False,
    "is_quantized": lambda x: False,
    "itemsize": lambda x: x._data.itemsize,
    "data": lambda x: MaskedTensor(x._data.detach(), x._mask),
}
for _name, _kind in vars(Tensor).items():  # what kind of device the data are on
    if _name.startswith("is_") and isinstance(_kind, types.GetSetDescriptorType):
        _ATTRIBUTES.setdefault(_name, lambda x, _name=_name: getattr(x._data, _name))
_table.update(_ATTRIBUTES)
for _name in ("size", "dim", "ndimension", "numel", "nelement", "is_floating_point", "is_complex", "element_size",
              "backward", "item", "stride", "storage_offset", "get_device", "is_signed"):  # fmt: skip
    _table[_name] = lambda x, *args, _name=_name, **kwargs: getattr(x._data, _name)(*args, **kwargs)


def _is_contiguous(self: MaskedTensor, *args: Any, **kwargs: Any) -> bool:
    if self._data.layout is not _info.strided:
        raise ValueError("MaskedTensors with sparse data do not have is_contiguous")
    return bool(self._data.is_contiguous(*args, **kwargs))


_table["is_contiguous"] = _is_contiguous


# Element by element: the mask stays


def _elementwise(name: str) -> None:
    function = getattr(Tensor, name, None) or getattr(_C, name)

    def apply(*args: Any, **kwargs: Any) -> MaskedTensor:
        mask = _mask_of(name, args)
        if mask.layout is not _info.strided:
            return _rebuilt(function(*(_stored(a, mask) for a in args), **kwargs), mask)
        made = function(*(a._data if isinstance(a, MaskedTensor) else a for a in args), **kwargs)
        return MaskedTensor(made, mask if mask.shape == made.shape else mask.expand(made.shape))

    apply.__name__ = name
    _table[name] = apply
    in_place = "__i" + name.removeprefix("__") if name.startswith("__") else f"{name}_"
    if hasattr(Tensor, in_place):
        _written(in_place)


def _written(name: str) -> None:
    """The form that writes to its first operand, whose mask stays."""
    function = getattr(Tensor, name)

    def write(self: Any, *args: Any, **kwargs: Any) -> MaskedTensor:
        if not isinstance(self, MaskedTensor):
            raise TypeError(f"{name}: a masked tensor cannot be written to a tensor without a mask")
        if _mask_of(name, (self, *args)).layout is not _info.strided:
            stored = _stored(self, self._mask)
            function(stored, *(_stored(a, self._mask) for a in args), **kwargs)
            self._data = _rebuilt(stored, self._mask)._data
            return self
        function(self._data, *(a._data if isinstance(a, MaskedTensor) else a for a in args), **kwargs)
        return self

    write.__name__ = name
    _table[name] = write


def _mask_of(name: str, args: tuple[Any, ...]) -> Tensor:
    """The mask of all operands that have one."""
    masks = [a._mask for a in args if isinstance(a, MaskedTensor)]
    if any(not _same(masks[0], mask) for mask in masks[1:]):
        raise ValueError(f"{name}: Input masks must match; take the elements of both by get_data()")
    return masks[0]


def _same(one: Tensor, other: Tensor) -> bool:
    if one.layout is not other.layout:
        return False
    return _C.equal(_plain(one), _plain(other))


def _stored(value: Any, mask: Tensor) -> Any:
    """The elements that are there, of a tensor whose mask keeps places alone."""
    if not isinstance(value, MaskedTensor):
        return value
    return _plain(value._data).sparse_mask(mask).values()


def _rebuilt(values: Tensor, mask: Tensor) -> MaskedTensor:
    """The masked tensor that has these elements where a mask keeps places."""
    from taeda_tensor_core import sparse_compressed_tensor, sparse_coo_tensor

    if mask.layout is _info.sparse_coo:
        data = sparse_coo_tensor(mask.coalesce().indices(), values, tuple(mask.shape))
    else:
        by_rows = mask.layout is _info.sparse_csr
        places = (
            (mask.crow_indices(), mask.col_indices())
            if by_rows
            else (mask.ccol_indices(), mask.row_indices())
        )
        data = sparse_compressed_tensor(*places, values, tuple(mask.shape), layout=mask.layout)
    return MaskedTensor(data, mask)


def _plain(x: Tensor) -> Tensor:
    return x if x.layout is _info.strided else x.to_dense()


_UNARY = (
    "abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh "
    "bitwise_not ceil clamp clip conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix "
    "floor frac i0 isnan isinf isfinite lgamma log log10 log1p log2 logit nan_to_num neg negative positive pow "
    "rad2deg reciprocal round rsqrt sgn sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc relu "
    "clone detach contiguous to float double half bfloat16 int long short char byte bool cpu ones_like"
)
_BINARY = (
    "add sub subtract mul multiply div divide true_divide floor_divide remainder fmod arctan2 atan2 maximum "
    "minimum fmax fmin hypot logaddexp logaddexp2 nextafter bitwise_left_shift bitwise_right_shift greater "
    "greater_equal less less_equal not_equal bitwise_and bitwise_or bitwise_xor logical_and logical_or "
    "logical_xor eq ne lt le gt ge __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ "
    "__pow__ __neg__ __abs__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __and__ __or__ __invert__"
)
for _name in (*_UNARY.split(), *_BINARY.split()):
    _elementwise(_name)


def _contiguous(self: MaskedTensor, *args: Any, **kwargs: Any) -> MaskedTensor:
    _is_contiguous(self)  # refuses sparse data
    return MaskedTensor(self._data.contiguous(*args, **kwargs), self._mask.contiguous())


_table["contiguous"] = _contiguous


# Shapes: data and mask go together


def _moved(name: str) -> None:
    function = getattr(Tensor, name)

    def moved(self: MaskedTensor, *args: Any, **kwargs: Any) -> Any:
        args = tuple(a._data if isinstance(a, MaskedTensor) else a for a in args)
        data, mask = function(self._data, *args, **kwargs), function(self._mask, *args, **kwargs)
        if isinstance(data, (tuple, list)):
            return tuple(MaskedTensor(d, m) for d, m in zip(data, mask, strict=True))
        return MaskedTensor(data, mask)

    moved.__name__ = name
    _table[name] = moved


_MOVES = (
    "view reshape flatten transpose permute t squeeze unsqueeze expand expand_as narrow select index_select unbind "
    "chunk split flip __getitem__ unfold repeat movedim swapaxes diagonal ravel"
)
for _name in _MOVES.split():
    _moved(_name)


def _joined(name: str) -> None:
    function = getattr(_C, name)
    _table[name] = lambda tensors, dim=0: MaskedTensor(
        function([t._data for t in tensors], dim), function([t._mask for t in tensors], dim)
    )


for _name in ("cat", "stack"):
    _joined(_name)


# Reductions over what is there


def _reduced(name: str) -> None:
    function = getattr(_C.masked, name)

    def reduced(
        self: MaskedTensor, dim: Any = None, *args: Any, keepdim: bool = False, **kwargs: Any
    ) -> MaskedTensor:
        mask = _plain(self._mask)
        found = function(_plain(self._data), *args, dim=dim, keepdim=keepdim, mask=mask, **kwargs)
        there = mask.any() if dim is None else mask.any(dim, keepdim)
        return MaskedTensor(found, there if there.shape == found.shape else there.reshape(found.shape))

    reduced.__name__ = name
    _table[name] = reduced


for _name in ("sum", "mean", "amax", "amin", "prod", "argmax", "argmin", "var", "std", "norm"):
    _reduced(_name)


def _all(self: MaskedTensor, dim: Any = None, keepdim: bool = False) -> MaskedTensor:
    mask = _plain(self._mask)
    data = _plain(self._data).bool() | ~mask
    if dim is None:
        return MaskedTensor(data.all(), mask.any())
    return MaskedTensor(data.all(dim, keepdim), mask.any(dim, keepdim))


_table["all"] = _all


def _along(name: str) -> None:
    function = getattr(_C.masked, name)

    def along(self: MaskedTensor, dim: int, **kwargs: Any) -> MaskedTensor:
        kwargs = {key: value for key, value in kwargs.items() if key == "dtype" and value is not None}
        return MaskedTensor(function(self._data, dim, mask=self._mask, **kwargs), self._mask)

    along.__name__ = name
    _table[name] = along


for _name in ("softmax", "log_softmax", "softmin"):
    _along(_name)


def _where(condition: Any, input: Any, other: Any) -> MaskedTensor:
    """Elements of two masked tensors; those that are there where they are taken from."""
    condition = condition._data if isinstance(condition, MaskedTensor) else condition
    parts = [
        x if isinstance(x, MaskedTensor) else MaskedTensor(x, _C.ones_like(x, dtype=_C.bool))
        for x in (input, other)
    ]
    return MaskedTensor(
        _C.where(condition, parts[0]._data, parts[1]._data),
        _C.where(condition, parts[0]._mask, parts[1]._mask),
    )


_table["where"] = _where


def _dense(self: MaskedTensor) -> MaskedTensor:
    return MaskedTensor(_plain(self._data), _plain(self._mask))


def _sparse(name: str) -> None:
    function = getattr(Tensor, name)

    def sparse(self: MaskedTensor) -> MaskedTensor:
        mask = function(_plain(self._mask))
        return MaskedTensor(_plain(self._data).sparse_mask(mask), mask)

    sparse.__name__ = name
    _table[name] = sparse


_table["to_dense"] = _dense
for _name in ("to_sparse", "to_sparse_coo", "to_sparse_csr"):
    _sparse(_name)


def _requires_grad(self: MaskedTensor, requires_grad: bool = True) -> MaskedTensor:
    self._data.requires_grad_(requires_grad)
    return self


_table["requires_grad_"] = _requires_grad


def _bind() -> None:
    """Make everything in the table a method or property: those of dense tensors would not ask."""
    for name, function in _table.items():
        setattr(MaskedTensor, name, property(function) if name in _ATTRIBUTES else function)


_bind()
