"""The kinds of quantisation."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["QuantType", "quant_type_to_str"]


class QuantType(IntEnum):
    """When an operator's scales are found, and of what."""

    DYNAMIC = 0
    STATIC = 1
    QAT = 2
    WEIGHT_ONLY = 3


def quant_type_to_str(quant_type: QuantType) -> str:
    """The name in small letters."""
    return QuantType(quant_type).name.lower()
