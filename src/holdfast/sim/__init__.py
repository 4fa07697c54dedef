"""Simulated outside systems with faults on demand, for tests, benchmarks and the demo (extra `sim`)."""
