"""Symbolic traces of scripts: what a program writes to its inputs and buffers is written by the graph too."""

from __future__ import annotations

import operator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from taeda import fx
from taeda.fx._code import inplace_methods
from taeda.fx._keeping import left_alone
from taeda_registry.slots import nn

if TYPE_CHECKING:
    from collections.abc import Callable

    from taeda.fx._patches import Patcher


def _recorded(change: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def record(self: _Written, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", change, (self, other), {})

    return record


class _Written(fx.Proxy):
    """A proxy whose changes in place stay such, where those of `fx.Proxy` become results of their own."""


_IN_PLACE = {name: getattr(operator, name) for name in inplace_methods if name != "setitem"}
for _name, _change in _IN_PLACE.items():
    setattr(_Written, f"__{_name}__", _recorded(_change))


class _Rebound(Exception):
    """A buffer was given a value that is known in calls alone."""


class _Tracer(fx.Tracer):
    def proxy(self, node: fx.Node) -> fx.Proxy:
        return _Written(node, self)

    def _patch(self, patcher: Patcher, scope: dict[str, Any]) -> None:
        super()._patch(patcher, scope)
        write = nn.Module.__setattr__

        def patched_write(module: Any, name: str, value: Any) -> None:
            if isinstance(value, _Written) and name in module._buffers:
                self._assign(module, name, value)
            else:
                write(module, name, value)

        patcher.patch_method(nn.Module, "__setattr__", patched_write, deduplicate=False)

    def _assign(self, module: nn.Module, name: str, value: fx.Proxy) -> None:
        raise _Rebound(name)


class _BufferTracer(_Tracer):
    """Reads buffers as the graph has them, and writes to them in it."""

    proxy_buffer_attributes = True

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """A buffer is what the program made of it last."""
        if id(attr_val) in self._assigned:
            return self._assigned[id(attr_val)][1]
        return super().getattr(attr, attr_val, parameter_proxy_cache)

    def _assign(self, module: nn.Module, name: str, value: fx.Proxy) -> None:
        path = next(path for path, part in self.root.named_modules() if part is module)
        place, changed = f"{path}.{name}".lstrip("."), value.node
        while changed.target in _IN_PLACE.values() and isinstance(changed.args[0], fx.Node):
            changed = changed.args[0]
        held = module._buffers[name]
        if held is None:
            raise NotImplementedError(f"the buffer {place!r} is None, and no graph gives it a value")
        if (changed.op, changed.target) != ("get_attr", place):  # otherwise it was changed where it is
            self._assigned[id(held)] = place, value

    def trace(self, *args: Any, **kwargs: Any) -> fx.Graph:
        """The graph; values that buffers were given are copied into them at its end."""
        self._assigned: dict[int, tuple[str, fx.Proxy]] = {}
        graph = super().trace(*args, **kwargs)
        with graph.inserting_before(graph.output_node()):
            for place, value in self._assigned.values():
                graph.call_method("copy_", (graph.get_attr(place), value.node))
        return graph


def graph_module(program: Any) -> fx.GraphModule:
    """The graph module of a script.

    Raises:
        Exception: Whatever comes out where a program cannot be followed, or what it writes cannot be recorded.
    """
    name = type(program).__name__ if isinstance(program, nn.Module) else program.__name__
    with left_alone(program):
        before = _held(program)
        tracer, graph = _Tracer(), None
        with suppress(_Rebound):
            graph = tracer.trace(program)
        stays = before == _held(program)
    if (
        graph is None or not stays
    ):  # the program wrote to buffers while it was followed: their numbers are not those of its calls
        with left_alone(program):
            graph = (tracer := _BufferTracer()).trace(program)
    return fx.GraphModule(tracer.root, graph, name)


def _held(program: Any) -> list[tuple[str, int, int | None]]:
    """What stands for the contents of a module's buffers."""
    buffers = program.named_buffers() if isinstance(program, nn.Module) else ()
    return [(name, id(value), None if value.is_inference() else value._version) for name, value in buffers]
