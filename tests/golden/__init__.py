"""Float64 vectors computed with the original authors' code, and one checker per kind of vector file."""

from tests.golden.dicot_loss import check_dicot_loss
from tests.golden.encoder import check_encoder
from tests.golden.infots_augs import check_infots_augs
from tests.golden.infots_loss import check_infots_loss
from tests.golden.ntxent import check_ntxent
from tests.golden.protocols import check_protocols
from tests.golden.schedule import check_lr_schedule
from tests.golden.subblocks import check_subblocks

# File stem -> function that recomputes the file's values and reports each comparison.
KINDS = {
    "dicot_loss": check_dicot_loss,
    "encoder": check_encoder,
    "infots_augs": check_infots_augs,
    "infots_loss": check_infots_loss,
    "lr_schedule": check_lr_schedule,
    "ntxent": check_ntxent,
    "protocols": check_protocols,
    "subblocks": check_subblocks,
}
