"""Emits bind_<family>.cpp: argument tables, converters and the method tables of the Python module and the Tensor type."""

from __future__ import annotations

import types_ as t
from schema import Argument, Operator

HEAD = """// Generated from ops/{family}.yaml by tools/codegen; edits are lost.
#include "python/args.h"
#include "python/bindings.h"
#include "taeda/ops/{family}.h"

namespace taeda::py {{
namespace {{

"""
KIND = {
    "Tensor": "Tensor", "Operand": "Operand", "Tensor?": "OptTensor", "Tensor[]": "TensorList", "Tensor?[]": "OptTensorList",
    "Scalar": "Scalar", "Scalar?": "OptScalar", "int": "Int", "int?": "OptInt", "int[]": "IntList", "int[]?": "OptIntList",
    "float": "Float", "float?": "OptFloat", "float[]": "FloatList", "bool": "Bool", "bool?": "OptBool", "str": "Str",
    "str?": "OptStr", "DType": "DType", "DType?": "OptDType", "Device": "Device", "Device?": "OptDevice",
    "Generator?": "OptGenerator",
}  # fmt: skip
# Converters that keep something alive are objects with .get(); the others are functions.
HOLDERS = {
    "Operand": "OperandArg", "Tensor[]": "TensorListArg", "Tensor?[]": "TensorListArg", "int[]": "IntListArg",
    "int[]?": "OptIntListArg", "float[]": "FloatListArg",
}  # fmt: skip


def convert(a: Argument, i: int) -> tuple[str, str]:
    """(declaration, expression to pass)."""
    if a.type in HOLDERS:
        default = t.default_value(a)
        extra = f", {default}" if a.type == "int[]" and default and default != "IntSpan()" else ""
        return f"  {HOLDERS[a.type]} a{i}(sig, {i}, slots{extra});\n", f"a{i}.get()"
    call = f"{snake(KIND[a.type])}_arg(sig, {i}, slots)"
    default = t.default_value(a)
    if default is not None and not a.type.endswith("?"):
        value_type = {"Scalar": "Scalar", "int": "int64_t", "float": "double", "bool": "bool", "str": "std::string_view",
                      "DType": "DType", "Device": "Device"}[a.type]  # fmt: skip
        return "", f"slots.present({i}) ? {call} : {value_type}({default})"
    if a.type.endswith("?") and a.default not in (None, "None") and a.type not in ("Tensor?", "Generator?"):
        return (
            "",
            f"slots.given({i}) ? {call} : {t.CXX[a.type].removeprefix('const ').removesuffix('&')}({default})",
        )
    return "", call


def snake(kind: str) -> str:
    return "".join("_" + c.lower() if c.isupper() and i else c.lower() for i, c in enumerate(kind)).replace(
        "d_type", "dtype"
    )


def specs(op: Operator, ident: str, with_out: bool, inplace: bool) -> str:
    rows = []
    for a in op.arguments:
        # A number has no place to write into, and methods have a Tensor as self anyhow.
        kind = "Tensor" if inplace and not rows else KIND[a.type]
        rows.append(
            f"    {{{t.string(a.name)}, ArgKind::{kind}, {str(a.default is None).lower()}, {str(a.keyword_only).lower()}}},\n"
        )
    if with_out:
        rows.append('    {"out", ArgKind::Out, false, true},\n')
    if not rows:
        return f"constexpr ArgSpec* specs_{ident} = nullptr;\n"
    return f"ArgSpec specs_{ident}[] = {{\n{''.join(rows)}}};\n"


def caller(op: Operator, ident: str, form: str) -> str:
    """The function that converts slots and calls the operator."""
    declarations, passed = "", []
    for i, a in enumerate(op.arguments):
        self_written = i == 0 and form == "inplace"
        declaration, expression = ("", "tensor_arg(sig, 0, slots)") if self_written else convert(a, i)
        declarations += declaration
        passed.append(expression)
    args = ", ".join(passed)
    text = f"PyObject* call_{ident}([[maybe_unused]] const Signature& sig, [[maybe_unused]] Slots& slots) {{\n{declarations}"
    if form == "inplace":
        return text + f"  ops::{op.cxx}_({args});\n  return slots.self();\n}}\n"
    if "out" in op.forms and form == "function":
        out_index, n = len(op.arguments), len(op.results)
        text += f"  if (slots.given({out_index})) {{\n    const OutArg out(sig, {out_index}, slots, {n});\n"
        outs = ", ".join(f"out[{i}]" for i in range(n))
        text += f"    ops::{op.cxx}_out({outs}, {args});\n    return out.result();\n  }}\n"
    if not op.results:
        result = (
            "slots.self()"
            if op.in_place_only and op.arguments and op.arguments[0].type == "Tensor"
            else "Py_NewRef(Py_None)"
        )
        return text + f"  ops::{op.cxx}({args});\n  return {result};\n}}\n"
    if len(op.results) == 1:
        return text + f"  return wrap(ops::{op.cxx}({args}));\n}}\n"
    fields = ", ".join(t.string(r.name) for r in op.results)
    text += f"  static const char* const fields[] = {{{fields}}};\n  static PyTypeObject* const type = result_type({t.string(op.python_name)}, fields, {len(op.results)});\n"
    return text + f"  return wrap_results(type, ops::{op.cxx}({args}));\n}}\n"


def signature_text(op: Operator, suffix: str, with_out: bool) -> str:
    body = op.schema.partition("(")[2]
    name = op.python_name + suffix
    if with_out:
        inner, _, result = body.rpartition(") ->")
        star = "" if "*" in inner else "*, "
        body = f"{inner}{', ' if inner else ''}{star}Tensor? out=None) ->{result}"
    return f"{name}({body}"


class Group:
    """All signatures under one Python name, for functions or in-place forms."""

    def __init__(self, name: str, inplace: bool) -> None:
        self.name, self.inplace = name, inplace
        self.ops: list[Operator] = []

    @property
    def ident(self) -> str:
        return self.name

    def emit(self) -> str:
        text, rows, docs = "", [], []
        for op in self.ops:
            ident = op.cxx + ("_" if self.inplace else "")
            with_out = "out" in op.forms and not self.inplace
            text += specs(op, ident, with_out, self.inplace) + caller(
                op, ident, "inplace" if self.inplace else "function"
            )
            count = len(op.arguments) + with_out
            positional = sum(not a.keyword_only for a in op.arguments)
            names = [a.name for a in op.arguments]
            varargs = names.index(op.varargs) if op.varargs else -1
            shown = signature_text(op, "_" if self.inplace else "", with_out)
            rows.append(
                f"    {{{t.string(self.name)}, specs_{ident}, {count}, {positional}, {varargs}, {t.string(shown)}, call_{ident}}},\n"
            )
            docs.append(f"{shown}\n\n" + (f"In-place form of {op.python_name}." if self.inplace else op.doc))
        text += f"Signature signatures_{self.ident}[] = {{\n{''.join(rows)}}};\n"
        text += f"const char doc_{self.ident}[] = {t.string(chr(10).join(docs))};\n"
        for prefix, self_expr in (("fn", "nullptr"), ("method", "self")):
            text += (
                f"[[maybe_unused]] PyObject* {prefix}_{self.ident}(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {{\n"
                f"  {'(void)self; ' if prefix == 'fn' else ''}return run(signatures_{self.ident}, {len(rows)}, {self_expr}, args, count, names);\n}}\n"
            )
        return text + "\n"


def groups(ops: list[Operator]) -> tuple[list[Group], dict[str, str], dict[str, str], dict[str, bool]]:
    """Groups, and Python names of functions and methods -> group ident."""
    found: dict[str, Group] = {}
    functions: dict[str, str] = {}
    methods: dict[str, str] = {}
    nn_only: dict[str, bool] = {}
    for op in ops:
        for inplace in (False, True):
            if inplace and "inplace" not in op.forms:
                continue
            suffix = "_" if inplace else ""
            group = found.setdefault(op.python_name + suffix, Group(op.python_name + suffix, inplace))
            group.ops.append(op)
            for name in (op.python_name, *op.aliases):
                if "function" in op.forms:
                    functions[name + suffix] = group.ident
                    nn_only[name + suffix] = op.module == "nn"
                if "method" in op.forms:
                    methods[name + suffix] = group.ident
    return list(found.values()), functions, methods, nn_only


def emit(family: str, ops: list[Operator]) -> str:
    text = HEAD.format(family=family)
    all_groups, functions, methods, nn_only = groups(ops)
    for group in all_groups:
        text += group.emit()
    text += "}  // namespace\n\n"

    def table(kind: str, prefix: str, names: dict[str, str]) -> str:
        rows = "".join(
            f"    {{{t.string(name)}, reinterpret_cast<PyCFunction>({prefix}_{ident}), METH_FASTCALL | METH_KEYWORDS, doc_{ident}}},\n"
            for name, ident in names.items()
        )
        return f"PyMethodDef {family}_{kind}[] = {{\n{rows}    {{nullptr, nullptr, 0, nullptr}}}};\n"

    text += table("functions", "fn", {n: i for n, i in functions.items() if not nn_only[n]})
    text += table("nn_functions", "fn", {n: i for n, i in functions.items() if nn_only[n]})
    text += table("methods", "method", methods)
    return text + "}  // namespace taeda::py\n"


def emit_tables(families: list[str]) -> str:
    """The lists of all families' tables that python/bindings.h declares."""
    declare = "".join(
        f"extern PyMethodDef {f}_functions[], {f}_nn_functions[], {f}_methods[];\n" for f in families
    )
    rows = {
        kind: ", ".join(f"{f}_{kind}" for f in families) for kind in ("functions", "nn_functions", "methods")
    }
    source = (
        '// Generated by tools/codegen.\n#include "python/bindings.h"\n\nnamespace taeda::py {\n' + declare
    )
    for kind, items in rows.items():
        source += f"PyMethodDef* const all_{kind}[] = {{{items}, nullptr}};\n"
    return source + "}  // namespace taeda::py\n"
