"""nvidia-smi topo -m and -mp, with names of NICs in a legend (new) or in the heading (old)."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tools import cases
from tests.unit.tools.nvidia_help import tool

TOPO = tool("nvidia_smi_topo")

OLD = """\t\x1b[4mGPU0\tGPU1\tmlx5_0\tmlx5_2\tmlx5_bond_0\tCPU Affinity\x1b[0m
GPU0\t X \tNV4\tPIX\tSYS\tNODE\t0-19
GPU1\tNV4\t X \tSYS\tPIX\tSYS\t20-39
mlx5_0\tPIX\tSYS\t X \tSYS\tNODE\t
mlx5_2\tSYS\tPIX\tSYS\t X \tSYS\t
mlx5_bond_0\tNODE\tSYS\tNODE\tSYS\t X \t

Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NV#  = Connection traversing a bonded set of # NVLinks
"""
DGX = """        GPU0    GPU1    NIC0    NIC1    NIC2    CPU Affinity    NUMA Affinity   GPU NUMA ID
GPU0     X      NV12    PXB     PXB     SYS     48-63,176-191   3               N/A
GPU1    NV12     X      SYS     NODE    PXB     16-31,144-159   1               N/A
NIC0    PXB     SYS      X      PIX     SYS
NIC1    PXB     NODE    PIX      X      SYS
NIC2    SYS     PXB     SYS     SYS      X

Legend:

  X    = Self
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
  NIC2: rocep86s0
"""
PCIE = """\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity
GPU0\t X \tSYS\t0-11\t\tN/A
GPU1\tSYS\t X \t0-11\t\tN/A

Legend:

  X    = Self
"""


def test_the_case_of_a_management_card() -> None:
    TOPO.check_case("009")
    text = cases.text_of("009")
    rows = text.index("Legend:") - len(text)
    TOPO.unknown_when_cut(text, upto=rows - 3, gdr_max_distance="PIX", expected_nvlink="NV18")


def test_nics_named_in_the_heading_of_an_old_driver() -> None:
    found = TOPO.judge(OLD, gdr_max_distance="PIX", expected_nvlink="NV4", expected_gpus=2)
    assert found.verdict == "ok"
    assert found.facts["nearest_nic"] == {"GPU0": "mlx5_0", "GPU1": "mlx5_2"}
    assert (found.facts["management_nics"], found.facts["nics"]) == (["mlx5_bond_0"], 3)


def test_blanks_instead_of_tabs_and_two_nics_alike() -> None:
    found = TOPO.judge(DGX, gdr_max_distance="PXB", expected_nvlink="NV12")
    assert (found.verdict, found.facts["management_nics"]) == ("ok", [])
    assert found.facts["nearest_nics"] == {"GPU0": ["mlx5_0", "mlx5_1"], "GPU1": ["rocep86s0"]}


@pytest.mark.parametrize(
    ("limit", "verdict"), [("PIX", "degraded"), ("pxb", "ok"), ("PHB", "ok"), ("NODE", "ok"), ("SYS", "ok")]
)
def test_a_nic_farther_than_the_limit_is_degraded(limit: str, verdict: str) -> None:
    found = TOPO.judge(DGX, gdr_max_distance=limit)
    assert found.verdict == verdict
    assert found.facts["bad_gpus"] == (["GPU0", "GPU1"] if verdict == "degraded" else [])
    assert found.cause == ("gpu-nic-distance" if verdict == "degraded" else "healthy")


def test_a_gpu_whose_nic_is_behind_the_other_socket() -> None:
    text = OLD.replace("GPU1\tNV4\t X \tSYS\tPIX\tSYS", "GPU1\tNV4\t X \tSYS\tSYS\tSYS")
    text = text.replace("mlx5_2\tSYS\tPIX", "mlx5_2\tSYS\tSYS")
    found = TOPO.judge(text, gdr_max_distance="NODE")
    assert (found.verdict, found.cause, found.facts["bad_gpus"]) == ("degraded", "gpu-nic-distance", ["GPU1"])
    assert (found.facts["nearest_nic"]["GPU1"], found.facts["management_nics"]) == (None, ["mlx5_2"])
    assert TOPO.said(text) == ("ok", "healthy"), "nothing is demanded"


def test_only_compute_hcas_count_where_they_are_named() -> None:
    found = TOPO.judge(DGX, gdr_max_distance="PXB", compute_hcas=["mlx5_0", "mlx5_1"])
    assert (found.verdict, found.facts["bad_gpus"], found.facts["ignored"]) == ("degraded", ["GPU1"], ["rocep86s0"])


@pytest.mark.parametrize("bond", ["NV11", "PHB", "SYS"])
def test_fewer_nvlinks_than_wanted_fail(bond: str) -> None:
    text = DGX.replace("X      NV12", f"X      {bond}").replace("GPU1    NV12", f"GPU1    {bond}")
    found = TOPO.judge(text, expected_nvlink="NV12")
    assert (found.verdict, found.cause, found.facts["bad_pairs"]) == ("fail", "nvlink-down", ["GPU0-GPU1"])
    assert TOPO.said(DGX, expected_nvlink="NV4") == ("ok", "healthy"), "more than wanted is enough"


def test_a_matrix_without_nics() -> None:
    assert TOPO.said(PCIE, expected_gpus=2) == ("ok", "healthy")
    assert TOPO.said(PCIE, expected_gpus=4) == ("fail", "gpu-missing")
    assert TOPO.judge(PCIE, gdr_max_distance="PIX").verdict == "unknown"
    assert TOPO.judge(PCIE).facts["nics"] == 0


def test_an_old_word_for_the_interconnect() -> None:
    assert TOPO.judge(OLD.replace("SYS\t", "SOC\t"), gdr_max_distance="PIX").verdict == "ok"


def test_a_matrix_of_pcie_alone_says_nothing_of_nvlinks() -> None:
    text = cases.text_of("149")
    assert TOPO.said(text, expected_nvlink="NV18") == ("unknown", "test-did-not-run")
    assert TOPO.said(text, gdr_max_distance="PXB") == ("ok", "healthy")
    known = text.replace("\nNIC Legend", "  NV#  = Connection traversing a bonded set of # NVLinks\n\nNIC Legend")
    assert TOPO.said(known, expected_nvlink="NV18") == ("fail", "nvlink-down")


def test_a_nic_of_any_name_heads_a_column() -> None:
    found = TOPO.judge(OLD.replace("mlx5_0", "cxi0").replace("mlx5_2", "hsn-1"), gdr_max_distance="PIX")
    assert (found.verdict, found.facts["nearest_nic"]) == ("ok", {"GPU0": "cxi0", "GPU1": "hsn-1"})


def test_what_cannot_be_read_is_unknown() -> None:
    assert TOPO.said("") == ("unknown", "output-truncated")
    assert TOPO.said(DGX[: DGX.index("NIC1    PXB")]) == ("unknown", "output-truncated")
    found = TOPO.judge(OLD.replace("NV4\t X", "??\t X"), expected_nvlink="NV4")
    assert (found.verdict, "line 3" in found.findings[0].message) == ("unknown", True)


@pytest.mark.parametrize(("key", "value"), [("gdr_max_distance", "NEAR"), ("expected_nvlink", "many")])
def test_a_wrong_context_is_named(key: str, value: str) -> None:
    with pytest.raises(ValueError, match=key):
        TOPO.judge(DGX, **{key: value})


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 8))
def test_however_nics_are_ordered_each_gpu_finds_its_own(seed: int, size: int) -> None:
    nics = [f"NIC{at}" for at in range(size)]
    own = list(range(size))
    random.Random(seed).shuffle(own)  # noqa: S311 - a shuffle for a test
    gpus = [f"GPU{at}" for at in range(size)]
    lines = ["\t" + "\t".join(gpus + nics) + "\tCPU Affinity"]
    for at, gpu in enumerate(gpus):
        row = [" X " if other == gpu else "NV18" for other in gpus] + [
            "PIX" if own[at] == n else "SYS" for n in range(size)
        ]
        lines.append("\t".join([gpu, *row, "0-63"]))
    for at, nic in enumerate(nics):
        row = ["PIX" if own[g] == at else "SYS" for g in range(size)] + [" X " if o == nic else "SYS" for o in nics]
        lines.append("\t".join([nic, *row]))
    legend = ["", "NIC Legend:", "", *[f"  NIC{at}: mlx5_{at + 7}" for at in range(size)]]
    found = TOPO.judge("\n".join(lines + legend), gdr_max_distance="PIX", expected_nvlink="NV18", expected_gpus=size)
    assert found.verdict == "ok"
    assert found.facts["nearest_nic"] == {f"GPU{at}": f"mlx5_{own[at] + 7}" for at in range(size)}


@pytest.mark.parametrize("text", [OLD, cases.text_of("009")])
def test_damage_is_survived(text: str) -> None:
    TOPO.survives(text, gdr_max_distance="PIX", expected_nvlink="NV18", expected_gpus=8)
