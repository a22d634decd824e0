"""What optimizers written for PyTorch import from `optim.optimizer` beside `Optimizer`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from taeda_optim import counting
from taeda_registry.slots import tensor

#: Types by which optimizers of others annotate their functions.
Args = tuple[Any, ...]
Kwargs = dict[str, Any]
Indices = list[int]
TensorListList = list[list[Any]]
DeviceDict = dict[Any, Any]
DeviceDtypeDict = dict[tuple[Any, Any], Any]
GlobalOptimizerPreHook = Callable[..., tuple[Args, Kwargs] | None]
GlobalOptimizerPostHook = Callable[..., None]


class _Required:
    """The default of options that a caller must give, in optimizers written for old versions of PyTorch."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()
_RequiredParameter = _Required


def _use_grad_for_differentiable(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step that runs without recording, unless the optimizer is differentiable."""

    @functools.wraps(step)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with tensor.enable_grad() if self.defaults.get("differentiable") else tensor.no_grad():
            return step(self, *args, **kwargs)

    return run


def _get_value(x: Any) -> Any:
    return x.item() if isinstance(x, tensor.Tensor) else x


def _to_scalar(x: Any) -> Any:
    return x.squeeze() if isinstance(x, tensor.Tensor) and x.dim() else x


_get_scalar_dtype = counting.count_dtype


def _stack_if_compiling(x: Any) -> Any:
    return x


def _dispatch_sqrt(x: Any) -> Any:
    return x.sqrt() if isinstance(x, tensor.Tensor) else x**0.5


def _default_to_fused_or_foreach(
    params: list[Any], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Neither: optimizers of others take their way of single operations."""
    return False, False


def _group_tensors_by_device_and_dtype(
    tensorlistlist: list[list[Any]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]:
    """Lists of as many tensors each, divided by device and dtype of the first list's tensors.

    Args:
        tensorlistlist: the lists; None may stand in all but the first.
        with_indices: whether the places of the tensors are given too; the list of them is empty else.

    Raises:
        RuntimeError: there is no list, or they differ in length.
    """
    if not tensorlistlist or len({len(listed) for listed in tensorlistlist}) != 1:
        raise RuntimeError("tensorlistlist must be lists of as many tensors each")
    found: dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]] = {}
    for i, row in enumerate(zip(*tensorlistlist, strict=True)):
        lists, indices = found.setdefault((row[0].device, row[0].dtype), ([[] for _ in row], []))
        for listed, item in zip(lists, row, strict=True):
            listed.append(item)
        if with_indices:
            indices.append(i)
    return found


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Kinds of devices whose steps could be recorded as graphs: none."""
    return []


_get_foreach_kernels_supported_devices = _get_fused_kernels_supported_devices = (
    _get_capturable_supported_devices
)
_foreach_supported_types = [tensor.Tensor]


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[..., Any]:
    """A decorator that gives the function itself: nothing is compiled."""
    return lambda function: function


def _view_as_real(params: list[Any], *state_and_grads: list[Any]) -> None:
    """Replaces complex tensors in lists by pairs of real numbers."""
    for i, param in enumerate(params):
        if param.is_complex():
            params[i] = tensor.view_as_real(param)
            for listed in state_and_grads:
                listed[i] = tensor.view_as_real(listed[i])


_params_doc = (
    """params (iterable): iterable of parameters, of named parameters, or of dicts that define groups"""
)
_foreach_doc = """foreach (bool, optional): accepted"""
_fused_doc = """fused (bool, optional): accepted"""
_capturable_doc = """capturable (bool, optional): accepted"""
_differentiable_doc = """differentiable (bool, optional): whether steps are recorded"""
_maximize_doc = """maximize (bool, optional): climb instead of descend"""
