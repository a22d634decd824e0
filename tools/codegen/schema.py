"""Reads operator declarations (ops/<family>.yaml) into typed records; every mistake names file and record."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml

TYPES = (
    "Tensor", "Operand", "Tensor?", "Tensor[]", "Tensor?[]", "Scalar", "Scalar?", "int", "int?", "int[]", "int[]?", "float",
    "float?", "float[]", "bool", "bool?", "str", "str?", "DType", "DType?", "Device", "Device?", "Generator?",
)  # fmt: skip
RESULT_TYPES = ("Tensor", "Tensor[]", "bool", "int", "float", "Scalar", "DType")
FIELDS = {
    "op", "schema", "forms", "aliases", "kind", "core", "infer", "module", "varargs", "impl_inplace", "doc",
}  # fmt: skip
FORMS = {"function", "method", "inplace", "out"}
KINDS = {"structured", "direct", "view", "composite"}


RESERVED = {"std", "and", "or", "not", "xor", "float", "double", "int", "bool", "short", "long", "char", "new", "default"}


class DeclarationError(Exception):
    """A declaration that cannot be understood."""


@dataclass(frozen=True)
class Argument:
    name: str
    type: str
    default: str | None  # as written; None: required
    keyword_only: bool

    @property
    def is_tensor(self) -> bool:
        """A single tensor that takes part in dispatch."""
        return self.type in ("Tensor", "Operand", "Tensor?")

    @property
    def is_tensor_list(self) -> bool:
        return self.type in ("Tensor[]", "Tensor?[]")


@dataclass(frozen=True)
class Result:
    name: str
    type: str


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
    module: str = "both"
    varargs: str | None = None
    impl_inplace: bool = False
    where: str = field(default="", compare=False)

    @property
    def cxx(self) -> str:
        """The C++ name; words that C++ keeps for itself get a suffix."""
        name = self.name.replace(".", "_")
        return name + "_op" if name in RESERVED else name

    @property
    def python_name(self) -> str:
        return self.name.partition(".")[0]

    @property
    def in_place_only(self) -> bool:
        return self.name.endswith("_") and not self.name.startswith("__")

    @property
    def tensor_results(self) -> bool:
        return bool(self.results) and all(r.type == "Tensor" for r in self.results)


_ARGUMENT = re.compile(r"^(?P<type>[A-Za-z]+(?:\?|\[\])*)\s+(?P<name>[a-z_A-Z0-9]+)(?:\s*=\s*(?P<default>.+))?$")


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


def _arguments(text: str, where: str) -> tuple[Argument, ...]:
    out, keyword_only = [], False
    for part in _split(text):
        if part == "*":
            keyword_only = True
            continue
        match = _ARGUMENT.match(part)
        if not match or match["type"] not in TYPES:
            raise DeclarationError(f"{where}: cannot read argument {part!r}; known types: {', '.join(TYPES)}")
        out.append(Argument(match["name"], match["type"], match["default"], keyword_only))
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
        kind, _, name = part.partition(" ")
        if kind not in RESULT_TYPES:
            raise DeclarationError(f"{where}: cannot read result {part!r}; known types: {', '.join(RESULT_TYPES)}")
        out.append(Result(name or ("result" if len(parts) == 1 else f"result{i}"), kind))
    return tuple(out)


def parse_record(record: dict, family: str, path: Path) -> Operator:
    where = f"{path.name}: {record.get('op', record)}"
    unknown = set(record) - FIELDS
    missing = {"op", "schema", "forms", "kind", "doc"} - set(record)
    if unknown or missing:
        raise DeclarationError(f"{where}: unknown fields {sorted(unknown)}, missing fields {sorted(missing)}")
    match = re.match(r"^([A-Za-z_0-9]+)\((.*)\)\s*->\s*(.+)$", record["schema"].strip(), re.S)
    if not match:
        raise DeclarationError(f"{where}: schema must read 'name(type arg, ...) -> result'")
    if match[1] != record["op"].partition(".")[0]:
        raise DeclarationError(f"{where}: schema names {match[1]!r}")
    if not set(record["forms"]) <= FORMS or record["kind"] not in KINDS:
        raise DeclarationError(f"{where}: forms must be of {sorted(FORMS)}, kind of {sorted(KINDS)}")
    return Operator(
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
        module=record.get("module", "both"),
        varargs=record.get("varargs"),
        impl_inplace=bool(record.get("impl_inplace", False)),
        where=where,
    )


def load(folder: Path) -> dict[str, list[Operator]]:
    """All operators by family, in file order.

    Raises:
        DeclarationError: a record that cannot be understood, or a name declared twice.
    """
    families: dict[str, list[Operator]] = {}
    seen: dict[str, str] = {}
    for path in sorted(folder.glob("*.yaml")):
        records = yaml.safe_load(path.read_text()) or []
        ops = [parse_record(r, path.stem, path) for r in records]
        for op in ops:
            if op.name in seen:
                raise DeclarationError(f"{op.where}: declared already in {seen[op.name]}")
            seen[op.name] = op.where
        families[path.stem] = ops
    return families
