"""14 records of the MIT-BIH arrhythmia database, two leads at 360 Hz, labelled by rhythm as the ECG set is."""

from collections.abc import Mapping

import numpy as np

from dicot.data import Windows
from dicot.data.datasets.base import Card
from dicot.data.datasets.prepared import FAMILY, PreparedParts
from dicot.data.datasets.rhythms import CODES, OTHER, RHYTHMS, majority, rhythm_per_step
from dicot.data.datasets.standin import StandIn
from dicot.data.datasets.tracks import join
from dicot.data.policies import Array
from dicot.data.wfdb import RHYTHM

LENGTH = 2500  # as many time steps as in the ECG set; 6.9 s here
# Split so that each of the four rhythms is in both parts.
TRAIN_RECORDS = ("103", "105", "109", "118", "208", "210", "217", "219", "221", "222")
TEST_RECORDS = ("100", "201", "202", "203")
RECORDS = tuple(sorted(TRAIN_RECORDS + TEST_RECORDS))
_SAME_PERSON = {"202": "201"}
_CODES = {**CODES, "(NOD": CODES["(J"]}  # this database calls the junctional rhythm nodal


def cut(arrays: Mapping[str, Array]) -> PreparedParts:
    """Cut windows side by side from the first rhythm of a record on, in millivolts."""
    train, test = ([_windows(arrays, record) for record in records] for records in (TRAIN_RECORDS, TEST_RECORDS))
    return PreparedParts(join(train, ARRHYTHMIA.name), join(test, ARRHYTHMIA.name), RHYTHMS, LENGTH)


def _windows(arrays: Mapping[str, Array], record: str) -> Windows:
    stored = arrays[f"sig_{record}"]  # (T, 2)
    changes = arrays[f"ann_symbol_{record}"] == RHYTHM
    samples, names = (arrays[f"ann_{what}_{record}"][changes] for what in ("sample", "aux"))
    first, labels = rhythm_per_step(samples, names, len(stored), _CODES)
    starts = np.arange(0, len(labels) - LENGTH + 1, LENGTH)
    y = majority(labels, starts, LENGTH)
    starts, y = starts[y != OTHER], y[y != OTHER]
    signals = (stored[first:] - arrays["baseline"]) / arrays["gain"]
    x = np.stack([signals[at : at + LENGTH].T for at in starts]).astype(np.float32, order="C")
    return Windows(x, y, np.full(len(y), _SAME_PERSON.get(record, record)), ARRHYTHMIA.name)


ARRHYTHMIA = StandIn(
    Card(
        name="mitbih-arrhythmia",
        family=FAMILY,
        n_train=2297,
        n_test=975,
        n_channels=2,
        n_times=LENGTH,
        n_classes=len(RHYTHMS),
        source="https://physionet.org/content/mitdb/1.0.0/",
        licence="ODC-By 1.0",
        citation="Moody and Mark, The impact of the MIT-BIH arrhythmia database, IEEE Eng. Med. Biol. 20(3), 2001",
        fingerprint="58c4b172cf645332",
        labels=RHYTHMS,
        stride=LENGTH,
        notes=(
            "Records 201 and 202 come from one person and are one group.",
            "Windows of other rhythms (bigeminy, trigeminy, paced ...) are left out.",
            "Atrial flutter and junctional rhythm: one person in training (222); of the latter 3 windows test.",
        ),
    ),
    file="mitbih_14_records.npz",
    arrays=(
        "gain",
        "baseline",
        *(f"{what}_{record}" for what in ("sig", "ann_sample", "ann_symbol", "ann_aux") for record in RECORDS),
    ),
    content="gain, baseline, and for each of the records " + ", ".join(RECORDS) + " sig_NNN (samples, 2), "
    "ann_sample_NNN, ann_symbol_NNN and ann_aux_NNN",
    cut=cut,
    stands_in_for="ecg",
    class_sizes=(758, 60, 32, 1447),
)
