"""Kernels of whole rows across borders of packs and threads, in every dtype, beside the cpu in float64."""

from __future__ import annotations

import device_programs as programs

HEAD = """
import itertools
import taeda_tensor_core as tc
ops = tc.ops
tc.manual_seed(SEED)
TOLERANCE = {tc.float64: 1e-10, tc.float32: 1e-4, tc.bfloat16: 5e-2, tc.float16: 1e-2}
SHAPES = ((3, 5), (7, 1000), (2, 4099), (5, 2048), (1, 8191), (4, 3, 130), (2, 64, 33), (6, 1))
tried = 0

def near(found, expected, dtype, *what):
    global tried
    tried += 1
    found, expected = found.cpu().double(), expected.double()
    assert found.shape == expected.shape, (what, found.shape, expected.shape)
    assert ((found - expected).abs() <= TOLERANCE[dtype] * (1 + expected.abs())).all(), (what, dtype)

def rows(dtype):
    "Rows as they may lie: aligned for packs, and not."
    for shape in SHAPES:
        x = (tc.randn(*shape, dtype=tc.float64) * 4).to(dtype)
        yield x
        if shape[-1] > 2:
            yield x[..., 1:]
"""


def run(program: str, seed: int = 1) -> None:
    programs.check(program, HEAD, 101, seed)


def test_softmax_and_its_gradient_along_every_dimension() -> None:
    run(
        """
        for dtype in TOLERANCE:
            for x in rows(dtype):
                g = tc.randn(*x.shape, dtype=tc.float64).to(dtype)
                for dim, name in itertools.product(range(x.dim()), ("softmax", "log_softmax")):
                    expected, found = getattr(ops, name)(x.double(), dim), getattr(ops, name)(x.to("cuda"), dim)
                    near(found, expected, dtype, name, x.shape, dim)
                    back = getattr(ops, name + "_backward")
                    expected = back(g.double(), found.cpu().double(), dim)
                    near(back(g.to("cuda"), found, dim), expected, dtype, name, x.shape)
        """
    )


def test_layer_norm_with_weights_and_without() -> None:
    run(
        """
        for dtype, weighted in itertools.product(TOLERANCE, (False, True)):
            for x in rows(dtype):
                width = x.shape[-1]
                weight = (tc.arange(width) % 7).to(dtype) * 0.125 if weighted else None
                bias = (tc.arange(width) % 5).to(dtype) * 0.125 if weighted else None
                wide = [t if t is None else t.double() for t in (weight, bias)]
                moved = [t if t is None else t.to("cuda") for t in (weight, bias)]
                expected = ops.native_layer_norm(x.double(), [width], *wide, 1e-5)
                found = ops.native_layer_norm(x.to("cuda"), [width], *moved, 1e-5)
                near(found[0], expected[0], dtype, x.shape, weighted)
        """
    )


def test_cross_entropy_and_its_gradient() -> None:
    run(
        """
        for dtype, smoothing, weighted in itertools.product(TOLERANCE, (0.0, 0.1), (False, True)):
            for x in rows(dtype):
                if x.dim() != 2 or x.shape[1] < 2:
                    continue
                target = tc.randint(0, x.shape[1], (x.shape[0],))
                if x.shape[0] > 1:
                    target[0] = -100
                weight = (tc.arange(x.shape[1]) % 5 + 1).to(dtype) if weighted else None
                wide = [x.double(), target, None if weight is None else weight.double()]
                moved = [t if t is None else t.to("cuda") for t in (x, target, weight)]
                expected = ops.cross_entropy_forward(*wide, 1, -100, smoothing)
                found = ops.cross_entropy_forward(*moved, 1, -100, smoothing)
                near(found[0], expected[0], dtype, x.shape, smoothing, weighted)
                more = (1, -100, smoothing)
                one = tc.ones((), dtype=dtype)
                near(ops.cross_entropy_backward(one.to("cuda"), *moved, *more, *found[1:]),
                     ops.cross_entropy_backward(one.double(), *wide, *more, *expected[1:]), dtype, "gradient", x.shape)
        """
    )
