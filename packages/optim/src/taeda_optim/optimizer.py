"""Optimizer: parameters in groups with options, state by parameter, saving and restoring it by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from taeda_registry.slots import tensor


class _RemovableHook:
    """Takes a hook out again."""

    def __init__(self, hooks: dict[int, Callable[..., Any]], key: int) -> None:
        self._hooks, self._key = hooks, key

    def remove(self) -> None:
        self._hooks.pop(self._key, None)


class Optimizer:
    """Base class. A subclass defines ``_update(group, params, grads)`` and the names of its state tensors.

    Args:
        params: parameters, (name, parameter) pairs, or groups: dicts with ``params`` and options.
        defaults: options of groups that do not give their own.

    Raises:
        TypeError: params of another kind. ValueError: no parameters, or one in two groups.
    """

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, tensor.Tensor):
            raise TypeError(
                f"{type(self).__name__}: argument 'params' must be an iterable of tensors or dicts, found one Tensor"
            )
        self.defaults = defaults
        self.state: dict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._pre_hooks: dict[int, Callable[..., Any]] = {}
        self._post_hooks: dict[int, Callable[..., Any]] = {}
        self._hook_count = 0
        groups = list(params)
        if not groups:
            raise ValueError(f"{type(self).__name__}: argument 'params' is empty")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Updates further parameters, with options of their own."""
        kind = type(self).__name__
        if not isinstance(param_group, dict) or "params" not in param_group:
            raise TypeError(
                f"{kind}.add_param_group: expected a dict with 'params', found {type(param_group).__name__}"
            )
        group = dict(param_group)
        given = group["params"]
        items = [given] if isinstance(given, tensor.Tensor) else list(given)
        names = None
        if items and isinstance(items[0], tuple):
            names = [name for name, _ in items]
            items = [param for _, param in items]
        for param in items:
            if not isinstance(param, tensor.Tensor):
                raise TypeError(f"{kind}: argument 'params' must hold Tensors, found {type(param).__name__}")
            if not (param.is_leaf or param.grad_fn is None):
                raise ValueError(
                    f"{kind}: can only update leaf tensors, found a result of shape {tuple(param.shape)}"
                )
        known = {id(p) for g in self.param_groups for p in g["params"]}
        if len({id(p) for p in items}) != len(items) or known & {id(p) for p in items}:
            raise ValueError(f"{kind}: a parameter appears more than once")
        group["params"] = items
        if names is not None:
            group["param_names"] = names
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        self.param_groups.append(group)

    # --- stepping ---

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients: drops them, or fills them with zeros."""
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param.grad = None
                elif param.grad is not None:
                    param.grad.detach_()
                    param.grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of every parameter that has a gradient; returns the closure's loss."""
        loss = None
        if closure is not None:
            with tensor.enable_grad():
                loss = closure()
        for hook in tuple(self._pre_hooks.values()):
            hook(self, (closure,), {})
        with tensor.no_grad():
            for group in self.param_groups:
                params, grads = [], []
                for param in group["params"]:
                    grad = param.grad
                    if grad is not None:
                        params.append(param)
                        grads.append(grad)
                if params:
                    self._update(group, params, grads)
        for hook in tuple(self._post_hooks.values()):
            hook(self, (closure,), {})
        return loss

    def _update(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        raise NotImplementedError(f"{type(self).__name__}._update is not defined")

    def _buffers(self, params: list[Any], name: str) -> list[Any]:
        """State tensor ``name`` of each parameter, zeros at first."""
        out = []
        for param in params:
            state = self.state[param]
            buffer = state.get(name)
            if buffer is None:
                buffer = state[name] = tensor.zeros_like(param)
            out.append(buffer)
        return out

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> _RemovableHook:
        """Calls ``hook(optimizer, args, kwargs)`` before every step."""
        return self._add_hook(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> _RemovableHook:
        """Calls ``hook(optimizer, args, kwargs)`` after every step."""
        return self._add_hook(self._post_hooks, hook)

    def _add_hook(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> _RemovableHook:
        self._hook_count += 1
        hooks[self._hook_count] = hook
        return _RemovableHook(hooks, self._hook_count)

    # --- saving and restoring ---

    def state_dict(self) -> dict[str, Any]:
        """State and options with parameters as numbers (their order), plus their names where known."""
        order = {id(p): i for i, p in enumerate(p for g in self.param_groups for p in g["params"])}
        groups = [
            {
                **{k: v for k, v in group.items() if k != "params"},
                "params": [order[id(p)] for p in group["params"]],
            }
            for group in self.param_groups
        ]
        return {"state": {order[id(p)]: dict(s) for p, s in self.state.items() if s}, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state; parameters are matched by name where both sides have names, else by position.

        Everything is checked first: on an error nothing has changed.

        Raises:
            ValueError: groups or parameters that do not match, or state of another shape; all problems in one text.
        """
        saved_groups = state_dict["param_groups"]
        problems: list[str] = []
        matched: list[tuple[Any, Any]] = []  # (parameter, saved number)
        if len(saved_groups) != len(self.param_groups):
            problems.append(f"expected {len(self.param_groups)} parameter groups, found {len(saved_groups)}")
        for i, (group, saved) in enumerate(zip(self.param_groups, saved_groups, strict=False)):
            matched += self._match(i, group, saved, problems)
        new_state: dict[Any, dict[str, Any]] = {}
        for param, number in matched:
            saved = state_dict["state"].get(number, state_dict["state"].get(str(number)))
            if saved:
                new_state[param] = self._checked_state(param, number, saved, problems)
        if problems:
            raise ValueError(f"{type(self).__name__}.load_state_dict: " + "; ".join(problems))
        self.state = defaultdict(dict, new_state)
        for group, saved in zip(self.param_groups, saved_groups, strict=True):
            keep = {"params", "param_names"}
            group.update({k: deepcopy(v) for k, v in saved.items() if k not in keep})

    def _match(
        self, i: int, group: dict[str, Any], saved: dict[str, Any], problems: list[str]
    ) -> list[tuple[Any, Any]]:
        params, numbers = group["params"], saved["params"]
        ours, theirs = group.get("param_names"), saved.get("param_names")
        if ours is not None and theirs is not None:
            by_name = dict(zip(theirs, numbers, strict=True))
            missing = [n for n in ours if n not in by_name]
            extra = [n for n in theirs if n not in set(ours)]
            if missing or extra:
                problems.append(f"group {i}: missing parameters {missing}, unexpected parameters {extra}")
            return [(p, by_name[n]) for n, p in zip(ours, params, strict=True) if n in by_name]
        if len(params) != len(numbers):
            problems.append(f"group {i}: expected {len(params)} parameters, found {len(numbers)}")
        return list(zip(params, numbers, strict=False))

    def _checked_state(
        self, param: Any, number: Any, saved: dict[str, Any], problems: list[str]
    ) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, value in saved.items():
            if name == "step" and isinstance(value, tensor.Tensor):
                value = int(value.item())
            elif isinstance(value, tensor.Tensor):
                if tuple(value.shape) not in ((), tuple(param.shape)):
                    problems.append(
                        f"parameter {number}: state '{name}' has shape {tuple(value.shape)}, expected {tuple(param.shape)}"
                    )
                value = value.detach().to(param.dtype).clone()
            out[name] = value
        return out

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": dict(self.state), "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _pre_hooks={}, _post_hooks={}, _hook_count=0)
        self.state = defaultdict(dict, self.state)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k not in ("params", "param_names")]
        return "\n".join([*lines, ")"])


def check_range(kind: str, name: str, value: float, low: float, high: float = float("inf")) -> None:
    """ValueError unless low <= value < high."""
    if not low <= value < high:
        raise ValueError(f"{kind}: argument '{name}' must be at least {low} and below {high}, found {value}")


def fused(name: str) -> Callable[..., None] | None:
    """The provider's single-call update of many tensors, where it has one."""
    return getattr(getattr(tensor, "ops", None), name, None)
