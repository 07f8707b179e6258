"""The vectors of tests/golden, and the command that checks them."""

from pathlib import Path

import numpy as np
import pytest

from tests.golden import KINDS
from tests.golden.__main__ import check_file, main

FOLDER = Path(__file__).parent / "golden"


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_match(kind):
    holds, line = check_file(FOLDER / f"{kind}.npz")
    assert holds, line


def test_every_file_has_a_checker():
    assert {path.stem for path in FOLDER.glob("*.npz")} == set(KINDS)


def copy_with(kind: str, name: str, change, folder: Path) -> None:
    with np.load(FOLDER / f"{kind}.npz") as held:
        vectors = dict(held)
    vectors[name] = change(vectors[name])
    np.savez(folder / f"{kind}.npz", **vectors)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("catt_loss", "c0_loss_ls"),
        ("catt_loss", "c2_grad_next"),
        ("catt_loss", "c3_loss_next"),
        ("cost_heads", "c0_season"),
        ("cost_heads", "c1_trend"),
        ("cost_loss", "c0_grad_season_k"),
        ("cost_loss", "c1_ptr_after"),
        ("cost_loss", "c2_phase_q"),
        ("dicot_loss", "c0_loss_next"),
        ("dicot_loss", "c1_grad_preceding"),
        ("encoder", "c0_train_mean"),
        ("encoder", "param_count"),
        ("infots_augs", "c0_slice_out"),
        ("infots_augs", "c0_warp_out"),
        ("infots_augs", "c1_cut_out"),
        ("infots_augs", "c1_sub_out"),
        ("infots_loss", "c0_loss_global"),
        ("infots_loss", "c1_grad_local_z1"),
        ("infots_loss", "c2_loss_local_each_instance"),
        ("lr_schedule", "lr_200"),
        ("protocols", "c0_lr_decision"),
        ("protocols", "r0_cd"),
        ("simmtm_loss", "c0_weights"),
        ("simmtm_loss", "c1_grad_awl"),
        ("simmtm_loss", "c2_loss_recon_all_rows"),
        ("simmtm_mask", "c2_keep"),
        ("soft_loss", "c0_grad_z2"),
        ("soft_loss", "c1_soft_matrix"),
        ("soft_loss", "c3_temp_soft"),
        ("subblocks", "table"),
        ("tnc_discriminator", "c1_logit"),
        ("tnc_loss", "c2_loss"),
        ("tnc_loss", "c3_grad_d_neg"),
        ("tnc_sampling", "c0_epsilon"),
        ("tnc_sampling", "c3_neg_starts"),
        ("ts2vec_crops", "c1_crop_eleft"),
        ("ts2vec_crops", "c2_offset"),
        ("ts2vec_loss", "c1_grad_z1"),
        ("ts2vec_loss", "c5_loss"),
        ("tstcc_tc", "c0_nce"),
        ("tstcc_tc", "c1_grad_features2"),
        ("tstcc_tc", "c1_projection"),
    ],
)
def test_a_changed_value_is_found(kind, name, tmp_path, capsys):
    copy_with(kind, name, lambda value: value + 1, tmp_path)
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().out.startswith(f"FAIL {kind}")


def test_nan_is_a_mismatch(tmp_path):
    copy_with("dicot_loss", "c0_loss_next", lambda value: value * np.nan, tmp_path)
    assert main([str(tmp_path)]) == 1


def test_exit_codes(tmp_path, capsys):
    assert main([str(FOLDER), "--only", "subblocks,lr_schedule"]) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [
        ["ok", "lr_schedule"],
        ["ok", "subblocks"],
    ]
    assert main([str(tmp_path)]) == 1, "nothing found"
    np.savez(tmp_path / "riddle.npz", n_cases=0)
    assert main([str(tmp_path)]) == 1, "unknown kind"
    assert "unknown kind" in capsys.readouterr().out
    assert main([str(FOLDER), "--only", "subblocks,riddle"]) == 1, "asked for and not there"
    (tmp_path / "encoder.npz").write_bytes(b"PK\x03\x04 not a zip")
    assert main([str(tmp_path), "--only", "encoder"]) == 1, "damaged"
