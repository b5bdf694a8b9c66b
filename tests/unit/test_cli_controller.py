"""The controller's sub-commands: results on standard output, words for people on standard error, exit codes."""

import json
from pathlib import Path

import pytest
from weaklink.cli import controller, main
from weaklink.cli.controller import options, with_guard
from weaklink.guard import context
from weaklink.history.store import StoreError
from weaklink.model.hostlist import expand
from weaklink.model.site import SiteError, load_site, parse_site

from tests.unit.fleet_fake import Fleet, slow


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    fleet = Fleet(tmp_path)
    monkeypatch.setattr(controller, "open_guard", lambda: fleet.guard)
    monkeypatch.setattr("weaklink.guard.context.LOCK_PATH", str(tmp_path / "lock"))
    return fleet


def test_a_sweep_from_the_command_line(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "run"]) == 3
    assert "no baseline yet" in capsys.readouterr().out
    assert main(["sweep", "run", "--baseline"]) == 0
    capsys.readouterr()
    fleet.fault = slow("c2", 0.05)
    assert main(["sweep", "run", "--json"]) == 1
    outcome = json.loads(capsys.readouterr().out)
    assert outcome["actions"][0]["what"] == "drained"
    assert main(["why", "c2", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["by"] == "weaklink"
    assert main(["nodes"]) == 0
    assert "weaklink:sweep.bandwidth:" in capsys.readouterr().out
    assert main(["nodes", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["nodes"]) == 3
    assert main(["incidents"]) == 0
    assert "no open incidents" in capsys.readouterr().out
    fleet.fault = slow("c2", 1.0)
    assert main(["return", "c2"]) == 0
    assert capsys.readouterr().out.startswith("c2: returned: ")
    assert main(["return", "c2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "nothing-to-do"
    assert main(["why", "c2"]) == 0


def test_incidents_are_listed(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    fleet.store.note_incident("net.mtu", "mtu-too-small", "c3", "over budget")
    assert main(["incidents"]) == 1
    assert "net.mtu" in capsys.readouterr().out
    assert main(["incidents", "--json", "--all"]) == 1
    assert json.loads(capsys.readouterr().out)["incidents"][0]["nodes"] == ["c3"]


@pytest.mark.parametrize("command", ["sweep", "why", "nodes", "return", "incidents", "measure"])
def test_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert f"usage: weaklink {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "argv",
    [
        ["sweep"],
        ["sweep", "walk"],
        ["sweep", "run", "--nodes"],
        ["sweep", "run", "--nodes", "c[1-"],
        ["why"],
        ["why", "c1", "c2"],
        ["why", "nope"],
        ["return"],
        ["nodes", "--bad"],
        ["measure", "round"],
        ["measure", "round", "--flows", "{}"],
    ],
)
def test_wrong_usage_is_2(fleet: Fleet, argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    del fleet
    assert main(argv) == 2
    assert capsys.readouterr().err.startswith(f"weaklink {argv[0]}: ")


def test_our_own_failures_are_3_with_a_word(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    fleet.slurm.fail.add("nodes")
    assert main(["nodes"]) == 3
    assert "Slurm could not be asked" in capsys.readouterr().err

    def broken_store() -> "context.Guard":
        raise StoreError("store x: disk is full")

    assert with_guard(lambda _guard: 0, opener=broken_store) == 3
    assert "disk is full" in capsys.readouterr().err


def test_only_one_sweep_at_a_time(fleet: Fleet, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del fleet
    with context.sole(str(tmp_path / "lock")):
        assert main(["sweep", "run"]) == 3
    assert "another sweep or return is running" in capsys.readouterr().err


def test_options() -> None:
    assert options(["a", "--json", "--nodes=x", "b"], "", ("--json",), ("--nodes",)) == {
        "": ["a", "b"],
        "--json": True,
        "--nodes": "x",
    }


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("c1", ["c1"]),
        ("c1,c2,c1", ["c1", "c2", "c1"]),
        ("c[1-3,7],login", ["c1", "c2", "c3", "c7", "login"]),
        ("n[08-10]-[1-2]", ["n08-1", "n08-2", "n09-1", "n09-2", "n10-1", "n10-2"]),
    ],
)
def test_host_lists(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize("text", ["c[1-", "c1]", "c[a]", "c[3-1]", "c[1-9999999]", "c[[1]]"])
def test_odd_host_lists_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"in |more"):
        expand(text)


def test_cluster_json_that_is_not_right_is_told(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="is this the controller"):
        load_site(str(tmp_path / "none.json"))
    for text, words in [("{", "no JSON"), ("[]", "format 'list'"), ('{"format":1,"mode":"maybe"}', "mode 'maybe'")]:
        with pytest.raises(SiteError, match=words):
            parse_site(text)
    with pytest.raises(SiteError, match="KeyError: 'cluster'"):
        parse_site('{"format":1,"mode":"observe"}')


def test_only_compute_hcas_are_swept(fleet: Fleet) -> None:
    assert [hca.name for hca in fleet.guard.site.hcas()] == ["c1/rxe_compute", "c2/rxe_compute", "c3/rxe_compute"]
