"""Modules whose parameters are spread over processes, as names."""

from taeda import _absent

_REASON = "there are no process groups"
FullyShardedDataParallel = _absent.cls("taeda.distributed.fsdp.FullyShardedDataParallel", _REASON)
FSDPModule = _absent.cls("taeda.distributed.fsdp.FSDPModule", _REASON)
fully_shard = _absent.function("taeda.distributed.fsdp.fully_shard", _REASON)
