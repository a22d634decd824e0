"""How CuPy, Numba and others see a tensor of a CUDA device, and it sees theirs: by the CUDA array interface."""

from __future__ import annotations

import ctypes
import itertools
import math
from typing import Any

from taeda_tensor_cuda import _library

__all__ = ["from_array_interface", "install"]

_CODES = {"float": "f", "complex": "c", "int": "i", "uint": "u"}


def _typestr(dtype: Any) -> str:
    """The type's code, as NumPy writes it; NumPy has none for bfloat16, and ml_dtypes this one."""
    name, size = dtype.name, dtype.itemsize
    if name == "bfloat16":
        return "<V2"
    code = "b" if name == "bool" else _CODES[name.rstrip("0123456789")]
    return f"{'|' if size == 1 else '<'}{code}{size}"


def _interface(self: Any) -> dict[str, Any]:
    """What other libraries of CUDA devices read a tensor's memory by: typestr, shape, strides, data, version.

    Work that is queued for the tensor may not be done yet: the other library has to use the same stream, or wait.

    Raises:
        AttributeError: The tensor is none of a CUDA device, so `hasattr` is False.
        RuntimeError: The tensor requires grad; use `detach`.
        TypeError: Its dtype has no code.

    Example:
        >>> taeda.zeros(2, 3, device="cuda").__cuda_array_interface__["shape"]
        (2, 3)

    Source: https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html
    """
    if self.device.type != "cuda":
        raise AttributeError(
            f"__cuda_array_interface__: found {self.type()} on {self.device}, "
            "expected a tensor of a cuda device; use tensor.cuda()"
        )
    if self.layout != "strided":
        raise AttributeError(
            f"__cuda_array_interface__: found layout {self.layout}, expected strided; use to_dense()"
        )
    if self.requires_grad:
        raise RuntimeError(
            "__cuda_array_interface__: a tensor that requires grad does not share its memory; use detach()"
        )
    try:
        typestr = _typestr(self.dtype)
    except KeyError:
        raise TypeError(f"__cuda_array_interface__: {self.dtype} has no code of NumPy's") from None
    size = self.element_size()
    return {
        "typestr": typestr,
        "shape": tuple(self.shape),
        "strides": None if self.is_contiguous() else tuple(step * size for step in self.stride()),
        "data": (self.data_ptr() if self.numel() else 0, False),
        "version": 2,
    }


class _Lent(ctypes.Structure):
    """DLPack's structure for memory that somebody lends, of before version 1."""


_END = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Lent))
_Lent._fields_ = [
    ("data", ctypes.c_void_p),
    ("device_type", ctypes.c_int32),
    ("device", ctypes.c_int32),
    ("ndim", ctypes.c_int32),
    ("code", ctypes.c_uint8),
    ("bits", ctypes.c_uint8),
    ("lanes", ctypes.c_uint16),
    ("shape", ctypes.POINTER(ctypes.c_int64)),
    ("strides", ctypes.POINTER(ctypes.c_int64)),
    ("byte_offset", ctypes.c_uint64),
    ("key", ctypes.c_void_p),
    ("end", _END),
]
_CUDA = 2
_DLPACK_CODES = {"i": 0, "u": 1, "f": 2, "V": 4, "c": 5, "b": 6}
#: What lent memory hangs on, until the tensors over it are gone.
_held: dict[int, tuple[Any, ...]] = {}
_keys = itertools.count(1)


@_END
def _give_back(lent: Any) -> None:
    _held.pop(lent.contents.key, None)


def _read(interface: dict[str, Any]) -> tuple[int, tuple[int, ...], tuple[int, ...] | None, str, int]:
    """Address, sizes, strides in elements, kind and bytes of an element; what is missing or wrong is an error."""
    missing = [key for key in ("shape", "typestr", "data") if key not in interface]
    if missing:
        raise ValueError(
            f"__cuda_array_interface__: {missing[0]!r} is missing, expected shape, typestr and data"
        )
    order, kind, size = interface["typestr"][0], interface["typestr"][1], int(interface["typestr"][2:])
    if order == ">" or kind not in _DLPACK_CODES or (kind == "V" and size != 2):
        raise TypeError(f"__cuda_array_interface__: type {interface['typestr']!r} has no corresponding dtype")
    address, fixed = interface["data"]
    if fixed:
        raise TypeError(
            "__cuda_array_interface__: the memory is read-only, which tensors of a device cannot be"
        )
    if interface.get("mask") is not None:
        raise ValueError("__cuda_array_interface__: arrays with a mask are not taken")
    steps = interface.get("strides")
    if steps is not None and any(step % size for step in steps):
        raise ValueError(
            f"__cuda_array_interface__: strides {tuple(steps)} are no multiples of the {size} bytes of an element"
        )
    strides = None if steps is None else tuple(step // size for step in steps)
    return address or 0, tuple(interface["shape"]), strides, kind, size


def from_array_interface(array: Any) -> Any:
    """A tensor over the memory of another library's array on a CUDA device, which lives as long as the tensor.

    Work that the other library has queued may not be done yet: it has to use the same stream, or wait.

    Args:
        array: an object with ``__cuda_array_interface__``.

    Raises:
        TypeError: Its type has no dtype, or the memory is read-only.
        ValueError: Something is missing, strides are no whole elements, or the memory is no CUDA device's.

    Example:
        >>> taeda.cuda.from_array_interface(numba.cuda.device_array(3)).shape
        Size([3])

    Source: https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html
    """
    from taeda_registry.slots import tensor

    address, sizes, strides, kind, size = _read(array.__cuda_array_interface__)
    _library.start()
    device = tensor.get_device_module("cuda").current_device()
    if math.prod(sizes):
        try:
            device = _library.number(None, "device_of", ctypes.c_int, address)
        except _library.DriverError as error:
            raise ValueError(
                f"__cuda_array_interface__: address {address:#x} is no CUDA device's: {error}"
            ) from None
    dims = (ctypes.c_int64 * max(len(sizes), 1))(*sizes)
    steps = None if strides is None else (ctypes.c_int64 * max(len(sizes), 1))(*strides)
    key = next(_keys)
    lent = _Lent(
        address, _CUDA, device, len(sizes), _DLPACK_CODES[kind], 8 * size, 1, dims, steps, 0, key, _give_back
    )
    _held[key] = (array, dims, steps, lent)
    capsule = _capsule(ctypes.addressof(lent), b"dltensor", None)
    try:
        return tensor.from_dlpack(capsule)
    except BaseException:
        _held.pop(key, None)
        raise


_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.argtypes, _capsule.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p], ctypes.py_object


def install() -> None:
    """Puts the interface on the tensor type; no tensor is on such a device before this package is there."""
    from taeda_registry.slots import tensor

    tensor.Tensor.__cuda_array_interface__ = property(_interface, doc=_interface.__doc__)
