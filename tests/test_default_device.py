"""What works on tensors of the cpu does so whatever device is the default one: its own tensors say where they are.

The default device is meta, whose tensors have no elements: whoever makes one by mistake cannot go on.
"""

import copy
import io
import itertools
import pickle

import pytest

import taeda
from taeda import distributions, nn, optim
from taeda.utils.data import (
    DataLoader,
    RandomSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)
from taeda_testing.cases import samples_of
from taeda_testing.record import all_records
from taeda_testing.runner import function_of, to_tensors

MOST_SAMPLES = 6
ALGORITHMS = [
    "SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adadelta", "Adagrad", "RMSprop", "Rprop", "ASGD", "LBFGS",
    "Adafactor",
]  # fmt: skip


@pytest.fixture
def elsewhere():
    """Sets the default device for the rest of the test."""
    yield lambda: taeda.set_default_device("meta")
    taeda.set_default_device(None)


def flat(value):
    """Tensors and numbers of nested containers, as (device, elements)."""
    if isinstance(value, taeda.Tensor):
        return [(value.device.type, value.tolist())]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [part for item in value for part in flat(item)]
    return [value]


def same_elsewhere(work):
    """Holds what `work` gives under another default device against what it gives without."""
    taeda.manual_seed(0)
    expected = flat(work())
    taeda.manual_seed(0)
    with taeda.device("meta"):
        found = work()
    assert flat(found) == expected and expected


@pytest.mark.parametrize("family", sorted({record.family for record in all_records()}))
def test_operators(family):
    wrong, checked = [], 0
    for record in all_records():
        if record.family != family or record.creates:
            continue
        for sample in itertools.islice(samples_of(record, record.dtypes[0]), MOST_SAMPLES):
            args, kwargs = to_tensors(list(sample.args)), {k: to_tensors(v) for k, v in sample.kwargs.items()}
            if not flat_tensors([args, *kwargs.values()]):
                continue
            checked += 1
            try:
                with taeda.device("meta"):
                    made = flat_tensors(function_of(record)(*args, **kwargs))
            except Exception as error:
                wrong.append(f"{record.name}: {type(error).__name__}: {str(error)[:200]}")
                break
            wrong += [f"{record.name}: a result is on {t.device}" for t in made if t.device.type != "cpu"]
    assert checked or all(record.creates for record in all_records() if record.family == family)
    assert wrong == []


def flat_tensors(value):
    if isinstance(value, (tuple, list)):
        return [part for item in value for part in flat_tensors(item)]
    return [value] if isinstance(value, taeda.Tensor) else []


@pytest.mark.parametrize("older", [False, True])
def test_files(older, elsewhere):
    x = taeda.arange(6.0).reshape(2, 3)
    kept = {"x": x, "part": x[:, 1], "none": taeda.ones(0), "sparse": x.to_sparse(), "layer": nn.Linear(2, 2)}
    file = io.BytesIO()
    taeda.save({**kept, "layer": kept["layer"].state_dict()}, file, _use_new_zipfile_serialization=not older)
    pickled = pickle.dumps(x)
    elsewhere()
    again = io.BytesIO()
    taeda.save({"x": x, "none": kept["none"]}, again, _use_new_zipfile_serialization=not older)
    for stream in (file, again):
        stream.seek(0)
        found = taeda.load(stream)
        assert found["x"].device.type == "cpu" and found["x"].tolist() == x.tolist()
        assert found["none"].device.type == "cpu"
    assert pickle.loads(pickled).tolist() == copy.deepcopy(x).tolist() == x.tolist()


def test_files_without_their_numbers(elsewhere):
    state, file = {"w": taeda.ones(2, 3, device="cpu")}, io.BytesIO()
    elsewhere()
    with taeda.serialization.skip_data():
        taeda.save(state, file)
        file.seek(0)
        found = taeda.load(file)["w"]
    assert (found.device.type, found.shape) == ("cpu", (2, 3))
    file.seek(0)
    assert taeda.load(file)["w"].tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize("name", ALGORITHMS)
def test_optimizers(name):
    def work():
        parameter = nn.Parameter(taeda.ones(2, device="cpu"))
        optimizer = getattr(optim, name)([parameter], lr=0.1)

        def closure():
            optimizer.zero_grad()
            loss = (parameter * parameter).sum()
            loss.backward()
            return loss

        for _ in range(2):
            optimizer.step(closure)
        return [parameter, *(optimizer.state_dict()["state"].values() if name != "LBFGS" else ())]

    same_elsewhere(work)


def test_scaled_losses():
    def work():
        scaler = taeda.amp.GradScaler("cpu")
        parameter = nn.Parameter(taeda.ones(2, device="cpu"))
        optimizer = optim.SGD([parameter], lr=0.1)
        scaler.scale((parameter * 2).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        return parameter, scaler.get_scale()

    same_elsewhere(work)


@pytest.mark.parametrize("sampler", [
    lambda: RandomSampler(range(9)),
    lambda: RandomSampler(range(9), replacement=True),
    lambda: RandomSampler(range(9), generator=taeda.Generator(device="cpu").manual_seed(3)),
    lambda: SubsetRandomSampler(range(9)),
    lambda: WeightedRandomSampler([1.0, 2.0, 3.0], 9),
    lambda: WeightedRandomSampler(taeda.ones(3, device="cpu"), 9),
])  # fmt: skip
def test_samplers(sampler):
    same_elsewhere(lambda: list(sampler()))


def test_loading_and_splitting():
    data = TensorDataset(taeda.arange(9.0))
    same_elsewhere(lambda: [batch for (batch,) in DataLoader(data, batch_size=2, shuffle=True)])
    same_elsewhere(lambda: [part.indices for part in random_split(data, [4, 5])])


def families_of_distributions():
    p = taeda.tensor([0.3, 0.6])
    d = distributions
    yield from (d.Gamma(p, p), d.Beta(p, p), d.Dirichlet(p), d.MultivariateNormal(p, taeda.eye(2)))
    yield from (d.LowRankMultivariateNormal(p, taeda.ones(2, 1), p), d.Binomial(3, p), d.Multinomial(4, p))
    yield from (
        d.RelaxedBernoulli(taeda.tensor(0.5), p),
        d.RelaxedOneHotCategorical(taeda.tensor(0.5), p),
        d.VonMises(p, p),
    )
    yield from (d.LKJCholesky(2, p[0]), d.Categorical(p), d.Geometric(p), d.Poisson(p), d.StudentT(p + 2))
    yield d.MixtureSameFamily(d.Categorical(p), d.Normal(p, p))
    yield d.TransformedDistribution(d.Normal(p, p), [d.ExpTransform(), d.AffineTransform(1.0, 2.0)])


@pytest.mark.parametrize("made", list(families_of_distributions()), ids=lambda made: type(made).__name__)
def test_distributions(made):
    def work():
        drawn = made.sample()
        return drawn, made.log_prob(drawn)

    same_elsewhere(work)


def test_small_functions():
    x = taeda.arange(4.0)
    square = taeda.arange(16.0).reshape(4, 4)
    sequences = taeda.ones(3, 2, 1)
    for work in (
        lambda: nn.utils.rnn.pad_packed_sequence(nn.utils.rnn.pack_padded_sequence(sequences, [3, 1])),
        lambda: nn.init.sparse_(square.clone(), 0.5),
        lambda: x.clone().apply_(lambda v: v + 1),
        lambda: x.clone().map_(x, lambda a, b: a * b),
        lambda: distributions.utils.vec_to_tril_matrix(x[:3]),
        lambda: distributions.utils.tril_matrix_to_vec(square),
        lambda: nn.functional.gaussian_nll_loss(x, x + 1, 2.0),
        lambda: square.to_sparse()[1:3].to_dense(),
        lambda: taeda.sparse.spdiags(square, taeda.arange(4, device="cpu"), (4, 4)).to_dense(),
        lambda: taeda.quantize_per_tensor(x, 0.1, 0, taeda.quint8).fill_(1.0).dequantize(),
        lambda: taeda.nested.nested_tensor([x], device="cpu").to_padded_tensor(0.0),
    ):
        same_elsewhere(work)


def test_points_of_a_sobol_sequence():
    same_elsewhere(lambda: taeda.quasirandom.SobolEngine(3, scramble=True, seed=1).draw(5))


def test_frequencies_are_made_on_the_default_device():
    with taeda.device("meta"):
        assert taeda.fft.fftfreq(4).device.type == taeda.fft.rfftfreq(4).device.type == "meta"
        assert taeda.fft.fftfreq(4, device="cpu").device.type == "cpu"


def test_blocks_end_what_they_began(elsewhere):
    def here():
        return taeda.zeros(1).device.type, taeda.get_default_device().type

    with taeda.device("cpu"):
        elsewhere()  # follows the block
        assert here() == ("cpu", "cpu")
    assert here() == ("meta", "meta")
    with taeda.device("cpu"):
        taeda.set_default_device(None)
    assert here() == ("cpu", "cpu")
    with pytest.raises(KeyError), taeda.device("meta"):
        raise KeyError
    assert here() == ("cpu", "cpu")


@pytest.mark.parametrize(
    "read", [lambda m: m.item(), bool, float, int, complex, lambda m: m.tolist(), lambda m: [1][m]]
)
def test_numbers_that_nobody_knows(read):
    with pytest.raises(RuntimeError, match="Cannot copy out of meta tensor"):
        read(taeda.zeros((), dtype=taeda.int64, device="meta"))
    assert taeda._C._function_mode_stack() == []


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr"])
def test_sparse_tensors_without_elements(layout):
    matrix = taeda.arange(4.0).reshape(2, 2)
    blocks = {"blocksize": (1, 1)} if layout == "sparse_bsr" else {}
    file = io.BytesIO()
    taeda.save(matrix.to_sparse(layout=getattr(taeda, layout), **blocks), file)
    file.seek(0)
    found = taeda.load(file, map_location="meta")
    assert (found.device.type, tuple(found.shape), found.layout) == ("meta", (2, 2), getattr(taeda, layout))
    with pytest.raises(
        RuntimeError, match="Cannot copy out of meta"
    ):  # the size would follow from the places
        taeda.sparse_coo_tensor(taeda.zeros(1, 1, dtype=taeda.int64), taeda.ones(1), device="meta")
