"""Where clean interpreters find what their workers read."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
