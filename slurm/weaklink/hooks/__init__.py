"""Prolog, epilog and health check: composition only."""
