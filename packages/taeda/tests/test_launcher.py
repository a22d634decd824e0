"""Functions and programs in several processes: what they give, print, and how they fail."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

import taeda as torch
from taeda.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std, start_processes, to_map
from taeda.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure, record
from taeda.distributed.elastic.utils import get_env_variable_or_raise, get_socket_with_port, macros
from taeda.distributed.launcher import LaunchConfig, elastic_launch
from taeda.distributed.run import config_from_args, parse_args

sys.path.insert(0, str(Path(__file__).parent))
import launched_functions as functions

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and forks of POSIX")


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spawned processes find the functions."""
    here = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))


def config(processes: int = 2, **settings: object) -> LaunchConfig:
    given = {"max_restarts": 0, "start_method": "fork", "rdzv_backend": "c10d", **settings}
    return LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=processes, **given)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_results_by_rank(method: str) -> None:
    found = elastic_launch(config(start_method=method), functions.identity)("word")
    assert found == {0: ("word", 0, 2), 1: ("word", 1, 2)}


def test_processes_make_a_group_and_give_tensors() -> None:
    found = elastic_launch(config(start_method="spawn"), functions.total)(2.0)
    assert [value.tolist() for value in found.values()] == [[6.0] * 3] * 2


def test_results_larger_than_a_pipe() -> None:
    found = elastic_launch(config(), functions.large)()
    assert all(torch.equal(value, torch.arange(1_000_000.0)) for value in found.values())


def test_the_first_failure_ends_the_others_and_tells_its_traceback() -> None:
    begin = time.monotonic()
    with pytest.raises(
        ChildFailedError, match=r"(?s)fail FAILED.*rank 1: local rank 1 ended with exit code 1"
    ) as info:
        elastic_launch(config(), functions.fail)(1)
    assert time.monotonic() - begin < 60
    rank, failure = info.value.get_first_failure()
    assert rank == 1 and failure.exitcode == 1 and failure.signal_name() == "<N/A>"
    assert failure.message["message"] == "ValueError: on purpose"
    assert 'raise ValueError("on purpose")' in str(info.value)


def test_a_signal_is_told_by_its_name() -> None:
    with pytest.raises(ChildFailedError, match="ended with signal SIGKILL"):
        elastic_launch(config(1), functions.vanish)(int(signal.SIGKILL))


def test_all_are_started_again(tmp_path: Path) -> None:
    assert elastic_launch(config(max_restarts=2), functions.fail_once)(str(tmp_path)) == {0: 1, 1: 1}
    with pytest.raises(ChildFailedError, match="the first time"):
        elastic_launch(config(), functions.fail_once)(str(tmp_path))


def test_what_is_printed_goes_to_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    logs = DefaultLogsSpecs(str(tmp_path), redirects=Std.ALL, tee={0: Std.OUT})
    launch = config(logs_specs=logs, run_id="job", log_line_prefix_template="<${role_name} ${rank}> ")
    elastic_launch(launch, functions.speak)("word")
    for rank in (0, 1):
        (folder,) = tmp_path.glob(f"job_*/attempt_0/{rank}")
        assert (folder / "stdout.log").read_text() == f"word of {rank}\n"
        assert (folder / "stderr.log").read_text().endswith("a complaint\n")
    assert capfd.readouterr().out == "<default_role 0> word of 0\n"


def test_programs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    # A line in one piece: both processes write to the same place.
    line = "f\"{os.environ['RANK']} {sys.argv[1]}\\n\".encode()"
    code = f"import os, sys; os.write(1, {line}); sys.exit(int(sys.argv[2]))"
    found = elastic_launch(config(), sys.executable)("-c", code, "rank=${local_rank}", 0)
    assert found == {0: None, 1: None}
    assert sorted(capfd.readouterr().out.split("\n")) == ["", "0 rank=0", "1 rank=1"]
    with pytest.raises(ChildFailedError, match="exit code 3"):
        elastic_launch(config(1), sys.executable)("-c", code, "x", 3)


def test_waiting_for_a_while() -> None:
    context = start_processes(
        "sleep", time.sleep, {0: (600,)}, {0: {}}, DefaultLogsSpecs(), start_method="fork"
    )
    try:
        assert context.wait(timeout=0) is None and context.wait(timeout=0.1, period=0.02) is None
        (pid,) = context.pids().values()
        os.kill(pid, 0)
    finally:
        context.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_programs_that_end_between_two_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    class SeenLate(subprocess.Popen):  # type: ignore[type-arg]
        looked = False

        def poll(self) -> int | None:
            if not self.looked:
                self.looked = True
                super().wait()
                return None
            return super().poll()

    monkeypatch.setattr(subprocess, "Popen", SeenLate)
    assert elastic_launch(config(), sys.executable)("-c", "pass") == {0: None, 1: None}


def test_results_that_come_between_two_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    look = Connection.poll

    def look_and_dawdle(pipe: Connection, timeout: float = 0.0) -> bool:
        there = look(pipe, timeout)
        if not there:
            look(pipe, 60)
            time.sleep(0.5)  # in which the process ends
        return there

    monkeypatch.setattr(Connection, "poll", look_and_dawdle)
    assert elastic_launch(config(), functions.identity)("word") == {0: ("word", 0, 2), 1: ("word", 1, 2)}


def test_the_end_of_the_parent_ends_the_children(tmp_path: Path) -> None:
    program = f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from taeda.distributed.launcher import LaunchConfig, elastic_launch
        import time
        def main():
            open({str(tmp_path)!r} + "/" + __import__("os").environ["RANK"], "w").write(str(__import__("os").getpid()))
            time.sleep(600)
        elastic_launch(LaunchConfig(1, 1, 2, start_method="fork", max_restarts=0), main)()
    """
    import textwrap

    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stderr=subprocess.PIPE, text=True
    )
    limit = time.monotonic() + 60
    while len([f for f in tmp_path.iterdir() if f.read_text()]) < 2 and time.monotonic() < limit:
        time.sleep(0.02)
    parent.terminate()
    _, err = parent.communicate(timeout=60)
    assert "SignalException" in err
    for file in tmp_path.iterdir():
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.read_text()), 0)


@pytest.mark.skipif(not hasattr(signal, "SIGCHLD"), reason="there is no such signal")
def test_failures_are_told_where_ends_of_children_are_ignored(tmp_path: Path) -> None:
    program = tmp_path / "fails.py"
    program.write_text("import sys\nsys.exit(7)\n")
    command = [
        sys.executable,
        "-m",
        "taeda.distributed.run",
        "--standalone",
        "--nproc-per-node=2",
        str(program),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    )  # fmt: skip
    assert done.returncode != 0 and "exit" in done.stderr.lower() and "7" in done.stderr


def test_streams_in_words() -> None:
    assert Std.from_str("3") == Std.ALL and Std.from_str("0:1,2:2") == {0: Std.OUT, 2: Std.ERR}
    assert to_map({1: Std.ERR}, 3) == {0: Std.NONE, 1: Std.ERR, 2: Std.NONE}
    for wrong in ("4", "a", "0:", "0:1,"):
        with pytest.raises(ValueError, match="expected a number of 0 to 3"):
            Std.from_str(wrong)


def test_wrong_settings() -> None:
    with pytest.raises(ValueError, match="nproc_per_node is 0"):
        LaunchConfig(1, 1, 0)
    with pytest.raises(ValueError, match="max_nodes is 1, expected 2"):
        LaunchConfig(2, 1, 1)
    with pytest.raises(RuntimeError, match=r"local ranks \[0, 2\]"):
        start_processes("f", time.sleep, {0: (0,), 2: (0,)}, {0: {}, 2: {}}, DefaultLogsSpecs())
    with pytest.raises(ValueError, match="TAEDA_NOT_THERE required"):
        get_env_variable_or_raise("TAEDA_NOT_THERE")
    with pytest.raises(ValueError, match="'failures' is empty"):
        ChildFailedError("f", {})


def test_options_of_the_command_line() -> None:
    args = parse_args(
        ["--nnodes=1:2", "--nproc-per-node=3", "--rdzv-backend=c10d", "--rdzv-endpoint=host:1", "s.py", "-x"]
    )
    made, program, given = config_from_args(args)
    assert (made.min_nodes, made.max_nodes, made.nproc_per_node) == (1, 2, 3)
    assert made.rdzv_endpoint == "host:1" and program == sys.executable and given == ["-u", "s.py", "-x"]
    assert macros.substitute(["--local-rank=${local_rank}", 1], "2") == ["--local-rank=2", 1]
    with get_socket_with_port() as door:
        assert door.getsockname()[1] > 0


def test_exceptions_are_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(file))

    @record
    def divide(a: float) -> float:
        return 1 / a

    assert divide(2) == 0.5 and not file.exists()
    with pytest.raises(ZeroDivisionError):
        divide(0)
    assert json.loads(file.read_text())["message"]["message"].startswith("ZeroDivisionError: ")
    failure = ProcessFailure(0, 12, 1, str(file))
    assert "divide" in failure.message["extraInfo"]["py_callstack"]
    assert ProcessFailure(0, 12, -9, "none").message == "ended with signal SIGKILL"
