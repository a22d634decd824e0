"""Gradients of tables as sparse tensors: what they hold, how they add up, and steps with them."""

import pytest

import taeda as t
from taeda.nn import functional as F


def both(call, shape=(7, 3)):
    """Gradients of a table, sparse and dense, of the same program."""
    start = t.randn(*shape, dtype=t.float64)
    found = []
    for sparse in (True, False):
        table = start.clone().requires_grad_()
        made = call(table, sparse)
        (made * t.arange(1.0, made.numel() + 1, dtype=t.float64).reshape(made.shape)).sum().backward()
        found.append(table.grad)
    assert found[0].is_sparse and not found[1].is_sparse
    return found


INDICES = t.tensor([[1, 4, 1], [0, 6, 4]])


@pytest.mark.parametrize("padding", [None, 4, -6])
def test_embedding(padding):
    sparse, dense = both(lambda w, s: F.embedding(INDICES, w, padding_idx=padding, sparse=s))
    t.testing.assert_close(sparse.to_dense(), dense)
    assert sparse._nnz() == int(((-1 if padding is None else padding % 7) != INDICES).sum())


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("padding", [None, 4])
def test_embedding_bag(mode, padding):
    sparse, dense = both(lambda w, s: F.embedding_bag(INDICES, w, mode=mode, padding_idx=padding, sparse=s))
    t.testing.assert_close(sparse.to_dense(), dense)


def test_factors_of_bags():
    factors = t.tensor([0.5, 2, 1, 3, 0.25, 1], dtype=t.float64)
    offsets = t.tensor([0, 2])
    grads = []

    def call(w, s):
        each = factors.clone().requires_grad_()
        made = F.embedding_bag(INDICES.flatten(), w, offsets, mode="sum", per_sample_weights=each, sparse=s)
        grads.append(each)
        return made

    sparse, dense = both(call)
    t.testing.assert_close(sparse.to_dense(), dense)
    t.testing.assert_close(grads[0].grad, grads[1].grad)


def test_gradients_add_up():
    table = t.randn(7, 3, requires_grad=True)
    for _ in range(2):
        F.embedding(INDICES, table, sparse=True).sum().backward()
    twice = F.embedding(INDICES, table, sparse=True) + F.embedding(INDICES, table, sparse=True)
    (whole,) = t.autograd.grad(twice.sum(), table)
    t.testing.assert_close(table.grad.to_dense(), whole.to_dense())
    (mixed,) = t.autograd.grad(F.embedding(INDICES, table, sparse=True).sum() + table.sum(), table)
    t.testing.assert_close(mixed, whole.to_dense() / 2 + 1)


def test_optimizers_move_the_rows_that_were_used():
    for kind in (t.optim.SGD, t.optim.SparseAdam, t.optim.Adagrad):
        layer = t.nn.Embedding(7, 3, sparse=True)
        before = layer.weight.detach().clone()
        optimizer = kind(layer.parameters(), lr=0.1)
        layer(INDICES).sum().backward()
        optimizer.step()
        moved = (layer.weight.detach() != before).any(1)
        assert moved.tolist() == [i in INDICES.flatten().tolist() for i in range(7)]
    layer = t.nn.Embedding(7, 3, sparse=True)
    linear = t.nn.Linear(3, 2)
    optimizer = t.optim.SGD([*layer.parameters(), *linear.parameters()], lr=0.5)
    linear(layer(INDICES)).sum().backward()
    expected = linear.bias.detach() - 0.5 * linear.bias.grad
    optimizer.step()
    t.testing.assert_close(linear.bias.detach(), expected)


def test_what_does_not_go_together_says_so():
    table = t.randn(7, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="scale_grad_by_freq"):
        F.embedding(INDICES, table, scale_grad_by_freq=True, sparse=True)
    F.embedding(INDICES, table, sparse=True).sum().backward()
    with pytest.raises(RuntimeError, match="weight_decay"):
        t.optim.SGD([table], lr=0.1, weight_decay=0.1).step()


def test_grouped_products():
    rows, columns, ends = t.randn(6, 3), t.randn(2, 3, 4), t.tensor([2, 6])
    found = F.grouped_mm(rows, columns, offs=ends)
    t.testing.assert_close(found, t.cat([rows[:2] @ columns[0], rows[2:] @ columns[1]]))
    both = F.grouped_mm(rows.t(), rows, offs=ends)
    t.testing.assert_close(both, t.stack([rows[:2].t() @ rows[:2], rows[2:].t() @ rows[2:]]))
    with pytest.raises(RuntimeError, match="'offs'"):
        F.grouped_mm(rows, columns)


def test_bags_of_a_table_that_is_given_first():
    w = t.arange(8.0).reshape(4, 2)
    with pytest.warns(UserWarning, match="embedding_bag: the indices come before the table now"):
        made = F.embedding_bag(w, t.tensor([3, 0, 1]), t.tensor([0, 1]), mode="sum")
    assert made.tolist() == [[6.0, 7.0], [2.0, 4.0]]


@pytest.mark.parametrize("dtype", [t.float64, t.complex128])
@pytest.mark.parametrize("case", ["coordinates", "rows", "right", "vector", "batch"])
def test_products_have_second_gradients_of_both_operands(case, dtype):
    generator = t.Generator().manual_seed(3)
    dense, other, weight = (
        t.randn(*shape, dtype=dtype, generator=generator) for shape in ((3, 4), (4, 2), (3, 2))
    )
    dense = dense * t.tensor([[1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]])
    if case == "vector":
        other, weight = other[:, 0], weight[:, 0]
    if case == "batch":
        dense, other, weight = (x.expand(2, *x.shape).clone() for x in (dense, other, weight))

    def found(product):
        a, b, w = (x.clone().requires_grad_() for x in (dense, other, weight))
        first = t.autograd.grad(product(a, b), (a, b), w, create_graph=True)
        second = t.autograd.grad(first, (a, b, w), [(x * (1 + x.abs())).detach() for x in first])
        return [*first, *second]

    def product(a, b):
        if case == "right":
            return (b.mT @ a.mT.to_sparse()).mT
        return (a.to_sparse_csr() if case == "rows" else a.to_sparse()) @ b

    for mine, exact in zip(found(product), found(lambda a, b: a @ b), strict=True):
        t.testing.assert_close(mine, exact)
