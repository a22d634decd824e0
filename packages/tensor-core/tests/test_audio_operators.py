"""The operators of torchaudio, beside SciPy's filter, loops over samples and sums over all paths."""

import itertools

import numpy as np
import pytest
import scipy.signal
import scipy.special

import taeda_tensor_core as tc


@pytest.fixture
def ops(tmp_path):
    library = tmp_path / "torchaudio" / "lib" / "_torchaudio.abi3.so"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"")
    tc.ops.load_library(library)
    assert tc.ops._torchaudio.is_align_available() and tc.ops._torchaudio.cuda_version() is None
    return tc.ops.torchaudio


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_filters(ops, order):
    signal = numbers(2, 3, 20)
    weights = np.concatenate([np.ones((3, 1)), 0.3 * numbers(3, order - 1, seed=1)], 1)
    out = tc.zeros(2, 3, 20 + order - 1, dtype=tc.float64)
    ops._lfilter_core_loop(tc.from_numpy(signal), tc.from_numpy(weights[:, ::-1].copy()), out)
    expected = np.stack([scipy.signal.lfilter([1.0], weights[c], signal[:, c]) for c in range(3)], 1)
    np.testing.assert_allclose(out.numpy()[:, :, order - 1 :], expected, rtol=1e-12, atol=1e-14)


def test_overdrive(ops):
    waveform, temp = numbers(2, 9), numbers(2, 9, seed=1)
    entered, left, expected = np.zeros(2), np.zeros(2), np.zeros((2, 9))
    for at in range(9):
        left = temp[:, at] - entered + 0.995 * left
        entered = temp[:, at]
        expected[:, at] = waveform[:, at] * 0.5 + left * 0.75
    out, first, second = (tc.zeros(*shape, dtype=tc.float64) for shape in ((2, 9), (2,), (2,)))
    ops._overdrive_core_loop(tc.from_numpy(waveform), tc.from_numpy(temp), first, second, out)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(second.numpy(), left, rtol=1e-12)


@pytest.mark.parametrize("labels", [[1, 2], [2, 2], [3], []])
def test_alignments(ops, labels):
    scores = scipy.special.log_softmax(numbers(5, 4), -1)
    paths = [
        path
        for path in itertools.product(range(4), repeat=5)
        if [label for label, _ in itertools.groupby(path) if label] == labels
    ]
    best = max(paths, key=lambda path: sum(scores[t, label] for t, label in enumerate(path)))
    lengths = tc.tensor([5]), tc.tensor([len(labels)])
    targets = tc.tensor([labels], dtype=tc.int32)
    path, kept = ops.forced_align(tc.from_numpy(scores[None]), targets, *lengths, 0)
    assert path.tolist() == [list(best)] and path.dtype == tc.int32
    np.testing.assert_array_equal(kept.numpy(), scores[None])


def test_what_cannot_be_aligned(ops):
    scores = tc.zeros(1, 2, 4)
    with pytest.raises(RuntimeError, match="too long"):
        ops.forced_align(scores, tc.tensor([[2, 2]]), tc.tensor([2]), tc.tensor([2]), 0)
    with pytest.raises(RuntimeError, match=r"\(1, time, classes\)"):
        ops.forced_align(scores[0], tc.tensor([[2]]), tc.tensor([2]), tc.tensor([1]), 0)


def all_ways(scores, labels):
    """Minus the logarithm of the sum over all orders of waiting and speaking."""
    times, found = len(scores), []
    for spoken in itertools.combinations(range(times - 1 + len(labels)), len(labels)):
        t = u = 0
        total = 0.0
        for step in range(times - 1 + len(labels)):
            if step in spoken:
                total += scores[t, u, labels[u]]
                u += 1
            else:
                total += scores[t, u, 0]
                t += 1
        found.append(total + scores[t, u, 0])
    return -scipy.special.logsumexp(found)


@pytest.mark.parametrize("fused", [True, False])
def test_the_loss_of_transducers(ops, fused):
    logits, targets, lengths = numbers(2, 4, 3, 3), [[1, 2], [2, 0]], ([4, 3], [2, 1])

    def loss(values):
        known = scipy.special.log_softmax(values, -1) if fused else values
        return np.array(
            [all_ways(known[i, :t], targets[i][:u]) for i, (t, u) in enumerate(zip(*lengths, strict=True))]
        )

    given = [tc.tensor(targets), *map(tc.tensor, lengths)]
    costs, gradients = ops.rnnt_loss_forward(tc.from_numpy(logits), *given, 0, -1.0, fused)
    np.testing.assert_allclose(costs.numpy(), loss(logits), rtol=1e-10)
    for place in itertools.product(*map(range, logits.shape)):
        moved = np.zeros_like(logits)
        moved[place] = 1e-5
        slope = (loss(logits + moved) - loss(logits - moved)).sum() / 2e-5
        np.testing.assert_allclose(gradients.numpy()[place], slope, atol=1e-8)
    assert ops.rnnt_loss_forward(tc.from_numpy(logits), *given, 0, 0.1, fused)[1].abs().max().item() <= 0.1
