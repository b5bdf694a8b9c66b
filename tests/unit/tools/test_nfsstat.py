"""nfsstat -m and -c."""

from __future__ import annotations

from typing import Any

from weaklink.checks.tools import nfsstat as checks
from weaklink.observe.tools import nfsstat
from weaklink.observe.tools.text import clean

from tests.unit.tools import fuzz

MOUNTS = """\
/home from 10.71.2.10:/vol/home
 Flags:\trw,relatime,vers=4.2,rsize=1048576,hard,proto=rdma,port=20049,sec=sys,clientaddr=10.71.16.22,addr=10.71.2.10

/projects/team a from 10.71.2.11:/vol/projects
 Flags:\trw,relatime,vers=3,rsize=1048576,hard,proto=tcp,nconnect=8,sec=sys,mountproto=udp,addr=10.71.2.11

"""
COUNTS = """\
Client rpc stats:
calls      retrans    authrefrsh
386800393   386800     387762712

Client nfs v3:
null             getattr          setattr          lookup
0         0%     259158128 66%    450431    0%     20827600  5%

Client nfs v4:
null             read             write
1         0%     7         7%     8         8%
"""


def judge(text: str, **context: Any) -> Any:
    return checks.judge(nfsstat.parse(clean(text.split("\n"))), context)


def concluded(text: str, **context: Any) -> tuple[str, str]:
    judged = judge(text, **context)
    return judged.verdict, judged.cause


def test_mounts_tell_their_transport() -> None:
    judged = judge(MOUNTS, require_rdma=["/home", "/projects/team a"])
    assert (judged.verdict, judged.cause) == ("fail", "rdma-not-used")
    assert judged.facts["transport"] == {"/home": "rdma", "/projects/team a": "tcp"}
    assert judged.facts["nfs_mounts"] == 2
    assert concluded(MOUNTS, require_rdma=["/home"])[0] == "ok"
    assert concluded(MOUNTS, require_rdma=["/data"]) == ("fail", "rdma-not-used")
    assert nfsstat.recognise(MOUNTS) >= 85


def test_percentages_are_no_counts() -> None:
    judged = judge(COUNTS)
    assert judged.verdict == "ok"
    assert judged.facts["calls"] == 386800393
    assert judged.facts["retrans"] == 386800
    assert judged.facts["counters"]["client nfs v3"] == {
        "null": 0,
        "getattr": 259158128,
        "setattr": 450431,
        "lookup": 20827600,
    }
    assert judged.facts["counters"]["client nfs v4"]["write"] == 8
    assert nfsstat.recognise(COUNTS) >= 85


def test_counters_say_nothing_of_the_transport() -> None:
    assert concluded(COUNTS, require_rdma=["/home"]) == ("unknown", "test-did-not-run")
    assert concluded("", require_rdma=["/home"]) == ("unknown", "test-did-not-run")


def test_a_mount_without_its_flags_is_unknown() -> None:
    cut = MOUNTS[: MOUNTS.index(" Flags", 60)]
    assert concluded(cut, require_rdma=["/projects/team a"]) == ("unknown", "output-truncated")


def test_a_row_cut_in_its_counts_is_no_number() -> None:
    cut = COUNTS[: COUNTS.index("387762712")]
    assert judge(cut).facts["calls"] is None


def test_damage_never_raises_nor_takes_long() -> None:
    fuzz.survives(nfsstat, MOUNTS + COUNTS, judge=checks.judge, context={"require_rdma": ["/home"]})
