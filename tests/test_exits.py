"""The end of the interpreter: whatever threads, hooks, generators and tensors it finds, the process ends with code 0
and says nothing; and sub-interpreters are refused in words."""

import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import os, sys, threading, time
import taeda as t
import taeda.nn.functional as F

def forever(make, threads=3):
    "Daemon threads that repeat what `make` gives each of them; all are at it when this returns."
    begun = threading.Semaphore(0)
    def run():
        step = make()
        begun.release()
        while True:
            step()
    for _ in range(threads):
        threading.Thread(target=run, daemon=True).start()
    for _ in range(threads):
        begun.acquire()
    time.sleep(0.1)  # nothing depends on it: the end may come at any moment
"""

SCENARIOS = {
    "daemons in small operators": """
        a = t.rand(3)
        forever(lambda: lambda: a + a)
    """,
    "daemons in products": """
        a = t.rand(600, 600)
        forever(lambda: lambda: a @ a)
    """,
    "daemons in a long product": """
        a = t.rand(3500, 3500)
        forever(lambda: lambda: a @ a, 1)
    """,
    "daemons in sort": """
        x = t.rand(300_000)
        forever(lambda: lambda: x.sort())
    """,
    "daemons in convolutions and their gradients": """
        x, w = t.rand(8, 16, 32, 32), t.rand(16, 16, 3, 3, requires_grad=True)
        forever(lambda: lambda: t.autograd.grad(F.conv2d(x, w).sum(), w))
    """,
    "daemons in lstm": """
        def make():
            model, x = t.nn.LSTM(32, 64), t.rand(50, 8, 32)
            return lambda: model(x)[0].sum().backward()
        forever(make)
    """,
    "daemons in backward": """
        w = t.rand(300, 300, requires_grad=True)
        forever(lambda: lambda: t.autograd.grad((w @ w @ w).sum(), w))
    """,
    "daemons in tensor hooks": """
        def make():
            w = t.rand(30, 30, requires_grad=True)
            def step():
                y = (w @ w).sum()
                y.register_hook(lambda g: g * (sum(range(200)) / 19900))
                y.backward()
            return step
        forever(make)
    """,
    "daemons in node and leaf hooks": """
        def make():
            w = t.rand(30, 30, requires_grad=True)
            w.register_post_accumulate_grad_hook(lambda p: sum(range(300)) and None)
            def step():
                y = (w @ w).sum()
                y.grad_fn.register_prehook(lambda gs: sum(range(200)) and None)
                y.grad_fn.register_hook(lambda a, b: sum(range(200)) and None)
                y.backward()
            return step
        forever(make)
    """,
    "daemons in Functions": """
        class Double(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                sum(range(300))
                return x * 2
            @staticmethod
            def backward(ctx, grad):
                sum(range(300))
                return grad * 2
        def make():
            w = t.rand(30, 30, requires_grad=True)
            return lambda: Double.apply(w).sum().backward()
        forever(make)
    """,
    "daemons that train": """
        def make():
            net = t.nn.Sequential(t.nn.Linear(100, 100), t.nn.ReLU(), t.nn.Linear(100, 10))
            opt = t.optim.Adam(net.parameters())
            def step():
                net(t.rand(64, 100)).sum().backward()
                opt.step()
                opt.zero_grad()
            return step
        forever(make)
    """,
    "daemons in operators written in Python": """
        from taeda.library import Library
        import numpy as np
        def make():
            x = t.rand(100, 100)
            return lambda: t.from_numpy(np.asarray(x) + 1).tolist()
        forever(make)
    """,
    "tensors of modules": """
        import types
        module = types.ModuleType("keeps")
        sys.modules["keeps"] = module
        module.a = t.rand(1000, requires_grad=True)
        module.graph = (module.a * 2).sum()
        module.graph.register_hook(lambda g: g)
        module.net = t.nn.Linear(10, 10)
        module.opt = t.optim.Adam(module.net.parameters())
    """,
    "cycles through tensors and hooks": """
        class Holder: pass
        a = t.rand(10, requires_grad=True)
        holder = Holder()
        holder.tensor, holder.graph, a.holder = a, (a * 2).sum(), holder
        a.register_hook(lambda g: holder.tensor and g)
    """,
    "a tensor whose hook's handle and graph go after it": """
        x = t.ones(2, requires_grad=True)
        handle = x.register_hook(lambda g: g)
        y = x * 2
    """,
    "a weak reference to a tensor whose graph goes first": """
        import gc, types, weakref
        gc.disable()
        # Not this program's globals: those go in one piece with all that they hold.
        module = types.ModuleType("late")
        sys.modules["late"] = module
        exec('class Looks:\\n'
             '    def __init__(self, seen):\\n'
             '        self.seen = seen\\n'
             '    def __del__(self):\\n'
             '        found = self.seen()\\n'
             '        assert found is None or (found.shape == (2,) and found.tolist() == [1, 1] and found.tag == 3)\\n',
             module.__dict__)
        def make():
            x = t.ones(2, requires_grad=True)
            x.tag = 3
            return weakref.ref(x), x * 2
        seen, _graph = make()
        looks = module.Looks(seen)
        del seen, make, forever  # whose globals would hold each other
    """,
    "contexts of Functions that go after their graph": """
        class Doubled(t.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                kept.append(ctx)
                ctx.save_for_backward(a)
                return a * 2
            @staticmethod
            def backward(ctx, g):
                return g * 2
        class Asks:
            def __del__(self):
                try:
                    self.ctx.saved_tensors
                except RuntimeError:
                    pass
        kept = []
        y = Doubled.apply(t.ones(2, requires_grad=True))
        y.register_hook(print)
        asks = Asks()
        asks.ctx, asks.ring = kept.pop(), asks
    """,
    "finalizers that compute": """
        class Late:
            def __init__(self):
                self.x = t.rand(300, 300, requires_grad=True)
            def __del__(self):
                (self.x @ self.x).sum().backward()
                assert self.x.grad is not None
        late = Late()
        import builtins
        builtins.kept = Late()
    """,
    "atexit that computes": """
        import atexit
        w = t.rand(400, 400, requires_grad=True)
        def last():
            (w @ w).sum().backward()
            t.save({"w": w.detach()}, __import__("io").BytesIO())
        atexit.register(last)
        forever(lambda: lambda: w.detach() @ w.detach())
    """,
    "atexit that joins a thread": """
        import atexit
        stop = threading.Event()
        a = t.rand(500, 500)
        def run():
            while not stop.is_set():
                a @ a
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        def last():
            stop.set()
            thread.join()
        atexit.register(last)
    """,
    "a generator in the midst of no_grad": """
        def steps():
            with t.no_grad():
                while True:
                    yield t.rand(10) * 2
        alive = steps()
        next(alive)
    """,
    "an iterator of a loader": """
        from taeda.utils.data import DataLoader, TensorDataset
        batches = iter(DataLoader(TensorDataset(t.rand(100, 3)), batch_size=4))
        next(batches)
    """,
    "a thread that is joined at the end": """
        def run():
            for _ in range(30):
                a = t.rand(300, 300, requires_grad=True)
                (a @ a).sum().backward()
        threading.Thread(target=run).start()
    """,
    "os._exit beside daemons": """
        a = t.rand(600, 600)
        forever(lambda: lambda: a @ a)
        os._exit(0)
    """,
    "sys.exit in the midst of backward": """
        a = t.rand(3, requires_grad=True)
        a.register_hook(lambda g: sys.exit(0))
        (a * a).sum().backward()
    """,
    "a child of a thread that computes": """
        a = t.rand(600, 600)
        forever(lambda: lambda: a @ a)
        pid = os.fork()
        if pid == 0:
            (a @ a).sum()
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    """,
}
REPEATED = [name for name in SCENARIOS if "daemon" in name]


def ended(source: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(source)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return done.returncode, done.stderr + done.stdout


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_process_ends_well(scenario):
    """Where threads race the end, several times."""
    for _ in range(2 if scenario in REPEATED else 1):
        assert ended(SCENARIOS[scenario]) == (0, "")


def test_sub_interpreters_are_refused():
    source = """
        import _xxsubinterpreters as interpreters
        made = interpreters.create()
        code = '''
        try:
            import taeda_tensor_core
        except ImportError as error:
            assert "main interpreter only" in str(error), error
        else:
            raise SystemError("not refused")
        '''
        import textwrap
        interpreters.run_string(made, textwrap.dedent(code))
        assert t.ones(3).sum().item() == 3
        interpreters.destroy(made)
    """
    if sys.version_info >= (3, 13):
        pytest.skip("the module of this Python for sub-interpreters has another name and refuses by itself")
    assert ended(source) == (0, "")
    # Also where the sub-interpreter is the first to ask.
    first = source.replace("assert t.ones(3).sum().item() == 3", "pass")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(first)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
