"""Emits layer_<family>.cpp: graph nodes and entries of the autograd layer, from operators and derivatives."""

from __future__ import annotations

import re

import types_ as t
from derivatives import FACTS, LIST_FACTS, Derivative, Formula, argument_name
from emit_header import out_names, outs
from schema import Argument, Operator
from text import fill, indented, joined, literal

HEAD = """// Generated from derivatives/$family.yaml by tools/codegen; edits are lost.
#include "taeda/autograd/generated.h"

namespace taeda::autograd {
namespace {

using namespace taeda::ops;
using namespace taeda::formulas;

"""
REGISTER = """\
const bool registered = [] {
$lines  return true;
}();

}  // namespace
}  // namespace taeda::autograd
"""
# Entries. `$before` is run when the call is recorded, `$after` when it was.
FUNCTION = """\
$result enter_$tag($params) {
$refuse  Ref<$node> node;
  if (needs_grad($tracked)) {
$before  }
  Below below_(Layer::Autograd);
  auto result_ = ops::$tag($passed);
  if (node) {
$after  }
  return result_;
}
"""
# Recording may depend on the result: how many tensors it has, whether they can carry gradients.
FUNCTION_AFTER = """\
$result enter_$tag($params) {
$refuse  const bool recorded_ = needs_grad($tracked);
  Below below_(Layer::Autograd);
  auto result_ = ops::$tag($passed);
  if (recorded_$condition) {
    Ref<$node> node;
$before$after  }
  return result_;
}
"""
IN_PLACE = """\
void enter_$tag($params) {
$refuse  Ref<$node> node;
  if (needs_grad($tracked)) {
    check_inplace_grad(op::$tag::entry, $target);
$before  }
  {
    Below below_(Layer::Autograd);
    ops::$tag($passed);
  }
  if (node) {
    $record;
$after  }
}
"""
OUT = """\
void enter_$tag($params) {
  if ($refused) refuse_out(op::$tag::entry);
  Below below_(Layer::Autograd);
  ops::$tag($passed);
}
"""
# While gradients are recorded the call becomes its decomposition into differentiable operators.
RECORDED = """\
$result enter_$tag($params) {
  if (needs_grad($tracked)) return decomposed<op::$tag>($passed);
  Below below_(Layer::Autograd);
  return ops::$tag($passed);
}
"""
# The in-place form of a composite computes from a copy: its parts save what the result is about to overwrite.
COMPOSITE_IN_PLACE = """\
void enter_$tag($params) {
  if (!needs_grad($tracked)) {
    Below below_(Layer::Autograd);
    return ops::$tag($passed);
  }
  check_inplace_grad(op::$tag::entry, $target);
  const Tensor before_ = saved_copy($target), result_ = ops::$function($given);
  check_inplace(op::$tag::entry, $target, result_.sizes(), result_.dtype());
  ops::copy_($target, result_);
  $target.impl()->storage->last_mutator = op::$tag::entry.id;
}
"""
ANY_WANTED = """\
  bool any_wanted(size_t at, size_t count) const {
    for (size_t i = at; i < at + count; ++i)
      if (wanted(i)) return true;
    return false;
  }
"""
SPANS = "const std::optional<IntSpan> {n} = {n}_ ? std::optional<IntSpan>(*{n}_) : std::nullopt;"
# Kept facts: C++ type, how it is taken from the tensor. `{n}` is the argument's name.
FACT_FIELDS = {
    "sizes": ("Shape", "sizes_of({n})"),
    "strides": ("Shape", "strides_of({n})"),
    "storage_offset": ("int64_t", "{n}.defined() ? {n}.storage_offset() : 0"),
    "dtype": ("DType", "{n}.defined() ? {n}.dtype() : DType::Float32"),
    "device": ("Device", "{n}.defined() ? stated_device({n}) : Device()"),
    "numel": ("int64_t", "{n}.defined() ? {n}.numel() : 0"),
    "dim": ("int64_t", "{n}.defined() ? {n}.dim() : 0"),
    "defined": ("bool", "{n}.defined()"),
}
LIST_FACT_FIELDS = {"sizes": ("std::vector<Shape>", "sizes_of({n})"), "size": ("size_t", "{n}.size()")}
# Arguments kept by value: member type, what the constructor of the local name is made from.
VALUES = {
    "Scalar": ("Scalar", "const Scalar& {n} = {n}_;"),
    "Scalar?": ("std::optional<Scalar>", "const std::optional<Scalar>& {n} = {n}_;"),
    "int[]": ("Shape", "const IntSpan {n} = {n}_;"),
    "int[]?": ("std::optional<Shape>", SPANS),
    "float[]": ("std::vector<double>", "const std::span<const double> {n} = {n}_;"),
    "str": ("std::string", "const std::string_view {n} = {n}_;"),
    "str?": ("std::optional<std::string>", "const std::optional<std::string_view> {n} = {n}_;"),
    "Generator?": ("Generator", "const Generator& {n} = {n}_;"),
}  # fmt: skip


def camel(name: str) -> str:
    """`max.dim` -> `MaxDim`."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[._]+", name) if part)


def node_name(name: str, number: int) -> str:
    """What programs read of an operator's node: `max_pool2d` -> `MaxPool2DBackward0`, a capital after digits too."""
    return re.sub(r"[._]+", "", name.title()) + f"Backward{number}"


class Saved:
    """What one name in an operator's formulas makes the node keep."""

    def __init__(
        self,
        name: str,
        kind: str,
        type_: str,
        formulas: list[int],
        facts: set[str],
        output: int | None,
        lent: str | None = None,
    ) -> None:
        self.name, self.kind, self.type, self.formulas, self.facts, self.output = (
            name,
            kind,
            type_,
            formulas,
            facts,
            output,
        )
        self.lent = lent  # the condition under which the argument may be overwritten

    @property
    def fields(self) -> list[str]:
        if self.kind == "tensor":
            return [f"{'LentTensor' if self.lent else 'SavedTensor'} {self.name}_;"]
        if self.kind == "list":
            return [f"std::vector<SavedTensor> {self.name}_;"]
        if self.kind in ("facts", "list_facts"):
            table = FACT_FIELDS if self.kind == "facts" else LIST_FACT_FIELDS
            return [f"{table[f][0]} {self.name}_{f};" for f in sorted(self.facts)]
        held = VALUES[self.type][0] if self.type in VALUES else t.CXX[self.type].removeprefix("::")
        return [f"{held} {self.name}_;"]

    @property
    def shared(self) -> bool:
        """Whether several formulas read it: it is unpacked once for all, as hooks that pack must see it asked for."""
        return self.kind in ("tensor", "list") and len(self.formulas) > 1

    @property
    def _unpacked(self) -> str:
        if self.kind == "tensor":
            return f'{self.name}_.unpack(this, "{self.name}")'
        return f'unpack({self.name}_, this, "{self.name}")'

    def before(self, condition: str) -> str:
        """The statement ahead of all formulas that unpacks what several read, where one of them is run."""
        held = "Tensor" if self.kind == "tensor" else "std::vector<Tensor>"
        return f"const {held} {self.name}_once_ = {condition} ? {self._unpacked} : {held}();"

    def local(self, steps: bool) -> str:
        """The statement that gives the formula its name back; for a formula of several steps, halves in float32."""
        if self.kind == "tensor" and steps:
            return f"const Tensor {self.name} = in_float32({f'{self.name}_once_' if self.shared else self._unpacked});"
        if self.shared:
            return f"const auto& {self.name} = {self.name}_once_;"
        if self.kind in ("tensor", "list"):
            held = "Tensor" if self.kind == "tensor" else "std::vector<Tensor>"
            return f"const {held} {self.name} = {self._unpacked};"
        if self.kind == "value":
            return (
                VALUES[self.type][1].format(n=self.name)
                if self.type in VALUES
                else f"const auto& {self.name} = {self.name}_;"
            )
        return ""

    def stores(self, argument: str, copy: bool) -> list[str]:
        """Statements run before the call; `copy` when the call overwrites the argument."""
        if self.output is not None:
            return []
        if self.kind == "tensor":
            kept = f"saved_copy({argument})" if copy else argument
            given = joined(kept, "node.get()", literal(self.name), self.lent or "")
            return [f"node->{self.name}_.save({given});"]
        if self.kind == "list":
            return [f'node->{self.name}_ = save_list({argument}, node.get(), "{self.name}");']
        if self.kind in ("facts", "list_facts"):
            table = FACT_FIELDS if self.kind == "facts" else LIST_FACT_FIELDS
            return [f"node->{self.name}_{f} = {table[f][1].format(n=argument)};" for f in sorted(self.facts)]
        if self.type in ("float[]",):
            return [f"node->{self.name}_.assign({argument}.begin(), {argument}.end());"]
        if self.type in ("int[]?", "str?"):
            return [f"if ({argument}) node->{self.name}_.emplace(*{argument});"]
        return [f"node->{self.name}_ = {argument};"]


def _saved_of(name: str, argument: Argument | None, d: Derivative, output: int | None) -> list[Saved]:
    """What is kept of a name: facts for formulas that want no more, its value for the others alone."""
    users = [i for i, f in enumerate(d.formulas) if f.uses(name)]
    if not users:
        return []
    type_ = argument.type if argument else "Tensor"
    is_list = type_ in ("Tensor[]", "Tensor?[]")
    if type_ not in ("Tensor", "Operand", "Tensor?") and not is_list:
        return [Saved(name, "value", type_, users, set(), None)]
    known = LIST_FACTS if is_list else FACTS
    facts_of = {i: d.formulas[i].facts(name, known) if output is None else None for i in users}
    of_value = [i for i in users if facts_of[i] is None]
    of_facts = [i for i in users if i not in of_value]
    kind, lent = "list" if is_list else "tensor", d.lent.get(name) if argument else None
    out = [Saved(name, kind, type_, of_value, set(), output, lent)] if of_value else []
    if of_facts:
        facts = {fact for i in of_facts for fact in facts_of[i]}
        if not is_list and "size" in facts:
            facts = (facts - {"size"}) | {"sizes"}
        out.append(Saved(name, "list_facts" if is_list else "facts", type_, of_facts, facts, None))
    return out


def saved_values(d: Derivative) -> list[tuple[Saved, str]]:
    """Everything the node keeps, each with the C++ name it is taken from."""
    out = []
    for a in d.op.arguments:
        out += [(found, a.name) for found in _saved_of(argument_name(a.name), a, d, None)]
    taken = {s.name for s, _ in out}
    for i, r in enumerate(d.op.results):
        if r.type == "Tensor" and r.name not in taken:
            out += [(found, r.name) for found in _saved_of(r.name, None, d, i)]
    if not d.op.results and "result" not in taken and any(f.uses("result") for f in d.formulas):
        out += [(found, "result") for found in _saved_of("result", None, d, 0)]
    return out


def expression(formula: Formula, saved: list[Saved]) -> str:
    """The formula's text with kept facts in the place of questions to tensors."""
    text = formula.text
    for s in saved:
        if s.kind not in ("facts", "list_facts"):
            continue
        name = rf"(?<![\w.:>]){s.name}\."
        if s.kind == "facts":
            text = re.sub(name + r"size\(", f"size_at({s.name}_sizes, ", text)
        for fact in s.facts:
            text = re.sub(name + rf"{fact}\(\)", f"{s.name}_{fact}", text)
    return text


class NodeWriter:
    """The node struct of one operator."""

    def __init__(self, d: Derivative, number: int) -> None:
        self.d, self.op = d, d.op
        suffix = "InPlace" if d.op.in_place_only else ""
        self.struct = camel(d.op.name) + suffix + "Backward"
        self.shown = d.node or node_name(d.op.python_name, number)
        self.saved = saved_values(d)
        self.targets = d.targets
        self.edge = {a.name: i for i, a in enumerate(self.targets) if a.is_tensor}
        self.lists = [a for a in self.targets if a.is_tensor_list]
        self.list_results = any(r.type == "Tensor[]" for r in d.op.results)
        self.dynamic = bool(self.lists) or self.list_results

    @property
    def output_count(self) -> int:
        return max(self.d.outputs, default=0) + 1

    def wanted(self, target: str) -> str:
        """C++ condition: the gradient of this argument is asked for, in `apply`."""
        if target in self.edge:
            return f"wanted({self.edge[target]})"
        return f"any_wanted({target}_at_, {target}_count_)"

    def has_edge(self, formula: Formula) -> str:
        """C++ condition on `node`: some target of the formula is tracked, in the entry."""
        if any(x not in self.edge for x in formula.targets):
            return ""
        return " || ".join(f"node->edges[{self.edge[x]}].node" for x in formula.targets)

    def _apply_formula(self, formula: Formula) -> str:
        names = formula.targets
        condition = " || ".join(self.wanted(x) for x in names)
        saved = [s for s, _ in self.saved if self.d.formulas.index(formula) in s.formulas]
        text = f"    if ({condition}) {{\n"
        if formula.steps and formula.uses("grad"):
            if "halves" in formula.text:
                text += f"      const bool halves = is_half(grads_[{self.d.outputs[0]}]);\n"
            text += "      Tensor room_;\n"
            text += f"      const Tensor& grad = in_float32(grads_[{self.d.outputs[0]}], room_);\n"
        for s in saved:
            if s.local(formula.steps) and formula.uses(s.name):
                text += f"      {s.local(formula.steps)}\n"
        value = expression(formula, saved)
        if formula.uses("grad_mask"):
            mask = ", ".join(self.wanted(x) for x in names)
            text += f"      const std::array<bool, {len(names)}> grad_mask{{{mask}}};\n"
        if len(names) > 1:
            text += f"      auto parts_ = {value};\n"
            for i, name in enumerate(names):
                text += f"      {self._assign(name, f'std::move(std::get<{i}>(parts_))')}\n"
        else:
            text += f"      {self._assign(names[0], value)}\n"
        return text + "    }\n"

    def _assign(self, name: str, value: str) -> str:
        if name in self.edge:
            return f"into_[{self.edge[name]}] = {value};"
        return f"spread({value}, into_ + {name}_at_, {name}_count_);"

    def _apply(self) -> str:
        text = "  void apply([[maybe_unused]] Tensor* grads_, [[maybe_unused]] Tensor* into_) override {\n"
        outputs = self.d.outputs
        if len(outputs) == 1 and not self.list_results:
            text += f"    [[maybe_unused]] const Tensor& grad = grads_[{outputs[0]}];\n"
            text += "    if (!grad.defined()) return;\n"
        else:
            text += "    if (none_defined(grads_, output_count)) return;\n"
        if any(f.uses("grads") for f in self.d.formulas):
            text += "    const TensorList grads(grads_, output_count);\n"
        for s, _ in self.saved:
            if s.shared:
                targets = [x for i in s.formulas for x in self.d.formulas[i].targets]
                text += f"    {s.before(' || '.join(map(self.wanted, dict.fromkeys(targets))))}\n"
        for formula in self.d.formulas:
            text += self._apply_formula(formula)
        return text + "  }\n"

    def emit(self) -> str:
        base = "DynamicNode" if self.dynamic else f"FixedNode<{len(self.targets)}, {self.output_count}>"
        text = f"struct {self.struct} final : {base} {{\n"
        for s, _ in self.saved:
            text += "".join(f"  {field}\n" for field in s.fields)
        text += "".join(f"  size_t {a.name}_at_ = 0, {a.name}_count_ = 0;\n" for a in self.lists)
        text += f"  const char* name() const override {{ return {literal(self.shown)}; }}\n" + self._apply()
        text += ANY_WANTED if self.lists else ""
        kept = [s for s, _ in self.saved if s.kind in ("tensor", "list")]
        if kept:
            visits = " ".join(f'visit("{s.name}", {s.name}_);' for s in kept)
            text += f"  void each_saved(SavedVisitor& visit) override {{ {visits} }}\n"
        return text + "};\n"

    # --- statements of the entries ---

    def prepare(self, inplace: bool, outputs: str) -> list[str]:
        """Makes the node, its edges, and keeps what can be kept before the call."""
        lines = [f"node = make_node<{self.struct}>();"]
        overwritten = {a.name for a in self.op.written} | {a.name for a in self.op.arguments[:1] if inplace}
        singles = [a.name for a in self.targets if a.is_tensor]
        if self.dynamic:
            total = " + ".join([str(len(singles)), *(f"{a.name}.size()" for a in self.lists)])
            lines.append(f"node->reserve({total}, {outputs});")
        if singles:
            lines.append(f"collect_edges(node.get(), 0, {', '.join(singles)});")
        at = str(len(singles))
        for a in self.lists:
            lines.append(f"node->{a.name}_at_ = {at};")
            lines.append(f"node->{a.name}_count_ = {a.name}.size();")
            lines.append(f"collect_edges(node.get(), node->{a.name}_at_, {a.name});")
            at = f"node->{a.name}_at_ + node->{a.name}_count_"
        for s, argument in self.saved:
            stores = s.stores(argument, argument in overwritten)
            if not stores:
                continue
            condition = self._condition(s)
            if condition and len(stores) == 1 and not stores[0].startswith("if "):
                lines.append(f"if ({condition}) {stores[0]}")
            else:
                lines += stores
        return lines

    def overwrites(self) -> bool:
        """Whether an in-place call keeps nothing of the old value: no formula reads it, and its gradient is zero."""
        first = self.op.arguments[0].name
        mine = [f for f in self.d.formulas if first in f.targets]
        return not self.d.formulas or any(f.text == "zeros_like(grad)" for f in mine)

    def _condition(self, s: Saved) -> str:
        """When only some gradients need the value and it is a tensor, keep it only for these."""
        if s.kind != "tensor" or len(s.formulas) == len(self.d.formulas):
            return ""
        parts = [self.has_edge(self.d.formulas[i]) for i in s.formulas]
        return " || ".join(parts) if all(parts) else ""

    def keep_results(self, name_of: dict[int, str]) -> list[str]:
        """Statements after the call that keep results."""
        lines = []
        for s, _ in self.saved:
            if s.output is None:
                continue
            name = name_of[s.output]
            # A result without history cannot close a cycle, so it is kept like an argument.
            if self.op.results and s.output not in self.d.outputs:
                line = f'node->{s.name}_.save({name}, node.get(), "{s.name}");'
            else:
                line = f"node->{s.name}_.save_output({name}, {s.output});"
            condition = self._condition(s)
            lines.append(f"if ({condition}) {line}" if condition else line)
        return lines


def tensor_arguments(op: Operator) -> list[str]:
    return [a.name for a in op.arguments if a.is_tensor or a.is_tensor_list]


def result_items(op: Operator) -> list[str]:
    """The results of a call that is named result_."""
    return (
        ["result_"] if len(op.results) == 1 else [f"std::get<{i}>(result_)" for i in range(len(op.results))]
    )


def entry(template: str, op: Operator, tag: str, tracked: list[str], **values: object) -> str:
    """One entry: what all templates share is filled in here."""
    outputs = out_names(op) if template is OUT else []
    return fill(
        template,
        tag=tag,
        result=t.result_type(op),
        params=joined("KeySet", outs(op) if outputs else "", t.parameters(op.arguments), "const OpEntry&"),
        passed=joined(*outputs, t.names(op.arguments)),
        tracked=joined(*dict.fromkeys(tracked)),
        **values,
    )


def attach(op: Operator, outputs: list[int]) -> list[str]:
    """Gives differentiable results their place in the graph."""
    lines, items, first = [], result_items(op), op.arguments[0].name
    for i in outputs:
        if op.results[i].type == "Tensor[]" and op.kind == "view":
            lines.append(f"set_view_history(TensorList({items[i]}), {first}, node.get());")
        elif op.results[i].type == "Tensor[]":
            lines.append(f"set_history(TensorList({items[i]}), node.get());")
        elif op.kind == "view":
            lines.append(f"set_view_history({items[i]}, {first}, node.get(), {i});")
        else:
            lines.append(f"set_history({items[i]}, node.get(), {i});")
    return lines


def refusals(w: NodeWriter, tag: str) -> str:
    """Arguments that require grad and have no formula end in NotImplementedError, before anything is computed."""
    target = w.op.arguments[0].name
    return indented(
        [
            f"if (needs_grad({a.name})) refuse_argument(op::{tag}::entry, {literal(a.name)});"
            for a in w.d.without_formula
            if a.name != target or not w.op.in_place_only
        ],
        2,
    )


def recorded_entry(d: Derivative) -> str:
    return entry(RECORDED, d.op, d.op.cxx, tensor_arguments(d.op))


def composite_inplace_entry(op: Operator) -> str:
    target, *rest = (a.name for a in op.arguments)
    return entry(
        COMPOSITE_IN_PLACE,
        op,
        op.cxx + "_",
        tensor_arguments(op),
        target=target,
        function=op.cxx,
        given=joined("before_", *rest),
    )


def function_entry(w: NodeWriter) -> str:
    op, tracked = w.op, [a.name for a in w.targets]
    after = indented([*attach(op, w.d.outputs), *w.keep_results(dict(enumerate(result_items(op))))], 4)
    if w.list_results:
        before = indented(w.prepare(False, "result_.size()"), 4)
        return entry(
            FUNCTION_AFTER,
            op,
            op.cxx,
            tracked,
            refuse=refusals(w, op.cxx),
            node=w.struct,
            before=before,
            after=after,
            condition="",
        )
    before = indented(w.prepare(False, str(w.output_count)), 4)
    return entry(
        FUNCTION, op, op.cxx, tracked, refuse=refusals(w, op.cxx), node=w.struct, before=before, after=after
    )


def rebase(target: str) -> str:
    return f"rebase_history({target}, node.get())"


def inplace_entry(w: NodeWriter, tag: str) -> str:
    """Entry of an in-place form, or of an operator that exists only in place."""
    target = w.op.arguments[0].name
    tracked = [target, *(a.name for a in w.targets)]
    node, lines = w.struct, w.prepare(True, "1")
    if not w.d.formulas:
        node = "Overwritten"
        lines = [
            f"node = make_node<Overwritten>({literal(w.shown)});",
            f"collect_edges(node.get(), 0, {target});",
        ]
    elif w.overwrites():
        lines.append("node->flags |= kOverwrites;")
    before, after = indented(lines, 4), indented(w.keep_results({0: target}), 4)
    # An in-place view operator changes what self shows, not the bytes: a view stays a view with another formula.
    record = f"set_view_history({target}, {target}, node.get())" if w.op.kind == "view" else rebase(target)
    values = {"node": node, "target": target, "before": before, "after": after, "record": record}
    refuse = refusals(w, tag) if w.d.formulas else ""
    return entry(IN_PLACE, w.op, tag, tracked, refuse=refuse, **values)


def out_entry(op: Operator, d: Derivative | None) -> str:
    """What is written to may not require grad, nor, where a result would have carried gradients, what is read."""
    targets, read = out_names(op), tensor_arguments(op)
    refused = f"needs_grad({joined(*targets)})"
    if read and not (d is not None and not d.formulas and not d.decomposed):
        able = " || ".join(f"is_differentiable({name}.dtype())" for name in targets)
        able = f"({able})" if len(targets) > 1 else able
        refused += f" || (needs_grad({joined(*read)}) && {able})"
    return entry(OUT, op, op.cxx + "_out", [], refused=refused)


def edges_of_all(op: Operator, outputs: int) -> list[str]:
    """An UnknownDerivative with an edge for every tensor argument."""
    singles = [a.name for a in op.arguments if a.is_tensor]
    lists = [a.name for a in op.arguments if a.is_tensor_list]
    total = " + ".join([str(len(singles)), *(f"{n}.size()" for n in lists)])
    lines = [
        f"node = make_node<UnknownDerivative>({literal(op.name)});",
        f"node->reserve({total}, {outputs});",
    ]
    if singles:
        lines.append(f"collect_edges(node.get(), 0, {', '.join(singles)});")
    at = str(len(singles))
    for n in lists:
        lines.append(f"collect_edges(node.get(), {at}, {n});")
        at += f" + {n}.size()"
    return lines


def unknown_function(op: Operator) -> str:
    """Records only results that could carry a gradient: comparisons and index operators stay free."""
    able = " || ".join(f"is_differentiable({item}.dtype())" for item in result_items(op))
    before = indented(edges_of_all(op, len(op.results)), 4)
    after = indented(attach(op, list(range(len(op.results)))), 4)
    values = {
        "refuse": "",
        "node": "UnknownDerivative",
        "before": before,
        "after": after,
        "condition": f" && ({able})",
    }
    return entry(FUNCTION_AFTER, op, op.cxx, tensor_arguments(op), **values)


def unknown_inplace(op: Operator, tag: str) -> str:
    values = {
        "refuse": "",
        "node": "UnknownDerivative",
        "target": op.arguments[0].name,
        "before": indented(edges_of_all(op, 1), 4),
        "record": rebase(op.arguments[0].name),
    }
    return entry(IN_PLACE, op, tag, tensor_arguments(op), after="", **values)


def known_entries(w: NodeWriter) -> tuple[str, list[str]]:
    """A record without formulas says that nothing flows; in place the old value's gradient is zero."""
    op, node = w.op, w.emit() if w.d.formulas else ""
    if op.in_place_only:
        if op.arguments[0].type != "Tensor":
            return "", []
        return node + inplace_entry(w, op.cxx), [op.cxx]
    text, tags = "", []
    if w.d.outputs and w.d.formulas:
        text += function_entry(w)
        tags.append(op.cxx)
    if "inplace" in op.forms:
        text += inplace_entry(w, op.cxx + "_")
        tags.append(op.cxx + "_")
    return (node + text if tags else ""), tags


def unknown_entries(op: Operator) -> tuple[str, list[str]]:
    if op.in_place_only:
        if op.arguments[0].type != "Tensor":
            return "", []
        return unknown_inplace(op, op.cxx), [op.cxx]
    if not op.tensor_results:
        return "", []
    text, tags = unknown_function(op), [op.cxx]
    if "inplace" in op.forms:
        text += unknown_inplace(op, op.cxx + "_")
        tags.append(op.cxx + "_")
    return text, tags


def entries(op: Operator, d: Derivative | None, number: int) -> tuple[str, list[str]]:
    """Source of an operator's entries, and the tags they belong to."""
    text, tags = "", []
    if tensor_arguments(op):
        if d is not None and d.decomposed:
            text, tags = recorded_entry(d), [op.cxx]
        elif d is not None:
            text, tags = known_entries(NodeWriter(d, number))
        elif op.kind != "composite":
            text, tags = unknown_entries(op)
        elif "inplace" in op.forms and not op.impl_inplace:
            text, tags = composite_inplace_entry(op), [op.cxx + "_"]
    if "out" in op.forms:
        text += out_entry(op, d)
        tags.append(op.cxx + "_out")
    return text, tags


def emit(family: str, ops: list[Operator], derivatives: dict[str, Derivative]) -> str:
    text = fill(HEAD, family=family)
    tags: list[str] = []
    numbers: dict[str, int] = {}
    for op in ops:
        d = derivatives.get(op.name)
        number = numbers.get(op.python_name, 0)
        numbers[op.python_name] = number + (d is not None)
        source, found = entries(op, d, number)
        text += source + ("\n" if source else "")
        tags += found
    cast = "reinterpret_cast<void*>"
    lines = [f"register_layer(&op::{tag}::entry, Layer::Autograd, {cast}(&enter_{tag}));" for tag in tags]
    return text + fill(REGISTER, lines=indented(lines, 2))
