"""First-party providers pass their slots' suites, and defects planted in providers are found and named."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import taeda_registry
from taeda_registry.interface import interface
from taeda_registry.submodules import submodule
from taeda_tensor_core import library
from taeda_testing.conformance import Outcome, check_module
from taeda_testing.conformance.capability import KNOWN
from taeda_testing.suites import SLOTS

ROOT = Path(__file__).parents[1]


def test_backends_declare_what_the_kit_knows():
    assert set(library.CAPABILITIES) == set(KNOWN)


@pytest.mark.parametrize("slot", SLOTS)
def test_first_party_provider_conforms(slot, tmp_path):
    file = tmp_path / "report.json"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TAEDA_")}
    result = subprocess.run(
        [sys.executable, "-m", "taeda_testing", "provider", slot, "--json", str(file)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    report = json.loads(file.read_text())
    assert report["scores"]["all"]["percent"] == 100.0
    assert report["lacks"] == {}


def variant(slot, **changes):
    """The slot's provider with some names replaced; a change of None leaves the name out."""
    real = taeda_registry.resolve(slot)
    module = ModuleType(f"defective_{slot}")
    module.__dict__.update({name: value for name, value in vars(real).items() if not name.startswith("__")})
    module.__dict__.update({name: submodule(real, name) for name in interface(slot).submodules})
    for name, value in changes.items():
        if value is None:
            del module.__dict__[name]
        else:
            setattr(module, name, value)
    return module


def failed(slot, module):
    """Names of the behaviours that failed or are missing."""
    report = check_module(slot, module)
    return {item.name for item in report.items if item.outcome in (Outcome.FAILED, Outcome.MISSING)}


def test_the_suites_pass_unchanged_variants():
    for slot in SLOTS:
        assert failed(slot, variant(slot)) == set(), slot


def optim_defects():
    optim = taeda_registry.resolve("optim")

    class NoDecay(optim.SGD):
        def __init__(self, params, lr=1e-3, weight_decay=0, **options):
            super().__init__(params, lr, **options)

    class CoupledAdamW(optim.Adam):
        def __init__(self, params, weight_decay=0.01, **options):
            super().__init__(params, weight_decay=weight_decay, **options)

    class Forgetful(optim.Adam):
        def state_dict(self):
            return {**super().state_dict(), "state": {}}

        def load_state_dict(self, state_dict):
            super().load_state_dict(state_dict, strict=False)

    class Sticky(optim.SGD):
        def zero_grad(self, set_to_none=True):
            pass

    class Deaf(optim.SGD):
        def step(self, closure=None):
            super().step(closure)

    return [
        ({"SGD": NoDecay}, {"plain descent", "momentum"}),
        ({"AdamW": CoupledAdamW}, {"decoupled weight decay"}),
        ({"Adam": Forgetful}, {"state round trip"}),
        ({"SGD": Sticky}, {"clearing gradients"}),
        ({"SGD": Deaf}, {"closures"}),
        ({"lr_scheduler": None}, {"lr_scheduler", "imports", "schedules"}),
        ({"lr_scheduler": vars(optim)["lr_scheduler"].StepLR}, {"lr_scheduler", "imports", "schedules"}),
    ]


def data_defects():
    data = taeda_registry.resolve("data")

    class Greedy(data.DataLoader):
        def __iter__(self):
            return iter(list(super().__iter__())[:-1])

    class Unseeded(data.DataLoader):
        def __init__(self, dataset, generator=None, **options):
            super().__init__(dataset, **options)

    class Silent(data.DataLoader):
        def __iter__(self):
            try:
                yield from super().__iter__()
            except Exception as error:
                raise RuntimeError("worker failed") from error

    return [
        ({"DataLoader": Greedy}, {"order and batches"}),
        ({"DataLoader": Unseeded}, {"seeds"}),
        ({"DataLoader": Silent}, {"errors of the data set"}),
        ({"default_collate": lambda batch: list(batch)}, {"dtypes of batches", "collating containers"}),
        ({"random_split": lambda d, n, generator=None: [data.Subset(d, range(7))] * 2}, {"random splits"}),
    ]


def nn_defects():
    nn = taeda_registry.resolve("nn")

    class Squared(nn.MSELoss):
        def forward(self, x, y):
            return super().forward(x, y) * 2

    class Awake(nn.Dropout):
        def forward(self, x):
            return nn.functional.dropout(x, self.p, True)

    class Biased(nn.BatchNorm2d):
        def forward(self, x):
            out = super().forward(x)
            self.running_var.fill_(1)
            return out

    return [
        ({"MSELoss": Squared}, {"losses"}),
        ({"Dropout": Awake}, {"dropout"}),
        ({"BatchNorm2d": Biased}, {"batch norms"}),
        ({"Sigmoid": nn.Tanh}, {"activations"}),
        ({"LSTM": None}, {"LSTM", "recurrent layers"}),
        ({"functional": loaded_again(nn.functional)}, {"imports"}),
    ]


def loaded_again(module):
    """A second module of the same file, as an import by another path makes one."""
    spec = importlib.util.spec_from_file_location("a_second_functional", module.__file__)
    made = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def autograd_defects():
    autograd = taeda_registry.resolve("autograd")

    def doubled(*args, **options):
        return tuple(g if g is None else g * 2 for g in autograd.grad(*args, **options))

    class Ignored:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return False

        def __call__(self, function):
            return function

    return [
        ({"grad": doubled}, {"gradients as results", "intermediate results", "gradients of gradients"}),
        ({"no_grad": Ignored}, {"switching off"}),
        ({"backward": lambda tensors: None}, {"backward of a scalar"}),
    ]


def multiprocessing_defects():
    import multiprocessing

    part = taeda_registry.resolve("multiprocessing")

    def careless(*args, join=True, **options):
        context = part.start_processes(*args, join=False, **options)
        for process in context.processes:
            process.join()
        return None if join else context

    return [
        # Python's own queue, whose thread sends copies.
        ({"get_context": multiprocessing.get_context}, {"views of one memory arrive as such"}),
        ({"start_processes": careless}, {"errors of processes", "ends of processes"}),
        ({"set_sharing_strategy": lambda name: None}, {"strategies"}),
        ({"Queue": None}, {"Queue", "views of one memory arrive as such"}),
    ]


def profiler_defects():
    part = taeda_registry.resolve("profiler")

    class Forgetful(part.profile):
        def __exit__(self, *_):
            super().__exit__(None, None, None)
            return True

    class Unnamed:
        def __init__(self, name, args=None):
            self._mark = part.record_function("block")

        def __enter__(self):
            return self._mark.__enter__()

        def __exit__(self, *exception):
            return self._mark.__exit__(*exception)

    return [
        ({"profile": Forgetful}, {"errors go through"}),
        ({"record_function": Unnamed}, {"blocks have names and are counted", "traces", "single events"}),
        ({"schedule": lambda **steps: lambda step: part.ProfilerAction.RECORD}, {"plans", "steps of a plan"}),
        ({"tensorboard_trace_handler": lambda folder, worker_name: print}, {"folders of traces"}),
        ({"supported_activities": set}, {"activities"}),
        ({"supported_activities": None}, {"supported_activities", "activities"}),
    ]


def tensor_defects():
    tensor = taeda_registry.resolve("tensor")
    return [
        ({"relu": lambda x: tensor.where(x > 0, x, tensor.zeros_like(x))}, {"functions"}),
        ({"cat": lambda tensors, dim=0: tensor.cat(tensors, 0)}, {"joining"}),
        ({"from_numpy": lambda a: tensor.tensor(a)}, {"numpy shares memory"}),
        ({"manual_seed": lambda seed: None}, {"randomness"}),
        ({"softmax": lambda x, dim: tensor.softmax(x, 0)}, {"network functions"}),
        ({"matmul": None}, {"matmul", "products"}),
        ({"zeros": lambda *size, **o: tensor.ones(*size, **o)}, {"creation", "views", "subclasses"}),
    ]


@pytest.mark.parametrize(
    "slot, defects",
    [
        ("optim", optim_defects),
        ("data", data_defects),
        ("nn", nn_defects),
        ("autograd", autograd_defects),
        ("tensor", tensor_defects),
        ("multiprocessing", multiprocessing_defects),
        ("profiler", profiler_defects),
    ],
)
def test_planted_defects_are_found(slot, defects):
    for changes, expected in defects():
        found = failed(slot, variant(slot, **changes))
        assert expected <= found, (changes, found)
