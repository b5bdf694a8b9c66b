"""``make demo``: boot the lab, bring the cluster up with site.yml, and tell the story."""

import os
import secrets
import sys
import time
from pathlib import Path

from lab import Lab, LabError

from .cluster import Cluster, StoryError
from .draw import draw
from .narrator import Narrator
from .story import Story

ROOT = Path(__file__).resolve().parents[2]


def bring_up(lab: Lab, cluster: Cluster, tell: Narrator) -> None:
    """Boot the lab (or reset a provisioned one) and run site.yml."""
    tell.step("The lab boots: a controller and three compute nodes as virtual machines, three networks")
    lab.up()
    if lab.has_snapshot("provisioned"):
        # What an earlier demo left, whole or interrupted, is no part of this one.
        lab.reset("provisioned")
    tell.step("ansible-playbook site.yml brings the cluster up")
    log = lab.state / "site.log"
    with tell.doing(f"ansible-playbook site.yml (its output: {log.relative_to(ROOT)})"):
        out = cluster.playbook("site.yml", "-i", str(lab.inventory_path), log=log)
    tell.show(out[out.rindex("PLAY RECAP") :])
    tell.show(cluster.ctl("sinfo -N -l"))
    lab.snapshot("provisioned")


def main() -> int:
    """Tell the whole story; 0 when it went as it must."""
    seed = int(os.environ.get("STORY_SEED") or secrets.randbelow(10_000))
    tell = Narrator()
    lab = Lab(ROOT, progress=tell.say)
    cluster = Cluster(lab)
    try:
        cast = draw(seed, [node.name for node in lab.compute_nodes])
        print(f"weaklink demo, seed {seed} (STORY_SEED={seed} make demo plays the same again)")
        bring_up(lab, cluster, tell)
        begun = time.monotonic()
        for title, step in Story(cluster, cast, tell).steps():
            tell.step(title)
            step()
    except (StoryError, LabError, ValueError) as error:
        print(f"\nweaklink demo: {error}", file=sys.stderr)
        print("The lab is left as it is: make lab-ssh NODE=ctl to look, make lab-down to end it.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The next make demo recovers; make lab-down ends the lab.", file=sys.stderr)
        return 130
    tell.step(f"The end; the story took {int(time.monotonic() - begun)} s")
    tell.say("Look around: make lab-ssh NODE=c1, make lab-ssh NODE=ctl (weaklink nodes, weaklink why c1, sinfo).")
    tell.say("Back to the freshly provisioned cluster: make lab-reset. Everything away: make lab-down.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
