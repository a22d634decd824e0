"""Batch normalisation layers, and what they share with instance normalisation."""

from __future__ import annotations

from typing import Any

from taeda_nn import functional as F
from taeda_nn import init
from taeda_nn._bind import Tensor, op, tensor
from taeda_nn.functional.norm import _need_several_values, _wrong_eps
from taeda_nn.modules._state import only_edits
from taeda_nn.modules.lazy import LazyModuleMixin
from taeda_nn.modules.module import Module
from taeda_nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter, is_lazy
from taeda_registry import processes

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]

# Called in the function's place while nobody has put another there.
_f_batch_norm, _batch_norm = F.batch_norm, op("batch_norm")


class _NormBase(Module):
    """Scale and shift per channel, and running statistics."""

    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    _version = 2
    ranks: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        like = {"device": device, "dtype": dtype}
        self.register_parameter("weight", Parameter(tensor.empty(num_features, **like)) if affine else None)
        self.register_parameter(
            "bias", Parameter(tensor.empty(num_features, **like)) if affine and bias else None
        )
        track = track_running_stats
        self.register_buffer("running_mean", tensor.zeros(num_features, **like) if track else None)
        self.register_buffer("running_var", tensor.ones(num_features, **like) if track else None)
        count = tensor.tensor(0, dtype=tensor.int64, device=device) if track else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Sets the running mean to 0, the variance to 1 and the count to 0."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Resets the statistics, the scale to 1 and the shift to 0."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self.ranks:
            expected = " or ".join(map(str, self.ranks))
            raise ValueError(
                f"{type(self).__name__}: input must have {expected} dimensions, got shape {tuple(input.shape)}"
            )

    @only_edits
    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        key = prefix + "num_batches_tracked"
        version = local_metadata.get("version")
        # States older than version 2 know no count; they are loaded as if it were the present one.
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            state_dict[key] = self.num_batches_tracked.detach().clone()
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = self.momentum
        mean, var = self.running_mean, self.running_var
        if not self.training:
            own = mean is None and var is None
            if self.eps <= 0.0 and (own or self.eps < 0.0):
                raise _wrong_eps(self.eps, own)
            if F.batch_norm is not _f_batch_norm:
                return F.batch_norm(input, mean, var, self.weight, self.bias, own, momentum or 0.0, self.eps)
            return _batch_norm(input, self.weight, self.bias, mean, var, own, momentum or 0.0, self.eps)
        if self.eps <= 0.0:
            raise _wrong_eps(self.eps, True)
        _need_several_values(self, input)
        tracked = self.num_batches_tracked if self.track_running_stats else None
        if not self.track_running_stats:
            mean = var = None
        elif tracked is not None and momentum is None:
            momentum = 1.0 / (float(tracked) + 1.0)
        if F.batch_norm is not _f_batch_norm:
            result = F.batch_norm(input, mean, var, self.weight, self.bias, True, momentum or 0.0, self.eps)
        else:
            result = _batch_norm(input, self.weight, self.bias, mean, var, True, momentum or 0.0, self.eps)
        if tracked is not None:
            tracked.add_(1)  # a batch that was refused does not count
        return result


class BatchNorm1d(_BatchNorm):
    """Normalises every channel of (N, C) or (N, C, L) over batch and length.

    Args:
        num_features: C.
        eps: Added to the variance.
        momentum: Weight of the batch in the running statistics; None averages all batches alike.
        affine: Whether a scale and a shift per channel are learned.
        track_running_stats: Whether running statistics are kept for evaluation.
        bias: Whether the shift is.

    Example:
        >>> nn.BatchNorm1d(100)(torch.randn(20, 100)).shape
        Size([20, 100])

    Source: Ioffe and Szegedy, "Batch Normalization", 2015.
    """

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalises every channel of (N, C, H, W) over batch and space; arguments as ``BatchNorm1d``.

    Example:
        >>> nn.BatchNorm2d(8)(torch.randn(4, 8, 16, 16)).shape
        Size([4, 8, 16, 16])
    """

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalises every channel of (N, C, D, H, W) over batch and space; arguments as ``BatchNorm1d``.

    Example:
        >>> nn.BatchNorm3d(8)(torch.randn(4, 8, 2, 16, 16)).shape
        Size([4, 8, 2, 16, 16])
    """

    ranks = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over the batches of all processes of a group; in one process, plain batch normalisation.

    Args:
        num_features: C of (N, C, ...).
        process_group: The processes; None for all.
        eps, momentum, affine, track_running_stats, bias: As in `BatchNorm1d`.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def forward(self, input: Tensor) -> Tensor:
        """The input, normalised by the mean and variance over the batches of all processes."""
        group = processes.default if self.process_group is None else self.process_group
        if not self.training or group is None or group.size() == 1:
            return super().forward(input)
        from taeda_nn.parallel._batch_norm import over_processes

        self._check_input_dim(input)
        return over_processes(self, group, input)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(
                f"SyncBatchNorm: input must have at least 2 dimensions, got shape {tuple(input.shape)}"
            )
        if input.shape[1] == 0:
            raise ValueError("SyncBatchNorm: the number of input channels must not be zero")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module with every batch normalisation replaced by one over all processes, sharing its members.

        Example:
            >>> net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)))
        """
        converted = module
        if isinstance(module, _BatchNorm):
            converted = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            if module.affine:
                converted.weight, converted.bias = module.weight, module.bias
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(converted, name, getattr(module, name))
            converted.training = module.training
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted


class _LazyNormBase(LazyModuleMixin):
    """What the lazy normalisations share; it stands before the class that an instance becomes."""

    weight: Any
    bias: Any
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any
    num_features: int

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        like = {"device": device, "dtype": dtype}
        super().__init__(0, eps, momentum, False, False, **like)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**like)
            if bias:
                self.bias = UninitializedParameter(**like)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**like)
            self.running_var = UninitializedBuffer(**like)
            self.num_batches_tracked = tensor.tensor(0, dtype=tensor.int64, device=device)

    def reset_parameters(self) -> None:
        """Resets statistics, scale and shift, once there are any."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor) -> None:  # type: ignore[override]
        """Takes ``num_features`` from the input."""
        if self.has_uninitialized_params():
            self.num_features = self._channels(input)
            for member in (self.weight, self.bias, self.running_mean, self.running_var):
                if is_lazy(member):
                    member.materialize((self.num_features,))
            self.reset_parameters()
        if self.num_features == 0:  # a state was loaded before
            self.num_features = self._channels(input)

    def _channels(self, input: Tensor) -> int:
        self._check_input_dim(input)  # type: ignore[attr-defined]
        return input.shape[1]


class LazyBatchNorm1d(_LazyNormBase, BatchNorm1d):  # type: ignore[misc]
    """`BatchNorm1d` whose ``num_features`` are those of its first input; arguments as there."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNormBase, BatchNorm2d):  # type: ignore[misc]
    """`BatchNorm2d` whose ``num_features`` are those of its first input; arguments as there."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNormBase, BatchNorm3d):  # type: ignore[misc]
    """`BatchNorm3d` whose ``num_features`` are those of its first input; arguments as there."""

    cls_to_become = BatchNorm3d
