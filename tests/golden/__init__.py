"""Float64 vectors computed with the original authors' code, and one checker per kind of vector file."""

from tests.golden.catt_loss import check_catt_loss
from tests.golden.dicot_loss import check_dicot_loss
from tests.golden.encoder import check_encoder
from tests.golden.ntxent import check_ntxent
from tests.golden.protocols import check_protocols
from tests.golden.schedule import check_lr_schedule
from tests.golden.subblocks import check_subblocks

# File stem -> function that recomputes the file's values and reports each comparison.
KINDS = {
    "catt_loss": check_catt_loss,
    "dicot_loss": check_dicot_loss,
    "encoder": check_encoder,
    "lr_schedule": check_lr_schedule,
    "ntxent": check_ntxent,
    "protocols": check_protocols,
    "subblocks": check_subblocks,
}
