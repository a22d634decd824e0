# What type checkers and editors see: the first-party provider.
import taeda_data as data
