"""Modules of devices that programs of several devices import, on those that are always there."""

import importlib

import pytest

import taeda

comm = importlib.import_module("taeda.nn.parallel.comm")
functions = importlib.import_module("taeda.nn.parallel._functions")


def test_copies_pieces_and_sums():
    x = taeda.arange(5.0, requires_grad=True)
    first, second = comm.broadcast(x, ["cpu", "cpu"])
    assert first is x and second is x
    a, b = comm.scatter(x, ["cpu", "cpu"])
    assert a.tolist() == [0.0, 1.0, 2.0] and b.tolist() == [3.0, 4.0]
    parts = comm.scatter(x, ["cpu", "cpu"], [1, 4])
    assert [p.numel() for p in parts] == [1, 4]
    assert comm.gather(parts, destination=-1).equal(x)
    comm.reduce_add([a, a * 2]).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 3.0, 0.0, 0.0]
    rows = comm.broadcast_coalesced([taeda.ones(2), taeda.zeros(1)], ["cpu", "cpu"])
    assert [t.tolist() for t in comm.reduce_add_coalesced(rows)] == [[2.0, 2.0], [0.0]]


def test_targets_take_the_place_of_devices():
    x, out = taeda.arange(4.0), [taeda.empty(1), taeda.empty(3)]
    assert comm.scatter(x, out=out)[1].tolist() == [1.0, 2.0, 3.0]
    assert comm.broadcast(taeda.ones(2), out=[taeda.empty(2)])[0].tolist() == [1.0, 1.0]
    into = taeda.empty(4)
    assert comm.gather(out, out=into) is into and into.equal(x)


def test_wrong_calls_are_told():
    with pytest.raises(RuntimeError, match="either 'devices' or 'out'"):
        comm.broadcast(taeda.ones(1))
    with pytest.raises(RuntimeError, match="either 'destination' or 'out'"):
        comm.gather([taeda.ones(1)], 0, "cpu", out=taeda.empty(1))
    with pytest.raises(RuntimeError, match="is empty"):
        comm.reduce_add([])
    with pytest.raises(ValueError, match="input 1 has shape"):
        comm.reduce_add([taeda.ones(1), taeda.ones(2)])


def test_steps_of_graphs_of_several_devices():
    x = taeda.ones(4, requires_grad=True)
    copies = functions.Broadcast.apply(["cpu", "cpu"], x, x * 2)
    (first, second) = functions.ReduceAddCoalesced.apply("cpu", 2, *copies)
    assert first.tolist() == [2.0] * 4 and second.tolist() == [4.0] * 4
    joined = functions.Gather.apply("cpu", 0, *functions.Scatter.apply(["cpu", "cpu"], None, 0, x))
    joined.sum().backward()
    assert x.grad.tolist() == [1.0] * 4
    assert functions.Gather.apply("cpu", 0, taeda.tensor(1.0), taeda.tensor(2.0)).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "name", ["graphs", "jiterator", "nccl", "profiler", "tunable", "_utils", "amp", "nvtx"]
)
def test_modules_of_cuda_are_imported(name):
    assert importlib.import_module(f"taeda.cuda.{name}") is getattr(taeda.cuda, name)


@pytest.mark.parametrize("name", ["_create_jit_fn", "_create_multi_output_jit_fn"])
def test_functions_from_source_are_refused_when_they_are_called(name):
    made = getattr(taeda.cuda.jiterator, name)("template <typename T> T twice(T x) { return 2 * x; }", 1)
    with pytest.raises(NotImplementedError, match="source text is not compiled"):
        made(taeda.ones(2))


def test_copies_stand_below_cuda_too():
    assert importlib.import_module("taeda.cuda.comm") is comm
    with pytest.raises(AttributeError):
        taeda.cuda.graphs.nothing  # noqa: B018
    assert taeda.cuda.graphs.CUDAGraph is taeda.cuda.CUDAGraph


def test_what_they_answer_without_such_devices():
    assert not taeda.cuda.nccl.is_available([])
    with pytest.raises(RuntimeError, match="not there"):
        taeda.cuda.nccl.version()
    with pytest.raises(RuntimeError, match="no such profiler"), taeda.cuda.profiler.profile():
        pass
    number = taeda.cuda._utils._get_device_index
    assert number(3) == 3 and number("cuda:1") == 1 and number("cpu", allow_cpu=True) == -1
    with pytest.raises(ValueError, match="expected a cuda device"):
        number("cpu")


def test_questions_about_memory_have_answers_without_a_device():
    cuda = taeda.cuda
    assert cuda.memory.memory_snapshot() == [] and cuda.memory_stats_as_nested_dict() == {}
    assert cuda.get_allocator_backend() == "native" and cuda.get_per_process_memory_fraction() == 1.0
    assert cuda.memory._record_memory_history(enabled=None) is None
    assert cuda.FloatStorage is taeda.FloatStorage and taeda._C.Tag is taeda.Tag
    assert not cuda.tunable.is_enabled() and cuda.tunable.enable(True) is None
    with cuda.caching_allocator_disabled():
        pass
    for refused in (cuda.utilization, cuda.clock_rate, cuda.MemPool, cuda.CUDAPluggableAllocator):
        with pytest.raises(NotImplementedError, match=r"taeda\.cuda\."):
            refused()
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        cuda.no_such_name  # noqa: B018
