"""Benchmarks of speed and scaling: ``python -m benchmarks [NAME ...] [--write]``."""
