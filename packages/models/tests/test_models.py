"""The networks: published sizes and keys, shapes of results, gradients of every parameter, wrong calls."""

import hashlib
import inspect
import json
from pathlib import Path

import pytest

import taeda_autograd  # noqa: F401
import taeda_models as models
import taeda_nn as nn
import taeda_tensor_core as tc

# Of each network the number of parameters that its publishers state, and a sum of the keys and shapes of its state as
# torchvision 0.28 has them: `summed` below.
PUBLISHED = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))


def summed(state):
    """Eight digits of the SHA-256 sum of ``key shape`` lines, sorted."""
    lines = sorted(f"{key} {tuple(value.shape)}\n" for key, value in state.items())
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:8]


def count(model):
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_sizes_keys_and_shapes(name):
    parameters, keys, side = PUBLISHED[name]
    with tc.device("meta"):
        model = getattr(models, name)()
        assert count(model) == parameters
        assert summed(model.state_dict()) == keys
        result = model.eval()(tc.empty(2, 3, side, side))
    assert tuple(result.shape) == (2, 1000)


def test_every_function_is_held_to_what_was_published():
    functions = {name for name in models.__all__ if inspect.isfunction(getattr(models, name))}
    assert functions - set(PUBLISHED) == {"mobilenet_v1", "vit_tiny_16"}


def test_sizes_of_language_models():
    with tc.device("meta"):
        assert count(models.GPT2LMHeadModel()) == 124_439_808
        assert count(models.BertModel()) == 109_482_240
        assert count(models.BertForMaskedLM()) == 109_514_298
        assert count(models.vit_tiny_16()) == 5_717_416
        assert count(models.mobilenet_v1()) == 4_231_976


IMAGES = {
    "alexnet": (lambda: models.AlexNet(5), 64),
    "vgg": (lambda: models.VGG((1, 1, 1, 1, 1), batch_norm=True, num_classes=5), 32),
    "resnet basic": (lambda: models.ResNet(models.BasicBlock, (1, 1, 1, 1), 5, zero_init_residual=False), 32),
    "resnet dilated": (
        lambda: models.ResNet(
            models.Bottleneck, (1, 1, 1, 1), 5, replace_stride_with_dilation=(False, True, True)
        ),
        32,
    ),
    "resnext": (lambda: models.ResNet(models.Bottleneck, (1, 1, 1, 1), 5, groups=4, width_per_group=8), 32),
    "mobilenet v1": (lambda: models.MobileNetV1(5, width_mult=0.25), 64),
    "mobilenet v2": (lambda: models.MobileNetV2(5, width_mult=0.25), 64),
    "mobilenet v3": (lambda: models.mobilenet_v3_small(num_classes=5, width_mult=0.5), 64),
    "densenet": (lambda: models.DenseNet(8, (2, 2), 16, drop_rate=0.1, num_classes=5), 32),
    "squeezenet": (lambda: models.squeezenet1_1(num_classes=5), 32),
    "shufflenet": (lambda: models.ShuffleNetV2((1, 2, 1), (8, 16, 32, 64, 32), 5), 64),
    "efficientnet": (lambda: models.EfficientNet(SMALL_STAGES, 0.1, num_classes=5), 32),
    "regnet": (lambda: models.RegNet(models.Widths(4, 16, 8.0, 2.0, 8, 0.25), 5), 32),
    "vit": (lambda: models.VisionTransformer(16, 8, 2, 2, 16, 32, num_classes=5), 16),
    "swin": (lambda: models.SwinTransformer(4, 12, (2, 2), (2, 4), 3, num_classes=5), 36),
    "swin v2": (lambda: models.SwinTransformer(4, 12, (2, 2), (2, 4), 3, num_classes=5, version=2), 36),
    "convnext": (lambda: models.ConvNeXt((1, 1), (8, 16), 0.1, 0.1, 5), 32),
}
SMALL_STAGES = (models.Stage(1, 3, 1, 8, 8, 1, True), models.Stage(4, 3, 2, 8, 16, 2))


def gradients_of_all(model, *results):
    """Sums the results' squares, and checks that a gradient reaches every parameter."""
    sum((result * result).sum() for result in results).backward()
    missing = [name for name, p in model.named_parameters() if p.grad is None]
    assert not missing
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters())


@pytest.mark.parametrize("name", IMAGES)
def test_image_classifiers_train_and_load_their_own_state(name):
    build, side = IMAGES[name]
    tc.manual_seed(1)
    model, other = build(), build()
    x = tc.randn(2, 3, side, side)
    result = model(x)
    assert tuple(result.shape) == (2, 5)
    if name.startswith("vit"):  # its classifier begins with zeros
        nn.init.normal_(model.heads.head.weight)
        result = model(x)
    gradients_of_all(model, result)
    other.load_state_dict(model.state_dict())
    assert tc.equal(model.eval()(x), other.eval()(x))


def test_googlenet_gives_three_results_while_training():
    model = models.GoogLeNet(5)
    result = model(tc.randn(2, 3, 32, 32))
    assert isinstance(result, models.GoogLeNetOutputs)
    assert [tuple(part.shape) for part in result] == [(2, 5)] * 3
    gradients_of_all(model, *result)
    assert tuple(model.eval()(tc.randn(1, 3, 32, 32)).shape) == (1, 5)
    assert tuple(models.GoogLeNet(5, aux_logits=False)(tc.randn(2, 3, 32, 32)).shape) == (2, 5)


def test_segmentation_keeps_the_image():
    model = models.UNet(1, 3, width=4, depth=2)
    result = model(tc.randn(2, 1, 16, 24))
    assert tuple(result.shape) == (2, 3, 16, 24)
    gradients_of_all(model, result)
    with pytest.raises(ValueError, match="UNet: height and width must be multiples of 4"):
        model(tc.randn(1, 1, 18, 16))


def test_adversaries_fit_each_other():
    generator, discriminator = models.Generator(7, 4, 1, size=16), models.Discriminator(4, 1, size=16)
    images = generator(tc.randn(3, 7, 1, 1))
    assert tuple(images.shape) == (3, 1, 16, 16)
    assert bool((images.abs() <= 1).all())
    judged = discriminator(images)
    assert tuple(judged.shape) == (3,)
    gradients_of_all(generator, judged)
    assert all(p.grad is not None for p in discriminator.parameters())
    with pytest.raises(ValueError, match="size must be a power of two"):
        models.Generator(size=24)


def test_autoencoder_loss_is_the_negative_bound():
    tc.manual_seed(2)
    model = models.VAE(6, 8, 2)
    x = tc.rand(4, 2, 3)
    reconstruction, mean, log_variance = model(x)
    loss = model.loss(reconstruction, x, mean, log_variance)
    assert tuple(reconstruction.shape) == (4, 6)
    # The divergence of N(0, 1) from itself is 0; what remains is the cross-entropy.
    zero = tc.zeros(4, 2)
    flat = x.flatten(1)
    entropy = -(flat * reconstruction.log() + (1 - flat) * (1 - reconstruction).log()).sum()
    assert model.loss(reconstruction, x, zero, zero).item() == pytest.approx(entropy.item(), rel=1e-5)
    gradients_of_all(model, loss)
    model.eval()
    assert tc.equal(model(x)[0], model(x)[0])


def tokens(*shape, high=50):
    return tc.randint(1, high, shape)


def test_lstm_language_model_goes_on_from_its_state():
    model = models.LSTMLanguageModel(50, 8, 8, 2, tied=True).eval()
    text = tokens(6, 3)
    whole, _ = model(text)
    first, state = model(text[:4])
    second, _ = model(text[4:], state)
    assert bool(((tc.cat([first, second]) - whole).abs() < 1e-5).all())
    assert model.decoder.weight is model.encoder.weight
    gradients_of_all(model, whole)
    with pytest.raises(ValueError, match="tied needs features == hidden"):
        models.LSTMLanguageModel(50, 8, 4, tied=True)


def test_translation_does_not_see_later_tokens_nor_padding():
    tc.manual_seed(3)
    model = models.TranslationTransformer(50, 40, 16, 2, 2, 32, dropout=0.0)
    source, target = tokens(2, 5), tokens(2, 4, high=40)
    result = model(source, target)
    assert tuple(result.shape) == (2, 4, 40)
    gradients_of_all(model, result)
    changed = target.clone()
    changed[:, -1] = 1 + changed[:, -1] % 39
    assert bool(((model(source, changed) - result)[:, :-1].abs() < 1e-5).all())
    padded = tc.cat([source, tc.zeros(2, 2, dtype=tc.int64)], dim=1)
    assert bool(((model(padded, target) - result).abs() < 1e-5).all())
    with pytest.raises(ValueError, match="features must be even"):
        models.PositionalEncoding(5)
    with pytest.raises(ValueError, match="sequences are at most 3 long, got 4"):
        models.PositionalEncoding(4, length=3)(tc.zeros(1, 4, 4))


def small_gpt():
    return models.GPT2LMHeadModel(
        models.GPT2Config(vocab_size=50, n_positions=8, n_embd=16, n_layer=2, n_head=2)
    )


def test_gpt2_sees_the_past_alone_and_writes_on():
    tc.manual_seed(4)
    model = small_gpt().eval()
    text = tokens(2, 6)
    result = model(text)
    assert tuple(result.shape) == (2, 6, 50)
    gradients_of_all(model, result)
    changed = text.clone()
    changed[:, -1] = 1 + changed[:, -1] % 49
    assert bool(((model(changed) - result)[:, :-1].abs() < 1e-5).all())
    written = model.generate(text, 4, temperature=0)
    assert tuple(written.shape) == (2, 10)
    assert tc.equal(written[:, :6], text)
    assert tc.equal(written[:, 6], model(text)[:, -1].argmax(-1))
    likeliest = model(text)[:, -1].topk(2).indices
    drawn = model.generate(text, 1, top_k=2)[:, -1:]
    assert bool((likeliest == drawn).any(-1).all())


def test_gpt2_takes_published_files_with_their_masks():
    model, other = small_gpt(), small_gpt()
    state = model.transformer.state_dict()
    state["h.0.attn.bias"] = tc.ones(1, 1, 8, 8)
    state["h.1.attn.masked_bias"] = tc.tensor(-1e4)
    other.transformer.load_state_dict(state)
    text = tokens(1, 5)
    assert tc.equal(model.eval()(text), other.eval()(text))


def test_wrong_calls_of_language_models():
    model = small_gpt()
    with pytest.raises(ValueError, match="at most 8 tokens long, got 9"):
        model(tokens(1, 9))
    for wrong in ({"count": -1}, {"count": 1, "temperature": -1.0}, {"count": 1, "top_k": 0}):
        with pytest.raises(ValueError, match="generate: needs count >= 0"):
            model.generate(tokens(1, 2), **wrong)
    with pytest.raises(ValueError, match="n_head must divide n_embd"):
        models.GPT2Config(n_embd=10, n_head=3)
    with pytest.raises(ValueError, match="num_attention_heads must divide hidden_size"):
        models.BertConfig(hidden_size=10, num_attention_heads=3)


def test_bert_ignores_what_the_mask_hides():
    tc.manual_seed(5)
    config = models.BertConfig(50, 16, 2, 2, 32, max_position_embeddings=8)
    model = models.BertModel(config).eval()
    text = tokens(2, 6)
    features, whole = model(text, token_type_ids=tc.zeros_like(text))
    assert tuple(features.shape) == (2, 6, 16)
    assert tuple(whole.shape) == (2, 16)
    gradients_of_all(model, features, whole)
    assert tc.equal(features, model(text)[0])
    longer = tc.cat([text, tokens(2, 2)], dim=1)
    mask = tc.tensor([[1] * 6 + [0] * 2] * 2)
    assert bool(((model(longer, mask)[0][:, :6] - features).abs() < 1e-5).all())
    with pytest.raises(ValueError, match="at most 8 tokens long, got 9"):
        model(tokens(1, 9))
    masked = models.BertForMaskedLM(config)
    assert tuple(masked(text).shape) == (2, 6, 50)
    assert masked.cls.predictions.decoder.weight is masked.bert.embeddings.word_embeddings.weight


def test_gnmt_ignores_padding():
    tc.manual_seed(6)
    model = models.GNMT(50, 8, dropout=0.0)
    source, target = tokens(5, 2), tokens(4, 2)
    lengths = tc.tensor([5, 3])
    source[3:, 1] = 0
    result = model(source, lengths, target)
    assert tuple(result.shape) == (4, 2, 50)
    gradients_of_all(model, result)
    alone = model(source[:3, 1:], tc.tensor([3]), target[:, 1:])
    assert bool(((alone - result[:, 1:]).abs() < 1e-5).all())
    with pytest.raises(ValueError, match="layers must be at least 2"):
        models.GNMT(50, 8, layers=1)


def test_recommendations():
    model = models.NeuMF(10, 20, factors=4, layers=(8, 6, 4), dropout=0.5)
    result = model(tc.tensor([1, 2, 9]), tc.tensor([0, 5, 19]))
    assert tuple(result.shape) == (3,)
    gradients_of_all(model, result)
    with pytest.raises(ValueError, match="layers must begin with an even number"):
        models.NeuMF(10, 20, layers=(7, 4))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: models.SqueezeNet("2_0"), "version must be '1_0' or '1_1'"),
        (lambda: models.SwinTransformer(4, 12, (1,), (2,), 3, version=3), "version must be 1 or 2"),
        (lambda: models.VisionTransformer(30, 8, 1, 1, 8, 8), "patch_size must divide image_size"),
        (lambda: models.VisionTransformer(16, 8, 1, 1, 8, 8)(tc.zeros(1, 3, 8, 8)), "images must be 16 x 16"),
        (lambda: models.ShuffleNetV2((1, 1), (8, 8)), "stages_repeats must have 3"),
        (lambda: models.BasicBlock(8, 8, groups=2), "BasicBlock has groups=1"),
        (
            lambda: models.ResNet(models.BasicBlock, (1, 1, 1, 1), replace_stride_with_dilation=(True,)),
            "replace_stride_with_dilation must have 3 elements",
        ),
    ],
)
def test_wrong_settings_are_refused(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_a_dropped_sample_keeps_the_mean():
    from taeda_models._layers import StochasticDepth

    tc.manual_seed(7)
    layer = StochasticDepth(0.25)
    kept = layer(tc.ones(4000, 2, 1))
    assert kept.unique().tolist() == [0.0, pytest.approx(4 / 3)]
    assert tc.equal(kept[:, 0], kept[:, 1])
    assert kept.mean().item() == pytest.approx(1.0, abs=0.05)
    assert tc.equal(layer.eval()(tc.ones(3)), tc.ones(3))
    with pytest.raises(ValueError, match="p must be between 0 and 1"):
        StochasticDepth(1.5)
