"""Integers of 4 bits, two in a byte: `taeda.int4` and `taeda.uint4`.

Tensors of them keep half the bytes of int8. They are made by ``x.to(taeda.int4)`` and ``taeda.tensor(numbers,
dtype=taeda.int4)``, shown, moved, saved and converted back; what computes refuses them by name. Two numbers that follow
each other along the last dimension share a byte, the first in its lower half; an odd row ends in half a byte of zero.

Example:
    >>> x = taeda.tensor([1, -8, 7], dtype=taeda.int4)
    >>> x.nbytes, x.packed.tolist()
    (2, [129, 7])
    >>> x.to(taeda.float32)
    tensor([ 1., -8.,  7.])
"""

from __future__ import annotations

from typing import Any

from taeda_tensor_core import _C, _info
from taeda_tensor_core._C import Tensor
from taeda_tensor_core._printing import formatted
from taeda_tensor_core.overrides import path_of

__all__ = ["PackedTensor", "pack"]

#: What functions and attributes give for packed tensors, by their names.
_table: dict[str, Any] = {}


class PackedTensor(Tensor):
    """A tensor of int4 or uint4.

    Attributes:
        packed: Its bytes, a uint8 tensor whose last dimension is half as long.
    """

    packed: Tensor
    _type: Any
    _sizes: tuple[int, ...]

    @staticmethod
    def around(packed: Tensor, dtype: Any, shape: tuple[int, ...]) -> PackedTensor:
        """The tensor of bytes that lie as this module says.

        Raises:
            ValueError: The bytes are not uint8 of the shape's half.
        """
        wanted = _packed_shape(shape)
        if packed.dtype is not _C.uint8 or tuple(packed.shape) != wanted:
            raise ValueError(
                f"{dtype.name}: bytes of shape {tuple(shape)} must be uint8 of shape {wanted}, "
                f"found {packed.dtype} of shape {tuple(packed.shape)}"
            )
        made = Tensor._make_wrapper_subclass(PackedTensor, tuple(shape), dtype=_C.uint8, device=packed.device)
        made.packed, made._type, made._sizes = packed, dtype, tuple(shape)
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        parts = path_of(func)
        name = parts[-2] if parts[-1] == "__get__" else parts[-1]
        if name not in _table:
            raise _undefined(name, args)
        return _table[name](*args, **(kwargs or {}))

    _asks_for_own_form = True

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Operators that are met by another way than a public function: none reads memory that is not there."""
        raise _undefined(func.operator.name, args)

    def __repr__(self) -> str:
        text = repr(_numbers(self).cpu().to(_C.int64))
        return f"{text[:-1]}, dtype={self._type!r}{_device_text(self)})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return formatted(self, spec)

    def __len__(self) -> int:
        if not self._sizes:
            raise TypeError("len: found a tensor of 0 dimensions")
        return self._sizes[0]

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(_numbers(self))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return restored, saved_parts(self)

    def __copy__(self) -> PackedTensor:
        return _with(self, self.packed.detach())

    def __deepcopy__(self, memo: dict[int, Any]) -> PackedTensor:
        return _with(self, self.packed.clone())

    __hash__ = Tensor.__hash__


def pack(numbers: Tensor, dtype: Any) -> PackedTensor:
    """The nearest integers of 4 bits, towards zero as conversions to the other integers go.

    Args:
        numbers: Real numbers of any dtype; those beyond the type's range are an error, as there is no code for them.
        dtype: `taeda.int4` or `taeda.uint4`.

    Raises:
        ValueError: A number is not from -8 to 7, for uint4 from 0 to 15.
        TypeError: Complex numbers.
    """
    if numbers.is_complex():
        raise TypeError(f"to: complex numbers cannot become {dtype.name}")
    numbers = numbers.detach()
    whole = numbers.trunc() if numbers.is_floating_point() else numbers
    least, largest = _range(dtype)
    if numbers.numel() and not bool(((whole >= least) & (whole <= largest)).all()):
        raise ValueError(f"to: {dtype.name} holds numbers from {least} to {largest}, found others")
    codes = whole.to(_C.int16) & 15
    if not codes.dim():
        return PackedTensor.around(codes.reshape(1).to(_C.uint8), dtype, ())
    if codes.shape[-1] % 2:
        codes = _C.cat([codes, codes.new_zeros((*codes.shape[:-1], 1))], -1)
    halves = codes.reshape((*codes.shape[:-1], codes.shape[-1] // 2, 2))
    return PackedTensor.around(
        (halves[..., 0] | (halves[..., 1] << 4)).to(_C.uint8), dtype, tuple(numbers.shape)
    )


def saved_parts(tensor: PackedTensor) -> tuple[Tensor, str, tuple[int, ...]]:
    """What a file keeps of it."""
    return tensor.packed, tensor._type.name, tensor._sizes


def restored(packed: Tensor, dtype: str, shape: tuple[int, ...]) -> PackedTensor:
    """What a file has kept.

    Raises:
        ValueError: It is none of these types, or the parts do not fit.
    """
    from taeda_tensor_core import _named_dtypes

    if dtype not in ("int4", "uint4") or not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"expected int4 or uint4 of a shape, found {dtype!r} of {shape!r}")
    return PackedTensor.around(packed, getattr(_named_dtypes, dtype), shape)


def _range(dtype: Any) -> tuple[int, int]:
    return (-8, 7) if dtype.is_signed else (0, 15)


def _packed_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-1], (shape[-1] + 1) // 2) if shape else (1,)


def _numbers(x: PackedTensor) -> Tensor:
    """Its numbers as int8 (uint8)."""
    codes = _C.stack([x.packed & 15, x.packed >> 4], -1)
    rows = codes.reshape((*codes.shape[:-2], 2 * codes.shape[-2]))
    found = rows[..., : x._sizes[-1]] if x._sizes else rows[0]
    if not x._type.is_signed:
        return found
    return ((found.to(_C.int8) ^ 8) - 8).to(_C.int8)


def _with(x: PackedTensor, packed: Tensor) -> PackedTensor:
    return PackedTensor.around(packed, x._type, x._sizes)


def _again(x: PackedTensor, change: Any) -> Any:
    return pack(change(_numbers(x)), x._type)


def _device_text(x: PackedTensor) -> str:
    return "" if x.packed.is_cpu else f", device='{x.packed.device}'"


def _undefined(name: str, args: Any) -> NotImplementedError:
    found = next((a for a in args if isinstance(a, PackedTensor)), None)
    kind = "tensors of 4 bits" if found is None else f"dtype {found._type.name}"
    return NotImplementedError(f"{name}: not implemented for {kind}; convert with .to(taeda.int8) first")


_ATTRIBUTES = (
    _info.FACTS_OF_CODES
    | _info.ANSWERS_OF_CODES
    | {
        "shape": lambda x: _C.Size(x._sizes),
        "dtype": lambda x: x._type,
        "device": lambda x: x.packed.device,
        "ndim": lambda x: len(x._sizes),
        "nbytes": lambda x: x.packed.nbytes,
        "itemsize": lambda x: x._type.itemsize,
        "is_cpu": lambda x: x.packed.is_cpu,
        "is_meta": lambda x: x.packed.is_meta,
        "layout": lambda x: _info.strided,
        "is_quantized": lambda x: False,
        "is_signed": lambda x: x._type.is_signed,
        "dim": lambda x: len(x._sizes),
        "ndimension": lambda x: len(x._sizes),
        "numel": lambda x: _C.Size(x._sizes).numel(),
        "nelement": lambda x: _C.Size(x._sizes).numel(),
        "element_size": lambda x: x._type.itemsize,
        "is_contiguous": lambda x, **_: True,
        "tolist": lambda x: _numbers(x).tolist(),
        "item": lambda x: _numbers(x).item(),
        "__int__": lambda x: int(_numbers(x)),
        "__float__": lambda x: float(_numbers(x)),
        "clone": lambda x, **_: _with(x, x.packed.clone()),
        "detach": lambda x: x,
        "contiguous": lambda x, **_: x,
        "cpu": lambda x: _with(x, x.packed.cpu()),
        "int_repr": lambda x: _numbers(x),
        "is_tensor": lambda x: True,
    }
)
_table.update(_ATTRIBUTES)
for _name, _type in {"float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16",
                     "int": "int32", "long": "int64", "short": "int16", "char": "int8", "byte": "uint8",
                     "bool": "bool"}.items():  # fmt: skip
    _table[_name] = lambda x, kind=_type: _numbers(x).to(getattr(_C, kind))
#: What moves numbers does so on unpacked ones.
_MOVES = ("view", "reshape", "flatten", "transpose", "permute", "t", "squeeze", "unsqueeze", "select", "narrow",
          "expand", "flip", "__getitem__", "index_select", "movedim", "repeat")  # fmt: skip
for _name in _MOVES:
    _table[_name] = lambda x, *args, kind=_name, **options: _again(
        x, lambda n: getattr(n, kind)(*args, **options)
    )


def _size(x: PackedTensor, dim: int | None = None) -> Any:
    shape = _C.Size(x._sizes)
    return shape if dim is None else shape[dim]


def _to(x: PackedTensor, *args: Any, **options: Any) -> Any:
    """Other numbers, or the same ones on another device."""
    from taeda_tensor_core._named_dtypes import NamedDtype

    asked = [*args, options.get("dtype"), options.get("other")]
    kind = next(
        (a.dtype if isinstance(a, Tensor) else a for a in asked if isinstance(a, (Tensor, _C.dtype))), None
    )
    if kind is None or kind is x._type:
        rest = [a for a in args if a is not x._type]
        options.pop("dtype", None)
        return _with(x, x.packed.to(*rest, **options)) if rest or options else x
    if isinstance(kind, NamedDtype):
        rest = [a for a in args if not isinstance(a, _C.dtype)]
        return _to(pack(_numbers(x), kind), *rest, **{k: v for k, v in options.items() if k != "dtype"})
    return _numbers(x).to(*args, **options)


def _equal(x: Any, other: Any) -> bool:
    """Whether two packed tensors have the same type, shape and numbers."""
    both = isinstance(x, PackedTensor) and isinstance(other, PackedTensor)
    return both and x._type is other._type and x._sizes == other._sizes and x.packed.equal(other.packed)


def _type_of(x: PackedTensor, dtype: Any = None, **_: Any) -> Any:
    return f"taeda.{x._type.name}" if dtype is None else _to(x, dtype)


_table.update({"size": _size, "to": _to, "equal": _equal, "type": _type_of, "__len__": PackedTensor.__len__})
