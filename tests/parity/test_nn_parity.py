"""taeda-nn against PyTorch: state names, text, outputs, gradients and training behaviour of every module."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the reference is PyTorch")

import taeda_nn as nn  # noqa: E402
from taeda_nn import functional as F  # noqa: E402
from taeda_registry.slots import tensor as tt  # noqa: E402

tn = torch.nn
SEED = 20240501


def rand(*shape, seed=0):
    return np.random.default_rng(SEED + seed).standard_normal(shape).astype(np.float64)


def unit(*shape, seed=0):
    return np.random.default_rng(SEED + seed).random(shape)


def ints(high, *shape, seed=0):
    return np.random.default_rng(SEED + seed).integers(0, high, shape)


def ours(array):
    return tt.tensor(array.tolist(), dtype=_dtype(array, tt)).reshape(array.shape)


def theirs(array):
    return torch.tensor(array, dtype=_dtype(array, torch))


def _dtype(array, space):
    return (
        space.float64 if array.dtype.kind == "f" else space.bool if array.dtype.kind == "b" else space.int64
    )


def numpy(x):
    return np.array(x.detach().tolist())


def flat(result):
    """All tensors of a result, in order."""
    if isinstance(result, (tuple, list)):
        return [t for part in result if part is not None for t in flat(part)]
    return [result]


def close(a, b, tol=1e-9):
    np.testing.assert_allclose(numpy(a), numpy(b), rtol=tol, atol=tol)


def same_state(mine, other):
    """Gives ``mine`` the parameters and buffers of ``other``, which must have the same names and shapes."""
    state = other.state_dict()
    assert list(mine.state_dict()) == list(state)
    mine.load_state_dict({name: ours(value.numpy()) for name, value in state.items()})


def build(make):
    torch.manual_seed(SEED)
    other = make(tn).double()
    mine = make(nn).double()
    same_state(mine, other)
    return mine, other


def run_both(mine, other, arrays, tol=1e-9):
    """Calls both, pulls gradients through a fixed weighting, and compares outputs and all gradients."""
    results, leaves = [], []
    for call, convert in ((mine, ours), (other, theirs)):
        args = []
        for array in arrays:
            value = convert(array) if isinstance(array, np.ndarray) else array
            if isinstance(array, np.ndarray) and not np.array_equal(array, np.round(array)):
                value.requires_grad_(True)
            args.append(value)
        outputs = flat(call(*args))
        weighted = None
        for i, output in enumerate(outputs):
            if output.requires_grad:
                part = (output * convert(rand(*output.shape, seed=100 + i))).sum()
                weighted = part if weighted is None else weighted + part
        if weighted is not None:
            weighted.backward()
        results.append(outputs)
        leaves.append([arg for arg in args if hasattr(arg, "requires_grad") and arg.requires_grad])
    assert len(results[0]) == len(results[1])
    for a, b in zip(*results, strict=True):
        assert tuple(a.shape) == tuple(b.shape)
        close(a, b, tol)
    for a, b in zip(*leaves, strict=True):
        assert (a.grad is None) == (b.grad is None)
        if a.grad is not None:
            close(a.grad, b.grad, tol)


def check_module(make, arrays, train=False, tol=1e-9):
    mine, other = build(make)
    mine.train(train)
    other.train(train)
    assert repr(mine) == repr(other)
    run_both(mine, other, arrays, tol)
    for (name, a), (other_name, b) in zip(mine.named_parameters(), other.named_parameters(), strict=True):
        assert name == other_name
        assert (a.grad is None) == (b.grad is None), name
        if a.grad is not None:
            close(a.grad, b.grad)
    for (name, a), (other_name, b) in zip(mine.named_buffers(), other.named_buffers(), strict=True):
        assert name == other_name
        close(a, b)


IMAGE = rand(2, 4, 9, 8)
LINE = rand(2, 4, 11)
VOLUME = rand(2, 4, 5, 6, 7)
MODULES = {
    "linear": (lambda n: n.Linear(5, 3), [rand(7, 5)]),
    "linear_1d": (lambda n: n.Linear(5, 3), [rand(5)]),
    "linear_3d_no_bias": (lambda n: n.Linear(5, 3, bias=False), [rand(2, 7, 5)]),
    "bilinear": (lambda n: n.Bilinear(3, 4, 5), [rand(6, 3), rand(6, 4, seed=1)]),
    "conv1d": (lambda n: n.Conv1d(4, 6, 3, 2, 1), [LINE]),
    "conv1d_same": (lambda n: n.Conv1d(4, 6, 4, padding="same"), [LINE]),
    "conv3d": (lambda n: n.Conv3d(4, 6, (2, 3, 2), 2, (1, 0, 1), groups=2), [VOLUME]),
    "conv3d_same": (lambda n: n.Conv3d(4, 3, (2, 3, 4), padding="same"), [VOLUME]),
    "conv_transpose3d": (lambda n: n.ConvTranspose3d(4, 6, 2, 2, output_padding=1), [VOLUME]),
    "max_pool3d": (lambda n: n.MaxPool3d(3, 2, 1), [VOLUME]),
    "avg_pool3d": (lambda n: n.AvgPool3d(2, ceil_mode=True, count_include_pad=False), [VOLUME]),
    "adaptive_avg_pool3d": (lambda n: n.AdaptiveAvgPool3d((2, None, 3)), [VOLUME]),
    "adaptive_max_pool3d": (lambda n: n.AdaptiveMaxPool3d((2, 3, 3)), [VOLUME]),
    "lp_pool3d": (lambda n: n.LPPool3d(3, 2), [abs(VOLUME)]),
    "upsample": (lambda n: n.Upsample(scale_factor=(1.5, 2), mode="bilinear"), [IMAGE]),
    "upsample_bicubic": (lambda n: n.Upsample((12, 5), mode="bicubic", align_corners=True), [IMAGE]),
    "upsample_trilinear": (lambda n: n.Upsample(scale_factor=2, mode="trilinear"), [VOLUME]),
    "upsample_nearest": (lambda n: n.UpsamplingNearest2d(scale_factor=2), [IMAGE]),
    "upsample_corners": (lambda n: n.UpsamplingBilinear2d((5, 13)), [IMAGE]),
    "unfold": (lambda n: n.Unfold((3, 2), padding=1, stride=2), [IMAGE]),
    "fold": (lambda n: n.Fold((4, 5), 2), [rand(2, 8, 12)]),
    "embedding_bag": (lambda n: n.EmbeddingBag(7, 3, mode="sum", padding_idx=2), [ints(7, 4, 5)]),
    "conv2d": (lambda n: n.Conv2d(4, 6, 3), [IMAGE]),
    "conv2d_all": (lambda n: n.Conv2d(4, 6, (3, 2), (2, 1), (1, 2), (1, 2), 2, False), [IMAGE]),
    "conv2d_depthwise": (lambda n: n.Conv2d(4, 8, 3, padding=1, groups=4), [IMAGE]),
    "conv2d_unbatched": (lambda n: n.Conv2d(4, 6, 3), [rand(4, 9, 8)]),
    "conv2d_same": (lambda n: n.Conv2d(4, 6, (3, 4), padding="same"), [IMAGE]),
    "conv2d_valid": (lambda n: n.Conv2d(4, 6, 3, padding="valid"), [IMAGE]),
    "conv2d_reflect": (lambda n: n.Conv2d(4, 6, 3, padding=2, padding_mode="reflect"), [IMAGE]),
    "conv2d_circular": (lambda n: n.Conv2d(4, 6, 3, padding=(1, 2), padding_mode="circular"), [IMAGE]),
    "conv2d_replicate": (lambda n: n.Conv2d(4, 6, 3, padding="same", padding_mode="replicate"), [IMAGE]),
    "convtranspose1d": (lambda n: n.ConvTranspose1d(4, 6, 3, 2, 1, 1), [LINE]),
    "convtranspose2d": (lambda n: n.ConvTranspose2d(4, 6, (3, 2), 2, (1, 0), 1, 2, dilation=2), [IMAGE]),
    "batchnorm1d": (lambda n: n.BatchNorm1d(4), [rand(6, 4)]),
    "batchnorm1d_line": (lambda n: n.BatchNorm1d(4), [LINE]),
    "batchnorm2d": (lambda n: n.BatchNorm2d(4), [IMAGE]),
    "batchnorm2d_average": (lambda n: n.BatchNorm2d(4, momentum=None), [IMAGE]),
    "batchnorm2d_plain": (lambda n: n.BatchNorm2d(4, affine=False, track_running_stats=False), [IMAGE]),
    "instancenorm2d": (lambda n: n.InstanceNorm2d(4, affine=True), [IMAGE]),
    "layernorm": (lambda n: n.LayerNorm(8), [IMAGE]),
    "layernorm_2d": (lambda n: n.LayerNorm((9, 8), eps=1e-3), [IMAGE]),
    "layernorm_plain": (lambda n: n.LayerNorm(8, elementwise_affine=False), [IMAGE]),
    "layernorm_no_bias": (lambda n: n.LayerNorm(8, bias=False), [IMAGE]),
    "rmsnorm": (lambda n: n.RMSNorm(8), [IMAGE]),
    "groupnorm": (lambda n: n.GroupNorm(2, 4), [IMAGE]),
    "localresponsenorm": (lambda n: n.LocalResponseNorm(3, alpha=0.1), [IMAGE]),
    "maxpool1d": (lambda n: n.MaxPool1d(3, 2), [LINE]),
    "maxpool2d": (lambda n: n.MaxPool2d(2), [IMAGE]),
    "maxpool2d_all": (lambda n: n.MaxPool2d(3, (2, 1), 1, 2, ceil_mode=True), [IMAGE]),
    "maxpool2d_indices": (lambda n: n.MaxPool2d(2, return_indices=True), [IMAGE]),
    "avgpool1d": (lambda n: n.AvgPool1d(3, 2, 1), [LINE]),
    "avgpool2d": (lambda n: n.AvgPool2d(3, 2, 1, count_include_pad=False), [IMAGE]),
    "avgpool2d_ceil": (lambda n: n.AvgPool2d((2, 3), ceil_mode=True), [IMAGE]),
    "lppool2d": (lambda n: n.LPPool2d(2, 3), [IMAGE]),
    "adaptiveavg1d": (lambda n: n.AdaptiveAvgPool1d(4), [LINE]),
    "adaptiveavg2d": (lambda n: n.AdaptiveAvgPool2d((3, None)), [IMAGE]),
    "adaptiveavg2d_one": (lambda n: n.AdaptiveAvgPool2d(1), [IMAGE]),
    "adaptivemax1d": (lambda n: n.AdaptiveMaxPool1d(4), [LINE]),
    "adaptivemax2d": (lambda n: n.AdaptiveMaxPool2d((3, 2)), [IMAGE]),
    "flatten": (lambda n: n.Flatten(), [IMAGE]),
    "flatten_part": (lambda n: n.Flatten(0, 2), [IMAGE]),
    "unflatten": (lambda n: n.Unflatten(1, (2, 2)), [IMAGE]),
    "identity": (lambda n: n.Identity(3, a=4), [LINE]),
    "embedding": (lambda n: n.Embedding(10, 3, padding_idx=2), [ints(10, 4, 5)]),
    "embedding_freq": (lambda n: n.Embedding(10, 3, scale_grad_by_freq=True), [ints(10, 4, 5)]),
    "embedding_max_norm": (lambda n: n.Embedding(10, 3, max_norm=1.0), [ints(10, 4, 5)]),
    "pixelshuffle": (lambda n: n.PixelShuffle(2), [IMAGE]),
    "pixelunshuffle": (lambda n: n.PixelUnshuffle(3), [rand(2, 3, 9, 6)]),
    "cosinesimilarity": (lambda n: n.CosineSimilarity(), [rand(4, 5), rand(4, 5, seed=1)]),
    "pairwisedistance": (lambda n: n.PairwiseDistance(p=1.5), [rand(4, 5), rand(4, 5, seed=1)]),
    "zeropad2d": (lambda n: n.ZeroPad2d((1, 2, 0, -1)), [IMAGE]),
    "constantpad1d": (lambda n: n.ConstantPad1d(2, 3.5), [LINE]),
    "reflectionpad2d": (lambda n: n.ReflectionPad2d(2), [IMAGE]),
    "replicationpad1d": (lambda n: n.ReplicationPad1d((3, 1)), [LINE]),
    "circularpad2d": (lambda n: n.CircularPad2d((1, 2, 3, 0)), [IMAGE]),
    "lstm": (lambda n: n.LSTM(5, 4), [rand(6, 3, 5)]),
    "lstm_all": (lambda n: n.LSTM(5, 4, 2, batch_first=True, bidirectional=True), [rand(3, 6, 5)]),
    "lstm_no_bias": (lambda n: n.LSTM(5, 4, 2, bias=False), [rand(6, 3, 5)]),
    "lstm_projected": (lambda n: n.LSTM(5, 4, 2, proj_size=3, bidirectional=True), [rand(6, 3, 5)]),
    "lstm_unbatched": (lambda n: n.LSTM(5, 4, bidirectional=True), [rand(6, 5)]),
    "gru": (lambda n: n.GRU(5, 4, 2, bidirectional=True), [rand(6, 3, 5)]),
    "gru_state": (lambda n: n.GRU(5, 4, batch_first=True), [rand(3, 6, 5), rand(1, 3, 4)]),
    "rnn": (lambda n: n.RNN(5, 4, 2), [rand(6, 3, 5)]),
    "rnn_relu": (lambda n: n.RNN(5, 4, nonlinearity="relu", bidirectional=True), [rand(6, 3, 5)]),
    "lstmcell": (lambda n: n.LSTMCell(5, 4), [rand(3, 5)]),
    "lstmcell_unbatched": (lambda n: n.LSTMCell(5, 4, bias=False), [rand(5)]),
    "grucell": (lambda n: n.GRUCell(5, 4), [rand(3, 5), rand(3, 4)]),
    "rnncell": (lambda n: n.RNNCell(5, 4), [rand(3, 5)]),
    "rnncell_relu": (lambda n: n.RNNCell(5, 4, nonlinearity="relu"), [rand(3, 5), rand(3, 4)]),
}
WIDE = 4 * rand(5, 6)
for name, arguments in {
    "ReLU": (),
    "ReLU6": (),
    "Sigmoid": (),
    "Tanh": (),
    "GELU": (),
    "SiLU": (),
    "Mish": (),
    "Hardswish": (),
    "Hardsigmoid": (),
    "SELU": (),
    "LeakyReLU": (0.2,),
    "ELU": (0.7,),
    "CELU": (0.7,),
    "Softplus": (2.0, 3.0),
    "Hardtanh": (-0.5, 2.0),
    "RReLU": (),
    "Threshold": (0.5, -3.0),
    "PReLU": (6,),
    "LogSigmoid": (),
    "Softsign": (),
    "Tanhshrink": (),
    "Hardshrink": (),
    "Softshrink": (),
    "GLU": (),
    "Softmax": (1,),
    "Softmin": (0,),
    "LogSoftmax": (-1,),
}.items():
    MODULES[name] = (lambda n, name=name, arguments=arguments: getattr(n, name)(*arguments), [WIDE])
LOOSE = {"Hardsigmoid": 1e-7, "CELU": 1e-7}  # PyTorch computes their gradients with constants in float32
MODULES["GELU_tanh"] = (lambda n: n.GELU("tanh"), [WIDE])
TRAINED = [name for name in MODULES if "norm" in name]


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("name", MODULES)
def test_module(name):
    make, arrays = MODULES[name]
    check_module(make, arrays, tol=LOOSE.get(name, 1e-9))


@pytest.mark.parametrize("name", TRAINED)
def test_module_in_training(name):
    make, arrays = MODULES[name]
    check_module(make, arrays, train=True)


CLASSES, SCORES = ints(5, 4), rand(4, 5)
POSITIVE, SIGNS = unit(4, 5) * 0.9 + 0.05, np.where(unit(4, 5) > 0.5, 1.0, -1.0)
LOSSES = {
    "CrossEntropyLoss": [
        (SCORES, CLASSES),
        (rand(2, 5, 3), ints(5, 2, 3)),
        (SCORES, POSITIVE),
        (rand(5), ints(5)),
    ],
    "NLLLoss": [(SCORES, CLASSES), (rand(2, 5, 3), ints(5, 2, 3))],
    "MSELoss": [(SCORES, rand(4, 5, seed=1))],
    "L1Loss": [(SCORES, rand(4, 5, seed=1))],
    "SmoothL1Loss": [(2 * SCORES, rand(4, 5, seed=1))],
    "HuberLoss": [(2 * SCORES, rand(4, 5, seed=1))],
    "BCELoss": [(POSITIVE, unit(4, 5, seed=1))],
    "BCEWithLogitsLoss": [(SCORES, unit(4, 5, seed=1))],
    "PoissonNLLLoss": [(SCORES, 3 * unit(4, 5, seed=1))],
    "GaussianNLLLoss": [(SCORES, rand(4, 5, seed=1), POSITIVE)],
    "HingeEmbeddingLoss": [(SCORES, SIGNS)],
    "SoftMarginLoss": [(SCORES, SIGNS)],
    "MarginRankingLoss": [(SCORES, rand(4, 5, seed=1), SIGNS)],
    "CosineEmbeddingLoss": [(SCORES, rand(4, 5, seed=1), SIGNS[:, 0])],
    "TripletMarginLoss": [(SCORES, rand(4, 5, seed=1), rand(4, 5, seed=2))],
    "MultiMarginLoss": [(SCORES, CLASSES)],
    "MultiLabelSoftMarginLoss": [(SCORES, POSITIVE)],
    "KLDivLoss": [(-POSITIVE, unit(4, 5, seed=1))],
}


@pytest.mark.filterwarnings("ignore:.*reduction.*", "ignore:kl_div")
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_loss(name, reduction):
    for arrays in LOSSES[name]:
        run_both(getattr(nn, name)(reduction=reduction), getattr(tn, name)(reduction=reduction), arrays)


def test_losses_with_settings():
    weight = unit(5)
    for make, arrays in [
        (lambda n, c: n.CrossEntropyLoss(c(weight), ignore_index=2, label_smoothing=0.1), (SCORES, CLASSES)),
        (lambda n, c: n.CrossEntropyLoss(c(weight), label_smoothing=0.2), (SCORES, POSITIVE)),
        (lambda n, c: n.NLLLoss(c(weight), ignore_index=1), (SCORES, CLASSES)),
        (lambda n, c: n.BCELoss(c(weight)), (POSITIVE, unit(4, 5, seed=1))),
        (lambda n, c: n.BCEWithLogitsLoss(c(weight), pos_weight=c(3 * weight)), (SCORES, unit(4, 5, seed=1))),
        (lambda n, c: n.SmoothL1Loss(beta=0.3), (SCORES, POSITIVE)),
        (lambda n, c: n.HuberLoss(delta=0.3), (SCORES, POSITIVE)),
        (lambda n, c: n.KLDivLoss(reduction="batchmean", log_target=True), (SCORES, -POSITIVE)),
        (lambda n, c: n.PoissonNLLLoss(log_input=False, full=True), (POSITIVE, 3 * unit(4, 5, seed=1))),
        (lambda n, c: n.GaussianNLLLoss(full=True), (SCORES, POSITIVE, POSITIVE[:, :1])),
        (lambda n, c: n.TripletMarginLoss(p=1.0, swap=True), LOSSES["TripletMarginLoss"][0]),
        (lambda n, c: n.MultiMarginLoss(p=2, margin=0.5, weight=c(weight)), (SCORES, CLASSES)),
    ]:
        run_both(make(nn, ours).double(), make(tn, theirs).double(), arrays)


ATTENDED = [rand(2, 3, 4)] * 3
FUNCTIONS = {
    "normalize": (lambda f: lambda x: f.normalize(x, dim=1), [IMAGE]),
    "pad_constant": (lambda f: lambda x: f.pad(x, (1, 2, -1, 0, 2, 2), value=0.5), [IMAGE]),
    "one_hot": (lambda f: lambda x: f.one_hot(x, 7), [ints(5, 3, 2)]),
    "softmax_dtype": (lambda f: lambda x: f.softmax(x, 1), [WIDE]),
    "attention": (
        lambda f: lambda q, k, v: f.scaled_dot_product_attention(q, k, v, is_causal=True),
        ATTENDED,
    ),
    "adaptive_max_indices": (lambda f: lambda x: f.adaptive_max_pool2d(x, 3, return_indices=True), [IMAGE]),
    "max_pool3d_indices": (lambda f: lambda x: f.max_pool3d(x, 3, 2, return_indices=True), [VOLUME]),
    "interpolate_smaller": (
        lambda f: lambda x: f.interpolate(x, (4, 3), mode="bicubic", antialias=True),
        [IMAGE],
    ),
    "interpolate_lanczos": (
        lambda f: lambda x: f.interpolate(x, (4, 12), mode="lanczos", antialias=True),
        [IMAGE],
    ),
    "grid_sample": (
        lambda f: lambda x, g: f.grid_sample(x, g, "bicubic", "reflection", align_corners=False),
        [IMAGE, rand(2, 3, 5, 2)],
    ),
    "affine_grid": (lambda f: lambda t: f.affine_grid(t, (2, 1, 3, 4), align_corners=False), [rand(2, 2, 3)]),
    "pdist": (lambda f: lambda x: f.pdist(x, 3.0), [rand(5, 4)]),
    "max_pool1d_indices": (lambda f: lambda x: f.max_pool1d(x, 3, 2, return_indices=True), [LINE]),
    "lp_pool1d": (lambda f: lambda x: f.lp_pool1d(x, 2.0, 3), [LINE]),
    "conv2d_ints": (lambda f: lambda x, w: f.conv2d(x, w, None, 2, 1, 2), [IMAGE, rand(3, 4, 3, 3)]),
    "instance_norm": (lambda f: lambda x: f.instance_norm(x), [IMAGE]),
    "batch_norm": (lambda f: lambda x: f.batch_norm(x, None, None, training=True), [IMAGE]),
    "cosine_similarity": (lambda f: lambda x, y: f.cosine_similarity(x, y, dim=-1), [WIDE, rand(5, 6)]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name):
    make, arrays = FUNCTIONS[name]
    run_both(make(F), make(tn.functional), arrays)


@pytest.mark.parametrize(
    ("kind", "options"),
    [("LSTM", {"num_layers": 2}), ("GRU", {}), ("RNN", {}), ("LSTM", {"proj_size": 2})],
)
def test_packed_sequences(kind, options):
    lengths = [3, 6, 1, 4]
    mine, other = build(lambda n: getattr(n, kind)(5, 4, bidirectional=True, **options))

    def run(module, x, utils=None):
        packed = utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
        output, states = module(packed)
        padded, sizes = utils.rnn.pad_packed_sequence(output, total_length=7)
        return [padded, states, sizes]

    run_both(lambda x: run(mine, x, nn.utils), lambda x: run(other, x, tn.utils), [rand(6, 4, 5)])
    for a, b in zip(mine.parameters(), other.parameters(), strict=True):
        close(a.grad, b.grad)


def test_transposed_convolution_to_a_size():
    mine, other = build(lambda n: n.ConvTranspose2d(4, 6, 3, 3))
    run_both(lambda x: mine(x, (28, 25)), lambda x: other(x, (28, 25)), [IMAGE])
    with pytest.raises(ValueError, match="27 to 29"):
        mine(ours(IMAGE), (30, 25))


def test_sequence_helpers():
    parts = [rand(3, 2), rand(5, 2, seed=1), rand(1, 2, seed=2)]
    for options in ({}, {"batch_first": True, "padding_value": 2.0}, {"padding_side": "left"}):
        mine = nn.utils.rnn.pad_sequence([ours(p) for p in parts], **options)
        close(mine, tn.utils.rnn.pad_sequence([theirs(p) for p in parts], **options))
    packed = nn.utils.rnn.pack_sequence([ours(p) for p in parts], enforce_sorted=False)
    for part, back in zip(parts, nn.utils.rnn.unpack_sequence(packed), strict=True):
        np.testing.assert_array_equal(numpy(back), part)


@pytest.mark.parametrize("norm_type", [2.0, 1.0, 3.0, float("inf")])
def test_clip_grad_norm(norm_type):
    totals = []
    mine, other = build(lambda n: n.Linear(5, 3))
    for module, convert, space in ((mine, ours, nn), (other, theirs, tn)):
        module(convert(rand(4, 5))).sum().backward()
        totals.append(space.utils.clip_grad_norm_(module.parameters(), 0.5, norm_type))
    close(*totals)
    for a, b in zip(mine.parameters(), other.parameters(), strict=True):
        close(a.grad, b.grad)


def test_initialisers_have_the_same_spread():
    for name, arguments in {
        "uniform_": (-1.0, 3.0),
        "normal_": (1.0, 0.5),
        "trunc_normal_": (0.2, 1.0, -1.0, 1.5),
        "xavier_uniform_": (1.5,),
        "xavier_normal_": (1.5,),
        "kaiming_uniform_": (0.2, "fan_out"),
        "kaiming_normal_": (0.2,),
        "orthogonal_": (2.0,),
        "sparse_": (0.3,),
    }.items():
        tt.manual_seed(SEED)
        torch.manual_seed(SEED)
        mine = numpy(getattr(nn.init, name)(tt.empty(150, 120), *arguments))
        other = getattr(tn.init, name)(torch.empty(150, 120), *arguments).numpy()
        np.testing.assert_allclose(
            mine.mean(), other.mean(), atol=0.02 * max(1.0, np.abs(other).max()), err_msg=name
        )
        np.testing.assert_allclose(mine.std(), other.std(), rtol=0.03, err_msg=name)
        if "normal" not in name or "trunc" in name:
            np.testing.assert_allclose(np.abs(mine).max(), np.abs(other).max(), rtol=0.15, err_msg=name)


def test_exact_initialisers():
    for name, shape, arguments in [
        ("constant_", (3, 2), (1.5,)),
        ("ones_", (3,), ()),
        ("zeros_", (3,), ()),
        ("eye_", (3, 4), ()),
        ("dirac_", (6, 3, 3), ()),
        ("dirac_", (6, 2, 3, 3), (3,)),
    ]:
        mine = getattr(nn.init, name)(tt.empty(*shape), *arguments)
        close(mine, getattr(tn.init, name)(torch.empty(*shape), *arguments))
    for name, param in [
        ("relu", None),
        ("leaky_relu", 0.3),
        ("tanh", None),
        ("conv2d", None),
        ("selu", None),
    ]:
        assert nn.init.calculate_gain(name, param) == pytest.approx(tn.init.calculate_gain(name, param))


def test_containers_print_alike():
    def make(n):
        return n.ModuleDict(
            {
                "body": n.Sequential(n.Linear(2, 3), n.Sequential(n.ReLU(), n.Dropout(0.2))),
                "list": n.ModuleList([n.Linear(2, 2), n.Linear(2, 2), n.ReLU()]),
                "empty": n.ModuleList(),
            }
        )

    assert repr(make(nn)) == repr(make(tn))


@pytest.mark.parametrize("kind", ["forward", "backward"])
def test_hooks_see_the_same(kind):
    seen = []
    mine, other = build(lambda n: n.Sequential(n.Linear(5, 3), n.ReLU(), n.Linear(3, 2)))
    for module, convert in ((mine, ours), (other, theirs)):
        log = []
        seen.append(log)

        def hook(_module, given, result, log=log):
            log.append([numpy(x) for x in flat(given) if x is not None] + [numpy(x) for x in flat(result)])
            if kind == "forward":
                return result * 2
            return tuple(None if g is None else g * 2 for g in given)

        for child in (*module.children(), module):
            if kind == "forward":
                child.register_forward_hook(hook)
            else:
                child.register_full_backward_hook(hook)
        x = convert(rand(4, 5)).requires_grad_(True)
        module(x).sum().backward()
        log.append([numpy(x.grad)])
    assert len(seen[0]) == len(seen[1])
    for a, b in zip(*seen, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


SPARSIFIERS = [
    {},
    {"sparsity_level": 0.3, "sparse_block_shape": (1, 1)},
    {"sparse_block_shape": (3, 2)},
    {"sparsity_level": 0.7, "zeros_per_block": 2},
    {"sparse_block_shape": (2, 5), "zeros_per_block": 3, "norm": 1},
    {"sparsity_level": 1.0},
    {"sparsity_level": 0.0},
]


def sparsified(space, settings, weight):
    """The mask, the names of the state before and after, and the weight of a pruned layer."""
    model = space.nn.Sequential(space.nn.Linear(20, 6))
    with space.no_grad():
        model[0].weight.copy_(space.tensor(weight.tolist()))
    sparsifier = space.ao.pruning.WeightNormSparsifier(**settings)
    sparsifier.prepare(model, [{"tensor_fqn": "0.weight"}])
    sparsifier.step()
    mask, before = model[0].parametrizations.weight[0].mask, list(model.state_dict())
    kept = sorted(sparsifier.state_dict()["groups"][0])
    sparsifier.squash_mask(("sparsity_level",))
    after = list(model.state_dict()), model[0].sparse_params, model[0].weight.tolist()
    return mask.float().tolist(), before, kept, after


@pytest.mark.parametrize("settings", SPARSIFIERS)
def test_pruning_by_norms_of_blocks(settings):
    import taeda

    weight = rand(6, 20).astype(np.float32)
    assert sparsified(taeda, settings, weight) == sparsified(torch, settings, weight)


def test_pruning_of_blocks_that_reach_beyond_the_matrix():
    import taeda

    model = taeda.nn.Sequential(taeda.nn.Linear(5, 3))
    sparsifier = taeda.ao.pruning.WeightNormSparsifier(0.5, (2, 4), 2)
    sparsifier.prepare(model, None)
    sparsifier.step()
    mask = model[0].parametrizations.weight[0].mask
    assert tuple(mask.shape) == (3, 5) and 2 <= int((mask == 0).sum()) <= 4


@pytest.mark.parametrize("nearliness", [-1, 1, 3, 2, 50])
def test_pruning_to_diagonals(nearliness):
    import taeda

    found = []
    for space in (taeda, torch):
        model = space.nn.Sequential(space.nn.Linear(5, 4))
        sparsifier = space.ao.pruning.NearlyDiagonalSparsifier(nearliness)
        sparsifier.prepare(model, None)
        try:
            sparsifier.step()
            found.append(model[0].parametrizations.weight[0].mask.tolist())
        except ValueError as error:
            found.append(str(error))
    assert found[0] == found[1]


def schedule_of_sparsity(space, kind, *args, **kwargs):
    pruning, model = space.ao.pruning, space.nn.Sequential(space.nn.Linear(4, 4))
    sparsifier = pruning.WeightNormSparsifier(0.8)
    sparsifier.prepare(model, None)
    schedule, found = getattr(pruning, kind)(sparsifier, *args, **kwargs), []
    for _ in range(9):
        found.append(schedule.get_last_sl())
        sparsifier.step()
        schedule.step()
    other = pruning.WeightNormSparsifier(0.1)
    other.prepare(space.nn.Sequential(space.nn.Linear(4, 4)), None)
    other.load_state_dict(sparsifier.state_dict())
    return found, sorted(schedule.state_dict()), other.groups[0]["sparsity_level"]


def test_schedules_of_sparsity():
    import taeda

    cubic = {"init_sl": 0.1, "init_t": 1, "delta_t": 2, "total_t": 3, "initially_zero": True}
    for kind, args, kwargs in (("CubicSL", (), cubic), ("LambdaSL", (lambda step: 0.5**step,), {})):
        ours, theirs = (schedule_of_sparsity(space, kind, *args, **kwargs) for space in (taeda, torch))
        np.testing.assert_allclose(ours[0], theirs[0])
        assert ours[1:] == theirs[1:]
