"""Parsers of what tools print: one module a tool, text in, record out. Pure; nothing here judges."""
