"""The older home of `taeda.ao.quantization`."""

from taeda.ao.quantization import *  # noqa: F403
from taeda.ao.quantization import DeQuantStub, QuantStub, QuantWrapper

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]
