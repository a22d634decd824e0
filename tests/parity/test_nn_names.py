"""The public names of torch.nn and torch.optim, with their arguments and defaults: present, or listed with a reason."""

import importlib
import inspect
import types
import warnings

import pytest

torch = pytest.importorskip("torch", reason="the reference is PyTorch")

import taeda  # noqa: E402, F401

FAMILIES = [f"torch.nn.modules.{name}" for name in (
    "activation", "adaptive", "batchnorm", "channelshuffle", "container", "conv", "distance", "dropout", "flatten",
    "fold", "instancenorm", "lazy", "linear", "linear_cross_entropy_options", "loss", "module", "normalization",
    "padding", "pixelshuffle", "pooling", "rnn", "sparse", "transformer", "upsampling",
)]  # fmt: skip
MODULES = [
    "torch.nn", "torch.nn.attention", "torch.nn.attention.bias", "torch.nn.functional", "torch.nn.init",
    "torch.nn.modules", *FAMILIES, "torch.nn.parallel", "torch.nn.parameter", "torch.nn.utils",
    "torch.nn.utils.clip_grad", "torch.nn.utils.convert_parameters", "torch.nn.utils.fusion", "torch.nn.utils.init",
    "torch.nn.utils.memory_format", "torch.nn.utils.parametrizations", "torch.nn.utils.parametrize",
    "torch.nn.utils.prune", "torch.nn.utils.rnn", "torch.nn.utils.spectral_norm", "torch.nn.utils.stateless",
    "torch.nn.utils.weight_norm", "torch.optim", "torch.optim.lr_scheduler", "torch.optim.optimizer",
    "torch.optim.swa_utils",
]  # fmt: skip

# What is not there, and why.
ABSENT = {
    "torch.nn.utils.rnn.PackedSequence_": "the tuple below PackedSequence, an implementation's",
    "torch.nn.utils.rnn.bind": "a helper of PyTorch's implementation",
}
# Arguments that PyTorch alone has.
OTHER_ARGUMENTS = {"_stacklevel", "destination", "out"}


def is_public(module, name, value):
    """Whether a name is the module's own, rather than something that it imports from Python or from torch."""
    if name.startswith("_") or inspect.ismodule(value):
        return False
    listed = getattr(module, "__all__", None)
    if listed is not None and name in listed:
        return True
    home = getattr(value, "__module__", None) or ""
    if not isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        return False
    return home.startswith(module.__name__) and home.startswith(("torch.nn", "torch.optim"))


def public_names():
    found = []
    for path in MODULES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = importlib.import_module(path)
            found += [
                f"{path}.{name}"
                for name in sorted(vars(module))
                if is_public(module, name, getattr(module, name))
            ]
    return found


def ours(qualified):
    path, _, name = qualified.rpartition(".")
    try:
        module = importlib.import_module("taeda" + path.removeprefix("torch"))
    except ModuleNotFoundError:
        return None
    return getattr(module, name, None)


def theirs(qualified):
    path, _, name = qualified.rpartition(".")
    return getattr(importlib.import_module(path), name)


@pytest.mark.parametrize("path", MODULES)
def test_every_name_is_there_or_has_a_reason(path):
    missing = {q for q in public_names() if q.rpartition(".")[0] == path and ours(q) is None}
    assert missing == {q for q in ABSENT if q.rpartition(".")[0] == path}


def arguments(function):
    """Names and defaults; None where they cannot be told."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    return {p.name: p.default for p in parameters if p.kind is not p.VAR_KEYWORD}


def plain(value):
    return value is None or isinstance(value, (bool, int, float, str, tuple))


@pytest.mark.parametrize("path", MODULES)
def test_arguments_and_defaults_are_pytorchs(path):
    problems = []
    for qualified in public_names():
        mine = ours(qualified)
        if qualified.rpartition(".")[0] != path or mine is None or not callable(mine):
            continue
        given, expected = arguments(mine), arguments(theirs(qualified))
        if given is None or expected is None:
            continue
        names = [name for name in expected if name not in OTHER_ARGUMENTS]
        kept = [name for name in given if name in expected and name not in OTHER_ARGUMENTS]
        if kept != names:
            problems.append(f"{qualified}: arguments {list(given)}, expected {names}")
        for name in kept:
            one, other = given[name], expected[name]
            if plain(one) and plain(other) and one != other:
                problems.append(f"{qualified}: {name}={one!r}, expected {other!r}")
    assert not problems, "\n".join(problems)
