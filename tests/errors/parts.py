"""Wrong use of modules, optimizers, schedules, data sets, loaders and checkpoints."""

import taeda as t
from taeda.utils import data

nn, optim = t.nn, t.optim


def net():
    return nn.Linear(3, 2)


def sgd(**options):
    return optim.SGD(net().parameters(), **options)


class Samples(data.Dataset):
    """Fails on its third sample."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        if index == 2:
            raise LookupError("sample trouble")
        return t.ones(2)


class Uneven(Samples):
    """Samples of different sizes."""

    def __getitem__(self, index):
        return t.ones(index + 1)


def without_init():
    class Plain(nn.Module):
        def __init__(self):
            self.layer = net()

    Plain()


def no_forward():
    class Plain(nn.Module):
        pass

    Plain()(t.ones(1))


def replace_parameter():
    net().weight = 3


def load_extra():
    state = net().state_dict()
    state["odd"] = t.ones(1)
    net().load_state_dict(state)


def load_missing():
    state = net().state_dict()
    del state["bias"]
    net().load_state_dict(state)


ROWS = [
    ("linear-input", lambda: net()(t.ones(1, 4)), RuntimeError, "linear", "(1, 4)", "(2, 3)"),
    ("linear-missing", lambda: nn.Linear(3), TypeError, "out_features"),
    ("linear-call-text", lambda: net()("x"), TypeError, "linear", "str"),
    ("module-without-init", without_init, AttributeError, "__init__", "Plain"),
    ("module-no-forward", no_forward, NotImplementedError, "Plain", "forward"),
    ("module-attribute", lambda: net().wheight, AttributeError, "Linear", "wheight"),
    ("module-replace-parameter", replace_parameter, TypeError, "weight", "int"),
    ("module-register-dot", lambda: net().register_buffer("a.b", t.ones(1)), KeyError, "a.b"),
    ("module-register-kind", lambda: net().register_parameter("p", t.ones(1)), TypeError, "p", "Tensor"),
    ("module-submodule", lambda: net().get_submodule("a.b"), AttributeError, "a"),
    (
        "module-add-text",
        lambda: nn.Sequential().append("x") if hasattr(nn.Sequential, "append") else None,
        TypeError,
        "str",
    ),
    ("sequential-index", lambda: nn.Sequential(net())[3], IndexError, "3", "1"),
    ("state-extra", load_extra, RuntimeError, "odd"),
    ("state-missing", load_missing, RuntimeError, "bias"),
    (
        "state-shape",
        lambda: net().load_state_dict(nn.Linear(4, 2).state_dict()),
        RuntimeError,
        "weight",
        "[2, 4]",
        "[2, 3]",
    ),
    ("state-kind", lambda: net().load_state_dict(3), TypeError, "int"),
    ("module-to-integer", lambda: net().to(t.int64), TypeError, "int64"),
    ("module-train-text", lambda: net().train("yes"), ValueError, "str"),
    ("conv-groups", lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "groups|divisible", "3", "2"),
    ("conv-padding", lambda: nn.Conv2d(3, 4, 3, padding="wide"), ValueError, "padding", "wide"),
    (
        "conv-input",
        lambda: nn.Conv2d(3, 4, 3)(t.ones(1, 2, 8, 8)),
        RuntimeError,
        "conv2d",
        "(1, 2, 8, 8)",
        "3",
    ),
    ("dropout-p", lambda: nn.Dropout(-0.1), ValueError, "Dropout", "-0.1"),
    ("batchnorm-rank", lambda: nn.BatchNorm2d(3)(t.ones(2, 3)), ValueError, "BatchNorm2d", "(2, 3)"),
    ("groupnorm-groups", lambda: nn.GroupNorm(2, 3), ValueError, "GroupNorm", "3", "2"),
    ("embedding-padding", lambda: nn.Embedding(3, 2, padding_idx=3), AssertionError, "Embedding", "3"),
    ("lstm-size", lambda: nn.LSTM(3, 0), ValueError, "LSTM", "hidden_size", "0"),
    ("lstm-input", lambda: nn.LSTM(3, 4)(t.ones(5, 2, 7)), RuntimeError, "LSTM", "7", "3"),
    ("rnn-nonlinearity", lambda: nn.RNN(3, 4, nonlinearity="sine"), ValueError, "RNN", "sine"),
    (
        "loss-reduction",
        lambda: nn.MSELoss(reduction="most")(t.ones(1), t.ones(1)),
        ValueError,
        "reduction",
        "most",
    ),
    ("init-fan", lambda: nn.init.xavier_uniform_(t.ones(3)), ValueError, "2 dim", "(3,)"),
    ("init-gain", lambda: nn.init.calculate_gain("sine"), ValueError, "sine"),
    ("parameter-kind", lambda: nn.Parameter([1.0]), TypeError, "Parameter", "list"),
    ("parameter-integer", lambda: nn.Parameter(t.ones(2, dtype=t.int64)), RuntimeError, "int64"),
    ("clip-non-finite", lambda: clip(float("inf")), RuntimeError, "norm", "inf"),
    ("sgd-rate", lambda: sgd(lr=-1), ValueError, "SGD", "lr", "-1"),
    ("sgd-momentum", lambda: sgd(lr=0.1, momentum=-1), ValueError, "SGD", "momentum", "-1"),
    ("sgd-nesterov", lambda: sgd(lr=0.1, nesterov=True), ValueError, "SGD", "nesterov", "momentum"),
    ("sgd-tensor", lambda: optim.SGD(t.ones(2), lr=0.1), TypeError, "SGD", "params", "Tensor"),
    ("sgd-empty", lambda: optim.SGD([], lr=0.1), ValueError, "SGD", "params", "empty"),
    ("sgd-numbers", lambda: optim.SGD([1.0], lr=0.1), TypeError, "SGD", "params", "float"),
    ("sgd-twice", lambda: twice(), ValueError, "SGD", "more than once"),
    ("sgd-not-leaf", lambda: optim.SGD([t.ones(2, requires_grad=True) * 2]), ValueError, "SGD", "leaf"),
    ("sgd-group-kind", lambda: sgd().add_param_group([t.ones(1)]), TypeError, "add_param_group", "list"),
    ("sgd-keyword", lambda: sgd(speed=3), TypeError, "speed"),
    (
        "adam-betas",
        lambda: optim.Adam(net().parameters(), betas=(0.9, 1.0)),
        ValueError,
        "Adam",
        "betas|beta",
        "1.0",
    ),
    ("adam-eps", lambda: optim.Adam(net().parameters(), eps=-1.0), ValueError, "Adam", "eps", "-1"),
    (
        "optimizer-state",
        lambda: sgd().load_state_dict(optim.SGD([t.ones(1)]).state_dict()),
        ValueError,
        "load_state_dict",
        "2",
        "1",
    ),
    ("schedule-kind", lambda: optim.lr_scheduler.StepLR(net(), 3), TypeError, "StepLR", "Linear"),
    (
        "schedule-count",
        lambda: optim.lr_scheduler.LambdaLR(sgd(), [abs, abs]),
        ValueError,
        "LambdaLR",
        "2",
        "1",
    ),
    ("plateau-mode", lambda: optim.lr_scheduler.ReduceLROnPlateau(sgd(), "sideways"), ValueError, "sideways"),
    (
        "dataset-shapes",
        lambda: data.TensorDataset(t.ones(2), t.ones(3)),
        (ValueError, AssertionError),
        "(2,)",
        "(3,)",
    ),
    ("dataset-index", lambda: data.ConcatDataset([data.TensorDataset(t.ones(2))])[5], IndexError, "5", "2"),
    ("split-sum", lambda: data.random_split(Samples(), [1, 1]), ValueError, "2", "4"),
    ("loader-batch", lambda: data.DataLoader(Samples(), batch_size=0), ValueError, "batch_size", "0"),
    (
        "loader-both",
        lambda: data.DataLoader(Samples(), shuffle=True, sampler=[0]),
        ValueError,
        "sampler",
        "shuffle",
    ),
    (
        "loader-batch-sampler",
        lambda: data.DataLoader(Samples(), batch_size=2, batch_sampler=[[0]]),
        ValueError,
        "batch_sampler",
    ),
    ("loader-sample", lambda: list(data.DataLoader(Samples())), LookupError, "sample trouble"),
    (
        "loader-uneven",
        lambda: list(data.DataLoader(Uneven(), batch_size=2)),
        RuntimeError,
        "stack",
        "(1,)",
        "(2,)",
    ),
    ("loader-kind", lambda: data.default_collate([object()]), TypeError, "default_collate", "object"),
    ("sampler-count", lambda: data.RandomSampler([1], num_samples=0), ValueError, "RandomSampler", "0"),
    ("load-missing-file", lambda: t.load("no such file.safetensors"), FileNotFoundError, "no such file"),
]


def twice():
    p = t.ones(2, requires_grad=True)
    optim.SGD([{"params": [p]}, {"params": [p]}], lr=0.1)


def clip(value):
    p = t.ones(2, requires_grad=True)
    p.grad = t.full((2,), value)
    nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)
