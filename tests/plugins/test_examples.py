"""Each slot swapped by an example plug-in, chosen by the name of its entry point, alone and together."""

from __future__ import annotations

import pytest
from strangers import EXAMPLES

TRAIN = """
    import sys, taeda as torch, taeda_registry
    from taeda.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    x = torch.randn(64, 3)
    y = x @ torch.tensor([[1.0], [-2.0], [0.5]])
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(30):
        for inputs, targets in DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True):
            optimizer.zero_grad()
            loss = ((model(inputs) - targets) ** 2).mean()
            loss.backward()
            optimizer.step()
    print(loss.item() < 1e-3, taeda_registry.active({slot!r}).module.__name__)
    print({first!r} in sys.modules)
"""

# Given gradients stand for an engine: tensors in pure Python record nothing.
STEP = """
    import sys, taeda as torch, taeda_registry
    from taeda.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    x = torch.randn(64, 3)
    wanted = torch.tensor([[1.0], [-2.0], [0.5]])
    w = torch.nn.Parameter(torch.zeros(3, 1))
    optimizer = torch.optim.SGD([w], lr=0.1)
    for epoch in range(40):
        for inputs, targets in DataLoader(TensorDataset(x, x @ wanted), batch_size=16, shuffle=True):
            w.grad = inputs.t() @ (inputs @ w - targets) * (2 / len(inputs))
            optimizer.step()
    print(float((w - wanted).abs().max()) < 1e-2, [taeda_registry.active(s).name for s in ("tensor", "optim", "data")])
    print([name for name in sys.modules if name in ("taeda_tensor_core", "taeda_data")])
"""

SWAPS = [
    ("optim", "lion", "taeda-optim-lion", "taeda_optim_lion", "taeda_optim_lion"),
    ("data", "simple", "taeda-data-simple", "taeda_data_simple", "taeda_data"),
]


@pytest.mark.parametrize(("slot", "name", "example", "module", "first"), SWAPS)
def test_one_slot_swapped(site, slot, name, example, module, first):
    site.example(example)
    lines = site.lines(TRAIN.format(slot=slot, first=first), **{f"TAEDA_{slot.upper()}": name})
    # The optimizer's package builds on the first-party one; the loader's replaces it.
    assert lines == [f"True {module}", str(slot == "optim")]


def test_tensors_swapped_for_pure_python(site):
    site.example("taeda-tensor-pure")
    site.missing += ["taeda_tensor_core", "taeda_autograd"]
    lines = site.lines(STEP, TAEDA_TENSOR="pure")
    assert lines == ["True ['pure', 'taeda', 'taeda']", "['taeda_data']"]


def test_all_three_swapped_at_once(site):
    for example in ("taeda-optim-lion", "taeda-data-simple", "taeda-tensor-pure"):
        site.example(example)
    site.missing += ["taeda_tensor_core", "taeda_autograd", "taeda_data"]
    lines = site.lines(STEP, TAEDA_TENSOR="pure", TAEDA_OPTIM="lion", TAEDA_DATA="simple")
    assert lines == ["True ['pure', 'lion', 'simple']", "[]"]


def test_the_project_file_chooses_too(site):
    site.example("taeda-optim-lion")
    (site.folder / "work").mkdir()
    (site.folder / "work" / "pyproject.toml").write_text('[tool.taeda]\noptim = "lion"\n')
    assert site.lines("import taeda; print(taeda.optim.Lion.__name__)") == ["Lion"]


def test_an_addition_needs_no_choice(site):
    site.example("taeda-optim-lion")
    program = """
        import taeda
        from taeda_optim_lion import Lion
        w = taeda.zeros(2).requires_grad_()
        (w * taeda.tensor([1.0, -1.0])).sum().backward()
        Lion([w], lr=0.5).step()
        print(w.tolist(), taeda.optim.__name__)
    """
    assert site.lines(program) == ["[-0.5, 0.5] taeda_optim"]


def test_installed_examples_are_listed(site):
    for example in ("taeda-optim-lion", "taeda-data-simple", "taeda-tensor-pure"):
        site.example(example)
    lines = site.lines("from taeda_registry.__main__ import main; main(['list'])")
    listed = {
        line.split()[0]
        for line in lines
        if "taeda-optim-lion" in line or "-simple" in line or "-pure" in line
    }
    assert listed == {"lion", "simple", "pure"}


@pytest.mark.parametrize(
    "folder", sorted(path for path in EXAMPLES.iterdir() if path.is_dir()), ids=lambda folder: folder.name
)
def test_examples_stand_on_published_names_only(folder):
    # A plug-in may use public modules of ours, never one whose name begins with an underscore.
    sources = [*folder.glob("src/**/*.py")]
    assert sources or [*folder.glob("src/**/*.c")]
    for source in sources:
        for number, line in enumerate(source.read_text().splitlines(), 1):
            words = line.split()
            if words[:1] in (["from"], ["import"]) and len(words) > 1 and words[1].startswith("taeda"):
                own = words[1].startswith(folder.name.replace("-", "_"))
                private = any(part.startswith("_") for part in words[1].split("."))
                assert own or not private, f"{source.name}:{number}: {line}"
