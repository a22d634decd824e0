"""Emits dispatch_<family>.cpp: entries, the stubs that callers meet, boxed adapters, registration."""

from __future__ import annotations

import types_ as t
from emit_header import out_names, outs
from schema import Operator

HEAD = """// Generated from ops/{family}.yaml by tools/codegen; edits are lost.
#include "taeda/boxing.h"
#include "taeda/ops/{family}.h"
#include "taeda/stub.h"
#if __has_include("infer/common.h")
#include "infer/common.h"
#endif
#if __has_include("infer/{family}.h")
#include "infer/{family}.h"
#endif

namespace taeda {{
namespace {{

using namespace stub;

"""


def keys(op: Operator, extra: tuple[str, ...] = ()) -> str:
    parts = [f"{name}.keys()" for name in extra]
    parts += [f"{a.name}.keys()" for a in op.arguments if a.is_tensor]
    parts += [f"keys_of({a.name})" for a in op.arguments if a.is_tensor_list]
    return " | ".join(parts) or "KeySet()"


def pick(op: Operator, tag: str, extra: tuple[str, ...] = ()) -> str:
    """Chooses backend and device of the call."""
    device = next((a for a in op.arguments if a.type in ("Device", "Device?")), None)
    tensors = [*extra, *(a.name for a in op.arguments if a.is_tensor)]
    lists = [a.name for a in op.arguments if a.is_tensor_list]
    if not tensors and not lists:
        return f"  const Place place_ = place_of({device.name if device else 'Device()'});\n"
    pointers = ", ".join(f"&{name}" for name in tensors)
    text = (
        f"  const Tensor* const tensors_[] = {{{pointers}}};\n"
        if tensors
        else "  const std::span<const Tensor* const> tensors_;\n"
    )
    return (
        text
        + f"  const Place place_ = place_of(op::{tag}::entry, keys_, tensors_{''.join(', ' + n for n in lists)});\n"
    )


def infer(op: Operator) -> str:
    call = op.infer if op.infer else f"{op.cxx}({t.names(op.arguments)})"
    n = len(op.results)
    result = "const Spec spec_" if n == 1 else f"const std::array<Spec, {n}> specs_"
    return f"  {result} = infer::{call};\n"


def spec(op: Operator, i: int) -> str:
    return "spec_" if len(op.results) == 1 else f"specs_[{i}]"


def kernel_call(op: Operator, tag: str, results: list[str], arguments: str, indent: str = "  ") -> str:
    empty = " && ".join(f"{r}.numel() == 0" for r in results)
    args = ", ".join([*results, *([arguments] if arguments else [])])
    return (
        f"{indent}if (!({empty})) {{\n{indent}  if (auto* kernel_ = kernel_of<op::{op.cxx}>(op::{tag}::entry, place_)) kernel_({args});\n"
        f"{indent}}}\n"
    )


def compute_function(op: Operator) -> str:
    result = t.result_type(op)
    text = f"{result} compute_{op.cxx}([[maybe_unused]] KeySet keys_{', ' if op.arguments else ''}{t.parameters(op.arguments)}) {{\n"
    args = t.names(op.arguments)
    if op.kind in ("view", "composite"):
        return text + f"  return impl::{op.cxx}({args});\n}}\n"
    text += pick(op, op.cxx)
    if op.kind == "direct":
        self_name = (
            op.arguments[0].name
            if op.in_place_only and op.arguments and op.arguments[0].type == "Tensor"
            else None
        )
        if self_name:
            text += f"  check_writable(op::{op.cxx}::entry, {self_name});\n"
        text += f"  auto* kernel_ = direct_of<op::{op.cxx}>(op::{op.cxx}::entry, place_);\n"
        if not self_name:
            return text + f"  return kernel_({args});\n}}\n"
        if result == "void":
            return text + f"  kernel_({args});\n  {self_name}.bump_version(op::{op.cxx}::entry.id);\n}}\n"
        return (
            text
            + f"  {result} result_ = kernel_({args});\n  {self_name}.bump_version(op::{op.cxx}::entry.id);\n  return result_;\n}}\n"
        )
    text += infer(op)
    names = ["result_"] if len(op.results) == 1 else [f"result_{i}" for i in range(len(op.results))]
    for i, name in enumerate(names):
        text += f"  Tensor {name} = make({spec(op, i)}, place_);\n"
    text += kernel_call(op, op.cxx, names, args)
    if len(names) == 1:
        return text + "  return result_;\n}\n"
    return text + f"  return {{{', '.join(f'std::move({n})' for n in names)}}};\n}}\n"


def compute_inplace(op: Operator) -> str:
    tag = op.cxx + "_"
    text = f"void compute_{tag}([[maybe_unused]] KeySet keys_, {t.parameters(op.arguments)}) {{\n"
    args = t.names(op.arguments)
    target = op.arguments[0].name
    if op.kind in ("view", "composite"):
        if op.impl_inplace:
            return text + f"  impl::{tag}({args});\n}}\n"
        return (
            text
            + f"  check_writable(op::{tag}::entry, {target});\n  const Tensor result_ = impl::{op.cxx}({args});\n"
            + (
                f"  check_inplace(op::{tag}::entry, {target}, result_.sizes(), result_.dtype());\n  copy_into({target}, result_);\n}}\n"
            )
        )
    if op.kind == "direct":
        return text + (
            f"  const Tensor result_ = compute_{op.cxx}(keys_, {args});\n"
            f"  check_inplace(op::{tag}::entry, {target}, result_.sizes(), result_.dtype());\n  copy_into({target}, result_);\n}}\n"
        )
    text += pick(op, tag) + infer(op)
    text += f"  check_inplace(op::{tag}::entry, {target}, {spec(op, 0)}.sizes, {spec(op, 0)}.dtype);\n"
    others = []
    for a in op.arguments[1:]:
        if a.is_tensor:
            text += f"  const Apart {a.name}_apart({a.name}, {target});\n"
            others.append(f"{a.name}_apart.tensor()")
        else:
            others.append(a.name)
    text += kernel_call(op, tag, [target], ", ".join([target, *others]))
    return text + f"  {target}.bump_version(op::{tag}::entry.id);\n}}\n"


def compute_out(op: Operator) -> str:
    tag = op.cxx + "_out"
    names = out_names(op)
    params = ", ".join(filter(None, [outs(op), t.parameters(op.arguments)]))
    text = f"void compute_{tag}([[maybe_unused]] KeySet keys_, {params}) {{\n"
    args = t.names(op.arguments)
    for n in names:
        text += f"  check_writable(op::{tag}::entry, {n});\n"
    if op.kind != "structured":
        text += f"  const auto result_ = compute_{op.cxx}(active({keys(op)}), {args});\n"
        for i, n in enumerate(names):
            item = "result_" if len(names) == 1 else f"std::get<{i}>(result_)"
            text += f"  store_out(op::{tag}::entry, {n}, {item});\n"
        return text + "}\n"
    text += pick(op, tag, tuple(names)) + infer(op)
    tensors = [a.name for a in op.arguments if a.is_tensor]
    for i, n in enumerate(names):
        text += f"  const OutTarget {n}_target(op::{tag}::entry, {n}, {spec(op, i)}, place_, {{{', '.join('&' + x for x in tensors)}}});\n"
    text += kernel_call(op, tag, [f"{n}_target.tensor()" for n in names], args)
    for n in names:
        text += f"  {n}_target.finish();\n"
    return text + "}\n"


def stub_function(
    op: Operator, tag: str, result: str, params: str, names: str, key_text: str, defined: str
) -> str:
    """The public function: keys, layers out of line, then the computation."""
    comma = ", " if names else ""
    return (
        f"{result} ops::{defined}({params}) {{\n"
        f"  const KeySet keys_ = active({key_text});\n"
        f"  if (keys_.has_layers()) [[unlikely]]\n"
        f"    return through_layers<op::{tag}, compute_{tag}>(keys_{comma}{names});\n"
        f"  return compute_{tag}(keys_{comma}{names});\n}}\n"
    )


def entry(op: Operator, tag: str, name: str, form: str, fn_kind: str) -> str:
    kind = {"structured": "Structured", "direct": "Direct", "view": "View", "composite": "Composite"}[op.kind]
    kernels = f"kernels_{op.cxx}" if op.kind == "structured" else "nullptr"
    return (
        f"constinit OpEntry op::{tag}::entry = {{.name = {t.string(name)}, .schema = {t.string(op.schema)}, .form = Form::{form}, "
        f".kind = Kind::{kind}, .core = {str(op.core).lower()}, .kernels = {kernels}, .call_boxed = Boxed<&ops::{fn_kind}>::call}};\n"
    )


def emit(family: str, ops: list[Operator]) -> str:
    text = HEAD.format(family=family)
    for op in ops:
        if op.kind == "structured":
            text += f"void* kernels_{op.cxx}[kMaxBackends];\n"
        text += compute_function(op)
        if "inplace" in op.forms:
            text += compute_inplace(op)
        if "out" in op.forms:
            text += compute_out(op)
        text += "\n"
    text += "}  // namespace\n\n"
    registrations = []
    for op in ops:
        names = t.names(op.arguments)
        text += entry(op, op.cxx, op.name, "Function", op.cxx)
        registrations.append(op.cxx)
        text += stub_function(
            op, op.cxx, t.result_type(op), t.parameters(op.arguments), names, keys(op), op.cxx
        )
        base, dot, overload = op.name.partition(".")
        if "inplace" in op.forms:
            text += entry(op, op.cxx + "_", base + "_" + dot + overload, "InPlace", op.cxx + "_")
            registrations.append(op.cxx + "_")
            text += stub_function(
                op, op.cxx + "_", "void", t.parameters(op.arguments), names, keys(op), op.cxx + "_"
            )
        if "out" in op.forms:
            text += entry(op, op.cxx + "_out", op.name + ("_out" if dot else ".out"), "Out", op.cxx + "_out")
            registrations.append(op.cxx + "_out")
            params = ", ".join(filter(None, [outs(op), t.parameters(op.arguments)]))
            call = ", ".join([*out_names(op), *([names] if names else [])])
            text += stub_function(
                op, op.cxx + "_out", "void", params, call, keys(op, tuple(out_names(op))), op.cxx + "_out"
            )
    text += "\nnamespace {\nconst bool registered = [] {\n"
    for tag in registrations:
        text += f"  declare<op::{tag}>();\n"
    return text + "  return true;\n}();\n}  // namespace\n}  // namespace taeda\n"
