"""/proc/self/mountstats: what NFS mounts really go over."""

from __future__ import annotations

from typing import Any

import pytest
from weaklink.checks.tools import mountstats as checks
from weaklink.observe.tools import mountstats
from weaklink.observe.tools.text import clean

from tests.unit.tools import fuzz

HEAD = """\
device rootfs mounted on / with fstype rootfs
device proc mounted on /proc with fstype proc
"""
MOUNT = """\
device 10.71.2.{n}:/vol/{n} mounted on {path} with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2,rsize=1048576,wsize=1048576,namlen=255,hard,proto={proto},port=20049,timeo=600,sec=sys
\tage:\t1200
\tcaps:\tcaps=0xffbfff7,wtmult=512,dtsize=1048576,bsize=0,namlen=255
\tsec:\tflavor=1,pseudoflavor=1
\tevents:\t1 2 0 0 0 3 4 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
\tbytes:\t4096 0 0 0 4096 0 1 0
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
{xprt}\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 0 0
\t        READ: 12 12 0 2640 50000 0 12 13 0

"""
RDMA = "\txprt:\trdma 20049 0 2 0 24 120 120 0 120 0 2 0 0 0 1 2 3 0 0 0 0 0 0 0\n"
TCP = "\txprt:\ttcp 812 1 1 0 12 120 120 0 120 0 2 5 7\n"


def mount(path: str, proto: str = "rdma", xprt: str = RDMA, n: int = 10) -> str:
    return MOUNT.format(n=n, path=path, proto=proto, xprt=xprt)


def judge(text: str, **context: Any) -> Any:
    return checks.judge(mountstats.parse(clean(text.split("\n"))), context)


def concluded(text: str, **context: Any) -> tuple[str, str]:
    judged = judge(text, **context)
    return judged.verdict, judged.cause


def test_transports_are_those_of_the_connections() -> None:
    text = HEAD + mount("/home") + mount("/projects/team\\040a", "tcp", TCP, n=11)
    judged = judge(text, require_rdma=["/home", "/projects/team a"])
    assert (judged.verdict, judged.cause) == ("fail", "rdma-not-used")
    assert judged.facts["nfs_mounts"] == 2
    assert judged.facts["transport"] == {"/home": "rdma", "/projects/team a": "tcp"}
    assert judged.facts["not_rdma"] == ["/projects/team a"]
    assert concluded(text, require_rdma=["/home"])[0] == "ok"
    assert mountstats.recognise(text) >= 85


def test_many_connections_of_one_mount_are_one_mount() -> None:
    judged = judge(HEAD + mount("/home", xprt=RDMA * 8), require_rdma=["/home"])
    assert (judged.verdict, judged.facts["nfs_mounts"], judged.facts["connections"]) == ("ok", 1, {"/home": 8})


def test_what_the_connection_says_outweighs_the_option() -> None:
    assert concluded(mount("/home", "rdma", TCP), require_rdma=["/home"]) == ("fail", "rdma-not-used")


def test_without_connections_the_option_tells() -> None:
    assert concluded(mount("/home", "rdma", ""), require_rdma=["/home"])[0] == "ok"


def test_the_report_of_the_mountstats_command_says_the_same() -> None:
    text = "Stats for 10.71.2.10:/vol mounted on /home:\n\n  NFS mount options: rw,vers=4.2,proto=tcp,sec=sys\n"
    judged = judge(text, require_rdma=["/home"])
    assert (judged.cause, judged.facts["transport"]) == ("rdma-not-used", {"/home": "tcp"})


def test_a_required_mount_that_is_not_there_is_a_fault() -> None:
    assert concluded(HEAD + mount("/home"), require_rdma=["/home", "/data"]) == ("fail", "rdma-not-used")


def test_no_nfs_at_all_is_healthy_where_none_is_wanted_and_empty_is_unknown() -> None:
    assert concluded(HEAD)[0] == "ok"
    assert judge(HEAD).facts["nfs_mounts"] == 0
    assert concluded("") == ("unknown", "test-did-not-run")


def test_a_mount_cut_before_its_transport_is_unknown() -> None:
    text = HEAD + mount("/home", "tcp", TCP)
    cut = text[: text.index("\topts")]
    assert concluded(cut, require_rdma=["/home"]) == ("unknown", "output-truncated")


@pytest.mark.parametrize("sample", [HEAD + mount("/home") + mount("/b", "tcp", TCP)])
def test_damage_never_raises_nor_takes_long(sample: str) -> None:
    fuzz.survives(mountstats, sample, judge=checks.judge, context={"require_rdma": ["/home", "/b"]})
