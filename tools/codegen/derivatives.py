"""Reads derivatives/<family>.yaml against the operators: which formula gives which gradient, what it needs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from schema import Argument, DeclarationError, Operator, place, read_records

# What moves or rounds once by itself, and what only wraps an operand: a formula of these and of one operator at most
# rounds once anyway. Fused gradients compute in float32 inside.
WRAPPERS = (
    "adjoint conj_of contiguous inverse_permutation mask_bits memory_like negated reshape unsqueeze Tensor"
)
MOVERS = "new_zeros zeros_of zeros_like to_device to_dtype choice_grad clamp_grad masked scaled sgn sum_grad"
ROUNDED_ONCE = "cumsum_grad mean_grad sigmoid_grad tanh_grad"
ONE_STEP = frozenset(f"{WRAPPERS} {MOVERS} {ROUNDED_ONCE}".split())
FUSED = ("activation", "conv", "embedding", "linalg", "loss", "norm", "pool", "rnn", "shape", "cast")
FACTS = ("sizes", "size", "strides", "storage_offset", "dtype", "device", "numel", "dim", "defined")
LIST_FACTS = ("sizes", "size")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_NAME = re.compile(r"(?<![\w.:>])(?P<name>[A-Za-z_]\w*)(?P<call>\s*\()?")


@dataclass(frozen=True)
class Formula:
    """One expression and the arguments whose gradients it gives."""

    targets: tuple[str, ...]
    text: str
    family: str = ""

    @property
    def steps(self) -> bool:
        """Whether halves would be rounded more than once on the way; such a formula runs in float32."""
        bare = _TEXT.sub('""', self.text)
        if "grads" in bare or "grad_mask" in bare:
            return False
        called = [m["name"] for m in _NAME.finditer(bare) if m["call"] and m["name"] not in ONE_STEP]
        arithmetic = len(re.findall(r" [-+*/] ", bare))
        if self.family in FUSED:
            return len(called) + arithmetic > 1
        return arithmetic > 1 or (arithmetic and called) or any("_grad" in name for name in called)

    def uses(self, name: str) -> bool:
        """Whether the value of `name` is read, be it only for a fact about it."""
        bare = _TEXT.sub('""', self.text)
        return any(m["name"] == name and not m["call"] for m in _NAME.finditer(bare))

    def facts(self, name: str, known: tuple[str, ...]) -> set[str] | None:
        """The facts that are all this formula wants of `name`; None when it wants the value itself."""
        bare = _TEXT.sub('""', self.text)
        found = set()
        for match in _NAME.finditer(bare):
            if match["name"] != name or match["call"]:
                continue
            fact = re.match(r"\.(\w+)\(", bare[match.end("name") :])
            if not fact or fact[1] not in known:
                return None
            found.add(fact[1])
        return found


@dataclass(frozen=True)
class Derivative:
    """The record of one operator: formulas, or the word that its decomposition is recorded in their place."""

    op: Operator
    formulas: tuple[Formula, ...]
    nondifferentiable: frozenset[str]
    decomposed: bool = False
    lent: dict[str, str] = field(default_factory=dict)
    node: str = ""  # what the node is called, where the operator's name does not say it

    @property
    def without_formula(self) -> list[Argument]:
        """Tensor arguments that no formula is for: one that requires grad must not be passed over in silence."""
        named = {name for formula in self.formulas for name in formula.targets}
        return [a for a in self.op.arguments if (a.is_tensor or a.is_tensor_list) and a.name not in named]

    @property
    def outputs(self) -> list[int]:
        """Numbers of the results with gradients; an operator that works in place has its self as number 0."""
        if not self.op.results:
            return [0]
        return [
            i for i, r in enumerate(self.op.results)
            if r.type in ("Tensor", "Tensor[]") and r.name not in self.nondifferentiable
        ]  # fmt: skip

    @property
    def targets(self) -> list[Argument]:
        """Arguments with a gradient, single tensors first, so that their edges have fixed numbers."""
        names = {name for formula in self.formulas for name in formula.targets}
        wanted = [a for a in self.op.arguments if a.name in names]
        return [a for a in wanted if a.is_tensor] + [a for a in wanted if a.is_tensor_list]


def argument_name(name: str) -> str:
    """How formulas call an argument: `grad` is the incoming gradient, so an argument of that name is `grad_output`."""
    return "grad_output" if name == "grad" else name


def parse(record: object, ops: dict[str, Operator], path: Path) -> Derivative:
    """One record.

    Raises:
        DeclarationError: an unknown operator, argument or result, or an argument with two formulas.
    """
    where = place(path, record)
    if not isinstance(record, dict) or record.get("op") not in ops:
        raise DeclarationError(f"{where}: expected a record whose 'op' is a declared operator")
    op = ops[record["op"]]
    tensors = {a.name for a in op.arguments if a.is_tensor or a.is_tensor_list}
    formulas, seen = [], set()
    for key, text in record.items():
        if key in ("op", "nondifferentiable", "recorded", "lent", "node"):
            continue
        targets = tuple(part.strip() for part in key.split(","))
        for target in targets:
            if target not in tensors:
                raise DeclarationError(
                    f"{where}: {target!r} is no tensor argument; those are {sorted(tensors)}"
                )
            if target in seen:
                raise DeclarationError(f"{where}: argument {target!r} has two formulas")
            seen.add(target)
        if not isinstance(text, str) or not text.strip():
            raise DeclarationError(
                f"{where}: the formula of {key!r} must be a C++ expression, found {text!r}"
            )
        formulas.append(Formula(targets, " ".join(text.split()), op.family))
    skipped = record.get("nondifferentiable", [])
    unknown = set(skipped) - {r.name for r in op.results}
    if unknown:
        raise DeclarationError(f"{where}: nondifferentiable names {sorted(unknown)}, which are no results")
    recorded = record.get("recorded")
    if recorded not in (None, "decomposed"):
        raise DeclarationError(f"{where}: 'recorded' must be 'decomposed', found {recorded!r}")
    if recorded and (formulas or skipped):
        raise DeclarationError(f"{where}: 'recorded' stands in the place of formulas, found both")
    lent = record.get("lent", {})
    lent = dict.fromkeys(lent, "true") if isinstance(lent, list) else lent
    if unknown := set(lent) - {a.name for a in op.arguments if a.is_tensor}:
        raise DeclarationError(f"{where}: lent names {sorted(unknown)}, which are no tensor arguments")
    node = record.get("node", "")
    if node and (not isinstance(node, str) or not node.isidentifier()):
        raise DeclarationError(f"{where}: node must be a name such as MulBackward0, found {node!r}")
    return Derivative(op, tuple(formulas), frozenset(skipped), recorded is not None, lent, node)


def load(folder: Path, ops: dict[str, Operator]) -> dict[str, Derivative]:
    """All records by operator name.

    Raises:
        DeclarationError: a record that cannot be understood, stands in the wrong family's file, or twice.
    """
    found: dict[str, Derivative] = {}
    for path in sorted(folder.glob("*.yaml")):
        for record in read_records(path):
            derivative = parse(record, ops, path)
            name = derivative.op.name
            if derivative.op.family != path.stem:
                raise DeclarationError(
                    f"{path.name}: {name}: the operator belongs to family {derivative.op.family!r}"
                )
            if name in found:
                raise DeclarationError(f"{path.name}: {name}: has two records")
            found[name] = derivative
    return found
