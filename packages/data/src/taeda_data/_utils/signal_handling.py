"""Nothing: workers that die are noticed without a handler of signals."""
