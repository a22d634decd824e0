"""``utils.data.distributed``: where programs import the sampler of several processes from."""

from taeda_data.sampler import DistributedSampler

__all__ = ["DistributedSampler"]
