"""The steps of optimizers as functions of lists, which programs call that keep the state themselves.

Each takes the parameters, their gradients, one list for each kind of state and, but for `sgd`, the numbers of steps as
tensors; then PyTorch's options by name. Parameters, states and numbers of steps are changed in place.

Example:
    >>> p, g = taeda.ones(2), taeda.ones(2)
    >>> taeda.optim.sgd.sgd([p], [g], [None], lr=0.5, momentum=0, dampening=0, weight_decay=0, nesterov=False,
    ...                     maximize=False)
    >>> p
    tensor([0.5000, 0.5000])
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from taeda_registry.slots import tensor

__all__ = [
    "adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop", "sgd",
]  # fmt: skip

#: Options that every one takes.
_COMMON: dict[str, Any] = {
    "maximize": False, "differentiable": False, "foreach": None, "capturable": False, "fused": None,
    "has_complex": False, "has_sparse_grad": False, "decoupled_weight_decay": False, "grad_scale": None,
    "found_inf": None, "lr": 0.0,
}  # fmt: skip
#: Options that belong together in a group.
_PAIRS = {
    "betas": ("beta1", "beta2"),
    "etas": ("etaminus", "etaplus"),
    "step_sizes": ("step_size_min", "step_size_max"),
}


def _group(options: dict[str, Any]) -> dict[str, Any]:
    group = {**_COMMON, **options}
    for name, (first, second) in _PAIRS.items():
        if first in group:
            group[name] = group.pop(first), group.pop(second)
    return group


def _run(
    kind: str, params: list[Any], grads: list[Any], states: dict[str, list[Any]], steps: list[Any] | None,
    options: dict[str, Any],
) -> None:  # fmt: skip
    """A step of the class over the given state, which goes back to the lists."""
    import taeda_optim

    group = _group(options)
    if group["found_inf"] is not None and bool(group["found_inf"]):
        return
    if group["grad_scale"] is not None:
        grads = [grad / group["grad_scale"] for grad in grads]
    made = object.__new__(getattr(taeda_optim, kind))
    made.defaults, made.param_groups, made.state = {}, [], defaultdict(dict)
    made._know_kinds(params)
    for i, param in enumerate(params):
        made.state[param] = {name: items[i] for name, items in states.items() if i < len(items)}
        if steps is not None:
            made.state[param]["step"] = steps[i]
    with tensor.enable_grad() if group["differentiable"] else tensor.no_grad():
        made._update(group, params, grads)
    for i, param in enumerate(params):
        for name, items in states.items():
            _give_back(items, i, made.state[param].get(name))
        if steps is not None:
            _give_back(steps, i, made.state[param]["step"])


def run_lists(
    optimizer: Any, group: dict[str, Any], params: list[Any], grads: list[Any], lists: dict[str, list[Any]]
) -> None:
    """A step over lists that the optimizer's own `_init_group` has filled."""
    kind = next(cls.__name__ for cls in type(optimizer).__mro__ if "_list_names" in cls.__dict__)
    options = {name: value for name, value in group.items() if name != "params"}
    for name in ("grad_scale", "found_inf"):
        options[name] = getattr(optimizer, name, None)
    states = dict(lists)
    _run(kind, params, grads, states, states.pop("step", None), options)
    for param, buffer in zip(params, states.get("momentum_buffer", ()), strict=False):
        optimizer.state[param]["momentum_buffer"] = buffer


def _give_back(items: list[Any], place: int, value: Any) -> None:
    """Puts a state back into its list: into the tensor that stands there, if one does."""
    if place >= len(items) or value is items[place]:
        return
    if isinstance(items[place], tensor.Tensor):
        items[place].copy_(value) if isinstance(value, tensor.Tensor) else items[place].fill_(value)
    else:
        items[place] = value


def _form(
    name: str, kind: str, lists: dict[str, str], steps: bool = True, **fixed: Any
) -> Callable[..., None]:
    """The function of a class: `lists` are PyTorch's names of lists, with those of the state."""
    first = "d_p_list" if name == "sgd" else "grads"
    places = ["params", first, *lists, *(["state_steps"] if steps else [])]

    def form(*args: Any, **options: Any) -> None:
        given = dict(zip(places, args, strict=False))
        if len(args) > len(places):
            raise TypeError(
                f"{name}: expected at most {len(places)} arguments by position, found {len(args)}"
            )
        given |= {place: options.pop(place) for place in places if place in options}
        missing = [place for place in places if place not in given]
        if missing:
            raise TypeError(f"{name}: arguments are missing: {', '.join(missing)}")
        states = {own: given[place] for place, own in lists.items()}
        _run(kind, given["params"], given[first], states, given.get("state_steps"), {**options, **fixed})

    form.__name__ = form.__qualname__ = name
    form.__doc__ = f"A step of `{kind}` over lists; see the module."
    listed = [inspect.Parameter(place, inspect.Parameter.POSITIONAL_OR_KEYWORD) for place in places]
    form.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*listed, inspect.Parameter("options", inspect.Parameter.VAR_KEYWORD)]
    )
    return form


_MOMENTS = {"exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq"}
_LARGEST = {**_MOMENTS, "max_exp_avg_sqs": "max_exp_avg_sq"}
adadelta = _form("adadelta", "Adadelta", {"square_avgs": "square_avg", "acc_deltas": "acc_delta"})
adagrad = _form("adagrad", "Adagrad", {"state_sums": "sum"})
adam = _form("adam", "Adam", _LARGEST)
adamw = _form("adamw", "Adam", _LARGEST, decoupled_weight_decay=True)
adamax = _form("adamax", "Adamax", {"exp_avgs": "exp_avg", "exp_infs": "exp_inf"})
asgd = _form("asgd", "ASGD", {"axs": "ax", "mus": "mu", "etas": "eta"})
nadam = _form("nadam", "NAdam", {**_MOMENTS, "mu_products": "mu_product"})
radam = _form("radam", "RAdam", _MOMENTS)
rmsprop = _form(
    "rmsprop",
    "RMSprop",
    {"square_avgs": "square_avg", "grad_avgs": "grad_avg", "momentum_buffer_list": "momentum_buffer"},
)
rprop = _form("rprop", "Rprop", {"prevs": "prev", "step_sizes": "step_size"})
sgd = _form("sgd", "SGD", {"momentum_buffer_list": "momentum_buffer"}, steps=False)
