"""Tests that are run once for each kind of device and dtype."""

from __future__ import annotations

import functools
import inspect
import unittest
from collections.abc import Callable
from typing import Any, NamedTuple

import taeda as tc
from taeda._testing.common_utils import TEST_CUDA, _as_it_is, _spread, dtype_name

device_type_test_bases: list[type] = []


class tol(NamedTuple):
    """Tolerances of a dtype."""

    atol: float
    rtol: float


def instantiate_device_type_tests(
    generic_test_class: type, scope: dict[str, Any], except_for: Any = None, only_for: Any = None,
    include_lazy: bool = False, allow_mps: bool = False, allow_xpu: bool = False,
) -> None:  # fmt: skip
    """Put a class for each kind of device there is into `scope`, in the place of one whose tests take `device`.

    Args:
        generic_test_class: Its tests take `device`, and `dtype` where `dtypes` says which.
        scope: `globals()` of the module.
        except_for, only_for: Kinds of devices.
    """
    scope.pop(generic_test_class.__name__, None)
    without, only = _listed(except_for), _listed(only_for)
    for kind in ("cpu", *(["cuda"] if TEST_CUDA else [])):
        if kind in without or (only and kind not in only):
            continue
        name = f"{generic_test_class.__name__}{kind.upper()}"
        made = type(name, (generic_test_class,), {"device_type": kind, "__module__": scope["__name__"]})
        for item in dir(generic_test_class):
            value = inspect.getattr_static(generic_test_class, item)
            if item.startswith("test") and callable(value):
                setattr(made, item, None)
                _fill(made, value, kind)
        scope[name] = made


def _listed(kinds: Any) -> tuple[str, ...]:
    return () if kinds is None else (kinds,) if isinstance(kinds, str) else tuple(kinds)


def _fill(made: type, test: Callable[..., Any], kind: str) -> None:
    of_kind = test.__dict__.get("_dtypes", {})
    wanted = of_kind.get(kind, of_kind.get("all", [None]))
    for full, one in _spread(test):
        for dtype in wanted:
            name = "_".join([full, kind, *([] if dtype is None else [_dtypes_name(dtype)])])
            setattr(made, name, _on(one, kind, dtype, name))


def _dtypes_name(dtype: Any) -> str:
    return "_".join(map(dtype_name, dtype)) if isinstance(dtype, tuple) else dtype_name(dtype)


def _on(test: Callable[..., Any], kind: str, dtype: Any, name: str) -> Callable[..., Any]:
    only, reasons = test.__dict__.get("_only"), test.__dict__.get("_skips", [])

    @functools.wraps(test)
    def run(self: Any) -> None:
        if only is not None and kind not in only:
            raise unittest.SkipTest(f"only for {', '.join(only)}")
        for where, reason in reasons:
            if where in (None, kind):
                raise unittest.SkipTest(reason)
        found = test.__dict__.get("_tolerances", {}).get(dtype)
        before = self.precision, self.rel_tol
        self.precision, self.rel_tol = found or before
        try:
            named = {} if dtype is None else {"dtypes" if isinstance(dtype, tuple) else "dtype": dtype}
            test(self, *([] if test.__dict__.get("_whole") else [kind]), **named)
        finally:
            self.precision, self.rel_tol = before

    run.__name__ = name
    del run.__wrapped__  # type: ignore[attr-defined]
    return run


class dtypes:
    """Decorator: the test once for each dtype, or tuple of dtypes.

    Args:
        args: The dtypes.
        device_type: For one kind of device alone.
    """

    def __init__(self, *args: Any, device_type: str = "all") -> None:
        self._chosen, self._kind = list(args), device_type

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        function.__dict__.setdefault("_dtypes", {})[self._kind] = self._chosen
        return function


dtypesIfCPU = functools.partial(dtypes, device_type="cpu")
dtypesIfCUDA = functools.partial(dtypes, device_type="cuda")
dtypesIfMPS = functools.partial(dtypes, device_type="mps")
dtypesIfXPU = functools.partial(dtypes, device_type="xpu")


def _only(*kinds: str) -> Callable[..., Any]:
    def decorate(function: Any) -> Any:
        function.__dict__["_only"] = kinds
        return function

    return decorate


onlyCPU, onlyCUDA, onlyMPS, onlyXPU = _only("cpu"), _only("cuda"), _only("mps"), _only("xpu")
onlyNativeDeviceTypes = onlyAccelerator = _as_it_is
onlyOn = _only
onlyCUDAAndPRIVATEUSE1 = onlyCUDA


def _skipping(kind: str | None) -> Callable[..., Any]:
    def skip(condition: Any, reason: str) -> Callable[..., Any]:
        """Decorator: left out on that kind of device where the condition holds."""

        def decorate(function: Any) -> Any:
            if condition:
                function.__dict__.setdefault("_skips", []).append((kind, reason))
            return function

        return decorate

    return skip


skipCPUIf, skipCUDAIf, skipIf = _skipping("cpu"), _skipping("cuda"), _skipping(None)
skipMPSIf, skipMetaIf, skipXPUIf = _skipping("mps"), _skipping("meta"), _skipping("xpu")
skipCPUIfNoLapack = skipCPUIfNoFFT = skipCPUIfNoMkl = skipMeta = skipMPS = skipXLA = skipLazy = _as_it_is
skipCUDAIfNoMagma = skipCUDAIfNoCudnn = skipCUDAIfRocm = skipCUDAIfNotRocm = skipCUDAIfNoCusolver = _as_it_is
expectedFailureMeta = expectedFailureXLA = expectedFailureMPS = expectedFailureCUDA = _as_it_is


def toleranceOverride(d: dict[Any, tol]) -> Callable[..., Any]:
    """Decorator: tolerances by dtype."""

    def decorate(function: Any) -> Any:
        function.__dict__["_tolerances"] = {dtype: (each.atol, each.rtol) for dtype, each in d.items()}
        return function

    return decorate


def precisionOverride(d: dict[Any, float]) -> Callable[..., Any]:
    """Decorator: absolute tolerances by dtype."""
    return toleranceOverride({dtype: tol(atol, 0.0) for dtype, atol in d.items()})


def deviceCountAtLeast(count: int) -> Callable[..., Any]:
    """Decorator: the test takes a list of devices, and is left out where there are fewer."""

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def test(self: Any, device: str, **named: Any) -> Any:
            there = getattr(tc, device).device_count()
            if there < count:
                raise unittest.SkipTest(f"fewer than {count} devices")
            return function(self, [f"{device}:{place}" for place in range(there)], **named)

        return test

    return decorate


def largeTensorTest(size: Any, device: Any = None) -> Callable[..., Any]:
    """Decorator of tests that need much memory: they are left out."""
    return unittest.skip(f"needs {size} of memory")


def get_all_device_types() -> list[str]:
    """Kinds of devices there are."""
    return ["cpu", *(["cuda"] if TEST_CUDA else [])]


class ops:
    """Decorator of tests that go through PyTorch's database of operators, which is not there: they are left out."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return unittest.skip("there is no database of operators; taeda_testing.records has samples")(function)


modules = optims = ops
OpDTypes = type("OpDTypes", (), {"supported": "supported", "any_one": "any_one", "none": "none"})
