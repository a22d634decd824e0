# What type checkers and editors see: the first-party provider.
from multiprocessing import *

from taeda_multiprocessing import *
