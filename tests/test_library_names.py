"""Names that other people's libraries ask for: mapped storages, scans, classes of streams, wrapped optimizers."""

import math
import os
import warnings

import pytest

import taeda
from taeda._higher_order_ops.associative_scan import associative_scan


def test_storages_over_files_and_slices(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(20)))
    mapped = taeda.UntypedStorage.from_file(str(path), False, 12)
    part = mapped[4:12]
    assert (
        len(mapped) == 12 and len(part) == 8 and part.tolist() == list(range(4, 12)) and len(mapped[3:3]) == 0
    )
    numbers = taeda.asarray(part, dtype=taeda.uint8).view(taeda.int32)
    numbers[0] = 7
    assert mapped.tolist()[4:8] == [7, 0, 0, 0] and path.read_bytes() == bytes(range(20))
    taeda.UntypedStorage.from_file(str(path), True, 24)[0] = 9
    assert path.read_bytes()[0] == 9 and path.stat().st_size == 24


def test_running_results():
    x = taeda.arange(1, 14, dtype=taeda.float64).reshape(13, 1).repeat(1, 2)
    assert associative_scan(taeda.add, x, 0).equal(x.cumsum(0))
    assert associative_scan(taeda.mul, x[:6].t(), 1, reverse=True).equal(x[:6].flip(0).cumprod(0).flip(0).t())


def test_names():
    assert taeda.torch is taeda and isinstance(taeda.cuda.Stream, type) and isinstance(taeda.cuda.Event, type)
    assert not isinstance(1, taeda.cuda.Stream) and taeda._C._TensorMeta is type(taeda.Tensor)
    with taeda._tensor_str.printoptions(precision=2):
        assert repr(taeda.tensor(1 / 3)) == "tensor(0.33)"


def test_an_optimizer_around_another():
    class Around(taeda.optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner

        def step(self, closure=None):
            return self.inner.step(closure)

    weight = taeda.nn.Parameter(taeda.ones(2))
    weight.grad = taeda.ones(2)
    Around(taeda.optim.SGD([weight], lr=0.5)).step()
    assert weight.tolist() == [0.5, 0.5]


def test_modules_of_python_and_kinds_of_scripts_are_reached_through_the_package():
    assert (taeda.math, taeda.os, taeda.warnings) == (math, os, warnings)
    assert taeda.ScriptFunction is taeda.jit.ScriptFunction
    assert taeda.CompilationUnit is taeda.jit.CompilationUnit
    for kind in (
        "BufferDict",
        "ModuleDict",
        "ParameterDict",
    ):  # in annotations, where `nn.ModuleDict` is meant
        assert isinstance(getattr(taeda, kind), type)
        with pytest.raises(NotImplementedError, match=f"taeda._C.{kind}"):
            getattr(taeda, kind)({})


def test_names_that_annotate_and_are_subclassed():
    from taeda.distributed.elastic.metrics import MetricHandler, put_metric
    from taeda.optim import optimizer

    assert issubclass(type("Mine", (MetricHandler,), {}), MetricHandler) and callable(put_metric)
    for name in ("Args", "DeviceDict", "DeviceDtypeDict", "Indices", "Kwargs", "TensorListList"):
        assert isinstance(getattr(optimizer, name)(), (dict, list, tuple))
    assert optimizer.GlobalOptimizerPreHook and isinstance(optimizer.required, optimizer._RequiredParameter)


def test_names_with_dots_are_missing_names():
    for module in (taeda, taeda.multiprocessing, taeda.nn, taeda.utils):
        for name in ("nn.Linear", "other.part", ".", "a."):
            assert getattr(module, name, None) is None
