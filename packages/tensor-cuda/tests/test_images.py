"""Kernels over images and many elements, in both layouts, across borders of packs, tiles and parts, beside the cpu."""

from __future__ import annotations

import device_programs as programs
import pytest

HEAD = """
import copy, itertools
import taeda_tensor_core as tc, taeda_tensor_cuda as cuda
tc.manual_seed(SEED)
LAST = tc.channels_last
TOLERANCE = {tc.float64: 1e-9, tc.float32: 2e-4, tc.bfloat16: 6e-2, tc.float16: 1e-2}
tried = 0

def drawn(*shape, dtype=tc.float64, scale=1.0):
    return (tc.randn(*shape, dtype=tc.float64) * scale).to(dtype)

def near(found, expected, dtype, *what):
    global tried
    tried += 1
    assert found.shape == expected.shape, (what, found.shape, expected.shape)
    if expected.numel():
        found, expected = found.detach().cpu().double(), expected.detach().double()
        good = tc.allclose(found, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype], equal_nan=True)
        assert good, (what, (found - expected).abs().max())

def lying(t, last):
    return t.contiguous(memory_format=LAST) if last and t.dim() == 4 else t
"""


def run(program: str, seed: int = 1, **environment: str) -> None:
    programs.check(program, HEAD, 4, seed, **environment)


CONVOLUTIONS = """
ops = tc.ops
for dtype, last in itertools.product((tc.float64, tc.float32, tc.bfloat16), (False, True)):
    # images, channels, height, width, filters, kernel, stride, padding, dilation, groups
    for n, c, h, w, o, k, s, p, d, g in [
        (2, 3, 8, 9, 4, 3, 1, 1, 1, 1), (2, 4, 8, 9, 4, 3, 2, 1, 1, 2), (1, 4, 7, 7, 8, 1, 1, 0, 1, 1),
        (3, 4, 9, 9, 4, 3, 1, 2, 2, 4), (0, 3, 5, 5, 3, 3, 1, 0, 1, 1),
    ]:
        x, weight, bias = drawn(n, c, h, w, dtype=dtype), drawn(o, c // g, k, k, dtype=dtype), drawn(o, dtype=dtype)
        window = [s, s], [p, p], [d, d], g
        wide = [t.double() for t in (x, weight, bias)]
        expected = ops.conv2d(*wide, *window)
        there = [lying(x, last).to("cuda"), weight.to("cuda"), bias.to("cuda")]
        found = ops.conv2d(*there, *window)
        near(found, expected, dtype, "conv2d", n, last)
        near(ops.conv2d(*there[:2], None, *window), ops.conv2d(*wide[:2], None, *window), dtype, "no bias")
        into = tc.empty(expected.shape, dtype=dtype, device="cuda").transpose(2, 3).contiguous().transpose(2, 3)
        near(ops.conv2d(*there, *window, out=into), expected, dtype, "out", n, last)
        grad = drawn(*expected.shape, dtype=dtype)
        for mask in (7, 1, 2, 4):
            slopes = ops.conv2d_backward(lying(grad, not last).to("cuda"), *there[:2], *window, mask)
            wanted = ops.conv2d_backward(grad.double(), *wide[:2], *window, mask)
            for a, b in zip(slopes, wanted):
                assert (a is None) == (b is None)
                if b is not None:
                    near(a, b, dtype, "conv2d_backward", n, mask, last)
                    assert a.dtype == dtype
one = drawn(3, 6, 7)
ones = tc.ones(2, 3, 3, 3, dtype=tc.float64)
near(tc.ops.conv2d(one.to("cuda"), ones.to("cuda")), tc.ops.conv2d(one, ones), tc.float64, "no batch")
"""


VOLUMES = """
ops = tc.ops
for dtype, last in itertools.product((tc.float64, tc.float32, tc.complex128), (False, True)):
    # images, channels, depth, height, width, filters, kernel, stride, padding, dilation, groups
    for n, c, z, h, w, o, k, s, p, d, g in [
        (2, 3, 5, 6, 7, 4, (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
        (2, 4, 6, 5, 7, 4, (2, 3, 1), (2, 1, 3), (1, 0, 0), (1, 2, 1), 2),
        (1, 4, 3, 3, 4, 8, (1, 1, 1), (1, 1, 1), (0, 0, 0), (1, 1, 1), 1),
        (1, 4, 7, 6, 5, 4, (3, 2, 2), (1, 2, 1), (2, 1, 1), (2, 1, 2), 4),
        (0, 3, 4, 5, 5, 3, (3, 3, 3), (1, 1, 1), (0, 0, 0), (1, 1, 1), 1),
    ]:
        wide_dtype = tc.complex128 if dtype.is_complex else tc.float64
        def some(*shape):
            x = drawn(*shape, dtype=tc.float64 if dtype.is_complex else dtype)
            return x + 1j * drawn(*shape) if dtype.is_complex else x
        x, weight, bias = some(n, c, z, h, w), some(o, c // g, *k), some(o)
        window = list(s), list(p), list(d), g
        wide = [t.to(wide_dtype) for t in (x, weight, bias)]
        expected = ops.conv3d(*wide, *window)
        def close(found, other, *what):
            if dtype.is_complex:
                found, other = tc.view_as_real(found), tc.view_as_real(other)
            near(found, other, tc.float32 if dtype == tc.float32 else tc.float64, *what)
        def turned(t):
            return t.contiguous(memory_format=tc.channels_last_3d) if last else t
        there = [turned(x).to("cuda"), weight.to("cuda"), bias.to("cuda")]
        close(ops.conv3d(*there, *window), expected, "conv3d", n, last)
        close(ops.conv3d(*there[:2], None, *window), ops.conv3d(*wide[:2], None, *window), "no bias")
        grad = some(*expected.shape)
        for mask in (7, 1, 2, 4):
            slopes = ops.conv3d_backward(turned(grad).to("cuda"), *there[:2], *window, mask)
            wanted = ops.conv3d_backward(grad.to(wide_dtype), *wide[:2], *window, mask)
            for a, b in zip(slopes, wanted):
                assert (a is None) == (b is None)
                if b is not None:
                    close(a, b, "conv3d_backward", n, mask, last)
                    assert a.dtype == dtype
one, ones = drawn(3, 4, 6, 7), tc.ones(2, 3, 3, 3, 2, dtype=tc.float64)
near(ops.conv3d(one.to("cuda"), ones.to("cuda")), ops.conv3d(one, ones), tc.float64, "no batch")
grad = drawn(2, 2, 4, 6)
for a, b in zip(ops.conv3d_backward(*(t.to("cuda") for t in (grad, one, ones)), [1], [0], [1], 1, 7),
                ops.conv3d_backward(grad, one, ones, [1], [0], [1], 1, 7)):
    near(a, b, tc.float64, "gradients without a batch")
"""


@pytest.mark.parametrize("libraries", ["", "none"])
def test_convolutions_of_volumes_with_and_without_the_library(libraries: str) -> None:
    run(VOLUMES, TAEDA_CUDA_LIBRARIES=libraries)


@pytest.mark.parametrize("libraries", ["", "none"])
def test_convolutions_with_and_without_the_library(libraries: str) -> None:
    run(CONVOLUTIONS, TAEDA_CUDA_LIBRARIES=libraries)


def test_a_failed_convolution_is_told() -> None:
    run(
        """
        from taeda_tensor_cuda._library import call
        x, w = tc.ones(1, 2, 4, 4, device="cuda"), tc.ones(2, 2, 3, 3, device="cuda")
        call(None, "fail", b"convolution", 1)
        try:
            tc.ops.conv2d(x, w)
        except RuntimeError as error:
            assert str(error).startswith("conv2d: cuda: convolution: unspecified failure"), error
        else:
            raise AssertionError
        assert tc.ops.conv2d(x, w).cpu().eq(18).all()
        tried = 4
        """
    )


def test_results_of_convolutions_have_their_channels_beside_each_other() -> None:
    run(
        """
        x, w = drawn(2, 3, 6, 6).to("cuda"), drawn(4, 3, 3, 3).to("cuda")
        for dtype in (tc.float32, tc.bfloat16):
            assert tc.ops.conv2d(x.to(dtype), w.to(dtype)).is_contiguous(memory_format=LAST)
        assert tc.ops.conv2d(x, w).is_contiguous()
        assert tc.ops.max_pool2d(x, [2, 2]).is_contiguous()
        tried = 4
        """
    )
    run(
        """
        x, w = tc.ones(2, 3, 6, 6, device="cuda"), tc.ones(4, 3, 3, 3, device="cuda")
        assert tc.ops.conv2d(x, w).is_contiguous()
        tried = 4
        """,
        TAEDA_CUDA_LIBRARIES="none",
    )


def test_settings_of_the_library() -> None:
    run(
        """
        cudnn = tc.backends.cudnn
        x, w = tc.ones(1, 2, 4, 4, device="cuda"), tc.ones(2, 2, 3, 3, device="cuda")
        assert cudnn.is_available() and cudnn.allow_tf32 and not cudnn.benchmark
        with cudnn.flags(enabled=False, benchmark=True, deterministic=True, allow_tf32=False):
            for name, value in (("enabled", 0), ("benchmark", 1), ("deterministic", 1), ("allow_tf32", 0)):
                assert cuda._library.library().taeda_cuda_cudnn_setting(name.encode(), -1) == value, name
            assert tc.ops.conv2d(x, w).is_contiguous()
        assert tc.ops.conv2d(x, w).is_contiguous(memory_format=LAST)
        try:
            cudnn.benchmark = "yes"
        except TypeError as error:
            assert "backends.cudnn.benchmark: expected a bool, found str" in str(error), error
        else:
            raise AssertionError
        assert cudnn.benchmark is False
        tried = 4
        """
    )


def test_batches_are_normalised_in_both_layouts() -> None:
    run(
        """
        shapes = [(4, 3, 5, 7), (2, 8, 4, 4), (33, 12, 3, 3), (64, 256, 2, 2), (5, 6), (300, 130), (3, 5, 9),
                  (2, 3, 2, 3, 4), (1, 4, 1, 5), (40, 4, 17, 16)]
        for shape, dtype, last, training in itertools.product(
            shapes, (tc.float64, tc.float32, tc.bfloat16), (False, True), (True, False)
        ):
            kinds = {dtype, tc.float32} if dtype == tc.bfloat16 else {dtype}
            for kind in kinds:
                x, g = drawn(*shape, dtype=dtype, scale=3) + 50, drawn(*shape, dtype=dtype)
                weight, bias, mean, var = (tc.rand(shape[1], dtype=tc.float64).to(kind) for _ in range(4))
                wide = [t.double() for t in (x, weight, bias, mean, var)]
                moved = [t.to("cuda", copy=True) for t in (lying(x, last), weight, bias, mean, var)]
                expected = tc.ops.native_batch_norm(*wide, training, 0.1, 1e-5)
                found = tc.ops.native_batch_norm(*moved, training, 0.1, 1e-5)
                for a, b in zip((*found, *moved[3:]), (*expected, *wide[3:])):
                    near(a, b, dtype, "native_batch_norm", shape, last, training)
                assert not (last and len(shape) == 4) or found[0].is_contiguous(memory_format=LAST)
                if kind != dtype:
                    continue
                for mask in (7, 1, 6):
                    slopes = tc.ops.batch_norm_backward(
                        lying(g, last).to("cuda"), *moved[:2], *found[1:], training, mask)
                    wanted = tc.ops.batch_norm_backward(g.double(), *wide[:2], *expected[1:], training, mask)
                    for a, b in zip(slopes, wanted):
                        assert (a is None) == (b is None)
                        if b is not None:
                            near(a, b, dtype, "batch_norm_backward", shape, last, training, mask)
        large = tc.tensor([1e6, 1e6 + 1, 1e6 + 2, 1e6 + 3] * 500).reshape(2000, 1)
        found, expected = (
            tc.ops.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)[0]
            for x in (large.to("cuda"), large.double())
        )
        near(found, expected, tc.float32, "large")
        """
    )


def test_pooling_in_both_layouts() -> None:
    run(
        """
        ops = tc.ops
        def both(name, x, *window, last, backward, dtype):
            "The operator, and its gradient for what it gave."
            moved = lying(x, last).to("cuda")
            expected, found = getattr(ops, name)(x, *window), getattr(ops, name)(moved, *window)
            expected, found = (r if isinstance(r, tuple) else (r,) for r in (expected, found))
            for a, b in zip(found, expected):
                near(a, b, dtype, name, x.shape, window, last)
                assert a.dtype == b.dtype
            if backward is None or not dtype.is_floating_point:
                return
            g = drawn(*expected[0].shape, dtype=dtype)
            near(getattr(ops, backward)(lying(g, last).to("cuda"), moved, *window, *found[1:]),
                 getattr(ops, backward)(g, x, *window, *expected[1:]), dtype, backward, x.shape, window, last)
        for shape, dtype, last in itertools.product(
            [(2, 3, 7, 9), (2, 8, 13, 12), (1, 4, 6, 6), (4, 9, 8)],
            (tc.float64, tc.float32, tc.bfloat16, tc.int64), (False, True),
        ):
            x = drawn(*shape, scale=4).round().to(dtype)
            if dtype.is_floating_point:
                x[..., 0, 0] = float("nan")
            kind = dtype if dtype.is_floating_point else tc.float64
            TOLERANCE.setdefault(dtype, 0.0)
            more = dict(last=last, dtype=dtype)
            for window in (([3, 3], [2, 2], [1, 1], [1, 1], False), ([2, 3], [1, 1], [0, 0], [2, 1], True)):
                both("max_pool2d_with_offsets", x, *window, backward="max_pool2d_backward", **more)
                both("max_pool2d_with_indices", x, *window, backward="max_pool2d_with_indices_backward", **more)
            if not dtype.is_floating_point:
                continue
            # Windows that begin at every second place, in one dimension or both, which threads take by cells.
            for window in (([2, 2], [2, 2], [0, 0], [1, 1], True), ([1, 3], [1, 2], [0, 1], [1, 1], False),
                           ([4, 2], [2, 1], [2, 0], [1, 3], False), ([3, 2], [2, 2], [1, 1], [2, 2], True),
                           ([2, 2], [3, 2], [0, 0], [1, 1], False)):
                both("max_pool2d_with_offsets", x, *window, backward="max_pool2d_backward", **more)
                both("max_pool2d_with_indices", x, *window, backward="max_pool2d_with_indices_backward", **more)
            for window in (([3, 3], [2, 2], [1, 1], False, True, None), ([3, 2], [2, 1], [1, 1], True, False, None),
                           ([2, 2], [], [0, 0], False, True, 3)):
                both("avg_pool2d", x, *window, backward="avg_pool2d_backward", **more)
            for size in ([1, 1], [3, 2], [7, 9]):
                both("adaptive_max_pool2d", x, size, backward=None, **more)
                found = ops.adaptive_avg_pool2d(lying(x, last).to("cuda"), size)
                near(found, ops.adaptive_avg_pool2d(x, size), dtype, size)
                g = drawn(*shape[:-2], *size, dtype=dtype)
                near(ops.adaptive_avg_pool2d_backward(lying(g, last).to("cuda"), lying(x, last).to("cuda")),
                     ops.adaptive_avg_pool2d_backward(g, x), dtype, "adaptive backward", size)
        """
    )


def test_reductions_across_borders_of_parts() -> None:
    run(
        """
        shapes = [(5,), (1000,), (70001,), (33, 65), (1024, 7), (3, 2000), (8, 4097), (2, 3, 40, 41), (130, 5, 17),
                  (6000, 40), (40, 6000), (0, 4), (4, 0)]
        TOLERANCE.update({tc.int64: 0.0, tc.int32: 0.0, tc.uint8: 0.0, tc.bool: 0.0})
        for shape, dtype in itertools.product(shapes, TOLERANCE):
            x = drawn(*shape, scale=3).round().to(dtype)
            dims = [d for k in range(1, len(shape) + 1) for d in itertools.combinations(range(len(shape)), k)][:6]
            ways = [lambda t: t, lambda t: t.transpose(0, -1), lambda t: t[1:], lambda t: lying(t, True)]
            for way, d in itertools.product(ways, dims):
                here, there = way(x), way(x.to("cuda"))
                for name in ("sum", "mean", "amax", "any", "prod", "argmax"):
                    if (name == "mean" and not dtype.is_floating_point) or (name in ("prod", "argmax") and len(d) > 1):
                        continue
                    if name in ("amax", "argmax") and 0 in [here.shape[i] for i in d]:
                        continue
                    kept = d[0] if name in ("prod", "argmax") else d
                    with __import__("warnings").catch_warnings():
                        __import__("warnings").simplefilter("ignore")
                        expected, found = getattr(here, name)(kept), getattr(there, name)(kept)
                    assert found.dtype == expected.dtype
                    near(found, expected, dtype, name, shape, d)
        """
    )


def test_steps_of_lstm_layers() -> None:
    run(
        """
        for dtype, reverse, biased, (t, n, h) in itertools.product(
            (tc.float64, tc.float32, tc.bfloat16), (False, True), (False, True),
            ((5, 3, 6), (1, 2, 4), (4, 1, 5), (0, 2, 3)),
        ):
            given = [drawn(*s, dtype=dtype) for s in ((t, n, 4 * h), (n, h), (n, h), (4 * h, h))]
            given.append(drawn(4 * h, dtype=dtype) if biased else None)
            wide = [None if g is None else g.double() for g in given]
            moved = [None if g is None else g.to("cuda") for g in given]
            expected, found = tc.ops.lstm_sequence(*wide, reverse), tc.ops.lstm_sequence(*moved, reverse)
            for a, b in zip(found, expected):
                near(a, b, dtype, "lstm_sequence", reverse, t)
            for lacking in ((), (0,), (1, 2)):
                grads = [drawn(*s, dtype=dtype) for s in ((t, n, h), (n, h), (n, h))]
                some = [None if i in lacking else g for i, g in enumerate(grads)]
                wanted = tc.ops.lstm_sequence_backward(
                    *[g if g is None else g.double() for g in some], *wide[1:4], expected[0], *expected[3:], reverse)
                slopes = tc.ops.lstm_sequence_backward(
                    *[g if g is None else g.to("cuda") for g in some], *moved[1:4], found[0], *found[3:], reverse)
                for a, b in zip(slopes, wanted):
                    near(a, b, dtype, "lstm_sequence_backward", reverse, t, lacking)
        """
    )


def test_copies_that_turn_matrices() -> None:
    run(
        """
        for dtype, shape in itertools.product(
            (tc.float32, tc.bfloat16, tc.int8, tc.int64, tc.complex128, tc.bool),
            ((33, 65), (8, 8), (3, 40, 50), (5, 9, 7, 33), (2, 64, 1, 17), (130, 257)),
        ):
            x = drawn(*shape, scale=5).round().to(dtype)
            there = x.to("cuda")
            for way in (lambda t: t.transpose(-1, -2), lambda t: t.transpose(0, 1), lambda t: t.transpose(0, -1)[1:],
                        lambda t: t[..., ::2].transpose(0, -1)):
                assert tc.equal(way(there).contiguous().cpu(), way(x).contiguous()), (dtype, shape)
                tried += 1
            if len(shape) == 4:
                assert tc.equal(lying(there, True).cpu(), x) and tc.equal(lying(there, True).contiguous().cpu(), x)
        """
    )


def test_element_wise_work_on_many_elements() -> None:
    run(
        """
        for n, dtype in itertools.product(
            ((1 << 20), (1 << 20) + 1, (1 << 20) + 4097), (tc.float32, tc.bfloat16, tc.float64, tc.int32)
        ):
            x, y = drawn(n, dtype=dtype, scale=10), drawn(n, dtype=dtype, scale=10)
            a, b = x.to("cuda"), y.to("cuda")
            assert tc.equal((a + b).cpu(), x + y) and tc.equal((a * 3).cpu(), x * 3)
            assert tc.equal((a < b).cpu(), x < y) and tc.equal((a[1:] + b[:-1]).cpu(), x[1:] + y[:-1])
            into = tc.empty(n, device="cuda")
            tc.ops.lt(a, b, out=into)
            assert tc.equal(into.cpu(), (x < y).float())
            assert tc.equal(a.to(tc.bfloat16).cpu(), x.to(tc.bfloat16))
            if dtype == tc.float32:
                near(tc.exp(a / 10), tc.exp(x.double() / 10), dtype, "exp")
            tried += 1
        for dtype, (one, other) in itertools.product((tc.float32, tc.bfloat16), (
            ((300, 4096), (4096,)), ((4096, 300), (4096, 1)), ((8, 64, 50, 60), (64, 1, 1)),
            ((8, 64, 50, 51), (64, 1, 1)), ((8, 64, 53, 51), (51,)), ((8, 64, 50, 60), (8, 1, 1, 1)),
            ((4, 8, 64, 1024), (8, 64, 1)),
        )):
            x, y = drawn(*one, dtype=dtype), drawn(*other, dtype=dtype)
            a, b = x.to("cuda"), y.to("cuda")
            assert tc.equal((a + b).cpu(), x + y) and tc.equal((b - a).cpu(), y - x), (one, other)
            assert tc.equal((lying(a, True) * b).cpu(), x * y)
            tried += 1
        """
    )
