"""Every error code has a test that sees its full text.

`TEXTS` maps the name of each factory in `tidegate.errors` to an example of it and the whole text a
user reads.
"""

from __future__ import annotations

import inspect
import pickle
from datetime import timedelta

import pytest

from tidegate import errors

TEXTS: dict[str, tuple[errors.TidegateError, str]] = {
    "instant_out_of_range": (
        errors.instant_out_of_range(1 << 62),
        "instant is out of range\n"
        "Detail: 4611686018427387904 microseconds is more than about 73,000 years away from 1970.\n"
        "Hint: check the unit: instants are integer microseconds since the epoch, UTC.",
    ),
    "instant_not_parsed": (
        errors.instant_not_parsed("noon"),
        "not an instant\n"
        "Detail: 'noon' is not an ISO 8601 date and time.\n"
        "Hint: write it like 2026-01-31T12:00:00Z or 2026-01-31T12:00:00.123456+01:00.",
    ),
    "duration_not_parsed": (
        errors.duration_not_parsed("5 moons", ["ms", "s"]),
        "not a duration\n"
        "Detail: '5 moons' is not a number followed by a unit; units are: ms, s.\n"
        "Hint: write it like 500ms, 5s, '5 minutes' or 1h.",
    ),
    "time_went_back": (
        errors.time_went_back("input", 5, 3),
        "time cannot go back\n"
        "Detail: input is at 5, asked to go to 3.\n"
        "Hint: advance to an equal or later time; rows before it are late rows.",
    ),
    "unknown_source": (
        errors.unknown_source(7, [0, 1]),
        "unknown source\n"
        "Detail: source 7 is not registered; registered are: 0, 1.\n"
        "Hint: call register_source first.",
    ),
    "unknown_partition": (
        errors.unknown_partition(0, 1, [0, 2]),
        "unknown partition\n"
        "Detail: source 0 has no partition 1; it has: 0, 2.\n"
        "Hint: call add_partition first.",
    ),
    "partition_out_of_range": (
        errors.partition_out_of_range(0, 4, 4),
        "partition is out of range\n"
        "Detail: source 0 has partitions 0 to 3, asked for 4.\n"
        "Hint: register the source with more partitions, or call add_partition.",
    ),
    "partition_exists": (
        errors.partition_exists(0, 0),
        "partition exists already\n"
        "Detail: source 0 has a partition 0.\n"
        "Hint: update it, or remove it before adding it again.",
    ),
    "node_exists": (
        errors.node_exists("sums"),
        "node exists already\n"
        "Detail: the graph has a node 'sums'.\n"
        "Hint: give every input, node and sink a name of its own.",
    ),
    "unknown_node": (
        errors.unknown_node("suns", ["orders", "sums"]),
        "unknown node\n"
        "Detail: there is no 'suns' here; there are: orders, sums.\n"
        "Hint: inputs, nodes and sinks are asked for by the names they were given in the graph.",
    ),
    "unknown_output": (
        errors.unknown_output("sums", "errors", ["out", "late"]),
        "unknown output\n"
        "Detail: node 'sums' has no output 'errors'; it has: late, out.\n"
        "Hint: errors come from extracting event time, late rows from windows.",
    ),
    "graph_without_sink": (
        errors.graph_without_sink(["orders", "sums"]),
        "graph has no sink\n"
        "Detail: its nodes are: orders, sums.\n"
        "Hint: add one with graph.sink(name, stream); progress is the minimum over sinks.",
    ),
    "row_without_time": (
        errors.row_without_time("orders"),
        "row has no time\n"
        "Detail: input 'orders' runs on event time, and a row was sent without one.\n"
        'Hint: send(item, time), or run with Plan("processing", clock=...).',
    ),
    "input_ended": (
        errors.input_ended("orders", "graceful"),
        "input has ended\n"
        "Detail: input 'orders' came to a graceful end.\n"
        "Hint: execute the graph again for a new run.",
    ),
    "input_held": (
        errors.input_held("orders", "sums", 5, 10),
        "input is held\n"
        "Detail: input 'orders' waits until node 'sums' reaches 10; it is at 5.\n"
        "Hint: ask may_send() first.",
    ),
    "run_failed": (
        errors.run_failed("sums"),
        "run has failed\n"
        "Detail: node 'sums' raised an error; what followed from that row is incomplete.\n"
        "Hint: execute the graph again and send its rows from the beginning.",
    ),
    "unknown_plan_time": (
        errors.unknown_plan_time("lunch", ["event", "processing"]),
        "unknown time to run on\n"
        "Detail: a graph runs on one of: event, processing; asked for 'lunch'.\n"
        'Hint: use Plan("event") or Plan("processing", clock=...).',
    ),
    "clock_missing": (
        errors.clock_missing(),
        "processing time needs a clock\n"
        "Detail: the time of a row is the clock when it arrives, and no clock was given.\n"
        "Hint: hand one in: a callable that gives the current instant in microseconds.",
    ),
    "clock_not_used": (
        errors.clock_not_used(),
        "event time uses no clock\n"
        "Detail: a clock was given to a plan on event time, where rows bring their time.\n"
        'Hint: leave the clock out, or use Plan("processing", clock=...).',
    ),
    "not_a_positive_duration": (
        errors.not_a_positive_duration("gap", timedelta(0)),
        "duration must be positive\n"
        "Detail: gap is 0:00:00.\n"
        "Hint: give a timedelta of at least 1 microsecond.",
    ),
    "slide_exceeds_size": (
        errors.slide_exceeds_size(timedelta(seconds=20), timedelta(seconds=10)),
        "slide is longer than the window\n"
        "Detail: a window of 0:00:10 every 0:00:20 leaves times that belong to no window.\n"
        "Hint: slide by at most the size; filter the rows first if some are not wanted.",
    ),
    "unknown_core": (
        errors.unknown_core(4, 2),
        "unknown core\n"
        "Detail: there are cores 0 to 1, asked for 4.\n"
        "Hint: make the collector with as many cores as there are lanes.",
    ),
    "unknown_member": (
        errors.unknown_member("c", ["a", "b"]),
        "unknown member of the alignment group\n"
        "Detail: 'c' is not registered; registered are: a, b.\n"
        "Hint: call register first.",
    ),
    "unknown_setting": (
        errors.unknown_setting("lat", ["late", "start"]),
        "unknown setting\n"
        "Detail: 'lat' is not a setting; settings are: late, start.\n"
        "Hint: correct the name or leave it out: a setting is honoured or refused, never ignored.",
    ),
    "wrong_setting": (
        errors.wrong_setting("late", "keep", ["route", "drop"]),
        "wrong value of a setting\n"
        "Detail: late cannot be 'keep'; it can be: route, drop.\n"
        "Hint: correct the value.",
    ),
    "setting_given_twice": (
        errors.setting_given_twice("late", ["late", "late.data.strategy"]),
        "setting is given twice\n"
        "Detail: late is set more than once, to different values, by: late, late.data.strategy.\n"
        "Hint: keep one of them.",
    ),
    "update_needs_slices": (
        errors.update_needs_slices(),
        "late rows cannot correct closed windows here\n"
        "Detail: late = update runs a closed window again from the log; rows in arrival order are"
        " given out once.\n"
        "Hint: use release = time (slices), or late = route.",
    ),
    "partition_unreadable": (
        errors.partition_unreadable("orders", "3", "the file is gone"),
        "partition cannot be read\n"
        'Detail: stream "orders", partition "3": the file is gone.\n'
        "Hint: repair it, or set on_unreadable = hold so that the others go on.",
    ),
    "rows_truncated": (
        errors.rows_truncated("orders", "3", 10, 40),
        "rows are no longer there\n"
        'Detail: stream "orders", partition "3": wanted from offset 10, the first that can be read'
        " is 40.\n"
        "Hint: start again from a readable cut, and let retention keep more.",
    ),
    "query_finished": (
        errors.query_finished("q7"),
        "query has finished\n"
        'Detail: all inputs of query "q7" have ended and its last windows were given out.\n'
        "Hint: start a new query; a finished one cannot be resumed.",
    ),
    "start_cut_incomplete": (
        errors.start_cut_incomplete("orders", ["1"]),
        "start cut does not cover the stream\n"
        'Detail: stream "orders": the cut has no offset for: 1.\n'
        "Hint: give an offset for every partition, 0 for its beginning.",
    ),
    "state_not_read": (
        errors.state_not_read("version 9 is unknown"),
        "planner state cannot be read\n"
        "Detail: version 9 is unknown.\n"
        "Hint: the checkpoint was written by another version or is damaged; start a new query.",
    ),
    "segment_name_not_parsed": (
        errors.segment_name_not_parsed("3-1"),
        "not a segment\n"
        "Detail: '3-1' is not a number and an epoch.\n"
        "Hint: write segment 3 of epoch 1 as 3.e1.",
    ),
    "not_a_key_range": (
        errors.not_a_key_range(0.5, 0.25),
        "not a key range\n"
        "Detail: [0.5, 0.25) is not a range with 0 <= low < high <= 1.\n"
        "Hint: write bounds as numbers or fractions: 0, 0.5, '1/3'.",
    ),
    "key_ranges_overlap": (
        errors.key_ranges_overlap("1.e0", "1/3", "1/2"),
        "key ranges overlap\n"
        'Detail: segment "1.e0" begins at 1/3, the one before it ends at 1/2.\n'
        "Hint: let every range begin where the one before it ends.",
    ),
    "ranges_do_not_cover": (
        errors.ranges_do_not_cover(1, [(0, "1/2")], [(0, "1/4"), ("3/4", 1)]),
        "key ranges do not cover what they replace\n"
        "Detail: epoch 1 opens [0, 1/4), [3/4, 1), it must open exactly [0, 1/2).\n"
        "Hint: open ranges over the same keys as the segments that are sealed.",
    ),
    "segment_not_open": (
        errors.segment_not_open("0.e0", ["1.e1"]),
        "segment is not open\n"
        'Detail: segment "0.e0" is sealed; open are: 1.e1.\n'
        "Hint: scale the segments of the latest epoch.",
    ),
    "unknown_segment": (
        errors.unknown_segment("9.e4", 3),
        "unknown segment\n"
        'Detail: segment "9.e4" is not in the lineage, which has epochs 0 to 3.\n'
        "Hint: read the lineage again if the stream has been scaled since.",
    ),
    "negative_offset": (
        errors.negative_offset("0", -1),
        "offset is negative\n"
        'Detail: partition "0" is cut at -1.\n'
        "Hint: the beginning of a partition is 0.",
    ),
    "cuts_do_not_meet": (
        errors.cuts_do_not_meet(["0.e0"]),
        "no last cut lies before both cuts\n"
        "Detail: both have passed the end of 0.e0, each into other successors.\n"
        "Hint: compare cuts that cover the whole key space.",
    ),
    "position_went_back": (
        errors.position_went_back("shop-eu", "1.e0", 5, 4),
        "position cannot go back\n"
        'Detail: writer "shop-eu" has noted "1.e0" at 5, now notes it at 4.\n'
        "Hint: let one process write with one writer id.",
    ),
    "unknown_writer": (
        errors.unknown_writer("shop-eu", ["shop-us"]),
        "unknown writer\n"
        'Detail: writer "shop-eu" is not known; known are: shop-us.\n'
        "Hint: it may have been silent for mark_timeout; its next note makes it known again.",
    ),
    "writer_mark_changed": (
        errors.writer_mark_changed("shop-eu", 10, 12),
        "writer's mark has changed\n"
        'Detail: writer "shop-eu" was seen at 10, and now is at 12.\n'
        "Hint: read the mark again and decide anew.",
    ),
    "transaction_begun_twice": (
        errors.transaction_begun_twice("shop-eu", "t1"),
        "transaction is open already\n"
        'Detail: writer "shop-eu" has an open transaction "t1".\n'
        "Hint: commit or abort it, or choose another id.",
    ),
    "transaction_not_open": (
        errors.transaction_not_open("shop-eu", "t1", ["t2"]),
        "transaction is not open\n"
        'Detail: writer "shop-eu" has no open transaction "t1"; open are: t2.\n'
        "Hint: it was committed, aborted, or has timed out.",
    ),
    "span_out_of_order": (
        errors.span_out_of_order("0", 5, 9, 7),
        "span is out of order\n"
        'Detail: partition "0" is indexed up to 7, the span is [5, 9).\n'
        "Hint: append spans in offset order.",
    ),
    "unknown_event_time_type": (
        errors.unknown_event_time_type("iso", ["b", "a"], stream="orders", column="at"),
        "unknown event time type\n"
        'Detail: column "at" of stream "orders" has the type "iso"; known types are: a, b.\n'
        "Hint: use one of them, a pattern such as %Y-%m-%d, or register the type.",
    ),
    "event_time_type_exists": (
        errors.event_time_type_exists("iso8601"),
        "event time type exists already\n"
        'Detail: "iso8601" is registered.\n'
        "Hint: choose another name, or register it with replace=True.",
    ),
    "event_time_type_ambiguous": (
        errors.event_time_type_ambiguous("hex", ["one", "two"]),
        "event time type is offered more than once\n"
        'Detail: "hex" is offered by: one, two.\n'
        "Hint: uninstall one of them, or register the name with replace=True.",
    ),
    "event_time_type_misnamed": (
        errors.event_time_type_misnamed("%Y"),
        "name cannot be that of an event time type\n"
        "Detail: '%Y' is empty, has blanks around it, or contains a % and is a pattern.\n"
        "Hint: register the pattern under a name without %.",
    ),
    "event_time_type_not_readable": (
        errors.event_time_type_not_readable("mine", 17),
        "not an event time type\n"
        'Detail: "mine" was given as 17.\n'
        "Hint: give a pattern, a parser, or a function of one value; column= goes with a function.",
    ),
    "event_time_type_not_loaded": (
        errors.event_time_type_not_loaded("hex", "times", "ImportError: no such name"),
        "event time type cannot be loaded\n"
        'Detail: "hex" of package times fails with ImportError: no such name.\n'
        "Hint: repair or uninstall the package.",
    ),
    "event_time_pattern_refused": (
        errors.event_time_pattern_refused(
            "%H:%M", "it does not tell the day", stream="orders", column="at"
        ),
        "pattern cannot be read\n"
        'Detail: column "at" of stream "orders" has the pattern "%H:%M": it does not tell the'
        " day.\n"
        "Hint: write it as for strptime, such as %d/%m/%Y %H:%M:%S, with %z for the zone.",
    ),
    "column_parser_broken": (
        errors.column_parser_broken("2 values of type double", 3),
        "function for columns gave something else than times\n"
        "Detail: it was asked for 3 times and gave 2 values of type double.\n"
        "Hint: return an Arrow array of the same length, int64 microseconds or timestamps,"
        " with null for bad rows.",
    ),
    "event_time_not_declared": (
        errors.event_time_not_declared(["orders"]),
        "event time is switched on, but not declared\n"
        "Detail: no event time column is declared by: orders.\n"
        "Hint: set eventtime.column and eventtime.type on the stream, or eventtime.enabled ="
        " false.",
    ),
    "event_time_column_missing": (
        errors.event_time_column_missing("orders", "at", ["id", "amount"]),
        "event time column cannot be found\n"
        'Detail: stream "orders" has no column "at"; its columns are: amount, id.\n'
        "Hint: correct eventtime.column.",
    ),
    "event_time_column_unreadable": (
        errors.event_time_column_unreadable(
            "orders", "at", "bool", "iso8601", "ISO 8601 texts", ["iso8601", "unixtimestamp"]
        ),
        "event time column cannot be read as declared\n"
        'Detail: column "at" of stream "orders" is bool; the type "iso8601" reads ISO 8601'
        " texts.\n"
        "Hint: choose another column or type; known types are: iso8601, unixtimestamp.",
    ),
    "update_needs_windows": (
        errors.update_needs_windows(),
        "late rows cannot correct rows that were given out\n"
        "Detail: late = update runs a closed window again; ordered release gives a row out once.\n"
        "Hint: use late = route, drop or next.",
    ),
    "after_the_end": (
        errors.after_the_end("the ordered release"),
        "nothing can follow the end\n"
        "Detail: the ordered release has ended and given out everything it held.\n"
        "Hint: build a new one; a pause or a crash is not an end.",
    ),
    "output_not_written": (
        errors.output_not_written("/demo", "Permission denied"),
        "output cannot be written\n"
        'Detail: "/demo": Permission denied.\n'
        "Hint: choose another folder, or make this one writable.",
    ),
    "folder_not_empty": (
        errors.folder_not_empty("/demo"),
        "folder is not empty\n"
        'Detail: "/demo" has something in it already.\n'
        "Hint: choose a folder that is not there yet, or an empty one.",
    ),
    "java_missing": (
        errors.java_missing(17, "/usr/bin/java is of version 11"),
        "no Java runtime, 17 or newer\n"
        "Detail: Spark runs on Java; looked for in JAVA_HOME and on the path:"
        " /usr/bin/java is of version 11.\n"
        "Hint: as root: apt-get install openjdk-17-jre-headless, or set JAVA_HOME to one that is"
        " there; tidegate demo --pure needs none.",
    ),
    "option_needs_another": (
        errors.option_needs_another("--time", "--input"),
        "option does not stand alone\n"
        "Detail: --time was given, and --input was not.\n"
        "Hint: give --input too, or leave --time out.",
    ),
    "options_exclude": (
        errors.options_exclude("--batch-rows", "--batch-files"),
        "options exclude each other\n"
        "Detail: --batch-rows and --batch-files were given.\n"
        "Hint: leave one of them out.",
    ),
    "progress_not_read": (
        errors.progress_not_read("progress.json, line 3", "Expecting value, column 1"),
        "progress cannot be read\n"
        "Detail: progress.json, line 3: Expecting value, column 1.\n"
        "Hint: write one JSON object per line, or an array of them; in PySpark:"
        ' file.writelines(p.json + "\\n" for p in query.recentProgress).',
    ),
    "input_not_read": (
        errors.input_not_read("orders", "there is no such file or folder"),
        "input cannot be read\n"
        "Detail: orders: there is no such file or folder.\n"
        "Hint: give a file, or a folder of files, of Parquet, JSON lines, or CSV with a header.",
    ),
    "input_column_missing": (
        errors.input_column_missing("orders/1.parquet", "when", ["at", "item"]),
        "column is not there\n"
        'Detail: orders/1.parquet has no column "when"; it has: at, item.\n'
        "Hint: choose one of them.",
    ),
    "spark_failed": (
        errors.spark_failed("[JAVA_GATEWAY_EXITED] Java gateway process exited", "spark.log"),
        "Spark has failed\n"
        "Detail: [JAVA_GATEWAY_EXITED] Java gateway process exited.\n"
        'Hint: read what Spark said in "spark.log".',
    ),
    "catalog_unavailable": (
        errors.catalog_unavailable("postgresql://db/shop", "connection refused"),
        "catalog does not answer\n"
        "Detail: postgresql://db/shop: connection refused.\n"
        "Hint: see that the database runs and can be reached; nothing was half-done, try again.",
    ),
    "upload_expired": (
        errors.upload_expired(["orders/0.e0/a.parquet", "orders/1.e0/b.parquet"]),
        "upload took too long\n"
        "Detail: 2 of its files may be swept by now, the first is orders/0.e0/a.parquet.\n"
        "Hint: nothing became visible; flush or commit again, the rows are written anew.",
    ),
    "staged_files_missing": (
        errors.staged_files_missing("orders", "/data/shop", ["orders/0.e0/a.parquet"]),
        "files that tasks have written cannot be found\n"
        'Detail: 1 files for stream "orders" are not in /data/shop: orders/0.e0/a.parquet.\n'
        "Hint: open the store with a data address that every machine reaches: a shared folder or "
        "object storage.",
    ),
    "store_missing": (
        errors.store_missing("/data/shop"),
        "no store at this address\n"
        "Detail: /data/shop has no catalog.\n"
        "Hint: correct the address, or make the store first with Store.open; on several machines "
        "it must be one that all of them reach.",
    ),
    "store_address_relative": (
        errors.store_address_relative("shop"),
        "address of the store is relative\n"
        "Detail: 'shop' means another folder in each process of Spark.\n"
        "Hint: give the whole path, for example by Path(...).resolve().",
    ),
    "complete_needs_frames": (
        errors.complete_needs_frames("files"),
        "the sink cannot hold complete results\n"
        "Detail: with mode = complete every batch has the whole result; a files sink appends.\n"
        "Hint: use mode = update or append, or a sink that is handed each batch: ForeachBatch,"
        " ConsoleSink.",
    ),
    "option_missing": (
        errors.option_missing("store", ["stream", "store"]),
        "option is missing\n"
        "Detail: store is not given; options are: store, stream.\n"
        'Hint: add .option("store", ...).',
    ),
    "bounds_crossed": (
        errors.bounds_crossed("from_time", "2026-01-02", "to_time", "2026-01-01"),
        "read ends before it begins\n"
        "Detail: from_time is 2026-01-02, and to_time is 2026-01-01.\n"
        "Hint: exchange them, or leave one out.",
    ),
    "column_not_for_spark": (
        errors.column_not_for_spark("orders", "what", "sparse_union<>"),
        "Spark has no type for a column\n"
        'Detail: column "what" of "orders" is sparse_union<>.\n'
        "Hint: leave it out: name the others in the option columns.",
    ),
    "schema_not_followed": (
        errors.schema_not_followed("orders", "id: string", "id: int64"),
        "schema is not the stream's\n"
        'Detail: "orders" has id: int64; asked for was id: string.\n'
        "Hint: leave .schema(...) out and choose columns by the option columns; cast afterwards.",
    ),
    "batch_fenced": (
        errors.batch_fenced("etl", "q1", 3, "q0", 7),
        "batch does not follow the last one of its writer\n"
        'Detail: batch 3 of query q1 is refused for writer "etl": the last one was batch 7 of '
        "another query, q0. Nothing of it was written.\n"
        "Hint: a writer_id belongs to one query and its checkpoint: go on with that checkpoint, or "
        "take another writer_id.",
    ),
    "catalog_too_new": (
        errors.catalog_too_new("0009", "0001"),
        "catalog was made by a newer version\n"
        "Detail: its tables have version 0009, this version knows them up to 0001.\n"
        "Hint: upgrade Tidegate on this machine.",
    ),
    "data_unavailable": (
        errors.data_unavailable("s3://nowhere", "no such bucket"),
        "data address cannot be opened\n"
        "Detail: s3://nowhere: no such bucket.\n"
        "Hint: give a folder, s3://bucket/prefix or hdfs://host/path that can be written; on"
        " several machines one that all of them reach.",
    ),
    "data_address_missing": (
        errors.data_address_missing("postgresql://db/shop"),
        "data address is missing\n"
        "Detail: a store opened by a catalog URL needs to be told where its data lies.\n"
        'Hint: open it with data="...": a shared folder, s3://bucket/prefix or hdfs://host/path.',
    ),
    "unknown_stream": (
        errors.unknown_stream("ordres", ["orders", "rates"]),
        "unknown stream\n"
        'Detail: there is no stream "ordres"; there are: orders, rates.\n'
        "Hint: create it first, or correct the name.",
    ),
    "stream_exists": (
        errors.stream_exists("orders", False),
        "stream exists already\n"
        'Detail: there is a stream "orders", and it is declared otherwise.\n'
        "Hint: use it as it is, alter it, or choose another name.",
    ),
    "stream_name_not_valid": (
        errors.stream_name_not_valid("my orders", 200),
        "not a stream name\n"
        "Detail: 'my orders' is not made of letters, digits, _ and -, in parts joined by dots, each"
        " beginning with a letter or _, at most 200 characters in all.\n"
        "Hint: choose a name like orders or shop.orders_v2.",
    ),
    "column_given_twice": (
        errors.column_given_twice("orders", ["id", "at", "id"]),
        "column is given twice\n"
        'Detail: stream "orders" has more than one column named: id.\n'
        "Hint: give every column a name of its own.",
    ),
    "column_reserved": (
        errors.column_reserved("orders", "_Offset", ["_offset"]),
        "column name is reserved\n"
        'Detail: stream "orders" cannot have a column "_Offset"; reserved are: _offset.\n'
        "Hint: choose another name.",
    ),
    "column_not_nullable": (
        errors.column_not_nullable("orders", "note"),
        "added column must be nullable\n"
        'Detail: stream "orders" has rows without a column "note": there it is null.\n'
        "Hint: add it as a nullable column.",
    ),
    "unknown_column": (
        errors.unknown_column("orders", "idd", ["id", "at"]),
        "unknown column\n"
        'Detail: stream "orders" has no column "idd"; it has: at, id.\n'
        "Hint: correct the name, or add the column to the schema.",
    ),
    "unknown_system_column": (
        errors.unknown_system_column("_file", ["_offset", "_partition"]),
        "unknown system column\n"
        'Detail: rows have no system column "_file" beside _event_time; they may have: _offset,'
        " _partition.\n"
        "Hint: correct the name in system=; columns of the stream are there without it.",
    ),
    "chunk_unreadable": (
        errors.chunk_unreadable("orders", "0.e0", 10, 20, "orders/0.e0/a.parquet", "it is gone"),
        "chunk cannot be read\n"
        'Detail: stream "orders", segment "0.e0", offsets 10 to 20, file orders/0.e0/a.parquet:'
        " it is gone.\n"
        "Hint: see that this machine reaches the store's data as all others do; if it does, restore"
        " the file from a copy, or truncate the stream before its end.",
    ),
    "truncation_unclear": (
        errors.truncation_unclear(["age", "size"]),
        "truncate by one of: before, time, age, size\n"
        "Detail: given were: age, size.\n"
        'Hint: say how far, for example truncate("orders", age=timedelta(days=7)).',
    ),
    "log_kind_unknown": (
        errors.log_kind_unknown("kafkaesque", ["files", "nexmark"]),
        "unknown kind of log\n"
        "Detail: the description has the kind 'kafkaesque'; kinds are: files, nexmark.\n"
        "Hint: open what a log's describe() gave.",
    ),
    "log_partition_unknown": (
        errors.log_partition_unknown("orders", "7", ["0", "1"]),
        "unknown partition of a log\n"
        'Detail: "orders" has no partition "7"; it has: 0, 1.\n'
        "Hint: take partitions from a snapshot of the log.",
    ),
    "log_offsets_missing": (
        errors.log_offsets_missing("orders", "0", 5, 12, 10),
        "offsets are not in the log\n"
        'Detail: partition "0" of "orders" ends at 10, asked for [5, 12).\n'
        "Hint: read up to the cut of a plan; a plan never reaches past a snapshot.",
    ),
    "files_unreachable": (
        errors.files_unreachable("orders", "/data/orders", "no such folder"),
        "folder of files cannot be listed\n"
        'Detail: "orders" lies in /data/orders: no such folder.\n'
        "Hint: give a folder that exists, with one folder per partition in it.",
    ),
    "files_without_schema": (
        errors.files_without_schema("orders", "/data/orders"),
        "columns of the files are not known\n"
        'Detail: "orders" has no file in /data/orders yet, and no schema was given.\n'
        "Hint: give schema=pa.schema([...]), or open the log when the first file is there.",
    ),
    "file_outside_partitions": (
        errors.file_outside_partitions("orders", "a.csv"),
        "file lies outside of the partitions\n"
        'Detail: "a.csv" of "orders" lies beside the folders; each folder is a partition.\n'
        "Hint: move it into the folder of its partition, or give its name a leading _ or dot.",
    ),
    "file_out_of_order": (
        errors.file_out_of_order("orders", "0", "a.csv", "b.csv"),
        "new file sorts before files that were read\n"
        'Detail: partition "0" of "orders" has a new file "a.csv", but "b.csv" was already there:'
        " an offset would change its row.\n"
        "Hint: give new files names that sort after all others, such as a time or a number.",
    ),
    "file_changed": (
        errors.file_changed("orders", "0", "a.csv", "is gone"),
        "file has changed since it was read\n"
        'Detail: "a.csv" in partition "0" of "orders" is gone: an offset would change its row.\n'
        "Hint: write a file elsewhere and move it here when it is whole; never change or delete"
        " it.",
    ),
    "file_unreadable": (
        errors.file_unreadable("orders", "0", "a.csv", "it is empty"),
        "file cannot be read\n"
        'Detail: "a.csv" in partition "0" of "orders": it is empty.\n'
        "Hint: restore the file as it was; its rows are part of the log.",
    ),
    "file_event_column_typed": (
        errors.file_event_column_typed("orders", "at", "timestamp[us]", "string"),
        "event time column of a text format has its own type\n"
        'Detail: column "at" of "orders" is declared as timestamp[us]; in this format it can be:'
        " string.\n"
        "Hint: declare it so; the instant itself is given as _event_time.",
    ),
    "writer_fenced": (
        errors.writer_fenced("shop-eu", 3),
        "writer is fenced\n"
        'Detail: writer "shop-eu" was opened again after this one; its token was 3.\n'
        "Hint: leave the id to whoever has opened it last, or open it again to take it over.",
    ),
    "writer_closed": (
        errors.writer_closed("orders", "shop-eu"),
        "writer is closed\n"
        'Detail: writer "shop-eu" of stream "orders" takes nothing any more.\n'
        "Hint: open a new one.",
    ),
    "writer_without_id": (
        errors.writer_without_id("orders", "note time"),
        "writer without an id cannot note time\n"
        'Detail: a writer of stream "orders" was opened without an id: nobody could wait for it.\n'
        'Hint: open it with one: store.writer(stream, "my-id", notes_time=True).',
    ),
    "writer_id_not_valid": (
        errors.writer_id_not_valid(" x", 200),
        "not a writer id\n"
        "Detail: ' x' is not a printable text of 1 to 200 characters without blanks around it, or "
        "begins with a reserved prefix.\n"
        "Hint: name the writer after what it is, like shop-eu.",
    ),
    "time_noted_by_the_clock": (
        errors.time_noted_by_the_clock("shop-eu"),
        "time is noted by the clock\n"
        'Detail: writer "shop-eu" notes time automatically: a note by hand could contradict it.\n'
        "Hint: switch it off first: auto_note_time(None).",
    ),
    "rows_refused": (
        errors.rows_refused("orders", 2, 10, ['row 1: missing in "id"', 'row 4: future in "at"']),
        "rows are refused\n"
        'Detail: 2 of 10 rows cannot enter stream "orders": row 1: missing in "id"; '
        'row 4: future in "at".\n'
        'Hint: correct them and append again, or open the writer with bad_rows="route".',
    ),
    "rows_not_understood": (
        errors.rows_not_understood("int"),
        "not rows\n"
        "Detail: int cannot be read as rows.\n"
        "Hint: append a list of dicts, an Arrow table or record batch, a pandas or polars frame.",
    ),
    "row_numbers_skipped": (
        errors.row_numbers_skipped("orders", 5, 7),
        "row numbers are skipped\n"
        'Detail: the next row for stream "orders" is number 5, these begin with 7.\n'
        "Hint: begin at or before writer.appended; what overlaps is left out.",
    ),
    "routing_key_not_hashable": (
        errors.routing_key_not_hashable("tags", "list<item: string>"),
        "column cannot be a routing key\n"
        'Detail: column "tags" has type list<item: string>, which has no stable hash.\n'
        "Hint: route by a number, a text, bytes, a date or a timestamp.",
    ),
    "stream_replaced": (
        errors.stream_replaced("orders"),
        "stream was created anew\n"
        'Detail: stream "orders" was deleted and created again since this writer was opened.\n'
        "Hint: open a new writer.",
    ),
    "unknown_transaction": (
        errors.unknown_transaction("orders", "t1"),
        "unknown transaction\n"
        'Detail: stream "orders" has no transaction "t1".\n'
        "Hint: begin it with writer.begin().",
    ),
    "transaction_ended": (
        errors.transaction_ended("t1", "timed out"),
        "transaction is not open\n"
        'Detail: transaction "t1" is timed out.\n'
        "Hint: begin another one, and append its rows again if it was not committed.",
    ),
    "unknown_reader_group": (
        errors.unknown_reader_group("billing"),
        "unknown reader group\n"
        'Detail: there is no reader group "billing" any more.\n'
        "Hint: open it again; it begins where it is told to.",
    ),
    "reader_group_differs": (
        errors.reader_group_differs("billing", ["orders"], ["orders", "payments"]),
        "reader group reads other streams\n"
        'Detail: group "billing" reads: orders; asked for: orders, payments.\n'
        "Hint: name the same streams, choose another group, or delete this one.",
    ),
    "reader_fenced": (
        errors.reader_fenced("billing", "one"),
        "reader is fenced\n"
        'Detail: reader "one" of group "billing" was silent for too long, or its name was taken, or'
        " the group was restored; what it had not committed is read by others.\n"
        "Hint: join again, and drop what was read and not committed.",
    ),
    "cut_ahead_of_stream": (
        errors.cut_ahead_of_stream("orders", "0.e0", 140, 120),
        "cut is ahead of the stream\n"
        'Detail: segment "0.e0" of stream "orders" is cut at 140 and ends at 120.\n'
        "Hint: take the cut from a checkpoint of this stream, or from cut_at.",
    ),
    "rows_file_not_read": (
        errors.rows_file_not_read("orders.txt", "it is not .parquet, .csv or .jsonl"),
        "rows cannot be read\n"
        "Detail: orders.txt: it is not .parquet, .csv or .jsonl.\n"
        "Hint: give a .parquet, .csv or .jsonl file, or - for JSON lines on standard input.",
    ),
    "next_needs_tumbling": (
        errors.next_needs_tumbling("orders"),
        "late rows cannot count in the next window here\n"
        'Detail: late = next has one next window; stream "orders" is used by overlapping windows'
        " or by a join.\n"
        "Hint: use tumbling windows or ordered release, or late = route.",
    ),
    "query_not_parsed": (
        errors.query_not_parsed("Expecting )", "WHERE (x", line=1, column=24),
        "query cannot be parsed\n"
        "Detail: line 1, column 24, after `WHERE (x`: Expecting ).\n"
        "Hint: write one SELECT in Spark's SQL; stream names stand where tables would.",
    ),
    "not_one_query": (
        errors.not_one_query("INSERT"),
        "not one query\n"
        "Detail: the text must be one SELECT, it is: INSERT.\n"
        "Hint: a job runs one query; make a job of its own for each.",
    ),
    "unknown_stream_in_query": (
        errors.unknown_stream_in_query("order", ["payments", "orders"], line=2, column=6),
        "unknown stream in the query\n"
        'Detail: line 2, column 6: "order" is none of the streams of the job: orders, payments.\n'
        "Hint: name the stream when the job is made, or define it in WITH.",
    ),
    "gate_without_sources": (
        errors.gate_without_sources("totals"),
        "query has no source that its store knows of\n"
        'Detail: no source of query "totals" has told its time in the store it is written to.\n'
        "Hint: give write_stream the same query= and store= as read_stream.",
    ),
    "gate_with_strangers": (
        errors.gate_with_strangers("totals", 2, 1),
        "query has sources whose time is not known\n"
        'Detail: Spark reads 2 sources in query "totals", and 1 of them are told of in the store it'
        " is written to; so nobody can say how far its results are.\n"
        "Hint: read all of them by read_stream with the same query= and store=, or write the query"
        " by Spark's own writeStream.",
    ),
    "time_behind_missing": (
        errors.time_behind_missing("joined", "it has 2 sources"),
        "time of the results is not clear\n"
        'Detail: in query "joined" results may be earlier than the watermark: it has 2 sources.\n'
        "Hint: say time_behind=, how far before the watermark the time of a result may lie: the"
        ' reach of a join, or "0 s" for a union of windows and for deduplication.',
    ),
    "use_given_twice": (
        errors.use_given_twice("windows"),
        "rows cannot have two last uses\n"
        "Detail: windows and last_use were both given.\n"
        "Hint: say what the first operator needs, and with held= how long those behind it hold on"
        " to a row.",
    ),
    "query_fenced": (
        errors.query_fenced("per-minute", "4f2a", 7, "4f2a", 9),
        "query is fenced\n"
        'Detail: batch 7 of query "per-minute" (history 4f2a) cannot be committed: the store has'
        " batch 9 of it; another driver runs this query, or the checkpoint is older than what was"
        " committed. Nothing of this batch was written.\n"
        "Hint: stop the other driver, or go on with the checkpoint that belongs to the record; to"
        " begin anew, give the query another name, or reset it and delete its checkpoint.",
    ),
    "batch_not_kept": (
        errors.batch_not_kept("per-minute", 0, "/data/shop/checkpoints/per-minute"),
        "no plan of this batch is kept\n"
        'Detail: job "per-minute" has no batch 0 in the checkpoint'
        " /data/shop/checkpoints/per-minute.\n"
        "Hint: batches are numbered from 1, and Spark keeps the last hundred.",
    ),
    "unknown_job_node": (
        errors.unknown_job_node("per-minute", "sink:per-hour", ["job", "sink:per-minute"]),
        "unknown node of a job\n"
        'Detail: job "per-minute" has told nothing of "sink:per-hour"; it has: job,'
        " sink:per-minute.\n"
        "Hint: name a source or a sink of the job; nodes appear with its first batch.",
    ),
    "kernel_cannot": (
        errors.kernel_cannot("duckdb", "the query is a function of DataFrames"),
        "kernel cannot run this query\n"
        'Detail: kernel "duckdb": the query is a function of DataFrames.\n'
        'Hint: use kernel="auto", which takes Spark for such a query and says why.',
    ),
    "sink_without_deletes": (
        errors.sink_without_deletes("console"),
        "sink cannot hold corrections\n"
        'Detail: with late = "update" results are taken back and said again; a console sink keeps'
        " rows only.\n"
        'Hint: use a stream or files sink, or late = "route".',
    ),
    "sink_not_on_connect": (
        errors.sink_not_on_connect("memory"),
        "sink needs a session of this process\n"
        "Detail: on Spark Connect batches run in a process of the server, and what a "
        "memory sink keeps there cannot be seen from here.\n"
        "Hint: use a stream or files sink and read it from here, a function of your own "
        "(ForeachBatch), or a classic session.",
    ),
    "sink_fenced": (
        errors.sink_fenced('"results"', "sales", "a1", 3, "sales", "b2"),
        "sink belongs to another history\n"
        'Detail: batch 3 of job "sales" (history a1) cannot go to "results": it holds '
        'results of history b2 of job "sales"; the job was reset, its checkpoint was '
        "deleted, or another job writes there. Nothing of this batch was written.\n"
        "Hint: go on with the checkpoint that belongs to what is there; to begin anew, "
        "use another place or empty this one; what is there can still be read.",
    ),
    "files_of_another_job": (
        errors.files_of_another_job("results", "sales", "returns"),
        "folder belongs to another job\n"
        'Detail: "results" holds the results of job "returns"; job "sales" would mix its '
        "own in.\n"
        "Hint: give every job a folder of its own, or empty this one.",
    ),
    "files_differ": (
        errors.files_differ("results", 'column "n"', "int64", "string"),
        "folder was written in another way\n"
        'Detail: in "results" the column "n" is int64, now it would be string.\n'
        "Hint: use another folder; columns may be added to results, others must keep "
        "their type.",
    ),
    "unknown_file_format": (
        errors.unknown_file_format("orc", ["parquet", "csv"]),
        "unknown file format\n"
        'Detail: "orc" is none of the formats of a files sink: csv, parquet.\n'
        "Hint: parquet keeps all types and is the fastest to read.",
    ),
    "type_not_for_format": (
        errors.type_not_for_format("csv", "tags", "list<item: string>"),
        "file format cannot hold a column\n"
        'Detail: column "tags" is list<item: string>, and csv files have no way to write '
        "that.\n"
        'Hint: use format="parquet", or compute a column of another type in the query.',
    ),
    "no_result_files": (
        errors.no_result_files("results"),
        "no results of a job there\n"
        'Detail: "results" has no folder _tidegate with the manifests of a files sink.\n'
        "Hint: give the folder that the FilesSink was given; it is made by the first "
        "start.",
    ),
    "memory_without_rows": (
        errors.memory_without_rows("sales", ["returns"]),
        "no such rows in memory\n"
        'Detail: no job of this process has been started with MemorySink("sales"); '
        "started were: returns.\n"
        "Hint: start the job first; rows in memory end with the process.",
    ),
    "result_without_time": (
        errors.result_without_time("per-minute"),
        "result has no event time\n"
        'Detail: results of job "per-minute" have neither "_window_end" nor "_event_time".\n'
        "Hint: select _window_end, or give a column the name _event_time.",
    ),
    "job_without_store": (
        errors.job_without_store(),
        "job has no store\n"
        "Detail: a job keeps its record, its late and bad rows and its progress in a store.\n"
        "Hint: give store=, a folder is enough.",
    ),
    "join_not_by_interval": (
        errors.join_not_by_interval("it has GROUP", "SELECT a FROM b"),
        "query is not an interval join\n"
        "Detail: it has GROUP: SELECT a FROM b.\n"
        "Hint: write SELECT columns FROM first [LEFT | RIGHT | FULL] JOIN second ON ..., with"
        " plain expressions; aggregate in a job on its result, or join inside windows.",
    ),
    "query_not_row_by_row": (
        errors.query_not_row_by_row("it has LIMIT", "SELECT a FROM b LIMIT 1"),
        "query looks at several rows at once\n"
        "Detail: it has LIMIT: SELECT a FROM b LIMIT 1.\n"
        "Hint: rows come in the order of their time, in batches of any size: filter and compute"
        " row by row here, and aggregate in windows.",
    ),
    "future_is_the_writers": (
        errors.future_is_the_writers("orders"),
        "max_future cannot be set here\n"
        'Detail: rows of stream "orders" were judged by the clock when they were written.\n'
        "Hint: set max_future when the stream is created.",
    ),
    "checkpoint_missing": (
        errors.checkpoint_missing("per-minute"),
        "checkpoint address is missing\n"
        'Detail: the store of job "per-minute" is not a folder, so its checkpoint has no place in'
        " it.\n"
        "Hint: give checkpoint=, an address that the driver can reach.",
    ),
    "processing_needs_commit_time": (
        errors.processing_needs_commit_time("orders", "at"),
        "stream has an event time of its own\n"
        'Detail: watermark = "processing" goes by the time rows were appended; stream "orders" is'
        ' timed by its column "at".\n'
        "Hint: use a stream that was created without an event column.",
    ),
    "query_mixes_windows": (
        errors.query_mixes_windows(
            "GROUP BY has no window column", "GROUP BY item", "add _window_end to the GROUP BY."
        ),
        "query would mix windows\n"
        "Detail: GROUP BY has no window column: GROUP BY item.\n"
        "Hint: add _window_end to the GROUP BY.",
    ),
    "no_window_in_output": (
        errors.no_window_in_output(["item", "n"]),
        "result has no event time\n"
        "Detail: neither the window's own _window_end nor a column named _event_time is among"
        " the columns of the result: item, n.\n"
        "Hint: add _window_end to the select list, or name a timestamp AS _event_time.",
    ),
}


def factories() -> dict[str, object]:
    """The functions of `tidegate.errors` that make an error."""
    return {
        name: function
        for name, function in inspect.getmembers(errors, inspect.isfunction)
        if not name.startswith("_")
        and str(inspect.signature(function).return_annotation).endswith("Error")
    }


def test_every_factory_has_its_text_in_the_table() -> None:
    assert set(factories()) == set(TEXTS)


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_the_user_reads_this_text(name: str) -> None:
    error, text = TEXTS[name]
    assert str(error) == text


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_the_code_is_the_name_of_the_factory(name: str) -> None:
    assert TEXTS[name][0].code == name.replace("_", "-")


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_an_error_survives_pickling(name: str) -> None:
    error, text = TEXTS[name]
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == text
    assert copy.fields == error.fields
    assert copy.retryable == error.retryable


def test_truncated_rows_are_told_with_the_first_readable_cut() -> None:
    told = errors.rows_truncated("orders", "0.e0", "times from 5 on", 7, cut={"0.e0": 7})
    assert told.detail == (
        'stream "orders", partition "0.e0": wanted times from 5 on, the first that can be read'
        " is 7; the first readable cut is 0.e0=7."
    )
    assert told.fields["cut"] == {"0.e0": 7}
