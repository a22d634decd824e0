"""Stand-ins that models keep where quantized values would begin and end; quantizing itself is not there."""

from __future__ import annotations

from typing import Any

from taeda import _absent
from taeda_registry.slots import nn

_REASON = "there are no quantized tensors"


class QuantStub(nn.Module):
    """Where a quantized model would begin to quantize: gives its input.

    Args:
        qconfig: Kept as the attribute `qconfig` when given.
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Any) -> Any:
        return x


class DeQuantStub(QuantStub):
    """Where a quantized model would end to quantize: gives its input."""


class QuantWrapper(nn.Module):
    """A module between two stand-ins.

    Args:
        module: What it calls.
    """

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.quant, self.dequant, self.module = QuantStub(), DeQuantStub(), module
        self.train(module.training)

    def forward(self, X: Any) -> Any:
        return self.dequant(self.module(self.quant(X)))


QConfig = _absent.cls("taeda.ao.quantization.QConfig", _REASON)
ObserverBase = _absent.cls("taeda.ao.quantization.ObserverBase", _REASON, nn.Module)
FakeQuantizeBase = _absent.cls("taeda.ao.quantization.FakeQuantizeBase", _REASON, nn.Module)
globals().update(
    _absent.functions(
        "taeda.ao.quantization",
        "add_quant_dequant convert default_observer default_per_channel_weight_observer default_weight_observer "
        "fuse_modules fuse_modules_qat get_default_qat_qconfig get_default_qconfig prepare prepare_qat "
        "propagate_qconfig_ quantize quantize_dynamic quantize_qat",
        _REASON,
    )
)
