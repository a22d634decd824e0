"""The result of a conformance run: one item per operator or behaviour, and the scores over them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """What became of an item, from worst to best; SKIPPED is outside the score."""

    FAILED = "failed"
    MISSING = "missing"
    WAITING = "waiting"
    UNTESTED = "untested"
    FALLEN_BACK = "fallen back"
    PASSED = "passed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Problem:
    """One difference: the smallest call that shows it, what it should have given and what came.

    Attributes:
        check: kind of check, for instance ``forward float32``.
        call: the call with shapes, dtypes and small values.
        expected, found: values, exceptions or words.
        times: how many calls of this check were wrong in all.
    """

    check: str
    call: str
    expected: str
    found: str
    times: int = 1


@dataclass(frozen=True)
class Skip:
    """Checks that were left out because of a capability that the implementation says it lacks."""

    check: str
    capability: str


@dataclass
class Item:
    """An operator or a behaviour.

    Attributes:
        name: operator, interface name or behaviour.
        group: ``core``, ``composite``, ``optional`` (the backend has a kernel of its own) or ``decomposed`` (it has
            none, the core computes them) operators; ``interface`` names; ``behaviour``.
        outcome: the worst over all checks. An operator is missing for want of its own kernel; one that is made of
            others waits for theirs.
        checks: how many calls were made and compared.
        problems, skips: what went wrong, what was left out.
        needs: kernels that were asked for and are not there.
        fallbacks: operators that ran on another backend, with how often.
    """

    name: str
    group: str
    family: str = ""
    outcome: Outcome = Outcome.PASSED
    checks: int = 0
    problems: list[Problem] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)
    fallbacks: dict[str, int] = field(default_factory=dict)
    note: str = ""

    def settle(self) -> Item:
        """Sets the outcome from what was collected."""
        if self.problems:
            self.outcome = Outcome.FAILED
        elif self.needs:
            own = self.group in ("interface", "behaviour") or self.name in self.needs
            self.outcome = Outcome.MISSING if own else Outcome.WAITING
        elif self.checks == 0:
            self.outcome = Outcome.SKIPPED if self.skips else Outcome.UNTESTED
        elif self.fallbacks:
            self.outcome = Outcome.FALLEN_BACK
        else:
            self.outcome = Outcome.PASSED
        return self


@dataclass(frozen=True)
class Score:
    """Counts over items. Skipped items are not scored; every other item that did not pass lowers the score."""

    passed: int = 0
    failed: int = 0
    missing: int = 0
    waiting: int = 0
    fallen_back: int = 0
    untested: int = 0
    skipped: int = 0

    @property
    def total(self) -> int:
        """Items that are scored."""
        return self.passed + self.failed + self.missing + self.waiting + self.fallen_back + self.untested

    @property
    def percent(self) -> float:
        """Share of passed items, rounded down to a tenth, so that 100 means all of them."""
        return 100.0 if self.total == 0 else self.passed * 1000 // self.total / 10

    @classmethod
    def of(cls, items: Iterable[Item]) -> Score:
        """The score of some items."""
        counts = dict.fromkeys(cls.__dataclass_fields__, 0)
        for item in items:
            counts[item.outcome.value.replace(" ", "_")] += 1
        return cls(**counts)


@dataclass
class Report:
    """What a run found.

    Attributes:
        kind: ``backend`` or ``provider``.
        subject: ``mydev``, ``optim:mypkg``.
        facts: versions and choices in force.
        lacks: declared missing capabilities with their reasons.
        items: all items.
        core_groups: groups that make up the first score.
    """

    kind: str
    subject: str
    facts: dict[str, str] = field(default_factory=dict)
    lacks: dict[str, str] = field(default_factory=dict)
    items: list[Item] = field(default_factory=list)
    core_groups: tuple[str, ...] = ("core",)

    @property
    def core(self) -> Score:
        """Score of what an implementation must have: core operators, or the names of an interface."""
        return Score.of(item for item in self.items if item.group in self.core_groups)

    @property
    def everything(self) -> Score:
        """Score of all items, the core included."""
        return Score.of(self.items)

    @property
    def passed(self) -> bool:
        """Whether nothing failed and nothing required is missing, untested or left to the fallback."""
        core, everything = self.core, self.everything
        return core.passed == core.total and everything.failed == 0

    def select(self, *outcomes: Outcome) -> list[Item]:
        """Items of some outcomes, in order."""
        return [item for item in self.items if item.outcome in outcomes]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, the form of the JSON report."""
        return {
            "format": 1,
            "kind": self.kind,
            "subject": self.subject,
            "facts": self.facts,
            "lacks": self.lacks,
            "core_groups": list(self.core_groups),
            "scores": {
                name: {**asdict(score), "total": score.total, "percent": score.percent}
                for name, score in (("core", self.core), ("all", self.everything))
            },
            "items": [_brief(asdict(item)) for item in self.items],
        }

    def to_json(self) -> str:
        """The report as JSON, one item a line."""
        data = self.as_dict()
        items = data.pop("items")
        head = json.dumps(data, indent=1)
        lines = ",\n".join("  " + json.dumps(item) for item in items)
        return f'{head[:-2]},\n "items": [\n{lines}\n ]\n}}\n'


def _brief(item: dict[str, Any]) -> dict[str, Any]:
    """Without empty fields."""
    return {key: value for key, value in item.items() if value not in ([], {}, "")}
