"""The operator table as Python sees it: every form of every operator by its unique name."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from taeda_tensor_core import _C
from taeda_tensor_core._overridable import stand_ins
from taeda_tensor_core.library._aten_forms import OWN_FORMS, aten_name, written
from taeda_tensor_core.library._aten_schemas import OTHER, Part, Told, parsed, told
from taeda_tensor_core.library._overload_calls import call_of, write
from taeda_tensor_core.library._tags import tags_of


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

    # What PyTorch's arguments of schemas are asked for besides.

    @property
    def default_value(self) -> Any:
        """`default`."""
        return self.default

    def has_default_value(self) -> bool:
        """`has_default`."""
        return self.has_default

    @property
    def kwarg_only(self) -> bool:
        """`keyword_only`."""
        return self.keyword_only

    @property
    def alias_info(self) -> Aliasing | None:
        """What memory it shows and whether the call writes there; None where it shares none."""
        return Aliasing(frozenset({self.alias}), self.written) if self.alias else None

    @property
    def is_out(self) -> bool:
        """Whether the call writes its result here, which is given by name."""
        return self.keyword_only and self.written


class Aliasing(NamedTuple):
    """What a schema says of an argument's memory: letters of what is shown, and whether the call writes to it."""

    before_set: frozenset[str]
    is_write: bool

    @property
    def after_set(self) -> frozenset[str]:
        """The letters after the call: the same."""
        return self.before_set


class Result(NamedTuple):
    """One result of a schema. `alias` is the letter of the argument whose memory it may show."""

    name: str
    type: str
    list: bool
    alias: str = ""

    @property
    def alias_info(self) -> Aliasing | None:
        """Whose memory it may show; None where it is new."""
        return Aliasing(frozenset({self.alias}), False) if self.alias else None


class Operator(_C._Operator):
    """One form of one operator ("add", "add_", "add.out", "mypkg::scale"): callable, and what is known of it.

    A call takes arguments in the order of `arguments`, or by name.

    Attributes:
        name: Its unique name.
        schema: Arguments, defaults and results as text.
        kind: "structured" (the core makes the outputs, a kernel fills them), "direct" (a kernel does
        everything), "view" or "composite" (written in terms of others).
        core: Whether a backend must implement it.
    """

    __slots__ = ("_by_position", "_facts", "_form", "core", "kind", "name", "schema")

    def __init__(self, name: str, schema: str, kind: str, core: bool, form: str) -> None:
        self.name, self.schema, self.kind, self.core, self._form = name, schema, kind, core, form
        self._facts: tuple[tuple[Argument, ...], tuple[Result, ...]] | None = None
        self._by_position: tuple[int, tuple[str, ...]] | None = None

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
    def by_position(self) -> tuple[int, tuple[str, ...]]:
        """How many arguments are given by position, and the names of the others."""
        if self._by_position is None:
            names = tuple(a.name for a in self.arguments if a.keyword_only)
            self._by_position = len(self.arguments) - len(names), names
        return self._by_position

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
            listed = f"{self.name.removesuffix('_')}.{name}"
            found = f"{self.name}.{_OTHER_OVERLOADS.get(listed, name)}"
            if found in _known:
                return overload(found, name if listed in _OWN_OVERLOADS else "")
            return overload(self.name, name)
        if name.endswith("_out") and f"{self.name}.out" in _known:
            return overload(f"{self.name}.out")
        raise AttributeError(f"{self!r} has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<operator {self.name}: {self.schema}>"

    def __str__(self) -> str:
        return ".".join(aten_name(self.name)[:2])

    def __reduce__(self) -> tuple:
        return op, (self.name,)


#: What PyTorch calls overloads of built-in operators.
_OVERLOAD_NAMES = (
    "IntList List OutScalar_Other OutScalar_Self OutTensor Scalar ScalarAndTensor ScalarList ScalarOpt_dim "
    "ScalarOpt_dim_dtype ScalarOpt_dtype ScalarOther ScalarSelf Scalar_Other Scalar_Scalar Scalar_Self "
    "Scalar_Tensor Scalar_mode Sequence Tensor TensorList_bins Tensor_Scalar Tensor_Tensor Tensor_float "
    "Tensor_generator Tensor_mode array atol_rtol_float atol_rtol_tensor beta bin_ct bins_tensor ccol_row_value "
    "ccol_row_value_size center comp_plain_value comp_plain_value_size correction crow_col_value "
    "crow_col_value_size data data_legacy decimals deprecated device dim dim_IntList dim_dtype dim_int dim_max "
    "dim_min dim_values dims dtype dx eigenvalues eigvals float float_Tensor float_float from generator grad_input "
    "indexing indices indices_size input input_legacy int int_Scalar int_Tensor int_bins intlist inverse low "
    "low_dtype low_generator low_generator_dtype m memory_format msg n_scalar no_stats ord_str other other_scalar out "
    "out_mode out_rcond_tensor out_tol_tensor output output_mask p p_str padding padding_idx periodic "
    "periodic_alpha periodic_alpha_beta quantized rcond_tensor reduce scalar scalararray scalarint scalarrayarray "
    "scalarrayint sections self self_Tensor self_int self_scalar size sizes source_Storage "
    "source_Storage_storage_offset source_Tensor source_Tensor_storage_offset sparse_dim src stable start "
    "start_step step str_ord tensor_indices_or_sections tensor_lr tensor_qparams tensorarray tensorarrayint "
    "dtype_layout tensor list sublist prim_Device prim_dtype prim_other hacked_twin Tensor_hacked_twin with_index "
    "tensors to tol_tensor two using_ints value value_reduce values values_stable vec x x_scalar U Tensor_out"
)
_OVERLOADS = frozenset(_OVERLOAD_NAMES.split())
#: Where an operator of ours has another name for what is one of PyTorch's overloads, or serves several of them.
_OTHER_OVERLOADS = OWN_FORMS | {
    "div.Scalar_mode": "mode",
    "normal.Tensor_float": "Tensor",
    "normal.float_Tensor": "Tensor",
    "squeeze.dim": "dims",
    "squeeze_copy.dim": "dims",
    **dict.fromkeys(
        (
            "topk.values",
            "sort.values",
            "sort.values_stable",
            "kthvalue.values",
            "mode.values",
            "svd.U",
            "frexp.Tensor_out",
        ),
        "out",
    ),
    **dict.fromkeys(("max.dim_max", "min.dim_min", "median.dim_values", "nanmedian.dim_values"), "dim_out"),
}
#: Those of them that are told apart from the others of that operator.
_OWN_OVERLOADS = frozenset({"squeeze.dim", "squeeze_copy.dim", "div.Scalar_mode", "div_.Scalar_mode"})


class ManyForms(Operator):
    """An operator with further forms ("max", of "max.dim" and "max.other"): a call goes to the first that takes it."""

    __slots__ = ("_further",)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if "out" in kwargs:
            return self.out(*args, **kwargs)
        try:
            return _C._call_operator(self, args, kwargs)
        except TypeError:
            for name in self._further:
                with contextlib.suppress(TypeError):
                    return _C._call_operator(_known[name], args, kwargs)
            if found := stand_ins(args, kwargs):
                return _C._handle_override(self, found, args, kwargs)
            raise


class Plain:
    """A function that is no operator, under an operator's name: no mode meets it. All its overloads do the same.

    Attributes:
        namespace: "aten".
    """

    __slots__ = ("_function", "_name", "_overloadname", "_packet", "_parts")
    namespace = "aten"

    def __init__(
        self, name: str, function: Any, packet: Plain | None = None, overload_name: str = ""
    ) -> None:
        self._name, self._function = name, function
        self._packet, self._overloadname = packet, overload_name
        self._parts: dict[str, Plain] = {}

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._function(*args, **kwargs)
        except TypeError as error:
            if type(error) is TypeError and error.__traceback__.tb_next is None:  # type: ignore[union-attr]
                raise _C._CallError(f"{self.name()}: {error}") from None  # the call itself did not fit
            raise

    def name(self) -> str:
        """ "aten::numel", or "aten::sym_size.int" """
        return f"aten::{self._name}{f'.{n}' if (n := self._overloadname) not in ('', 'default') else ''}"

    @property
    def __name__(self) -> str:
        return f"{self._name}.{self._overloadname}" if self._overloadname else self._name

    @property
    def _schema(self) -> OperatorSchema:
        """Its schema, of an overload whose arguments are known."""
        from taeda_tensor_core.library._aten_parts import SCHEMAS

        name = f"{self._name}.{n}" if (n := self._overloadname) not in ("", "default") else self._name
        known = SCHEMAS.get(name) or OTHER.get(name)
        if self._packet is None or known is None:
            raise AttributeError(f"{self!r} has no attribute '_schema'")
        return OperatorSchema(
            f"aten::{self._name}", self._overloadname, lambda: told(self._name, self._overloadname, known)
        )

    @property
    def overloadpacket(self) -> Plain:
        """What it is an overload of."""
        return self if self._packet is None else self._packet

    def overloads(self) -> list[str]:
        """Names of its overloads, as attributes."""
        return ["default"]

    def __getattr__(self, name: str) -> Plain:
        if self._packet is None and (name == "default" or name in _OVERLOADS):
            if name not in self._parts:
                self._parts[name] = Plain(self._name, self._function, self, name)
            return self._parts[name]
        raise AttributeError(f"{self!r} has no attribute {name!r}")

    def __repr__(self) -> str:
        if self._packet is None:
            return f"<function {self.name()}>"
        return f"<OpOverload(op='aten.{self._name}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __copy__(self) -> Plain:
        return self

    def __deepcopy__(self, memo: dict) -> Plain:
        return self

    def __reduce__(self) -> tuple:
        return _plain, (self._name, self._overloadname)


def _plain(name: str, overload_name: str = "") -> Plain:
    """The function of an operator's name, or an overload of it."""
    found = getattr(_C.ops.aten, name)
    return getattr(found, overload_name) if overload_name else found


class OperatorSchema:
    """The schema of an overload: `name`, `arguments`, `returns`; text is what `str` gives."""

    def __init__(
        self, name: str, overload_name: str, told: Callable[[], Told], form: str = "function"
    ) -> None:
        self.name, self.overload_name = name, "" if overload_name == "default" else overload_name
        self._told, self._form = told, form

    @staticmethod
    def of(operator: Operator, name: str, overload_name: str) -> OperatorSchema:
        """That of a built-in operator in PyTorch's words, of another in those of its declaration."""
        package, _, short = name.partition("::")

        def derived() -> Told:
            if package != "aten":
                return parsed(operator.schema)
            outputs = list(written(operator)) if operator.form == "out" else []
            return told(short, overload_name, operator.schema, operator.form, outputs)

        return OperatorSchema(name, overload_name, derived, operator.form)

    @functools.cached_property
    def _derived(self) -> Told:
        return self._told()

    @functools.cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments, in the order of PyTorch's."""
        return tuple(map(_argument, self._derived.parts))

    @functools.cached_property
    def returns(self) -> tuple[Result, ...]:
        """The results."""
        return tuple(_result(text) for text in self._derived.result_texts)

    @property
    def is_mutable(self) -> bool:
        """Whether an argument is written into."""
        return self._form != "function" or any(argument.written for argument in self.arguments)

    def __str__(self) -> str:
        overload = f".{self.overload_name}" if self.overload_name else ""
        return f"{self.name}{overload}{self._derived}"

    __repr__ = __str__


_MARKED = re.compile(r"\(([a-z|*]\w*)(!?)(?: -> [^)]*)?(?: if (\w+))?\)")


def _marks(kind: str) -> tuple[str, str, bool, str]:
    """A type without the marks of memory, and the letter, whether it is written to, and by which argument."""
    found = _MARKED.search(kind)
    if found is None:
        return kind, "", False, ""
    return _MARKED.sub("", kind), found[1], bool(found[2]), found[3] or ""


def _argument(part: Part) -> Argument:
    kind, letter, writes, when = _marks(part.type)
    plain = re.sub(r"\[\d*\]|\?", "", kind)
    optional, default = kind.endswith("?"), part.default is not None
    return Argument(
        part.name, plain, "[" in kind, optional, part.by_name, default, part.value, letter, writes, when
    )


def _result(text: str) -> Result:
    kind, letter, _, _ = _marks(text.partition(" ")[0] if "->" not in text else text)
    return Result(text.partition(" ")[2], re.sub(r"\[\d*\]", "", kind), "[" in kind, letter)


class Overload:
    """One operator as dispatch modes get it: `func` of `__torch_dispatch__`.

    There is one object for each operator and each of PyTorch's overloads of it, so that programs compare with `is`.

    Attributes:
        operator: The `Operator` that a call goes to.
        namespace: "aten" for built-in operators that PyTorch has too, "taeda" for others.
    """

    __slots__ = ("_instead", "_name", "_overloadname", "_schema", "namespace", "operator")

    def __init__(self, operator: Operator, overload_name: str = "") -> None:
        self.operator = operator
        self.namespace, self._name, known = aten_name(operator.name)
        self._overloadname = overload_name or known
        self._schema = OperatorSchema.of(operator, f"{self.namespace}::{self._name}", self._overloadname)
        self._instead = call_of(self)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if _C._function_mode_stack():  # modes of functions see overloads as what they are
            return _C._handle_override(self, (), args, kwargs)
        try:
            if kwargs and self.operator._form == "out":
                return write(self.operator, args, kwargs)
            if self._instead is not None:
                return self._instead(self.operator, *args, **kwargs)
            return _C._call_operator(self.operator, args, kwargs)
        except TypeError:
            if found := stand_ins(args, kwargs):
                return _C._handle_override(self, found, args, kwargs)
            raise

    @property
    def __name__(self) -> str:
        return f"{self._name}.{self._overloadname}"

    def name(self) -> str:
        """ "package::operator" or "package::operator.overload" """
        return f"{self.namespace}::{self._name}{f'.{name}' if (name := self._schema.overload_name) else ''}"

    @property
    def overloadpacket(self) -> Operator:
        """The operator of all its overloads: "max" of "max.dim"."""
        return _known.get(self._name, self.operator) if self.namespace == "aten" else self.operator

    @property
    def is_view(self) -> bool:
        """Whether its results show the elements of an argument."""
        return self.operator.kind == "view"

    @property
    def tags(self) -> list[Any]:
        """What PyTorch says of such operators, as far as the schema tells it, in its order."""
        return tags_of(self.operator)

    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """The result where this operator is written in terms of others; NotImplemented where it is not."""
        return self(*args, **kwargs) if self.operator.kind == "composite" else NotImplemented

    @property
    def _overloadpacket(self) -> Operator:
        """`overloadpacket`, under the name by which tables of costs look operators up."""
        return self.overloadpacket

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._name}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self._name}.{self._overloadname}"

    def __reduce__(self) -> tuple:
        return overload, (self.operator.name, self._overloadname)


_overloads: dict[tuple[str, str], Overload] = {}


def overload(name: str, overload_name: str = "") -> Overload:
    """The one `Overload` of an operator and of a name of its overloads; "" and "default" are the first of them."""
    operator = op(name)
    known = aten_name(name)[2]
    key = (name, known if overload_name in ("", "default") else overload_name)
    found = _overloads.get(key)
    if found is None or found.operator is not operator:
        found = _overloads[key] = Overload(operator, key[1])
    return found


_known: dict[str, Operator] = {}


def _devices() -> list[str]:
    return [name for name in _C._backend_names() if name != "meta"]


#: How many operators had been in the core's table when it was read; ever more are.
_counted = 0


def _fill() -> None:
    global _counted
    count = _C._operator_count()
    if count == _counted:
        return
    rows = _C._operators()
    further: dict[str, list[str]] = {}
    for name, *_ in rows:
        base, _, form = name.partition(".")
        if form and "out" not in form and "::" not in name:
            further.setdefault(base, []).append(name)
    for name, schema, kind, core, form in rows:
        if name not in _known:
            made = ManyForms if name in further else Operator
            _known[name] = made(name, schema, kind, core, form)
            if made is ManyForms:
                _known[name]._further = tuple(further[name])  # type: ignore[attr-defined]
    _counted = count


def read_anew(name: str) -> None:
    """Forget what is known of an operator that has been defined with another schema."""
    global _counted
    if name in _known and (name, _known[name].schema) not in (row[:2] for row in _C._operators()):
        del _known[name]
        _counted = 0


def has(name: str) -> bool:
    """Whether there is an operator of this name."""
    if name not in _known:
        _fill()
    return name in _known


def op(name: str) -> Operator:
    """The operator of this name.

    Raises:
        LookupError: There is none; names that look like it are listed.

    Example:
        >>> taeda.library.op("add").core
        True
    """
    if not has(name):
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
