"""On a Connect session: read a stream, write it as a batch and by a streaming query; tell it all.

Run as a program, with a folder to work in.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql.types import StructType
from sqlalchemy import select
from tests.store.rows import create, write
from tests.store.visible import all_of

from tidegate.errors import TidegateError
from tidegate.spark.session import session
from tidegate.spark.source import read, register
from tidegate.store import Store
from tidegate.store.catalog import writers
from tidegate.store.catalog.schema import writer_batches


def main(folder: Path) -> dict[str, Any]:
    """Work, and tell."""
    store = Store.open(folder / "shop")
    create(store, "orders", segments=2)
    create(store, "copies", segments=2)
    write(store, "orders", range(40))
    spark = session("connect", remote="local[2]")
    told: dict[str, Any] = {}
    rows = read(spark, store, "orders", from_time=15)
    told["read"] = sorted(rows.select("n").toArrow().column("n").to_pylist())
    try:
        read(spark, folder / "shop", "orders", tasks=0)
    except TidegateError as refused:
        told["no such option"] = refused.code == "wrong-setting"
    register(spark)
    target = {"store": str(folder / "shop"), "stream": "copies", "note_time": "max"}
    whole = read(spark, store, "orders")
    schema = StructType.fromJson(json.loads(whole.schema.json()))
    whole.write.format("tidegate").options(**target, writer_id="load").mode("append").save()
    whole.write.parquet(str(folder / "feed"))
    query = (
        spark.readStream.schema(schema)
        .parquet(str(folder / "feed"))
        .writeStream.format("tidegate")
        .options(**target, writer_id="etl", checkpointLocation=str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()
    told["written"] = sorted(all_of(store, "copies", "n"))
    question = select(writer_batches.c.batch)
    told["batches"] = store.database.read(lambda on: list(on.execute(question).scalars()))
    found = store.database.read(lambda on: writers.look(on, store.describe("copies").id, "etl"))
    told["noted"] = None if found is None else found.notes.highest
    return told


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
