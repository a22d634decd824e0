"""``utils.data.distributed``: where programs import the sampler of several processes from."""

from taeda_data.sampler import DistributedSampler, T_co
from taeda_data.sampler import _T_co as _T_co

__all__ = ["DistributedSampler", "T_co"]
