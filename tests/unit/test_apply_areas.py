"""Areas keys, accounts, database, install and verify, and the command line that all areas share."""

from __future__ import annotations

import base64
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weaklink.apply import install
from weaklink.cli import UsageError
from weaklink.cli import apply as command

from tests.unit.apply_fake import MEMORY, FakeNode

NAMES = st.sampled_from(["weaklink", "users", "research"])


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    return FakeNode(tmp_path)


def whats(result: dict[str, Any]) -> list[str]:
    return [change["what"] for change in result["changes"]]


def settled(node: FakeNode, area: str, desired: dict[str, Any]) -> dict[str, Any]:
    before, calls = node.digest(), len(node.changes)
    predicted = node.apply(area, desired, check=True)
    assert (node.digest(), len(node.changes)) == (before, calls), "check mode wrote"
    result = node.apply(area, desired)
    assert result["failed"] == []
    assert whats(result) == whats(predicted)
    calls = len(node.changes)
    assert node.apply(area, desired)["changes"] == []
    assert len(node.changes) == calls
    return result


# ---- keys

KEY = "/etc/weaklink/token.key"


def key(**more: Any) -> dict[str, Any]:
    return {"keys": [{"path": KEY, "bytes": 32, "format": "hex", **more}]}


def test_a_key_is_made_once_and_never_again(node: FakeNode) -> None:
    settled(node, "keys", key())
    made = node.read(KEY)
    assert len(bytes.fromhex(made.strip())) == 32
    assert (node.root / KEY[1:]).stat().st_mode & 0o777 == 0o600
    (node.root / KEY[1:]).chmod(0o644)
    settled(node, "keys", key())
    assert node.read(KEY) == made
    assert (node.root / KEY[1:]).stat().st_mode & 0o777 == 0o600


def test_the_sites_own_key_wins_and_is_shown_to_nobody(node: FakeNode) -> None:
    node.apply("keys", key())
    own = base64.b64encode(b"own-key-of-the-site").decode()
    result = settled(node, "keys", key(content_b64=own))
    assert node.read(KEY) == "own-key-of-the-site"
    assert own not in json.dumps(result)
    assert "own-key" not in json.dumps(result)


def test_a_link_to_a_key_is_neither_followed_nor_replaced(node: FakeNode) -> None:
    node.write("/srv/vault/key", "precious")
    (node.root / "etc/weaklink").mkdir()
    (node.root / KEY[1:]).symlink_to("/srv/vault/key")
    result = node.apply("keys", key())
    assert "a link is in its place" in result["failed"][0]["message"]
    assert (node.root / KEY[1:]).is_symlink()


def test_a_key_is_revealed_only_on_request(node: FakeNode) -> None:
    reveal = {**key(), "reveal": True}
    assert node.apply("keys", reveal, check=True)["facts"] == {KEY: None}
    made = node.apply("keys", key())
    assert made["facts"] == {}
    seen = node.apply("keys", reveal, check=True)["facts"][KEY]
    assert base64.b64decode(seen).decode() == node.read(KEY)
    assert seen not in json.dumps(made)


# ---- accounts and database

ACCOUNTS = st.fixed_dictionaries(
    {
        "cluster": st.just("lab"),
        "qos": st.lists(
            st.fixed_dictionaries({"name": NAMES, "priority": st.integers(0, 9)}),
            max_size=3,
            unique_by=lambda q: q["name"],
        ),
        "accounts": st.lists(
            st.fixed_dictionaries({"name": NAMES, "users": st.lists(st.sampled_from(["root", "alice"]), unique=True)}),
            max_size=3,
            unique_by=lambda account: account["name"],
        ),
    }
)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(first=ACCOUNTS, second=ACCOUNTS)
def test_accounts_are_reached_and_nobody_elses_are_touched(first: Any, second: Any) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        node = FakeNode(Path(folder))
        node.active.add("slurmdbd.service")
        node.slurm.accounts["physics"], node.slurm.users["physics"] = {"normal"}, {"eve"}
        settled(node, "accounts", first)
        settled(node, "accounts", second)
        for qos in second["qos"]:
            assert node.slurm.qos[qos["name"]] == qos["priority"]
        for account in second["accounts"]:
            assert node.slurm.users[account["name"]] >= set(account["users"])
        assert (node.slurm.accounts["physics"], node.slurm.users["physics"]) == ({"normal"}, {"eve"})


def test_an_account_gets_the_qos_that_it_lacks(node: FakeNode) -> None:
    node.active.add("slurmdbd.service")
    account = {"name": "weaklink", "users": ["root"], "qos": ["weaklink"]}
    desired = {"cluster": "lab", "qos": [{"name": "weaklink"}], "accounts": [account]}
    settled(node, "accounts", desired)
    node.slurm.accounts["weaklink"] = {"normal"}
    assert whats(settled(node, "accounts", desired)) == ["account weaklink qos"]
    assert node.slurm.accounts["weaklink"] == {"normal", "weaklink"}


def test_a_database_daemon_that_does_not_answer_is_told(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(0, 10_000, 50))
    monkeypatch.setattr("weaklink.apply.accounts.time.monotonic", lambda: float(next(ticks)))
    monkeypatch.setattr("weaklink.apply.accounts.time.sleep", lambda _seconds: None)
    desired = {"cluster": "lab", "qos": [], "accounts": []}
    assert whats(node.apply("accounts", desired, check=True)) == ["cluster lab"]
    assert "slurmdbd did not answer within 120 s" in node.apply("accounts", desired)["failed"][0]["message"]


def test_a_database_is_granted_once_and_by_its_exact_name(node: FakeNode) -> None:
    node.active.add("mariadb.service")
    desired = {"databases": [{"name": "slurm_acct_db", "user": "slurm"}]}
    assert whats(settled(node, "database", desired)) == ["database slurm_acct_db"]
    assert node.database.grants == ["slurm slurm\\_acct\\_db"]


@pytest.mark.parametrize("name", ["x; DROP DATABASE mysql", "a`b", "", "dämon", "a-b"])
def test_a_hostile_database_name_reaches_no_server(node: FakeNode, name: str) -> None:
    node.active.add("mariadb.service")
    result = node.apply("database", {"databases": [{"name": name, "user": "slurm"}]})
    assert "wanted letters, digits and underscores" in result["failed"][0]["message"]
    assert node.changes == []


# ---- install

RELEASES = ["a" * 20, "b" * 20, "c" * 20, "d" * 20]
WHERE = {"prefix": "/usr/lib/weaklink", "launcher": "/usr/bin/weaklink"}


@pytest.fixture
def release(node: FakeNode, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that installs a release as the staged program of that name would."""
    cache = tmp_path_factory.mktemp("cache")

    def settle(name: str) -> dict[str, Any]:
        staged = cache / name / "weaklink" / "apply"
        staged.mkdir(parents=True, exist_ok=True)
        (staged / "install.py").write_text(name)
        (cache / name / "prolog").write_text(f"#!/bin/sh\n# {name}\n")
        monkeypatch.setattr(install, "__file__", str(staged / "install.py"))
        return settled(node, "install", {**WHERE, "release": name})

    return settle


def test_releases_are_switched_whole_and_the_last_one_stays(node: FakeNode, release: Any) -> None:
    prefix = node.root / "usr/lib/weaklink"
    for name in RELEASES:
        release(name)
        assert (prefix / "current").readlink() == Path(name)
        assert name in (prefix / "current/prolog").read_text()
        assert (prefix / "current/prolog").stat().st_mode & 0o777 == 0o755
    assert sorted(path.name for path in prefix.iterdir()) == ["c" * 20, "current", "d" * 20]
    assert f"exec /usr/bin/python3 -I {WHERE['prefix']}/current" in node.read(WHERE["launcher"])


def test_going_back_needs_no_copy_and_debris_is_cleared(node: FakeNode, release: Any) -> None:
    release(RELEASES[0])
    release(RELEASES[1])
    assert whats(release(RELEASES[0])) == ["link /usr/lib/weaklink/current"]
    for debris in (".new-17", ".old-" + "f" * 20):
        (node.root / "usr/lib/weaklink" / debris / "weaklink").mkdir(parents=True)
    release(RELEASES[2])
    assert not list((node.root / "usr/lib/weaklink").glob(".*"))


def test_a_program_that_runs_from_elsewhere_does_not_install_itself(node: FakeNode) -> None:
    result = node.apply("install", {**WHERE, "release": RELEASES[0]})
    assert "run it through the playbooks" in result["failed"][0]["message"]


# ---- verify


def test_a_node_that_is_not_as_described_is_told_in_full(node: FakeNode) -> None:
    node.known = {"chrony.service"}
    desired = {
        "node": "c7",
        "python": "99.1",
        "pci": ["0000:00:11.0"],
        "modules": ["rdma_rxe"],
        "services": ["chrony"],
        "paths": ["/etc/weaklink/expected.json"],
        "slurm_nodes": ["c1"],
        "nics": [{"name": "compute", "pci": "0000:00:11.0", "address": "10.77.1.11/24", "mtu": 4200, "rdma": None}],
    }
    before = node.digest()
    result = node.apply("verify", desired)
    told = "\n".join(problem["message"] for problem in result["failed"])
    for words in (
        "hostname is 'c1', wanted 'c7'",
        "wanted 99.1 or newer",
        "kernel module rdma_rxe",
        "no network interface at PCI 0000:00:11.0",
        "chrony.service: is inactive, wanted active",
        "/etc/weaklink/expected.json: missing",
        "Slurm does not answer: sinfo is not installed",
    ):
        assert words in told
    assert node.digest() == before
    assert node.changes == []


def test_a_node_that_is_as_described_passes(node: FakeNode) -> None:
    node.networkd.plug("0000:00:11.0", "enp0s17", 4200, ("10.77.1.11/24",))
    nic = {"name": "compute", "pci": "0000:00:11.0", "address": "10.77.1.11/24", "mtu": 4200, "rdma": None}
    node.active.add("chrony.service")
    desired = {"node": "c1", "nics": [nic], "services": ["chrony"], "paths": ["/etc/passwd"]}
    assert node.apply("verify", desired)["failed"] == []
    node.networkd.links["enp0s17"]["mtu"] = 1500
    assert "MTU is 1500, wanted 4200" in node.apply("verify", desired)["failed"][0]["message"]


# ---- the command line


@pytest.fixture
def cli(node: FakeNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that runs ``weaklink apply`` with a desired state on standard input."""
    monkeypatch.setattr("weaklink.observe.command.run", node.run)
    original = __import__("weaklink.apply.host", fromlist=["Host"]).Host
    monkeypatch.setattr("weaklink.apply.host.Host", lambda run: original(run, str(node.root)))

    def call(text: str, *options: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        code = command.run(["files", "--desired", "-", *options])
        return code, capsys.readouterr().out

    return call


def test_the_command_tells_people_and_programs_the_same(node: FakeNode, cli: Any) -> None:
    text = json.dumps({"files": [{"path": "/etc/app.conf", "content": "a=1\n"}]})
    code, out = cli(text, "--check", "--json")
    assert (code, json.loads(out)["changes"][0]["applied"]) == (0, False)
    assert cli(text, "--check")[1].startswith("would change: file /etc/app.conf: None -> root:root 0644\n")
    assert cli(text)[1].startswith("changed: file /etc/app.conf")
    assert cli(text) == (0, "as wanted\n")
    node.write("/srv/thing/inside", "x")
    code, out = cli(json.dumps({"files": [{"path": "/srv/thing", "content": "x"}]}))
    assert code == 1
    assert out.startswith("failed: ")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"files": [{"content": "x"}]}', '{"files": [{"path": "/x", "mode": "9"}]}']
)
def test_a_malformed_desired_state_is_refused_in_words(cli: Any, text: str) -> None:
    with pytest.raises(UsageError, match="desired state"):
        cli(text)
