"""The example devices conform, as installed; and the kit finds what is wrong with an asynchronous device."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

LACKS = {
    "numpy": {"streams", "events", "event-timing", "pinned-memory"},
    "sim": {"bfloat16", "complex", "sharing", "uint64"},
}


@pytest.fixture
def both(sim):
    """A site with both example devices."""
    sim.example("taeda-backend-numpy")
    return sim


def test_the_example_devices_conform(both):
    program = """
        from taeda_testing.__main__ import main
        raise SystemExit(main(["backend", {device!r}, "--json", "{device}.json"]))
    """
    # Side by side: one after the other they would take a minute.
    with ThreadPoolExecutor(len(LACKS)) as pool:
        runs = list(pool.map(lambda device: both.run(program.format(device=device), limit=1800), LACKS))
    for device, run in zip(LACKS, runs, strict=True):
        assert run.stdout.startswith(f"conformance of backend {device}\n"), run.stdout + run.stderr
        report = json.loads((both.folder / "work" / f"{device}.json").read_text())
        assert report["scores"]["core"]["percent"] == 100, run.stdout
        assert report["scores"]["all"]["percent"] >= 95, run.stdout
        assert set(report["lacks"]) == LACKS[device]


# What is wrong, and a check that says so.
DEFECTS = {
    "taeda.Event.synchronize = lambda self: None": "events behind copies",
    "taeda.Event.query = lambda self: True": "events behind copies",
    "taeda.Stream.wait_event = lambda self, event: None": "streams wait for streams",
    "taeda.Stream.synchronize = lambda self: None": "waiting for the device",
    "real = taeda.synchronize; taeda.synchronize = taeda_tensor_core.synchronize = lambda device: None": (
        "waiting for the device"
    ),
    "taeda.Event.elapsed_time = lambda self, end: 1.0": "times between events",
    "taeda.Stream.__exit__ = lambda self, *_: None": "streams of threads",
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_defects_of_asynchronous_devices_are_found(sim, defect):
    program = f"""
        import taeda, taeda_tensor_core
        from taeda_testing.conformance import run_backend
        {defect}
        (item,) = run_backend("sim", only=[{DEFECTS[defect]!r}]).items
        print(item.outcome)
    """
    assert sim.lines(program) == ["failed"]
