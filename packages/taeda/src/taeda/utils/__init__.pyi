# What type checkers and editors see: the first-party provider.
from taeda.utils import data as data
