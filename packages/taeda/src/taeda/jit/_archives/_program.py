"""The program of a TorchScript archive: its functions, classes and objects, made of the parts that were read."""

from __future__ import annotations

import ast
import textwrap
import typing
from collections.abc import Callable
from typing import Any

from taeda.futures import Future
from taeda.jit._archives import _classes, _operators
from taeda.jit._archives._code import (
    NUMBERS,
    RESERVED,
    ScriptSyntaxError,
    Translation,
    dotted,
    is_method_name,
    refuse,
)
from taeda.jit._types import matches
from taeda_registry.slots import nn, tensor

_SKIPPED = ("Interface", "ModuleInterface")
#: What a program's constants may consist of, beside containers.
_TYPES: dict[str, Any] = {
    "Tensor": None, "int": int, "float": float, "bool": bool, "str": str, "complex": complex, "NoneType": type(None),
    "Any": object, "number": (int, float, complex), "Scalar": (int, float, complex), "list": list, "tuple": tuple,
    "dict": dict, "Device": None, "List": list, "Dict": dict, "Tuple": tuple, "Optional": typing.Optional,
    "Union": typing.Union,
}  # fmt: skip


class Program:
    """The functions and classes of an archive.

    Args:
        archive: The parts of an archive: `code`, `constants` and `version` of it are read.

    Raises:
        ScriptSyntaxError: The code has what is no part of TorchScript.
    """

    def __init__(self, archive: Any) -> None:
        self.archive = archive
        self._globals: dict[str, Any] = {"__builtins__": {}}
        self._names: dict[tuple[str, str], str] = {}
        self._found: dict[str, Any] = {}  # functions and classes by qualified name
        self._objects: dict[int, Any] = {}
        self._parameters: dict[int, tuple[Any, Any]] = {}
        self._places: dict[str, tuple[str, int, int, int]] = {}  # of functions: text of the file, lines in it
        self._types: list[Any] = []
        for module, text in archive.code.items():
            self._read(module, text)
        self._link()

    # --- names of the translated functions: see `_code.Scope` ---

    def _name_of(self, kind: str, what: str) -> str:
        return self._names.setdefault((kind, what), f"{RESERVED}{kind}{len(self._names)}")

    def operator(self, namespace: str, name: str) -> str:
        """See `_code.Scope`."""
        known = self._name_of("operator", f"{namespace}::{name}")
        if known not in self._globals:
            self._globals[known] = _operators.operator(namespace, name, self.archive.version)
        return known

    def helper(self, name: str) -> str:
        """See `_code.Scope`."""
        known = RESERVED + name
        self._globals[known] = _HELPERS[name]
        return known

    def qualified(self, name: str) -> str:
        """See `_code.Scope`."""
        return self._name_of("qualified", name)

    def constant(self, name: str) -> str:
        """See `_code.Scope`."""
        known = self._name_of("constant", name)
        self._globals[known] = self.archive.constants[int(name[1:])]
        return known

    def type_of(self, node: ast.expr) -> str:
        """See `_code.Scope`."""
        known = f"{RESERVED}type{len(self._types)}"
        self._types.append(None)
        self._globals[known] = lambda: self._type(node)
        return known

    def _type(self, node: ast.expr) -> Any:
        names = dotted(node)
        if names[:1] == ["__torch__"]:
            return self._found[".".join(names)]
        if isinstance(node, ast.Constant) and node.value is None:
            return None
        if len(names) == 1 and names[0] in _TYPES:
            own = {"Tensor": tensor.Tensor, "Device": tensor.device}
            return own.get(names[0]) or _TYPES[names[0]]
        if isinstance(node, ast.Subscript):
            inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return self._type(node.value)[tuple(map(self._type, inner))]
        return refuse(node, "a type of another kind")

    # --- reading ---

    def _read(self, module: str, text: str) -> None:
        """Translate one file and keep what it defines."""
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ScriptSyntaxError(
                f"load: the archive's program {module} cannot be read: {error}"
            ) from error
        functions: list[ast.stmt] = []
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                functions.append(self._function(node, f"{module}.{node.name}", Translation(self), text))
            elif isinstance(node, ast.ClassDef):
                functions += self._class(node, f"{module}.{node.name}", text)
            elif not _is_old_header(node):
                refuse(node, f"a statement {type(node).__name__} outside of functions")
        made = ast.fix_missing_locations(ast.Module(functions, []))
        exec(compile(made, f"<script {module}>", "exec"), self._globals)

    def _function(self, node: ast.FunctionDef, full: str, translation: Translation, text: str) -> ast.stmt:
        self._places[full] = text, node.lineno - 1, node.body[0].lineno - 1, node.end_lineno or node.lineno
        return translation.function(node, self.qualified(full))

    def _class(self, node: ast.ClassDef, full: str, text: str) -> list[ast.stmt]:
        bases = [dotted(base)[-1] for base in node.bases if dotted(base)]
        kind = bases[0] if bases else ""
        if kind in _SKIPPED:
            self._found[full] = object
            return []
        facts = _Facts(node)
        if kind == "NamedTuple":
            self._found[full] = _classes.tuple_class(full, facts.fields, list(facts.constants.values()))
            return []
        if kind == "Enum":
            self._found[full] = _classes.enum_class(full, facts.constants)
            return []
        defined = [part for part in node.body if isinstance(part, ast.FunctionDef)]
        methods = frozenset(part.name for part in defined)
        for part in defined:
            if not is_method_name(part.name):
                refuse(part, f"a method {part.name!r}")
        self._found[full] = facts, methods, kind == "Module"
        fields = frozenset(facts.fields)
        return [
            self._function(part, f"{full}.{part.name}", Translation(self, methods, fields), text)
            for part in defined
        ]

    def _link(self) -> None:
        """Make classes of functions, and give every name that functions use what it stands for."""
        for full, found in list(self._found.items()):
            if isinstance(found, tuple):
                self._found[full] = self._made_class(full, *found)
        for (kind, what), known in self._names.items():
            if kind != "qualified" or known in self._globals:
                continue
            owner, _, member = what.rpartition(".")
            if what in self._found:
                self._globals[known] = self._found[what]
            elif isinstance(self._found.get(owner), type) and member in getattr(
                self._found[owner], "__members__", ()
            ):
                self._globals[known] = self._found[owner][member]
            else:
                self._globals[known] = _operators._missing(what)

    def _made_class(self, full: str, facts: _Facts, methods: frozenset[str], is_module: bool) -> type:
        parts: dict[str, Any] = {
            **facts.constants, "_script_methods": methods, "_script_fields": frozenset(facts.fields),
            "_script_types": facts.types,
        }  # fmt: skip
        for name in methods:
            function = parts[name] = self._globals[self.qualified(f"{full}.{name}")]
            function.__name__, function.__qualname__ = name, f"{full}.{name}"
        if not is_module:
            return _classes.object_class(full, self, parts)
        lists = facts.lists
        parts["_script_parameters"] = frozenset(lists.get("__parameters__", ()))
        parts["_script_buffers"] = frozenset(lists.get("__buffers__", ()))
        parts["_script_hooks"] = tuple(
            tuple(lists.get(name, ())) for name in ("__forward_pre_hooks__", "__forward_hooks__")
        )
        return _classes.module_class(full, self, parts)

    def source(self, full: str) -> str:
        """The text of a function or method."""
        if full not in self._places:
            raise AttributeError(f"the archive has no program {full}")
        text, first, body, last = self._places[full]
        lines = textwrap.dedent("\n".join(text.split("\n")[first:last])).split("\n")
        head = ["    " + line.lstrip() for line in lines[1 : body - first]]
        shown = "\n".join([lines[0], *head, *lines[body - first :]])
        return shown.replace(f"(self: {full.rpartition('.')[0]}", "(self") + "\n"

    # --- objects ---

    def object(self, value: Any) -> Any:
        """What a value of the archive's data is here: its objects become objects of the program's classes."""
        parts = tensor.serialization
        if isinstance(value, parts.ScriptEnum):
            return self._class_of(value.kind)(value.value)
        if isinstance(value, parts.ScriptObject):
            if id(value) not in self._objects:
                self._objects[id(value)] = _classes.restored(
                    self._class_of(value.kind), self.object(value.state)
                )
            return self._objects[id(value)]
        if type(value) is list:
            value[:] = map(self.object, value)  # the one list, where several places hold it
            return value
        if type(value) is tuple:
            return tuple(map(self.object, value))
        if isinstance(value, dict):
            for key, item in value.items():
                value[key] = self.object(item)
        return value

    def parameter(self, value: Any) -> Any:
        """The parameter that a tensor of the data is, the same one wherever the tensor stands."""
        if id(value) not in self._parameters:
            self._parameters[id(value)] = value, nn.Parameter(value, value.requires_grad)
        return self._parameters[id(value)][1]

    def known_parameter(self, value: Any) -> Any:
        """The parameter that a value has become; other values themselves."""
        return self._parameters[id(value)][1] if id(value) in self._parameters else value

    def _class_of(self, name: str) -> Any:
        found = self._found.get(name)
        if not isinstance(found, type):
            raise NotImplementedError(
                f"load: the archive has an object of {name}, a class written in C++ that taeda does not have"
            )
        return found


def _is_old_header(node: ast.stmt) -> bool:
    """Whether a statement says the version of operators, or names another file, as old archives do."""
    if isinstance(node, ast.Import):
        return all(name.name.startswith("__torch__") for name in node.names)
    return isinstance(node, ast.Assign) and dotted(node.targets[0]) == ["op_version_set"]


class _Facts:
    """What a class says beside its methods: attributes, constants, and lists of names."""

    def __init__(self, node: ast.ClassDef) -> None:
        self.fields: list[str] = []
        self.types: dict[str, ast.expr] = {}  # of the fields, in their order
        self.constants: dict[str, Any] = {}
        self.lists: dict[str, list[str]] = {}
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                self._attribute(part.target.id, part.annotation, part.value)
            elif isinstance(part, ast.Assign):
                self._assignment(part)

    def _attribute(self, name: str, kind: ast.expr, value: ast.expr | None) -> None:
        if value is None:
            self.fields.append(name)
            self.types[name] = kind
        elif not name.startswith("__"):
            self.constants[name] = literal(value)

    def _assignment(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            self._attribute(str(target.slice.value), node.value, None)
        elif isinstance(target, ast.Name) and target.id.startswith("__"):
            self.lists[target.id] = literal(node.value)
        elif isinstance(target, ast.Name):
            self.constants[target.id] = literal(node.value)


def literal(node: ast.expr) -> Any:
    """The value of a constant of a program."""
    if isinstance(node, ast.Name) and node.id in NUMBERS:
        return NUMBERS[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -literal(node.operand)
    if isinstance(node, (ast.List, ast.Tuple)):
        items = [literal(item) for item in node.elts]
        return items if isinstance(node, ast.List) else tuple(items)
    if isinstance(node, ast.Dict):
        return {literal(k): literal(v) for k, v in zip(node.keys, node.values, strict=True) if k}
    if isinstance(node, ast.Call) and dotted(node.func) == ["torch", "device"]:
        return tensor.device(literal(node.args[0]))
    if isinstance(node, ast.Constant):
        return node.value
    return None


# --- functions of the language ---


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, tensor.Tensor) else value


def _is_instance(value: Any, *kinds: Callable[[], Any]) -> bool:
    return any(matches(value, kind()) for kind in kinds)


def _bool(value: Any) -> bool:
    return bool(value)


def _fork(function: Callable[[], Any]) -> Future:
    future = Future()
    future.set_result(function())
    return future


_HELPERS: dict[str, Any] = {
    "get": _classes.get, "set": _classes.set_, "method": _classes.method, "new": _classes.new,
    "entered": _classes.entered, "number": _number, "isinstance": _is_instance, "int": int, "float": float,
    "bool": _bool, "str": str, "sorted": sorted, "print": print, "range": range, "fork": _fork,
}  # fmt: skip
