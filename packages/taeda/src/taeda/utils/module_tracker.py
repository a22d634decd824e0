"""Where in a model a program is."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from taeda_registry.slots import autograd, nn, tensor

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """Context that knows by name the modules whose forward or backward runs.

    Attributes:
        parents: Names of the modules around, from their classes and attributes; "Global" is always among them.

    Example:
        >>> model, seen = taeda.nn.Sequential(taeda.nn.Linear(2, 2)), []
        >>> _ = model[0].register_forward_pre_hook(lambda *_: seen.append(sorted(tracker.parents)))
        >>> with ModuleTracker() as tracker:
        ...     _ = model(taeda.ones(1, 2))
        >>> seen
        [['Global', 'Sequential', 'Sequential.0']]
    """

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._handles: list[Any] = []
        self._ends_with_backward = False

    @property
    def is_bw(self) -> bool:
        """Whether a backward runs."""
        return bool(tensor._C._current_graph_task_id() != -1)

    def _name_of(self, module: Any) -> str:
        """The name of a module, which the first module to contain it gave, or it itself where none has been met."""
        if module not in self._names:
            root = type(module).__name__
            for name, part in module.named_modules():
                self._names.setdefault(part, f"{root}.{name}" if name else root)
        return self._names[module]

    def _begin(self, module: Any, inputs: Any) -> None:
        name = self._name_of(module)
        self.parents.add(name)
        self._on_gradients(inputs, lambda _: self.parents.discard(name))

    def _end(self, module: Any, inputs: Any, outputs: Any) -> None:
        name = self._name_of(module)
        self.parents.discard(name)

        def entered(_: Any) -> None:
            if not self._ends_with_backward:
                self._ends_with_backward = True
                autograd.Variable._execution_engine.queue_callback(self._backward_ends)
            self.parents.add(name)

        self._on_gradients(outputs, entered)

    def _backward_ends(self) -> None:
        self.parents = {"Global"}
        self._ends_with_backward = False

    def _on_gradients(self, values: Any, arrived: Callable[[Any], None]) -> None:
        """Call a function when the gradients of all tensors among some values are there."""
        from taeda.utils import _pytree

        leaves = _pytree.tree_leaves(values)
        watched = [leaf for leaf in leaves if isinstance(leaf, tensor.Tensor) and leaf.requires_grad]
        if watched:
            self._handles.append(autograd.graph.register_multi_grad_hook(watched, arrived))

    def __enter__(self) -> ModuleTracker:
        hooks = nn.modules.module
        self._handles = [
            hooks.register_module_forward_pre_hook(self._begin),
            hooks.register_module_forward_hook(self._end, always_call=True),
        ]
        self._backward_ends()
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
