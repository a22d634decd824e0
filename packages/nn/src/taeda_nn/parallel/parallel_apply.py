"""Where programs import `parallel_apply` from."""

from taeda_nn.parallel.data_parallel import parallel_apply

__all__ = ["parallel_apply"]
