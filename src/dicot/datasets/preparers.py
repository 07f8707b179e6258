"""The large data sets that can be prepared from their publishers' files."""

from dicot.datasets.preparer import Preparer

_ALL: tuple[Preparer, ...] = ()
PREPARERS: dict[str, Preparer] = {preparer.name: preparer for preparer in _ALL}
