"""Float64 vectors computed with the original authors' code, and one checker per kind of vector file."""

from tests.golden.dicot_loss import check_dicot_loss
from tests.golden.encoder import check_encoder
from tests.golden.ntxent import check_ntxent
from tests.golden.protocols import check_protocols
from tests.golden.schedule import check_lr_schedule
from tests.golden.soft_loss import check_soft_loss
from tests.golden.subblocks import check_subblocks
from tests.golden.ts2vec_crops import check_ts2vec_crops
from tests.golden.ts2vec_loss import check_ts2vec_loss

# File stem -> function that recomputes the file's values and reports each comparison.
KINDS = {
    "dicot_loss": check_dicot_loss,
    "encoder": check_encoder,
    "lr_schedule": check_lr_schedule,
    "ntxent": check_ntxent,
    "protocols": check_protocols,
    "soft_loss": check_soft_loss,
    "subblocks": check_subblocks,
    "ts2vec_crops": check_ts2vec_crops,
    "ts2vec_loss": check_ts2vec_loss,
}
