"""The gate: Spark's own stateful operators follow our watermark.

For queries whose memory has no bound in time. Start reading in `trick.py`, which says how Spark is
made to follow, in one place; then `planner.py` (what a source answers when Spark asks for offsets),
`reader.py` (rows and watermark messages, on executors), `packs.py` (how rows travel into Spark) and
`doors.py`. Planning, late rows, sinks and progress are those of the whole room: the gate adds a
source.
"""
