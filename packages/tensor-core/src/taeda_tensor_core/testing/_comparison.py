"""`assert_close`: whether two values, or nestings of them, are equal within tolerances."""

from __future__ import annotations

import cmath
import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from taeda_tensor_core import _C, _info
from taeda_tensor_core._C import Tensor

# (rtol, atol) by dtype; all others must be equal.
_TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip
_NUMBER_DTYPES = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
Message = str | Callable[[str], str] | None


def default_tolerances(
    *inputs: Any, dtype_precisions: dict[Any, tuple[float, float]] | None = None
) -> tuple[float, float]:
    """The largest (rtol, atol) of the dtypes of tensors, or of dtypes."""
    table = {dtype.name: pair for dtype, pair in (dtype_precisions or {}).items()} or _TOLERANCES
    names = [item.dtype.name if isinstance(item, Tensor) else item.name for item in inputs]
    rtols, atols = zip(*(table.get(name, (0.0, 0.0)) for name in names), strict=True)
    return max(rtols), max(atols)


def get_tolerances(
    *inputs: Any, rtol: float | None, atol: float | None, id: tuple[Any, ...] = ()
) -> tuple[float, float]:
    """The given (rtol, atol), or where neither is given those of the dtypes of `inputs`; `id` is not read.

    Raises:
        ValueError: Only one of the two is given.
    """
    check_tolerances(rtol, atol)
    return default_tolerances(*inputs) if rtol is None or atol is None else (rtol, atol)


@dataclass(frozen=True)
class _Rules:
    """What is asked of each pair."""

    rtol: float | None
    atol: float | None
    equal_nan: bool
    allow_subclasses: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool

    def tolerances(self, *names: str) -> tuple[float, float]:
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        pairs = [_TOLERANCES.get(name, (0.0, 0.0)) for name in names]
        return max(p[0] for p in pairs), max(p[1] for p in pairs)


class _Different(Exception):
    """Two values that are not close, and where they stand."""

    def __init__(self, text: str, where: tuple[Any, ...], kind: type[Exception] = AssertionError) -> None:
        super().__init__(text)
        self.text, self.where, self.kind = text, where, kind

    def message(self, msg: Message) -> str:
        at = "".join(f"[{key!r}]" for key in self.where)
        text = f"{self.text}\n\nThe failure occurred for item {at}" if at else self.text
        return msg(text) if callable(msg) else text if msg is None else msg


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Message = None,
) -> None:
    """Raise AssertionError unless ``|actual - expected| <= atol + rtol * |expected|`` everywhere.

    Sequences and mappings are compared item by item, tensors, arrays and numbers with tolerances, infinities by sign.

    Args:
        actual: What a program has given.
        expected: What it should have.
        allow_subclasses: False: the classes must be the same.
        rtol: Relative tolerance; given with `atol` or not at all. By default by dtype: 1.3e-6 for float32, 1e-7 for
            float64, 1e-3 for float16, 1.6e-2 for bfloat16, 0 for integers.
        atol: Absolute tolerance; by default 1e-5, for float64 1e-7, for integers 0.
        equal_nan: NaN equals NaN.
        check_device: The devices must be the same.
        check_dtype: The dtypes must be the same; else values are compared in the wider.
        check_layout: The layouts must be the same.
        check_stride: The strides must be the same.
        msg: Text of the error, or a function of the text that there would be.

    Raises:
        AssertionError: They are not close; the text says how many elements are not, and where the largest differences
            are.
        ValueError: Only one of `rtol` and `atol` is given.
        TypeError: Values that nobody knows how to compare.

    Example:
        >>> taeda.testing.assert_close(taeda.tensor([1.0, 2.0]), taeda.tensor([1.0, 2.0 + 1e-7]))
    """
    check_tolerances(rtol, atol)
    rules = _Rules(
        rtol, atol, equal_nan, allow_subclasses, check_device, check_dtype, check_layout, check_stride
    )
    try:
        _compare(actual, expected, rules, ())
    except _Different as found:
        text, kind = found.message(msg), found.kind
    else:
        return
    raise kind(text)


def check_tolerances(rtol: float | None, atol: float | None) -> None:
    """Raise ValueError where only one of the two is given."""
    if (rtol is None) != (atol is None):
        raise ValueError(
            "Both 'rtol' and 'atol' must be either specified or omitted, but got no "
            f"{'rtol' if rtol is None else 'atol'}."
        )


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """`assert_close` without the checks of dtypes and devices; deprecated in favour of it."""
    if not isinstance(actual, Tensor):
        actual = _C.tensor(actual)
    if not isinstance(expected, Tensor):
        expected = _C.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        rtol, atol = default_tolerances(actual, expected)
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False,
        msg=msg or None,
    )  # fmt: skip


def _is_array(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "dtype")


def _compare(actual: Any, expected: Any, rules: _Rules, where: tuple[Any, ...]) -> None:
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        for key in _same_keys(actual, expected, where):
            _compare(actual[key], expected[key], rules, (*where, key))
        return
    if _is_sequence(actual) and _is_sequence(expected):
        _same_lengths(actual, expected, where)
        for i, (a, b) in enumerate(zip(actual, expected, strict=True)):
            _compare(a, b, rules, (*where, i))
        return
    if actual is None or expected is None:
        if actual is not expected:
            raise _Different(f"None mismatch: {actual} is not {expected}", where)
        return
    if isinstance(actual, bool) and isinstance(expected, bool):
        if actual is not expected:
            raise _Different(f"Booleans mismatch: {actual} is not {expected}", where)
        return
    if _is_number(actual) and _is_number(expected):
        _compare_numbers(actual, expected, rules, where)
        return
    _compare_tensors(*_as_tensors(actual, expected, rules, where), rules, where)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Number) and not isinstance(value, bool)


def _same_lengths(actual: Sequence, expected: Sequence, where: tuple[Any, ...]) -> None:
    if len(actual) != len(expected):
        raise _Different(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", where)


def _same_keys(actual: Mapping, expected: Mapping, where: tuple[Any, ...]) -> Iterator[Any]:
    missing, extra = expected.keys() - actual.keys(), actual.keys() - expected.keys()
    if missing or extra:
        raise _Different(
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {sorted(missing, key=str)}\n"
            f"Additional keys in the actual mapping: {sorted(extra, key=str)}",
            where,
        )
    return iter(sorted(expected.keys(), key=str))  # a mapping of tensors may iterate over its rows


def dtype_of_number(value: Any) -> str:
    """Name of the dtype by which a number's tolerances are chosen."""
    return next(name for kind, name in _NUMBER_DTYPES.items() if isinstance(value, kind))


def _compare_numbers(actual: Any, expected: Any, rules: _Rules, where: tuple[Any, ...]) -> None:
    if rules.check_dtype and type(actual) is not type(expected):
        raise _Different(f"The (d)types do not match: {type(actual)} != {type(expected)}.", where)
    rtol, atol = rules.tolerances(dtype_of_number(actual), dtype_of_number(expected))
    if actual == expected or (rules.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
        return
    if (
        cmath.isfinite(expected)
        and cmath.isfinite(actual)
        and abs(actual - expected) <= atol + rtol * abs(expected)
    ):
        return
    word = "equal" if rtol == atol == 0 else "close"
    text = f"Scalars are not {word}!\n\nExpected {expected} but got {actual}.\n"
    difference = abs(actual - expected)
    relative = difference / abs(expected) if expected else float("inf")
    text += f"Absolute difference: {difference}{_allowed(atol, word)}"
    text += f"\nRelative difference: {relative}{_allowed(rtol, word)}"
    raise _Different(text, where)


def _as_tensors(actual: Any, expected: Any, rules: _Rules, where: tuple[Any, ...]) -> tuple[Tensor, Tensor]:
    known = all(isinstance(v, Tensor) or _is_array(v) for v in (actual, expected))
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if not known or not related or (not rules.allow_subclasses and type(actual) is not type(expected)):
        raise _Different(
            f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.",
            where,
            TypeError,
        )
    return _C.as_tensor(actual), _C.as_tensor(expected)


def _attributes(rules: _Rules) -> Iterator[tuple[str, Callable[[Tensor], Any]]]:
    yield "shape", lambda t: t.shape
    if rules.check_device:
        yield "device", lambda t: t.device
    if rules.check_layout:
        yield "layout", lambda t: t.layout
    if rules.check_dtype:
        yield "dtype", lambda t: t.dtype
    if rules.check_stride:
        yield "stride()", lambda t: t.stride()


def _compare_tensors(actual: Tensor, expected: Tensor, rules: _Rules, where: tuple[Any, ...]) -> None:
    _compare_attributes(actual, expected, rules, where)
    _compare_values(actual, expected, rules, where)


def _compare_attributes(actual: Tensor, expected: Tensor, rules: _Rules, where: tuple[Any, ...]) -> None:
    for name, of in _attributes(rules):
        if of(actual) != of(expected):
            raise _Different(
                f"The values for attribute '{name}' do not match: {of(actual)} != {of(expected)}.", where
            )


def _compare_values(actual: Tensor, expected: Tensor, rules: _Rules, where: tuple[Any, ...]) -> None:
    if actual.device.type == "meta" or expected.device.type == "meta":
        return
    rtol, atol = rules.tolerances(actual.dtype.name, expected.dtype.name)
    from taeda_tensor_core._modes import no_grad

    with no_grad():
        layout = actual.layout
        if layout == expected.layout and layout is not _info.strided and hasattr(actual, "sparse_dim"):
            parts = _sparse_parts(actual.detach(), expected.detach(), where)
        else:
            parts = [("Tensor-likes", _plain(actual.detach()), _plain(expected.detach()))]
        for subject, one, other in parts:
            exact = subject.endswith("indices")
            _compare_numbers_of(subject, one, other, *((0.0, 0.0) if exact else (rtol, atol)), rules, where)


def _plain(t: Tensor) -> Tensor:
    return t if t.layout is _info.strided or t.is_nested else t.to_dense()


def _sparse_parts(actual: Any, expected: Any, where: tuple[Any, ...]) -> list[tuple[str, Tensor, Tensor]]:
    """The indices and values of two sparse tensors of one layout, and what to call each."""
    word = str(actual.layout).rpartition("_")[2].upper()
    if word == "COO":
        actual, expected = actual.coalesce(), expected.coalesce()
    if actual._nnz() != expected._nnz():
        raise _Different(
            f"The number of specified values in sparse {word} tensors does not match: {actual._nnz()} != "
            f"{expected._nnz()}",
            where,
        )
    names = {
        "COO": ("indices",), "CSR": ("crow_indices", "col_indices"), "BSR": ("crow_indices", "col_indices"),
        "CSC": ("ccol_indices", "row_indices"), "BSC": ("ccol_indices", "row_indices"),
    }  # fmt: skip
    return [
        (f"Sparse {word} {name}", getattr(actual, name)(), getattr(expected, name)())
        for name in (*names[word], "values")
    ]


def _compare_numbers_of(
    subject: str,
    actual: Tensor,
    expected: Tensor,
    rtol: float,
    atol: float,
    rules: _Rules,
    where: tuple[Any, ...],
) -> None:
    actual, expected = _comparable(actual, expected)
    if actual.shape != expected.shape:
        raise _Different(
            f"{subject} have the shapes {tuple(actual.shape)} and {tuple(expected.shape)}", where
        )
    close = _C.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=rules.equal_nan)
    if not bool(close.all()):
        raise _Different(_report(actual, expected, close, rtol, atol, subject), where)


def _comparable(actual: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
    """Both on the cpu and in one dtype, of numbers of 8 bits in float32."""
    actual, expected = (
        x.float() if x.is_floating_point() and x.itemsize == 1 else x for x in (actual.cpu(), expected.cpu())
    )
    if actual.dtype is not expected.dtype:
        wider = _C.promote_types(actual.dtype, expected.dtype)
        actual, expected = actual.to(wider), expected.to(wider)
    return actual, expected


def _report(
    actual: Tensor, expected: Tensor, close: Tensor, rtol: float, atol: float, subject: str = "Tensor-likes"
) -> str:
    word = "equal" if rtol == atol == 0 else "close"
    exact = actual.dtype.is_floating_point or actual.dtype.is_complex
    a, b = (actual, expected) if exact else (actual.to(_C.float64), expected.to(_C.float64))
    difference = (a - b).abs()
    relative = difference / b.abs()
    total, wrong = close.numel(), close.numel() - int(close.sum())
    if actual.dim() == 0:
        text = f"Scalars are not {word}!\n\nExpected {expected.item()} but got {actual.item()}.\n"
        text += f"Absolute difference: {difference.item()}{_allowed(atol, word)}"
        return f"{text}\nRelative difference: {relative.item()}{_allowed(rtol, word)}"
    text = f"{subject} are not {word}!\n\nMismatched elements: {wrong} / {total} ({wrong / total:.1%})"
    for name, values, allowed in (("absolute", difference, atol), ("relative", relative, rtol)):
        # Elements that are close count for nothing; NaN is the largest difference.
        of_wrong = _C.where(close, _C.zeros_like(values), values)
        place = int(of_wrong.reshape(-1).argmax())
        index = tuple(
            _C.unravel_index(_C.tensor(place, device="cpu"), tuple(values.shape))[i].item()
            for i in range(values.dim())
        )
        text += f"\nGreatest {name} difference: {of_wrong[index].item()} at index {index}"
        text += _allowed(allowed, word)
    return text


def _allowed(tolerance: float, word: str) -> str:
    """What is said of a tolerance, of 0 too, unless all must be equal."""
    return f" (up to {tolerance} allowed)" if word == "close" else ""


def __getattr__(name: str) -> Any:
    """The classes of pairs, which only test suites with kinds of values of their own need."""
    from taeda_tensor_core.testing import _pairs

    if name.startswith("__") or not hasattr(_pairs, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_pairs, name)
