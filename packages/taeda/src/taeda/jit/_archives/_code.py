"""Programs of TorchScript archives, translated to Python functions that can do no more than they may.

The language is what PyTorch prints: classes and functions of assignments, `if`, `while`, `for ... in range(...)`,
`with`, and calls of operators (`torch.relu(x)`, `ops.prim.dtype(x)`), of functions of the archive (`__torch__.f(x)`)
and of methods. Everything else is refused by name. What a translated function does not define itself stands in its
globals under names that begin with `RESERVED`, which no program may use; Python's built-in names are not there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

RESERVED = "__t_"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Numbers that the language has names for.
NUMBERS = {
    "inf": float("inf"),
    "nan": float("nan"),
    "infj": complex(0, float("inf")),
    "nanj": complex(0, float("nan")),
}
#: Functions of the language that stand for themselves.
_FUNCTIONS = frozenset(["int", "float", "bool", "str", "sorted", "print", "range", "getattr", "fork"])
#: Methods with special names that classes of programs may have.
_SPECIAL = re.compile(
    r"__(init|len|contains|enter|exit|getstate|setstate|str|hash|call|(get|set|del)item|[ir]?(add|sub|mul|truediv|"
    r"floordiv|mod|pow|matmul|and|or|xor|lshift|rshift)|neg|abs|invert|eq|ne|lt|le|gt|ge|bool|int|float)__"
)
_FORKED = re.compile(r"__forked_function\d*")


class ScriptSyntaxError(RuntimeError):
    """A program that is not of the language."""


class Scope(Protocol):
    """What a translation asks for: names of globals that stand for things outside of the function."""

    def operator(self, namespace: str, name: str) -> str:
        """Of an operator."""

    def helper(self, name: str) -> str:
        """Of a function of the language."""

    def qualified(self, name: str) -> str:
        """Of a function or class of the archive, or a member of an enumeration."""

    def constant(self, name: str) -> str:
        """Of a constant of the archive, "c0"."""

    def type_of(self, node: ast.expr) -> str:
        """Of a type."""


def refuse(node: ast.AST, what: str) -> NoReturn:
    """Say what is no part of the language, and where."""
    line = getattr(node, "lineno", 0)
    raise ScriptSyntaxError(
        f"load: the archive's program has {what} in line {line}, which is no part of TorchScript"
    )


def dotted(node: ast.AST) -> list[str]:
    """The names of `a.b.c`; none for other expressions."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) else []


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(_load(name), list(args), [])


class Translation:
    """One function or method.

    Args:
        scope: Names of what is outside.
        methods: Names of the class's methods, which are called on `self` directly; None outside of classes.
        fields: Names of its attributes.
    """

    def __init__(
        self, scope: Scope, methods: frozenset[str] | None = None, fields: frozenset[str] = frozenset()
    ) -> None:
        self._scope, self._methods, self._fields = scope, methods, fields
        self._self = ""
        self._aliases: dict[str, str] = {}
        self._forked: set[str] = set()

    def function(self, node: ast.FunctionDef, name: str) -> ast.FunctionDef:
        """The function under another name."""
        a = node.args
        if a.posonlyargs or a.kwonlyargs or a.vararg or a.kwarg or node.decorator_list or None in a.defaults:
            refuse(node, f"a function {node.name!r} with such arguments")
        names = [self._local(arg, arg.arg) for arg in a.args]
        if self._methods is not None and names:
            self._self = names[0]
        defaults = [self.expression(value) for value in a.defaults]
        arguments = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, defaults)
        return ast.FunctionDef(name, arguments, self._block(node.body), [], type_params=[])

    def _local(self, node: ast.AST, name: str) -> str:
        plain = _NAME.fullmatch(name) and (not name.startswith("__") or name in self._forked)
        if not plain or name in ("torch", "ops", "CONSTANTS"):
            refuse(node, f"the name {name!r}")
        return name

    # --- statements ---

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in body:
            rule = _STATEMENTS.get(type(statement))
            if rule is None:
                refuse(statement, f"a statement {type(statement).__name__}")
            out.append(rule(self, statement))
        return out

    def _return(self, node: ast.Return) -> ast.stmt:
        return ast.Return(None if node.value is None else self.expression(node.value))

    def _pass(self, node: ast.Pass) -> ast.stmt:
        return ast.Pass()

    def _if(self, node: ast.If) -> ast.stmt:
        return ast.If(self.expression(node.test), self._block(node.body), self._block(node.orelse))

    def _while(self, node: ast.While) -> ast.stmt:
        return ast.While(self.expression(node.test), self._block(node.body), self._block(node.orelse))

    def _for(self, node: ast.For) -> ast.stmt:
        return ast.For(self._target(node.target), self.expression(node.iter), self._block(node.body), [])

    def _with(self, node: ast.With) -> ast.stmt:
        items = [
            ast.withitem(self._entered(i.context_expr), i.optional_vars and self._target(i.optional_vars))
            for i in node.items
        ]
        return ast.With(items, self._block(node.body))

    def _entered(self, node: ast.expr) -> ast.expr:
        return _call(self._scope.helper("entered"), self.expression(node))

    def _expression_statement(self, node: ast.Expr) -> ast.stmt:
        return ast.Expr(self.expression(node.value))

    def _assign(self, node: ast.Assign) -> ast.stmt:
        if len(node.targets) != 1:
            refuse(node, "several assignments in one")
        target, value = node.targets[0], node.value
        names = dotted(value)
        if isinstance(target, ast.Name) and names[:1] == ["__torch__"]:
            self._aliases[target.id] = ".".join(names)
        if isinstance(target, ast.Attribute):
            set_ = self._scope.helper("set")
            owner = self.expression(target.value)
            return ast.Expr(_call(set_, owner, ast.Constant(target.attr), self.expression(value)))
        return ast.Assign([self._target(target)], self.expression(value))

    def _annotated(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is None:
            return ast.Pass()
        return ast.Assign([self._target(node.target)], self.expression(node.value))

    def _target(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Name):
            if node.id == self._self:
                refuse(node, f"an assignment to {node.id!r}")
            return ast.Name(self._local(node, node.id), ast.Store())
        if isinstance(node, (ast.Tuple, ast.List)):
            return ast.Tuple([self._target(item) for item in node.elts], ast.Store())
        refuse(node, f"an assignment to a {type(node).__name__}")

    def _inner(self, node: ast.FunctionDef) -> ast.stmt:
        """The body of a `fork`, which takes no arguments."""
        if node.args.args or not _FORKED.fullmatch(node.name):
            refuse(node, f"a function {node.name!r} inside another")
        self._forked.add(node.name)
        nothing = ast.arguments([], [], None, [], [], None, [])
        return ast.FunctionDef(node.name, nothing, self._block(node.body), [], type_params=[])

    # --- expressions ---

    def expression(self, node: ast.expr) -> ast.expr:
        """The translation of one expression."""
        rule = _EXPRESSIONS.get(type(node))
        if rule is None:
            refuse(node, f"an expression {type(node).__name__}")
        return rule(self, node)

    def _constant(self, node: ast.Constant) -> ast.expr:
        if node.value is not None and type(node.value) not in (bool, int, float, complex, str):
            refuse(node, f"a constant {node.value!r:.40}")
        return ast.Constant(node.value)

    def _name(self, node: ast.Name) -> ast.expr:
        if node.id in NUMBERS:
            return ast.Constant(NUMBERS[node.id])
        if node.id == "__torch__":
            refuse(node, "the name '__torch__' alone")
        return _load(self._local(node, node.id))

    def _attribute(self, node: ast.Attribute) -> ast.expr:
        names = dotted(node)
        if names[:1] == ["__torch__"]:
            return _load(self._scope.qualified(".".join(names)))
        if names[:1] == ["CONSTANTS"]:
            return _load(self._scope.constant(names[1]))
        if len(names) == 2 and names[0] == self._self and node.attr in self._fields:
            return ast.Attribute(_load(self._self), node.attr, ast.Load())
        return self._got(node.value, node.attr)

    def _got(self, owner: ast.expr, name: str) -> ast.expr:
        return _call(self._scope.helper("get"), self.expression(owner), ast.Constant(name))

    def _subscript(self, node: ast.Subscript) -> ast.expr:
        return ast.Subscript(self.expression(node.value), self._index(node.slice), ast.Load())

    def _index(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Slice):
            ends = [
                None if end is None else self.expression(end) for end in (node.lower, node.upper, node.step)
            ]
            return ast.Slice(*ends)
        return self.expression(node)

    def _sequence(self, node: Any) -> ast.expr:
        return type(node)([self.expression(item) for item in node.elts], ast.Load())

    def _dict(self, node: ast.Dict) -> ast.expr:
        if None in node.keys:
            refuse(node, "a dict inside a dict")
        return ast.Dict(
            [self.expression(k) for k in node.keys if k], [self.expression(v) for v in node.values]
        )

    def _unary(self, node: ast.UnaryOp) -> ast.expr:
        if not isinstance(node.op, ast.USub):
            refuse(node, f"an operator {type(node.op).__name__}")
        return ast.UnaryOp(ast.USub(), self.expression(node.operand))

    # --- calls ---

    def _called(self, node: ast.Call) -> ast.expr:
        return ast.copy_location(self._call_of(node), node)

    def _call_of(self, node: ast.Call) -> ast.expr:
        names = dotted(node.func)
        if len(names) == 1 and names[0] in self._aliases:
            return self._with_arguments(self._scope.qualified(self._aliases[names[0]]), node)
        if len(names) == 1:
            return self._language(names[0], node)
        if names[:1] == ["torch"]:
            return self._with_arguments(self._scope.operator("aten", ".".join(names[1:])), node)
        if names[:1] == ["ops"] and len(names) == 3:
            return self._with_arguments(self._scope.operator(*names[1:]), node)
        if names[:1] == ["__torch__"]:
            if names[-1] == "__new__":
                return _call(self._scope.helper("new"), _load(self._scope.qualified(".".join(names[:-1]))))
            return self._with_arguments(self._scope.qualified(".".join(names)), node)
        if isinstance(node.func, ast.Attribute):
            return self._method(node.func, node)
        refuse(node, "a call of an expression")

    def _with_arguments(self, function: str, node: ast.Call) -> ast.expr:
        return self._applied(_load(function), node)

    def _applied(self, function: ast.expr, node: ast.Call) -> ast.expr:
        if any(isinstance(arg, ast.Starred) for arg in node.args) or any(
            k.arg is None for k in node.keywords
        ):
            refuse(node, "a call with '*'")
        named = [ast.keyword(k.arg, self.expression(k.value)) for k in node.keywords]
        return ast.Call(function, [self.expression(arg) for arg in node.args], named)

    def _method(self, function: ast.Attribute, node: ast.Call) -> ast.expr:
        owner = function.value
        if isinstance(owner, ast.Name) and owner.id == self._self and function.attr in (self._methods or ()):
            return self._applied(ast.Attribute(_load(self._self), function.attr, ast.Load()), node)
        found = _call(self._scope.helper("method"), self.expression(owner), ast.Constant(function.attr))
        return self._applied(found, node)

    def _language(self, name: str, node: ast.Call) -> ast.expr:
        args = node.args
        if name == "annotate" and len(args) == 2:
            return self._annotation(args[0], args[1])
        if name == "unchecked_cast" and len(args) == 2:
            return self.expression(args[1])
        if name == "uninitialized":
            return ast.Constant(None)
        if name == "isinstance" and len(args) == 2:
            kinds = args[1].elts if isinstance(args[1], ast.Tuple) else [args[1]]
            known: list[ast.expr] = [_load(self._scope.type_of(kind)) for kind in kinds]
            return _call(self._scope.helper("isinstance"), self.expression(args[0]), *known)
        if (
            name == "getattr"
            and len(args) == 2
            and isinstance(args[1], ast.Constant)
            and type(args[1].value) is str
        ):
            return self._got(args[0], args[1].value)
        if name in _FUNCTIONS and name != "getattr":
            return self._with_arguments(self._scope.helper(name), node)
        refuse(node, f"a call of {name!r}")

    def _annotation(self, kind: ast.expr, value: ast.expr) -> ast.expr:
        """A value of a type: a tensor that is to be a number becomes one."""
        if isinstance(kind, ast.Name) and kind.id in ("int", "float", "number", "Scalar", "bool", "complex"):
            return _call(self._scope.helper("number"), self.expression(value))
        return self.expression(value)


_STATEMENTS: dict[type, Callable[[Translation, Any], ast.stmt]] = {
    ast.Return: Translation._return,
    ast.Pass: Translation._pass,
    ast.If: Translation._if,
    ast.While: Translation._while,
    ast.For: Translation._for,
    ast.With: Translation._with,
    ast.Expr: Translation._expression_statement,
    ast.Assign: Translation._assign,
    ast.AnnAssign: Translation._annotated,
    ast.FunctionDef: Translation._inner,
}
_EXPRESSIONS: dict[type, Callable[[Translation, Any], ast.expr]] = {
    ast.Constant: Translation._constant,
    ast.Name: Translation._name,
    ast.Attribute: Translation._attribute,
    ast.Subscript: Translation._subscript,
    ast.Tuple: Translation._sequence,
    ast.List: Translation._sequence,
    ast.Dict: Translation._dict,
    ast.UnaryOp: Translation._unary,
    ast.Call: Translation._called,
}


def is_method_name(name: str) -> bool:
    """Whether a class of a program may have a method of this name."""
    return bool(_NAME.fullmatch(name)) and (not name.startswith("__") or bool(_SPECIAL.fullmatch(name)))
