"""States of models and optimizers by plain names, however their parameters lie over processes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import taeda as torch
import taeda.distributed as dist
from taeda import nn, optim

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip

_WRAPPERS = ("_fsdp_wrapped_module.", "_checkpoint_wrapped_module.", "_orig_mod.")


@dataclass
class StateDictOptions:
    """What states are like.

    Args:
        full_state_dict: Whole tensors, in all processes; with `cpu_offload` in the first only.
        cpu_offload: In the host's memory.
        ignore_frozen_params: Without parameters that need no gradient.
        keep_submodule_prefixes: Names of parts as in the whole.
        strict: When loading, all names must fit.
        broadcast_from_rank0: When loading, the first process has the state.
        flatten_optimizer_state_dict: Optimizers' states in one dict of names without nesting.
        dsd_fqn_modifiers: Accepted.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _plain(model: Any, name: str) -> str:
    """A name without what wrappers add."""
    for wrapper in _WRAPPERS:
        name = name.replace(wrapper, "")
    parts, found, at = name.split("."), [], model
    for part in parts:
        if not (isinstance(at, nn.parallel.DistributedDataParallel) and part == "module"):
            found.append(part)
        at = getattr(at, "_modules", {}).get(part, at)
    return ".".join(found)


def _is_flattened(model: Any) -> bool:
    from taeda.distributed.fsdp import FullyShardedDataParallel

    return any(isinstance(part, FullyShardedDataParallel) for part in model.modules())


def _as_wanted(value: Any, options: StateDictOptions) -> Any:
    from taeda.distributed.tensor import DTensor

    if isinstance(value, torch.Tensor):
        if options.full_state_dict and isinstance(value, DTensor):
            value = value.full_tensor()
        return value.detach().cpu() if options.cpu_offload else value
    if isinstance(value, dict):
        return {key: _as_wanted(item, options) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_wanted(item, options) for item in value]
    return value


def _only_first(found: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    others = dist.is_initialized() and dist.get_rank() != 0
    return {} if options.full_state_dict and options.cpu_offload and others else found


def _kind(options: StateDictOptions) -> Any:
    from taeda.distributed.fsdp import StateDictType

    return StateDictType.FULL_STATE_DICT if options.full_state_dict else StateDictType.SHARDED_STATE_DICT


def _flattened_settings(model: Any, options: StateDictOptions) -> Any:
    from taeda.distributed.fsdp import FullOptimStateDictConfig, FullyShardedDataParallel

    optimizer = FullOptimStateDictConfig(offload_to_cpu=False) if options.full_state_dict else None
    return FullyShardedDataParallel.state_dict_type(model, _kind(options), None, optimizer)


def get_model_state_dict(
    model: Any, *, submodules: set[Any] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The state of a model by the names that its parameters had before they were wrapped.

    Args:
        model: The model, also one of `fully_shard`, `FullyShardedDataParallel` or `DistributedDataParallel`.
        submodules: Only of these parts.
        options: What the state is like.

    Example:
        >>> get_model_state_dict(net, options=StateDictOptions(full_state_dict=True))  # doctest: +SKIP
    """
    options = options or StateDictOptions()
    if _is_flattened(model):
        with _flattened_settings(model, options):
            state = model.state_dict()
    else:
        state = model.state_dict()
    found = {_plain(model, name): value for name, value in state.items()}
    if submodules:
        starts = tuple(f"{_plain(model, n)}." for n, part in model.named_modules() if part in submodules)
        found = {name: value for name, value in found.items() if name.startswith(starts)}
        if not options.keep_submodule_prefixes:
            start = max((s for s in starts), key=len)
            found = {name.removeprefix(start): value for name, value in found.items()}
    if options.ignore_frozen_params:
        frozen = {_plain(model, name) for name, p in model.named_parameters() if not p.requires_grad}
        found = {name: value for name, value in found.items() if name not in frozen}
    return _only_first(_as_wanted(found, options), options)


def _listed(optimizers: Any) -> list[Any]:
    return [optimizers] if isinstance(optimizers, optim.Optimizer) else list(optimizers)


def _init_optim_state(optimizer: Any) -> None:
    """Let an optimizer make its state, without changing anything."""
    if optimizer.state:
        return
    parameters = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    if any(p.grad is not None for p in parameters):
        return
    rates = [group["lr"] for group in optimizer.param_groups]
    with torch.no_grad():
        for p in parameters:
            p.grad = torch.zeros_like(p)
    for group in optimizer.param_groups:
        group["lr"] = torch.tensor(0.0) if isinstance(group["lr"], torch.Tensor) else 0.0
    optimizer.step(closure=None)
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def _names(model: Any) -> dict[int, str]:
    return {id(p): _plain(model, name) for name, p in model.named_parameters()}


def get_optimizer_state_dict(
    model: Any,
    optimizers: Any,
    *,
    submodules: set[Any] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The state of one or several optimizers, by names of parameters: "state" and "param_groups".

    Args:
        model: The model whose parameters they have.
        optimizers: An optimizer, or several.
        submodules: Only of these parts.
        options: What the state is like.
    """
    options = options or StateDictOptions()
    state: dict[str, Any] = {}
    groups: list[Any] = []
    for optimizer in _listed(optimizers):
        _init_optim_state(optimizer)
        found = _named_state(model, optimizer, options)
        state.update(found["state"])
        groups += found["param_groups"]
    if submodules:
        starts = tuple(f"{_plain(model, n)}." for n, part in model.named_modules() if part in submodules)
        state = {name: own for name, own in state.items() if name.startswith(starts)}
        groups = [{**g, "params": [n for n in g["params"] if n.startswith(starts)]} for g in groups]
    made = _as_wanted({"state": state, "param_groups": groups}, options)
    if options.flatten_optimizer_state_dict:
        made = _flat(made)
    return _only_first(made, options)


def _named_state(model: Any, optimizer: Any, options: StateDictOptions) -> dict[str, Any]:
    if _is_flattened(model):
        from taeda.distributed.fsdp import FullyShardedDataParallel

        with _flattened_settings(model, options):
            return FullyShardedDataParallel.optim_state_dict(model, optimizer)
    names, own = _names(model), optimizer.state_dict()
    by_number: dict[Any, str] = {}
    for group, numbers in zip(optimizer.param_groups, own["param_groups"], strict=True):
        for p, number in zip(group["params"], numbers["params"], strict=True):
            by_number[number] = names[id(p)]
    return {
        "state": {by_number[number]: values for number, values in own["state"].items()},
        "param_groups": [{**g, "params": [by_number[n] for n in g["params"]]} for g in own["param_groups"]],
    }


def _flat(state: dict[str, Any]) -> dict[str, Any]:
    """``state.NAME.KEY`` and ``param_groups.NAME.KEY``."""
    found: dict[str, Any] = {}
    for name, own in state["state"].items():
        for key, value in own.items():
            found[f"state.{name}.{key}"] = value
    for group in state["param_groups"]:
        for name in group["params"]:
            for key, value in group.items():
                if key != "params":
                    found[f"param_groups.{name}.{key}"] = value
    return found


def _nested(model: Any, optimizers: list[Any], flat: dict[str, Any]) -> dict[str, Any]:
    names = _names(model)
    state: dict[str, Any] = {}
    groups = []
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            own = [names[id(p)] for p in group["params"]]
            settings = {
                k: flat.get(f"param_groups.{own[0]}.{k}", v) for k, v in group.items() if k != "params"
            }
            groups.append({"params": own, **settings})
            for name in own:
                found = {
                    k[len(f"state.{name}.") :]: v for k, v in flat.items() if k.startswith(f"state.{name}.")
                }
                if found:
                    state[name] = found
    return {"state": state, "param_groups": groups}


def get_state_dict(
    model: Any,
    optimizers: Any,
    *,
    submodules: set[Any] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """`get_model_state_dict` and `get_optimizer_state_dict`."""
    first = get_model_state_dict(model, submodules=submodules, options=options)
    if not _listed(optimizers):
        return first, {}
    return first, get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options)


def _from_first(value: Any, options: StateDictOptions) -> Any:
    """The state of the first process, in all."""
    if not options.broadcast_from_rank0 or not dist.is_initialized():
        return value
    box = [value if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, 0)
    return box[0]


def _like(value: Any, target: Any) -> Any:
    """A stored tensor that lies as the one for which it is."""
    from taeda.distributed.tensor import DTensor, distribute_tensor

    if not isinstance(value, torch.Tensor):
        return value
    if not isinstance(target, DTensor):
        return value.full_tensor() if isinstance(value, DTensor) else value
    if isinstance(value, DTensor):
        return (
            value
            if value.placements == target.placements
            else value.redistribute(placements=target.placements)
        )
    if tuple(value.shape) != tuple(target.shape):
        return value
    return distribute_tensor(value.detach(), target.device_mesh, target.placements, src_data_rank=None)


def set_model_state_dict(
    model: Any, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Loads a state that `get_model_state_dict` gave, however the parameters lie now.

    Returns: the names that were missing and those that were not expected.

    Raises:
        RuntimeError: Names do not fit and the options are strict, or shapes do not.
    """
    options = options or StateDictOptions()
    model_state_dict = _from_first(model_state_dict, options)
    if _is_flattened(model):
        with _flattened_settings(model, options):
            return model.load_state_dict(model_state_dict, strict=options.strict)
    own = model.state_dict()
    names = {_plain(model, name): name for name in own}
    given = {}
    for name, value in model_state_dict.items():
        real = names.get(name, name)
        given[real] = _like(value, own.get(real)) if real in own else value
    return model.load_state_dict(given, strict=options.strict)


def set_optimizer_state_dict(
    model: Any, optimizers: Any, optim_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> None:
    """Loads a state that `get_optimizer_state_dict` gave, however the parameters lie now."""
    options = options or StateDictOptions()
    optim_state_dict = _from_first(optim_state_dict, options)
    several = _listed(optimizers)
    if "state" not in optim_state_dict or options.flatten_optimizer_state_dict:
        optim_state_dict = _nested(model, several, optim_state_dict)
    names = _names(model)
    for optimizer in several:
        _init_optim_state(optimizer)
        if _is_flattened(model):
            from taeda.distributed.fsdp import FullyShardedDataParallel

            groups = optim_state_dict["param_groups"][: len(optimizer.param_groups)]
            mine = {**optim_state_dict, "param_groups": groups}
            found = FullyShardedDataParallel.optim_state_dict_to_load(model, optimizer, mine)
        else:
            found = _numbered(optimizer, optim_state_dict, names)
        optimizer.load_state_dict(found)


def _numbered(optimizer: Any, given: dict[str, Any], names: dict[int, str]) -> dict[str, Any]:
    """The state with numbers in the place of names, its tensors lying as the optimizer's."""
    state, groups, number = {}, [], 0
    by_name = {name: group for group in given["param_groups"] for name in group["params"]}
    for group in optimizer.param_groups:
        own = [names[id(p)] for p in group["params"]]
        source = next((by_name[name] for name in own if name in by_name), group)
        numbers = []
        for p, name in zip(group["params"], own, strict=True):
            if name in given["state"]:
                now = optimizer.state.get(p, {})
                state[number] = {k: _like(v, now.get(k, p)) for k, v in given["state"][name].items()}
            numbers.append(number)
            number += 1
        groups.append({**{k: v for k, v in source.items() if k != "params"}, "params": numbers})
    return {"state": state, "param_groups": groups}


def set_state_dict(
    model: Any,
    optimizers: Any,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """`set_model_state_dict` and `set_optimizer_state_dict`."""
    made = set_model_state_dict(model, model_state_dict, options=options)
    several: Iterable[Any] = _listed(optimizers)
    if several:
        set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return made
