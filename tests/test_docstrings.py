"""Examples in docstrings give what they show. One that speaks of a program's own names ends at the first of them."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PACKAGES = sorted(path.parent.name for path in Path(__file__).parents[1].glob("packages/*/src/*/__init__.py"))
PROGRAM = r"""
import doctest, importlib, math, pkgutil, re, sys, warnings
import numpy as np
import taeda

warnings.simplefilter("ignore")
NUMBER = re.compile(r"-?\d+\.\d*(?:e[-+]?\d+)?")
# TensorBoard's files are written by a package that need not be there; other programs of several processes block.
LEFT_OUT = re.compile(r"__main__|tensorboard|\.distributed\b|\.lib\w+$")


class Close(doctest.OutputChecker):
    "Numbers may differ in their last digits: kernels of other instruction sets round otherwise."

    def check_output(self, want, got, flags):
        if super().check_output(want, got, flags):
            return True
        texts = [" ".join(NUMBER.sub("#", text).split()) for text in (want, got)]
        numbers = [[float(found) for found in NUMBER.findall(text)] for text in (want, got)]
        same = texts[0] == texts[1] and len(numbers[0]) == len(numbers[1])
        return same and all(math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-7) for a, b in zip(*numbers))


class Runner(doctest.DocTestRunner):
    wrong, run_through = [], 0

    def report_failure(self, out, test, example, got):
        self.wrong.append(f"{test.name}: {example.source}shows {example.want}gives {got}")

    def report_unexpected_exception(self, out, test, example, error):
        if error[0] is not NameError:
            self.wrong.append(f"{test.name}: {example.source}raises {error[0].__name__}: {error[1]}")


def modules(name):
    package = importlib.import_module(name)
    yield package
    for found in pkgutil.walk_packages(package.__path__, name + ".", onerror=lambda _: None):
        if not LEFT_OUT.search(found.name):
            yield importlib.import_module(found.name)


usual = {"taeda": taeda, "torch": taeda, "nn": taeda.nn, "F": taeda.nn.functional, "optim": taeda.optim, "np": np}
seen, count = set(), 0
for module in modules(sys.argv[1]):
    for test in doctest.DocTestFinder().find(module, module.__name__, module=module, globs={}):
        if test.examples and (test.filename, test.lineno) not in seen:
            seen.add((test.filename, test.lineno))
            test.globs = {**vars(module), **usual}
            Runner(Close(), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(test, out=lambda _: None)
            count += 1
print("\n".join(Runner.wrong) or f"{count} docstrings")
sys.exit(bool(Runner.wrong))
"""


@pytest.mark.parametrize("package", PACKAGES)
def test_examples_give_what_they_show(package, tmp_path):
    if find_spec(package) is None:
        pytest.skip("is not installed")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, package],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "TAEDA_CUDA_DRIVER": "simulated"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[-2]) > 0
