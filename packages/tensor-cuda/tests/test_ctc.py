"""Connectionist temporal classification, gamma functions and draws on the device: against sums over all paths, the cpu
in float64, and what chances say."""

from __future__ import annotations

import device_programs as programs

HEAD = programs.compared(1e-9) + programs.launches()
HEAD += """
import itertools
tc.manual_seed(SEED)

def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))

def fails(work, kind_of, text):
    global tried
    tried += 1
    try:
        work()
        kind.synchronize()
    except kind_of as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)
"""


def test_losses_are_those_of_all_paths_and_gradients_their_slopes() -> None:
    programs.check(
        """
        def collapsed(path, blank):
            return [c for k, c in enumerate(path) if c != blank and (k == 0 or c != path[k - 1])]

        def loss(x, labels, blank):
            total = 0.0
            for path in itertools.product(range(x.shape[1]), repeat=len(x)):
                if collapsed(path, blank) == list(labels):
                    total += np.exp(sum(x[t, c] for t, c in enumerate(path)))
            return -np.log(total)

        for blank in (0, 2):
            others = [c for c in range(4) if c != blank]
            x = log_softmax(rng.normal(size=(5, 3, 4)))
            targets = np.array([[others[0], others[1], others[0]], [others[1], others[1], 0], [others[2], 0, 0]])
            inputs, lengths = np.array([5, 4, 3]), np.array([3, 2, 1])
            arguments = [there(targets), there(inputs), there(lengths)]
            expected = [loss(x[:inputs[n], n], targets[n, :lengths[n]], blank) for n in range(3)]
            losses, alpha = tc.ops.ctc_loss_forward(there(x), *arguments, blank, False)
            near(losses, expected)
            up = rng.normal(size=3)
            slopes = tc.ops.ctc_loss_backward(there(up), there(x), *arguments, losses, alpha, blank, False)
            # Of scores before log_softmax, as the operator has them.
            wanted = np.zeros_like(x)
            for place in np.ndindex(*x.shape):
                shifted = []
                for step in (1e-6, -1e-6):
                    moved = x.copy()
                    moved[place] += step
                    moved = log_softmax(moved)
                    n = place[1]
                    shifted.append(loss(moved[:inputs[n], n], targets[n, :lengths[n]], blank))
                wanted[place] = (shifted[0] - shifted[1]) / 2e-6 * up[place[1]]
            near(slopes, wanted, 1e-6)
        """,
        HEAD,
        4,
    )


def test_long_targets_and_odd_layouts_agree_with_the_cpu_and_take_few_launches() -> None:
    programs.check(
        """
        for dtype, tolerance in (("float64", 1e-9), ("float32", 2e-4)):
            for labels, classes in ((300, 5), (7, 40), (0, 3)):
                steps, count = 2 * labels + 40, 3
                x = log_softmax(rng.normal(size=(steps, count, classes))).astype(dtype)
                targets = rng.integers(1, classes, (count, labels)).astype("int32")
                inputs, lengths = np.array([steps, steps - 7, steps // 2]), np.array([labels, labels // 2, labels // 3])
                up = rng.normal(size=count).astype(dtype)

                def steps_on(put):
                    given = [put(x), put(targets), put(inputs), put(lengths)]
                    turned = given[0].permute(2, 0, 1).contiguous().permute(1, 2, 0)
                    losses, alpha = tc.ops.ctc_loss_forward(turned, *given[1:], 0, False)
                    return losses, tc.ops.ctc_loss_backward(put(up), turned, *given[1:], losses, alpha, 0, True)

                for found, expected in zip(steps_on(there), steps_on(tc.from_numpy)):
                    near(found, expected.to(tc.float64).numpy(), tolerance)
        # Without a way through a target there is no gradient, or none that is a number.
        x = log_softmax(rng.normal(size=(2, 1, 3)))
        one = [there(np.array(v)) for v in ([[1, 1]], [2], [2])]
        losses, alpha = tc.ops.ctc_loss_forward(there(x), *one, 0, False)
        assert np.isposinf(losses.cpu().numpy()).all()
        for zero_infinity in (True, False):
            given = [there(np.ones(1)), there(x), *one, losses, alpha, 0, zero_infinity]
            g = tc.ops.ctc_loss_backward(*given).cpu().numpy()
            assert (g == 0).all() if zero_infinity else np.isnan(g).all()
            tried += 1
        given = [there(x), *one]
        assert launches(lambda: tc.ops.ctc_loss_forward(*given, 0, False)) == 1
        assert launches(lambda: tc.ops.ctc_loss_backward(losses, *given, losses, alpha, 0, False)) == 3
        """,
        HEAD,
        14,
    )


def test_wrong_lengths_and_labels_are_told_as_the_cpu_tells_them() -> None:
    programs.check(
        """
        x = there(log_softmax(rng.normal(size=(4, 2, 3))))
        for targets, inputs, lengths, text in (
            ([[1, 2], [1, 3]], [4, 4], [2, 2], "argument 'targets' has 3, expected one of the classes, 0 to 2"),
            ([[1, 2], [1, -1]], [4, 4], [2, 2], "argument 'targets' has -1, expected one of the classes, 0 to 2"),
            ([[1, 2], [1, 2]], [4, 5], [2, 2], "argument 'input_lengths' has 5, expected 0 to 4"),
            ([[1, 2], [1, 2]], [4, -1], [2, 2], "argument 'input_lengths' has -1, expected 0 to 4"),
            ([[1, 2], [1, 2]], [4, 4], [3, 2], "argument 'target_lengths' has 3, expected 0 to 2"),
        ):
            given = [there(np.array(v)) for v in (targets, inputs, lengths)]
            fails(lambda: tc.ops.ctc_loss_forward(x, *given, 0, False), RuntimeError, "ctc_loss_forward: " + text)
            host = [v.cpu() for v in (x, *given)]
            fails(lambda: tc.ops.ctc_loss_forward(*host, 0, False), RuntimeError, text)
        """,
        HEAD,
        10,
    )


def test_gamma_functions_have_the_cpu_s_numbers_on_the_device() -> None:
    programs.check(
        """
        a = np.concatenate([rng.uniform(0, 60, 400), 10 ** rng.uniform(-3, 5, 400), [0, 1, np.inf, np.nan, 25, 25]])
        x = np.concatenate([rng.uniform(0, 60, 400), a[400:800] * rng.uniform(0.5, 1.5, 400), [0, 0, 1, 1, 25, np.inf]])
        for f in (tc.special.gammainc, tc.special.gammaincc):
            near(f(there(a), there(x)), f(tc.from_numpy(a), tc.from_numpy(x)).numpy(), 1e-13)
            for dtype in (tc.float32, tc.float16):
                pair = [there(v).to(dtype) for v in (a[:400], x[:400])]
                on_cpu = f(*(v.cpu() for v in pair)).to(tc.float64).numpy()
                near(f(*pair), on_cpu, 2e-3 if dtype == tc.float16 else 1e-5)
            pair = [there(a), there(x)]
            assert launches(lambda: f(*pair)) <= 4
        """,
        HEAD,
        6,
    )


def test_waits_for_a_success_and_cauchy_s_numbers_have_their_shares() -> None:
    programs.check(
        """
        n = 40_000
        for dtype in (tc.float64, tc.float32, tc.int64):
            drawn = tc.empty(n, device="cuda", dtype=dtype).geometric_(0.3).cpu().to(tc.float64).numpy()
            for k in (1, 2, 3, 6):
                share = 0.3 * 0.7 ** (k - 1)
                assert abs((drawn == k).mean() - share) <= 5 * np.sqrt(share * (1 - share) / n), k
                tried += 1
            assert drawn.min() == 1
        assert (tc.empty(9, device="cuda").geometric_(1 - 1e-9) == 1).all().item()
        for at in (-3.0, 0.0, 2.0, 7.0):
            drawn = tc.empty(n, device="cuda").cauchy_(2.0, 0.5).cpu().numpy()
            share = np.arctan((at - 2) / 0.5) / np.pi + 0.5
            assert abs((drawn <= at).mean() - share) <= 5 * np.sqrt(share * (1 - share) / n), at
            tried += 1
        turned = tc.zeros(50, 40, device="cuda").t()
        turned[:, ::2].cauchy_()
        assert (turned[:, ::2] != 0).all().item() and (turned[:, 1::2] == 0).all().item()
        assert launches(lambda: tc.empty(9, device="cuda").cauchy_()) == 1
        """,
        HEAD,
        16,
    )


def test_operands_without_elements_and_places_beyond_are_refused_as_on_the_cpu() -> None:
    programs.check(
        """
        for device in ("cpu", "cuda"):
            none, no_weights = tc.ones(0).to(device), "has a row whose weights sum up to 0"
            fails(lambda: none.as_strided((2, 2), (3, 1)), RuntimeError, "of a storage of 0")
            part = tc.ones(2, 2).to(device)
            fails(lambda: tc.as_strided_scatter(none, part, (2, 2), (3, 1)), RuntimeError, "a storage of 0")
            for shape, more in (((3, 0), (1, True)), ((0,), (2, True)), ((3, 0), (1, True))):
                fails(lambda: tc.multinomial(tc.ones(*shape).to(device), *more), RuntimeError, no_weights)
            assert tc.multinomial(tc.ones(0, 5).to(device), 2).shape == (0, 2)
            truth = tc.ones(3, dtype=tc.bool).to(device)
            fails(lambda: tc.addcmul(truth, truth, truth), NotImplementedError, "not implemented for dtype bool")
            whole = tc.ones(2, 3, dtype=tc.int32).to(device)
            fails(lambda: tc.ops.embedding_backward(whole, tc.arange(2).to(device), 4, -1, False), NotImplementedError,
                  "embedding_backward: not implemented for dtype int32")
            lu = tc.eye(3, dtype=tc.float64).to(device)
            fails(lambda: tc.linalg.lu_solve(lu, tc.tensor([1, 2, 7], dtype=tc.int32).to(device), lu), RuntimeError,
                  "argument 'pivots' has 7, expected numbers from 1 to 3")
            fails(lambda: tc.bincount(tc.tensor([1, -2]).to(device)), RuntimeError, "non-negative integers, found -2")
            near(tc.bincount(tc.tensor([1, 4, 1]).to(device), minlength=2), [0, 2, 0, 0, 1])
            nothing = tc.zeros(4, 0, dtype=tc.float64).to(device)
            few = tc.zeros(0, dtype=tc.float64).to(device)
            found = tc.ops.batch_norm_backward(nothing, nothing, few, few, few, True, 7)
            assert [tuple(t.shape) for t in found] == [(4, 0), (0,), (0,)]
            # Sums are those of the dtype before they are divided.
            near(tc.zeros(1, dtype=tc.uint8).to(device).scatter_reduce(0, tc.zeros(2, dtype=tc.int64).to(device),
                 tc.tensor([200, 100], dtype=tc.uint8).to(device), "mean", include_self=False), [22])
            grad, x = tc.tensor([5, 6, 7]).to(device), tc.tensor([1, 2, 3]).to(device)
            near(tc.ops.threshold_backward(grad, x, 1), [0, 6, 7])
            near(tc.ops.threshold_backward(grad, x, 2.5), [0, 0, 7])
        """,
        HEAD,
        26,
    )
