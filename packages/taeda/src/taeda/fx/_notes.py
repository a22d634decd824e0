"""Where in a program the nodes of a recording come from: lines, modules, functions."""

from __future__ import annotations

import linecache
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taeda_registry.slots import nn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taeda.fx.node import Node

__all__ = ["Notes"]

#: Packages whose frames are no lines of the program, but for the functions of layers.
_OURS = tuple(
    f"{Path(sys.modules[name].__file__ or '').parent}/"
    for name in ("taeda", "taeda_registry", "taeda_tensor_core", "taeda_autograd", "taeda_nn")
    if name in sys.modules
)


#: The functions that run what is recorded.
_STARTS = frozenset({"_exported", "follow"})


def class_name(kind: type) -> str:
    """The name of a class of modules, as programs know it."""
    home = kind.__module__
    return f"{home.replace('taeda_nn', 'torch.nn', 1)}.{kind.__qualname__}"


class Notes:
    """What is said of the nodes that a recording makes.

    Args:
        root: The module that is recorded.
        sources: Tell the function, or the layer, that each node comes from.
    """

    def __init__(self, root: Any, sources: bool) -> None:
        self.sources = sources
        self._paths: dict[int, str] = {}
        for path, module in root.named_modules():
            self._paths.setdefault(id(module), path)
        self._stack: list[Any] = []
        self._counts: dict[str, int] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Context in which it is known which module is being called."""
        register = nn.modules.module
        handles = [
            register.register_module_forward_pre_hook(lambda module, _: self._stack.append(module)),
            register.register_module_forward_hook(self._left, always_call=True),
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _left(self, module: Any, *_: Any) -> None:
        if self._stack and self._stack[-1] is module:
            self._stack.pop()

    def note(self, node: Node, func: Any) -> None:
        """Say of a node what calls it."""
        modules = {}
        for module in self._stack:
            path = self._paths.get(id(module), "")
            modules[path] = (path, class_name(type(module)))
        node.meta["nn_module_stack"] = modules
        if trace := _stack_trace():
            node.meta["stack_trace"] = trace
        name = getattr(func, "__name__", str(func))
        number = self._counts[name] = self._counts.get(name, 0) + 1
        node.meta["torch_fn"] = f"{name}_{number}", f"{type(func).__name__}.{name}"
        if self.sources:
            layer = self._stack[-1] if self._stack else None
            leaf = layer is not None and class_name(type(layer)).startswith("torch.nn.")
            path = self._paths.get(id(layer), "") if leaf else node.name
            node.meta["source_fn_stack"] = [(path, type(layer) if leaf else func)]


def _stack_trace() -> str:
    """The lines of the program that are being run, from the recorded module's on."""
    lines: list[str] = []
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_name not in _STARTS:
        code = frame.f_code
        if not code.co_filename.startswith(_OURS) or code.co_name == "forward":
            text = linecache.getline(code.co_filename, frame.f_lineno, frame.f_globals).strip()
            lines.append(
                f'  File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}\n    {text}\n'
            )
        frame = frame.f_back  # type: ignore[assignment]
    return "".join(reversed(lines))
