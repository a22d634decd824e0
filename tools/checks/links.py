"""Check the documents' links and the environment variables that they name.

Run as `python tools/checks/links.py`. A link to a file of the repository must lead to one, a link to a heading to a
heading of that page, and a variable `TAEDA_...` must be read, or set, by some file that is no document.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from house_rules import ROOT, tracked

FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
VARIABLE = re.compile(r"\bTAEDA_[A-Z0-9_]*[A-Z0-9]\b")


def anchors(text: str) -> set[str]:
    """The names by which headings are linked to."""
    titles = (
        LINK.sub(lambda found: found[0][1:].partition("]")[0], title) for title in HEADING.findall(text)
    )
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def broken_links(page: Path, text: str) -> list[str]:
    """Links of a page, its code left out, that lead nowhere."""
    found = []
    for target in LINK.findall(FENCED.sub("", text)):
        name, _, heading = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if re.match(r"\w+:", target):
            continue  # another place's
        if not file.exists():
            found.append(f"links to {target}, which is not there")
        elif heading and heading not in anchors(FENCED.sub("", file.read_text(encoding="utf-8"))):
            found.append(f"links to {target}, which has no such heading")
    return found


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    files = tracked()
    texts = {path: path.read_bytes().decode("utf-8", "replace") for path in files}
    used = {name for path, text in texts.items() if path.suffix != ".md" for name in VARIABLE.findall(text)}
    complaints = []
    for page in (path for path in files if path.suffix == ".md"):
        wrong = broken_links(page, texts[page])
        wrong += [
            f"names {name}, which no code knows" for name in sorted({*VARIABLE.findall(texts[page])} - used)
        ]
        complaints += [f"{page.relative_to(ROOT)}: {text}" for text in wrong]
    print("\n".join(complaints) or "links: fine")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
