"""Details that programs written for PyTorch rely on."""

import io
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

import taeda
from taeda import nn


def test_settings_of_compilers_have_parts_and_are_saved():
    config = taeda._inductor.config
    before = config.to_dict()
    assert config.max_autotune is False and taeda._dynamo.config.recompile_limit == 8
    with config.patch({"max_autotune": True, "triton.cudagraphs": True, "cpp.threads": 3}):
        assert config.max_autotune and config.triton.cudagraphs and config.cpp.threads == 3
        saved = config.save_config()
    assert config.to_dict() == before
    with config.patch("debug", True):
        assert config.debug
    with config.patch(debug=True):
        config.load_config(saved)
        assert config.cpp.threads == 3 and not config.debug
    assert config.to_dict() == before == config.get_config_copy()


def test_compilers_have_the_settings_that_programs_read():
    from taeda.fx.experimental import _config as sizes

    assert sizes.use_duck_shape is True and sizes.AggressiveGuardFreeMode(1).name == "VALUE_RANGE_ANALYSIS"
    with sizes.patch(use_duck_shape=False):
        assert sizes.use_duck_shape is False
    assert sizes.use_duck_shape is True
    assert taeda._dynamo.config.specialize_float is False and taeda._dynamo.config.cache_size_limit == 8
    assert taeda._functorch.config.cse is True and taeda.compiler.config.job_id is None


def test_programs_clear_what_scripting_keeps():
    taeda._C._jit_clear_class_registry()
    taeda.jit._recursive.concrete_type_store = taeda.jit._recursive.ConcreteTypeStore()
    assert taeda.jit._recursive.concrete_type_store.type_store == {}
    taeda.jit._state._clear_class_state()
    assert len(taeda.jit._state._jit_caching_layer) == 0


@pytest.mark.filterwarnings("ignore:backward hook of Linear")
def test_backward_hooks_without_gradients_of_inputs_may_give_none_for_each():
    layer = nn.Linear(2, 1)
    seen = []
    handle = layer.register_full_backward_hook(lambda module, given, out: seen.append(given) or given)
    layer(taeda.ones(1, 2)).sum().backward()
    assert seen == [(None,)] and layer.weight.grad.tolist() == [[1, 1]]
    handle.remove()
    layer.register_full_backward_hook(lambda module, given, out: (taeda.ones(1, 2),))
    with pytest.raises(RuntimeError, match="no input requires a gradient"):
        layer(taeda.ones(1, 2)).sum().backward()


def test_kinds_of_operators_have_a_precision_of_their_own():
    for library, parts, first in (
        ("cudnn", ("conv", "rnn"), "tf32"),
        ("mkldnn", ("conv", "matmul", "rnn"), "none"),
    ):
        for part in parts:
            settings = getattr(getattr(taeda.backends, library), part)
            with settings.flags(fp32_precision="ieee"):
                assert settings.fp32_precision == "ieee"
            assert settings.fp32_precision == first


def test_bytes_choose_as_masks_do():
    x = taeda.arange(6.0).reshape(2, 3)
    rows = taeda.tensor([0, 1], dtype=taeda.uint8)
    with pytest.warns(UserWarning, match="dtype uint8 is deprecated"):
        assert taeda.equal(x[rows], x[rows.bool()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert x[:, taeda.tensor([1, 0, 1], dtype=taeda.uint8)].shape == (2, 2)
        assert x[(x > 2).to(taeda.uint8)].tolist() == [3.0, 4.0, 5.0]
        assert x[taeda.tensor(0, dtype=taeda.uint8)].shape == (0, 2, 3)
        assert taeda.equal(x[np.array([1, 0], dtype=np.uint8)], x[:1])
        y = x.clone()
        y[(x > 2).to(taeda.uint8)] = 0
        assert y.sum() == 3
        with pytest.raises(IndexError, match="mask"):
            x[taeda.zeros(3, dtype=taeda.uint8)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="uint8"):
            x[rows]
        assert x[np.uint8(1)].tolist() == [3.0, 4.0, 5.0]


def test_volumes_have_an_order_of_their_own():
    x = taeda.arange(2 * 3 * 2 * 2 * 2.0).reshape(2, 3, 2, 2, 2)
    last = x.to(memory_format=taeda.channels_last_3d)
    assert last.stride() == (24, 1, 12, 6, 3) and taeda.equal(last, x)
    assert last.is_contiguous(memory_format=taeda.channels_last_3d) and not last.is_contiguous()
    assert last.contiguous(memory_format=taeda.channels_last_3d) is last
    assert last.clone().stride() == last.stride() and (last + 1).stride() == last.stride()
    assert x.contiguous(memory_format=taeda.channels_last_3d).contiguous().stride() == x.stride()
    assert not x.is_contiguous(memory_format=taeda.channels_last_3d)
    assert taeda.ones(2, 1, 2, 2, 2).is_contiguous(memory_format=taeda.channels_last_3d)
    with pytest.raises(RuntimeError, match="5-dimensional"):
        taeda.ones(2, 2).contiguous(memory_format=taeda.channels_last_3d)
    conv = nn.Conv3d(3, 4, 2)
    assert taeda.allclose(conv(last), conv(x), atol=1e-5)
    loaded = pickle.loads(pickle.dumps(last))
    assert taeda.equal(loaded, last)


def test_modules_take_the_order_of_images_and_keep_the_rest():
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)).to(memory_format=taeda.channels_last)
    assert net[0].weight.is_contiguous(memory_format=taeda.channels_last) and net[0].bias.shape == (8,)
    volumes = nn.Conv3d(2, 2, 2).to(memory_format=taeda.channels_last_3d)
    assert volumes.weight.is_contiguous(memory_format=taeda.channels_last_3d)


def test_resizing_in_an_order():
    x = taeda.arange(24.0)
    assert x.resize_(1, 2, 3, 4, memory_format=taeda.channels_last) is x
    assert x.stride() == (24, 1, 8, 2) and x[0, 1, 0, 0] == 1.0
    y = taeda.empty(0).resize_as_(x, memory_format=taeda.preserve_format)
    assert y.stride() == x.stride()
    assert taeda.empty(0).resize_as_(x).stride() == (24, 12, 4, 1)
    with pytest.raises(RuntimeError, match="preserve_format"):
        x.resize_(2, memory_format=taeda.preserve_format)


def test_counts_alone_give_places():
    counts = taeda.tensor([1, 2, 0, 3])
    assert taeda.repeat_interleave(counts).tolist() == [0, 1, 1, 3, 3, 3]
    assert taeda.repeat_interleave(counts, output_size=6).dtype is taeda.int64
    with pytest.raises(RuntimeError, match="output_size"):
        taeda.repeat_interleave(counts, output_size=5)
    with pytest.raises(RuntimeError, match="1-dimensional"):
        taeda.repeat_interleave(counts.reshape(2, 2))
    with pytest.raises(RuntimeError, match="negative"):
        taeda.repeat_interleave(taeda.tensor([-1]))


def test_dimensions_are_added_to_several_tensors():
    made = taeda.atleast_2d(taeda.tensor(1.0), taeda.ones(3), taeda.ones(1, 2))
    assert [tuple(t.shape) for t in made] == [(1, 1), (1, 3), (1, 2)]
    assert [t.dim() for t in taeda.atleast_3d(taeda.tensor(1.0), taeda.ones(3))] == [3, 3]
    assert taeda.atleast_1d(taeda.tensor(1.0)).shape == (1,)


def test_new_tensors_by_size():
    x = taeda.ones(1, dtype=taeda.float64)
    assert x.new(size=(3, 4)).shape == (3, 4) and x.new(size=(3, 4)).dtype is taeda.float64


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", taeda.zeros(1))

    def forward(self, x):
        self.count = self.count + 1
        return x + self.count


def test_functional_calls_write_to_the_dict_that_was_given():
    module, given = Counting(), {"count": taeda.tensor([2.0])}
    assert taeda.func.functional_call(module, given, taeda.zeros(1)).tolist() == [3.0]
    assert given["count"].tolist() == [3.0] and module.count.tolist() == [0.0]


def test_functional_calls_take_further_names_unless_strict():
    module = nn.Linear(1, 1)
    given = {"weight": taeda.ones(1, 1), "extra": taeda.ones(1)}
    taeda.func.functional_call(module, given, taeda.ones(1))
    assert not hasattr(module, "extra")
    with pytest.raises(RuntimeError, match="unexpected \\['extra'\\]"):
        taeda.func.functional_call(module, given, taeda.ones(1), strict=True)
    with pytest.raises(AttributeError, match="nowhere"):
        taeda.func.functional_call(module, {"nowhere.weight": taeda.ones(1)}, taeda.ones(1))


def test_functional_calls_of_modules_that_hold_themselves():
    module = nn.Sequential(nn.Linear(1, 1, bias=False))
    module[0].owner = module
    given = {"0.owner.0.weight": taeda.full((1, 1), 3.0)}
    assert taeda.func.functional_call(module, given, taeda.ones(1), tie_weights=False).tolist() == [3.0]


def test_files_asked_for_in_the_older_form_can_be_read():
    file = io.BytesIO()
    taeda.save({"a": taeda.arange(3)}, file, _use_new_zipfile_serialization=False)
    assert file.getvalue()[:2] == b"\x80\x02"  # a pickle, no archive
    file.seek(0)
    assert taeda.load(file)["a"].tolist() == [0, 1, 2]


def test_packed_sequences_that_do_not_move_are_themselves():
    packed = nn.utils.rnn.pack_sequence([taeda.ones(2), taeda.ones(1)])
    assert packed.to("cpu") is packed and packed.to(taeda.float32) is packed
    assert packed.to(taeda.float64).data.dtype is taeda.float64


def test_lazy_parameters_take_one_size():
    param = nn.UninitializedParameter()
    param.materialize(10)
    assert type(param) is nn.Parameter and param.shape == (10,)


def test_what_callbacks_of_futures_raise():
    future = taeda.futures.Future()
    then = future.then(lambda done: 1 / 0)
    future.add_done_callback(lambda done: 1 / 0)
    future.set_result(5)
    assert future.wait() == 5
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        then.wait()
    with pytest.raises(RuntimeError, match="Can not pickle"):
        pickle.dumps(future)


def test_strategies_of_jacobians():
    functional = taeda.autograd.functional
    x = taeda.tensor([1.0, 2.0])
    made = functional.jacobian(lambda x: x**2, x, vectorize=True, strategy="forward-mode")
    assert made.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert functional.hessian(
        lambda x: (x**2).sum(), x, vectorize=True, outer_jacobian_strategy="forward-mode"
    ).tolist() == [[2.0, 0.0], [0.0, 2.0]]
    with pytest.raises(NotImplementedError, match="vectorize=True"):
        functional.jacobian(lambda x: x**2, x, strategy="forward-mode")
    with pytest.raises(RuntimeError, match="not supported together"):
        functional.hessian(lambda x: (x**2).sum(), x, strict=True, vectorize=True)
    with pytest.raises(ValueError, match="sideways"):
        functional.jacobian(lambda x: x**2, x, strategy="sideways")


def test_gradcheck_warns_of_single_precision():
    x = taeda.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="input 0 requires gradients and is of taeda.float32"):
        assert not taeda.autograd.gradcheck(
            lambda x: x * x * x, (x,), raise_exception=False, atol=0.0, rtol=0.0
        )


def test_handles_of_hooks_refer_to_the_hooks():
    module = nn.Linear(1, 1)
    handle = module.register_forward_hook(lambda *args: None)
    assert handle.id in handle.hooks_dict_ref()
    handle.remove()
    assert handle.id not in handle.hooks_dict_ref()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses_of_images_are_those_of_their_positions(smoothing, weighted, reduction):
    images = taeda.randn(3, 5, 40, 33, dtype=taeda.float64)
    classes = taeda.randint(0, 5, (3, 40, 33))
    classes[0, :3] = -100
    weight = taeda.rand(5, dtype=taeda.float64) if weighted else None

    def losses(x, target):
        x = x.clone().requires_grad_()
        made = nn.functional.cross_entropy(x, target, weight, label_smoothing=smoothing, reduction=reduction)
        made.sum().backward()
        return made.detach(), x.grad

    loss, grad = losses(images, classes)
    flat, flat_grad = losses(images.permute(0, 2, 3, 1).reshape(-1, 5), classes.reshape(-1))
    assert taeda.allclose(loss.reshape(-1), flat.reshape(-1), rtol=1e-12)
    assert taeda.allclose(grad.permute(0, 2, 3, 1).reshape(-1, 5), flat_grad, rtol=1e-11, atol=1e-14)
    half = nn.functional.cross_entropy(images.half(), classes, reduction=reduction)
    assert half.dtype is taeda.float16 and half.isfinite().all()


def test_parameters_that_are_derived_are_checked():
    with pytest.raises(ValueError, match="df"):
        taeda.distributions.Chi2(taeda.tensor([-1.0]))


def test_draws_are_those_of_the_functions_that_draw():
    rate = taeda.tensor([0.5, 2.0], requires_grad=True)
    state = taeda.get_rng_state()
    drawn = taeda.empty(2).exponential_()
    taeda.set_rng_state(state)
    made = taeda.distributions.Exponential(rate).rsample()
    assert taeda.allclose(made, drawn / rate)
    made.sum().backward()
    assert taeda.allclose(rate.grad, -drawn / rate.detach() ** 2)


def test_parts_of_a_whole_are_less_than_it():
    concentration = taeda.full((1000, 2), 0.01, requires_grad=True)
    made = taeda.distributions.Dirichlet(concentration).rsample()
    assert (made < 1).all() and (made > 0).all()
    made[:, 0].sum().backward()
    assert concentration.grad.isfinite().all()
    assert (taeda.distributions.Beta(0.01, 0.01).sample((1000,)) < 1).all()


def test_the_slope_of_a_binomial_at_even_odds():
    logits = taeda.tensor(0.0, requires_grad=True)
    taeda.distributions.Binomial(1, logits=logits).log_prob(taeda.tensor(0.0)).backward()
    assert logits.grad.item() == -0.5


def test_lbfgs_at_a_minimum():
    x = taeda.zeros(2, requires_grad=True)
    optimizer = taeda.optim.LBFGS([x], tolerance_grad=-1.0)

    def closure():
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 0.0 and x.tolist() == [0.0, 0.0]


def test_lists_of_keys_are_tuples_of_them():
    x = taeda.arange(24).reshape(4, 6)
    rows, columns = [0, 1], [1, 2]
    assert x[[rows, columns]].tolist() == [1, 8] == x[[taeda.tensor(rows), taeda.tensor(columns)]].tolist()
    assert x[[slice(0, 2), 1]].tolist() == [1, 7] and x[[..., 1]].tolist() == [1, 7, 13, 19]
    assert x[[0, None]].shape == (1, 6) and x[[[1, 1, 3], [0]]].tolist() == [6, 6, 18]
    assert x[[0, 1]].shape == (2, 6) and x[[[0, 1]]].shape == (2, 6)
    assert x[[[0]] * 32].shape == (32, 1, 6) and x[np.array([rows, columns])].shape == (2, 2, 6)
    x[[rows, columns]] = -1
    assert x[0, 1] == -1 and x[1, 2] == -1 and (x == -1).sum() == 2
    with pytest.raises(IndexError, match="too many indices"):
        x[[rows, rows, rows]]


def test_gradients_of_a_batch_of_weights():
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    z = taeda.ones(1, requires_grad=True)
    y = x**2
    (jacobian,) = taeda.autograd.grad(y, x, taeda.eye(2), is_grads_batched=True)
    assert jacobian.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    y = x**3
    first, second = taeda.autograd.grad(
        y, (x, z), (taeda.eye(2),), is_grads_batched=True, allow_unused=True, create_graph=True
    )
    assert second is None and first.requires_grad
    y = x**2
    with pytest.raises(RuntimeError, match="same first dimension"):
        taeda.autograd.grad(y, x, None, is_grads_batched=True)


def test_zeros_for_unused_inputs_can_be_differentiated():
    x, a = taeda.tensor(0.5, requires_grad=True), taeda.tensor(1.0, requires_grad=True)
    (first,) = taeda.autograd.grad(x * a, x, create_graph=True)
    (second,) = taeda.autograd.grad(first, x, create_graph=True, materialize_grads=True)
    assert taeda.autograd.grad(second, x, materialize_grads=True)[0].item() == 0.0


def test_rows_held_below_a_norm():
    embedding = nn.Embedding(200, 5, max_norm=1.0)
    assert embedding(taeda.arange(200)).detach().norm(dim=1).le(1 + 2e-7).all()


def test_the_last_bag_takes_what_is_left():
    bags = nn.EmbeddingBag(10, 3, include_last_offset=True)
    places = taeda.tensor([0, 1, 2, 3])
    assert taeda.equal(bags(places, taeda.tensor([0, 3, 3])), bags(places, taeda.tensor([0, 3, 4])))


def test_empty_tables_have_sparse_gradients():
    for rows, places in ((0, []), (10, [[0, 2], [4, 3]])):
        embedding = nn.Embedding(rows, 0, sparse=True)
        embedding(taeda.tensor(places, dtype=taeda.int64)).sum().backward()
        assert embedding.weight.grad.is_sparse and embedding.weight.grad.shape == (rows, 0)


def test_results_given_by_out_have_names():
    x = taeda.tensor([[1.0, 3.0], [2.0, 0.0]])
    values, indices = taeda.empty(0), taeda.empty(0, dtype=taeda.int64)
    found = taeda.max(x, 1, out=(values, indices))
    assert type(found) is taeda.return_types.max and found.values is values and found.indices is indices
    assert values.tolist() == [3.0, 2.0]
    inverse, info = taeda.empty(0), taeda.empty(0, dtype=taeda.int32)
    assert taeda.linalg.inv_ex(taeda.eye(2), out=[inverse, info]).inverse is inverse


def test_named_results_show_a_line_for_each_part():
    found = taeda.tensor([1.0, 2.0]).max(0)
    assert repr(found) == f"taeda.return_types.max(\nvalues={found.values!r},\nindices={found.indices!r})"


def test_results_whose_parts_or_names_cannot_be_shown_say_so():
    class Mute(taeda.Tensor):
        def __repr__(self, *, tensor_contents=None):
            raise ZeroDivisionError

    found = taeda.return_types.max((taeda.ones(2).as_subclass(Mute), "\ud800"))
    with pytest.raises(ZeroDivisionError):
        repr(found)
    kind = type(taeda.ones(3).cummin(0))
    before = kind.__match_args__
    try:
        kind.__match_args__ = ("a", "b", "c")  # one more than there are parts
        assert repr(kind((1, "\ud800"))) == "taeda.return_types.cummin(\na=1,\nb='\\ud800')"
        kind.__match_args__ = 5
        with pytest.raises(TypeError):
            repr(kind((1, 2)))
    finally:
        kind.__match_args__ = before


def test_numbers_of_small_unsigned_dtypes_count_down_from_the_largest():
    assert taeda.tensor([-1, -255, 255], dtype=taeda.uint8).tolist() == [255, 1, 255]
    assert taeda.tensor(-1, dtype=taeda.uint16).item() == 65535
    for number, dtype in ((-256, taeda.uint8), (300, taeda.uint8), (-129, taeda.int8), (-1, taeda.uint64)):
        with pytest.raises(OverflowError, match=str(number)):
            taeda.tensor(number, dtype=dtype)


def test_integers_of_any_size_become_floating_point_numbers():
    assert taeda.tensor(2**65, dtype=taeda.float64).item() == 2.0**65
    assert taeda.tensor([1, -(10**30)], dtype=taeda.float32)[1].item() == pytest.approx(-1e30)
    with pytest.raises(OverflowError):
        taeda.tensor(10**400, dtype=taeda.float64)
    with pytest.raises(OverflowError):
        taeda.tensor(2**65)


@pytest.mark.parametrize("p", ["fro", "nuc", 1, -1, float("inf"), -float("inf")])
def test_the_condition_of_singular_matrices_is_infinite(p):
    batch = taeda.stack([taeda.zeros(2, 2), taeda.eye(2)])
    assert taeda.linalg.cond(batch, p).isinf().tolist() == [True, False]


class Doubled(taeda.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        with pytest.warns(DeprecationWarning, match="saved_variables"):
            assert len(ctx.saved_variables) == 1
        return grad * 2


def test_functions_of_older_programs():
    x = taeda.ones(1, requires_grad=True)
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        function = Doubled()
    function.apply(x).backward()
    assert x.grad.item() == 2.0 and Doubled.generate_vmap_rule is False
    with pytest.raises(RuntimeError, match="Legacy autograd function"):
        function(x)


def test_windows_are_reached_without_an_import():
    import taeda_tensor_core

    assert taeda_tensor_core.signal.windows.hann(3).tolist() == [0.0, 1.0, 0.0]


def test_masked_functions_by_the_name_of_their_file():
    x, mask = taeda.tensor([[-3.0, -2.0, -1.0]]), taeda.tensor([[True, False, True]])
    assert taeda.masked._ops.amax(x, 1, mask=mask).tolist() == [-1.0]


def test_functions_of_layers_are_listed_where_programs_find_them():
    listed = taeda.overrides.get_overridable_functions()
    assert taeda.nn.functional.gelu in listed[taeda.nn.functional]
    assert taeda.nn.functional.cross_entropy in listed[taeda.nn.functional]
    assert (
        taeda.nn.functional.relu in listed[taeda.nn.functional]
        and taeda.nn.init.normal_ in listed[taeda.nn.init]
    )


def test_programs_put_hooks_around_a_call_themselves():
    from taeda.utils.hooks import BackwardHook

    layer, seen = nn.Linear(3, 2), []
    x = taeda.ones(1, 3, requires_grad=True)
    hook = BackwardHook(
        layer, [lambda m, gi, go: seen.append((m, go)) or (gi[0] * 10,)], [lambda m, go: (go[0] * 2,)]
    )
    hook.setup_output_hook(layer(*hook.setup_input_hook((x,)))).sum().backward()
    assert seen[0][0] is layer and seen[0][1][0].tolist() == [[2.0, 2.0]]
    taeda.testing.assert_close(x.grad, 20 * layer.weight.detach().sum(0, keepdim=True))


def test_members_of_modules_give_the_views_of_a_dict():
    layers = nn.ModuleDict({"a": nn.Linear(2, 3), "b": nn.ReLU()})
    for members, names in (
        (layers._modules, ["a", "b"]),
        (layers["a"]._parameters, ["weight", "bias"]),
        (layers._buffers, []),
    ):
        assert type(members.keys()) is type({}.keys()) and list(members.keys()) == names
        assert type(members.items()) is type({}.items()) and [name for name, _ in members.items()] == names
        assert type(members.values()) is type({}.values())
        assert all(kept is members[name] for name, kept in zip(names, members.values(), strict=True))
    assert layers._modules.items() & {("b", layers["b"]), ("c", None)} == {("b", layers["b"])}
    assert type(layers.keys()) is type({}.keys())
    for name, layer in layers._modules.items():  # members may go while a program walks over them
        if isinstance(layer, nn.ReLU):
            del layers[name]
    assert list(layers) == ["a"]


def test_tensors_over_storages_without_memory():
    storage = taeda.storage.TypedStorage(dtype=taeda.float16, device="meta")
    made = taeda._utils._rebuild_tensor_v2(storage, 2, (3, 2), (1, 3), False, None)
    assert made.is_meta and made.dtype == taeda.float16
    assert tuple(made.shape) == (3, 2) and made.stride() == (1, 3)
    held = taeda.storage.TypedStorage(dtype=taeda.float16, device="cpu")
    with pytest.raises(RuntimeError, match="reaches"):
        taeda._utils._rebuild_tensor_v2(held, 2, (3, 2), (1, 3), False, None)


def test_what_a_loader_fixes_can_be_deleted():
    loader = taeda.utils.data.DataLoader([1, 2])
    with pytest.raises(ValueError, match="dataset"):
        loader.dataset = [3]
    del loader.dataset
    assert "dataset" not in vars(loader) and not hasattr(loader, "dataset")
    with pytest.raises(AttributeError, match="dataset"):
        del loader.dataset


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (lambda t: [t([1]), t([2])], [1, 2]),
        (lambda t: [t([[1.0]]), 2], [1.0, 2.0]),
        (lambda t: [[t([1]), 2], [3, 4]], [[1, 2], [3, 4]]),
        (lambda t: [[[False, True]], t([[0.5, 1.0]])], [[[0.0, 1.0]], [[0.5, 1.0]]]),
        (lambda t: [[1, 2], np.array([3, 4])], [[1, 2], [3, 4]]),
        (lambda t: [(1, 2), range(2)], [[1, 2], [0, 1]]),
        (lambda t: [[t([1.0]), t([2.0])], t([3.0, 4.0])], [[1.0, 2.0], [3.0, 4.0]]),
    ],
)
def test_sequences_hold_tensors_of_one_element_as_numbers_and_arrays_as_sequences(data, expected):
    made = taeda.tensor(data(taeda.tensor))
    assert made.tolist() == expected and type(made.flatten()[0].item()) is type(np.ravel(expected)[0].item())


def test_user_functions_under_vmap_find_what_they_saved_by_both_names():
    class Square(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_variables
            return 2 * x * grad

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = taeda.func.vmap(taeda.func.grad(lambda x: Square.apply(x).sum()))(
            taeda.tensor([[1.0], [3.0]])
        )
    assert found.tolist() == [[2.0], [6.0]]


def test_parsers_of_amounts_need_no_name():
    pair = nn.modules.utils._ntuple(2)
    assert pair(3) == (3, 3) and pair([1, 2]) == (1, 2)


def test_complex_numbers_of_transposed_parts():
    real, imag = (taeda.arange(70.0).reshape(2, 7, 5).transpose(1, 2) + shift for shift in (0, 100))
    made = taeda.complex(real, imag)
    assert taeda.equal(made.real, real) and taeda.equal(made.imag, imag)
    assert taeda.stack([real, imag], -1).is_contiguous()


def test_channels_come_last_where_those_of_all_parts_do():
    last = taeda.rand(2, 3, 4, 5).to(memory_format=taeda.channels_last)
    assert taeda.cat([last, last], 1).is_contiguous(memory_format=taeda.channels_last)
    assert taeda.cat([last, last.contiguous()], 1).is_contiguous()


def test_functions_annotate_the_nodes_of_their_calls():
    @taeda.fx.traceback.annotate_fn({"stage": 1})
    def encode(x):
        """Doc."""
        return x.relu()

    class Net(nn.Module):
        def forward(self, x):
            return encode(x) + 1

    with taeda.fx.traceback.preserve_node_meta():
        nodes = taeda.fx.symbolic_trace(Net()).graph.nodes
    assert [node.meta.get("custom") for node in nodes] == [None, {"stage": 1}, None, None]
    assert encode.__doc__ == "Doc." and taeda.fx.traceback.get_current_meta() == {}


def test_batches_unpacked_in_their_own_order_lie_in_memory_as_they_are_shown():
    batch = taeda.arange(24.0).reshape(2, 4, 3)
    packed = nn.utils.rnn.pack_padded_sequence(batch, [3, 4], batch_first=True, enforce_sorted=False)
    padded, lengths = nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    batch[0, 3] = 0
    assert padded.is_contiguous() and padded.view(8, 3).tolist() == batch.view(8, 3).tolist()
    assert lengths.tolist() == [3, 4]


def test_settings_are_made_in_blocks_alone_after_they_are_frozen():
    program = """
import taeda
cudnn, before = taeda.backends.cudnn, taeda.backends.flags_frozen()
cudnn.benchmark = False
taeda.backends.disable_global_flags()
try:
    cudnn.benchmark = True
except RuntimeError as error:
    said = "disable_global_flags" in str(error)
with cudnn.flags(benchmark=True):
    inside = cudnn.benchmark
taeda.backends.quantized.engine = "qnnpack"  # no flag
print(before, taeda.backends.flags_frozen(), said, inside, cudnn.benchmark)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["False", "True", "True", "True", "False"], done.stderr


def test_what_fills_a_new_tensor_is_no_change_of_it():
    like = taeda.zeros(2).add_(1)
    made = [taeda.ones(2), taeda.full((2,), 3.0), taeda.arange(3), taeda.rand(2), taeda.randint(5, (2,))]
    made += [taeda.ones_like(like), taeda.randn_like(like), like.new_full((2,), 1.0), taeda.eye(2)]
    made += [taeda.ones(2, requires_grad=True), taeda.randperm(3), taeda.linspace(0, 1, 3)]
    assert [tensor._version for tensor in made] == [0] * len(made)
    assert like._version == 1 and taeda.ones(2).add_(1)._version == 1


def test_normal_targets_of_any_variance():
    var = taeda.tensor([np.inf, 1e-9, 2.0], requires_grad=True)
    loss = nn.functional.gaussian_nll_loss(taeda.ones(3), taeda.zeros(3), var, reduction="none", eps=1e-3)
    assert loss[0].item() == np.inf
    np.testing.assert_allclose(
        loss[1:].tolist(), [0.5 * (np.log(1e-3) + 1e3), 0.5 * (np.log(2) + 0.5)], rtol=1e-6
    )
    loss[1:].sum().backward()
    np.testing.assert_allclose(var.grad.tolist(), [0, 0.5 * (1e3 - 1e6), 0.5 * (0.5 - 0.25)], rtol=1e-6)


def test_masks_of_attention_are_checked_by_rank():
    batch, one = taeda.ones(5, 3, 4), taeda.ones(5, 4)
    check = nn.functional._mha_shape_check
    assert check(batch, batch, batch, None, taeda.ones(5, 5), 2)
    assert not check(one, one, one, None, taeda.ones(2, 5, 5), 2)
    for x, mask in ((batch, taeda.ones(5)), (one, taeda.ones(3, 5, 5))):
        with pytest.raises(AssertionError, match="attn_mask"):
            check(x, x, x, None, mask, 2)


def test_rates_of_adam_become_a_pair():
    group = taeda.optim.Adam([nn.Parameter(taeda.ones(1))], betas=[0.9, 0.99]).param_groups[0]
    assert group["betas"] == (0.9, 0.99)


def test_names_of_the_engine_and_of_settings_of_profiles():
    x = taeda.ones(2, requires_grad=True)
    run = taeda.autograd.Variable._execution_engine.run_backward
    run(((x * 3).sum(), x.prod()), (taeda.tensor(2.0), None), False, False, (), True, True)
    assert x.grad.tolist() == [7.0, 7.0]
    y = taeda.ones(2, requires_grad=True)
    found, unused = run(((x * 3).sum(),), (taeda.tensor(2.0),), False, False, (x, y), True, False)
    assert found.tolist() == [6.0, 6.0] and unused is None and x.grad.tolist() == [7.0, 7.0]
    config = taeda._C._profiler._ExperimentalConfig(verbose=True)
    assert taeda.profiler._ExperimentalConfig is type(config) and config.verbose
    with taeda.profiler.profile(experimental_config=config) as profile:
        taeda.ones(2) + 1
    assert any(event.key.endswith("add") for event in profile.key_averages())
    with pytest.raises(NotImplementedError, match="interprocess"):
        taeda.cuda.Event(interprocess=True)


def test_memory_is_filled_where_runs_are_to_be_the_same():
    from taeda.utils import deterministic

    def made():
        like = taeda.ones(2, 3).t()
        return [
            taeda.empty(3), like.new_empty(2), taeda.empty_like(like), taeda.empty_strided((2,), (3,)),
            taeda.empty_permuted((2, 3), (1, 0)), taeda.empty(2, dtype=taeda.float16),
        ]  # fmt: skip

    taeda.use_deterministic_algorithms(True)
    try:
        assert all(bool(x.isnan().all()) for x in made())
        for name in ("uint8", "int8", "int32", "int64", "uint64"):
            dtype = getattr(taeda, name)
            assert taeda.empty(2, dtype=dtype).tolist() == [taeda.iinfo(dtype).max] * 2
        assert taeda.empty(2, dtype=taeda.bool).tolist() == [True, True]
        assert taeda.Tensor(2).isnan().all()
        assert taeda.empty(2, device="meta").shape == (2,)
        grown, part = taeda.ones(2, dtype=taeda.int64).resize_(3), taeda.ones(6)[2:4].resize_(5)
        assert grown.tolist() == [1, 1, 2**63 - 1] and part[:4].tolist() == [1] * 4 and bool(part[4].isnan())
        assert taeda.ones(2, 2).resize_(1, 2).resize_(3, 2)[2].isnan().all()  # what was cut off is kept
        assert (
            taeda.empty_strided((3,), (0,)).fill_(1).resize_(3).tolist() == [1] * 3
        )  # its memory is long enough
        with pytest.raises(TypeError, match="expected a bool"):
            deterministic.fill_uninitialized_memory = 1
    finally:
        taeda.use_deterministic_algorithms(False)
    assert deterministic.fill_uninitialized_memory is True


def test_conversions_make_new_parameters_where_a_program_asks_for_them():
    layer = taeda.nn.Linear(2, 2)
    weight = layer.weight
    weight.grad = grad = taeda.ones(2, 2)
    assert not taeda.__future__.get_overwrite_module_params_on_conversion()
    taeda.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        layer.double()
    finally:
        taeda.__future__.set_overwrite_module_params_on_conversion(False)
    assert weight.dtype == grad.dtype == taeda.float32 and weight.grad is grad
    assert layer.weight is not weight and type(layer.weight) is taeda.nn.Parameter
    assert layer.weight.dtype == layer.weight.grad.dtype == taeda.float64
    kept = layer.weight
    assert layer.float().weight is kept and kept.dtype == taeda.float32


def test_parameters_are_found_among_the_variables_of_functions_that_ask_classes():
    class Answers:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    functional = nn.functional
    assert functional.cross_entropy(Answers(), Answers()) == "cross_entropy"
    for function in (functional.cross_entropy, functional.mse_loss):
        assert {"input", "target", "reduction"} <= {*function.__code__.co_varnames}
