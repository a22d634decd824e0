"""Checks kernels that are written at run time: each chain has the bits of its operators one by one.

python tools/gpu_check/fusion.py

It needs a GPU and NVRTC; on the simulated driver TAEDA_CUDA_SIMULATED_COMPILER names what compiles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda

DTYPES = ("float32", "float64", "float16", "bfloat16")
SIZES = ((1,), (1000003,), (33, 65, 127), (2048, 2048))


def chains() -> dict[str, Callable]:
    """Functions of a tensor, and of one of the shape of its last dimension."""
    functional = taeda.nn.functional
    return {
        "bias and gelu": lambda x, b: functional.gelu(x + b, approximate="tanh") * 0.5 - x,
        "powers": lambda x, b: ((x.abs() + 1).log() / (b.abs() + 2)).exp().sqrt().reciprocal(),
        "choices": lambda x, b: taeda.where(x > b, x.sin(), b.cos()).clamp(-0.5, 0.75),
        "several": lambda x, b: (x.tanh() * b, (x.tanh() * b).sigmoid().float(), x.isnan()),
        "silu, there and back": lambda x, b: functional.silu(x) * (1 - x.sigmoid()) + x.erf() * b,
    }


def bits(tensor: Any) -> Any:
    """The elements as integers, so that NaN is what it is."""
    kinds = {1: taeda.uint8, 2: taeda.int16, 4: taeda.int32, 8: taeda.int64}
    return tensor.contiguous().view(kinds[tensor.element_size()])


def check(name: str, chain: Callable, *tensors: Any) -> int:
    """Compares one, several times; how many results there were."""
    fast = taeda.backends.compile_graph(chain, *tensors)
    if fast.reason:
        raise RuntimeError(f"{name}: {fast.reason}")
    for _ in range(3):
        found, expected = fast(*tensors), chain(*tensors)
        several = isinstance(found, tuple)
        for a, b in zip(found if several else (found,), expected if several else (expected,), strict=True):
            if a.dtype != b.dtype or not taeda.equal(bits(a), bits(b)):
                raise AssertionError(f"{name}: {tuple(tensors[0].shape)} {tensors[0].dtype} differs")
    return len(found) if several else 1


def main() -> None:
    """Compares all, as they lie in a row and turned."""
    taeda.manual_seed(0)
    tried = 0
    for dtype in DTYPES:
        for shape in SIZES:
            x = taeda.randn(*shape, device="cuda").to(getattr(taeda, dtype))
            bias = taeda.randn(shape[-1], device="cuda").to(getattr(taeda, dtype))
            for name, chain in chains().items():
                tried += check(name, chain, x, bias)
                tried += check(name + ", turned", chain, x.transpose(0, -1), bias[:1])
    from taeda_tensor_cuda import fusion

    print(f"{tried} results have the bits of their operators; {fusion.statistics()}")


if __name__ == "__main__":
    main()
