"""Starts a function or a program in several processes that can make a group."""

from __future__ import annotations

from taeda.distributed.launcher.api import LaunchConfig, elastic_launch, launch_agent

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]
