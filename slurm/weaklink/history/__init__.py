"""What was measured and what it means over time: the store and the baselines."""
