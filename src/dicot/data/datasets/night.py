"""One night of Sleep-EDF, split in time: what the SLEEP set is made of, at hand without its 39 files."""

from collections.abc import Mapping

import numpy as np

from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.data.datasets.base import Card
from dicot.data.datasets.prepared import FAMILY, PreparedParts
from dicot.data.datasets.sleep import STAGES, around_sleep
from dicot.data.datasets.standin import StandIn
from dicot.data.policies import Array

LENGTH = 3000  # 30 s at 100 Hz
TRAIN_SHARE = 0.6  # of the night; later there is too little deep sleep left to test on
GAP = 10  # epochs between the parts, 5 min, because epochs next to each other are alike


def cut(arrays: Mapping[str, Array]) -> PreparedParts:
    """Take the epochs around sleep, the earlier part of the night for training."""
    x, y = arrays["X"], arrays["y"].astype(np.int64)
    if x.ndim != 3 or x.shape[1:] != (1, LENGTH) or y.shape != x.shape[:1]:
        raise InputError(f"Expected X (epochs, 1, {LENGTH}) and y (epochs,); got {x.shape} and {y.shape}.")
    epochs = around_sleep(y)
    n_train = int(TRAIN_SHARE * len(epochs))
    train, test = (
        Windows(np.ascontiguousarray(x[rows], np.float32), y[rows], np.full(len(rows), "SC4001"), NIGHT.name)
        for rows in (epochs[:n_train], epochs[n_train + GAP :])
    )
    return PreparedParts(train, test, STAGES, LENGTH)


NIGHT = StandIn(
    Card(
        name="sleepedf-night",
        family=FAMILY,
        n_train=504,
        n_test=327,
        n_channels=1,
        n_times=LENGTH,
        n_classes=len(STAGES),
        source="https://physionet.org/content/sleep-edfx/1.0.0/",
        licence="ODC-By 1.0",
        citation="Kemp et al., Analysis of a sleep-dependent neuronal feedback loop, IEEE Trans. Biomed. Eng. 47(9), "
        "2000",
        fingerprint="64999a08bd384fdd",
        labels=STAGES,
        stride=LENGTH,
        notes=("One person and one night: the first 60 % train, the rest tests, with 5 minutes between them.",),
    ),
    file="sleepedf_SC4001_fpzcz.npz",
    arrays=("X", "y"),
    content="X (epochs, 1, 3000) and y (0 to 4: W, N1, N2, N3, REM), the EEG Fpz-Cz of the night SC4001",
    cut=cut,
    stands_in_for="sleep",
    class_sizes=(62, 29, 168, 187, 58),
)
