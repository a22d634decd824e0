"""Modules of devices: what programs ask before they choose one, with and without such a device."""

import copy
import importlib.metadata
import os
import pickle
import threading

import pytest

import taeda_tensor_core as tc
from taeda_tensor_core import accelerator, backends, library

ABSENT = "xpu"  # reserved, and nobody's in these tests


@pytest.fixture
def made():
    backend = library.Backend("moduledev", device_count=2)
    array = backend.array

    @backend.kernel("fill_")
    def fill(outputs, inputs):
        array(inputs[0])[...] = array(inputs[1])

    yield backend
    backend.remove()


def test_modules_of_devices_are_pickled_by_name():
    for name in ("cpu", ABSENT):
        module = tc.get_device_module(name)
        assert pickle.loads(pickle.dumps(module)) is module and copy.deepcopy(module) is module


def test_device_that_is_not_there_can_be_asked_and_prepared():
    module = tc.get_device_module(ABSENT)
    assert not module.is_available() and module.device_count() == 0
    module.manual_seed(1)
    module.manual_seed_all(1)
    module.empty_cache()
    assert not tc.ones(1).is_xpu
    assert module is tc.get_device_module(f"{ABSENT}:0")
    assert not getattr(backends, ABSENT).is_built()


@pytest.mark.parametrize(
    "use", ["synchronize", "get_device_name", "current_stream", "current_device", "Event"]
)
def test_using_a_device_that_is_not_there_names_it(use):
    with pytest.raises(RuntimeError, match=f"unknown device '{ABSENT}'; known devices: cpu"):
        getattr(tc.get_device_module(ABSENT), use)()


@pytest.mark.parametrize(
    "use", ["current_allocated_memory", "driver_allocated_memory", "recommended_max_memory"]
)
def test_memory_of_an_absent_device_raises_where_programs_look_for_it_by_that(use):
    with pytest.raises(RuntimeError, match="unknown device 'mps'; known devices: cpu"):
        getattr(tc.get_device_module("mps"), use)()


def test_memory_of_a_device_has_apples_names_too(made):
    module = tc.get_device_module("moduledev")
    assert module.current_allocated_memory() == module.memory_allocated()


def test_moving_to_a_device_that_is_not_there_names_it():
    for device in (None, 1, f"{ABSENT}:0"):
        with pytest.raises(RuntimeError, match=f"unknown device '{ABSENT}"):
            tc.ones(1).xpu(device)


def test_device_nobody_knows_has_no_module():
    with pytest.raises(RuntimeError, match="unknown device 'nodevice'"):
        tc.get_device_module("nodevice")
    with pytest.raises(AttributeError, match="nodevice"):
        backends.nodevice  # noqa: B018


def test_names_of_devices_are_read_out_of_an_error():
    with pytest.raises(RuntimeError) as caught:
        tc.device("nodevice:1")
    names = caught.value.args[0].split("Expected one of ")[1].split(" device type")[0].split(", ")
    assert {"cpu", "meta"} <= set(names)  # as array-api-compat's `devices()` finds them
    assert len(set(names)) == len(names)


def test_device_from_python(made):
    module = tc.get_device_module("moduledev")
    assert module.is_available() and module.device_count() == 2 and module.current_device() == 0
    assert module.get_device_name(1) == backends.properties("moduledev:1")["name"]
    module.synchronize(1)
    module.empty_cache()
    module.manual_seed(7)
    state = module.get_rng_state()
    assert module.default_generator().initial_seed() == 7
    module.manual_seed(8)
    module.set_rng_state(state)
    assert module.default_generator().initial_seed() == 7
    with module.stream(None) as nothing:
        assert nothing is None
    with pytest.raises(RuntimeError, match="moduledev"):
        module.synchronize(2)


def test_the_current_device_is_the_threads_own(made):
    module = tc.get_device_module("moduledev")
    module.set_device(1)
    try:
        assert module.current_device() == 1 and tc.ones(2, device="moduledev").device.index == 1
        assert tc.ones(1).to("moduledev").device == tc.device("moduledev:1")
        with module.device(0):
            assert tc.empty(1, device="moduledev").device.index == 0
        with module.device(-1), module.device(None):
            assert module.current_device() == 1
        with accelerator.device_index(0):
            assert accelerator.current_device_index() == 0
        seen = []
        thread = threading.Thread(target=lambda: seen.append(module.current_device()))
        thread.start()
        thread.join()
        assert seen == [0] and module.current_device() == 1
        with pytest.raises(RuntimeError, match="set_device: there is no device 'moduledev:2', of 2"):
            module.set_device(2)
        assert module.current_device() == 1
    finally:
        module.set_device(tc.device("moduledev:0"))


def test_memory_of_a_device_is_counted(made):
    module = tc.get_device_module("moduledev")
    before = module.memory_allocated(1)
    x = tc.empty(1 << 16, device="moduledev:1")
    assert module.memory_allocated(1) == module.memory_reserved(1) == before + (1 << 18)
    del x
    assert module.memory_allocated(1) == before and module.max_memory_allocated(1) >= before + (1 << 18)
    absent = tc.get_device_module(ABSENT)
    assert absent.memory_allocated() == absent.max_memory_allocated() == 0 and absent.memory_stats() == {}
    absent.reset_peak_memory_stats()
    assert not module.can_device_access_peer(0, 1)


def test_programs_that_say_where_once(made):
    with tc.device("moduledev:1"):
        assert tc.zeros(2).device == tc.device("moduledev:1")
    tc.set_default_device("moduledev")
    try:
        assert tc.ones(2).device == tc.device("moduledev:0")
    finally:
        tc.set_default_device(None)
    assert tc.ones(2).device.type == "cpu"


def test_accelerator_is_the_first_that_works(made):
    found = accelerator.current_accelerator()
    assert found.type == "moduledev" and accelerator.is_available() and accelerator.device_count() == 2
    for make in (tc.Stream, tc.Event):  # of the accelerator, which here has neither
        with pytest.raises(NotImplementedError, match=r"device 'moduledev.* has no"):
            make()
    assert tc.get_device_module() is tc.get_device_module("moduledev")
    accelerator.synchronize()
    assert found.index is None and tc.ones(2, device=found).device == tc.device("moduledev:0")


def test_name_of_a_device_must_match_whole():
    backend = library.Backend("cpuling")
    array = backend.array

    @backend.kernel("fill_")
    def fill(outputs, inputs):
        array(inputs[0])[...] = array(inputs[1])

    assert not tc.ones(1, device="cpuling").is_cpu
    backend.remove()


def test_asking_for_an_absent_device_again_reads_no_metadata(monkeypatch, tmp_path):
    assert not tc.get_device_module(ABSENT).is_available()
    reads = []
    entry_points = importlib.metadata.entry_points
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda **group: reads.append(1) or entry_points(**group)
    )
    for _ in range(3):
        assert not tc.get_device_module(ABSENT).is_available()
        with pytest.raises(RuntimeError, match=ABSENT):
            tc.ones(1, device=ABSENT)
    assert not reads
    described = tmp_path / "late-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: late\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text("[taeda.backends]\nlatedev = nothing_here\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert not tc.get_device_module(ABSENT).is_available() and len(reads) == 1
    with pytest.raises(RuntimeError, match="nothing_here"):
        tc.ones(1, device="latedev")
    assert len(reads) == 1


def test_absent_devices_are_failed_assertions_too():
    for use in (lambda: tc.ones(2, device=ABSENT), lambda: tc.ones(2).to(ABSENT)):
        with pytest.raises(AssertionError, match=f"unknown device '{ABSENT}'"):
            use()


def test_programs_ask_which_kernels_could_compute_an_attention():
    from taeda_tensor_core.backends import cuda

    x = tc.ones(1, 1, 2, 4)
    given = cuda.SDPAParams(x, x, x, None, 0.0, True, False)
    assert given.query is x and given.is_causal and given.attn_mask is None
    assert not (cuda.can_use_flash_attention(given) or cuda.can_use_efficient_attention(given))


def test_devices_that_are_not_there_are_asked_for_quickly(monkeypatch):
    """Nothing about installed distributions is read a second time: programs ask in each step."""
    modules = [tc.get_device_module(name) for name in ("cuda", ABSENT)]
    asked = (accelerator.is_available, *(m.is_available for m in modules), *(m.device_count for m in modules))
    answers = [ask() for ask in asked]

    def refuse(*_):
        raise AssertionError("read again")

    monkeypatch.setattr(importlib.metadata.PathDistribution, "read_text", refuse)
    monkeypatch.setattr(os, "scandir", refuse)
    assert [ask() for ask in asked] == answers
