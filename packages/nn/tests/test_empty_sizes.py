"""Layers of inputs with an empty dimension: results and gradients of their shapes, or an error, never an end."""

import itertools

import pytest

from taeda_nn import functional as F
from taeda_registry.slots import tensor as tt

NORMS = {
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "group_norm": lambda x: F.group_norm(x, max(1, x.shape[1] // 2)),
    "one group": lambda x: F.group_norm(x, 1),
    "instance_norm": F.instance_norm,
    "layer_norm": lambda x: F.layer_norm(x, x.shape[2:]),
}
POOLS = {
    4: {
        "max_pool": lambda x: F.max_pool2d(x, 2, 1, 1),
        "avg_pool": lambda x: F.avg_pool2d(x, 1),
        "adaptive_avg_pool": lambda x: F.adaptive_avg_pool2d(x, 2),
        "adaptive_max_pool": lambda x: F.adaptive_max_pool2d(x, 2),
        "glu": lambda x: F.glu(x, 1),
    },
    5: {
        "max_pool": lambda x: F.max_pool3d(x, 2, 1, 1),
        "avg_pool": lambda x: F.avg_pool3d(x, 1),
        "adaptive_avg_pool": lambda x: F.adaptive_avg_pool3d(x, 2),
        "adaptive_max_pool": lambda x: F.adaptive_max_pool3d(x, 2),
        "glu": lambda x: F.glu(x, 1),
    },
}


@pytest.mark.parametrize("dtype", [tt.float32, tt.bfloat16])
@pytest.mark.parametrize("ndim", [4, 5])
@pytest.mark.parametrize("last", [False, True], ids=["rows", "channels last"])
def test_any_dimension_may_be_empty(ndim, last, dtype):
    tried = 0
    order = tt.channels_last if ndim == 4 else tt.channels_last_3d
    for sizes in itertools.product((0, 2, 4), repeat=ndim):
        for name, layer in {**NORMS, **POOLS[ndim]}.items():
            x = tt.zeros(sizes, dtype=dtype)
            if last:
                x = x.contiguous(memory_format=order)
            x.requires_grad_()
            try:
                y = layer(x)
            except (RuntimeError, ValueError):
                assert 0 in sizes or name == "instance_norm", (name, sizes)
                continue
            tried += 1
            assert name not in NORMS or y.shape == x.shape, (name, sizes)
            y.sum().backward()
            assert x.grad.shape == x.shape, (name, sizes)
    assert tried > 3**ndim
