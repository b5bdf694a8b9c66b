"""The controller's part: collect evidence, act under budget, explain, return nodes."""
