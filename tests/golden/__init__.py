"""Float64 vectors computed with the original authors' code, and one checker per kind of vector file."""

from tests.golden.catt_loss import check_catt_loss
from tests.golden.cost_heads import check_cost_heads
from tests.golden.cost_loss import check_cost_loss
from tests.golden.dicot_loss import check_dicot_loss
from tests.golden.encoder import check_encoder
from tests.golden.infots_augs import check_infots_augs
from tests.golden.infots_loss import check_infots_loss
from tests.golden.ntxent import check_ntxent
from tests.golden.protocols import check_protocols
from tests.golden.schedule import check_lr_schedule
from tests.golden.simmtm_loss import check_simmtm_loss
from tests.golden.simmtm_mask import check_simmtm_mask
from tests.golden.soft_loss import check_soft_loss
from tests.golden.subblocks import check_subblocks
from tests.golden.tnc_discriminator import check_tnc_discriminator
from tests.golden.tnc_loss import check_tnc_loss
from tests.golden.tnc_sampling import check_tnc_sampling
from tests.golden.ts2vec_crops import check_ts2vec_crops
from tests.golden.ts2vec_loss import check_ts2vec_loss
from tests.golden.tstcc_tc import check_tstcc_tc

# File stem -> function that recomputes the file's values and reports each comparison.
KINDS = {
    "catt_loss": check_catt_loss,
    "cost_heads": check_cost_heads,
    "cost_loss": check_cost_loss,
    "dicot_loss": check_dicot_loss,
    "encoder": check_encoder,
    "infots_augs": check_infots_augs,
    "infots_loss": check_infots_loss,
    "lr_schedule": check_lr_schedule,
    "ntxent": check_ntxent,
    "protocols": check_protocols,
    "simmtm_loss": check_simmtm_loss,
    "simmtm_mask": check_simmtm_mask,
    "soft_loss": check_soft_loss,
    "subblocks": check_subblocks,
    "tnc_discriminator": check_tnc_discriminator,
    "tnc_loss": check_tnc_loss,
    "tnc_sampling": check_tnc_sampling,
    "ts2vec_crops": check_ts2vec_crops,
    "ts2vec_loss": check_ts2vec_loss,
    "tstcc_tc": check_tstcc_tc,
}
