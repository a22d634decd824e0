"""The Python source of a graph."""

from __future__ import annotations

import builtins
import keyword
import math
import operator
import types
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import taeda
from taeda.fx._names import is_reached, qualified_name
from taeda.fx.node import Node, type_text

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CodeGen", "PythonCode", "inplace_methods", "magic_methods", "reflectable_magic_methods"]

# Operators that have a spelling of their own, and how they are written.
reflectable_magic_methods = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "floordiv": "{} // {}",
    "truediv": "{} / {}",
    "mod": "{} % {}",
    "pow": "{} ** {}",
    "lshift": "{} << {}",
    "rshift": "{} >> {}",
    "and_": "{} & {}",
    "or_": "{} | {}",
    "xor": "{} ^ {}",
    "matmul": "{} @ {}",
}
magic_methods = {
    "eq": "{} == {}",
    "ne": "{} != {}",
    "lt": "{} < {}",
    "gt": "{} > {}",
    "le": "{} <= {}",
    "ge": "{} >= {}",
    "pos": "+{}",
    "neg": "-{}",
    "invert": "~{}",
    "getitem": "{}[{}]",
    **reflectable_magic_methods,
}
inplace_methods = {
    "iadd": "{} += {}",
    "iand": "{} &= {}",
    "ifloordiv": "{} //= {}",
    "ilshift": "{} <<= {}",
    "imod": "{} %= {}",
    "imul": "{} *= {}",
    "imatmul": "{} @= {}",
    "ior": "{} |= {}",
    "ipow": "{} **= {}",
    "irshift": "{} >>= {}",
    "isub": "{} -= {}",
    "itruediv": "{} /= {}",
    "ixor": "{} ^= {}",
    "setitem": "{}[{}] = {}",
}
# What the text of numbers, dtypes and devices is made of.
_ALWAYS = {"inf": math.inf, "nan": math.nan, "NoneType": type(None), "torch": taeda, "device": taeda.device}


@dataclass
class PythonCode:
    """The source of a program, and the names that it uses.

    Attributes:
        src: The source, which defines `forward`.
        globals: What its free names stand for.
    """

    src: str
    globals: dict[str, Any] = field(default_factory=dict)


class CodeGen:
    """Writes the source of graphs; derived classes change how arguments come in and results go out."""

    def __init__(self) -> None:
        self._body_transformer: Any = None

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The line that begins the function."""
        names = [name for name in free_vars if name != "self"]
        return f"def forward({', '.join(['self', *names])}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any) -> str:
        """The line that gives the results back."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: Any) -> Any:
        """What the placeholders get when the program is called with `args`."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """What a call of the program gives when its output node has `outputs`."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Further names that the source uses."""
        return []

    def python_code(self, nodes: Iterable[Node], root_module: str) -> PythonCode:
        """The source of `nodes`, in which the module is called `root_module`."""
        writer = _Writer(root_module)
        for name, value in self.additional_globals():
            writer.reserve(name, value)
        steps = list(nodes)
        last = _last_uses(steps)
        body: list[str] = []
        for node in steps:
            line = self._output(writer, node) if node.op == "output" else writer.step(node)
            if line is None:
                continue
            unused = [] if node.op in ("output", "placeholder") else last.get(node, [])
            if (
                not node.users
                and node.op not in ("output", "placeholder")
                and "=" in line
                and not _stays(node)
            ):
                unused = [*unused, node]
            end = f";  {' = '.join(n.name for n in unused)} = None" if unused else ""
            body.append(f"{line}{end}\n")
        if self._body_transformer is not None:
            body = self._body_transformer(body)
        text = "".join(f"    {line}" for line in "".join(body or ["pass\n"]).splitlines(keepends=True))
        wrapped = "".join(f"\n\ntorch.fx.wrap({name!r})" for name in sorted(writer.wrapped))
        head = self.gen_fn_def(writer.free, writer.returns)
        return PythonCode(f"{wrapped}\n\n\n{head}\n{text}    ", writer.globals)

    def _output(self, writer: _Writer, node: Node) -> str:
        if node.type is not None:
            annotation = writer.annotation(node.type)
            writer.returns = f" -> {annotation}" if annotation else ""
        return self.generate_output(_Text(writer.value(node.args[0])))


class _Text(str):
    """Source that stands for itself where a representation is asked for."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _stays(node: Node) -> bool:
    """Whether the line of a step gives no name to a result."""
    return node.op == "call_function" and node.target is operator.setitem


def _last_uses(steps: list[Node]) -> dict[Node, list[Node]]:
    """Behind which node the results of others are needed no more."""
    seen: set[Node] = set()
    found: dict[Node, list[Node]] = {}
    for node in reversed(steps):
        for used in node.all_input_nodes:
            if used not in seen:
                seen.add(used)
                found.setdefault(node, []).append(used)
    return found


class _Writer:
    """The lines of one function, and the names that they use."""

    def __init__(self, root_module: str) -> None:
        self.root = root_module
        self.free: list[str] = []
        self.returns = ""
        self.globals: dict[str, Any] = dict(_ALWAYS)
        self.wrapped: set[str] = set()

    def reserve(self, hint: str, value: Any) -> str:
        """A global name for a value."""
        stem = "".join(c if c.isalnum() or c == "_" else "_" for c in hint)
        stem = f"_{stem}" if not stem or stem[0].isdigit() or keyword.iskeyword(stem) else stem
        name, count = stem, 0
        while name in self.globals and self.globals[name] is not value:
            count += 1
            name = f"{stem}_{count}"
        self.globals[name] = value
        return name

    def function(self, func: Any) -> str:
        """The text of a function or class."""
        name = qualified_name(func)
        head, dot, _ = name.partition(".")
        if not dot:
            return name if getattr(builtins, name, None) is func else self.reserve(name, func)
        if head == "torch" and is_reached(name, func):
            return name
        if head == "operator" and is_reached(name, func):
            return f"{self.reserve('operator', operator)}.{name[9:]}"
        if head == "math" and is_reached(name, func):
            return f"{self.reserve('math', math)}.{name[5:]}"
        return self.reserve(name, func)

    def annotation(self, kind: Any) -> str:
        """The text of an annotation; nothing for one that is text itself, whose names are not known here."""
        if isinstance(kind, str):
            return ""
        if isinstance(kind, type) and not getattr(kind, "__args__", None):
            return kind.__qualname__ if kind.__module__ == "builtins" else self.function(kind)
        return self.reserve(type_text(kind), kind)

    def value(self, a: Any) -> str:
        """The text of an argument."""
        if isinstance(a, Node):
            return a.name
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return f"{self.function(type(a))}({', '.join(map(self.value, a))})"
        if isinstance(a, tuple) and type(a) is tuple:
            return f"({', '.join(map(self.value, a))}{',' if len(a) == 1 else ''})"
        if isinstance(a, list):
            return f"[{', '.join(map(self.value, a))}]"
        if isinstance(a, dict):
            return f"{{{', '.join(f'{self.value(key)}: {self.value(item)}' for key, item in a.items())}}}"
        if isinstance(a, slice):
            return f"slice({self.value(a.start)}, {self.value(a.stop)}, {self.value(a.step)})"
        if isinstance(a, taeda.dtype | taeda.layout | taeda.memory_format):
            return f"torch.{str(a).rpartition('.')[2]}"
        if isinstance(a, type | types.FunctionType | types.BuiltinFunctionType):
            return self.function(a)
        if a is None or a is Ellipsis or type(a) in (bool, int, float, complex, str, bytes, range):
            return repr(a)
        if isinstance(a, taeda.device):
            return repr(a)
        if isinstance(a, taeda.Size):
            return f"torch.Size({list(a)!r})"
        return self.reserve(type(a).__name__ if not isinstance(a, Enum) else str(a), a)

    def arguments(self, args: tuple, kwargs: dict[str, Any]) -> str:
        return ", ".join(
            [*map(self.value, args), *(f"{key} = {self.value(item)}" for key, item in kwargs.items())]
        )

    def attribute(self, path: str) -> str:
        """The text of a member of the module."""
        text = self.root
        for part in path.split("."):
            text = f"{text}.{part}" if part.isidentifier() else f'getattr({text}, "{part}")'
        return text

    def placeholder(self, node: Node) -> str | None:
        kind = self.annotation(node.type) if node.type is not None else ""
        default = f" = {self.value(node.args[0])}" if node.args else ""
        self.free.append(f"{node.target}{f' : {kind}' if kind else ''}{default}")
        name = node.target.lstrip("*")
        return f"{node.name} = {name}" if node.name != name else None

    def step(self, node: Node) -> str | None:
        """The line of a node that is no output; None where there is none."""
        if node.op == "placeholder":
            return self.placeholder(node)
        kind = self.annotation(node.type) if node.type is not None else ""
        head = f"{node.name}{f' : {kind}' if kind else ''}"
        if node.op == "get_attr":
            return f"{head} = {self.attribute(node.target)}"
        if node.op == "call_module":
            return f"{head} = {self.attribute(node.target)}({self.arguments(node.args, node.kwargs)})"
        if node.op == "call_method":
            own = self.value(node.args[0])
            own = own if isinstance(node.args[0], Node) else f"({own})"
            return f"{head} = {own}.{node.target}({self.arguments(node.args[1:], node.kwargs)})"
        return self._call(node, head)

    def _call(self, node: Node, head: str) -> str:
        target, args = node.target, node.args
        name = getattr(target, "__name__", "")
        plain = not node.kwargs and getattr(operator, name, None) is target
        if plain and name in magic_methods and magic_methods[name].count("{}") == len(args):
            return f"{head} = {magic_methods[name].format(*map(self.value, args))}"
        if plain and name in inplace_methods and inplace_methods[name].count("{}") == len(args):
            line = inplace_methods[name].format(*map(self.value, args))
            return line if name == "setitem" else f"{line};  {head} = {self.value(args[0])}"
        if target is getattr and len(args) == 2 and not node.kwargs and _is_name(args[1]):
            return f"{head} = {self.value(args[0])}.{args[1]}"
        text = self.function(target)
        if node.meta.get("is_wrapped") and "." not in text:
            self.wrapped.add(text)
        return f"{head} = {text}({self.arguments(args, node.kwargs)})"


def _is_name(text: Any) -> bool:
    return isinstance(text, str) and text.isidentifier() and not keyword.iskeyword(text)
