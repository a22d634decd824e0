"""Graphs written as Python functions."""

from __future__ import annotations

import builtins
import dataclasses
import enum
import re
import typing
from typing import Any, NamedTuple

from taeda.fx._described import Lines, kind_of
from taeda.fx._names import is_public, qualified_name, type_text
from taeda.fx._namespace import Namespace
from taeda.fx.node import Node, base_types
from taeda.utils import _pytree
from taeda_registry.slots import tensor

__all__ = [
    "CodeGen", "PythonCode", "_PyTreeCodeGen", "_PyTreeInfo", "inplace_methods", "magic_methods",
    "reflectable_magic_methods",
]  # fmt: skip

_NAMES = re.compile(r"[A-Za-z_][\w.]*")
#: Operators as programs write them, by their names in the module `operator`.
magic_methods = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}",
    "pos": "+{}", "neg": "-{}", "invert": "~{}",
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}",
    "div": "{} / {}", "mod": "{} % {}", "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}",
    "and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
#: Those that can stand on either side.
reflectable_magic_methods = {
    name: text
    for name, text in magic_methods.items()
    if text.count("{}") == 2 and name not in ("eq", "ne", "lt", "gt", "le", "ge", "getitem")
}
#: Operators that change their first operand.
inplace_methods = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}", "imod": "{} %= {}",
    "imul": "{} *= {}", "imatmul": "{} @= {}", "ior": "{} |= {}", "ipow": "{} **= {}", "irshift": "{} >>= {}",
    "isub": "{} -= {}", "itruediv": "{} /= {}", "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip


@dataclasses.dataclass
class PythonCode:
    """A program and the objects that it names."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None
    _prologue_start: int = 0


class _PyTreeInfo(NamedTuple):
    """How arguments and results that are containers become lists of leaves and back."""

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


def _format_target(base: str, target: str) -> str:
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


_CUSTOM = {"inf": float("inf"), "nan": float("nan"), "NoneType": type(None)}


class _Writer:
    """One function while it is written."""

    def __init__(self, namespace: Namespace, root: str) -> None:
        self.namespace, self.root = namespace, root
        self.globals: dict[str, Any] = {}
        self.body: list[str] = []
        self.lines: list[int | None] = []
        self.free: list[str] = []
        self.wrapped: dict[str, None] = {}  # functions that tracing takes as they are, by name
        self.returns = ""

    def name_of(self, hint: str, obj: Any) -> str:
        """The name of a global object."""
        if is_public(obj):
            self._torch()
            return qualified_name(obj)
        name = self.namespace.create_name(hint.replace(".", "_"), obj)
        if self.globals.get(name, obj) is not obj:
            raise AssertionError(f"two objects are named {name!r}")
        self.globals[name] = obj
        return name

    def kind(self, obj: Any) -> str:
        """A type in an annotation."""
        text = "()" if obj == () else type_text(obj)
        names = set(_NAMES.findall(text))
        if all(name in vars(builtins) or name.startswith(("typing.", "torch.Tensor")) for name in names):
            if any(name.startswith("torch.") for name in names):
                self._torch()
            if any(name.startswith("typing.") for name in names):
                self.globals["typing"] = typing
            return text
        return self.name_of(text if isinstance(obj, type) else "_annotation", obj)

    def _torch(self) -> str:
        import taeda

        self.globals["torch"] = taeda
        return "torch"

    def value(self, arg: Any) -> str:
        """An argument."""
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tensor.Size):
            return self._sized(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            items = [self.value(item) for item in arg]
            return f"{self.name_of(type_text(type(arg)), type(arg))}({', '.join(items)})"
        if isinstance(arg, (tuple, list)):
            items = [self.value(item) for item in arg]
            if isinstance(arg, list):
                return f"[{', '.join(items)}]"
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        if isinstance(arg, dict):
            return "{" + ", ".join(f"{k!r}: {self.value(v)}" for k, v in arg.items()) + "}"
        if isinstance(arg, slice):
            return f"slice({self.value(arg.start)}, {self.value(arg.stop)}, {self.value(arg.step)})"
        return self._constant(arg)

    def _sized(self, arg: Any) -> str:
        return f"{self._torch()}.Size([{', '.join(self.value(item) for item in arg)}])"

    def _constant(self, arg: Any) -> str:
        if isinstance(arg, enum.Enum):
            cls = type(arg)
            return f"{self.name_of(cls.__name__, cls)}.{arg.name}"
        if isinstance(arg, float):
            text = repr(arg)
            if text.lstrip("-") in _CUSTOM:
                self.globals[text.lstrip("-")] = _CUSTOM[text.lstrip("-")]
            return text
        if isinstance(arg, (tensor.dtype, tensor.layout, tensor.memory_format)):
            return f"{self._torch()}.{str(arg).rpartition('.')[2]}"
        if isinstance(arg, tensor.device):
            return f"{self._device()}(type={arg.type!r}{'' if arg.index is None else f', index={arg.index}'})"
        if arg is None or arg is ... or isinstance(arg, base_types):
            return repr(arg)
        if isinstance(arg, (range, bytes)):
            return repr(arg)
        return self.name_of(getattr(arg, "__name__", None) or f"_{type(arg).__name__}", arg)

    def _device(self) -> str:
        self.globals["device"] = tensor.device
        return "device"

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Arguments of a call."""
        named = (f"{key} = {self.value(value)}" for key, value in kwargs.items())
        return ", ".join([*map(self.value, args), *named])

    def wraps(self) -> list[str]:
        """The statements by which a function that is traced again takes functions as they are again."""
        if not self.wrapped:
            return []
        called = f"{self._torch()}.fx._symbolic_trace.wrap"
        return [f'{called}("{name}")' for name in self.wrapped]

    # --- the lines of each kind of node ---

    def placeholder(self, node: Node, kind: str) -> str:
        default = "" if not node.args else f" = {self.value(node.args[0])}"
        self.free.append(f"{node.target}{kind}{default}")
        plain = node.target.replace("*", "")
        return "" if plain == repr(node) else f"{node!r} = {plain}\n"

    def get_attr(self, node: Node, kind: str) -> str:
        return f"{node!r}{kind} = {_format_target(self.root, node.target)}"

    def call_module(self, node: Node, kind: str) -> str:
        return f"{node!r}{kind} = {_format_target(self.root, node.target)}({self.arguments(node.args, node.kwargs)})"

    def call_method(self, node: Node, kind: str) -> str:
        rest = self.arguments(node.args[1:], node.kwargs)
        start = self.value(node.args[0])
        if isinstance(node.args[0], (int, float)):
            start = f"({start})"
        return f"{node!r}{kind} = {_format_target(start, node.target)}({rest})"

    def call_function(self, node: Node, kind: str) -> str:
        target, args = node.target, node.args
        if getattr(target, "__module__", "") == "_operator" and not node.kwargs:
            name = target.__name__
            if name in magic_methods:
                write = self._operand if name == "pow" else self.value  # -1 ** x is another number
                return f"{node!r}{kind} = {magic_methods[name].format(*map(write, args))}"
            # A number changes by becoming another one: whoever else has it keeps the old one.
            alone = isinstance(args[0], Node) and len(args[0].users) == 1
            if name in inplace_methods and alone:
                change = inplace_methods[name].format(*map(self.value, args))
                return f"{change};  {node!r}{kind} = {self.value(args[0])}"
        if (
            target is getattr
            and len(args) == 2
            and isinstance(args[0], Node)
            and isinstance(args[1], str)
            and args[1].isidentifier()
        ):
            return f"{node!r}{kind} = {self.value(args[0])}.{args[1]}"
        called = self.name_of(qualified_name(target), target)
        if node.meta.get("is_wrapped"):
            self.wrapped[called] = None
        return f"{node!r}{kind} = {called}({self.arguments(args, node.kwargs)})"

    def _operand(self, arg: Any) -> str:
        text = self.value(arg)
        return f"({text})" if isinstance(arg, (int, float, complex)) and text.startswith("-") else text

    def output(self, node: Node, kind: str) -> str:
        if node.type is not None:
            self.returns = f" -> {self.kind(node.type)}"
        return ""


class CodeGen:
    """Writes a graph as a function; derived classes change how it takes its arguments and gives its result."""

    def __init__(self) -> None:
        self._body_transformer: Any = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The first line of the function."""
        free_vars = free_vars if free_vars and free_vars[0] == "self" else ["self", *free_vars]
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any, *args: Any, **kwargs: Any) -> str:
        """The statement that gives the result; values in it have been written as text."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: Any) -> Any:
        """The arguments as the graph's inputs take them."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The result as callers get it."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names that the function needs besides."""
        return []

    def _gen_python_code(
        self,
        nodes: Any,
        root_module: str,
        namespace: Namespace,
        verbose: bool = False,
        described: bool = False,
    ) -> PythonCode:
        writer = _Writer(namespace, root_module)
        comments = Lines()
        for name, value in self.additional_globals():
            writer.globals[name] = value
        dying = _last_uses(nodes)
        lines: list[str] = []
        places: list[int | None] = []
        for index, node in enumerate(nodes):
            if verbose:
                lines += [f"# {text}\n" for text in (node.stack_trace or "").strip().splitlines()[-2:]]
                places += [None] * (len(lines) - len(places))
            kind = "" if node.type is None or node.op == "output" else f" : {writer.kind(node.type)}"
            if described and node.op not in ("placeholder", "output") and (comment := comments.before(node)):
                lines.append(comment if lines else comment.lstrip())
                places += [None] * lines[-1].count("\n")
            if described and node.op != "output" and (shape := kind_of(node)):
                kind = f": {shape}"
            text = getattr(writer, node.op)(node, kind)
            if node.op == "output":
                text = self.generate_output(_Text(writer.value(node.args[0])))
            if not text:
                continue
            if node.op not in ("placeholder", "output"):
                gone = dying.get(node, ())
                text += f";  {' = '.join([*map(repr, gone), 'None'])}" if gone else ""
            elif node.op == "placeholder":
                text = text.rstrip("\n")
            lines.append(text + "\n")
            places += [index] * (len(lines) - len(places))
        lines = lines or ["pass\n"]
        if self._body_transformer is not None:
            lines = self._body_transformer(lines)
        prologue = self.gen_fn_def(writer.free, writer.returns)
        body = "\n".join("    " + line for line in "".join(lines).split("\n"))
        wraps = "\n".join(writer.wraps())
        source = f"\n{wraps}\n\n{prologue}\n{body}"
        start = source[: source.index(body)].count("\n") + 1
        return PythonCode(source, writer.globals, {start + i: place for i, place in enumerate(places)}, start)


class _Text(str):
    """Text that stands for itself in f-strings with `!r`."""

    def __repr__(self) -> str:
        return str(self)


def _last_uses(nodes: Any) -> dict[Node, list[Node]]:
    """For every node the values that nobody needs after it."""
    seen: set[Node] = set()
    found: dict[Node, list[Node]] = {}
    for node in reversed(list(nodes)):
        for used in node._input_nodes:
            if used not in seen:
                seen.add(used)
                found.setdefault(node, []).append(used)
        if not node.users and node.op not in ("placeholder", "output"):
            found.setdefault(node, []).append(node)
    return found


class _PyTreeCodeGen(CodeGen):
    """A function whose arguments and result are containers; the graph sees their leaves."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        from taeda.fx._pytree import tree_flatten_spec

        return tree_flatten_spec(inputs, self.pytree_info.in_spec)

    def process_outputs(self, out: Any) -> Any:
        if self.pytree_info.out_spec is None:
            return out
        leaves = out if isinstance(out, (list, tuple)) else [out]
        return _pytree.tree_unflatten(leaves, self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        given = self.pytree_info.orig_args
        if given and given[0] == "self":
            given = given[1:]
        start = super().gen_fn_def(given, maybe_return_annotation)
        if not free_vars:
            return start
        names = [name.partition(":")[0].partition("=")[0].strip() for name in free_vars]
        return f"{start}\n    {', '.join(names)}, = fx_pytree.tree_flatten_spec([{', '.join(given)}], self._in_spec)"

    def generate_output(self, output_args: Any, *args: Any, **kwargs: Any) -> str:
        if self.pytree_info.out_spec is None:
            return super().generate_output(output_args)
        return f"return pytree.tree_unflatten({output_args!r}, self._out_spec)"

    def additional_globals(self) -> list[tuple[str, Any]]:
        from taeda.fx import _pytree as by_spec

        return [("pytree", _pytree), ("fx_pytree", by_spec)]
