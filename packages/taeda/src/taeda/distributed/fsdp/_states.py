"""State dicts of modules whose parameters are flattened and cut, and of their optimizers."""

from __future__ import annotations

from typing import Any

import taeda as torch
from taeda import nn
from taeda.distributed import _world
from taeda.distributed.fsdp.api import OptimStateKeyType, StateDictType

_WRAPPED = "_fsdp_wrapped_module."
_FLAT = "_flat_param"


def clean(name: str) -> str:
    """A name without what wrappers add."""
    return name.replace(_WRAPPED, "").replace("_checkpoint_wrapped_module.", "")


def wholes_of(unit: Any, parts: list[Any]) -> list[Any]:
    """Whole tensors, without a history, of parts that lie as the parameters do."""
    with torch.no_grad():
        inner = unit._unit
        mine = inner.layout.pack([part.detach() for part in parts])
        if inner.shards is None:
            rows = mine.unsqueeze(0)
        else:
            rows = torch.empty((inner.shards.size(), mine.numel()), dtype=mine.dtype)
            inner.shards.allgather([list(rows.unbind(0))], [mine], later=False)
        return [whole.clone() for whole in inner.layout.whole(rows)]


def parts_of(unit: Any, wholes: list[Any]) -> list[Any]:
    """This process's parts of whole tensors, as the parameters lie."""
    pieces = unit._pieces(wholes)
    return pieces if unit._use_orig_params else [unit._unit.layout.pack(pieces)]


def open_unit(unit: Any, with_grads: bool) -> list[Any] | None:
    """Let whole parameters stand in the module; what stands there, or None where it did already."""
    if unit._unit.is_put or not unit._unit.entries:
        return None
    parts = unit._current()
    wholes = [
        nn.Parameter(whole, requires_grad=entry.requires_grad)
        for whole, entry in zip(wholes_of(unit, parts), unit._unit.entries, strict=True)
    ]
    if with_grads:
        if not unit._use_orig_params:
            raise NotImplementedError("with_grads=True is only supported with use_orig_params=True")
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parts]
        if any(p.grad is not None for p in parts) or unit._unit.shards is not None:
            for whole, gradient in zip(wholes, wholes_of(unit, gradients), strict=True):
                whole.grad = gradient
    inner = unit._modules["_fsdp_wrapped_module"]
    unit.__dict__["_hidden_flat"] = inner._parameters.pop(_FLAT, None)
    unit._unit.put(wholes)
    return wholes


def close_unit(unit: Any, wholes: list[Any] | None, writeback: bool) -> None:
    """Let the parts stand in the module again, with the changes."""
    if wholes is None:
        return
    current = [home._parameters.get(name) for home, name in (e.places[0] for e in unit._unit.entries)]
    unit._unit.restore()
    inner, hidden = unit._modules["_fsdp_wrapped_module"], unit.__dict__.pop("_hidden_flat")
    if hidden is not None:
        inner._parameters[_FLAT] = hidden
    if writeback:
        with torch.no_grad():
            for part, piece in zip(
                unit._current(), parts_of(unit, [c.detach() for c in current]), strict=True
            ):
                part.copy_(piece)


# State dicts of modules


def register(unit: Any) -> None:
    """Let state dicts have whole tensors by their own names, and loading take them."""
    unit._register_state_dict_hook(_saved)
    unit._register_load_state_dict_pre_hook(_to_load, with_module=True)


def _saved(unit: Any, state: dict[str, Any], prefix: str, metadata: Any) -> None:
    kind, config = unit._state_dict_type, unit._state_dict_config
    if kind is not StateDictType.LOCAL_STATE_DICT and unit._unit.entries and not unit._unit.is_put:
        wholes = wholes_of(unit, unit._current())
        state.pop(f"{prefix}{_WRAPPED}{_FLAT}", None)
        for entry, whole in zip(unit._unit.entries, wholes, strict=True):
            value = _spread(unit, whole) if kind is StateDictType.SHARDED_STATE_DICT else whole
            for name in _names(unit, entry):
                state[f"{prefix}{_WRAPPED}{name}"] = value
    for key in [key for key in state if key.startswith(prefix + _WRAPPED)]:
        state[prefix + key[len(prefix) + len(_WRAPPED) :]] = state.pop(key)
    if getattr(config, "rank0_only", False) and _world.get_rank() != 0:
        for key in [key for key in state if key.startswith(prefix)]:
            del state[key]
    elif not unit._use_orig_params:
        _sort(unit, state, prefix)


def _sort(unit: Any, state: dict[str, Any], prefix: str) -> None:
    """Bring the tensors of a unit, which came last, to where their modules are."""
    order: dict[str, int] = {}
    buffers = set()
    for name, part in unit._modules["_fsdp_wrapped_module"].named_modules():
        path = clean(f"{name}.").rstrip(".")
        order.setdefault(path, len(order))
        buffers |= {f"{path}.{item}".lstrip(".") for item in part._buffers}
    keys = [key for key in state if key.startswith(prefix)]

    def place(key: str) -> tuple[int, bool]:
        rest = key[len(prefix) :]
        return order.get(rest.rpartition(".")[0], len(order)), rest in buffers

    for key in sorted(keys, key=place):
        state[key] = state.pop(key)


def _names(unit: Any, entry: Any) -> list[str]:
    """All names of a parameter that stands in several places."""
    if len(entry.places) == 1:
        return [entry.name]
    homes = {id(m): name for name, m in unit._modules["_fsdp_wrapped_module"].named_modules()}
    return [f"{homes[id(m)]}.{name}" if homes[id(m)] else name for m, name in entry.places]


def _mesh(unit: Any) -> Any:
    from taeda.distributed.device_mesh import DeviceMesh

    found = unit.__dict__.get("_mesh_of_parts")
    if found is None:
        found = unit.__dict__["_mesh_of_parts"] = DeviceMesh.from_group(
            unit._unit.shards or unit._copies, "cpu"
        )
    return found


def _spread(unit: Any, whole: Any) -> Any:
    from taeda.distributed.tensor import Replicate, Shard, distribute_tensor

    place = Shard(0) if unit._unit.shards is not None and whole.dim() else Replicate()
    return distribute_tensor(whole, _mesh(unit), [place], src_data_rank=None)


def _whole(value: Any) -> Any:
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def _to_load(unit: Any, state: dict[str, Any], prefix: str, *_: Any) -> None:
    for key in [key for key in state if key.startswith(prefix)]:
        if not key.startswith(prefix + _WRAPPED):
            state[f"{prefix}{_WRAPPED}{key[len(prefix) :]}"] = state.pop(key)
    if unit._state_dict_type is StateDictType.LOCAL_STATE_DICT or unit._unit.is_put:
        return
    start, wholes = prefix + _WRAPPED, []
    for entry in unit._unit.entries:
        found = [start + name for name in _names(unit, entry) if start + name in state]
        if not found:
            return  # load_state_dict tells what is missing
        value = _whole(state[found[0]])
        if tuple(value.shape) != entry.shape:
            raise RuntimeError(
                f"load_state_dict: size mismatch for {clean(found[0])}: found shape {tuple(value.shape)}, expected "
                f"{entry.shape}"
            )
        wholes.append(value)
    pieces = parts_of(unit, wholes)
    for place, entry in enumerate(unit._unit.entries):
        for name in _names(unit, entry):
            state.pop(start + name, None)
            if unit._use_orig_params:
                state[start + name] = pieces[place]
    if not unit._use_orig_params and pieces:
        state[start + _FLAT] = pieces[0]


# State of optimizers


def _prefixes(model: Any) -> dict[int, tuple[Any, str]]:
    """By identity of a parameter: its unit, and the name of the wrapped module."""
    found = {}
    for name, part in model.named_modules():
        if hasattr(part, "_unit") and hasattr(part, "_current"):
            start = clean(f"{name}." if name else "")
            for value in part._current():
                found[id(value)] = (part, start)
    return found


def _full_names(value: Any, homes: dict[int, tuple[Any, str]], plain: dict[int, str]) -> list[str]:
    """The names of the whole parameters that a parameter of an optimizer holds."""
    if id(value) not in homes:
        return [plain[id(value)]]
    unit, start = homes[id(value)]
    if unit._use_orig_params:
        place = [id(p) for p in unit._current()].index(id(value))
        return [start + unit._unit.entries[place].name]
    return [start + entry.name for entry in unit._unit.entries]


def optim_state(model: Any, optim: Any, given: Any, full: bool | None = None) -> dict[str, Any]:
    """The state of an optimizer by names of whole parameters.

    `full` asks for whole tensors or, where False, for parts; None for what was set for the model.
    """
    unit = next((m for m in model.modules() if hasattr(m, "_state_dict_type")), None)
    kind = unit._state_dict_type if unit is not None else StateDictType.FULL_STATE_DICT
    config = unit._optim_state_dict_config if unit is not None else None
    parts = kind is StateDictType.SHARDED_STATE_DICT if full is None else not full
    state = given or optim.state_dict()
    homes = _prefixes(model)
    plain = {id(p): clean(name) for name, p in model.named_parameters()}
    values = [p for group in optim.param_groups for p in group["params"]]
    numbers = [n for group in state["param_groups"] for n in group["params"]]
    found: dict[str, Any] = {}
    listed: dict[Any, list[str]] = {}
    gathered: dict[int, dict[str, Any]] = {}
    for value, number in zip(values, numbers, strict=True):
        names = listed[number] = _full_names(value, homes, plain)
        own = state["state"].get(number, {})
        if id(value) not in homes:
            found[names[0]] = dict(own)
            continue
        home = homes[id(value)][0]
        if home._use_orig_params:
            gathered.setdefault(id(home), {"unit": home, "states": {}})["states"][id(value)] = own
        else:
            for name, each in zip(names, _split(home, value, own), strict=True):
                found[name] = each
    for item in gathered.values():
        _gather_pieces(item["unit"], item["states"], homes, found)
    if parts:
        by_name = {
            n: homes[id(v)][0]
            for v, k in zip(values, numbers, strict=True)
            if id(v) in homes
            for n in listed[k]
        }
        found = {
            name: {
                k: _spread(by_name[name], v) if _like_parameter(v) and name in by_name else v
                for k, v in own.items()
            }
            for name, own in found.items()
        }  # fmt: skip
    groups = [
        {
            **{k: v for k, v in group.items() if k != "params"},
            "params": [n for p in group["params"] for n in listed[p]],
        }
        for group in state["param_groups"]
    ]
    if not parts and full is None and getattr(config, "rank0_only", False) and _world.get_rank() != 0:
        return {}
    return {"state": {name: own for name, own in found.items() if own}, "param_groups": groups}


def _like_parameter(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() > 0


def _split(unit: Any, value: Any, own: dict[str, Any]) -> list[dict[str, Any]]:
    """The state of a flat parameter as states of whole ones."""
    count = len(unit._unit.entries)
    found: list[dict[str, Any]] = [{} for _ in range(count)]
    for key in own:
        item = own[key]
        spread = _like_parameter(item) and item.shape == value.shape
        each = wholes_of(unit, [item]) if spread else [item] * count
        for target, one in zip(found, each, strict=True):
            target[key] = one.clone() if isinstance(one, torch.Tensor) else one
    return found


def _gather_pieces(unit: Any, states: dict[int, dict[str, Any]], homes: Any, found: dict[str, Any]) -> None:
    """The states of parameters with their own names, each with some elements, as states of whole ones."""
    current = unit._current()
    # A process without elements of a parameter may lack its state: the processes agree on the keys.
    kinds = [
        {k: (_like_parameter(v), getattr(v, "dtype", None)) for k, v in states.get(id(p), {}).items()}
        for p in current
    ]
    every: list[Any] = [None] * _world.get_world_size(unit._unit.shards) if unit._unit.shards else [None]
    if unit._unit.shards is not None:
        torch.distributed.all_gather_object(every, kinds, unit._unit.shards)
    else:
        every = [kinds]
    start = homes[id(current[0])][1] if current else ""
    keys = sorted({key for kind in every for each in kind for key in each})
    targets: list[dict[str, Any]] = [{} for _ in current]
    for key in keys:
        about = [next((kind[i][key] for kind in every if key in kind[i]), None) for i in range(len(current))]
        if any(a is not None and a[0] for a in about):
            dtype = next(a[1] for a in about if a is not None and a[0])
            pieces = []
            for p in current:
                own = states.get(id(p), {}).get(key)
                like = own is not None and _like_parameter(own) and own.shape == p.shape
                pieces.append(own if like else torch.zeros(p.shape, dtype=dtype))
            for target, whole, a in zip(targets, wholes_of(unit, pieces), about, strict=True):
                if a is not None:
                    target[key] = whole
        else:
            values = [states.get(id(p), {}).get(key) for p in current]
            for target, value, a in zip(targets, values, about, strict=True):
                if a is not None and value is not None:
                    target[key] = value
    for entry, target in zip(unit._unit.entries, targets, strict=True):
        found[start + entry.name] = target


def optim_state_to_load(model: Any, optim: Any, given: dict[str, Any]) -> dict[str, Any]:
    """What an optimizer loads, of states of whole parameters by their names."""
    homes = _prefixes(model)
    plain = {id(p): clean(name) for name, p in model.named_parameters()}
    state, groups, number = {}, [], 0
    source = {clean(str(name)): own for name, own in given["state"].items()}
    for own_group, group in zip(optim.param_groups, given["param_groups"], strict=True):
        numbers = []
        for value in own_group["params"]:
            names = _full_names(value, homes, plain)
            states = [source.get(name, {}) for name in names]
            if any(states):
                unit = homes[id(value)][0] if id(value) in homes else None
                state[number] = _joined(unit, value, states)
            numbers.append(number)
            number += 1
        groups.append({**{k: v for k, v in group.items() if k != "params"}, "params": numbers})
    return {"state": state, "param_groups": groups}


def _joined(unit: Any, value: Any, states: list[dict[str, Any]]) -> dict[str, Any]:
    """The state of a parameter of this process."""
    first = next(own for own in states if own)
    if unit is None:
        return {key: _whole(item) for key, item in first.items()}
    found = {}
    entries = unit._unit.entries
    if unit._use_orig_params:
        at = [id(p) for p in unit._current()].index(id(value))
        start, count = unit._unit.layout.spans(unit._rank())[at]
        for key, item in first.items():
            item = _whole(item)
            whole = _like_parameter(item) and tuple(item.shape) == entries[at].shape
            found[key] = item.reshape(-1)[start : start + count].clone() if whole else item
        return found
    for key, item in first.items():
        if not _like_parameter(item):
            found[key] = item
            continue
        wholes = [
            _whole(own[key]) if key in own else torch.zeros(entry.shape, dtype=item.dtype)
            for own, entry in zip(states, entries, strict=True)
        ]
        found[key] = parts_of(unit, wholes)[0]
    return found


def rekeyed(given: dict[str, Any], wanted: OptimStateKeyType, model: Any) -> dict[str, Any]:
    """A state of whole parameters with other keys."""
    names = (
        [clean(n) for g in given["param_groups"] for n in g["params"]] if not _is_numbered(given) else None
    )
    if names is None:
        names = [clean(name) for name, _ in model.named_parameters()]
    by_key = (
        dict(enumerate(names))
        if wanted is OptimStateKeyType.PARAM_NAME
        else {n: i for i, n in enumerate(names)}
    )

    def key(item: Any) -> Any:
        return by_key.get(item, item)

    return {
        "state": {key(k): v for k, v in given["state"].items()},
        "param_groups": [{**g, "params": [key(p) for p in g["params"]]} for g in given["param_groups"]],
    }


def _is_numbered(given: dict[str, Any]) -> bool:
    return any(isinstance(p, int) for g in given["param_groups"] for p in g["params"])
