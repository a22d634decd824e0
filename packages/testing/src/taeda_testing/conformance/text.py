"""The report as a table for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from taeda_testing.conformance.report import Item, Outcome, Report, Score

TITLES = {
    "backend": ("core operators", "all operators and behaviours"),
    "provider": ("interface", "interface and behaviours"),
}
_SHOWN = 3
_OPEN = (Outcome.FAILED, Outcome.MISSING, Outcome.WAITING, Outcome.UNTESTED, Outcome.FALLEN_BACK)


def render(report: Report, everything: bool = False) -> str:
    """The whole report as text.

    Args:
        report: what was found.
        everything: list passed items too, not only what is left to do.
    """
    lines = [f"conformance of {report.kind} {report.subject}"]
    lines += [f"  {name}: {value}" for name, value in report.facts.items()]
    lines += ["", *_scores(report), ""]
    lines += _lacks(report)
    for outcome in _OPEN:
        lines += _section(outcome, report.select(outcome))
    if everything:
        lines += _section(Outcome.PASSED, report.select(Outcome.PASSED))
    lines.append("nothing is left to do" if not report.select(*_OPEN) else _summary(report))
    return "\n".join(lines) + "\n"


def _scores(report: Report) -> Iterator[str]:
    columns = ("passed", "failed", "missing", "waiting", "fallen back", "untested", "skipped")
    yield f"{'':<32}{'score':>8}" + "".join(f"{column:>13}" for column in columns)
    for title, score in zip(TITLES[report.kind], (report.core, report.everything), strict=True):
        yield f"{title:<32}{score.percent:>7.1f}%" + "".join(
            f"{getattr(score, column.replace(' ', '_')):>13}" for column in columns
        )
    groups = Counter(item.group for item in report.items)
    if len(groups) > 1:
        for group in groups:
            score = Score.of(item for item in report.items if item.group == group)
            yield f"  {group:<30}{score.percent:>7.1f}%" + "".join(
                f"{getattr(score, column.replace(' ', '_')):>13}" for column in columns
            )


def _lacks(report: Report) -> Iterator[str]:
    skipped = Counter(skip.capability for item in report.items for skip in item.skips)
    if report.lacks:
        yield "declared missing"
        for name, reason in report.lacks.items():
            yield f"  {name:<20} {skipped[name]:>5} checks skipped   {reason}"
        yield ""


def _section(outcome: Outcome, items: list[Item]) -> Iterator[str]:
    if not items:
        return
    yield f"{outcome.value} ({len(items)})"
    for item in items:
        yield f"  {item.name} [{item.group}{', ' + item.family if item.family else ''}]{_tail(item)}"
        for problem in item.problems[:_SHOWN]:
            more = f"   (and {problem.times - 1} more calls)" if problem.times > 1 else ""
            yield f"      {problem.check}: {problem.call}{more}"
            yield f"        expected {problem.expected}"
            yield f"        found    {problem.found}"
        if len(item.problems) > _SHOWN:
            checks = ", ".join(problem.check for problem in item.problems[_SHOWN:])
            yield f"      and in {checks}"
    yield ""


def _tail(item: Item) -> str:
    parts = []
    if item.needs:
        parts.append("no " + ", ".join(item.needs))
    if item.fallbacks:
        parts.append("fell back: " + ", ".join(f"{op} x{n}" for op, n in item.fallbacks.items()))
    if item.outcome is Outcome.UNTESTED:
        parts.append("no record reaches it")
    if item.outcome is Outcome.PASSED:
        parts.append(f"{item.checks} checks")
    return "  " + "; ".join(parts) if parts else ""


def _summary(report: Report) -> str:
    counts = Counter(item.outcome.value for item in report.select(*_OPEN))
    needs = Counter(need for item in report.items for need in item.needs)
    text = "left to do: " + ", ".join(f"{n} {name}" for name, n in counts.items())
    if needs:
        first = ", ".join(f"{name} ({n})" for name, n in needs.most_common(10))
        text += f"\nmost wanted: {first}"
    return text
