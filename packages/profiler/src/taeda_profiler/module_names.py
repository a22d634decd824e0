"""Which modules a program is in, in forward and in backward, by their names in the outermost one."""

from __future__ import annotations

import threading
from typing import Any

from taeda_registry.slots import autograd, nn, tensor

__all__ = ["Paths", "Tracker"]


class Paths(threading.local):
    """Names of the modules that a thread is in."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._open: list[tuple[int, str]] = []

    def enter(self, module: Any) -> str:
        """The forward of a module begins."""
        if not self._open:
            root = type(module).__name__
            self._names = {
                id(child): f"{root}.{name}" if name else root for name, child in module.named_modules()
            }
        name = self._names.get(id(module), type(module).__name__)
        self._open.append((id(module), name))
        return name

    def leave(self, module: Any) -> str:
        """It ends; modules in it that an error has left end too."""
        for place in range(len(self._open) - 1, -1, -1):
            if self._open[place][0] == id(module):
                name = self._open[place][1]
                del self._open[place:]
                return name
        return type(module).__name__  # it was entered before anybody looked

    def names(self) -> list[str]:
        """Modules whose forward runs, the outermost first."""
        return [name for _, name in self._open]


class Tracker:
    """A block in which `names` tells the modules whose forward or backward runs.

    The backward of a module begins with the gradient of its result and ends with that of its arguments, or with the
    whole backward where no argument needs one.
    """

    def __init__(self) -> None:
        self._paths = Paths()
        self._backward: set[str] = set()
        self._hooks: list[Any] = []

    def __enter__(self) -> Tracker:
        hooks = nn.modules.module
        self._hooks = [
            hooks.register_module_forward_pre_hook(self._enter),
            hooks.register_module_forward_hook(self._leave, always_call=True),
        ]
        return self

    def __exit__(self, *exception: object) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def names(self) -> list[str]:
        """Modules that the thread is in."""
        return [*self._paths.names(), *self._backward]

    def _enter(self, module: Any, args: Any) -> None:
        name = self._paths.enter(module)
        for value in _recorded(args):
            value.register_hook(lambda grad, name=name: self._backward.discard(name))

    def _leave(self, module: Any, args: Any, result: Any) -> None:
        name = self._paths.leave(module)
        for value in _recorded(result):
            value.register_hook(lambda grad, name=name: self._backward_begins(name))

    def _backward_begins(self, name: str) -> None:
        if not self._backward:
            autograd.Variable._execution_engine.queue_callback(self._backward.clear)
        self._backward.add(name)


def _recorded(values: Any) -> list[Any]:
    """Tensors among values whose gradients will be computed."""
    if isinstance(values, tensor.Tensor):
        return [values] if values.requires_grad else []
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, list | tuple):
        return [found for value in values for found in _recorded(value)]
    return []
