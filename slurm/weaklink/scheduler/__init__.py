"""Slurm client, ownership of drains, drain budget, reservations."""
