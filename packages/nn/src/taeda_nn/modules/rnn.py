"""Recurrent layers and cells."""

from __future__ import annotations

import math
import numbers
import weakref
from collections.abc import Callable
from typing import Any, Self

from taeda_nn import init
from taeda_nn._bind import Tensor, autocasts, no_grad, op, tensor
from taeda_nn._decompose.rnn import STEPS
from taeda_nn._recurrence import FUSED, run_layers, run_packed, takes_packed
from taeda_nn.modules._state import attributes
from taeda_nn.modules.module import Module
from taeda_nn.parameter import Parameter
from taeda_nn.utils.rnn import PackedSequence


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """The tensor with its sequences in another order, under the name that older programs call."""
    return tensor.index_select(dim, permutation)


__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "GRUCell",
    "LSTMCell",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
]

_CELLS = {mode: op(f"{mode.lower()}_cell") for mode in STEPS}
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
_lstm_cell = _CELLS["LSTM"]


class RNNBase(Module):
    """What the recurrent layers share: settings, weights per layer and direction, and the run over time."""

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_settings(dropout)
        self._flat_weights_names: list[str] = []
        out_size = proj_size or hidden_size
        directions = 2 if bidirectional else 1
        rows = _GATES[mode] * hidden_size
        for layer in range(num_layers):
            in_size = input_size if layer == 0 else out_size * directions
            for suffix in ("", "_reverse")[:directions]:
                shapes = {f"weight_ih_l{layer}": (rows, in_size), f"weight_hh_l{layer}": (rows, out_size)}
                if bias:
                    shapes |= {f"bias_ih_l{layer}": (rows,), f"bias_hh_l{layer}": (rows,)}
                if proj_size:
                    shapes[f"weight_hr_l{layer}"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    setattr(self, name + suffix, Parameter(tensor.empty(shape, device=device, dtype=dtype)))
                    self._flat_weights_names.append(name + suffix)
        self.flatten_parameters()
        self.reset_parameters()

    def _check_settings(self, dropout: Any) -> None:
        name = type(self).__name__
        for setting in ("input_size", "hidden_size", "num_layers"):
            value = getattr(self, setting)
            if not isinstance(value, numbers.Integral):
                raise TypeError(f"{name}: {setting} must be an int, got {type(value).__name__}")
            if value < 1:
                raise ValueError(f"{name}: {setting} must be positive, got {value}")
        for setting in ("bias", "batch_first"):
            value = getattr(self, setting)
            if not isinstance(value, bool):
                raise TypeError(f"{name}: {setting} must be a bool, got {type(value).__name__}")
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(f"{name}: dropout must be a number between 0 and 1, got {dropout!r}")
        if not 0 <= self.proj_size < self.hidden_size:
            raise ValueError(f"{name}: proj_size ({self.proj_size}) must be less than {self.hidden_size}")
        if dropout > 0 and self.num_layers == 1:
            import warnings

            warnings.warn(f"{name}: dropout acts between layers, and there is only one", stacklevel=4)

    def reset_parameters(self) -> None:
        """Draws new initial values: uniform within 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Moves the weights into one piece of memory, in which libraries of devices read them without a copy.

        On the cpu nothing is moved: weights need no particular place there.
        """
        # Those that are computed from others are no parameters, and lie where they are made.
        found = map(self._parameters.get, self._flat_weights_names)
        weights = [weight for weight in found if weight is not None]
        if len(weights) != len(self._flat_weights_names):
            return
        first = weights[0]
        alike = {(weight.device, weight.dtype) for weight in weights}
        if (
            first.device.type in ("cpu", "meta")
            or len(alike) != 1
            or len({*map(id, weights)}) != len(weights)
        ):
            return
        # Matrices of all layers, then biases.
        ordered = sorted(weights, key=lambda weight: weight.dim() == 1)
        step, begin = first.element_size(), ordered[0].data_ptr()
        places = [begin]
        for weight in ordered:
            places.append(places[-1] + weight.numel() * step)
        if all(
            weight.is_contiguous() and weight.data_ptr() == at
            for weight, at in zip(ordered, places, strict=False)
        ):
            return
        with no_grad():
            flat = tensor.cat([weight.detach().reshape(-1) for weight in ordered])
            for weight, at in zip(ordered, places, strict=False):
                part = flat.narrow(0, (at - begin) // step, weight.numel())
                weight.data = part.view(weight.shape)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        self.flatten_parameters()
        return self

    def __getstate__(self) -> dict[str, Any]:
        # PyTorch's layers keep both beside the parameters.
        own = {"_all_weights": self._all_weights, "_flat_weights": self._flat_weights}
        return {**super().__getstate__(), **own}

    @property
    def _all_weights(self) -> list[list[str]]:
        """The names of the weights of every layer and direction."""
        names = self._flat_weights_names
        n = len(names) // (self.num_layers * (2 if self.bidirectional else 1))
        return [names[i : i + n] for i in range(0, len(names), n)]

    @_all_weights.setter
    def _all_weights(self, groups: list[list[str]]) -> None:
        self._flat_weights_names = [name for group in groups for name in group]

    def _init_flat_weights(self) -> None:
        """Lets the layer compute with the weights that stand under their names."""
        attributes(self).pop("_given_weights", None)

    @property
    def _flat_weights(self) -> list[Tensor]:
        values = attributes(self)
        given = values.get("_given_weights")
        if given is not None:
            now = {name: self._weight(name) for name in given}
            return [weight if now[name] is before else now[name] for name, (weight, before) in given.items()]
        try:
            return [values[name] for name in self._flat_weights_names]
        except KeyError:
            return [self._weight(name) for name in self._flat_weights_names]

    def _weight(self, name: str) -> Tensor:
        """The parameter of a name, or what a parametrization computes in its place."""
        found = attributes(self).get(name)
        return getattr(self, name) if found is None else found

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Tensor]) -> None:
        """Lets the layer compute with other weights; one that is assigned by its name later counts again."""
        attributes(self)["_given_weights"] = {
            name: (weight, self._weight(name))
            for name, weight in zip(self._flat_weights_names, weights, strict=True)
        }

    @property
    def _flat_weight_refs(self) -> list[weakref.ref]:
        return [weakref.ref(weight) for weight in self._flat_weights]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The weights of every layer and direction."""
        flat = self._flat_weights
        n = len(flat) // (self.num_layers * (2 if self.bidirectional else 1))
        return [flat[i : i + n] for i in range(0, len(flat), n)]

    # What programs call that derive layers of their own.

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """RuntimeError or ValueError unless the input is one of the layer's size and dtype."""
        if input.dtype != self.weight_ih_l0.dtype and not autocasts(input.device.type):
            raise ValueError(
                f"{type(self).__name__}: RNN input dtype ({input.dtype}) does not match weight dtype "
                f"({self.weight_ih_l0.dtype}); convert one of them"
            )
        expected = 3 if batch_sizes is None else 2
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {input.shape[-1]}"
            )

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the state that an input needs."""
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.shape[0 if self.batch_first else 1]
        count = self.num_layers * (2 if self.bidirectional else 1)
        return count, batch, self.proj_size or self.hidden_size

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the state of an LSTM's cells that an input needs."""
        return (*self.get_expected_hidden_size(input, batch_sizes)[:2], self.hidden_size)

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """RuntimeError unless a state has this shape."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """RuntimeError or ValueError unless input and state fit the layer."""
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes)
        if self.mode != "LSTM":
            self.check_hidden_size(hidden, expected)
            return
        self.check_hidden_size(hidden[0], expected, "Expected hidden[0] size {}, got {}")
        cells = self.get_expected_cell_size(input, batch_sizes)
        self.check_hidden_size(hidden[1], cells, "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """A state with its batch in another order."""
        if permutation is None:
            return hx
        if self.mode == "LSTM":
            return tuple(state.index_select(1, permutation) for state in hx)
        return hx.index_select(1, permutation)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Runs over a sequence (T, B, features), (B, T, features) if ``batch_first``, (T, features) or packed."""
        several = self.mode == "LSTM"
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            raise ValueError(
                f"{type(self).__name__}: input must have 2 or 3 dimensions, got shape {tuple(input.shape)}"
            )
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"{type(self).__name__}: last dimension of input {tuple(input.shape)} must be input_size "
                f"{self.input_size}"
            )
        if input.dtype != self.weight_ih_l0.dtype and not autocasts(input.device.type):
            raise ValueError(
                f"{type(self).__name__}: RNN input dtype ({input.dtype}) does not match weight dtype "
                f"({self.weight_ih_l0.dtype}); convert one of them"
            )
        single = input.dim() == 2
        batch_at = 0 if self.batch_first else 1
        if single:
            input = input.unsqueeze(batch_at)
            if hx is not None:
                hx = tuple(state.unsqueeze(1) for state in hx) if several else hx.unsqueeze(1)
        states = self._initial(input, hx, input.shape[batch_at])
        output, finals = self._run(input, states)
        if single:
            output = output.squeeze(batch_at)
            finals = tuple(state.squeeze(1) for state in finals)
        return output, finals if several else finals[0]

    def _forward_packed(self, input: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        data, batch_sizes, order, back = input
        states = None if hx is None else self._initial(data, hx, batch_sizes.tolist()[0])
        if states is not None and order is not None:
            states = tuple(state.index_select(1, order) for state in states)
        output, finals = run_packed(self.mode, data, batch_sizes, states, *self._settings())
        if back is not None:
            finals = tuple(state.index_select(1, back) for state in finals)
        packed = PackedSequence(output, batch_sizes, order, back)
        return packed, finals if self.mode == "LSTM" else finals[0]

    def _initial(self, input: Tensor, hx: Any, batch: int) -> tuple[Tensor, ...]:
        """The initial states as a tuple, checked; zeros by default."""
        several = self.mode == "LSTM"
        count = self.num_layers * (2 if self.bidirectional else 1)
        sizes = (self.proj_size or self.hidden_size, self.hidden_size)[: 2 if several else 1]
        if hx is None:
            like = {"dtype": input.dtype, "device": input.device}
            return tuple(tensor.zeros((count, batch, size), **like) for size in sizes)
        states = tuple(hx) if several else (hx,)
        for state, size, name in zip(states, sizes, ("h_0", "c_0"), strict=False):
            if tuple(state.shape) != (count, batch, size):
                raise RuntimeError(
                    f"{type(self).__name__}: {name} must have shape {(count, batch, size)}, got {tuple(state.shape)}"
                )
        return states

    def _run(self, input: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        fused = FUSED[self.mode]
        if fused and (not self.proj_size or takes_packed(self.mode)):
            result = fused(
                input,
                states if self.mode == "LSTM" else states[0],
                self._flat_weights,
                self.bias,
                self.num_layers,
                self.dropout,
                self.training,
                self.bidirectional,
                self.batch_first,
            )
            return result[0], tuple(result[1:])
        if not self.batch_first:
            return run_layers(self.mode, input, None, states, *self._settings())
        output, finals = run_layers(self.mode, input.transpose(0, 1), None, states, *self._settings())
        return output.transpose(0, 1), finals

    def _settings(self) -> tuple[Any, ...]:
        """The weights of every layer and direction with their biases, numbers of both, dropout, whether it acts."""
        weights: list[list[Tensor | None]] = [
            list(group) if self.bias else [group[0], group[1], None, None, *group[2:]]
            for group in self.all_weights
        ]
        directions = 2 if self.bidirectional else 1
        return weights, self.num_layers, directions, self.dropout, self.training

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first:
            text += f", batch_first={self.batch_first}"
        if self.dropout:
            text += f", dropout={self.dropout}"
        if self.bidirectional:
            text += f", bidirectional={self.bidirectional}"
        return text


class RNN(RNNBase):
    """Elman network: ``h' = tanh(W_ih x + b_ih + W_hh h + b_hh)`` over sequences, in one or more layers.

    Args:
        input_size: Features of the input.
        hidden_size: Features of the state.
        num_layers: Number of layers.
        nonlinearity: 'tanh' or 'relu'.
        bias: Whether there are biases.
        batch_first: Whether input and output are (B, T, features).
        dropout: Share dropped between layers while training.
        bidirectional: Whether a second run goes backwards.

    Example:
        >>> output, h_n = nn.RNN(10, 20, 2)(torch.randn(5, 3, 10))
        >>> output.shape, h_n.shape
        (Size([5, 3, 20]), Size([2, 3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNN: nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}")
        mode = f"RNN_{nonlinearity.upper()}"
        settings = num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        super().__init__(mode, input_size, hidden_size, *settings)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory over sequences, in one or more layers.

    Args:
        input_size: Features of the input.
        hidden_size: Features of the state.
        num_layers: Number of layers.
        bias: Whether there are biases.
        batch_first: Whether input and output are (B, T, features).
        dropout: Share dropped between layers while training.
        bidirectional: Whether a second run goes backwards.
        proj_size: Features that h is projected to; 0 for no projection.

    Example:
        >>> output, (h, c) = nn.LSTM(10, 20, 2)(torch.randn(5, 3, 10))

    Source: Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        settings = num_layers, bias, batch_first, dropout, bidirectional, proj_size, device, dtype
        super().__init__("LSTM", input_size, hidden_size, *settings)


class GRU(RNNBase):
    """Gated recurrent unit over sequences, in one or more layers; arguments as ``LSTM``.

    Example:
        >>> output, h_n = nn.GRU(10, 20, 2)(torch.randn(5, 3, 10))
        >>> output.shape, h_n.shape
        (Size([5, 3, 20]), Size([2, 3, 20]))

    Source: Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder", 2014.
    """

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
    ) -> None:
        settings = num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        super().__init__("GRU", input_size, hidden_size, *settings)


class RNNCellBase(Module):
    """What the cells share: sizes and weights."""

    __constants__ = ["input_size", "hidden_size", "bias"]

    bias_ih: Tensor | None
    bias_hh: Tensor | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        shapes = {"weight_ih": (rows, input_size), "weight_hh": (rows, hidden_size)}
        shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        for name, shape in shapes.items():
            if bias or name.startswith("weight"):
                setattr(self, name, Parameter(tensor.empty(shape, device=device, dtype=dtype)))
            else:
                self.register_parameter(name, None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new initial values: uniform within 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _zeros(self, input: Tensor) -> Tensor:
        return tensor.zeros((input.shape[0], self.hidden_size), dtype=input.dtype, device=input.device)

    def _check(self, name: str, value: Tensor) -> None:
        if value.dim() not in (1, 2):
            raise ValueError(
                f"{type(self).__name__}: {name} must have 1 or 2 dimensions, got shape {tuple(value.shape)}"
            )

    def _forward(self, mode: str, input: Tensor, hx: Tensor | None) -> Tensor:
        self._check("input", input)
        if hx is not None:
            self._check("hx", hx)
        single = input.dim() == 1
        x = input.unsqueeze(0) if single else input
        if hx is None:
            hx = self._zeros(x)
        elif single:
            hx = hx.unsqueeze(0)
        h = _CELLS[mode](x, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return h.squeeze(0) if single else h

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text


class RNNCell(RNNCellBase):
    """One step of an Elman network: (B, input), (B, hidden) to (B, hidden).

    Example:
        >>> nn.RNNCell(10, 20)(torch.randn(3, 10)).shape
        Size([3, 20])
    """

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNNCell: nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}")
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._forward(f"RNN_{self.nonlinearity.upper()}", input, hx)


class LSTMCell(RNNCellBase):
    """One step of a long short-term memory: (B, input), ((B, hidden), (B, hidden)) to the next (h, c).

    Example:
        >>> h, c = nn.LSTMCell(10, 20)(torch.randn(3, 10))
        >>> h.shape, c.shape
        (Size([3, 20]), Size([3, 20]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        if input.dim() == 2:
            if hx is None:
                zeros = self._zeros(input)
                hx = (zeros, zeros)
            elif hx[0].dim() not in (1, 2) or hx[1].dim() not in (1, 2):
                self._check("hx[0]", hx[0])
                self._check("hx[1]", hx[1])
            return _lstm_cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        self._check("input", input)
        hx = hx if hx is None else (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        h, c = self.forward(input.unsqueeze(0), hx)
        return h.squeeze(0), c.squeeze(0)


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit: (B, input), (B, hidden) to (B, hidden).

    Example:
        >>> nn.GRUCell(10, 20)(torch.randn(3, 10)).shape
        Size([3, 20])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._forward("GRU", input, hx)
