"""Lists of mounts: /proc/mounts, mountinfo, mount, findmnt."""

from __future__ import annotations

import json
from typing import Any

import pytest
from weaklink.checks.tools import mounts as checks
from weaklink.observe.tools import mounts
from weaklink.observe.tools.text import clean

from tests.unit.tools import fuzz
from tests.unit.tools.cases import case_of, check_case, text_of

CASE = "042-"
OPTIONS = "rw,relatime,vers=4.2,hard,proto={},port=20049,sec=sys,mountproto=udp"


def judge(text: str, **context: Any) -> Any:
    return checks.judge(mounts.parse(clean(text.split("\n"))), context)


def concluded(text: str, **context: Any) -> tuple[str, str]:
    judged = judge(text, **context)
    return judged.verdict, judged.cause


def test_the_known_case_is_judged_right() -> None:
    check_case(CASE, judge(text_of(CASE), **case_of(CASE)["context"]))
    assert mounts.recognise(text_of(CASE)) >= 85


FORMS = {
    "/proc/mounts": "10.1.0.1:/vol /data\\040set nfs4 {} 0 0\ntmpfs /run/x tmpfs rw 0 0",
    "mountinfo": "36 35 0:32 / /data\\040set rw shared:1 master:2 - nfs4 a:/vol {}\n37 35 0:4 / /run/x rw - tmpfs a rw",
    "mount": "10.1.0.1:/vol on /data set type nfs4 ({})\ntmpfs on /run/x type tmpfs (rw,nosuid)",
    "findmnt": "TARGET SOURCE FSTYPE OPTIONS\n├─/data\\040set 10.1.0.1:/vol nfs4 {}\n└─/run/x tmpfs tmpfs rw",
    "findmnt -l": "TARGET     SOURCE FSTYPE  OPTIONS\n/data set  a:/vol nfs4    {}\n/run/x     tmpfs  tmpfs   rw",
    "findmnt -J": json.dumps(
        {
            "filesystems": [
                {
                    "target": "/",
                    "source": "/dev/sda",
                    "fstype": "ext4",
                    "options": "rw",
                    "children": [
                        {"target": "/data set", "source": "10.1.0.1:/vol", "fstype": "nfs4", "options": "{}"},
                        {"target": "/run/x", "source": "tmpfs", "fstype": "tmpfs", "options": "rw"},
                    ],
                }
            ]
        },
        indent=3,
    ),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_tells_path_type_and_transport(form: str) -> None:
    rdma, tcp = form.replace("{}", OPTIONS.format("rdma"), 1), form.replace("{}", OPTIONS.format("tcp"), 1)
    context = {"require_rdma": ["/data set"], "required_mounts": ["/data set", "/run/x"]}
    judged = judge(rdma, **context)
    assert judged.verdict == "ok", judged.findings
    assert judged.facts["mounts"]["/data set"]["type"] == "nfs4"
    assert concluded(tcp, **context) == ("fail", "rdma-not-used")
    assert mounts.recognise(rdma) >= 85


def test_a_required_mount_that_is_missing_is_a_fault() -> None:
    judged = judge(text_of(CASE), required_mounts=["/home", "/scratch/"])
    assert (judged.verdict, judged.cause, judged.facts["missing"]) == ("fail", "mount-missing", ["/scratch"])


def test_an_autofs_trigger_is_not_yet_the_file_system() -> None:
    text = "auto.home /home autofs rw 0 0\n"
    assert concluded(text, required_mounts=["/home"]) == ("fail", "mount-missing")
    mounted = text + "10.1.0.1:/home /home nfs rw,proto=rdma 0 0\n"
    assert concluded(mounted, required_mounts=["/home"], require_rdma=["/home"])[0] == "ok"


def test_the_mount_on_top_counts() -> None:
    text = "a:/x /home nfs rw,proto=tcp 0 0\na:/x /home nfs rw,proto=rdma 0 0\n"
    assert concluded(text, require_rdma=["/home"])[0] == "ok"


def test_old_flags_and_lustre_networks_tell_the_transport() -> None:
    assert concluded("a:/x /home nfs rw,rdma,port=20049 0 0", require_rdma=["/home"])[0] == "ok"
    assert concluded("10.1.1.1@o2ib:/lfs /lfs lustre rw 0 0", require_rdma=["/lfs"])[0] == "ok"
    assert concluded("10.1.1.1@tcp:/lfs /lfs lustre rw 0 0", require_rdma=["/lfs"]) == ("fail", "rdma-not-used")
    assert concluded("a:/x /home nfs rw 0 0", require_rdma=["/home"]) == ("unknown", "test-did-not-run")
    assert concluded("/dev/sda1 /home ext4 rw 0 0", require_rdma=["/home"]) == ("fail", "rdma-not-used")


def test_nothing_demanded_means_nothing_judged() -> None:
    assert concluded(text_of(CASE))[0] == "ok"


def test_an_empty_list_is_unknown() -> None:
    assert concluded("", required_mounts=["/home"]) == ("unknown", "test-did-not-run")


def test_a_cut_list_invents_no_missing_mount_and_no_transport() -> None:
    text = text_of(CASE)
    context = {"required_mounts": ["/home", "/lfs1"], "require_rdma": ["/home"]}
    cut = text[: text.index("proto=rdma") + 8]
    assert concluded(cut, **context) == ("unknown", "output-truncated")


def test_paths_follow_the_list() -> None:
    text = text_of(CASE).replace("/projects/team\\040a", "/p\\011q")
    assert judge(text, require_rdma=["/p\tq"]).facts["not_rdma"] == ["/p\tq"]


@pytest.mark.parametrize("form", [text_of(CASE), *FORMS.values()])
def test_damage_never_raises_nor_takes_long(form: str) -> None:
    fuzz.survives(mounts, form, judge=checks.judge, context=case_of(CASE)["context"])


def test_a_context_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(ValueError, match="require_rdma"):
        judge("a:/x /home nfs rw 0 0", require_rdma="/home")


def test_rdma_over_ipv6_is_rdma() -> None:
    text = "nas:/x /home nfs4 rw,proto=rdma6,port=20049 0 0"
    judged = judge(text, require_rdma=["/home"])
    assert (judged.verdict, judged.facts["not_rdma"]) == ("ok", [])


def test_where_rdma_is_demanded_nothing_and_a_local_disk_are_not_rdma() -> None:
    text = "/dev/sda1 / ext4 rw 0 0\n/dev/sda2 /home xfs rw 0 0"
    judged = judge(text, require_rdma=["/home"])
    assert (judged.verdict, judged.cause, judged.facts["not_rdma"]) == ("fail", "rdma-not-used", ["/home"])
    assert concluded(text, require_rdma=["/data"], required_mounts=["/data"]) == ("fail", "rdma-not-used")
    assert concluded(text, required_mounts=["/data"]) == ("fail", "mount-missing")
