"""Modules made of graphs."""

from __future__ import annotations

import contextlib
import copy
import itertools
import linecache
import os
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taeda.func import _vmap
from taeda.fx._pickling import described, rebuilt
from taeda.fx.graph import CodeGen, Graph, PythonCode, _PyTreeCodeGen
from taeda_registry import files
from taeda_registry.slots import nn, tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["GraphModule", "reduce_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_numbers = itertools.count()


def _method(source: str, scope: dict[str, Any]) -> Any:
    """The function `forward` of a source, whose lines tracebacks show as long as there is its code."""
    name = f"<eval_with_key>.{next(_numbers)}"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    made = dict(scope)
    exec(compile(source, name, "exec"), made)
    weakref.finalize(made["forward"].__code__, linecache.cache.pop, name, None).atexit = False
    return made["forward"]


def _import_block(scope: dict[str, Any]) -> str:
    """Import statements that give the names in `scope`; what cannot be imported raises."""
    lines = set()
    for name, value in scope.items():
        if name == "torch":
            lines.add("import taeda as torch")
        elif name in ("inf", "nan"):
            lines.add(f"from math import {name}")
        elif name == "NoneType":
            lines.add("NoneType = type(None)")
        elif name == "typing":
            lines.add("import typing")
        elif name == "pytree":
            lines.add("from taeda.utils import _pytree as pytree")
        elif name == "fx_pytree":
            lines.add("from taeda.fx import _pytree as fx_pytree")
        elif name == "device":
            lines.add("from taeda import device")
        else:
            lines.add(_import_statement(name, value))
    return "\n".join(sorted(lines))


def _import_statement(name: str, value: Any) -> str:
    module, own = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if module is None or own is None or "<locals>" in own:
        raise RuntimeError(f"Could not find module that defines {value!r} (as {name}); it cannot be pickled")
    if own == "<lambda>":
        raise RuntimeError(f"the lambda {name} cannot be pickled")
    root, _, rest = own.partition(".")
    statement = f"from {module} import {root} as {name}"
    return statement if not rest else f"{statement}; {name} = {name}.{rest}"


def _owner(module: Any, target: str) -> tuple[Any, str]:
    *prefix, field = target.split(".")
    for item in prefix:
        module = getattr(module, item)
    return module, field


def _place_for(module: Any, target: str) -> tuple[Any, str]:
    """The module that is to hold an attribute, made where it is missing, and the attribute's name."""
    *prefix, field = target.split(".")
    for item in prefix:
        below = getattr(module, item, None)
        if below is None:
            below = nn.Module()
            setattr(module, item, below)
        module = below
    return module, field


def _copy_attr(from_module: Any, to_module: Any, target: str) -> None:
    """Let `to_module` have the attribute of `from_module` at a path; tensors become buffers."""
    source, field = _owner(from_module, target)
    value = getattr(source, field)
    place, field = _place_for(to_module, target)
    if value is not None and hasattr(place, field) and getattr(place, field) is value:
        return
    if isinstance(value, tensor.Tensor) and not isinstance(value, nn.Parameter):
        persistent = field not in getattr(source, "_non_persistent_buffers_set", ())
        place.register_buffer(field, value, persistent=persistent)
    else:
        setattr(place, field, value)


def _assign_attr(from_obj: Any, to_module: Any, target: str, persistent: bool = True) -> None:
    """Put an object at a path; tensors become buffers."""
    place, field = _place_for(to_module, target)
    if isinstance(from_obj, tensor.Tensor) and not isinstance(from_obj, nn.Parameter):
        place.register_buffer(field, from_obj, persistent=persistent)
    else:
        setattr(place, field, from_obj)


def _get_attr(model: Any, attr_name: str) -> Any:
    place, field = _owner(model, attr_name)
    return getattr(place, field)


def _del_attr(model: Any, attr_name: str) -> None:
    place, field = _owner(model, attr_name)
    delattr(place, field)


def _has_attr(model: Any, attr_name: str) -> bool:
    try:
        _get_attr(model, attr_name)
    except AttributeError:
        return False
    return True


class _CodeOnlyModule(nn.Module):
    """Holds the attributes of a graph module."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__setstate__(body)


def reduce_graph_module(body: dict[str, Any], nodes: list[tuple[Any, ...]]) -> Any:
    """The graph module that was pickled as its attributes and the nodes of its graph."""
    graph = rebuilt(nodes)
    graph._tracer_cls = body.get("_tracer_cls")
    graph._codegen = body.get("_graph_codegen") or graph._codegen
    state = {key: value for key, value in body.items() if key not in _TRANSIENT}
    return _assemble(GraphModule, state, graph, body.get("_graphmodule_cls_name", "GraphModule"))


_TRANSIENT = frozenset({"_graphmodule_cls_name", "_graph_codegen"})


def _assemble(cls: type, state: dict[str, Any], graph: Graph, name: str) -> Any:
    """A graph module of attributes and a graph."""
    return _filled(cls.__new__(cls), state, graph, name)


def _filled(made: Any, state: dict[str, Any], graph: Graph, name: str) -> Any:
    made.__setstate__(state)
    type(made).__name__ = name
    made.graph = graph
    return made


def _empty_like(t: Any) -> str:
    """The expression, in a program that knows us as torch, of an empty tensor of this one's shape and dtype."""
    return f"torch.empty({list(t.shape)}, dtype=torch.{str(t.dtype).rpartition('.')[2]})"


class GraphModule(nn.Module):
    """A module whose forward is made of a graph.

    Args:
        root: A module, whose attributes are taken over where the graph names them, or a dict of them by path.
        graph: The graph.
        class_name: Name of the class that is made for it.

    Attributes:
        graph: The graph; assign one, or call `recompile` after changing it.
        code: The source of `forward`.

    Raises:
        RuntimeError: The graph names an attribute that the dict does not have.

    Example:
        >>> net = taeda.fx.symbolic_trace(taeda.nn.Sequential(taeda.nn.Linear(2, 3), taeda.nn.ReLU()))
        >>> [node.name for node in net.graph.nodes]
        ['input_1', '_0', '_1', 'output']
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # Every graph has a forward of its own, and Python looks methods up in classes.
        for base in cls.__mro__:
            own = base.__qualname__.rpartition(".")[2]
            if own != "GraphModuleImpl":
                made = type("GraphModuleImpl", (base,), {"__module__": cls.__module__})
                return nn.Module.__new__(made)
        raise AssertionError("unreachable")

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self.__class__.__name__ = class_name
        targets = [n.target for n in graph.nodes if n.op in ("get_attr", "call_module")]
        if isinstance(root, nn.Module):
            if hasattr(root, "training"):
                self.training = root.training
            for target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for target in sorted(set(targets), key=lambda path: path.count(".")):
                if target not in root:
                    raise RuntimeError(
                        f"GraphModule: a node of the graph refers to {target}, which was not provided in ``root``"
                    )
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self._tracer_cls = None
        cls = graph._tracer_cls
        if cls is not None and "<locals>" not in cls.__qualname__:
            self._tracer_cls = cls
        self._tracer_extras = dict(graph._tracer_extras or {})
        self.meta: dict[str, Any] = {}
        self._replace_hooks: list[Callable[..., Any]] = []
        self._create_node_hooks: list[Callable[..., Any]] = []
        self._erase_node_hooks: list[Callable[..., Any]] = []
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph that it runs."""
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
        """The source of `forward`."""
        if "_code" not in self.__dict__:
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def recompile(self) -> PythonCode:
        """Make `forward` anew from the graph; call it after changing the graph.

        Returns:
            The source and the objects that it names.
        """
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec, self._out_spec = codegen.pytree_info.in_spec, codegen.pytree_info.out_spec
        made = self._graph.python_code("self")
        self._code = made.src
        self._lineno_map = made._lineno_map
        forward = _method(made.src, made.globals)
        if any(node.target is _vmap._vmap_increment_nesting for node in self._graph.nodes):
            forward = _vmap.restored()(forward)
        type(self).forward = forward
        return made

    _real_recompile = recompile

    # --- submodules ---

    def add_submodule(self, target: str, m: Any) -> bool:
        """Put a module at a path, with empty modules on the way; False where something else is in the way."""
        *prefix, field = target.split(".")
        here: Any = self
        for item in prefix:
            below = getattr(here, item, None)
            if below is None:
                below = nn.Module()
                setattr(here, item, below)
            if not isinstance(below, nn.Module):
                return False
            here = below
        here.add_module(field, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the module at a path; False where there is none."""
        here: Any = self
        *prefix, field = target.split(".")
        for item in prefix:
            here = getattr(here, item, None)
            if not isinstance(here, nn.Module):
                return False
        if not isinstance(getattr(here, field, None), nn.Module):
            return False
        delattr(here, field)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove every submodule that the graph names neither itself nor by one of its attributes."""
        used = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            parts = node.target.split(".")
            used.update(".".join(parts[:count]) for count in range(1, len(parts) + 1))
            if node.op == "call_module":
                with contextlib.suppress(AttributeError):
                    below = self.get_submodule(node.target)
                    used.update(f"{node.target}.{name}" for name, _ in below.named_modules() if name)
        for name, _ in list(self.named_modules(remove_duplicate=False)):
            if name and name not in used:
                self.delete_submodule(name)

    # --- copies, pickles, files ---

    def _state_without_graph(self) -> dict[str, Any]:
        state = self.__getstate__()
        for name in ("_graph", "_lineno_map", "_code"):
            state.pop(name, None)
        return state

    def __reduce__(self) -> Any:
        body = self._state_without_graph()
        body["_graphmodule_cls_name"] = self.__class__.__name__
        codegen = self._graph._codegen
        if type(codegen) is not CodeGen:
            body["_graph_codegen"] = codegen
        return reduce_graph_module, (body, described(self._graph))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = type(self).__new__(type(self))
        memo[id(self)] = made  # what it has may lead back to it
        state = copy.deepcopy(self._state_without_graph(), memo)
        return _filled(made, state, copy.deepcopy(self._graph), self.__class__.__name__)

    def __copy__(self) -> Any:
        made = GraphModule(self, copy.deepcopy(self.graph), self.__class__.__name__)
        made.meta = getattr(self, "meta", {})
        return made

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Write the source of a module with this forward, and its attributes, into a folder.

        Args:
            folder: Made where it is missing.
            module_name: Name of the class.
        """
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        tensor_state = place / "state_dict.pt"
        made = self._graph.python_code("self")
        wraps, function = made.src.split("\n\n", 1)  # `wrap` is for the top of a module
        lines = [_import_block(made.globals), "import taeda as torch", "from taeda import nn", wraps, ""]
        lines += [f"class {module_name}(nn.Module):", "    def __init__(self):", "        super().__init__()"]
        for name, module in self.named_children():
            tensor.save(module, place / f"{name}.pt")
            loaded = f"torch.load({str(place / f'{name}.pt')!r}, weights_only=False)"
            lines.append(f"        self.add_module({name!r}, {loaded})")
        for name, buffer in self._buffers.items():
            made_empty = _empty_like(buffer)
            lines.append(f"        self.register_buffer({name!r}, {made_empty})")
        for name, parameter in self._parameters.items():
            made_empty = f"nn.Parameter({_empty_like(parameter)}, {parameter.requires_grad})"
            lines.append(f"        self.register_parameter({name!r}, {made_empty})")
        lines.append(f"        self.load_state_dict(torch.load({str(tensor_state)!r}))")
        tensor.save(self.state_dict(), tensor_state)
        lines += ["    " + line for line in function.splitlines()]
        files.write(place / "module.py", ["\n".join([*lines, ""]).encode()])
        files.write(place / "__init__.py", [b"from .module import *\n"])

    # --- texts ---

    def __str__(self) -> str:
        text = nn.Module.__repr__(self)
        return "\n".join(
            [text, self._code, "# To see more debug info, please use `graph_module.print_readable()`"]
        )

    def print_readable(self, print_output: bool = True, **_: Any) -> str:
        """The code of this module and of graph modules below it, as one text."""
        code = self._graph.python_code("self", described=True).src
        body = "\n".join("    " + line if line.strip() else "    " for line in code.strip().splitlines())
        parts = [f"class {self.__class__.__name__}(torch.nn.Module):\n{body}\n"]
        for _, module in self.named_children():
            if isinstance(module, GraphModule):
                inner = module.print_readable(print_output=False)
                parts.append("\n".join("    " + line if line else line for line in inner.splitlines()) + "\n")
        text = "\n".join(parts)
        if print_output:
            print(text)
        return text

    # --- hooks of graph editing ---

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        self._replace_hooks.append(f)
        try:
            yield
        finally:
            self._replace_hooks.remove(f)

    @contextlib.contextmanager
    def _set_create_node_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        self._create_node_hooks.append(f)
        try:
            yield
        finally:
            self._create_node_hooks.remove(f)

    @contextlib.contextmanager
    def _set_erase_node_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        self._erase_node_hooks.append(f)
        try:
            yield
        finally:
            self._erase_node_hooks.remove(f)
