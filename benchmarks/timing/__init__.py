"""The parts of the speed benchmark; `benchmarks/speed.py` is the script that runs them."""
