# What type checkers and editors see: the first-party provider.
from taeda_nn.modules.loss import *
from taeda_nn.modules.loss import _Loss as _Loss
from taeda_nn.modules.loss import _WeightedLoss as _WeightedLoss
