"""Which engine runs a query, and why: `spark`, `duckdb`, or the better of the two.

DuckDB runs inside the tasks and needs no shuffle, because a window lies wholly inside one task; it
takes SQL of the tested subset, where both give equal results. Spark takes everything. `auto` takes
DuckDB where it can, and says why where it cannot. When a batch has fewer windows than cores, no key
to divide them by, and many rows, Spark divides the work by rows and merges with one shuffle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from tidegate import errors
from tidegate.eventtime.lateness import Late
from tidegate.planning.slices import Division, Slice
from tidegate.spark.duckdb_rules.registry import Outside
from tidegate.spark.duckdb_text import translate
from tidegate.spark.shape import Windows
from tidegate.spark.spec import Job
from tidegate.spark.sql_text import Statement

_TESTED: Final = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.groupByAliases": "true",
    "spark.sql.storeAssignmentPolicy": "ansi",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.allowNegativeScaleOfDecimal": "false",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
    "spark.sql.legacy.ctePrecedencePolicy": "corrected",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.parser.havingWithoutGroupByAsWhere": "false",
    "spark.sql.legacy.percentileDiscCalculation": "false",
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
    "spark.sql.legacy.statisticalAggregate": "false",
    "spark.sql.legacy.timeParserPolicy": "corrected",
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "false",
}
"""Settings that change what a query means, as they were when the subset was tested."""

WORTH_A_SHUFFLE: Final = 4_000_000
"""So many rows in too few windows are faster divided by Spark than left to one task."""


@dataclass(frozen=True)
class Choice:
    """The engine, the reason, and for DuckDB its words for the query."""

    kernel: str
    reason: str
    text: str | None = None
    row_by_row: str | None = None
    """The same words without panes, where there are some."""


def choose_kernel(
    spark: SparkSession, job: Job, statement: Statement | None, schemas: Mapping[str, pa.Schema]
) -> Choice:
    """The kernel of a job; asking for one that cannot is an error that says why."""
    if job.kernel == "spark":
        return Choice("spark", "it was asked for")
    windows = job.shape if isinstance(job.shape, Windows) else None
    if statement is None:
        made: str | Outside = Outside("the query is a function of DataFrames")
    else:
        made = _other_meaning(spark) or translate(statement, schemas, windows, panes=False)
    if isinstance(made, Outside):
        if job.kernel == "duckdb":
            raise errors.kernel_cannot("duckdb", made.reason)
        return Choice("spark", made.reason)
    reason = "it was asked for" if job.kernel == "duckdb" else "every part of it is in the subset"
    hopping = windows is not None and not windows.tumbling
    # Corrections are differences: sums whose last digit depends on other rows would show.
    if statement is not None and hopping and job.policy.late is not Late.UPDATE:
        by_pane = translate(statement, schemas, windows)
        if isinstance(by_pane, str) and by_pane != made:
            return Choice("duckdb", reason, by_pane, row_by_row=made)
    return Choice("duckdb", reason, made)


def _other_meaning(spark: SparkSession) -> Outside | None:
    """Settings of the session under which Spark means something else by the same text."""
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    if zone.upper() not in ("UTC", "ETC/UTC", "GMT", "Z", "+00:00"):
        return Outside(f"the session's time zone is {zone}, and the subset is tested in UTC")
    for setting, wanted in _TESTED.items():
        # Without a default of ours: Spark's own may come from its environment.
        found = str(spark.conf.get(setting)).lower()
        if found != wanted:
            return Outside(f"{setting} is {found}, and the subset is tested with {wanted}")
    return None


def for_batch(choice: Choice, job: Job, piece: Slice) -> Choice:
    """The same for one batch: too few windows for the cores may be Spark's to divide."""
    if (
        choice.kernel == "duckdb"
        and job.kernel == "auto"
        and piece.division is Division.SHUFFLE
        and piece.rows_read > WORTH_A_SHUFFLE
    ):
        return Choice("spark", "fewer windows than cores: divided by rows, merged by a shuffle")
    return choice
