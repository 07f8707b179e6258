"""python benchmarks/trials.py [options of dicot bench]: variants of the embedding on the sets that may be chosen on.

A suite "trials" beside those of the package, run as they are: into a ledger, killed and continued, `--only`, `--sets`,
`--seeds`, `--dry-run`. `dicot report trials --ledger LEDGER --baseline whole` makes tables of it. A trial is a line in
VARIANTS; what came of it belongs into docs/log.md, whether it helped or not.
"""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run by its path, a script finds only its own folder

from dicot.bench.crossing import SuiteOptions, controls, cross, whole
from dicot.bench.suites import SUITES
from dicot.evaluation.contenders import Contender
from dicot.evaluation.jobs import Job

# Half of both archives, and two large sets: nothing is chosen on the others, which are only reported.
DEVELOPMENT = tuple(Path(__file__).with_name("development.txt").read_text().split())
SEEDS = (1, 2, 3)
PROTOCOLS = ("ridge", "linear", "few_5", "semi_5", "clustering")

RICH: dict[str, Any] = {"pooling": "shares+mean+max", "bank": 2016, "n_components": 2048}
VARIANTS: dict[str, Contender] = {
    contender.name: contender
    for contender in (
        Contender("dicot", "dicot"),
        Contender("dicot calibrated", "dicot", {}, {"calibrate": True}),
        Contender("dicot rich", "dicot", {}, RICH),
        Contender("whole", "across"),
        Contender("whole calibrated", "across", {}, {"calibrate": True}),
        Contender("whole rich", "across", {}, RICH),
        Contender("whole around zero", "across", {"centred": False}),
        Contender("whole by batches of 32", "across", {}, {"batch_size": 32}),
        Contender("whole with a queue of 256", "across", {"queue": 256}),
        Contender("whole at tau 0.1", "across", {"temperature": 0.1}),
        Contender("whole at tau 0.5", "across", {"temperature": 0.5}),
        Contender("whole with frequency", "across", {"frequency": 0.3}),
        Contender("whole with warp", "across", {"warp": 0.5}),
        *(
            Contender(f"whole without {part}", "across", {part: 0.0})
            for part in ("noise", "scale", "offset", "mask", "crop", "channel_drop")
        ),
        Contender("cross", "across", {"whole": 0.0, "cross": 1.0}),
        Contender("whole + cross", "across", {"cross": 1.0}),
        Contender("vic", "across", {"whole": 0.0, "vic": 1.0}),
        Contender("whole + vic", "across", {"vic": 0.04}),
    )
}


def trials(options: SuiteOptions) -> list[Job]:
    """Variants of the embedding on the sets that may be chosen on."""
    entries = [*((variant, PROTOCOLS) for variant in VARIANTS.values()), *controls(*PROTOCOLS)]
    entries += [(Contender("minirocket", "minirocket"), PROTOCOLS)]
    return cross("trials", entries, [whole(name) for name in options.sets or DEVELOPMENT], SEEDS, options)


def main() -> None:
    """Run `dicot bench trials` with the arguments of this script."""
    from dicot.cli import main as dicot

    SUITES["trials"] = trials
    sys.argv[1:] = ["bench", "run", "trials", *sys.argv[1:]]
    dicot()


if __name__ == "__main__":
    main()
