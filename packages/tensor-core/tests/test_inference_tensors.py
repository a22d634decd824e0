"""Tensors made under inference_mode stay as they are outside of it."""

import pytest

import taeda_tensor_core as tc

PLACES = tc.tensor([0, 1])
WRITES = {
    "elementwise": lambda x: x.add_(1),
    "one value": lambda x: x.fill_(2),
    "copy": lambda x: x.copy_(tc.zeros(2, 3)),
    "composite": lambda x: x.addcmul_(tc.ones(2, 3), tc.ones(2, 3)),
    "random": lambda x: x.normal_(),
    "places": lambda x: x.index_add_(0, PLACES, tc.ones(2, 3)),
    "mask": lambda x: x.masked_fill_(x > 0, 3),
    "assignment": lambda x: x.__setitem__(0, 5),
    "out": lambda x: tc.add(tc.ones(2, 3), 1, out=x),
    "list": lambda x: tc._foreach_add_([x], 1),
    "through a view": lambda x: x[0].mul_(2),
    "dimensions": lambda x: x.unsqueeze_(0),
    "order": lambda x: x.t_(),
    "memory": lambda x: x.set_(tc.zeros(4)),
    "size": lambda x: x.resize_(1),
    "size of another": lambda x: x.resize_as_(tc.zeros(1)),
}


def made():
    with tc.inference_mode():
        return tc.ones(2, 3)


@pytest.mark.parametrize("name", WRITES)
def test_nothing_changes_them_outside(name):
    x = made()
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        WRITES[name](x)
    assert x.tolist() == [[1, 1, 1], [1, 1, 1]]


@pytest.mark.parametrize("name", WRITES)
def test_within_the_mode_and_for_other_tensors_all_is_as_ever(name):
    x, y = made(), tc.ones(2, 3)
    with tc.inference_mode():
        WRITES[name](x)
        WRITES[name](tc.ones(2, 3))
    WRITES[name](y)
    assert x.shape == y.shape


def test_what_is_detached_of_them_may_change():
    x = made()
    x.data.add_(1)
    x.detach().view(-1)[0] = 7
    assert x.tolist() == [[7, 2, 2], [2, 2, 2]]
    assert x.is_inference()
    assert x.detach().is_inference()


def test_optimizers_counts_are_theirs_too():
    with tc.inference_mode():
        count = tc.zeros(())
    assert not tc._C._raise_counts([{"step": count}])
    assert count.item() == 0
