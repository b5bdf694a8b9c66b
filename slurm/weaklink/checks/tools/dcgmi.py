"""Judge ``dcgmi``: failed tests, tests that were all skipped, health, GPUs that are missing. Pure."""

from typing import Any, Optional

from weaklink.checks.tools import nvidia_common as common
from weaklink.checks.tools.base import DRAIN, NOTE, Context, Judged, Rule, close, demand, say
from weaklink.model.finding import DEGRADED, UNKNOWN, Finding
from weaklink.model.finding import FAIL as FAILED
from weaklink.observe.tools import nvidia_words as words
from weaklink.observe.tools.dcgmi import NAME
from weaklink.observe.tools.nvidia_dcgm import DIAGNOSTIC, FAIL, HEALTH, PASS, SKIP, WARN, Record, Test

TEST = Rule(
    "dcgm.test",
    ("dcgm-test-failed",),
    FAILED,
    DRAIN,
    "A result of dcgmi diag is Fail (fail) or Warn (degraded); that the diagnostic ran says nothing.",
    "Drain the node; repeat the test alone on the GPU with dcgmi diag -r; follow the message of the test.",
)
TESTED = Rule(
    "dcgm.tested",
    ("nothing-tested",),
    UNKNOWN,
    NOTE,
    "No result is Pass, Fail or Warn; or, from level 2 on, none of the tests of hardware gave one.",
    "See whether this GPU model is on DCGM's list (is_allowed), whether other programs use the GPUs.",
)
HEALTHY = Rule(
    "dcgm.health",
    ("dcgm-test-failed", "nvlink-down", "row-remap-pending", "page-retirement", "gpu-requires-reset", "gpu-lost"),
    FAILED,
    DRAIN,
    "Overall Health of dcgmi health -c is Failure (fail) or Warning (degraded); the cause is the incidents' own word.",
    "Drain the node and follow the incident's message.",
)
RULES = (common.HANDLE, common.COUNT, common.RAN, TEST, TESTED, HEALTHY)
_INCIDENTS = (
    ("is lost", "gpu-lost"),
    ("fallen off", "gpu-lost"),
    ("row remap", "row-remap-pending"),
    ("page retire", "page-retirement"),
    ("retired page", "page-retirement"),
    ("pages retired", "page-retirement"),
    ("requires a reset", "gpu-requires-reset"),
    ("nvlink", "nvlink-down"),
)
_HARDWARE_LEVEL = 2


def _gpus(test: Test, status: str, devices: Optional[int] = None) -> list[int]:
    """Return the GPUs with a status; "All" stands for every one of the ``devices``, where their number is told."""
    results = [result for result in test.results if result.status == status]
    if devices and any(result.everything for result in results):
        return list(range(devices))
    return sorted({gpu for result in results for gpu in result.gpus})


def _count(record: Record, status: str) -> int:
    return sum(result.status == status for test in record.tests for result in test.results)


def _tests(record: Record) -> list[Finding]:
    found = []
    for wanted, status in ((FAIL, FAILED), (WARN, DEGRADED)):
        for test in record.tests:
            bad = [result for result in test.results if result.status == wanted]
            if not bad:
                continue
            gpus = _gpus(test, wanted, record.devices)
            named = f" on GPU {', '.join(map(str, gpus))}" if gpus else ""
            said = next((result.message for result in bad if result.message), "")
            message = f"{test.name}: {wanted}{named}{': ' + said[:300] if said else ''}; {TEST.remedy}"
            found.append(say(TEST, test.name, status, message, gpus=gpus))
    return found


def _untested(record: Record, context: Context) -> list[Finding]:
    """Return what was not tested, though it was asked for."""
    level = demand(context, "level", int)
    if record.kind != DIAGNOSTIC or record.troubles:
        return []
    ran = {PASS, FAIL, WARN}
    hardware = [test for test in record.tests if not test.deployment]
    counting = hardware if hardware or (level or 1) >= _HARDWARE_LEVEL else list(record.tests)
    if not any(result.status in ran for test in counting for result in test.results):
        if not record.tests and record.errors:
            return []
        skipped = ", ".join(test.name for test in counting if test.results)[:200] or "no test of hardware is listed"
        return [say(TESTED, "diag", UNKNOWN, f"nothing was tested ({skipped}); {TESTED.remedy}")]
    tested = {gpu for test in counting for result in test.results if result.status in ran for gpu in result.gpus}
    if any(
        result.everything or not result.gpus for test in counting for result in test.results if result.status in ran
    ):
        return []
    skipped_gpus = {gpu for test in counting for result in test.results for gpu in result.gpus} - tested
    return [
        say(TESTED, str(gpu), UNKNOWN, f"GPU {gpu}: every test of it was skipped; {TESTED.remedy}")
        for gpu in sorted(skipped_gpus)
    ]


def _health(record: Record) -> list[Finding]:
    word = (record.health or "").lower()
    if record.kind != HEALTH or not word or word in {"healthy", "pass"}:
        return []
    said = " ".join(record.incidents)
    cause = next((cause for mark, cause in _INCIDENTS if mark in said.lower()), "dcgm-test-failed")
    status = DEGRADED if "warn" in word else FAILED if "fail" in word or "error" in word else UNKNOWN
    return [say(HEALTHY, "health", status, f"Overall Health is {word}: {said[:300]}; {HEALTHY.remedy}", cause)]


def _errors(record: Record) -> list[Finding]:
    found = []
    for line in record.errors:
        kind = words.fault(line)
        if kind in {words.LOST, words.RESET}:
            found.append(say(common.HANDLE, "gpu", FAILED, line, common.fault_cause(kind)))
        else:
            found.append(say(common.RAN, NAME, UNKNOWN, f"{line}; start nvidia-dcgm (nv-hostengine) and run it again"))
    return sorted(found, key=lambda finding: finding.status != FAILED)


def _counted(record: Record, context: Context) -> list[Finding]:
    wanted = demand(context, "expected_gpus", int)
    number = record.gpus
    if record.kind == "discovery" and record.devices == 0:
        number = 0
    if wanted is None or number is None or number >= wanted or record.troubles or record.kind == HEALTH:
        return []
    return [say(common.COUNT, "gpus", FAILED, f"{number} GPUs are seen, wanted {wanted}; {common.COUNT.remedy}")]


def _memory_passed(record: Record) -> Optional[list[int]]:
    tests = [test for test in record.tests if test.name.lower() in {"gpu memory", "memory"}]
    return sorted({gpu for test in tests for gpu in _gpus(test, PASS, record.devices)}) if tests else None


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; ``expected_gpus`` and ``level`` are demands."""
    failed = [
        {"test": test.name, "gpus": _gpus(test, FAIL, record.devices)} for test in record.tests if _has(test, FAIL)
    ]
    warned = [
        {"test": test.name, "gpus": _gpus(test, WARN, record.devices)} for test in record.tests if _has(test, WARN)
    ]
    odd = [
        f"{test.name}: {result.status}"
        for test in record.tests
        for result in test.results
        if result.status not in {PASS, FAIL, WARN, SKIP}
    ]
    found = [*_tests(record), *_health(record), *_errors(record), *_counted(record, context)]
    found += [say(common.RAN, "diag", UNKNOWN, f"a result that is not known: {said}") for said in odd[:10]]
    found += _untested(record, context)
    facts: dict[str, Any] = {
        "gpus": record.devices if record.kind == "discovery" else record.gpus,
        "tests": len(record.tests) if record.kind in {DIAGNOSTIC, ""} else None,
        "pass": _count(record, PASS),
        "fail": _count(record, FAIL),
        "warn": _count(record, WARN),
        "skip": _count(record, SKIP),
        "failed": failed,
        "warned": warned,
        "bad_gpus": sorted({gpu for test in record.tests for gpu in _gpus(test, FAIL, record.devices)}),
        "passed_gpus_memory": _memory_passed(record),
        "dcgm_version": record.version,
        "driver_version": record.driver,
        "overall_health": record.health,
        "error": record.errors[0] if record.errors else None,
    }
    return close(NAME, facts, found, record.troubles, "every test that ran passed")


def _has(test: Test, status: str) -> bool:
    return any(result.status == status for result in test.results)
