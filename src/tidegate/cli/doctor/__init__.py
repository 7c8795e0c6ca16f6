"""The doctor: `tidegate doctor`. Start reading in `command.py`.

`machine.py`, `packages.py`, `store.py` and `spark.py` look at what Spark needs; `progress.py` reads
what a stock query told of itself, `files.py` and `stream.py` its input. `stock.py` judges rows as
one global watermark does, `planned.py` as the planner does; `losses.py` holds the two together.
"""
