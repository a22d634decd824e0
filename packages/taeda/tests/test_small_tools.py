"""Small tools that programs import."""

import taeda
from taeda import nn
from taeda.utils.module_tracker import ModuleTracker


def test_the_modules_around_are_known_by_name():
    model, seen = nn.Sequential(nn.Linear(1, 1), nn.ReLU()), []
    tracker = ModuleTracker()
    model[0].register_forward_pre_hook(lambda *_: seen.append(sorted(tracker.parents)))
    with tracker:
        model(taeda.ones(1, 1))
        assert tracker.parents == {"Global"} and not tracker.is_bw
    model(taeda.ones(1, 1))
    assert seen == [["Global", "Sequential", "Sequential.0"], ["Global"]]


def test_the_modules_around_a_backward_are_known():
    seen = []

    class Watch(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            seen.append((tracker.is_bw, "Sequential.1" in tracker.parents, "Sequential.0" in tracker.parents))
            return grad

    class Watched(nn.Module):
        def forward(self, x):
            return Watch.apply(x).tanh()

    model = nn.Sequential(nn.Linear(1, 1), Watched())
    with ModuleTracker() as tracker:
        model(taeda.ones(1, 1)).sum().backward()
    assert seen == [(True, True, False)]
