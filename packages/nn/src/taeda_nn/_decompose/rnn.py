"""Steps of recurrent cells in terms of affine maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda_nn._bind import Tensor, op, tensor

__all__ = ["gru_cell", "lstm_cell", "rnn_relu_cell", "rnn_tanh_cell"]

_linear = op("linear")

State = tuple[Tensor, ...]


def lstm_step(
    gates: Tensor, state: State, w_hh: Tensor, b_hh: Tensor | None, w_hr: Tensor | None = None
) -> State:
    """Next (h, c) from the input's share of the gates, in the order input, forget, cell, output."""
    h, c = state
    i, f, g, o = (gates + _linear(h, w_hh, b_hh)).chunk(4, -1)
    c = tensor.sigmoid(f) * c + tensor.sigmoid(i) * tensor.tanh(g)
    h = tensor.sigmoid(o) * tensor.tanh(c)
    return (h if w_hr is None else _linear(h, w_hr, None)), c


def gru_step(gates: Tensor, state: State, w_hh: Tensor, b_hh: Tensor | None) -> State:
    """Next (h,) from the input's share of the gates, in the order reset, update, new."""
    (h,) = state
    r, z, n = gates.chunk(3, -1)
    hr, hz, hn = _linear(h, w_hh, b_hh).chunk(3, -1)
    z = tensor.sigmoid(z + hz)
    n = tensor.tanh(n + tensor.sigmoid(r + hr) * hn)
    return (n + z * (h - n),)


def _rnn_step(activation: Callable[[Tensor], Tensor]) -> Callable[..., State]:
    def step(gates: Tensor, state: State, w_hh: Tensor, b_hh: Tensor | None) -> State:
        return (activation(gates + _linear(state[0], w_hh, b_hh)),)

    return step


STEPS: dict[str, Callable[..., State]] = {
    "LSTM": lstm_step,
    "GRU": gru_step,
    "RNN_TANH": _rnn_step(tensor.tanh),
    "RNN_RELU": _rnn_step(tensor.relu),
}


def _cell(mode: str, name: str) -> Callable[..., Any]:
    """A cell of one step; that of an LSTM takes and gives two states."""
    step, several = STEPS[mode], mode == "LSTM"

    def run(
        input: Tensor,
        hx: Any,
        w_ih: Tensor,
        w_hh: Tensor,
        b_ih: Tensor | None = None,
        b_hh: Tensor | None = None,
    ) -> Any:
        result = step(_linear(input, w_ih, b_ih), tuple(hx) if several else (hx,), w_hh, b_hh)
        return result if several else result[0]

    run.__name__ = name
    return run


lstm_cell, gru_cell = _cell("LSTM", "lstm_cell"), _cell("GRU", "gru_cell")
rnn_tanh_cell, rnn_relu_cell = _cell("RNN_TANH", "rnn_tanh_cell"), _cell("RNN_RELU", "rnn_relu_cell")
