"""One node for tests of the hooks: a fake tree, fake tools, a fake Slurm, and what came of a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable

from weaklink.hooks import epilog, health, prolog
from weaklink.hooks.files import Places
from weaklink.hooks.frame import Clock
from weaklink.model import expected as expected_file
from weaklink.model.process import TIMEOUT, RunResult
from weaklink.scheduler.fake import FakeSlurm
from weaklink.scheduler.types import JobInfo

from tests.fakenode import FakeNode, dump, expected

KEY = "5a" * 32
REPO = Path(__file__).parents[1]
ADDRESSES = json.dumps(
    [{"ifname": f"enp0s1{6 + net}", "addr_info": [{"local": f"10.77.{net}.11", "prefixlen": 24}]} for net in range(3)]
)


class Node:
    """One node with everything around it; ``prolog()`` and the like run its hooks in this process."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.folder = folder
        self.tree = FakeNode(folder / "root")
        self.places = Places(
            expected=str(folder / "expected.json"),
            key=str(folder / "token.key"),
            state=str(folder / "lib/state"),
            evidence=str(folder / "lib/evidence"),
            log=str(folder / "log/guard.log"),
        )
        self.slurm = FakeSlurm()
        self.slurm.put_job(JobInfo(7, "alice", True, True, "RUNNING", "c1", "main"))
        self.asked: list[list[str]] = []
        self.hang: set[str] = set()
        self.expect(**changes)
        (folder / "token.key").write_text(KEY)
        (folder / "token.key").chmod(0o600)

    def expect(self, **changes: Any) -> None:
        dump(expected(**changes), Path(self.places.expected))

    # a toolbox

    def run(self, argv: Sequence[str], timeout: float) -> RunResult:
        self.asked.append(list(argv))
        if argv[0] in self.hang:
            return RunResult(tuple(argv), None, "", "", TIMEOUT, timeout)
        out = {"systemctl": "active\nactive\n", "ip": ADDRESSES}.get(argv[0])
        return RunResult(tuple(argv), 0 if out else None, out or "", "", "exited" if out else "missing", 0.0)

    def feed(self, argv: Sequence[str], timeout: float, _stdin: str) -> RunResult:
        return self.run(argv, timeout)

    # hooks

    def _hook(self, work: Callable[..., int], **environ: str) -> int:
        want = expected_file.read(self.places.expected)
        return work(
            want,
            self.places,
            Clock(20),
            environ,
            tools=self,
            root=str(self.folder / "root"),
            make_client=lambda _: self.slurm,
        )

    def prolog(self, job: str = "7", user: str = "alice") -> int:
        return self._hook(prolog.work, SLURM_JOB_ID=job, SLURM_JOB_USER=user)

    def epilog(self) -> int:
        return self._hook(epilog.work, SLURM_JOB_ID="7", SLURM_JOB_USER="alice")

    def health(self) -> int:
        return self._hook(health.work)

    # what came of it

    def lines(self) -> list[dict[str, Any]]:
        path = Path(self.places.log)
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def actions(self) -> list[str]:
        return [line["action"] for line in self.lines()]

    def evidence(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted(Path(self.places.evidence).glob("*.json"))]

    def reason(self) -> str:
        found = self.slurm.nodes()["c1"]
        return found.reason if found.drained else ""

    def wrote(self) -> list[str]:
        """The kinds of updates that Slurm was asked for."""
        return [call[0] for call in self.slurm.calls if call[0] not in ("nodes", "job", "reservations")]
