"""The rules by which an expression of Spark's SQL becomes one of DuckDB's with equal results.

Pure text and types: it may import pyarrow's types and the parsed tree, and runs nothing. Start
reading in `registry.py`; then a file per kind of rule: operators, casts, functions, aggregates.
"""
