"""Which configuration each part of a model is quantized by."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Any

from taeda.ao.quantization import qconfig as configs
from taeda.ao.quantization.observer import (
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)
from taeda_registry.slots import nn, tensor

__all__ = ["QConfigMapping", "get_default_qat_qconfig_mapping", "get_default_qconfig_mapping"]


class QConfigMapping:
    """Configurations by the name of a module, by patterns of names, by classes and functions, and one for all others.

    What is said of a module's name counts first, then of its pattern, then of its class; None leaves a part as it is.

    Example:
        >>> quantization = taeda.ao.quantization
        >>> mapping = quantization.QConfigMapping().set_global(quantization.default_qconfig)
        >>> mapping.set_module_name("head", None).module_name_qconfigs
        OrderedDict([('head', None)])
    """

    def __init__(self) -> None:
        self.global_qconfig: Any = None
        self.object_type_qconfigs: OrderedDict[Any, Any] = OrderedDict()
        self.module_name_regex_qconfigs: OrderedDict[str, Any] = OrderedDict()
        self.module_name_qconfigs: OrderedDict[str, Any] = OrderedDict()
        self.module_name_object_type_order_qconfigs: OrderedDict[Any, Any] = OrderedDict()

    def set_global(self, global_qconfig: Any) -> QConfigMapping:
        """The configuration of what has no other."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type: Any, qconfig: Any) -> QConfigMapping:
        """The configuration of a class, of a function, or of a method by its name."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex: str, qconfig: Any) -> QConfigMapping:
        """The configuration of modules whose names match; the pattern that was given first counts."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name: str, qconfig: Any) -> QConfigMapping:
        """The configuration of a module and of those in it."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(
        self, module_name: str, object_type: Any, index: int, qconfig: Any
    ) -> QConfigMapping:
        """The configuration of the call with this number, from 0, of a function within a module."""
        self.module_name_object_type_order_qconfigs[module_name, object_type, index] = qconfig
        return self

    def to_dict(self) -> dict[str, Any]:
        """All configurations in containers."""
        return {
            "": self.global_qconfig,
            "object_type": list(self.object_type_qconfigs.items()),
            "module_name_regex": list(self.module_name_regex_qconfigs.items()),
            "module_name": list(self.module_name_qconfigs.items()),
            "module_name_object_type_order": [
                (*key, value) for key, value in self.module_name_object_type_order_qconfigs.items()
            ],
        }

    @classmethod
    def from_dict(cls, qconfig_dict: dict[str, Any]) -> QConfigMapping:
        """What `to_dict` gave, or a part of it."""
        made = cls().set_global(qconfig_dict.get(""))
        for key, value in qconfig_dict.get("object_type", []):
            made.set_object_type(key, value)
        for key, value in qconfig_dict.get("module_name_regex", []):
            made.set_module_name_regex(key, value)
        for key, value in qconfig_dict.get("module_name", []):
            made.set_module_name(key, value)
        for name, kind, index, value in qconfig_dict.get("module_name_object_type_order", []):
            made.set_module_name_object_type_order(name, kind, index, value)
        return made

    def of_module(self, name: str, kind: Any) -> Any:
        """The configuration of a module by its name and class."""
        path = name
        while path:
            if path in self.module_name_qconfigs:
                return self.module_name_qconfigs[path]
            path = path.rpartition(".")[0]
        for pattern, value in self.module_name_regex_qconfigs.items():
            if re.match(pattern, name):
                return value
        return self.of_function(kind)

    def of_function(self, target: Any) -> Any:
        """The configuration of a function, a class, or a method by its name."""
        return self.object_type_qconfigs.get(target, self.global_qconfig)

    def __repr__(self) -> str:
        lines = [f"QConfigMapping (\n global_qconfig\n  {self.global_qconfig}"]
        for name in (
            "object_type_qconfigs", "module_name_regex_qconfigs", "module_name_qconfigs",
            "module_name_object_type_order_qconfigs",
        ):  # fmt: skip
            lines.append(f" {name}\n  {getattr(self, name) or OrderedDict()}")
        return "\n".join([*lines, ")"])


def _with_fixed(mapping: QConfigMapping, weight: Any) -> QConfigMapping:
    """Functions whose results lie between known limits."""
    unit = configs.QConfig(activation=default_fixed_qparams_range_0to1_observer, weight=weight)
    signed = configs.QConfig(activation=default_fixed_qparams_range_neg1to1_observer, weight=weight)
    for kind in (nn.Hardsigmoid, nn.Sigmoid, nn.Softmax, tensor.sigmoid, nn.functional.hardsigmoid):
        mapping.set_object_type(kind, unit)
    for kind in (nn.Tanh, tensor.tanh):
        mapping.set_object_type(kind, signed)
    return mapping


def get_default_qconfig_mapping(backend: str = "x86", version: int = 0) -> QConfigMapping:
    """The usual configurations for quantizing a trained model; arguments are those of `get_default_qconfig`."""
    found = configs.get_default_qconfig(backend, version)
    return _with_fixed(QConfigMapping().set_global(found), found.weight)


def get_default_qat_qconfig_mapping(backend: str = "x86", version: int = 1) -> QConfigMapping:
    """The usual configurations for training; arguments are those of `get_default_qat_qconfig`."""
    found = configs.get_default_qat_qconfig(backend, version)
    return _with_fixed(QConfigMapping().set_global(found), found.weight)
