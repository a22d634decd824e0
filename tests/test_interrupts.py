"""Ctrl-C in long work: the slowest kernels of each family and long loops end in KeyboardInterrupt, with usable state.

Each case runs in a child process that it shares with the others of its family. An alarm whose handler raises
KeyboardInterrupt comes while the call works; a call that was over before it is repeated with twice the size.
"""

import signal
import subprocess
import sys
import textwrap

import pytest

GENEROUS = 3.0  # seconds, of which those in which others had the processor do not count; 0.5 are aimed at

PRELUDE = '''
import io, os, signal, sys, time
import numpy  # before the alarm: a module of it that was interrupted cannot be imported again
import taeda as t
import taeda.nn.functional as F

signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell began us in the background
t.manual_seed(0)

def interrupted(call, after=0.1):
    """Seconds from the alarm to KeyboardInterrupt; None when the call was over before the alarm.

    By the clock, or by what all threads computed from the call on where that is less.
    """
    begin, computed = time.perf_counter(), time.process_time()
    signal.setitimer(signal.ITIMER_REAL, after)
    try:
        call()
        signal.setitimer(signal.ITIMER_REAL, 0)
        return None
    except KeyboardInterrupt:
        return max(min(time.perf_counter() - begin, time.process_time() - computed) - after, 0.0)

def usable():
    a = t.tensor([1.0, 2.0], requires_grad=True)
    (a * a).sum().backward()
    assert a.grad.tolist() == [2.0, 4.0] and t.is_grad_enabled()
    big = t.ones(300_000)
    assert float((big + big).sum()) == 600_000
    assert float((t.ones(200, 200) @ t.ones(200, 200)).sum()) == 200.0 ** 3

def hold(name, make, size, after=0.1):
    for attempt in range(5):
        try:
            late = interrupted(make(int(size * 2 ** attempt)), after)
        except KeyboardInterrupt:  # between the call and the timer's end
            late = None
        if late is not None:
            usable()
            print(f"{name} {late:.3f}", flush=True)
            return
    print(f"{name} never", flush=True)
'''

FAMILIES = {
    "linalg": """
        def mm(dtype):
            def make(n):
                a = t.ones(n, n, dtype=dtype)
                return lambda: a @ a
            return make
        hold("mm float32", mm(t.float32), 5000)
        hold("mm float64", mm(t.float64), 3500)
        hold("mm complex128", mm(t.complex128), 2000)
        hold("mm int64", mm(t.int64), 900)
        def inner(n):
            a = t.ones(64, n)
            return lambda: [F.linear(a, a) for _ in range(40)] and a.T.mm(a[:, :2000])
        hold("a long inner dimension", inner, 400_000)
        def chain(n):
            a = t.ones(n, n)
            return lambda: t.einsum("ij,jk,kl->il", a, a, a)
        hold("einsum", chain, 4000)
    """,
    "conv": """
        def conv(dtype, backward):
            def make(n):
                x = t.ones(n, 64, 56, 56, dtype=dtype, requires_grad=backward)
                w = t.ones(64, 64, 3, 3, dtype=dtype, requires_grad=backward)
                if not backward:
                    return lambda: F.conv2d(x, w, padding=1)
                y = F.conv2d(x, w, padding=1)
                return lambda: y.backward(t.ones_like(y))
            return make
        hold("conv2d", conv(t.float32, False), 256)
        hold("conv2d backward", conv(t.float32, True), 128)
        hold("conv2d float64", conv(t.float64, False), 64)
        hold("conv2d float64 backward", conv(t.float64, True), 32)
        def one_image(backward):
            def make(n):
                x = t.ones(1, 128, n, n, requires_grad=backward)
                w = t.ones(128, 128, 3, 3, requires_grad=backward)
                if not backward:
                    return lambda: F.conv2d(x, w, padding=1)
                y = F.conv2d(x, w, padding=1)
                return lambda: y.backward(t.ones_like(y))
            return make
        hold("conv2d of one image", one_image(False), 500)
        hold("conv2d of one image backward", one_image(True), 400)
    """,
    "rnn": """
        def layer(kind, backward=False):
            def make(n):
                model = kind(256, 256, batch_first=False)
                x = t.ones(n, 16, 256)
                if not backward:
                    return lambda: model(x)
                y = model(x)[0].sum()
                return lambda: y.backward()
            return make
        hold("lstm", layer(t.nn.LSTM), 3000)
        hold("lstm backward", layer(t.nn.LSTM, True), 1500)
        hold("gru", layer(t.nn.GRU), 3000)
        hold("rnn", layer(t.nn.RNN), 8000)
    """,
    "sort": """
        def of(f, *more, dtype=t.float32):
            def make(n):
                x = t.rand(n).to(dtype) if dtype.is_floating_point else t.randint(0, 1 << 20, (n,), dtype=dtype)
                return lambda: f(x, *more)
            return make
        hold("sort", of(t.sort), 10_000_000)
        hold("sort float16", of(t.sort, dtype=t.float16), 3_000_000)
        hold("topk", of(t.topk, 3_000_000), 10_000_000)
        hold("unique", of(t.unique), 10_000_000)
        hold("unique int64", of(t.unique, dtype=t.int64), 10_000_000)
        # What a kernel begins with: room for its work, which is slow to touch, and keys.
        hold("unique at its beginning", of(t.unique, dtype=t.int64), 40_000_000, after=0.02)
        hold("sort at its beginning", of(t.sort), 40_000_000, after=0.02)
        hold("list of a tensor", of(list), 4_000_000)
        hold("median", of(t.median), 10_000_000)
        hold("bincount", of(t.bincount, dtype=t.int64), 40_000_000)
        hold("histc", of(t.histc, dtype=t.float64), 40_000_000)
        def searched(n):
            edges, x = t.linspace(0, 1, 4_000_000), t.rand(n)
            return lambda: t.searchsorted(edges, x)
        hold("searchsorted", searched, 10_000_000)
    """,
    "repeated": """
        def one_of(call, *more):
            x = t.full((1,), 2.0).expand(2, 1 << 39)
            def make(n):
                return lambda: call(x, *more)
            return make
        hold("sum", one_of(t.sum), 1)
        hold("amax", one_of(t.amax), 1)
        hold("rows of var", one_of(t.var, 1), 1)
        hold("rows of prod", one_of(t.prod, 1), 1)
        hold("columns of norms", one_of(lambda x: t.ones(16).expand(1 << 37, 16).norm(dim=0)), 1)
    """,
    "unary": """
        def of(f, dtype=t.float64):
            def make(n):
                x = t.rand(n, dtype=dtype)
                return lambda: f(x)
            return make
        hold("lgamma", of(t.lgamma), 20_000_000)
        hold("lgamma of a transposed", of(lambda x: x.reshape(1000, -1).T.lgamma()), 20_000_000)
        hold("complex exp", of(t.exp, t.complex128), 10_000_000)
        hold("logcumsumexp", of(lambda x: x.logcumsumexp(0)), 10_000_000)
        hold("cummax", of(lambda x: x.cummax(0)), 40_000_000)
    """,
    "random": """
        def of(f):
            return lambda n: (lambda: f(n))
        hold("poisson", of(lambda n: t.poisson(t.full((n,), 30.0))), 10_000_000)
        hold("geometric", of(lambda n: t.empty(n).geometric_(0.3)), 20_000_000)
        hold("multinomial", of(lambda n: t.multinomial(t.ones(1000), n, replacement=True)), 10_000_000)
        hold("draws without replacement", of(lambda n: t.multinomial(t.ones(n), n // 2)), 4_000_000)
    """,
    "index": """
        def make_puts(n):
            at, x, v = t.randint(0, 1_000_000, (n,)), t.zeros(1_000_000), t.ones(n)
            return lambda: x.index_put_((at,), v, accumulate=True)
        hold("index_put_", make_puts, 20_000_000)
        def make_scatter(n):
            at, x, v = t.randint(0, 1_000_000, (n,)), t.zeros(1_000_000), t.ones(n)
            return lambda: t.scatter_add(x, 0, at, v)
        hold("scatter_add", make_scatter, 40_000_000)
        def make_add(n):
            at, x, v = t.randint(0, 1_000_000, (n,)), t.zeros(1_000_000), t.ones(n)
            return lambda: t.index_add(x, 0, at, v)
        hold("index_add", make_add, 10_000_000)
        def make_reduce(n):
            at, x, v = t.randint(0, 1_000_000, (n,)), t.zeros(1_000_000), t.ones(n)
            return lambda: t.scatter_reduce(x, 0, at, v, "amax")
        hold("scatter_reduce", make_reduce, 10_000_000)
    """,
    "python": """
        def make_list(n):
            x = t.ones(n)
            return lambda: x.tolist()
        hold("tolist", make_list, 8_000_000)
        def make_narrow(n):
            x = t.ones(n, 3)
            return lambda: x.tolist()
        hold("tolist of short rows", make_narrow, 3_000_000)
        def make_tensor(n):
            numbers = [1.0] * n
            return lambda: t.tensor(numbers)
        hold("tensor of a list", make_tensor, 15_000_000)
        def make_rows(n):
            rows = [[1, 2, 3]] * n
            return lambda: t.tensor(rows)
        hold("tensor of short lists", make_rows, 5_000_000)
        def make_text(n):
            t.set_printoptions(threshold=10 ** 9)
            x = t.rand(n)
            return lambda: str(x)
        hold("printing", make_text, 100_000)
        def make_file(n):
            state = {str(i): t.ones(1000) for i in range(n)}
            return lambda: t.save(state, io.BytesIO())
        hold("save", make_file, 5_000)
        def make_load(n):
            file = io.BytesIO()
            t.save({str(i): t.ones(1000) for i in range(n)}, file)
            file.seek(0)
            return lambda: t.load(file)
        hold("load", make_load, 3_000)
        def make_loader(n):
            from taeda.utils.data import DataLoader, TensorDataset
            loader = DataLoader(TensorDataset(t.ones(n, 10)), batch_size=4)
            return lambda: [batch for batch in loader]
        hold("DataLoader", make_loader, 50_000)
    """,
    "backward": """
        def make_chain(n):
            x = t.ones(2, requires_grad=True)
            y = x
            for _ in range(n):
                y = y + 1
            y = y.sum()
            return lambda: y.backward()
        hold("a long chain", make_chain, 600_000)
        def make_middle(n):
            x = t.ones(200, 200, requires_grad=True)
            y = x
            for _ in range(n):
                y = y @ x / 200
            y = y.sum()
            return lambda: y.backward()
        hold("products in a row", make_middle, 2000)
    """,
}


def child(source: str, **options) -> subprocess.CompletedProcess:
    text = PRELUDE + textwrap.dedent(source)
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=3600, check=False, **options
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_long_work_ends_at_an_alarm(family):
    done = child(FAMILIES[family])
    assert done.returncode == 0, done.stderr
    late = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    assert len(late) == FAMILIES[family].count("hold("), done.stdout
    print(late)
    never = [name for name, seconds in late.items() if seconds == "never"]
    assert not never, f"over before the alarm, at 16 times the size: {never}"
    slow = {name: seconds for name, seconds in late.items() if float(seconds) > GENEROUS}
    assert not slow


def test_a_partly_written_target_has_a_new_version():
    done = child("""
        x = t.rand(60_000_000, dtype=t.float64) + 1
        version = x._version
        assert interrupted(lambda: x.lgamma_()) is not None
        assert x._version == version + 1
        out = t.empty_like(x)
        version = out._version
        assert interrupted(lambda: t.lgamma(x + 1, out=out)) is not None
        usable()
    """)
    assert done.returncode == 0, done.stderr


def test_short_steps_in_place_stay_whole():
    """In place on fewer than 2**24 elements: all of it or nothing."""
    done = child("""
        x = t.full((1 << 23,), 1.5, dtype=t.float64)
        working, seen = [], []
        def handler(*_):
            if working:
                working.clear()
                seen.append(1)
                raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, handler)
        while len(seen) < 5:
            try:
                working.append(1)
                signal.setitimer(signal.ITIMER_REAL, 0.02)
                while True:
                    x.lgamma_().abs_().add_(1.25)
            except KeyboardInterrupt:
                pass
            assert bool((x == x[0]).all())
    """)
    assert done.returncode == 0, done.stderr


def test_a_handler_that_returns_lets_the_call_go_on():
    """The handler computes, differentiates and draws random numbers in the midst of a kernel."""
    done = child("""
        seen = []
        def handler(*_):
            usable()
            t.rand(100_000).sort()
            seen.append(t.is_grad_enabled())
            if working:  # only then, so that handlers do not nest on a slow machine
                signal.setitimer(signal.ITIMER_REAL, 0.05)
        working = []
        signal.signal(signal.SIGALRM, handler)
        def repeated(call):
            working.append(True)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            result = call()
            working.clear()
            signal.setitimer(signal.ITIMER_REAL, 0)
            return result
        a = t.rand(3000, 3000, dtype=t.float64)
        expected = a @ a
        assert bool((repeated(lambda: a @ a) == expected).all())
        x = t.rand(6_000_000)
        values, counts = t.unique(x, return_counts=True)
        again = repeated(lambda: t.unique(x, return_counts=True))
        assert bool((again[0] == values).all() and (again[1] == counts).all())
        w = t.rand(800, 800, requires_grad=True)
        y = (w @ w @ w @ w).exp().sum()
        (first,) = t.autograd.grad(y, w, retain_graph=True)
        def many():
            for _ in range(20):
                (last,) = t.autograd.grad(y, w, retain_graph=True)
            return last
        assert bool((repeated(many) == first).all())
        assert seen and all(seen)
    """)
    assert done.returncode == 0, done.stderr


def test_threads_beside_the_main_thread_are_left_alone():
    # Python may take a thread whose `join` was interrupted for ended: their results are waited for.
    done = child("""
        import queue, threading
        results = queue.SimpleQueue()
        a = t.ones(2500, 2500)
        expected = float((a @ a).sum())
        def work():
            results.put(float((a @ a).sum()))
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        late = interrupted(lambda: [thread.join() for thread in threads])
        found = [results.get(timeout=600) for _ in threads]
        assert found == [expected] * 4, found
        usable()
    """)
    assert done.returncode == 0, done.stderr


def test_ctrl_c_from_outside():
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            PRELUDE
            + textwrap.dedent("""
                a = t.ones(12_000, 12_000)
                try:
                    print("ready", flush=True)
                    a @ a
                except KeyboardInterrupt:
                    usable()
                    print("interrupted", flush=True)
            """),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=600)
    assert output == "interrupted\n", errors


def test_a_child_of_a_thread_looks_too():
    """After fork the thread that forked is the first one, whatever it was before."""
    done = child("""
        import threading
        def fork():
            a = t.ones(2000, 2000, dtype=t.float64)
            a @ a
            pid = os.fork()
            if pid == 0:
                late = interrupted(lambda: [a @ a for _ in range(20)])
                os._exit(0 if late is not None else 7)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            results.append(True)
        results = []
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()
        assert results
    """)
    assert done.returncode == 0, done.stderr
