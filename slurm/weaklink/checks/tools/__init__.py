"""Judgements of what tools print: one module a tool, record and context in, facts and findings out. Pure."""
