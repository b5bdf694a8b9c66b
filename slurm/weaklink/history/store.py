"""The store: sweeps, measurements, baselines, evidence, incidents, returns. SQLite by default, any SQLAlchemy URL.

SQLite runs with its rollback journal and synchronous=FULL: what was committed survives kill -9 and a power cut, what
was not is rolled back at the next opening. Every public method is one transaction. The file is 0600 in a directory of
0700.
"""

import json
import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Optional

from sqlalchemy import create_engine, event, func, insert, inspect, select, update
from sqlalchemy.engine import Connection, Engine, make_url
from sqlalchemy.exc import SQLAlchemyError

from weaklink.history import schema as t
from weaklink.model.measurement import Measurement, Reference

_BUSY_MS = 15_000


class StoreError(Exception):
    """The store cannot be used; the text says what, where, and what to do."""


class SweepRecord(NamedTuple):
    """One sweep; ``result`` is the locate output with what was done about it."""

    id: str
    kind: str
    state: str
    started: float
    finished: Optional[float]
    verdict: str
    accepted: bool
    nodes: list[str]
    job: Optional[int]
    result: dict[str, Any]


class EvidenceRecord(NamedTuple):
    """One verdict on one node; ``source`` is digest | sweep | return."""

    id: str
    node: str
    time: float
    source: str
    verdict: str
    action: str
    check: str
    cause: str
    message: str
    token: str
    body: dict[str, Any]


class IncidentRecord(NamedTuple):
    """One cause that was found and not acted on, with the nodes it concerns."""

    id: int
    check: str
    cause: str
    opened: float
    closed: Optional[float]
    nodes: list[str]
    message: str
    closing: str


class ReturnRecord(NamedTuple):
    """One attempt to give a node back."""

    id: str
    node: str
    partner: str
    reservation: str
    state: str
    check: str
    message: str
    started: float
    finished: Optional[float]
    detail: str


class Store:
    """An open store. Use ``Store.open(url)``; ``clock`` gives seconds since the epoch and is for tests."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.clock = time.time

    @classmethod
    def open(cls, url: str) -> "Store":
        """Open, and create when it is not there, the store at ``url``; StoreError when it cannot be used."""
        try:
            parsed = make_url(url)
        except SQLAlchemyError as error:
            raise StoreError(f"store {url!r} is not an SQLAlchemy URL: {error}") from error
        if parsed.get_backend_name() == "sqlite" and parsed.database and parsed.database != ":memory:":
            _private_file(Path(parsed.database))
        try:
            engine = create_engine(parsed)
        except (SQLAlchemyError, ImportError) as error:
            raise StoreError(
                f"store {parsed.render_as_string()}: {error}; is the database's driver installed?"
            ) from error
        if parsed.get_backend_name() == "sqlite":
            event.listen(engine, "connect", _careful_sqlite)
        store = cls(engine)
        store._prepare()
        return store

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            where = self._engine.url.render_as_string()
            words = str(getattr(error, "orig", None) or error).split("\n")[0]
            raise StoreError(f"store {where}: {words}; nothing of this step was written{_advice(words)}") from error

    def _prepare(self) -> None:
        with self._transaction() as connection:
            known = inspect(connection).has_table("schema_version")
            version = connection.execute(select(func.max(t.schema_version.c.version))).scalar() if known else None
            if version is not None and int(version) > t.VERSION:
                raise StoreError(
                    f"store {self._engine.url.render_as_string()} has schema {version}, this weaklink knows "
                    f"{t.VERSION}: "
                    "install the newer weaklink on this machine, or name another store in cluster.json"
                )
            if version is None:
                t.metadata.create_all(connection)
                connection.execute(insert(t.schema_version).values(version=t.VERSION, applied=self.clock()))

    # sweeps and measurements

    def begin_sweep(self, sweep: str, kind: str, nodes: Sequence[str]) -> None:
        """Record that a sweep has begun."""
        with self._transaction() as connection:
            row = {"id": sweep, "kind": kind, "state": "running", "started": self.clock(), "accepted": False}
            connection.execute(insert(t.sweeps).values(**row, nodes=json.dumps(list(nodes))))

    def set_job(self, sweep: str, job: int) -> None:
        """Record the Slurm job of a sweep's allocation."""
        with self._transaction() as connection:
            connection.execute(update(t.sweeps).where(t.sweeps.c.id == sweep).values(job=job))

    def add_measurements(self, sweep: str, measurements: Iterable[Measurement]) -> None:
        """Add the measurements of a round."""
        rows = [
            {
                **{key: value for key, value in one._asdict().items() if key not in ("counters", "versions", "time")},
                "sweep": sweep,
                "time": one.time or self.clock(),
                "counters": json.dumps({end: dict(values) for end, values in one.counters.items()}),
                "versions": json.dumps(dict(one.versions)),
            }
            for one in measurements
        ]
        if rows:
            with self._transaction() as connection:
                connection.execute(insert(t.measurements), rows)

    def end_sweep(
        self, sweep: str, state: str, verdict: str, result: dict[str, Any], *, accepted: bool = False
    ) -> None:
        """Record how a sweep ended; ``accepted``: it may teach the baseline."""
        with self._transaction() as connection:
            values = {"state": state, "verdict": verdict, "result": json.dumps(result), "accepted": accepted}
            connection.execute(update(t.sweeps).where(t.sweeps.c.id == sweep).values(**values, finished=self.clock()))

    def sweeps(self, *, state: Optional[str] = None, limit: int = 50) -> list[SweepRecord]:
        """Return sweeps, the latest first."""
        query = select(t.sweeps).order_by(t.sweeps.c.started.desc()).limit(limit)
        if state is not None:
            query = query.where(t.sweeps.c.state == state)
        with self._transaction() as connection:
            return [_sweep(row) for row in connection.execute(query).mappings()]

    def measurements(self, sweep: str) -> list[Measurement]:
        """Return the measurements of one sweep in the order they came."""
        query = select(t.measurements).where(t.measurements.c.sweep == sweep).order_by(t.measurements.c.id)
        with self._transaction() as connection:
            return [_measurement(row) for row in connection.execute(query).mappings()]

    def accepted_sweeps(self, limit: int = 20) -> list[list[Measurement]]:
        """Return the measurements of the latest sweeps that may teach the baseline."""
        query = select(t.sweeps.c.id).where(t.sweeps.c.accepted).order_by(t.sweeps.c.started.desc()).limit(limit)
        with self._transaction() as connection:
            names = [str(name) for name in connection.execute(query).scalars()]
        return [self.measurements(name) for name in names]

    # baselines

    def put_references(self, references: Iterable[Reference]) -> None:
        """Replace the baseline."""
        now, rows = self.clock(), []
        for one in references:
            common = {"benchmark": one.benchmark, "shape": one.shape, "unit": one.unit, "updated": now}
            rows.append({**common, "path": "", "center": one.center, "sigma": one.sigma, "sweeps": one.sweeps})
            rows += [
                {**common, "path": path, "center": offset, "sigma": one.offset_sd, "sweeps": one.sweeps}
                for path, offset in one.offsets.items()
            ]
        with self._transaction() as connection:
            connection.execute(t.baselines.delete())
            if rows:
                connection.execute(insert(t.baselines), rows)

    def references(self) -> list[Reference]:
        """Return the baseline; empty when none was taken."""
        with self._transaction() as connection:
            rows = connection.execute(select(t.baselines)).mappings().all()
        found = []
        for row in rows:
            if row["path"]:
                continue
            mine = [r for r in rows if r["path"] and (r["benchmark"], r["shape"]) == (row["benchmark"], row["shape"])]
            found.append(
                Reference(
                    row["benchmark"],
                    row["shape"],
                    row["unit"],
                    row["center"],
                    row["sigma"],
                    row["sweeps"],
                    {r["path"]: r["center"] for r in mine},
                    mine[0]["sigma"] if mine else row["sigma"],
                )
            )
        return sorted(found, key=lambda one: (one.benchmark, one.shape))

    # evidence

    def add_evidence(self, record: EvidenceRecord) -> bool:
        """Add evidence; return False when this id is known already."""
        with self._transaction() as connection:
            if connection.execute(select(t.evidence.c.id).where(t.evidence.c.id == record.id)).first():
                return False
            values = record._asdict()
            values["check_name"] = values.pop("check")
            values["body"] = json.dumps(record.body)
            connection.execute(insert(t.evidence).values(**values))
            return True

    def evidence(self, node: Optional[str] = None, limit: int = 20) -> list[EvidenceRecord]:
        """Return evidence, the latest first."""
        query = select(t.evidence).order_by(t.evidence.c.time.desc()).limit(limit)
        if node is not None:
            query = query.where(t.evidence.c.node == node)
        with self._transaction() as connection:
            return [_evidence(row) for row in connection.execute(query).mappings()]

    # incidents

    def note_incident(self, check: str, cause: str, node: str, message: str) -> int:
        """Open an incident for ``check``, or add ``node`` to the one that is open; return its number."""
        query = select(t.incidents).where(t.incidents.c.check_name == check, t.incidents.c.closed.is_(None))
        with self._transaction() as connection:
            row = connection.execute(query).mappings().first()
            if row is None:
                values = {"check_name": check, "cause": cause, "opened": self.clock(), "message": message}
                done = connection.execute(insert(t.incidents).values(**values, nodes=json.dumps([node])))
                return int(done.inserted_primary_key[0]) if done.inserted_primary_key else 0
            nodes = json.loads(row["nodes"])
            if node not in nodes:
                connection.execute(
                    update(t.incidents)
                    .where(t.incidents.c.id == row["id"])
                    .values(nodes=json.dumps(sorted([*nodes, node])), message=message)
                )
            return int(row["id"])

    def close_incidents(self, node: str, why: str) -> list[int]:
        """Take ``node`` off all open incidents; close those that then concern nobody, and return their numbers."""
        closed = []
        with self._transaction() as connection:
            rows = connection.execute(select(t.incidents).where(t.incidents.c.closed.is_(None))).mappings().all()
            for row in rows:
                nodes = json.loads(row["nodes"])
                if node not in nodes:
                    continue
                left = [name for name in nodes if name != node]
                change = update(t.incidents).where(t.incidents.c.id == row["id"])
                if left:
                    connection.execute(change.values(nodes=json.dumps(left)))
                else:
                    connection.execute(change.values(closed=self.clock(), closing=why))
                    closed.append(int(row["id"]))
        return closed

    def incidents(self, *, everything: bool = False) -> list[IncidentRecord]:
        """Return open incidents (or all), the latest first."""
        query = select(t.incidents).order_by(t.incidents.c.opened.desc(), t.incidents.c.id.desc())
        if not everything:
            query = query.where(t.incidents.c.closed.is_(None))
        with self._transaction() as connection:
            return [_incident(row) for row in connection.execute(query).mappings()]

    # what became of returns

    def put_return(self, record: ReturnRecord) -> None:
        """Write a return's record, new or changed."""
        values = record._asdict()
        values["check_name"] = values.pop("check")
        with self._transaction() as connection:
            known = connection.execute(select(t.returns.c.id).where(t.returns.c.id == record.id)).first()
            if known:
                connection.execute(update(t.returns).where(t.returns.c.id == record.id).values(**values))
            else:
                connection.execute(insert(t.returns).values(**values))

    def returns(self, node: Optional[str] = None, *, unfinished: bool = False) -> list[ReturnRecord]:
        """Return records of returns, the latest first."""
        query = select(t.returns).order_by(t.returns.c.started.desc())
        if node is not None:
            query = query.where(t.returns.c.node == node)
        if unfinished:
            query = query.where(t.returns.c.finished.is_(None))
        with self._transaction() as connection:
            return [_return(row) for row in connection.execute(query).mappings()]


def _advice(words: str) -> str:
    for sign, advice in (
        ("disk is full", "free some space"),
        ("readonly", "run it as root, on the controller"),
        ("unable to open", "is the directory there, and are you root?"),
        ("locked", "another weaklink holds it; try again"),
        ("malformed", "the file is damaged: move it away, a new one is made and baselines must be taken again"),
        ("not a database", "the file is no SQLite database: move it away"),
    ):
        if sign in words:
            return f"; {advice}"
    return ""


def _private_file(path: Path) -> None:
    """Make sure the file is there and nobody else can read it, nor its directory."""
    try:
        if not path.parent.is_dir():
            path.parent.mkdir(mode=0o700, parents=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        found = path.stat()
        if stat.S_IMODE(found.st_mode) & 0o077:
            path.chmod(0o600)
        folder = stat.S_IMODE(path.parent.stat().st_mode)
        if folder & 0o022:
            raise StoreError(
                f"store directory {path.parent} is writable by others (mode {folder:04o}); wanted 0700: chmod 0700 it"
            )
    except OSError as error:
        raise StoreError(f"store {path}: {error.strerror}; is this the controller, and are you root?") from error


def _careful_sqlite(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
    cursor.close()


def _sweep(row: Any) -> SweepRecord:
    return SweepRecord(
        row["id"],
        row["kind"],
        row["state"],
        row["started"],
        row["finished"],
        row["verdict"] or "",
        bool(row["accepted"]),
        json.loads(row["nodes"]),
        row["job"],
        json.loads(row["result"] or "{}"),
    )


def _measurement(row: Any) -> Measurement:
    plain = {name: row[name] for name in Measurement._fields if name not in ("counters", "versions")}
    return Measurement(**plain, counters=json.loads(row["counters"]), versions=json.loads(row["versions"]))


def _evidence(row: Any) -> EvidenceRecord:
    plain = {name: row[name] for name in EvidenceRecord._fields if name not in ("check", "body")}
    return EvidenceRecord(**plain, check=row["check_name"], body=json.loads(row["body"]))


def _incident(row: Any) -> IncidentRecord:
    return IncidentRecord(
        row["id"],
        row["check_name"],
        row["cause"],
        row["opened"],
        row["closed"],
        json.loads(row["nodes"]),
        row["message"],
        row["closing"] or "",
    )


def _return(row: Any) -> ReturnRecord:
    plain = {name: row[name] for name in ReturnRecord._fields if name != "check"}
    return ReturnRecord(**plain, check=row["check_name"])
