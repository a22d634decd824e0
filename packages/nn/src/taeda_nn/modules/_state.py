"""state_dict and load_state_dict: saving is a flat mapping, loading is all or nothing."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from taeda_nn._bind import Tensor, no_grad
from taeda_nn._hooks import RemovableHandle, _WrappedHook, add_hook, state_hook_property
from taeda_nn.parameter import Buffer, Parameter, is_lazy

if TYPE_CHECKING:
    from taeda_nn.modules.module import Module

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """What ``load_state_dict`` did not find, and what it found no place for."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


IncompatibleKeys.__name__ = IncompatibleKeys.__qualname__ = "_IncompatibleKeys"  # as programs print it


class Action(NamedTuple):
    """What loading does to a member of a module; without a name, to the module as a whole."""

    module: Any
    name: str | None
    take: Callable[[], Any]
    copies: bool = False


class LoadPlan(list):
    """The errors found so far, and the actions to take if there are none.

    It travels in the ``error_msgs`` argument, so that modules with a ``_load_from_state_dict`` of their own take part.
    """

    def __init__(self) -> None:
        super().__init__()
        self.actions: list[Action] = []
        self._before: list[tuple[Any, str, Tensor, Tensor | None]] = []

    def add(self, module: Any, name: str | None, take: Callable[[], Any], copies: bool = False) -> None:
        """Plans one more action."""
        self.actions.append(Action(module, name, take, copies))

    def settle(self, for_now: bool = False) -> None:
        """Takes the actions so far; none if there are errors.

        Args:
            for_now: Whether errors may follow, after which ``put_back`` undoes them.
        """
        if self:
            return
        rest, action, interrupt = iter(self.actions), None, None
        with no_grad():
            while True:
                try:
                    for action in rest:
                        module, name, take, copies = action
                        if for_now and name is not None and not is_lazy(old := attributes(module)[name]):
                            self._before.append((module, name, old, old.detach().clone() if copies else None))
                        take()
                    break
                except KeyboardInterrupt as found:  # answered after the last one: no state is half-loaded
                    interrupt = interrupt or found
                    if action is not None and action.name is not None:  # none of a program's own
                        action.take()
        self.actions.clear()
        if interrupt is not None:
            raise interrupt

    def put_back(self) -> None:
        """Undoes what was settled for now."""
        with no_grad():
            for module, name, old, values in reversed(self._before):
                if name in attributes(module):
                    attributes(module)[name] = old
                if values is not None:
                    old.copy_(values)


def only_edits(loader: Any) -> Any:
    """Marks a ``_load_from_state_dict`` that edits the state, calls its base's and looks at nothing loaded."""
    loader.only_edits = True
    return loader


def _looks_at_loaded(module: Module) -> bool:
    """Whether a loader may use what was loaded before it, or what its base's loader loads."""
    return not getattr(module._load_from_state_dict, "only_edits", False)


class Stateful:
    """The saving and loading of ``Module``."""

    _state_hooks: dict[str, OrderedDict[int, Any]] | None = None

    _state_dict_pre_hooks = state_hook_property("state_pre")
    _state_dict_hooks = state_hook_property("state_post")
    _load_state_dict_pre_hooks = state_hook_property("load_pre")
    _load_state_dict_post_hooks = state_hook_property("load_post")

    # Saving

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> OrderedDict[str, Any]:
        """Returns all parameters and persistent buffers by dotted name; the tensors are shared, not copied.

        Args:
            destination: Mapping to add to.
            prefix: Text put before every name.
            keep_vars: Whether to keep gradients' history, instead of detaching.
        """
        for name, value in zip(("destination", "prefix", "keep_vars"), args, strict=False):
            if name == "destination":
                destination = value
            elif name == "prefix":
                prefix = value
            else:
                keep_vars = value
        module: Module = self  # type: ignore[assignment]
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": module._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        if module._state_hooks:
            for hook in module._hooks_of("state_pre"):
                hook(module, prefix, keep_vars)
        module._save_to_state_dict(destination, prefix, keep_vars)
        names = module._module_names
        values = attributes_with(module, names)
        for name in names:
            child = values[name]
            if child is not None:
                child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        if module._state_hooks:
            for hook in module._hooks_of("state_post"):
                changed = hook(module, destination, prefix, metadata)
                destination = destination if changed is None else changed
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, value in _persistent(self):
            destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def get_extra_state(self) -> Any:
        """What else belongs into ``state_dict``; a subclass that defines it also defines ``set_extra_state``."""
        raise NotImplementedError(f"{type(self).__name__} defines no get_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Takes back what ``get_extra_state`` returned."""
        raise NotImplementedError(f"{type(self).__name__} defines no set_extra_state")

    # Loading

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copies ``state_dict`` into the parameters and buffers, or changes nothing.

        Everything is checked first; all problems are reported in one error. A module with a ``_load_from_state_dict``
        of its own finds what stands before it loaded, which is undone when there are problems further on.

        Args:
            state_dict: Tensors by dotted name, as ``state_dict`` returns them.
            strict: Whether the names must match exactly.
            assign: Whether to take the given tensors themselves instead of copying their values.

        Returns:
            The names that were missing and those that had no place.

        Raises:
            TypeError: ``state_dict`` is no mapping.
            RuntimeError: Names (when strict), shapes or types do not fit; the module is as before.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        module: Module = self  # type: ignore[assignment]
        missing: list[str] = []
        unexpected: list[str] = []
        plan = LoadPlan()
        source = OrderedDict(state_dict)
        metadata = getattr(state_dict, "_metadata", None)
        if metadata is not None:
            source._metadata = metadata  # type: ignore[attr-defined]
        try:
            _plan_below(module, source, "", metadata or {}, strict, assign, (missing, unexpected, plan))
        except BaseException:  # of a module's own loader
            plan.put_back()
            raise
        result = IncompatibleKeys(missing, unexpected)
        hooked = [below for below in _children_first(module) if below._hooks_of("load_post")]
        if not hooked:
            _raise_if_bad(module, result, plan, strict)
        # Hooks may still clear names that are missing: they are called before these are told of.
        plan.settle()
        for below in hooked:
            for hook in below._hooks_of("load_post"):
                if hook(below, result) is not None:
                    raise RuntimeError(
                        "load_state_dict: a post-hook must return None; it may edit the keys in place"
                    )
        _raise_if_bad(module, result, plan, strict)
        return result

    @only_edits
    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Checks this module's own part and plans its copies; a subclass may edit ``state_dict`` before."""
        module: Module = self  # type: ignore[assignment]
        for hook in module._hooks_of("load_pre"):
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        plan = error_msgs if isinstance(error_msgs, LoadPlan) else LoadPlan()
        assign = local_metadata.get("assign_to_params_buffers", False)
        own = dict(_persistent(module))
        for name, target in own.items():
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            source = _as_number(target, state_dict[key])
            problem = _mismatch(key, target, source, assign)
            if problem:
                error_msgs.append(problem)
            elif assign:
                plan.add(module, name, _assigning(module, name, target, source))
            else:
                _warn_of_meta(key, target, source)
                plan.add(module, name, _copying(target, source), copies=True)
        if type(self).set_extra_state is not Stateful.set_extra_state:
            key = prefix + _EXTRA_STATE_KEY_SUFFIX
            if key in state_dict:
                plan.add(module, None, lambda: self.set_extra_state(state_dict[key]))
            elif strict:
                missing_keys.append(key)
        elif strict and prefix + _EXTRA_STATE_KEY_SUFFIX in state_dict:
            unexpected_keys.append(prefix + _EXTRA_STATE_KEY_SUFFIX)
        if strict:
            unexpected_keys.extend(_without_place(module, state_dict, prefix, own))
        if plan is not error_msgs:
            plan.settle()
        elif _looks_at_loaded(module):
            plan.settle(for_now=True)

    # Hooks

    def _hooks_of(self, kind: str) -> list[Any]:
        hooks = self._state_hooks
        return list(hooks[kind].values()) if hooks and kind in hooks else []

    def _add_state_hook(self, kind: str, hook: Any) -> RemovableHandle:
        if self._state_hooks is None:
            self._state_hooks = {}
        return add_hook(self._state_hooks.setdefault(kind, OrderedDict()), hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, prefix, keep_vars)`` before ``state_dict`` collects this module."""
        return self._add_state_hook("state_pre", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, state_dict, prefix, local_metadata)`` after ``state_dict`` collected this module."""
        return self._add_state_hook("state_post", hook)

    _register_state_dict_hook = register_state_dict_post_hook

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors)`` first."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        return self._add_state_hook("load_pre", _WrappedHook(hook, self if with_module else None))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, incompatible_keys)`` after loading; it may edit the lists."""
        return self._add_state_hook("load_post", hook)


# An instance's real ``__dict__``, and how to give it another (see Note [The dict of a module is asked for late]).
attributes: Callable[[Any], dict[str, Any]] = Stateful.__dict__["__dict__"].__get__
replace_attributes: Callable[[Any, dict[str, Any]], None] = Stateful.__dict__["__dict__"].__set__


def attributes_with(module: Any, names: Collection[str]) -> Mapping[str, Any]:
    """The attributes among which the members of these names stand; without names it does not ask for any."""
    return attributes(module) if names else {}


def _persistent(module: Any) -> list[tuple[str, Tensor]]:
    """The tensors of one module that its state holds, with their names."""
    parameters, buffers = module._parameter_names, module._buffer_names
    values = attributes_with(module, parameters or buffers)
    found = [(name, values[name]) for name in parameters if values[name] is not None]
    for name, keep in buffers.items():
        if keep and values[name] is not None:
            found.append((name, values[name]))
    return found


def _plan_below(
    module: Module,
    state: dict[str, Any],
    prefix: str,
    metadata: Mapping[str, Any],
    strict: bool,
    assign: bool,
    report: tuple[list[str], list[str], LoadPlan],
) -> None:
    local = dict(metadata.get(prefix[:-1], {}))
    if assign:
        local["assign_to_params_buffers"] = True
    if _looks_at_loaded(module):
        report[2].settle(for_now=True)
    module._load_from_state_dict(state, prefix, local, True, *report)
    for name, child in module._modules.items():
        if child is not None:
            below = f"{prefix}{name}."
            part = {key: value for key, value in state.items() if key.startswith(below)}
            _plan_below(child, part, below, metadata, strict, assign, report)


def _as_number(target: Tensor, source: Any) -> Any:
    """What a state has for ``target``: for a number also a vector of one, as old checkpoints keep numbers."""
    old = (
        isinstance(source, Tensor)
        and not is_lazy(target)
        and target.dim() == 0
        and not is_lazy(source)
        and tuple(source.shape) == (1,)
    )
    return source[0] if old else source


def _while_copying(key: str) -> str:
    return f'While copying the parameter named "{key}"'


def _mismatch(key: str, target: Tensor, source: Any, assign: bool) -> str | None:
    """Why a value does not fit, in words that programs take apart; None if it fits."""
    # What stands for a tensor until somebody uses it can be copied, and only a tensor can be taken itself.
    stands_in = not isinstance(source, Tensor)
    if stands_in and (assign or not hasattr(type(source), "__torch_function__")):
        return (
            f"{_while_copying(key)}, expected torch.Tensor or Tensor-like object from checkpoint but received "
            f"{type(source)}"
        )
    if is_lazy(target):
        return None
    if tuple(source.shape) != tuple(target.shape):
        given, expected = (f"torch.Size({list(x.shape)})" for x in (source, target))
        return (
            f"size mismatch for {key}: copying a param with shape {given} from checkpoint, the shape in current model "
            f"is {expected}."
        )
    if not stands_in and source.is_complex() and not target.is_complex():
        return f"{_while_copying(key)}, found dtype {source.dtype}, expected {target.dtype}"
    if not assign and getattr(source, "is_meta", False) and not getattr(target, "is_meta", True):
        return (
            f"{_while_copying(key)}, the checkpoint's tensor is on meta: Cannot copy out of meta tensor; no data! "
            "With assign=True load_state_dict takes it itself"
        )
    return None


def _warn_of_meta(key: str, target: Tensor, source: Any) -> None:
    if getattr(target, "is_meta", False) and not getattr(source, "is_meta", True):
        warnings.warn(
            f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, "
            "which has no memory, changes nothing; give load_state_dict assign=True to take the checkpoint's tensors "
            "themselves",
            stacklevel=2,
        )


def _copying(target: Tensor, source: Tensor) -> Callable[[], Any]:
    if not is_lazy(target):
        return lambda: target.copy_(source)

    def take_shape() -> None:
        if not is_lazy(source):
            target.materialize(source.shape)  # type: ignore[attr-defined]
            target.copy_(source)

    return take_shape


def _assigning(module: Module, name: str, target: Tensor, source: Tensor) -> Callable[[], Any]:
    def assign() -> None:
        value = source
        if isinstance(target, Parameter) and isinstance(source, Parameter):
            source.requires_grad_(target.requires_grad)
        elif isinstance(target, Parameter):
            value = Parameter(source.detach(), requires_grad=target.requires_grad)
        elif isinstance(target, Buffer) and not isinstance(source, Buffer):
            value = Buffer(source, persistent=target.persistent)
        attributes(module)[name] = value

    return assign


def _without_place(module: Module, state: dict[str, Any], prefix: str, own: dict[str, Any]) -> list[str]:
    """The keys under ``prefix`` that belong neither to this module nor to a submodule."""
    unknown = []
    for key in state:
        if key.startswith(prefix) and key != prefix + _EXTRA_STATE_KEY_SUFFIX:
            first, dot, _rest = key[len(prefix) :].partition(".")
            if (first not in module._module_names) if dot else (first not in own):
                unknown.append(key)
    return unknown


def _raise_if_bad(module: Module, result: IncompatibleKeys, plan: LoadPlan, strict: bool) -> None:
    problems = list(plan)
    if strict and result.unexpected_keys:
        problems.insert(0, f"Unexpected key(s) in state_dict: {_quoted(result.unexpected_keys)}. ")
    if strict and result.missing_keys:
        problems.insert(0, f"Missing key(s) in state_dict: {_quoted(result.missing_keys)}. ")
    if problems:
        plan.put_back()
        raise RuntimeError(
            "\n\t".join([f"Error(s) in loading state_dict for {type(module).__name__}:", *problems])
        )


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)


def _children_first(module: Module) -> Iterator[Module]:
    for child in module.children():
        yield from _children_first(child)
    yield module
