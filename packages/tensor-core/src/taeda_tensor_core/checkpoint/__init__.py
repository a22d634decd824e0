"""Files of tensors: safetensors and PyTorch's formats, written whole and read without running code of theirs.

``serialization`` is the public side. Here: what the formats share (``common``), the formats, and how bytes get into
files.
"""
