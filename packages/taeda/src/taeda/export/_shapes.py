"""Other ways to say which sizes may vary: tensor by tensor, or by further inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from taeda.export._dims import Dim
from taeda.utils import _pytree
from taeda_registry.slots import tensor

if TYPE_CHECKING:
    from taeda.export._program import ExportedProgram

__all__ = ["AdditionalInputs", "ShapesCollection", "described"]


def _by_name(m: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The arguments of a module's call by their names."""
    from taeda.fx._record import _names

    return {**dict(zip(_names(m.forward, args, {}), args, strict=False)), **(kwargs or {})}


def described(dynamic_shapes: Any, m: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What is said of sizes, for each argument that is given, in the form that names them or in their order."""
    if isinstance(dynamic_shapes, (AdditionalInputs, ShapesCollection)):
        return dynamic_shapes.dynamic_shapes(m, args, kwargs)
    if not isinstance(dynamic_shapes, (dict, list, tuple)):
        return dynamic_shapes
    from taeda.fx._record import _parameters

    parameters = _parameters(m.forward)
    kinds = {p.kind: name for name, p in parameters.items()}
    rest, named = (
        kinds.get(kind) for kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    )
    if not isinstance(dynamic_shapes, dict):
        bound = inspect.signature(m.forward).bind(*args, **kwargs).arguments if parameters else {}
        if len(bound) != len(dynamic_shapes):
            return dynamic_shapes
        dynamic_shapes = dict(zip(bound, dynamic_shapes, strict=True))
    made = dict(dynamic_shapes)
    if isinstance(made.get(rest), (list, tuple)):
        made |= {f"{rest}_{index}": said for index, said in enumerate(made.pop(rest))}
    if named not in kwargs and isinstance(made.get(named), dict):
        made |= made.pop(named)
    return made


class ShapesCollection:
    """What is said of the sizes of tensors, which are named by themselves, wherever in the inputs they stand.

    Example:
        >>> shapes = taeda.export.ShapesCollection()
        >>> shapes[x] = {0: taeda.export.Dim("batch")}
        >>> program = taeda.export.export(model, ({"x": x, "others": [y]},), dynamic_shapes=shapes)
    """

    def __init__(self) -> None:
        self._shapes: dict[int, tuple[Any, Any]] = {}

    def __setitem__(self, t: Any, shape: Any) -> None:
        if not isinstance(t, tensor.Tensor):
            raise AssertionError(f"ShapesCollection: found a {type(t).__name__}, expected a tensor")
        _, known = self._shapes.get(id(t), (t, shape))
        if known != shape:
            raise AssertionError(f"Shapes assigned to input do not match: expected {known}, got {shape}")
        self._shapes[id(t)] = (t, shape)

    def __getitem__(self, t: Any) -> Any:
        return self._shapes.setdefault(id(t), (t, {}))[1]

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """What is said of the inputs of a module, by argument.

        Raises:
            ValueError: A tensor is not among the inputs.
        """
        found: set[int] = set()

        def said(leaf: Any) -> Any:
            found.add(id(leaf))
            return self._shapes.get(id(leaf), (leaf, None))[1]

        made = _pytree.tree_map(said, _by_name(m, args, kwargs))
        if set(self._shapes) - found:
            raise ValueError(
                "ShapesCollection: some tensors that were assigned shapes were not found in the inputs; they may have "
                "been copied on their way, or stand in containers that are not registered with utils._pytree"
            )
        return made


class AdditionalInputs:
    """Further inputs, by which it shows which sizes vary: those that are not the same in all.

    Example:
        >>> shapes = taeda.export.AdditionalInputs()
        >>> shapes.add((taeda.ones(5, 3),))
        >>> program = taeda.export.export(model, (taeda.ones(2, 3),), dynamic_shapes=shapes)
        >>> shapes.verify(program)
    """

    def __init__(self) -> None:
        self._examples: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def add(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        """Further arguments.

        Raises:
            AssertionError: `args` is no tuple, or `kwargs` no dict.
        """
        if type(args) is not tuple:
            raise AssertionError(f"Representative args {args} must be a tuple")
        if kwargs is not None and type(kwargs) is not dict:
            raise AssertionError(f"Representative kwargs {kwargs} must be None or a dict")
        self._examples.append((args, kwargs or {}))

    def dynamic_shapes(self, m: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """What the inputs of a module show of their sizes, by argument.

        Raises:
            ValueError: Tensors with other numbers of dimensions, or values that differ and are no tensors.
        """
        first = _by_name(m, args, kwargs)
        others = [_by_name(m, *example) for example in self._examples]
        return _pytree.tree_map(_varying, first, *others)

    def verify(self, ep: ExportedProgram) -> None:
        """Run an exported program on each of the inputs; AssertionError where it was not exported for one."""
        runs: Callable[..., Any] = ep.module()
        for args, kwargs in self._examples:
            runs(*args, **kwargs)


def _varying(first: Any, *others: Any) -> Any:
    """What several leaves at one place show."""
    if isinstance(first, tensor.Tensor) and all(isinstance(other, tensor.Tensor) for other in others):
        shapes = [tuple(leaf.shape) for leaf in (first, *others)]
        if len({len(shape) for shape in shapes}) == 1:
            sizes = [len(set(column)) > 1 for column in zip(*shapes, strict=True)]
            return tuple(Dim.DYNAMIC if varies else None for varies in sizes)
        raise ValueError(
            f"AdditionalInputs: tensors of the shapes {shapes}, expected one number of dimensions"
        )
    if any(type(other) is not type(first) or other != first for other in others):
        raise ValueError(
            "AdditionalInputs: The following inputs were found to have differing values, but they cannot be marked as "
            f"dynamic: {(first, *others)}."
        )
    return None
