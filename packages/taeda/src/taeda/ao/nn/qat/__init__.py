"""Layers whose weights are quantized and dequantized while they are trained."""

from __future__ import annotations

from typing import Any

from taeda.ao.nn._copies import draw_unused, own_copy
from taeda_registry.slots import nn

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag", "Linear"]


def _faked(name: str) -> type:
    base = getattr(nn, name)

    class Faked(base):
        def __init__(self, *args: Any, qconfig: Any = None, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            if not qconfig:
                raise AssertionError("qconfig must be provided for QAT module")
            self.qconfig = qconfig
            self.weight_fake_quant = qconfig.weight()

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            kept = self.weight
            self.__dict__["weight"] = self.weight_fake_quant(kept)
            try:
                return super().forward(*args, **kwargs)
            finally:
                self.__dict__["weight"] = kept

        @classmethod
        def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
            """The layer in place of one with a configuration, whose parameters it shares."""
            if not getattr(mod, "qconfig", None):
                raise AssertionError("Input float module must have a valid qconfig")
            first = mod[0] if isinstance(mod, nn.Sequential) else mod
            made = own_copy(cls, first)
            if not name.startswith("Embedding"):  # which are made with the weight that they get
                draw_unused(made.weight, made.bias)
            made.qconfig = mod.qconfig
            made.weight_fake_quant = mod.qconfig.weight()
            return made

        def to_float(self) -> Any:
            """The layer without quantization."""
            made = own_copy(base, self)
            made._modules.pop("weight_fake_quant")
            return made

    Faked.__name__ = Faked.__qualname__ = name
    Faked.__module__ = "taeda.ao.nn.qat"
    Faked.__doc__ = f"`nn.{name}` whose weight is quantized and dequantized; `qconfig` says how."
    return Faked


Linear, Embedding, EmbeddingBag = _faked("Linear"), _faked("Embedding"), _faked("EmbeddingBag")
Conv1d, Conv2d, Conv3d = _faked("Conv1d"), _faked("Conv2d"), _faked("Conv3d")
