"""Layers of several steps, taken apart so that each step can be observed and quantized."""

import taeda.ao.nn.quantized  # noqa: F401  first: its layers derive from those here, which consist of its sums
from taeda.ao.nn.quantizable._attention import MultiheadAttention
from taeda.ao.nn.quantizable._rnn import LSTM, LSTMCell, _LSTMLayer, _LSTMSingleLayer

__all__ = ["LSTM", "LSTMCell", "MultiheadAttention"]
# PyTorch's names of the layers inside.
_LSTMLayer, _LSTMSingleLayer = _LSTMLayer, _LSTMSingleLayer
