"""Looking at operators changes none: under a mode that passes every call on, each gives what its record says.

Its gradients too; and whatever autocast casts, an operator still takes its operands.
"""

import itertools

import pytest

import taeda
import taeda.autograd
from taeda.overrides import TorchFunctionMode
from taeda.utils._python_dispatch import TorchDispatchMode
from taeda_testing import check_forward
from taeda_testing.cases import CHECKS, samples_of
from taeda_testing.record import all_records
from taeda_testing.runner import function_of, to_tensors

MOST_SAMPLES = 12
# Whose results have as many elements as values differ.
OF_VALUES = ("unique", "unique_all", "nonzero")


class Dispatch(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Function(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def families():
    by_family = {}
    for record in all_records():
        by_family.setdefault(record.family, []).append(record)
    return by_family


FAMILIES = families()


@pytest.mark.parametrize("mode", [Dispatch, Function])
@pytest.mark.parametrize("family", FAMILIES)
def test_operators_are_the_same_under_a_mode(family, mode):
    wrong, checked = [], 0
    for record in FAMILIES[family]:
        for dtype in record.dtypes:
            for sample in itertools.islice(samples_of(record, dtype), MOST_SAMPLES):
                checked += 1
                try:
                    with mode():
                        check_forward(record, sample)
                except Exception as error:
                    wrong.append(f"{record.name} {dtype}: {type(error).__name__}: {str(error)[:200]}")
                    break
    assert checked > 0
    assert wrong == []


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_are_the_same_under_a_mode(family):
    check = next(check for check in CHECKS if check.name == "gradient")
    wrong = []
    for record in FAMILIES[family]:
        for dtype in check.dtypes(record):
            for sample in itertools.islice(check.samples(record, dtype), MOST_SAMPLES // 3):
                if not check.takes(record, sample):
                    continue
                try:
                    with Dispatch():
                        check.run(record, sample, "cpu")
                except Exception as error:
                    wrong.append(f"{record.name} {dtype}: {type(error).__name__}: {str(error)[:200]}")
                    break
    assert wrong == []


def shapes(result):
    if isinstance(result, (tuple, list)):
        return [shapes(part) for part in result]
    return tuple(result.shape) if isinstance(result, taeda.Tensor) else type(result)


@pytest.mark.parametrize("family", FAMILIES)
def test_operators_run_where_autocast_casts(family):
    wrong = []
    for record in FAMILIES[family]:
        if "float32" not in record.dtypes or record.creates or record.name in OF_VALUES:
            continue
        for sample in itertools.islice(samples_of(record, "float32"), MOST_SAMPLES):
            args, kwargs = to_tensors(list(sample.args)), {k: to_tensors(v) for k, v in sample.kwargs.items()}
            taeda.manual_seed(0)
            expected = shapes(function_of(record)(*args, **kwargs))
            try:
                with taeda.autocast("cpu", dtype=taeda.bfloat16):
                    found = shapes(function_of(record)(*args, **kwargs))
            except Exception as error:
                wrong.append(f"{record.name}: {type(error).__name__}: {str(error)[:200]}")
                break
            if found != expected:
                wrong.append(f"{record.name}: {found}, expected {expected}")
                break
    assert wrong == []


def test_turned_views_are_met_as_they_are():
    x = taeda.arange(12.0).reshape(3, 4)
    for work in (
        lambda: x.flip(0),
        lambda: x.flip(1, 0),
        lambda: taeda.rot90(x),
        lambda: taeda.fliplr(x),
        lambda: x[::-1],
        lambda: x[1::-1, ::-2],
        lambda: taeda.vander(x[0]),
    ):
        expected = work()
        with Dispatch():
            found = work()
        assert found.tolist() == expected.tolist()
