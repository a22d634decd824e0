"""Records of what a program calls."""

import pytest

import taeda
from taeda import nn
from taeda.utils._debug_mode import DebugMode, get_active_debug_mode
from taeda.utils._debug_mode._calls import _OpCall


def lines(mode):
    return [line.strip() for line in mode.debug_string().splitlines()]


def test_operators_are_recorded_with_the_shapes_of_their_tensors():
    x = taeda.ones(2, 3)
    with DebugMode() as mode:
        assert get_active_debug_mode() is mode
        taeda.mm(taeda.relu(x), x.t())
    assert get_active_debug_mode() is None
    written = lines(mode)
    assert written[0] == "aten::relu(t: f32[2, 3])  ->  t: f32[2, 3]"
    assert written[-1] == "aten::mm(t: f32[2, 3], t: f32[3, 2])  ->  t: f32[2, 2]"
    assert isinstance(mode.logs[0], _OpCall)
    op, args, kwargs, depth = mode.logs[0]
    assert op.name().endswith("::relu") and (args, kwargs, depth) == ("t: f32[2, 3]", "", 1)
    with DebugMode(record_output=False, record_tensor_attributes=["kind"], store_original_args=True) as mode:
        x.kind = "odd"
        taeda.relu(x)
    assert lines(mode) == ["aten::relu(t: f32[2, 3]{kind=odd})"] and mode.logs[0].args[0] is x


def test_tensors_have_numbers_and_calls_the_line_of_the_program():
    x = taeda.ones(2)
    with DebugMode(record_ids=True, record_stack_trace=True) as mode:
        y = taeda.relu(x)
        taeda.mul(y, x)
    one, first, _, two, second = lines(mode)[:2] + lines(mode)[2:]
    assert "y = taeda.relu(x)" in one and "taeda.mul(y, x)" in two and "test_debug_mode.py" in two
    assert first == "aten::relu(t$0: f32[2])  ->  t$1: f32[2]"
    assert second == "aten::mul.Tensor(t$1: f32[2], t$0: f32[2])  ->  t$2: f32[2]"
    assert lines(mode)[1::3] and len(mode.debug_string(show_stack_trace=False).splitlines()) == 2


def test_modules_stand_above_what_runs_in_them():
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU()))
    with DebugMode(record_nn_module=True) as mode:
        model(taeda.ones(1, 2))
    headers = [line for line in mode.debug_string().splitlines() if "[nn.Mod]" in line]
    assert headers == [
        "    [nn.Mod] Sequential",
        "      [nn.Mod] Sequential.0",
        "      [nn.Mod] Sequential.1",
        "        [nn.Mod] Sequential.1.0",
    ]
    assert mode.debug_string().splitlines()[-1] == "          aten::relu(t: f32[1, 2])  ->  t: f32[1, 2]"


def test_functions_are_recorded_above_their_operators():
    x = taeda.ones(2)
    with DebugMode(record_torchfunction=True) as mode:
        taeda.relu(x)
    assert mode.debug_string().splitlines() == [
        "  torch.relu(t: f32[2])  ->  t: f32[2]",
        "      aten::relu(t: f32[2])  ->  t: f32[2]",
    ]


def test_hashes_tell_runs_apart():
    def run(factor):
        with DebugMode() as mode, DebugMode.log_tensor_hashes(hash_inputs=True), DebugMode.record_outputs():
            taeda.relu(taeda.relu(taeda.tensor([1.0, -2.0])) * factor)
        return mode.logs

    logs = run(2.0)
    assert logs[0].log == {"input_hash": ((3.0,), {}), "hash": 1.0} and logs[0].record["output"].tolist() == [
        1,
        0,
    ]
    assert DebugMode.check_hash_mismatches(logs, run(2.0)) == []
    found = DebugMode.check_hash_mismatches(logs, run(3.0))
    assert [(one["call"], one["hash1"], one["hash2"]) for one in found][-1] == ("aten::relu", 2.0, 3.0)
    assert found[-1]["rel_diff"] == pytest.approx(1 / 3) and not found[-1]["is_input_hash"]
    with pytest.raises(ValueError, match="lengths"):
        DebugMode.check_hash_mismatches(logs, logs[:1])


def test_hooks_write_behind_calls():
    with DebugMode() as mode, DebugMode.dispatch_hooks(log_hook=lambda *call: {"types": len(call)}):
        taeda.relu(taeda.ones(1))
    assert lines(mode)[-1].endswith("# {'types': 5}")
    with pytest.raises(AssertionError, match="hash_type"), DebugMode.log_tensor_hashes("odd"):
        pass
