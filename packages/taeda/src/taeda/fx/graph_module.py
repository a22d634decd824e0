"""Modules made of graphs: their forward is compiled from the graph's source."""

from __future__ import annotations

import copy
import itertools
import linecache
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

import taeda
from taeda.fx.graph import Graph, PythonCode
from taeda_registry.slots import nn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["GraphModule", "reduce_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_numbers = itertools.count()
# Members of a module that are no part of its state.
_OWN = ("_graph", "_code", "_tracer_cls", "_tracer_extras")


class _CodeOnlyModule(nn.Module):
    """A module that has the members of another one, and no forward yet."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__.update(body)


def _copy_attr(from_module: Any, to_module: Any, target: str) -> None:
    """Give a module the member of another one that has a dotted name; modules on the way are made."""
    *path, name = target.split(".")
    source = from_module
    for part in path:
        source = getattr(source, part)
        found = getattr(to_module, part, None)
        if found is source:
            return
        if found is None:
            found = nn.Module()
            setattr(to_module, part, found)
        to_module = found
    value = getattr(source, name)
    if isinstance(value, taeda.Tensor) and not isinstance(value, nn.Parameter):
        persistent = getattr(source, "_buffer_names", {}).get(name, True)
        to_module.register_buffer(name, value, persistent=persistent)
    else:
        setattr(to_module, name, value)


def _assign_attr(value: Any, to_module: Any, target: str) -> None:
    """Put a value at a dotted name below a module; modules on the way are made."""
    *path, name = target.split(".")
    for part in path:
        found = getattr(to_module, part, None)
        if found is None:
            found = nn.Module()
            setattr(to_module, part, found)
        to_module = found
    if isinstance(value, taeda.Tensor) and not isinstance(value, nn.Parameter):
        to_module.register_buffer(name, value)
    else:
        setattr(to_module, name, value)


def _compiled(code: PythonCode) -> Callable:
    """The function `forward` that a source defines; the source is kept for tracebacks."""
    names = dict(code.globals)
    file = f"<eval_with_key>.{next(_numbers)}"
    linecache.cache[file] = (len(code.src), None, code.src.splitlines(keepends=True), file)
    exec(compile(code.src, file, "exec", dont_inherit=True), names)
    return names["forward"]


class GraphModule(nn.Module):
    """A module whose forward is a graph.

    Args:
        root: The module whose members the graph uses, or a dict of them by dotted name.
        graph: The graph; `graph` of the module is it.
        class_name: The name of the module's class.

    After changes of the graph `recompile` must be called. The source is `code`.

    Raises:
        RuntimeError: The dict lacks what the graph uses, or `root` is neither a module nor a dict.

    Example:
        >>> traced = taeda.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
        >>> traced(taeda.ones(1, 2)).shape
        taeda.Size([1, 3])
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        # Each instance has a class of its own, which holds its forward.
        base = next(kind for kind in cls.__mro__ if not kind.__dict__.get("_of_one_instance", False))
        own = type("GraphModuleImpl", (base,), {"_of_one_instance": True, "__module__": base.__module__})
        return super().__new__(own)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, nn.Module):
            self.training = root.training
            kept = getattr(root, "meta", {}) if isinstance(getattr(root, "meta", None), dict) else {}
            self.meta = dict(kept.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}))
            for name, value in self.meta.items():
                setattr(self, name, value)
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    _copy_attr(root, self, node.target)
        elif isinstance(root, dict):
            self._take_members(root, graph)
            self.meta = {}
        else:
            raise RuntimeError(f"Unsupported type {type(root)} passed for root!")
        self.graph = graph
        self._tracer_cls = graph._tracer_cls
        self._tracer_extras = graph._tracer_extras

    def _take_members(self, root: dict[str, Any], graph: Graph) -> None:
        targets = []
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                if node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not provided in ``root``!"
                    )
                targets.append(node.target)
        # Those above others first.
        for target in sorted(set(targets), key=lambda path: path.count(".")):
            _assign_attr(root[target], self, target)

    @property
    def graph(self) -> Graph:
        """The graph. A graph that is set here belongs to this module, which is compiled anew."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The source of the forward."""
        if "_code" not in self.__dict__:
            raise RuntimeError("Code has not been generated: the module has no graph yet")
        return self._code

    def recompile(self) -> PythonCode:
        """Compile the graph as it is now; returns its source."""
        code = self._graph.python_code(root_module="self")
        self._code = code.src
        type(self).forward = _compiled(code)  # type: ignore[method-assign]
        return code

    # Members

    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Put a module at a dotted name; modules on the way are made. Whether that was possible."""
        *path, name = target.split(".")
        holder: Any = self
        for part in path:
            found = getattr(holder, part, None)
            if found is None:
                found = nn.Module()
                setattr(holder, part, found)
            if not isinstance(found, nn.Module):
                return False
            holder = found
        holder.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take away the module of a dotted name; whether there was one."""
        *path, name = target.split(".")
        holder: Any = self
        for part in path:
            holder = getattr(holder, part, None)
            if not isinstance(holder, nn.Module):
                return False
        if not isinstance(getattr(holder, name, None), nn.Module):
            return False
        delattr(holder, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take away the modules that no step of the graph uses."""
        used: set[str] = set()
        for node in self._graph.nodes:
            if node.op not in ("get_attr", "call_module"):
                continue
            path = node.target.split(".")
            used.update(".".join(path[:count]) for count in range(1, len(path) + 1))
            if node.op == "call_module":
                inner = self.get_submodule(node.target)
                used.update(f"{node.target}.{name}" for name, _ in inner.named_modules() if name)
        for name, _ in list(self.named_modules()):
            if name and name not in used:
                self.delete_submodule(name)

    # Copies, pickles, files

    def _state(self) -> dict[str, Any]:
        state = self.__getstate__()
        return {name: value for name, value in state.items() if name not in _OWN}

    def _copied(self, made: GraphModule, state: dict[str, Any], graph: Graph) -> GraphModule:
        made.__setstate__(state)
        type(made).__name__ = type(self).__name__
        made.graph = graph
        made._tracer_cls, made._tracer_extras = self._tracer_cls, self._tracer_extras
        return made

    def __copy__(self) -> GraphModule:
        return self._copied(type(self).__new__(type(self)), dict(self._state()), copy.copy(self._graph))

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        made = memo[id(self)] = type(self).__new__(type(self))
        return self._copied(made, copy.deepcopy(self._state(), memo), copy.deepcopy(self._graph, memo))

    def __reduce__(self) -> tuple:
        code = self._graph.python_code(root_module="self")
        names = {
            name: ("module", value.__name__) if isinstance(value, types.ModuleType) else ("value", value)
            for name, value in code.globals.items()
        }
        state = self._state()
        return reduce_graph_module, (state, code.src, names, type(self).__name__)

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return self.__reduce__()

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        **_options: Any,
    ) -> str:
        """The source as a class, which is printed unless `print_output` is False."""
        lines = [f"class {type(self).__name__}(torch.nn.Module):"]
        lines += [f"    {line}".rstrip() for line in self._code.strip("\n").splitlines()]
        text = "\n".join(lines).rstrip() + "\n"
        if print_output:
            print(text)
        return text

    def to_folder(self, folder: str | Path, module_name: str = "FxModule") -> None:
        """Write the module as a package of Python with its parameters in a file beside it.

        Args:
            folder: Where; it is made if need be.
            module_name: The name of the class.
        """
        home = Path(folder)
        home.mkdir(parents=True, exist_ok=True)
        taeda.save(self.state_dict(), home / "state_dict.pt")
        lines = [
            "from pathlib import Path",
            "import math, operator",
            "import taeda as torch",
            "from math import inf, nan",
            "from taeda import device",
            "from taeda import nn",
            f"class {module_name}(torch.nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
            "        home = Path(__file__).parent",
        ]
        for name, module in self.named_children():
            file = f"{name}.pt"
            taeda.save(module, home / file)
            lines.append(f"        self.{name} = torch.load(home / {file!r}, weights_only=False)")
        for name, buffer in self.named_buffers(recurse=False):
            lines.append(f"        self.register_buffer({name!r}, {_empty(buffer)})")
        for name, param in self.named_parameters(recurse=False):
            lines.append(f"        self.{name} = torch.nn.Parameter({_empty(param)})")
        lines.append('        self.load_state_dict(torch.load(home / "state_dict.pt"))')
        lines += [f"    {line}" for line in self._code.splitlines()]
        (home / "module.py").write_text("\n".join(lines).rstrip() + "\n")
        (home / "__init__.py").write_text("from .module import *\n")

    def __str__(self) -> str:
        note = "# To see more debug info, please use `graph_module.print_readable()`"
        return f"{super().__str__()}\n{self._code}\n{note}"


def _empty(tensor: Any) -> str:
    """The source of a tensor of the same shape and dtype."""
    return f"torch.empty({list(tensor.shape)}, dtype=torch.{str(tensor.dtype).rpartition('.')[2]})"


def reduce_graph_module(
    state: dict[str, Any], src: str, names: dict[str, tuple[str, Any]], class_name: str
) -> GraphModule:
    """The module that was pickled: its source is compiled and traced again."""
    from taeda.fx._symbolic_trace import Tracer

    class KeepModules(Tracer):
        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return True

    found = {name: _module(value) if kind == "module" else value for name, (kind, value) in names.items()}
    body = _CodeOnlyModule({})
    body.__setstate__(state)
    body_class = type(class_name, (_CodeOnlyModule,), {"forward": _compiled(PythonCode(src, found))})
    body.__class__ = body_class
    graph = KeepModules().trace(body)
    graph._tracer_cls = None
    made = GraphModule(body, graph, class_name)
    made.training = body.training
    for name, value in vars(body).items():
        if name not in vars(made) and name not in _OWN:
            setattr(made, name, value)
    return made


def _module(name: str) -> types.ModuleType:
    from importlib import import_module

    return import_module(name)
