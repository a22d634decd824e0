"""Processes that are started together, watched, and started again when one fails.

What PyTorch has further here, agents and meeting points of machines that come and go, are names alone.
"""
