"""Distances between rows, and bags of a table's rows, by kernels of their own: against NumPy."""

from __future__ import annotations

import device_programs as programs

HEAD = programs.compared(1e-11)


def test_distances() -> None:
    """Every norm, blocks that are not full, no rows, no elements, other types and layouts; gradients by the formula."""
    programs.check(
        """
        def norm(d, p):
            return (d != 0).sum(-1) if p == 0 else np.linalg.norm(d, p, -1)
        for p in (0.0, 1.0, 2.0, 3.0, 0.5, np.inf):
            for batch, left, right, width in ((1, 17, 33, 5), (3, 2, 1, 40), (2, 16, 16, 16), (1, 1, 50, 1)):
                a, b = rng.standard_normal((batch, left, width)), rng.standard_normal((batch, right, width))
                expected = norm(a[:, :, None] - b[:, None], p) if width > 1 or p else np.ones((batch, left, right))
                near(tc.ops.cdist_forward(there(a), there(b), p), expected)
                if p == 2:
                    near(tc.ops.euclidean_dist(there(a), there(b)), expected)
                g = rng.standard_normal((batch, left, right))
                slope = tc.ops.cdist_backward(there(g), there(a), there(b), p, there(np.float64(expected)))
                d, far = a[:, :, None] - b[:, None], np.float64(expected)[..., None]
                by = np.sign(d) * (abs(d) == far) if p == np.inf else np.sign(d) * (abs(d) / far) ** (p - 1) * (p > 0)
                near(slope, (by * g[..., None]).sum(2), 1e-9)
            x = rng.standard_normal((9, 7))
            i, j = np.triu_indices(9, 1)
            near(tc.ops.pdist_forward(there(x), p), norm(x[i] - x[j], p))
        turned = there(np.ascontiguousarray(x.T)).t()
        near(tc.ops.pdist_forward(turned, 2.0), norm(x[i] - x[j], 2))
        near(tc.ops.pdist_forward(there(np.float32(x)), 2.0), norm(x[i] - x[j], 2), 1e-5)
        near(tc.ops.cdist_forward(there(a[:, :0]), there(b), 2.0), np.zeros((1, 0, 50)))
        near(tc.ops.cdist_forward(there(a[..., :0]), there(b[..., :0]), 2.0), np.zeros((1, 1, 50)))
        near(tc.ops.pdist_forward(there(x[:1]), 2.0), np.zeros(0))
        same = there(np.ones((1, 2, 3)))
        near(tc.ops.cdist_backward(there(np.ones((1, 2, 2))), same, same, 2.0, there(np.zeros((1, 2, 2)))),
             np.zeros((1, 2, 3)))
        odd = np.array([[[1.0, np.nan]]])
        near(tc.ops.cdist_forward(there(odd), there(np.ones((1, 1, 2))), np.inf), [[[np.nan]]])
        """,
        HEAD,
        60,
    )


def test_bags() -> None:
    """Sums, means, maxima; empty bags, rows that are left out, factors; what offsets and indices are wrong is told."""
    programs.check(
        """
        table = rng.standard_normal((20, 6))
        for offsets, count in (([0, 3, 3, 7], 11), ([0], 4), ([0, 0, 5], 5), ([0, 2], 2)):
            for last in (False, True):
                for padding in (None, 4, -1):
                    for mode in range(3):
                        indices = rng.integers(0, 20, count)
                        indices[::3] = 4 if padding != -1 else 19
                        bags = len(offsets) - last
                        ends = [*offsets[1:bags], count]
                        factors = rng.standard_normal(count) if mode == 0 and len(offsets) > 1 else None
                        found = tc.ops.embedding_bag(
                            there(table), there(indices), there(np.array(offsets)), mode=mode,
                            include_last_offset=last, padding_idx=padding,
                            per_sample_weights=None if factors is None else there(factors))
                        sums, places, sizes = np.zeros((bags, 6)), np.zeros((bags, 6), int), []
                        owners = np.zeros(count, int)
                        for b in range(bags):
                            at = np.arange(offsets[b], ends[b])
                            owners[at] = b
                            left = at[indices[at] != (padding if padding is None else padding % 20)]
                            rows = table[indices[left]]
                            sizes.append(len(left))
                            if factors is not None:
                                rows = rows * factors[left, None]
                            if len(left) and mode == 2:
                                sums[b], places[b] = rows.max(0), indices[left][rows.argmax(0)]
                            elif len(left):
                                sums[b] = rows.sum(0) / (len(left) if mode == 1 else 1)
                        near(found[0], sums)
                        assert (found[1].cpu().numpy() == owners).all()
                        assert found[2].tolist() == sizes
                        if mode == 2:
                            assert (found[3].cpu().numpy() == places).all()
        small = there(np.float32(table)).to(tc.float16)
        near(tc.ops.embedding_bag(small, there(np.array([3, 3, 5])), there(np.array([0, 1])))[0],
             [table[3], table[3] + table[5]], 4e-3)
        for indices, offsets in (([1, 20], [0]), ([1, 2], [0, 3]), ([1, 2], [1]), ([1, 2, 3], [0, 2, 1])):
            try:
                tc.ops.embedding_bag(there(table), there(np.array(indices)), there(np.array(offsets)))[0].cpu()
            except (IndexError, RuntimeError) as error:
                wrong = "embedding_bag: index" if 20 in indices else "embedding_bag: argument 'offsets' has"
                assert wrong in str(error), error
                tried += 1
        """,
        HEAD,
        76,
    )
