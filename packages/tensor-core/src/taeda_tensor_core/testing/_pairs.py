"""Classes of compared pairs, for test suites that add kinds of values of their own to `assert_close`.

A class takes two values in its constructor, or raises `UnsupportedInputs`; `compare` raises `ErrorMeta` where they
differ. `not_close_error_metas` walks through containers and asks the classes in turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from taeda_tensor_core._C import Tensor
from taeda_tensor_core.testing import _comparison
from taeda_tensor_core.testing._comparison import Message, _Different, _Rules

Where = tuple[Any, ...]


class UnsupportedInputs(Exception):
    """A class of pairs does not take such values; the next one is asked."""


class ErrorMeta(Exception):
    """How two values differ: the class of the error to raise, its text and where in the containers they stand."""

    def __init__(self, type: type[Exception], msg: str, *, id: Where = ()) -> None:
        super().__init__(
            "If you are a user and see this message during normal operation please file an issue: "
            "an ErrorMeta is no error to be shown, but what `to_error` makes one of."
        )
        self.type, self.msg, self.id = type, msg, id

    def to_error(self, msg: Message = None) -> Exception:
        """The error to raise, with this text or this function of the text that it has."""
        return self.type(_Different(self.msg, self.id).message(msg))


class Pair:
    """Two values that are to be compared; a class of them defines `compare`."""

    def __init__(self, actual: Any, expected: Any, *, id: Where = (), **unknown_parameters: Any) -> None:
        self.actual, self.expected, self.id = actual, expected, id
        self._unknown_parameters = unknown_parameters

    @staticmethod
    def _inputs_not_supported() -> NoReturn:
        raise UnsupportedInputs

    @staticmethod
    def _check_inputs_isinstance(actual: Any, expected: Any, cls: Any) -> None:
        """Refuse values unless both are of that class, or of one of those classes."""
        if not (isinstance(actual, cls) and isinstance(expected, cls)):
            Pair._inputs_not_supported()

    def _fail(self, type: type[Exception], msg: str, *, id: Where = ()) -> NoReturn:
        raise ErrorMeta(type, msg, id=self.id + id)

    def compare(self) -> None:
        """Raise `ErrorMeta` unless both are close."""
        raise NotImplementedError(f"{type(self).__name__} does not define how its values are compared")

    def extra_repr(self) -> Sequence[str]:
        """Names of attributes that `repr` shows beside the values."""
        return ()

    def __repr__(self) -> str:
        names = ("id", "actual", "expected", *self.extra_repr())
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


class ObjectPair(Pair):
    """Values that must be equal."""

    def compare(self) -> None:
        if self.actual != self.expected:
            self._fail(AssertionError, f"{type(self.actual)} mismatch: {self.actual} != {self.expected}")


class NonePair(Pair):
    """None beside anything."""

    def __init__(self, actual: Any, expected: Any, **other_parameters: Any) -> None:
        if actual is not None and expected is not None:
            self._inputs_not_supported()
        super().__init__(actual, expected, **other_parameters)

    def compare(self) -> None:
        if self.actual is not self.expected:
            self._fail(AssertionError, f"None mismatch: {self.actual} is not {self.expected}")


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool) or (
        _comparison._is_array(value) and value.dtype == bool and value.ndim == 0
    )


class BooleanPair(Pair):
    """Truth values, NumPy's too."""

    def __init__(self, actual: Any, expected: Any, *, id: Where = (), **other_parameters: Any) -> None:
        if not (_is_truth(actual) and _is_truth(expected)):
            self._inputs_not_supported()
        super().__init__(bool(actual), bool(expected), id=id, **other_parameters)

    def compare(self) -> None:
        if self.actual is not self.expected:
            self._fail(AssertionError, f"Booleans mismatch: {self.actual} is not {self.expected}")


class _ClosePair(Pair):
    """Values that are compared with tolerances, by one of the functions of `assert_close`."""

    def __init__(
        self, actual: Any, expected: Any, *, id: Where = (), rtol: float | None = None, atol: float | None = None,
        equal_nan: bool = False, allow_subclasses: bool = True, check_device: bool = True, check_dtype: bool = True,
        check_layout: bool = True, check_stride: bool = False, **other_parameters: Any,
    ) -> None:  # fmt: skip
        super().__init__(actual, expected, id=id, **other_parameters)
        self.equal_nan, self.allow_subclasses = equal_nan, allow_subclasses
        self.check_device, self.check_dtype = check_device, check_dtype
        self.check_layout, self.check_stride = check_layout, check_stride
        _comparison.check_tolerances(rtol, atol)
        self.rtol, self.atol = self._rules(rtol, atol).tolerances(*self._dtypes())

    def _dtypes(self) -> Sequence[str]:
        raise NotImplementedError

    def _rules(self, rtol: float | None, atol: float | None) -> _Rules:
        return _Rules(
            rtol, atol, self.equal_nan, self.allow_subclasses, self.check_device, self.check_dtype,
            self.check_layout, self.check_stride,
        )  # fmt: skip

    def _ask(self, compare: Any, actual: Any, expected: Any) -> None:
        try:
            compare(actual, expected, self._rules(self.rtol, self.atol), ())
        except _Different as found:
            self._fail(found.kind, found.text)

    def extra_repr(self) -> Sequence[str]:
        return ("rtol", "atol", "equal_nan", "check_dtype")


class NumberPair(_ClosePair):
    """Numbers of Python, or scalars of NumPy."""

    def __init__(self, actual: Any, expected: Any, **other_parameters: Any) -> None:
        actual, expected = (v.item() if self._is_scalar(v) else v for v in (actual, expected))
        if not (_comparison._is_number(actual) and _comparison._is_number(expected)):
            self._inputs_not_supported()
        super().__init__(actual, expected, **other_parameters)

    @staticmethod
    def _is_scalar(value: Any) -> bool:
        return _comparison._is_array(value) and value.ndim == 0 and value.dtype.kind in "iufc"

    def _dtypes(self) -> Sequence[str]:
        return [_comparison.dtype_of_number(value) for value in (self.actual, self.expected)]

    def compare(self) -> None:
        self._ask(_comparison._compare_numbers, self.actual, self.expected)


class TensorLikePair(_ClosePair):
    """Tensors, and what becomes one: arrays, sequences, numbers; kept as tensors in `actual` and `expected`."""

    def __init__(
        self, actual: Any, expected: Any, *, id: Where = (), allow_subclasses: bool = True, **other_parameters: Any
    ) -> None:  # fmt: skip
        actual, expected = self._process_inputs(actual, expected, id=id, allow_subclasses=allow_subclasses)
        super().__init__(actual, expected, id=id, allow_subclasses=allow_subclasses, **other_parameters)

    def _process_inputs(
        self, actual: Any, expected: Any, *, id: Where, allow_subclasses: bool
    ) -> tuple[Tensor, Tensor]:
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        if not related or (not allow_subclasses and type(actual) is not type(expected)):
            self._inputs_not_supported()
        return self._to_tensor(actual), self._to_tensor(expected)

    def _to_tensor(self, value: Any) -> Tensor:
        if isinstance(value, Tensor):
            return value
        try:
            return _comparison._C.as_tensor(value)
        except (TypeError, ValueError, RuntimeError):
            self._inputs_not_supported()

    def _dtypes(self) -> Sequence[str]:
        return [self.actual.dtype.name, self.expected.dtype.name]

    def _compare_attributes(self, actual: Tensor, expected: Tensor) -> None:
        self._ask(_comparison._compare_attributes, actual, expected)

    def _equalize_attributes(self, actual: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
        """Both on the cpu and in one dtype."""
        return _comparison._comparable(actual, expected)

    def _compare_values(self, actual: Tensor, expected: Tensor) -> None:
        self._ask(_comparison._compare_values, actual, expected)

    def compare(self) -> None:
        self._compare_attributes(self.actual, self.expected)
        self._compare_values(self.actual, self.expected)


def originate_pairs(
    actual: Any,
    expected: Any,
    *,
    pair_types: Sequence[type[Pair]],
    sequence_types: tuple[type, ...] = (Sequence,),
    mapping_types: tuple[type, ...] = (Mapping,),
    id: Where = (),
    **options: Any,
) -> list[Pair]:
    """The pairs of values in two values or nestings of them, each of the first class that takes it.

    Raises:
        ErrorMeta: Containers of different lengths or keys, and values that no class takes.
    """
    nested = {"pair_types": pair_types, "sequence_types": sequence_types, "mapping_types": mapping_types}
    children = _children(actual, expected, sequence_types, mapping_types, id)
    if children is not None:
        return [
            pair
            for key, a, b in children
            for pair in originate_pairs(a, b, **nested, id=(*id, key), **options)
        ]
    for kind in pair_types:
        try:
            return [kind(actual, expected, id=id, **options)]
        except UnsupportedInputs:
            continue
    text = f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
    raise ErrorMeta(TypeError, text, id=id)


def _are(actual: Any, expected: Any, types: tuple[type, ...]) -> bool:
    return all(
        isinstance(value, types) and not isinstance(value, str | bytes) for value in (actual, expected)
    )


def _children(
    actual: Any, expected: Any, sequences: tuple[type, ...], mappings: tuple[type, ...], id: Where
) -> list[tuple[Any, Any, Any]] | None:
    """Key and both values of each item of two containers; None for others."""
    try:
        if _are(actual, expected, sequences):
            _comparison._same_lengths(actual, expected, ())
            return [(i, actual[i], expected[i]) for i in range(len(actual))]
        if _are(actual, expected, mappings):
            keys = _comparison._same_keys(actual, expected, ())
            return [(key, actual[key], expected[key]) for key in keys]
    except _Different as found:
        raise ErrorMeta(found.kind, found.text, id=id) from None
    return None


def not_close_error_metas(
    actual: Any,
    expected: Any,
    *,
    pair_types: Sequence[type[Pair]] = (ObjectPair,),
    sequence_types: Any = (Sequence,),
    mapping_types: Any = (Mapping,),
    **options: Any,
) -> list[ErrorMeta]:
    """How two values or nestings of them differ; nothing where they are close.

    Raises:
        AssertionError: Containers of different lengths or keys.
        TypeError: Values that no class takes.
        ValueError: Only one of `rtol` and `atol` is given.

    Example:
        >>> from taeda.testing._comparison import NumberPair, not_close_error_metas
        >>> not_close_error_metas([1.0, 2.0], [1.0, 2.5], pair_types=[NumberPair])[0].id
        (1,)
    """
    types = [kinds if isinstance(kinds, tuple) else (kinds,) for kinds in (sequence_types, mapping_types)]
    try:
        pairs = originate_pairs(
            actual,
            expected,
            pair_types=pair_types,
            sequence_types=types[0],
            mapping_types=types[1],
            **options,
        )
    except ErrorMeta as found:
        raise found.to_error() from None
    metas = []
    for pair in pairs:
        try:
            pair.compare()
        except ErrorMeta as found:
            metas.append(found)
    return metas
