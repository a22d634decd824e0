"""Whole recurrent layers: by the provider's fused operators, or step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import groupby
from typing import Any

from taeda_nn._bind import Tensor, op, overridable, provided, tensor
from taeda_nn._decompose.rnn import STEPS, State

_linear = op("linear")
_dropout = op("dropout")

#: The provider's operators that run whole layers, by kind; None where it has none.
FUSED: dict[str, Callable[..., Any] | None] = {mode: provided(mode.lower()) for mode in STEPS}


@cache
def takes_packed(mode: str) -> bool:
    """Whether the provider's operator of a kind also takes packed sequences and, of an LSTM, projections."""
    library = getattr(tensor, "library", None)
    if FUSED[mode] is None or library is None:
        return False
    try:
        library.op(f"{mode.lower()}.data")
    except LookupError:
        return False
    return True


def run_layers(
    mode: str,
    input: Tensor,
    sizes: Sequence[int] | None,
    states: State,
    weights: Sequence[Sequence[Tensor | None]],
    num_layers: int,
    directions: int,
    dropout: float,
    training: bool,
) -> tuple[Tensor, State]:
    """Runs all layers and directions over time.

    Args:
        mode: Key of ``STEPS``.
        input: (T, B, features), or packed (sum of ``sizes``, features).
        sizes: Sequences still running at every time, when packed.
        states: Initial (layers * directions, B, hidden) of every kind.
        weights: For every layer and direction (w_ih, w_hh, b_ih, b_hh[, w_hr]).
        num_layers: Number of layers.
        directions: 1 or 2.
        dropout: Share dropped between layers while training.
        training: Whether dropout acts.

    Returns: the last layer's outputs, shaped like ``input``, and the final states.
    """
    finals: list[State] = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            at = layer * directions + direction
            state = tuple(kind[at] for kind in states)
            output, final = _run_direction(mode, input, sizes, state, weights[at], direction == 1)
            outputs.append(output)
            finals.append(final)
        input = outputs[0] if directions == 1 else tensor.cat(outputs, -1)
        if dropout and training and layer + 1 < num_layers:
            input = _dropout(input, dropout, True)
    return input, tuple(tensor.stack(list(kind), 0) for kind in zip(*finals, strict=True))


def run_packed(
    mode: str,
    data: Tensor,
    batch_sizes: Tensor,
    states: State | None,
    weights: Sequence[Sequence[Tensor | None]],
    num_layers: int,
    directions: int,
    dropout: float,
    training: bool,
) -> tuple[Tensor, State]:
    """`run_layers` over packed sequences, from states of zeros by default; one step of a recorded graph."""
    sizes = batch_sizes.tolist()
    if states is None:
        states = _zeros(mode, data, num_layers * directions, sizes[0], weights[0][1])
    fused = FUSED[mode]
    if fused and takes_packed(mode):
        flat = [weight for of_layer in weights for weight in of_layer if weight is not None]
        hx = states if mode == "LSTM" else states[0]
        has_bias = weights[0][2] is not None
        output, *finals = fused(
            data, batch_sizes, hx, flat, has_bias, num_layers, dropout, training, directions == 2
        )
        return output, tuple(finals)
    return run_layers(mode, data, sizes, states, weights, num_layers, directions, dropout, training)


overridable((run_packed,))


def _zeros(mode: str, like: Tensor, count: int, batch: int, w_hh: Any) -> State:
    """The states that a layer begins with; those of an LSTM's cells are not projected."""
    several = mode == "LSTM"
    widths = (w_hh.shape[1], w_hh.shape[0] // 4)[: 2 if several else 1]
    options = {"dtype": like.dtype, "device": like.device}
    return tuple(tensor.zeros((count, batch, width), **options) for width in widths)


def _run_direction(
    mode: str, input: Tensor, sizes: Sequence[int] | None, state: State, weights: Sequence[Any], reverse: bool
) -> tuple[Tensor, State]:
    operator = FUSED[mode] if len(weights) == 4 else None
    run = _composed_block if operator is None else partial(_fused_block, operator)
    if sizes is None:
        return run(mode, input, state, weights, reverse)
    blocks = [(size, len(list(group))) for size, group in groupby(sizes)]
    parts = input.split([size * count for size, count in blocks])
    steps = [part.reshape(count, size, -1) for part, (size, count) in zip(parts, blocks, strict=True)]
    through = _backward_through if reverse else _forward_through
    outputs, state = through(lambda x, now: run(mode, x, now, weights, reverse), steps, state)
    return tensor.cat([output.reshape(-1, output.shape[-1]) for output in outputs], 0), state


def _fused_block(
    operator: Callable[..., Any], mode: str, x: Tensor, state: State, weights: Sequence[Any], reverse: bool
) -> tuple[Tensor, State]:
    """Runs one layer in one direction over (T, B, features) by the provider's operator."""
    several = mode == "LSTM"
    before = tuple(kind.unsqueeze(0) for kind in state)
    params = [weight for weight in weights if weight is not None]
    hx = before if several else before[0]
    result = operator(x.flip(0) if reverse else x, hx, params, len(params) == 4, 1, 0.0, True, False, False)
    output = result[0].flip(0) if reverse else result[0]
    return output, tuple(kind.squeeze(0) for kind in result[1:])


def _composed_block(
    mode: str, x: Tensor, state: State, weights: Sequence[Any], reverse: bool
) -> tuple[Tensor, State]:
    """Runs one layer in one direction over (T, B, features) step by step."""
    step, (w_ih, w_hh, b_ih, b_hh, *projection) = STEPS[mode], weights
    gates = list(_linear(x, w_ih, b_ih).unbind(0))
    outputs: list[Tensor] = []
    for gate in reversed(gates) if reverse else gates:
        state = step(gate, state, w_hh, b_hh, *projection)
        outputs.append(state[0])
    return tensor.stack(outputs[::-1] if reverse else outputs, 0), state


def _forward_through(
    run: Callable[..., Any], blocks: list[Tensor], state: State
) -> tuple[list[Tensor], State]:
    """Sequences end one by one: their states are put aside, shortest first."""
    outputs, ended = [], []
    for block in blocks:
        size = block.shape[1]
        if size < state[0].shape[0]:
            ended.append(tuple(kind[size:] for kind in state))
            state = tuple(kind[:size] for kind in state)
        output, state = run(block, state)
        outputs.append(output)
    ended.append(state)
    return outputs, tuple(tensor.cat(list(kind), 0) for kind in zip(*reversed(ended), strict=True))


def _backward_through(
    run: Callable[..., Any], blocks: list[Tensor], initial: State
) -> tuple[list[Tensor], State]:
    """Sequences join one by one, each with its initial state."""
    outputs = []
    state = tuple(kind[: blocks[-1].shape[1]] for kind in initial)
    for block in reversed(blocks):
        running, size = state[0].shape[0], block.shape[1]
        if size > running:
            joined = zip(state, initial, strict=True)
            state = tuple(tensor.cat([kind, first[running:size]], 0) for kind, first in joined)
        output, state = run(block, state)
        outputs.append(output)
    return outputs[::-1], state
