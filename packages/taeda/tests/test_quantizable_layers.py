"""LSTMs and attention taken apart to be quantized: the numbers of the layers they stand for, and near them after."""

from __future__ import annotations

import pytest

import taeda
from taeda import nn
from taeda.ao import quantization
from taeda.ao.nn import quantizable, quantized


class Wrapped(nn.Module):
    """A layer between where quantizing begins and ends."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.quant, self.dequant, self.layer = quantization.QuantStub(), quantization.DeQuantStub(), layer

    def forward(self, x):
        x = self.quant(x)
        return self.dequant(self.layer(x, x, x)[0] if hasattr(self.layer, "num_heads") else self.layer(x)[0])


LSTMS = {
    "plain": {"num_layers": 2},
    "both": {"num_layers": 2, "bidirectional": True, "batch_first": True},
    "bare": {"bias": False},
}


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("name", LSTMS)
def test_lstms_give_what_they_stand_for(name, split):
    taeda.manual_seed(0)
    layer = nn.LSTM(3, 4, **LSTMS[name]).eval()
    layer.qconfig = quantization.default_qconfig
    made = quantizable.LSTM.from_float(layer, split_gates=split)
    x = taeda.randn(2, 5, 3)
    expected, (h, c) = layer(x)
    for state in (None, (taeda.zeros_like(h), taeda.zeros_like(c))):
        found, (mine, own) = made(x, state)
        assert taeda.allclose(found, expected, atol=1e-6)
        assert taeda.allclose(mine, h, atol=1e-6) and taeda.allclose(own, c, atol=1e-6)
    keys = {key for key in made.state_dict() if "post_process" not in key}
    gates = ("input.", "forget.", "cell.", "output.") if split else ("",)
    kinds = ("weight", "bias") if layer.bias else ("weight",)
    ways = ("layer_fw", "layer_bw") if layer.bidirectional else ("layer_fw",)
    assert keys == {
        f"layers.{at}.{way}.cell.{side}.{gate}{kind}"
        for at in range(layer.num_layers) for way in ways for side in ("igates", "hgates")
        for gate in gates for kind in kinds
    }  # fmt: skip


def test_cells_go_on_from_their_state():
    taeda.manual_seed(0)
    cell = nn.LSTMCell(3, 4)
    cell.qconfig = quantization.default_qconfig
    made = quantizable.LSTMCell.from_float(cell)
    x, state, own = taeda.randn(2, 3), None, None
    for _ in range(3):
        state, own = cell(x, state), made(x, own)
    assert all(taeda.allclose(a, b, atol=1e-6) for a, b in zip(state, own, strict=True))
    with pytest.raises(AssertionError, match="qconfig"):
        quantizable.LSTMCell.from_float(nn.LSTMCell(2, 2))


MASKS = {
    "none": {},
    "causal": {"attn_mask": nn.Transformer.generate_square_subsequent_mask(5)},
    "hidden": {"attn_mask": taeda.ones(5, 5).triu(1).bool()},
    "by_heads": {"attn_mask": taeda.arange(150.0).reshape(6, 5, 5) / 100},
    "padding": {"key_padding_mask": taeda.tensor([[0, 0, 0, 0, 1]] * 3).bool()},
    "each": {"average_attn_weights": False},
}


@pytest.mark.parametrize(
    "options",
    [{}, {"kdim": 8, "vdim": 8}, {"add_bias_kv": True, "add_zero_attn": True}, {"batch_first": True}],
)
@pytest.mark.parametrize("mask", MASKS)
def test_attention_gives_what_it_stands_for(mask, options):
    taeda.manual_seed(0)
    layer = nn.MultiheadAttention(8, 2, **options).eval()
    layer.qconfig = quantization.default_qconfig
    made = quantizable.MultiheadAttention.from_float(layer)
    x = taeda.randn(3, 5, 8) if options.get("batch_first") else taeda.randn(5, 3, 8)
    for found, expected in zip(made(x, x, x, **MASKS[mask]), layer(x, x, x, **MASKS[mask]), strict=True):
        assert taeda.allclose(found, expected, atol=1e-6)
    assert made(x, x, x, need_weights=False)[1] is None


@pytest.mark.filterwarnings("ignore:must run observer")  # of a product with a number, which nothing watches
@pytest.mark.parametrize("name", ["LSTM", "MultiheadAttention"])
def test_models_are_quantized_through_what_is_observed(name):
    taeda.manual_seed(0)
    layer = nn.LSTM(8, 6, 2) if name == "LSTM" else nn.MultiheadAttention(8, 2)
    model = Wrapped(layer).eval()
    model.qconfig = quantization.default_qconfig
    prepared = quantization.prepare(model)
    assert type(prepared.layer) is getattr(quantizable, name)
    x = taeda.randn(5, 4, 8)
    assert taeda.allclose(prepared(x), model(x), atol=1e-5)
    made = quantization.convert(prepared)
    assert type(made.layer) is getattr(quantized, name)
    expected = model(x)
    assert 0 < (made(x) - expected).abs().max() < 0.08 * expected.abs().max()
    other = quantization.prepare(model)
    other(2 * x)
    again = quantization.convert(other)
    again.load_state_dict(made.state_dict())
    assert taeda.equal(again(x), made(x))
    if name == "MultiheadAttention":
        assert (made.layer.dequantize()(x, x, x)[0] - expected).abs().max() < 0.02
    with pytest.raises(NotImplementedError, match="observed"):
        getattr(quantized, name).from_float(layer)


def test_other_layers_take_the_place_of_those_that_programs_name():
    class Observed(nn.Linear):
        @classmethod
        def from_float(cls, other):
            made = cls(other.in_features, other.out_features)
            made.load_state_dict(other.state_dict())
            made.qconfig = other.qconfig
            return made

    class Made(nn.Module):
        @classmethod
        def from_observed(cls, other):
            made = cls()
            made.seen = other.activation_post_process.max_val
            return made

    model = nn.Sequential(nn.Linear(2, 2)).eval()
    model.qconfig = quantization.default_qconfig
    given = {"float_to_observed_custom_module_class": {nn.Linear: Observed}}
    prepared = quantization.prepare(model, prepare_custom_config_dict=given)
    assert type(prepared[0]) is Observed
    greatest = prepared(taeda.ones(1, 2)).max()
    given = {"observed_to_quantized_custom_module_class": {Observed: Made}}
    made = quantization.convert(prepared, convert_custom_config_dict=given)
    assert type(made[0]) is Made and made[0].seen == greatest
