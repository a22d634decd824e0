"""Where programs import `replicate` from."""

from taeda_nn.parallel.data_parallel import replicate

__all__ = ["replicate"]
