"""Mixed precision: dtypes by operator, nesting, threads, casts that are kept, scaled gradients."""

import pickle
import threading
import types

import pytest

import taeda_tensor_core as tc
from taeda_tensor_core import amp
from taeda_tensor_core.amp import policies
from taeda_tensor_core.library import operators


@pytest.fixture
def x():
    tc.manual_seed(0)
    return tc.rand(4, 4)


@pytest.fixture
def gradients():
    pytest.importorskip("taeda_autograd", reason="gradients are another package's")


@pytest.mark.parametrize("dtype", [tc.bfloat16, tc.float16])
def test_policies(x, dtype):
    low = x.to(dtype)
    with amp.autocast("cpu", dtype=dtype):
        assert (
            (x @ x).dtype is dtype and tc.addmm(x, x, x).dtype is dtype and tc.ops.linear(x, x).dtype is dtype
        )
        assert low.prod().dtype is tc.float32 and tc.ops.mse_loss(low, low).dtype is tc.float32
        assert tc.cat([low, x]).dtype is tc.float32 and tc.cat([low, low]).dtype is dtype
        assert x.exp().dtype is tc.float32 and (low + 1).dtype is dtype
        assert (x.double() @ x.double()).dtype is tc.float64 and tc.mm(x.long(), x.long()).dtype is tc.int64
    assert (x @ x).dtype is tc.float32


def test_padding_and_pooled_volumes_go_by_their_mode(x):
    """As PyTorch's table has them: mirrored and repeated edges in float32, constants and wrapped ones as they come."""
    low, volumes = x.to(tc.bfloat16).reshape(1, 4, 4), x.to(tc.bfloat16).reshape(1, 2, 2, 4)
    with amp.autocast("cpu", dtype=tc.bfloat16):
        for mode, expected in (("reflect", tc.float32), ("replicate", tc.float32), ("circular", tc.bfloat16)):
            assert tc.ops.pad(low, (1, 1), mode).dtype is expected, mode
        assert tc.ops.pad(low, (1, 1)).dtype is tc.bfloat16
        assert tc.ops.max_pool3d(volumes, 2).dtype is tc.float32
        assert tc.ops.max_pool3d_with_indices(volumes, 2)[0].dtype is tc.bfloat16
    assert tc.ops.pad(low, (1, 1), "reflect").dtype is tc.bfloat16


def test_values_are_those_of_explicit_casts(x):
    with amp.autocast("cpu"):
        got = x @ x
    assert (got == x.bfloat16() @ x.bfloat16()).all()


def test_blocks_nest_and_end(x):
    with amp.autocast("cpu", dtype=tc.float16):
        with amp.autocast("cpu", enabled=False):
            assert (x @ x).dtype is tc.float32 and not amp.is_autocast_enabled("cpu")
            with amp.autocast("cpu", dtype=tc.bfloat16):
                assert (x @ x).dtype is tc.bfloat16
            assert (x @ x).dtype is tc.float32
        assert (x @ x).dtype is tc.float16 and amp.get_autocast_dtype("cpu") is tc.float16
    assert not amp.is_autocast_enabled("cpu") and amp.get_autocast_dtype("cpu") is tc.bfloat16
    with pytest.raises(KeyError), amp.autocast("cpu"):
        raise KeyError
    assert (x @ x).dtype is tc.float32


def test_only_its_own_thread(x):
    found = []
    with amp.autocast("cpu"):
        thread = threading.Thread(target=lambda: found.append((x @ x).dtype))
        thread.start()
        thread.join()
    assert found == [tc.float32]


def test_decorator_and_single_settings(x):
    @amp.autocast("cpu", dtype=tc.bfloat16)
    def product(a):
        return a @ a

    assert product(x).dtype is tc.bfloat16
    tc.set_autocast_enabled("cpu", True)
    try:
        assert tc.is_autocast_cpu_enabled() and (x @ x).dtype is tc.bfloat16
    finally:
        tc.set_autocast_enabled("cpu", False)
    assert (x @ x).dtype is tc.float32


def test_out_and_in_place_forms_are_left_alone(x):
    out = tc.empty(4, 4)
    with amp.autocast("cpu"):
        tc.mm(x, x, out=out)
    assert (out == x @ x).all()


def test_what_cannot_be():
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'meta'"):
        amp.autocast("meta")
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        amp.autocast(tc.device("cpu"))
    with pytest.warns(UserWarning, match="only supports dtype of bfloat16, float16"):
        assert not amp.autocast("cpu", dtype=tc.float64)._enabled
    with pytest.warns(UserWarning, match="there is no such device"):
        assert not amp.autocast("xpu")._enabled


def test_operators_with_a_policy_exist_once():
    assert not policies.LOWER & policies.FLOAT32 and not policies.WIDEST & (policies.LOWER | policies.FLOAT32)
    known = {each.name.partition(".")[0] for each in operators()}
    core = {"matmul", "mm", "bmm", "addmm", "baddbmm", "linear", "conv2d", "prod", "mse_loss", "cat", "stack"}
    assert core <= known & (policies.LOWER | policies.FLOAT32 | policies.WIDEST)


class FakeOptimizer:
    """What a scaler needs of an optimizer."""

    def __init__(self, *parameters):
        self.param_groups = [{"params": list(parameters)}]
        self.steps = 0

    def step(self):
        self.steps += 1
        return "stepped"


def with_grad(*values):
    parameter = tc.zeros(len(values)).requires_grad_()
    parameter.grad = tc.tensor(values)
    return parameter


def test_scaler_scales_unscales_and_grows(gradients):
    scaler = amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    parameter = with_grad(8.0, 4.0)
    optimizer = FakeOptimizer(parameter)
    assert scaler.scale([tc.ones(1), (tc.ones(1) * 2,)])[1][0].item() == 8.0
    assert scaler.step(optimizer) == "stepped" and parameter.grad.tolist() == [2.0, 1.0]
    scaler.update()
    assert scaler.get_scale() == 4.0
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 8.0 and optimizer.steps == 2


def test_scaler_leaves_out_steps_with_infinite_gradients(gradients):
    scaler = amp.GradScaler("cpu", init_scale=4.0)
    good, bad = FakeOptimizer(with_grad(1.0)), FakeOptimizer(with_grad(1.0, float("nan")))
    scaler.scale(tc.ones(1))
    assert scaler.step(bad) is None and scaler.step(good) == "stepped"
    scaler.update()
    assert (bad.steps, good.steps, scaler.get_scale()) == (0, 1, 2.0)


def test_scaler_refuses_calls_in_the_wrong_order(gradients):
    scaler = amp.GradScaler("cpu")
    optimizer = FakeOptimizer(with_grad(1.0))
    with pytest.raises(AssertionError, match="the scale is None"):
        scaler.step(optimizer)
    scaler.scale(tc.ones(1))
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.update()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="step\\(\\) has already been called"):
        scaler.step(optimizer)
    half = FakeOptimizer(with_grad(1.0))
    half.param_groups[0]["params"][0] = tc.zeros(1, dtype=tc.float16).requires_grad_()
    half.param_groups[0]["params"][0].grad = tc.ones(1, dtype=tc.float16)
    with pytest.raises(ValueError, match="Attempting to unscale FP16"):
        scaler.unscale_(half)


def test_scaler_state_and_identity_when_off():
    scaler = amp.GradScaler("cpu", init_scale=8.0)
    other = amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 8.0
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        other.load_state_dict({})
    off = amp.GradScaler("cpu", enabled=False)
    value, optimizer = tc.ones(1), FakeOptimizer()
    assert off.scale(value) is value and off.step(optimizer) == "stepped" and off.get_scale() == 1.0
    off.update()
    assert off.state_dict() == {}
    with pytest.warns(UserWarning, match="there is no device of the kind 'xpu'"):
        assert not amp.GradScaler("xpu").is_enabled()


def test_scaler_keeps_its_numbers_where_programs_look_for_them(gradients):
    scaler = amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    optimizer = FakeOptimizer(with_grad(16.0))
    assert scaler._scale is None and scaler._growth_tracker is None
    scaler.scale(tc.ones(1))
    assert (scaler._scale.dtype, scaler._growth_tracker.dtype) == (tc.float32, tc.int32)
    scaler.unscale_(optimizer)
    state = scaler._per_optimizer_states[id(optimizer)]
    assert state["stage"] is amp.grad_scaler.OptState.UNSCALED
    assert [found.item() for found in state["found_inf_per_device"].values()] == [0.0]
    scaler.step(optimizer)
    scaler.update()
    assert scaler._growth_tracker.item() == 1 and not scaler._per_optimizer_states
    scaler._scale = tc.tensor(2.0)
    assert scaler.scale(tc.ones(1)).item() == scaler.get_scale() == 2.0
    copied = pickle.loads(pickle.dumps(scaler))
    assert copied._scale is None and copied.state_dict() == scaler.state_dict()


def test_scaler_whose_subclass_unscales_half_precision(gradients):
    class Lenient(amp.GradScaler):
        def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16):
            return super()._unscale_grads_(optimizer, inv_scale, found_inf, True)

    scaler = Lenient("cpu", init_scale=4.0)
    parameter = tc.zeros(1, dtype=tc.float16).requires_grad_()
    parameter.grad = tc.ones(1, dtype=tc.float16)
    scaler.scale(tc.ones(1))
    assert scaler.step(FakeOptimizer(parameter)) == "stepped" and parameter.grad.item() == 0.25


def test_an_optimizer_may_take_the_scaler_itself():
    class Taking:
        _step_supports_amp_scaling = True
        param_groups = ()

        def step(self, *, grad_scaler):
            assert not hasattr(self, "found_inf")
            return grad_scaler

    scaler = amp.GradScaler("cpu")
    scaler.scale(tc.ones(1))
    with pytest.warns(FutureWarning, match="passing itself"):
        assert scaler.step(Taking()) is scaler


def test_sums_of_sparse_halves_may_be_infinite(gradients):
    class Halves(amp.GradScaler):
        def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16):
            return super()._unscale_grads_(optimizer, inv_scale, found_inf, True)

    leaf = tc.zeros(3, dtype=tc.float16).requires_grad_()
    leaf.grad = tc.sparse_coo_tensor([[0, 1, 0]], [60000.0, 1.0, 60000.0], (3,), dtype=tc.float16)
    optimizer = types.SimpleNamespace(param_groups=[{"params": [leaf]}])
    scaler = Halves("cpu", init_scale=2.0)
    scaler.scale(tc.ones(1))
    scaler.unscale_(optimizer)
    assert leaf.grad._nnz() == 2 and [float(f) for f in scaler._found_inf_per_device(optimizer).values()] == [
        1
    ]


@pytest.mark.parametrize("dtype", [tc.bfloat16, tc.float16])
def test_cells_keep_their_state_in_its_dtype(dtype):
    """Their products are of fewer bits; what goes from step to step is not, as with PyTorch on the cpu."""
    tc.manual_seed(0)
    x, h, c = tc.randn(3, 5), tc.randn(3, 4), tc.randn(3, 4)
    for gates, call in (
        (4, lambda *weights: tc.ops.lstm_cell(x, [h, c], *weights)),
        (3, lambda *weights: tc.ops.gru_cell(x, h, *weights)),
    ):
        rows = gates * 4
        weights = tc.randn(rows, 5), tc.randn(rows, 4), tc.randn(rows), tc.randn(rows)
        expected = call(*weights)
        with amp.autocast("cpu", dtype=dtype):
            found = call(*weights)
        for one, other in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, expected)), strict=True):
            assert one.dtype is tc.float32
            assert (one - other).abs().max().item() < 0.05


@pytest.mark.parametrize(("state", "expected"), [(tc.float32, tc.float32), (tc.bfloat16, tc.bfloat16)])
def test_layers_that_mix_a_state_have_its_dtype(state, expected):
    x, h = tc.randn(3, 2, 5), tc.randn(1, 2, 4)
    weights = [tc.randn(12, 5), tc.randn(12, 4), tc.randn(12), tc.randn(12)]
    plain, _ = tc.ops.gru(x, h, weights, True, 1, 0.0, False, False, False)
    with amp.autocast("cpu", dtype=tc.bfloat16):
        found, last = tc.ops.gru(x, h.to(state), weights, True, 1, 0.0, False, False, False)
    assert found.dtype is last.dtype is expected
    assert (found.float() - plain).abs().max().item() < 0.1


def test_leaving_what_was_not_entered_is_an_error():
    mode = amp.autocast("cpu")
    with pytest.raises(RuntimeError, match="autocast: left without having been entered"):
        mode.__exit__(None, None, None)
    with mode:
        assert tc.is_autocast_enabled("cpu")
    with pytest.raises(RuntimeError, match="autocast: left without having been entered"):
        mode.__exit__(None, None, None)
    assert not tc.is_autocast_enabled("cpu")


@pytest.mark.parametrize("place", range(3))
def test_unscaling_changes_all_gradients_or_none(place):
    parameters = [types.SimpleNamespace(grad=tc.full((3,), 4.0)) for _ in range(3)]
    parameters[place].grad = tc.ones(1).expand(3)  # whose elements share their place
    optimizer = types.SimpleNamespace(param_groups=[{"params": parameters}])
    scaler = amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale(tc.ones(1))
    with pytest.raises(RuntimeError, match="mul_"):
        scaler.unscale_(optimizer)
    for at, parameter in enumerate(parameters):
        assert parameter.grad.tolist() == [1.0 if at == place else 4.0] * 3
    parameters[place].grad = tc.full((3,), 4.0)
    scaler.unscale_(optimizer)
    assert all(parameter.grad.tolist() == [0.5] * 3 for parameter in parameters)
