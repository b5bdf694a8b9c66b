"""What a widely read guide expects of all-reduce, and the commands it gives: each claim computed through and judged."""

from typing import NamedTuple

from weaklink.plan.expect.factors import from_time

GIB = float(1 << 30)
GB = 1e9
NODE_GBS = 400.0  # 8 x 400 Gb/s

PLAUSIBLE = "plausible"
POOR = "plausible, but no bandwidth test"
USELESS = "useless as an alarm"


class Claim(NamedTuple):
    """A time that the guide states: ``bytes`` read as 10^9 and as 2^30 give two bandwidths."""

    name: str
    ranks: int
    seconds: float
    verdict: str
    reason: str

    def as_dict(self) -> dict[str, object]:
        """Return the claim with its figures in GB/s, for both readings of "1 GB"."""
        decimal = from_time("all_reduce", self.ranks, GB, self.seconds)
        binary = from_time("all_reduce", self.ranks, GIB, self.seconds)
        return {
            "claim": self.name,
            "ranks": self.ranks,
            "ms": self.seconds * 1e3,
            "algbw": round(decimal.algbw, 1),
            "algbw_if_gib": round(binary.algbw, 1),
            "busbw": round(decimal.busbw, 1),
            "busbw_if_gib": round(binary.busbw, 1),
            "share_of_node": round(decimal.busbw / NODE_GBS, 3),
            "share_of_node_if_gib": round(binary.busbw / NODE_GBS, 3),
            "verdict": self.verdict,
            "reason": self.reason,
        }


CLAIMS = (
    Claim(
        "512 GPUs, all-reduce of 1 GB in 6.2 ms",
        512,
        6.2e-3,
        PLAUSIBLE,
        "four fifths of what 8x400G carry; published 96-GPU runs reach 366 GB/s at this size",
    ),
    Claim(
        "2048 GPUs, all-reduce of 1 GB in 18.7 ms",
        2048,
        18.7e-3,
        POOR,
        "NCCL's own latency terms for 256 nodes are 19.3 ms for Ring/Simple and 0.36 ms for NVLSTree: this is what a"
        " fall-back to rings looks like, not a full fabric; test bandwidth at 8G to 16G",
    ),
    Claim(
        "2048 GPUs, alarm above 25 ms",
        2048,
        25e-3,
        USELESS,
        "80 GB/s is a fifth of 400: a fabric that lost four fifths of its bandwidth passes. Compare busbw with a"
        " baseline of the same shape and size instead",
    ),
)


class Command(NamedTuple):
    """One of the guide's tests: what of it is wrong, why, and the command that does what was meant."""

    part: str
    problem: str
    right: str
    wrong: bool = True


_GENERAL = (
    "srun --mpi=pmix -N $N --ntasks-per-node=8 all_reduce_perf_mpi -b 8 -e 16G -f 2 -g 1 -n 20 -w 5 -c 1 -J out.json"
)
COMMANDS = (
    Command(
        "all_reduce_perf -b 8 -e 128 -f 2, meant as 128 MB",
        "sizes are bytes unless K, M or G (x1024) stands behind them: -e 128 ends at 128 bytes, where only latency"
        " shows",
        "all_reduce_perf_mpi -b 8 -e 128M -f 2 -g 1",
    ),
    Command(
        "mpirun --hostfile hosts -np 8",
        "8 processes fill the 8 slots of the first host: NVLink is tested and no fabric touched; without MPI=1 it is 8"
        " separate runs of one rank; Open MPI passes on only the variables that -x names",
        "mpirun --hostfile hosts -np $((8 * NODES)) -N 8 -x NCCL_DEBUG -x LD_LIBRARY_PATH all_reduce_perf_mpi -g 1",
    ),
    Command(
        "expect 8 to 12 GB/s a node",
        "10 times low and more: a node with 8x400G reaches 360 to 387 GB/s busbw",
        "weaklink expect known-good --system H100",
    ),
    Command(
        "expect more than 35 GB/s in all a node",
        "10 times low: 35 GB/s is one of eight adapters at 70 %",
        "weaklink expect known-good --system H100",
    ),
    Command(
        "expect less than 50 us at 256 bytes on one node",
        "loose: about 26 us at 1 KiB is normal on 8 H100, and no fabric is involved",
        _GENERAL,
    ),
    Command("-n, -w and -f", "valid; -n 20 and -w 1 are the defaults", _GENERAL, wrong=False),
    Command(
        "175 billion parameters: all-reduce of 700 GB",
        "700 GB is the buffer in 4-byte figures (350 GB with 2 bytes); each rank sends 2(n-1)/n of it, and tensor and"
        " pipeline parallelism divide it",
        "weaklink expect step --params 175e9 --bytes-per-param 2 --model-parallel 64 --gpus 512 --link-gbps 400"
        " --compute-ms 10000",
    ),
)
