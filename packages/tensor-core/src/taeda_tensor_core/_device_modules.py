"""Modules of a kind of device that programs import: graphs, a vendor's profiler, communication and tuning."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from taeda_tensor_core import _C


def _made(kind: Any, name: str, text: str, **names: Any) -> ModuleType:
    module = ModuleType(f"{kind.__name__}.{name}", text)
    vars(module).update(names)
    return module


def _graphs(kind: Any) -> ModuleType:
    def __getattr__(name: str) -> Any:
        return getattr(kind, name)

    return _made(
        kind, "graphs", "Work of a device that is recorded, which none is here.", __getattr__=__getattr__
    )


def _profiler(kind: Any) -> ModuleType:
    def start() -> None:
        """Begin: a vendor's profiler is not there.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError(f"{kind.__name__}.profiler: there is no such profiler; use taeda.profiler.profile")

    @contextlib.contextmanager
    def profile() -> Iterator[None]:
        """A context that a vendor's profiler watches."""
        start()
        yield

    return _made(
        kind, "profiler", "A vendor's profiler.", start=start, stop=start, init=start, profile=profile
    )


def _nccl(kind: Any) -> ModuleType:
    def is_available(tensors: Any) -> bool:
        """Whether a vendor's library can join these tensors: False."""
        return False

    def version() -> tuple[int, ...]:
        """The library's version.

        Raises:
            RuntimeError: It is not there.
        """
        raise RuntimeError(f"{kind.__name__}.nccl: the library is not there")

    return _made(
        kind,
        "nccl",
        "A vendor's communication, which is not there.",
        is_available=is_available,
        version=version,
    )


def _utils(kind: Any) -> ModuleType:
    def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
        """The number of a device of this kind; of the current one for None where that is `optional`.

        Raises:
            ValueError: It is of another kind.
        """
        if isinstance(device, int):
            return device
        if device is None:
            if optional:
                return kind.current_device()
            raise ValueError(f"expected a {kind._device} device with a number, found None")
        found = _C.device(device)
        if found.type == "cpu" and allow_cpu:
            return -1
        if found.type != kind._device:
            raise ValueError(f"expected a {kind._device} device, found {found}")
        return kind.current_device() if found.index is None else found.index

    return _made(kind, "_utils", "Numbers of devices.", _get_device_index=_get_device_index)


def _tunable(kind: Any) -> ModuleType:
    def nothing(*args: Any, **kwargs: Any) -> None:
        """Nothing is tuned."""

    def no(*args: Any, **kwargs: Any) -> bool:
        """Whether kernels are tuned: False."""
        return False

    settings = ("enable", "tuning_enable", "record_untuned_enable", "set_max_tuning_duration", "write_file",
                "set_max_tuning_iterations", "set_filename", "write_file_on_exit", "read_file")  # fmt: skip
    asked = dict.fromkeys(("is_enabled", "tuning_is_enabled", "record_untuned_is_enabled"), no)
    return _made(kind, "tunable", "Choice of kernels by time.", **dict.fromkeys(settings, nothing), **asked)


def _jiterator(kind: Any) -> ModuleType:
    def made(*_: Any, **__: Any) -> Callable[..., Any]:
        """A function from source text, refused only when it is called: programs make theirs as they load."""

        def refused(*_: Any, **__: Any) -> Any:
            raise NotImplementedError(
                f"{kind.__name__}.jiterator: source text is not compiled; write it as operators"
            )

        return refused

    names = ("_create_jit_fn", "_create_multi_output_jit_fn")
    return _made(kind, "jiterator", "Functions from source text.", **dict.fromkeys(names, made))


#: By name: what makes the module of a kind.
MODULES = {
    "graphs": _graphs, "jiterator": _jiterator, "nccl": _nccl, "profiler": _profiler, "tunable": _tunable,
    "_utils": _utils,
}  # fmt: skip
