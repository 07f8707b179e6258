"""Parts that several suites share, each made when it is asked for."""

from collections import Counter
from functools import partial

from dicot.report.against import average_table, cell_table, pairs
from dicot.report.baseline import baseline_line, baseline_table, favourite, outcomes
from dicot.report.bench_tables import MANY_SETS, data_set_table, interval_table, standing_table
from dicot.report.critical_difference import critical_difference, friedman_text
from dicot.report.figures import bars, win_tie_loss
from dicot.report.filenames import slug
from dicot.report.grid import Grid
from dicot.report.parts import Draft, Part, Request
from dicot.report.scatter import paper_scatter, time_scatter
from dicot.report.standing import Block, blocks, fit_devices, fit_seconds

NO_BLOCK = "There is no data set on which both controls have a score, so nothing is averaged: see the failures."


def overall(table: Grid, request: Request, name: str = "") -> list[Draft]:
    """Standings, critical difference, time and the baseline, for every block of complete data sets."""
    found = blocks(table)
    if not found:
        return [partial(_nothing, name)]
    drafts: list[Draft] = []
    for number, block in enumerate(found):
        which = name if number == 0 else f"{name}, contenders with every data set".removeprefix(", ")
        stem = _stem(name) + ("" if number == 0 else "-complete")
        drafts += [partial(make, table, block, which, stem) for make in (_standings, _differences, _times)]
        drafts.append(partial(_baseline, table, block, which, stem, request.baseline))
    return drafts


def in_brief(table: Grid, name: str = "") -> list[Draft]:
    """Standings and critical difference of the first block: where a suite has many such tables."""
    block = next(iter(blocks(table)), None)
    if block is None:
        return [partial(_nothing, name)]
    return [partial(make, table, block, name, _stem(name)) for make in (_standings, _differences)]


def beside_paper(table: Grid, request: Request, name: str = "") -> list[Draft]:
    """Averages and data sets beside the paper's, and a point per data set; nothing where it is not wanted."""
    if not request.against_paper or not pairs(table, request.suite):
        return []
    return [partial(_beside, table, request.suite, name)]


def per_data_set(table: Grid, name: str = "") -> list[Draft]:
    """Every mean, and both intervals where there are seeds."""
    return [partial(_scores, table, name)]


def average_bars(table: Grid, name: str = "") -> list[Draft]:
    """Averages over data sets as bars, each seed a dot."""
    return [partial(_bars, table, name)]


def _nothing(name: str) -> list[Part]:
    return [Part(_title("Standings", name), text=NO_BLOCK)]


def _standings(table: Grid, block: Block, which: str, stem: str) -> list[Part]:
    return [Part(_title("Standings", which), standing_table(table, block))]


def _scores(table: Grid, name: str) -> list[Part]:
    out = [Part(_title("Scores per data set", name), data_set_table(table))]
    if (intervals := interval_table(table)) is not None:
        out.append(Part(_title("95 % intervals per data set", name), intervals))
    return out


def _beside(table: Grid, suite: str, name: str) -> list[Part]:
    found = pairs(table, suite)
    shown = {table.labels[line]: (both.paper.tolist(), both.ours.tolist()) for line, both in found.items()}
    figure = {f"against-paper{_stem(name)}": paper_scatter(shown, table.metric)}
    text = "One point per data set; above the line ours is higher. Above each panel the mean difference."
    out = [Part(_title("Ours beside the paper", name), average_table(table, suite), figure, text)]
    if len(table.columns) <= MANY_SETS:
        out.append(Part(_title("Ours beside the paper, per data set", name), cell_table(table, suite)))
    return out


def _bars(table: Grid, name: str) -> list[Part]:
    block = next(iter(blocks(table)), None)
    if block is None:
        return []
    values = {table.labels[line]: list(table.over(line, block.columns).values()) for line in block.lines}
    values |= {table.labels[line]: [] for line in block.left_out}
    text = f"Average over {len(block.columns)} {table.unit}; bars: mean over seeds, dots: seeds."
    figure = {f"averages{_stem(name)}": bars(values, f"average {table.metric}")}
    return [Part(_title("Averages", name), figures=figure, text=text)]


def _differences(table: Grid, block: Block, which: str, stem: str) -> list[Part]:
    if len(block.columns) < 2 or len(block.lines) < 2:
        return []
    names = [table.labels[line] for line in block.lines]
    figure = {f"critical-difference{stem}": critical_difference(block.means.T, names)}
    text = f"{len(block.columns)} {table.unit}. {friedman_text(block.means.T)}"
    return [Part(_title("Critical difference", which), figures=figure, text=text)]


def _times(table: Grid, block: Block, which: str, stem: str) -> list[Part]:
    seconds = {line: fit_seconds(table, line, block.columns) for line in block.lines}
    averages = dict(zip(block.lines, block.means.mean(axis=1).tolist(), strict=True))
    devices = fit_devices(table, block)
    ((usual, _),) = Counter(devices.values()).most_common(1)
    names = {line: table.labels[line] + (f" ({device})" if device != usual else "") for line, device in devices.items()}
    points = {names[line]: (t, averages[line]) for line, t in seconds.items() if t > 0}
    if len(points) < 2:
        return []
    missing = [table.labels[line] for line in seconds if names[line] not in points]
    text = "Fitting alone, summed over the data sets of the standings: embedding and scoring are not counted."
    text += f" On {usual} where nothing else is said: times on different devices do not compare." if usual else ""
    text += f" Not measured, or too short to measure: {', '.join(missing)}." if missing else ""
    hero = names[favourite(block)]
    figure = {f"accuracy-time{stem}": time_scatter(points, f"average {table.metric}", [hero])}
    return [Part(_title(f"Training time and {table.metric}", which), figures=figure, text=text)]


def _baseline(table: Grid, block: Block, which: str, stem: str, wanted: str | None) -> list[Part]:
    against = baseline_line(table, block, wanted)
    if against is None or len(block.lines) < 2:
        return []
    counts = {table.labels[line]: three for line, three in outcomes(block, against).items()}
    figure = {f"wins{stem}": win_tie_loss(counts, table.labels[against])}
    title = _title(f"{table.labels[against]} against each of the others", which)
    return [Part(title, baseline_table(table, block, against), figure)]


def _title(text: str, name: str) -> str:
    return f"{text}: {name}" if name else text


def _stem(name: str) -> str:
    """A file name's part for `name`, which may be empty."""
    return f"-{slug(name)}".lower().replace("_", "-") if name else ""
