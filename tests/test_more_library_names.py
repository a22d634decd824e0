"""What other people's libraries import and call: passes of loaders, lists of tensors, older orders, names of dtypes."""

import copy
import importlib
import inspect
import io
import pickle
import subprocess
import sys
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

import taeda
import taeda.nn.functional as F
from taeda.utils.data import DataLoader, IterableDataset, TensorDataset, dataloader


class Steps(IterableDataset):
    def __iter__(self):
        return iter(range(5))


def test_passes_of_loaders_are_objects_of_their_kind():
    loader = DataLoader(TensorDataset(taeda.arange(5)), batch_size=2)
    read = iter(loader)
    assert isinstance(read, dataloader._SingleProcessDataLoaderIter) and len(read) == 3
    assert isinstance(read, dataloader._BaseDataLoaderIter) and iter(read) is read
    assert [batch.tolist() for (batch,) in read] == [[0, 1], [2, 3], [4]]
    assert (
        loader._iterator is None and loader._auto_collation and loader._index_sampler is loader.batch_sampler
    )
    assert loader._dataset_kind == dataloader._DatasetKind.Map
    assert DataLoader(Steps())._dataset_kind == dataloader._DatasetKind.Iterable
    assert DataLoader[int].__origin__ is DataLoader


def test_persistent_workers_end_with_the_pass():
    loader = DataLoader(TensorDataset(taeda.arange(4)), batch_size=2, num_workers=1, persistent_workers=True)
    read = iter(loader)
    assert isinstance(read, dataloader._MultiProcessingDataLoaderIter) and loader._iterator is read
    assert len(list(read)) == 2 and loader._crew is not None
    read._shutdown_workers()
    assert loader._crew is None
    loader._iterator = None
    assert loader._iterator is None


class Like:
    """An object with the attributes of a loader."""

    _IterableDataset_len_called, drop_last, generator, prefetch_factor = None, False, None, 2
    pin_memory, num_workers, timeout, persistent_workers, worker_init_fn = False, 0, 0, False, None

    def __init__(self, dataset, kind, collation, order):
        self.dataset, self._dataset_kind, self._auto_collation = dataset, kind, collation
        self._index_sampler = order

    def collate_fn(self, samples):
        return samples


@pytest.mark.parametrize(
    ("dataset", "kind", "collation", "order", "expected"),
    [
        (range(4), 0, True, [[0, 3], [1]], [[0, 3], [1]]),
        (range(4), 0, False, [2, 0], [2, 0]),
        ([5, 6], 1, False, None, [5, 6]),
    ],
)
def test_passes_over_what_looks_like_a_loader(dataset, kind, collation, order, expected):
    assert list(dataloader._SingleProcessDataLoaderIter(Like(dataset, kind, collation, order))) == expected


def test_fetchers():
    fetch = dataloader._DatasetKind.create_fetcher
    assert fetch(0, range(9), True, list, False).fetch([2, 5]) == [2, 5]
    assert fetch(0, range(9), False, str, False).fetch(4) == "4"
    read = fetch(1, Steps(), True, list, True)
    assert read.fetch([0, 0]) == [0, 1] and read.fetch([0, 0]) == [2, 3]
    with pytest.raises(StopIteration):
        read.fetch([0, 0])
    from taeda.utils.data._utils.collate import default_collate
    from taeda.utils.data._utils.worker import _generate_state

    assert default_collate([1, 2]).tolist() == [1, 2] and len(_generate_state(3, 1)) == 4


def test_lists_pass_gradients():
    x = taeda.ones(2, requires_grad=True)
    sum(t.sum() for t in taeda._foreach_mul([x, x], [2.0, 3.0])).backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_factors_before_tensors():
    x, m = taeda.ones(2), taeda.ones(2, 2)
    with pytest.warns(UserWarning, match="order of the arguments of add_ is deprecated"):
        assert x.add_(0.5, x).tolist() == [1.5, 1.5]
    with pytest.warns(UserWarning):
        assert taeda.addcmul(x, 2, x, x).tolist() == [6.0, 6.0]
        assert taeda.ones(2).addcdiv_(-1, x, x).tolist() == [0.0, 0.0]
        assert taeda.addmm(2, m, 3, m, m).tolist() == [[8.0, 8.0], [8.0, 8.0]]
        assert taeda.addmm(2, m, m, m).tolist() == [[4.0, 4.0], [4.0, 4.0]]
        assert taeda.ones(2, 2).addmm_(2, 3, m, m).tolist() == [[8.0, 8.0], [8.0, 8.0]]
    for call in (lambda: x.add_(0.5, 0.5, x), lambda: x.add_(x, x, x), lambda: taeda.mul(x, 2, x)):
        with pytest.raises(TypeError, match="expected at most"):
            call()


def test_named_dtypes():
    for name in ("complex32", "int4", "uint1", "qint8", "float4_e2m1fn_x2", "bits16"):
        dtype = getattr(taeda, name)
        assert isinstance(dtype, taeda.dtype) and dtype == dtype and repr(dtype) == f"taeda.{name}"
        assert pickle.loads(pickle.dumps(dtype)) is copy.deepcopy(dtype) is dtype
        with pytest.raises(TypeError, match="dtype"):
            taeda.ones(2, dtype=dtype)
    assert taeda.chalf is taeda.complex32 and taeda.complex32 != taeda.complex64
    assert taeda.complex32.to_real() is taeda.float16


def test_modules_of_several_processes():
    for name in (
        "algorithms.ddp_comm_hooks.default_hooks",
        "checkpoint.state_dict",
        "tensor.parallel",
        "rpc",
    ):
        importlib.import_module(f"taeda.distributed.{name}")
    assert not isinstance(3, taeda.distributed.optim.ZeroRedundancyOptimizer)
    with pytest.raises(RuntimeError, match="RPC has not been initialized"):
        taeda.distributed.rpc.rpc_sync("worker", len)
    with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified"):
        taeda.distributed.checkpoint.save({})
    assert taeda.distributed.pipelining.pipeline(taeda.nn.Linear(1, 1), (taeda.ones(1, 1),)).num_stages == 1
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("taeda.distributed.nothing")
    from taeda.distributed.tensor import Partial, Replicate, Shard

    assert Shard(1) == Shard(1) != Shard(0) and Shard(1).is_shard(1) and not Replicate().is_shard()
    assert [str(p) for p in (Shard(0), Replicate(), Partial("avg"))] == ["S(0)", "R", "P(avg)"]
    fsdp = taeda.distributed.fsdp
    assert fsdp.ShardingStrategy["FULL_SHARD"].value == 1 and fsdp.MixedPrecision().param_dtype is None
    rule = fsdp.wrap.ModuleWrapPolicy({taeda.nn.Linear})
    assert rule(taeda.nn.Linear(1, 1), recurse=False) and not rule(taeda.nn.ReLU(), recurse=False)
    assert not fsdp.wrap.size_based_auto_wrap_policy(taeda.nn.Linear(1, 1), False, 2)


def test_small_names():
    x = taeda.ones(2, requires_grad=True)
    with pytest.warns(FutureWarning, match="only_inputs"):
        assert taeda.autograd.grad((x * x).sum(), x, only_inputs=False)[0].tolist() == [2.0, 2.0]
    assert taeda.autograd.grad((x * x).sum(), [x], None, None, False, True, True)[0].tolist() == [2.0, 2.0]
    assert taeda.Future[int].__origin__ is taeda.futures.Future
    assert taeda._shape_as_tensor(taeda.ones(2, 3)).tolist() == [2, 3]
    rows = taeda.tensor([0, 0, 2])
    packed = taeda._convert_indices_from_coo_to_csr(rows, 3)
    assert packed.tolist() == [0, 2, 2, 3]
    assert taeda._convert_indices_from_csr_to_coo(packed, rows).tolist() == [[0, 0, 2], [0, 0, 2]]
    ends = taeda.tensor([1, 4], dtype=taeda.int32)
    assert taeda._grouped_mm(taeda.ones(4, 2), taeda.ones(2, 2, 3), ends).shape == (4, 3)
    assert taeda._grouped_mm(taeda.ones(2, 4), taeda.ones(4, 3), ends)[1].tolist() == [[3.0] * 3] * 2
    with pytest.raises(RuntimeError, match="'offs' is needed"):
        taeda._grouped_mm(taeda.ones(4, 2), taeda.ones(2, 2, 3))
    found = taeda._C._nn._parse_to("cpu", taeda.float64, True)
    assert found == (taeda.device("cpu"), taeda.float64, True, None)
    x = taeda.tensor([-1.0, 1.0])
    written = taeda._C._nn.gelu_(x)
    assert written is x and taeda.equal(x, taeda.nn.functional.gelu(taeda.tensor([-1.0, 1.0])))
    with pytest.raises(AttributeError, match="no attribute 'nothing"):
        _ = taeda._C._nn.nothing_
    with pytest.raises(RuntimeError, match="nothing"):
        taeda._assert_async(taeda.tensor(False), "nothing")
    aten = taeda.ops.aten
    y = aten.alias.default(taeda.ones(2))
    assert y.tolist() == [1.0, 1.0] and aten._to_copy.default(y, dtype=taeda.int64).dtype is taeda.int64
    image = taeda.ones(1, 1, 2, 2)
    assert taeda._C._nn.upsample_nearest2d(image, [4, 4]).shape == (1, 1, 4, 4)
    assert taeda._C._special.special_erf(image).shape == image.shape and not hasattr(taeda._C._nn, "nothing")
    assert taeda._tensor_str._tensor_str(y.detach(), 4) == "[1., 1.]"
    assert taeda._tensor_str._add_suffixes("t([1.]", ["a=1"], 2, False) == "t([1.], a=1)"


def test_operators_of_many_forms_take_what_a_form_takes():
    aten, x = taeda.ops.aten, taeda.tensor([[3.0, 1.0]])
    assert aten.squeeze(x, 0).tolist() == aten.squeeze.dim(x, 0).tolist() == [3.0, 1.0]
    assert str(aten.squeeze.dim) == "aten.squeeze.dim" and str(aten.squeeze.dims) == "aten.squeeze.dims"
    assert [r.tolist() for r in aten.max(x, 1)] == [[3.0], [0]]
    assert aten.min(x, 2 - x).tolist() == [[-1.0, 1.0]]
    assert aten.median(x, 1)[0].tolist() == [1.0]
    assert aten.div(x, 2, rounding_mode="floor").tolist() == [[1.0, 0.0]]
    y = x.clone()
    assert aten.div_.Tensor_mode(y, taeda.tensor(2.0), rounding_mode="floor") is y and y.tolist() == [
        [1.0, 0.0]
    ]
    assert [part.tolist() for part in aten.split(x, [1, 1], 1)] == [[[3.0]], [[1.0]]]
    with pytest.raises(TypeError, match=r"max: expected at most 1 positional arguments, found 2"):
        aten.max(x, "wrong")


def test_loading_to_a_device(tmp_path):
    taeda.save({"a": taeda.ones(2)}, tmp_path / "t.pt")
    assert taeda.load(tmp_path / "t.pt", map_location=taeda.device("cpu"))["a"].tolist() == [1.0, 1.0]


def test_contexts_as_decorators():
    from taeda.utils._contextlib import _DecoratorContextManager

    inside = []

    class Noted(_DecoratorContextManager):
        def __enter__(self):
            inside.append(1)

        def __exit__(self, *_):
            inside.pop()

    @Noted()
    def depth():
        return len(inside)

    @Noted()
    def depths():
        got = yield len(inside)
        yield got + len(inside)

    assert depth() == 1 and not inside
    steps = depths()
    assert next(steps) == 1 and not inside and steps.send(5) == 6


def test_names_that_libraries_import_beside_what_they_use():
    from taeda.distributed import rpc
    from taeda.distributed._tensor.experimental import local_map
    from taeda.distributions.transforms import _clipped_sigmoid
    from taeda.serialization import MAP_LOCATION

    assert taeda.utils.data._utils.collate.default_collate is taeda.utils.data.dataloader.default_collate
    data = taeda.utils.data
    for module in (data.dataset, data.dataloader, data.distributed, data.sampler):
        assert isinstance(module.T_co, TypeVar) and isinstance(module._T_co, TypeVar)
    assert data._DatasetKind is data.dataloader._DatasetKind and data._utils.python_exit_status is False
    assert rpc.is_available() and callable(local_map) and MAP_LOCATION is not None
    assert not isinstance(taeda.ones(1), taeda.TensorType)
    ends = _clipped_sigmoid(taeda.tensor([-1e4, 0.0, 1e4]))
    assert 0 < ends[0] < 1e-30 and ends[1] == 0.5 and 1 - 1e-6 < ends[2] < 1

    @taeda.cuda.nvtx.range("a step")
    def step():
        raise AssertionError("the mark comes first")

    with pytest.raises(RuntimeError, match="no such profiler"):
        step()


def test_grids_and_private_samples():
    assert taeda.meshgrid.__kwdefaults__ == {"indexing": None}
    assert taeda.meshgrid(taeda.arange(2), taeda.arange(3), indexing="xy")[0].shape == (3, 2)
    assert taeda.meshgrid([taeda.arange(2), taeda.arange(3)])[1].shape == (2, 3)
    assert taeda.allclose(taeda._sample_dirichlet(taeda.ones(4, 3)).sum(-1), taeda.ones(4))
    assert (taeda._standard_gamma(taeda.full((5,), 2.0)) > 0).all()


def test_private_samples_follow_a_generator():
    for draw in (taeda._standard_gamma, taeda._sample_dirichlet):
        generator, state = taeda.Generator().manual_seed(4), taeda.get_rng_state()
        first = draw(taeda.full((5,), 0.5), generator=generator)
        assert not taeda.equal(draw(taeda.full((5,), 0.5), generator=generator), first)
        assert taeda.equal(draw(taeda.full((5,), 0.5), generator=generator.manual_seed(4)), first)
        assert taeda.equal(taeda.get_rng_state(), state)


def test_functions_of_networks_can_be_marked():
    for function in (taeda.nn.functional.sigmoid, taeda.nn.functional.tanh):
        function.__default_init__ = taeda.nn.init.xavier_uniform_
        assert function(taeda.zeros(1)).item() in (0.0, 0.5)
        del function.__default_init__


def test_older_makers_of_sparse_tensors():
    made = taeda.sparse.FloatTensor(taeda.tensor([[0], [1]]), taeda.ones(1), taeda.Size([2, 2]))
    assert made.to_dense().tolist() == [[0.0, 1.0], [0.0, 0.0]]
    assert not made.is_cuda and not made.is_quantized
    kind = taeda.sparse.FloatTensor
    assert (
        isinstance(made, kind) and not isinstance(made.to_dense(), kind) and kind is taeda.sparse.FloatTensor
    )
    assert not isinstance(made, taeda.sparse.DoubleTensor) and isinstance(
        made.double(), taeda.sparse.DoubleTensor
    )
    assert not isinstance(made.to_dense().to_sparse_csr(), kind) and not isinstance(3, kind)
    assert kind(2, 3).shape == kind(taeda.Size([2, 3])).shape == (2, 3) and kind().shape == (0,)
    assert kind(2, 3).dtype is kind.dtype is taeda.float32
    counted = kind(np.int64(2), np.int32(3), device="cpu")  # as sums over NumPy's arrays give sizes
    assert counted.shape == (2, 3) and counted._nnz() == 0 and type(counted.shape[0]) is int
    assert kind(taeda.tensor([[1]]), taeda.ones(1).double()).dtype is taeda.float64
    assert kind(indices=taeda.tensor([[1]]), values=taeda.ones(1)).to_dense().tolist() == [0, 1]
    with pytest.raises(TypeError, match=r"sparse.FloatTensor: expected a size, or indices.*found Tensor"):
        kind(taeda.ones(1))
    with pytest.raises(AttributeError, match="no attribute 'WrongTensor'"):
        _ = taeda.sparse.WrongTensor


def test_checks_of_all_elements():
    taeda._check_tensor_all(taeda.tensor([True, True]))
    with pytest.raises(RuntimeError, match="not all"):
        taeda._check_tensor_all(taeda.tensor([True, False]), lambda: "not all")
    with pytest.raises(TypeError, match="must have dtype"):
        taeda._check_tensor_all(taeda.ones(1))


def test_loops_over_slices_are_operators_by_their_files():
    from taeda._higher_order_ops import foreach_map, map, scan
    from taeda._higher_order_ops.cond import cond
    from taeda._higher_order_ops.map import map as by_file

    assert by_file is map and cond is taeda.cond
    x = taeda.arange(6.0).reshape(3, 2).requires_grad_()
    made = map(lambda row, by: {"sum": row.sum() * by, "row": row}, x, 2.0)
    assert made["sum"].tolist() == [2.0, 10.0, 18.0] and taeda.equal(made["row"], x)
    made["sum"].sum().backward()
    assert x.grad.tolist() == [[2.0, 2.0]] * 3
    last, running = scan(lambda s, v: (s + v, s * v), taeda.tensor(1), taeda.tensor([2, 3, 4]))
    assert last.item() == 10 and running.tolist() == [2, 9, 24]
    last, running = scan(
        lambda s, v: (s + v, s), taeda.tensor([0]), taeda.tensor([[2, 3, 4]]), dim=1, reverse=True
    )
    assert last.tolist() == [9] and running.tolist() == [[7, 4, 0]]
    assert [t.item() for t in foreach_map(taeda.add, [taeda.tensor(1), taeda.tensor(2)], 3)] == [4, 5]
    assert foreach_map(lambda a, b: (a, b), [1, 2], [3, 4]) == ([1, 2], [3, 4])
    with pytest.raises(RuntimeError, match=r"sizes \[2, 3\]"):
        map(lambda pair: pair[0], (taeda.ones(2), taeda.ones(3)))
    with pytest.raises(RuntimeError, match="no slice"):
        scan(lambda s, v: (s, v), taeda.tensor(0), taeda.ones(0))
    with pytest.raises(RuntimeError, match="structure of 'init'"):
        scan(lambda s, v: ((s, s), v), taeda.tensor(0), taeda.ones(2))
    with pytest.raises(ValueError, match=r"lengths \[1, 2\]"):
        foreach_map(taeda.add, [1], [1, 2])


def test_what_programs_ask_a_compiler_that_is_not_there():
    from taeda._dynamo import exc, explain, lookup_backend, register_backend
    from taeda._dynamo.utils import clone_inputs, same
    from taeda._inductor.utils import fresh_inductor_cache
    from taeda.export.dynamic_shapes import Dim

    assert Dim is taeda.export.Dim
    told = explain(lambda x: x + 1)(taeda.ones(2))
    assert (told.graph_count, told.graph_break_count, told.op_count) == (1, 0, 1)
    assert issubclass(exc.Unsupported, exc.TorchDynamoException)

    @register_backend
    def mine(graph, inputs):
        return graph

    assert lookup_backend("mine") is mine and lookup_backend(mine) is mine
    x = taeda.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    (other,) = clone_inputs([x])
    assert other is not x and other.requires_grad and other.grad.tolist() == [2.0, 2.0]
    assert same({"a": [x, 1.0]}, {"a": [other + 1e-6, 1.0]}) and not same([x], [x, x])
    assert not same(x, x.double()) and same(x, x.double(), exact_dtype=False) and not same(x, x + 1)
    with fresh_inductor_cache():
        pass
    with pytest.raises(NotImplementedError, match=r"taeda\.export\.save"):
        taeda._inductor.aoti_load_package("x.pt2")


def test_removed_functions_name_what_stands_in_their_place():
    for name in ("eig", "lstsq", "matrix_rank", "solve", "symeig"):
        with pytest.raises(RuntimeError, match=rf"{name}: .*linalg\."):
            getattr(taeda, name)(taeda.ones(2, 2))
    with pytest.raises(RuntimeError, match=r"linalg\.eigh"):
        taeda.ones(2, 2).symeig()


def test_parameters_step_in_the_backward_pass():
    from taeda.distributed.optim import _apply_optimizer_in_backward

    weights = [taeda.ones(2, requires_grad=True), taeda.zeros(1, requires_grad=True)]
    _apply_optimizer_in_backward(taeda.optim.SGD, weights, {"lr": 0.5})
    (weights[0].sum() * 2 + weights[1].sum()).backward()
    assert weights[0].tolist() == [0.0, 0.0] and weights[1].tolist() == [-0.5]
    assert weights[0].grad is None and len(weights[0]._in_backward_optimizers) == 1


def test_levels_and_ways_of_groups(monkeypatch):
    from taeda import distributed as dist

    assert dist.get_default_backend_for_device("cpu") == "gloo"
    assert dist.get_debug_level() is dist.DebugLevel.OFF
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "detail")
    assert dist.get_debug_level() is dist.DebugLevel.DETAIL
    dist.set_debug_level(dist.DebugLevel.INFO)
    assert dist.get_debug_level() is dist.DebugLevel.INFO
    dist.set_debug_level_from_env()
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "loud")
    with pytest.raises(RuntimeError, match="'LOUD'"):
        dist.get_debug_level()


def test_shapes_as_tensors():
    from taeda.onnx import operators

    x = taeda.arange(6).reshape(2, 3)
    assert operators.shape_as_tensor(x).tolist() == [2, 3]
    assert operators.reshape_from_tensor_shape(x, taeda.tensor([3, -1])).shape == (3, 2)


def test_declared_layers_load_by_the_names_that_files_have(tmp_path):
    """In PyTorch's files a layer stands by the file that defines it, in ours by its package."""
    path = tmp_path / "model.pt"
    taeda.save(taeda.nn.Sequential(taeda.nn.Linear(2, 1), taeda.nn.Dropout()), path)
    layers = [taeda.nn.Sequential, taeda.nn.modules.linear.Linear, taeda.nn.Dropout]
    with taeda.serialization.safe_globals(layers[:2]), pytest.raises(Exception, match="Dropout"):
        taeda.load(path)
    with taeda.serialization.safe_globals(layers):
        assert taeda.load(path)(taeda.ones(1, 2)).shape == (1, 1)
    data = b"\x80\x02ctorch.nn.modules.dropout\nDropout\n)\x81}X\x01\x00\x00\x00pG?\xe0\x00\x00\x00\x00\x00\x00sb."
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", data)
    with taeda.serialization.safe_globals([taeda.nn.Dropout]):
        made = taeda.load(path)
    assert type(made) is taeda.nn.Dropout and made.p == 0.5


def test_sizes_follow_from_others():
    Dim = taeda.export.Dim
    size = Dim("n", min=4, max=16)
    for made, name, low, high in (
        (2 * size, "2*n", 8, 32),
        (size * 3 + 1, "3*n + 1", 13, 49),
        (size - 1, "n - 1", 3, 15),
        (1 + Dim("m"), "m + 1", 1, None),
    ):
        assert (made.__name__, made.min, made.max) == (name, low, high)
    for wrong in (lambda: size * 0, lambda: size + 1.5, lambda: size * size):
        with pytest.raises(NotImplementedError, match="Dim"):
            wrong()


def test_folders_and_names_of_extensions(tmp_path, monkeypatch, capsys):
    from taeda.utils import cpp_extension

    monkeypatch.setenv("TAEDA_EXTENSIONS_DIR", str(tmp_path))
    folder = cpp_extension._get_build_directory("mine", verbose=True)
    assert folder == str(tmp_path / "mine") and (tmp_path / "mine").is_dir()
    assert folder in capsys.readouterr().out
    assert cpp_extension.HIP_HOME is None and "--expt-relaxed-constexpr" in cpp_extension.COMMON_NVCC_FLAGS
    assert cpp_extension.LIB_EXT in (".so", ".dylib")


def test_no_module_is_hidden_by_names_of_what_is_not_there():
    from taeda import _compiler_names, _distributed_names, _further_names

    home = Path(taeda.__file__).parent
    tables = [
        *_compiler_names.NAMES, *_further_names.NAMES,
        *(f"distributed.{name}" for name in _distributed_names.NAMES),
    ]  # fmt: skip
    assert len(tables) > 100
    places = {name: home / name.replace(".", "/") for name in tables}
    hidden = [
        n
        for n, place in places.items()
        if place.with_suffix(".py").exists() or (place / "__init__.py").exists()
    ]
    assert hidden == []


def test_ways_to_average_gradients_are_registered_by_name():
    from taeda.distributed.algorithms.ddp_comm_hooks import (
        DDPCommHookType,
        default_hooks,
        register_ddp_comm_hook,
    )

    class Model:
        def register_comm_hook(self, state, hook):
            self.given = state, hook

    model = Model()
    register_ddp_comm_hook(DDPCommHookType.FP16_COMPRESS, model, "group")
    assert model.given == ("group", default_hooks.fp16_compress_hook)
    register_ddp_comm_hook(DDPCommHookType.POWER_SGD_RANK2, model)
    state, hook = model.given
    assert state.matrix_approximation_rank == 2 and hook.__name__ == "powerSGD_hook"
    for kind in DDPCommHookType:
        register_ddp_comm_hook(kind, model)
        assert kind.value.startswith(model.given[1].__name__)


def test_parameters_of_wrapping_classes_are_of_their_class():
    """Whether the class answers for functions or for operators alone."""

    class Wrapped(taeda.Tensor):
        @staticmethod
        def __new__(cls, elem):
            return taeda.Tensor._make_wrapper_subclass(cls, elem.shape, dtype=elem.dtype)

        def __init__(self, elem):
            self.elem = elem

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return cls(func(args[0].elem, *args[1:], **(kwargs or {})))

    module = taeda.nn.Linear(2, 1)
    module.weight = taeda.nn.Parameter(Wrapped(taeda.ones(1, 2)))
    assert type(module.weight) is Wrapped and isinstance(module.weight, taeda.nn.Parameter)
    assert dict(module.named_parameters())["weight"].elem.tolist() == [[1.0, 1.0]]
    module.bfloat16()
    assert module.weight.dtype == module.weight.elem.dtype == taeda.bfloat16


def test_names_of_a_compilers_inside_can_be_imported():
    from taeda._dynamo.source import LocalSource
    from taeda._dynamo.variables.base import VariableTracker
    from taeda._inductor.compile_fx import compile_fx
    from taeda._inductor.lowering import register_lowering
    from taeda._inductor.pattern_matcher import PatternMatcherPass, stable_topological_sort
    from taeda.fx.passes.tools_common import legalize_graph
    from taeda.jit.frontend import FrontendError
    from taeda.onnx.utils import export

    assert stable_topological_sort is legalize_graph and export is taeda.onnx.export
    assert issubclass(FrontendError, Exception) and VariableTracker is taeda._dynamo.variables.VariableTracker
    for kind in (LocalSource, PatternMatcherPass):
        with pytest.raises(NotImplementedError, match="no compiler"):
            kind()
    assert register_lowering(taeda.add)(len) is len  # there is no compiler that would ask for it
    assert taeda.compile(taeda.exp, backend=compile_fx)(taeda.zeros(1)).item() == 1


def test_graphs_are_counted():
    from taeda._dynamo.testing import CompileCounter, CompileCounterWithBackend, EagerAndRecordGraphs

    counts, kept, both = CompileCounter(), EagerAndRecordGraphs(), CompileCounterWithBackend("eager")
    for backend in (counts, kept, both):
        run = taeda.compile(lambda x: x.exp() + 1, backend=backend)
        assert run(taeda.zeros(1)).item() == 2 and run(taeda.ones(1)).item() > 2
    assert (counts.frame_count, counts.op_count) == (1, 2) == (both.frame_count, both.op_count)
    assert len(kept.graphs) == len(both.graphs) == 1


def test_sets_in_order_and_settings_of_modules(monkeypatch):
    import sys
    from types import ModuleType

    from taeda.utils._config_module import Config, install_config_module
    from taeda.utils._ordered_set import OrderedSet

    items = OrderedSet([3, 1, 2, 1])
    assert list(items) == [3, 1, 2] and list(items - {1}) == [3, 2] and items == {1, 2, 3}
    assert list(items.union([0], [3])) == [3, 1, 2, 0] and items.pop() == 2 and items.issubset([1, 3, 5])
    with pytest.raises(KeyError):
        OrderedSet().pop()
    monkeypatch.setenv("WORD_OF_A_TEST", "1")
    made = ModuleType("settings_of_a_test")
    monkeypatch.setitem(sys.modules, "settings_of_a_test", made)
    made.depth, made.fast = 3, Config(default=False, env_name_default="WORD_OF_A_TEST")
    install_config_module(made)
    with made.patch(depth=5):
        assert made.depth == 5
    assert made.depth == 3 and made.fast is True and made.to_dict()["depth"] == 3


def test_exceptions_travel_with_their_place():
    from taeda._utils import ExceptionWrapper

    class Asking(Exception):
        def __init__(self, one, other):
            super().__init__(one, other)

    for error, raised in (
        (ValueError("odd"), ValueError),
        (KeyError("lost"), KeyError),
        (Asking(1, 2), RuntimeError),
    ):
        try:
            raise error
        except Exception:
            kept = (
                pickle.loads(pickle.dumps(ExceptionWrapper(where="in thread 3")))
                if raised is not RuntimeError
                else (ExceptionWrapper(where="in thread 3"))
            )
        with pytest.raises(raised) as caught:
            kept.reraise()
        assert f"Caught {type(error).__name__} in thread 3.\nOriginal Traceback" in str(caught.value)


def test_the_processor_says_what_it_can_do():
    found = taeda.cpu.get_capabilities()
    assert found["architecture"] and all(isinstance(value, (bool, int, str)) for value in found.values())
    assert taeda.cpu._is_avx2_supported() == found.get("avx2", False)
    assert taeda._C._cpu._get_cpu_capability() == dict(found)
    assert taeda._C._cpu._is_amx_tile_supported() == taeda.cpu._is_amx_tile_supported()


def test_names_of_the_compiler_that_libraries_use():
    compiled = importlib.import_module("taeda._compile")
    assert taeda._disable_dynamo(len) is compiled._disable_dynamo(len) is len
    assert taeda._dynamo.nonstrict_trace(len) is len
    from taeda._dynamo.polyfills import loader

    assert loader is importlib.import_module("taeda._dynamo.polyfills.loader")
    with importlib.import_module("taeda._dynamo.utils").disable_cache_limit():
        pass
    assert (
        importlib.import_module("taeda.nested._internal.nested_tensor").NestedTensor
        is taeda.nested.NestedTensor
    )
    assert int(taeda.nn.functional.ScalingType.RowWise) == 1
    assert taeda.ops.aten.numpy_T(taeda.ones(2, 3, 4)).shape == (4, 3, 2)
    assert taeda.sparse.SparseSemiStructuredTensor._DEFAULT_ALG_ID == 0


class Scaled(taeda.Tensor):
    """A tensor of codes and a scale."""

    @staticmethod
    def __new__(cls, codes, scale):
        return taeda.Tensor._make_wrapper_subclass(cls, codes.shape, dtype=scale.dtype, device=codes.device)

    def __init__(self, codes, scale):
        self.codes, self.scale = codes, scale

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        plain = [item.codes * item.scale if isinstance(item, Scaled) else item for item in args]
        return func(*plain, **(kwargs or {}))


@pytest.mark.parametrize("weights_only", [False, True])
def test_tensors_without_memory_are_saved_by_their_attributes(weights_only):
    codes = taeda.tensor([[1, -2, 3], [4, 5, -6]], dtype=taeda.int8)
    file = io.BytesIO()
    taeda.save({"w": Scaled(codes, taeda.tensor(0.5)), "same": codes}, file)
    file.seek(0)
    with taeda.serialization.safe_globals([Scaled]):
        found = taeda.load(file, weights_only=weights_only)
    assert type(found["w"]) is Scaled and found["w"].shape == (2, 3) and found["w"].dtype == taeda.float32
    assert (found["w"] + 0).tolist() == (codes * 0.5).tolist()
    assert (
        found["w"].device == taeda.device("cpu") and found["w"].codes.data_ptr() == found["same"].data_ptr()
    )


def test_where_nodes_of_graphs_come_from():
    from taeda.fx.traceback import NodeSource, NodeSourceAction

    node = list(taeda.fx.symbolic_trace(lambda x: x + 1).graph.nodes)[1]
    first = NodeSource(node, "one", NodeSourceAction.CREATE)
    node.meta["from_node"] = [first]
    second = NodeSource(node, "two", [NodeSourceAction.REPLACE])
    assert second.from_node == [first] and second.name == "add" and second != first
    assert second.to_dict()["from_node"][0]["action"] == "create" and "pass_name=one" in repr(second)
    with pytest.raises(AssertionError, match="action"):
        NodeSource(node, action="create")


@pytest.mark.parametrize(
    "path",
    [
        "jit.frontend", "fx._pytree", "fx.experimental.proxy_tensor", "cuda.amp.common", "utils._config_module",
        "export.exported_program", "nn.parallel.comm", "ao.nn.quantized.modules.linear", "sparse.semi_structured",
        "masked.maskedtensor.core", "_dispatch.python", "_utils_internal",
    ],
)  # fmt: skip
def test_modules_are_reached_without_an_import(path):
    script = f"import taeda, sys; sys.modules['torch'] = taeda; import torch; print(torch.{path}.__name__)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and path.rpartition(".")[2] in done.stdout, done.stderr[-1000:]


def test_loaders_of_files_are_their_own_again():
    assert "def onednn_fusion_enabled" in inspect.getsource(importlib.import_module("taeda.jit"))
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        taeda.jit.nothing_of_the_kind  # noqa: B018


def test_names_that_copies_of_losses_and_attention_use():
    from taeda.nn.modules.activation import _arg_requires_grad, _check_arg_device, _is_make_fx_tracing

    assert [F._Reduction.get_enum(word) for word in ("none", "mean", "sum")] == [0, 1, 2]
    F._check_key_padding_mask(taeda.zeros(2, 3), 3, 2)
    with pytest.raises(AssertionError, match=r"shape\[1\]"):
        F._check_key_padding_mask(taeda.zeros(2, 3), 4, 2)
    asked = (None, taeda.ones(1), taeda.ones(1, requires_grad=True), taeda.ones(1, device="meta"))
    assert [_arg_requires_grad(x) for x in asked] == [False, False, True, False]
    assert [_check_arg_device(x) for x in asked] == [True, True, True, False] and not _is_make_fx_tracing()


def test_names_of_classes_in_script_archives():
    from taeda._jit_internal import _qualified_name

    class Named:
        _jit_override_qualname = "__torch__.detection.Named"

    assert _qualified_name(OrderedDict) == "__torch__.collections.OrderedDict"
    assert _qualified_name(OrderedDict, mangle_name=False) == "collections.OrderedDict"
    assert _qualified_name(lambda: 0) == f"__torch__.{__name__}._lambda"
    assert _qualified_name(Named) == "__torch__.detection.Named"
    with pytest.raises(RuntimeError, match="found int"):
        _qualified_name(3)


def test_names_that_scripts_and_hooks_use():
    from taeda._jit_internal import boolean_dispatch, boolean_dispatched
    from taeda.fx.proxy import Argument, Target

    assert taeda.jit.annotations.List[int] and Argument is not None and Target is not None
    assert taeda.jit._unwrap_optional(0) == 0 and taeda.set_vital("Dataloader", "enabled", "True") is False
    with pytest.raises(AssertionError):
        taeda.jit._unwrap_optional(None)
    pick = boolean_dispatch("sure", 1, False, min, max)
    assert boolean_dispatched[pick]["if_true"] is min and boolean_dispatched[pick]["arg_name"] == "sure"

    def hook(state: object, bucket: taeda.distributed.GradBucket) -> taeda.futures.Future[taeda.Tensor]: ...

    assert inspect.isclass(inspect.signature(hook).parameters["bucket"].annotation)
    assert taeda.cuda._get_device_index(1) == 1 and taeda.cuda._get_device_index("cuda:2") == 2
