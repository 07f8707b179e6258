"""What training costs, from the files of two benchmarks beside the records: every run was alone on its device."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from bench.paper.drawings import power_curves, reference_curves
from bench.paper.numbers import METHODS, NAMES, printed_hours
from bench.report.frame import ALONE
from bench.report.pages import slug
from dicot.core.errors import InputError, naming
from dicot.judge.report.page import Part
from dicot.judge.report.tables import ABSENT, NOT_RUN, Cell, mark_best, text_table

TIMES = {"question": str, "contender": str, "data_set": str, "batch_size": int, "time_steps": int, "precision": str}
TIMES |= {"device": str, "warm_up": float, "timed": float, "step_ms": float, "host_ms": float, "peak_mib": float}
TIMES |= {"passes": float, "encoded": float, "recorded": str, "error": str}
EXPONENTS = {"what": str, "method": str, "quantity": str, "size": int, "ms": float, "paper": float, "base": str}
EXPONENTS |= {"precision": str, "device": str, "recorded": str}
RUN = ["question", "contender", "data_set", "batch_size", "device"]
BOTH, USUAL = "both neighbours", "k from 2 to 10"
PAPERS_SECONDS = {BOTH: 10_382, USUAL: 10_374}  # of training on the six large sets, as its appendix says
SCALED = {"dicot": NAMES["dicot"], "catt": "CaTT", "catt without chunks": "CaTT without chunks"}


def measured(folder: Path | None, name: str) -> pd.DataFrame:
    """Read all tables of a folder that are called so; of two rows for one run the one of the later file counts."""
    columns = TIMES if name == "times" else EXPONENTS
    parts = []
    for path in sorted(folder.glob(f"{name}*.csv")) if folder is not None else ():
        with naming(path):
            part = pd.read_csv(path, keep_default_na=False, na_values={c: [""] for c in columns if columns[c] is float})
            if lacking := [column for column in columns if column not in part]:
                raise InputError(f"It lacks the column(s) {', '.join(lacking)}. Measure anew: `python -m bench alone`.")
            parts.append(part.astype(columns))
    if not parts:
        return pd.DataFrame(columns=list(columns))
    rows = pd.concat(parts, ignore_index=True)
    rows = rows.assign(device=rows.device.str.removesuffix(ALONE), recorded=rows.recorded.str[:10])  # the day
    return rows.drop_duplicates(RUN, keep="last") if name == "times" else rows


def said(number: float) -> str:
    """Three digits, or all before the point."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _stem(device: object) -> str:
    """Name a device in a file name; a processor by the word cpu alone."""
    return slug(str(device)).lower() if not str(device).startswith("cpu") else "cpu"


def _place(rows: pd.DataFrame) -> str:
    """Say where Di-COT stands among the methods on one data set."""
    times = rows.set_index("contender").step_ms.dropna().sort_values()
    if "dicot" not in times or len(times) < 2:
        return ""
    place, best = int(times.index.get_loc("dicot")) + 1, str(times.index[0])
    slower = f"number {place} of {len(times)}; {NAMES[best]} needs {said(times.iloc[0])}"
    order = f"the fastest of {len(times)}" if place == 1 else slower
    return f"{said(times['dicot'])} ms on {rows.data_set.iloc[0]} ({order})"


def standing(rows: pd.DataFrame, device: str) -> str:
    """Say in a sentence how fast Di-COT is on a device beside the others."""
    own = rows[(rows.question == "methods") & (rows.device == device)]
    told = [words for _, part in own.groupby("data_set", sort=False) if (words := _place(part))]
    return f"A step of {NAMES['dicot']} takes {', '.join(told)}." if told else ""


def methods_parts(folder: Path | None) -> Iterator[Part]:
    """Every method alone: milliseconds of a step, what the host needs of them, and how often the encoder is called."""
    rows = measured(folder, "times")
    rows, hours = rows[rows.question == "methods"], printed_hours()
    order = sorted(hours, key=hours.__getitem__)
    for device, own in rows.groupby("device", sort=False):
        cells: dict[str, list[Cell]] = {}
        first = own[own.data_set == own.data_set.iloc[0]].set_index("contender")
        for name, part in own.groupby("data_set", sort=False):
            by = part.set_index("contender")
            cells[f"{name}, ms a step"] = mark_best([_ms(by.step_ms, method) for method in METHODS], -1)
            if by.host_ms.notna().any():
                cells[f"{name}, host ms"] = [_ms(by.host_ms, method) for method in METHODS]
        cells["encoder calls a step"] = [_ms(first.passes, method) for method in METHODS]
        cells["times a time step is encoded"] = [_ms(first.encoded, method) for method in METHODS]
        printed = [NAMES[method] for method in METHODS]
        cells["the paper's hours"] = [
            Cell(f"{hours[name]:.2f} (number {order.index(name) + 1})" if name in hours else "") for name in printed
        ]
        about = (
            f"{standing(rows, str(device))} The paper: Di-COT has the lowest training time of all. {_how(own)} "
            "Encoder calls, and how often a time step is encoded, passes without a gradient too, are those on "
            f"{own.data_set.iloc[0]}. The paper's hours: six large sets on a V100S. Bold: lowest as printed."
        )
        if own.host_ms.notna().any():
            about += " Host ms: what the host needs to issue a step; close to its time, the host is the limit."
        table = text_table("method", zip(printed, zip(*cells.values(), strict=True), strict=True), list(cells), about)
        yield Part(f"Every method alone on {device}", table)


def _ms(column: pd.Series, name: str) -> Cell:
    """Print a number of a run; the number counts where it is the best."""
    value = float(column.get(name, math.nan))
    return Cell(NOT_RUN, ABSENT) if math.isnan(value) else Cell(said(value), mean=float(f"{value:.3g}"))


def _how(rows: pd.DataFrame) -> str:
    """Say how these runs were timed."""

    def span(values: pd.Series) -> str:
        low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
        return f"{low:,}" if low == high else f"{low:,} to {high:,}"

    scored = rows[rows.error == ""]
    kinds = scored.groupby("data_set", sort=False)[["batch_size", "precision"]].first()
    sets = ", ".join(
        f"{name} {row.precision}" + ("" if scored.batch_size.nunique() > 3 else f" in batches of {row.batch_size}")
        for name, row in kinds.iterrows()
    )
    return (
        f"One run at a time, nothing beside it; {span(scored.timed)} steps are timed after {span(scored.warm_up)} of "
        f"warm-up, in which a GPU's CUDA graphs are captured. {sets}. "
        f"Measured on {', '.join(sorted(set(rows.recorded)))}."
    )


def splits_parts(folder: Path | None) -> Iterator[Part]:
    """Figure 7 by the step: Di-COT alone with other numbers of sub-blocks."""
    rows = measured(folder, "times")
    rows = rows[(rows.question == "splits") & (rows.contender != BOTH)]
    for device, own in rows.groupby("device", sort=False):
        table = own.pivot_table("step_ms", "contender", "data_set", sort=False)
        about = f"Milliseconds of a step of Di-COT alone on {device}. {_how(own)} The paper prints no numbers."
        shown = ((str(name), list(map(said, row))) for name, row in zip(table.index, table.to_numpy(), strict=True))
        ticks = [str(count) for count in (2, 5, 10, 15, 20)]
        curves = {
            f"{words} on {name}": [float(column.get(f"{start}{tick}", math.nan)) for tick in ticks]
            for name, column in table.items()
            for start, words in (("k = ", "k fixed"), ("k from 2 to ", "k from 2 to k_max"))
        }
        figure = partial(reference_curves, curves, ticks, "sub-blocks (k or k_max)", "milliseconds per step")
        name = f"figure7-{_stem(device)}"
        yield Part(f"By the step on {device}", text_table("sub-blocks", shown, list(table), about), {name: figure})


def both_parts(folder: Path | None) -> Iterator[Part]:
    """What a second neighbour costs, beside the paper's seconds."""
    rows = measured(folder, "times")
    rows = rows[(rows.question == "splits") & rows.contender.isin(PAPERS_SECONDS)]
    for device, own in rows.groupby("device", sort=False):
        table = own.pivot_table("step_ms", "data_set", "contender", sort=False).reindex(columns=list(PAPERS_SECONDS))
        told = [
            f"{name} {row[BOTH]:.3g} and {row[USUAL]:.3g} ms ({row[BOTH] / row[USUAL]:.2f} times)"
            for name, row in table.dropna().iterrows()
        ]
        ratio = PAPERS_SECONDS[BOTH] / PAPERS_SECONDS[USUAL]
        text = (
            f"A step with both neighbours and with the one before, alone on {device}: {'; '.join(told)}. The paper: "
            f"{PAPERS_SECONDS[BOTH]:,} and {PAPERS_SECONDS[USUAL]:,} seconds on its six large sets ({ratio:.2f} times)."
        )
        yield Part("Time of both neighbours", text=text)


def batches_parts(folder: Path | None) -> Iterator[Part]:
    """Figure 6 on windows as long as HARTH's: time and memory of a step against the batch size."""
    rows = measured(folder, "times")
    rows = rows[rows.question == "batches"]
    for (device, name), own in rows.groupby(["device", "data_set"], sort=False):
        sizes = sorted(own.batch_size.unique().tolist())
        for column, unit in (("step_ms", "milliseconds per step"), ("peak_mib", "peak memory in MiB")):
            table = own.pivot_table(column, "contender", "batch_size", dropna=False).reindex(columns=sizes)
            if table.isna().all(axis=None):
                continue
            broken = own[own.error != ""].groupby("contender").batch_size.min().to_dict()
            lines = [line for line in SCALED if line in table.index or line in broken]
            table = table.reindex(lines)
            shown = ((SCALED[line], [_point(table, broken, line, size) for size in sizes]) for line in lines)
            values = {line: table.loc[line].dropna() for line in lines}
            curves = {
                SCALED[line]: (list(map(float, row.index)), row.tolist()) for line, row in values.items() if len(row)
            }
            ends = {SCALED[line]: float(size) for line, size in broken.items() if SCALED[line] in curves}
            steps = own.time_steps.iloc[0]
            about = (
                f"{unit[0].upper()}{unit[1:]} on {name} ({steps} time steps), alone on {device}. {_how(own)} A cross: "
                "the batch size that did not fit into the memory."
            )
            figure = partial(power_curves, curves, "batch size", unit, ends)
            stem = f"figure6-{column.replace('_', '-')}-{steps}-{_stem(device)}"
            title = f"{'Time' if column == 'step_ms' else 'Memory'} at T = {steps} on {device}"
            yield Part(title, text_table("contender", shown, list(map(str, sizes)), about), {stem: figure})


def _point(table: pd.DataFrame, broken: dict[str, int], line: str, size: int) -> Cell:
    value = table.at[line, size]
    if not math.isnan(value):
        return Cell(said(value))
    return Cell("out of memory" if size >= broken.get(line, math.inf) else NOT_RUN, ABSENT)


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """p of the power law values ~ sizes^p, by least squares on logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def exponents_parts(folder: Path | None) -> Iterator[Part]:
    """How loss and step grow with B, T, k and d: fitted exponents beside those of the paper, and the curves."""
    rows = measured(folder, "exponents")
    rows = rows[rows.groupby(["device", "what", "method", "quantity"]).ms.transform("count") > 2]  # a slope needs some
    for device, own in rows.groupby("device", sort=False):
        lines, curves = [], dict[str, dict[str, tuple[list[float], list[float]]]]()
        for (what, method, quantity), part in own.groupby(["what", "method", "quantity"], sort=False):
            sizes, ms = part["size"].astype(float).tolist(), part.ms.tolist()
            half = min(len(sizes) // 2, len(sizes) - 2)
            paper = part.paper.iloc[0]
            cells = [
                f"{sizes[0]:,.0f} to {sizes[-1]:,.0f}",
                f"{said(ms[0])} to {said(ms[-1])}",
                f"{exponent(sizes, ms):.2f}",
                f"{exponent(sizes[half:], ms[half:]):.2f}",
                "" if math.isnan(paper) else f"{paper:g}",
                str(part.base.iloc[0]),
            ]
            lines.append((f"{what} of {NAMES[method]} against {quantity}", cells))
            curves.setdefault(what, {})[f"{NAMES[method]} against {quantity}"] = sizes, ms
        heads = ["sizes", "ms", "exponent", "exponent, larger half", "the paper's", "the others"]
        about = (
            f"Milliseconds of a loss with its gradient, and of a training step, alone on {device}, "
            f"{own.precision.iloc[0]}; the exponent is the slope through the logarithms. The paper: O(B k^2 d) for "
            "Di-COT's loss, O(B^2 T^2 d) for CaTT's; T is no input of Di-COT's loss. Small sizes are bound by launches "
            "and memory, so the larger half tells more. A step is mostly the encoder, which is linear in B and T. "
            f"Measured on {', '.join(sorted(set(own.recorded)))}."
        )
        figures = {
            f"figure6-exponents-{what}-{_stem(device)}": partial(
                power_curves, lines_of, "size of B, T, k or d", f"milliseconds of a {what}"
            )
            for what, lines_of in curves.items()
        }
        yield Part(f"How loss and step grow, on {device}", text_table("cost", lines, heads, about), figures)
