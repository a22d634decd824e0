"""Parameters that are functions of others: modules put between what is learned and what is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from typing import Any

from taeda_nn._bind import Tensor, no_grad
from taeda_nn.modules._members import drop_member
from taeda_nn.modules.container import ModuleDict, ModuleList
from taeda_nn.modules.module import Module
from taeda_nn.parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cache_enabled = 0
# What has been computed, by the list of parametrizations that computed it: a module may end, or get others, meanwhile.
_cache: dict[ParametrizationList, Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """While inside, every parametrized tensor is computed once, whatever changes.

    Example:
        >>> with parametrize.cached():
        ...     loss = loss_of(model(x)) + model.weight.norm()
    """
    global _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache.clear()


def _register_parameter_or_buffer(module: Module, name: str, x: Tensor) -> None:
    if isinstance(x, Parameter):
        module.register_parameter(name, x)
    else:
        module.register_buffer(name, x)


def _maybe_set(dest: Tensor, src: Tensor) -> None:
    """Gives ``dest`` the values of ``src`` without a history."""
    with no_grad():
        dest.data = src.detach()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and what is learned in its place.

    Args:
        modules: The parametrizations; each is applied to the result of the one before.
        original: The tensor that they are put on.
        unsafe: Whether dtype and shape may change, and ``right_inverse`` is not checked.

    Attributes:
        original: What is learned; ``original0``, ``original1`` ... where ``right_inverse`` gives several.

    Raises:
        ValueError: No parametrization, or a dtype or number of tensors that does not fit.
    """

    original: Tensor
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList: at least one parametrization is needed")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with no_grad():
            new: Any = original
            for module in reversed(self):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):
                        new = module.right_inverse(new)
        if not isinstance(new, Tensor) and not isinstance(new, Sequence):
            raise ValueError(
                "ParametrizationList: right_inverse must return a Tensor or a sequence of Tensors, "
                f"found {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            self._check_dtype(original, new, dtype)
            _maybe_set(original, new)
            _register_parameter_or_buffer(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        f"ParametrizationList: element {i} of what right_inverse returned must be a Tensor, "
                        f"found {type(part).__name__}"
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part.detach(), original.requires_grad)
                part.requires_grad_(original.requires_grad)
                _register_parameter_or_buffer(self, f"original{i}", part)
        if not unsafe:
            self._check_result(shape, dtype)

    def _check_dtype(self, original: Tensor, new: Tensor, dtype: Any) -> None:
        if not self.unsafe and new.dtype != dtype:
            raise ValueError(
                f"ParametrizationList: right_inverse must keep the dtype {dtype}, found {new.dtype}; "
                "unsafe=True allows it"
            )

    def _check_result(self, shape: Any, dtype: Any) -> None:
        result = self()
        if not isinstance(result, Tensor):
            raise ValueError(
                f"ParametrizationList: a parametrization must give a Tensor, found {type(result).__name__}"
            )
        if result.dtype != dtype:
            raise ValueError(
                f"ParametrizationList: parametrizations must keep the dtype {dtype}, found {result.dtype}; "
                "unsafe=True allows it"
            )
        if result.shape != shape:
            raise ValueError(
                f"ParametrizationList: parametrizations must keep the shape {tuple(shape)}, "
                f"found {tuple(result.shape)}; unsafe=True allows it"
            )

    def right_inverse(self, value: Tensor) -> None:
        """Sets what is learned so that the parametrized tensor is ``value``, by the modules' ``right_inverse``.

        Raises:
            RuntimeError: A parametrization without ``right_inverse``.
            ValueError: A result that does not fit.
        """
        with no_grad():
            new: Any = value
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"right_inverse: {type(module).__name__} has no right_inverse, so that no value can be assigned"
                    )
                new = module.right_inverse(new)
            if self.is_tensor:
                if not isinstance(new, Tensor):
                    raise ValueError(f"right_inverse: expected a Tensor back, found {type(new).__name__}")
                if self.original.dtype != new.dtype:
                    raise ValueError(
                        f"right_inverse: expected dtype {self.original.dtype} back, found {new.dtype}"
                    )
                _maybe_set(self.original, new)
                return
            if not isinstance(new, Sequence) or len(new) != self.ntensors:
                raise ValueError(f"right_inverse: expected {self.ntensors} tensors back, found {new!r}")
            for i, part in enumerate(new):
                original = getattr(self, f"original{i}")
                if not isinstance(part, Tensor) or original.dtype != part.dtype:
                    raise ValueError(
                        f"right_inverse: expected a Tensor of dtype {original.dtype} as element {i}, found {part!r}"
                    )
                _maybe_set(original, part)

    def forward(self) -> Tensor:  # type: ignore[override]
        """The parametrized tensor."""
        if self.is_tensor:
            x = self[0](self.original)
        else:
            x = self[0](*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for i in range(1, len(self)):
            x = self[i](x)
        return x


def _inject_new_class(module: Module) -> None:
    """Gives a module a class of its own, which can carry properties."""
    cls: Any = module.__class__

    def default_deepcopy(self: Any, memo: dict[int, Any]) -> Any:
        # A class made here can be copied, but not pickled.
        known = memo.get(id(self))
        if known is not None:
            return known
        replica = self.__new__(self.__class__)
        memo[id(self)] = replica
        replica.__setstate__(deepcopy(self.__getstate__(), memo))
        return replica

    def getstate(self: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(): "
            f"{cls.__name__} is parametrized"
        )

    members: dict[str, Any] = {
        "__module__": register_parametrization.__module__,  # where this library stands
        "__reduce_ex__": lambda self, protocol: getstate(self),
    }
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = default_deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _inject_property(module: Module, tensor_name: str) -> None:
    """Lets attribute ``tensor_name`` of a module's own class give the parametrized tensor."""
    if hasattr(type(module), tensor_name) and isinstance(getattr(type(module), tensor_name), property):
        raise AssertionError(f"register_parametrization: {tensor_name!r} is a property already")

    def computed(self: Any) -> Tensor:
        held = self.parametrizations[tensor_name]
        if not _cache_enabled:
            return held()
        found = _cache.get(held)
        if found is None:
            found = _cache[held] = held()
        return found

    def assign(self: Any, value: Tensor) -> None:
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(computed, assign))


@contextmanager
def _whole(module: Module, tensor_name: str, original: Tensor) -> Iterator[None]:
    """Gives the module its parameter or buffer back, in its place, when the block does not come to its end."""
    members = module._buffers if tensor_name in module._buffers else module._parameters
    before, hidden = dict(members), tensor_name in module._non_persistent_buffers_set
    cls, is_first, data = type(module), not is_parametrized(module), original.data
    try:
        yield
    except BaseException:
        if is_first:
            module._modules.pop("parametrizations", None)
            module.__class__ = cls
        else:
            module.parametrizations._modules.pop(tensor_name, None)  # type: ignore[union-attr]
            if tensor_name in vars(cls):
                delattr(cls, tensor_name)
        original.data = data  # that of the inverse may be there by now
        members.clear()
        members.update(before)  # type: ignore[arg-type]
        if hidden:
            module._non_persistent_buffers_set.add(tensor_name)
        raise


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Puts a module between parameter or buffer ``tensor_name`` and its use; returns ``module``.

    Reading the attribute then gives ``parametrization(original)``, where ``original`` stands under
    ``module.parametrizations[tensor_name].original``. Assigning to it calls ``parametrization.right_inverse``, if there
    is one. Several may be registered one after another.

    Args:
        module: The module.
        tensor_name: Its parameter or buffer.
        parametrization: The function, as a module.
        unsafe: Whether dtype and shape may change.

    Raises:
        ValueError: No such parameter or buffer, or a parametrization that changes dtype or shape.

    Example:
        >>> class Symmetric(nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).T
        >>> layer = parametrize.register_parametrization(nn.Linear(5, 5), "weight", Symmetric())
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_further(module, tensor_name, parametrization)
        held: Any = module.parametrizations[tensor_name]  # type: ignore[index]
        held.append(parametrization)
        held.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        with _whole(module, tensor_name, original):
            made = ParametrizationList([parametrization], original, unsafe=unsafe)
            delattr(module, tensor_name)
            if not is_parametrized(module):
                _inject_new_class(module)
                module.parametrizations = ModuleDict()
            _inject_property(module, tensor_name)
            module.parametrizations[tensor_name] = made  # type: ignore[operator]
    else:
        raise ValueError(
            f"register_parametrization: {type(module).__name__} has no parameter, buffer or parametrized tensor "
            f"{tensor_name!r}"
        )
    return module


def _check_further(module: Module, tensor_name: str, parametrization: Module) -> None:
    """ValueError when a further parametrization changes dtype or shape, forward or backward."""
    now = getattr(module, tensor_name)
    with no_grad():
        result = parametrization(now)
    problems = [(result, "forward")]
    if hasattr(parametrization, "right_inverse"):
        try:
            back = parametrization.right_inverse(result)
            problems.append((back, "right_inverse"))
        except NotImplementedError:
            pass
    for found, what in problems:
        if not isinstance(found, Tensor):
            raise ValueError(
                f"register_parametrization: {what} of a further parametrization must give a Tensor, "
                f"found {type(found).__name__}"
            )
        if found.dtype != now.dtype or found.shape != now.shape:
            raise ValueError(
                f"register_parametrization: {what} must keep dtype and shape {now.dtype} {tuple(now.shape)}, found "
                f"{found.dtype} {tuple(found.shape)}; unsafe=True allows it"
            )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has parametrized tensors, or the one of this name is."""
    held = module.__dict__.get("parametrizations")
    if not isinstance(held, ModuleDict):
        return False
    return len(held) > 0 if tensor_name is None else tensor_name in held


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Takes all parametrizations of a tensor away; returns ``module``.

    Args:
        module: The module.
        tensor_name: The tensor.
        leave_parametrized: Whether it keeps the parametrized value, rather than the original.

    Raises:
        ValueError: It is not parametrized, or the original cannot be kept.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(
            f"remove_parametrizations: {tensor_name!r} of {type(module).__name__} is not parametrized"
        )
    parametrizations: Any = module.parametrizations
    held = parametrizations[tensor_name]
    if held.is_tensor:
        original = held.original
        if leave_parametrized:
            with no_grad():
                value = getattr(module, tensor_name)
            with no_grad():
                if type(original) is Tensor:
                    original.set_(value)
                else:
                    original.data = value.detach()
    else:
        if not leave_parametrized:
            raise ValueError(
                "remove_parametrizations: originals of several tensors cannot be kept: leave_parametrized must be True"
            )
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    computed = vars(type(module))[tensor_name]
    try:
        delattr(type(module), tensor_name)
        del parametrizations[tensor_name]
        _register_parameter_or_buffer(module, tensor_name, original)
    except BaseException:  # Ctrl-C in the midst of it
        drop_member(module, tensor_name)
        setattr(type(module), tensor_name, computed)
        parametrizations[tensor_name] = held
        raise
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that a module had before its first parametrization."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Gives a module the parametrizations, and the tensors below them, of another; returns ``to_module``.

    Args:
        from_module: The one that has them.
        to_module: The one that gets them.
        tensor_name: The tensor; by default all.
    """
    if not is_parametrized(from_module):
        return to_module
    held: Any = from_module.parametrizations
    names = list(held) if tensor_name is None else [tensor_name]
    for name in names:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        for function in held[name]:
            register_parametrization(to_module, name, function)
        target: Any = to_module.parametrizations[name]  # type: ignore[index]
        if held[name].is_tensor:
            target.original = held[name].original
        else:
            for i in range(held[name].ntensors):
                part = f"original{i}"
                setattr(target, part, getattr(held[name], part))
    return to_module
