"""All kinds of files by name."""

from tests.survival import (
    archive_kinds,
    array_kinds,
    corpus_kinds,
    folder_kinds,
    ledger_kinds,
    model_kinds,
    raw_kinds,
    signal_kinds,
    table_kinds,
)
from tests.survival.kind import Kind

MODULES = (array_kinds, table_kinds, archive_kinds, signal_kinds, raw_kinds, model_kinds, ledger_kinds)
MODULES = (*MODULES, folder_kinds, corpus_kinds)
KINDS: dict[str, Kind] = {kind.name: kind for module in MODULES for kind in module.KINDS}
