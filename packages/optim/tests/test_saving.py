"""Saved states: going on exactly, matching by name, refusing what does not fit without touching anything."""

import copy

import numpy as np
import pytest

import taeda_optim as optim
from taeda_registry.slots import tensor as tt

SHAPES = {"weight": (2, 3), "bias": (3,), "scale": ()}
ALGORITHMS = ["SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta", "RMSprop", "Rprop"]


def build(name, make, order=tuple(SHAPES), named=True):
    params = {key: make[0](np.full(SHAPES[key], 0.5)) for key in order}
    options = {"lr": 0.1, "momentum": 0.9} if name == "SGD" else {"lr": 0.1}
    return params, getattr(optim, name)(params.items() if named else params.values(), **options)


def run(params, optimizer, make, first, last):
    for t in range(first, last):
        for i, key in enumerate(SHAPES):
            make[1](params[key], np.full(SHAPES[key], (t + 1) * 0.1 - i))
        optimizer.step()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_going_on_equals_never_having_stopped(name, make):
    params, optimizer = build(name, make)
    run(params, optimizer, make, 0, 3)
    # Another order, as after a change of the model's source: names bring each state to its parameter.
    others, resumed = build(name, make, order=("scale", "weight", "bias"))
    with tt.no_grad():
        for key in SHAPES:
            others[key].copy_(params[key])
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    run(params, optimizer, make, 3, 6)
    run(others, resumed, make, 3, 6)
    for key in SHAPES:
        np.testing.assert_array_equal(make[2](params[key]), make[2](others[key]))


def test_without_names_the_order_counts(make):
    params, optimizer = build("Adam", make, named=False)
    run(params, optimizer, make, 0, 2)
    others, resumed = build("Adam", make, named=False)
    resumed.load_state_dict(optimizer.state_dict())
    for key in SHAPES:
        mine, theirs = optimizer.state[params[key]], resumed.state[others[key]]
        assert mine["step"] == theirs["step"] == 2
        assert mine["exp_avg"] is not theirs["exp_avg"]
        np.testing.assert_array_equal(make[2](mine["exp_avg"]), make[2](theirs["exp_avg"]))


def test_groups_that_were_kept_before_say_what_they_said(make):
    params, optimizer = build("SGD", make)
    kept, groups = optimizer.param_groups[0], optimizer.param_groups
    saved = copy.deepcopy(optimizer.state_dict())
    saved["param_groups"][0]["lr"] = 7.0
    optimizer.load_state_dict(saved)
    assert kept["lr"] == groups[0]["lr"] == 0.1 and optimizer.param_groups[0]["lr"] == 7.0
    assert all(
        mine is theirs
        for mine, theirs in zip(optimizer.param_groups[0]["params"], kept["params"], strict=True)
    )
    run(params, optimizer, make, 0, 1)
    assert float(params["scale"]) == pytest.approx(0.5 - 7 * (0.1 - 2))


def test_every_mismatch_is_listed_and_nothing_changes(make):
    params, optimizer = build("Adam", make)
    run(params, optimizer, make, 0, 2)
    saved = copy.deepcopy(optimizer.state_dict())
    saved["param_groups"][0]["param_names"] = ["weight", "bias", "shift"]
    saved["param_groups"][0]["lr"] = 7.0
    saved["state"][0]["exp_avg"] = tt.zeros(5)
    del saved["state"][1]["exp_avg_sq"]
    before = copy.deepcopy(optimizer.state_dict())
    with pytest.raises(ValueError, match="load_state_dict") as caught:
        optimizer.load_state_dict(saved)
    text = str(caught.value)
    assert "missing parameters ['scale']" in text
    assert "unexpected parameters ['shift']" in text
    assert "'exp_avg' has shape (5,), expected (2, 3)" in text
    assert "'bias': missing state ['exp_avg_sq']" in text
    after = optimizer.state_dict()
    assert after["param_groups"] == before["param_groups"]
    for number, state in before["state"].items():
        assert after["state"][number]["step"] == state["step"]
        np.testing.assert_array_equal(make[2](after["state"][number]["exp_avg"]), make[2](state["exp_avg"]))


def test_not_strict_takes_what_fits(make):
    params, optimizer = build("Adam", make)
    run(params, optimizer, make, 0, 2)
    others, resumed = build("Adam", make, order=("weight", "bias"))
    extra = make[0](np.zeros(2))
    resumed.add_param_group({"params": [("new", extra)]})
    saved = optimizer.state_dict()
    saved["param_groups"].append({**saved["param_groups"][0], "params": [], "param_names": []})
    resumed.load_state_dict(saved, strict=False)
    assert resumed.state[others["bias"]]["step"] == 2
    assert extra not in resumed.state


def test_state_of_another_algorithm_is_refused(make):
    params, optimizer = build("SGD", make)
    run(params, optimizer, make, 0, 1)
    with pytest.raises(ValueError, match="missing state"):
        build("Adam", make)[1].load_state_dict(optimizer.state_dict())


@pytest.mark.parametrize("name", ["Adam", "RMSprop", "Adagrad", "Rprop", "Adadelta", "ASGD", "NAdam"])
@pytest.mark.parametrize("count", [None, "three", [3]])
def test_a_count_that_is_none_is_refused_before_anything_changes(name, count, make):
    params, optimizer = build(name, make)
    run(params, optimizer, make, 0, 1)
    saved = optimizer.state_dict()
    if count is None:
        del saved["state"][0]["step"]
    else:
        saved["state"][0]["step"] = count
    words = "missing state ['step']" if count is None else f"state 'step' is {count!r}, expected a number"
    with pytest.raises(ValueError, match="load_state_dict") as caught:
        optimizer.load_state_dict(saved)
    assert words in str(caught.value)
    run(params, optimizer, make, 1, 2)
    assert optimizer.state[params["weight"]]["step"] == 2


def test_state_takes_the_parameters_dtype(make):
    params, optimizer = build("Adam", make)
    run(params, optimizer, make, 0, 1)
    single = [tt.zeros(SHAPES[key], dtype=tt.float32).requires_grad_(True) for key in SHAPES]
    resumed = optim.Adam(single)
    resumed.load_state_dict(optimizer.state_dict())
    assert resumed.state[single[0]]["exp_avg"].dtype == tt.float32
    assert resumed.param_groups[0]["lr"] == 0.1


COUNTING = [
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "RAdam",
    "Adagrad",
    "Adadelta",
    "RMSprop",
    "Rprop",
    "ASGD",
    "Adafactor",
]


@pytest.mark.parametrize("name", COUNTING)
def test_steps_are_counted_in_tensors_that_programs_write(name, make):
    params, optimizer = build(name, make)
    run(params, optimizer, make, 0, 2)
    count = optimizer.state[params["weight"]]["step"]
    assert isinstance(count, tt.Tensor) and count.dtype == tt.float32 and tuple(count.shape) == ()
    assert count.item() == 2
    run(params, optimizer, make, 2, 3)
    assert optimizer.state[params["weight"]]["step"] is count and count.item() == 3
    # Written in place, replaced, and as a number: the next step goes on from it.
    for wanted, written in ((11, lambda: count.fill_(10.0)), (6, lambda: tt.tensor(5.0)), (8, lambda: 7)):
        optimizer.state[params["weight"]]["step"] = written()
        run(params, optimizer, make, 3, 4)
        assert optimizer.state[params["weight"]]["step"].item() == wanted
    assert optimizer.state[params["bias"]]["step"].item() == 6


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NAdam", {"mu_product": 0.9 * (1 - 0.5 * 0.96**0.004) * 0.9 * (1 - 0.5 * 0.96**0.008)}),
        ("ASGD", {"eta": 0.1 / (1 + 1e-4 * 0.1 * 2) ** 0.75, "mu": 1.0}),
    ],
)
def test_other_numbers_of_states_are_tensors_too(name, expected, make):
    params, optimizer = build(name, make)
    run(params, optimizer, make, 0, 1)
    state = optimizer.state[params["weight"]]
    numbers = {key: state[key] for key in expected}
    run(params, optimizer, make, 1, 2)
    for key, value in expected.items():
        assert state[key] is numbers[key] and tuple(state[key].shape) == ()
        np.testing.assert_allclose(state[key].item(), value, rtol=1e-6)
    # States of earlier releases hold plain numbers.
    saved = copy.deepcopy(optimizer.state_dict())
    for each in saved["state"].values():
        each.update({key: each[key].item() for key in expected})
    others, resumed = build(name, make)
    with tt.no_grad():
        for key in SHAPES:
            others[key].copy_(params[key])
    resumed.load_state_dict(saved)
    run(params, optimizer, make, 2, 3)
    run(others, resumed, make, 2, 3)
    assert all(isinstance(resumed.state[others["bias"]][key], tt.Tensor) for key in expected)
    for key in SHAPES:
        np.testing.assert_allclose(make[2](others[key]), make[2](params[key]), rtol=1e-6)


def test_a_written_count_is_what_the_step_computes_with(make):
    params, optimizer = build("Adam", make)
    for count in optimizer.state.values():
        assert not count
    run(params, optimizer, make, 0, 1)
    before = make[2](params["bias"])
    state = optimizer.state[params["bias"]]
    state["step"].fill_(99.0)
    average, square = make[2](state["exp_avg"]), make[2](state["exp_avg_sq"])
    run(params, optimizer, make, 1, 2)
    gradient = np.full(SHAPES["bias"], 0.2 - 1)
    average, square = 0.9 * average + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
    step = 0.1 * average / (1 - 0.9**100) / (np.sqrt(square / (1 - 0.999**100)) + 1e-8)
    np.testing.assert_allclose(make[2](params["bias"]), before - step, rtol=1e-12)


def test_a_step_that_fails_counts_nothing(make):
    params, optimizer = build("Adam", make)
    run(params, optimizer, make, 0, 1)
    optimizer.state[params["bias"]]["exp_avg"] = tt.zeros(5)
    with pytest.raises((RuntimeError, ValueError)):
        run(params, optimizer, make, 1, 2)
    assert [state["step"].item() for state in optimizer.state.values()] == [1, 1, 1]


def test_states_with_counts_as_numbers_are_taken(make):
    params, optimizer = build("Adam", make)
    run(params, optimizer, make, 0, 2)
    old = copy.deepcopy(optimizer.state_dict())
    for state in old["state"].values():
        state["step"] = int(state["step"])
    _others, resumed = build("Adam", make)
    resumed.load_state_dict(old)
    assert all(
        state["step"].item() == 2 and tuple(state["step"].shape) == () for state in resumed.state.values()
    )


@pytest.mark.parametrize(
    ("state", "error", "words"),
    [
        ({}, KeyError, "no 'param_groups' and no 'state'"),
        ({"state": {}}, KeyError, "no 'param_groups'"),
        ({"state": {}, "param_groups": []}, ValueError, "parameter groups"),
        ([], TypeError, "found list"),
        (None, TypeError, "found NoneType"),
    ],
)
def test_what_is_no_state_is_refused(make, state, error, words):
    optimizer = optim.SGD([make[0]([1.0])], lr=0.1)
    with pytest.raises(error, match=words):
        optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["lr"] == 0.1
