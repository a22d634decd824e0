"""How a tensor lies on processes, as names."""

from taeda import _absent

_REASON = "there are no process groups"
Placement = _absent.cls("taeda.distributed.tensor.Placement", _REASON)
Replicate = _absent.cls("taeda.distributed.tensor.Replicate", _REASON, Placement)
Shard = _absent.cls("taeda.distributed.tensor.Shard", _REASON, Placement)
_StridedShard = _absent.cls("taeda.distributed.tensor._StridedShard", _REASON, Shard)
Partial = _absent.cls("taeda.distributed.tensor.Partial", _REASON, Placement)
