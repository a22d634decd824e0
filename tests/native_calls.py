"""Calls every function and class of the compiled parts with arguments of all kinds: `python native_calls.py` prints
those whose call ended a process, or gave a result and an exception at once."""

from __future__ import annotations

import itertools
import os
import signal
import warnings
from types import ModuleType
from typing import Any

import taeda
import taeda_autograd._C
import taeda_tensor_core._C

PATIENCE = 60  # seconds for all calls of one function


class Hostile:
    """Fails whatever is asked of it."""

    def _fails(self, *_: Any) -> Any:
        raise KeyError("hostile")

    __index__ = __float__ = __len__ = __iter__ = __getitem__ = _fails
    __bool__ = __repr__ = __hash__ = __eq__ = __call__ = _fails


def arguments() -> list[Any]:
    return [
        None,
        1,
        -1,
        2**70,
        "a",
        "\ud800",
        (),
        [],
        {},
        taeda.Size([2**70, 3]),
        float("nan"),
        Hostile(),
        taeda.ones(2),
        taeda.float32,
        int,
        print,
    ]


def functions(module: ModuleType) -> list[tuple[str, Any]]:
    found = [(name, getattr(module, name)) for name in sorted(dir(module)) if not name.startswith("__")]
    return [(name, value) for name, value in found if callable(value)]


def call_all(function: Any) -> None:
    """Calls with up to two arguments, and unbound methods of a class on what is no instance."""
    warnings.simplefilter("ignore")
    methods = [getattr(function, name) for name in dir(function)] if isinstance(function, type) else []
    for each in (function, *filter(callable, methods)):
        for count in range(3):
            for given in itertools.product(arguments(), repeat=count):
                try:
                    each(*given)
                except SystemError:  # the interpreter's word for both at once
                    raise
                except Exception:  # what a wrong call ends in: others ask which
                    pass


def ends(function: Any) -> int:
    """How a process ends in which a function is called: 0, or what `os.wait` says of a signal or a stray exception."""
    child = os.fork()
    if not child:
        silent = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(silent, number)
        signal.alarm(PATIENCE)
        try:
            call_all(function)
        except BaseException:  # also one that a call left behind with its result, and that the next line met
            os._exit(os.EX_SOFTWARE)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return status


def main() -> None:
    seen = 0
    for module in (taeda_tensor_core._C, taeda_autograd._C):
        for name, function in functions(module):
            seen += 1
            if status := ends(function):
                print(f"{module.__name__}.{name}: {status}", flush=True)
    print(f"{seen} functions")


if __name__ == "__main__":
    main()
