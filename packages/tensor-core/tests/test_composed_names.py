"""Functions beside the operators, sequences, statistics of running programs, nested tensors."""

import math
import time
from datetime import timedelta

import numpy as np
import pytest

import taeda

qmc = pytest.importorskip("scipy.stats").qmc


def same(found, expected, rtol=1e-6):
    np.testing.assert_allclose(np.asarray(found.detach()), np.asarray(expected), rtol=rtol, atol=1e-7)


@pytest.mark.parametrize("places", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_convolution_is_that_of_its_dimensions(places, transposed):
    x, w = taeda.randn(2, 4, *[6] * places), taeda.randn(4, 4, *[3] * places)
    ones, none = [1] * places, [0] * places
    kind = f"conv_transpose{places}d" if transposed else f"conv{places}d"
    same(
        taeda.convolution(x, w, None, ones, ones, ones, transposed, none, 1),
        getattr(taeda.nn.functional, kind)(x, w, padding=1).detach(),
    )
    with pytest.raises(RuntimeError, match="3 to 5 dimensions"):
        taeda.convolution(x, taeda.ones(3), None, ones, ones, ones, transposed, none, 1)


def test_norms():
    x = taeda.randn(3, 4)
    a = x.numpy()
    same(taeda.frobenius_norm(x), np.linalg.norm(a))
    same(taeda.frobenius_norm(x, 1, True), np.linalg.norm(a, axis=1, keepdims=True))
    same(taeda.nuclear_norm(x), np.linalg.norm(a, "nuc"), rtol=1e-5)
    same(taeda.native_norm(x, 3), (np.abs(a) ** 3).sum() ** (1 / 3), rtol=1e-5)
    same(taeda.norm_except_dim(x, 2, 1), np.linalg.norm(a, axis=0, keepdims=True))
    with pytest.raises(IndexError, match="norm_except_dim"):
        taeda.norm_except_dim(x, 2, 5)


def test_files(tmp_path):
    name = tmp_path / "numbers.bin"
    np.arange(6, dtype=np.float32).tofile(name)
    private = taeda.from_file(str(name), size=4)
    private[0] = 9
    assert np.fromfile(name, np.float32)[0] == 0
    shared = taeda.from_file(str(name), shared=True, size=8)
    shared[6] = 7
    assert np.fromfile(name, np.float32).tolist() == [0, 1, 2, 3, 4, 5, 7, 0]
    with pytest.raises(RuntimeError, match="expected at least"):
        taeda.from_file(str(name), size=100)


def test_control_flow():
    x = taeda.tensor(3.0)
    assert taeda.cond(x > 2, lambda a: a + 1, lambda a: a - 1, (x,)).item() == 4
    (found,) = taeda.while_loop(lambda n: n < 10, lambda n: (n * 2,), (taeda.tensor(1),))
    assert found.item() == 16
    with pytest.raises(RuntimeError, match="expected 1"):
        taeda.while_loop(lambda n: True, lambda n: (n, n), (x,))
    with pytest.raises(RuntimeError, match="one element"):
        taeda.cond(taeda.ones(2) > 0, lambda: 1, lambda: 2)


def test_sparse_products():
    dense = taeda.tensor([[1.0, 0, 2], [0, 0, 3]])
    sparse, right = dense.to_sparse(), taeda.randn(3, 2)
    same(taeda.smm(sparse, right).to_dense(), dense @ right)
    same(taeda.hspmm(sparse, right).to_dense(), dense @ right)
    same(taeda.spmm(sparse, right), dense @ right)
    same(taeda.indices_copy(sparse), sparse.indices())
    with pytest.raises(RuntimeError, match="expected a sparse"):
        taeda.smm(dense, right)
    with pytest.raises(RuntimeError, match="expected a sparse tensor"):
        dense.indices()
    assert (dense.sparse_dim(), dense.dense_dim()) == (0, 2)


def test_binomial():
    taeda.manual_seed(3)
    drawn = taeda.binomial(taeda.full((20000,), 30.0), taeda.full((20000,), 0.3))
    assert abs(drawn.mean().item() - 9) < 0.1 and abs(drawn.var().item() - 6.3) < 0.3
    with pytest.raises(RuntimeError, match="negative"):
        taeda.binomial(taeda.tensor([-1.0]), taeda.tensor([0.5]))


@pytest.mark.parametrize("dimension", [1, 3, 50])
def test_sobol_points_are_those_of_scipy(dimension):
    engine = taeda.quasirandom.SobolEngine(dimension)
    found = taeda.cat([engine.draw(1), engine.draw(3), engine.draw(12)])
    same(found, qmc.Sobol(dimension, scramble=False, bits=30).random(16))
    same(engine.reset().fast_forward(4).draw(2), found[4:6])
    assert engine.reset().draw_base2(3, dtype=taeda.float64).dtype == taeda.float64
    with pytest.raises(ValueError, match="power of 2"):
        taeda.quasirandom.SobolEngine(2).fast_forward(3).draw_base2(3)


def test_scrambled_points_are_even():
    engine = taeda.quasirandom.SobolEngine(4, scramble=True, seed=5)
    found = engine.draw(64).numpy()
    for column in found.T:  # one point in each of 64 intervals: what scrambling keeps
        assert sorted((column * 64).astype(int)) == list(range(64))
    same(taeda.quasirandom.SobolEngine(4, scramble=True, seed=5).draw(64), found)
    assert not np.allclose(taeda.quasirandom.SobolEngine(4, scramble=True, seed=6).draw(64), found)


def test_events_and_statistics():
    heard = []
    handle = taeda.monitor.register_event_handler(heard.append)
    try:
        kinds = taeda.monitor.Aggregation
        stat = taeda.monitor.Stat("loss", [kinds.MEAN, kinds.MAX], timedelta(days=1), 3)
        stat.add(1)
        assert stat.count == 1 and stat.get() == {kinds.MEAN: 0.0, kinds.MAX: 0.0}
        for value in (2, 6, 4):  # the last finds the window full
            stat.add(value)
        assert stat.count == 0 and stat.get() == {kinds.MEAN: 3.0, kinds.MAX: 6.0}
        assert [e.data for e in heard] == [{"loss.mean": 3.0, "loss.max": 6.0}]
    finally:
        taeda.monitor.unregister_event_handler(handle)
    taeda.monitor.log_event(heard[0])
    assert len(heard) == 1


def test_statistics_of_the_window_that_ended_last():
    kinds = taeda.monitor.Aggregation
    stat = taeda.monitor.Stat("time", [kinds.SUM, kinds.COUNT], timedelta(milliseconds=1), 2)
    for _ in range(2):
        time.sleep(0.003)
        stat.add(2)
        stat.add(3)
        assert stat.count in (0, 1)
    time.sleep(0.003)
    stat.add(1)
    assert stat.count == 1 and stat.get()[kinds.SUM] in (5.0, 3.0)


PARTS = [(2, 3), (4, 3), (1, 3)]


def test_nested_tensors_are_their_parts():
    parts = [taeda.randn(s) for s in PARTS]
    x = taeda.nested.nested_tensor(parts, requires_grad=True)
    assert x.is_nested and x.size(0) == 3 and x.size(-1) == 3 and x.numel() == 21 and x.dtype == taeda.float32
    with pytest.raises(RuntimeError, match="irregular"):
        x.size(1)
    w = taeda.randn(5, 3)
    made = taeda.nn.functional.linear((x * 2).relu() + x, w)
    for part, each in zip(parts, made.unbind(), strict=True):
        same(each, taeda.nn.functional.linear((part * 2).relu() + part, w))
    padded = taeda.nested.to_padded_tensor(made, -1.0)
    assert padded.shape == (3, 4, 5) and (padded[2, 1:] == -1).all()
    padded.sum().backward()
    assert [g.shape for g in (p.grad for p in x.unbind())] == PARTS
    same(x.softmax(-1).unbind()[1], parts[1].softmax(-1))
    same(x.sum(), sum(p.sum() for p in parts), rtol=1e-4)
    with pytest.raises(NotImplementedError, match="nested"):
        x.cumprod(0)
    with pytest.raises(NotImplementedError, match="nested"):
        taeda.conv1d(x, w)


def test_nested_tensors_of_one_buffer():
    values = taeda.arange(10.0).reshape(5, 2)
    x = taeda.nested.nested_tensor_from_jagged(values, taeda.tensor([0, 2, 5]))
    assert [p.tolist() for p in x.unbind()] == [values[:2].tolist(), values[2:].tolist()]
    assert x.offsets().tolist() == [0, 2, 5]
    picked = taeda.nested.masked_select(
        taeda.tensor([[1, 2], [3, 4]]), taeda.tensor([[True, False], [True, True]])
    )
    assert [p.tolist() for p in picked.unbind()] == [[1], [3, 4]]


def test_complex_logarithms_of_sums():
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(50) * 3 + 1j * rng.standard_normal(50) for _ in range(2))
    found = taeda.logaddexp(taeda.tensor(a), taeda.tensor(b)).numpy()
    np.testing.assert_allclose(np.exp(found), np.exp(a) + np.exp(b), rtol=1e-12)
    huge = taeda.logaddexp(taeda.tensor([1000 + 1j, -np.inf + 0j]), taeda.tensor([1000 + 1j, -np.inf + 0j]))
    np.testing.assert_allclose(huge.numpy()[0], 1000 + np.log(2) + 1j)
    assert huge.numpy()[1].real == -np.inf
    x, y = (taeda.tensor(v, requires_grad=True) for v in (a[:3], b[:3]))
    assert taeda.autograd.gradcheck(taeda.logaddexp, (x, y))


def test_a_size_of_one_meets_all_of_the_other_tensor():
    a, b = taeda.randn(2, 1), taeda.randn(4, 3)
    same(taeda.tensordot(a, b, ([1], [0])), a.numpy() @ b.numpy().sum(0, keepdims=True), rtol=1e-5)
    same(taeda.tensordot(b, a, ([0], [1])), b.numpy().sum(0)[:, None] @ a.numpy().T, rtol=1e-5)
    with pytest.raises(RuntimeError, match="does not fit"):
        taeda.tensordot(b, taeda.randn(2, 5), ([0], [0]))


def test_statistics_of_normalisations():
    x = taeda.randn(4, 6, 5).half()
    _, mean, _ = taeda.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)
    assert mean.dtype == taeda.float16
    assert taeda.native_layer_norm(x, (5,), None, None, 1e-5)[1].dtype == taeda.float16
    ones = taeda.ones(6, dtype=taeda.float32)
    assert taeda.native_batch_norm(x, None, None, ones, ones, False, 0.1, 1e-5)[1].shape == (0,)
    y = taeda.randn(2, 6, 3, dtype=taeda.float64, requires_grad=True)
    _, mean, rstd = taeda.native_group_norm(y, None, None, 2, 6, 3, 2, 1e-5)
    rows = y.reshape(2, 2, -1)
    same(mean, rows.mean(-1).detach())
    (mean.sum() + rstd.sum()).backward()
    found = y.grad.clone()
    y.grad = None
    (rows.mean(-1).sum() + (rows.var(-1, unbiased=False) + 1e-5).rsqrt().sum()).backward()
    same(found, y.grad)


def test_rrelu_in_place():
    x = taeda.tensor([-8.0, 2.0])
    assert taeda.rrelu_(x, 0.25, 0.25) is x and x.tolist() == [-2, 2]
    y = taeda.tensor([-8.0, 2.0], requires_grad=True)
    taeda.nn.functional.rrelu(y * 1, 0.25, 0.25, inplace=True).sum().backward()
    assert y.grad.tolist() == [0.25, 1]


def test_binomial_of_what_is_not_finite():
    count, chance = taeda.tensor([math.nan, 20.0, math.inf, 20.0]), taeda.tensor([0.5, math.nan, 0.5, 1.0])
    assert taeda.binomial(count, chance).isnan().tolist() == [True, True, True, False]
