"""python benchmarks/speed.py [--device cpu --quick ...]: the same as `dicot bench speed`."""

import sys

from dicot.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["bench", "speed"]
    main()
