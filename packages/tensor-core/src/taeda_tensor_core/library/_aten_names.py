"""Operators that are private parts of PyTorch's and that libraries name in their dispatch, defined when asked for."""

from __future__ import annotations

import functools
import operator
import re
import types
from collections.abc import Callable
from typing import Any


def _alias(self: Any) -> Any:
    return self.view(self.shape)


def _to_copy(
    self: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Any:
    form = {} if memory_format is None else {"memory_format": memory_format}
    made = self.to(
        device=self.device if device is None else device, dtype=dtype or self.dtype, copy=True, **form
    )
    return made.pin_memory() if pin_memory else made


def _pin_memory(self: Any, device: Any = None) -> Any:
    return self.pin_memory(device)


def _unsafe_view(self: Any, size: Any) -> Any:
    return self.reshape(size)


def _convolution(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any,
    groups: int,
) -> Any:  # fmt: skip
    from taeda_tensor_core.composed_names import convolution

    return convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def _old_convolution(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any,
    groups: int, benchmark: bool, deterministic: bool, cudnn_enabled: bool, allow_tf32: bool,
) -> Any:  # fmt: skip
    return _convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def _new_empty_strided(self: Any, size: Any, stride: Any, dtype: Any = None, device: Any = None) -> Any:
    return self.new_empty_strided(size, stride, dtype=dtype, device=device)


def _sparse_addmm(self: Any, mat1: Any, mat2: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    return beta * self + alpha * (mat1 @ mat2)


def _sparse_mm_reduce_impl(self: Any, other: Any, reduce: str) -> Any:
    raise NotImplementedError("_sparse_mm_reduce_impl is not there: use taeda.sparse.mm")


def _assert_scalar(self: Any, assert_msg: str) -> None:
    if not self:
        raise RuntimeError(assert_msg)


def _assert_async(self: Any, assert_msg: str | None = None) -> None:
    if not self:
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _is_all_true(self: Any) -> Any:
    return self.all()


def _sym_constrain_range(size: Any, min: int | None = None, max: int | None = None) -> None:
    if (min is not None and size < min) or (max is not None and size > max):
        raise RuntimeError(f"Invalid value range for {size} between [{min}, {max}].")


def _assert_tensor_metadata(self: Any, size: Any = None, stride: Any = None, dtype: Any = None) -> None:
    found = (
        ("size", size, tuple(self.shape)),
        ("stride", stride, self.stride()),
        ("dtype", dtype, self.dtype),
    )
    for name, expected, value in found:
        if expected is not None and (tuple(expected) if name != "dtype" else expected) != value:
            raise RuntimeError(f"Tensor {name} mismatch! Expected: {expected}, Got: {value}")


_DEFINITIONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "_assert_async": ("(Tensor self, str? assert_msg=None) -> ()", _assert_async),
    "_is_all_true": ("(Tensor self) -> Tensor", _is_all_true),
    "sym_constrain_range": ("(Scalar size, *, int? min=None, int? max=None) -> ()", _sym_constrain_range),
    "sym_constrain_range_for_size": (
        "(Scalar size, *, int? min=None, int? max=None) -> ()",
        _sym_constrain_range,
    ),
    "_assert_scalar": ("(Scalar self, str assert_msg) -> ()", _assert_scalar),
    "_assert_tensor_metadata": (
        "(Tensor self, int[]? size=None, int[]? stride=None, DType? dtype=None) -> ()",
        _assert_tensor_metadata,
    ),
    "alias": ("(Tensor(a) self) -> Tensor(a)", _alias),
    "_to_copy": (
        "(Tensor self, *, DType? dtype=None, int? layout=None, Device? device=None, bool? pin_memory=None, "
        "bool non_blocking=False, str? memory_format=None) -> Tensor",
        _to_copy,
    ),
    "_pin_memory": ("(Tensor self, Device? device=None) -> Tensor", _pin_memory),
    "convolution": (
        "(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, "
        "int[] output_padding, int groups) -> Tensor",
        _convolution,
    ),
    "_convolution": (
        "(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, "
        "int[] output_padding, int groups, bool benchmark, bool deterministic, bool cudnn_enabled, bool allow_tf32) "
        "-> Tensor",
        _old_convolution,
    ),
    "new_empty_strided": (
        "(Tensor self, int[] size, int[] stride, *, DType? dtype=None, Device? device=None) -> Tensor",
        _new_empty_strided,
    ),
    "_unsafe_view": ("(Tensor self, int[] size) -> Tensor", _unsafe_view),
    "_sparse_addmm": (
        "(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        _sparse_addmm,
    ),
    "_sparse_mm_reduce_impl": (
        "(Tensor self, Tensor other, str reduce) -> (Tensor, Tensor)",
        _sparse_mm_reduce_impl,
    ),
}


@functools.cache
def _definitions() -> dict[str, tuple[str, Callable[..., Any]]]:
    from taeda_tensor_core.library import _aten_layers  # noqa: F401 (adds its own)
    from taeda_tensor_core.library._aten_parts import PARTS

    return _DEFINITIONS | PARTS


@functools.cache
def _defined(name: str) -> Any:
    """Its registration, which lives as long as the process."""
    from taeda_tensor_core.library._operators import Library

    schema, function = _definitions()[name]
    return Library("aten", "FRAGMENT").operator(f"aten::{name}{schema}")(function)


def define(name: str) -> bool:
    """Define ``aten::name``; False if it is none of these."""
    if name not in _definitions():
        return False
    _defined(name)
    return True


def other_name(name: str) -> str:
    """The operator that the functions call by which PyTorch knows it too: "absolute" is "abs", "special_erf" "erf".

    Empty where there is none. The text of a function begins with its operator's schema.
    """
    from taeda_tensor_core import _C
    from taeda_tensor_core.library._table import operators

    if name == "split_with_sizes":  # one of two operators of its function
        return "split.sizes"
    short = name.removeprefix("special_")
    for home in (_C, _C.Tensor) if short == name else (_C.special,):
        text = getattr(vars(home).get(short), "__doc__", None) or ""
        known, _, given = text.partition("(")
        if not known.isidentifier() or known == name:
            continue
        for known_operator in operators():
            arguments = (
                re.sub(r"\([a-z]!?\)", "", known_operator.schema).rpartition(") ->")[0].partition("(")[2]
            )
            if known_operator.name.partition(".")[0] == known and given.startswith(arguments):
                return known_operator.name
    return ""


def plain(name: str) -> Any:
    """A public function or method that is no operator, such as `_foreach_add`, or a fact; None where there is none."""
    import taeda_tensor_core as core
    from taeda_tensor_core.library._aten_parts import FUNCTIONS
    from taeda_tensor_core.library._table import Plain

    if name.startswith("__") and name not in _OPERATORS:
        return None
    home, _, short = name.partition("_")
    found = FUNCTIONS.get(name) or getattr(core, name, None) or getattr(core.Tensor, name, None)
    if found is None and home in _HOMES:
        found = getattr(getattr(core, home), short, None)
    if found is None and name in _OTHER_NAMES:
        found = _named(core, _OTHER_NAMES[name])
    if isinstance(found, types.GetSetDescriptorType | property):
        found = operator.attrgetter(name)
    return Plain(name, found) if callable(found) and not isinstance(found, type) else None


def _named(home: Any, path: str) -> Any:
    first, _, name = path.partition(".")
    if first == "Tensor":  # of whichever class
        return lambda self, *args, **kwargs: getattr(self, name)(*args, **kwargs)
    for part in path.split("."):
        home = getattr(home, part, None)
    return home


_OPERATORS = frozenset(
    f"__{way}{name}__" for name in ("and", "or", "xor", "lshift", "rshift") for way in ("", "i")
)
#: Modules whose functions have their names in front.
_HOMES = frozenset({"fft", "linalg", "sparse", "special"})
#: Functions that stand under another name here.
_OTHER_NAMES = {
    "_coalesce": "Tensor.coalesce", "_indices": "Tensor.indices",
    "_linalg_eigvals": "linalg.eigvals", "_nnz": "Tensor._nnz",
    "_sparse_log_softmax": "sparse.log_softmax", "_sparse_mm": "sparse.mm", "_sparse_softmax": "sparse.softmax",
    "_sparse_sum": "sparse.sum", "_spdiags": "sparse.spdiags", "_to_dense": "Tensor.to_dense",
    "_to_sparse": "Tensor.to_sparse", "_to_sparse_bsc": "Tensor.to_sparse_bsc",
    "_to_sparse_bsr": "Tensor.to_sparse_bsr",
    "_to_sparse_csc": "Tensor.to_sparse_csc", "_to_sparse_csr": "Tensor.to_sparse_csr", "_values": "Tensor.values",
    "log_sigmoid": "ops.logsigmoid",
    "set_data": "Tensor.set_",
}  # fmt: skip
