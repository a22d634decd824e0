"""Attention of several heads and transformers: masks, projections, causal hints, errors."""

import numpy as np
import pytest

import taeda_nn as nn
from taeda_nn import functional as F
from taeda_nn.attention import SDPBackend, _cur_sdpa_kernel_backends, sdpa_kernel
from taeda_nn.attention.bias import causal_lower_right, causal_upper_left
from taeda_nn.attention.flex_attention import (
    _vmap_for_bhqkv,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
)
from taeda_nn.attention.varlen import AuxRequest, varlen_attn
from taeda_registry.slots import autograd
from taeda_registry.slots import tensor as tt


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def heads_of(layer, x, mask=None):
    """The layer's definition, written out for one sequence (L, E)."""
    state = {name: np.array(p.tolist()) for name, p in layer.state_dict().items()}
    packed = x @ state["in_proj_weight"].T + state["in_proj_bias"]
    q, k, v = np.split(packed, 3, -1)
    size = layer.head_dim
    outputs, weights = [], []
    for head in range(layer.num_heads):
        part = slice(head * size, (head + 1) * size)
        scores = q[:, part] @ k[:, part].T / np.sqrt(size)
        weights.append(softmax(scores if mask is None else np.where(mask, -np.inf, scores)))
        outputs.append(weights[-1] @ v[:, part])
    joined = np.concatenate(outputs, -1)
    return joined @ state["out_proj.weight"].T + state["out_proj.bias"], np.stack(weights)


@pytest.mark.parametrize("need_weights", [True, False])
def test_heads_follow_their_definition(need_weights, rng, to_tensor, close):
    layer = nn.MultiheadAttention(6, 3, batch_first=True).double()
    nn.init.normal_(layer.in_proj_bias)
    x = rng.standard_normal((4, 6))
    mask = np.triu(np.ones((4, 4), bool), 1)
    given = to_tensor(x)
    output, weights = layer(given, given, given, need_weights=need_weights, attn_mask=to_tensor(mask))
    expected, scores = heads_of(layer, x, mask)
    close(output, expected)
    assert (weights is None) is not need_weights
    if need_weights:
        close(weights, scores.mean(0))
        apart = layer(given, given, given, attn_mask=to_tensor(mask), average_attn_weights=False)[1]
        close(apart, scores)


@pytest.mark.filterwarnings("ignore:multi_head_attention_forward. mismatched key_padding_mask")
def test_padding_and_masks_of_every_form_agree(rng, to_tensor, close):
    layer = nn.MultiheadAttention(4, 2, add_zero_attn=True, add_bias_kv=True, batch_first=True).double()
    x = to_tensor(rng.standard_normal((3, 5, 4)))
    padding = np.zeros((3, 5), bool)
    padding[1, 3:] = True
    numbers = np.where(padding, -np.inf, 0.0)
    mask = np.triu(np.ones((5, 5), bool), 1)
    by_head = np.broadcast_to(mask, (6, 5, 5)).copy()
    results = [
        layer(x, x, x, key_padding_mask=to_tensor(p), attn_mask=to_tensor(m), need_weights=w)[0]
        for p in (padding, numbers)
        for m in (mask, np.where(mask, -np.inf, 0.0), by_head)
        for w in (True, False)
    ]
    for other in results[1:]:
        close(other, results[0])
    assert nn.MultiheadAttention(4, 2, kdim=3, vdim=5).state_dict().keys() == {
        "q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias",
    }  # fmt: skip


def test_causal_hint_needs_its_mask_and_changes_nothing(rng, to_tensor, close):
    layer = nn.MultiheadAttention(4, 2).double()
    x = to_tensor(rng.standard_normal((5, 2, 4)))
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=tt.float64)
    plain = layer(x, x, x, attn_mask=mask, need_weights=False)[0]
    close(layer(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)[0], plain)
    with pytest.raises(RuntimeError, match="attn_mask"):
        layer(x, x, x, is_causal=True)


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("'key' must have 3", {"key": (5, 4)}),
        ("'query' must have 2 or 3", {"query": (4,)}),
        ("'key_padding_mask'", {"key_padding_mask": (5,)}),
        ("'attn_mask' must have shape", {"attn_mask": (4, 4)}),
        ("features", {"query": (5, 2, 6), "key": (5, 2, 6), "value": (5, 2, 6)}),
    ],
)
def test_wrong_shapes_are_named(text, change):
    layer = nn.MultiheadAttention(4, 2)
    args = {"query": (5, 2, 4), "key": (5, 2, 4), "value": (5, 2, 4), **change}
    with pytest.raises((RuntimeError, AssertionError), match=text):
        layer(**{name: tt.zeros(shape) for name, shape in args.items()})


@pytest.mark.parametrize("mask", [tt.int64, tt.uint8, tt.float64, tt.bfloat16])
def test_masks_that_would_be_added_by_mistake_are_refused(mask):
    q = tt.rand(1, 2, 4, 8)
    with pytest.raises(RuntimeError, match=f"'attn_mask' has dtype {str(mask).split('.')[1]}, expected bool"):
        nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=tt.ones(4, 4).to(mask))


def test_dtypes_of_attention_are_one():
    q = tt.rand(1, 2, 4, 8)
    for k, v in ((q.bfloat16(), q), (q, q.half()), (q.double(), q.double())):
        with pytest.raises(RuntimeError, match="expected one"):
            nn.functional.scaled_dot_product_attention(q, k, v)
        with tt.autocast("cpu"):  # which makes them so
            assert nn.functional.scaled_dot_product_attention(q, k.float(), v.bfloat16()).dtype == tt.bfloat16
    half = q.bfloat16()
    mask = tt.zeros(4, 4)
    assert nn.functional.scaled_dot_product_attention(half, half, half, attn_mask=mask).dtype == tt.bfloat16


@pytest.mark.parametrize("mask", ["attn_mask", "key_padding_mask"])
def test_weights_have_the_precision_of_autocast_whatever_is_masked(mask):
    layer, x = nn.MultiheadAttention(8, 2, batch_first=True), tt.rand(2, 3, 8)
    masked = {mask: tt.zeros((3, 3) if mask == "attn_mask" else (2, 3)).to(tt.bool)}
    expected = layer(x, x, x, **masked)[1]
    for dtype in (tt.bfloat16, tt.float16):
        with tt.autocast("cpu", dtype=dtype):
            out, weights = layer(x, x, x, **masked)
            plain = layer(x, x, x)[1]
        assert out.dtype == weights.dtype == plain.dtype == dtype
        assert (weights.to(tt.float32) - expected).abs().max().item() < 0.02


def test_causal_biases_are_their_masks(rng, to_tensor, close):
    q, k, v = (to_tensor(rng.standard_normal((2, n, 3))) for n in (2, 4, 4))
    for bias, diagonal in ((causal_upper_left(2, 4), 0), (causal_lower_right(2, 4), 2)):
        mask = np.tril(np.ones((2, 4), bool), diagonal)
        expected = F.scaled_dot_product_attention(q, k, v, to_tensor(mask))
        close(F.scaled_dot_product_attention(q, k, v, bias), expected)


def test_choice_of_backends_is_kept_inside_a_block():
    before = _cur_sdpa_kernel_backends()
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        assert _cur_sdpa_kernel_backends() == [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]
    assert _cur_sdpa_kernel_backends() == before
    with pytest.raises(AssertionError, match="int"), sdpa_kernel(3):
        pass


def test_scores_that_a_function_changes(rng, to_tensor, close):
    q, k, v = (to_tensor(rng.standard_normal((2, 2, 5, 4))) for _ in range(3))
    close(flex_attention(q, k, v), F.scaled_dot_product_attention(q, k, v))
    slopes = to_tensor(np.array([0.5, 0.25]))
    bias = to_tensor(np.array([0.5, 0.25])[:, None, None] * (np.arange(5) - np.arange(5)[:, None]))
    made = flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: score + slopes[h] * (j - i))
    close(made, F.scaled_dot_product_attention(q, k, v, bias))
    one = [x[:, :1] for x in (k, v)]
    close(flex_attention(q, *one, enable_gqa=True), flex_attention(q, *(x.repeat(1, 2, 1, 1) for x in one)))
    with pytest.raises(ValueError, match="enable_gqa"):
        flex_attention(q, *one)


def test_masks_by_blocks(rng, to_tensor, close):
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 7, 5, BLOCK_SIZE=2)
    assert mask.shape == (1, 1, 7, 5) and mask.kv_num_blocks.tolist() == [[[1, 1, 1, 3]]]
    assert mask.full_kv_num_blocks.tolist() == [[[0, 1, 2, 0]]] and mask[0].shape == mask.shape
    assert mask.to_dense()[0, 0].tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1]]
    q, k, v = (to_tensor(rng.standard_normal((1, 2, n, 4))) for n in (7, 5, 5))
    seen = to_tensor(np.tril(np.ones((7, 5), bool)))
    close(flex_attention(q, k, v, block_mask=mask), F.scaled_dot_product_attention(q, k, v, seen))
    assert mask.q_num_blocks.tolist() == [[[2, 2, 2]]] and mask.full_q_indices[0, 0, 0, :2].tolist() == [1, 2]
    parts = mask.as_tuple()
    assert (
        parts[:2] == (7, 5) and parts[-3:-1] == (2, 2) and len(mask.as_tuple(flatten=False)) == len(parts) - 2
    )
    assert mask.to_string() == "(0, 0)\n██    \n████  \n██████\n██████\n" and str(mask).endswith("██\n)")
    assert mask.to_string((2, 2)) == "(0, 0)\n░░  \n████\n"
    near = and_masks(lambda b, h, i, j: i >= j, lambda b, h, i, j: i - j < 2)
    assert create_mask(near, None, None, 3, 3)[0, 0].tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    with pytest.raises(ValueError, match="lengths"):
        flex_attention(q, k[:, :, :4], v[:, :, :4], block_mask=mask)
    nothing, sums = flex_attention(
        q, k, v, block_mask=create_block_mask(lambda b, h, i, j: i + j < 0, 1, 1, 7, 5), return_lse=True
    )
    assert not nothing.any() and bool((sums == -float("inf")).all())


def test_functions_of_places_are_mapped_over_vectors(to_tensor):
    vectors = [to_tensor(np.arange(n)) for n in (2, 3, 4, 5)]
    places = np.arange(2)[:, None, None, None] * 100 + np.arange(4)[:, None] * 10 + np.arange(5)
    scores = to_tensor(np.ones((2, 3, 4, 5)))
    mapped = _vmap_for_bhqkv(lambda score, b, h, q, k: score + b * 100 + q * 10 + k, (0,))(scores, *vectors)
    assert (mapped.numpy() == np.broadcast_to(places + 1, (2, 3, 4, 5))).all()
    seen = _vmap_for_bhqkv(lambda b, h, q, k: q >= k, ())(*vectors)
    assert seen.shape == (2, 3, 4, 5) and (seen[1, 2].numpy() == np.tril(np.ones((4, 5), bool))).all()
    with pytest.raises(NotImplementedError, match="out_dims"):
        _vmap_for_bhqkv(lambda b, h, q, k: q, (), out_dims=1)


@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_layers_that_are_one_step_answer_in_the_dtype_of_autocast(norm_first):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=norm_first).eval()
    x = tt.rand(2, 3, 8)
    with tt.autocast("cpu", dtype=tt.bfloat16):
        assert layer(x).dtype == tt.float32
        with tt.no_grad():
            assert layer(x).dtype == tt.bfloat16 and layer(x[0]).dtype == tt.float32
            assert layer.train()(x).dtype == tt.float32


def test_encoder_leaves_out_padding_at_the_ends(rng, to_tensor, close):
    layer = nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).double().eval()
    x = to_tensor(rng.standard_normal((2, 5, 4)))
    padding = np.zeros((2, 5), bool)
    padding[1, 3:] = True
    with tt.no_grad():
        out = encoder(x, src_key_padding_mask=to_tensor(padding))
        close(out[1, 3:], np.zeros((2, 4)))
        close(out[1:, :3], encoder(x[1:, :3]))
        # Padding elsewhere cannot be left out.
        padding[0, 0] = True
        assert bool((encoder(x, src_key_padding_mask=to_tensor(padding))[0, 0] != 0).any())
    with pytest.warns(UserWarning, match="batch_first"):
        nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), 1)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.filterwarnings("ignore:TransformerEncoder")
def test_transformer_is_causal_in_its_target(norm_first, batch_first, rng, to_tensor, close):
    sizes = {"num_encoder_layers": 1, "num_decoder_layers": 2, "dim_feedforward": 8, "dropout": 0.0}
    net = nn.Transformer(4, 2, **sizes, batch_first=True, norm_first=norm_first).double()
    source, target = (rng.standard_normal((2, n, 4)) for n in (3, 5))
    mask = net.generate_square_subsequent_mask(5, dtype=tt.float64)
    out = net(to_tensor(source), to_tensor(target), tgt_mask=mask)
    target[:, 4] += 1
    changed = net(to_tensor(source), to_tensor(target), tgt_mask=mask)
    close(changed[:, :4], out[:, :4])
    assert bool((changed[:, 4] != out[:, 4]).any())
    if not batch_first:
        other = nn.Transformer(4, 2, **sizes, norm_first=norm_first).double()
        other.load_state_dict(net.state_dict())
        moved = other(*(to_tensor(x.transpose(1, 0, 2).copy()) for x in (source, target)), tgt_mask=mask)
        close(moved.transpose(0, 1), changed)
    with pytest.raises(RuntimeError, match="features"):
        net(tt.zeros(2, 3, 5), tt.zeros(2, 3, 5))
    with pytest.raises(RuntimeError, match="the batch number"):
        net(tt.zeros(2, 3, 4), tt.zeros(3, 3, 4))


@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (1, 0), (0, 1)])
def test_sequences_that_lie_one_after_the_other(window, close):
    q, k, v = (tt.arange(n * 4.0 * 8).sin().reshape(n, -1, 8) for n in (7, 7, 7))
    q, k, v = q[:, :4].requires_grad_(), k[:, :2] * 2, v[:, 2:] + 1
    ends = tt.tensor([0, 3, 7], dtype=tt.int32)
    out, sums = varlen_attn(
        q, k, v, ends, None, 4, 4, window_size=window, enable_gqa=True, return_aux=AuxRequest(lse=True)
    )
    for begin, end in ((0, 3), (3, 7)):
        for head in range(4):
            scores = q.detach().numpy()[begin:end, head] @ k.numpy()[begin:end, head // 2].T / np.sqrt(8)
            ahead = np.arange(end - begin)[None] - np.arange(end - begin)[:, None]
            left, right = (end if side < 0 else side for side in window)
            scores[(ahead < -left) | (ahead > right)] = -np.inf
            close(out[begin:end, head], softmax(scores) @ v.numpy()[begin:end, head // 2], 1e-5)
            close(sums[head, begin:end], np.log(np.exp(scores).sum(-1)), 1e-5)
    out.sum().backward()
    assert bool(q.grad.isfinite().all())


def test_queries_that_see_no_key_get_zeros():
    q, k = tt.ones(3, 1, 4, requires_grad=True), tt.ones(2, 1, 4)
    ends, shorter = tt.tensor([0, 3]), tt.tensor([0, 2])
    out = varlen_attn(q, k, k, ends, shorter, 3, 2, window_size=(-1, 0), seqused_k=tt.tensor([2]))
    assert out[:, 0, 0].tolist() == [0.0, 1.0, 1.0]
    out.sum().backward()
    assert bool(q.grad.isfinite().all())
    with pytest.raises(NotImplementedError, match="keys in pages"):
        varlen_attn(q, k, k, ends, shorter, 3, 2, block_table=ends)


@pytest.mark.parametrize("heads", [2, 9])
@pytest.mark.parametrize("masked", [None, "mask", "causal"])
def test_blocks_of_long_sequences(heads, masked, rng, to_tensor, close):
    length, size = 270, 24
    q, k, v, g = rng.standard_normal((4, heads, length, size))
    allowed = np.tril(np.ones((length, length), bool)) if masked else np.ones((length, length), bool)
    allowed[5] = masked != "mask"  # a row that sees nothing, or all
    if masked == "causal":
        allowed[5, 6:] = False
    scores = np.where(allowed, q @ k.swapaxes(1, 2) / np.sqrt(size), -np.inf)
    sees = allowed.any(1)[:, None]
    weights = softmax(np.where(sees, scores, 0)) * sees
    slopes = g @ v.swapaxes(1, 2)
    slopes = weights * (slopes - (slopes * weights).sum(-1, keepdims=True)) / np.sqrt(size)
    leaves = [to_tensor(x[None]).requires_grad_() for x in (q, k, v)]
    options = {"is_causal": True} if masked == "causal" else {"attn_mask": tt.tensor(allowed.tolist())}
    out = F.scaled_dot_product_attention(*leaves, **(options if masked else {}))
    close(out[0], weights @ v, 1e-5)
    out.backward(to_tensor(g[None]))
    for leaf, expected in zip(
        leaves, (slopes @ k, slopes.swapaxes(1, 2) @ q, weights.swapaxes(1, 2) @ g), strict=True
    ):
        close(leaf.grad[0], expected, 1e-5)


@pytest.mark.parametrize("kind", ["bool", "float", "recorded"])
def test_a_mask_beside_is_causal_leaves_out_both(kind, rng, to_tensor, close):
    q, k, v = rng.standard_normal((3, 2, 5, 4))
    allowed = rng.random((2, 5, 5)) < 0.7
    allowed[:, 2] = False  # rows that see nothing
    bias = rng.standard_normal((2, 5, 5))
    given = tt.tensor(allowed.tolist()) if kind == "bool" else to_tensor(bias)
    seen = np.tril(np.ones((5, 5), bool)) & (allowed if kind == "bool" else True)
    scores = q @ k.swapaxes(1, 2) / 2 + (0 if kind == "bool" else bias)
    sees = np.broadcast_to(seen, scores.shape).any(-1)[..., None]
    weights = softmax(np.where(sees, np.where(seen, scores, -np.inf), 0)) * sees
    if kind == "recorded":
        given.requires_grad_()
    out = F.scaled_dot_product_attention(*map(to_tensor, (q, k, v)), attn_mask=given, is_causal=True)
    close(out.detach(), weights @ v, 1e-5)
    if kind == "recorded":
        out.sum().backward()
        assert not given.grad.triu(1).any() and given.grad.tril().any()


@pytest.mark.parametrize("own", [1, 2, 6])
@pytest.mark.parametrize("seen", ["all", "past", "chosen", "weighed", "weighed with gradients"])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_grouped_heads_are_repeated_heads(own, seen, batch, rng, to_tensor, close):
    sizes = ((6, 5, 4), (own, 7, 4), (own, 7, 3))
    operands = [to_tensor(rng.standard_normal((*batch, *size))).requires_grad_() for size in sizes]
    options = {"is_causal": seen == "past"}
    if seen == "chosen":
        options["attn_mask"] = to_tensor(rng.random((5, 7)) < 0.6)
    elif seen.startswith("weighed"):
        options["attn_mask"] = to_tensor(rng.standard_normal((5, 7))).requires_grad_("gradients" in seen)

    def derivatives(attend):
        result = attend(*operands)
        first = autograd.grad((result**2).sum(), operands, create_graph=True)
        return (result, *first, *autograd.grad(sum((g**3).sum() for g in first), operands))

    found = derivatives(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True, **options))
    expected = derivatives(
        lambda q, k, v: F.scaled_dot_product_attention(
            q, *(x.repeat_interleave(6 // own, -3) for x in (k, v)), **options
        )
    )
    for one, other in zip(found, expected, strict=True):
        close(one, other)


def test_grouped_heads_that_do_not_divide_are_refused(to_tensor):
    q, k = to_tensor(np.zeros((1, 4, 2, 3))), to_tensor(np.zeros((1, 3, 2, 3)))
    with pytest.raises(RuntimeError, match="'key' has 3 heads, expected a divisor of the 4"):
        F.scaled_dot_product_attention(q, k, k, enable_gqa=True)
    with pytest.raises(RuntimeError, match="fused_attention: argument 'key' has shape"):
        tt.ops.fused_attention(q, k, k, None, False, 1.0)


@pytest.mark.parametrize("width", [3, 4])
@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ((0, 1, 2, 3), (0, 1, 2, 3)),  # row-major: programs view it with heads and places joined
        ((0, 2, 1, 3), (0, 2, 1, 3)),  # heads side by side: joining them needs no copy
        ((2, 0, 1, 3), (2, 0, 1, 3)),  # as in multi-head attention whose batch comes second
        ((0, 1, 3, 2), (0, 1, 2, 3)),  # rows with gaps are no order of rows
    ],
)
def test_rows_follow_one_another_as_those_of_queries_do(order, expected, width):
    sizes = (2, 3, 5, 4)
    inverse = np.argsort(order)
    q = tt.rand([sizes[d] for d in order]).permute(*inverse)
    assert tuple(q.shape) == sizes
    found = F.scaled_dot_product_attention(q, tt.rand(2, 3, 7, 4), tt.rand(2, 3, 7, width))
    assert tuple(found.shape) == (2, 3, 5, width)
    assert found.permute(*expected).is_contiguous()


def test_backends_are_shown_by_name():
    assert f"{SDPBackend.MATH}" == str(SDPBackend.MATH) == "SDPBackend.MATH" and SDPBackend.MATH == 0


@pytest.mark.parametrize("dtype", [tt.float32, tt.bfloat16])
@pytest.mark.parametrize("heads", [(0, 0), (0, 1), (0, 2)])
def test_queries_without_heads_leave_gradients_of_zero(heads, dtype):
    q = tt.ones(2, heads[0], 1, 3, dtype=dtype, requires_grad=True)
    k = tt.ones(2, heads[1], 2, 3, dtype=dtype, requires_grad=True)
    v = tt.ones(2, heads[1], 2, 4, dtype=dtype, requires_grad=True)
    for found in (
        F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        tt.ops.fused_attention(q, k, v, None, False, 0.5)[0],
    ):
        assert found.shape == (2, 0, 1, 4)
        for given, gradient in zip((q, k, v), autograd.grad(found.sum(), (q, k, v)), strict=True):
            assert gradient.shape == given.shape
            assert not gradient.any()


@pytest.mark.parametrize("gqa", [False, True])
@pytest.mark.parametrize(("heads", "keys"), [((2, 3), (0, 5)), ((2, 3), (2, 0)), ((2, 0), (2, 5))])
def test_attention_to_nothing_is_zero(heads, keys, gqa):
    query, key = tt.ones(1, *heads, 4, requires_grad=True), tt.ones(1, *keys, 4, requires_grad=True)
    found = F.scaled_dot_product_attention(query, key, tt.ones(1, *keys, 6), enable_gqa=gqa)
    assert tuple(found.shape) == (1, *heads, 6)
    assert not found.any()
    found.sum().backward()
    assert not query.grad.any()
