"""Which module takes the place of which."""

from __future__ import annotations

import copy
from typing import Any

from taeda.ao.nn import intrinsic as nni
from taeda.ao.nn import qat as nnqat
from taeda.ao.nn import quantized as nnq
from taeda.ao.nn.intrinsic import qat as nniqat
from taeda.ao.nn.intrinsic import quantized as nniq
from taeda.ao.nn.quantized import dynamic as nnqd
from taeda.ao.quantization.stubs import DeQuantStub, QuantStub
from taeda_registry.slots import nn

_DIMS = (1, 2, 3)
DEFAULT_STATIC_QUANT_MODULE_MAPPINGS: dict[Any, Any] = {
    QuantStub: nnq.Quantize,
    DeQuantStub: nnq.DeQuantize,
    nnq.FloatFunctional: nnq.QFunctional,
    nn.Linear: nnq.Linear,
    nnqat.Linear: nnq.Linear,
    nni.LinearReLU: nniq.LinearReLU,
    nniqat.LinearReLU: nniq.LinearReLU,
    nniqat.LinearBn1d: nnq.Linear,
    nni.BNReLU2d: nniq.BNReLU2d,
    **{getattr(nn, f"Conv{n}d"): getattr(nnq, f"Conv{n}d") for n in _DIMS},
    **{getattr(nn, f"ConvTranspose{n}d"): getattr(nnq, f"ConvTranspose{n}d") for n in _DIMS},
    **{getattr(nnqat, f"Conv{n}d"): getattr(nnq, f"Conv{n}d") for n in _DIMS},
    **{getattr(nni, f"ConvReLU{n}d"): getattr(nniq, f"ConvReLU{n}d") for n in _DIMS},
    **{getattr(nniqat, f"ConvReLU{n}d"): getattr(nniq, f"ConvReLU{n}d") for n in _DIMS},
    **{getattr(nniqat, f"ConvBn{n}d"): getattr(nnq, f"Conv{n}d") for n in _DIMS},
    **{getattr(nniqat, f"ConvBnReLU{n}d"): getattr(nniq, f"ConvReLU{n}d") for n in _DIMS},
    **{getattr(nn, name): getattr(nnq, name) for name in (
        "BatchNorm2d", "BatchNorm3d", "Dropout", "ELU", "Embedding", "EmbeddingBag", "GroupNorm", "Hardswish",
        "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm", "LeakyReLU", "PReLU", "ReLU6",
    )},
    nnqat.Embedding: nnq.Embedding,
    nnqat.EmbeddingBag: nnq.EmbeddingBag,
}  # fmt: skip
DEFAULT_QAT_MODULE_MAPPINGS: dict[Any, Any] = {
    **{getattr(nn, f"Conv{n}d"): getattr(nnqat, f"Conv{n}d") for n in _DIMS},
    nn.Linear: nnqat.Linear,
    nn.Embedding: nnqat.Embedding,
    nn.EmbeddingBag: nnqat.EmbeddingBag,
    nni.LinearReLU: nniqat.LinearReLU,
    nni.LinearBn1d: nniqat.LinearBn1d,
    **{getattr(nni, f"{kind}{n}d"): getattr(nniqat, f"{kind}{n}d")
       for kind in ("ConvReLU", "ConvBn", "ConvBnReLU") for n in _DIMS},
}  # fmt: skip
DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS: dict[Any, Any] = {
    **{
        getattr(nn, name): getattr(nnqd, name)
        for name in ("GRU", "GRUCell", "LSTM", "LSTMCell", "Linear", "RNNCell")
    },
    nn.Embedding: nnq.Embedding,
    nn.EmbeddingBag: nnq.EmbeddingBag,
}


def _with_more(mapping: dict[Any, Any], more: dict[Any, Any] | None) -> dict[Any, Any]:
    return {**copy.copy(mapping), **(more or {})}


def get_default_static_quant_module_mappings() -> dict[Any, Any]:
    """Quantized layers by the float ones."""
    return _with_more(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, None)


def get_default_qat_module_mappings() -> dict[Any, Any]:
    """Layers that foresee quantization by the float ones."""
    return _with_more(DEFAULT_QAT_MODULE_MAPPINGS, None)


def get_default_dynamic_quant_module_mappings() -> dict[Any, Any]:
    """Layers that quantize their input anew by the float ones."""
    return _with_more(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, None)


def get_default_qconfig_propagation_list() -> set[Any]:
    """The layers that a configuration is for."""
    return {
        *DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
        *DEFAULT_QAT_MODULE_MAPPINGS,
        *DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    }


def get_static_quant_module_class(
    float_module_class: Any, additional_static_quant_mapping: Any = None, is_custom_module: bool = False
) -> Any:
    """The quantized layer for a float one.

    Raises:
        AssertionError: There is none.
    """
    found = _with_more(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, additional_static_quant_mapping).get(
        float_module_class
    )
    if found is None:
        raise AssertionError(
            f"Floating point module class {float_module_class} does not have a corresponding quantized module class"
        )
    return found


def get_dynamic_quant_module_class(
    float_module_class: Any, additional_dynamic_quant_mapping: Any = None
) -> Any:
    """The layer that quantizes its input anew for a float one.

    Raises:
        AssertionError: There is none.
    """
    found = _with_more(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, additional_dynamic_quant_mapping).get(
        float_module_class
    )
    if found is None:
        raise AssertionError(
            f"Floating point module class {float_module_class} does not have a corresponding quantized module class"
        )
    return found
