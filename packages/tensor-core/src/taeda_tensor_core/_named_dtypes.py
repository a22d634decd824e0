"""Dtypes that tensors of the core do not have: they can be named, compared and asked about.

A function that is given one says that it expected a dtype; of int4 and uint4 there are packed tensors.
"""

from __future__ import annotations

from typing import Any

from taeda_tensor_core import _C

# Name: bytes of an element, what it is: a signed integer, a complex number, a floating-point one or none of these.
_FACTS: dict[str, tuple[int, str]] = {
    "complex32": (4, "complex signed"),
    **{f"int{n}": (1, "signed") for n in range(1, 8)},
    **{f"uint{n}": (1, "") for n in range(1, 8)},
    **dict.fromkeys(("bits1x8", "bits2x4", "bits4x2", "bits8"), (1, "")),
    "bits16": (2, ""),
    "float4_e2m1fn_x2": (1, "float signed"),
    "qint8": (1, "signed"),
    "quint8": (1, ""),
    "qint32": (4, "signed"),
    "quint4x2": (1, ""),
    "quint2x4": (1, ""),
}


_SHORT = {
    "complex32": "c32", "float4_e2m1fn_x2": "f4e2m1fnx2", "bits8": "b8x1", "bits16": "b16x1",
    "bits1x8": "b1x8", "bits2x4": "b2x4", "bits4x2": "b4x2",
}  # fmt: skip


class NamedDtype:
    """A dtype without tensors.

    Attributes:
        name: Without the package, such as 'complex32'.
        itemsize: Bytes of an element.
        abbr: Short name, such as 'c32'.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.itemsize, kind = _FACTS[name]
        self.is_complex, self.is_floating_point = "complex" in kind, "float" in kind
        self.is_signed = "signed" in kind
        self.abbr = _SHORT.get(name, name)

    # Programs ask whether a thing is a dtype.
    __class__ = property(lambda self: _C.dtype)  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{repr(_C.float32).partition('.')[0]}.{self.name}"  # of the library's name, as long as it has another

    def __reduce__(self) -> str:
        return self.name

    def __copy__(self) -> NamedDtype:
        return self

    def __deepcopy__(self, memo: Any) -> NamedDtype:
        return self

    def to_real(self) -> Any:
        """The real dtype of the same precision."""
        return _C.float16 if self.is_complex else self

    def to_complex(self) -> Any:
        """The complex dtype of the same precision.

        Raises:
            RuntimeError: There is none.
        """
        if self.is_complex:
            return self
        raise RuntimeError(f"to_complex: there is no complex dtype for {self.name}")


class _PackedDtype(NamedDtype):
    """One of 4 bits, of which there are tensors (taeda_tensor_core.packed)."""

    def _pack(self, numbers: Any) -> Any:
        from taeda_tensor_core.packed import pack

        return pack(numbers, self)


_PACKED = ("int4", "uint4")
globals().update({name: (_PackedDtype if name in _PACKED else NamedDtype)(name) for name in _FACTS})
chalf = globals()["complex32"]
NAMES = (*_FACTS, "chalf")
