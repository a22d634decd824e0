"""Order in which a provider is chosen."""

from __future__ import annotations

import pytest

SHOW = """
from taeda_registry.slots import optim
print(optim.NAME)
"""


def write_project(sandbox, provider):
    sandbox.work.joinpath("pyproject.toml").write_text(f"[tool.taeda]\noptim = {provider!r}\n")


@pytest.fixture
def three(lion):
    lion.module("taeda_optim", "NAME = 'first party'")
    lion.module("other_optim", "NAME = 'other'")
    return lion


def test_first_party_is_the_default(three):
    assert three.program(SHOW) == "first party"


def test_project_file_beats_the_default(three):
    write_project(three, "lion")
    assert three.program(SHOW) == "lion"


def test_environment_beats_the_project_file(three):
    write_project(three, "lion")
    assert three.program(SHOW, TAEDA_OPTIM="other_optim") == "other"
    assert three.program(SHOW, TAEDA_OPTIM="taeda") == "first party"


def test_empty_variable_counts_as_unset(three):
    assert three.program(SHOW, TAEDA_OPTIM=" ") == "first party"


def test_use_beats_the_environment(three):
    chosen = "import taeda_registry; taeda_registry.use('optim', 'lion')" + SHOW
    assert three.program(chosen, TAEDA_OPTIM="other_optim") == "lion"


def test_use_takes_a_module_object(three):
    chosen = "import other_optim, taeda_registry; taeda_registry.use('optim', other_optim)" + SHOW
    assert three.program(chosen) == "other"


def test_use_may_change_until_first_use(three):
    chosen = "from taeda_registry import use; use('optim', 'lion'); use('optim', 'other_optim')" + SHOW
    assert three.program(chosen) == "other"


def test_use_after_first_use_is_an_error_that_names_both(three):
    text = three.failure(SHOW + "import taeda_registry; taeda_registry.use('optim', 'lion')")
    assert "RegistryError" in text
    assert "already in use with provider 'taeda' (taeda_optim)" in text
    assert "'lion'" in text


def test_use_of_what_is_active_is_allowed(three):
    again = "import taeda_registry\nfor name in ('taeda', 'taeda_optim'): taeda_registry.use('optim', name)"
    assert three.program(SHOW + again) == "first party"


@pytest.mark.parametrize("provider", ["3", "None", "''"])
def test_use_refuses_what_is_no_provider(sandbox, provider):
    text = sandbox.failure(f"import taeda_registry; taeda_registry.use('optim', {provider})")
    assert "TypeError: use: provider of slot 'optim' must be a name or a module" in text


@pytest.mark.parametrize(
    "content",
    ["[tool.taeda\n", "[tool.taeda]\noptim = 3\n", "[tool]\ntaeda = 3\n", "[[tool.taeda]]\noptim = 'x'\n"],
)
def test_broken_project_file_is_named(three, content):
    project = three.work / "pyproject.toml"
    project.write_text(content)
    text = three.failure(SHOW)
    assert "RegistryError" in text
    assert str(project) in text


def test_unrelated_project_file_is_ignored(three):
    three.work.joinpath("pyproject.toml").write_text("this is not TOML")
    assert three.program(SHOW) == "first party"


def test_project_file_without_a_table_of_tools_is_ignored(three):
    three.work.joinpath("pyproject.toml").write_text("tool = 'taeda'\n")
    assert three.program(SHOW) == "first party"


def test_unknown_slot_in_the_project_file_is_told_once(three):
    three.work.joinpath("pyproject.toml").write_text("[tool.taeda]\noptm = 'lion'\n")
    watched = (
        "import warnings\nwith warnings.catch_warnings(record=True) as seen:\n    warnings.simplefilter('always')\n"
        "    from taeda_registry.selection import choose\n    choose('optim'), choose('data')\n"
        "print(*(w.message for w in seen), sep='|')"
    )
    text = three.program(watched)
    assert text.count("no slot is called 'optm'") == 1 and "did you mean 'optim'?" in text


WATCHED = """
import warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter('always')
    from taeda_registry.selection import choose
    choose('optim'), choose('data')
print(*(w.message for w in seen), sep='|')
"""


def test_a_mistyped_variable_is_told_once(three):
    text = three.program(WATCHED, TAEDA_OPTIMM="lion")
    assert text == (
        "environment variable TAEDA_OPTIMM: no slot is called 'optimm', it has no effect; did you mean 'optim'?"
    )


def test_variables_of_others_are_left_alone(three):
    assert three.program(WATCHED, TAEDA_SIM_FAIL="kernel:1", TAEDA_DATA_DIR="/tmp", TAEDA_OPTIM="taeda") == ""
