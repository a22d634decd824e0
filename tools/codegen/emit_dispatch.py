"""Emits dispatch_<family>.cpp: entries, the stubs that callers meet, boxed adapters, registration."""

from __future__ import annotations

import re

import types_ as t
from emit_header import out_names, outs
from schema import Operator
from text import fill, indented, joined, literal, truth

HEAD = """// Generated from ops/$family.yaml by tools/codegen; edits are lost.
#include "taeda/boxing.h"
#include "taeda/in_terms.h"
#include "taeda/ops/$family.h"
#include "taeda/stub.h"
#if __has_include("infer/common.h")
#include "infer/common.h"
#endif
#if __has_include("infer/$family.h")
#include "infer/$family.h"
#endif

namespace taeda {
namespace {

using namespace stub;

"""
# Keys, layers out of line, then the computation.
STUB = """\
constinit OpEntry op::$tag::entry;
$result ops::$tag($params) {
  const KeySet keys_ = active($keys);
  if (keys_.has_layers()) [[unlikely]]
    return Layers<op::$tag::Fn>::call($passed, op::$tag::entry, compute_$tag);
  return compute_$tag($passed);
}
"""
REGISTER = """
namespace {
// Before all initialisers without a priority: kernels register into these entries.
[[gnu::cold, gnu::constructor(200)]] void declare_$family() {
$declarations}
}  // namespace
}  // namespace taeda
"""
DECLARE = """\
declare<op::$tag>({$facts}, compute_$tag);
"""
COMPUTE = """$result compute_$tag([[maybe_unused]] $params) {
$body}
"""
# What goes wrong in the operators that this one is made of is told in its own words.
TOLD = """$result compute_$tag([[maybe_unused]] $params) try {
$body} catch (const Error& error_) {
  in_terms_of(op::$tag::entry, error_, $names);
}
"""
# Kinds of operators that backends have kernels of.
BY_BACKEND = ("structured", "direct")
PLACE = "const Place place_ = place_of(op::$tag::entry, keys_, tensors_$lists);"
KERNEL = "if (auto* kernel_ = kernel_of<op::$op>(op::$tag::entry, place_)) kernel_($arguments);"


def keys(op: Operator, outputs: list[str]) -> str:
    """The key set of a call."""
    parts = [f"{name}.keys()" for name in outputs]
    parts += [f"{a.name}.keys()" for a in op.arguments if a.is_tensor]
    parts += [f"keys_of({a.name})" for a in op.arguments if a.is_tensor_list]
    return " | ".join(parts) or "KeySet()"


def pick(op: Operator, tag: str, outputs: list[str]) -> list[str]:
    """Chooses backend and device of the call."""
    tensors = [*outputs, *(a.name for a in op.arguments if a.is_tensor)]
    lists = "".join(f", {a.name}" for a in op.arguments if a.is_tensor_list)
    if not tensors and not lists:
        device = next((a.name for a in op.arguments if a.type in ("Device", "Device?")), "Device()")
        return [f"const Place place_ = place_of({device});"]
    given = "const std::span<const Tensor* const> tensors_;"
    if tensors:
        given = f"const Tensor* const tensors_[] = {{{', '.join(f'&{name}' for name in tensors)}}};"
    return [given, fill(PLACE, tag=tag, lists=lists)]


def infer(op: Operator) -> str:
    name = literal(op.python_name)
    call = (op.infer or f"{op.cxx}({t.names(op.arguments)})").replace("$op", name)
    if call.isidentifier():
        call = f"{call}({joined(name, t.names(op.arguments))})"
    n = len(op.results)
    result = "const Spec spec_" if n == 1 else f"const std::array<Spec, {n}> specs_"
    return f"{result} = infer::{call};"


def spec(op: Operator, i: int) -> str:
    return "spec_" if len(op.results) == 1 else f"specs_[{i}]"


def kernel_call(op: Operator, tag: str, results: list[str], arguments: str) -> list[str]:
    """Empty outputs never reach a kernel, and no negative dimension does."""
    empty = " && ".join(f"{r}.numel() == 0" for r in results)
    before, arguments = dims_wrapped(op, results[0], arguments)
    call = fill(KERNEL, op=op.cxx, tag=tag, arguments=joined(*results, arguments))
    return [f"if (!({empty})) {{", *(f"  {line}" for line in before), f"  {call}", "}"]


def dims_wrapped(op: Operator, result: str, arguments: str) -> tuple[list[str], str]:
    """Statements that count an argument `dim` from the front, and the arguments of the kernel then."""
    if all(a.name != "dim" for a in op.arguments):
        return [], arguments
    # Of what keeps its dimensions the result knows how many there are; operands may be broadcast.
    reduces = any(a.name == "keepdim" for a in op.arguments)
    of = next(a.name for a in op.arguments if a.is_tensor) if reduces else result
    wrapped = re.sub(r"(?<![\w.])dim(?![\w(])", "dim_", arguments)
    return [f"const auto dim_ = wrapped(dim, {of}.dim());"], wrapped


def writing(tag: str, target: str, call: list[str]) -> list[str]:
    """The call of a kernel that writes to `target`."""
    return [f"writing(op::{tag}::entry, {target}, [&] {{", *(f"  {line}" for line in call), "});"]


def per_written(op: Operator, statement: str) -> list[str]:
    """A statement for each argument that the call writes to, in terms of `$name` and `$label`."""
    return [
        (f"if ({a.when}) " if a.when else "") + fill(statement, name=a.name, label=literal(a.name))
        for a in op.written
    ]


def targets_checked(op: Operator) -> list[str]:
    """What is written to must be memory that can be; one value for all elements may meet a place twice."""
    if op.kind == "view":
        function = "check_shown"  # of other memory, and it writes to none
    else:
        function = "check_memory" if op.one_value else "check_writable"
    return per_written(op, f"{function}(op::{op.cxx}::entry, $name, $label);")


def counted(op: Operator) -> list[str]:
    """The writes of a call count; inside a composite they have been counted, in the name of what it calls."""
    function = "blame" if op.kind == "composite" else "bump"
    return per_written(op, f"{function}(op::{op.cxx}::entry, $name);")


def called(op: Operator, call: str) -> list[str]:
    """A call of the whole operator, and what it wrote to is counted."""
    after = counted(op)
    if not after or not op.results:
        return [f"{call};" if after else f"return {call};", *after]
    return [f"auto result_ = {call};", *after, "return result_;"]


def inputs_apart(op: Operator) -> tuple[list[str], str]:
    """Of a call that writes to its first argument: statements that keep the others apart, and their names then."""
    target, *others = op.arguments
    lines, given = [], []
    for a in others:
        single, several = (
            a.is_tensor and not a.written,
            a.is_tensor_list and not a.written and target.is_tensor,
        )
        if single or several:
            holder = "Apart" if single else "ApartList"
            lines.append(f"const {holder} {a.name}_apart({a.name}, {target.name}, {truth(op.elementwise)});")
        given.append(f"{a.name}_apart.get()" if single or several else a.name)
    return lines, joined(*given)


def direct_body(op: Operator) -> list[str]:
    """Calls the backend's own function."""
    tag, args = op.cxx, t.names(op.arguments)
    lines = [*pick(op, tag, []), *targets_checked(op), *([f"infer::{op.check};"] if op.check else [])]
    if op.results:
        return [*lines, *called(op, f"direct_of<op::{tag}>(op::{tag}::entry, place_)({args})")]
    apart, given = inputs_apart(op)
    kernel = f"if (auto* kernel_ = writer_of<op::{tag}>(op::{tag}::entry, place_))"
    call = [f"{kernel} kernel_({joined(op.arguments[0].name, given)});"]
    return [*lines, *apart, *(writing(tag, op.written[0].name, call) if op.written else call), *counted(op)]


def function_body(op: Operator) -> list[str]:
    args = t.names(op.arguments)
    if op.kind in ("view", "composite"):
        lines = [*targets_checked(op), *([t.rounded_once(op, f"impl::{op.cxx}")] if op.steps else [])]
        call = f"impl::{op.cxx}({args})"
        if op.kind == "view" or not op.results:
            return [*lines, *called(op, call)]
        shown = any(a.is_tensor or a.type.startswith("Tensor[") for a in op.arguments)
        if not shown:  # by the result
            return [*lines, *called(op, call)]
        return [*lines, f"auto result_ = {call};", "settle(result_);", *counted(op), "return result_;"]
    if op.kind == "direct":
        return direct_body(op)
    names = ["result_"] if len(op.results) == 1 else [f"result_{i}" for i in range(len(op.results))]
    lines = [*pick(op, op.cxx, []), infer(op), *targets_checked(op)]
    lines += [f"Tensor {name} = make({spec(op, i)}, place_);" for i, name in enumerate(names)]
    lines += [*kernel_call(op, op.cxx, names, args), *counted(op)]
    if len(names) == 1:
        return [*lines, "return result_;"]
    return [*lines, f"return {{{', '.join(f'std::move({n})' for n in names)}}};"]


def inplace_body(op: Operator) -> list[str]:
    tag, args, target = op.cxx + "_", t.names(op.arguments), op.arguments[0].name
    if op.kind in ("view", "composite") and op.impl_inplace:
        call = f"impl::{tag}({args});"
        if op.kind == "composite":
            return [call, f"blame(op::{tag}::entry, {target});"]
        check = f"check_shown(op::{tag}::entry, {target}, {literal(target)});"
        return [check, call, f"bump(op::{tag}::entry, {target});"]
    if op.kind != "structured":
        made = f"impl::{op.cxx}({args})" if op.kind != "direct" else f"compute_{op.cxx}(keys_, {args})"
        return [
            f"check_writable(op::{tag}::entry, {target}, {literal(target)});",
            f"const Tensor result_ = {made};",
            f"check_inplace(op::{tag}::entry, {target}, result_.sizes(), result_.dtype());",
            *same_dtype(op, tag, target, "result_.dtype()"),
            f"copy_into({target}, result_);",
            f"blame(op::{tag}::entry, {target});",
        ]
    lines = [*pick(op, tag, []), infer(op)]
    lines.append(f"check_inplace(op::{tag}::entry, {target}, {spec(op, 0)}.sizes, {spec(op, 0)}.dtype);")
    lines += same_dtype(op, tag, target, f"{spec(op, 0)}.dtype")
    apart, given = inputs_apart(op)
    lines += [*apart, *writing(tag, target, kernel_call(op, tag, [target], joined(target, given)))]
    return [*lines, f"bump(op::{tag}::entry, {target});"]


def out_arguments(op: Operator) -> tuple[list[str], str]:
    """Statements before the computation of an out= form, and the arguments that it then has.

    A dtype that is left out is the target's; what a factory makes, it makes where the target is.
    """
    given = {a.name: a.name for a in op.arguments}
    if op.is_factory:
        device = "device" if "device" in given else "std::nullopt"
        grad = "requires_grad" if "requires_grad" in given else "false"
        lines = [f"check_made(op::{op.cxx}_out::entry, out, dtype, {device}, {grad});"]
        given |= {"dtype": "out.dtype()", "device": "out.device()", "requires_grad": "false"}
    elif op.out_dtype == "asked":
        lines = [
            "const std::optional<DType> dtype_ = dtype.value_or(out.dtype());",
            f"check_same(op::{op.cxx}_out::entry, out, *dtype_);",
        ]
        given["dtype"] = "dtype_"
    else:
        lines = []
    return lines, joined(*(given[a.name] for a in op.arguments))


def same_dtype(op: Operator, tag: str, name: str, dtype: str) -> list[str]:
    """Refuses a target of another dtype, where the operator casts no result."""
    return [f"check_same(op::{tag}::entry, {name}, {dtype});"] if op.out_dtype == "same" else []


def out_body(op: Operator) -> list[str]:
    tag, names = op.cxx + "_out", out_names(op)
    lines = [f"check_writable(op::{tag}::entry, {name}, {literal(name)});" for name in names]
    if len(names) > 1:
        lines.append(f"check_distinct(op::{tag}::entry, {{{', '.join(f'&{name}' for name in names)}}});")
    before, args = out_arguments(op)
    lines += before
    if op.kind != "structured":
        lines.append(f"const auto result_ = compute_{op.cxx}({joined(f'active({keys(op, [])})', args)});")
        items = ["result_"] if len(names) == 1 else [f"std::get<{i}>(result_)" for i in range(len(names))]
        for name, item in zip(names, items, strict=True):
            lines += same_dtype(op, tag, name, f"{item}.dtype()")
        if op.out_dtype == "any":
            items = [f"ops::to_dtype({i}, {name}.dtype())" for name, i in zip(names, items, strict=True)]
        if op.out_keeps_shape:
            items = [f"in_shape_of({name}, {item})" for name, item in zip(names, items, strict=True)]
        stored = zip(names, items, strict=True)
        return [*lines, *(f"store_out(op::{tag}::entry, {name}, {item});" for name, item in stored)]
    call = infer(op)
    lines += [
        *pick(op, tag, names),
        re.sub(r"(?<!\.)\bdtype\b", "dtype_", call) if "dtype_" in args else call,
    ]
    tensors = ", ".join(f"&{a.name}" for a in op.arguments if a.is_tensor)
    lists = ", ".join(a.name for a in op.arguments if a.is_tensor_list)
    for i, name in enumerate(names):
        lines += same_dtype(op, tag, name, f"{spec(op, i)}.dtype")
    for i, name in enumerate(names):
        given = f"op::{tag}::entry, {name}, {spec(op, i)}, place_, {{{tensors}}}, {{{lists}}}"
        lines.append(f"const OutTarget {name}_target({given});")
    call = kernel_call(op, tag, [f"{name}_target.tensor()" for name in names], args)
    for name in names:
        call = writing(tag, f"{name}_target.tensor()", call)
    return [*lines, *call, *(f"{name}_target.finish();" for name in names)]


def passed(op: Operator) -> str:
    """The arguments as they go on: those that `operands` names as its expression gives them."""
    given = {name: call.removesuffix(")") for name, call in op.operands}
    return joined(
        *(f"infer::{given[a.name]}, Tensor())" if a.name in given else a.name for a in op.arguments)
    )


class FormText:
    """One form of an operator: its computation, and the public function with its entry."""

    def __init__(
        self, op: Operator, tag: str, name: str, form: str, outputs: list[str], body: list[str]
    ) -> None:
        self.op, self.tag, self.name, self.form, self.outputs, self.body = op, tag, name, form, outputs, body
        self.result = t.result_type(op) if form == "Function" else "void"
        self.params = joined(outs(op) if form == "Out" else "", t.parameters(op.arguments))

    def compute(self) -> str:
        params = joined("KeySet keys_", self.params)
        body = indented(self.body, 2)
        if self.op.kind != "composite":
            return fill(COMPUTE, result=self.result, tag=self.tag, params=params, body=body)
        names = literal(" ".join(f"{inner}={own}" for inner, own in self.op.called_inside))
        return fill(TOLD, result=self.result, tag=self.tag, params=params, body=body, names=names)

    def stub(self) -> str:
        op = self.op
        return fill(
            STUB,
            tag=self.tag,
            result=self.result,
            params=self.params,
            keys=keys(op, self.outputs),
            passed=joined("keys_", *self.outputs, passed(op)),
        )

    def declaration(self) -> str:
        op = self.op
        kernels = f"&kernels_{op.cxx}" if op.kind in BY_BACKEND else "nullptr"
        facts = [
            literal(self.name),
            literal(op.schema),
            f"Form::{self.form}",
            f"Kind::{op.kind.capitalize()}",
        ]
        facts += [truth(op.core), kernels, *([f"Boxed<&ops::{self.tag}>::call"] if op.operands else [])]
        return fill(DECLARE, tag=self.tag, facts=", ".join(facts))


def forms(op: Operator) -> list[FormText]:
    base, dot, overload = op.name.partition(".")
    found = [FormText(op, op.cxx, op.name, "Function", [], function_body(op))]
    if "inplace" in op.forms:
        found.append(FormText(op, op.cxx + "_", f"{base}_{dot}{overload}", "InPlace", [], inplace_body(op)))
    if "out" in op.forms:
        name = op.name + ("_out" if dot else ".out")
        found.append(FormText(op, op.cxx + "_out", name, "Out", out_names(op), out_body(op)))
    return found


def emit(family: str, ops: list[Operator]) -> str:
    all_forms = [(op, forms(op)) for op in ops]
    text = fill(HEAD, family=family)
    if any(op.out_dtype == "any" for op in ops):
        text = text.replace('#include "taeda/stub.h"', '#include "taeda/ops/cast.h"\n#include "taeda/stub.h"')
    for op, written in all_forms:
        if op.kind in BY_BACKEND:
            text += f"constinit Kernels kernels_{op.cxx};\n"
        text += "".join(form.compute() for form in written) + "\n"
    text += "}  // namespace\n\n" + "\n".join(form.stub() for _, written in all_forms for form in written)
    declarations = [form.declaration().rstrip() for _, written in all_forms for form in written]
    return text + fill(REGISTER, family=family, declarations=indented(declarations, 2))
