"""Profiles: what is recorded, by whom, and how it is summed up."""

from __future__ import annotations

import os
import threading
import time

import pytest

import taeda
import taeda_registry.spans
from taeda.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule
from taeda_testing.settling import eventually


def net():
    taeda.manual_seed(0)
    return taeda.nn.Sequential(taeda.nn.Linear(4, 8), taeda.nn.ReLU(), taeda.nn.Linear(8, 2))


def rows(prof, **options):
    return {row.key: row for row in prof.key_averages(**options)}


def test_operators_are_counted_with_their_parts():
    with profile() as prof:
        for _ in range(3):
            taeda.ones(5)
        taeda.ones(2) + 1
    found = rows(prof)
    assert found["aten::ones"].count == found["aten::fill_"].count == 4
    assert found["aten::add"].count == 1
    ones = found["aten::ones"]
    assert ones.cpu_time_total == pytest.approx(
        ones.self_cpu_time_total + found["aten::fill_"].cpu_time_total
    )
    assert ones.cpu_time == pytest.approx(ones.cpu_time_total / 4)


def test_self_times_add_up_to_the_top():
    model = net()
    with profile() as prof:
        for _ in range(5):
            with record_function("step"):
                model(taeda.ones(3, 4)).sum().backward()
    averages = prof.key_averages()
    whole = averages.self_cpu_time_total
    assert sum(row.self_cpu_time_total for row in averages) == pytest.approx(whole)
    assert all(
        row.self_cpu_time_total >= 0 and row.cpu_time_total >= row.self_cpu_time_total for row in averages
    )
    assert whole == pytest.approx(rows(prof)["step"].cpu_time_total)


def test_the_table_agrees_with_the_clock():
    def compared():
        x = taeda.ones(300, 300)
        with profile() as prof:
            before = time.perf_counter()
            with record_function("all"):
                begin = time.perf_counter()
                for _ in range(50):
                    x = x @ x * 0.001
                end = time.perf_counter()
            after = time.perf_counter()
        found = rows(prof)
        whole = found["all"].cpu_time_total
        assert (end - begin) * 1e6 <= whole * 1.01 and whole <= (after - before) * 1e6 * 1.01
        inside = sum(row.self_cpu_time_total for name, row in found.items() if name != "all")
        assert inside == pytest.approx(
            whole, rel=0.1
        )  # unless others had the processor between two operators

    eventually(compared)


def test_blocks_and_functions_have_names():
    @record_function("decorated")
    def work(x, *, scale=1):
        return x * scale

    with profile() as prof:
        with record_function("outer", "more"), record_function("inner"):
            taeda.ones(1)
        assert work(taeda.ones(2), scale=3).tolist() == [3, 3]
        assert work(taeda.ones(2)).tolist() == [1, 1]
    found = rows(prof)
    assert found["decorated"].count == 2 and found["decorated"].is_user_annotation
    assert not found["aten::ones"].is_user_annotation
    by_name = {event.name: event for event in prof.events()}
    assert by_name["inner"].cpu_parent is by_name["outer"]
    assert by_name["inner"] in by_name["outer"].cpu_children


def test_a_block_that_raises_ends():
    with profile() as prof:
        with pytest.raises(RuntimeError), record_function("broken"):
            taeda.ones(2) @ taeda.ones(3)
        taeda.ones(1)
    broken, ones = (next(e for e in prof.events() if e.name == name) for name in ("broken", "aten::ones"))
    assert broken.cpu_parent is None
    last = [e for e in prof.events() if e.name == "aten::ones"][-1]
    assert last.cpu_parent is None and broken.time_range.end <= last.time_range.start
    assert ones.time_range.end <= broken.time_range.end
    assert any(prof.trace.failed)


def test_blocks_that_end_in_another_order_are_closed():
    first, second = record_function("first"), record_function("second")
    with profile() as prof:
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        second.__exit__(None, None, None)
        taeda.ones(1)
    by_name = {event.name: event for event in prof.events()}
    assert by_name["second"].cpu_parent is by_name["first"]
    assert by_name["aten::ones"].cpu_parent is None


def test_a_block_that_began_before_is_not_there_and_one_that_goes_on_ends_with_the_recording():
    early, late = record_function("early"), record_function("late")
    early.__enter__()
    with profile() as prof:
        early.__exit__(None, None, None)
        late.__enter__()
        taeda.ones(1)
    late.__exit__(None, None, None)
    found = rows(prof)
    assert "early" not in found
    assert found["late"].cpu_time_total >= found["aten::ones"].cpu_time_total


def test_shapes_stand_at_their_places():
    with profile(record_shapes=True) as prof:
        taeda.ones(2, 3) @ taeda.ones(3, 4)
        taeda.cat([taeda.ones(1), taeda.ones(2)])
        taeda.nn.functional.linear(taeda.ones(2, 3), taeda.ones(5, 3))
    shapes = {event.name: event.input_shapes for event in prof.events()}
    assert shapes["aten::mm"] == [[2, 3], [3, 4]]
    assert shapes["aten::cat"] == [[[1], [2]], []]
    assert shapes["aten::linear"] == [[2, 3], [5, 3], []]
    assert shapes["aten::fill_"] == [[5, 3], []]


def test_events_are_told_apart_by_shapes():
    with profile(record_shapes=True) as prof:
        for size in (2, 2, 7):
            taeda.zeros(size).exp()
    assert rows(prof)["aten::exp"].count == 3
    found = [row for row in prof.key_averages(group_by_input_shape=True) if row.key == "aten::exp"]
    assert sorted((row.input_shapes, row.count) for row in found) == [([[2]], 2), ([[7]], 1)]
    assert "Input Shapes" in prof.key_averages(group_by_input_shape=True).table()
    assert "Input Shapes" not in prof.key_averages().table()


@pytest.mark.usefixtures("nothing_collected")
def test_memory_is_told_by_operator_and_sums_to_nothing_at_the_end():
    taeda.ones(1000) + 1
    with profile(profile_memory=True) as prof:
        kept = taeda.ones(1000)
        both = kept + kept
        small = taeda.ones(3)
        del kept, both, small
    found = rows(prof)
    assert found["aten::add"].cpu_memory_usage == found["aten::add"].self_cpu_memory_usage == 4000
    assert found["aten::ones"].cpu_memory_usage == 4012
    assert found["[memory]"].cpu_memory_usage == -8012 and found["[memory]"].count == 3
    assert sum(row.self_cpu_memory_usage for row in found.values()) == 0
    assert sum(event.self_cpu_memory_usage for event in prof.events()) == 0


@pytest.mark.usefixtures("nothing_collected")
def test_memory_of_others_is_not_counted():
    import numpy as np

    with profile(profile_memory=True) as prof:
        taeda.from_numpy(np.zeros(1000, np.float32))
    assert prof.trace.memory["bytes"].tolist() == []


@pytest.mark.usefixtures("nothing_collected")
def test_memory_of_a_training_step_is_given_back():
    model = net()
    x = taeda.ones(16, 4)

    def step():
        model(x).sum().backward()
        for p in model.parameters():
            p.grad = None

    step()
    with profile(profile_memory=True) as prof:
        step()
    assert prof.trace.memory["bytes"].sum() == 0 and len(prof.trace.memory["bytes"]) > 10


def test_stacks_are_lines_of_the_program():
    def inner():
        return taeda.ones(2).exp()

    with profile(with_stack=True) as prof:
        inner()
        with record_function("block"):
            pass
    exp = next(event for event in prof.events() if event.name == "aten::exp")
    assert exp.stack[0].startswith(__file__) and exp.stack[0].endswith("inner")
    assert "test_stacks_are_lines_of_the_program" in exp.stack[1]
    line = inner.__code__.co_firstlineno + 1
    assert f"({line}): " in exp.stack[0]
    block = next(event for event in prof.events() if event.name == "block")
    assert block.stack[0].startswith(__file__)
    grouped = [row for row in prof.key_averages(group_by_stack_n=1) if row.key == "aten::exp"]
    assert [len(row.stack) for row in grouped] == [1]
    assert "Source Location" in prof.key_averages(group_by_stack_n=1).table()


def test_backwards_are_linked_to_what_was_recorded():
    x = taeda.ones(3, requires_grad=True)
    with profile() as prof:
        (x.exp() * 2).sum().backward()
    events = prof.events()
    forward = {
        event.sequence_nr: event.name for event in events if event.scope == 0 and event.sequence_nr > 0
    }
    backward = {event.sequence_nr: event.name for event in events if event.scope == 1}
    pairs = {forward[number]: name for number, name in backward.items() if number in forward}
    assert pairs["aten::exp"] == "ExpBackward0" and pairs["aten::sum"] == "SumBackward0"
    assert {event.fwd_thread for event in events if event.scope == 1} == {0}


def test_a_composite_does_not_take_the_numbers_of_its_parts():
    x = taeda.ones(2, 3, requires_grad=True)
    with profile() as prof:
        (x @ taeda.ones(3, 2)).sum()
    numbers = [event.sequence_nr for event in prof.events() if event.sequence_nr > 0]
    assert len(numbers) == len(set(numbers))


def test_modules_are_named_by_their_paths():
    model = net()
    with profile(with_modules=True) as prof:
        model(taeda.ones(1, 4))
    names = [event.name for event in prof.events() if event.name.startswith("nn.Module")]
    assert names == [f"nn.Module: Sequential{end}" for end in ("", ".0", ".1", ".2")]
    linear = next(event for event in prof.events() if event.name == "aten::linear")
    assert linear.cpu_parent.name == "nn.Module: Sequential.0"
    with profile() as prof:
        model(taeda.ones(1, 4))
    assert not any(event.name.startswith("nn.Module") for event in prof.events())


def test_a_module_that_raises_is_left():
    model = net()
    with profile(with_modules=True) as prof:
        with pytest.raises(RuntimeError):
            model(taeda.ones(1, 5))
        taeda.ones(1)
    assert prof.events()[-1].cpu_parent.name == "aten::ones" or prof.events()[-1].cpu_parent is None
    last = [event for event in prof.events() if event.name == "aten::ones"][-1]
    assert last.cpu_parent is None


def test_steps_of_optimizers_are_blocks():
    model = net()
    optimizer = taeda.optim.SGD(model.parameters(), lr=0.1)
    model(taeda.ones(1, 4)).sum().backward()
    with profile() as prof:
        optimizer.step()
    assert rows(prof)["Optimizer.step#SGD.step"].count == 1


class Slow(taeda.utils.data.Dataset):
    """Samples that take some milliseconds each."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        time.sleep(0.01)
        return taeda.full((2,), float(index))


@pytest.mark.parametrize(("workers", "kind"), [(0, "SingleProcess"), (2, "MultiProcessing")])
def test_waits_for_data_are_spans(workers, kind):
    loader = taeda.utils.data.DataLoader(Slow(), batch_size=2, num_workers=workers)

    def compared():
        waited = 0.0
        with profile() as prof:
            batches, found = iter(loader), 0
            while True:
                start = time.perf_counter()
                batch = next(batches, None)
                waited += time.perf_counter() - start
                if batch is None:
                    break
                found += 1
        row = rows(prof)[f"enumerate(DataLoader)#_{kind}DataLoaderIter.__next__"]
        assert found == 3 and row.count == 4  # the last finds the end
        assert taeda_registry.spans.watcher is None
        assert row.cpu_time_total <= waited * 1e6 * 1.01
        assert row.cpu_time_total == pytest.approx(waited * 1e6, rel=0.05, abs=2000)

    eventually(compared)


def test_floating_point_operations():
    with profile(with_flops=True) as prof:
        taeda.ones(2, 3) @ taeda.ones(3, 4)
        taeda.nn.functional.conv2d(taeda.ones(1, 2, 8, 8), taeda.ones(4, 2, 3, 3), padding=1)
        taeda.nn.functional.conv2d(taeda.ones(1, 2, 8, 8), taeda.ones(4, 2, 3, 3), stride=2)
    found = rows(prof)
    assert found["aten::mm"].flops == 48
    assert found["aten::conv2d"].flops == 2 * 4 * 18 * (64 + 9)
    assert "Total FLOPs" in prof.key_averages().table()
    with profile(with_flops=True) as prof:
        taeda.ones(20, 30) @ taeda.ones(30, 40)
        taeda.ones(200, 300) @ taeda.ones(300, 400)
    averages = prof.key_averages()
    assert "Total MFLOPs" in averages.table(), "a row for both products"


def test_other_threads_are_recorded_whenever_they_began():
    ready, go, done = threading.Event(), threading.Event(), threading.Event()

    def early():
        ready.set()
        go.wait()
        taeda.zeros(2).exp()
        done.set()

    def late():
        taeda.zeros(2).log()

    first = threading.Thread(target=early)
    first.start()
    ready.wait()
    with profile() as prof:
        go.set()
        done.wait()
        second = threading.Thread(target=late)
        second.start()
        second.join()
    first.join()
    threads = {event.name: event.thread for event in prof.events()}
    assert len({threads["aten::exp"], threads["aten::log"], 0}) == 3
    assert threading.getprofile() is None


def test_threads_that_go_on_after_the_end_record_no_longer():
    go, stop = threading.Event(), threading.Event()
    counts = []

    def work():
        while not stop.is_set():
            taeda.zeros(2).exp()
            go.set()

    thread = threading.Thread(target=work)
    with profile() as prof:
        thread.start()
        go.wait()
    counts.append(len(prof.events()))
    go.clear()
    go.wait()
    stop.set()
    thread.join()
    assert len(prof.events()) == counts[0] > 0
    with profile() as again:
        taeda.ones(1)
    assert {event.name for event in again.events()} == {"aten::ones", "aten::fill_"}


def test_a_profiling_function_of_the_program_goes_on():
    seen = []
    threading.setprofile(lambda frame, event, arg: seen.append(event))
    try:
        with profile() as prof:
            thread = threading.Thread(target=lambda: taeda.zeros(3).exp())
            thread.start()
            thread.join()
        assert threading.getprofile() is not None
    finally:
        threading.setprofile(None)
    assert "call" in seen and rows(prof)["aten::exp"].count == 1


def test_one_profile_at_a_time():
    with profile() as prof:
        with pytest.raises(RuntimeError, match="another one is recording"), profile():
            pass
        taeda.ones(1)
    assert rows(prof)["aten::ones"].count == 1


def test_nothing_to_show_is_an_error():
    with pytest.raises(AssertionError, match="nothing has been recorded"):
        profile().key_averages()
    with pytest.raises(AssertionError, match="names none"):
        profile(activities=[])
    with pytest.raises(ValueError, match="max_mb"):
        profile(max_mb=0)
    with pytest.raises(TypeError, match="must be texts"):
        record_function(3)


def test_room_is_bounded_and_what_is_dropped_is_told():
    prof = profile(max_mb=0.3)
    with pytest.warns(RuntimeWarning, match=r"events were dropped.*max_mb"), prof:
        for _ in range(20000):
            taeda.ones(1)
    trace = prof.trace
    assert trace.dropped + len(trace) == 40000 and len(trace) > 4000
    assert trace.used_bytes < 1.5 * 0.3 * 2**20
    assert prof.key_averages()[0].self_cpu_time_total >= 0


def test_an_event_takes_24_bytes():
    with profile() as prof:
        for _ in range(10000):
            taeda.ones(1)
    assert len(prof.trace) == 20000
    assert prof.trace.used_bytes < 24 * 20000 + 24 * 1024 + 10000


def test_a_schedule_records_its_active_steps():
    seen = []
    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(schedule=plan, on_trace_ready=lambda p: seen.append((p.step_num, len(p.events())))) as prof:
        for _ in range(9):
            taeda.ones(1)
            prof.step()
    # ProfilerStep, ones and fill_ of two steps.
    assert seen == [(4, 6), (8, 6)]
    names = {"ProfilerStep*", "aten::ones", "aten::fill_"}
    assert {event.name for event in prof.events()} == names
    assert {event.trace_name for event in prof.events()} == names - {"ProfilerStep*"} | {
        "ProfilerStep#6",
        "ProfilerStep#7",
    }
    # Steps are summed up as one, by every way of telling events apart.
    for told in ({}, {"group_by_input_shape": True}, {"group_by_stack_n": 3}):
        counts = {row.key: row.count for row in prof.key_averages(**told)}
        assert counts["ProfilerStep*"] == 2 and counts.keys() == names


@pytest.mark.parametrize("shapes", [False, True])
def test_events_of_all_cycles_are_kept_where_that_is_asked_for(shapes):
    def counts(warmup, active, repeat, kept):
        plan = schedule(wait=0, warmup=warmup, active=active, repeat=repeat)
        with profile(schedule=plan, acc_events=kept, record_shapes=shapes) as prof:
            for size in range(20):
                _ = taeda.ones(size % 2 + 1) + 1
                prof.step()
        rows = [row for row in prof.key_averages(group_by_input_shape=shapes) if row.key == "aten::add"]
        singles = [event for event in prof.events() if event.name == "aten::add"]
        assert sum(row.count for row in rows) == len(singles) and len(rows) in (0, 1, 2 if shapes else 1)
        assert abs(prof.key_averages().self_cpu_time_total - prof.events().self_cpu_time_total) < 1e-6
        return len(singles)

    # The last cycle of the first plan begins behind the last step.
    assert counts(0, 5, 0, True) == 20 and counts(0, 5, 0, False) == 0
    assert counts(1, 5, 0, True) == 16 and counts(1, 5, 0, False) == 1
    assert counts(0, 5, 2, True) == 10 and counts(0, 5, 2, False) == 5


def test_programs_go_back_to_the_schedule_that_records_all():
    with profile(schedule=schedule(wait=1, warmup=0, active=1)) as prof:
        assert prof.current_action is ProfilerAction.NONE
        prof.schedule = taeda.profiler.profiler._default_schedule_fn
        prof.step()
        assert prof.current_action is ProfilerAction.RECORD


def test_without_a_schedule_all_is_recorded_and_handed_over_once():
    seen = []
    with profile(on_trace_ready=seen.append) as prof:
        taeda.ones(1)
        prof.step()
        taeda.ones(1)
    assert seen == [prof] and rows(prof)["aten::ones"].count == 2


def test_start_and_stop():
    prof = profile(activities=[ProfilerActivity.CPU])
    prof.start()
    taeda.ones(1)
    prof.stop()
    assert rows(prof)["aten::ones"].count == 1
    assert ProfilerActivity.CPU in taeda.profiler.supported_activities()
    assert ProfilerAction.RECORD_AND_SAVE.value == 3


def test_a_child_of_a_fork_records_nothing_of_its_parent():
    with profile() as prof:
        taeda.ones(1)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                taeda.ones(4)
                with profile() as own:
                    taeda.ones(1)
                os.write(write, str(rows(own)["aten::ones"].count).encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert os.read(read, 10) == b"1"
        os.close(read)
        os.close(write)
    assert rows(prof)["aten::ones"].count == 1


def test_blocks_that_begin_and_end_by_operators():
    """As older programs write `record_function`."""
    with taeda.profiler.profile() as found:
        block = taeda.ops.profiler._record_function_enter("older")
        taeda.ones(2).exp()
        taeda.ops.profiler._record_function_exit(block)
        block = taeda.ops.profiler._record_function_enter_new("newer", None)
        taeda.ops.profiler._record_function_exit._RecordFunction(block)
    assert {e.key for e in found.key_averages()} >= {"older", "newer", "aten::exp"}
    with pytest.raises(TypeError, match="found int"):
        taeda.ops.profiler._record_function_exit(3)
