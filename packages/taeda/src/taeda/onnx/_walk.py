"""Writes the graph of what a program did as a graph of ONNX.

The recorded functions run once more on the example inputs, so that each is written with the shapes and dtypes that it
met. What depends on no input and no parameter becomes a constant. Sizes are constants too, unless the caller names axes
that may vary: then they are read from the tensors' shapes.
"""

from __future__ import annotations

import operator
import types
from typing import Any

from taeda.func import _vmap
from taeda.fx._record import record
from taeda.fx.node import map_aggregate, map_arg
from taeda.onnx import _draws, _shapes, _table
from taeda.onnx._graph import GraphWriter, Value
from taeda.onnx.errors import OnnxExporterError, UnsupportedOperatorError
from taeda.utils import _pytree
from taeda_registry.slots import tensor

__all__ = ["Walk", "custom"]

_ARITHMETIC = {
    operator.add: "Add", operator.sub: "Sub", operator.mul: "Mul", operator.floordiv: "Div", operator.mod: "Mod",
}  # fmt: skip

#: Functions whose results are elements of the first argument in other places, and zeros.
_REARRANGE = frozenset({
    "as_strided", "channel_shuffle", "diag", "diag_embed", "diagonal", "im2col", "rot90", "take", "unfold",
})  # fmt: skip

#: Functions that programs have registered, by (`library::operator`, opset).
custom: dict[tuple[str, int], Any] = {}


class Walk:
    """Writes graphs node by node.

    Args:
        g: The graph of ONNX.
        module: A recorded graph module.
    """

    def __init__(self, g: GraphWriter, module: Any) -> None:
        self.g, self.module = g, module
        self.real: dict[Any, Any] = {}
        self.made: dict[Any, Any] = {}

    def run(self, leaves: list[Any]) -> Any:
        """Write the graph; its result, with values of ONNX in it.

        Args:
            leaves: For every input a value of ONNX, or what else it is.
        """
        rest = iter(leaves)
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                self._note(node, _real(item := next(rest)), item)
            elif node.op == "get_attr":
                self._attribute(node)
            elif node.op == "output":
                return map_arg(node.args[0], self.made.__getitem__)
            else:
                self._call(node)
        return None

    def _note(self, node: Any, real: Any, made: Any) -> None:
        self.real[node], self.made[node] = real, made

    def _attribute(self, node: Any) -> None:
        value: Any = self.module
        for part in node.target.split("."):
            value = getattr(value, part)
        known = node.target.startswith("_tensor_constant")
        self._note(node, value, self.g.constant(value) if known else self.g.parameter(node.target, value))

    def _call(self, node: Any) -> None:
        if node.target in _vmap.STEPS:
            raise UnsupportedOperatorError("onnx.export: vmap has no counterpart in ONNX here")
        real_args, real_kwargs = map_arg((node.args, node.kwargs), self.real.__getitem__)
        args, kwargs = map_arg((node.args, node.kwargs), self.made.__getitem__)
        method = node.op == "call_method"
        target = getattr(real_args[0], node.target) if method else node.target
        result = target(*(real_args[1:] if method else real_args), **real_kwargs)
        self.real[node] = result
        self.made[node] = self._written(node, args, kwargs, result)

    def _written(self, node: Any, args: Any, kwargs: Any, result: Any) -> Any:
        if node.target is operator.getitem and not isinstance(args[0], Value):
            return args[0][args[1]]
        name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
        if not _depends((args, kwargs)) and name not in _draws.DRAWING:
            return self._folded(result)
        if not _has_tensor(result) and result is not None:
            return self._number(node, args, result) if self.g.dynamic else result
        if node.target is getattr:
            name, args = args[1], args[:1]
        changes = name.endswith("_") and not name.endswith("__")
        plain = name[:-1] if changes and name not in _draws.DRAWING else name
        if node.target is setattr or kwargs.get("out") is not None:
            raise UnsupportedOperatorError(f"onnx.export: {name} with these arguments cannot be written")
        made = self._named(node, plain, args, kwargs, result if result is not None else _real(args[0]))
        if changes or name in ("__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__") or (
            kwargs.get("inplace") is True
        ):  # fmt: skip
            self._exchange(node, args[0], made)
        return made

    def _folded(self, result: Any) -> Any:
        return map_aggregate(
            result, lambda item: self.g.constant(item) if isinstance(item, tensor.Tensor) else item
        )

    def _number(self, node: Any, args: Any, result: Any) -> Any:
        """A size, or a number made of sizes."""
        if node.target in _ARITHMETIC:
            made = self.g.op(_ARITHMETIC[node.target], *[self.g.cast(item, tensor.int64) for item in args])
            return Value(made.name, result)
        if node.target is operator.getitem:
            return result
        name = args[1] if node.target is getattr else node.target
        if name in ("shape", "size") and not isinstance(result, int):
            return [self.g.size(args[0], axis) for axis in range(len(result))]
        if name == "size":
            return self.g.size(args[0], args[0].dim(args[1]))
        if name in ("numel", "nelement"):
            return Value(self.g.op("Size", args[0]).name, result)
        return result

    def _named(self, node: Any, name: str, args: Any, kwargs: Any, result: Any) -> Any:
        functional = getattr(node.target, "__module__", "") or ""
        writer = None
        if node.op == "call_method":
            writer = _table.TABLE.get(f"Tensor.{name}")
        writer = writer or _table.find(name, functional.startswith(("taeda_nn", "torch.nn")))
        writer = self._registered(name) or writer
        self.g.result = result
        if writer is not None:
            try:
                made = writer(self.g, *args, **kwargs)
            except TypeError as error:
                raise OnnxExporterError(
                    f"onnx.export: {name} was called in a way that is not written: {error}"
                ) from error
            return _with_results(made, result)
        if name in _REARRANGE and not _depends((args[1:], kwargs)):
            return self._rearranged(node, args, kwargs, result)
        inner = getattr(node.target, "__wrapped__", node.target)
        if not isinstance(inner, types.FunctionType):
            where = f" ({node.stack_trace})" if node.stack_trace else ""
            raise UnsupportedOperatorError(f"onnx.export: {name} has no counterpart in ONNX here{where}")
        return self._taken_apart(name, inner, args, kwargs)

    def _rearranged(self, node: Any, args: Any, kwargs: Any, result: Any) -> Value:
        """Elements chosen by the places that the function gives to the numbers from one on."""
        source = args[0]
        if self.g.dynamic:
            raise UnsupportedOperatorError(
                f"onnx.export: {node.name} is written for sizes that do not vary alone"
            )
        count = source.real.numel()
        numbers = tensor.arange(1, count + 1, dtype=tensor.float64).reshape(source.shape)
        rest = map_aggregate((args[1:], kwargs), _real)
        target = getattr(numbers, node.target) if node.op == "call_method" else node.target
        places = target(*(rest[0] if node.op == "call_method" else (numbers, *rest[0])), **rest[1]).long()
        flat = self.g.op("Reshape", source, self.g.constant([-1], tensor.int64))
        if bool((places == 0).any()):
            flat = self.g.op("Concat", self.g.constant(tensor.zeros(1, dtype=source.dtype)), flat, axis=0)
        else:
            places = places - 1
        return Value(self.g.op("Gather", flat, self.g.constant(places), axis=0).name, result)

    def _registered(self, name: str) -> Any:
        found = [
            (opset, fn) for (full, opset), fn in custom.items()
            if full.rpartition("::")[2] == name and opset <= self.g.opset
        ]  # fmt: skip
        return max(found, key=lambda pair: pair[0])[1] if found else None

    def _taken_apart(self, name: str, function: Any, args: Any, kwargs: Any) -> Any:
        """What a function of Python does, written piece by piece."""
        real_args, real_kwargs = map_aggregate((args, kwargs), _real)
        done = record(function, tuple(real_args), dict(real_kwargs))
        if done.module is None:
            raise UnsupportedOperatorError(f"onnx.export: {name} cannot be taken apart: {done.failure}")
        leaves = _pytree.tree_flatten((*args, *kwargs.values()))[0]
        return Walk(self.g, done.module).run(leaves)

    def _exchange(self, node: Any, old: Any, new: Any) -> None:
        """Let a changed tensor stand wherever it stood, and in the tensor that it is a part of."""
        for key, value in self.made.items():
            if value is old:
                self.made[key] = new
        origin = node.args[0]
        if getattr(origin, "target", None) != "__getitem__":
            return
        base, index = map_arg(origin.args, self.made.__getitem__)
        if not self.real[origin]._is_view() or not isinstance(base, Value):
            return
        self.g.result = base.real
        whole = _shapes._setitem(self.g, base, index, new)
        whole.real = base.real
        self._exchange(origin, base, whole)


def _real(item: Any) -> Any:
    return item.real if isinstance(item, Value) else item


def _leaves(item: Any) -> list[Any]:
    found: list[Any] = []
    if isinstance(item, slice):
        item = (item.start, item.stop, item.step)
    if isinstance(item, (tuple, list)):
        for part in item:
            found += _leaves(part)
    elif isinstance(item, dict):
        found = _leaves(list(item.values()))
    else:
        found = [item]
    return found


def _depends(item: Any) -> bool:
    return any(isinstance(leaf, Value) and not leaf.known for leaf in _leaves(item))


def _has_tensor(item: Any) -> bool:
    return any(isinstance(leaf, tensor.Tensor) for leaf in _leaves(item))


def _with_results(made: Any, result: Any) -> Any:
    if isinstance(made, Value):
        if made.real is not result and not made.known:
            return Value(made.name, result)
        return made
    return [_with_results(item, real) for item, real in zip(made, result, strict=False)]
