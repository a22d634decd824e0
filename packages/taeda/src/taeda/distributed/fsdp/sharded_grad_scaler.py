"""Where programs look for a scaler of the gradients of spread modules."""

from taeda import _absent

__all__ = ["ShardedGradScaler"]

ShardedGradScaler = _absent.cls(
    "taeda.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler",
    "there are no tensors spread over processes; taeda.amp.GradScaler serves one process",
)
