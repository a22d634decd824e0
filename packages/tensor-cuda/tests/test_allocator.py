"""The caching allocator, rule by rule, on the simulated driver."""

from __future__ import annotations

import pytest

from taeda_tensor_cuda.simulated import OUT_OF_MEMORY, PINNED, DriverError, Machine

KIB, MIB = 1 << 10, 1 << 20


def sizes(machine: Machine) -> list[list[tuple[int, str]]]:
    return [
        [(block["size"], block["state"]) for block in segment["blocks"]] for segment in machine.snapshot()
    ]


def current(machine: Machine, name: str, pool: str = "all") -> int:
    return machine.statistics()[name][pool]["current"]


@pytest.mark.parametrize(
    ("asked", "block", "segment"),
    [
        (1, 512, 2 * MIB),
        (513, 1024, 2 * MIB),
        (MIB, MIB, 2 * MIB),
        (MIB + 1, MIB + 512, 20 * MIB),
        (10 * MIB - 512, 10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB, 10 * MIB),
        (11 * MIB, 12 * MIB, 12 * MIB),  # what is left is not worth a block
        (10 * MIB + 1, 12 * MIB - (2 * MIB - 512), 12 * MIB),
    ],
)
def test_sizes_are_rounded_and_segments_are_cut(
    machine: Machine, asked: int, block: int, segment: int
) -> None:
    machine.allocate(asked)
    assert sizes(machine)[0][0] == (block, "active_allocated")
    assert machine.taken() == segment


def test_the_best_fit_is_taken_and_split_and_what_is_free_merges(machine: Machine) -> None:
    large, small, last = machine.allocate(8 * KIB), machine.allocate(512), machine.allocate(2 * KIB)
    guard = machine.allocate(512)
    machine.release(large)
    machine.release(last)
    assert machine.allocate(1 * KIB) == last  # the smaller of two holes
    assert machine.allocate(1 * KIB) == last + KIB
    assert machine.allocate(4 * KIB) == large
    machine.release(large)
    machine.release(small)
    assert sizes(machine)[0][0] == (8 * KIB + 512, "inactive")
    for address in (last, last + KIB, guard):
        machine.release(address)
    assert sizes(machine) == [[(2 * MIB, "inactive")]]


def test_a_steady_loop_asks_the_driver_for_nothing(machine: Machine) -> None:
    def step() -> None:
        blocks = [machine.allocate(n) for n in (300, 5 * MIB, 70 * KIB, 30 * MIB, 3 * MIB)]
        for block in blocks[::2] + blocks[1::2]:
            machine.release(block)

    step()
    before = machine.traffic()
    for _ in range(50):
        step()
    assert machine.traffic() == before and current(machine, "allocated_bytes") == 0


def test_each_stream_has_a_pool(machine: Machine) -> None:
    first, second = machine.stream(), machine.stream()
    block = machine.allocate(MIB, first)
    machine.release(block)
    other = machine.allocate(MIB, second)
    assert other != block and machine.allocate(MIB, first) == block


def test_a_block_waits_for_the_other_streams_that_use_it(machine: Machine) -> None:
    home, user = machine.stream(), machine.stream()
    block = machine.allocate(MIB, home)
    machine.uses(block + 100, user)  # a view may begin anywhere
    machine.work(user, 500)
    machine.release(block)
    assert sizes(machine)[0][0] == (MIB, "active_pending_free")
    assert current(machine, "active_bytes") == MIB and current(machine, "allocated_bytes") == 0
    assert machine.allocate(MIB, home) != block
    machine.advance(500)
    assert machine.allocate(MIB, home) == block
    assert machine.statistics()["num_events"] == 1


def test_what_counts_is_the_work_at_the_release(machine: Machine) -> None:
    home, user = machine.stream(), machine.stream()
    block = machine.allocate(MIB, home)
    machine.uses(block, user)
    machine.work(user, 100)
    machine.release(block)
    machine.work(user, 10_000)  # comes after, and is none of the block's business
    machine.advance(100)
    assert machine.allocate(MIB, home) == block


def test_launches_are_noted_once_there_is_a_second_stream(machine: Machine) -> None:
    home, user = machine.stream(), machine.stream()
    block = machine.allocate(MIB, home)
    machine.launched(block, home)
    machine.release(block)
    assert machine.statistics()["num_events"] == 0
    block = machine.allocate(MIB, home)
    machine.launched(block, user)
    machine.release(block)
    assert machine.statistics()["num_events"] == 1


def test_streams_are_used_again_with_their_memory(machine: Machine) -> None:
    stream = machine.stream()
    block = machine.allocate(MIB, stream)
    machine.release(block)
    machine.end_stream(stream)
    assert machine.stream(priority=-1) != stream and machine.stream() == stream
    assert machine.allocate(MIB, stream) == block


def test_when_memory_is_used_up_what_is_kept_is_given_back(machine: Machine) -> None:
    first, second = machine.stream(), machine.stream()
    for n in (60 * MIB, 100 * MIB):
        machine.release(machine.allocate(n, first))
    assert machine.taken() == 160 * MIB
    machine.allocate(200 * MIB, second)
    statistics = machine.statistics()
    assert (
        machine.taken() == 200 * MIB and statistics["num_alloc_retries"] == 1 and statistics["num_ooms"] == 0
    )


def test_when_memory_is_used_up_blocks_that_wait_are_waited_for(machine: Machine) -> None:
    home, user = machine.stream(), machine.stream()
    block = machine.allocate(200 * MIB, home)
    machine.uses(block, user)
    end = machine.work(user, 7000)
    machine.release(block)
    assert machine.allocate(200 * MIB, home) == block and machine.now() == end
    assert machine.traffic() == (2, 0)


def test_the_error_says_who_holds_what(machine: Machine) -> None:
    machine.hold(56 * MIB)
    kept, block = machine.allocate(MIB), machine.allocate(99 * MIB)
    machine.release(kept)
    machine.empty_cache()
    machine.release(machine.allocate(KIB))
    used = machine.allocate(2 * KIB)
    with pytest.raises(DriverError) as caught:
        machine.allocate(120 * MIB)
    assert caught.value.status == OUT_OF_MEMORY
    assert str(caught.value) == (
        "allocate: cuda:0: out of memory: tried to allocate 120.00 MiB; of 256.00 MiB are free 98.00 MiB, others hold "
        "56.00 MiB; this process holds 102.00 MiB: 100.00 MiB in tensors, 2.00 MiB kept for reuse"
    )
    assert machine.statistics()["num_ooms"] == 1
    for address in (block, used):
        machine.release(address)


@pytest.mark.parametrize("nbytes", [257 * MIB, 1 << 40, (1 << 64) - 1])
def test_no_size_is_too_large_for_the_error(machine: Machine, nbytes: int) -> None:
    with pytest.raises(DriverError, match="out of memory: tried to allocate"):
        machine.allocate(nbytes)
    assert machine.taken() == 0


def test_a_fraction_limits_the_process(machine: Machine) -> None:
    machine.set_fraction(0.25)
    block = machine.allocate(60 * MIB)
    with pytest.raises(DriverError, match=r"this process may take 64\.00 MiB"):
        machine.allocate(30 * MIB)
    machine.release(block)
    machine.allocate(62 * MIB)  # what is kept counts, and makes room
    assert machine.taken() == 62 * MIB


def test_statistics_have_peaks_and_totals(machine: Machine) -> None:
    blocks = [machine.allocate(600) for _ in range(3)]
    machine.release(blocks.pop())
    found = machine.statistics()
    assert found["allocated_bytes"]["small_pool"] == {
        "current": 2048,
        "peak": 3072,
        "allocated": 3072,
        "freed": 1024,
    }
    assert found["requested_bytes"]["all"]["current"] == 1200
    assert found["allocation"]["large_pool"]["allocated"] == 0
    machine.reset("peaks")
    machine.reset("totals")
    found = machine.statistics()
    assert found["allocated_bytes"]["all"] == {"current": 2048, "peak": 2048, "allocated": 0, "freed": 0}


def test_a_block_whose_mark_fails_is_handed_out_no_more(machine: Machine) -> None:
    home, user = machine.stream(), machine.stream()
    block = machine.allocate(MIB, home)
    machine.uses(block, user)
    machine.fail("event")
    machine.release(block)
    machine.synchronize()
    assert machine.allocate(MIB, home) != block
    assert sizes(machine)[0][0] == (MIB, "lost")
    machine.empty_cache()
    assert machine.taken() == 2 * MIB


def test_a_device_that_failed_says_so_at_every_allocation(machine: Machine) -> None:
    machine.fail("kernel")
    machine.work(None, 10)
    machine.advance(10)
    with pytest.raises(DriverError, match="illegal memory access"):
        machine.allocate(MIB)


def test_pinned_memory_costs_little_more_than_what_is_asked_for(machine: Machine) -> None:
    asked = [int(MIB * (1 + (37 * i % 101) / 7)) for i in range(40)] + [700 * KIB + 11 * i for i in range(40)]
    for n in asked:
        machine.allocate(n, device=PINNED)
    assert machine.taken(PINNED) <= 1.05 * sum(asked) + 2 * MIB


def test_pinned_memory_is_kept_for_reuse(machine: Machine) -> None:
    block = machine.allocate(5 * MIB + 3, device=PINNED)
    machine.release(block, device=PINNED)
    assert machine.allocate(5 * MIB, device=PINNED) == block
    machine.release(block, device=PINNED)
    machine.empty_cache(PINNED)
    assert machine.taken(PINNED) == 0
