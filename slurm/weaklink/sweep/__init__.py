"""Sweeps: rounds of tests between pairs of nodes inside one Slurm allocation."""
