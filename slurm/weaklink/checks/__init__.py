"""Observation and expectation become findings. Pure."""
