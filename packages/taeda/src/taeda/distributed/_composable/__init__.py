"""Ways of training that are applied to a module, which stays the module that it is."""

from taeda.distributed._composable.checkpoint_activation import checkpoint
from taeda.distributed._composable.contract import _get_registry as _get_registry
from taeda.distributed._composable.contract import contract
from taeda.distributed._composable.replicate import replicate
from taeda.distributed.fsdp import fully_shard

__all__ = ["checkpoint", "contract", "fully_shard", "replicate"]
