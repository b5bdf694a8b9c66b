"""Read what nccl-tests prints: the text of all generations, or the file of ``-J`` (versions 1 to 3).

Text: columns are taken from the table's own header, because they differ by version and option: ``error`` (a largest
deviation, before mid-2022) or ``#wrong``; ``root`` or none; ``#bitdiff``, ``i_min`` … (per iteration), ``timestamp``,
``#iters``. Times are microseconds, bandwidths GB/s of 10^9 bytes. Layouts: src/common.cu and src/util.cu of
NVIDIA/nccl-tests.
"""

import re
from collections.abc import Iterable, Iterator

from weaklink.observe.tools import nccl_tests_json, nccl_tests_text
from weaklink.observe.tools.nccl_tests_records import Record

NAME = "nccl-tests"
_TABLE = re.compile(r"\b(?:size|bytes)[ \t]{1,40}(?:count|N)[ \t].{0,200}\bbusbw\b")
_CONFIG = re.compile(r"\bnThread \d+ nGpus \d+ minBytes ")
_SUMMARY = re.compile(r"(?:Out of bounds values|Avg bus bandwidth) {0,20}: ")
_JSON = re.compile(r'"(?:alg_bw|average_bus_bandwidth|minimum_bytes|nccl_version|aggregated_iterations)"\s{0,10}:')
_FAILURE = re.compile(r"\bTest (?:NCCL|CUDA) failure |: Test failure common\.cu|\bNCCL WARN\b")
_INFO = re.compile(r"\bNCCL INFO\b")
_PROGRAM = (
    r"\b(?:all_reduce|all_gather|alltoallv?|reduce_scatter|broadcast|reduce|sendrecv|scatter|gather|hypercube)_perf"
)
_NOT_STARTED = re.compile(
    rf"^\s*Executable: \S{{0,200}}{_PROGRAM}\s*$"
    rf"|{_PROGRAM}(?:_mpi)?: .{{0,80}}(?:not found|No such file|Permission denied|error while loading)",
    re.MULTILINE,
)
_HEAD = 65_536


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is an output of nccl-tests."""
    head = head[:_HEAD]
    if head.lstrip().startswith("{"):
        return 92 if len(set(_JSON.findall(head))) >= 2 else 0  # noqa: PLR2004 - one key alone may be anything's
    if _CONFIG.search(head) or _TABLE.search(head) or _SUMMARY.search(head):
        return 92
    if "nccl-tests version" in head or _FAILURE.search(head):
        return 80
    if _NOT_STARTED.search(head):
        return 75
    return 45 if _INFO.search(head) else 0


def parse(lines: Iterable[str]) -> Record:
    """Return what the output holds; never raises. What could not be read is in ``troubles``."""
    ahead: list[str] = []
    rest = iter(lines)
    for line in rest:
        ahead.append(line)
        if line.strip():
            break
    whole = _chain(ahead, rest)
    if ahead and ahead[-1].lstrip().startswith("{"):
        return nccl_tests_json.parse(whole)
    return nccl_tests_text.parse(whole)


def _chain(ahead: list[str], rest: Iterator[str]) -> Iterator[str]:
    yield from ahead
    yield from rest
