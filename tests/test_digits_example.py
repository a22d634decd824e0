"""What the digits example shows while it trains: a bar that moves in a terminal, a few lines in a log."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

TRAIN = Path(__file__).parents[1] / "examples" / "digits" / "train.py"
EPOCHS = 2


def command(folder):
    return [sys.executable, str(TRAIN), "--epochs", str(EPOCHS), "--output", str(folder)]


def test_a_log_gets_a_line_for_each_epoch(tmp_path):
    done = subprocess.run(command(tmp_path), capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert len([line for line in done.stdout.splitlines() if line.startswith("epoch")]) == EPOCHS
    assert "\r" not in done.stdout


def test_a_terminal_sees_the_bar_move_to_its_end(tmp_path):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 100, 0, 0))
    child = subprocess.Popen(command(tmp_path), stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True)
    os.close(theirs)
    shown = bytearray()
    try:
        while part := os.read(ours, 65_536):
            shown += part
    except OSError:  # how the other end's closing is told
        pass
    child.wait()
    os.close(ours)
    done = [int(share) for share in re.findall(rb"(\d+)%\|", bytes(shown))]
    assert done[-1] == 100, bytes(shown[-500:])
    assert done == sorted(done)
