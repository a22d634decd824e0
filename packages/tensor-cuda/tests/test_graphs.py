"""Graphs: recording and running work, the memory that it has, and what cannot be recorded."""

from __future__ import annotations

import ctypes

import device_programs as programs
import pytest

from taeda_tensor_cuda.simulated import DriverError, Machine

UNSUPPORTED, INVALIDATED, UNJOINED, ISOLATION, CAPTURED_EVENT, WRONG_THREAD = 900, 901, 904, 905, 907, 908
GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2


# --- the simulated driver ---


@pytest.fixture
def graph(machine: Machine):
    made = machine.graph()
    yield made
    machine.end_graph(made)


def status_of(call, *arguments) -> int:
    with pytest.raises(DriverError) as caught:
        call(*arguments)
    return caught.value.status


def test_recorded_work_is_done_when_the_graph_runs_and_not_before(machine: Machine, graph: int) -> None:
    stream = machine.stream()
    block = machine.allocate(1 << 20, stream)
    kept = machine.allocate(16, device=-1)
    source = (ctypes.c_char * 4).from_address(kept)
    target = ctypes.create_string_buffer(4)
    source.raw = b"old."
    machine.begin_capture(graph, stream, machine.new_pool())
    assert machine.capture_of(stream) and not machine.capture_of(None)
    machine.copy_in(block, kept, 4, stream)
    machine.end_capture(graph)
    machine.synchronize()
    assert machine.now() == 0 and not machine.capture_of(stream)
    for text in (b"new.", b"more"):
        source.raw = text  # the copy reads what is there when it runs
        machine.replay(graph, stream)
        machine.copy_out(target, block, 4, stream)
        machine.synchronize()
        assert target.raw == text
    machine.release(block)
    machine.release(kept, device=-1)


def test_a_run_lasts_as_long_as_its_longest_path(machine: Machine, graph: int) -> None:
    main, side, event, joined = machine.stream(), machine.stream(), machine.event(), machine.event()
    machine.begin_capture(graph, main, machine.new_pool())
    machine.work(main, 100)
    machine.record(event, main)
    machine.wait(side, event)
    assert machine.capture_of(side) == machine.capture_of(main)
    machine.work(side, 500)
    machine.work(main, 50)
    machine.record(joined, side)
    machine.wait(main, joined)
    machine.work(main, 10)
    machine.end_capture(graph)
    assert not machine.capture_of(side)
    machine.replay(graph, main)
    machine.replay(graph, main)
    machine.synchronize()
    assert machine.now() == 2 * 610
    for each in (event, joined):
        machine.destroy_event(each)


def test_work_that_is_not_joined_makes_no_graph(machine: Machine, graph: int) -> None:
    main, side, event = machine.stream(), machine.stream(), machine.event()
    machine.begin_capture(graph, main, machine.new_pool())
    machine.record(event, main)
    machine.wait(side, event)
    machine.work(side, 5)
    assert status_of(machine.end_capture, graph) == UNJOINED
    machine.work(side, 5)  # both streams do their work again
    machine.synchronize()
    assert machine.now() == 5
    machine.destroy_event(event)


@pytest.mark.parametrize("what", ["synchronize_stream", "is_idle", "synchronize", "copy"])
def test_what_cannot_be_recorded_breaks_the_recording(machine: Machine, graph: int, what: str) -> None:
    stream = machine.stream()
    block = machine.allocate(64, stream)
    machine.begin_capture(graph, stream, machine.new_pool())
    calls = {
        "synchronize_stream": lambda: machine.synchronize_stream(stream),
        "is_idle": lambda: machine.is_idle(stream),
        "synchronize": machine.synchronize,
        # From memory that is not pinned.
        "copy": lambda: machine.copy_in(block, ctypes.create_string_buffer(4), 4, stream),
    }
    assert status_of(calls[what]) == UNSUPPORTED
    assert status_of(machine.work, stream, 1) == INVALIDATED
    assert status_of(machine.end_capture, graph) == INVALIDATED
    machine.work(stream, 1)
    machine.release(block)


def test_the_allocator_gives_nothing_back_while_work_is_recorded(machine: Machine, graph: int) -> None:
    stream = machine.stream()
    machine.release(machine.allocate(64, None))
    machine.begin_capture(graph, stream, machine.new_pool())
    assert status_of(machine.empty_cache) == 1
    machine.end_capture(graph)
    machine.empty_cache()
    assert machine.taken() == 0


def test_events_do_not_lead_out_of_a_recording_or_into_it(machine: Machine, graph: int) -> None:
    stream, other, outside, inside = machine.stream(), machine.stream(), machine.event(), machine.event()
    machine.record(outside, other)
    machine.begin_capture(graph, stream, machine.new_pool())
    machine.record(inside, stream)
    assert status_of(machine.is_reached, inside) == CAPTURED_EVENT
    assert status_of(machine.end_capture, graph) == INVALIDATED
    machine.begin_capture(graph, stream, machine.new_pool())
    assert status_of(machine.wait, stream, outside) == ISOLATION
    assert status_of(machine.end_capture, graph) == INVALIDATED
    assert status_of(machine.wait, other, inside) == CAPTURED_EVENT
    for each in (outside, inside):
        machine.destroy_event(each)


def test_the_default_stream_and_a_stream_in_use_are_refused(machine: Machine, graph: int) -> None:
    assert status_of(machine.begin_capture, graph, None, machine.new_pool()) == UNSUPPORTED
    stream, second = machine.stream(), machine.graph()
    machine.begin_capture(graph, stream, machine.new_pool())
    assert status_of(machine.begin_capture, second, stream, machine.new_pool()) == 1
    machine.end_graph(second)
    machine.end_capture(graph)


def test_another_thread_ends_only_relaxed_recordings(machine: Machine, graph: int) -> None:
    import threading

    stream, found = machine.stream(), []
    for mode in (THREAD_LOCAL, RELAXED):
        machine.begin_capture(graph, stream, machine.new_pool(), mode)

        def end() -> None:
            try:
                machine.end_capture(graph)
                found.append(0)
            except DriverError as error:
                found.append(error.status)

        thread = threading.Thread(target=end)
        thread.start()
        thread.join()
        if found[-1]:
            assert status_of(machine.end_capture, graph) == INVALIDATED
    assert found == [WRONG_THREAD, 0]


def test_a_graph_can_be_part_of_another(machine: Machine, graph: int) -> None:
    stream, outer = machine.stream(), machine.graph()
    machine.begin_capture(graph, stream, machine.new_pool())
    machine.work(stream, 30)
    machine.end_capture(graph)
    machine.begin_capture(outer, stream, machine.new_pool())
    machine.replay(graph, stream)
    machine.replay(graph, stream)
    machine.end_capture(outer)
    machine.replay(outer, stream)
    machine.synchronize()
    assert machine.now() == 60
    machine.end_graph(outer)


def test_a_run_that_fails_says_so(machine: Machine, graph: int) -> None:
    stream = machine.stream()
    machine.begin_capture(graph, stream, machine.new_pool())
    machine.end_capture(graph)
    machine.fail("graph")
    assert status_of(machine.replay, graph, stream) == 719
    machine.replay(graph, stream)


# --- memory ---


def pools(machine: Machine) -> dict[int, int]:
    """Bytes of segments by the number of their pool."""
    found: dict[int, int] = {}
    for segment in machine.snapshot():
        number = segment["segment_pool_id"][1]
        found[number] = found.get(number, 0) + segment["total_size"]
    return found


def test_recorded_work_has_memory_of_its_own_which_stays_while_the_graph_does(
    machine: Machine, graph: int
) -> None:
    stream, pool = machine.stream(), machine.new_pool()
    free = machine.allocate(1000, stream)
    machine.release(free)
    machine.begin_capture(graph, stream, pool)
    first = machine.allocate(1000, stream)
    assert first != free
    machine.release(first)
    assert machine.allocate(1000, stream) == first  # within the recording it serves again
    outside = machine.allocate(1000, None)
    machine.release(first)
    machine.end_capture(graph)
    assert machine.allocate(1000, stream) == free and outside != first
    machine.release(free)
    machine.release(outside)
    machine.empty_cache()
    assert pools(machine) == {pool: 2 << 20}  # a run would write there
    machine.reset_graph(graph)
    machine.empty_cache()
    assert pools(machine) == {} and machine.taken() == 0


def test_graphs_that_share_a_pool_keep_it_until_the_last_is_gone(machine: Machine, graph: int) -> None:
    stream, pool, second = machine.stream(), machine.new_pool(), machine.graph()
    places = []
    for each in (graph, second):
        machine.begin_capture(each, stream, pool)
        places.append(machine.allocate(4 << 20, stream))
        machine.release(places[-1])
        machine.end_capture(each)
    assert places[0] == places[1]
    machine.reset_graph(graph)
    machine.empty_cache()
    assert pools(machine) == {pool: 20 << 20}
    machine.end_graph(second)
    machine.empty_cache()
    assert pools(machine) == {}


def test_a_tensor_outlives_its_graph(machine: Machine, graph: int) -> None:
    stream = machine.stream()
    machine.begin_capture(graph, stream, machine.new_pool())
    block = machine.allocate(1000, stream)
    machine.end_capture(graph)
    machine.reset_graph(graph)
    machine.empty_cache()
    assert machine.statistics()["allocated_bytes"]["all"]["current"] == 1024
    machine.release(block)
    machine.empty_cache()
    assert machine.taken() == 0


def test_blocks_that_several_streams_used_wait_until_nothing_is_recorded(
    machine: Machine, graph: int
) -> None:
    stream, other = machine.stream(), machine.stream()
    block = machine.allocate(1000, other)
    machine.begin_capture(graph, stream, machine.new_pool())
    machine.uses(block, stream)
    machine.release(block)
    assert machine.statistics()["num_events"] == 0
    assert machine.allocate(1000, other) != block  # and no event was recorded in the stream that is recorded
    machine.end_capture(graph)
    assert machine.statistics()["num_events"] == 1
    machine.synchronize()
    assert machine.allocate(1000, other) == block


def test_out_of_memory_while_work_is_recorded_gives_nothing_back(machine: Machine, graph: int) -> None:
    stream = machine.stream()
    block = machine.allocate(150 << 20, None)
    machine.release(block)
    machine.begin_capture(graph, stream, machine.new_pool())
    with pytest.raises(DriverError, match="work is being recorded, so nothing can be given back"):
        machine.allocate(150 << 20, stream)
    machine.end_capture(graph)
    assert machine.allocate(150 << 20, None) == block


# --- tensors ---

HEAD = """
import gc
import taeda_tensor_core as tc
import taeda_tensor_cuda as cuda
kind = tc.get_device_module("cuda")
def say(f):
    try:
        print(f())
    except Exception as error:
        print(type(error).__name__, error)
"""


def run(program: str, driver: str = "simulated") -> list[str]:
    return programs.run(program, HEAD, driver).splitlines()


def test_tensors_of_the_recording_are_filled_anew_by_each_run() -> None:
    shown = run(
        """
        g, x = kind.CUDAGraph(), tc.arange(4.0).to("cuda")
        with kind.graph(g):
            print(kind.is_current_stream_capturing())
            y = (x @ x) + x.sum()
            z = x.exp().reshape(2, 2).sum(0)
        print(kind.is_current_stream_capturing(), kind.graphs.CUDAGraph is kind.CUDAGraph)
        for factor in (1, 2, 3):
            x.copy_(tc.arange(4.0) * factor)
            g.replay()
            host = tc.arange(4.0) * factor
            print(y.item() == (14 * factor * factor + 6 * factor))
            print(((z.cpu() - host.exp().reshape(2, 2).sum(0)).abs() < 1e-3).all().item())
        """
    )
    assert shown == ["True", "False True"] + ["True"] * 6


def test_each_run_draws_numbers_of_its_own_and_seeds_count() -> None:
    shown = run(
        """
        g = kind.CUDAGraph()
        g.register_generator_state(kind.default_generators[0])
        with kind.graph(g):
            first, second = tc.rand(5, device="cuda"), tc.randn(5, device="cuda")
        def draw(seed=None):
            if seed is not None:
                kind.manual_seed(seed)
            g.replay()
            return first.tolist() + second.tolist()
        a, b, c = draw(3), draw(), draw(3)
        kind.manual_seed(3)
        plain = tc.rand(5, device="cuda").tolist() + tc.randn(5, device="cuda").tolist()
        print(a != b, a == c, a == plain, first.tolist() != second.tolist())
        say(lambda: g.register_generator_state(tc.Generator("cuda")))
        own = tc.Generator("cuda")
        with kind.stream(kind.Stream()):
            h = kind.CUDAGraph()
            h.capture_begin()
            say(lambda: first.uniform_(generator=own))
            h.capture_end()
        """
    )
    assert shown[0] == "True True True True"
    assert shown[1].startswith(
        "NotImplementedError register_generator_state: numbers of generators other than"
    )
    assert "numbers of a generator that is named in the call cannot be recorded" in shown[2]


def test_what_cannot_be_recorded_is_refused_by_name_and_harms_nothing() -> None:
    shown = run(
        """
        x = tc.ones(3).to("cuda")
        side = kind.Stream()
        event = kind.Event()
        g = kind.CUDAGraph()
        with side:
            g.capture_begin()
            y = x + 1
            event.record()
            for refused in (lambda: y.sum().item(), lambda: tc.zeros(2).to("cuda"), kind.synchronize, side.synchronize,
                            side.query, kind.empty_cache, event.synchronize, lambda: y.nonzero(),
                            lambda: kind.CUDAGraph().capture_begin()):
                say(refused)
            print(event.query())
            g.capture_end()
        g.replay()
        print(y.tolist())
        """
    )
    assert len(shown) == 11
    for line in shown[:8]:
        assert line.startswith("RuntimeError ") and "not permitted when a stream is capturing" in line, line
    assert shown[8].startswith("DriverError graph_begin_capture")
    assert shown[9:] == ["False", "[2.0, 2.0, 2.0]"]


def test_a_program_that_fails_within_leaves_no_recording() -> None:
    shown = run(
        """
        g = kind.CUDAGraph()
        try:
            with kind.graph(g):
                tc.ones(2, device="cuda") @ tc.ones(3, device="cuda")
        except ValueError as error:
            print("the program's own error")
        except RuntimeError as error:
            print("the program's own error")
        print(kind.is_current_stream_capturing())
        say(g.replay)
        with kind.graph(g):
            y = tc.ones(2, device="cuda") * 2
        g.replay()
        print(y.tolist())
        """
    )
    assert shown == [
        "the program's own error",
        "False",
        "RuntimeError replay: there is no recording; capture_begin and capture_end make one, or the context "
        "taeda.cuda.graph",
        "[2.0, 2.0]",
    ]


def test_functions_are_called_in_order_or_say_so() -> None:
    shown = run(
        """
        g = kind.CUDAGraph()
        for wrong in (g.replay, g.pool, g.instantiate, g.capture_end, g.capture_begin,
                      lambda: g.capture_begin(capture_error_mode="strict"), lambda: g.debug_dump("x")):
            say(wrong)
        with kind.graph(g):
            tc.ones(2, device="cuda")
        say(lambda: g.debug_dump("x"))
        with kind.stream(kind.Stream()):
            say(g.capture_begin)
        say(g.instantiate)
        print(g.pool() == g.pool(), g.pool() != kind.graph_pool_handle())
        g.reset()
        say(g.pool)
        """
    )
    names = ["replay", "pool", "instantiate", "capture_end", "capture_begin", "capture_begin", "debug_dump"]
    names += ["debug_dump", "capture_begin", "instantiate"]
    for name, line in zip(names, shown, strict=False):
        assert line.split(" ", 2)[1] == f"{name}:", line
    assert "non-default stream" in shown[4] and "found 'strict'" in shown[5]
    assert shown[10] == "True True" and shown[11].startswith("RuntimeError pool: ")


def test_a_recording_that_is_kept_can_be_drawn(tmp_path) -> None:
    run(
        f"""
        g = kind.CUDAGraph(keep_graph=True)
        with kind.graph(g):
            y = tc.ones(2, device="cuda") + 1
        g.debug_dump({str(tmp_path / "a.dot")!r})
        g.replay()
        g.instantiate()
        g.replay()
        assert y.tolist() == [2, 2]
        h = kind.CUDAGraph()
        h.enable_debug_mode()
        with kind.graph(h):
            y + 1
        h.debug_dump({str(tmp_path / "b.dot")!r})
        """
    )
    assert all(tmp_path.joinpath(name).read_text().startswith("digraph") for name in ("a.dot", "b.dot"))


def test_pinned_memory_that_a_graph_reads_stays_until_the_graph_is_gone() -> None:
    shown = run(
        """
        g, x = kind.CUDAGraph(), tc.zeros(4).to("cuda")
        host = tc.arange(4.0).pin_memory("cuda")
        with kind.graph(g):
            x.copy_(host, non_blocking=True)
        held = lambda: cuda.pinned_memory_stats()["allocation.all.current"]
        before = held()
        del host
        gc.collect()
        again = tc.full((4,), 7.0).pin_memory("cuda")
        g.replay()
        print(x.tolist(), held() == before + 1)
        g.reset()
        del again
        tc.ones(4).pin_memory("cuda")  # looks at what waits
        tc.ones(4).pin_memory("cuda")
        print(held() <= before + 1)
        """
    )
    assert shown == ["[0.0, 1.0, 2.0, 3.0] True", "True"]


def test_without_a_device_graphs_say_why() -> None:
    shown = run(
        """
        print(kind.is_current_stream_capturing())
        say(kind.graph_pool_handle)
        g = kind.CUDAGraph()
        say(g.capture_begin)
        say(lambda: kind.graph(g))
        """,
        driver="toaster",
    )
    assert shown[0] == "False" and all("TAEDA_CUDA_DRIVER must be" in line for line in shown[1:])


NETWORK = """
import taeda
from taeda import nn
taeda.manual_seed(1)
"""


@pytest.fixture
def whole() -> None:
    pytest.importorskip("taeda")


@pytest.mark.usefixtures("whole")
def test_a_step_of_training_is_recorded_and_run() -> None:
    shown = run(
        NETWORK
        + """
def training(seed):
    taeda.manual_seed(seed)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).cuda()
    return net, taeda.optim.SGD(net.parameters(), 0.1, momentum=0.9)
x = taeda.randn(5, 4).cuda()
def step(net, opt):
    opt.zero_grad(set_to_none=True)
    loss = net(x).pow(2).sum()
    loss.backward()
    opt.step()
    return loss
net, opt = training(2)
plain = [step(net, opt).item() for _ in range(6)]
net, opt = training(2)
side = kind.Stream()
with side:
    for _ in range(3):
        step(net, opt)
kind.current_stream().wait_stream(side)
g = kind.CUDAGraph()
with kind.graph(g):
    loss = step(net, opt)
found = []
for _ in range(3):
    g.replay()
    found.append(loss.item())
print(found == plain[3:])
"""
    )
    assert shown == ["True"]


@pytest.mark.usefixtures("whole")
def test_graphed_callables_compute_what_the_callables_do() -> None:
    shown = run(
        NETWORK
        + """
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).cuda()
def head(h, w):
    return {"sum": (h * w).sum(), "both": (h, w * 2)}
def gradients(net, head, x, w):
    net.zero_grad()
    w.grad = x.grad = None
    out = head(net(x), w)
    (out["sum"] + out["both"][1].sum()).backward()
    return [p.grad.cpu().clone() for p in (*net.parameters(), w, x)]
x = taeda.randn(5, 4).cuda().requires_grad_()
w = taeda.randn(2).cuda().requires_grad_()
expected = gradients(net, head, x, w)
sample = taeda.randn(5, 4).cuda().requires_grad_()
h = taeda.randn(5, 2).cuda().requires_grad_()
v = taeda.randn(2).cuda().requires_grad_()
graphed, ghead = kind.make_graphed_callables((net, head), ((sample,), (h, v)))
print(graphed is net)
for turn in range(2):
    found = gradients(graphed, ghead, x, w)
    print(all(taeda.allclose(a, b) for a, b in zip(found, expected)))
net.eval()
print(tuple(net(taeda.ones(3, 4).cuda()).shape))  # another shape: not by the graph
net.train()
say(lambda: ghead(h))
hooked = nn.Linear(2, 2).cuda()
hooked.register_forward_hook(lambda *a: None)
say(lambda: kind.make_graphed_callables(hooked, (h,)))
say(lambda: kind.make_graphed_callables(head, (1,)))
"""
    )
    assert shown[:4] == ["True", "True", "True", "(3, 2)"]
    assert shown[4].startswith("TypeError expected 2 tensors")
    assert shown[5].startswith("ValueError make_graphed_callables: a module must have no hooks")
    assert shown[6].startswith(
        "TypeError make_graphed_callables: sample arguments must be tensors, found int"
    )
