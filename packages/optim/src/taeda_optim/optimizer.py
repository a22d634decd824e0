"""Optimizer: parameters in groups with options, one step over each group, hooks."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from taeda_optim import saving
from taeda_registry.slots import tensor


class RemovableHook:
    """Takes a hook out again."""

    def __init__(self, hooks: dict[int, Callable[..., Any]], key: int) -> None:
        self._hooks, self._key = hooks, key

    def remove(self) -> None:
        """Takes the hook out; a second call does nothing."""
        self._hooks.pop(self._key, None)


class Optimizer:
    """Base class: parameters in groups with options, and state for each parameter.

    A subclass defines either ``_update(group, params, grads)``, called without recording for every group with the
    parameters that have gradients, or ``step`` itself over ``param_groups`` and ``state``.

    Args:
        params: parameters, (name, parameter) pairs such as ``named_parameters()``, or groups: dicts with ``params``
            and options. With names, a saved state finds its parameter whatever the order.
        defaults: options of groups that do not give their own.

    Raises:
        TypeError: params of another kind.
        ValueError: no parameters, one that appears twice, or one that is the result of an operation.
    """

    # Names of the state tensors shaped like their parameter, as `_state_names` gives them; None: not known.
    def _state_names(self, group: dict[str, Any]) -> set[str] | None:
        return None

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, tensor.Tensor):
            raise TypeError(
                f"{type(self).__name__}: argument 'params' must be an iterable of tensors or dicts, found one Tensor"
            )
        if defaults.get("differentiable"):
            raise NotImplementedError(
                f"{type(self).__name__}: argument 'differentiable' must be False: steps are not recorded"
            )
        self.defaults = defaults
        self.state: dict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._complex = False  # whether any parameter is; they take the way of single operations
        self._init_hooks()
        groups = list(params)
        if not groups:
            raise ValueError(f"{type(self).__name__}: argument 'params' is empty, expected parameters")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Updates further parameters, with options of their own.

        Args:
            param_group: dict with ``params`` as in the constructor, and options.

        Raises:
            TypeError, ValueError: as in the constructor; the optimizer is then unchanged.
        """
        kind = type(self).__name__
        if not isinstance(param_group, dict) or "params" not in param_group:
            raise TypeError(
                f"{kind}.add_param_group: argument 'param_group' must be a dict with 'params', "
                f"found {type(param_group).__name__}"
            )
        group = dict(param_group)
        names, group["params"] = self._listed(group["params"])
        self._check_new(group["params"], names)
        if names is not None:
            group["param_names"] = names
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        self._complex = self._complex or any(param.is_complex() for param in group["params"])
        self.param_groups.append(group)

    def _listed(self, given: Any) -> tuple[list[str] | None, list[Any]]:
        """Names (if given) and parameters of a group."""
        kind = type(self).__name__
        if isinstance(given, tensor.Tensor):
            return None, [given]
        if isinstance(given, (set, frozenset)):
            raise TypeError(f"{kind}: argument 'params' must have an order, found {type(given).__name__}")
        items = list(given)
        named = [isinstance(item, tuple) for item in items]
        if any(named) and not all(named):
            raise ValueError(f"{kind}: argument 'params' names some parameters and others not")
        names = [item[0] for item in items] if any(named) else None
        items = [item[1] for item in items] if any(named) else items
        for item in items:
            if not isinstance(item, tensor.Tensor):
                raise TypeError(f"{kind}: argument 'params' must hold Tensors, found {type(item).__name__}")
        return names, items

    def _check_new(self, params: list[Any], names: list[str] | None) -> None:
        kind = type(self).__name__
        for param in params:
            if not param.is_leaf:
                raise ValueError(
                    f"{kind}: can only update leaf tensors, found a result of shape {tuple(param.shape)}"
                )
        present = [id(p) for group in self.param_groups for p in group["params"]] + [id(p) for p in params]
        if len(set(present)) != len(present):
            raise ValueError(f"{kind}: argument 'params' holds a parameter more than once")
        if self.param_groups and ("param_names" in self.param_groups[0]) != (names is not None):
            raise ValueError(f"{kind}: all groups must name their parameters, or none")
        known = [name for group in self.param_groups for name in group.get("param_names", ())] + (names or [])
        if len(set(known)) != len(known):
            twice = sorted({name for name in known if known.count(name) > 1})
            raise ValueError(f"{kind}: argument 'params' has parameter names more than once: {twice}")

    # --- stepping ---

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients: drops them, or fills them with zeros."""
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param.grad = None
                elif (grad := param.grad) is not None:
                    param.grad = grad.detach().zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of every parameter that has a gradient.

        Args:
            closure: recomputes the loss and its gradients first.

        Returns:
            The closure's loss, or None.
        """
        loss = None
        with tensor.no_grad():
            if closure is not None:
                with tensor.enable_grad():
                    loss = closure()
            for group in self.param_groups:
                params, grads = [], []
                for param in group["params"]:
                    grad = param.grad
                    if grad is not None:
                        params.append(param)
                        grads.append(grad)
                if params:
                    self._update(group, params, grads)
        return loss

    def _update(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        raise NotImplementedError(f"{type(self).__name__}.step is not defined")

    def _states(self, params: list[Any], *names: str, **numbers: Any) -> list[dict[str, Any]]:
        """The state of each parameter; a new one has tensors of zeros ``names`` and ``numbers``."""
        states = [self.state[param] for param in params]
        for param, state in zip(params, states, strict=True):
            if len(state) < len(names) + len(numbers):
                new = {**numbers, **{name: tensor.zeros_like(param) for name in names}, **state}
                state.update(new)
        return states

    # --- hooks ---

    def _init_hooks(self) -> None:
        self._pre_hooks: dict[int, Callable[..., Any]] = {}
        self._post_hooks: dict[int, Callable[..., Any]] = {}
        self._hook_count = 0

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHook:
        """Calls ``hook(optimizer, args, kwargs)`` before every step; it may return new (args, kwargs)."""
        return self._add_hook(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHook:
        """Calls ``hook(optimizer, args, kwargs)`` after every step."""
        return self._add_hook(self._post_hooks, hook)

    def _add_hook(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> RemovableHook:
        self._hook_count += 1
        hooks[self._hook_count] = hook
        return RemovableHook(hooks, self._hook_count)

    # --- saving and restoring ---

    def state_dict(self) -> dict[str, Any]:
        """State and options: ``{"state": {number: {...}}, "param_groups": [...]}``.

        Parameters stand as numbers in the order of the groups; ``param_names`` in a group names them where known.
        Tensors are not copied.
        """
        return saving.state_of(self)

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Takes over a state that `state_dict` (or PyTorch's) gave.

        Parameters are matched by name where both sides have names, else by position. Everything is checked first: on
        an error nothing has changed.

        Args:
            state_dict: the state.
            strict: False lets parameters without saved state start anew, and leaves out state without parameter.

        Raises:
            ValueError: groups, parameters, names of state or shapes that do not match; one text lists all.
        """
        saving.restore(self, state_dict, strict)

    def __getstate__(self) -> dict[str, Any]:
        hidden = ("_pre_hooks", "_post_hooks", "_hook_count", "_complex")
        return {**{k: v for k, v in self.__dict__.items() if k not in hidden}, "state": dict(self.state)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.state = defaultdict(dict, self.state)
        self._complex = any(p.is_complex() for group in self.param_groups for p in group["params"])
        self._init_hooks()

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k not in ("params", "param_names")]
        return "\n".join([*lines, ")"])


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step that calls the hooks before and after."""

    @functools.wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if not self._pre_hooks and not self._post_hooks:
            return step(self, *args, **kwargs)
        for hook in tuple(self._pre_hooks.values()):
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise RuntimeError(
                        f"{type(self).__name__}.step: a pre-hook must return None or (args, kwargs), found {changed!r}"
                    )
                args, kwargs = changed
        result = step(self, *args, **kwargs)
        for hook in tuple(self._post_hooks.values()):
            hook(self, args, kwargs)
        return result

    return hooked


Optimizer.step = _with_hooks(Optimizer.step)  # type: ignore[method-assign]


def check_range(kind: str, name: str, value: float, low: float, high: float = float("inf")) -> None:
    """ValueError unless low <= value < high."""
    if not low <= float(value) < high:
        raise ValueError(f"{kind}: argument '{name}' must be at least {low} and below {high}, found {value}")


def modes(given: dict[str, Any], kind: str, lacks: str = "") -> dict[str, Any]:
    """Options accepted as in PyTorch, with defaults, but for one that ``kind`` lacks; TypeError for other names."""
    known = {"foreach": None, "capturable": False, "differentiable": False, "fused": None}
    known.pop(lacks, None)
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise TypeError(f"{kind}: unexpected arguments {unknown}")
    return {**known, **given}


def real_view(x: Any) -> Any:
    """A complex tensor as pairs of real numbers; others as they are."""
    return tensor.view_as_real(x) if x.is_complex() else x


def directed(group: dict[str, Any], param: Any, grad: Any) -> Any:
    """The gradient to descend: negated for maximize, with weight decay added."""
    if group["maximize"]:
        grad = -grad
    return grad.add(param, alpha=group["weight_decay"]) if group["weight_decay"] else grad


_fused: dict[str, Callable[..., None] | None] = {}


def fused(name: str) -> Callable[..., None] | None:
    """The provider's single-call update of many tensors, where it has one."""
    try:
        return _fused[name]
    except KeyError:
        _fused[name] = getattr(getattr(tensor, "ops", None), name, None)
        return _fused[name]
