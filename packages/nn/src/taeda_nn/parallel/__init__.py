"""One module over several devices: of one process, as far as there are several, and of several processes."""

from taeda_nn.parallel.data_parallel import DataParallel, data_parallel
from taeda_nn.parallel.distributed import DistributedDataParallel, DistributedDataParallelCPU

# From the modules of their names, which would hide the functions when a program imports them later.
from taeda_nn.parallel.parallel_apply import parallel_apply
from taeda_nn.parallel.replicate import replicate
from taeda_nn.parallel.scatter_gather import gather, scatter

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
