"""Quantized layers of several steps, which are made of observed ones alone."""

from __future__ import annotations

from typing import Any, NoReturn

from taeda.ao.nn.quantizable import _attention, _rnn


def _converted(cls: type, other: Any) -> Any:
    from taeda.ao.quantization import convert

    if not isinstance(other, cls._FLOAT_MODULE):
        raise AssertionError(f"from_observed: expected {cls._FLOAT_MODULE}, found {type(other)}")
    made = convert(other, inplace=False)
    made.__class__ = cls
    return made


def _refuse(kind: str) -> NoReturn:
    raise NotImplementedError(
        f"from_float: a quantized {kind} is made of an observed one; see nn.quantizable.{kind}"
    )


class LSTM(_rnn.LSTM):
    """The quantized layer for `nn.quantizable.LSTM`."""

    _FLOAT_MODULE = _rnn.LSTM

    def _get_name(self) -> str:
        return "QuantizedLSTM"

    @classmethod
    def from_float(cls, *args: Any, **kwargs: Any) -> Any:
        """Not there: `nn.LSTM` is observed first.

        Raises:
            NotImplementedError: Always.
        """
        _refuse("LSTM")

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """The layer in place of an observed one."""
        return _converted(cls, other)


class MultiheadAttention(_attention.MultiheadAttention):
    """The quantized layer for `nn.quantizable.MultiheadAttention`."""

    _FLOAT_MODULE = _attention.MultiheadAttention

    def _get_name(self) -> str:
        return "QuantizedMultiheadAttention"

    @classmethod
    def from_float(cls, other: Any) -> Any:
        """Not there: `nn.MultiheadAttention` is observed first.

        Raises:
            NotImplementedError: Always.
        """
        _refuse("MultiheadAttention")

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """The layer in place of an observed one."""
        made = _converted(cls, other)
        made._FLOAT_MODULE = cls._FLOAT_MODULE._FLOAT_MODULE  # what `dequantize` gives
        return made
