"""A device from Python whose memory the host cannot read: bytes in a dict, behind numbers that are no addresses."""

from __future__ import annotations

import bisect
from typing import Any

import numpy as np

import taeda_tensor_core as tc
from taeda_tensor_core import library


class Blocks:
    """Memory by number: each block a bytearray, far from all addresses that a process has."""

    def __init__(self) -> None:
        self.blocks: dict[int, bytearray] = {}
        self.starts: list[int] = []
        self._next = 1 << 60

    def allocate(self, index: int, nbytes: int) -> int:
        start = self._next
        self._next += nbytes + 4096
        self.blocks[start] = bytearray(nbytes)
        self.starts.append(start)
        return start

    def release(self, index: int, address: int) -> None:
        self.starts.remove(address)
        del self.blocks[address]

    def part(self, address: int, nbytes: int) -> memoryview:
        start = self.starts[bisect.bisect_right(self.starts, address) - 1]
        return memoryview(self.blocks[start])[address - start : address - start + nbytes]

    def write(self, index: int, address: int, data: memoryview) -> None:
        self.part(address, len(data))[:] = data

    def read(self, index: int, address: int, data: memoryview) -> None:
        data[:] = self.part(address, len(data))


class Device(library.Backend):
    """Element-wise kernels over such memory, by NumPy."""

    def __init__(self, name: str) -> None:
        self.memory = Blocks()
        lacks = dict.fromkeys(("bfloat16", "complex", "gradients"), "too small a device")
        super().__init__(name, device_count=2, memory=self.memory, capabilities=lacks)
        for target in ("copy_same_", "fill_"):
            self.kernel(target)(lambda _, inputs: self.put(inputs[0], self.elements(inputs[1])))
        for target in ("clone", "cast"):
            self.kernel(target)(lambda outputs, inputs: self.put(outputs[0], self.elements(inputs[0])))
        self.kernel("add")(self._add)
        self.kernel("mul")(self._mul)
        self.kernel("sum")(self._sum)

    def _add(self, outputs: Any, inputs: Any) -> None:
        a, b, alpha = inputs
        self.put(outputs[0], self.elements(a) + alpha * self.elements(b))

    def _mul(self, outputs: Any, inputs: Any) -> None:
        with np.errstate(all="ignore"):
            self.put(outputs[0], self.elements(inputs[0]) * self.elements(inputs[1]))

    def _sum(self, outputs: Any, inputs: Any) -> None:
        source, dim, keepdim, *_ = inputs
        axes = tuple(dim) if dim else None
        dtype = np.dtype(outputs[0].dtype.name)
        with np.errstate(all="ignore"):
            self.put(outputs[0], self.elements(source).astype(dtype).sum(axes, keepdims=keepdim))

    def _array(self, tensor: Any) -> np.ndarray:
        """NumPy's view of a tensor's own bytes."""
        dtype = np.dtype(tensor.dtype.name)
        steps = [stride * dtype.itemsize for stride in tensor.stride()]
        reaches = [step * (size - 1) for step, size in zip(steps, tensor.shape, strict=True)]
        low, high = sum(min(r, 0) for r in reaches), sum(max(r, 0) for r in reaches)
        span = self.memory.part(tensor.data_ptr() + low, high - low + dtype.itemsize)
        return np.ndarray(tuple(tensor.shape), dtype, span, -low, steps)

    def elements(self, value: Any) -> Any:
        """An argument as NumPy reads it; numbers lie with the host."""
        if not isinstance(value, tc.Tensor):
            return value
        if value.device.type == "cpu":
            return value.numpy()
        return self._array(value) if value.numel() else np.empty(tuple(value.shape), value.dtype.name)

    def put(self, tensor: Any, values: Any) -> None:
        """Store what a kernel has computed."""
        if tensor.numel():
            np.copyto(self._array(tensor), values, casting="unsafe")


#: Registered when this file is loaded, as a plug-in's module is.
device = Device("owndev")
