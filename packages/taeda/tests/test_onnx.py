"""Files of ONNX: their nodes, names, sizes and numbers, read by a few lines that know the encoding."""

import io
import struct

import pytest

import taeda
from taeda import nn, onnx


def fields(data):
    """The fields of a message of protocol buffers, as (number, value)."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
        elif kind == 5:
            yield key >> 3, struct.unpack("<f", data[at : at + 4])[0]
            at += 4
        else:
            assert kind == 2
            size = varint()
            yield key >> 3, bytes(data[at : at + size])
            at += size


def every(data, number):
    return [value for field, value in fields(data) if field == number]


def dims(info):
    shape = every(every(every(info, 2)[0], 1)[0], 2)[0]
    return [
        next(v.decode() if isinstance(v, bytes) else v for _, v in fields(dim)) for dim in every(shape, 1)
    ]


class File:
    def __init__(self, data):
        self.graph = every(data, 7)[0]
        self.opset = every(every(data, 8)[0], 2)[0]
        self.nodes = [every(node, 4)[0].decode() for node in every(self.graph, 1)]
        self.inputs = {every(i, 1)[0].decode(): dims(i) for i in every(self.graph, 11)}
        self.outputs = {every(i, 1)[0].decode(): dims(i) for i in every(self.graph, 12)}
        self.tensors = {every(t, 8)[0].decode(): every(t, 9)[0] for t in every(self.graph, 5)}


def exported(model, *args, **kwargs):
    buffer = io.BytesIO()
    onnx.export(model, args, buffer, **kwargs)
    return File(buffer.getvalue())


def test_a_layer_is_one_node_with_its_parameters():
    layer = nn.Linear(4, 2)
    file = exported(layer, taeda.ones(3, 4), input_names=["in"], output_names=["out"])
    assert file.nodes == ["Gemm"] and file.opset == 18
    assert file.inputs == {"in": [3, 4]} and file.outputs == {"out": [3, 2]}
    assert file.tensors["weight"] == layer.weight.detach().numpy().tobytes() and set(file.tensors) == {
        "weight",
        "bias",
    }


@pytest.mark.parametrize(
    "given",
    [
        {"dynamic_axes": {"in": {0: "batch"}, "out": {0: "batch"}}},
        {"dynamic_shapes": ({0: "batch"},)},
        {"dynamic_shapes": {"x": {0: taeda.export.Dim("batch")}}},
    ],
)
def test_named_axes_vary(given):
    class Flat(nn.Module):
        def forward(self, x):
            return x.view(x.size(0) * 2, -1)

    file = exported(Flat(), taeda.ones(3, 4), input_names=["in"], output_names=["out"], **given)
    assert (
        file.inputs == {"in": ["batch", 4]}
        and "Shape" in file.nodes
        and isinstance(file.outputs["out"][0], str)
    )
    assert "Shape" not in exported(Flat(), taeda.ones(3, 4)).nodes


def test_changes_in_place_are_followed():
    class Changes(nn.Module):
        def forward(self, x):
            x = x.clone()
            x[:, 0] = 1
            x[0].add_(2)
            return nn.functional.relu_(x) * 2

    assert exported(Changes(), taeda.ones(2, 2)).nodes.count("ScatterND") == 2


def test_functions_of_python_are_taken_apart_and_constants_folded():
    class Attends(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(4, 2)

        def forward(self, x):
            mask = taeda.ones(3, 3).triu(1).bool()
            return self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]

    nodes = exported(Attends(), taeda.randn(3, 2, 4)).nodes
    assert "Softmax" in nodes and "Trilu" not in nodes and not {"RandomNormal", "If"} & set(nodes)


class Calls(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize(
    ("kind", "draw"),
    [
        ("RandomNormalLike", lambda x: x + taeda.randn(x.shape)),
        ("RandomNormalLike", lambda x: taeda.normal(0.0, 1.0, (4,)) + x),
        ("RandomUniformLike", lambda x: taeda.empty(4).uniform_(1, 2) + x),
        ("RandomUniformLike", lambda x: taeda.bernoulli(taeda.full((4,), 0.5)) + x),
        ("RandomUniformLike", lambda x: x[taeda.randperm(4)]),
        ("Multinomial", lambda x: taeda.multinomial(x, 1)),
        ("TopK", lambda x: taeda.multinomial(x, 2)),
    ],
)
def test_numbers_are_drawn_anew(kind, draw):
    assert kind in exported(Calls(draw), taeda.full((4,), 0.25)).nodes


@pytest.mark.parametrize("draw", [taeda.Tensor.cauchy_, taeda.Tensor.random_, taeda.poisson])
def test_draws_that_cannot_be_written_are_no_constants(draw):
    with pytest.raises(onnx.errors.UnsupportedOperatorError):
        exported(Calls(lambda x: draw(taeda.ones(4)) + x), taeda.ones(4))


@pytest.mark.parametrize("make", [lambda f, x: taeda.jit.trace(f, (x,)), lambda f, x: taeda.jit.script(f)])
def test_functions_of_scripts_are_exported(make):
    layer, x = nn.Linear(4, 2), taeda.ones(3, 4)

    def function(x):
        return layer(x).relu()

    file = exported(make(function, x), x, input_names=["in"])
    assert file.nodes == ["Gemm", "Relu"] and file.inputs == {"in": [3, 4]}
    assert layer.weight.detach().numpy().tobytes() in file.tensors.values()


def test_what_cannot_be_written_is_named():
    class Odd(nn.Module):
        def forward(self, x):
            return taeda.linalg.eigvalsh(x)

    with pytest.raises(onnx.errors.UnsupportedOperatorError, match="eigvalsh"):
        onnx.export(Odd(), (taeda.eye(2),))
    with pytest.raises(TypeError, match="must be a module"):
        onnx.export(lambda x: x, (taeda.eye(2),))
    with pytest.raises(ValueError, match="opset_version"):
        onnx.export(nn.ReLU(), (taeda.eye(2),), opset_version=99)
    assert not onnx.is_in_onnx_export()


def test_the_mode_is_restored_and_told():
    class Asks(nn.Module):
        def forward(self, x):
            assert onnx.is_in_onnx_export()
            return nn.functional.dropout(x, training=self.training)

    model = Asks()
    assert exported(model, taeda.ones(2), dynamo=False).nodes == ["Identity"]
    assert model.training and "Dropout" in exported(model, taeda.ones(2)).nodes


def test_scripts_traces_and_exported_programs_are_written(tmp_path):
    layer, x = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), taeda.ones(1, 2)
    for model in (taeda.jit.script(layer), taeda.jit.trace(layer, x), taeda.export.export(layer, (x,))):
        onnx.export(model, (x,), tmp_path / "net.onnx")
        assert File((tmp_path / "net.onnx").read_bytes()).nodes == ["Gemm", "Relu"]


def test_older_operators_are_written_in_the_oldest_version():
    with pytest.warns(UserWarning, match="version 18"):
        assert exported(nn.ReLU(), taeda.ones(1), opset_version=11).opset == 18


def test_registered_operators_are_called():
    @taeda.library.custom_op("onnxtest::twice", mutates_args=())
    def twice(x: taeda.Tensor) -> taeda.Tensor:
        return x * 2

    class Calls(nn.Module):
        def forward(self, x):
            return twice(x)

    onnx.register_custom_op_symbolic("onnxtest::twice", lambda g, x: g.op("mine::Twice", x, factor_i=2), 9)
    try:
        assert exported(Calls(), taeda.ones(2)).nodes == ["Twice"]
    finally:
        onnx.unregister_custom_op_symbolic("onnxtest::twice", 9)


def test_large_numbers_go_to_a_second_file(tmp_path, monkeypatch):
    from taeda.onnx import _graph

    monkeypatch.setattr(_graph, "_PREFERRED_EXTERNAL", 1000)
    layer = nn.Linear(40, 40)
    onnx.export(layer, (taeda.ones(1, 40),), tmp_path / "net.onnx")
    assert (tmp_path / "net.onnx.data").read_bytes().startswith(layer.weight.detach().numpy().tobytes()[:64])
    assert (tmp_path / "net.onnx").stat().st_size < 1000


def test_files_say_who_wrote_them():
    file = io.BytesIO()
    taeda.onnx.export(nn.Linear(2, 1), (taeda.ones(1, 2),), file)
    assert taeda.onnx.producer_name == "taeda" and taeda.onnx.producer_version == taeda.__version__
    assert b"taeda" in file.getvalue() and taeda.__version__.encode() in file.getvalue()
