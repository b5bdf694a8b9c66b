"""What dcgmi's outputs say, whatever their form: results of tests, health, GPUs. Pure."""

import re
from typing import Any, NamedTuple, Optional

from weaklink.observe.tools.text import Trouble

PASS, FAIL, WARN, SKIP = "pass", "fail", "warn", "skip"
DIAGNOSTIC, HEALTH, DISCOVERY = "diag", "health", "discovery"
_STATUS = {
    "pass": PASS,
    "fail": FAIL,
    "failed": FAIL,
    "warn": WARN,
    "warning": WARN,
    "skip": SKIP,
    "skipped": SKIP,
    "not run": SKIP,
    "notrun": SKIP,
    "not_run": SKIP,
}
_NUMBER = re.compile(r"\d{1,3}")
_MAX_MESSAGE = 600
_SCAN = re.compile(
    r'"(category|name|gpu_ids?|entity_id|status|test_summary|runtime_error|version|DCGM Version)"\s*:\s*'
    r'("(?:[^"\\]|\\.){0,400}"|-?\d{1,9}|\{)'
)


class Result(NamedTuple):
    """One result: the GPUs that it is of (empty: not told, or all), its status, what is said with it."""

    gpus: tuple[int, ...]
    status: str
    message: str = ""
    everything: bool = False


class Test(NamedTuple):
    """One test: its category (``Deployment``, ``Hardware``, …), name and results."""

    category: str
    name: str
    results: tuple[Result, ...]

    @property
    def deployment(self) -> bool:
        """Whether it only looks at the software."""
        return self.category.lower().startswith("deployment")


class Record(NamedTuple):
    """What dcgmi printed.

    ``kind`` diag, health, discovery or empty; ``devices`` the number of GPUs that it says there are; ``health`` the
    overall word of a health report and ``incidents`` what it says of GPUs; ``errors`` messages in place of results.
    """

    kind: str
    version: Optional[str]
    driver: Optional[str]
    devices: Optional[int]
    tests: tuple[Test, ...]
    health: Optional[str]
    incidents: tuple[str, ...]
    errors: tuple[str, ...]
    troubles: tuple[Trouble, ...]

    @property
    def gpus(self) -> Optional[int]:
        """How many GPUs there are: as the output says, or those that results name."""
        named = {gpu for test in self.tests for result in test.results for gpu in result.gpus}
        return max(self.devices or 0, len(named)) or None


def status(word: str) -> Optional[str]:
    """Return a result's status in one of this module's words, None where the word is none."""
    return _STATUS.get(word.strip().lower())


def numbers(text: Any) -> tuple[int, ...]:
    """Return the GPU numbers that a value names: ``3``, ``"3"``, ``"0, 1,2"``."""
    if isinstance(text, bool):
        return ()
    if isinstance(text, int):
        return (text,) if text >= 0 else ()
    if isinstance(text, list):
        return tuple(number for item in text[:1000] for number in numbers(item))
    return tuple(int(word) for word in _NUMBER.findall(str(text)[:4000])) if isinstance(text, str) else ()


def _said(entry: dict[str, Any]) -> str:
    """Return warnings and info of a result as one text."""
    found = []
    for key in ("warnings", "warning", "info"):
        value = entry.get(key)
        for item in value if isinstance(value, list) else [value]:
            said = item.get("warning") if isinstance(item, dict) else item
            if isinstance(said, str):
                found.append(said.strip())
    return " ".join(found)[:_MAX_MESSAGE]


def _result(entry: Any) -> Optional[Result]:
    if not isinstance(entry, dict) or not isinstance(entry.get("status"), str):
        return None
    word = status(entry["status"])
    group = entry.get("entity_group", "GPU")
    gpus: tuple[int, ...] = ()
    if str(group).upper() == "GPU":
        gpus = next((numbers(entry[key]) for key in ("gpu_id", "gpu_ids", "entity_id") if key in entry), ())
    return Result(gpus, word or entry["status"][:40], _said(entry))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _find(data: Any, keys: tuple[str, ...], depth: int = 3) -> Any:
    """Return the value of the first of the keys in nested objects, not in lists."""
    if not isinstance(data, dict) or not depth:
        return None
    for key in keys:
        if key in data:
            return data[key]
    return next((found for value in data.values() if (found := _find(value, keys, depth - 1)) is not None), None)


def _devices(data: dict[str, Any]) -> Optional[int]:
    groups = _list(_find(data, ("entity_groups",)))
    for group in groups:
        if isinstance(group, dict) and str(group.get("entity_group", "")).upper() == "GPU":
            return len(_list(group.get("entities"))) or None
    listed = _find(data, ("GPU Device IDs Detected", "GPU Device IDs"))
    if isinstance(listed, str):
        listed = [word for word in listed.split(",") if word.strip()]
    return len(listed) if isinstance(listed, list) and listed else None


def of_json(data: Any) -> Record:
    """Return what a JSON object of dcgmi says: diag of DCGM 2 to 4, or health."""
    if not isinstance(data, dict):
        return _record(troubles=(Trouble(0, "the JSON is no object"),))
    version = _find(data, ("DCGM Version", "version"))
    driver = _find(data, ("Driver Version Detected", "Driver Version"))
    overall = _find(data, ("Overall Health",))
    if overall is not None:
        word = overall.get("value") if isinstance(overall, dict) else overall
        return _record(kind=HEALTH, health=str(word)[:40])
    errors = tuple(str(said)[:_MAX_MESSAGE] for said in [_find(data, ("runtime_error", "Runtime Error"))] if said)
    tests = []
    troubles = []
    for category in _list(_find(data, ("test_categories",))):
        if not isinstance(category, dict):
            continue
        for test in _list(category.get("tests")):
            if not isinstance(test, dict):
                continue
            name = str(test.get("name", "?"))[:80]
            entries = _list(test.get("results")) or [test.get("test_summary")]
            results = [_result(entry) for entry in entries]
            if None in results:
                troubles.append(Trouble(0, f"test {name!r}: a result without a status"))
            tests.append(Test(str(category.get("category", ""))[:80], name, tuple(r for r in results if r)))
    if not tests and not errors:
        troubles.append(Trouble(0, "no test_categories are in the JSON"))
    return _record(
        kind=DIAGNOSTIC,
        version=version if isinstance(version, str) else None,
        driver=driver if isinstance(driver, str) else None,
        devices=_devices(data),
        tests=tuple(tests),
        errors=errors,
        troubles=tuple(troubles),
    )


def of_broken_json(text: str, line: int, what: str) -> Record:
    """Return what a JSON that cannot be read says up to where it breaks: results whose GPU and status are there."""
    tests: list[Test] = []
    category, skip = "", False
    gpus: tuple[int, ...] = ()
    version: Optional[str] = None
    for found in _SCAN.finditer(text):
        key, value = found[1], found[2].strip('"')
        if key == "category":
            category = value
        elif key == "name":
            tests.append(Test(category, value[:80], ()))
            gpus, skip = (), False
        elif key in {"gpu_id", "gpu_ids", "entity_id"}:
            gpus = numbers(value)
        elif key == "test_summary":
            skip = True
        elif key == "status" and tests:
            word = status(value)
            if word and not skip:
                tests[-1] = tests[-1]._replace(results=(*tests[-1].results, Result(gpus, word)))
            gpus, skip = (), False
        elif key in {"version", "DCGM Version"}:
            version = value
    return _record(kind=DIAGNOSTIC, version=version, tests=tuple(tests), troubles=(Trouble(line, what),))


def _record(
    *,
    kind: str = "",
    version: Optional[str] = None,
    driver: Optional[str] = None,
    devices: Optional[int] = None,
    tests: tuple[Test, ...] = (),
    health: Optional[str] = None,
    errors: tuple[str, ...] = (),
    troubles: tuple[Trouble, ...] = (),
) -> Record:
    return Record(kind, version, driver, devices, tests, health, (), errors, troubles)
