"""Programs that write in place, as programs that give new values: what they write to is handed out besides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda.export._runs import Call, Ref
from taeda.utils import _pytree
from taeda_registry.slots import tensor

if TYPE_CHECKING:
    from taeda.export._runs import Run

__all__ = ["without_writes"]


def without_writes(runs: list[Run]) -> dict[Ref, Ref]:
    """Let operators that write give new values in runs, where nothing else shows the memory.

    Returns:
        For each tensor of the program, or of the user, that is written: what it is in the end.
    """
    calls = runs[0].calls
    groups, shown = _groups(calls)
    safe = {
        root
        for root in groups
        if root not in shown and all(calls[i].keeps and _functional(calls[i]) for i in groups[root])
    }
    found: dict[Ref, Ref] = dict(runs[0].renewed)
    for root in safe:
        for index in groups[root]:
            for run in runs:
                run.calls[index].target = _functional(run.calls[index])
        if root.home != "call":
            found[root] = Ref("call", groups[root][-1])
    return found


def _groups(calls: list[Call]) -> tuple[dict[Ref, list[int]], set[Ref]]:
    """The calls that write to each tensor, and the tensors whose memory others show."""
    roots: dict[Ref, Ref] = {}
    groups: dict[Ref, list[int]] = {}
    shown: set[Ref] = set()
    for index, call in enumerate(calls):
        whole = Ref("call", index)
        given = next((arg for arg in call.args if isinstance(arg, Ref)), None)
        root = None if given is None else roots.get(given, given)
        if _writes(call.target) and root is not None:
            groups.setdefault(root, []).append(index)
            if isinstance(call.result, tensor.Tensor):
                roots[whole] = root
            else:
                shown.add(root)
        elif call.shares is not None:
            base = roots.get(call.shares, call.shares)
            shown.add(base)
            for way, _ in _pytree.tree_flatten_with_path(call.result)[0]:
                roots[whole._replace(way=tuple(key.idx for key in way))] = base
        shown |= {
            roots.get(arg, arg)
            for arg in _pytree.tree_leaves((call.args[1:], call.kwargs), is_leaf=lambda x: isinstance(x, Ref))
            if isinstance(arg, Ref) and _writes(call.target) and arg != given and roots.get(arg, arg) == root
        }
    return groups, shown


def _writes(target: Any) -> bool:
    name = getattr(target, "_name", "")
    return isinstance(target, tensor.library.Overload) and name.endswith("_") and not name.endswith("__")


def _functional(call: Call) -> Any:
    """The operator that gives what one writes; None where there is none."""
    target = call.target
    name = target.operator.name
    base, _, form = name.partition(".")
    other = base.removesuffix("_") + (f".{form}" if form else "")
    try:
        packet = getattr(tensor.ops.aten, target._name.removesuffix("_"))
        found = getattr(packet, target._overloadname)
    except AttributeError:
        return None
    same = isinstance(found, tensor.library.Overload) and found.operator.name in (other, f"aten::{other}")
    return found if same else None
