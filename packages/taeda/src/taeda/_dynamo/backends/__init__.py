"""Compilers of graphs: there are none."""
