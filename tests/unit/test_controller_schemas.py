"""What the controller prints and stores is what the schemas in the package say."""

import json
from pathlib import Path
from typing import Any

import pytest
import weaklink
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from weaklink.guard.sweeps import run_sweep

from tests.unit.fleet_fake import Fleet, broken, slow

PACKAGE = Path(weaklink.__file__).parent
FILES = ["model/measurement.schema.json", "locate/locate.schema.json", "sweep/sweep.schema.json"]
SCHEMAS = {name: json.loads((PACKAGE / name).read_text()) for name in FILES}
REGISTRY: Any = Registry().with_resources(
    [(schema["$id"], Resource.from_contents(schema)) for schema in SCHEMAS.values()]
)


def check(name: str, value: object) -> None:
    plain = json.loads(json.dumps(value))
    Draft202012Validator(SCHEMAS[name], registry=REGISTRY).validate(plain)


@pytest.mark.parametrize("name", FILES)
def test_the_schemas_are_schemas(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name])


@pytest.mark.parametrize(
    "fault",
    [
        slow("c2", 1.0),
        slow("c2", 0.05),
        slow("c1", 0.05, "ib_send_lat"),
        broken("c3", "rdma-failed", "rdma-retry-exceeded: x"),
        broken("c3", "timeout", "x"),
    ],
)
def test_sweeps_and_measurements_are_as_their_schemas_say(tmp_path: Path, fault: Any) -> None:
    fleet = Fleet(tmp_path)
    check(FILES[2], run_sweep(fleet.guard))
    check(FILES[2], run_sweep(fleet.guard, baseline=True))
    fleet.fault = fault
    outcome = run_sweep(fleet.guard)
    check(FILES[2], outcome)
    check(FILES[1], outcome)
    for one in outcome["measurements"]:
        check(FILES[0], one)


def test_one_pair_alone_is_as_the_schema_says(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    run_sweep(fleet.guard, baseline=True)
    fleet.slurm.put_state("c1", "ALLOCATED")
    fleet.fault = slow("c2", 0.02)
    outcome = run_sweep(fleet.guard)
    assert outcome["suspects"]
    check(FILES[1], outcome)


def test_the_schemas_refuse_what_they_should() -> None:
    line = {"src": "c1/a", "dst": "c2/a", "ok": False, "gbps": 0.5}
    assert not Draft202012Validator(SCHEMAS[FILES[0]]).is_valid(line)
    assert not Draft202012Validator(SCHEMAS[FILES[0]]).is_valid({"src": "c1", "dst": "c2/a"})
    assert Draft202012Validator(SCHEMAS[FILES[0]]).is_valid({"src": "c1/a", "dst": "c2/a"})
