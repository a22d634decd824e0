"""Layers that compute on quantized tensors.

They keep what they compute with as quantized tensors and take and give quantized tensors; what is between is computed
on the numbers that the codes stand for.
"""

from taeda.ao.nn.quantized import dynamic, functional
from taeda.ao.nn.quantized._activations import (
    ELU,
    BatchNorm2d,
    BatchNorm3d,
    Dropout,
    GroupNorm,
    Hardswish,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    LeakyReLU,
    MaxPool2d,
    PReLU,
    ReLU6,
    Sigmoid,
    Softmax,
)
from taeda.ao.nn.quantized._functional_modules import FloatFunctional, FXFloatFunctional, QFunctional
from taeda.ao.nn.quantized._layers import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    DeQuantize,
    Embedding,
    EmbeddingBag,
    Linear,
    Quantize,
)
from taeda.ao.nn.quantized._several_steps import LSTM, MultiheadAttention

__all__ = [
    "ELU",
    "LSTM",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "DeQuantize",
    "Dropout",
    "Embedding",
    "EmbeddingBag",
    "FXFloatFunctional",
    "FloatFunctional",
    "GroupNorm",
    "Hardswish",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "MaxPool2d",
    "MultiheadAttention",
    "PReLU",
    "QFunctional",
    "Quantize",
    "ReLU6",
    "Sigmoid",
    "Softmax",
    "dynamic",
    "functional",
]  # fmt: skip
