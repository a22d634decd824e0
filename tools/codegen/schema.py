"""Reads operator declarations (ops/<family>.yaml) into typed records; every mistake names file and record."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import yaml
from text import KEYWORDS

TYPES = (
    "Tensor", "Operand", "Tensor?", "Tensor[]", "Tensor?[]", "Scalar", "Scalar?", "int", "int?", "int[]", "int[]?",
    "float", "float?", "float[]", "bool", "bool?", "str", "str?", "DType", "DType?", "Device", "Device?", "Generator?",
)  # fmt: skip
RESULT_TYPES = ("Tensor", "Tensor[]", "bool", "int", "float", "Scalar", "DType")
FIELDS = {
    "op": str, "schema": str, "forms": list, "aliases": list, "kind": str, "core": bool, "infer": str, "module": str,
    "check": str, "operands": dict, "varargs": str, "impl_inplace": bool, "one_value": bool, "elementwise": bool,
    "steps": bool, "steps_on": str, "out_dtype": str, "out_keeps_shape": bool, "called_inside": dict,
    "named_alone": bool, "signature": str, "doc": str,
}  # fmt: skip
REQUIRED = {"op", "schema", "forms", "kind", "doc"}
# Python modules beside the top level that operators may stand in; each is there once an operator is in it.
NAMESPACES = ("fft", "linalg", "masked", "nn.functional", "signal.windows", "special")
MODULES = {"both", "nn", *NAMESPACES}
FORMS = {"function", "method", "inplace", "out"}
KINDS = {"structured", "direct", "view", "composite"}
# What dtype an out= tensor may have: one that the result's can be cast to, the result's alone, or any, which is then
# what the argument `dtype` is when it is left out.
OUT_DTYPES = {"cast", "same", "asked", "any"}
# The arguments of a reduction that may be `named_alone`.
REDUCED = [("self", "Tensor"), ("dim", "int[]?"), ("keepdim", "bool")]


class DeclarationError(Exception):
    """A declaration that cannot be understood."""


@dataclass(frozen=True)
class Argument:
    """One argument: `alias` is the letter of the memory it shows, `when` the bool argument that makes it written."""

    name: str
    type: str
    default: str | None  # as written; None: required
    keyword_only: bool
    alias: str = ""
    written: bool = False
    when: str = ""

    @property
    def is_tensor(self) -> bool:
        """A single tensor that takes part in dispatch."""
        return self.type in ("Tensor", "Operand", "Tensor?")

    @property
    def is_tensor_list(self) -> bool:
        return self.type in ("Tensor[]", "Tensor?[]")


@dataclass(frozen=True)
class Result:
    """One result. `alias` is the letter of the argument whose memory it may show."""

    name: str
    type: str
    alias: str = ""


@dataclass(frozen=True)
class Operator:
    name: str
    family: str
    schema: str
    arguments: tuple[Argument, ...]
    results: tuple[Result, ...]
    forms: tuple[str, ...]
    kind: str
    doc: str
    core: bool = False
    aliases: tuple[str, ...] = ()
    infer: str | None = None
    check: str | None = None
    operands: tuple[tuple[str, str], ...] = ()
    module: str = "both"
    varargs: str | None = None
    impl_inplace: bool = False
    steps: bool = False
    steps_on: str = ""
    one_value: bool = False
    elementwise: bool = False
    named_alone: bool = False
    signature: str | None = None
    out_dtype: str = "cast"
    out_keeps_shape: bool = False
    called_inside: tuple[tuple[str, str], ...] = ()
    where: str = field(default="", compare=False)

    @property
    def cxx(self) -> str:
        """The C++ name; words that C++ keeps for itself get a suffix."""
        name = self.name.replace(".", "_")
        return name + "_op" if name in KEYWORDS or name == "std" else name

    @property
    def python_name(self) -> str:
        return self.name.partition(".")[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The Python names at top level and of methods: its own and the aliases without a namespace."""
        return (self.python_name, *(alias for alias in self.aliases if "." not in alias))

    def names_in(self, namespace: str) -> tuple[str, ...]:
        """The Python names in a namespace: `linalg_inv` of module linalg is `inv`, as is the alias `linalg.inv`."""
        own = self.python_name.removeprefix(namespace.replace(".", "_") + "_")
        own = (own,) if self.module == namespace else ()
        dotted = (alias.rpartition(".") for alias in self.aliases)
        return (*own, *(name for place, dot, name in dotted if dot and place == namespace))

    @property
    def written(self) -> tuple[Argument, ...]:
        """Arguments that the function form writes to."""
        return tuple(a for a in self.arguments if a.written)

    @property
    def in_place_only(self) -> bool:
        """It gives nothing but what it writes into its first argument."""
        return not self.results and bool(self.arguments) and self.arguments[0].written

    @property
    def is_factory(self) -> bool:
        """It makes a tensor from sizes and numbers, in a dtype that may be said."""
        return "DType?" in {a.type for a in self.arguments} and not any(
            a.is_tensor or a.is_tensor_list for a in self.arguments
        )

    @property
    def plain_schema(self) -> str:
        """The schema as callers read it: without the marks of what is written and shared."""
        return _EFFECT.sub("", self.schema)

    @property
    def tensor_results(self) -> bool:
        return bool(self.results) and all(r.type == "Tensor" for r in self.results)


# What stands behind `Tensor`: (a) shows memory, (a!) is written, (a! if training) only when that argument is true.
_EFFECT = re.compile(r"(?<=Tensor)\((?P<alias>[a-z])(?P<written>!)?(?: if (?P<when>\w+))?\)")
_ARGUMENT = re.compile(
    r"^(?P<type>[A-Za-z]+(?:\?|\[\])*)\s+(?P<name>[a-z_A-Z0-9]+)(?:\s*=\s*(?P<default>.+))?$"
)


def _effect(text: str) -> tuple[str, dict[str, str | bool]]:
    """The text without its mark, and what the mark says."""
    match = _EFFECT.search(text)
    if not match:
        return text, {}
    said = {"alias": match["alias"], "written": bool(match["written"]), "when": match["when"] or ""}
    return _EFFECT.sub("", text, count=1), said


def _split(text: str) -> list[str]:
    """Splits at commas outside brackets and quotes."""
    parts, depth, quoted, current = [], 0, "", ""
    for char in text:
        if quoted:
            quoted = "" if char == quoted else quoted
        elif char in "\"'":
            quoted = char
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        if char == "," and depth == 0 and not quoted:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    return [*parts, current.strip()] if current.strip() else parts


_NUMBER = r"-?(\d+(\.\d*)?(e[+-]?\d+)?|inf)|nan"
_DEFAULTS = {
    "int": r"-?\d+", "float": _NUMBER, "Scalar": _NUMBER + "|True|False", "Operand": _NUMBER, "bool": "True|False",
    "str": r"\"[^\"]*\"|'[^']*'", "int[]": r"\[(-?\d+(, *-?\d+)*)?\]", "float[]": r"\[\]",
}  # fmt: skip


def _check_default(argument: Argument, where: str) -> None:
    """Raises DeclarationError for a default that is no value of the argument's type."""
    if argument.default is None or (argument.default == "None" and argument.type.endswith("?")):
        return
    allowed = _DEFAULTS.get(argument.type.removesuffix("?"))
    if allowed is None or not re.fullmatch(allowed, argument.default):
        raise DeclarationError(
            f"{where}: {argument.default} is no default for {argument.type} {argument.name}"
        )


def _arguments(text: str, where: str) -> tuple[Argument, ...]:
    out, keyword_only = [], False
    for part in _split(text):
        if part == "*":
            keyword_only = True
            continue
        plain, effect = _effect(part)
        match = _ARGUMENT.match(plain)
        if not match or match["type"] not in TYPES:
            raise DeclarationError(f"{where}: cannot read argument {part!r}; known types: {', '.join(TYPES)}")
        out.append(Argument(match["name"], match["type"], match["default"], keyword_only, **effect))
        _check_default(out[-1], where)
    names = [a.name for a in out]
    if len(set(names)) != len(names):
        raise DeclarationError(f"{where}: an argument name is repeated")
    return tuple(out)


def _results(text: str, where: str) -> tuple[Result, ...]:
    text = text.strip()
    if text == "()":
        return ()
    parts = _split(text[1:-1]) if text.startswith("(") else [text]
    out = []
    for i, part in enumerate(parts):
        plain, effect = _effect(part)
        kind, _, name = plain.partition(" ")
        if kind not in RESULT_TYPES or effect.get("written"):
            raise DeclarationError(
                f"{where}: cannot read result {part!r}; known types: {', '.join(RESULT_TYPES)}"
            )
        out.append(
            Result(name or ("result" if len(parts) == 1 else f"result{i}"), kind, effect.get("alias", ""))
        )
    return tuple(out)


def place(path: Path, record: object) -> str:
    """File and name of a record, for messages."""
    return f"{path.name}: {record['op'] if isinstance(record, dict) and 'op' in record else repr(record)}"


def _check_fields(record: object, where: str) -> None:
    """Raises DeclarationError unless the record has the known fields with values of their types."""
    if not isinstance(record, dict):
        raise DeclarationError(f"{where}: expected a record, found {record!r}")
    unknown = set(record) - set(FIELDS)
    missing = REQUIRED - set(record)
    if unknown or missing:
        raise DeclarationError(f"{where}: unknown fields {sorted(unknown)}, missing fields {sorted(missing)}")
    for name, value in record.items():
        if not isinstance(value, FIELDS[name]):
            raise DeclarationError(
                f"{where}: field {name!r} must be a {FIELDS[name].__name__}, found {value!r}"
            )
    if not record["doc"].strip():
        raise DeclarationError(f"{where}: field 'doc' is empty")


def _check_effects(op: Operator) -> None:
    """What is written and shared must be sayable by the schema's own arguments."""
    by_letter: dict[str, Argument] = {}
    for a in op.arguments:
        if a.alias and by_letter.setdefault(a.alias, a) is not a:
            raise DeclarationError(
                f"{op.where}: arguments {by_letter[a.alias].name!r} and {a.name!r} share a letter"
            )
        if a.when and not (a.written and any(b.name == a.when and b.type == "bool" for b in op.arguments)):
            raise DeclarationError(
                f"{op.where}: {a.name!r} is written if {a.when!r}, which is no bool argument"
            )
    for r in op.results:
        if r.alias and (r.alias not in by_letter or by_letter[r.alias].written):
            raise DeclarationError(
                f"{op.where}: result {r.name!r} shows {r.alias!r}, which no argument is called that is only read"
            )
    if op.kind == "view" and op.results and not all(r.alias for r in op.results):
        raise DeclarationError(
            f"{op.where}: a view says whose memory it shows, as in '(Tensor(a) self) -> Tensor(a)'"
        )
    named = op.python_name.endswith("_") and not op.name.startswith("__")
    if named != op.in_place_only:
        raise DeclarationError(
            f"{op.where}: names end in '_' where the first argument is written, 'Tensor(a!)', and the result is '()'"
        )
    if op.one_value and not op.in_place_only:
        raise DeclarationError(f"{op.where}: 'one_value' is for operators that exist only in place")


def _check_forms(op: Operator) -> None:
    """The forms need certain arguments and results."""
    first = op.arguments[0].type if op.arguments else None
    for form in ("method", "inplace"):
        if form in op.forms and first not in ("Tensor", "Operand"):
            raise DeclarationError(
                f"{op.where}: form {form!r} needs a Tensor as first argument, found {first}"
            )
    if "inplace" in op.forms and (len(op.results) != 1 or op.results[0].type != "Tensor"):
        raise DeclarationError(f"{op.where}: form 'inplace' needs exactly one Tensor result")
    if op.in_place_only and {"inplace", "out"} & set(op.forms):
        raise DeclarationError(
            f"{op.where}: an operator that exists only in place has the forms function and method only"
        )


def _check_kind(op: Operator) -> None:
    """Fields that only operators of some kind have."""
    if op.kind == "structured" and not op.tensor_results:
        raise DeclarationError(f"{op.where}: a structured operator returns tensors")
    if op.kind != "structured" and op.infer:
        raise DeclarationError(f"{op.where}: 'infer' is for structured operators")
    if op.infer and f'"{op.python_name}"' in op.infer:
        raise DeclarationError(
            f"{op.where}: 'infer' repeats the operator's name: write $op, or the function's name alone"
        )
    if op.kind != "direct" and op.check:
        raise DeclarationError(
            f"{op.where}: 'check' is for direct operators; others check in 'infer' or 'impl'"
        )
    if op.steps and (op.kind != "composite" or "DType?" in {a.type for a in op.arguments}):
        raise DeclarationError(
            f"{op.where}: 'steps' is for composites whose result has the dtype of their operands"
        )
    if op.steps_on and (not op.steps or op.steps_on != "cpu"):
        raise DeclarationError(f"{op.where}: 'steps_on' is cpu, and goes with 'steps'")
    for _, own in op.called_inside:
        if op.kind != "composite" or own not in {a.name for a in op.arguments}:
            raise DeclarationError(
                f"{op.where}: 'called_inside' of a composite maps an inner argument's name to one of its own, "
                f"found {own!r}"
            )


def _check_out(op: Operator) -> None:
    """What is said of form out."""
    if op.out_dtype not in OUT_DTYPES or (op.out_dtype != "cast" and "out" not in op.forms):
        raise DeclarationError(
            f"{op.where}: 'out_dtype' is for form out and of {sorted(OUT_DTYPES)}, found {op.out_dtype!r}"
        )
    if op.out_dtype == "asked" and "dtype" not in {a.name for a in op.arguments if a.type == "DType?"}:
        raise DeclarationError(f"{op.where}: 'out_dtype' is 'asked', and there is no argument 'DType? dtype'")
    if op.out_dtype == "any" and op.kind == "structured":
        raise DeclarationError(
            f"{op.where}: 'out_dtype' is 'any', which a structured operator's kernel is not made for"
        )
    if op.out_keeps_shape and (op.kind == "structured" or "out" not in op.forms):
        raise DeclarationError(
            f"{op.where}: 'out_keeps_shape' is for form out of composite and direct operators"
        )


def _check_arguments(op: Operator) -> None:
    """Fields that speak of arguments speak of ones that there are."""
    if op.varargs and op.varargs not in {
        a.name for a in op.arguments if a.type.startswith(("int[]", "Tensor[]"))
    }:
        raise DeclarationError(
            f"{op.where}: varargs names {op.varargs!r}, which is no int[] or Tensor[] argument"
        )
    for name, _ in op.operands:
        if name not in {a.name for a in op.arguments if a.type in ("Operand", "Tensor", "Tensor?", "Scalar")}:
            raise DeclarationError(
                f"{op.where}: 'operands' names {name!r}, which is no tensor and no Scalar argument"
            )
    if op.named_alone and [(a.name, a.type) for a in op.arguments] != REDUCED:
        raise DeclarationError(f"{op.where}: 'named_alone' is for the arguments self, dim and keepdim")
    positional = [a for a in op.arguments if not a.keyword_only]
    for before, after in pairwise(positional):
        if before.default is not None and after.default is None:
            raise DeclarationError(
                f"{op.where}: argument {after.name!r} without default follows one with a default"
            )


def _check_names(op: Operator) -> None:
    """Where the operator stands."""
    if op.module not in MODULES:
        raise DeclarationError(f"{op.where}: module must be of {sorted(MODULES)}, found {op.module!r}")
    for alias in op.aliases:
        namespace, dot, _ = alias.rpartition(".")
        if dot and namespace not in NAMESPACES:
            raise DeclarationError(
                f"{op.where}: alias {alias!r} names no namespace of {', '.join(NAMESPACES)}"
            )


def _check_signature(op: Operator) -> None:
    """A signature that is said instead of made is one of Python."""
    if op.signature is None:
        return
    try:
        ast.parse(f"def f{op.signature}: ...")
    except SyntaxError as error:
        raise DeclarationError(f"{op.where}: 'signature' is none of Python: {op.signature!r}") from error


def _check_meaning(op: Operator) -> None:
    """What can be said of an operator only after its schema is known."""
    for check in (
        _check_effects,
        _check_forms,
        _check_kind,
        _check_out,
        _check_arguments,
        _check_names,
        _check_signature,
    ):
        check(op)


def parse_record(record: dict, family: str, path: Path) -> Operator:
    where = place(path, record)
    _check_fields(record, where)
    match = re.match(r"^([A-Za-z_0-9]+)\((.*)\)\s*->\s*(.+)$", record["schema"].strip(), re.S)
    if not match:
        raise DeclarationError(f"{where}: schema must read 'name(type arg, ...) -> result'")
    if match[1] != record["op"].partition(".")[0]:
        raise DeclarationError(f"{where}: schema names {match[1]!r}")
    if not set(record["forms"]) <= FORMS or record["kind"] not in KINDS:
        raise DeclarationError(f"{where}: forms must be of {sorted(FORMS)}, kind of {sorted(KINDS)}")
    op = Operator(
        name=record["op"],
        family=family,
        schema=record["schema"].strip(),
        arguments=_arguments(match[2], where),
        results=_results(match[3], where),
        forms=tuple(record["forms"]),
        kind=record["kind"],
        doc=(record["doc"] or "").strip(),
        core=bool(record.get("core", False)),
        aliases=tuple(record.get("aliases", ())),
        infer=record.get("infer"),
        check=record.get("check"),
        operands=tuple(record.get("operands", {}).items()),
        module=record.get("module", "both"),
        varargs=record.get("varargs"),
        impl_inplace=bool(record.get("impl_inplace", False)),
        steps=bool(record.get("steps", False)),
        steps_on=record.get("steps_on", ""),
        one_value=bool(record.get("one_value", False)),
        elementwise=bool(record.get("elementwise", False)),
        named_alone=bool(record.get("named_alone", False)),
        signature=record.get("signature"),
        out_dtype=record.get("out_dtype", "cast"),
        out_keeps_shape=bool(record.get("out_keeps_shape", False)),
        called_inside=tuple(record.get("called_inside", {}).items()),
        where=where,
    )
    _check_meaning(op)
    return op


def read_records(path: Path) -> list:
    """The list of records in one YAML file."""
    try:
        records = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    except yaml.YAMLError as error:
        raise DeclarationError(f"{path.name}: not YAML: {error}") from error
    if not isinstance(records, list):
        raise DeclarationError(f"{path.name}: expected a list of records, found a {type(records).__name__}")
    return records


def _check_python_names(families: dict[str, list[Operator]]) -> None:
    """Overloads of one Python name stand in one family, and no alias hides another operator."""
    owner: dict[str, Operator] = {}
    for ops in families.values():
        for op in ops:
            dotted = (f"{space}.{name}" for space in NAMESPACES for name in op.names_in(space))
            for name in (*op.names, *dotted):
                first = owner.setdefault(name, op)
                if (first.family, first.python_name) != (op.family, op.python_name):
                    raise DeclarationError(f"{op.where}: the Python name {name!r} belongs to {first.where}")


def load(folder: Path) -> dict[str, list[Operator]]:
    """All operators by family, in file order.

    Raises:
        DeclarationError: a record that cannot be understood, or a name declared twice.
    """
    families: dict[str, list[Operator]] = {}
    seen: dict[str, str] = {}
    for path in sorted(folder.glob("*.yaml")):
        ops = [parse_record(r, path.stem, path) for r in read_records(path)]
        for before, after in pairwise(ops):
            if after.name < before.name:
                raise DeclarationError(
                    f"{after.where}: records are sorted by name, and this one stands after {before.name!r}"
                )
        for op in ops:
            if op.name in seen:
                raise DeclarationError(f"{op.where}: declared already in {seen[op.name]}")
            seen[op.name] = op.where
        families[path.stem] = ops
    _check_python_names(families)
    return families


def _repeats(op: Operator, other: Operator) -> bool:
    """Whether `op` takes the arguments of `other` and does without fewer of them: it is tried first."""
    names, others = ([a.name for a in each.arguments] for each in (op, other))
    without, others_without = (sum(a.default is not None for a in each.arguments) for each in (op, other))
    return names == others and without < others_without


def in_order_of_trial(ops: list[Operator]) -> list[Operator]:
    """Overloads of one name in the order in which a call tries them."""
    return sorted(ops, key=lambda op: -sum(_repeats(op, other) for other in ops))
