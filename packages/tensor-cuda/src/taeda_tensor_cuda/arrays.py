"""How CuPy, Numba and others see a tensor of a CUDA device: by the CUDA array interface, version 2."""

from __future__ import annotations

from typing import Any

__all__ = ["install"]

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


def install() -> None:
    """Puts the interface on the tensor type; no tensor is on such a device before this package is there."""
    from taeda_registry.slots import tensor

    tensor.Tensor.__cuda_array_interface__ = property(_interface, doc=_interface.__doc__)
