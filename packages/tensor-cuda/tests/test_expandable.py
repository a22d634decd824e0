"""Segments that expand: one for each pool, whose addresses are reserved and whose memory comes piece by piece."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest

from taeda_tensor_cuda.simulated import DriverError, Machine

MEBI = 1 << 20


@pytest.fixture
def expanding(machine: Machine) -> Machine:
    machine.set_expandable(True)
    return machine


def test_what_many_sizes_leave_free_serves_a_large_one(expanding: Machine) -> None:
    machine = expanding
    blocks = [machine.allocate(30 * MEBI) for _ in range(8)]
    for block in blocks:
        machine.release(block)
    before = machine.traffic()[0]
    whole = machine.allocate(240 * MEBI)  # of 256: fixed segments would have to go back first
    assert whole == blocks[0] and machine.traffic() == (before, 0)
    (segment,) = machine.snapshot()
    assert segment["is_expandable"] and segment["total_size"] == 240 * MEBI
    machine.release(whole)


def test_a_segment_grows_at_its_end_and_gives_its_end_back(expanding: Machine) -> None:
    machine = expanding
    first = machine.allocate(25 * MEBI)
    second = machine.allocate(30 * MEBI)
    assert second == first + 25 * MEBI and machine.taken() == 60 * MEBI
    machine.release(second)
    machine.empty_cache()
    assert machine.taken() == 26 * MEBI  # whole pieces
    again = machine.allocate(30 * MEBI)
    assert again == second
    machine.release(first)
    machine.empty_cache()
    assert machine.taken() == machine.snapshot()[0]["total_size"]  # what lies before a block in use stays
    machine.release(again)
    machine.empty_cache()
    assert machine.taken() == 0
    third = machine.allocate(5 * MEBI)
    assert third == first
    machine.release(third)


def test_small_and_large_blocks_and_streams_have_segments_of_their_own(
    expanding: Machine,
) -> None:
    machine = expanding
    stream = machine.stream()
    blocks = [machine.allocate(size, on) for size in (1000, 2 * MEBI) for on in (None, stream)]
    assert sorted(segment["total_size"] for segment in machine.snapshot()) == [2 * MEBI] * 2 + [20 * MEBI] * 2
    assert machine.statistics()["segment"]["all"]["current"] == 4
    for block in blocks:
        machine.release(block)


def test_memory_is_used_up_as_with_other_segments(expanding: Machine) -> None:
    machine = expanding
    kept = machine.allocate(100 * MEBI)
    with pytest.raises(DriverError, match="tried to allocate 200"):
        machine.allocate(200 * MEBI)
    other = machine.allocate(100 * MEBI, machine.stream())
    machine.release(other)
    last = machine.allocate(140 * MEBI)  # the other pool's memory is given back for it
    machine.set_fraction(0.5)
    with pytest.raises(DriverError):
        machine.allocate(140 * MEBI, machine.stream())
    machine.fail("allocate")
    with pytest.raises(DriverError):
        machine.allocate(10 * MEBI, machine.stream())
    machine.release(kept)
    machine.release(last)


def test_graphs_keep_what_they_have(expanding: Machine) -> None:
    machine = expanding
    stream, graph, pool = machine.stream(), machine.graph(), machine.new_pool()
    machine.begin_capture(graph, stream, pool)
    block = machine.allocate(5 * MEBI, stream)
    machine.release(block)
    machine.end_capture(graph)
    machine.empty_cache()
    assert machine.taken() == 20 * MEBI
    machine.end_graph(graph)
    machine.empty_cache()
    assert machine.taken() == 0


@pytest.mark.parametrize("seed", range(5))
def test_any_sequence_leaves_the_allocator_in_order(expanding: Machine, seed: int) -> None:
    machine, numbers = expanding, random.Random(seed)
    print(f"seed {seed}")
    streams = [None, machine.stream(), machine.stream()]
    held: dict[int, int] = {}
    for _ in range(400):
        turn = numbers.random()
        if turn < 0.55:
            size = numbers.choice([100, 5000, MEBI, 3 * MEBI, numbers.randrange(16, 40 * MEBI)])
            try:
                address = machine.allocate(size, numbers.choice(streams))
            except DriverError as error:
                assert error.status == 2
                continue
            assert all(address + size <= other or address >= other + held[other] for other in held)
            held[address] = size
            machine.copy_in(address, bytes(16), 16, None)  # ends the process where no memory is
        elif turn < 0.9 and held:
            address = numbers.choice(list(held))
            del held[address]
            if numbers.random() < 0.3:
                machine.uses(address, numbers.choice(streams))
            machine.release(address)
        elif turn < 0.95:
            machine.empty_cache()
        else:
            machine.advance(numbers.randrange(5000))
        assert machine.inconsistency() == ""
    for address in held:
        machine.release(address)
    machine.synchronize()
    machine.empty_cache()
    machine.empty_cache()
    assert machine.taken() == 0


def test_a_setting_of_the_environment_turns_it_on() -> None:
    program = """
import taeda_tensor_core as tc, taeda_tensor_cuda as cuda
x = tc.arange(10).to("cuda")
print(x.tolist() == list(range(10)), [segment["is_expandable"] for segment in cuda.memory_snapshot()])
"""
    for name in ("TAEDA_CUDA_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        environment = {
            **os.environ,
            "TAEDA_CUDA_DRIVER": "simulated",
            name: "max_split_size_mb:512,expandable_segments:True",
        }
        made = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.stdout.strip() == "True [True]", made.stderr
