"""State of an optimizer as plain data: matched by parameter name, checked entirely before anything changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from taeda_optim import counting
from taeda_registry.slots import tensor

if TYPE_CHECKING:
    from taeda_optim.optimizer import Optimizer

_OWN = ("params", "param_names")


def state_of(optimizer: Optimizer) -> dict[str, Any]:
    """See `Optimizer.state_dict`."""
    order: dict[int, int] = {}
    groups = []
    for group in optimizer.param_groups:
        numbers = [order.setdefault(id(p), len(order)) for p in group["params"]]
        groups.append({**{k: v for k, v in group.items() if k != "params"}, "params": numbers})
    state: dict[Any, Any] = {}
    for key, value in optimizer.state.items():
        if not isinstance(value, Mapping):
            state[key] = value  # the program's own
        elif value:
            state[order.get(id(key), key)] = dict(value)
    return {"state": state, "param_groups": groups}


def restore(optimizer: Optimizer, state_dict: Mapping[str, Any], strict: bool) -> None:
    """See `Optimizer.load_state_dict`."""
    kind = type(optimizer).__name__
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"{kind}.load_state_dict: expected a dict, found {type(state_dict).__name__}")
    if missing := [name for name in ("param_groups", "state") if name not in state_dict]:
        raise KeyError(f"{kind}.load_state_dict: the state has no {' and no '.join(map(repr, missing))}")
    problems: list[str] = []
    saved_groups = state_dict["param_groups"]
    ours = optimizer.param_groups
    if len(saved_groups) != len(ours):
        problems.append(
            f"loaded state dict has a different number of parameter groups: expected {len(ours)}, "
            f"found {len(saved_groups)}"
        )
    found = _by_name(ours, saved_groups, problems, strict)
    if found is None:
        found = _by_position(ours, saved_groups, problems)
    options = [{k: deepcopy(v) for k, v in saved.items() if k not in _OWN} for saved in saved_groups]
    merged = [{**group, **new} for group, new in zip(ours, options, strict=False)]
    state: dict[Any, dict[str, Any]] = defaultdict(dict)
    for group, param, number, label in found:
        saved = state_dict["state"].get(number, state_dict["state"].get(str(number)))
        if saved:
            names = optimizer._state_names(merged[group]) if group < len(merged) else None
            if names and optimizer._counts:
                names = names | {"step"}
            state[param] = _checked(param, label, saved, names, problems)
    if problems:
        raise ValueError(f"{kind}.load_state_dict: " + "; ".join(problems))
    state.update(_of_the_program(state_dict["state"]))
    # Dicts of their own: who kept one of the groups before keeps what it said then. Classes that fill in what states of
    # their older versions lack do it where they are unpickled, and so here.
    optimizer.__setstate__({"state": state, "param_groups": merged})


def _of_the_program(saved: Mapping[Any, Any]) -> dict[Any, Any]:
    """What a program keeps among the states of parameters: by a name, which no parameter's number is."""
    return {
        key: deepcopy(value) for key, value in saved.items() if isinstance(key, str) and not key.isdecimal()
    }


Match = tuple[int, Any, Any, str]  # our group, parameter, saved number, what to call it in a message


def _by_name(
    ours: list[dict[str, Any]], theirs: list[dict[str, Any]], problems: list[str], strict: bool
) -> list[Match] | None:
    """Matches by parameter name; None where one side has no names."""
    if not all("param_names" in group for group in [*ours, *theirs]):
        return None
    saved = {
        name: n for group in theirs for name, n in zip(group["param_names"], group["params"], strict=True)
    }
    wanted = [
        (i, p, name)
        for i, g in enumerate(ours)
        for p, name in zip(g["params"], g["param_names"], strict=True)
    ]
    names = {name for _, _, name in wanted}
    missing = [name for _, _, name in wanted if name not in saved]
    extra = [name for name in saved if name not in names]
    if strict and missing:
        problems.append(f"missing parameters {missing}")
    if strict and extra:
        problems.append(f"unexpected parameters {extra}")
    return [(i, p, saved[name], f"'{name}'") for i, p, name in wanted if name in saved]


def _by_position(
    ours: list[dict[str, Any]], theirs: list[dict[str, Any]], problems: list[str]
) -> list[Match]:
    out: list[Match] = []
    for i, (group, saved) in enumerate(zip(ours, theirs, strict=False)):
        if len(group["params"]) != len(saved["params"]):
            problems.append(
                f"loaded state dict contains a parameter group that doesn't match the size of optimizer's group: "
                f"group {i}: expected {len(group['params'])} parameters, found {len(saved['params'])}"
            )
        pairs = zip(group["params"], saved["params"], strict=False)
        out += [(i, p, number, str(number)) for p, number in pairs]
    return out


def _checked(
    param: Any, label: str, saved: Mapping[str, Any], names: set[str] | None, problems: list[str]
) -> dict[str, Any]:
    """A copy of one parameter's saved state in its dtype and on its device."""
    present = {name for name, value in saved.items() if value is not None}
    if names is not None and names - present:
        problems.append(f"parameter {label}: missing state {sorted(names - present)}")
    out: dict[str, Any] = {}
    for name, value in saved.items():
        if name == "step" and names is not None and name in names and not counting.is_number(value):
            problems.append(f"parameter {label}: state 'step' is {value!r}, expected a number")
        if not isinstance(value, tensor.Tensor):
            out[name] = deepcopy(value)
        elif name == "step":
            out[name] = value.detach().clone()
        else:
            if names is not None and name in names and tuple(value.shape) != tuple(param.shape):
                problems.append(
                    f"parameter {label}: state '{name}' has shape {tuple(value.shape)}, "
                    f"expected {tuple(param.shape)}"
                )
            out[name] = _placed(value, param)
    return out


def _placed(value: Any, param: Any) -> Any:
    """A copy on the parameter's device; numbers of the same kind also in its dtype."""
    same_kind = (value.is_floating_point() and param.is_floating_point()) or (
        value.is_complex() and param.is_complex()
    )
    # Classes that compute for their tensors need not know clone(); what they hold stays shared, as in PyTorch.
    copy = value if answers(value) else value.detach().clone()
    return copy.to(device=param.device, dtype=param.dtype) if same_kind else copy.to(device=param.device)


def answers(x: Any) -> bool:
    """Whether the class of a tensor computes for it (``__torch_dispatch__``), operation by operation."""
    plain = getattr(tensor.Tensor, "__torch_dispatch__", None)
    return getattr(type(x), "__torch_dispatch__", plain) is not plain
