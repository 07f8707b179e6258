"""All kinds of files by name."""

from tests.survival import (
    archive_kinds,
    array_kinds,
    corpus_kinds,
    folder_kinds,
    kept_kinds,
    ledger_kinds,
    model_kinds,
    recording_kinds,
    signal_kinds,
    table_kinds,
    workbench_kinds,
)
from tests.survival.kind import Kind

MODULES = (
    array_kinds,
    table_kinds,
    archive_kinds,
    signal_kinds,
    recording_kinds,
    model_kinds,
    ledger_kinds,
    folder_kinds,
    corpus_kinds,
    workbench_kinds,
    kept_kinds,
)
KINDS: dict[str, Kind] = {kind.name: kind for module in MODULES for kind in module.KINDS}
