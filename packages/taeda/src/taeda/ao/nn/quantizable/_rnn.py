"""LSTMs of linear layers, gates and sums that observers can stand behind."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import taeda
from taeda.ao.nn.quantized._functional_modules import FloatFunctional
from taeda_registry.slots import nn

_GATES = ("input", "forget", "cell", "output")


class LSTMCell(nn.Module):
    """`nn.LSTMCell`, step by step.

    Args:
        input_dim, hidden_dim: Features of the input and of the state.
        bias: Whether the linear layers have one.
        split_gates: Whether each gate has linear layers of its own.
    """

    _FLOAT_MODULE = nn.LSTMCell

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        split_gates: bool = False,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_dim, hidden_dim
        self.bias, self.split_gates = bias, split_gates

        def linear(features: int, gates: int) -> Any:
            return nn.Linear(features, gates * hidden_dim, bias=bias, device=device, dtype=dtype)

        if split_gates:
            self.igates = nn.ModuleDict({gate: linear(input_dim, 1) for gate in _GATES})
            self.hgates = nn.ModuleDict({gate: linear(hidden_dim, 1) for gate in _GATES})
            self.gates = nn.ModuleDict({gate: FloatFunctional() for gate in _GATES})
        else:
            self.igates, self.hgates = linear(input_dim, 4), linear(hidden_dim, 4)
            self.gates = FloatFunctional()
        self.input_gate, self.forget_gate = nn.Sigmoid(), nn.Sigmoid()
        self.cell_gate, self.output_gate = nn.Tanh(), nn.Sigmoid()
        self.fgate_cx, self.igate_cgate = FloatFunctional(), FloatFunctional()
        self.fgate_cx_igate_cgate, self.ogate_cy = FloatFunctional(), FloatFunctional()
        self.initial_hidden_state_qparams: tuple[float, int] = (1.0, 0)
        self.initial_cell_state_qparams: tuple[float, int] = (1.0, 0)
        self.hidden_state_dtype = self.cell_state_dtype = taeda.quint8

    def forward(self, x: Any, hidden: Any = None) -> tuple[Any, Any]:
        if hidden is None or None in (hidden[0], hidden[1]):
            hidden = self.initialize_hidden(x.shape[0], x.is_quantized)
        hx, cx = hidden
        if self.split_gates:
            parts = [self.gates[gate].add(self.igates[gate](x), self.hgates[gate](hx)) for gate in _GATES]
        else:
            parts = self.gates.add(self.igates(x), self.hgates(hx)).chunk(4, 1)
        shares = zip(
            (self.input_gate, self.forget_gate, self.cell_gate, self.output_gate), parts, strict=True
        )
        taken, kept, new, shown = (gate(part) for gate, part in shares)
        cy = self.fgate_cx_igate_cgate.add(self.fgate_cx.mul(kept, cx), self.igate_cgate.mul(taken, new))
        return self.ogate_cy.mul(shown, taeda.tanh(cy)), cy

    def initialize_hidden(self, batch_size: int, is_quantized: bool = False) -> tuple[Any, Any]:
        """The state at the beginning: zeros."""
        zeros = taeda.zeros(batch_size, self.hidden_size)
        if not is_quantized:
            return zeros, zeros
        return (
            taeda.quantize_per_tensor(zeros, *self.initial_hidden_state_qparams, self.hidden_state_dtype),
            taeda.quantize_per_tensor(zeros, *self.initial_cell_state_qparams, self.cell_state_dtype),
        )

    def _get_name(self) -> str:
        return "QuantizableLSTMCell"

    @classmethod
    def from_params(
        cls, wi: Any, wh: Any, bi: Any = None, bh: Any = None, split_gates: bool = False
    ) -> LSTMCell:
        """A cell with these weights, and biases, of the input and of the state."""
        if (bi is None) != (bh is None):
            raise AssertionError("from_params: expected both biases or none")
        cell = cls(wi.shape[1], wh.shape[1], bias=bi is not None, split_gates=split_gates)
        for layers, weight, bias in ((cell.igates, wi, bi), (cell.hgates, wh, bh)):
            one = list(layers.values()) if split_gates else [layers]
            for name, whole in (("weight", weight), ("bias", bias)):
                pieces = [None] * len(one) if whole is None else whole.chunk(len(one))
                for layer, piece in zip(one, pieces, strict=True):
                    setattr(layer, name, None if piece is None else nn.Parameter(piece))
        return cell

    @classmethod
    def from_float(
        cls, other: Any, use_precomputed_fake_quant: bool = False, split_gates: bool = False
    ) -> LSTMCell:
        """The cell in place of an `nn.LSTMCell` with a configuration."""
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"from_float: expected {cls._FLOAT_MODULE}, found {type(other)}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("from_float: the module has no 'qconfig'")
        made = cls.from_params(
            other.weight_ih, other.weight_hh, other.bias_ih, other.bias_hh, split_gates=split_gates
        )
        made.qconfig = other.qconfig
        for layer in (*made.igates.modules(), *made.hgates.modules()):
            layer.qconfig = other.qconfig
        return made


class _LSTMSingleLayer(nn.Module):
    """One layer in one direction: a cell that goes along the first dimension."""

    def __init__(self, input_dim: int, hidden_dim: int, bias: bool = True, **options: Any) -> None:
        super().__init__()
        self.cell = LSTMCell(input_dim, hidden_dim, bias=bias, **options)

    def forward(self, x: Any, hidden: Any = None) -> tuple[Any, Any]:
        found = []
        for step in x:
            hidden = self.cell(step, hidden)
            found.append(hidden[0])
        return taeda.stack(found), hidden

    @classmethod
    def from_params(cls, *weights: Any, **options: Any) -> _LSTMSingleLayer:
        """A layer around `LSTMCell.from_params`."""
        cell = LSTMCell.from_params(*weights, **options)
        made = cls(cell.input_size, cell.hidden_size, cell.bias, split_gates=cell.split_gates)
        made.cell = cell
        return made


class _LSTMLayer(nn.Module):
    """One layer in one direction or in both."""

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int,
        bias: bool = True,
        batch_first: bool = False,
        bidirectional: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        self.batch_first, self.bidirectional = batch_first, bidirectional
        self.layer_fw = _LSTMSingleLayer(input_dim, hidden_dim, bias, **options)
        if bidirectional:
            self.layer_bw = _LSTMSingleLayer(input_dim, hidden_dim, bias, **options)

    def forward(self, x: Any, hidden: Any = None) -> tuple[Any, Any]:
        hx, cx = (None, None) if hidden is None else hidden
        if self.batch_first:
            x = x.transpose(0, 1)
        if self.bidirectional:
            ways = [(None if hx is None else hx[way], None if cx is None else cx[way]) for way in range(2)]
            result, (h, c) = self.layer_fw(x, ways[0])
            turned, (hb, cb) = self.layer_bw(x.flip(0), ways[1])
            result = taeda.cat([result, turned.flip(0)], result.dim() - 1)
            h, c = taeda.stack([h, hb]), taeda.stack([c, cb])
        else:
            result, (h, c) = self.layer_fw(x, (hx, cx))
        return result.transpose(0, 1) if self.batch_first else result, (h, c)

    @classmethod
    def from_float(
        cls, other: Any, layer_idx: int = 0, qconfig: Any = None, batch_first: bool = False, **options: Any
    ) -> _LSTMLayer:
        """One of the layers of an `nn.LSTM`, whose weights it has."""
        if not hasattr(other, "qconfig") and qconfig is None:
            raise AssertionError("from_float: expected 'qconfig', of the module or as an argument")

        def way(end: str) -> _LSTMSingleLayer:
            names = ("weight_ih", "weight_hh", *(("bias_ih", "bias_hh") if other.bias else ()))
            return _LSTMSingleLayer.from_params(
                *(getattr(other, f"{name}_l{layer_idx}{end}") for name in names), **options
            )

        first = way("")
        made = cls(
            first.cell.input_size, other.hidden_size, other.bias, batch_first, other.bidirectional, **options
        )
        made.qconfig = getattr(other, "qconfig", qconfig)
        made.layer_fw = first
        if other.bidirectional:
            made.layer_bw = way("_reverse")
        return made


class LSTM(nn.Module):
    """`nn.LSTM`, step by step, without dropout between its layers.

    Args:
        input_size, hidden_size, num_layers, bias, batch_first, bidirectional: As `nn.LSTM` has them.
        dropout: Kept, and not applied.
        split_gates: Whether each gate has linear layers of its own.
    """

    _FLOAT_MODULE = nn.LSTM

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        split_gates: bool = False,
    ) -> None:
        super().__init__()
        if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
            raise ValueError(
                f"LSTM: argument 'dropout' must be a probability, from 0 to 1, found {dropout!r}"
            )
        if dropout > 0:
            import warnings

            warnings.warn("LSTM: quantizable layers apply no dropout", stacklevel=2)
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first = bias, batch_first
        self.dropout, self.bidirectional, self.training = float(dropout), bidirectional, False
        below = [input_size, *[hidden_size * (2 if bidirectional else 1)] * num_layers]
        options = {
            "bidirectional": bidirectional,
            "device": device,
            "dtype": dtype,
            "split_gates": split_gates,
        }
        self.layers = nn.ModuleList(
            _LSTMLayer(features, hidden_size, bias, **options) for features, _ in pairwise(below)
        )

    def forward(self, x: Any, hidden: Any = None) -> tuple[Any, tuple[Any, Any]]:
        if self.batch_first:
            x = x.transpose(0, 1)
        given = self._zeros(x) if hidden is None else self._by_layer(hidden, x.size(1))
        found = []
        for layer, state in zip(self.layers, given, strict=True):
            x, now = layer(x, state)
            found.append(now)
        states = [taeda.stack(list(part)) for part in zip(*found, strict=True)]
        h, c = (part.reshape(-1, part.shape[-2], part.shape[-1]) for part in states)
        return x.transpose(0, 1) if self.batch_first else x, (h, c)

    def _zeros(self, x: Any) -> list[Any]:
        ways = (2,) if self.bidirectional else ()
        zeros = taeda.zeros(*ways, x.size(1), self.hidden_size, device=x.device)
        if x.is_quantized:
            zeros = taeda.quantize_per_tensor(zeros, 1.0, 0, x.dtype)
        return [(zeros, zeros)] * self.num_layers

    def _by_layer(self, hidden: Any, batch: int) -> Any:
        if not isinstance(hidden[0], taeda.Tensor):
            return hidden
        ways = (2,) if self.bidirectional else ()
        h, c = (part.reshape(self.num_layers, *ways, batch, self.hidden_size) for part in hidden)
        return [(h[at], c[at]) for at in range(self.num_layers)]

    def _get_name(self) -> str:
        return "QuantizableLSTM"

    @classmethod
    def from_float(cls, other: Any, qconfig: Any = None, split_gates: bool = False) -> LSTM:
        """The layer in place of an `nn.LSTM` with a configuration, observed."""
        from taeda.ao.quantization import prepare, prepare_qat

        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError(f"from_float: expected {cls._FLOAT_MODULE}, found {type(other)}")
        if not hasattr(other, "qconfig") and not qconfig:
            raise AssertionError("from_float: expected 'qconfig', of the module or as an argument")
        made = cls(
            other.input_size, other.hidden_size, other.num_layers, other.bias, other.batch_first, other.dropout,
            other.bidirectional, split_gates=split_gates,
        )  # fmt: skip
        made.qconfig = getattr(other, "qconfig", qconfig)
        for at in range(other.num_layers):
            made.layers[at] = _LSTMLayer.from_float(other, at, qconfig, split_gates=split_gates)
        made.train(other.training)
        return prepare_qat(made, inplace=True) if other.training else prepare(made, inplace=True)

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """What `nn.quantized.LSTM` has.

        Raises:
            NotImplementedError: Always: this class is what is observed.
        """
        raise NotImplementedError("from_observed: quantizable LSTMs are made of float ones; see from_float")
