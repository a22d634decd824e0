"""Containers: modules and parameters held in sequence or by name."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from taeda_nn._bind import Tensor
from taeda_nn.modules._state import attributes
from taeda_nn.modules.module import Module
from taeda_nn.parameter import Parameter

__all__ = [
    "Container",
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "Sequential",
]


def _position(length: int, index: Any, owner: str) -> int:
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"{owner}: index {index} is out of range for length {length}")
    return index % length if length else index


class _Numbered(Module):
    """What Sequential and ModuleList share: submodules named "0", "1", ..."""

    def _name_at(self, index: Any) -> str:
        names = self._module_names
        return next(islice(names, _position(len(names), index, type(self).__name__), None))

    # What programs call that derive containers of their own.

    def _get_abs_string_index(self, idx: Any) -> str:
        """The name of the module at a position."""
        return self._name_at(idx)

    def _get_item_by_idx(self, iterator: Iterable[Any], idx: Any) -> Any:
        """What stands at a position among as many items as there are modules."""
        return next(islice(iterator, _position(len(self), idx, type(self).__name__), None))

    def _replace_all(self, modules: Iterable[Module]) -> None:
        self._modules = {str(i): module for i, module in enumerate(modules)}  # at once, or not at all

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._sliced(list(self._modules.items())[index])
        return attributes(self)[self._name_at(index)]

    def _sliced(self, items: list[tuple[str, Module]]) -> Any:
        return type(self)(*(module for _name, module in items))

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index: Any) -> None:
        modules = list(self._modules.values())
        if not isinstance(index, slice):
            index = _position(len(modules), index, type(self).__name__)
        del modules[index]
        self._replace_all(modules)

    def __len__(self) -> int:
        return len(self._module_names)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def append(self, module: Module) -> Any:
        """Adds a module at the end and returns the container."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Inserts a module before position ``index`` and returns the container."""
        modules = list(self._modules.values())
        if not isinstance(module, Module):
            raise TypeError(f"{type(self).__name__}.insert: expected a Module, got {type(module).__name__}")
        if not -len(modules) <= index <= len(modules):
            raise IndexError(
                f"{type(self).__name__}.insert: index {index} is out of range for length {len(modules)}"
            )
        modules.insert(index, module)
        self._replace_all(modules)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Adds modules at the end and returns the container."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{type(self).__name__}.extend: expected an iterable, got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, key: Any = -1) -> Module:
        """Removes and returns the module at index ``key``."""
        module = self[key]
        del self[key]
        return module

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]


class Container(Module):
    """Deprecated: a module with the given submodules."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        warnings.warn("Container is deprecated: derive from Module", FutureWarning, stacklevel=2)
        for name, module in kwargs.items():
            self.add_module(name, module)


class Sequential(_Numbered):
    """Applies modules one after another, each to the previous one's result.

    Args:
        *args: Modules, or one ordered mapping from names to modules.

    Example:
        >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def forward(self, input: Any) -> Any:
        """Returns the last module's result."""
        modules = attributes(self)
        for name in self._module_names:
            input = modules[name](input)
        return input

    def _sliced(self, items: list[tuple[str, Module]]) -> Sequential:
        return type(self)(OrderedDict(items))

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"Sequential + : expected a Sequential, got {type(other).__name__}")
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"Sequential += : expected a Sequential, got {type(other).__name__}")
        return self.extend(other)

    def _times(self, count: Any) -> list[Module]:
        if not isinstance(count, int):
            raise TypeError(f"Sequential * : expected an int, got {type(count).__name__}")
        if count <= 0:
            raise ValueError(f"Sequential * : expected a positive number, got {count}")
        return [module for _ in range(count) for module in self]

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*self._times(other))

    def __rmul__(self, other: int) -> Sequential:
        return self * other

    def __imul__(self, other: int) -> Sequential:
        return self.extend(self._times(other)[len(self) :])


class ModuleList(_Numbered):
    """A list of modules, all of them registered; it has no forward.

    Example:
        >>> layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _sliced(self, items: list[tuple[str, Module]]) -> ModuleList:
        return type(self)(module for _name, module in items)

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        texts = [repr(module) for module in self]
        if not texts:
            return f"{self._get_name()}()"
        lines, start = [], 0
        for i in range(1, len(texts) + 1):
            if i == len(texts) or texts[i] != texts[start]:
                label = f"({start})" if i - start == 1 else f"({start}-{i - 1})"
                count = "" if i - start == 1 else f"{i - start} x "
                lines.append(f"{label}: {count}{texts[start]}".replace("\n", "\n  "))
                start = i
        return "\n  ".join([f"{self._get_name()}(", *lines]) + "\n)"


def _pairs(source: Any, owner: str) -> list[tuple[str, Any]]:
    if isinstance(source, Module) and hasattr(source, "items"):
        return list(source.items())
    if isinstance(source, Mapping):
        return list(source.items())
    if not isinstance(source, Iterable):
        raise TypeError(
            f"{owner}.update: expected a mapping or an iterable of pairs, got {type(source).__name__}"
        )
    pairs = []
    for i, pair in enumerate(source):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{owner}.update: element {i} must be a pair, got {type(pair).__name__}")
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(f"{owner}.update: element {i} must have length 2, got {len(pair)}")
        pairs.append(pair)
    return pairs


class ModuleDict(Module):
    """A dictionary of modules, in order of insertion, all of them registered; it has no forward.

    Example:
        >>> choices = nn.ModuleDict({"conv": nn.Conv2d(10, 10, 3), "pool": nn.MaxPool2d(3)})
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._module_names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._module_names

    def clear(self) -> None:
        """Removes all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Removes and returns the module called ``key``."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """The pairs (name, module)."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Adds the modules of a mapping or of an iterable of pairs."""
        for name, module in _pairs(modules, "ModuleDict"):
            self[name] = module


class ParameterList(Module):
    """A list of parameters; plain tensors become parameters, other values are kept as they are.

    Example:
        >>> weights = nn.ParameterList(nn.Parameter(torch.randn(3, 3)) for _ in range(2))
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, str(_position(self._size, index, "ParameterList")))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(_position(self._size, index, "ParameterList")), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, str(i)) for i in range(self._size)])

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def append(self, value: Any) -> ParameterList:
        """Adds a value at the end and returns the list."""
        setattr(self, str(self._size), _as_parameter(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Adds values at the end and returns the list."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend: expected an iterable, got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(f"  ({i}): {_described(value)}" for i, value in enumerate(self))

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        raise RuntimeError("ParameterList: a list of parameters cannot be called")


class ParameterDict(Module):
    """A dictionary of parameters, in order of insertion; plain tensors become parameters.

    Those given together as a plain dict stand in order of their names.

    Example:
        >>> weights = nn.ParameterDict({"left": torch.randn(3), "right": torch.randn(3)})
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"ParameterDict: key must be a str, got {type(key).__name__}")
        if key not in self._keys and hasattr(self, key):
            raise KeyError(f"ParameterDict: key {key!r} is the name of an attribute of ParameterDict")
        setattr(self, key, _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._keys.keys()

    def values(self) -> list[Any]:
        """The parameters."""
        return [self[key] for key in self._keys]

    def items(self) -> list[tuple[str, Any]]:
        """The pairs (name, parameter)."""
        return [(key, self[key]) for key in self._keys]

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter called ``key``, else ``default``."""
        return self[key] if key in self._keys else default

    def pop(self, key: str) -> Any:
        """Removes and returns the parameter called ``key``."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Removes and returns the pair (name, parameter) that was added last."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def copy(self) -> ParameterDict:
        """A dictionary of the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dictionary in which every one of ``keys`` has the value ``default``."""
        return ParameterDict((key, default) for key in keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __or__(self, other: ParameterDict) -> ParameterDict:
        joined = self.copy()
        joined.update(other)
        return joined

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        joined = other.copy()
        joined.update(self)
        return joined

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self

    def clear(self) -> None:
        """Removes all parameters."""
        for key in tuple(self._keys):
            del self[key]

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter called ``key``; put there from ``default`` if absent."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def update(self, parameters: Any) -> None:
        """Adds the parameters of a mapping (of a plain dict in order of their names) or of an iterable of pairs."""
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            parameters = sorted(parameters.items())
        for key, value in _pairs(parameters, "ParameterDict"):
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(f"  ({key}): {_described(value, named=True)}" for key, value in self.items())

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict: a dictionary of parameters cannot be called")


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _described(value: Any, named: bool = False) -> str:
    """Words of PyTorch's: `named` tells the older name of a type in the place of the dtype."""
    if isinstance(value, Tensor):
        size = "x".join(str(n) for n in value.shape)
        kind = value.type() if named else value.dtype
        return f"{type(value).__name__} containing: [{kind} of size {size}]"
    return f"Object of type: {type(value).__name__}"
