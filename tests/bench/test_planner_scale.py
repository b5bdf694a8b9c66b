"""How planning grows with the fabric: design, every link, every cable, from 64 to 65,536 end points, 64-port switches.

Each size runs in a process of its own, so that its peak memory is its own. What a doubling costs is printed, and held
loosely: a busy machine slows single sizes down, but nothing may grow with the square.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SLURM = Path(__file__).parents[2] / "slurm"
SIZES = [64 << step for step in range(11)]
MOST_SECONDS = 60.0
MOST_MIB = 3 * 1024
# Times of a doubling from 8,192 end points on; 2 is linear, 4 would be the square.
MOST_GROWTH = 3.0

RUN = """
import json, resource, sys, time
sys.path.insert(0, {slurm!r})
from weaklink.model.fabric import validate
from weaklink.model.topology import build
from weaklink.plan.cables import cables, write_csv
from weaklink.plan.design import Request, design, shape_of

ends, path = int(sys.argv[1]), sys.argv[2]
times = [time.perf_counter()]
found = design(Request("fat-tree", ends // 8, 8, 64))
times.append(time.perf_counter())
fabric = build(shape_of(found.request))
times.append(time.perf_counter())
validate(fabric)
times.append(time.perf_counter())
with open(path, "w") as file:
    write_csv(cables(fabric), file)
times.append(time.perf_counter())
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
links = found.node_links + found.inter_switch_links
steps = [after - before for before, after in zip(times, times[1:])]
print(json.dumps({{"links": links, "switches": found.switches, "steps": steps, "mib": peak}}))
"""


def test_65536_end_points_with_all_cables_take_seconds(tmp_path: Path) -> None:
    listed = tmp_path / "cables.csv"
    script = tmp_path / "run.py"
    script.write_text(RUN.format(slurm=str(SLURM)))
    rows: list[dict[str, Any]] = []
    print(f"\n{'end points':>10}{'switches':>10}{'links':>9}{'design':>9}{'links':>8}{'check':>8}{'cables':>8}", end="")
    print(f"{'total s':>9}{'growth':>8}{'MiB':>7}{'growth':>8}")
    for ends in SIZES:
        argv = [sys.executable, str(script), str(ends), str(listed)]
        done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=300)
        row = json.loads(done.stdout)
        row["total"] = sum(row["steps"])
        steps = "".join(f"{value:{width}.3f}" for value, width in zip(row["steps"], (9, 8, 8, 8), strict=True))
        before = rows[-1] if rows else None
        time_growth = f"{row['total'] / before['total']:8.2f}" if before else f"{'':8}"
        size_growth = f"{row['mib'] / before['mib']:8.2f}" if before else ""
        print(f"{ends:10}{row['switches']:10}{row['links']:9}{steps}{row['total']:9.2f}{time_growth}", end="")
        print(f"{row['mib']:7.0f}{size_growth}")
        rows.append(row)

    # The largest is whole: every link is in the list, no port twice.
    with listed.open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == rows[-1]["links"] == 3 * 65536
    ports = {(line["a"], line["a_hca"], line["a_port"]) for line in lines}
    ports |= {(line["b"], "", line["b_port"]) for line in lines}
    assert len(ports) == 2 * len(lines)
    assert rows[-1]["total"] < MOST_SECONDS
    assert rows[-1]["mib"] < MOST_MIB
    # Over the three last doublings together, so that one disturbed run does not decide.
    assert (rows[-1]["total"] / rows[-4]["total"]) ** (1 / 3) < MOST_GROWTH
