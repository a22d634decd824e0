"""The conformance kit: scores, reports, and defects planted in a backend that it has to find."""

from __future__ import annotations

import json
import os
import textwrap

import numpy as np
import pytest

from taeda_registry.slots import tensor
from taeda_testing import all_records
from taeda_testing.__main__ import main
from taeda_testing.conformance import (
    Item,
    Outcome,
    Problem,
    Report,
    Score,
    Skip,
    html,
    run_backend,
    run_backend_isolated,
    text,
)
from taeda_testing.conformance.backend import CHECKS
from taeda_testing.conformance.capability import KNOWN, Lacks
from taeda_testing.conformance.checks import Suite, close, equal, raises, run_check
from taeda_testing.conformance.devices import missing_kernel
from taeda_testing.conformance.operators import declared
from taeda_testing.runner import Failure, told_apart
from taeda_testing.suites import device as device_suite
from taeda_testing.suites import streams as stream_suite


def only(report, name):
    """The single item of a name."""
    (item,) = [item for item in report.items if item.name == name]
    return item


def spoil(monkeypatch, name, change):
    """Plants a defect: ``change`` gets the real function and gives the defective one."""
    monkeypatch.setattr(tensor, name, change(getattr(tensor, name)), raising=False)


def test_our_cpu_backend_conforms():
    report = run_backend("cpu")
    asynchronous = {check.name for check in stream_suite.CHECKS}
    left = [i for i in report.items if i.outcome != "passed" and i.name not in asynchronous]
    assert [(item.name, item.outcome, item.problems[:1]) for item in left] == []
    assert report.passed
    assert report.core.percent == report.everything.percent == 100.0


def test_every_operator_has_a_record_in_the_file_of_its_family():
    families = {record.name: record.family for record in all_records()}
    assert {name: op.family for name, op in declared().items() if families.get(name) != op.family} == {}


def test_records_name_behaviours_that_exist():
    named = {name for record in all_records() for name in record.behaviours}
    assert named and named <= {check.name for check in CHECKS}


def test_wrong_values_are_a_failure_with_the_smallest_call(monkeypatch):
    spoil(monkeypatch, "tanh", lambda real: lambda x, **o: real(x, **o) + (1 if x.numel() > 4 else 0))
    item = only(run_backend("cpu", only=["tanh"]), "tanh")
    assert item.outcome is Outcome.FAILED
    first = next(problem for problem in item.problems if problem.check == "forward float32")
    assert "float32[5]" in first.call
    assert first.expected != first.found
    assert first.times > 1


@pytest.mark.parametrize(
    ("name", "defect", "check"),
    [
        ("add", lambda real: lambda a, b, **o: real(a, b, **o).to(tensor.float64), "forward float32"),
        ("sum", lambda real: lambda x, **o: real(x, **{**o, "keepdim": False}), "forward float32"),
        ("exp", lambda real: lambda x, **o: real(x) if not o else real(x).clone(), "out= float32"),
        ("mul", lambda real: lambda a, b, **o: real(a.detach(), b, **o), "gradient float64"),
        ("sqrt", lambda real: lambda x, **o: real(x.contiguous().view(-1)).view(-1), "forward float32"),
        ("add", lambda real: lambda a, b, alpha=1, **o: real(a, b, **o), "forward int32"),
        ("floor", lambda real: lambda x, **o: (real(x, **o), x.detach().fill_(7))[0], "forward float64"),
        ("where", lambda real: lambda c, a, b: (real(c, a, b), b.detach().neg_())[0], "gradient float64"),
        ("nonzero", lambda real: lambda x: real(x).to("meta"), "forward float32"),
    ],
    ids=["dtype", "shape", "out", "gradient", "layout", "option", "input", "last input", "device"],
)
def test_defects_of_every_form_are_found(monkeypatch, name, defect, check):
    spoil(monkeypatch, name, defect)
    item = only(run_backend("cpu", only=[name]), name)
    assert item.outcome is Outcome.FAILED
    assert check in [problem.check for problem in item.problems]


def test_memory_that_forgets_is_found(monkeypatch):
    monkeypatch.setattr(device_suite, "put", lambda array, device, grad=False: tensor.zeros(array.shape))
    names = ["round trip", "copies", "advanced indexing"]
    report = run_backend("cpu", only=names)
    assert {item.name: item.outcome for item in report.items} == dict.fromkeys(names, Outcome.FAILED)


def test_what_a_device_has_no_function_for_is_lacking():
    names = [check.name for check in CHECKS if set(check.needs) & {"streams", "events", "pinned-memory"}]
    report = run_backend("cpu", only=names)
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    assert len(names) == 12 and {item.outcome for item in report.items} == {Outcome.SKIPPED}
    assert "device 'cpu' has no streams" in report.lacks["streams"]
    assert set(report.lacks) == {"streams", "events", "event-timing", "pinned-memory"}


def test_missing_kernels_and_functions_are_missing_not_failed(monkeypatch):
    def without_kernel(*_args, **_options):
        raise NotImplementedError(
            "exp: backend 'cpu' has no kernel for this operator; backends that have one: "
        )

    monkeypatch.setattr(tensor, "exp", without_kernel, raising=False)
    report = run_backend("cpu", only=["exp", "log"])
    assert only(report, "exp").outcome is Outcome.MISSING
    assert only(report, "exp").needs == ["exp"]
    assert only(report, "log").outcome is Outcome.PASSED
    assert (report.core.missing, report.core.passed) == (1, 1)
    assert not report.passed


def test_an_exception_is_a_failure_that_quotes_it(monkeypatch):
    def broken(*_args, **_options):
        raise ValueError("on purpose")

    monkeypatch.setattr(tensor, "log", broken, raising=False)
    item = only(run_backend("cpu", only=["log"]), "log")
    assert item.outcome is Outcome.FAILED
    assert all("ValueError: on purpose" in problem.found for problem in item.problems)


def test_fallbacks_do_not_count_as_passed(monkeypatch):
    calls = {"exp": 0}

    class Library:
        @staticmethod
        def fallback_counts(device):
            assert device == "cpu"
            return dict(calls)

        @staticmethod
        def lacks(device):
            return {"float64": "not in this test"}

    def counted(real):
        def call(*args, **options):
            calls["exp"] += 1
            return real(*args, **options)

        return call

    monkeypatch.setattr(tensor, "library", Library, raising=False)
    spoil(monkeypatch, "exp", counted)
    report = run_backend("cpu:0", only=["exp", "log"])
    assert only(report, "exp").outcome is Outcome.FALLEN_BACK
    assert only(report, "exp").fallbacks["exp"] > 10
    assert only(report, "log").outcome is Outcome.PASSED
    assert report.lacks["float64"] == "not in this test"
    assert {skip.capability for skip in only(report, "log").skips} == {"float64"}
    assert report.core.fallen_back == 1


def test_skips_are_tied_to_declared_capabilities():
    report = run_backend("cpu", {"complex": "reals only", "out": "no out="}, only=["mul"])
    item = only(report, "mul")
    assert item.outcome is Outcome.PASSED
    assert {skip.capability for skip in item.skips} == {"complex", "out"}
    everything = {dtype: "none" for dtype in KNOWN if dtype.startswith(("int", "uint", "float", "bool"))}
    skipped = run_backend("cpu", {**everything, "complex": "none"}, only=["mul"])
    assert only(skipped, "mul").outcome is Outcome.SKIPPED
    assert skipped.core.total == 0


def test_unknown_capabilities_and_devices_are_errors():
    with pytest.raises(ValueError, match=r"unknown capabilities \['speed'\]; expected some of: .*float64"):
        run_backend("cpu", {"speed": "slow"})
    with pytest.raises(RuntimeError, match="device 'no_such_device' cannot be used"):
        run_backend("no_such_device")


def test_lacks_takes_complex_as_a_whole():
    lacks = Lacks({"complex": "x"})
    assert lacks.first(["complex128"]) == "complex"
    assert lacks.first(["float32", "out"]) is None


def test_missing_kernel_looks_through_chained_errors():
    inner = NotImplementedError("add.out: backend 'my dev' has no kernel for this operator")
    outer = RuntimeError("training step failed")
    outer.__cause__ = inner
    assert missing_kernel(outer) == "add"
    assert missing_kernel(NotImplementedError("exp_: backend 'x' has no kernel")) == "exp"
    assert missing_kernel(NotImplementedError("fill_: backend 'x' has no kernel")) == "fill_"
    assert missing_kernel(NotImplementedError("float16 is not supported")) is None


def make_report():
    items = [
        Item("add", "core", "arith", checks=3),
        Item(
            "mul", "core", "arith", checks=1, problems=[Problem("forward float32", "mul(1 < 2)", "2", "3", 4)]
        ),
        Item("exp", "core", "unary", needs=["exp"], checks=1),
        Item("softplus", "composite", "unary", needs=["exp"], checks=1),
        Item("sum", "composite", "reduce", checks=2, fallbacks={"sum": 7}),
        Item("fft", "core", "fft"),
        Item("rnn", "composite", "rnn", skips=[Skip("forward", "recurrent")]),
    ]
    return Report(
        "backend", "mydev", {"python": "3"}, {"recurrent": "none"}, [item.settle() for item in items]
    )


def test_scores():
    report = make_report()
    assert report.core == Score(passed=1, failed=1, missing=1, untested=1)
    assert report.everything == Score(
        passed=1, failed=1, missing=1, waiting=1, fallen_back=1, untested=1, skipped=1
    )
    assert report.core.percent == 25.0
    assert report.everything.percent == 16.6
    assert Score(passed=999, failed=1).percent == 99.9
    assert Score(passed=9999, failed=1).percent == 99.9, "only all is 100"


def test_text_report_says_what_is_left():
    written = text.render(make_report())
    for words in ("core operators", "25.0%", "mul(1 < 2)", "expected 2", "found    3", "3 more calls"):
        assert words in written
    for words in ("no exp", "fell back: sum x7", "no record reaches it", "recurrent", "left to do: "):
        assert words in written
    assert "add [core" not in written
    assert "add [core" in text.render(make_report(), everything=True)


def test_json_report_holds_everything():
    data = json.loads(make_report().to_json())
    assert data["scores"]["core"]["percent"] == 25.0
    assert [item["outcome"] for item in data["items"]] == [
        "passed", "failed", "missing", "waiting", "fallen back", "untested", "skipped",
    ]  # fmt: skip
    assert data["items"][1]["problems"][0]["found"] == "3"


def test_differences_beyond_the_usual_digits_and_places_are_shown():
    expected = np.zeros(20, np.float64)
    found = expected.copy()
    found[13] = 1e-9
    wanted, there = told_apart(expected + 1, found + 1)
    assert wanted != there
    assert "from element 13:" in wanted and "1.000000001" in there
    assert told_apart(np.float32([1, 2]), np.float32([1, 3])) == (
        "float32[2] [1., 2.]",
        "float32[2] [1., 3.]",
    )


def test_an_operator_made_of_one_without_a_kernel_waits(monkeypatch):
    def without_kernel(*_args, **_options):
        raise NotImplementedError(
            "log1p: log: backend 'cpu' has no kernel for this operator; backends that have one: "
        )

    monkeypatch.setattr(tensor, "log1p", without_kernel, raising=False)
    item = only(run_backend("cpu", only=["log1p"]), "log1p")
    assert (item.outcome, item.needs) == (Outcome.WAITING, ["log"])


def test_what_needs_a_capability_is_left_out_whatever_it_is_given():
    report = run_backend("cpu", only=["fft_rfft"], lacks={"complex": "reals only"})
    item = only(report, "fft_rfft")
    assert item.outcome is Outcome.SKIPPED
    assert [(skip.check, skip.capability) for skip in item.skips] == [("all checks", "complex")]


def test_html_report_is_escaped():
    page = html.render(make_report())
    assert "mul(1 &lt; 2)" in page
    assert "<script" not in page


def test_command_line(tmp_path, capsys, monkeypatch):
    files = {kind: tmp_path / f"report.{kind}" for kind in ("json", "html", "text")}
    arguments = [item for kind, path in files.items() for item in (f"--{kind}", str(path))]
    assert main(["backend", "cpu", "--only", "exp", "--lacks", "complex=reals only", *arguments]) == 0
    assert "nothing is left to do" in capsys.readouterr().out
    assert json.loads(files["json"].read_text())["lacks"]["complex"] == "reals only"
    assert "exp" in files["html"].read_text()
    assert "core operators" in files["text"].read_text()
    spoil(monkeypatch, "exp", lambda real: lambda x, **o: real(x, **o) + 1)
    assert main(["backend", "cpu", "--only", "exp", "--in-process"]) == 1
    assert main(["backend", "no_such_device"]) == 2
    assert "cannot be used" in capsys.readouterr().err
    assert main(["provider", "tensor:nobody-has-this"]) == 2
    assert "tensor" in capsys.readouterr().err


def test_names_that_nobody_has_are_refused(capsys):
    for command in (["backend", "cpu", "--in-process"], ["backend", "cpu"], ["provider", "tensor"]):
        assert main([*command, "--only", "trainin"]) == 2
        assert "is named 'trainin'" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"no operator or behaviour is named 'ads'; did you mean .*'abs'"):
        run_backend("cpu", only=["exp", "ads"])


def test_reports_that_cannot_be_written_are_refused_before_the_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("taeda_testing.__main__.run_backend", lambda *_: pytest.fail("was run"))
    missing = tmp_path / "nowhere" / "report.html"
    assert main(["backend", "cpu", "--in-process", "--html", str(missing)]) == 2
    assert f"cannot write the report to '{missing}': No such file" in capsys.readouterr().err


PLUGIN = """
    from taeda_tensor_core.library import Backend

    backend = Backend("handmade")

    @backend.kernel("copy_same_")
    def copy(outputs, inputs):
        backend.array(inputs[0])[...] = backend.array(inputs[1])
"""


@pytest.mark.parametrize("how", ["handmade_device.py", "handmade_device"])
def test_plugins_need_not_be_installed(tmp_path, monkeypatch, capsys, how):
    (tmp_path / "handmade_device.py").write_text(textwrap.dedent(PLUGIN))
    monkeypatch.chdir(tmp_path)
    assert main(["backend", "handmade", "--load", how, "--only", "round trip"]) == 0
    assert "nothing is left to do" in capsys.readouterr().out
    assert main(["backend", "handmade", "--load", "nothing_here", "--only", "round trip"]) == 2
    assert "plug-in 'nothing_here' cannot be loaded: ModuleNotFoundError" in capsys.readouterr().err


def test_suites_refuse_checks_without_meaning():
    suite = Suite("optim")
    with pytest.raises(ValueError, match="no docstring"):
        suite.check()(lambda part: None)


def test_checks_compare():
    suite = Suite("optim")

    @suite.check(needs=["saving"])
    def adds(part):
        """One and one are two."""
        equal("1 + 1", part + 1, 2)

    (check,) = suite.checks
    assert run_check(check, Lacks({}), lambda: check.run(1)).outcome is Outcome.PASSED
    failed = run_check(check, Lacks({}), lambda: check.run(2))
    assert (failed.problems[0].call, failed.problems[0].expected, failed.problems[0].found) == (
        "1 + 1",
        "2",
        "3",
    )
    assert run_check(check, Lacks({"saving": "x"}), lambda: check.run(2)).outcome is Outcome.SKIPPED
    broken = run_check(check, Lacks({}), lambda: check.run("text"))
    assert "TypeError" in broken.problems[0].found


def test_helpers_fail_when_they_should():
    close("same", np.ones(2), [1, 1])
    with pytest.raises(Failure, match="shape"):
        close("shape", np.ones(2), [[1, 1]])
    with pytest.raises(Failure, match="value"):
        close("value", np.ones(2), [1, 2])
    with pytest.raises(Failure, match="found no error"), raises("quiet", ValueError):
        pass
    with pytest.raises(Failure, match="KeyError"), raises("another", ValueError):
        raise KeyError("x")
    with pytest.raises(Failure, match="naming"), raises("words", ValueError, words=["axis"]):
        raise ValueError("x")


CRASHING = """
    import os, time
    import taeda_tensor_core as t

    t.exp = lambda *_args, **_options: os.abort()
    t.log = lambda *_args, **_options: os._exit(3)
    t.sin = lambda *_args, **_options: time.sleep(1000)
    tanh = t.tanh
    t.tanh = lambda *args, **options: (os.write(1, b"noise on the standard output\\n"), tanh(*args, **options))[1]
"""


def test_a_crash_or_a_hang_costs_one_operator(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(textwrap.dedent(CRASHING))
    path = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{path}")
    report = run_backend_isolated(
        "cpu", {"gradients": "not here"}, ["cos", "exp", "log", "sin", "tanh"], timeout=25
    )
    found = {item.name: item.problems[0].found if item.problems else item.outcome for item in report.items}
    assert found == {
        "cos": Outcome.PASSED,
        "exp": "the process was ended by SIGABRT",
        "log": "the process ended with status 3",
        "sin": "no answer within 25 seconds",
        "tanh": Outcome.PASSED,
    }
    assert report.lacks["gradients"] == "not here"
    assert report.core.total == 5


@pytest.mark.parametrize("moment", ["atexit.register(os.abort)", "t.log = log"])
def test_a_process_that_ends_badly_costs_no_result(tmp_path, monkeypatch, moment):
    source = """
        import atexit, os, threading
        import taeda_tensor_core as t

        real = t.log
        def log(*args, **options):
            threading.Timer(0.2, os.abort).start()  # strikes outside the operator
            return real(*args, **options)
        MOMENT
    """
    (tmp_path / "sitecustomize.py").write_text(textwrap.dedent(source).replace("MOMENT", moment))
    path = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{path}")
    report = run_backend_isolated("cpu", {"gradients": "not here"}, ["exp", "log", "tanh"])
    found = {item.name: item.problems[0].found for item in report.items if item.problems}
    assert {item.name for item in report.items} >= {"exp", "log", "tanh"}
    assert set(found.values()) == {"the process was ended by SIGABRT"}
    if "atexit" in moment:
        assert list(found) == ["process"] and not report.passed


def test_isolated_and_direct_runs_agree():
    names = ["add", "sum", "round trip", "dropout"]
    isolated = run_backend_isolated("cpu", {"complex": "reals only"}, names)
    assert isolated.as_dict() == run_backend("cpu", {"complex": "reals only"}, names).as_dict()


def test_a_device_that_cannot_be_had_ends_the_isolated_run():
    with pytest.raises(RuntimeError, match="device 'no_such_device' cannot be used"):
        run_backend_isolated("no_such_device")
