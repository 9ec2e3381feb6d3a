"""What is promised about time and memory, measured: `python -m tests.benchmarks`."""
