"""Top-level names that programs use beside operators: settings, questions.

And what follows from having dense tensors only.
"""

from __future__ import annotations

import math
import operator
import types
import warnings
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor, get_num_threads
from taeda_tensor_core._functions import use_deterministic_algorithms
from taeda_tensor_core._overridable import overridable

# --- what a tensor is ---


def _of(function: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(f"{function}: argument 'input' must be a Tensor, found {type(value).__name__}")
    return value


def is_inference(input: Tensor) -> bool:
    """Whether `input` was made under inference_mode."""
    return _of("is_inference", input).is_inference()


def is_signed(input: Tensor) -> bool:
    """Whether the dtype of `input` has negative numbers."""
    return _of("is_signed", input).is_signed()


def is_conj(input: Tensor) -> bool:
    """False: conj() computes at once."""
    _of("is_conj", input)
    return False


def is_neg(input: Tensor) -> bool:
    """False: neg() computes at once."""
    _of("is_neg", input)
    return False


def is_distributed(input: Tensor) -> bool:
    """False: tensors belong to one process."""
    _of("is_distributed", input)
    return False


def is_vulkan_available() -> bool:
    """False."""
    return False


def get_device(input: Tensor) -> int:
    """Index of the device of `input`; -1 for the cpu."""
    return _of("get_device", input).get_device()


# --- settings ---

_MATMUL_PRECISIONS = ("highest", "high", "medium")
_settings: dict[str, Any] = {"matmul": "highest", "warn_always": False, "interop": None}


def get_float32_matmul_precision() -> str:
    """The precision of float32 products that was asked for."""
    return _settings["matmul"]


def set_float32_matmul_precision(precision: str) -> None:
    """Say which precision of float32 products is enough: 'highest', 'high' or 'medium'.

    The cpu's products are of the highest in any case; of accelerators this sets `allow_tf32` of
    ``taeda.backends.<device>.matmul``.

    Raises:
        RuntimeError: Another word.
    """
    if precision not in _MATMUL_PRECISIONS:
        raise RuntimeError(
            f"set_float32_matmul_precision: argument 'precision' must be one of {', '.join(_MATMUL_PRECISIONS)}, found "
            f"{precision!r}"
        )
    from taeda_tensor_core.backends._settings import device_settings

    _settings["matmul"] = precision
    for kind in _C._reserved_devices():
        device_settings(kind).matmul.allow_tf32 = precision != "highest"


def set_warn_always(b: bool, /) -> None:
    """Kept and given back: warnings of operators follow Python's filters."""
    if not isinstance(b, bool):
        raise TypeError(f"set_warn_always: expected a bool, found {type(b).__name__}")
    _settings["warn_always"] = b


def is_warn_always_enabled() -> bool:
    """What set_warn_always was given; False at first."""
    return _settings["warn_always"]


def get_num_interop_threads() -> int:
    """Threads that run operators beside each other: what was set, else as many as one operator uses."""
    return _settings["interop"] or get_num_threads()


def set_num_interop_threads(int: int, /) -> None:
    """Kept and given back: operators run on the thread that calls them.

    Raises:
        RuntimeError: Not positive, or set before.
    """
    if int <= 0:
        raise RuntimeError(f"set_num_interop_threads: expected a positive number, found {int}")
    if _settings["interop"] is not None:
        raise RuntimeError("set_num_interop_threads: it has been set before")
    _settings["interop"] = int


def init_num_threads() -> None:
    """Nothing: threads are started when they are needed."""


def set_flush_denormal(mode: bool, /) -> bool:
    """False: numbers below the smallest normal one are kept, on every processor."""
    if not isinstance(mode, bool):
        raise TypeError(f"set_flush_denormal: expected a bool, found {type(mode).__name__}")
    return False


_DEBUG_MODES = {"default": 0, "warn": 1, "error": 2}


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """`use_deterministic_algorithms` by a word or a number: 'default' 0, 'warn' 1, 'error' 2.

    Raises:
        TypeError: Neither an int nor a str.
        RuntimeError: Another word or number.
    """
    if not isinstance(debug_mode, int | str):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    number = _DEBUG_MODES.get(debug_mode, -1) if isinstance(debug_mode, str) else debug_mode
    if number not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected `default`, `warn`, `error`, 0, 1 or 2, but got {debug_mode}"
        )
    use_deterministic_algorithms(number > 0, warn_only=number == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2, as `set_deterministic_debug_mode` takes them."""
    return _C._determinism()


def compiled_with_cxx11_abi() -> bool:
    """True."""
    return True


def prepare_multiprocessing_environment(path: str) -> None:
    """Nothing has to be prepared."""


# --- numbers that elsewhere may be symbols ---


def sym_int(a: Any) -> int:
    """`a` as an int, rounded toward zero."""
    return math.ceil(a) if a < 0 else math.floor(a) if isinstance(a, float) else int(a)


def sym_float(a: Any) -> float:
    """`a` as a float."""
    return float(a)


def sym_not(a: Any) -> bool:
    """`not a`."""
    return not a


def sym_max(a: Any, b: Any) -> Any:
    """The larger; a float when one of them is."""
    return float(max(a, b)) if isinstance(a, float) or isinstance(b, float) else max(a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller; a float when one of them is."""
    return float(min(a, b)) if isinstance(a, float) or isinstance(b, float) else min(a, b)


def sym_sum(args: Any) -> Any:
    """The sum of numbers."""
    return sum(args)


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """`t if b else f`."""
    return t if b else f


def sym_sqrt(a: Any) -> float:
    """The square root of a number."""
    return math.sqrt(a)


class _NoSymbol:
    """A class without instances: sizes are Python's numbers."""

    def __init__(self, *args: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} is not there: sizes are Python's numbers")


class _Sizes(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return super().__instancecheck__(instance) or getattr(type(instance), "is_symbolic_size", False)


class SymInt(int, metaclass=_Sizes):
    """A size that may vary: the int that it was in an example, which shows as an expression of symbols.

    Exported programs have them in `node.meta["val"]`. What is computed with one is a plain int. The size of a dimension
    in which the parts of a jagged tensor differ counts as one, too.

    Args:
        value: The size in the example.
        expression: Its text.
    """

    expression: str

    def __new__(cls, value: int, expression: str | None = None) -> SymInt:
        if expression is None:
            raise NotImplementedError(
                "SymInt: sizes are Python's numbers; exported programs make symbols of them"
            )
        made = super().__new__(cls, value)
        made.expression = expression
        return made

    @property
    def node(self) -> types.SimpleNamespace:
        """Its expression, `node.expr`, and its size in the example, `node.hint`."""
        return types.SimpleNamespace(expr=self.expression, hint=int(self))

    def __repr__(self) -> str:
        return self.expression

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return SymInt, (int(self), self.expression)


class SymFloat(_NoSymbol):
    """Nothing is an instance of it."""


class SymBool(_NoSymbol):
    """Nothing is an instance of it."""


class ScriptObject(_NoSymbol):
    """Nothing is an instance of it."""


# --- errors ---


#: What is raised when memory does not suffice, a device's or the host's: a RuntimeError that is a MemoryError too.
OutOfMemoryError = _C._MemoryError


class AcceleratorError(RuntimeError):
    """What programs catch when an accelerator fails."""


# --- older names ---


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule of a tensor, of which no gradients are asked through it."""
    return (tensor.detach() if tensor.requires_grad else tensor).__dlpack__()


def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """Give `input` the shape of another tensor in place."""
    return input.resize_as_(the_template, memory_format=memory_format)


def detach_(input: Tensor) -> Tensor:
    """Cut a tensor off its history, in place."""
    return input.detach_()


def range_(start: Any = 0, end: Any = None, step: Any = 1, *, out: Any = None, dtype: Any = None, layout: Any = None,
           device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """`arange` whose end is included; deprecated in favour of it."""
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end).",
        UserWarning,
        stacklevel=2,
    )
    if out is not None and not isinstance(out, Tensor):
        raise TypeError(f"range: argument 'out' must be a Tensor, found {type(out).__name__}")
    if end is None:
        start, end = 0, start
    if step == 0:
        raise RuntimeError("range: argument 'step' must be nonzero")
    if operator.gt(start, end) != (step < 0) and start != end:
        raise RuntimeError("range: upper bound and lower bound inconsistent with step sign")
    count = math.floor((end - start) / step) + 1
    dtype = dtype or _C.get_default_dtype()
    made = start + _C.arange(count, dtype=dtype, device=device) * step
    made = made.to(dtype)
    if out is not None:
        target = out if out.numel() == made.numel() else out.resize_(made.shape)
        target.copy_(made.view(target.shape))
        return out
    return made.requires_grad_() if requires_grad else made


range_.__name__ = range_.__qualname__ = "range"
globals()["range"] = range_


overridable((
    *(is_inference, is_signed, is_conj, is_neg, is_distributed, get_device, resize_as_, detach_),
    *(sym_int, sym_float, sym_not, sym_max, sym_min, sym_sum, sym_ite, sym_sqrt),
), composed=True)  # fmt: skip
