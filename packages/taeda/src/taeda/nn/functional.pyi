# What type checkers and editors see: the first-party provider.
from taeda_nn.functional.activation import *
from taeda_nn.functional.attention import *
from taeda_nn.functional.conv import *
from taeda_nn.functional.dropout import *
from taeda_nn.functional.linear import *
from taeda_nn.functional.loss import *
from taeda_nn.functional.norm import *
from taeda_nn.functional.pooling import *
from taeda_nn.functional.scaled import *
from taeda_nn.functional.spatial import *
