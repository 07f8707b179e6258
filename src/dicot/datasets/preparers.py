"""The large data sets that can be prepared from their publishers' files."""

from dicot.datasets.ecg import ECG, ECG_FULL
from dicot.datasets.harth import HARTH
from dicot.datasets.pamap2 import PAMAP2
from dicot.datasets.preparer import Preparer
from dicot.datasets.skoda import SKODA_BLOCKED, SKODA_PAPER
from dicot.datasets.sleep import SLEEP
from dicot.datasets.wisdm2 import WISDM2

_ALL: tuple[Preparer, ...] = (
    HARTH,
    PAMAP2,
    SKODA_PAPER,
    SKODA_BLOCKED,
    WISDM2,
    SLEEP,
    ECG,
    ECG_FULL,
)
PREPARERS: dict[str, Preparer] = {preparer.name: preparer for preparer in _ALL}
