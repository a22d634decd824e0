"""Functions that draw numbers as operators of ONNX (https://onnx.ai/onnx/operators): a run draws anew."""

from __future__ import annotations

from typing import Any

from taeda.fx import node
from taeda.onnx import _wire
from taeda.onnx._graph import GraphWriter, Value
from taeda.onnx._shapes import listed, sizes_of
from taeda.onnx._table import writes
from taeda_registry.slots import tensor

__all__ = ["DRAWING"]

#: Functions whose results are no constants though nothing in their arguments may vary, by name.
DRAWING = node.drawing | {
    "_sample_dirichlet", "_standard_gamma", "alpha_dropout", "bernoulli_", "binomial", "cauchy_", "dropout",
    "dropout1d", "dropout2d", "dropout3d", "exponential_", "feature_alpha_dropout", "feature_dropout", "geometric_",
    "log_normal_", "normal_", "random_", "rrelu", "rrelu_", "uniform_",
}  # fmt: skip

_SMALLEST = 1.1754944e-38


def _like(g: GraphWriter, kind: str, value: Any, low: float = 0.0, high: float = 1.0) -> Value:
    """Numbers in the shape of a value, in float32 where that holds none."""
    dtype = value.dtype if value.dtype.is_floating_point else tensor.float32
    named: dict[str, Any] = (
        {"mean": low, "scale": high} if kind == "RandomNormalLike" else {"low": low, "high": high}
    )
    made = g.op(kind, value, dtype=_wire.data_type(dtype), **named)
    return g.like(made, tensor.empty(value.shape, dtype=dtype, device="meta"))


def _uniform(g: GraphWriter, value: Any, low: float = 0.0) -> Value:
    return _like(g, "RandomUniformLike", value, low)


def _normal(g: GraphWriter, value: Any) -> Value:
    return _like(g, "RandomNormalLike", value)


def _exponential(g: GraphWriter, value: Any) -> Value:
    """-log of numbers above 0: infinity is not among them."""
    drawn = _uniform(g, value, _SMALLEST)
    return g.like(g.op("Neg", g.op("Log", drawn)), drawn.real)


def _scaled(g: GraphWriter, drawn: Value, factor: Any, shift: Any) -> Value:
    scaled = g.op("Mul", drawn, g.cast(factor, drawn.dtype))
    return g.cast(g.like(g.op("Add", scaled, g.cast(shift, drawn.dtype)), drawn.real), g.result.dtype)


def _room(g: GraphWriter, sizes: Any) -> Value:
    """A tensor of these sizes, to draw as many numbers."""
    dtype = g.result.dtype if g.result.dtype.is_floating_point else tensor.float32
    made = g.op("Expand", g.cast(0, dtype), g.ints(sizes))
    return g.like(made, tensor.empty(g.result.shape, dtype=dtype, device="meta"))


# --- of sizes, and in the shape of another ---


@writes("rand")
def _rand(g: GraphWriter, *size: Any, **named: Any) -> Value:
    return _uniform(g, _room(g, sizes_of(size, named)))


@writes("randn")
def _randn(g: GraphWriter, *size: Any, **named: Any) -> Value:
    return _normal(g, _room(g, sizes_of(size, named)))


@writes("rand_like")
def _rand_like(g: GraphWriter, input: Value, **_: Any) -> Value:
    return _uniform(g, g.cast(input, g.result.dtype))


@writes("randn_like")
def _randn_like(g: GraphWriter, input: Value, **_: Any) -> Value:
    return _normal(g, g.cast(input, g.result.dtype))


def _whole(g: GraphWriter, room: Value, low: Any, high: Any) -> Value:
    low, high = (low, high) if high is not None else (0, low)
    scaled = g.op("Mul", _uniform(g, room), g.cast(high - low, room.dtype))
    floored = g.op("Floor", g.op("Add", scaled, g.cast(low, room.dtype)))
    return g.cast(g.like(floored, room.real), g.result.dtype)


@writes("randint")
def _randint(g: GraphWriter, low: Any, high: Any, size: Any = None, **_: Any) -> Value:
    if size is None:
        low, high, size = low, None, high
    return _whole(g, _room(g, listed((size,))), low, high)


@writes("randint_like")
def _randint_like(g: GraphWriter, input: Value, low: Any, high: Any = None, **_: Any) -> Value:
    room = input if input.dtype.is_floating_point else g.cast(input, tensor.float32)
    return _whole(g, room, low, high)


@writes("randperm")
def _randperm(g: GraphWriter, n: Any, **_: Any) -> Value:
    room = g.like(
        g.op("Expand", g.cast(0, tensor.float32), g.ints([n])), tensor.empty(g.result.shape, device="meta")
    )
    places = g.op("TopK", _uniform(g, room), g.ints([n]), outputs=2)[1]
    return g.cast(g.like(places, g.result.long()), g.result.dtype)


@writes("normal")
def _of_means(g: GraphWriter, mean: Any, std: Any = 1.0, size: Any = None, **_: Any) -> Value:
    if size is not None:
        room = _room(g, listed((size,)))
    else:
        room = g.like(g.op("Add", _cast(g, mean), _cast(g, std)), g.result)
    scaled = g.op("Mul", _normal(g, room), _cast(g, std))
    return g.op("Add", scaled, _cast(g, mean))


def _cast(g: GraphWriter, value: Any) -> Value:
    return g.cast(g.constant(value) if isinstance(value, tensor.Tensor) else value, g.result.dtype)


# --- in place ---


@writes("normal_")
def _fill_normal(g: GraphWriter, input: Value, mean: float = 0.0, std: float = 1.0, **_: Any) -> Value:
    return _scaled(g, _normal(g, input), std, mean)


@writes("log_normal_")
def _fill_log_normal(g: GraphWriter, input: Value, mean: float = 1.0, std: float = 2.0, **_: Any) -> Value:
    return g.op("Exp", _scaled(g, _normal(g, input), std, mean))


@writes("uniform_")
def _fill_uniform(g: GraphWriter, input: Value, low: float = 0.0, high: float = 1.0, **named: Any) -> Value:
    low, high = named.get("from", low), named.get("to", high)
    return _scaled(g, _uniform(g, input), high - low, low)


@writes("exponential_")
def _fill_exponential(g: GraphWriter, input: Value, lambd: float = 1.0, **_: Any) -> Value:
    return _scaled(g, _exponential(g, input), 1 / lambd, 0.0)


# --- chances ---


def _chances(g: GraphWriter, room: Value, p: Any) -> Value:
    drawn = _uniform(g, room)
    return g.cast(g.like(g.op("Less", drawn, g.cast(p, drawn.dtype)), g.result.bool()), g.result.dtype)


@writes("bernoulli")
def _bernoulli(g: GraphWriter, input: Value, p: Any = None, **_: Any) -> Value:
    return _chances(g, input, input if p is None else p)


@writes("bernoulli_")
def _fill_bernoulli(g: GraphWriter, input: Value, p: Any = 0.5, **_: Any) -> Value:
    return _chances(g, input, p)


@writes("multinomial")
def _multinomial(
    g: GraphWriter, input: Value, num_samples: int, replacement: bool = False, **_: Any
) -> Value:
    logs = g.like(g.op("Log", input), input.real)
    if not replacement and num_samples > 1:
        raced = g.op("Sub", logs, g.op("Log", _exponential(g, input)))
        return g.op("TopK", raced, g.ints([num_samples]), axis=-1, outputs=2)[1]
    rows = g.unsqueeze(logs, 0) if input.rank == 1 else logs
    drawn = g.op("Multinomial", rows, sample_size=num_samples, dtype=_wire.data_type(tensor.int64))
    return g.squeeze(drawn, 0) if input.rank == 1 else drawn
