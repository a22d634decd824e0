"""Kernels that do in a launch or two what is decomposed elsewhere: against the cpu's own, across borders of tiles."""

from __future__ import annotations

import device_programs as programs
import pytest

HEAD = """
import taeda_tensor_core as tc
kind = tc.get_device_module("cuda")
tc.manual_seed(SEED)
"""
HEAD += programs.launches()
HEAD += """
def there(value):
    if isinstance(value, tc.Tensor):
        return value.to("cuda")
    return [there(each) for each in value] if isinstance(value, list) else value

def near(found, expected, tolerance):
    found = found if isinstance(found, tuple) else (found,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for a, b in zip(found, expected):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.shape == b.shape and a.dtype == b.dtype, (a.shape, b.shape, a.dtype, b.dtype)
            assert tc.allclose(a.cpu(), b, rtol=tolerance, atol=tolerance, equal_nan=True), (a.cpu() - b).abs().max()

def check(name, *arguments, most, tolerance=1e-12):
    operator = getattr(tc.ops, name)
    moved = there(list(arguments))
    near(operator(*moved), operator(*arguments), tolerance)
    count = launches(lambda: operator(*moved))
    assert count <= most, (name, count)

d = dict(dtype=tc.float64)
"""


def run(program: str, seed: int = 1) -> None:
    print(f"seed {seed}")
    programs.run(program, HEAD.replace("SEED", str(seed)))


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy(reduction: int, weighted: bool) -> None:
    run(
        f"""
        weight = tc.rand(300, **d) if {weighted} else None
        for smoothing in (0.0, 0.2):
            for shape, places in (((5, 300), (5,)), ((2, 300, 3), (2, 3)), ((300,), ())):
                x, t = tc.randn(shape, **d) * 3, tc.randint(0, 300, places)
                if places:
                    t.reshape(-1)[1] = -100
                check("cross_entropy_forward", x, t, weight, {reduction}, -100, smoothing, most=2)
                out, lse, total = tc.ops.cross_entropy_forward(x, t, weight, {reduction}, -100, smoothing)
                grad = tc.randn(out.shape, **d)
                check("cross_entropy_backward", grad, x, t, weight, {reduction}, -100, smoothing, lse, total, most=1)
        half = tc.randn(4, 300).bfloat16()
        check("cross_entropy_forward", half, tc.arange(4), None, 1, -100, 0.0, most=2, tolerance=1e-2)
        """
    )


def test_a_class_out_of_range_is_told() -> None:
    run(
        """
        x, t = tc.randn(3, 4, device="cuda"), tc.tensor([0, 4, 1]).to("cuda")
        try:
            tc.ops.cross_entropy_forward(x, t, None, 1, -100, 0.0)[0].cpu()
        except IndexError as error:
            assert "cross_entropy_forward: index 4 is out of range for size 4" in str(error), error
        else:
            raise AssertionError
        """
    )


def test_gradients_of_layers_sum_over_many_rows() -> None:
    run(
        """
        for rows, columns in ((3, 5), (1, 300), (1500, 37), (700, 1)):
            x, w = tc.randn(rows, columns, **d), tc.rand(columns, **d)
            out, mean, rstd = tc.ops.native_layer_norm(x, [columns], w, None, 1e-5)
            g = tc.randn(rows, columns, **d)
            for mask in (7, 1, 2, 4):
                found = tc.ops.layer_norm_backward(*there([g, x, [columns], mean, rstd, w, mask]))
                near(found, tc.ops.layer_norm_backward(g, x, [columns], mean, rstd, w, mask), 1e-10)
            check("layer_norm_backward", g, x, [columns], mean, rstd, None, 7, most=4, tolerance=1e-10)
        """
    )


def test_groups_and_channels_are_normalised() -> None:
    run(
        """
        for shape in ((3, 6, 5, 7), (2, 6), (4, 6, 300)):
            x, w, b = tc.randn(*shape, **d) + 3, tc.rand(6, **d), tc.randn(6, **d)
            g = tc.randn(*shape, **d)
            for weight in (w, None):
                check("native_group_norm", x, 3, weight, b, 1e-5, most=1, tolerance=1e-11)
                _, mean, rstd = tc.ops.native_group_norm(x, 3, weight, b, 1e-5)
                check("group_norm_backward", g, x, 3, mean, rstd, weight, 7, most=2, tolerance=1e-10)
                for training in (True, False):
                    running = [tc.rand(6, **d) for _ in range(2)]
                    copies = [each.to("cuda") for each in running]
                    found = tc.ops.native_batch_norm(
                        *there([x, weight, b]), *copies, training, 0.1, 1e-5)
                    expected = tc.ops.native_batch_norm(x, weight, b, *running, training, 0.1, 1e-5)
                    near((*found, *copies), (*expected, *running), 1e-11)
                    more = [*expected[1:], training, 7]
                    check("batch_norm_backward", g, x, weight, *more, most=3, tolerance=1e-10)
        lasting = tc.randn(2, 6, 4, 4, **d).contiguous(memory_format=tc.channels_last)
        near(tc.ops.native_batch_norm(there(lasting), None, None, None, None, True, 0.1, 1e-5),
             tc.ops.native_batch_norm(lasting, None, None, None, None, True, 0.1, 1e-5), 1e-11)
        """
    )


def test_gates_of_recurrent_cells() -> None:
    run(
        """
        n, h = 3, 5
        a, b, c = tc.randn(n, 4 * h, **d), tc.randn(n, 4 * h, **d), tc.randn(n, h, **d)
        check("lstm_gates", a, b, c, most=1)
        _, c_out, gates = tc.ops.lstm_gates(a, b, c)
        for up in ((c, b[:, :h]), (None, c), (c, None)):
            check("lstm_gates_backward", *up, gates, c, c_out, most=2)
        a, b = a[:, : 3 * h], b[:, h:]
        check("gru_gates", a, b, c, most=3)
        check("gru_gates_backward", tc.randn(n, h, **d), tc.ops.gru_gates(a, b, c)[1], c, most=1)
        """
    )


@pytest.mark.parametrize(
    ("queries", "keys", "width", "value_width"), [(3, 5, 4, 4), (70, 65, 40, 33), (1, 40, 1, 70)]
)
def test_attention(queries: int, keys: int, width: int, value_width: int) -> None:
    run(
        f"""
        L, S, E, V = {queries}, {keys}, {width}, {value_width}
        q = tc.randn(2, L, 3, E, **d).transpose(1, 2)
        k, v = tc.randn(2, 3, S, E, **d), tc.randn(2, 3, S, V, **d)
        seen = tc.rand(2, 1, L, S) > 0.3
        seen[0, 0, 0] = False
        added = tc.randn(2, 3, L, S, **d)
        added[:, :, :, 0] = -float("inf")
        for mask in (None, seen.expand(2, 3, L, S), added):
            for causal in (False, True):
                if causal and mask is not None:
                    continue
                # Large ones are two products with a kernel between, a sample at a time where they cannot be merged.
                products = L * S >= 64 * 64
                check("fused_attention", q, k, v, mask, causal, 0.3, most=6 if products else 1, tolerance=1e-10)
                out, lse = tc.ops.fused_attention(q, k, v, mask, causal, 0.3)
                g = tc.randn(2, 3, L, V, **d)
                check("fused_attention_backward", g, q, k, v, mask, out, lse, causal, 0.3, 7,
                      most=14 if products else 4, tolerance=1e-10)
        half = [each.bfloat16() for each in (q, k, v)]
        check("fused_attention", *half, None, False, 0.3, most=1, tolerance=3e-2)
        """
    )


@pytest.mark.parametrize(("queries", "keys"), [(3, 5), (70, 65), (40, 110)])
@pytest.mark.parametrize(("heads", "shared"), [(4, 2), (3, 1), (2, 2)])
def test_several_heads_of_queries_share_one_of_keys(queries: int, keys: int, heads: int, shared: int) -> None:
    run(
        f"""
        L, S, E, V = {queries}, {keys}, 40, 33
        q = tc.randn(2, L, {heads}, E, **d).transpose(1, 2)
        k, v = tc.randn(2, S, {shared}, E, **d).transpose(1, 2), tc.randn(2, {shared}, S, V, **d)
        seen = tc.rand(2, {heads}, L, S) > 0.3
        for mask, causal in ((None, False), (None, True), (seen, False)):
            for query in (q, q.contiguous()):
                # Large ones are products, for which queries are copied that lie otherwise; keys and values are not.
                check("fused_attention", query, k, v, mask, causal, 0.3, most=10, tolerance=1e-10)
                out, lse = tc.ops.fused_attention(query, k, v, mask, causal, 0.3)
                g = tc.randn(2, {heads}, L, V, **d)
                for wanted in (7, 1, 2, 4):
                    check("fused_attention_backward", g, query, k, v, mask, out, lse, causal, 0.3, wanted, most=20,
                          tolerance=1e-10)
        """
    )


def test_a_step_takes_many_parameters_at_once() -> None:
    run(
        """
        def tensors(dtype):
            return [tc.randn(i % 7 + 1, 3, dtype=dtype) for i in range(60)]
        for dtype, tolerance in ((tc.float32, 1e-6), (tc.float64, 1e-13)):
            given = [tensors(dtype) for _ in range(4)] + [[each.abs() for each in tensors(dtype)]]
            given[3] = [each.abs() for each in given[3]]
            given[0][1] = tc.randn(3, 5, dtype=dtype).t()  # not in rows
            for other in (1, 2, 3, 4):
                given[other][1] = tc.rand(5, 3, dtype=dtype)
            moved = there(given)
            steps = list(range(1, 61))
            more = (steps, 0.1, 0.9, 0.99, 1e-8, 0.01, True, False, True)
            tc.ops._fused_adam_(*moved, *more)
            tc.ops._fused_adam_(*given, *more)
            for a, b in zip(moved, given):
                near(tuple(a), tuple(b), tolerance)
            tc.ops._fused_sgd_(*moved[:3], 0.1, 0.9, 0.0, 0.01, True, False, False)
            tc.ops._fused_sgd_(*given[:3], 0.1, 0.9, 0.0, 0.01, True, False, False)
            for a, b in zip(moved[:3], given[:3]):
                near(tuple(a), tuple(b), tolerance)
            assert launches(lambda: tc.ops._fused_adam_(*moved, *more)) <= 3 + 2
        """
    )


def test_dropout_in_one_pass() -> None:
    run(
        """
        for dtype in (tc.float32, tc.float64, tc.float16, tc.bfloat16, tc.complex64):
            for shape in ((1001,), (8, 125), (3, 1, 2), (), (0, 4)):
                for p in (0.0, 0.25, 0.9, 1.0):
                    x = (tc.rand(shape, dtype=tc.float64) + 1).to(dtype)
                    tc.manual_seed(9)
                    out, mask = tc.ops.native_dropout(x.to("cuda"), p)
                    scale = 1 / (1 - p) if p < 1 else 0.0
                    near(out, tc.ops.native_dropout_backward(x, mask.cpu(), scale), 1e-6 * dtype.is_complex)
                    assert out.shape == mask.shape == x.shape and mask.dtype == tc.bool
                    if p in (0, 1):
                        assert bool((mask.cpu() == (p == 0)).all())
                    # The same bits from the same seed, wherever the elements lie.
                    tc.manual_seed(9)
                    wide = tc.stack([x, x], -1).to("cuda")[..., 1]
                    again = tc.ops.native_dropout(wide, p)
                    assert tc.equal(again[1].cpu(), mask.cpu()) and tc.equal(again[0].cpu(), out.cpu())
                    more = tc.ops.native_dropout(wide, p)[1].cpu()
                    assert x.numel() < 100 or p in (0, 1) or not tc.equal(more, mask.cpu())
        x = tc.ones(1 << 16, device="cuda")
        moved = tc.ones((1 << 16) + 1, device="cuda")[1:]  # aligned to an element alone
        for p in (0.1, 0.5, 0.75):
            tc.manual_seed(4)
            mask = tc.ops.native_dropout(x, p)[1].cpu()
            tc.manual_seed(4)
            assert tc.equal(tc.ops.native_dropout(moved, p)[1].cpu(), mask)
            # Five standard deviations, in each place of four, and of neighbours together.
            count = mask.numel()
            for part in (mask, *(mask[k::4] for k in range(4))):
                assert abs(part.double().mean().item() - (1 - p)) < 5 * (p * (1 - p) / part.numel()) ** 0.5
            both = (mask[1:] & mask[:-1]).double().mean().item()
            assert abs(both - (1 - p) ** 2) < 8 * (p * (1 - p) / count) ** 0.5
        assert launches(lambda: tc.ops.native_dropout(tc.ones(64, device="cuda"), 0.5)) <= 2  # one of them fills
        """
    )
