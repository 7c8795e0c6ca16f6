"""The catalog: what is visible, under which offsets, and what its users have agreed on.

One file per table's questions; each question is a function of a connection, so that several of them
are one transaction. Start reading in `schema.py`, then `database.py`.
"""
