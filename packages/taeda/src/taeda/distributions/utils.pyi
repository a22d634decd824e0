# What type checkers and editors see: the first-party provider.
from taeda_distributions.utils import *
