"""weaklink: bring up, guard and diagnose the fabric of a GPU cluster under Slurm."""

__version__ = "0.1.0"
