"""The report as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from taeda_testing.conformance.report import Item, Report, Score
from taeda_testing.conformance.text import TITLES

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 70em; color: #222; }
table { border-collapse: collapse; width: 100%; margin: 1em 0; }
th, td { text-align: left; padding: .3em .6em; border-bottom: 1px solid #ddd; vertical-align: top; }
td.n { text-align: right; } code { white-space: pre-wrap; }
.passed { color: #166534; } .failed { color: #b91c1c; } .missing, .waiting { color: #b45309; }
.untested, .skipped { color: #666; } .fallen { color: #6d28d9; }
"""
_COLUMNS = ("passed", "failed", "missing", "waiting", "fallen_back", "untested", "skipped")


def render(report: Report) -> str:
    """A page without scripts or outside files: scores, what is declared missing, and every item."""
    title = f"Conformance of {report.kind} {report.subject}"
    return "\n".join(
        [
            f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{escape(title)}</title>",
            f"<style>{_STYLE}</style><h1>{escape(title)}</h1>",
            "<p>" + escape("; ".join(f"{k}: {v}" for k, v in report.facts.items())) + "</p>",
            *_scores(report),
            *_lacks(report),
            "<table><tr><th>Item</th><th>Group</th><th>Outcome</th><th>Checks</th><th>What is left</th></tr>",
            *(_row(item) for item in report.items),
            "</table></html>\n",
        ]
    )


def _scores(report: Report) -> Iterator[str]:
    heads = "".join(f"<th>{column.replace('_', ' ')}</th>" for column in _COLUMNS)
    yield f"<table><tr><th></th><th>score</th>{heads}</tr>"
    for title, score in zip(TITLES[report.kind], (report.core, report.everything), strict=True):
        yield f"<tr><td>{title}</td><td class='n'>{score.percent:.1f} %</td>{_cells(score)}</tr>"
    yield "</table>"


def _cells(score: Score) -> str:
    return "".join(f"<td class='n'>{getattr(score, column)}</td>" for column in _COLUMNS)


def _lacks(report: Report) -> Iterator[str]:
    if report.lacks:
        yield "<h2>Declared missing</h2><ul>"
        for name, reason in report.lacks.items():
            yield f"<li><b>{escape(name)}</b>: {escape(reason)}</li>"
        yield "</ul>"


def _row(item: Item) -> str:
    outcome = item.outcome.value
    cells = [escape(item.name), escape(item.group), f"<span class='{outcome.split()[0]}'>{outcome}</span>"]
    return (
        "<tr>"
        + "".join(f"<td>{cell}</td>" for cell in cells)
        + (f"<td class='n'>{item.checks}</td><td>{''.join(_details(item))}</td></tr>")
    )


def _details(item: Item) -> Iterator[str]:
    if item.needs:
        yield f"no {escape(', '.join(item.needs))}. "
    if item.fallbacks:
        yield "fell back: " + escape(", ".join(f"{op} ({n})" for op, n in item.fallbacks.items())) + ". "
    for problem in item.problems:
        yield (
            f"<div><b>{escape(problem.check)}</b> ({problem.times}): <code>{escape(problem.call)}</code><br>"
            f"expected <code>{escape(problem.expected)}</code><br>found <code>{escape(problem.found)}</code></div>"
        )
    if item.skips:
        reasons = sorted({skip.capability for skip in item.skips})
        yield f"{len(item.skips)} checks skipped: lacks {escape(', '.join(reasons))}"
