"""Tables of the store, schema version 1. Needs SQLAlchemy 2; imported by the store alone."""

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
)

VERSION = 1

metadata = MetaData()

schema_version = Table(
    "schema_version",
    metadata,
    Column("version", Integer, primary_key=True),
    Column("applied", Float, nullable=False),
)

# kind: sweep | baseline | return. state: running | complete | cancelled | failed. Times are seconds since the epoch.
sweeps = Table(
    "sweeps",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("kind", String(20), nullable=False),
    Column("state", String(20), nullable=False),
    Column("started", Float, nullable=False),
    Column("finished", Float),
    Column("verdict", String(20)),
    Column("accepted", Boolean, nullable=False, default=False),
    Column("nodes", Text, nullable=False),
    Column("job", Integer),
    Column("result", Text),
)

measurements = Table(
    "measurements",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("sweep", String(40), ForeignKey("sweeps.id"), nullable=False),
    Column("time", Float, nullable=False),
    Column("round", Integer, nullable=False),
    Column("src", String(130), nullable=False),
    Column("dst", String(130), nullable=False),
    Column("benchmark", String(40), nullable=False),
    Column("shape", String(80), nullable=False),
    Column("value", Float),
    Column("unit", String(20), nullable=False),
    Column("p99_us", Float),
    Column("failure", String(40), nullable=False),
    Column("detail", Text, nullable=False),
    Column("retest", Boolean, nullable=False),
    Column("counters", Text, nullable=False),
    Column("versions", Text, nullable=False),
    Index("measurements_by_sweep", "sweep"),
)

# One row a path (``src>dst``) and one with path "" for the fleet. Values are natural logs of the unit.
baselines = Table(
    "baselines",
    metadata,
    Column("benchmark", String(40), nullable=False),
    Column("shape", String(80), nullable=False),
    Column("path", String(280), nullable=False),
    Column("unit", String(20), nullable=False),
    Column("center", Float, nullable=False),
    Column("sigma", Float, nullable=False),
    Column("sweeps", Integer, nullable=False),
    Column("updated", Float, nullable=False),
    PrimaryKeyConstraint("benchmark", "shape", "path"),
)

# What nodes reported in their digests, what sweeps said of a node, what a return found. body is the whole object as
# JSON.
evidence = Table(
    "evidence",
    metadata,
    Column("id", String(80), primary_key=True),
    Column("node", String(64), nullable=False),
    Column("time", Float, nullable=False),
    Column("source", String(20), nullable=False),
    Column("verdict", String(20), nullable=False),
    Column("action", String(40), nullable=False),
    Column("check_name", String(80), nullable=False),
    Column("cause", String(80), nullable=False),
    Column("message", Text, nullable=False),
    Column("token", String(20), nullable=False),
    Column("body", Text, nullable=False),
    Index("evidence_by_node", "node", "time"),
)

incidents = Table(
    "incidents",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("check_name", String(80), nullable=False),
    Column("cause", String(80), nullable=False),
    Column("opened", Float, nullable=False),
    Column("closed", Float),
    Column("nodes", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("closing", Text),
)

# A return is started, reserved, undrained, tested, and then done or failed; cleaned when another one finished it.
returns = Table(
    "returns",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("node", String(64), nullable=False),
    Column("partner", String(64), nullable=False),
    Column("reservation", String(80), nullable=False),
    Column("state", String(20), nullable=False),
    Column("check_name", String(80), nullable=False),
    Column("message", Text, nullable=False),
    Column("started", Float, nullable=False),
    Column("finished", Float),
    Column("detail", Text, nullable=False),
)
