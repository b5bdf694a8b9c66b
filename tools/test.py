"""Run the project's tests stage by stage, print what each took, and hold them to the list of tests that must run.

usage: tools/test.py [--fast] [--only STAGE[,STAGE…]] [--keep-lab]

Every stage runs even when an earlier one failed, except that the lab's later stages need its bring-up.
Exit code 0 only when every stage passed, nothing that must run was skipped or missing, and at least one test ran.
"""

import argparse
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / ".cache" / "test-reports"
MUST_RUN = ROOT / "tests" / "must_run.txt"


class Stage(NamedTuple):
    """A named command; ``pytest`` stages are counted, others pass or fail as a whole."""

    name: str
    command: list[str]
    pytest: bool
    fast: bool
    needs: str = ""


class Outcome(NamedTuple):
    """What one stage brought: test ids by result, and seconds."""

    passed: set[str]
    failed: set[str]
    skipped: set[str]
    seconds: float
    ok: bool


def _pytest(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]


STAGES = [
    Stage("lint", ["bash", "tools/lint.sh"], pytest=False, fast=True),
    Stage("unit", _pytest("-n", "2", "tests/unit"), pytest=True, fast=True),
    Stage("slurm", _pytest("tests/slurm"), pytest=True, fast=False),
    Stage("lab-create", [sys.executable, "-m", "molecule", "create", "-s", "cluster"], pytest=False, fast=False),
    Stage("bring-up", _pytest("tests/lab/test_bringup.py", "-x"), pytest=True, fast=False, needs="lab-create"),
    Stage("story", _pytest("tests/lab/test_story.py", "-x"), pytest=True, fast=False, needs="bring-up"),
    Stage("dist", [sys.executable, "tools/dist.py"], pytest=False, fast=False),
]
DESTROY = Stage("lab-destroy", [sys.executable, "-m", "molecule", "destroy", "-s", "cluster"], pytest=False, fast=False)


def _test_id(case: ET.Element) -> str:
    return f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name', '')}"


def read_report(path: Path) -> tuple[set[str], set[str], set[str]]:
    """Return (passed, failed, skipped) test ids of a JUnit report; a missing report has none."""
    passed: set[str] = set()
    failed: set[str] = set()
    skipped: set[str] = set()
    if not path.exists():
        return passed, failed, skipped
    # The report is written by our own pytest run a moment ago.
    for case in ET.parse(path).iter("testcase"):  # noqa: S314 - see above
        tags = {child.tag for child in case}
        target = failed if tags & {"failure", "error"} else skipped if "skipped" in tags else passed
        target.add(_test_id(case))
    return passed, failed, skipped


def run_stage(stage: Stage) -> Outcome:
    """Run one stage to its end and say what it brought."""
    print(f"\n=== {stage.name}", flush=True)
    command = list(stage.command)
    report = REPORTS / f"{stage.name}.xml"
    if stage.pytest:
        report.unlink(missing_ok=True)
        command.append(f"--junitxml={report}")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    begun = time.monotonic()
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    seconds = time.monotonic() - begun
    if stage.pytest:
        passed, failed, skipped = read_report(report)
        return Outcome(passed, failed, skipped, seconds, code == 0 and bool(passed))
    name = {f"stage::{stage.name}"}
    return Outcome(name if code == 0 else set(), set() if code == 0 else name, set(), seconds, code == 0)


def must_run(ran: set[str], stages: set[str]) -> set[str]:
    """Return the ids of the committed list that belong to ``stages`` and did not pass."""
    missing = set()
    for line in MUST_RUN.read_text(encoding="utf-8").splitlines():
        text = line.split("#")[0].strip()
        if not text:
            continue
        stage, wanted = text.split(None, 1)
        if stage in stages and not any(test == wanted or test.startswith(f"{wanted}[") for test in ran):
            missing.add(wanted)
    return missing


def run_all(stages: list[Stage], *, keep_lab: bool) -> int:
    """Run the stages, print the table of times, and return the exit code."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    outcomes: dict[str, Outcome] = {}
    try:
        for stage in stages:
            if stage.needs and stage.needs in {s.name for s in stages} and not outcomes[stage.needs].ok:
                print(f"\n=== {stage.name}: not run, {stage.needs} failed", flush=True)
                outcomes[stage.name] = Outcome(set(), {f"stage::{stage.name}"}, set(), 0.0, ok=False)
                continue
            outcomes[stage.name] = run_stage(stage)
    finally:
        if "lab-create" in {s.name for s in stages} and not keep_lab:
            outcomes[DESTROY.name] = run_stage(DESTROY)
    passed = set().union(*(o.passed for o in outcomes.values()))
    failed = set().union(*(o.failed for o in outcomes.values()))
    skipped = set().union(*(o.skipped for o in outcomes.values()))
    missing = must_run(passed, {s.name for s in stages})
    print("\nstage          passed  failed  skipped   seconds")
    for name, o in outcomes.items():
        mark = "" if o.ok else "  FAILED"
        print(f"{name:<14} {len(o.passed):>6}  {len(o.failed):>6}  {len(o.skipped):>7}  {o.seconds:>8.1f}{mark}")
    seconds = sum(o.seconds for o in outcomes.values())
    print(f"{'all':<14} {len(passed):>6}  {len(failed):>6}  {len(skipped):>7}  {seconds:>8.1f}")
    for test in sorted(failed):
        print(f"FAILED {test}")
    for test in sorted(skipped):
        print(f"SKIPPED {test}: a skipped test counts as a failure here")
    for test in sorted(missing):
        print(f"MISSING {test}: it is in {MUST_RUN.relative_to(ROOT)} and did not pass")
    ok = all(o.ok for o in outcomes.values()) and not failed and not skipped and not missing and bool(passed)
    print(f"{len(passed)} passed, {len(failed | missing)} failed, {len(skipped)} skipped")
    return 0 if ok else 1


def main() -> int:
    """Read the arguments, pick the stages and run them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--fast", action="store_true", help="only the stages that need neither Slurm nor machines")
    parser.add_argument("--only", default="", help="comma-separated stage names")
    parser.add_argument("--keep-lab", action="store_true", help="leave the lab running at the end")
    arguments = parser.parse_args()
    chosen = [name for name in arguments.only.split(",") if name]
    unknown = set(chosen) - {stage.name for stage in STAGES}
    if unknown:
        parser.error(f"no stage {', '.join(sorted(unknown))}; stages: {', '.join(s.name for s in STAGES)}")
    stages = [s for s in STAGES if (not chosen or s.name in chosen) and (s.fast or not arguments.fast)]
    if arguments.fast:
        stages = [s._replace(command=[*s.command, "-m", "not thorough"]) if s.pytest else s for s in stages]
    return run_all(stages, keep_lab=arguments.keep_lab)


if __name__ == "__main__":
    sys.exit(main())
