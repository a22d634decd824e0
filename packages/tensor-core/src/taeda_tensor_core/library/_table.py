"""The operator table as Python sees it: every form of every operator by its unique name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from taeda_tensor_core import _C, _overridable


class Argument(NamedTuple):
    """One argument of a schema. `type` is a word such as "Tensor" or "int"; `list` and `optional` say the rest.

    `alias` is the letter of the memory that it shows, "a" of `Tensor(a)`; `written` says that the call writes to it,
    `Tensor(a!)`, and `when` names the argument that this depends on, `Tensor(a! if training)`.
    """

    name: str
    type: str
    list: bool
    optional: bool
    keyword_only: bool
    has_default: bool
    default: Any
    alias: str = ""
    written: bool = False
    when: str = ""


class Result(NamedTuple):
    """One result of a schema. `alias` is the letter of the argument whose memory it may show."""

    name: str
    type: str
    list: bool
    alias: str = ""


class Operator:
    """One form of one operator ("add", "add_", "add.out", "mypkg::scale"): callable, and what is known of it.

    Attributes:
        name: Its unique name.
        schema: Arguments, defaults and results as text.
        kind: "structured" (the core makes the outputs, a kernel fills them), "direct" (a kernel does
        everything), "view" or "composite" (written in terms of others).
        core: Whether a backend must implement it.
    """

    __slots__ = ("_facts", "_form", "core", "kind", "name", "schema")

    def __init__(self, name: str, schema: str, kind: str, core: bool, form: str) -> None:
        self.name, self.schema, self.kind, self.core, self._form = name, schema, kind, core, form
        self._facts: tuple[tuple[Argument, ...], tuple[Result, ...]] | None = None

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call it with arguments in the order of `arguments`, or by name."""
        if _overridable.asking():
            return _C._call_overridable(self, self._call, args, kwargs)
        return _C._call_operator(self.name, args, kwargs)

    def _call(self, /, *args: Any, **kwargs: Any) -> Any:
        return _C._call_operator(self.name, args, kwargs)

    def _read(self) -> tuple[tuple[Argument, ...], tuple[Result, ...]]:
        if self._facts is None:
            arguments, results = _C._schema_facts(self.name)
            self._facts = tuple(Argument(*a) for a in arguments), tuple(Result(*r) for r in results)
        return self._facts

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """Arguments in calling order; an out= form takes its outputs first."""
        return self._read()[0]

    @property
    def results(self) -> tuple[Result, ...]:
        """Results; forms that write into an argument have none."""
        return self._read()[1]

    @property
    def form(self) -> str:
        """ "function", "inplace" or "out"."""
        if self._form == "function" and not self.results and any(a.written for a in self.arguments[:1]):
            return "inplace"
        return self._form

    def kernels(self) -> dict[str, str]:
        """Who registered its kernel, by device type."""
        found = {}
        for device in _devices():
            if (owner := _C._kernel_owner(self.name, device)) is not None:
                found[device] = owner
        return found

    @property
    def __name__(self) -> str:
        return self.name.rpartition("::")[2]

    @property
    def default(self) -> Overload:
        """The operator as modes and checks see it."""
        return overload(self.name)

    def overloads(self) -> list[str]:
        """Names of its overloads, as attributes."""
        return ["default"]

    def __getattr__(self, name: str) -> Overload:
        # PyTorch's names of overloads: "add.out" and "max.dim" are operators of their own, others speak of argument
        # types.
        if name in _OVERLOADS:
            return overload(found if (found := f"{self.name}.{name}") in _known else self.name)
        raise AttributeError(f"{self!r} has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<operator {self.name}: {self.schema}>"

    def __reduce__(self) -> tuple:
        return op, (self.name,)


#: What PyTorch calls overloads of built-in operators.
_OVERLOADS = frozenset(
    {
        "Tensor",
        "Scalar",
        "self",
        "dim",
        "dims",
        "int",
        "out",
        "Tensor_Scalar",
        "Scalar_Tensor",
        "Tensor_Tensor",
        "other",
        "stable",
        "two",
        "low",
        "self_int",
        "Tensor_mode",
        "Scalar_mode",
        "ScalarOther",
        "ScalarSelf",
        "correction",
        "decimals",
        "dim_IntList",
        "dtype",
        "int_Scalar",
        "int_Tensor",
        "n_scalar",
        "other_scalar",
        "reduce",
        "self_scalar",
        "src",
        "start",
        "start_step",
        "value",
        "value_reduce",
        "x_scalar",
    }
)


class OperatorSchema:
    """The schema of an overload: `name`, `arguments`, `returns`; text is what `str` gives."""

    def __init__(self, operator: Operator) -> None:
        self.name = qualified(operator.name)
        self.overload_name = ""
        self.arguments = operator.arguments
        self.returns = operator.results
        self._text = operator.schema

    @property
    def is_mutable(self) -> bool:
        """Whether an argument is written into."""
        return "!)" in self._text or self.name.endswith(("_", ".out", "_out"))

    def __str__(self) -> str:
        return f"{self.name.partition('::')[0]}::{self._text.partition('::')[2] or self._text}"

    __repr__ = __str__


class Overload:
    """One operator as dispatch modes get it: `func` of `__torch_dispatch__`. There is one object for each operator.

    Attributes:
        overloadpacket: The `Operator` it belongs to.
        namespace: "taeda" for built-in operators.
    """

    __slots__ = ("_schema", "namespace", "overloadpacket")

    def __init__(self, operator: Operator) -> None:
        self.overloadpacket = operator
        self.namespace = qualified(operator.name).partition("::")[0]
        self._schema = OperatorSchema(operator)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return _C._call_operator(self.overloadpacket.name, args, kwargs)

    @property
    def __name__(self) -> str:
        return f"{self.overloadpacket.__name__}.default"

    def name(self) -> str:
        """ "package::operator"; built-in ones belong to "taeda"."""
        return qualified(self.overloadpacket.name)

    @property
    def is_view(self) -> bool:
        """Whether its results show the elements of an argument."""
        return self.overloadpacket.kind == "view"

    @property
    def _overloadname(self) -> str:
        return "default"

    @property
    def _overloadpacket(self) -> Operator:
        """`overloadpacket`, under the name by which tables of costs look operators up."""
        return self.overloadpacket

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.name()}', overload='default')>"

    def __str__(self) -> str:
        return f"{self.name().replace('::', '.')}.default"

    def __reduce__(self) -> tuple:
        return overload, (self.overloadpacket.name,)


_overloads: dict[str, Overload] = {}


def qualified(name: str) -> str:
    """The name with its package."""
    return name if "::" in name else f"taeda::{name}"


def overload(name: str) -> Overload:
    """The one `Overload` of an operator."""
    operator = op(name)
    found = _overloads.get(name)
    if found is None or found.overloadpacket is not operator:
        found = _overloads[name] = Overload(operator)
    return found


_known: dict[str, Operator] = {}


def _devices() -> list[str]:
    return [name for name in _C._backend_names() if name != "meta"]


def _fill() -> None:
    for name, schema, kind, core, form in _C._operators():
        if name not in _known:
            _known[name] = Operator(name, schema, kind, core, form)


def op(name: str) -> Operator:
    """The operator of this name.

    Raises:
        LookupError: There is none; names that look like it are listed.

    Example:
        >>> taeda.library.op("add").core
        True
    """
    if name not in _known:
        _fill()
    if name not in _known:
        import difflib

        near = difflib.get_close_matches(name, _known, 3)
        raise LookupError(
            f"there is no operator named {name!r}" + (f"; did you mean {', '.join(near)}?" if near else "")
        )
    return _known[name]


def operators() -> Iterator[Operator]:
    """All operators of the table, in its order."""
    _fill()
    return iter(tuple(_known.values()))
