"""Labels of srun -l, pdsh, clush and mpirun: told from what a tool prints, taken off, sorted within bounded memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weaklink.explain.labels import Sheaf, labelled, stripped
from weaklink.explain.recognise import guess

from tests.unit.explain.texts import DOWN, IBSTAT, counted, reports
from tests.unit.tools.cases import NAMES, case_of, text_of


def with_label(label: str, text: str) -> list[str]:
    return [f"{label}{line}" for line in text.removesuffix("\n").split("\n")]


@pytest.mark.parametrize(
    ("form", "label"),
    [
        ("{0}: ", "12"),
        ("    {0}: ", "3"),
        ("{0}: ", "gpu-r1.n07"),
        ("[1,{0}]<stdout>:", "4"),
        ("[prterun-n1-77@1,{0}]<stderr>: ", "4"),
    ],
)
def test_every_form_is_taken_off(form: str, label: str) -> None:
    lines = with_label(form.format(label), IBSTAT)
    how = labelled(lines)
    assert how is not None
    assert how.labels == (label,)
    assert list(stripped(lines, how)) == IBSTAT.removesuffix("\n").split("\n")


def test_one_line_without_a_label_refutes_a_hosts_label() -> None:
    assert labelled(["n1: a", "n1: b", "c"]) is None


def test_what_the_starter_says_refutes_nothing() -> None:
    lines = [*with_label("0: ", IBSTAT), "srun: error: n3: task 1: Exited with exit code 1"]
    how = labelled(lines)
    assert how is not None
    assert how.plain
    assert counted(reports("\n".join(lines))) == [("", "ibstat", "ok")]


@pytest.mark.parametrize("name", NAMES)
def test_no_output_loses_its_own_words(name: str) -> None:
    """Many formats look labelled (``State: Active``, ``2: eth0:``); what reads well as it is stays as it is."""
    found = reports(text_of(name))
    assert [report.part for report in found] == [""]
    assert case_of(name)["verdict"] == "unknown" or found[0].tool is not None


def test_the_job_scripts_own_lines_do_not_hide_ranks() -> None:
    text = "Job 4711 on n1\n" + "\n".join(with_label("0: ", text_of("001")))
    [report] = reports(text, expected_ranks=16)
    assert (report.tool, report.verdict) == ("nccl-tests", "ok")


def test_hosts_between_each_other_are_told_apart() -> None:
    pairs = zip(with_label("n1: ", IBSTAT), with_label("n2: ", DOWN), strict=True)
    found = reports("\n".join(line for pair in pairs for line in pair))
    assert counted(found) == [("n1", "ibstat", "ok"), ("n2", "ibstat", "fail")]


def test_a_host_that_could_not_answer_is_unknown() -> None:
    found = reports("\n".join([*with_label("n1: ", IBSTAT), "n2: bash: ibstat: command not found"]))
    assert [(part, verdict) for part, _, verdict in counted(found)] == [("n1", "ok"), ("n2", "unknown")]


def test_the_ranks_of_one_run_are_read_together() -> None:
    lines = [f"{at % 3}: {line}" for at, line in enumerate(text_of("001").removesuffix("\n").split("\n"))]
    [report] = reports("\n".join(lines), expected_ranks=16)
    assert (report.tool, report.verdict) == ("nccl-tests", "ok")


@given(
    st.lists(st.tuples(st.sampled_from(["0", "17", "n1"]), st.text(st.characters(exclude_characters="\n\r")))),
    st.integers(1, 400),
)
def test_a_sheaf_gives_back_what_it_took_however_little_it_holds(lines: list[tuple[str, str]], held: int) -> None:
    text = [f"n{label}: {line}" for label, line in lines]
    how = labelled(["n0: a", "n0: b"])
    assert how is not None
    sheaf = Sheaf(held)
    sheaf.fill([line for line in text if not line.startswith("pdsh@")], how)
    wanted: dict[str, list[str]] = {}
    for label, line in lines:
        wanted.setdefault(f"n{label}", []).append(line)
    assert {label: list(sheaf.lines(label)) for label in sheaf.labels()} == wanted
    sheaf.close()


def test_a_label_a_line_is_no_label() -> None:
    text = "eth0: up\neth1: up\neth2: down"
    how = labelled(text.split("\n"))
    assert how is not None
    assert not how.plain
    assert guess(text).tool is None
    assert [report.part for report in reports(text)] == [""]
