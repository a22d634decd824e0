"""Imports and names as programs write them; type checkers must find them all."""

from __future__ import annotations

from typing import assert_type

import taeda as torch
import taeda.distributed as dist
import taeda.multiprocessing as mp
from taeda import Tensor, nn
from taeda.amp import GradScaler, autocast
from taeda.autograd.function import Function
from taeda.backends import cuda as settings
from taeda.distributions import Categorical, Normal, constraints, kl_divergence
from taeda.distributions.transforms import TanhTransform
from taeda.fft import rfft
from taeda.func import functional_call, grad
from taeda.library import custom_op
from taeda.linalg import norm
from taeda.nn.attention import SDPBackend, sdpa_kernel
from taeda.nn.attention.flex_attention import create_block_mask, flex_attention
from taeda.nn.modules.loss import _Loss
from taeda.nn.parallel import DistributedDataParallel
from taeda.nn.utils import parametrize, prune
from taeda.nn.utils.parametrizations import weight_norm
from taeda.nn.utils.rnn import pad_sequence
from taeda.optim.optimizer import Optimizer
from taeda.optim.swa_utils import AveragedModel
from taeda.overrides import TorchFunctionMode
from taeda.random import fork_rng
from taeda.serialization import add_safe_globals
from taeda.special import erf
from taeda.testing import assert_close
from taeda.utils.checkpoint import checkpoint
from taeda.utils.data.distributed import DistributedSampler
from taeda.utils.data.sampler import Sampler

FOUND = (
    AveragedModel, Categorical, DistributedDataParallel, DistributedSampler, Function, GradScaler, Normal, Optimizer,
    SDPBackend, Sampler, TanhTransform, TorchFunctionMode, _Loss, add_safe_globals, assert_close, checkpoint,
    constraints, create_block_mask, custom_op, dist, erf, flex_attention, fork_rng, functional_call, grad,
    kl_divergence, mp, norm, pad_sequence, parametrize, prune, rfft, sdpa_kernel, settings, weight_norm,
)  # fmt: skip
TOP_LEVEL = (
    torch.FloatTensor, torch.LongTensor, torch.OutOfMemoryError, torch.SymInt, torch.compile, torch.cond,
    torch.default_generator, torch.get_default_device, torch.jit.script, torch.lobpcg, torch.quantize_per_tensor,
    torch.set_default_device, torch.set_float32_matmul_precision, torch.sparse_coo_tensor, torch.typename,
    torch.UntypedStorage, torch.vmap,
)  # fmt: skip


@torch.no_grad()
def evaluate(model: nn.Module, x: Tensor) -> float:
    """A decorated function keeps its types."""
    with autocast("cpu", dtype=torch.bfloat16), torch.autocast("cpu", enabled=False):
        return float(model(x).sum())


assert_type(evaluate(nn.Linear(2, 1), torch.ones(2)), float)
