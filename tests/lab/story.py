"""The story: a link degrades, the right node is drained with proof, healed, tested again and returned.

Every step does something real to the lab and raises StoryError when the cluster did not answer as it must.
``make demo`` tells it to a person; tests/lab/test_story.py holds it.
"""

import contextlib
import re
import shlex
from collections.abc import Callable
from typing import Any

import yaml

from .cluster import Cluster, StoryError
from .draw import Draw, Fault
from .narrator import Narrator

ALICE = "alice: RMA 4711"
HEALTHY_SWEEPS = 2
# The driver's view of one transfer of the job below: far above what mere connection set-up sends.
FEWEST_PACKETS = 1000


def expect(condition: object, message: str) -> None:
    """Raise StoryError with ``message`` unless ``condition`` holds."""
    if not condition:
        raise StoryError(message)


class Story:
    """The steps in order; each may be called once, after the ones before it."""

    def __init__(self, cluster: Cluster, cast: Draw, tell: Narrator) -> None:
        self.cluster = cluster
        self.cast = cast
        self.tell = tell
        self.nodes = [node.name for node in cluster.lab.compute_nodes]

    def steps(self) -> list[tuple[str, Callable[[], None]]]:
        """Return (title, step) in the order in which they are told."""
        c = self.cast
        return [
            ("A job runs over RDMA", self.job_over_rdma),
            (
                f"A baseline is taken while all is well, and {HEALTHY_SWEEPS} more sweeps accuse nobody",
                self.healthy_sweeps,
            ),
            (f"The compute link of one node degrades: {c.weak_fault}", self.degrade),
            ("A sweep finds it, tests again with another partner, and drains the right node", self.sweep_drains),
            ("weaklink why tells what was measured", self.why),
            (f"Another node breaks ({c.broken_fault}) and the next job meets it", self.prolog_catches),
            ("An admin takes that node over: the drain is hers from now on", self.admin_takes_over),
            (f"A third node breaks ({c.third_fault}); the drain budget is used up, so the job runs", self.over_budget),
            ("Nothing touches the admin's drain", self.admin_untouched),
            ("All is repaired; weaklink returns what weaklink drained, after testing it", self.heal_and_return),
            ("In observe mode the same faults change nothing", self.observe_mode),
        ]

    # -- step 1

    def job_over_rdma(self) -> None:
        """Run ib_write_bw between two nodes as an ordinary user's job; the guests' RDMA counters must rise."""
        cluster = self.cluster
        server, client = self.nodes[:2]
        for node in self.nodes:
            mount = cluster.on(node, "grep ' /home ' /proc/mounts")
            expect("proto=rdma" in mount, f"{node}: /home is not mounted over RDMA: {mount!r}")
            networks = cluster.networks(node)
            expect(len(set(networks.values())) == 3, f"{node}: not three networks on three NICs: {networks}")
        self.tell.say("Each node has three networks on three NICs, and /home over NFS with proto=rdma:")
        self.tell.show(cluster.on(server, "ip -br -4 addr | grep -v ^lo; rdma link; grep ' /home ' /proc/mounts"))
        before = {n: cluster.hw_counter(n, "sent_pkts") + cluster.hw_counter(n, "rcvd_pkts") for n in (server, client)}
        address = cluster.compute_address(server)
        body = (
            f'test="ib_write_bw -R -D 3 --report_gbits"; [ "$SLURMD_NODENAME" != {server} ] || exec $test; '
            f"for i in 1 2 3 4 5 6 7 8 9 10; do sleep 2; $test {address} && exit 0; done; exit 1"
        )
        command = f"srun -N2 -w {server},{client} --ntasks-per-node=1 --time=5 bash -c {shlex.quote(body)}"
        self.tell.say(f"bob runs ib_write_bw between {server} and {client} with srun -N2:")
        out = cluster.ctl(f"cd /home/bob && runuser -u bob -- {command}", timeout=240)
        # Both ends print the table.
        rows = dict.fromkeys(line for line in out.splitlines() if re.match(r"\s*(#bytes|65536\s)", line))
        self.tell.show("\n".join(rows))
        for node, old in before.items():
            rise = cluster.hw_counter(node, "sent_pkts") + cluster.hw_counter(node, "rcvd_pkts") - old
            expect(
                rise > FEWEST_PACKETS, f"{node}: RDMA counters rose by {rise} packets only: the test did not use RDMA"
            )
            self.tell.say(f"{node}: {rise} RDMA packets sent and received by rxe_compute meanwhile.")

    # -- step 2

    def _sweep(self, *argv: str) -> tuple[int, dict[str, Any]]:
        with self.tell.doing("weaklink sweep run" + "".join(f" {a}" for a in argv)):
            code, report, errors = self.cluster.weaklink("sweep", "run", *argv, timeout=900)
        expect(code in (0, 1, 3), f"sweep run {argv}: exit {code}\n{errors}")
        return code, report

    def healthy_sweeps(self) -> None:
        """Take the baseline, then sweep again: nobody may be accused."""
        code, report = self._sweep("--baseline")
        expect(code == 0, f"the baseline of a healthy lab ended with {code}: {report}")
        self.tell.say(report["message"])
        for _ in range(HEALTHY_SWEEPS):
            code, report = self._sweep()
            expect(code in (0, 1), f"a sweep of the healthy lab ended with {code}: {report['message']}")
            expect(not _accused(report), f"a sweep of the healthy lab accuses: {report['suspects']}")
            expect(not report["actions"], f"a sweep of the healthy lab acts: {report['actions']}")
        for node in self.nodes:
            expect(not self.cluster.node(node).drained, f"{node} is drained though nothing is wrong")

    # -- step 3

    def degrade(self) -> None:
        """Degrade one compute link from outside; a port-state check still sees nothing."""
        weak, fault = self.cast.weak, self.cast.weak_fault
        self._inject(weak, fault)
        state = self.cluster.port_state(weak)
        expect("ACTIVE" in state, f"{weak}: the port is {state}, a degradation must leave it ACTIVE")
        self.tell.say(f"{weak}'s port still says {state}: whoever checks port states sees nothing.")

    def sweep_drains(self) -> None:
        """Sweep: exactly the degraded node is drained, with our reason."""
        weak = self.cast.weak
        code, report = self._sweep()
        self.tell.say(report["message"])
        expect(code == 1, f"the sweep ended with {code}: {report}")
        accused = _accused(report)
        expect(set(accused) == {weak}, f"the sweep names {set(accused)}, the degraded node is {weak}: {report}")
        expect(accused[weak]["retested"], f"{weak} was not tested again before the drain: {report}")
        state = self.cluster.node(weak)
        expect(state.drained, f"{weak} is not drained: {state}")
        expect(state.reason.startswith("weaklink:sweep."), f"{weak}: the reason is {state.reason!r}")
        for other in set(self.nodes) - {weak}:
            expect(not self.cluster.node(other).drained, f"{other} was drained too")
        self.tell.show(self.cluster.ctl("sinfo -R -o '%.12n %.10u %E'"))

    def why(self) -> None:
        """``weaklink why`` shows measured, baseline and counters, and the alternatives."""
        weak = self.cast.weak
        text = self.cluster.ctl(f"weaklink why {weak}", check=False)
        self.tell.show(text)
        for word in ("measured", "baseline", "counters", "; or "):
            expect(word in text.lower(), f"weaklink why {weak} says nothing of {word}:\n{text}")

    # -- step 4

    def prolog_catches(self) -> None:
        """A fault that a prolog can see: the job is requeued, not held; the node drained; the message readable."""
        cluster, broken, weak = self.cluster, self.cast.broken, self.cast.weak
        free = [n for n in self.nodes if n != weak]
        first = cluster.submit("bob", f"-N{len(free)} --exclusive --time=5", "srun hostname")
        done = cluster.wait(f"job {first}", lambda: self._ended(first), 180)
        expect(done["state"] == "COMPLETED", f"job {first}: {done}")
        expect(weak not in _expand(done["nodes"]), f"job {first} ran on {done['nodes']} although {weak} is drained")
        self.tell.say(f"The next job ran on {done['nodes']}, not on {weak}.")
        self._inject(broken, self.cast.broken_fault)
        # At least one node and at most all: after the requeue it fits on what is left.
        self._job = cluster.submit(
            "bob", f"-N1-{len(free)} -w {broken} --exclusive --time=10", "srun hostname; sleep 5"
        )
        with self.tell.doing(f"job {self._job} is given {broken}; its prolog looks"):
            state = cluster.wait(f"{broken} drained", lambda: s if (s := cluster.node(broken)).drained else None, 150)
        expect(state.reason.startswith("weaklink:"), f"{broken}: the reason is {state.reason!r}")
        job = cluster.wait(
            f"job {self._job} requeued", lambda: j if (j := cluster.job(self._job))["restarts"] else None, 120
        )
        expect(not job["hold"], f"job {self._job} is held: {job}")
        expect(job["state"] != "FAILED", f"job {self._job}: {job}")
        expect("weaklink" in job["admin_comment"], f"job {self._job} does not say why it was requeued: {job}")
        self.tell.show(f"{broken}: {state.reason}\njob {self._job}: {job['state']}, {job['admin_comment']}")
        # It asked for the broken node only to meet it for certain.
        cluster.ctl(f"scontrol update jobid={self._job} reqnodelist=")

    def _ended(self, job_id: int) -> dict[str, Any] | None:
        job = self.cluster.job(job_id)
        return job if job["state"] in ("COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "TIMEOUT") else None

    def admin_takes_over(self) -> None:
        """Alice puts her own reason on a node that weaklink had drained."""
        broken = self.cast.broken
        self.cluster.ctl(f"scontrol update nodename={broken} state=drain reason={shlex.quote(ALICE)}")
        self.alices = self.cluster.node(broken)
        expect(self.alices.reason == ALICE, f"{broken}: {self.alices}")
        self.tell.show(f"{broken}: {self.alices.reason}")

    def over_budget(self) -> None:
        """The third fault finds the budget used: no drain, one incident, the job runs to its end."""
        cluster, third = self.cluster, self.cast.third
        self._inject(third, self.cast.third_fault)
        with self.tell.doing(f"job {self._job} is given {third}, the last node"):
            done = cluster.wait(f"job {self._job}", lambda: self._ended(self._job), 420)
        expect(done["state"] == "COMPLETED", f"job {self._job}: {done}")
        expect(_expand(done["nodes"]) == {third}, f"job {self._job} ran on {done['nodes']}, wanted {third}")
        state = cluster.node(third)
        expect(not state.drained, f"{third} was drained beyond the budget of 2: {state}")
        _, report, _ = cluster.weaklink("incidents")
        about = [i for i in report["incidents"] if third in i["nodes"] and i["closed"] is None]
        expect(about, f"no open incident names {third}: {report}")
        self.tell.say(
            f"Two nodes are out, the budget is two: {third} stays, job {self._job} ran, and there is an incident:"
        )
        self.tell.show(cluster.ctl("weaklink incidents", check=False))

    def admin_untouched(self) -> None:
        """Prolog, health check, sweep and return leave Alice's drain alone, to the second and the letter."""
        cluster, broken = self.cluster, self.cast.broken
        with self.tell.doing(f"health check on {broken}, three times"):
            for _ in range(3):
                cluster.on(broken, f"SLURMD_NODENAME={broken} /usr/lib/weaklink/current/health")
        code, report, _ = cluster.weaklink("return", broken)
        expect(code != 0, f"weaklink return {broken} accepted an admin's drain: {report}")
        self.tell.say(f"weaklink return {broken} refuses:")
        self.tell.show(report["message"])
        self._sweep()
        now = cluster.node(broken)
        expect(now.drain == self.alices.drain, f"{broken}: the admin's drain was {self.alices}, now it is {now}")
        self.tell.say(f"{broken} still says {now.reason!r}, set by {now.by}, at the same second.")

    # -- step 5

    def heal_and_return(self) -> None:
        """Repair everything; return the weak node through quarantine; Alice returns hers herself."""
        cluster, cast = self.cluster, self.cast
        for node in self.nodes:
            cluster.lab.heal(node)
        cluster.wait_idle(cast.third)
        with self.tell.doing(f"weaklink return {cast.weak}: tests in quarantine"):
            code, report, errors = cluster.weaklink("return", cast.weak, timeout=900)
        expect(code == 0, f"weaklink return {cast.weak}: exit {code}: {report}\n{errors}")
        expect(report["state"] == "done", f"{report}")
        self.tell.say(report["message"])
        cluster.wait_idle(cast.weak)
        _, swept = self._sweep()
        expect(set(swept["nodes"]) == set(self.nodes) - {cast.broken}, f"the sweep took {swept['nodes']}")
        expect(
            "weaklink" not in cluster.ctl("scontrol show reservation"), "the quarantine's reservation is still there"
        )
        now = cluster.node(cast.broken)
        expect(now.drain == self.alices.drain, f"{cast.broken}: the admin's drain was {self.alices}, now it is {now}")
        cluster.ctl(f"scontrol update nodename={cast.broken} state=undrain")
        cluster.wait_idle(*self.nodes)
        self.tell.show(cluster.ctl("weaklink nodes", check=False))

    # -- step 6

    def observe_mode(self) -> None:
        """The guard in observe mode: the same faults, nothing changes, the log says what would have been done."""
        cluster, cast = self.cluster, self.cast
        with self.mode("observe"):
            before = cluster.snapshot()
            self._inject(cast.weak, cast.weak_fault)
            self._inject(cast.broken, cast.broken_fault)
            job = cluster.submit("bob", f"-N1 -w {cast.broken} --exclusive --time=5", "srun hostname")
            done = cluster.wait(f"job {job}", lambda: self._ended(job), 240)
            expect(done["state"] == "COMPLETED" and not done["restarts"], f"job {job}: {done}")
            would = [
                e
                for e in cluster.guard_log(cast.broken)
                if e["action"] == "would-drain" and str(e.get("job")) == str(job)
            ]
            expect(would, f"{cast.broken}: the log does not say that job {job}'s prolog would have drained")
            self.tell.show(f"{cast.broken}: {would[-1]['message']}")
            cluster.lab.heal(cast.broken)
            _, report = self._sweep()
            accused = set(_accused(report))
            expect(accused == {cast.weak}, f"the sweep names {accused}, the degraded node is {cast.weak}: {report}")
            acts = [(a["node"], a["what"]) for a in report["actions"]]
            expect(acts == [(cast.weak, "would-drain")], f"{report['actions']}")
            self.tell.say(f"The sweep would have drained {cast.weak}.")
            after = cluster.snapshot()
            expect(after == before, f"observe mode changed something:\nbefore {before}\nafter  {after}")
            cluster.lab.heal(cast.weak)
        self.tell.say("Slurm's record of every node is the same as before, word for word.")

    @contextlib.contextmanager
    def mode(self, mode: str) -> Any:
        """Run the guard's playbook with another mode, and with the inventory's own again afterwards."""
        lab = self.cluster.lab
        source = lab.inventory_path
        other = lab.state / f"inventory-{mode}"
        other.mkdir(parents=True, exist_ok=True)
        description = yaml.safe_load(source.read_text(encoding="utf-8"))
        description["mode"] = mode
        (other / "cluster.yml").write_text(yaml.safe_dump(description, sort_keys=False), encoding="utf-8")
        link = other / "group_vars"
        link.unlink(missing_ok=True)
        link.symlink_to((source.parent / "group_vars").resolve())
        playbook = "playbooks/50-guard.yml"
        try:
            with self.tell.doing(f"ansible-playbook {playbook} with mode {mode}"):
                self.cluster.playbook(playbook, "-i", str(other / "cluster.yml"))
            yield
        finally:
            with self.tell.doing(f"ansible-playbook {playbook} with the inventory's own mode"):
                self.cluster.playbook(playbook, "-i", str(source))

    # -- shared

    def _inject(self, node: str, fault: Fault) -> None:
        self.cluster.lab.fault(node, fault.kind, fault.value)
        self.tell.say(f"{node}: {fault}.")


def _accused(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the suspects of a sweep that may be drained, by node."""
    return {s["node"]: s for s in report["suspects"] if s["accused"]}


def _expand(nodes: str) -> set[str]:
    """Return the node names of a hostlist as short as the lab's (``c[1-2]``, ``c1,c3``)."""
    names: set[str] = set()
    for prefix, ranges, plain in re.findall(r"([a-z]+)\[([\d,-]+)\]|([a-z]+\d+)", nodes):
        if plain:
            names.add(plain)
        for part in ranges.split(",") if ranges else []:
            low, _, high = part.partition("-")
            names |= {f"{prefix}{i}" for i in range(int(low), int(high or low) + 1)}
    return names
