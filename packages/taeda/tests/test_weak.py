"""Mappings that keep nothing alive."""

import copy
import gc

import taeda


def test_mappings_by_identity_are_copied_joined_and_let_go():
    from taeda.utils.weak import WeakIdKeyDictionary

    first, second = taeda.ones(2), taeda.ones(2)  # equal, and told apart
    made = WeakIdKeyDictionary({first: [1], second: [2]})
    copied, deep = made.copy(), copy.deepcopy(made)
    assert copied == made == deep and copied[first] is made[first] and deep[first] is not made[first]
    assert repr(made).startswith("<WeakIdKeyDictionary at 0x")
    joined = WeakIdKeyDictionary({first: 3}) | {second: 4}
    assert joined[first] == 3 and ({first: 5} | joined)[first] == 3 and len(joined.keyrefs()) == 2
    joined |= {first: 6}
    assert joined[first] == 6 and joined != made
    del second
    gc.collect()
    assert len(made) == len(copied) == len(deep) == 1 and list(made) == [first]
