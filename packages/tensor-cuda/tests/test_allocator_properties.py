"""Any sequence of uses of the allocator: memory is never handed to a stream while another may still use it.

The test keeps its own account of who uses which bytes until when, from the ends of work that the simulated driver
tells, and holds every block that is handed out against it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from taeda_tensor_cuda.simulated import OUT_OF_MEMORY, DriverError, Machine

KIB, MIB = 1 << 10, 1 << 20
SIZES = st.one_of(
    st.integers(1, 4 * KIB),
    st.integers(1, 2 * MIB),
    st.integers(MIB, 30 * MIB),
    st.sampled_from([512, MIB, 10 * MIB]),
)


@dataclass
class Block:
    """What the program holds."""

    address: int
    nbytes: int
    stream: int | None
    uses: list[tuple[int | None, int]] = field(default_factory=list)  # stream and end of work


class Programs(RuleBasedStateMachine):
    """Programs on one device with little memory and four streams, the default one among them."""

    @initialize(mebibytes=st.sampled_from([8, 64, 256]))
    def begin(self, mebibytes: int) -> None:
        self.machine = Machine(mebibytes * MIB)
        self.capacity = mebibytes * MIB
        self.streams = [None, *(self.machine.stream() for _ in range(3))]
        self.blocks: list[Block] = []
        self.past: list[Block] = []  # released, with work that may not be done

    def teardown(self) -> None:
        if hasattr(self, "machine"):
            self.machine.close()

    @rule(nbytes=SIZES, stream=st.integers(0, 3))
    def allocate(self, nbytes: int, stream: int) -> None:
        try:
            address = self.machine.allocate(nbytes, self.streams[stream])
        except DriverError as error:
            assert error.status == OUT_OF_MEMORY
            assert not self.fitting(nbytes, self.streams[stream]), (
                "a block that would have done was not given"
            )
            return
        made = Block(address, nbytes, self.streams[stream])
        now = self.machine.now()
        for other in self.blocks:
            assert not overlap(made, other), "memory that is in use was handed out"
        for former in self.past:
            for user, end in former.uses:
                if overlap(made, former) and user != made.stream:
                    assert end <= now, "memory was handed out that another stream still uses"
        self.blocks.append(made)

    def fitting(self, nbytes: int, stream: int | None) -> list[dict[str, int]]:
        """Free blocks of the stream's pool that are large enough."""
        size = -(-nbytes // 512) * 512
        return [
            block
            for segment in self.machine.snapshot()
            if (segment["stream"], segment["segment_type"])
            == (stream or 0, "small" if size <= MIB else "large")
            for block in segment["blocks"]
            if block["state"] == "inactive" and block["size"] >= size
        ]

    @precondition(lambda self: self.blocks)
    @rule(data=st.data(), stream=st.integers(0, 3), length=st.integers(0, 5000), count=st.integers(1, 3))
    def launch(self, data: st.DataObject, stream: int, length: int, count: int) -> None:
        used = [data.draw(st.sampled_from(self.blocks)) for _ in range(count)]
        for block in used:
            inside = data.draw(st.integers(0, block.nbytes - 1))
            self.machine.launched(block.address + inside, self.streams[stream])
        end = self.machine.work(self.streams[stream], length)
        for block in used:
            block.uses.append((self.streams[stream], end))

    @precondition(lambda self: self.blocks)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        block = self.blocks.pop(data.draw(st.integers(0, len(self.blocks) - 1)))
        self.machine.release(block.address)
        self.past.append(block)

    @rule(first=st.integers(0, 3), second=st.integers(0, 3))
    def order(self, first: int, second: int) -> None:
        event = self.machine.event()
        self.machine.record(event, self.streams[first])
        self.machine.wait(self.streams[second], event)
        self.machine.destroy_event(event)

    @rule(time=st.integers(0, 4000))
    def advance(self, time: int) -> None:
        self.machine.advance(time)
        now = self.machine.now()
        self.past = [block for block in self.past if any(end > now for _, end in block.uses)]

    @rule(stream=st.integers(0, 3))
    def synchronize(self, stream: int) -> None:
        self.machine.synchronize_stream(self.streams[stream])

    @rule()
    def empty_cache(self) -> None:
        self.machine.empty_cache()

    @rule(part=st.integers(0, 8))
    def others(self, part: int) -> None:
        self.machine.hold(self.capacity // 16 * part)

    @invariant()
    def nothing_is_lost(self) -> None:
        if not hasattr(self, "machine"):
            return
        assert self.machine.inconsistency() == ""
        statistics = self.machine.statistics()
        assert statistics["reserved_bytes"]["all"]["current"] == self.machine.taken() <= self.capacity
        assert statistics["allocation"]["all"]["current"] == len(self.blocks)
        assert statistics["requested_bytes"]["all"]["current"] == sum(block.nbytes for block in self.blocks)
        blocks = {b["address"]: b for segment in self.machine.snapshot() for b in segment["blocks"]}
        for block in self.blocks:
            found = blocks[block.address]
            assert found["state"] == "active_allocated" and found["size"] >= block.nbytes


def overlap(a: Block, b: Block) -> bool:
    return a.address < b.address + b.nbytes and b.address < a.address + a.nbytes


TestPrograms = Programs.TestCase
TestPrograms.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


def test_after_everything_is_released_all_memory_goes_back(machine: Machine) -> None:
    streams = [machine.stream() for _ in range(3)]
    blocks = [machine.allocate((i * 7919) % (3 * MIB) + 1, streams[i % 3]) for i in range(60)]
    for i, block in enumerate(blocks):
        machine.uses(block, streams[(i * 5) % 3])
        machine.work(streams[i % 3], 100 + i)
    for block in blocks[::-1]:
        machine.release(block)
    machine.empty_cache()
    assert machine.taken() == 0 and machine.snapshot() == []
    assert machine.statistics()["reserved_bytes"]["all"]["current"] == 0
