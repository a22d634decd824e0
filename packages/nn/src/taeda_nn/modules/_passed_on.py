"""Names that PyTorch's files of layers import, and that programs which continue such a file import from there."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from importlib import import_module
from itertools import chain, repeat
from typing import Any

from taeda_nn import functional, init
from taeda_nn.modules.utils import _pair, _single, _triple
from taeda_nn.parameter import Buffer, Parameter, UninitializedParameter

#: By the file below `nn.modules`.
_NAMES: dict[str, dict[str, Any]] = {
    "activation": {name: getattr(init, name) for name in ("constant_", "xavier_normal_", "xavier_uniform_")},
    "batchnorm": {"F": functional},
    "container": {"chain": chain},
    "conv": {"F": functional, "init": init, "_single": _single, "_pair": _pair, "_triple": _triple},
    "linear": {"F": functional, "init": init, "UninitializedParameter": UninitializedParameter},
    "loss": {"F": functional},
    "module": {
        "Buffer": Buffer, "OrderedDict": OrderedDict, "Parameter": Parameter, "namedtuple": namedtuple,
    },
    "transformer": {"F": functional, "xavier_uniform_": init.xavier_uniform_},
    "utils": {"repeat": repeat},
}  # fmt: skip


def pass_on() -> None:
    """Let the files have them, where they have no such name themselves."""
    linear = import_module("taeda_nn.modules.linear")
    _NAMES["activation"]["NonDynamicallyQuantizableLinear"] = linear.NonDynamicallyQuantizableLinear
    for file, names in _NAMES.items():
        module = vars(import_module(f"taeda_nn.modules.{file}"))
        for name, value in names.items():
            module.setdefault(name, value)
