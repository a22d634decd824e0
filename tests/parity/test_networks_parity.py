"""taeda-models beside PyTorch from the same weights, in float64: torchvision's classes, and its own sources on both.

Results, gradients of all parameters and buffers afterwards; batch normalisation trains, nothing is dropped.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the networks are compared with PyTorch, which is not installed")

sys.path.insert(0, str(Path(__file__).parent))
import zoo_worker  # noqa: E402

import taeda  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from models._networks import networks  # noqa: E402

# PyTorch's gradient of hardsigmoid multiplies by a sixth that is rounded to float32.
TOLERANCE, ROUGH = 1e-8, 1e-6
SEED = 4
# One of every class; larger ones are made of the same blocks, and packages/models holds all to published keys.
TORCHVISION = (
    "alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s", "googlenet", "mobilenet_v2",
    "mobilenet_v3_large", "mobilenet_v3_small", "regnet_x_400mf", "regnet_y_400mf", "resnet18", "resnext50_32x4d",
    "shufflenet_v2_x0_5", "squeezenet1_0", "squeezenet1_1", "swin_t", "swin_v2_t", "vgg11_bn", "vit_b_32",
    "wide_resnet50_2",
)  # fmt: skip
SIDES = {"vit_b_32": 224}


def images(shape):
    return np.random.default_rng(SEED).standard_normal(shape)


def tokens(shape, high=30):
    return np.random.default_rng(SEED).integers(1, high, shape)


OWN = {
    "mobilenet v1": (lambda m: m.MobileNetV1(7, 0.25), [images((2, 3, 64, 64))]),
    "dilated": (
        lambda m: m.ResNet(m.Bottleneck, (1, 1, 1, 1), 7, replace_stride_with_dilation=(False, True, True)),
        [images((2, 3, 64, 64))],
    ),
    "unet": (lambda m: m.UNet(3, 4, 8, 2), [images((2, 3, 16, 24))]),
    "generator": (lambda m: m.Generator(5, 8, 3, 16), [images((2, 5, 1, 1))]),
    "discriminator": (lambda m: m.Discriminator(8, 3, 16), [images((2, 3, 16, 16))]),
    "vae": (lambda m: m.VAE(12, 8, 3), [images((4, 12))]),
    "lstm": (lambda m: m.LSTMLanguageModel(30, 8, 8, 2, tied=True), [tokens((6, 3))]),
    "translation": (
        lambda m: m.TranslationTransformer(30, 30, 16, 2, 2, 32),
        [tokens((2, 5)), tokens((2, 4))],
    ),
    "gpt2": (
        lambda m: m.GPT2LMHeadModel(m.GPT2Config(30, 8, 16, 2, 2)),
        [tokens((2, 7))],
    ),
    "bert": (
        lambda m: m.BertForMaskedLM(m.BertConfig(30, 16, 2, 2, 32, max_position_embeddings=8)),
        [tokens((2, 7)), np.array([[1] * 7, [1] * 5 + [0] * 2])],
    ),
    "gnmt": (
        lambda m: m.GNMT(30, 8),
        [tokens((5, 2)), np.array([5, 3]), tokens((4, 2))],
    ),
    "ncf": (lambda m: m.NeuMF(30, 30, 4, (8, 6, 4)), [tokens((5,)), tokens((5,), 20)]),
}


def prepare(library, model):
    model = model.to(library.float64).eval()
    for module in model.modules():
        if isinstance(module, library.nn.modules.batchnorm._BatchNorm):
            module.train()
    return model


def run(library, model, inputs):
    """Results, gradients by parameter, and the state."""
    given = [library.from_numpy(x) for x in inputs]
    results = zoo_worker.tensors(library, model(*given))
    draw = np.random.default_rng(SEED + 1)
    loss = sum((r * library.from_numpy(draw.standard_normal(tuple(r.shape)))).sum() for r in results)
    loss.backward()
    return (
        [r.detach().numpy() for r in results],
        {name: p.grad.numpy() for name, p in model.named_parameters() if p.grad is not None},
        {name: value.numpy() for name, value in model.state_dict().items()},
    )


def compare(mine, other, inputs, tolerance=TOLERANCE):
    theirs = prepare(torch, other)
    mine = prepare(taeda, mine)
    mine.load_state_dict({k: taeda.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    own, others = dict(mine.named_buffers()), dict(theirs.named_buffers())
    for key in own.keys() - mine.state_dict().keys():  # computed in float32, where the last place may differ
        own[key].copy_(taeda.from_numpy(others[key].numpy()))
    found, expected = run(taeda, mine, inputs), run(torch, theirs, inputs)
    assert len(found[0]) == len(expected[0])
    for a, b in zip(found[0], expected[0], strict=True):
        close(a, b, "result", tolerance)
    for found_all, expected_all in zip(found[1:], expected[1:], strict=True):
        assert found_all.keys() == expected_all.keys()
        for name, b in expected_all.items():
            close(found_all[name], b, name, tolerance)


def close(found, expected, what, tolerance):
    scale = np.abs(expected).max() if expected.size else 0.0
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale + 1e-11, err_msg=what)


@pytest.mark.parametrize("name", OWN)
def test_the_same_sources_on_both_libraries(name):
    build, inputs = OWN[name]
    torch.manual_seed(SEED)
    compare(build(networks(taeda)), build(networks(torch)), inputs)


@pytest.mark.parametrize("name", TORCHVISION)
def test_torchvision(name):
    zoo_worker.without_compiled_parts(torch)
    models = pytest.importorskip("torchvision.models", reason="torchvision is not installed")
    torch.manual_seed(SEED)
    options = {"init_weights": False} if name == "googlenet" else {}
    theirs = getattr(models, name)(weights=None, **options)
    side = SIDES.get(name, 64)
    tolerance = ROUGH if name.startswith("mobilenet_v3") else TOLERANCE
    compare(getattr(networks(taeda), name)(), theirs, [images((2, 3, side, side))], tolerance)
