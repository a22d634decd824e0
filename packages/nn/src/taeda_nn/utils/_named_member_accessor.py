"""Tensors and submodules of a module by their dotted names, past the checks of assignment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from taeda_nn._bind import Tensor
from taeda_nn.modules.module import Module

_MISSING: Any = object()


def _check(module: Any, name: str) -> None:
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of taeda.nn.Module")
    if "." in name:
        raise KeyError("tensor name can't contain '.'")
    if name == "":
        raise KeyError("tensor name can't be empty string ''")


def _held(module: Module, name: str) -> Any:
    value = module.__dict__.get(name, _MISSING)
    if value is _MISSING or name in module._modules:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if not isinstance(value, Tensor) and value is not None:
        raise TypeError(f"{value} is not an instance of taeda.Tensor")
    return value


def swap_tensor(module: Module, name: str, tensor: Tensor | None, allow_missing: bool = False) -> Any:
    """Put a tensor in the place of a parameter, buffer or attribute; gives the one before.

    Args:
        module: The module itself. name: Of its attribute, without dots. tensor: None only takes away.
        allow_missing: Nothing need be there; what is given for nothing stays there.

    Raises:
        TypeError: No module, or another thing than a tensor. KeyError: Such a name cannot be.
        AttributeError: The module has nothing of that name.
    """
    _check(module, name)
    if not (isinstance(tensor, Tensor) or tensor is None):
        raise TypeError(f"{tensor} is not an instance of taeda.Tensor")
    values = module.__dict__
    if name not in values and allow_missing:
        before: Any = None
    else:
        before = _held(module, name)
    if tensor is not None:
        values[name] = tensor
    elif name in module._parameters or name in module._buffers:
        values[name] = None
    else:
        values.pop(name, None)
    return before


def set_tensor(module: Module, name: str, tensor: Tensor) -> None:
    """`swap_tensor` without a result; what was not there before is added.

    Raises:
        TypeError: No module or no tensor. KeyError: Such a name cannot be.
    """
    _check(module, name)
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of taeda.Tensor")
    module.__dict__[name] = tensor


def swap_submodule(module: Module, name: str, submodule: Module) -> Module:
    """Put a module in the place of a submodule; gives the one before.

    Raises:
        TypeError: No module. KeyError: There is no submodule of that name.
    """
    _check(module, name)
    if not isinstance(submodule, Module):
        raise TypeError(f"{submodule} is not an instance of taeda.nn.Module")
    if name not in module._modules:
        raise KeyError(f"submodule {name} does not exist")
    before = module._modules[name]
    module._modules[name] = submodule
    return before


class NamedMemberAccessor:
    """Reads and replaces what lies anywhere in a module, by dotted names.

    Args:
        module: The outermost.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.memo: dict[str, Module] = {"": module}

    def get_submodule(self, name: str) -> Module:
        """The module of that name; AttributeError where there is none."""
        if name not in self.memo:
            self.memo[name] = self.module.get_submodule(name)
        return self.memo[name]

    def _at(self, name: str) -> tuple[Module, str]:
        path, _, last = name.rpartition(".")
        return self.get_submodule(path), last

    def swap_submodule(self, path: str, value: Module) -> Module:
        """Put a module in the place of another; gives the one before."""
        owner, last = self._at(path)
        self.memo.clear()
        self.memo[""] = self.module
        return swap_submodule(owner, last, value)

    def get_tensor(self, name: str) -> Any:
        """The parameter, buffer or tensor of that name; AttributeError where there is none."""
        return _held(*self._at(name))

    def set_tensor(self, name: str, value: Tensor) -> None:
        """Put a tensor there."""
        owner, last = self._at(name)
        set_tensor(owner, last, value)

    def del_tensor(self, name: str) -> None:
        """Take the tensor away; AttributeError where there is none."""
        owner, last = self._at(name)
        _held(owner, last)
        delattr(owner, last)

    def swap_tensor(self, name: str, value: Tensor | None, allow_missing: bool = False) -> Any:
        """Put a tensor there; gives the one before."""
        owner, last = self._at(name)
        return swap_tensor(owner, last, value, allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[Any]:
        """The tensors of these names."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[Tensor]) -> None:
        """Put tensors there; ValueError for other numbers of names and tensors."""
        for name, value in zip(tuple(names), tuple(values), strict=True):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors: dict[str, Tensor]) -> None:
        """Put tensors there, by name."""
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names: Iterable[str]) -> None:
        """Take tensors away."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(
        self, names: Iterable[str], values: Iterable[Any], allow_missing: bool = False
    ) -> list[Any]:
        """Put tensors there; gives those before."""
        return [
            self.swap_tensor(name, value, allow_missing)
            for name, value in zip(tuple(names), tuple(values), strict=True)
        ]

    def swap_tensors_dict(
        self, named_tensors: dict[str, Any], allow_missing: bool = False
    ) -> tuple[dict[str, Any], list[str]]:
        """Put tensors there, by name; gives those before, and the names that were missing."""
        before: dict[str, Any] = {}
        missing = []
        for name, value in named_tensors.items():
            try:
                before[name] = self.swap_tensor(name, value, allow_missing=False)
            except AttributeError:
                if not allow_missing:
                    for done, old in before.items():
                        self.swap_tensor(done, old, allow_missing=True)
                    raise
                missing.append(name)
        return before, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """Names of the module's tensors that are not among `keys`, and those among `keys` that it does not have."""
        given, valid = set(keys), {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(valid - given), sorted(given - valid)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The module's parameters."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The module's buffers."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The module's parameters and buffers."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """The module and those below."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)
