"""Element types, the device, recording modes, and which type a result has."""

from __future__ import annotations

import threading
from contextlib import ContextDecorator
from typing import Any

import numpy as np


class dtype:
    """An element type; one object for each."""

    known: dict[str, dtype] = {}

    def __init__(self, name: str) -> None:
        self.name, self.numpy = name, np.dtype(name)
        self.is_floating_point, self.is_complex = self.numpy.kind == "f", self.numpy.kind == "c"
        self.itemsize = self.numpy.itemsize
        self.known[name] = self

    @classmethod
    def of(cls, kind: Any) -> dtype:
        """The element type of a NumPy dtype; TypeError for one that no tensor has."""
        try:
            return cls.known[np.dtype(kind).name]
        except KeyError:
            raise TypeError(f"tensor: NumPy dtype {kind} is no element type of tensors") from None

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> Any:
        return dtype.of, (self.name,)


_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
for _name in ("bool", *_INTEGERS, "float16", "float32", "float64", "complex64", "complex128"):
    dtype(_name)
_state = threading.local()
_default = [dtype.known["float32"]]


class device:
    """A place for elements; here the only one is the host's memory."""

    type, index = "cpu", None

    def __init__(self, kind: Any = "cpu", index: int | None = None) -> None:
        if str(kind) not in ("cpu", "cpu:0"):
            raise RuntimeError(f"device: expected 'cpu', all that taeda-tensor-pure has, found {str(kind)!r}")

    def __repr__(self) -> str:
        return "device(type='cpu')"

    def __str__(self) -> str:
        return "cpu"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device)

    def __hash__(self) -> int:
        return hash("cpu")


def get_default_dtype() -> dtype:
    """The dtype of float results when none is given."""
    return _default[0]


def set_default_dtype(kind: dtype) -> None:
    """Changes that dtype; TypeError for one that is no float."""
    if not isinstance(kind, dtype) or not kind.is_floating_point:
        raise TypeError(f"set_default_dtype: expected a float dtype, found {kind!r}")
    _default[0] = kind


def to_numpy(kind: Any, otherwise: Any = None) -> np.dtype:
    """The NumPy dtype of an optional element type; the default float by default."""
    if kind is None:
        return get_default_dtype().numpy if otherwise is None else np.dtype(otherwise)
    if not isinstance(kind, dtype):
        raise TypeError(f"tensor: argument 'dtype' must be a dtype, found {type(kind).__name__}")
    return kind.numpy


def natural(value: Any) -> np.dtype:
    """The dtype of a Python number."""
    if isinstance(value, (bool, int)):
        return np.dtype(bool if isinstance(value, bool) else np.int64)
    wide = get_default_dtype().name == "float64"
    if isinstance(value, complex):
        return np.dtype(np.complex128 if wide else np.complex64)
    return get_default_dtype().numpy


def promote(*values: Any) -> np.dtype:
    """The common dtype: the highest kind decides, then arrays before 0-d arrays before numbers."""
    ranks: list[list[np.dtype]] = [[], [], []]
    for value in values:
        array = isinstance(value, (np.ndarray, np.generic))
        ranks[(0 if value.ndim else 1) if array else 2].append(value.dtype if array else natural(value))
    order = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
    top = max(order[kind.kind] for rank in ranks for kind in rank)
    chosen = next(found for rank in ranks if (found := [k for k in rank if order[k.kind] == top]))
    result = np.result_type(*chosen)
    return np.dtype(np.float32) if top == 1 and result.kind == "f" else result


def is_grad_enabled() -> bool:
    """Whether recording is wanted in this thread; nothing is ever recorded here."""
    return getattr(_state, "enabled", True)


class no_grad(ContextDecorator):
    """Context and decorator: recording is not wanted."""

    wanted = False

    def _recreate_cm(self) -> no_grad:
        return type(self)()

    def __enter__(self) -> None:
        self._before, _state.enabled = is_grad_enabled(), self.wanted

    def __exit__(self, *_error: Any) -> None:
        _state.enabled = self._before


class enable_grad(no_grad):
    """Context and decorator: recording is wanted again."""

    wanted = True
