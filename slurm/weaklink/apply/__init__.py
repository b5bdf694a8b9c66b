"""Desired and observed → plan → change: one area of a node at a time, the plan pure."""
