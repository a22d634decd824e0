"""The launcher of before: `run`, which also tells scripts their number as the argument ``--local-rank``."""

from __future__ import annotations

from collections.abc import Sequence

from taeda.distributed.run import get_args_parser, run

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> None:
    """The command line; with ``--use-env`` scripts read LOCAL_RANK of their environment instead."""
    parsed = get_args_parser().parse_args(args)
    parsed.pass_local_rank = not parsed.use_env
    run(parsed)


if __name__ == "__main__":
    main()
