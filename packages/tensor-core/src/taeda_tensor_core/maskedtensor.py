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
    """A tensor and a mask of its shape, copies without history.

    Args:
        data: The elements. mask: bool, of the same shape; True where an element is there.
        requires_grad: Whether gradients are kept, as `grad`, with the same mask.

    Raises:
        TypeError: No tensors, a mask of another dtype, or another layout. ValueError: Another shape, or other places.
    """

    _masked_data: Tensor
    _masked_mask: Tensor

    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
        data = _checked("MaskedTensor", data, mask).detach().clone()
        return _wrapped(data.requires_grad_() if requires_grad else data, mask.clone(), cls)

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
        return self._masked_data

    def get_mask(self) -> Tensor:
        """Where elements are."""
        return self._masked_mask

    def to_tensor(self, value: float) -> Tensor:
        """The elements, and `value` where there are none."""
        return self._masked_data.masked_fill(~self._masked_mask, value)

    def __repr__(self) -> str:
        return _text(self)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return formatted(self, spec)

    def __len__(self) -> int:
        return len(self._masked_data)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return MaskedTensor, (self._masked_data, self._masked_mask)

    def __copy__(self) -> MaskedTensor:
        return _wrapped(self._masked_data, self._masked_mask)

    def __deepcopy__(self, memo: dict[int, Any]) -> MaskedTensor:
        import copy

        made = _wrapped(copy.deepcopy(self._masked_data, memo), copy.deepcopy(self._masked_mask, memo))
        memo[id(self)] = made
        return made

    __hash__ = Tensor.__hash__


def _wrapped(data: Tensor, mask: Tensor, kind: type[MaskedTensor] = MaskedTensor) -> MaskedTensor:
    """The masked tensor that shares these parts and has their history."""
    made = Tensor._make_wrapper_subclass(kind, tuple(data.shape), dtype=data.dtype, device=data.device)
    made._masked_data, made._masked_mask = data, mask
    return made


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
    if isinstance(data, Tensor) and data.requires_grad:
        warnings.warn(
            "masked_tensor: It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid "
            "this, you can use data.detach().clone()",
            UserWarning,
            stacklevel=2,
        )
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """A masked tensor of a copy of `data` that keeps its history; it is refused as `masked_tensor` refuses."""
    return _wrapped(_checked("as_masked_tensor", data, mask).clone(), mask.clone())


def _checked(name: str, data: Any, mask: Any) -> Any:
    """The data, at the places of the mask where both are sparse and have another number of them.

    Raises:
        TypeError: No tensors, a mask of another dtype, or another layout. ValueError: Another shape, or as many
            places, which are others.
    """
    for argument, value in (("data", data), ("mask", mask)):
        if not isinstance(value, Tensor) or isinstance(value, MaskedTensor):
            raise TypeError(
                f"{name}: argument {argument!r} is a {type(value).__name__}, expected a tensor: {argument} must be a "
                "Tensor"
            )
    if mask.dtype is not _C.bool:
        raise TypeError(f"{name}: argument 'mask' has dtype {mask.dtype}, expected bool")
    if data.shape != mask.shape:
        raise ValueError(
            f"{name}: argument 'mask' has shape {tuple(mask.shape)}, expected {tuple(data.shape)} as 'data'"
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
    if one._nnz() != other._nnz():
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

    mask = _plain(x._masked_mask)
    rows = shown(_plain(x._masked_data.detach()).tolist(), mask.tolist())
    if isinstance(rows, str):
        return f"MaskedTensor({rows}, {bool(mask)})"
    width = max(8, longest(rows))
    return f"MaskedTensor(\n  {text(rows, 2)}\n)"


_INNER = Inner(
    MaskedTensor,
    lambda x: x,
    lambda x: [x._masked_data],
    lambda x, gradient: [gradient._masked_data if isinstance(gradient, MaskedTensor) else gradient],
    lambda x, grads: _wrapped(grads[0], x._masked_mask),
)


# Facts

_ATTRIBUTES: dict[str, Callable[[MaskedTensor], Any]] = {
    "shape": lambda x: x._masked_data.shape,
    "dtype": lambda x: x._masked_data.dtype,
    "device": lambda x: x._masked_data.device,
    "ndim": lambda x: x._masked_data.ndim,
    "layout": lambda x: x._masked_data.layout,
    "requires_grad": lambda x: x._masked_data.requires_grad,
    "is_leaf": lambda x: x._masked_data.is_leaf,
    "grad_fn": lambda x: x._masked_data.grad_fn,
    "grad": lambda x: None if x._masked_data.grad is None else _wrapped(x._masked_data.grad, x._masked_mask),
    "is_sparse": lambda x: x._masked_data.is_sparse,
    "is_nested": lambda x: False,
    "is_quantized": lambda x: False,
    "itemsize": lambda x: x._masked_data.itemsize,
    "data": lambda x: _wrapped(x._masked_data.detach(), x._masked_mask),
}
for _name, _kind in vars(Tensor).items():  # what kind of device the data are on
    if _name.startswith("is_") and isinstance(_kind, types.GetSetDescriptorType):
        _ATTRIBUTES.setdefault(_name, lambda x, _name=_name: getattr(x._masked_data, _name))
_table.update(_ATTRIBUTES)
for _name in ("size", "dim", "ndimension", "numel", "nelement", "is_floating_point", "is_complex", "element_size",
              "backward", "stride", "storage_offset", "get_device", "is_signed"):  # fmt: skip
    _table[_name] = lambda x, *args, _name=_name, **kwargs: getattr(x._masked_data, _name)(*args, **kwargs)


def _read(name: str) -> None:
    """A form that reads the one element, which must be there."""
    function = getattr(Tensor, name)

    def read(self: MaskedTensor) -> Any:
        if self._masked_data.numel() == 1 and not _plain(self._masked_mask):
            raise ValueError(
                f"{name}: the element of the masked tensor is not there; use to_tensor(value) first"
            )
        return function(self._masked_data)

    read.__name__ = name
    _table[name] = read


for _name in ("item", "__bool__", "__int__", "__float__", "__complex__", "__index__"):
    _read(_name)


def _is_contiguous(self: MaskedTensor, *args: Any, **kwargs: Any) -> bool:
    if self._masked_data.layout is not _info.strided:
        raise ValueError("MaskedTensors with sparse data do not have is_contiguous")
    return bool(self._masked_data.is_contiguous(*args, **kwargs))


_table["is_contiguous"] = _is_contiguous


# Element by element: the mask stays


def _elementwise(name: str) -> None:
    function = getattr(Tensor, name, None) or getattr(_C, name)

    def apply(*args: Any, **kwargs: Any) -> MaskedTensor:
        mask = _mask_of(name, args)
        if mask.layout is not _info.strided:
            return _rebuilt(function(*(_stored(a, mask) for a in args), **kwargs), mask)
        made = function(*(a._masked_data if isinstance(a, MaskedTensor) else a for a in args), **kwargs)
        return _wrapped(made, mask if mask.shape == made.shape else mask.expand(made.shape))

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
            stored = _stored(self, self._masked_mask)
            function(stored, *(_stored(a, self._masked_mask) for a in args), **kwargs)
            self._masked_data = _rebuilt(stored, self._masked_mask)._masked_data
            return self
        function(
            self._masked_data, *(a._masked_data if isinstance(a, MaskedTensor) else a for a in args), **kwargs
        )
        return self

    write.__name__ = name
    _table[name] = write


def _mask_of(name: str, args: tuple[Any, ...]) -> Tensor:
    """The mask of all operands that have one."""
    masks = [a._masked_mask for a in args if isinstance(a, MaskedTensor)]
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
    return _plain(value._masked_data).sparse_mask(mask).values()


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
    return _wrapped(data, mask)


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


def _type(self: MaskedTensor, dtype: Any = None, **kwargs: Any) -> Any:
    made = self._masked_data.type(dtype, **kwargs)
    return made if dtype is None else _wrapped(made, self._masked_mask)


def _type_as(self: Any, other: Any) -> Any:
    """In the dtype of the other: without a mask a tensor stays without one."""
    other = other._masked_data if isinstance(other, MaskedTensor) else other
    if not isinstance(self, MaskedTensor):
        return self.type_as(other)
    return _wrapped(self._masked_data.type_as(other), self._masked_mask)


_table["type_as"] = _type_as
_table["type"] = _type
_written("copy_")


def _set(self: Any, index: Any, value: Any) -> None:
    """Elements are written, also those that are not there; no mask changes."""
    if isinstance(self, MaskedTensor) and isinstance(value, MaskedTensor):
        _mask_of("__setitem__", (self[index], value))
    written, given = (x._masked_data if isinstance(x, MaskedTensor) else x for x in (self, value))
    written[index] = given


_table["__setitem__"] = _set


def _contiguous(self: MaskedTensor, *args: Any, **kwargs: Any) -> MaskedTensor:
    _is_contiguous(self)  # refuses sparse data
    return _wrapped(self._masked_data.contiguous(*args, **kwargs), self._masked_mask.contiguous())


_table["contiguous"] = _contiguous


# Shapes: data and mask go together


def _moved(name: str) -> None:
    function = getattr(Tensor, name)

    def moved(self: MaskedTensor, *args: Any, **kwargs: Any) -> Any:
        args = tuple(a._masked_data if isinstance(a, MaskedTensor) else a for a in args)
        data, mask = (
            function(self._masked_data, *args, **kwargs),
            function(self._masked_mask, *args, **kwargs),
        )
        if isinstance(data, (tuple, list)):
            return tuple(_wrapped(d, m) for d, m in zip(data, mask, strict=True))
        return _wrapped(data, mask)

    moved.__name__ = name
    _table[name] = moved


_MOVES = (
    "view reshape flatten transpose permute t squeeze unsqueeze expand expand_as narrow select index_select unbind "
    "chunk split flip __getitem__ unfold repeat movedim moveaxis swapaxes swapdims diagonal ravel roll tile unflatten "
    "broadcast_to view_as reshape_as"
)
for _name in _MOVES.split():
    _moved(_name)


for _name in ("T", "mT", "H", "mH"):
    _ATTRIBUTES[_name] = _table[_name] = lambda x, _name=_name: _wrapped(
        getattr(x._masked_data, _name), getattr(x._masked_mask, _name)
    )


def _joined(name: str) -> None:
    function = getattr(_C, name)
    _table[name] = lambda tensors, dim=0: _wrapped(
        function([t._masked_data for t in tensors], dim), function([t._masked_mask for t in tensors], dim)
    )


for _name in ("cat", "stack"):
    _joined(_name)


# Reductions over what is there


def _reduced(name: str) -> None:
    function = getattr(_C.masked, name)

    def reduced(
        self: MaskedTensor, dim: Any = None, *args: Any, keepdim: bool = False, **kwargs: Any
    ) -> MaskedTensor:
        mask = _plain(self._masked_mask)
        found = function(_plain(self._masked_data), *args, dim=dim, keepdim=keepdim, mask=mask, **kwargs)
        there = mask.any() if dim is None else mask.any(dim, keepdim)
        return _wrapped(found, there if there.shape == found.shape else there.reshape(found.shape))

    reduced.__name__ = name
    _table[name] = reduced


for _name in ("sum", "mean", "amax", "amin", "prod", "argmax", "argmin", "var", "std", "norm"):
    _reduced(_name)


def _all(self: MaskedTensor, dim: Any = None, keepdim: bool = False) -> MaskedTensor:
    mask = _plain(self._masked_mask)
    data = _plain(self._masked_data).bool() | ~mask
    if dim is None:
        return _wrapped(data.all(), mask.any())
    return _wrapped(data.all(dim, keepdim), mask.any(dim, keepdim))


_table["all"] = _all


def _along(name: str) -> None:
    function = getattr(_C.masked, name)

    def along(self: MaskedTensor, dim: int, **kwargs: Any) -> MaskedTensor:
        kwargs = {key: value for key, value in kwargs.items() if key == "dtype" and value is not None}
        return _wrapped(function(self._masked_data, dim, mask=self._masked_mask, **kwargs), self._masked_mask)

    along.__name__ = name
    _table[name] = along


for _name in ("softmax", "log_softmax", "softmin"):
    _along(_name)


def _where(condition: Any, input: Any, other: Any) -> MaskedTensor:
    """Elements of two masked tensors; those that are there where they are taken from."""
    condition = condition._masked_data if isinstance(condition, MaskedTensor) else condition
    parts = [
        x if isinstance(x, MaskedTensor) else _wrapped(x, _C.ones_like(x, dtype=_C.bool))
        for x in (input, other)
    ]
    return _wrapped(
        _C.where(condition, parts[0]._masked_data, parts[1]._masked_data),
        _C.where(condition, parts[0]._masked_mask, parts[1]._masked_mask),
    )


_table["where"] = _where


def _dense(self: MaskedTensor) -> MaskedTensor:
    return _wrapped(_plain(self._masked_data), _plain(self._masked_mask))


def _sparse(name: str) -> None:
    function = getattr(Tensor, name)

    def sparse(self: MaskedTensor) -> MaskedTensor:
        mask = function(_plain(self._masked_mask))
        return _wrapped(_plain(self._masked_data).sparse_mask(mask), mask)

    sparse.__name__ = name
    _table[name] = sparse


_table["to_dense"] = _dense
for _name in ("to_sparse", "to_sparse_coo", "to_sparse_csr"):
    _sparse(_name)


def _requires_grad(self: MaskedTensor, requires_grad: bool = True) -> MaskedTensor:
    self._masked_data.requires_grad_(requires_grad)
    return self


_table["requires_grad_"] = _requires_grad


def _bind() -> None:
    """Make everything in the table a method or property: those of dense tensors would not ask."""
    for name, function in _table.items():
        setattr(MaskedTensor, name, property(function) if name in _ATTRIBUTES else function)


_bind()
