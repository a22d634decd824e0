"""Layers of networks as operators of ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda.onnx._graph import GraphWriter, Value
from taeda.onnx._shapes import cut, reshape
from taeda.onnx._sums import reduced
from taeda.onnx._table import TABLE, writes
from taeda.onnx.errors import SymbolicValueError
from taeda_registry.slots import tensor

if TYPE_CHECKING:
    from collections.abc import Callable


def _each(value: Any, count: int) -> list[int]:
    items = [value] * count if isinstance(value, int) else list(value)
    return items * count if len(items) == 1 else items


def _batched(rank: int) -> Callable[..., Any]:
    """Let a layer of `rank` dimensions take one sample too."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def write(g: GraphWriter, input: Value, *args: Any, **kwargs: Any) -> Any:
            if input.rank == rank + 2:
                return function(g, rank, input, *args, **kwargs)
            one = g.like(g.unsqueeze(input, 0), input.real[None])
            return g.squeeze(function(g, rank, one, *args, **kwargs), 0)

        return write

    return decorate


# --- convolutions and pools ---


def _conv(
    g: GraphWriter, rank: int, input: Value, weight: Value, bias: Value | None = None, stride: Any = 1,
    padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> Value:  # fmt: skip
    steps = _each(dilation, rank)
    if isinstance(padding, str):
        total = [
            d * (k - 1) if padding == "same" else 0 for d, k in zip(steps, weight.shape[2:], strict=True)
        ]
        pads = [n // 2 for n in total] + [n - n // 2 for n in total]
    else:
        pads = _each(padding, rank) * 2
    return g.op(
        "Conv", input, weight, bias, strides=_each(stride, rank), pads=pads, dilations=steps, group=groups,
        kernel_shape=list(weight.shape[2:]),
    )  # fmt: skip


def _conv_transpose(
    g: GraphWriter, rank: int, input: Value, weight: Value, bias: Value | None = None, stride: Any = 1,
    padding: Any = 0, output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Value:  # fmt: skip
    return g.op(
        "ConvTranspose", input, weight, bias, strides=_each(stride, rank), pads=_each(padding, rank) * 2,
        output_padding=_each(output_padding, rank), dilations=_each(dilation, rank), group=groups,
        kernel_shape=list(weight.shape[2:]),
    )  # fmt: skip


def _max_pool(
    g: GraphWriter, rank: int, input: Value, kernel_size: Any, stride: Any = None, padding: Any = 0,
    dilation: Any = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Value:  # fmt: skip
    if return_indices:
        raise SymbolicValueError("onnx.export: the places of a max pool are not written")
    kernel = _each(kernel_size, rank)
    return g.op(
        "MaxPool", input, kernel_shape=kernel, strides=kernel if not stride else _each(stride, rank),
        pads=_each(padding, rank) * 2, dilations=_each(dilation, rank), ceil_mode=int(ceil_mode),
    )  # fmt: skip


def _avg_pool(
    g: GraphWriter, rank: int, input: Value, kernel_size: Any, stride: Any = None, padding: Any = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: Any = None,
) -> Value:  # fmt: skip
    if divisor_override is not None:
        raise SymbolicValueError("onnx.export: divisor_override of an average pool is not written")
    kernel = _each(kernel_size, rank)
    return g.op(
        "AveragePool", input, kernel_shape=kernel, strides=kernel if not stride else _each(stride, rank),
        pads=_each(padding, rank) * 2, ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad),
    )  # fmt: skip


def _adaptive(kind: str) -> Callable[..., Any]:
    def write(
        g: GraphWriter, rank: int, input: Value, output_size: Any, return_indices: bool = False
    ) -> Value:
        wanted = _each(output_size, rank)
        sizes = list(input.shape[2:])
        if all(item == 1 for item in wanted):
            return g.op(f"Global{kind}Pool", input)
        wanted = [size if item is None else item for item, size in zip(wanted, sizes, strict=True)]
        if any(isinstance(g.size(input, axis + 2), Value) for axis in range(rank)) and wanted != sizes:
            raise SymbolicValueError(
                f"onnx.export: an adaptive pool to {wanted} needs sizes that do not vary"
            )
        if any(size % item for size, item in zip(sizes, wanted, strict=True)):
            raise SymbolicValueError(
                f"onnx.export: an adaptive pool from {sizes} to {wanted} is not written: the windows differ in size"
            )
        kernel = [size // item for size, item in zip(sizes, wanted, strict=True)]
        return g.op(f"{kind}Pool", input, kernel_shape=kernel, strides=kernel)

    return write


for _rank in (1, 2, 3):
    _wrap = _batched(_rank)
    TABLE[f"conv{_rank}d"] = _wrap(_conv)
    TABLE[f"conv_transpose{_rank}d"] = _wrap(_conv_transpose)
    TABLE[f"max_pool{_rank}d"] = _wrap(_max_pool)
    TABLE[f"avg_pool{_rank}d"] = _wrap(_avg_pool)
    TABLE[f"adaptive_avg_pool{_rank}d"] = _wrap(_adaptive("Average"))
    TABLE[f"adaptive_max_pool{_rank}d"] = _wrap(_adaptive("Max"))


# --- norms ---


def _per_channel(g: GraphWriter, value: Value, rank: int) -> Value:
    return g.unsqueeze(value, *range(1, rank - 1)) if rank > 2 else value


@writes("batch_norm")
def _batch_norm(
    g: GraphWriter, input: Value, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool = False,
    momentum: Any = 0.1, eps: float = 1e-5, cudnn_enabled: bool = False,
) -> Value:  # fmt: skip
    channels, kind = input.shape[1], input.dtype
    scale = g.constant(tensor.ones(channels, dtype=kind)) if weight is None else weight
    shift = g.constant(tensor.zeros(channels, dtype=kind)) if bias is None else bias
    if not training:
        return g.op("BatchNormalization", input, scale, shift, running_mean, running_var, epsilon=float(eps))
    axes = [axis for axis in range(input.rank) if axis != 1]
    away = g.op("Sub", input, reduced(g, "ReduceMean", input, axes, True))
    spread = reduced(g, "ReduceMean", g.op("Mul", away, away), axes, True)
    even = g.op("Div", away, g.op("Sqrt", g.op("Add", spread, g.cast(eps, kind))))
    scale, shift = _per_channel(g, scale, input.rank), _per_channel(g, shift, input.rank)
    return g.op("Add", g.op("Mul", even, scale), shift)


@writes("F.batch_norm")
def _functional_batch_norm(
    g: GraphWriter, input: Value, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Value:  # fmt: skip
    return _batch_norm(g, input, weight, bias, running_mean, running_var, training, momentum, eps)


def _evened(g: GraphWriter, input: Value, channels: int, eps: float) -> Value:
    ones = g.constant(tensor.ones(channels, dtype=input.dtype))
    zeros = g.constant(tensor.zeros(channels, dtype=input.dtype))
    return g.op("InstanceNormalization", input, ones, zeros, epsilon=float(eps))


@writes("instance_norm")
def _instance_norm(
    g: GraphWriter, input: Value, *rest: Any, eps: float = 1e-5, use_input_stats: bool = True, weight: Any = None,
    bias: Any = None, running_mean: Any = None, running_var: Any = None, momentum: float = 0.1, **_: Any,
) -> Value:  # fmt: skip
    raise SymbolicValueError("onnx.export: instance_norm is written as a function of nn.functional")


@writes("F.instance_norm")
def _functional_instance_norm(
    g: GraphWriter, input: Value, running_mean: Any = None, running_var: Any = None, weight: Any = None,
    bias: Any = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Value:  # fmt: skip
    if not use_input_stats:
        return _batch_norm(g, input, weight, bias, running_mean, running_var, False, momentum, eps)
    made = _evened(g, input, input.shape[1], eps)
    if weight is not None:
        made = g.op("Mul", made, _per_channel(g, weight, input.rank))
    return made if bias is None else g.op("Add", made, _per_channel(g, bias, input.rank))


@writes("layer_norm")
def _layer_norm(
    g: GraphWriter, input: Value, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5,
    *_: Any,
) -> Value:  # fmt: skip
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    scale = g.constant(tensor.ones(shape, dtype=input.dtype)) if weight is None else weight
    return g.op("LayerNormalization", input, scale, bias, axis=-len(shape), epsilon=float(eps))


@writes("rms_norm")
def _rms_norm(
    g: GraphWriter, input: Value, normalized_shape: Any, weight: Any = None, eps: float | None = None
) -> Value:
    axes = list(range(input.rank - len(normalized_shape), input.rank))
    least = tensor.finfo(input.dtype).eps if eps is None else eps
    mean = reduced(g, "ReduceMean", g.op("Mul", input, input), axes, True)
    made = g.op("Div", input, g.op("Sqrt", g.op("Add", mean, g.cast(least, input.dtype))))
    return made if weight is None else g.op("Mul", made, weight)


@writes("group_norm")
def _group_norm(
    g: GraphWriter,
    input: Value,
    num_groups: int,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    *_: Any,
) -> Value:
    flat = reshape(g, input, [g.size(input, 0), num_groups, -1])
    even = g.op("Reshape", _evened(g, g.like(flat, input.real), num_groups, eps), g.shape_of(input))
    if weight is not None:
        even = g.op("Mul", even, _per_channel(g, weight, input.rank))
    return even if bias is None else g.op("Add", even, _per_channel(g, bias, input.rank))


@writes("local_response_norm")
def _local_response_norm(
    g: GraphWriter, input: Value, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Value:
    return g.op("LRN", input, size=size, alpha=float(alpha), beta=float(beta), bias=float(k))


# --- tables ---


@writes("embedding")
def _embedding(g: GraphWriter, input: Value, weight: Value, *_: Any, **__: Any) -> Value:
    rows, table = (input, weight) if weight.dtype.is_floating_point else (weight, input)
    return g.op("Gather", table, rows, axis=0)


@writes("one_hot")
def _one_hot(g: GraphWriter, input: Value, num_classes: int = -1) -> Value:
    if num_classes < 0:
        raise SymbolicValueError("onnx.export: one_hot needs its number of classes")
    return g.op(
        "OneHot", input, g.constant([num_classes], tensor.int64), g.constant([0, 1], tensor.int64), axis=-1
    )


# --- images ---


@writes("interpolate", "upsample")
def _interpolate(
    g: GraphWriter, input: Value, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: Any = None, antialias: bool = False,
) -> Value:  # fmt: skip
    rank = input.rank - 2
    kinds = {"nearest": "nearest", "nearest-exact": "nearest", "bicubic": "cubic", "area": None}
    kind = kinds.get(mode, "linear")
    if kind is None:
        raise SymbolicValueError(
            "onnx.export: interpolate of mode 'area' is not written; use an adaptive pool"
        )
    if mode == "nearest":
        place = "asymmetric"
    else:
        place = "align_corners" if align_corners else "half_pixel"
    sizes = scales = None
    if size is not None or recompute_scale_factor:
        wanted = (
            list(g.result.shape[2:])
            if size is None
            else _each(size, rank)
            if not isinstance(size, Value)
            else [size] * rank
        )
        sizes = g.ints([g.size(input, 0), g.size(input, 1), *wanted])
    else:
        factors = [scale_factor] * rank if isinstance(scale_factor, (int, float)) else list(scale_factor)
        scales = g.constant([1.0, 1.0, *map(float, factors)], tensor.float32)
    return g.op(
        "Resize", input, None, scales, sizes, mode=kind, coordinate_transformation_mode=place,
        nearest_mode=("floor" if mode == "nearest" else "round_prefer_ceil") if kind == "nearest" else None,
        cubic_coeff_a=(-0.5 if antialias else -0.75) if kind == "cubic" else None,
        antialias=1 if antialias else None,
    )  # fmt: skip


@writes("grid_sample")
def _grid_sample(
    g: GraphWriter, input: Value, grid: Value, mode: str = "bilinear", padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Value:  # fmt: skip
    kinds = {"bilinear": "linear", "bicubic": "cubic"} if g.opset >= 20 else {}
    return g.op(
        "GridSample", input, grid, mode=kinds.get(mode, mode), padding_mode=padding_mode,
        align_corners=int(bool(align_corners)),
    )  # fmt: skip


# --- recurrence ---


def _ordered(g: GraphWriter, parts: list[Value], order: list[int], name: str) -> Value:
    """Weights of the directions, with the gates in ONNX's order."""
    rows = []
    for part in parts:
        pieces = part.real.detach().chunk(len(order))
        rows.append(tensor.cat([pieces[index] for index in order]))
    return g.constant(tensor.stack(rows), name=name)


def _recurrent(kind: str, order: list[int], **fixed: Any) -> Callable[..., Any]:
    states = 2 if kind == "LSTM" else 1

    def write(
        g: GraphWriter, input: Value, hx: Any, params: Any, has_biases: Any, num_layers: Any, dropout: Any,
        train: Any, bidirectional: Any, batch_first: Any = None,
    ) -> Any:  # fmt: skip
        if batch_first is None or not isinstance(has_biases, bool):
            raise SymbolicValueError("onnx.export: recurrence over packed sequences is not written")
        if train and dropout:
            raise SymbolicValueError("onnx.export: recurrence with dropout is written in eval mode alone")
        starts = list(hx) if states == 2 else [hx]
        single = input.rank == 2
        made = input
        if single:
            made, starts = g.unsqueeze(made, 1), [g.unsqueeze(item, 1) for item in starts]
        elif batch_first:
            made = g.op("Transpose", made, perm=[1, 0, 2])
        ways, width = (2 if bidirectional else 1), 4 if has_biases else 2
        ends: list[list[Value]] = [[] for _ in range(states)]
        for layer in range(num_layers):
            first = layer * ways * width
            sets = [params[first + way * width : first + (way + 1) * width] for way in range(ways)]
            weights = [
                _ordered(g, [s[i] for s in sets], order, f"{kind.lower()}_{layer}_{i}") for i in range(2)
            ]
            biases = None
            if has_biases:
                both = [_ordered(g, [s[i] for s in sets], order, "bias").real for i in (2, 3)]
                biases = g.constant(tensor.cat(both, 1), name=f"{kind.lower()}_{layer}_bias")
            begin = [cut(g, item, 0, layer * ways, (layer + 1) * ways) for item in starts]
            got = g.op(
                kind, made, *weights, biases, None, *begin, outputs=1 + states,
                hidden_size=weights[1].shape[-1], direction="bidirectional" if bidirectional else "forward",
                **{key: value * ways if isinstance(value, list) else value for key, value in fixed.items()},
            )  # fmt: skip
            turned = g.op("Transpose", got[0], perm=[0, 2, 1, 3])
            made = g.op("Reshape", turned, g.constant([0, 0, -1], tensor.int64))
            for held, item in zip(ends, got[1:], strict=True):
                held.append(item)
        last = [items[0] if len(items) == 1 else g.op("Concat", *items, axis=0) for items in ends]
        if single:
            made, last = g.squeeze(made, 1), [g.squeeze(item, 1) for item in last]
        elif batch_first:
            made = g.op("Transpose", made, perm=[1, 0, 2])
        return [made, *last]

    return write


TABLE["lstm"] = _recurrent("LSTM", [0, 3, 1, 2])
TABLE["gru"] = _recurrent("GRU", [1, 0, 2], linear_before_reset=1)
TABLE["rnn_tanh"] = _recurrent("RNN", [0], activations=["Tanh"])
TABLE["rnn_relu"] = _recurrent("RNN", [0], activations=["Relu"])


# --- single steps of recurrence ---


def _step(
    g: GraphWriter, input: Value, hidden: Value, w_ih: Value, w_hh: Value, b_ih: Any, b_hh: Any, count: int
) -> Any:
    def part(x: Value, weight: Value, bias: Any) -> Any:
        made = g.op("MatMul", x, g.op("Transpose", weight, perm=[1, 0]))
        made = made if bias is None else g.op("Add", made, bias)
        return g.op("Split", made, outputs=count, axis=-1, num_outputs=count)

    return part(input, w_ih, b_ih), part(hidden, w_hh, b_hh)


@writes("lstm_cell")
def _lstm_cell(
    g: GraphWriter, input: Value, hx: Any, w_ih: Value, w_hh: Value, b_ih: Any = None, b_hh: Any = None
) -> list[Value]:
    left, right = _step(g, input, hx[0], w_ih, w_hh, b_ih, b_hh, 4)
    i, f, c, o = (g.op("Add", a, b) for a, b in zip(left, right, strict=True))
    kept = g.op("Mul", g.op("Sigmoid", f), hx[1])
    cell = g.op("Add", kept, g.op("Mul", g.op("Sigmoid", i), g.op("Tanh", c)))
    return [g.op("Mul", g.op("Sigmoid", o), g.op("Tanh", cell)), cell]


@writes("gru_cell")
def _gru_cell(
    g: GraphWriter, input: Value, hx: Value, w_ih: Value, w_hh: Value, b_ih: Any = None, b_hh: Any = None
) -> Value:
    (r, z, n), (hr, hz, hn) = _step(g, input, hx, w_ih, w_hh, b_ih, b_hh, 3)
    reset, keep = g.op("Sigmoid", g.op("Add", r, hr)), g.op("Sigmoid", g.op("Add", z, hz))
    new = g.op("Tanh", g.op("Add", n, g.op("Mul", reset, hn)))
    return g.op("Add", new, g.op("Mul", keep, g.op("Sub", hx, new)))
