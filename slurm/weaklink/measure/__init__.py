"""Benchmarks on this node: run one end of each flow of a round and say what came of it. Standard library only."""
