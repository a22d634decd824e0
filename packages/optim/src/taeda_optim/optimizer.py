"""Optimizer: parameters in groups with options, one step over each group, hooks."""

from __future__ import annotations

import copy
import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from taeda_optim import counting, saving
from taeda_optim._for_others import (  # noqa: F401 (programs take them from here)
    Args,
    DeviceDict,
    DeviceDtypeDict,
    GlobalOptimizerPostHook,
    GlobalOptimizerPreHook,
    Indices,
    Kwargs,
    TensorListList,
    _capturable_doc,
    _default_to_fused_or_foreach,
    _differentiable_doc,
    _disable_dynamo_if_unsupported,
    _dispatch_sqrt,
    _foreach_doc,
    _foreach_supported_types,
    _fused_doc,
    _get_capturable_supported_devices,
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
    _get_scalar_dtype,
    _get_value,
    _group_tensors_by_device_and_dtype,
    _maximize_doc,
    _params_doc,
    _Required,
    _RequiredParameter,
    _stack_if_compiling,
    _to_scalar,
    _use_grad_for_differentiable,
    _view_as_real,
    required,
)
from taeda_registry.slots import tensor
from taeda_registry.turns import entries, in_turn

Hooks = dict[int, Callable[..., Any]]
#: What ``params`` of an optimizer may be: tensors, (name, tensor) pairs, or groups as dicts.
ParamsT = Iterable[Any]
#: What `state_dict` gives.
StateDict = dict[str, Any]


class RemovableHook:
    """Takes a hook out again."""

    _count = 0

    def __init__(self, hooks: Hooks) -> None:
        RemovableHook._count += 1
        self._hooks, self.id = hooks, RemovableHook._count

    @in_turn
    def remove(self) -> None:
        """Takes the hook out; a second call does nothing."""
        self._hooks.pop(self.id, None)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        RemovableHook._count = max(RemovableHook._count, self.id)

    def __enter__(self) -> RemovableHook:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.remove()


@in_turn
def _add_hook(hooks: Hooks, hook: Callable[..., Any], prepend: bool = False) -> RemovableHook:
    handle = RemovableHook(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


# Hooks around the steps of all optimizers.
_global_pre_hooks: Hooks = {}
_global_post_hooks: Hooks = {}


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHook:
    """Like ``Optimizer.register_step_pre_hook``, for all optimizers; these hooks come first."""
    return _add_hook(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHook:
    """Like ``Optimizer.register_step_post_hook``, for all optimizers; these hooks come last."""
    return _add_hook(_global_post_hooks, hook)


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
        ValueError: no parameters, one that appears in two groups, or one that is the result of an operation.
    """

    # Whether a parameter stands in its group more than once.
    _repeats: bool = False

    # Whether states count their steps in tensors.
    _counts: bool = False

    # Whether `_update` knows what to do with gradients that are sparse.
    _takes_sparse: bool = True

    # Names of the state tensors shaped like their parameter, as `_state_names` gives them; None: not known.
    def _state_names(self, group: dict[str, Any]) -> set[str] | None:
        return None

    # Names of the state in the order of the lists that `_init_group` fills; empty: there is no function over lists.
    _list_names: tuple[str, ...] = ()

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, tensor.Tensor):
            raise TypeError(
                f"{type(self).__name__}: params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {params.type()}: found one Tensor"
            )
        self.defaults = defaults
        self.state: dict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._init_hooks()
        groups = list(params)
        if not groups:
            raise ValueError(
                f"{type(self).__name__}: argument 'params' is empty: optimizer got an empty parameter list"
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]
        if "_init_group" in cls.__dict__ and cls._list_names and "_list_names" not in cls.__dict__:
            cls._update = _update_through_lists  # type: ignore[method-assign]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Updates further parameters, with options of their own.

        Args:
            param_group: dict with ``params`` as in the constructor, and options. It becomes the group itself: its
                parameters are listed, other options added, and what is changed in it later counts.

        Raises:
            TypeError, ValueError: as in the constructor; the optimizer and the dict are then unchanged.
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
            if value is required and name not in group:
                raise ValueError(f"{kind}: parameter group without the required option {name!r}")
            group.setdefault(name, value)
        param_group.update(group)
        self.param_groups.append(param_group)
        self._know_kinds(param_group["params"])

    # Whether any parameter is complex, and whether they take the way of single operations.
    _complex: bool = False
    _singly: bool = False

    def _know_kinds(self, params: list[Any]) -> None:
        """Takes further parameters into account."""
        one_of_each = {type(param): param for param in params}.values()
        self._complex = self._complex or any(param.is_complex() for param in params)
        self._singly = self._singly or self._complex or any(map(saving.answers, one_of_each))

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
                raise TypeError(
                    f"{kind}: argument 'params' must hold Tensors, found {type(item).__name__}: optimizer can only "
                    f"optimize Tensors, but one of the params is {type(item).__name__}"
                )
        return names, items

    def _check_new(self, params: list[Any], names: list[str] | None) -> None:
        kind = type(self).__name__
        recorded = bool(self.defaults.get("differentiable"))
        for param in params:
            if not (recorded or param.is_leaf or getattr(param, "retains_grad", False)):
                raise ValueError(
                    f"{kind}: can't optimize a non-leaf Tensor, found a result of shape {tuple(param.shape)}"
                )
        new = {id(p) for p in params}
        if len(new) != len(params):
            self._repeats = True
            warnings.warn(
                f"{kind}: argument 'params' holds a parameter more than once in one group; each step updates it as "
                "often",
                UserWarning,
                stacklevel=4,
            )
        if not all(new.isdisjoint(map(id, group["params"])) for group in self.param_groups):
            raise ValueError(
                f"{kind}: some parameters appear in more than one parameter group: 'params' holds one more than once"
            )
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
        recorded = bool(self.defaults.get("differentiable"))
        loss = None
        with tensor.enable_grad() if recorded else tensor.no_grad():
            if closure is not None:
                with tensor.enable_grad():
                    loss = closure()
            work = []
            for group in self.param_groups:
                params, grads = [], []
                for param in group["params"]:
                    grad = param.grad
                    if grad is not None:
                        params.append(param)
                        grads.append(grad)
                if not self._takes_sparse:
                    self._refuse_sparse(grads)
                work.append((group, params, grads))
            for group, params, grads in work:
                if recorded or self._repeats:
                    for some, theirs in _rounds(params, grads):
                        if recorded:
                            self._renew_states(some)
                        self._update(group, some, theirs)
                elif params:
                    self._update(group, params, grads)
        return loss

    def _refuse_sparse(self, grads: list[Any]) -> None:
        """Before anything of any group has changed."""
        if any(map(is_sparse, grads)):
            kind = type(self).__name__
            found = next(tuple(grad.shape) for grad in grads if is_sparse(grad))
            raise RuntimeError(
                f"{kind} does not support sparse gradients, please consider SparseAdam instead (gradient of shape "
                f"{found})"
            )

    def _renew_states(self, params: list[Any]) -> None:
        """Gives parameters copies of their state, so that values that recorded steps have used stay as they are."""
        for param in params:
            state = self.state[param]
            for name, value in state.items():
                if isinstance(value, tensor.Tensor):
                    state[name] = value.clone()

    def _update(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        raise NotImplementedError(f"{type(self).__name__}.step is not defined")

    def _begun(self, group: dict[str, Any], params: list[Any]) -> list[dict[str, Any]]:
        """The state of each parameter, made where there is none."""
        return self._states(params, *sorted(self._state_names(group) or ()))

    def _init_group(
        self, group: dict[str, Any], params: list[Any], grads: list[Any], *states: list[Any]
    ) -> Any:
        """Fills lists with the parameters that have gradients, these, and their states, made where there are none.

        Programs call it in steps of their own, and override it. The lists of states stand in PyTorch's order.

        Returns:
            Whether a parameter is complex.
        """
        chosen = [param for param in group["params"] if param.grad is not None]
        shaped = self._state_names(group) or set()
        begun = self._begun(group, chosen)
        params += chosen
        grads += [param.grad for param in chosen]
        for name, listed in zip(self._list_names, states, strict=True):
            if name in counting.NUMBERS:
                listed += [counting.counted(state, name) for state in begun]
            elif name in shaped:
                listed += [state.get(name) for state in begun]
        return any(param.is_complex() for param in chosen)

    def _states(self, params: list[Any], *names: str, **numbers: Any) -> list[dict[str, Any]]:
        """The state of each parameter; a new one has its count, tensors of zeros ``names`` and ``numbers``."""
        states = [self.state[param] for param in params]
        least = self._counts + len(names) + len(numbers)
        for param, state in zip(params, states, strict=True):
            if len(state) < least:
                count = {"step": counting.count_of(0)} if self._counts else {}
                zeros = {name: tensor.zeros_like(param) for name in names}
                state.update({**count, **numbers, **zeros, **state})
        return states

    # --- hooks ---

    def _init_hooks(self) -> None:
        self._optimizer_step_pre_hooks: Hooks = OrderedDict()
        self._optimizer_step_post_hooks: Hooks = OrderedDict()
        self._optimizer_state_dict_pre_hooks: Hooks = OrderedDict()
        self._optimizer_state_dict_post_hooks: Hooks = OrderedDict()
        self._optimizer_load_state_dict_pre_hooks: Hooks = OrderedDict()
        self._optimizer_load_state_dict_post_hooks: Hooks = OrderedDict()

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHook:
        """Calls ``hook(optimizer, args, kwargs)`` before every step; it may return new (args, kwargs).

        The arguments are those of the function: `args` begins with the optimizer.
        """
        return _add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHook:
        """Calls ``hook(optimizer, args, kwargs)`` after every step."""
        return _add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHook:
        """Calls ``hook(optimizer)`` before `state_dict` collects."""
        return _add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHook:
        """Calls ``hook(optimizer, state_dict)`` after `state_dict` collected; it may return another one."""
        return _add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHook:
        """Calls ``hook(optimizer, copy of the state)`` before it is loaded; the hook may return another one."""
        return _add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHook:
        """Calls ``hook(optimizer)`` after a state was loaded."""
        return _add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    def _accelerator_graph_capture_health_check(self) -> None:
        """For optimizers that call it in their steps: there are no graphs of calls that a step could be part of."""

    _cuda_graph_capture_health_check = _accelerator_graph_capture_health_check
    _group_tensors_by_device_and_dtype = staticmethod(_group_tensors_by_device_and_dtype)

    def _patch_step_function(self) -> None:
        """Nothing: steps of all classes call their hooks already. PyTorch's optimizers call this when unpickled."""

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """``func`` with hooks around it, as every ``step`` has them."""
        return _with_hooks(func)

    # --- saving and restoring ---

    def state_dict(self) -> dict[str, Any]:
        """State and options: ``{"state": {number: {...}}, "param_groups": [...]}``.

        Parameters stand as numbers in the order of the groups; ``param_names`` in a group names them where known.
        Tensors are not copied.
        """
        for _, hook in entries(self._optimizer_state_dict_pre_hooks):
            hook(self)
        state = saving.state_of(self)
        for _, hook in entries(self._optimizer_state_dict_post_hooks):
            changed = hook(self, state)
            state = state if changed is None else changed
        return state

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
        state_dict = copy.copy(state_dict)  # a hook changes this one, not the caller's
        for _, hook in entries(self._optimizer_load_state_dict_pre_hooks):
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        saving.restore(self, state_dict, strict)
        for _, hook in entries(self._optimizer_load_state_dict_post_hooks):
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        # Hooks stay with the instance; what follows from the groups is found again.
        found = ("_complex", "_singly")
        kept = {k: v for k, v in self.__dict__.items() if k not in found and not k.startswith("_optimizer_")}
        return {**kept, "state": defaultdict(dict, self.state)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.state = defaultdict(dict, self.state)
        if self._counts:
            counting.as_tensors(self.state.values())
        self._complex = self._singly = False
        for group in self.param_groups:
            self._know_kinds(group["params"])
        if "_optimizer_step_pre_hooks" not in self.__dict__:
            self._init_hooks()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [*([""] if i else []), f"Parameter Group {i}"]
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k not in ("params", "param_names")]
        return "\n".join([*lines, ")"])


def _rounds(params: list[Any], grads: list[Any]) -> Iterator[tuple[list[Any], list[Any]]]:
    """Parameters with their gradients, such that none stands twice in a round."""
    while params:
        seen: set[int] = set()
        again: list[int] = []
        for i, param in enumerate(params):
            if id(param) in seen:
                again.append(i)
            seen.add(id(param))
        now = [i for i in range(len(params)) if i not in again]
        yield [params[i] for i in now], [grads[i] for i in now]
        params, grads = [params[i] for i in again], [grads[i] for i in again]


def _update_through_lists(
    self: Optimizer, group: dict[str, Any], _params: list[Any], _grads: list[Any]
) -> None:
    """The update of classes whose `_init_group` is a program's: over the lists that it fills."""
    from taeda_optim._functional import run_lists

    params: list[Any] = []
    grads: list[Any] = []
    lists: dict[str, list[Any]] = {name: [] for name in self._list_names}
    self._init_group(group, params, grads, *lists.values())
    run_lists(self, group, params, grads, lists)


def _changed(optimizer: Optimizer, found: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a step that a hook has given for those it was called with."""
    if not isinstance(found, tuple) or len(found) != 2:
        kind = type(optimizer).__name__
        raise RuntimeError(f"{kind}.step: a pre-hook must return None or (args, kwargs), found {found!r}")
    return found


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step that calls the hooks before and after, unless it is the one of a base class that a step calls."""

    @functools.wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        own = self.__dict__
        if not (
            own.get("_optimizer_step_pre_hooks")
            or own.get("_optimizer_step_post_hooks")
            or _global_pre_hooks
            or _global_post_hooks
        ):
            return step(self, *args, **kwargs)
        wraps = "_optimizer_step_pre_hooks" not in own  # another one, and has not called __init__
        if wraps or type(self).step is not hooked:
            return step(self, *args, **kwargs)
        # Written out: a profiler's hooks stand here while its program trains. A hook may take itself away.
        args = (self, *args)
        if _global_pre_hooks:
            for _, hook in entries(_global_pre_hooks):
                if (changed := hook(self, args, kwargs)) is not None:
                    args, kwargs = _changed(self, changed)
        if own["_optimizer_step_pre_hooks"]:
            for _, hook in entries(own["_optimizer_step_pre_hooks"]):
                if (changed := hook(self, args, kwargs)) is not None:
                    args, kwargs = _changed(self, changed)
        result = step(*args, **kwargs)
        if own["_optimizer_step_post_hooks"]:
            for _, hook in entries(own["_optimizer_step_post_hooks"]):
                hook(self, args, kwargs)
        if _global_post_hooks:
            for _, hook in entries(_global_post_hooks):
                hook(self, args, kwargs)
        return result

    hooked.hooked = True  # type: ignore[attr-defined]
    return hooked


Optimizer.step = _with_hooks(Optimizer.step)  # type: ignore[method-assign]


def check_range(kind: str, name: str, value: float, low: float, high: float = float("inf")) -> None:
    """ValueError unless low <= value < high, TypeError for what is no number."""
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{kind}: argument '{name}' must be a number, found {value!r}")
    if not low <= float(value) < high:
        raise ValueError(
            f"{kind}: argument '{name}' must be at least {low} and below {high}, found {value} "
            f"({_invalid(name)}: {value})"
        )


def _invalid(name: str) -> str:
    """How PyTorch calls a wrong option, for programs that look for its words."""
    option, _, index = name.partition("[")
    if option == "betas":
        return f"Invalid beta parameter at index {index[:-1]}"
    return {"lr": "Invalid learning rate", "eps": "Invalid epsilon value"}.get(
        option, f"Invalid {option} value"
    )


def check_modes(
    kind: str,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
) -> None:
    """RuntimeError for options that exclude one another."""
    if fused and differentiable:
        raise RuntimeError(f"{kind}: `fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError(f"{kind}: `fused` and `foreach` cannot be `True` together.")


def check_rate(kind: str, lr: Any, foreach: bool | None = None, capturable: bool = False) -> None:
    """ValueError unless ``lr`` is a number, or a tensor of one, at least 0."""
    if isinstance(lr, tensor.Tensor):
        if lr.numel() != 1:
            raise ValueError(f"{kind}: Tensor lr must be 1-element, found shape {tuple(lr.shape)}")
        if foreach and not capturable:
            raise ValueError(f"{kind}: lr as a Tensor is not supported for capturable=False and foreach=True")
    check_range(kind, "lr", lr, 0)


def number(group: dict[str, Any], name: str = "lr") -> Any:
    """An option as a number; where steps are recorded, a tensor stays one."""
    value = group[name]
    if isinstance(value, _NUMBERS):
        return value
    if not isinstance(value, tensor.Tensor):
        return float(value)
    return value if group.get("differentiable") else float(value)


def add_scaled(param: Any, x: Any, factor: Any) -> None:
    """param += factor * x."""
    if isinstance(factor, float) or not isinstance(factor, tensor.Tensor):
        param.add_(x, alpha=factor)
    else:
        param.add_(x * factor)


def add_quotient(param: Any, a: Any, b: Any, factor: Any) -> None:
    """param += factor * a / b."""
    if isinstance(factor, float) or not isinstance(factor, tensor.Tensor):
        param.addcdiv_(a, b, value=factor)
    else:
        param.add_(a / b * factor)


def real_view(x: Any) -> Any:
    """A complex tensor as pairs of real numbers; others as they are."""
    return tensor.view_as_real(x) if x.is_complex() else x


def is_sparse(x: Any) -> bool:
    """Whether a tensor holds some of its entries alone; no tensor does where the provider has no such ones."""
    return bool(getattr(x, "is_sparse", False))


_NUMBERS = (float, int)


def directed(group: dict[str, Any], param: Any, grad: Any) -> Any:
    """The gradient to descend: negated for maximize, with weight decay added."""
    if group["maximize"]:
        grad = -grad
    decay = group["weight_decay"]
    if decay.__class__ in _NUMBERS or not isinstance(decay, tensor.Tensor):
        return grad.add(param, alpha=decay) if decay else grad
    return grad + param * decay


_fused: dict[str, Callable[..., None] | None] = {}


def fused(name: str) -> Callable[..., None] | None:
    """The provider's single-call update of many tensors, where it has one."""
    try:
        return _fused[name]
    except KeyError:
        _fused[name] = getattr(getattr(tensor, "ops", None), name, None)
        return _fused[name]
