"""Judge ibdiagnet: the stages with errors, by the kind of fault that each stage looks for. Pure."""

import re

from weaklink.checks.tools import ib_fabric
from weaklink.checks.tools.base import DID_NOT_RUN, NOTE, Context, Judged, Rule, close, say
from weaklink.model.finding import DEGRADED, FAIL, UNKNOWN, Finding
from weaklink.observe.tools.ibdiagnet import NAME, Diagnosis, Stage

STAGE = Rule(
    f"{NAME}.stage",
    (
        "link-below-capability",
        "no-subnet-manager",
        "link-down",
        "bad-cable",
        "topology-invalid",
        "node-not-responding",
        "stage-with-errors",
    ),
    FAIL,
    NOTE,
    "The numbers in the Errors column count, never the level in front of the row; warnings alone are ok. A missing "
    "subnet manager and links that are down are faults, the others degrade.",
    "Read the stage's lines in /var/tmp/ibdiagnet2/ibdiagnet2.log.",
)
RULES = (*ib_fabric.rules(NAME), STAGE)

_STAGES = (
    (re.compile(r"speed|width", re.IGNORECASE), "link-below-capability", DEGRADED),
    (re.compile(r"subnet manager|\bSM\b|lids?\b", re.IGNORECASE), "no-subnet-manager", FAIL),
    (re.compile(r"\blinks? check|link state|logical link", re.IGNORECASE), "link-down", FAIL),
    (re.compile(r"\bBER\b|counters|cable|phy\b|eye|FEC|errors check", re.IGNORECASE), "bad-cable", DEGRADED),
    (re.compile(r"topology|routing|rail|fat.?tree|dragonfly|credit loop", re.IGNORECASE), "topology-invalid", DEGRADED),
    (re.compile(r"discovery|nodes? information", re.IGNORECASE), "node-not-responding", DEGRADED),
)


def judge(record: Diagnosis, context: Context) -> Judged:
    """Return facts stages, warnings, errors (by stage, those above 0), error_total, and what is wrong."""
    del context  # the tool's own limits are what it reports
    findings = ib_fabric.ran(NAME, record.complaints, found=bool(record.stages))
    if _stopped(record):
        said = next((line for line in record.errors if "fatal" in line.lower()), "no stage but Discovery was run")
        findings.append(say(ib_fabric.rules(NAME)[0], NAME, UNKNOWN, said, DID_NOT_RUN))
    else:
        wrong = [_stage(stage) for stage in record.stages if stage.errors]
        findings += sorted(wrong, key=lambda finding: finding.status != FAIL)
    if record.stages and all(stage.errors is None for stage in record.stages) and not record.troubles:
        findings.append(say(ib_fabric.rules(NAME)[0], NAME, UNKNOWN, "no stage was run", "nothing-tested"))
    facts = {
        "stages": len(record.stages),
        "warnings": {stage.name: stage.warnings for stage in record.stages if stage.warnings},
        "errors": {stage.name: stage.errors for stage in record.stages if stage.errors},
        "error_total": sum(stage.errors or 0 for stage in record.stages) if record.stages else None,
        "skipped": [stage.name for stage in record.stages if stage.errors is None],
        "error_lines": list(record.errors),
    }
    return close(NAME, facts, findings, record.troubles, f"{NAME}: {len(record.stages)} stages without errors")


def _stopped(record: Diagnosis) -> bool:
    """Tell whether the fabric was not even discovered, so that its other stages had nothing to look at."""
    first, *others = record.stages or (None,)
    failed = first is not None and first.name.lower().endswith("discovery") and bool(first.errors)
    return failed and bool(others) and all(stage.errors is None for stage in others)


def _stage(stage: Stage) -> Finding:
    known = next((row for row in _STAGES if row[0].search(stage.name)), None)
    cause, status = (known[1], known[2]) if known else ("stage-with-errors", DEGRADED)
    return say(STAGE, stage.name, status, f"{stage.name}: {stage.errors} errors", cause, errors=stage.errors)
