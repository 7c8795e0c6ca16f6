"""Every error a user can meet.

One base class, few children by who must act. An error has a stable `code`, its facts as `fields`,
and a text of up to three lines: what is wrong, the detail with the numbers, a hint what to do.
Errors are made by the named factories below, so that each text stands in one place; every code has
a test that sees its full text.

>>> print(unknown_source(7, known=[0, 1]))
unknown source
Detail: source 7 is not registered; registered are: 0, 1.
Hint: call register_source first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


class TidegateError(Exception):
    """Base of all errors of Tidegate: `code`, `fields`, `hint`, `retryable`; it pickles."""

    def __init__(
        self,
        code: str,
        primary: str,
        *,
        detail: str = "",
        hint: str = "",
        fields: Mapping[str, Any] | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(primary)
        self.code = code
        self.primary = primary
        self.detail = detail
        self.hint = hint
        self.fields = dict(fields or {})
        self.retryable = retryable
        # Traces of tasks reach the driver as text: the code in it makes the error again.
        self.add_note(f"Code: {code}")

    def __str__(self) -> str:
        lines = [self.primary]
        if self.detail:
            lines.append(f"Detail: {self.detail}")
        if self.hint:
            lines.append(f"Hint: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.__dict__.copy()))


def _rebuild(kind: type[TidegateError], state: dict[str, Any]) -> TidegateError:
    error = kind(state["code"], state["primary"])
    error.__dict__.update(state)
    return error


class InputError(TidegateError):
    """The caller asked for something that cannot be.

    A wrong name, a wrong value, a wrong moment.
    """


class DataError(TidegateError):
    """The data of a stream is not what it was declared to be."""


class ConflictError(TidegateError):
    """Somebody else was there first: fenced, superseded, changed in between."""


class InternalError(TidegateError):
    """A promise of our own is broken: a defect of Tidegate, to be reported."""


def listed(names: Iterable[object], *, most: int = 10) -> str:
    """The valid choices for an error text, cut short when there are many.

    >>> listed(["b", "a"]), listed([]), listed(range(12), most=3)
    ('a, b', 'none', '0, 1, 2 and 9 more')
    """
    ordered = list(names)
    try:
        ordered.sort()
    except TypeError:
        ordered.sort(key=str)
    if not ordered:
        return "none"
    shown = ", ".join(str(name) for name in ordered[:most])
    return shown if len(ordered) <= most else f"{shown} and {len(ordered) - most} more"


# ---- instants and durations ----


def instant_out_of_range(value: object) -> InputError:
    """An event time beyond what we can order and pack: some 73,000 years around 1970."""
    return InputError(
        "instant-out-of-range",
        "instant is out of range",
        detail=f"{value} microseconds is more than about 73,000 years away from 1970.",
        hint="check the unit: instants are integer microseconds since the epoch, UTC.",
        fields={"value": value},
    )


def instant_not_parsed(text: object) -> InputError:
    """A text that is not an ISO 8601 instant."""
    return InputError(
        "instant-not-parsed",
        "not an instant",
        detail=f"{text!r} is not an ISO 8601 date and time.",
        hint="write it like 2026-01-31T12:00:00Z or 2026-01-31T12:00:00.123456+01:00.",
        fields={"text": text},
    )


def duration_not_parsed(text: object, units: Iterable[str]) -> InputError:
    """A text that is not a duration."""
    return InputError(
        "duration-not-parsed",
        "not a duration",
        detail=f"{text!r} is not a number followed by a unit; units are: {', '.join(units)}.",
        hint="write it like 500ms, 5s, '5 minutes' or 1h.",
        fields={"text": text},
    )


def time_went_back(what: str, at: object, to: object) -> InputError:
    """Somebody asked time to go back."""
    return InputError(
        "time-went-back",
        "time cannot go back",
        detail=f"{what} is at {at}, asked to go to {to}.",
        hint="advance to an equal or later time; rows before it are late rows.",
        fields={"what": what, "at": at, "to": to},
    )


# ---- partitions and sources ----


def unknown_source(source: object, known: Iterable[object]) -> InputError:
    """A source nobody registered."""
    return InputError(
        "unknown-source",
        "unknown source",
        detail=f"source {source} is not registered; registered are: {listed(known)}.",
        hint="call register_source first.",
        fields={"source": source},
    )


def unknown_partition(source: object, partition: object, known: Iterable[object]) -> InputError:
    """A partition of a known source that was removed, or was never added."""
    return InputError(
        "unknown-partition",
        "unknown partition",
        detail=f"source {source} has no partition {partition}; it has: {listed(known)}.",
        hint="call add_partition first.",
        fields={"source": source, "partition": partition},
    )


def partition_out_of_range(source: object, partition: object, count: int) -> InputError:
    """A partition number at or beyond the source's range, or below zero."""
    return InputError(
        "partition-out-of-range",
        "partition is out of range",
        detail=f"source {source} has partitions 0 to {count - 1}, asked for {partition}."
        if count
        else f"source {source} has no partitions, asked for {partition}.",
        hint="register the source with more partitions, or call add_partition.",
        fields={"source": source, "partition": partition, "count": count},
    )


def partition_exists(source: object, partition: object) -> InputError:
    """A partition that is there already."""
    return InputError(
        "partition-exists",
        "partition exists already",
        detail=f"source {source} has a partition {partition}.",
        hint="update it, or remove it before adding it again.",
        fields={"source": source, "partition": partition},
    )


def unknown_core(core: object, cores: int) -> InputError:
    """A lane the collector does not have."""
    return InputError(
        "unknown-core",
        "unknown core",
        detail=f"there are cores 0 to {cores - 1}, asked for {core}.",
        hint="make the collector with as many cores as there are lanes.",
        fields={"core": core, "cores": cores},
    )


def unknown_member(member: object, known: Iterable[object]) -> InputError:
    """A member an alignment group does not have."""
    return InputError(
        "unknown-member",
        "unknown member of the alignment group",
        detail=f"{member!r} is not registered; registered are: {listed(known)}.",
        hint="call register first.",
        fields={"member": member},
    )


# ---- the graph and its progress ----


def node_exists(node: str) -> InputError:
    """A name that is taken."""
    return InputError(
        "node-exists",
        "node exists already",
        detail=f"the graph has a node {node!r}.",
        hint="give every input, node and sink a name of its own.",
        fields={"node": node},
    )


def unknown_node(node: str, known: Iterable[str]) -> InputError:
    """A name that nothing has here."""
    return InputError(
        "unknown-node",
        "unknown node",
        detail=f"there is no {node!r} here; there are: {listed(known)}.",
        hint="inputs, nodes and sinks are asked for by the names they were given in the graph.",
        fields={"node": node},
    )


def unknown_output(node: str, output: str, known: Iterable[str]) -> InputError:
    """An output that the node does not have."""
    return InputError(
        "unknown-output",
        "unknown output",
        detail=f"node {node!r} has no output {output!r}; it has: {listed(known)}.",
        hint="errors come from extracting event time, late rows from windows.",
        fields={"node": node, "output": output},
    )


def graph_without_sink(nodes: Iterable[str]) -> InputError:
    """A graph whose rows arrive nowhere."""
    return InputError(
        "graph-without-sink",
        "graph has no sink",
        detail=f"its nodes are: {listed(nodes)}.",
        hint="add one with graph.sink(name, stream); progress is the minimum over sinks.",
    )


def row_without_time(source: str) -> InputError:
    """A row sent without a time where time is event time."""
    return InputError(
        "row-without-time",
        "row has no time",
        detail=f"input {source!r} runs on event time, and a row was sent without one.",
        hint='send(item, time), or run with Plan("processing", clock=...).',
        fields={"input": source},
    )


def input_ended(source: str, ending: str) -> InputError:
    """A row or a number after the end."""
    return InputError(
        "input-ended",
        "input has ended",
        detail=f"input {source!r} came to a {ending} end.",
        hint="execute the graph again for a new run.",
        fields={"input": source, "ending": ending},
    )


def input_held(source: str, node: str, at: object, until: object) -> InputError:
    """A row from a source that is held back."""
    return InputError(
        "input-held",
        "input is held",
        detail=f"input {source!r} waits until node {node!r} reaches {until}; it is at {at}.",
        hint="ask may_send() first.",
        fields={"input": source, "node": node, "at": at, "until": until},
        retryable=True,
    )


def run_failed(node: str) -> InputError:
    """A row or a number for a run in which a node has raised an error."""
    return InputError(
        "run-failed",
        "run has failed",
        detail=f"node {node!r} raised an error; what followed from that row is incomplete.",
        hint="execute the graph again and send its rows from the beginning.",
        fields={"node": node},
    )


def unknown_plan_time(time: object, known: Iterable[str]) -> InputError:
    """A kind of time that a graph cannot run on."""
    return InputError(
        "unknown-plan-time",
        "unknown time to run on",
        detail=f"a graph runs on one of: {listed(known)}; asked for {time!r}.",
        hint='use Plan("event") or Plan("processing", clock=...).',
        fields={"time": time},
    )


def clock_missing() -> InputError:
    """Processing time without a clock."""
    return InputError(
        "clock-missing",
        "processing time needs a clock",
        detail="the time of a row is the clock when it arrives, and no clock was given.",
        hint="hand one in: a callable that gives the current instant in microseconds.",
    )


def clock_not_used() -> InputError:
    """A clock where none is looked at."""
    return InputError(
        "clock-not-used",
        "event time uses no clock",
        detail="a clock was given to a plan on event time, where rows bring their time.",
        hint='leave the clock out, or use Plan("processing", clock=...).',
    )


def not_a_positive_duration(name: str, duration: object) -> InputError:
    """A duration that must be longer than nothing."""
    return InputError(
        "not-a-positive-duration",
        "duration must be positive",
        detail=f"{name} is {duration}.",
        hint="give a timedelta of at least 1 microsecond.",
        fields={"name": name, "duration": duration},
    )


def slide_exceeds_size(slide: object, size: object) -> InputError:
    """Windows with holes between them."""
    return InputError(
        "slide-exceeds-size",
        "slide is longer than the window",
        detail=f"a window of {size} every {slide} leaves times that belong to no window.",
        hint="slide by at most the size; filter the rows first if some are not wanted.",
        fields={"slide": slide, "size": size},
    )


# ---- event time types and declarations ----


def _event_time_of(stream: str | None, column: str | None) -> str:
    what = f'column "{column}"' if column else "an event time"
    return f'{what} of stream "{stream}"' if stream else what


def unknown_event_time_type(
    name: str, known: Iterable[str], *, stream: str | None = None, column: str | None = None
) -> InputError:
    """An event time type that nobody registered."""
    what = _event_time_of(stream, column)
    return InputError(
        "unknown-event-time-type",
        "unknown event time type",
        detail=f'{what} has the type "{name}"; known types are: {listed(known, most=99)}.',
        hint="use one of them, a pattern such as %Y-%m-%d, or register the type.",
        fields={"type": name, "stream": stream, "column": column},
    )


def event_time_type_exists(name: str) -> InputError:
    """A name of an event time type that is taken."""
    return InputError(
        "event-time-type-exists",
        "event time type exists already",
        detail=f'"{name}" is registered.',
        hint="choose another name, or register it with replace=True.",
        fields={"type": name},
    )


def event_time_type_ambiguous(name: str, packages: Iterable[str]) -> InputError:
    """Several packages offer an event time type by one name."""
    offering = listed(packages)
    return InputError(
        "event-time-type-ambiguous",
        "event time type is offered more than once",
        detail=f'"{name}" is offered by: {offering}.',
        hint="uninstall one of them, or register the name with replace=True.",
        fields={"type": name, "packages": offering},
    )


def event_time_type_misnamed(name: str) -> InputError:
    """A name that could not be told from a pattern, or not be read at all."""
    return InputError(
        "event-time-type-misnamed",
        "name cannot be that of an event time type",
        detail=f"{name!r} is empty, has blanks around it, or contains a % and is a pattern.",
        hint="register the pattern under a name without %.",
        fields={"type": name},
    )


def event_time_type_not_readable(name: str, readable: object) -> InputError:
    """Something registered as an event time type that reads nothing."""
    return InputError(
        "event-time-type-not-readable",
        "not an event time type",
        detail=f'"{name}" was given as {readable!r}.',
        hint="give a pattern, a parser, or a function of one value; column= goes with a function.",
        fields={"type": name},
    )


def event_time_type_not_loaded(name: str, package: str, reason: str) -> InputError:
    """The code of a package that offers an event time type fails."""
    return InputError(
        "event-time-type-not-loaded",
        "event time type cannot be loaded",
        detail=f'"{name}" of package {package} fails with {reason}.',
        hint="repair or uninstall the package.",
        fields={"type": name, "package": package, "reason": reason},
    )


def event_time_pattern_refused(
    pattern: str, reason: str, *, stream: str | None = None, column: str | None = None
) -> InputError:
    """A pattern that cannot give an instant."""
    return InputError(
        "event-time-pattern-refused",
        "pattern cannot be read",
        detail=f'{_event_time_of(stream, column)} has the pattern "{pattern}": {reason}.',
        hint="write it as for strptime, such as %d/%m/%Y %H:%M:%S, with %z for the zone.",
        fields={"pattern": pattern, "reason": reason, "stream": stream, "column": column},
    )


def column_parser_broken(given: str, rows: int) -> InputError:
    """A user's function for columns that does not keep its contract."""
    return InputError(
        "column-parser-broken",
        "function for columns gave something else than times",
        detail=f"it was asked for {rows} times and gave {given}.",
        hint="return an Arrow array of the same length, int64 microseconds or timestamps,"
        " with null for bad rows.",
        fields={"given": given, "rows": rows},
    )


def event_time_not_declared(streams: Iterable[str]) -> InputError:
    """Event time switched on for streams that have none."""
    names = listed(streams)
    return InputError(
        "event-time-not-declared",
        "event time is switched on, but not declared",
        detail=f"no event time column is declared by: {names}.",
        hint="set eventtime.column and eventtime.type on the stream, or eventtime.enabled = false.",
        fields={"streams": names},
    )


def event_time_column_missing(stream: str, column: str, columns: Iterable[str]) -> InputError:
    """A declared event time column that the stream has not, or has twice."""
    names = list(columns)
    found = names.count(column)
    count = f"{found} columns" if found else "no column"
    return InputError(
        "event-time-column-missing",
        "event time column cannot be found",
        detail=f'stream "{stream}" has {count} "{column}"; its columns are:'
        f" {listed(names, most=99)}.",
        hint="correct eventtime.column.",
        fields={"stream": stream, "column": column},
    )


def event_time_column_unreadable(
    stream: str, column: str, kind: str, type: str, reads: str, known: Iterable[str]
) -> InputError:
    """An event time column whose data type the declared event time type cannot read."""
    return InputError(
        "event-time-column-unreadable",
        "event time column cannot be read as declared",
        detail=f'column "{column}" of stream "{stream}" is {kind}; the type "{type}" reads'
        f" {reads}.",
        hint=f"choose another column or type; known types are: {listed(known, most=99)}.",
        fields={"stream": stream, "column": column, "kind": kind, "type": type},
    )


# ---- ordered release ----


def update_needs_windows() -> InputError:
    """`late = update` where there is no window to correct."""
    return InputError(
        "update-needs-windows",
        "late rows cannot correct rows that were given out",
        detail="late = update runs a closed window again; ordered release gives a row out once.",
        hint="use late = route, drop or next.",
    )


def after_the_end(what: str) -> InputError:
    """More input after a graceful end."""
    return InputError(
        "after-the-end",
        "nothing can follow the end",
        detail=f"{what} has ended and given out everything it held.",
        hint="build a new one; a pause or a crash is not an end.",
        fields={"what": what},
    )


# ---- planning ----


def unknown_setting(name: str, known: Iterable[str]) -> InputError:
    """A setting that nobody would honour."""
    return InputError(
        "unknown-setting",
        "unknown setting",
        detail=f"{name!r} is not a setting; settings are: {listed(known, most=99)}.",
        hint="correct the name or leave it out: a setting is honoured or refused, never ignored.",
        fields={"name": name},
    )


def wrong_setting(name: str, value: object, valid: Iterable[object]) -> InputError:
    """A known setting with a value it cannot have."""
    return InputError(
        "wrong-setting",
        "wrong value of a setting",
        detail=f"{name} cannot be {value!r}; it can be: {', '.join(str(v) for v in valid)}.",
        hint="correct the value.",
        fields={"name": name, "value": value},
    )


def setting_given_twice(name: str, given: Iterable[str]) -> InputError:
    """One setting by two of its names, with two values."""
    return InputError(
        "setting-given-twice",
        "setting is given twice",
        detail=f"{name} is set more than once, to different values, by: {listed(given)}.",
        hint="keep one of them.",
        fields={"name": name},
    )


def use_given_twice(name: str) -> InputError:
    """Rows that are used once, and in windows or sessions."""
    return InputError(
        "use-given-twice",
        "rows cannot have two last uses",
        detail=f"{name} and last_use were both given.",
        hint="say what the first operator needs, and with held= how long those behind it hold on"
        " to a row.",
        fields={"name": name},
    )


def update_needs_slices() -> InputError:
    """`late = update` where no closed window can be run again."""
    return InputError(
        "update-needs-slices",
        "late rows cannot correct closed windows here",
        detail="late = update runs a closed window again from the log; rows in arrival order are"
        " given out once.",
        hint="use release = time (slices), or late = route.",
    )


def next_needs_tumbling(stream: str) -> InputError:
    """`late = next` where more than one window, or a join, would have to take the row."""
    return InputError(
        "next-needs-tumbling",
        "late rows cannot count in the next window here",
        detail=f'late = next has one next window; stream "{stream}" is used by overlapping windows'
        " or by a join.",
        hint="use tumbling windows or ordered release, or late = route.",
        fields={"stream": stream},
    )


def partition_unreadable(stream: str, partition: str, reason: str) -> DataError:
    """A partition cannot be read, and the policy says to fail."""
    return DataError(
        "partition-unreadable",
        "partition cannot be read",
        detail=f'stream "{stream}", partition "{partition}": {reason}.',
        hint="repair it, or set on_unreadable = hold so that the others go on.",
        fields={"stream": stream, "partition": partition, "reason": reason},
        retryable=True,
    )


def rows_truncated(
    stream: str,
    partition: str,
    wanted: int | str,
    first: int,
    *,
    cut: Mapping[str, int] | None = None,
) -> DataError:
    """Rows are asked for, by offset or by time, that retention has removed."""
    asked = f"from offset {wanted}" if isinstance(wanted, int) else wanted
    readable = f"; the first readable cut is {_places(cut)}" if cut is not None else ""
    return DataError(
        "rows-truncated",
        "rows are no longer there",
        detail=f'stream "{stream}", partition "{partition}": wanted {asked}, the first'
        f" that can be read is {first}{readable}.",
        hint="start again from a readable cut, and let retention keep more.",
        fields={
            "stream": stream,
            "partition": partition,
            "wanted": wanted,
            "first": first,
            "cut": None if cut is None else dict(cut),
        },
    )


def _places(cut: Mapping[str, int]) -> str:
    return listed(f"{name}={offset}" for name, offset in cut.items())


def query_finished(lineage: str) -> InputError:
    """A query over bounded input that has come to its end."""
    return InputError(
        "query-finished",
        "query has finished",
        detail=f'all inputs of query "{lineage}" have ended and its last windows were given out.',
        hint="start a new query; a finished one cannot be resumed.",
        fields={"lineage": lineage},
    )


def gate_without_sources(query: str) -> InputError:
    """A gated query none of whose sources has said anything in its store."""
    return InputError(
        "gate-without-sources",
        "query has no source that its store knows of",
        detail=f'no source of query "{query}" has told its time in the store it is written to.',
        hint="give write_stream the same query= and store= as read_stream.",
        fields={"query": query},
    )


def gate_with_strangers(query: str, sources: int, known: int) -> InputError:
    """A gated query with sources whose time is not known."""
    return InputError(
        "gate-with-strangers",
        "query has sources whose time is not known",
        detail=f'Spark reads {sources} sources in query "{query}", and {known} of them are told'
        " of in the store it is written to; so nobody can say how far its results are.",
        hint="read all of them by read_stream with the same query= and store=, or write the query"
        " by Spark's own writeStream.",
        fields={"query": query, "sources": sources, "known": known},
    )


def time_behind_missing(query: str, reason: str) -> InputError:
    """A query of which only the user knows how far its results are behind its watermark."""
    return InputError(
        "time-behind-missing",
        "time of the results is not clear",
        detail=f'in query "{query}" results may be earlier than the watermark: {reason}.',
        hint="say time_behind=, how far before the watermark the time of a result may lie: the"
        ' reach of a join, or "0 s" for a union of windows and for deduplication.',
        fields={"query": query},
    )


def query_fenced(
    query: str, lineage: str, batch: int, found_lineage: str | None, found_batch: int | None
) -> ConflictError:
    """A batch that does not follow what its query has committed."""
    if found_lineage is None:
        there = "the store has no record of it"
        why = "the record was reset, or this is another store"
    elif found_lineage != lineage:
        there = f"the store has batch {found_batch} of another history, {found_lineage}"
        why = "another checkpoint of this query was used, or this one was deleted and made anew"
    else:
        there = f"the store has batch {found_batch} of it"
        why = "another driver runs this query, or the checkpoint is older than what was committed"
    return ConflictError(
        "query-fenced",
        "query is fenced",
        detail=f'batch {batch} of query "{query}" (history {lineage}) cannot be committed: {there};'
        f" {why}. Nothing of this batch was written.",
        hint="stop the other driver, or go on with the checkpoint that belongs to the record; to"
        " begin anew, give the query another name, or reset it and delete its checkpoint.",
        fields={
            "query": query,
            "lineage": lineage,
            "batch": batch,
            "found_lineage": found_lineage,
            "found_batch": found_batch,
        },
    )


def unknown_job_node(job: str, node: str, known: Iterable[str]) -> InputError:
    """A part of a job that is not there."""
    return InputError(
        "unknown-job-node",
        "unknown node of a job",
        detail=f'job "{job}" has told nothing of "{node}"; it has: {listed(known)}.',
        hint="name a source or a sink of the job; nodes appear with its first batch.",
        fields={"job": job, "node": node},
    )


def batch_not_kept(job: str, batch: int, checkpoint: str) -> InputError:
    """A batch of a job whose plan is not in its checkpoint."""
    return InputError(
        "batch-not-kept",
        "no plan of this batch is kept",
        detail=f'job "{job}" has no batch {batch} in the checkpoint {checkpoint}.',
        hint="batches are numbered from 1, and Spark keeps the last hundred.",
        fields={"job": job, "batch": batch},
    )


def kernel_cannot(kernel: str, reason: str) -> InputError:
    """A kernel that was asked for and cannot run the query."""
    return InputError(
        "kernel-cannot",
        "kernel cannot run this query",
        detail=f'kernel "{kernel}": {reason}.',
        hint='use kernel="auto", which takes Spark for such a query and says why.',
        fields={"kernel": kernel, "reason": reason},
    )


def sink_without_deletes(sink: str) -> InputError:
    """`late = update` into a sink where taking rows back has no meaning."""
    return InputError(
        "sink-without-deletes",
        "sink cannot hold corrections",
        detail=f'with late = "update" results are taken back and said again; a {sink} sink keeps'
        " rows only.",
        hint='use a stream or files sink, or late = "route".',
        fields={"sink": sink},
    )


def sink_not_on_connect(sink: str) -> InputError:
    """A sink of this process in a session whose batches run beside the server."""
    return InputError(
        "sink-not-on-connect",
        "sink needs a session of this process",
        detail=f"on Spark Connect batches run in a process of the server, and what a {sink} sink"
        " keeps there cannot be seen from here.",
        hint="use a stream or files sink and read it from here, a function of your own"
        " (ForeachBatch), or a classic session.",
        fields={"sink": sink},
    )


def sink_fenced(
    sink: str, job: str, lineage: str, batch: int, found_job: str, found_lineage: str
) -> ConflictError:
    """A sink that holds the results of another history, or this batch by another plan."""
    if found_lineage != lineage:
        there = f'it holds results of history {found_lineage} of job "{found_job}"'
        why = "the job was reset, its checkpoint was deleted, or another job writes there"
    else:
        there = "it holds this batch, by another plan"
        why = "two drivers run this job with copies of one checkpoint"
    return ConflictError(
        "sink-fenced",
        "sink belongs to another history",
        detail=f'batch {batch} of job "{job}" (history {lineage}) cannot go to {sink}: {there};'
        f" {why}. Nothing of this batch was written.",
        hint="go on with the checkpoint that belongs to what is there; to begin anew, use another"
        " place or empty this one; what is there can still be read.",
        fields={
            "sink": sink,
            "job": job,
            "lineage": lineage,
            "batch": batch,
            "found_lineage": found_lineage,
        },
    )


def files_of_another_job(folder: str, job: str, found: str) -> ConflictError:
    """A folder of result files that another job writes to."""
    return ConflictError(
        "files-of-another-job",
        "folder belongs to another job",
        detail=f'"{folder}" holds the results of job "{found}"; job "{job}" would mix its own in.',
        hint="give every job a folder of its own, or empty this one.",
        fields={"folder": folder, "job": job, "found": found},
    )


def files_differ(folder: str, what: str, has: str, asked: str) -> InputError:
    """A folder of result files that were written in another way."""
    return InputError(
        "files-differ",
        "folder was written in another way",
        detail=f'in "{folder}" the {what} is {has}, now it would be {asked}.',
        hint="use another folder; columns may be added to results, others must keep their type.",
        fields={"folder": folder, "what": what, "has": has, "asked": asked},
    )


def unknown_file_format(format: str, known: Iterable[str]) -> InputError:
    """A format of result files that is not there."""
    return InputError(
        "unknown-file-format",
        "unknown file format",
        detail=f'"{format}" is none of the formats of a files sink: {listed(known)}.',
        hint="parquet keeps all types and is the fastest to read.",
        fields={"format": format},
    )


def type_not_for_format(format: str, column: str, kind: str) -> InputError:
    """A column that a format of files cannot hold."""
    return InputError(
        "type-not-for-format",
        "file format cannot hold a column",
        detail=f'column "{column}" is {kind}, and {format} files have no way to write that.',
        hint='use format="parquet", or compute a column of another type in the query.',
        fields={"format": format, "column": column, "type": kind},
    )


def no_result_files(folder: str) -> InputError:
    """A folder to which no files sink has written."""
    return InputError(
        "no-result-files",
        "no results of a job there",
        detail=f'"{folder}" has no folder _tidegate with the manifests of a files sink.',
        hint="give the folder that the FilesSink was given; it is made by the first start.",
        fields={"folder": folder},
    )


def memory_without_rows(name: str, known: Iterable[str]) -> InputError:
    """A memory sink that no job of this process has been started with."""
    return InputError(
        "memory-without-rows",
        "no such rows in memory",
        detail=f'no job of this process has been started with MemorySink("{name}"); started were:'
        f" {listed(known)}.",
        hint="start the job first; rows in memory end with the process.",
        fields={"name": name},
    )


def result_without_time(job: str) -> InputError:
    """Results without an event time, for a sink that needs one."""
    return InputError(
        "result-without-time",
        "result has no event time",
        detail=f'results of job "{job}" have neither "_window_end" nor "_event_time".',
        hint="select _window_end, or give a column the name _event_time.",
        fields={"job": job},
    )


def job_without_store() -> InputError:
    """A job without a place for its record."""
    return InputError(
        "job-without-store",
        "job has no store",
        detail="a job keeps its record, its late and bad rows and its progress in a store.",
        hint="give store=, a folder is enough.",
    )


def join_not_by_interval(reason: str, query: str) -> InputError:
    """A query that is not an interval join of two streams."""
    return InputError(
        "join-not-by-interval",
        "query is not an interval join",
        detail=f"{reason}: {query}.",
        hint="write SELECT columns FROM first [LEFT | RIGHT | FULL] JOIN second ON ..., with"
        " plain expressions; aggregate in a job on its result, or join inside windows.",
        fields={"reason": reason, "query": query},
    )


def query_not_row_by_row(reason: str, query: str) -> InputError:
    """A query over rows in order whose results would depend on how batches fall."""
    return InputError(
        "query-not-row-by-row",
        "query looks at several rows at once",
        detail=f"{reason}: {query}.",
        hint="rows come in the order of their time, in batches of any size: filter and compute"
        " row by row here, and aggregate in windows.",
        fields={"reason": reason, "query": query},
    )


def future_is_the_writers(stream: str) -> InputError:
    """A job that would judge rows from the future in a stream whose writers have done so."""
    return InputError(
        "future-is-the-writers",
        "max_future cannot be set here",
        detail=f'rows of stream "{stream}" were judged by the clock when they were written.',
        hint="set max_future when the stream is created.",
        fields={"stream": stream},
    )


def checkpoint_missing(job: str) -> InputError:
    """A job whose checkpoint has no natural place."""
    return InputError(
        "checkpoint-missing",
        "checkpoint address is missing",
        detail=f'the store of job "{job}" is not a folder, so its checkpoint has no place in it.',
        hint="give checkpoint=, an address that the driver can reach.",
        fields={"job": job},
    )


def processing_needs_commit_time(stream: str, column: str) -> InputError:
    """Processing time asked for on a stream that has an event time."""
    return InputError(
        "processing-needs-commit-time",
        "stream has an event time of its own",
        detail=f'watermark = "processing" goes by the time rows were appended; stream "{stream}"'
        f' is timed by its column "{column}".',
        hint="use a stream that was created without an event column.",
        fields={"stream": stream, "column": column},
    )


def start_cut_incomplete(stream: str, missing: Iterable[str]) -> InputError:
    """A start cut that leaves some partitions out."""
    return InputError(
        "start-cut-incomplete",
        "start cut does not cover the stream",
        detail=f'stream "{stream}": the cut has no offset for: {listed(missing)}.',
        hint="give an offset for every partition, 0 for its beginning.",
        fields={"stream": stream},
    )


def state_not_read(reason: str) -> InternalError:
    """A planner state that is not one of ours."""
    return InternalError(
        "state-not-read",
        "planner state cannot be read",
        detail=f"{reason}.",
        hint="the checkpoint was written by another version or is damaged; start a new query.",
        fields={"reason": reason},
    )


# ---- segments, cuts and marks ----


def segment_name_not_parsed(name: str) -> InputError:
    """A text that is not a segment's name."""
    return InputError(
        "segment-name-not-parsed",
        "not a segment",
        detail=f"{name!r} is not a number and an epoch.",
        hint="write segment 3 of epoch 1 as 3.e1.",
        fields={"name": name},
    )


def not_a_key_range(low: object, high: object) -> InputError:
    """A key range that is empty, or not one."""
    return InputError(
        "not-a-key-range",
        "not a key range",
        detail=f"[{low}, {high}) is not a range with 0 <= low < high <= 1.",
        hint="write bounds as numbers or fractions: 0, 0.5, '1/3'.",
        fields={"low": str(low), "high": str(high)},
    )


def key_ranges_overlap(segment: str, low: object, end: object) -> InputError:
    """Two segments that would own the same key."""
    return InputError(
        "key-ranges-overlap",
        "key ranges overlap",
        detail=f'segment "{segment}" begins at {low}, the one before it ends at {end}.',
        hint="let every range begin where the one before it ends.",
        fields={"segment": segment, "low": str(low), "end": str(end)},
    )


def ranges_do_not_cover(
    epoch: int, wanted: Iterable[tuple[object, object]], given: Iterable[tuple[object, object]]
) -> InputError:
    """A scale that would lose keys or own keys twice."""
    must, do = (
        ", ".join(f"[{low}, {high})" for low, high in ranges) or "nothing"
        for ranges in (wanted, given)
    )
    return InputError(
        "ranges-do-not-cover",
        "key ranges do not cover what they replace",
        detail=f"epoch {epoch} opens {do}, it must open exactly {must}.",
        hint="open ranges over the same keys as the segments that are sealed.",
        fields={"epoch": epoch, "wanted": must, "given": do},
    )


def segment_not_open(segment: str, known: Iterable[str]) -> InputError:
    """Sealing what is sealed."""
    return InputError(
        "segment-not-open",
        "segment is not open",
        detail=f'segment "{segment}" is sealed; open are: {listed(known)}.',
        hint="scale the segments of the latest epoch.",
        fields={"segment": segment},
    )


def unknown_segment(segment: str, epoch: int) -> InputError:
    """A cut or a position that names a segment the stream never had."""
    return InputError(
        "unknown-segment",
        "unknown segment",
        detail=f'segment "{segment}" is not in the lineage, which has epochs 0 to {epoch}.',
        hint="read the lineage again if the stream has been scaled since.",
        fields={"segment": segment, "epoch": epoch},
    )


def negative_offset(partition: str, offset: int) -> InputError:
    """A cut before the beginning."""
    return InputError(
        "negative-offset",
        "offset is negative",
        detail=f'partition "{partition}" is cut at {offset}.',
        hint="the beginning of a partition is 0.",
        fields={"partition": partition, "offset": offset},
    )


def cuts_do_not_meet(segments: Iterable[str]) -> InputError:
    """Two partial cuts in different successors of a segment."""
    names = sorted(segments)
    return InputError(
        "cuts-do-not-meet",
        "no last cut lies before both cuts",
        detail=f"both have passed the end of {listed(names)}, each into other successors.",
        hint="compare cuts that cover the whole key space.",
        fields={"segments": names},
    )


def position_went_back(writer: str, partition: str, at: int, to: int) -> InputError:
    """A note from a place the writer had already passed."""
    return InputError(
        "position-went-back",
        "position cannot go back",
        detail=f'writer "{writer}" has noted "{partition}" at {at}, now notes it at {to}.',
        hint="let one process write with one writer id.",
        fields={"writer": writer, "partition": partition, "at": at, "to": to},
    )


def unknown_writer(writer: str, known: Iterable[str]) -> InputError:
    """A goodbye from nobody."""
    return InputError(
        "unknown-writer",
        "unknown writer",
        detail=f'writer "{writer}" is not known; known are: {listed(known)}.',
        hint="it may have been silent for mark_timeout; its next note makes it known again.",
        fields={"writer": writer},
    )


def writer_mark_changed(writer: str, seen: object, found: object) -> ConflictError:
    """Removing a writer that has noted in between."""
    return ConflictError(
        "writer-mark-changed",
        "writer's mark has changed",
        detail=f'writer "{writer}" was seen at {seen}, and now is at {found}.'
        if found is not None
        else f'writer "{writer}" was seen at {seen}, and now is gone.',
        hint="read the mark again and decide anew.",
        fields={"writer": writer},
        retryable=True,
    )


def transaction_begun_twice(writer: str, transaction: str) -> InputError:
    """A transaction id that is in use."""
    return InputError(
        "transaction-begun-twice",
        "transaction is open already",
        detail=f'writer "{writer}" has an open transaction "{transaction}".',
        hint="commit or abort it, or choose another id.",
        fields={"writer": writer, "transaction": transaction},
    )


def transaction_not_open(writer: str, transaction: str, known: Iterable[str]) -> InputError:
    """Ending what is not open."""
    return InputError(
        "transaction-not-open",
        "transaction is not open",
        detail=f'writer "{writer}" has no open transaction "{transaction}"; open are:'
        f" {listed(known)}.",
        hint="it was committed, aborted, or has timed out.",
        fields={"writer": writer, "transaction": transaction},
    )


def span_out_of_order(partition: str, start: int, end: int, known: int) -> InputError:
    """A span that does not follow the last one."""
    return InputError(
        "span-out-of-order",
        "span is out of order",
        detail=f'partition "{partition}" is indexed up to {known}, the span is [{start}, {end}).',
        hint="append spans in offset order.",
        fields={"partition": partition, "start": start, "end": end, "known": known},
    )


# ---- command line ----


def output_not_written(path: str, reason: str) -> InputError:
    """A folder or a file that cannot be written."""
    return InputError(
        "output-not-written",
        "output cannot be written",
        detail=f'"{path}": {reason}.',
        hint="choose another folder, or make this one writable.",
        fields={"path": path, "reason": reason},
    )


def folder_not_empty(path: str) -> InputError:
    """A folder that was to be filled has something in it."""
    return InputError(
        "folder-not-empty",
        "folder is not empty",
        detail=f'"{path}" has something in it already.',
        hint="choose a folder that is not there yet, or an empty one.",
        fields={"path": path},
    )


def java_missing(oldest: int, found: str) -> InputError:
    """Spark was to be started, and there is no Java that it can run on."""
    return InputError(
        "java-missing",
        f"no Java runtime, {oldest} or newer",
        detail=f"Spark runs on Java; looked for in JAVA_HOME and on the path: {found}.",
        hint=f"as root: apt-get install openjdk-{oldest}-jre-headless, or set JAVA_HOME to one"
        " that is there; tidegate demo --pure needs none.",
        fields={"oldest": oldest, "found": found},
    )


def spark_failed(reason: str, log: str) -> InputError:
    """Java is there, and Spark does not come up on it, or ends in the middle."""
    return InputError(
        "spark-failed",
        "Spark has failed",
        detail=f"{reason.rstrip('.')}.",
        hint=f'read what Spark said in "{log}".',
        fields={"reason": reason, "log": log},
    )


def option_needs_another(option: str, other: str) -> InputError:
    """An option that says nothing without another one."""
    return InputError(
        "option-needs-another",
        "option does not stand alone",
        detail=f"{option} was given, and {other} was not.",
        hint=f"give {other} too, or leave {option} out.",
        fields={"option": option, "other": other},
    )


def options_exclude(option: str, other: str) -> InputError:
    """Two options of which only one can be meant."""
    return InputError(
        "options-exclude",
        "options exclude each other",
        detail=f"{option} and {other} were given.",
        hint="leave one of them out.",
        fields={"option": option, "other": other},
    )


def progress_not_read(place: str, reason: str) -> InputError:
    """A file that does not hold the progress of a streaming query."""
    return InputError(
        "progress-not-read",
        "progress cannot be read",
        detail=f"{place}: {reason}.",
        hint="write one JSON object per line, or an array of them; in PySpark:"
        ' file.writelines(p.json + "\\n" for p in query.recentProgress).',
        fields={"place": place, "reason": reason},
    )


def input_not_read(path: str, reason: str) -> InputError:
    """Rows that a streaming query reads, and that cannot be read here."""
    return InputError(
        "input-not-read",
        "input cannot be read",
        detail=f"{path}: {reason}.",
        hint="give a file, or a folder of files, of Parquet, JSON lines, or CSV with a header.",
        fields={"path": path, "reason": reason},
    )


def input_column_missing(path: str, column: str, columns: Sequence[str]) -> InputError:
    """A column that was named, and is not in the input."""
    return InputError(
        "input-column-missing",
        "column is not there",
        detail=f'{path} has no column "{column}"; it has: {listed(columns)}.',
        hint="choose one of them.",
        fields={"path": path, "column": column, "columns": list(columns)},
    )


# ---- logs ----


def log_kind_unknown(kind: object, known: Iterable[str]) -> InputError:
    """A description of a log that nobody can open."""
    return InputError(
        "log-kind-unknown",
        "unknown kind of log",
        detail=f"the description has the kind {kind!r}; kinds are: {listed(known)}.",
        hint="open what a log's describe() gave.",
        fields={"kind": kind},
    )


def log_partition_unknown(log: str, partition: str, known: Iterable[str]) -> InputError:
    """A partition that the log does not have."""
    return InputError(
        "log-partition-unknown",
        "unknown partition of a log",
        detail=f'"{log}" has no partition "{partition}"; it has: {listed(known)}.',
        hint="take partitions from a snapshot of the log.",
        fields={"log": log, "partition": partition},
    )


def log_offsets_missing(log: str, partition: str, start: int, end: int, latest: int) -> InputError:
    """Offsets at which no row stands yet, or that make no range."""
    return InputError(
        "log-offsets-missing",
        "offsets are not in the log",
        detail=f'partition "{partition}" of "{log}" ends at {latest}, asked for [{start}, {end}).',
        hint="read up to the cut of a plan; a plan never reaches past a snapshot.",
        fields={"log": log, "partition": partition, "start": start, "end": end, "latest": latest},
    )


def files_unreachable(log: str, address: str, reason: str) -> InputError:
    """A folder of files that cannot be listed."""
    return InputError(
        "files-unreachable",
        "folder of files cannot be listed",
        detail=f'"{log}" lies in {address}: {reason}.',
        hint="give a folder that exists, with one folder per partition in it.",
        fields={"log": log, "address": address, "reason": reason},
        retryable=True,
    )


def files_without_schema(log: str, address: str) -> InputError:
    """A folder that has no file yet to take the columns from."""
    return InputError(
        "files-without-schema",
        "columns of the files are not known",
        detail=f'"{log}" has no file in {address} yet, and no schema was given.',
        hint="give schema=pa.schema([...]), or open the log when the first file is there.",
        fields={"log": log, "address": address},
    )


def file_outside_partitions(log: str, file: str) -> DataError:
    """A file beside the partitions, where nobody would read it."""
    return DataError(
        "file-outside-partitions",
        "file lies outside of the partitions",
        detail=f'"{file}" of "{log}" lies beside the folders; each folder is a partition.',
        hint="move it into the folder of its partition, or give its name a leading _ or dot.",
        fields={"log": log, "file": file},
    )


def file_out_of_order(log: str, partition: str, file: str, last: str) -> DataError:
    """A new file whose rows would push the offsets of older ones."""
    return DataError(
        "file-out-of-order",
        "new file sorts before files that were read",
        detail=f'partition "{partition}" of "{log}" has a new file "{file}", but "{last}" was'
        " already there: an offset would change its row.",
        hint="give new files names that sort after all others, such as a time or a number.",
        fields={"log": log, "partition": partition, "file": file, "last": last},
    )


def file_changed(log: str, partition: str, file: str, how: str) -> DataError:
    """A file that is not what it was."""
    return DataError(
        "file-changed",
        "file has changed since it was read",
        detail=f'"{file}" in partition "{partition}" of "{log}" {how}: an offset would change'
        " its row.",
        hint="write a file elsewhere and move it here when it is whole; never change or delete it.",
        fields={"log": log, "partition": partition, "file": file, "how": how},
    )


def file_unreadable(log: str, partition: str, file: str, reason: str) -> DataError:
    """A file that was read before and cannot be read now."""
    return DataError(
        "file-unreadable",
        "file cannot be read",
        detail=f'"{file}" in partition "{partition}" of "{log}": {reason}.',
        hint="restore the file as it was; its rows are part of the log.",
        fields={"log": log, "partition": partition, "file": file, "reason": reason},
    )


def file_event_column_typed(log: str, column: str, kind: str, valid: str) -> InputError:
    """A type for the event time column that would make every bad row fatal to its file."""
    return InputError(
        "file-event-column-typed",
        "event time column of a text format has its own type",
        detail=f'column "{column}" of "{log}" is declared as {kind}; in this format it can be:'
        f" {valid}.",
        hint="declare it so; the instant itself is given as _event_time.",
        fields={"log": log, "column": column, "kind": kind},
    )


# ---- the door for plain PySpark ----


def complete_needs_frames(sink: str) -> InputError:
    """Every batch the whole result, where batches are appended to each other."""
    return InputError(
        "complete-needs-frames",
        "the sink cannot hold complete results",
        detail=f"with mode = complete every batch has the whole result; a {sink} sink appends.",
        hint="use mode = update or append, or a sink that is handed each batch: ForeachBatch,"
        " ConsoleSink.",
        fields={"sink": sink},
    )


def option_missing(name: str, known: Iterable[str]) -> InputError:
    """An option without which nothing can be read or written."""
    return InputError(
        "option-missing",
        "option is missing",
        detail=f"{name} is not given; options are: {listed(known, most=99)}.",
        hint=f'add .option("{name.split()[0]}", ...).',
        fields={"name": name},
    )


def bounds_crossed(first: str, start: object, last: str, end: object) -> InputError:
    """A read that would have to end before it begins."""
    return InputError(
        "bounds-crossed",
        "read ends before it begins",
        detail=f"{first} is {start}, and {last} is {end}.",
        hint="exchange them, or leave one out.",
        fields={"start": start, "end": end},
    )


def column_not_for_spark(stream: str, column: str, kind: str) -> InputError:
    """A column whose type Spark does not have."""
    return InputError(
        "column-not-for-spark",
        "Spark has no type for a column",
        detail=f'column "{column}" of "{stream}" is {kind}.',
        hint="leave it out: name the others in the option columns.",
        fields={"stream": stream, "column": column, "kind": kind},
    )


def schema_not_followed(stream: str, asked: str, has: str) -> InputError:
    """A schema that the user gave, and that is not the stream's."""
    return InputError(
        "schema-not-followed",
        "schema is not the stream's",
        detail=f'"{stream}" has {has}; asked for was {asked}.',
        hint="leave .schema(...) out and choose columns by the option columns; cast afterwards.",
        fields={"stream": stream, "asked": asked, "has": has},
    )


def batch_fenced(
    writer: str, query: str, batch: int, found_query: str, found_batch: int
) -> ConflictError:
    """A batch of a streaming query that does not follow what its writer has committed."""
    if found_query != query:
        why = f"the last one was batch {found_batch} of another query, {found_query}"
    else:
        why = f"batch {found_batch} was committed before: the checkpoint is older than the stream"
    return ConflictError(
        "batch-fenced",
        "batch does not follow the last one of its writer",
        detail=f'batch {batch} of query {query} is refused for writer "{writer}": {why}. Nothing '
        "of it was written.",
        hint="a writer_id belongs to one query and its checkpoint: go on with that checkpoint, or "
        "take another writer_id.",
        fields={
            "writer": writer,
            "query": query,
            "batch": batch,
            "found_query": found_query,
            "found_batch": found_batch,
        },
    )


# ---- the store ----


def catalog_unavailable(url: str, reason: str) -> ConflictError:
    """The catalog did not answer for longer than the patience."""
    return ConflictError(
        "catalog-unavailable",
        "catalog does not answer",
        detail=f"{url}: {reason.strip()}.",
        hint="see that the database runs and can be reached; nothing was half-done, try again.",
        fields={"url": url, "reason": reason},
        retryable=True,
    )


def upload_expired(paths: Sequence[str]) -> ConflictError:
    """An upload that took longer than its announcement lives."""
    return ConflictError(
        "upload-expired",
        "upload took too long",
        detail=f"{len(paths)} of its files may be swept by now, the first is {paths[0]}.",
        hint="nothing became visible; flush or commit again, the rows are written anew.",
        fields={"paths": list(paths)},
        retryable=True,
    )


def staged_files_missing(stream: str, folder: str, paths: Sequence[str]) -> InputError:
    """Files that tasks have written are not where the driver looks for them."""
    return InputError(
        "staged-files-missing",
        "files that tasks have written cannot be found",
        detail=f'{len(paths)} files for stream "{stream}" are not in {folder}: {listed(paths)}.',
        hint="open the store with a data address that every machine reaches: a shared folder or "
        "object storage.",
        fields={"stream": stream, "folder": folder, "paths": list(paths)},
    )


def store_missing(address: str) -> InputError:
    """An address where no store has been made."""
    return InputError(
        "store-missing",
        "no store at this address",
        detail=f"{address} has no catalog.",
        hint="correct the address, or make the store first with Store.open; on several machines it "
        "must be one that all of them reach.",
        fields={"address": address},
    )


def store_address_relative(address: str) -> InputError:
    """A folder that is another one in every process."""
    return InputError(
        "store-address-relative",
        "address of the store is relative",
        detail=f"{address!r} means another folder in each process of Spark.",
        hint="give the whole path, for example by Path(...).resolve().",
        fields={"address": address},
    )


def catalog_too_new(found: str, known: str) -> InputError:
    """A catalog that a later Tidegate has upgraded."""
    return InputError(
        "catalog-too-new",
        "catalog was made by a newer version",
        detail=f"its tables have version {found}, this version knows them up to {known}.",
        hint="upgrade Tidegate on this machine.",
        fields={"found": found, "known": known},
    )


def data_unavailable(address: str, reason: str) -> InputError:
    """A data address that cannot be opened."""
    return InputError(
        "data-unavailable",
        "data address cannot be opened",
        detail=f"{address}: {reason}.",
        hint="give a folder, s3://bucket/prefix or hdfs://host/path that can be written; on several"
        " machines one that all of them reach.",
        fields={"address": address, "reason": reason},
        retryable=True,
    )


def data_address_missing(catalog: str) -> InputError:
    """A catalog URL without a data address."""
    return InputError(
        "data-address-missing",
        "data address is missing",
        detail="a store opened by a catalog URL needs to be told where its data lies.",
        hint='open it with data="...": a shared folder, s3://bucket/prefix or hdfs://host/path.',
        fields={"catalog": catalog},
    )


def unknown_stream(name: str, known: Iterable[str]) -> InputError:
    """A stream that is not there."""
    return InputError(
        "unknown-stream",
        "unknown stream",
        detail=f'there is no stream "{name}"; there are: {listed(known)}.',
        hint="create it first, or correct the name.",
        fields={"stream": name},
    )


def stream_exists(name: str, same: bool) -> ConflictError:
    """A stream that is there already."""
    how = "as it is declared here" if same else "and it is declared otherwise"
    return ConflictError(
        "stream-exists",
        "stream exists already",
        detail=f'there is a stream "{name}", {how}.',
        hint="use it, or create it with exist_ok=True and the same declaration."
        if same
        else "use it as it is, alter it, or choose another name.",
        fields={"stream": name, "same": same},
    )


def stream_name_not_valid(name: str, longest: int) -> InputError:
    """A name that a path, a URL or SQL would stumble over."""
    return InputError(
        "stream-name-not-valid",
        "not a stream name",
        detail=f"{name!r} is not made of letters, digits, _ and -, in parts joined by dots, each"
        f" beginning with a letter or _, at most {longest} characters in all.",
        hint="choose a name like orders or shop.orders_v2.",
        fields={"name": name},
    )


def column_given_twice(stream: str, columns: Iterable[str]) -> InputError:
    """Two columns with one name."""
    names = list(columns)
    twice = sorted({name for name in names if names.count(name) > 1})
    return InputError(
        "column-given-twice",
        "column is given twice",
        detail=f'stream "{stream}" has more than one column named: {listed(twice)}.',
        hint="give every column a name of its own.",
        fields={"stream": stream, "columns": twice},
    )


def column_reserved(stream: str, column: str, reserved: Iterable[str]) -> InputError:
    """A column with the name of a system column."""
    return InputError(
        "column-reserved",
        "column name is reserved",
        detail=f'stream "{stream}" cannot have a column "{column}"; reserved are:'
        f" {listed(reserved)}.",
        hint="choose another name.",
        fields={"stream": stream, "column": column},
    )


def column_not_nullable(stream: str, column: str) -> InputError:
    """A column added to a stream that has rows without it."""
    return InputError(
        "column-not-nullable",
        "added column must be nullable",
        detail=f'stream "{stream}" has rows without a column "{column}": there it is null.',
        hint="add it as a nullable column.",
        fields={"stream": stream, "column": column},
    )


def unknown_column(stream: str, column: str, known: Iterable[str]) -> InputError:
    """A column the stream does not have."""
    return InputError(
        "unknown-column",
        "unknown column",
        detail=f'stream "{stream}" has no column "{column}"; it has: {listed(known, most=50)}.',
        hint="correct the name, or add the column to the schema.",
        fields={"stream": stream, "column": column},
    )


def unknown_system_column(column: str, known: Iterable[str]) -> InputError:
    """A system column that rows do not have."""
    return InputError(
        "unknown-system-column",
        "unknown system column",
        detail=f'rows have no system column "{column}" beside _event_time; they may have:'
        f" {listed(known)}.",
        hint="correct the name in system=; columns of the stream are there without it.",
        fields={"column": column},
    )


def chunk_unreadable(
    stream: str, segment: str, start: int, end: int, path: str, reason: str
) -> DataError:
    """A file of the store is missing, or is not what was written."""
    return DataError(
        "chunk-unreadable",
        "chunk cannot be read",
        detail=f'stream "{stream}", segment "{segment}", offsets {start} to {end}, file {path}:'
        f" {reason}.",
        hint="see that this machine reaches the store's data as all others do; if it does, restore "
        "the file from a copy, or truncate the stream before its end.",
        fields={"stream": stream, "segment": segment, "start": start, "end": end, "path": path},
    )


def truncation_unclear(given: Iterable[str]) -> InputError:
    """A truncation that says not how far, or says it more than once."""
    return InputError(
        "truncation-unclear",
        "truncate by one of: before, time, age, size",
        detail=f"given were: {listed(given)}.",
        hint='say how far, for example truncate("orders", age=timedelta(days=7)).',
    )


# ---- writers and transactions ----


def writer_fenced(writer: str, token: int) -> ConflictError:
    """Somebody else has opened the writer's id."""
    return ConflictError(
        "writer-fenced",
        "writer is fenced",
        detail=f'writer "{writer}" was opened again after this one; its token was {token}.',
        hint="leave the id to whoever has opened it last, or open it again to take it over.",
        fields={"writer": writer, "token": token},
    )


def writer_closed(stream: str, writer: str) -> InputError:
    """Something was asked of a writer that is closed."""
    return InputError(
        "writer-closed",
        "writer is closed",
        detail=f'writer "{writer}" of stream "{stream}" takes nothing any more.',
        hint="open a new one.",
        fields={"stream": stream, "writer": writer},
    )


def writer_without_id(stream: str, act: str) -> InputError:
    """A writer without an id cannot promise anything."""
    return InputError(
        "writer-without-id",
        f"writer without an id cannot {act}",
        detail=f'a writer of stream "{stream}" was opened without an id: nobody could wait for it.',
        hint='open it with one: store.writer(stream, "my-id", notes_time=True).',
        fields={"stream": stream, "act": act},
    )


def writer_id_not_valid(writer: object, longest: int) -> InputError:
    """A writer id that cannot be kept or told apart."""
    return InputError(
        "writer-id-not-valid",
        "not a writer id",
        detail=f"{writer!r} is not a printable text of 1 to {longest} characters without blanks "
        "around it, or begins with a reserved prefix.",
        hint="name the writer after what it is, like shop-eu.",
        fields={"writer": writer, "longest": longest},
    )


def time_noted_by_the_clock(writer: str) -> InputError:
    """A note by hand while notes are automatic."""
    return InputError(
        "time-noted-by-the-clock",
        "time is noted by the clock",
        detail=f'writer "{writer}" notes time automatically: a note by hand could contradict it.',
        hint="switch it off first: auto_note_time(None).",
        fields={"writer": writer},
    )


def rows_refused(stream: str, bad: int, rows: int, shown: Iterable[str]) -> DataError:
    """Rows that cannot enter a stream; nothing of the call was taken."""
    first = "; ".join(shown)
    return DataError(
        "rows-refused",
        "rows are refused",
        detail=f'{bad} of {rows} rows cannot enter stream "{stream}": {first}.',
        hint='correct them and append again, or open the writer with bad_rows="route".',
        fields={"stream": stream, "bad": bad, "rows": rows},
    )


def rows_not_understood(kind: str) -> InputError:
    """Something that is not rows."""
    return InputError(
        "rows-not-understood",
        "not rows",
        detail=f"{kind} cannot be read as rows.",
        hint="append a list of dicts, an Arrow table or record batch, a pandas or polars frame.",
        fields={"kind": kind},
    )


def row_numbers_skipped(stream: str, expected: int, given: object) -> InputError:
    """Rows were left out between two appends."""
    return InputError(
        "row-numbers-skipped",
        "row numbers are skipped",
        detail=f'the next row for stream "{stream}" is number {expected}, '
        f"these begin with {given}.",
        hint="begin at or before writer.appended; what overlaps is left out.",
        fields={"stream": stream, "expected": expected, "given": given},
    )


def routing_key_not_hashable(column: str, kind: str) -> InputError:
    """A column that cannot be part of a routing key."""
    return InputError(
        "routing-key-not-hashable",
        "column cannot be a routing key",
        detail=f'column "{column}" has type {kind}, which has no stable hash.',
        hint="route by a number, a text, bytes, a date or a timestamp.",
        fields={"column": column, "kind": kind},
    )


def stream_replaced(stream: str) -> ConflictError:
    """A stream was deleted and created again under an open writer."""
    return ConflictError(
        "stream-replaced",
        "stream was created anew",
        detail=f'stream "{stream}" was deleted and created again since this writer was opened.',
        hint="open a new writer.",
        fields={"stream": stream},
    )


def unknown_transaction(stream: str, transaction: str) -> InputError:
    """A transaction that nobody has begun."""
    return InputError(
        "unknown-transaction",
        "unknown transaction",
        detail=f'stream "{stream}" has no transaction "{transaction}".',
        hint="begin it with writer.begin().",
        fields={"stream": stream, "transaction": transaction},
    )


def transaction_ended(transaction: str, status: str) -> ConflictError:
    """Something was asked of a transaction that is not open."""
    return ConflictError(
        "transaction-ended",
        "transaction is not open",
        detail=f'transaction "{transaction}" is {status}.',
        hint="begin another one, and append its rows again if it was not committed.",
        fields={"transaction": transaction, "status": status},
    )


def unknown_reader_group(group: str) -> InputError:
    """A reader group that was deleted."""
    return InputError(
        "unknown-reader-group",
        "unknown reader group",
        detail=f'there is no reader group "{group}" any more.',
        hint="open it again; it begins where it is told to.",
        fields={"group": group},
    )


def reader_group_differs(group: str, has: Iterable[str], asked: Iterable[str]) -> InputError:
    """A reader group that exists with other streams."""
    return InputError(
        "reader-group-differs",
        "reader group reads other streams",
        detail=f'group "{group}" reads: {listed(has)}; asked for: {listed(asked)}.',
        hint="name the same streams, choose another group, or delete this one.",
        fields={"group": group},
    )


def reader_fenced(group: str, reader: str) -> ConflictError:
    """A reader whose segments were taken over."""
    return ConflictError(
        "reader-fenced",
        "reader is fenced",
        detail=f'reader "{reader}" of group "{group}" was silent for too long, or its name was'
        " taken, or the group was restored; what it had not committed is read by others.",
        hint="join again, and drop what was read and not committed.",
        fields={"group": group, "reader": reader},
    )


def cut_ahead_of_stream(stream: str, segment: str, offset: int, end: int) -> InputError:
    """A cut behind rows that do not exist."""
    return InputError(
        "cut-ahead-of-stream",
        "cut is ahead of the stream",
        detail=f'segment "{segment}" of stream "{stream}" is cut at {offset} and ends at {end}.',
        hint="take the cut from a checkpoint of this stream, or from cut_at.",
        fields={"stream": stream, "segment": segment, "offset": offset, "end": end},
    )


def rows_file_not_read(file: str, reason: str) -> InputError:
    """A file of rows that cannot be read."""
    return InputError(
        "rows-file-not-read",
        "rows cannot be read",
        detail=f"{file}: {reason}.",
        hint="give a .parquet, .csv or .jsonl file, or - for JSON lines on standard input.",
        fields={"file": file, "reason": reason},
    )


# ---- queries over slices ----


def query_not_parsed(reason: str, near: str, *, line: int, column: int) -> InputError:
    """A query that is not SQL."""
    return InputError(
        "query-not-parsed",
        "query cannot be parsed",
        detail=f"line {line}, column {column}, after `{near}`: {reason}.",
        hint="write one SELECT in Spark's SQL; stream names stand where tables would.",
        fields={"line": line, "column": column, "near": near, "reason": reason},
    )


def not_one_query(found: str) -> InputError:
    """A text that is a statement of another kind, or several."""
    return InputError(
        "not-one-query",
        "not one query",
        detail=f"the text must be one SELECT, it is: {found}.",
        hint="a job runs one query; make a job of its own for each.",
        fields={"found": found},
    )


def unknown_stream_in_query(
    name: str, known: Iterable[str], *, line: int, column: int
) -> InputError:
    """A name in a query that is neither a stream of the job nor defined in the query."""
    return InputError(
        "unknown-stream-in-query",
        "unknown stream in the query",
        detail=f'line {line}, column {column}: "{name}" is none of the streams of the job:'
        f" {listed(known)}.",
        hint="name the stream when the job is made, or define it in WITH.",
        fields={"name": name, "line": line, "column": column},
    )


def query_mixes_windows(what: str, where: str, hint: str) -> InputError:
    """A query whose result would depend on which windows are computed together."""
    return InputError(
        "query-mixes-windows",
        "query would mix windows",
        detail=f"{what}: {where}.",
        hint=hint,
        fields={"what": what, "where": where},
    )


def no_window_in_output(columns: Iterable[str]) -> InputError:
    """A windowed query whose rows do not say which time they belong to."""
    return InputError(
        "no-window-in-output",
        "result has no event time",
        detail="neither the window's own _window_end nor a column named _event_time is among"
        f" the columns of the result: {listed(columns)}.",
        hint="add _window_end to the select list, or name a timestamp AS _event_time.",
        fields={},
    )
