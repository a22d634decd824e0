"""The tensor and autograd slots on PyTorch: an independent provider to hold taeda-nn against.

Select it with the environment: TAEDA_TENSOR=torch_provider TAEDA_AUTOGRAD=torch_provider.
"""

from types import SimpleNamespace

import torch
from torch import *  # noqa: F403
from torch import Generator, Tensor, device, dtype, finfo, is_grad_enabled, linalg, no_grad  # noqa: F401
from torch.autograd import Function  # noqa: F401


def _on_subclass(cls, **kwargs):
    """Makes operations on a Parameter of taeda-nn give plain tensors, as on PyTorch's own."""
    super(torch.Tensor, cls).__init_subclass__(**kwargs)
    if cls.__module__.startswith("taeda_nn"):
        cls.__torch_function__ = torch._C._disabled_torch_function_impl


torch.Tensor.__init_subclass__ = classmethod(_on_subclass)

_native = torch._C._nn
ops = SimpleNamespace(
    adaptive_avg_pool1d=torch.adaptive_avg_pool1d,
    adaptive_avg_pool2d=_native.adaptive_avg_pool2d,
    adaptive_max_pool2d=_native.adaptive_max_pool2d,
    avg_pool1d=torch.avg_pool1d,
    avg_pool2d=_native.avg_pool2d,
    batch_norm=lambda x, w, b, m, v, t, mom, eps: torch.batch_norm(x, w, b, m, v, t, mom, eps, False),
    binary_cross_entropy=_native.binary_cross_entropy,
    binary_cross_entropy_with_logits=torch.binary_cross_entropy_with_logits,
    conv1d=torch.conv1d,
    conv2d=torch.conv2d,
    conv_transpose1d=torch.conv_transpose1d,
    conv_transpose2d=torch.conv_transpose2d,
    cross_entropy_loss=_native.cross_entropy_loss,
    dropout=torch.dropout,
    elu=_native.elu,
    embedding=torch.embedding,
    gelu=_native.gelu,
    group_norm=lambda x, n, w, b, eps: torch.group_norm(x, n, w, b, eps),
    gru=torch.gru,
    gru_cell=torch.gru_cell,
    hardswish=_native.hardswish,
    hardtanh=_native.hardtanh,
    huber_loss=_native.huber_loss,
    kl_div=torch.kl_div,
    l1_loss=_native.l1_loss,
    layer_norm=lambda x, s, w, b, eps: torch.layer_norm(x, s, w, b, eps),
    leaky_relu=_native.leaky_relu,
    linear=_native.linear,
    log_softmax=torch.log_softmax,
    lstm=torch.lstm,
    lstm_cell=torch.lstm_cell,
    max_pool1d=torch.max_pool1d,
    max_pool2d=torch.max_pool2d,
    max_pool2d_with_indices=_native.max_pool2d_with_indices,
    mish=_native.mish,
    mse_loss=_native.mse_loss,
    nll_loss=_native.nll_loss_nd,
    prelu=torch.prelu,
    relu=torch.relu,
    relu_=torch.relu_,
    selu=torch.selu,
    sigmoid=torch.sigmoid,
    silu=_native.silu,
    smooth_l1_loss=_native.smooth_l1_loss,
    softmax=torch.softmax,
    softplus=_native.softplus,
    tanh=torch.tanh,
)
