"""Automatic differentiation of programs on taeda tensors: the autograd slot of taeda.

Importing the package installs the layer that records operations, and gives tensors ``backward``, ``grad`` and
their like.
"""

import taeda_tensor_core as _tensor_core  # noqa: F401  (loads libtaeda and the Tensor type)
from taeda_autograd import _C, function, functional, graph
from taeda_autograd._anomaly import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_anomaly_enabled,
    set_detect_anomaly,
)
from taeda_autograd._engine import backward, grad
from taeda_autograd._function import Function, once_differentiable
from taeda_autograd._hooks import RemovableHandle
from taeda_autograd._methods import install as _install
from taeda_autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from taeda_autograd.variable import Variable
from taeda_tensor_core import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled

Node = _C.Node
_install()


def _profiler_enabled() -> bool:
    """Whether somebody records what runs."""
    from taeda_registry import spans

    return spans.watcher is not None


def _is_checkpoint_valid() -> bool:
    """Whether a backward may run inside of the one that is running, as checkpoints do: True."""
    return True


__all__ = [
    "Function",
    "GradcheckError",
    "Node",
    "RemovableHandle",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "no_grad",
    "once_differentiable",
    "set_anomaly_enabled",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


def __getattr__(name: str) -> object:
    if name in ("profiler", "kineto_available"):
        from taeda_registry.slots import profiler

        return profiler.autograd_profiler if name == "profiler" else profiler.kineto_available
    if name in ("anomaly_mode", "checkpoint", "forward_ad", "grad_mode"):
        from importlib import import_module

        return import_module(f"taeda_autograd.{name}")
    if name == "is_tensor_like":
        from taeda_tensor_core.overrides import is_tensor_like

        return is_tensor_like
    if name in ("is_multithreading_enabled", "set_multithreading_enabled"):
        from taeda_autograd import grad_mode

        return getattr(grad_mode, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), "anomaly_mode", "forward_ad", "grad_mode", "is_tensor_like"})


__version__ = "0.1.0"
__taeda_interface__ = {"autograd": "1.0"}
