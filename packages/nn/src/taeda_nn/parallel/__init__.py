"""One module over several devices: of one process, as far as there are several, and of several processes."""

from taeda_nn.parallel.data_parallel import (
    DataParallel,
    data_parallel,
    gather,
    parallel_apply,
    replicate,
    scatter,
)
from taeda_nn.parallel.distributed import DistributedDataParallel, DistributedDataParallelCPU

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "DistributedDataParallelCPU",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]
