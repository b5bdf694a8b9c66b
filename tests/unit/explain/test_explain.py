"""The command: parts of a text, several files, contexts, words for a person, JSON for a program, exit codes."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import weaklink
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from weaklink.cli import UsageError
from weaklink.cli.explain import run
from weaklink.explain import context, tools, words
from weaklink.explain.context import KEYS

from tests.unit.explain.texts import CONTEXT, DEV2NETDEV, DOWN, IBSTAT, counted, reports
from tests.unit.tools.cases import NAMES, case_of, text_of

SCHEMA = json.loads((Path(weaklink.__file__).parent / "explain" / "explain.schema.json").read_text(encoding="utf-8"))


def put(folder: Path, **texts: str) -> list[str]:
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [str(folder / name) for name in texts]


def answer(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, dict[str, Any]]:
    code = run(["--json", *argv])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    Draft202012Validator(SCHEMA).validate(found)
    return code, found


def test_the_schema_is_one_and_refuses_what_it_should() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert not Draft202012Validator(SCHEMA).is_valid({"verdict": "ok", "cause": "healthy"})
    assert not Draft202012Validator(SCHEMA).is_valid(
        {"verdict": "good", "cause": "healthy", "reports": [], "skipped": []}
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_answer_is_as_the_schema_says(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = put(tmp_path, text=text_of(name), context=json.dumps(case_of(name)["context"]))
    _, found = answer(capsys, "--context", paths[1], paths[0])
    for finding in found["findings"]:
        assert bool(finding["remedy"]) == (finding["status"] != "ok"), finding
    run(["--context", paths[1], paths[0]])
    shown = capsys.readouterr().out
    assert f"verdict: {found['verdict']}, {found['cause']}" in shown
    assert all(len(line) <= words.WIDTH or " " not in line.strip() for line in shown.split("\n"))
    if found["verdict"] != "ok":
        assert "do: " in shown


def test_outputs_behind_prompts_are_explained_one_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"[root@n1 ~]# ibstat\n{DOWN}[root@n1 ~]# uname -a\nLinux n1\n"
    text += f"[root@n1 ~]# ibdev2netdev\n{DEV2NETDEV}[root@n1 ~]#\n"
    [path, wanted] = put(tmp_path, text=text, context=json.dumps(CONTEXT))
    code, found = answer(capsys, "--context", wanted, path)
    assert code == 1
    assert [(part["tool"], part["part"], part["verdict"]) for part in found["parts"]] == [
        ("ibstat", "n1", "fail"),
        ("ibdev2netdev", "n1", "ok"),
    ]
    assert (found["tool"], found["verdict"], found["cause"]) == ("ibstat", "fail", "link-down")
    assert any(finding["subject"].startswith("n1: ") for finding in found["findings"])
    assert found["parts"][0]["notes"] == ["lines 19 to 20 are of no known tool and were passed over"]


def test_parts_of_one_tool_are_one_output() -> None:
    other = IBSTAT.replace("mlx5_0", "mlx5_1")
    found = reports(f"$ ibstat mlx5_0\n{IBSTAT}$ ibstat mlx5_1\n{other}", compute_hcas=["mlx5_0", "mlx5_1"])
    assert counted(found) == [("", "ibstat", "ok")]
    assert found[0].judged.facts["hcas"] == 2


def test_what_stands_between_two_outputs_of_a_tool_does_not_part_them() -> None:
    whole = text_of("034")
    first, mark, second = whole.rpartition("NIC statistics:")
    parted = f"[root@n1 ~]# ethtool -S a\n{first}[root@n1 ~]# date\nThu Jun\n[root@n1 ~]# ethtool -S a\n{mark}{second}"
    [report] = reports(parted, **case_of("034")["context"])
    [same] = reports(whole, **case_of("034")["context"])
    assert report.judged.facts == same.judged.facts
    assert len(report.notes) == 1


def test_parts_of_two_hosts_are_two_outputs() -> None:
    found = reports(f"[root@n1 ~]# ibstat\n{IBSTAT}[root@n2 ~]# ibstat\n{DOWN}")
    assert counted(found) == [("n1", "ibstat", "ok"), ("n2", "ibstat", "fail")]
    gathered = "".join(
        f"----------------\n{host}\n----------------\n{text}" for host, text in (("n1", IBSTAT), ("n2", DOWN))
    )
    assert counted(reports(gathered)) == counted(found)


def test_a_tool_that_is_named_reads_its_own_part_alone() -> None:
    text = f"$ ibstat\n{IBSTAT}$ ibdev2netdev\nmlx5_0 port 1 ==> ib0 (Down)\n"
    assert counted(reports(text, "ibstat")) == [("", "ibstat", "ok")]
    assert counted(reports(text, "ibdev2netdev", link_layer="InfiniBand"))[0][1] == "ibdev2netdev"


def test_a_command_without_an_output_is_said(tmp_path: Path) -> None:
    [report] = reports("[root@n1 ~]# ibstat\n")
    assert (report.tool, report.verdict) == ("ibstat", "unknown")
    found = reports(f"$ ibstat\n\n$ ibdev2netdev\n{DEV2NETDEV}")
    assert counted(found) == [("", "ibdev2netdev", "ok")]


def test_a_command_line_outweighs_a_likeness_but_not_a_signature() -> None:
    assert reports(f"$ ibnetdiscover\n{IBSTAT}")[0].tool == "ibstat"
    assert reports("$ ibstat\nbash: ibstat: command not found\n")[0].tool == "ibstat"


def test_an_output_deep_in_a_jobs_log_is_found() -> None:
    noise = "".join(f"step {at} loss 2.{at}\n" for at in range(40_000))
    [report] = reports(noise + text_of("001"), expected_ranks=16)
    assert (report.tool, report.verdict) == ("nccl-tests", "ok")
    assert report.first > 30_000
    assert report.judged.facts["rows"] == case_of("001")["facts"]["rows"]


@pytest.mark.parametrize("text", ["", "\n\n  \n", "hello\n", "\x00\x01\x02" * 50, "{}\n", "[1, 2]\n", "null\n", "0\n"])
def test_what_is_no_output_is_unknown(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [path] = put(tmp_path, text=text)
    code, found = answer(capsys, path)
    assert (code, found["tool"], found["verdict"]) == (3, None, "unknown")
    assert found["findings"][0]["message"]
    for tool in tools.ORDER:
        code, found = answer(capsys, "--tool", tool, path)
        assert found["verdict"] != "ok", tool


def test_several_files_are_one_report_with_the_worst_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = put(tmp_path, one=IBSTAT, two=DOWN, three="hello\n", context=json.dumps(CONTEXT))
    code, found = answer(capsys, "--context", paths[3], *paths[:3])
    assert (code, found["verdict"], found["cause"]) == (1, "fail", "link-down")
    assert [report["verdict"] for report in found["reports"]] == ["ok", "fail", "unknown"]
    code, found = answer(capsys, "--context", paths[3], paths[0], paths[2])
    assert (code, found["verdict"]) == (3, "unknown")


def test_what_a_capture_holds_besides_does_not_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "capture"
    folder.mkdir()
    put(folder, **{"ibstat.txt": IBSTAT, "notes.txt": "hello\n"})
    [wanted] = put(tmp_path, context=json.dumps(CONTEXT))
    code, found = answer(capsys, "--context", wanted, str(folder))
    assert (code, found["verdict"], len(found["reports"])) == (0, "ok", 1)
    assert found["skipped"][0]["source"].endswith("notes.txt")
    code, found = answer(capsys, "--tool", "ibstat", str(folder))
    assert (code, len(found["reports"]), len(found["skipped"])) == (0, 1, 1)
    (folder / "ibstat.txt").unlink()
    assert answer(capsys, str(folder))[0] == 3
    (folder / "notes.txt").unlink()
    assert answer(capsys, str(folder)) == (
        3,
        {"verdict": "unknown", "cause": "test-did-not-run", "reports": [], "skipped": []},
    )


def test_a_terminal_is_not_steered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = IBSTAT.replace("mlx5_0", "mlx\x07\x08\u202e5").replace("Active", "\x9b2JDown")
    [path] = put(tmp_path, **{"te\x1b[2Jxt": hostile})
    run([path])
    shown = capsys.readouterr().out
    assert all(char.isprintable() or char == "\n" for char in shown)


def test_an_old_terminal_gets_question_marks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    [path] = put(tmp_path, text=IBSTAT.replace("mlx5_0", "mlx\u00e9"))
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="ascii"))
    run([path])
    assert b"mlx?" in out.getvalue()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", r":1:\d+: not JSON"),
        ("[1]", "found a list, wanted a JSON object"),
        ("3", "found a number"),
        ('{"level": NaN}', "NaN is no value"),
        ('{"level": 1, "level": 2}', "'level' is there twice"),
        ('{"compute_hcas": "mlx5_0"}', "context: key 'compute_hcas': found 'mlx5_0', wanted a list"),
        ("\udcff", "not UTF-8"),
    ],
)
def test_a_context_that_is_none_is_refused(text: str, said: str, tmp_path: Path) -> None:
    [path] = put(tmp_path, text=IBSTAT)
    wanted = tmp_path / "context"
    wanted.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError, match=said) as caught:
        run(["--json", "--context", str(wanted), path])
    assert str(wanted) in str(caught.value)


def test_an_unknown_key_is_named_with_the_nearest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = put(tmp_path, text=IBSTAT, context='{"compute_hca": ["mlx5_0"], "zzz": 1}')
    assert run(["--json", "--context", paths[1], paths[0]]) == 0
    said = capsys.readouterr().err
    assert "did you mean 'compute_hcas'" in said
    assert "'zzz' is unknown" in said


def test_the_cases_use_known_keys_only() -> None:
    assert {key for name in NAMES for key in case_of(name)["context"]} <= KEYS


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "no FILE"),
        (["/nonexistent/file"], "No such file"),
        (["--tool", "ibsatt", "x"], "did you mean ibstat"),
        (["--context", "/nonexistent", "x"], "/nonexistent: No such file"),
        (["-", "-"], "twice"),
        (["--list", "x"], "--list"),
    ],
)
def test_wrong_usage_is_said(argv: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        run(argv)


def test_the_list_names_tools_and_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--list"]) == 0
    shown = capsys.readouterr().out
    assert all(rule.name in shown for rule in tools.judge("ibstat").RULES)
    assert run(["--list", "--json"]) == 0
    assert {entry["tool"] for entry in json.loads(capsys.readouterr().out)} == set(tools.readers())


PIECES = (
    IBSTAT, DOWN, DEV2NETDEV, "[root@n1 ~]# ibstat\n", "$ uname -a\n", "[root@n2 ~]# \n", "==> x <==\n", "hello\n",
    "---------------\nn1\n---------------\n", "0: ", "n1: ", "srun: error\n", "[1,0]<stdout>:x\n", "{", "\x1b[31m",
    "\n", "\ufffd",
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12), st.sampled_from([None, "ibstat", "dmesg"]))
def test_whatever_is_put_together_gets_an_answer(pieces: list[str], tool: str | None) -> None:
    text = "".join(pieces)
    found = reports(text, tool)
    assert any(not report.passed_over for report in found)
    one, many = words.as_json(found), words.all_as_json(found)
    for document in (one, many):
        Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(document, allow_nan=False)))
    assert one["verdict"] == many["verdict"]
    assert list(words.words(found))
    # A fault that is in sight is never lost among other texts.
    lines = text.split("\n")
    if (
        tool is None
        and "\t\tState: Down" in lines
        and "\t\tPhysical state: Polling" in lines
        and not any(word in text for word in ("0: ", "n1: ", "{", "<stdout>"))
    ):
        assert one["verdict"] != "ok"


def test_a_judge_that_stumbles_is_our_fault_and_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(record: Any, wanted: Any) -> Any:
        raise KeyError("x")

    monkeypatch.setattr(tools.judge("ibstat"), "judge", stumble)
    found = reports(f"$ ibstat\n{IBSTAT}$ ibdev2netdev\n{DEV2NETDEV}")
    assert counted(found) == [("", "ibstat", "unknown"), ("", "ibdev2netdev", "ok")]
    assert "weaklink's own fault" in found[0].judged.findings[0].message


def test_numbers_that_json_lacks_become_null() -> None:
    assert words.plain({1: (float("nan"), {"b", "a"}), "x": float("inf")}) == {"1": [None, ["a", "b"]], "x": None}


def test_the_context_file_may_carry_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "context"
    path.write_bytes(b'\xef\xbb\xbf{"level": 1}')
    assert context.read(str(path)) == ({"level": 1}, [])
