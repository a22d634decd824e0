"""The kernels, compiled for the host and run by the simulated driver: what they compute, how they say what is wrong.

Each program is a process of its own, as a device is loaded once.
"""

from __future__ import annotations

import json
from pathlib import Path

import device_programs as programs
import pytest

KERNELS = Path(__file__).parents[1] / "csrc" / "kernels"


def run(program: str, **more: str) -> str:
    return programs.run(program, OMP_NUM_THREADS="1", **more)


def test_the_device_conforms(tmp_path: Path) -> None:
    pytest.importorskip("taeda_testing", reason="the conformance kit is a package of its own")
    report, launched = tmp_path / "cuda.json", tmp_path / "kernels"
    said = run(
        f"""
        from taeda_testing.__main__ import main
        raise SystemExit(main(["backend", "cuda", "--json", {str(report)!r}]))
        """,
        TAEDA_CUDA_SIMULATED_KERNELS=str(launched),
    )
    scores = json.loads(report.read_text())["scores"]
    assert scores["core"]["percent"] == 100, said
    assert scores["all"]["percent"] == 100, said
    # Those for tensor cores, which the suite has no operands for, or which NVIDIA's libraries do without.
    run(
        """
        import taeda_tensor_core as tc
        x = tc.ones(64, 64, dtype=tc.float16).to("cuda")
        (x @ x).cpu()
        tc.ops.fused_attention(*[x.reshape(1, 1, 64, 64)] * 3, None, False, 1.0)[0].cpu()
        """,
        TAEDA_CUDA_SIMULATED_KERNELS=str(launched),
        TAEDA_CUDA_LIBRARIES="none",
    )
    # So no file of kernels goes without a run on the host, under sanitizers too where the library was built for these.
    families = {line.split()[0] for line in launched.read_text().splitlines()}
    files = {path.stem for path in KERNELS.glob("*.cu")}
    assert files and families == files, families ^ files


def test_work_runs_when_its_stream_comes_to_it() -> None:
    shown = run(
        """
        import taeda_tensor_core as tc
        x = tc.ones(4).to("cuda")
        stream = tc.Stream("cuda")
        stream.wait_stream(tc.current_stream("cuda"))
        with stream:
            y = x + x
        print(stream.query())
        stream.synchronize()
        print(stream.query(), y.cpu().tolist())
        """
    )
    assert shown.splitlines() == ["False", "True [2.0, 2.0, 2.0, 2.0]"]


def test_what_kernels_find_wrong_is_told_at_the_next_wait_and_the_device_goes_on() -> None:
    shown = run(
        """
        import taeda_tensor_core as tc
        x = tc.arange(6.0).reshape(2, 3).to("cuda")
        def say(f):
            try:
                print(f())
            except Exception as error:
                print(type(error).__name__, ": ".join(str(error).split(": ")[-2:]))
        say(lambda: tc.gather(x, 1, tc.tensor([[0, 3]]).to("cuda")).cpu())
        say(lambda: tc.index_select(x, 0, tc.tensor([-1]).to("cuda")).cpu())
        say(lambda: tc.scatter_add(x, 0, tc.tensor([[7]]).to("cuda"), x).cpu())
        say(lambda: (tc.ones(2, dtype=tc.int64).to("cuda") // tc.zeros(2, dtype=tc.int64).to("cuda")).cpu())
        half, nan = tc.tensor([0.5, 0.5]).to("cuda"), tc.tensor([0.5, float("nan")]).to("cuda")
        say(lambda: tc.ops.bce_loss(nan, half, 0).cpu())
        say(lambda: tc.ops.bce_loss(half, half * 3, 1).cpu())
        say(lambda: tc.poisson(-half).cpu())
        bad = tc.gather(x, 0, tc.tensor([[9]]).to("cuda"))
        say(lambda: tc.synchronize("cuda"))
        say(lambda: (x + 1).cpu().tolist())
        """
    ).splitlines()
    assert shown == [
        "IndexError gather: index 3 is out of range for size 3",
        "IndexError index_select: index -1 is out of range for size 2",
        "IndexError scatter_add: index 7 is out of range for size 2",
        "ZeroDivisionError floor_divide: integer division by zero",
        "RuntimeError binary_cross_entropy: argument 'input' has nan, expected values between 0 and 1",
        "RuntimeError argument 'target' has 1.5, expected values between 0 and 1: all elements of target "
        "should be between 0 and 1",
        "RuntimeError poisson: argument 'self' must not be negative, found -0.5",
        "IndexError gather: index 9 is out of range for size 2",
        "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]",
    ]


def test_large_reductions_scans_and_sorts_agree_with_the_cpu() -> None:
    """Sizes at which outputs come in parts, lines go by blocks, and targets are put in order first."""
    shown = run(
        """
        import taeda_tensor_core as tc
        tc.manual_seed(3)
        x = tc.empty(70000)
        x.uniform_(-1, 1)
        y = x[:69930].reshape(30, 37, 63)
        d, e = x.to("cuda"), y.to("cuda")
        def same(a, b, rtol=1e-5):
            assert tc.allclose(a.cpu(), b, rtol=rtol, atol=1e-5), (a, b)
        same(d.sum(), x.sum()); same(d.amax(), x.amax()); same(e.sum(1), y.sum(1)); same(e.mean(0), y.mean(0))
        same(e.permute(2, 0, 1).sum(0), y.permute(2, 0, 1).sum(0)); same(e.prod(2), y.prod(2), 1e-4)
        assert d.argmin().item() == x.argmin().item() and tc.equal(e.argmax(1).cpu(), y.argmax(1))
        same(d.cumsum(0), x.cumsum(0), 1e-3)
        for ours, its in zip(d.sort(stable=True), x.sort(stable=True)):
            assert tc.equal(ours.cpu(), its)
        for ours, its in zip(e.cummax(1), y.cummax(1)):
            assert tc.equal(ours.cpu(), its)
        where = (x * 50).abs().to(tc.int64)
        same(tc.zeros(50).to("cuda").scatter_add(0, where.to("cuda"), d), tc.zeros(50).scatter_add(0, where, x), 1e-3)
        assert tc.equal((d > 0).nonzero().cpu(), (x > 0).nonzero())
        a, b = y[0, :, :], y[1, :, :].t()
        same(a.to("cuda") @ b.to("cuda"), a @ b, 1e-4)
        print("same")
        """
    )
    assert shown == "same\n"


def test_random_numbers_do_not_depend_on_layout_and_repeat_after_a_seed() -> None:
    shown = run(
        """
        import taeda_tensor_core as tc
        def drawn(turned):
            tc.manual_seed(5)
            x = tc.empty(40, 50, device="cuda")
            (x.t() if turned else x).normal_()
            return x.cpu()
        print(tc.equal(drawn(False), drawn(False)), abs(drawn(False).mean().item()) < 0.1)
        """
    )
    assert shown == "True True\n"


TRAINING = """
import taeda as torch
from taeda import nn
import taeda.nn.functional as F

def train(device):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10),
    ).to(device)
    optimizer = torch.optim.{optimizer}(model.parameters(), lr=5e-3)
    images = torch.rand(64, 1, 8, 8)
    labels = (images.sum((1, 2, 3)) * 7).to(torch.int64) % 10
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.detach().cpu() for p in model.parameters()]

(here, ours), (there, theirs) = train("cpu"), train("cuda")
assert all(abs(a - b) < 1e-4 * abs(a) for a, b in zip(here, there)), (here, there)
assert all(torch.allclose(a, b, rtol=1e-2, atol=1e-3) for a, b in zip(ours, theirs))
assert here[-1] < here[0]
print("same")
"""


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_a_network_for_digits_trains_as_on_the_cpu(optimizer: str) -> None:
    pytest.importorskip("taeda", reason="networks need the whole library")
    assert run(TRAINING.format(optimizer=optimizer)) == "same\n"
