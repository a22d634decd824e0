"""The page of a trace: what is in it, and what a browser makes of it."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

import taeda
from taeda.profiler import profile, record_function
from taeda_testing.settling import eventually

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

# What a person does: look, hover, zoom, move, search, click; the results stand in the page's title.
STEPS = """
<script>
(async () => {
  const t = window.timeline, canvas = document.getElementById("timeline"), out = {};
  const box = () => canvas.getBoundingClientRect();
  const mouse = (type, [x, y], more = {}) => canvas.dispatchEvent(new MouseEvent(type,
    { clientX: box().left + x, clientY: box().top + y, bubbles: true, cancelable: true, ...more }));
  const tip = document.getElementById("tip");
  out.slices = t.slices();
  out.boxes = t.boxes();
  const [x, y] = t.center(WANTED);
  mouse("mousemove", [x, y]);
  out.tip = tip.textContent;
  out.hit = t.eventAt(x, y);
  const before = t.view.to - t.view.from;
  const wheel = { deltaY: -1, clientX: box().left + x, clientY: box().top + y, cancelable: true };
  canvas.dispatchEvent(new WheelEvent("wheel", wheel));
  out.zoomed = (t.view.to - t.view.from) / before;
  const from = t.view.from;
  window.dispatchEvent(new KeyboardEvent("keydown", { key: "d" }));
  out.moved = t.view.from > from;
  document.getElementById("whole").click();
  out.whole = t.view.to - t.view.from === before;
  const field = document.getElementById("search");
  field.value = "EXP";
  field.dispatchEvent(new Event("input"));
  out.matched = t.matched();
  out.found = document.getElementById("found").textContent;
  field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
  out.selected = t.selected();
  out.narrow = t.view.to - t.view.from < before;
  document.querySelectorAll("#costliest th")[4].click();
  out.rows = document.querySelectorAll("#costliest tbody tr").length;
  out.calls = document.querySelector("#costliest tbody td:nth-child(5)").textContent;
  const start = performance.now();
  for (let k = 0; k < 20; ++k) t.draw();
  out.frame = (performance.now() - start) / 20;
  document.title = JSON.stringify(out);
})().catch((error) => (document.title = JSON.stringify({ error: String(error) })));
</script>
"""
ERRORS = "<script>window.onerror = (text) => (document.documentElement.dataset.error = text);</script>"


def recorded():
    x = taeda.ones(3, 4, requires_grad=True)
    found = profile(record_shapes=True, profile_memory=True, with_stack=True)
    with found, record_function("</script><b>block"):
        for _ in range(5):
            (x.exp() @ taeda.ones(4, 2)).sum().backward()
    return found


@pytest.fixture(scope="module")
def prof():
    return recorded()


def written(prof, path):
    prof.export_html(str(path), title="A <title>")
    return path.read_text(encoding="utf-8")


def content(text):
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.S)[1])


def test_the_page_holds_all_and_needs_nothing(prof, tmp_path):
    text = written(prof, tmp_path / "page.html")
    data = content(text)
    assert not re.search(r"(src|href)\s*=", text.split("<script id")[0]) and "http" not in text
    assert "<title>A &lt;title&gt;</title>" in text and text.count("</script>") == 2
    begin = np.frombuffer(base64.b64decode(data["begin"]))
    assert len(begin) == len(prof.trace) and "</script><b>block" in data["names"]
    links = np.frombuffer(base64.b64decode(data["link"]), np.int32)
    assert (links >= 0).sum() >= 15
    assert len(data["rows"]) == len(prof.key_averages()) and len(data["threads"]) == 1
    assert any("[[3, 4], [4, 2]]" in note["shapes"] for note in data["notes"])


def test_notebooks_show_it(prof):
    assert profile()._repr_html_() is None
    assert prof._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html&gt;')


def looked_at(text, wanted, tmp_path):
    """What the steps found, in a browser without a window."""
    text = text.replace("<head>", "<head>" + ERRORS, 1).replace(
        "</body>", STEPS.replace("WANTED", str(wanted)) + "</body>"
    )
    page = tmp_path / "steps.html"
    page.write_text(text, encoding="utf-8")
    command = [
        *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,900", "--dump-dom"),
        *(f"--user-data-dir={tmp_path / 'user'}", "--virtual-time-budget=20000", page.as_uri()),
    ]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout
    assert "data-error" not in shown.split(">")[1]
    import html

    return json.loads(html.unescape(re.search(r"<title>(.*?)</title>", shown, re.S)[1]))


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium to open the page in")
def test_a_browser_shows_zooms_searches_and_tells(tmp_path):
    """Where others had the processor in the midst of the recording, its events are too narrow to point at."""
    eventually(lambda: look_at_all(recorded(), tmp_path), within=600)


def look_at_all(prof, tmp_path):
    names = [prof.trace.names[number][0] for number in prof.trace.name.tolist()]
    wanted = names.index("aten::mm")
    found = looked_at(written(prof, tmp_path / "page.html"), wanted, tmp_path)
    assert "error" not in found, found
    assert found["slices"] > 20 and found["boxes"] > 3
    assert found["hit"] == wanted and found["tip"].startswith("aten::mm\n")
    assert "[[3, 4], [4, 2]]" in found["tip"] and "test_pages.py" in found["tip"] and "memory" in found["tip"]
    assert found["zoomed"] == pytest.approx(0.8) and found["moved"] and found["whole"] and found["narrow"]
    assert found["matched"] == sum("exp" in name.lower() for name in names)
    assert found["found"].startswith(f"{found['matched']} events, ")
    assert found["selected"] == next(i for i, name in enumerate(names) if "exp" in name.lower())
    assert found["rows"] == len(prof.key_averages())
    assert int(found["calls"]) == max(row.count for row in prof.key_averages())


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium to open the page in")
def test_a_browser_draws_many_events_quickly(tmp_path):
    x = taeda.ones(2)
    with profile() as prof:
        for _ in range(100_000):
            x.exp()
            x.add(x)
    assert len(prof.trace) == 200_000

    def drawn():
        found = looked_at(written(prof, tmp_path / "page.html"), 0, tmp_path)
        assert "error" not in found and found["matched"] == 100_000
        assert found["frame"] < 200  # milliseconds, where others leave it the processor now and then

    eventually(drawn)
