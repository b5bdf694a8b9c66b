"""Inference of the weak link from measurements. Pure."""
