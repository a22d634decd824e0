"""What an operator does at the level of a vmap: its rule, or one call for each example.

A rule is a function of the level, the operator and its arguments, with tensors as the program has them; it gives the
results for the whole batch, whose first dimension is the batch's. Rules stand in `_rules` and its neighbours, by the
operator's name; forms that write into an argument are done by the rule of the function, whose result is then copied.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from taeda.func._levels import Batching
from taeda_registry.slots import tensor

Tensor = tensor.Tensor
Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}
#: Operators that draw numbers.
RANDOM = frozenset({
    "bernoulli_", "cauchy_", "exponential_", "geometric_", "multinomial", "native_dropout", "normal_", "poisson",
    "random_", "uniform_",
})  # fmt: skip
# Families of operators of which every one without dimensions among its arguments is element-wise.
_ELEMENTWISE = frozenset({"activation", "arith", "compare", "special", "unary"})
_DIMENSIONS = frozenset({"dim", "dims", "dimension"})


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: the rule of the operators of these names."""

    def put(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return put


@functools.cache
def elementwise() -> frozenset[str]:
    """Names of the operators each element of whose result is made of the same elements of the operands."""
    listed = json.loads((Path(tensor.get_ops_dir()).parent / "ops.json").read_text(encoding="utf-8"))
    return (
        frozenset(
            each["name"]
            for each in listed
            if each["kind"] == "structured"
            and (
                each["elementwise"]
                or (
                    each["family"] in _ELEMENTWISE
                    and not any(a["name"] in _DIMENSIONS for a in each["arguments"])
                )
            )
        )
        - RANDOM
    )


@functools.cache
def without_rules() -> frozenset[str]:
    """The element-wise operators that need no rule of their own."""
    _load()
    return frozenset(elementwise() - RULES.keys())


def _load() -> None:
    from taeda.func import _rules, _rules_index, _rules_linear, _rules_network  # noqa: F401


def found_rule(name: str) -> Rule | None:
    """The rule of an operator, if it has one."""
    if not RULES:
        _load()
    known = RULES.get(name)
    if known is None and "::" in name:
        known = _own_rule(name)
    if known is None and name in elementwise():
        from taeda.func._rules import aligned

        known = aligned
    return known


def _own_rule(name: str) -> Rule | None:
    """The rule that a program has given its own operator (`register_vmap`)."""
    made = tensor.library.defined(name)
    function = None if made is None else made.batching_rule
    if function is None:
        return None
    from taeda.func import _own_results

    def own(level: Batching, op: Any, *args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        wholes = tuple(changed(list(given), lambda t: t if level.whole(t) is None else level.whole(t)))
        dims = tuple(_own_results.places(level, value) for value in given)
        results, places = function(wholes, dims)
        single = isinstance(results, Tensor)
        rows = [
            r.unsqueeze(0).expand(level.size, *r.shape) if place is None else r.movedim(place, 0)
            for r, place in zip([results] if single else results, places, strict=True)
        ]
        return rows[0] if single else tuple(rows)

    return own


def tensors_of(value: Any) -> list[Any]:
    """The tensors among arguments, also inside lists."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [each for item in value for each in tensors_of(item)]
    return []


def changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """Arguments with every tensor replaced."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(changed(item, change) for item in value)
    return value


def _depends(level: Batching, values: Iterable[Any]) -> bool:
    """Whether one of the tensors among arguments depends on the batch."""
    for value in values:
        if isinstance(value, Tensor):
            if level.whole(value) is not None:
                return True
        elif isinstance(value, (list, tuple)) and _depends(level, value):
            return True
    return False


def call(level: Batching, op: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """What the level gives for an operator."""
    if op.name in RANDOM or op.name.removesuffix("_") in RANDOM:
        return _draw(level, op, args, kwargs)
    if not (_depends(level, args) or _depends(level, kwargs.values())):
        return op(*args, **kwargs)
    form = op.form
    if form == "function":
        return wrapped(level, computed(level, op, args, kwargs))
    if form == "out":
        count = sum(a.written for a in op.arguments)
        targets = tensors_of(list(args[:count]))
        base = tensor.library.op(op.name.removesuffix(".out").removesuffix("_out"))
        return _write(level, op, targets, computed(level, base, args[count:], kwargs))
    if op.name == "set_":
        raise RuntimeError(f"vmap: {op.name} gives a tensor other memory, and an example has none of its own")
    base = op.name.removesuffix("_")
    if op.name in RULES or not _is_operator(base):
        return _in_place(level, op, args, kwargs)
    function = tensor.library.op(base)
    made = computed(level, function, args, kwargs)
    if function.kind == "view" or base in ("swapaxes", "t"):  # the target shows its elements in another way
        _target(level, op, args[0])
        return level.turn(args[0], made)
    return _write(level, op, [args[0]], made)


@functools.cache
def _is_operator(name: str) -> bool:
    try:
        tensor.library.op(name)
    except (AttributeError, LookupError, RuntimeError, ValueError):
        return False
    return True


def wrapped(level: Batching, made: Any) -> Any:
    """Results of the whole batch as tensors of the level."""
    if made is None:
        return None
    return changed(made, level.batch)


def computed(level: Batching, op: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Results of the whole batch."""
    known = found_rule(op.name)
    made = NotImplemented if known is None else known(level, op, *args, **kwargs)
    return one_by_one(level, op, args, kwargs) if made is NotImplemented else made


def one_by_one(level: Batching, op: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """One call for each example, for operators without a rule: right, and slow."""
    if not level.size:
        raise NotImplementedError(f"vmap: {op.name} has no rule for batches, which an empty batch needs")

    def example(i: int) -> Callable[[Any], Any]:
        return lambda t: t if level.whole(t) is None else level.whole(t).select(0, i)

    made = [
        op(*changed(args, example(i)), **{k: changed(v, example(i)) for k, v in kwargs.items()})
        for i in range(level.size)
    ]
    if made[0] is None:
        return None
    if isinstance(made[0], Tensor):
        return _stacked(op, made)
    return tuple(
        _stacked(op, list(column)) if isinstance(column[0], Tensor) else column[0]
        for column in zip(*made, strict=True)
    )


def _stacked(op: Any, parts: list[Any]) -> Any:
    if any(part.shape != parts[0].shape for part in parts):
        raise RuntimeError(
            f"vmap: {op.name} gives examples results of several shapes, {tuple(parts[0].shape)} and others; "
            "what has a shape that depends on values cannot be mapped"
        )
    return tensor.stack(parts)


def _target(level: Batching, op: Any, target: Any) -> Any:
    whole = level.whole(target)
    if whole is None:
        raise RuntimeError(
            f"vmap: {op.name} writes what depends on the batch into a tensor of shape {tuple(target.shape)} that all "
            "examples share; use the form that gives a new tensor, or make the target inside the function from one "
            "that is mapped"
        )
    return whole


def _write(level: Batching, op: Any, targets: list[Any], made: Any) -> None:
    """Copies results into the targets of an in-place or out= form."""
    results = tensors_of(made)
    wholes = [_target(level, op, target) for target in targets]
    for target, whole, result in zip(targets, wholes, results, strict=True):
        if result.shape[1:] != target.shape:
            raise RuntimeError(
                f"vmap: {op.name} gives shape {tuple(result.shape[1:])}, which does not fit into the target of shape "
                f"{tuple(target.shape)}"
            )
        whole.copy_(result)


def _in_place(level: Batching, op: Any, args: tuple, kwargs: dict[str, Any]) -> None:
    """An operator that has no other form."""
    for argument, value in zip(op.arguments, args, strict=False):
        if argument.written:
            for target in tensors_of(value):
                _target(level, op, target)
    known = found_rule(op.name)
    if known is None or known(level, op, *args, **kwargs) is NotImplemented:
        one_by_one(level, op, args, kwargs)


def _draw(level: Batching, op: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Random operators, by the level's randomness."""
    first = args[0]
    if level.randomness == "error":
        raise RuntimeError(
            f"vmap: called random operation while in randomness error mode: {op.name} draws numbers; say what they "
            "shall be with randomness='different' (for each example) or randomness='same'"
        )
    whole, different = level.whole(first), level.randomness == "different"
    if op.form == "function":
        if whole is None and not different:
            return op(*args, **kwargs)
        if different:
            return wrapped(level, _drawn(level, op, args, kwargs))
        return _same_drawn(level, op, args, kwargs)
    if different:
        fresh = level.expanded(first).clone() if whole is None else whole
        op(fresh, *changed(args[1:], level.expanded), **kwargs)
        if whole is None:
            level.attach(first, fresh)
        return None
    if whole is None:
        return op(*args, **kwargs)
    one = tensor.empty_like(whole[0])
    op(one, *args[1:], **kwargs)
    whole.copy_(one.expand_as(whole))
    return None


def _drawn(level: Batching, op: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """`native_dropout`, `poisson`, `multinomial`, each example for itself."""
    whole = level.expanded(args[0])
    if op.name == "multinomial" and whole.dim() > 2:
        rows = op(whole.reshape(-1, whole.shape[-1]), *args[1:], **kwargs)
        return rows.reshape(*whole.shape[:-1], rows.shape[-1])
    return op(whole.contiguous(), *args[1:], **kwargs)


def _same_drawn(level: Batching, op: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    whole = level.whole(args[0])
    if op.name == "native_dropout":
        _, mask = op(tensor.ones_like(whole[0]), *args[1:], **kwargs)
        scale = 0.0 if args[1] >= 1 else 1 / (1 - args[1])
        return level.batch(whole * mask * scale), mask
    raise RuntimeError(f"vmap: {op.name} of what depends on the batch cannot draw the same for all examples")
