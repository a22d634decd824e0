"""The simulated accelerator: compiled here against one header, then used as a stranger's package."""

from __future__ import annotations

import signal
import subprocess
from textwrap import dedent

import pytest
from strangers import EXAMPLES

FOLDER = EXAMPLES / "taeda-backend-sim"


def test_its_binary_has_c_symbols_only(built):
    listed = subprocess.run(
        ["nm", "-DC", str(built / "libsim.so")], capture_output=True, text=True, check=True
    ).stdout
    symbols = [line.split()[-1].partition("@")[0] for line in listed.splitlines()]
    ours = sorted(s for s in symbols if "taeda" in s or s.startswith("sim_"))
    assert ours == ["sim_fail", "sim_hold", "sim_race", "sim_resume", "taeda_plugin_describe"]
    assert not [line for line in listed.splitlines() if "::" in line or "(" in line]


def test_it_stays_within_its_budget():
    assert sum(len(source.read_text().splitlines()) for source in FOLDER.glob("csrc/*.[ch]")) < 1500


def test_what_it_lacks_is_refused_by_name(sim):
    program = """
        import taeda
        x = taeda.tensor([1 + 2j]).to("sim")
        try:
            x + x
        except NotImplementedError as complaint:
            print("'sim'" in str(complaint) and "complex" in str(complaint))
        print(x.cpu().tolist(), sorted(taeda.backends.lacks("sim")))
    """
    assert sim.lines(program) == ["True", "[(1+2j)] ['bfloat16', 'complex', 'sharing', 'uint64']"]


def test_the_host_cannot_read_its_memory(sim):
    program = """
        import ctypes, taeda
        x = taeda.ones(4).to("sim")
        print(x.cpu().tolist(), flush=True)
        ctypes.string_at(x.data_ptr(), 4)
    """
    result = sim.run(program)
    assert result.stdout == "[1.0, 1.0, 1.0, 1.0]\n"
    # A sanitizer reports the wrong access itself and aborts.
    reported = "AddressSanitizer: SEGV" in result.stderr
    assert result.returncode == -(signal.SIGABRT if reported else signal.SIGSEGV), result.stderr


def test_there_are_two_devices(sim):
    program = """
        import taeda
        x = taeda.ones(2, device="sim:1")
        print(x.device, (x + x).to("sim:0").device, (x + x).to("sim:0").cpu().tolist())
        print(taeda.backends.device_count("sim"), taeda.backends.properties("sim:1")["name"])
        try:
            x + x.to("sim:0")
        except RuntimeError as error:
            print("same device" in str(error))
    """
    assert sim.lines(program) == ["sim:1 sim:0 [2.0, 2.0]", "2 simulated device 1", "True"]


# --- asynchronous work ---

HELD = """
    import taeda
    import taeda_backend_sim as device

    x = taeda.ones(3, device="sim")
    taeda.synchronize("sim")
"""


def test_calls_return_before_the_work_is_done(sim):
    program = """
        with device.held():
            y = x + 1
            z = y * 3
            print(y.shape, taeda.current_stream("sim").query())
        print(z.cpu().tolist(), taeda.current_stream("sim").query())
    """
    assert sim.lines(dedent(HELD) + dedent(program)) == ["Size([3]) False", "[6.0, 6.0, 6.0] True"]


def test_a_stream_waits_for_another_by_an_event(sim):
    # Without the event the second stream, which nobody holds, would multiply before the first one adds.
    program = """
        first, second = taeda.Stream("sim"), taeda.Stream("sim")
        with first, device.held():
            x.add_(1)
            added = first.record_event()
            second.wait_event(added)
            with second:
                x.mul_(5)
            print(added.query(), second.query())
        second.synchronize()
        print(added.query(), x.cpu().tolist())
    """
    assert sim.lines(dedent(HELD) + dedent(program)) == ["False False", "True [10.0, 10.0, 10.0]"]


def test_streams_and_events_may_go_while_their_work_waits(sim):
    program = """
        side, other, hold = taeda.Stream("sim"), taeda.Stream("sim:1"), device.held()
        with side:
            hold.__enter__()
            y = x + 1
            done = side.record_event()
        other.wait_event(done)  # of another device
        del side, done
        print(other.query())
        hold.__exit__(None, None, None)
        other.synchronize()
        taeda.synchronize("sim")
        print(y.cpu().tolist())
    """
    assert sim.lines(dedent(HELD) + dedent(program)) == ["False", "[2.0, 2.0, 2.0]"]


def test_an_event_that_is_recorded_again_moves(sim):
    program = """
        first, second = taeda.Stream("sim"), taeda.Stream("sim")
        mark = first.record_event()
        second.wait_event(mark)
        with first, device.held():
            first.record_event(mark)
            second.synchronize()  # waits for the former place
            print(mark.query())
        mark.synchronize()
        print(mark.query())
    """
    assert sim.lines(dedent(HELD) + dedent(program)) == ["False", "True"]


def test_streams_run_beside_each_other(sim):
    program = """
        side = taeda.Stream("sim")
        with device.held():
            x.add_(1)
            with side:
                y = taeda.full((2,), 7.0, device="sim")
                side.synchronize()
                print(y.cpu().tolist(), taeda.current_stream("sim") == side)
            print(taeda.current_stream("sim").query())
        print(x.cpu().tolist())
    """
    assert sim.lines(dedent(HELD) + dedent(program)) == ["[7.0, 7.0] True", "False", "[2.0, 2.0, 2.0]"]


def test_freed_memory_is_not_given_to_other_streams_too_early(sim):
    program = """
        side = taeda.Stream("sim")
        with device.held():
            y = x + 1
            z = y * 2       # waits, and reads y
            del y
            with side:
                other = taeda.full((3,), -1.0, device="sim")
                side.synchronize()
        print(z.cpu().tolist(), other.cpu().tolist())
        with side:
            y = taeda.ones(3, device="sim")
        y.record_stream(taeda.current_stream("sim"))
        taeda.current_stream("sim").wait_stream(side)
        with device.held():
            z = y * 2
            del y
            with side:
                other = taeda.full((3,), -1.0, device="sim")
        print(z.cpu().tolist())
    """
    found = sim.lines(dedent(HELD) + dedent(program))
    assert found == ["[4.0, 4.0, 4.0] [-1.0, -1.0, -1.0]", "[2.0, 2.0, 2.0]"]


def test_copies_from_pinned_memory_do_not_wait(sim):
    program = """
        host = taeda.tensor([1.0, 2.0]).pin_memory("sim")
        print(host.is_pinned(), taeda.ones(2).is_pinned())
        with device.held():
            there = host.to("sim", non_blocking=True)
            print(taeda.current_stream("sim").query())
        print(there.cpu().tolist())
    """
    assert sim.lines(dedent(HELD) + dedent(program)) == ["True False", "False", "[1.0, 2.0]"]


@pytest.mark.parametrize("size", [1000, 1_000_000])
def test_pinned_memory_outlives_the_copies_that_wait(sim, size):
    program = f"""
        with device.held():
            y = taeda.ones({size}).pin_memory("sim").to("sim", non_blocking=True)
            z = [taeda.full(({size},), 9.0).pin_memory("sim") for _ in range(3)]
            host = taeda.full(({size},), 3.0).pin_memory("sim")
            host.copy_(y, non_blocking=True)
            part = host[1:]
            del host
            z += [taeda.full(({size},), 9.0).pin_memory("sim") for _ in range(3)]
            print(part[0].item())
        taeda.synchronize("sim")
        print(y.cpu().unique().tolist(), part.unique().tolist())
    """
    assert sim.lines(dedent(HELD) + dedent(program)) == ["3.0", "[1.0] [1.0]"]


def test_pinned_memory_is_kept_while_another_stream_copies(sim):
    program = """
        side = taeda.Stream("sim")
        host = taeda.ones(1000).pin_memory("sim")
        with side, device.held():
            y = host.to("sim", non_blocking=True)
            with taeda.Stream("sim") as third:
                w = host.to("sim", non_blocking=True)
                third.synchronize()
            del host
            z = [taeda.full((1000,), 9.0).pin_memory("sim") for _ in range(3)]
        side.synchronize()
        print(w.cpu().unique().tolist())
        with side:
            print(y.cpu().unique().tolist())
    """
    assert sim.lines(dedent(HELD) + dedent(program)) == ["[1.0]", "[1.0]"]


PINNING = """
    import warnings
    from collections import OrderedDict, defaultdict, namedtuple
    import taeda as torch
    from taeda.utils.data import DataLoader

    class Own:
        pinned = False
        def pin_memory(self):
            self.pinned = True
            return self

    Pair = namedtuple("Pair", "x name")
    batch = {"pair": Pair(torch.ones(1), "a"), "list": [(torch.zeros(2), 3)], "own": Own()}
    batch["default"] = defaultdict(int, x=torch.ones(2))
    warnings.simplefilter("error")
    for device in ("sim", "sim:1", ""):
        loader = DataLoader([batch], batch_size=None, pin_memory=True, pin_memory_device=device)
        if not device:
            torch.ones(1, device="sim")  # from now on there is an accelerator
        (found,) = loader
        pair, inner, default = found["pair"], found["list"][0], found["default"]
        print(pair.x.is_pinned(), pair.name, type(pair).__name__, inner[0].is_pinned(), inner[1])
        print(found["own"].pinned, default["x"].is_pinned(), default["y"])
    print(batch["pair"].x.is_pinned())
    for x in DataLoader(torch.arange(4), batch_size=2, pin_memory=True, pin_memory_device="sim"):
        print(x.is_pinned(), x.to("sim", non_blocking=True).cpu().tolist())
"""


def test_loaders_pin_their_batches(sim):
    lines = sim.lines(PINNING)
    assert lines[:6] == ["True a Pair True 3", "True True 0"] * 3
    assert lines[6:] == ["False", "True [0, 1]", "True [2, 3]"]


def test_events_measure_time(sim):
    program = """
        start, end = (taeda.Event("sim", enable_timing=True) for _ in range(2))
        start.record()
        x.add_(1)
        end.record()
        end.synchronize()
        print(start.elapsed_time(end) >= 0 >= end.elapsed_time(start))
    """
    assert sim.lines(dedent(HELD) + dedent(program)) == ["True"]


def test_times_of_events_that_were_not_reached_are_refused(sim):
    program = """
        start, end = (taeda.Event("sim", enable_timing=True) for _ in range(2))
        start.record()
        start.synchronize()
        try:
            start.elapsed_time(end)
        except ValueError as complaint:
            print(complaint)
        with device.held():
            end.record()
            try:
                start.elapsed_time(end)
            except RuntimeError as complaint:
                print(complaint)
    """
    assert sim.lines(dedent(HELD) + dedent(program)) == [
        "Event.elapsed_time: the end event was never recorded",
        "Event.elapsed_time: the end event has not been reached yet; call its synchronize() first",
    ]


def test_memory_comes_back(sim):
    program = """
        import gc
        gc.disable()
        free = lambda: (taeda.synchronize("sim"), taeda.backends.properties("sim")["free_memory"])[1]
        before = free()
        y = (taeda.randn(100, 100, device="sim") @ taeda.randn(100, 100, device="sim")).relu()
        used = before - free()
        del y
        print(used >= 40000, free() == before)
    """
    assert sim.lines(dedent(HELD) + dedent(program)) == ["True True"]


def test_what_it_can_do_is_told(sim):
    program = """
        import taeda
        print([name for name, has in sorted(taeda.backends.capabilities("sim").items()) if has])
        try:
            taeda.backends.export_memory(taeda.ones(2, device="sim"))
        except NotImplementedError as complaint:
            print(complaint)
    """
    assert sim.lines(program) == [
        "['event-timing', 'events', 'peer-copies', 'pinned-memory', 'streams']",
        "export_memory: device 'sim:0' cannot share its memory with other processes",
    ]


def test_a_seed_reaches_the_device_before_it_is_loaded(sim):
    program = """
        import taeda
        taeda.manual_seed({seed})
        first = taeda.rand(3, device="sim").cpu().tolist()
        other = taeda.rand(3, device="sim:1").cpu().tolist()
        taeda.manual_seed({seed})
        print(first == taeda.rand(3, device="sim").cpu().tolist(), other == first, first)
    """
    seen = [sim.lines(program.format(seed=seed)) for seed in (3, 3, 4)]
    assert all(lines[0].startswith("True True") for lines in seen)
    assert seen[0] == seen[1] != seen[2]


# --- failures ---


@pytest.mark.parametrize(
    ("what", "error", "words"),
    [("allocate", "MemoryError", "out of memory"), ("launch", "RuntimeError", "add: ")],
)
def test_a_failure_at_the_call_leaves_everything_as_it_was(sim, what, error, words):
    program = f"""
        device.fail({what!r})
        try:
            x + 1
        except {error} as complaint:
            print({words!r} in str(complaint))
        print(x.cpu().tolist(), (x + 1).cpu().tolist())
    """
    assert sim.lines(dedent(HELD) + dedent(program)) == ["True", "[1.0, 1.0, 1.0] [2.0, 2.0, 2.0]"]


@pytest.mark.parametrize(
    "ask",
    [
        'taeda.synchronize("sim")',
        'taeda.current_stream("sim").synchronize()',
        "y.cpu()",
        "y.sum().item()",
        "x.nonzero()",
        "print(y)",
    ],
)
def test_a_kernel_that_fails_complains_at_the_next_wait(sim, ask):
    program = f"""
        device.fail("kernel", 2)
        x.mul_(3)
        y = x + 1
        x.mul_(2)
        try:
            {ask}
        except RuntimeError as complaint:
            print("kernel 'add' failed on request" in str(complaint))
        print(x.cpu().tolist(), (x + 1).cpu().tolist())
    """
    assert sim.lines(dedent(HELD) + dedent(program)) == ["True", "[6.0, 6.0, 6.0] [7.0, 7.0, 7.0]"]


def test_a_wrong_index_complains_at_the_next_wait(sim):
    program = """
        y = x[taeda.tensor([1, 2]).to("sim")]
        z = taeda.gather(x, 0, taeda.tensor([7]).to("sim"))
        try:
            z.cpu()
        except IndexError as complaint:
            print("7" in str(complaint) and "size 3" in str(complaint))
        print(y.cpu().tolist())
    """
    assert sim.lines(dedent(HELD) + dedent(program)) == ["True", "[1.0, 1.0]"]


@pytest.mark.parametrize("what", ["synchronize", "copy"])
def test_waiting_itself_may_fail(sim, what):
    program = f"""
        device.fail({what!r})
        try:
            {'taeda.synchronize("sim")' if what == "synchronize" else "x.cpu()"}
        except RuntimeError as complaint:
            print("on request" in str(complaint))
        print(x.cpu().tolist())
    """
    assert sim.lines(dedent(HELD) + dedent(program)) == ["True", "[1.0, 1.0, 1.0]"]


def test_failures_by_the_environment(sim):
    program = """
        import taeda
        x = taeda.ones(3, device="sim")
        x.add_(1)
        try:
            print(x.cpu())
        except RuntimeError as complaint:
            print("on request" in str(complaint))
        print(x.cpu().tolist())
    """
    assert sim.lines(program, TAEDA_SIM_FAIL="kernel:2") == ["True", "[1.0, 1.0, 1.0]"]


# --- beside others ---


def test_tensors_move_between_two_plug_ins(sim):
    sim.example("taeda-backend-numpy")
    program = """
        import taeda
        x = taeda.arange(6.0).reshape(2, 3).to("sim")
        y = x.t().to("numpy")
        z = (y * 2).to("sim:1")
        print(x.device.type, y.device.type, z.device, z.cpu().tolist())
        w = taeda.ones(3, 2).to("numpy").requires_grad_()
        (w.to("sim") * x.t()).sum().backward()
        print(w.grad.device.type, w.grad.cpu().tolist())
    """
    assert sim.lines(program) == [
        "sim numpy sim:1 [[0.0, 6.0], [2.0, 8.0], [4.0, 10.0]]",
        "numpy [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]",
    ]


def test_what_it_lacks_falls_back_when_the_user_says_so(sim):
    program = """
        import taeda
        from taeda import library
        own = library.Library("own")
        twice = own.define("own::twice(Tensor self) -> Tensor")
        twice.infer(lambda self: (self.shape, self.dtype))

        @twice.kernel("cpu")
        def _(outputs, inputs):
            outputs[0].copy_(inputs[0] * 2)

        x = taeda.tensor([0.0, 1.0, 1.0]).to("sim")
        try:
            twice(x)
        except NotImplementedError as complaint:
            print("'sim' has no kernel" in str(complaint))
        taeda.backends.fallback("sim", "cpu")
        doubled = twice(x)
        twice(x)
        print(doubled.device.type, doubled.cpu().tolist(), taeda.backends.fallback_counts("sim"))
    """
    result = sim.run(program)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["True", "sim [0.0, 2.0, 2.0] {'own::twice': 2}"]
    assert result.stderr == "taeda: 2 call(s) on device 'sim' fell back to the cpu: own::twice 2\n"


def test_the_digits_network_trains(sim):
    program = """
        import numpy as np
        import taeda as torch
        import taeda.nn.functional as F
        from sklearn.datasets import load_digits

        from model import DigitNet

        digits = load_digits()
        images = torch.from_numpy((digits.images[:, None] / 16).astype(np.float32)).to("sim")
        labels = torch.from_numpy(digits.target.astype(np.int64)).to("sim")
        torch.manual_seed(0)
        model = DigitNet().to("sim")
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        for epoch in range(4):
            order = torch.randperm(1500)
            for begin in range(0, 1500, 60):
                at = order[begin : begin + 60].to("sim")
                optimizer.zero_grad()
                F.cross_entropy(model(images[at]), labels[at]).backward()
                optimizer.step()
        model.eval()
        with torch.no_grad():
            right = (model(images[1500:]).argmax(1) == labels[1500:]).sum().item()
        print(model.linear2.weight.device, right / 297 > 0.9)
    """
    sim.paths.append(EXAMPLES.parent / "digits")
    assert sim.lines(program) == ["sim:0 True"]


def test_host_code_reads_no_device_memory(sim):
    # Each of these would end the process, as the test above shows, were an address of the device followed.
    program = """
        import copy, pickle
        import numpy as np
        x = taeda.arange(6.0).reshape(2, 3).to("sim")
        i = taeda.tensor([0, 1]).to("sim")
        calls = {
            "item": lambda: x.sum().item(), "print": lambda: str(x), "tolist": lambda: x.tolist(),
            "mask": lambda: x[x > 2], "index": lambda: x[i], "array index": lambda: x[np.array([1])],
            "assign": lambda: x.__setitem__(x > 4, 0.0), "copy": lambda: copy.deepcopy(x),
            "pickle": lambda: pickle.loads(pickle.dumps(x)), "one_hot": lambda: taeda.nn.functional.one_hot(i),
            "repeat": lambda: x.repeat_interleave(i + 1, 0), "unique": lambda: taeda.unique_consecutive(i),
            "state": lambda: taeda.Generator().set_state(taeda.Generator("sim").get_state().to("sim")),
            "linspace": lambda: taeda.linspace(0, 1, 3, device="sim"), "slice": lambda: x[: i[1]],
            "int": lambda: int(i[1]), "rows": lambda: list(x), "in": lambda: 1.0 in x,
        }
        for name, call in calls.items():
            call()
        for share in (np.asarray, memoryview):
            try:
                share(x)
            except (TypeError, BufferError) as complaint:
                print("cpu" in str(complaint) and "sim" in str(complaint))
        try:
            np.from_dlpack(x)  # which NumPy refuses itself, by the kind of device
        except (RuntimeError, BufferError) as complaint:
            print("device" in str(complaint))
        print(bytes(i) == bytes([0, 1]))  # by its numbers
    """
    assert sim.lines(dedent(HELD) + dedent(program)) == ["True"] * 4


def test_it_is_a_whole_backend(sim):
    program = """
        from taeda_testing.__main__ import main
        raise SystemExit(main(["backend", "sim", "--only", "add", "--only", "conv2d", "--only", "training"]))
    """
    result = sim.run(program)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "nothing is left to do" in result.stdout
