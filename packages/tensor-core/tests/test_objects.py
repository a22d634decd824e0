"""dtype, device, Size, Generator, modes and defaults."""

import copy
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import taeda_tensor_core as taeda


def test_dtype_objects():
    assert repr(taeda.float32) == "taeda.float32"
    assert taeda.float is taeda.float32 and taeda.long is taeda.int64 and taeda.half is taeda.float16
    assert taeda.float32.is_floating_point and taeda.complex64.is_complex and not taeda.uint8.is_signed
    assert taeda.int16.itemsize == 2
    assert (
        pickle.loads(pickle.dumps(taeda.bfloat16)) is taeda.bfloat16
        and copy.deepcopy(taeda.int8) is taeda.int8
    )
    assert taeda.zeros(1, dtype=taeda.float64).dtype is taeda.float64
    with pytest.raises(TypeError):
        taeda.dtype()


def test_finfo_iinfo():
    for name in ("float16", "float32", "float64"):
        mine, theirs = taeda.finfo(getattr(taeda, name)), np.finfo(name)
        for field in ("eps", "max", "min", "tiny", "bits"):
            assert getattr(mine, field) == getattr(theirs, field)
    for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        mine, theirs = taeda.iinfo(getattr(taeda, name)), np.iinfo(name)
        assert (mine.min, mine.max, mine.bits) == (theirs.min, theirs.max, theirs.bits)
    assert (
        taeda.finfo(taeda.bfloat16).eps == 2**-7
        and taeda.finfo(taeda.complex64).eps == taeda.finfo(taeda.float32).eps
    )
    with pytest.raises(TypeError, match="finfo"):
        taeda.finfo(taeda.int8)
    with pytest.raises(TypeError, match="iinfo"):
        taeda.iinfo(taeda.float32)


def test_limits_of_one_dtype_are_equal():
    assert taeda.finfo(taeda.float32) == taeda.finfo(taeda.complex64) != taeda.finfo(taeda.float64)
    assert len({taeda.iinfo(taeda.int8), taeda.iinfo(taeda.int8), taeda.iinfo(taeda.uint8)}) == 2


def test_device():
    cpu = taeda.device("cpu")
    assert repr(cpu) == "device(type='cpu')" and str(cpu) == "cpu" and cpu.type == "cpu" and cpu.index is None
    assert cpu != "cpu" and cpu != taeda.device("meta")
    assert len({cpu, taeda.device("cpu"), taeda.device("meta")}) == 2
    assert pickle.loads(pickle.dumps(cpu)) == cpu
    with pytest.raises(RuntimeError, match=r"unknown device .gpu.*cpu, meta"):
        taeda.device("gpu")
    assert taeda.ones(1, device="cpu:3").device == cpu
    with pytest.raises(RuntimeError, match="ones: Device index must not be negative"):
        taeda.ones(1, device=-1)
    with pytest.raises(TypeError, match="device"):
        taeda.device(True)


@pytest.mark.parametrize("kind", ["cpu", "meta"])
def test_devices_keep_the_number_that_a_program_gives(kind):
    first, bare = taeda.device(f"{kind}:0"), taeda.device(kind)
    assert str(first) == f"{kind}:0" and repr(first) == f"device(type='{kind}', index=0)" and first.index == 0
    assert first == taeda.device(kind, 0) == taeda.device(first) != bare and first.type == kind
    assert len({first, taeda.device(kind, 0), bare, taeda.device(kind, 1)}) == 3
    assert pickle.loads(pickle.dumps(first)) == first and copy.deepcopy(first).index == 0
    for device in (first, f"{kind}:1"):
        made = taeda.ones(1, device=device)
        assert made.device == bare and made.device.index is None and made.to(first).device == bare


WITHOUT_ACCELERATOR = """
import taeda_tensor_core as taeda
numbered = (lambda: taeda.device(3), lambda: taeda.ones(2).to(3), lambda: taeda.ones(2, device=3))
for make in (*numbered, taeda.Stream, taeda.Event):
    try:
        make()
    except RuntimeError as error:
        print(error)
"""


@pytest.mark.parametrize(
    "call",
    [
        lambda n: taeda.device("cpu", n),
        taeda.device,
        lambda n: taeda.ones(2, device=n),
        lambda n: taeda.ones(2).to(n),
    ],
)
def test_numbers_of_devices_that_nobody_counts_are_named(call):
    with pytest.raises(
        OverflowError, match="device: argument 'index': the integer does not fit into 64 bits"
    ):
        call(2**70)
    with pytest.raises(OverflowError, match="set_num_threads: argument 'count'"):
        taeda.set_num_threads(2**70)
    assert taeda.device("cpu", np.int64(0)) == taeda.device("cpu:0")
    with pytest.raises(TypeError, match="'index' must be an int or None, found str"):
        taeda.device("cpu", "0")


def test_numbers_of_devices_and_streams_need_an_accelerator():
    # In a process of its own: what other tests registered stays for the life of theirs.
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_ACCELERATOR], capture_output=True, text=True, check=True
    )
    *lines, stream, event = done.stdout.splitlines()
    assert stream == "Stream: argument 'device' is None, and there is no accelerator"
    assert event == "Event: argument 'device' is None, and there is no accelerator"
    wanted = "Cannot access accelerator device when none is available: device 3"
    assert len(lines) == 3 and all(line.endswith(wanted) for line in lines), done.stdout


def test_size():
    s = taeda.Size([2, 3])
    assert s == (2, 3) and repr(s) == "Size([2, 3])" and s.numel() == 6
    assert type(s[:1]) is taeda.Size and type(s + (4,)) is taeda.Size and type(s * 2) is taeda.Size
    assert hash(s) == hash((2, 3)) and pickle.loads(pickle.dumps(s)) == s
    assert taeda.Size([np.int64(2)]) == (2,)
    with pytest.raises(TypeError, match="Size"):
        taeda.Size(["a"])


def test_generator():
    a, b = taeda.Generator().manual_seed(3), taeda.Generator().manual_seed(3)
    assert a.initial_seed() == 3 and a is a.manual_seed(3)
    first = taeda.rand(5, generator=a)
    assert taeda.rand(5, generator=b).tolist() == first.tolist()
    state = a.get_state()
    once = taeda.rand(3, generator=a).tolist()
    a.set_state(state)
    assert taeda.rand(3, generator=a).tolist() == once
    clone = pickle.loads(pickle.dumps(b))
    assert taeda.rand(3, generator=clone).tolist() == taeda.rand(3, generator=b).tolist()
    with pytest.raises(ValueError, match="set_state"):
        a.set_state(taeda.zeros(3))


def test_default_generator():
    taeda.manual_seed(5)
    state = taeda.get_rng_state()
    first = taeda.rand(4).tolist()
    taeda.set_rng_state(state)
    with taeda.random.fork_rng():
        assert taeda.rand(4).tolist() == first
    assert taeda.rand(4).tolist() == first
    taeda.manual_seed(5)
    assert taeda.rand(4).tolist() == first and taeda.initial_seed() == 5


def test_grad_modes():
    assert taeda.is_grad_enabled()
    with taeda.no_grad():
        assert not taeda.is_grad_enabled()
        with taeda.enable_grad():
            assert taeda.is_grad_enabled()
        assert not taeda.is_grad_enabled()
    assert taeda.is_grad_enabled()

    @taeda.no_grad()
    def decorated():
        return taeda.is_grad_enabled()

    @taeda.no_grad
    def bare():
        return taeda.is_grad_enabled()

    @taeda.no_grad()
    def generator():
        got = yield taeda.is_grad_enabled()
        yield got, taeda.is_grad_enabled()
        return 5

    assert decorated() is False and bare() is False and decorated.__name__ == "decorated"
    steps = generator()
    assert next(steps) is False and taeda.is_grad_enabled()
    assert steps.send("x") == ("x", False) and taeda.is_grad_enabled()
    with pytest.raises(StopIteration) as end:
        next(steps)
    assert end.value.value == 5

    with pytest.raises(KeyError), taeda.no_grad():
        raise KeyError
    assert taeda.is_grad_enabled()


def test_set_grad_enabled():
    taeda.set_grad_enabled(False)
    assert not taeda.is_grad_enabled()
    taeda.set_grad_enabled(True)
    with taeda.set_grad_enabled(False):
        assert not taeda.is_grad_enabled()
    assert taeda.is_grad_enabled()

    @taeda.set_grad_enabled(False)
    def off():
        return taeda.is_grad_enabled()

    assert taeda.is_grad_enabled() and off() is False and taeda.is_grad_enabled()


def test_inference_mode():
    with taeda.inference_mode():
        assert taeda.is_inference_mode_enabled() and not taeda.is_grad_enabled()
        t = taeda.ones(2)
        assert t.is_inference()
        with taeda.inference_mode(False):
            assert not taeda.is_inference_mode_enabled() and taeda.is_grad_enabled()
    assert taeda.is_grad_enabled() and not taeda.ones(2).is_inference()

    @taeda.inference_mode
    def inside():
        return taeda.is_inference_mode_enabled()

    assert inside()


def test_modes_belong_to_the_thread():
    seen = []
    with taeda.no_grad():
        thread = threading.Thread(target=lambda: seen.append(taeda.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_default_dtype():
    try:
        taeda.set_default_dtype(taeda.float64)
        assert taeda.get_default_dtype() is taeda.float64 and taeda.tensor(1.0).dtype is taeda.float64
    finally:
        taeda.set_default_dtype(taeda.float32)
    with pytest.raises(TypeError, match="set_default_dtype"):
        taeda.set_default_dtype(taeda.int64)


def test_promotion_queries():
    assert taeda.promote_types(taeda.int8, taeda.uint8) is taeda.int16
    assert taeda.result_type(taeda.ones(2, dtype=taeda.int8), 1.5) is taeda.float32
    assert taeda.result_type(taeda.ones(2, dtype=taeda.int8), 1000) is taeda.int8
    assert taeda.can_cast(taeda.int64, taeda.float32) and not taeda.can_cast(taeda.float32, taeda.int64)


def test_threads():
    before = taeda.get_num_threads()
    taeda.set_num_threads(1)
    assert taeda.get_num_threads() == 1
    taeda.set_num_threads(before)
    with pytest.raises(RuntimeError, match="set_num_threads"):
        taeda.set_num_threads(0)


def test_package_facts():
    from pathlib import Path

    assert (Path(taeda.get_include()) / "taeda" / "tensor.h").exists()
    assert (Path(taeda.get_library_dir()) / "libtaeda.so").exists()
    assert list(Path(taeda.get_ops_dir()).glob("*.yaml"))
    assert taeda.ops.add is not None and taeda.pi > 3 and taeda.newaxis is None and taeda.nan != taeda.nan
    import taeda_tensor_core.ops as ops

    assert ops is taeda.ops


def test_sums_of_sizes_and_tuples_are_sizes():
    size = taeda.Size([2, 3])
    for made in (size + (4,), (4,) + size, size + size, () + size, taeda.Size() + ()):
        assert type(made) is taeda.Size
    assert (4,) + size == (4, 2, 3) and size + (4,) == (2, 3, 4)
    for other in ([4], 4, "4"):
        with pytest.raises(TypeError):
            size + other
        with pytest.raises(TypeError):
            other + size
