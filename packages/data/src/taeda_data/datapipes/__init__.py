"""Pipes: data sets made of steps that each take from the one before.

Interface of PyTorch's torch.utils.data.datapipes. A step is an `IterDataPipe`, read from its beginning, or a
`MapDataPipe`, read by keys; steps with a name are methods of all others: ``pipe.map(f).filter(g).batch(8)``.
"""

from taeda_data.datapipes import iter, map
from taeda_data.datapipes.datapipe import DataChunk, IterDataPipe, MapDataPipe, functional_datapipe

__all__ = ["DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe", "iter", "map"]
