"""Plain pickles of modules with hooks, and of schedules with functions: each library reads what the other wrote."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="half of the pickles are PyTorch's")

BEGIN = """
import pickle, sys, types, warnings
warnings.simplefilter("ignore")
if sys.argv[2] == "taeda":
    import taeda
    sys.modules["torch"] = taeda
import torch
from torch import nn
from torch.nn.utils import prune, remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm
sys.modules["their_hooks"] = hooks = types.ModuleType("their_hooks")
exec('''
def pre(module, args): return (args[0] * 2,)
def pre_named(module, args, kwargs): return args, {**kwargs}
def after(module, args, kwargs, output): return output + 1
def backward(module, grads, outputs): return (grads[0] * 3,)
def last(module, grads, outputs): module.met = True
def before_backward(module, outputs): return (outputs[0] * 5,)
def saving(module, prefix, keep): module.saving = True
def saved(module, state, prefix, metadata): state[prefix + "more"] = 3
def loading(module, state, prefix, *rest): module.loading = state.pop(prefix + "more")
def loaded(module, keys): module.loaded = True
''', vars(hooks))
"""

WRITE = """
x = torch.randn(4, 8)
pruned, twice = nn.Linear(8, 3), nn.Linear(8, 3)
prune.l1_unstructured(pruned, "weight", 0.5)
prune.random_unstructured(twice, "weight", 0.3)
prune.ln_structured(twice, "weight", 0.3, n=2, dim=0)
prune.custom_from_mask(twice, "bias", torch.tensor([1.0, 0.0, 1.0]))
own, old = nn.Linear(8, 3), nn.Linear(8, 3)
handles = [
    own.register_forward_pre_hook(hooks.pre), own.register_forward_pre_hook(hooks.pre_named, with_kwargs=True),
    own.register_forward_hook(hooks.after, with_kwargs=True, always_call=True),
    own.register_full_backward_hook(hooks.backward), own.register_full_backward_pre_hook(hooks.before_backward),
    own.register_state_dict_pre_hook(hooks.saving), own.register_state_dict_post_hook(hooks.saved),
    own.register_load_state_dict_pre_hook(hooks.loading), own.register_load_state_dict_post_hook(hooks.loaded),
]
old.register_backward_hook(hooks.last)
made = {
    "length": (weight_norm(nn.Linear(8, 3)), x), "whole": (weight_norm(nn.Conv1d(4, 3, 2), dim=None), x[None]),
    "spectral": (spectral_norm(nn.Linear(8, 3)), x), "pruned": (pruned, x), "twice": (twice, x),
    "own": (own, x), "old": (old, x),
}
made = {name: (layer.eval(), x, layer(x).detach()) for name, (layer, x) in made.items()}
lazy = nn.LazyLinear(3), nn.Sequential(nn.LazyConv1d(3, 2), nn.LazyBatchNorm1d())
cycles = []
for mode in ("triangular", "triangular2", "exp_range"):
    stepper = torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=0.1, momentum=0.9)
    cycles.append(torch.optim.lr_scheduler.CyclicLR(stepper, 0.1, 1.0, 2, mode=mode, gamma=0.9))
text = pickle.dumps((made, handles, lazy, cycles, torch.max(x, 0), torch.linalg.slogdet(x[:, :4])))
assert b"taeda" not in text, text[text.index(b"taeda") :][:80]
open(sys.argv[1], "wb").write(text)
"""

READ = """
made, handles, lazy, cycles, greatest, logarithm = pickle.loads(open(sys.argv[1], "rb").read())
assert type(greatest) is torch.return_types.max and len(greatest.values) == 8
assert type(logarithm) is torch.return_types.linalg_slogdet and repr(logarithm).startswith("torch.return_types.linalg")
for name, (layer, x, output) in made.items():
    torch.testing.assert_close(layer(x), output, atol=1e-5, rtol=1e-5, msg=name)
own, x, _ = made["own"]
x = x.clone().requires_grad_()
own(x).sum().backward()
torch.testing.assert_close(x.grad, own.weight.detach().sum(0).mul(2 * 3 * 5).expand(4, 8))
made["old"][0](x).sum().backward()
assert made["old"][0].met and made["old"][0]._is_full_backward_hook is False and own._is_full_backward_hook
state = own.state_dict()
own.load_state_dict(state)
assert own.saving and own.loading == 3 and own.loaded and sorted(state) == ["bias", "more", "weight"]
kept = [
    getattr(own, f"_{name}") for name in (
        "forward_hooks", "forward_hooks_with_kwargs", "forward_hooks_always_called", "forward_pre_hooks",
        "forward_pre_hooks_with_kwargs", "backward_hooks", "backward_pre_hooks", "state_dict_hooks",
        "state_dict_pre_hooks", "load_state_dict_pre_hooks", "load_state_dict_post_hooks",
    )
]
assert all(map(len, kept)) and isinstance(handles[0], torch.utils.hooks.RemovableHandle)
for handle in handles:
    handle.remove()
assert not any(map(len, kept))
spectral = made["spectral"][0]
spectral.load_state_dict(spectral.state_dict())
remove_spectral_norm(spectral)
remove_weight_norm(made["length"][0])
prune.remove(made["pruned"][0], "weight")
prune.remove(made["twice"][0], "weight")
for name in ("spectral", "length", "pruned", "twice"):
    layer, x, output = made[name]
    torch.testing.assert_close(layer(x), output, atol=1e-5, rtol=1e-5, msg=name)
    assert type(layer.weight) is nn.Parameter
first, second = lazy
assert first(torch.ones(2, 5)).shape == (2, 3) and type(first) is nn.Linear and not first._forward_pre_hooks
second.load_state_dict(nn.Sequential(nn.Conv1d(4, 3, 2), nn.BatchNorm1d(3)).state_dict())
assert second(torch.ones(2, 4, 5)).shape == (2, 3, 4) and not second[0]._load_state_dict_pre_hooks
for _ in range(5):
    for cycle in cycles:
        cycle.optimizer.step()
        cycle.step()
torch.testing.assert_close([cycle.get_last_lr()[0] for cycle in cycles], [0.55, 0.325, 0.1 + 0.45 * 0.9**5])
"""


def run(source: str, *arguments: object) -> None:
    subprocess.run([sys.executable, "-c", BEGIN + source, *map(str, arguments)], check=True, timeout=600)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The pickles of both libraries."""
    found = {name: tmp_path_factory.mktemp("hooks") / f"{name}.pkl" for name in ("taeda", "torch")}
    for name, path in found.items():
        run(WRITE, path, name)
    return found


@pytest.mark.parametrize("writer", ["taeda", "torch"])
@pytest.mark.parametrize("reader", ["taeda", "torch"])
def test_what_one_wrote_is_read_by_the_other(written, reader, writer):
    run(READ, written[writer], reader)
