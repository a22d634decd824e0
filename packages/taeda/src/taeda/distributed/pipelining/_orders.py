"""Orders in which a process runs microbatches forwards and backwards through its stages.

An order is a list of actions for each process. None says when things are sent: a process sends what it has computed at
once and waits where it needs something, so any order works in which nothing waits for what comes after it (`check`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple


class _ComputationType(StrEnum):
    FORWARD = "F"
    BACKWARD_INPUT = "I"
    BACKWARD_WEIGHT = "W"
    UNSHARD = "UNSHARD"
    RESHARD = "RESHARD"
    SEND_F = "SEND_F"
    RECV_F = "RECV_F"
    SEND_B = "SEND_B"
    RECV_B = "RECV_B"
    FULL_BACKWARD = "B"
    OVERLAP_F_B = "OVERLAP_F_B"
    REDUCE_GRAD = "REDUCE_GRAD"

    @staticmethod
    def from_str(action: str) -> _ComputationType:
        """The type of that name.

        Raises:
            RuntimeError: There is none.
        """
        try:
            return _ComputationType(action)
        except ValueError as error:
            raise RuntimeError(f"Invalid computation type {action}") from error


F, B = _ComputationType.FORWARD, _ComputationType.FULL_BACKWARD
I, W = _ComputationType.BACKWARD_INPUT, _ComputationType.BACKWARD_WEIGHT
_COMPUTES = frozenset({F, B, I, W, _ComputationType.OVERLAP_F_B})
_TEXT = re.compile(r"(\d+)([A-Z_]+?)(\d*)")


class _Action(NamedTuple):
    """What is done with a microbatch in a stage, or several such."""

    stage_index: int
    computation_type: _ComputationType
    microbatch_index: int | None = None
    sub_actions: tuple[_Action, ...] | None = None

    def __repr__(self) -> str:
        if self.sub_actions is not None:
            return f"({';'.join(map(repr, self.sub_actions))}){self.computation_type.value}"
        number = "" if self.microbatch_index is None else self.microbatch_index
        return f"{self.stage_index}{self.computation_type.value}{number}"

    def __str__(self) -> str:
        return repr(self)

    @property
    def is_compute_op(self) -> bool:
        """Whether it computes, and does not send."""
        return self.computation_type in _COMPUTES

    @staticmethod
    def from_str(action_string: str) -> _Action | None:
        """An action of its text, as "2F0" or "(0F4;3B2)OVERLAP_F_B"; None of an empty one.

        Raises:
            RuntimeError: It is no such text.
        """
        text = action_string.strip()
        if not text:
            return None
        if text.startswith("(") and ")" in text:
            inner, _, kind = text[1:].partition(")")
            parts = [_Action.from_str(part) for part in inner.split(";")]
            subs = tuple(part for part in parts if part is not None)
            return _Action(-1, _ComputationType.from_str(kind), None, subs or None)
        match = _TEXT.fullmatch(text)
        if match is None:
            raise RuntimeError(
                f"Invalid action string: {text}, should be formatted as [stage][action type][(microbatch)] e.g. 2F0"
            )
        stage, kind, number = match.groups()
        return _Action(int(stage), _ComputationType.from_str(kind), int(number) if number else None)


Order = list[_Action]


def plain(actions: Sequence[_Action | None]) -> Order:
    """The computations of an order one by one: pauses, sending and receiving left out."""
    found: Order = []
    for action in actions:
        if action is not None and action.is_compute_op:
            found += plain(action.sub_actions) if action.sub_actions else [action]
    return found


# Which process has which stage


def loop_places(processes: int, stages: int) -> dict[int, int]:
    """Stages dealt out round and round."""
    return {stage: stage % processes for stage in range(stages)}


def v_places(processes: int, stages: int) -> dict[int, int]:
    """Stages dealt out forth and back: the first process has the first stage and the last one of each pair of rounds.

    Raises:
        ValueError: Their number is no multiple of the number of processes.
    """
    if stages % processes:
        raise ValueError(
            f"num_stages {stages} must be evenly divisible by pp_size {processes} for V schedules"
        )
    there = range(processes)
    ways = [there if turn % 2 == 0 else reversed(there) for turn in range(stages // processes)]
    return dict(enumerate(place for way in ways for place in way))


# The orders


def _interleaved(forwards: Order, backwards: Order, warmup: int, delay: int | None = None) -> Order:
    """First some forwards, then one backward after each forward, then the backwards that are left.

    Args:
        delay: Where backwards are of inputs only: after how many of them each is followed by the oldest one of weights.
    """
    order, pairs = forwards[:warmup], forwards[warmup:]
    weights = 0
    for index, backward in enumerate(backwards):
        order += [*pairs[index : index + 1], backward]
        if delay is not None and index >= delay:
            order.append(backwards[weights]._replace(computation_type=W))
            weights += 1
    if delay is not None:
        order += [action._replace(computation_type=W) for action in backwards[weights:]]
    return order


def gpipe(stage: int, microbatches: int) -> Order:
    """All forwards, then all backwards."""
    return [_Action(stage, kind, i) for kind in (F, B) for i in range(microbatches)]


def one_forward_one_backward(stage: int, stages: int, microbatches: int) -> Order:
    """A forward for each later stage, then forwards and backwards in turn."""
    forwards = [_Action(stage, F, i) for i in range(microbatches)]
    backwards = [_Action(stage, B, i) for i in range(microbatches)]
    return _interleaved(forwards, backwards, min(stages - 1 - stage, microbatches))


def breadth_first(place: int, processes: int, local: int, microbatches: int) -> Order:
    """All microbatches through one stage, then all through the next; backwards the other way round."""
    stages = [place + processes * turn for turn in range(local)]
    order = [_Action(stage, F, i) for stage in stages for i in range(microbatches)]
    return order + [_Action(stage, B, i) for stage in stages[::-1] for i in range(microbatches)[::-1]]


def depth_first(
    place: int, processes: int, local: int, microbatches: int, each: int, zero_bubble: bool = False
) -> Order:
    """Rounds of microbatches through all stages of a process; forwards and backwards in turn.

    Args:
        each: Microbatches of a round.
        zero_bubble: Backwards of inputs and of weights are apart.
    """
    stages = [place + processes * turn for turn in range(local)]
    starts = range(0, microbatches, each)

    def rounds(kind: _ComputationType, ways: list[int]) -> Order:
        return [_Action(s, kind, i) for start in starts for s in ways for i in range(start, start + each)]

    hops = (processes - 1 - place) * (1 if zero_bubble else 2)
    warmup = min((local - 1) * each + hops, microbatches * local)
    backwards = rounds(I if zero_bubble else B, stages[::-1])
    return _interleaved(rounds(F, stages), backwards, warmup, place if zero_bubble else None)


class _Writer:
    """Writes an order of numbered actions: the next microbatch of each kind and stage."""

    def __init__(self) -> None:
        self.order: Order = []
        self._next: Counter[tuple[int, _ComputationType]] = Counter()

    def count(self, stage: int, kind: _ComputationType) -> int:
        """How many there are."""
        return self._next[stage, kind]

    def add(self, stage: int, *kinds: _ComputationType) -> None:
        """The next ones. Full backwards and those of inputs share their numbers."""
        for kind in kinds:
            self.order.append(_Action(stage, kind, self._next[stage, I if kind is B else kind]))
            for counted in (I, W) if kind is B else (kind,):
                self._next[stage, counted] += 1

    def pending(self, stage: int) -> int:
        """How many backwards of weights are to follow."""
        return self._next[stage, I] - self._next[stage, W]


def zero_bubble_v(place: int, processes: int, microbatches: int) -> Order:
    """Two stages of a process whose places form a V; backwards of weights fill pauses (Qi et al. 2023, section 6)."""
    down, up = place, 2 * processes - 1 - place
    after = processes - place
    least = max(
        2 * processes - 1, microbatches
    )  # fewer do not fill the pipeline: the others are left out at the end
    made = _Writer()
    for _ in range(2 * after - 1):
        made.add(down, F)
    for _ in range(place):
        made.add(up, F)
        made.add(down, F)
    for _ in range(after):
        made.add(up, F, I, W)
    while made.count(up, F) < made.count(down, F) or made.count(down, F) < least:
        if made.count(down, F) < least:
            made.add(down, F)
        made.add(down, I, W)
        made.add(up, F, I, W)
    for _ in range(place):
        made.add(down, I)
        made.add(up, I)
    for _ in range(after):
        made.add(down, I, W)
    for stage in (up, down):
        made.add(stage, *[W] * made.pending(stage))
    return [a for a in made.order if a.microbatch_index is not None and a.microbatch_index < microbatches]


def dual_pipe_v(place: int, processes: int, microbatches: int) -> Order:
    """Two stages of a process whose places form a V; forwards of one go with backwards of the other (DualPipe)."""
    down, up = place, 2 * processes - 1 - place
    after = processes - 1 - place
    made = _Writer()
    waiting: list[int] = []

    def weight() -> None:
        if waiting:
            made.add(waiting.pop(0), W)

    def backward(stage: int, apart: bool) -> None:
        made.add(stage, I if apart else B)
        if apart:
            waiting.append(stage)

    for _ in range(2 * after):
        made.add(down, F)
    for _ in range(place + 1):
        made.add(down, F)
        made.add(up, F)
    for _ in range(after):
        backward(up, True)
        weight()
        made.add(up, F)
    for _ in range(microbatches - 2 * processes + place + 1):
        made.add(down, F)
        made.add(up, B, F)
        made.add(down, B)
    for _ in range(after):
        made.add(up, B, F)
        made.add(down, B)
    # The second half of the last backwards keeps those of weights for later.
    half = 2 * ((place + 1) // 2) + (1 - place % 2)
    for turn in range(2 * (place + 1)):
        backward(down if turn % 2 else up, turn >= half)
    for _ in range(after):
        weight()
        backward(down, True)
    while waiting:
        weight()
    return made.order


# Checks


def check(
    orders: Mapping[int, Sequence[_Action | None]], places: Mapping[int, int], microbatches: int, name: str
) -> None:
    """Check that orders do everything once, and that nothing waits for ever.

    Args:
        orders: By process.
        places: The process of each stage.
        microbatches: How many there are.
        name: The schedule.

    Raises:
        ValueError: A computation is missing, done twice, or in another process. RuntimeError: All processes wait.
    """
    left = {place: plain(actions) for place, actions in orders.items()}
    for place, actions in left.items():
        stages = sorted(stage for stage, home in places.items() if home == place)
        _check_complete(actions, stages, microbatches, f"{name}: order of rank {place}")
    done: set[_Action] = set()
    last = max(places)
    while any(left.values()):
        moved = False
        for actions in left.values():
            while actions and _is_ready(actions[0], done, last):
                done.add(actions.pop(0))
                moved = True
        if not moved:
            waiting = {place: actions[0] for place, actions in left.items() if actions}
            raise RuntimeError(f"{name}: the order never ends: by rank, these wait for each other: {waiting}")


def _check_complete(actions: Order, stages: list[int], microbatches: int, name: str) -> None:
    found = Counter(actions)
    twice = [action for action, count in found.items() if count > 1]
    strange = [a for a in found if a.stage_index not in stages]
    if twice or strange:
        raise ValueError(
            f"{name}: expected each action once, of stages {stages}, found {(twice or strange)[:4]}"
        )
    for stage in stages:
        for i in range(microbatches):
            kinds = {kind for kind in (F, B, I, W) if _Action(stage, kind, i) in found}
            if kinds not in ({F}, {F, B}, {F, I, W}):
                texts = [kind.value for kind in kinds]
                raise ValueError(
                    f"{name}: expected F, or F and B, or F, I and W of stage {stage} and microbatch {i}, "
                    f"found {sorted(texts)}"
                )


def _is_ready(action: _Action, done: set[_Action], last: int) -> bool:
    stage, kind, number, _ = action
    if kind is F:
        return stage == 0 or _Action(stage - 1, F, number) in done
    if kind is W:
        return _Action(stage, I, number) in done
    if _Action(stage, F, number) not in done:
        return False
    return stage == last or any(_Action(stage + 1, k, number) in done for k in (B, I))
