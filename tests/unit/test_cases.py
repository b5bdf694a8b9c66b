"""All cases through the command line: recognised, judged as they state, and the same under harmless changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from weaklink.cli.explain import run
from weaklink.explain import tools, words
from weaklink.explain.labels import labelled
from weaklink.explain.recognise import SURE_ENOUGH, guess
from weaklink.explain.reports import ONE_RUN, Asked, explain
from weaklink.explain.sources import Text

from tests.unit.tools.cases import CASES, NAMES, case_of, differences, text_of

COMMANDS = {
    "nccl-tests": "mpirun -np 16 ./build/all_reduce_perf -b 1G -e 1G",
    "perftest": "ib_write_bw -d mlx5_4 -D 10 10.0.0.1",
    "nvidia-smi-csv": "nvidia-smi --query-gpu=index,uuid --format=csv",
    "nvidia-smi-q": "nvidia-smi -q",
    "nvidia-smi-topo": "nvidia-smi topo -m",
    "nvidia-smi-nvlink": "nvidia-smi nvlink --status",
    "dcgmi": "sudo dcgmi diag -r 3",
    "fabricmanager": "journalctl -u nvidia-fabricmanager",
    "ethtool-m": "ethtool -m ens7f0np0",
    "ethtool-S": "/usr/sbin/ethtool -S ens7f0np0",
    "ip-link": "ip -j link show",
    "lldpcli": "lldpcli -f keyvalue show neighbors",
    "lspci": "lspci -vvv",
    "dmesg": "dmesg -T",
    "syslog": "tail -n 100 /var/log/syslog",
    "mounts": "cat /proc/mounts",
    "scontrol-node": "scontrol show node",
    "opensm.conf": "cat /etc/opensm/opensm.conf",
    "slurm.conf": "cat /etc/slurm/slurm.conf",
    "topology.conf": "cat /etc/slurm/topology.conf",
    "sinfo": "sinfo --json",
}
# What these print has a visible end or says how much is to come: a cut is seen, whatever it leaves. All other formats
# go on line by line (docs/explain.md): a cut between two devices or lines reads as a shorter output.
ENDED = ("nccl-tests", "perftest", "nvidia-smi-q", "dcgmi", "show_gids")

COMPLAINT = 6


def answer(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, dict[str, Any]]:
    code = run(["--json", *argv])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, found


def context_file(name: str, folder: Path) -> str:
    path = folder / "context.json"
    path.write_text(json.dumps(case_of(name)["context"]), encoding="utf-8")
    return str(path)


def held_to(name: str, code: int, found: dict[str, Any]) -> None:
    """Assert that an answer is the one that the case states; some state no cause."""
    case = case_of(name)
    cause = found["cause"] if case["cause"] is None else case["cause"]
    if found["tool"] is None and case["verdict"] == "unknown" and text_of(name).strip().count("\n") < COMPLAINT:
        # An error message alone need not name its tool; then nothing is said, and the verdict is right all the same.
        case = {**case, "tool": None, "facts": {}}
    said = (found["tool"], found["verdict"], found["cause"])
    assert said == (case["tool"], case["verdict"], cause), found["findings"]
    assert differences(case["facts"], found["facts"]) == []
    assert code == {"ok": 0, "degraded": 1, "fail": 1, "unknown": 3}[case["verdict"]]
    for finding in found["findings"]:
        assert {"check", "status", "cause", "subject", "message"} <= set(finding)


@pytest.mark.parametrize("name", NAMES)
def test_the_tool_is_recognised_and_the_case_judged_as_it_states(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [path] = (CASES / name).glob("input.*")
    held_to(name, *answer(capsys, "--context", context_file(name, tmp_path), str(path)))


@pytest.mark.parametrize("name", NAMES)
def test_a_tool_that_is_named_gives_the_same(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [path] = (CASES / name).glob("input.*")
    held_to(
        name, *answer(capsys, "--tool", case_of(name)["tool"], "--context", context_file(name, tmp_path), str(path))
    )


def changed(name: str) -> dict[str, bytes]:
    """Return harmless changes of a case's text."""
    text = text_of(name)
    lines = text.removesuffix("\n").split("\n")
    whole = text if text.endswith("\n") else f"{text}\n"
    command = COMMANDS.get(case_of(name)["tool"], case_of(name)["tool"])
    forms = {
        "CRLF": text.replace("\n", "\r\n"),
        "a rank's label": "\n".join(f"0: {line}" for line in lines) + "\n",
        "a wide rank's label": "\n".join(f" 7: {line}" for line in lines) + "\n",
        "a host's label": "\n".join(f"gpu-r1.n07: {line}" for line in lines) + "\n",
        "Open MPI's label": "\n".join(f"[1,0]<stdout>:{line}" for line in lines) + "\n",
        "a root's prompt": f"[root@gpu-7 ~]# {command}\n{whole}[root@gpu-7 ~]# \n",
        "a user's prompt": f"ops@gpu-7:/var/tmp$ {command}\n{text}",
        "a bare prompt": f"$ {command}\n{text}",
        "a bare root's prompt": f"# {command}\n{text}",
        "a banner": f"===== {command} =====\n{text}",
        "clush -b": f"---------------\ngpu-7\n---------------\n{text}",
        "trailing blank lines": f"{text}\n\n\n",
        "a mark": f"\ufeff{text}",
        "colours": "".join(f"\x1b[0m{line}\x1b[K\n" for line in lines),
        "no last line's end": text.removesuffix("\n"),
    }
    if labelled(lines) is not None and guess(text).tool in ONE_RUN:
        # Labelled already, as srun -l prints a run.
        forms = {form: done for form, done in forms.items() if "label" not in form}
    return {**{form: done.encode() for form, done in forms.items()}, "UTF-16": text.encode("utf-16")}


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_harmless_changes_leave_the_answer(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    context = context_file(name, tmp_path)
    path = tmp_path / "text"
    for form, data in changed(name).items():
        path.write_bytes(data)
        named = form in {"a rank's label", "a root's prompt", "UTF-16"}
        for more in ((), ("--tool", case_of(name)["tool"]))[: 1 + named]:
            code, found = answer(capsys, "--context", context, *more, str(path))
            try:
                held_to(name, code, found)
            except AssertionError as error:
                raise AssertionError(f"{form} {more}: {error}") from error


def of_hosts(name: str) -> bool:
    """Whether each host prints such a text by itself, in more lines than one (which might be name and value)."""
    return case_of(name)["tool"] not in ONE_RUN and text_of(name).strip().count("\n") > 0


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in NAMES if of_hosts(name)])
def test_two_hosts_lines_between_each_other_are_two_answers(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = text_of(name).removesuffix("\n").split("\n")
    path = tmp_path / "text"
    path.write_text("".join(f"n1: {line}\nn2: {line}\n" for line in lines), encoding="utf-8")
    code, found = answer(capsys, "--context", context_file(name, tmp_path), str(path))
    assert [part["part"] for part in found["parts"]] == ["n1", "n2"]
    for part in found["parts"]:
        held_to(name, code, part)


@pytest.mark.parametrize("name", NAMES)
def test_no_other_reader_is_as_sure(name: str) -> None:
    scores = {tool: module.recognise(text_of(name)) for tool, module in tools.readers().items()}
    right = case_of(name)["tool"]
    own = scores.pop(right)
    sure = {tool: score for tool, score in scores.items() if score >= max(own, SURE_ENOUGH)}
    assert sure == {}
    if case_of(name)["verdict"] in {"ok", "degraded"}:
        assert own >= SURE_ENOUGH


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name", NAMES)
def test_a_cut_is_never_taken_for_health(name: str) -> None:
    case = case_of(name)
    lines = text_of(name).removesuffix("\n").split("\n")
    whole = (case["verdict"], case["cause"])
    ended = case["tool"] in ENDED or is_json(text_of(name))
    shown = False
    for at in range(1, len(lines)):
        reports = explain(Text("text", iter(lines[:at])), Asked(case["tool"], case["context"]))
        found = words.summed(reports)
        if ended:
            assert found[0] == "unknown" or whole in {found, (found[0], None)}, (at, found, lines[at - 1])
        # Once the fault is in sight, more lines do not hide it.
        shown = shown or whole in {found, (found[0], None)}
        assert not (shown and found[0] == "ok" and case["verdict"] != "ok"), (at, found, lines[at - 1])


def test_every_reader_can_be_imported() -> None:
    assert set(tools.ORDER) == set(tools.readers())
    assert tools.BROKEN == {}
