"""Benchmarks: `python -m bench.<name>` prints a table and writes `build/bench/<name>.json`."""
