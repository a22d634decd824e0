"""Ctrl-C between any two calls inside the library: no mode stays on, no level open, nothing half-changed.

Python raises KeyboardInterrupt where a call begins or ends. A profile function raises it there in its place: after the
n-th call of the library's Python in a program, for each n (or every so many), in one child process for each program.
"""

import subprocess
import sys
import textwrap

import pytest

CHILD = '''
import dis, faulthandler, sys
faulthandler.dump_traceback_later(500, exit=True)
import taeda as t
from taeda import nn
import taeda.autograd.forward_ad as forward_ad
import taeda.nn.utils.parametrize as parametrize
from taeda.overrides import TorchFunctionMode, _get_current_function_mode_stack
from taeda.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
weight = model[0].weight
x = t.ones(1, 3)
loaded = nn.Module()
built = nn.ModuleList()  # by the program, where it builds something
random_stays = False  # where it draws nothing outside a fork

class Stopped(Exception):
    """What the handler of another signal raises."""

class Passing(nn.Module):
    def forward(self, value):
        return value * 1

def broken():
    """What is wrong with what the program built: members without a value or a name, holes, layers that do not run."""
    wrong = [n for n, place in enumerate(built._modules) if place != str(n)]
    for module in built.modules():
        named = dict(module._parameters) | dict(module._buffers) | dict(module._modules)
        wrong += [n for n, value in vars(module).items() if isinstance(value, nn.Module) and n not in named]
    for layer in built:  # what stands in the place of a weight, and the hook that computes it
        parts = any(name in layer._parameters for name in ("weight_v", "weight_orig"))
        hooks = sum(hasattr(hook, "apply") for hook in layer._forward_pre_hooks.values())
        if parts != hooks or (parts and "weight" in layer._parameters):
            wrong.append(layer)
    values = {{float(value.sum()) / value.numel() == 7 for value in loaded.state_dict().values()}}
    wrong += [values] if len(values) > 1 else []
    wrong += [layer for layer in built if layer(x).shape[0] != 1 or isinstance(layer, nn.LazyLinear)]
    return wrong

def free(block):
    """Whether nobody is in a block of which there is one at a time."""
    try:
        with block():
            return True
    except RuntimeError:
        return False

def kept():
    """Whether a result is kept for backward as it is."""
    y = t.ones(2, requires_grad=True).exp()
    return y.grad_fn._saved_result.data_ptr() == y.data_ptr()

def state():
    return {{
        "gradients": (t.is_grad_enabled(), t.is_inference_mode_enabled(), t.is_anomaly_enabled()),
        "autocast": (t.is_autocast_enabled("cpu"), t.get_autocast_dtype("cpu"), t.is_autocast_cache_enabled()),
        "modes": (len(_get_current_function_mode_stack()), len(_get_current_dispatch_mode_stack())),
        "defaults": (t.get_default_dtype(), str(t.ones(1).device), repr(t.ones(2) / 3)),
        "transforms": t._C._functorch.maybe_current_level(),
        "traced": (t.jit.is_tracing(), nn.Module.__call__, nn.Module.__dict__.get("__getattr__")),
        "members": (model[0].weight is weight, [*model.state_dict()], [*model[0]._parameters]),
        "built": broken(),
        "saved": kept(),
        "random": random_stays and t.random.get_rng_state().tolist(),
        "one at a time": (free(forward_ad.dual_level), free(t.profiler.profile)),
    }}

CALLS = {{dis.opmap["CALL"], dis.opmap["CALL_FUNCTION_EX"]}}
ENDS = ("__exit__", "_leave_device", "leave")  # before their first step nothing can be done

class Interrupt:
    """Raises at the n-th place where Python would."""

    def __init__(self, at):
        self.at, self.count, self.where = at, 0, None

    def __call__(self, frame, event, arg):
        if event == "call":
            if frame.f_code.co_name in ENDS or frame.f_code.co_flags & 0x20:
                return
        elif event == "return":
            frame = frame.f_back
            if frame is None or frame.f_code.co_code[frame.f_lasti] not in CALLS:
                return
        elif event != "c_return":
            return
        if "taeda" not in frame.f_globals.get("__name__", ""):
            return
        self.count += 1
        if self.count == self.at:
            self.where = f"{{frame.f_code.co_filename}}:{{frame.f_lineno}} {{event}}"
            sys.setprofile(None)
            raise {raised}

def run(interrupt):
    sys.setprofile(interrupt)
    try:
        program()
    except {raised}:
        pass
    finally:
        sys.setprofile(None)

def program():
{program}

program()
program()
before = state()
whole = Interrupt(0)
run(whole)
for at in range(1, whole.count + 1, max(1, whole.count // {most})):
    one = Interrupt(at)
    run(one)
    after = state()
    assert after == before, (one.where, {{k: v for k, v in after.items() if v != before[k]}})
program()
print(whole.count)
'''

PROGRAMS = {
    "no_grad": """
        with t.no_grad():
            model(x)
        with t.inference_mode():
            t.ones(2)
    """,
    "autocast": """
        with t.autocast("cpu", dtype=t.bfloat16):
            model(x)
            with t.autocast("cpu", enabled=False):
                model(x)
    """,
    "device": """
        with t.device("meta"):
            t.ones(2)
    """,
    "function mode": """
        with parametrize.cached():
            model(x)
        class Passes(TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                return function(*args, **(kwargs or {}))
        with Passes():
            nn.functional.relu(x)
    """,
    "dispatch mode": """
        class Passes(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                return function(*args, **(kwargs or {}))
        with Passes():
            nn.functional.gelu(x) + 1
    """,
    "dual level": """
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(t.ones(2), t.ones(2))
            forward_ad.unpack_dual(dual * dual)
    """,
    "transforms": """
        t.func.vmap(t.func.grad(lambda a: (a * a).sum()))(t.ones(3, 2))
        t.func.jvp(lambda a: a * a, (t.ones(2),), (t.ones(2),))
    """,
    "functional_call": """
        t.func.functional_call(model, {"0.weight": t.zeros(3, 3)}, x)
    """,
    "saved tensors": """
        a = t.ones(2, requires_grad=True)
        with t.autograd.graph.saved_tensors_hooks(lambda v: v.clone(), lambda v: v):
            a.exp()
        t.utils.checkpoint.checkpoint(lambda a: a.exp() * a, a, use_reentrant=False).sum().backward()
    """,
    "symbolic_trace": """
        t.fx.symbolic_trace(model)
    """,
    "make_fx": """
        from taeda.fx.experimental.proxy_tensor import make_fx
        make_fx(lambda a: t.relu(a) * 2)(t.ones(2))
    """,
    "trace": """
        t.jit.trace(model, (x,))
    """,
    "profile": """
        with t.profiler.profile(record_shapes=True):
            model(x)
    """,
    "printoptions": """
        with t._tensor_str.printoptions(precision=2):
            repr(t.ones(2))
    """,
    "members": """
        layer = nn.Linear(3, 3)
        del built[:]
        built.append(layer)
        layer.register_buffer("seen", t.ones(1), persistent=False)
        layer.after = nn.ReLU()
        layer.after = nn.Linear(1, 1)
        layer.seen = t.zeros(1)
        layer.gain = nn.Parameter(t.ones(1))
        layer._modules["last"] = nn.ReLU()
        del layer.seen, layer.gain, layer.after
    """,
    "numbered modules": """
        del built[:]
        built.extend([nn.Linear(3, 3), nn.ReLU(), nn.LazyLinear(2)])
        built.insert(0, nn.Identity())
        built.extend([nn.Identity()])
        del built[1:3]
        built.pop(0)
        built[-1](x)
    """,
    "parametrized": """
        layer = nn.Linear(3, 3)
        del built[:]
        built.append(layer)
        parametrize.register_parametrization(layer, "weight", Passing())
        layer(x)
        parametrize.remove_parametrizations(layer, "weight")
    """,
    "normalised": """
        for change, undo in (
            (nn.utils.weight_norm, nn.utils.remove_weight_norm),
            (nn.utils.spectral_norm, nn.utils.remove_spectral_norm),
            (nn.utils.prune.identity, nn.utils.prune.remove),
        ):
            layer = nn.Linear(3, 3)
            del built[:]
            built.append(layer)
            change(layer, "weight")
            layer(x)
            undo(layer, "weight")
    """,
    "pruned twice": """
        layer = nn.Linear(3, 3)
        del built[:]
        built.append(layer)
        nn.utils.prune.l1_unstructured(layer, "weight", 1)
        nn.utils.prune.random_structured(layer, "weight", 1, 0)
        nn.utils.prune.remove(layer, "weight")
    """,
    "loading": """
        global loaded
        loaded = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
        state = {name: t.full_like(value, 7) for name, value in loaded.state_dict().items()}
        loaded.load_state_dict(state)
        loaded.load_state_dict(state, assign=True)
    """,
    "generators": """
        global random_stays
        random_stays = True
        with t.random.fork_rng():
            t.manual_seed(3)
            t.rand(2)
    """,
    "training": """
        optimizer = t.optim.Adam(model.parameters(), lr=0.0)
        model(x).sum().backward()
        optimizer.step(lambda: model(x).sum())
        model.load_state_dict(model.state_dict())
    """,
}


# An exception that other handlers raise looks there like a refusal of the call before, after which nothing is undone.
LIKE_REFUSALS = ("saved tensors", "profile", "loading")
CASES = [(name, "KeyboardInterrupt") for name in PROGRAMS]
CASES += [(name, "Stopped") for name in PROGRAMS if name not in LIKE_REFUSALS]


@pytest.mark.parametrize(("name", "raised"), CASES)
def test_an_interrupt_leaves_nothing_behind(name, raised):
    if sys.version_info[:2] not in ((3, 11), (3, 12)):
        pytest.skip("raising in a profile function is as an interrupt there in Python 3.11 and 3.12")
    program = textwrap.indent(textwrap.dedent(PROGRAMS[name]), "    ")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD.format(program=program, most=1000, raised=raised)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > 1
