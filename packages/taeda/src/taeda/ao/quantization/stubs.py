"""Where a quantized model begins and ends to quantize: until it is converted, they give their input."""

from __future__ import annotations

from typing import Any

from taeda_registry.slots import nn


class _Stub(nn.Module):
    """Gives its input.

    Args:
        qconfig: Kept as the attribute `qconfig` when given.
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Any) -> Any:
        return x


class QuantStub(_Stub):
    """Where a quantized model begins to quantize; `convert` puts `nn.quantized.Quantize` in its place."""


class DeQuantStub(_Stub):
    """Where a quantized model ends to quantize; `convert` puts `nn.quantized.DeQuantize` in its place."""


class QuantWrapper(nn.Module):
    """A module between two stand-ins.

    Args:
        module: What it calls.
    """

    def __init__(self, module: Any) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.add_module("quant", QuantStub(qconfig))
        self.add_module("dequant", DeQuantStub(qconfig))
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X: Any) -> Any:
        return self.dequant(self.module(self.quant(X)))
