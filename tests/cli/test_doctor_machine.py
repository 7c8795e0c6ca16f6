"""`tidegate doctor`: the machine, a store, and a mistake on the command line."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement as Standard
from sqlalchemy import text
from sqlalchemy.engine import URL
from tests.conftest import fresh_catalog
from typer.testing import CliRunner, Result

from tidegate.cli import app
from tidegate.cli.doctor import machine as doctor_machine
from tidegate.cli.doctor.checks import Check, State
from tidegate.cli.doctor.machine import (
    GIB,
    check_disk,
    check_host,
    check_java,
    check_memory,
    free_memory,
)
from tidegate.cli.doctor.packages import Requirement, check_packages, check_worker, requirements
from tidegate.cli.doctor.store import check_store
from tidegate.store import Store
from tidegate.store.catalog.migrate import HEAD


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["doctor", *words], env={"COLUMNS": "160"})


def script(path: Path, lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return path


def states(result: Result) -> dict[str, str]:
    return {check["check"]: check["state"] for check in json.loads(result.stdout)["checks"]}


# ---- the command ----


def test_on_this_machine_nothing_fails() -> None:
    result = run()
    assert result.exit_code == 0, result.output
    for name in (
        "Java",
        "memory",
        "disk",
        "host name",
        "Python worker",
        "pyspark",
        "Spark Connect",
    ):
        assert f"│ {name} " in result.output
    assert "nothing failed" in result.output


def test_a_failed_check_is_the_exit_code_one_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    shown = run()
    assert shown.exit_code == 1
    assert f"none in JAVA_HOME, {tmp_path}" in shown.output
    assert "apt-get install openjdk-17-jre-headless" in shown.output
    assert "1 failed: Java" in shown.output
    told = run("--json")
    assert told.exit_code == 1
    assert json.loads(told.stdout)["well"] is False
    assert states(told)["Java"] == "failed"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--input", "x"], "--input was given, and --time was not"),
        (["--time", "at"], "--time was given, and --input was not"),
        (["--delay", "5s"], "--delay was given, and --input was not"),
        (["--live"], "--live was given, and --input was not"),
        (["--stream", "orders"], "--stream was given, and --store was not"),
        (["--data", "x"], "--data was given, and --store was not"),
        (
            ["--store", "s", "--stream", "o", "--time", "at"],
            "--time was given, and --input was not",
        ),
        (["--store", "s", "--stream", "o", "--input", "x"], "--input and --stream were given"),
        (
            ["--input", "x", "--time", "at", "--batch-rows", "5", "--batch-files", "5"],
            "--batch-rows and --batch-files were given",
        ),
        (["--input", "x", "--time", "at", "--delay", "soon"], "soon"),
        (["--input", "x", "--time", "at", "--window", "0s"], "window"),
        (["--input", "not-there", "--time", "at"], "there is no such file or folder"),
        (["--progress", "not-there"], "No such file or directory"),
    ],
)
def test_a_mistake_is_told_in_words_and_the_exit_code_two(words: list[str], error: str) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert error in result.stderr
    assert "Hint: " in result.stderr
    assert "Traceback" not in result.output


# ---- Java ----

VERSION = "echo 'openjdk version \"{}\" 2025-04-15' >&2"


@pytest.mark.parametrize(
    ("lines", "state", "told"),
    [
        (VERSION.format("1.8.0_202"), State.FAILED, "version 8"),
        (VERSION.format("17.0.15"), State.FAILED, "lacks the module jdk.incubator.vector"),
        (
            VERSION.format("21.0.1") + "; echo jdk.incubator.vector@21",
            State.OK,
            "version 21",
        ),
        ("exit 1", State.FAILED, "tells no version"),
    ],
)
def test_java_must_be_new_and_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, state: State, told: str
) -> None:
    script(tmp_path / "bin" / "java", lines)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = check_java()
    assert found.state is state
    assert told in found.found
    assert bool(found.advice) is (state is State.FAILED)


# ---- room and host ----


def test_in_a_container_its_limit_counts(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n")
    assert free_memory(tmp_path, tmp_path) == 8_000_000 * 1024
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("700\n")
    assert free_memory(tmp_path, tmp_path) == 8_000_000 * 1024
    (tmp_path / "memory.max").write_text("1000\n")
    assert free_memory(tmp_path, tmp_path) == 300
    (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 50\n")
    assert free_memory(tmp_path, tmp_path) == 350
    assert free_memory(tmp_path / "none", tmp_path / "none") is None


@pytest.mark.parametrize(
    ("free", "state"),
    [(None, State.WARNING), (1, State.FAILED), (GIB, State.WARNING), (9 * GIB, State.OK)],
)
def test_little_memory_is_a_warning_and_none_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, free: int | None, state: State
) -> None:
    monkeypatch.setattr(doctor_machine, "free_memory", lambda: free)
    assert check_memory().state is state


@pytest.mark.parametrize(
    ("free", "state"), [(1, State.FAILED), (GIB, State.WARNING), (90 * GIB, State.OK)]
)
def test_every_folder_of_spark_needs_room(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free: int, state: State
) -> None:
    usage = namedtuple("usage", "free")
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage(free))
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},{tmp_path}/gone")
    here, gone = check_disk()
    assert here.state is state
    assert gone.state is State.FAILED
    assert "No such file or directory" in gone.found


def fails(*_: object) -> Any:
    raise socket.gaierror(-2, "Name or service not known")


@pytest.mark.parametrize(
    ("addresses", "state"),
    [
        (lambda *_: [(0, 0, 0, "", ("127.0.1.1", 0))], State.WARNING),
        (lambda *_: [(0, 0, 0, "", ("fe80::1%eth0", 0, 0, 0))], State.OK),
        (lambda *_: [(0, 0, 0, "", ("::1", 0)), (0, 0, 0, "", ("10.0.0.7", 0))], State.OK),
        (fails, State.FAILED),
    ],
)
def test_a_host_needs_an_address_that_others_can_use(
    monkeypatch: pytest.MonkeyPatch, addresses: Callable[..., Any], state: State
) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    monkeypatch.setattr("socket.getaddrinfo", addresses)
    found = check_host()
    assert found.state is state
    assert bool(found.advice) is (state is not State.OK)
    monkeypatch.setenv("SPARK_LOCAL_IP", "10.0.0.7")
    assert check_host().state is State.OK


# ---- packages ----


def test_requirements_are_read_as_the_standard_reads_them() -> None:
    ours = requirements()
    standard = [Standard(line) for line in metadata.requires("tidegate") or ()]
    assert [one.package for one in ours] == [one.name for one in standard]
    assert [one.extra is None for one in ours] == [one.marker is None for one in standard]
    versions = ["0.9", "2", "2.2", "2.2.0", "2.10.1", "3", "3.0.0", "4.3.1", "4.4", "30.30.0"]
    for one, other in zip(ours, standard, strict=True):
        for version in versions:
            assert one.allows(version) is other.specifier.contains(version), (one, version)


@pytest.mark.parametrize("bounds", ["==2.2", "==2.*", "!=2.2.0", "~=2.2", "~=2.2.1", ">2,<=3", ""])
def test_every_sign_of_a_bound_means_what_the_standard_says(bounds: str) -> None:
    line = f"thing{bounds}"
    for version in ("1.9", "2", "2.0.1", "2.2", "2.2.0", "2.2.5", "2.3", "3.0", "3.1"):
        expected = Standard(line).specifier.contains(version)
        assert Requirement.of(line).allows(version) is expected, (line, version)


def test_packages_that_are_missing_or_old_say_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = ["gone>=1", "pyarrow>=9999", "alembic>=1", "grpcio>=1; extra == 'connect'"]
    monkeypatch.setattr("importlib.metadata.requires", lambda name: lines)
    gone, old, good, connect = check_packages()
    assert (gone.state, gone.advice) == (State.FAILED, "pip install 'gone>=1'")
    assert (old.state, old.advice) == (State.FAILED, "pip install 'pyarrow>=9999'")
    assert (good.state, connect.state) == (State.OK, State.OK)
    lines[-1] = "gone>=1; extra == 'connect'"
    assert check_packages()[-1].state is State.UNUSED
    lines[-1] = "grpcio>=9999; extra == 'connect'"
    assert check_packages()[-1].state is State.FAILED


ANSWER = 'echo \'{{"version": {}, "missing": {}}}\''
OURS = list(sys.version_info[:3])


@pytest.mark.parametrize(
    ("lines", "state", "told"),
    [
        (ANSWER.format(OURS, "{}"), State.OK, "imports pyarrow, pandas, tidegate"),
        (ANSWER.format([3, 7, 1], "{}"), State.FAILED, "3.7.1"),
        (ANSWER.format(OURS, '{"pandas": "ImportError: no"}'), State.FAILED, "pandas: ImportError"),
        ("echo broken >&2; exit 3", State.FAILED, "does not answer: broken"),
        ("exit 3", State.FAILED, "it ended with 3"),
    ],
)
def test_a_python_worker_is_asked_what_it_can_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, state: State, told: str
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", str(script(tmp_path / "python", lines)))
    (found,) = check_worker()
    assert found.state is state
    assert told in found.found
    assert "from PYSPARK_PYTHON" in found.found


def test_a_python_worker_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/nowhere/python")
    (found,) = check_worker()
    assert found.state is State.FAILED
    assert found.advice == f"set PYSPARK_PYTHON={sys.executable}"


def test_another_python_on_the_path_is_only_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    script(tmp_path / "python3", "exit 3")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    ours, other = check_worker()
    assert (ours.state, other.state) == (State.OK, State.WARNING)
    (tmp_path / "python3").unlink()
    (tmp_path / "python3").symlink_to(sys.executable)
    assert [check.state for check in check_worker()] == [State.OK]


# ---- Spark ----


def test_a_session_that_does_not_start_is_a_failure_with_the_log_to_read(tmp_path: Path) -> None:
    """In a process of its own: a session of this one would be taken, and stopped."""
    script(tmp_path / "bin" / "java", "echo no Java today; exit 1")
    done = subprocess.run(
        [sys.executable, "-m", "tidegate", "doctor", "--spark", "--json"],
        capture_output=True,
        env={**os.environ, "JAVA_HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    checks = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["Spark"]["state"] == "failed"
    log = Path(checks["Spark"]["advice"].removeprefix("read what Spark said in "))
    assert "no Java today" in log.read_text()


# ---- a store ----


def test_a_store_is_tried_and_left_as_it_was(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    Store.open(shop).close()
    before = sorted(path.name for path in shop.rglob("*"))
    result = run("--store", str(shop), "--json")
    assert result.exit_code == 0, result.output
    assert states(result)["catalog"] == states(result)["data"] == "ok"
    assert sorted(path.name for path in shop.rglob("*")) == before


def test_an_address_without_a_store_is_a_failure_and_makes_none(tmp_path: Path) -> None:
    (found,) = check_store(str(tmp_path / "shop"), None)
    assert found.state is State.FAILED
    assert not (tmp_path / "shop").exists()
    result = run("--store", str(tmp_path / "shop"), "--stream", "orders")
    assert result.exit_code == 2
    assert "there is no store in" in result.stderr
    assert not (tmp_path / "shop").exists()


def of_catalog(address: str, data: str | None) -> Check:
    return check_store(address, data)[0]


@pytest.mark.parametrize(
    ("version", "state", "advice"),
    [
        ("0001", State.WARNING, "the next command that opens the store"),
        ("9999", State.FAILED, "install the Tidegate that the others use"),
    ],
)
def test_another_version_of_the_catalog_is_told_and_not_touched(
    tmp_path: Path, version: str, state: State, advice: str
) -> None:
    with Store.open(tmp_path) as store:
        change = text("UPDATE alembic_version SET version_num = :new")
        store.database.write(lambda on: on.execute(change, {"new": version}))
    for _ in range(2):
        found = of_catalog(str(tmp_path), None)
        assert found.state is state
        assert f"at version {version}, this Tidegate is at {HEAD}" in found.found
        assert advice in found.advice


def test_a_broken_catalog_and_missing_data_are_failures(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    (tmp_path / "data").rmdir()
    assert [check.state for check in check_store(str(tmp_path), None)] == [State.OK, State.FAILED]
    (tmp_path / "catalog.db").write_bytes(b"no database at all" * 500)
    for extra in ("catalog.db-wal", "catalog.db-shm"):
        (tmp_path / extra).unlink(missing_ok=True)
    found = of_catalog(str(tmp_path), None)
    assert found.state is State.FAILED
    assert "file is not a database" in found.found


@pytest.mark.parametrize(
    ("address", "data", "told"),
    [
        ("postgresql://me:secret@nowhere/shop", None, "without the place of its data"),
        ("sea://me:secret@nowhere/shop", "/data", "cannot be opened"),
    ],
)
def test_an_address_that_cannot_be_is_told_without_its_secrets(
    address: str, data: str | None, told: str
) -> None:
    found = of_catalog(address, data)
    assert found.state is State.FAILED
    assert told in found.found
    assert "secret" not in found.found + found.advice


def test_a_catalog_in_postgresql_is_tried(postgres: URL, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with fresh_catalog(postgres) as address:
        found = check_store(address, str(tmp_path / "data"))
    assert [check.state for check in found] == [State.OK, State.OK], found
