"""Emits taeda/ops/<family>.h: tags, the C++ API, and the functions that are written by hand."""

from __future__ import annotations

import types_ as t
from schema import Operator

HEAD = """// Generated from ops/{family}.yaml by tools/codegen; edits are lost.
#pragma once
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "taeda/dispatch.h"
#include "taeda/spec.h"

"""


def outs(op: Operator) -> str:
    return ", ".join(
        f"const Tensor& {'out' if len(op.results) == 1 else r.name + '_out'}" for r in op.results
    )


def out_names(op: Operator) -> list[str]:
    return ["out"] if len(op.results) == 1 else [r.name + "_out" for r in op.results]


def kernel_type(op: Operator) -> str:
    if op.kind == "structured":
        results = ["const Tensor&"] * len(op.results)
        return f"void({', '.join([*results, *([t.types(op.arguments)] if op.arguments else [])])})"
    return f"{t.result_type(op)}({t.types(op.arguments)})"


def forms(op: Operator) -> list[tuple[str, str, str]]:
    """(tag, C++ result, parameter types) of each form."""
    out = [(op.cxx, t.result_type(op), t.types(op.arguments))]
    if "inplace" in op.forms:
        out.append((op.cxx + "_", "void", t.types(op.arguments)))
    if "out" in op.forms:
        params = ", ".join(
            ["const Tensor&"] * len(op.results) + ([t.types(op.arguments)] if op.arguments else [])
        )
        out.append((op.cxx + "_out", "void", params))
    return out


def emit(family: str, ops: list[Operator]) -> str:
    text = HEAD.format(family=family)
    text += "namespace taeda::op {\n"
    for op in ops:
        for tag, result, params in forms(op):
            text += (
                f"struct TAEDA_API {tag} {{\n  using Fn = {result}(KeySet{', ' if params else ''}{params});\n"
            )
            if tag == op.cxx:
                text += f"  using Kernel = {kernel_type(op)};\n"
            text += "  static OpEntry entry;\n};\n"
    text += "}  // namespace taeda::op\n\nnamespace taeda::ops {\n"
    for op in ops:
        text += f"TAEDA_API {t.result_type(op)} {op.cxx}({t.parameters(op.arguments, defaults=True)});\n"
        if "inplace" in op.forms:
            text += f"TAEDA_API void {op.cxx}_({t.parameters(op.arguments, defaults=True)});\n"
        if "out" in op.forms:
            params = ", ".join(filter(None, [outs(op), t.parameters(op.arguments, defaults=True)]))
            text += f"TAEDA_API void {op.cxx}_out({params});\n"
    text += "}  // namespace taeda::ops\n\nnamespace taeda::infer {\n"
    for op in ops:
        if op.kind == "structured" and op.infer is None:
            n = len(op.results)
            result = "Spec" if n == 1 else f"std::array<Spec, {n}>"
            text += f"{result} {op.cxx}({t.parameters(op.arguments)});\n"
    text += "}  // namespace taeda::infer\n\nnamespace taeda::impl {\n"
    for op in ops:
        if op.kind in ("view", "composite"):
            text += f"{t.result_type(op)} {op.cxx}({t.parameters(op.arguments)});\n"
            if op.impl_inplace:
                text += f"void {op.cxx}_({t.parameters(op.arguments)});\n"
    return text + "}  // namespace taeda::impl\n"
