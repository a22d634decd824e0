"""Nested tensors in other shapes: what is done to a nested tensor is done to each of its parts."""

import copy
import io
import pickle

import numpy as np
import pytest

import taeda_tensor_core as tc
from taeda_tensor_core.program_names import SymInt

PARTS = (tc.arange(24.0).reshape(2, 12).sin(), tc.arange(60.0).reshape(5, 12).cos())


def made(layout=tc.jagged):
    return tc.nested.nested_tensor(list(PARTS), layout=layout)


def same(nested, expected):
    parts = nested.unbind()
    return len(parts) == len(expected) and all(
        a.shape == b.shape and bool(tc.equal(a, b)) for a, b in zip(parts, expected, strict=True)
    )


@pytest.mark.parametrize(
    ("whole", "part"),
    [
        (lambda x: x.unflatten(-1, [3, 4]), lambda p: p.reshape(-1, 3, 4)),
        (lambda x: x.unflatten(-1, [3, 4]).flatten(-2), lambda p: p),
        (lambda x: x.unflatten(2, [3, 4]).permute(0, 2, 1, 3), lambda p: p.reshape(-1, 3, 4).transpose(0, 1)),
        (lambda x: x.unsqueeze(1), lambda p: p[None]),
        (lambda x: x.unsqueeze(-1).squeeze(-1), lambda p: p),
        (lambda x: x.view(2, -1, 3, 4), lambda p: p.reshape(-1, 3, 4)),
        (lambda x: x.reshape(x.shape[0], x.shape[1], -1, 4), lambda p: p.reshape(-1, 3, 4)),
        (lambda x: x[..., 1:3], lambda p: p[:, 1:3]),
        (lambda x: x[:, :, -1], lambda p: p[:, -1]),
        (lambda x: x.select(-1, 0), lambda p: p[:, 0]),
        (lambda x: x.narrow(-1, 1, 2), lambda p: p[:, 1:3]),
        (lambda x: tc.chunk(x, 3, dim=-1)[1], lambda p: p[:, 4:8]),
        (lambda x: x.split([5, 7], -1)[1], lambda p: p[:, 5:]),
        (lambda x: tc.erf(x), lambda p: p.erf()),
        (lambda x: 1 / x, lambda p: 1 / p),
        (lambda x: tc.where(x > 0, x, -x), lambda p: p.abs()),
        (lambda x: tc.cat([x, x * 2], -1), lambda p: tc.cat([p, p * 2], 1)),
        (lambda x: tc.cat([x[:1], x[1:]]), lambda p: p),
    ],
)
def test_shapes_of_the_parts(whole, part):
    assert same(whole(made()), [part(p) for p in PARTS])


def test_parts_are_picked_and_divided():
    x = made()
    assert tc.equal(x[1], PARTS[1]) and tc.equal(x[1, 2], PARTS[1][2]) and same(x[:1], PARTS[:1])
    assert same(x.narrow(0, 1, 1), PARTS[1:]) and [len(c) for c in x.chunk(2)] == [1, 1]


def test_attention_of_sequences_of_several_lengths():
    """Heads from one projection, as layers of attention take them."""
    q, k, v = (t.unflatten(-1, [2, 2]).transpose(1, 2) for t in made().chunk(3, dim=-1))
    found = tc.ops.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2)
    for part, got in zip(PARTS, found.unbind(), strict=True):
        heads = [t.reshape(-1, 2, 2).transpose(0, 1) for t in part.chunk(3, dim=-1)]
        scores = heads[0] @ heads[1].transpose(-1, -2) / 2**0.5
        scores = scores.masked_fill(tc.ones(scores.shape[-2:]).triu(1).bool(), float("-inf"))
        assert tc.allclose(got, (scores.softmax(-1) @ heads[2]).transpose(0, 1).flatten(-2), atol=1e-6)


def test_attention_to_sequences_of_other_lengths():
    q, k, v = ([tc.randn(n, 4) for n in counts] for counts in ((2, 3), (4, 5), (4, 5)))
    attend = tc.ops.scaled_dot_product_attention
    found = attend(*map(tc.nested.nested_tensor, (q, k, v)))
    for got, *parts in zip(found.unbind(), q, k, v, strict=True):
        assert tc.equal(got, attend(*parts))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: x.unflatten(0, [1, 2]), RuntimeError, "unflatten: argument 'dim' is 0"),
        (lambda x: x.flatten(), RuntimeError, "flatten: argument 'dim' is 0"),
        (lambda x: x.chunk(2, 5), IndexError, "chunk: argument 'dim' is 5, expected -3 to 2"),
        (lambda x: x.chunk(3, 1), RuntimeError, r"chunk: argument 'dim' is 1.* into \[2, 3\] pieces"),
        (lambda x: x.permute(1, 0, 2), RuntimeError, "permute: the first dimension"),
        (lambda x: x.reshape(3, -1, 12), RuntimeError, "expected 2 parts"),
        (lambda x: x[[0, 1]], NotImplementedError, "found list"),
        (lambda x: x.squeeze(), RuntimeError, "'dim' is needed"),
    ],
)
def test_what_parts_cannot_be_asked(call, error, text):
    with pytest.raises(error, match=text):
        call(made())


def test_text_in_f_strings():
    for x, begin in (
        (made(), "x=NestedTensor(size=("),
        (tc.nested.nested_tensor(PARTS), "x=nested_tensor(["),
    ):
        assert f"{x}" == repr(x) and f"{x=}".startswith(begin)


def test_jagged_tensors_tell_their_sizes():
    x = tc.nested.nested_tensor([tc.ones(3, 4), tc.ones(2, 4)], layout=tc.jagged)
    assert repr(x) == "NestedTensor(size=(2, j1, 4), offsets=tensor([0, 3, 5]), contiguous=True)"
    pytest.importorskip("taeda_autograd")
    assert "offsets=tensor([0, 3, 5]), requires_grad=True, contiguous" in repr(x.requires_grad_())


def test_reductions_over_all_numbers():
    x, whole = made(), tc.cat([p.reshape(-1) for p in PARTS])
    for name in ("max", "min", "sum", "mean", "prod", "std", "var"):
        assert float(getattr(x, name)()) == pytest.approx(float(getattr(whole, name)()), rel=1e-6)
    assert (x > 0.99).any() and not (x > 0.99).all()
    values, places = x.max(-1)
    assert same(values, [p.max(-1).values for p in PARTS])
    assert same(places, [p.max(-1).indices for p in PARTS])
    with pytest.raises(RuntimeError, match="max: argument 'dim' is 0"):
        x.max(0)


def test_sizes_that_differ_are_equal_where_the_parts_are():
    x = made()
    assert (
        x.shape == (x * 2).shape == x.size()
        and x.size(1) == x.shape[1]
        and hash(x.shape) == hash(x.sin().shape)
    )
    assert x.view(2, x.size(1), 3, 4).unbind()[1].shape == (5, 3, 4)
    other = tc.nested.nested_tensor([PARTS[1], PARTS[0]], layout=tc.jagged)
    assert other.shape != x.shape
    one = tc.nested.nested_tensor([PARTS[0][:1], PARTS[1]], layout=tc.jagged)
    with pytest.raises(RuntimeError, match="add on nested tensors whose parts differ: found sizes"):
        tc.add(x, one)
    assert same(x + x[:, :, :1], [p + p[:, :1] for p in PARTS])
    assert x.is_contiguous() and not x.transpose(1, 2).is_contiguous() and x.lengths() is None


def test_products_of_matrices_go_part_by_part():
    x = made()
    turned = tc.nested.nested_tensor([p.t().contiguous() for p in PARTS])
    for result, part in zip(tc.bmm(x, turned).unbind(), PARTS, strict=True):
        assert tc.allclose(result, part @ part.t())
    dense = tc.arange(48.0).reshape(2, 12, 2)
    for result, part, other in zip(tc.bmm(x, dense).unbind(), PARTS, dense, strict=True):
        assert tc.allclose(result, part @ other)
    with pytest.raises(RuntimeError, match="bmm: argument 'mat2' has 2 dimensions"):
        tc.bmm(x, dense[0])


def test_what_programs_ask_that_look_inside():
    x = made()
    assert x._values.shape == (7, 12) and x._offsets.tolist() == [0, 2, 7] and x._lengths is None
    assert (x._min_seqlen, x._max_seqlen, x._ragged_idx) == (2, 5, 1)
    assert x._nested_tensor_size().tolist() == [[2, 12], [5, 12]]
    assert x._nested_tensor_strides().tolist() == [[12, 1], [12, 1]]
    assert not (x.is_cuda or x.is_meta or x.is_sparse or x.is_quantized or x.is_pinned()) and x.is_cpu
    assert x.grad_fn is None


def test_copies_need_parts_of_the_same_sizes():
    x, target = made(), tc.zeros_like(made())
    assert x.is_same_size(target) and not x.is_same_size(x.transpose(1, 2)) and not x.is_same_size(PARTS[0])
    assert target.copy_(x) is target and same(target, PARTS)
    with pytest.raises(RuntimeError, match="copy_: expected nested tensors with parts of the same sizes"):
        target.copy_(tc.nested.nested_tensor([PARTS[0], PARTS[0]]))
    with pytest.raises(RuntimeError, match="copy_: expected a nested tensor on both sides"):
        target.copy_(PARTS[0])


def test_powers_and_rests_go_part_by_part():
    x = made()
    positive = x * x + 1
    operations = (
        lambda t: 2**t,
        lambda t: t**2,
        lambda t: t % 2,
        lambda t: 3 % t,
        lambda t: tc.remainder(t, t),
    )
    for operation in operations:
        assert same(operation(positive), [operation(p * p + 1) for p in PARTS])


@pytest.mark.parametrize("name", ["sum", "mean", "amax"])
def test_reductions_over_several_dimensions(name):
    whole = tc.cat(list(PARTS))
    x = made()
    assert tc.equal(getattr(x, name)(dim=(0, 1)), getattr(whole, name)(dim=0))
    assert tc.equal(getattr(x, name)(dim=(0, 1, -1)), getattr(whole, name)(dim=(0, 1)))
    assert same(getattr(x, name)(dim=(1, 2)), [getattr(p, name)(dim=(0, 1)) for p in PARTS])
    with pytest.raises(RuntimeError, match="parts of a nested tensor are not combined"):
        getattr(x, name)(dim=(0, 2))


def test_places_of_extremes():
    x = made()
    assert same(x.argmax(1), [p.argmax(0) for p in PARTS])
    assert x.argmin().item() == tc.cat(list(PARTS)).argmin().item()


@pytest.mark.parametrize("layout", [None, tc.strided])
def test_without_parts(layout):
    x = tc.nested.nested_tensor([], layout=layout)
    assert (x.dim(), x.ndim, x.numel(), x.size(0), x.size(-1)) == (1, 1, 0, 0, 0)
    assert x.dtype is tc.float32 and x.device.type == "cpu" and not x.requires_grad
    assert x.is_floating_point() and x.unbind() == () and (x + 1).unbind() == ()
    with pytest.raises(IndexError, match="size: dimension 1"):
        x.size(1)


def test_lines_of_jagged_tensors_lie_together():
    values, offsets = tc.arange(28.0).reshape(7, 4).sin(), tc.tensor([0, 2, 7])
    x = tc.nested.nested_tensor_from_jagged(values, offsets)
    assert x.values() is values and x.offsets() is offsets and (x * 2).offsets() is offsets
    assert (x._get_min_seqlen(), x._get_max_seqlen(), x._maybe_max_seqlen) == (2, 5, 5)
    assert tc.equal((x * 2 + 1).values(), values * 2 + 1)
    back = x.unflatten(-1, [2, 2]).transpose(1, 2).transpose(1, 2).flatten(-2)
    assert tc.equal(back.values(), values) and back.offsets().tolist() == [0, 2, 7]
    assert x.transpose(1, 2)._ragged_idx == 2 and tc.equal(x.transpose(1, 2).values(), values.t())
    assert same(x + tc.ones(1, 1, 4), [values[:2] + 1, values[2:] + 1])
    by_lengths = tc.nested.nested_tensor_from_jagged(values, lengths=tc.tensor([2, 5]))
    assert same(by_lengths, [values[:2], values[2:]]) and by_lengths.offsets().tolist() == [0, 2, 7]
    rows = tc.nested.as_nested_tensor(values[:6].reshape(2, 3, 4), layout=tc.jagged)
    assert tc.equal(rows.values(), values[:6]) and rows.offsets().tolist() == [0, 3, 6]
    across = tc.nested.nested_tensor_from_jagged(values.t(), offsets, jagged_dim=2)
    assert across.shape[1] == 4 and same(across, [values[:2].t(), values[2:].t()])


def test_jagged_tensors_with_holes():
    values, lengths = tc.arange(8.0), tc.tensor([2, 1, 2])
    x = tc.nested.nested_tensor_from_jagged(values, tc.tensor([0, 3, 6, 8]), lengths)
    assert x.lengths() is lengths and not x.is_contiguous()
    assert same(x, [values[:2], values[3:4], values[6:8]])


def test_jagged_reductions_over_lines_are_dense():
    x = made()
    for name in ("sum", "mean", "amax", "amin", "prod", "var", "any"):
        reduce = getattr(tc.Tensor, name)
        expected = tc.stack([reduce(p, 0) for p in PARTS])
        for found in (getattr(x, name)(1), getattr(x, name)(dim=1)):
            assert type(found) is tc.Tensor and tc.allclose(found.float(), expected.float(), atol=1e-6)
        assert getattr(x, name)(1, keepdim=True).shape == (2, 1, 12)
    assert tc.equal(x.max(1)[1], tc.stack([p.max(0)[1] for p in PARTS]))
    whole = tc.nested.nested_tensor([tc.tensor([1, 2]), tc.tensor([3, 4, 5])], layout=tc.jagged)
    assert whole.sum(1).dtype is tc.int64 and whole.sum(1).tolist() == [3, 12]
    assert tc.allclose(x.sum(1, dtype=tc.float64), tc.stack([p.double().sum(0) for p in PARTS]))
    assert same(x.softmax(1), [p.softmax(0) for p in PARTS])
    turned = x.transpose(1, 2)
    assert tc.allclose(turned.sum(2), tc.stack([p.sum(0) for p in PARTS]))
    strided = made(tc.strided)
    assert same(strided.sum(1), [p.sum(0) for p in PARTS]) and strided.values().shape == (84,)


def test_padding_of_lines():
    x = made()
    for size in (None, (2, 6, 12), (3, 5, 13)):
        found = tc.nested.to_padded_tensor(x, -1.0, size)
        expected = np.full(size or (2, 5, 12), -1, dtype=np.float32)
        for i, part in enumerate(PARTS):
            expected[i, : part.shape[0], :12] = part.numpy()
        assert np.array_equal(found.numpy(), expected)


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss"])
def test_losses_of_nested_tensors(name):
    for layout in (tc.jagged, tc.strided):
        x = made(layout)
        loss = getattr(tc.ops, name)
        whole = tc.cat(list(PARTS))
        losses = loss(x, x * 2, 0)
        assert same(losses, [loss(p, p * 2, 0) for p in PARTS])
        assert tc.allclose(loss(x, x * 2, 1), loss(whole, whole * 2, 1))
        assert tc.allclose(loss(x, x * 2, 2), loss(whole, whole * 2, 2))


def test_jagged_tensors_in_files():
    for x in (made(), made().transpose(1, 2), made()[:, :, :5]):
        file = io.BytesIO()
        tc.serialization.save({"x": x}, file)
        file.seek(0)
        read = tc.serialization.load(file)["x"]
        assert read.layout is tc.jagged and same(read, x.unbind()) and read._ragged_idx == x._ragged_idx
        for again in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
            assert same(again, x.unbind())


def test_sizes_that_are_expanded():
    x = made().unsqueeze(2)
    assert same(x.expand(2, -1, 3, 12), [p[:, None].expand(-1, 3, 12) for p in PARTS])
    with pytest.raises(RuntimeError, match="expand: argument 'size'"):
        x.expand(3, -1, 3, 12)


def test_sizes_of_jagged_dimensions_are_symbols():
    rows = tc.nested.as_nested_tensor(tc.ones(2, 3, 4), layout=tc.jagged)
    for x in (rows, made(), made().transpose(1, 2)):
        symbols = [isinstance(size, SymInt) for size in x.shape]
        assert symbols == [d == x._ragged_idx for d in range(x.dim())]
    assert not isinstance(3, SymInt) and rows.shape[1] == (rows + 1).size(1)


def test_what_as_nested_tensor_takes():
    x = made()
    assert tc.nested.as_nested_tensor(x) is x and tc.nested.as_nested_tensor(x, layout=tc.jagged) is x
    assert tc.nested.as_nested_tensor(x, dtype=tc.float64).dtype is tc.float64
    with pytest.raises(RuntimeError, match="Converting between nested tensor layouts"):
        tc.nested.as_nested_tensor(x, layout=tc.strided)
    for layout in (tc.jagged, tc.strided):
        with pytest.raises(RuntimeError, match="dim"):
            tc.nested.as_nested_tensor(tc.ones(3), layout=layout)
    mixed = tc.nested.nested_tensor([tc.ones(2), tc.ones(3, dtype=tc.float64)])
    assert {p.dtype for p in mixed.unbind()} == {tc.float32}


def test_inner_names_of_jagged_tensors():
    from taeda_tensor_core.nested import _jagged as inner

    values, offsets = tc.arange(14.0).reshape(7, 2), tc.tensor([0, 2, 7])
    x = inner.nested_view_from_values_offsets(values, offsets)
    assert inner.buffer_from_jagged(x) is values
    holes = inner.nested_view_from_values_offsets_lengths(values, offsets, tc.tensor([1, 4]))
    assert same(holes, [values[:1], values[2:6]])
    again, own = inner.jagged_from_list(list(x.unbind()), offsets)
    assert own is offsets and again.offsets() is offsets and same(again, x.unbind())
    with pytest.raises(RuntimeError, match="does not fit"):
        inner.jagged_from_list([values[:1]], offsets)
    assert tc.equal(inner.nested_from_padded(x.to_padded_tensor(9.0), offsets).values(), values)
    turned = x.transpose(1, 2)
    assert same(inner.nested_from_padded(turned.to_padded_tensor(9.0), offsets, 2), turned.unbind())
    assert x.neg_() is x and tc.equal(values, -tc.arange(14.0).reshape(7, 2))


def test_nested_tensors_of_masks():
    x, mask = (
        tc.arange(24.0).reshape(2, 4, 3),
        tc.tensor([[True, True, False, False], [True, True, True, False]]),
    )
    assert same(tc._nested_tensor_from_mask(x, mask), [x[0, :2], x[1, :3]])
    gaps = mask.flip(1)
    assert tc._nested_tensor_from_mask_left_aligned(x, mask)
    assert not tc._nested_tensor_from_mask_left_aligned(x, gaps)
    with pytest.raises(RuntimeError, match="left-aligned"):
        tc._nested_tensor_from_mask(x, gaps)
    with pytest.raises(RuntimeError, match="expected three dimensions"):
        tc._nested_tensor_from_mask(x, mask.int())
