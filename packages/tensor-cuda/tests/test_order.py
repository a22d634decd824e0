"""Order, running values and picked rows across the borders of blocks, on the simulated driver, beside NumPy."""

from __future__ import annotations

import device_programs as programs

HEAD = """
import numpy as np
import taeda_tensor_core as tc
ops = tc.ops
rng = np.random.default_rng(SEED)
tried = 0

def same(found, expected, *what):
    global tried
    tried += 1
    np.testing.assert_array_equal(found.cpu().numpy(), expected, err_msg=str(what))

def on(array):
    return tc.from_numpy(np.ascontiguousarray(array)).to("cuda")

def lines(length, kind):
    "Three lines with many equal elements, and with those that are none of order."
    shape = (3, length)
    if kind is np.bool_:
        return rng.integers(0, 2, shape).astype(kind)
    if np.issubdtype(kind, np.integer):
        facts = np.iinfo(kind)
        x = rng.integers(facts.min, facts.max, shape, dtype=kind, endpoint=True)
        x[:, ::3] = rng.integers(0, 5, x[:, ::3].shape)
        return x
    x = (rng.standard_normal(shape) * 4).astype(kind)
    x[:, ::5] = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.5], x[:, ::5].shape)
    return x
"""


def run(program: str, least: int, seed: int = 1) -> None:
    programs.check(program, HEAD, least, seed)


def test_sorting_is_stable_in_every_dtype_and_for_lines_of_any_length() -> None:
    run(
        """
        WHOLE = (np.bool_, np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint16, np.uint32, np.uint64)
        for length in (1, 2, 31, 33, 255, 2047, 2049, 9001):
            for kind in (*WHOLE, np.float16, np.float32, np.float64):
                x = lines(length, kind)
                t = on(x)
                for descending in (False, True):
                    values, places = ops.sort(t, -1, descending)
                    # By rank, so that equal ones, of which NaNs are the largest, stay in their order.
                    rank = np.stack([np.unique(row, return_inverse=True)[1].reshape(-1) for row in x])
                    expected = np.argsort(-rank if descending else rank, axis=-1, kind="stable")
                    same(places, expected, kind, length, descending)
                    same(values, np.take_along_axis(x, expected, -1), kind, length, descending)
        """,
        8 * 12 * 2 * 2,
    )


def test_sorting_along_any_dimension_and_of_strided_lines() -> None:
    run(
        """
        x = rng.standard_normal((3, 40, 5)).astype(np.float32)
        t = on(x)
        for dim in range(3):
            same(ops.sort(t, dim)[0], np.sort(x, dim), dim)
            same(ops.sort(t, dim)[1], np.argsort(x, dim, kind="stable"), dim)
        same(ops.sort(t[:, ::2].transpose(0, 1), 0)[0], np.sort(x[:, ::2].swapaxes(0, 1), 0))
        same(ops.sort(t.expand(2, 3, 40, 5)[1], 1)[0], np.sort(x, 1))
        """,
        8,
    )


def test_elements_of_a_rank_are_found_in_lines_of_any_length() -> None:
    run(
        """
        KINDS = (np.bool_, np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint16, np.uint32, np.uint64)
        for length in (1, 2, 31, 33, 255, 2049, 9001):
            for kind in (*KINDS, np.float16, np.float32, np.float64):
                x = lines(length, kind)
                order = np.argsort(np.stack([np.unique(row, return_inverse=True)[1].reshape(-1) for row in x]), -1,
                                   kind="stable")
                for rank in (0, length - 1, length // 2, rng.integers(0, length, 3)):
                    ranks = np.broadcast_to(np.int64(rank), (3,)).copy()[:, None]
                    found = ops.rank_indices(on(x), on(ranks), -1)
                    same(found, np.take_along_axis(order, ranks, -1), kind, length, rank)
        # Few long lines, many long lines; other dimensions; a number.
        for shape, dim in (((2, 140_001), 1), ((64, 140_000), 1), ((3, 40, 5), 1), ((300, 4), 0)):
            x = rng.integers(-50, 50, shape).astype(np.float32)
            ranks = rng.integers(0, shape[dim], [1 if d == dim else size for d, size in enumerate(shape)])
            expected = np.take_along_axis(np.argsort(x, dim, kind="stable"), ranks, dim)
            same(ops.rank_indices(on(x), on(ranks), dim), expected, shape, dim)
            turned = on(np.moveaxis(x, dim, 0)).movedim(0, dim) if len(shape) == 3 else on(x.T).t()
            same(ops.rank_indices(turned, on(ranks), dim), expected, shape, dim, "turned")
        same(ops.rank_indices(on(np.array(2.5)), on(np.array(0)), 0), np.array(0))
        for length in (5, 100, 140_000):
            for wrong in (-1, length):
                try:
                    ops.rank_indices(tc.zeros(2, length).to("cuda"), tc.tensor([[0], [wrong]]).to("cuda"), 1).cpu()
                    raise SystemExit("no error")
                except IndexError as error:
                    assert str(wrong) in str(error) and "rank_indices" in str(error), error
        # What is made of them.
        x = rng.standard_normal((6, 101)).astype(np.float32)
        same(tc.median(on(x), 1)[0], np.median(x, 1))
        same(tc.kthvalue(on(x), 7, 1)[1], np.argsort(x, 1)[:, 6])
        """,
        7 * 12 * 4 + 8 + 3,
    )


def test_the_first_of_lines_of_any_length() -> None:
    run(
        """
        for length, k in ((1, 1), (20, 7), (2000, 1999), (2049, 1), (2049, 2049), (9001, 40), (9001, 2048),
                          (9001, 2100), (140_001, 3)):
            for kind in (np.bool_, np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64):
                x = lines(length, kind)
                rank = np.stack([np.unique(row, return_inverse=True)[1].reshape(-1) for row in x])
                for largest in (False, True):
                    # As sorting has them, equal ones in their order.
                    expected = np.argsort(-rank if largest else rank, axis=-1, kind="stable")[:, :k]
                    values, places = ops.topk(on(x), k, 1, largest, True)
                    same(places, expected, kind, length, k, largest)
                    same(values, np.take_along_axis(x, expected, -1), kind, length, k, largest)
        x = rng.standard_normal((65, 3000)).astype(np.float32)
        for dim in (0, 1):
            expected = np.argsort(-x, dim, kind="stable").take(range(5), dim)
            for t in (on(x), on(x.T).t()):
                values, places = ops.topk(t, 5, dim)
                same(places, expected, dim)
                same(values, np.take_along_axis(x, expected, dim), dim)
        same(ops.topk(on(np.array(2.5)), 1, 0)[1], np.array(0))
        same(ops.topk(on(np.zeros((2, 3))), 0, 1)[0], np.zeros((2, 0)))
        """,
        9 * 7 * 4 + 10,
    )


def test_rows_by_an_index_in_units_of_any_size() -> None:
    run(
        """
        for kind in (np.uint8, np.int16, np.float32, np.complex128):
            for inner in (1, 2, 3, 4, 8, 16, 33):
                x = rng.integers(0, 100, (50, inner)).astype(kind)
                index = rng.integers(0, 50, 70)
                same(ops.index_select(on(x), 0, on(index)), x[index], kind, inner)
                flat = on(np.concatenate([np.zeros(1, kind), x.reshape(-1)]))
                moved = flat[1:].reshape(50, inner)  # aligned to an element alone
                same(ops.index_select(moved, 0, on(index)), x[index], kind, inner, "moved")
                wide = np.stack([x, x + 1])
                same(ops.index_select(on(wide), 1, on(index)), wide[:, index], kind, inner, "outer")
        """,
        80,
    )


def test_many_rows_add_up_to_those_that_an_index_names() -> None:
    run(
        """
        for count, rows in ((10, 3), (5000, 300), (9000, 100_000)):
            index = rng.integers(0, rows, count)
            grad = rng.integers(-8, 8, (count, 3)).astype(np.float32)
            expected = np.zeros((rows, 3), np.float32)
            np.add.at(expected, index, grad)
            same(ops.embedding_backward(on(grad), on(index), rows, -1, False), expected, count)
            same(ops.scatter_add(tc.zeros(rows).to("cuda"), 0, on(index), on(grad[:, 0])), expected[:, 0], count)
            lines = rng.integers(0, rows, (2, count))
            expected = np.zeros((2, rows), np.int64)
            for line in range(2):
                np.add.at(expected[line], lines[line], np.arange(count))
            source = np.tile(np.arange(count), (2, 1))
            same(ops.scatter_add(tc.zeros(2, rows, dtype=tc.int64).to("cuda"), 1, on(lines), on(source)), expected)
        """,
        9,
    )


def test_running_values_of_lines_that_several_blocks_share() -> None:
    run(
        """
        for lines, length in ((1, 40), (3, 2048), (2, 2049), (1, 70_001), (40, 5000)):
            x = rng.integers(-3, 4, (lines, length))
            t = on(x)
            same(ops.cumsum(t, 1), np.cumsum(x, 1), lines, length)
            same(ops.cumsum(t.to(tc.float64), 1), np.cumsum(x, 1), lines, length)
            values, places = ops.cummax(t, 1)
            same(values, np.maximum.accumulate(x, 1), lines, length)
            is_last = x >= np.maximum.accumulate(x, 1)
            expected = np.maximum.accumulate(np.where(is_last, np.arange(length), 0), 1)
            same(places, expected, lines, length)
            near = ops.logcumsumexp(t.to(tc.float64), 1).cpu().numpy()
            np.testing.assert_allclose(near, np.logaddexp.accumulate(x.astype(float), 1), rtol=1e-12)
            same(ops.nonzero(t), np.argwhere(x), lines, length)
        """,
        25,
    )


def test_folds_in_parts_of_few_and_of_many_outputs() -> None:
    run(
        """
        for shape in ((70_001,), (3, 20_000), (20_000, 3), (5000, 40), (2, 9000, 7)):
            x = rng.integers(-9, 10, shape)
            for kind in (np.int64, np.int32, np.uint8, np.float32, np.float64, np.float16):
                y = x.astype(kind)
                t = on(y)
                for dims in ([], *([d] for d in range(len(shape)))):
                    axis = tuple(dims) or None
                    if kind != np.float16:
                        same(ops.sum(t, dims), y.astype(np.float64).sum(axis), kind, shape, dims)
                    same(ops.amax(t, dims), y.max(axis), kind, shape, dims)
                    some = ops.any(t[..., 1:], dims) if dims else ops.any(t[..., 1:])  # [] folds nothing
                    same(some, y[..., 1:].any(axis), kind, shape, dims)
                for d in range(len(shape)):
                    same(ops.argmin(t, d, False), y.argmin(d), kind, shape, d)
        """,
        200,
    )


def test_strided_operands_in_packs_of_rows() -> None:
    run(
        """
        for kind in (np.float32, np.float16, np.int64, np.bool_):
            x = (rng.integers(0, 3, (6, 10, 16))).astype(kind)
            t = on(x)
            views = [
                (t[:, 2:6], x[:, 2:6]),
                (t[..., 4:12], x[..., 4:12]),
                (t[..., 1:9], x[..., 1:9]),
                (t[:, :, ::2], x[:, :, ::2]),
                (t.transpose(0, 1), x.swapaxes(0, 1)),
                (t.transpose(1, 2), x.swapaxes(1, 2)),
                (t[:, :1].expand(6, 10, 16), np.broadcast_to(x[:, :1], x.shape)),
                (t[..., :1].expand(6, 10, 16), np.broadcast_to(x[..., :1], x.shape)),
            ]
            for view, expected in views:
                same(ops.clone(view), expected, kind, view.shape, view.stride())
                same(ops.mul(view, view), expected * expected, kind, view.shape, view.stride())
                to = tc.zeros(*expected.shape[:-1], 32, dtype=t.dtype).to("cuda")[..., 3 : 3 + expected.shape[-1]]
                to.copy_(view)
                same(to, expected, kind, view.shape, view.stride(), "into a part")
        big = rng.standard_normal((1100, 1024)).astype(np.float32)
        t = on(big)
        same(ops.add(t, on(big.T.copy()).t()), big + big)
        same(ops.add(t[:1024], t[:1024].t()), big[:1024] + big[:1024].T)
        mask = big > 0
        same(ops.where(on(mask), t, ops.neg(t)), np.where(mask, big, -big))
        """,
        95,
    )
