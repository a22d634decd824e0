"""Where in a model a program is."""

from __future__ import annotations

import weakref
from typing import Any

from taeda_registry.slots import nn, tensor

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """Context that knows by name the modules whose forward or backward runs.

    Attributes:
        parents: Names of the modules around, from their classes and attributes; "Global" is always among them.

    Example:
        >>> model, seen = taeda.nn.Sequential(taeda.nn.Linear(2, 2)), []
        >>> _ = model[0].register_forward_hook(lambda *_: seen.append(sorted(tracker.parents)))
        >>> with ModuleTracker() as tracker:
        ...     _ = model(taeda.ones(1, 2))
        >>> seen
        [['Global', 'Sequential', 'Sequential.0']]
    """

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._handles: list[Any] = []
        self._in_backward = False

    @property
    def is_bw(self) -> bool:
        """Whether a backward runs."""
        return self._in_backward

    def _name_of(self, module: Any) -> str:
        if module not in self._names:
            self._names[module] = type(module).__name__
        for name, child in module.named_children():
            if child not in self._names:
                self._names[child] = f"{self._names[module]}.{name}"
        return self._names[module]

    def _begin(self, module: Any, inputs: Any) -> None:
        name = self._name_of(module)
        self.parents.add(name)
        self._on_gradient(inputs, name, leaving=True)

    def _end(self, module: Any, inputs: Any, outputs: Any) -> None:
        name = self._name_of(module)
        self.parents.discard(name)
        self._on_gradient(outputs, name, leaving=False)

    def _on_gradient(self, values: Any, name: str, leaving: bool) -> None:
        """Note a module when the gradients of its results arrive, and forget it when those of its inputs do."""
        from taeda.utils import _pytree

        watched = [
            value
            for value in _pytree.tree_leaves(values)
            if isinstance(value, tensor.Tensor) and value.grad_fn is not None
        ]
        if not watched or not tensor.is_grad_enabled():
            return

        def arrived(_: Any) -> None:
            self._in_backward = True
            if leaving:
                self.parents.discard(name)
            else:
                self.parents.add(name)

        for value in watched:
            value.register_hook(arrived)

    def __enter__(self) -> ModuleTracker:
        hooks = nn.modules.module
        self._handles = [
            hooks.register_module_forward_pre_hook(self._begin),
            hooks.register_module_forward_hook(self._end, always_call=True),
        ]
        self.parents = {"Global"}
        self._in_backward = False
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
