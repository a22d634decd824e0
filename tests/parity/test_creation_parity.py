"""Numbers in equal steps, and grids made of them, have PyTorch's bits: programs round and compare them."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the reference is PyTorch")

import taeda  # noqa: E402

STEPS = [*range(1, 36), 64, 65, 100, 224, 1000]
RANGES = [(-1, 1), (0, 1), (-0.3, 2.7), (0.1, 99.0), (5, -3), (0.00085**0.5, 0.012**0.5)]
DTYPES = ["float32", "float64"]
VECTORS = torch.backends.cpu.get_cpu_capability().startswith("AVX")


def both(make):
    return [np.asarray(make(library).numpy()) for library in (taeda, torch)]


@pytest.mark.parametrize("dtype", [*DTYPES, "int32", "int64"])
@pytest.mark.parametrize("start, end", RANGES)
def test_linspace(start, end, dtype):
    for steps in STEPS:
        mine, theirs = both(lambda lib, n=steps: lib.linspace(start, end, n, dtype=getattr(lib, dtype)))
        np.testing.assert_array_equal(mine, theirs, err_msg=f"{steps} steps")


@pytest.mark.skipif(not VECTORS, reason="PyTorch counts in vectors of another length without AVX2")
@pytest.mark.parametrize("dtype", DTYPES)
def test_arange(dtype):
    for count in STEPS:
        for first, step in ((0, 1 / count), (-1.3, 0.1), (7, -0.3)):
            last = first + step * (count - 0.5)
            mine, theirs = both(
                lambda lib, a=first, b=last, s=step: lib.arange(a, b, s, dtype=getattr(lib, dtype))
            )
            np.testing.assert_array_equal(mine, theirs, err_msg=f"{count} from {first} by {step}")


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_grids_of_affine_maps(dtype, aligned):
    for side in (16, 31, 64, 100):
        for maps, size in ((np.eye(2, 3), (side, side + 3)), (np.eye(3, 4), (16, 17, 16))):
            mine, theirs = both(
                lambda lib, m=maps, s=size: lib.nn.functional.affine_grid(
                    lib.tensor(m[None], dtype=getattr(lib, dtype)), (1, 1, *s), align_corners=aligned
                )
            )
            np.testing.assert_array_equal(mine, theirs, err_msg=f"{size}")
