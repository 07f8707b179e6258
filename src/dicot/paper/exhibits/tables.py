"""The paper's tables as parts of a page: ours beside the paper's numbers, or these alone where nothing is recorded."""

from collections.abc import Iterator, Mapping, Sequence

from dicot.data.datasets import DATASETS
from dicot.data.datasets.base import DataSet, Sizes
from dicot.judge.report.frame import PAPER_SCHEDULE, SAME_LABELS, decimals
from dicot.judge.report.page import Part
from dicot.judge.report.scores import MANY_SETS
from dicot.judge.report.standings import fit_times, standings, times_text
from dicot.judge.report.tables import ABSENT, Cell, Table, mark_best, text_table
from dicot.paper.exhibits.archives import ARCHIVES, FAMILIES, schedule_table, summary_of_archives
from dicot.paper.exhibits.grids import average_cells, beside, reading, score_cells, score_grid, table_of
from dicot.paper.exhibits.records import Records
from dicot.paper.exhibits.variants import TABLES, groups, variant_tables
from dicot.paper.lines import EXPECTED, Column, Lines, column_of, columns_of, data_set_key, in_lines, of_the_paper
from dicot.paper.numbers import LARGE, paper_tables, printed, printed_names

AVERAGES = {  # where the paper prints the averages of a table: its table and the column
    "large": ("linear_probe", "Avg. Acc ± 95% CI"),
    "low_label": ("low_label_1pct", "Avg. Acc ± 95% CI"),
    "transfer": ("transfer", "average"),
}
TIME = "Time (hrs)"
SHORT = {"Sup_B": "Supervised_B", "R. Init": "Random Init."}  # names in the paper's Table 4
MANY_COLUMNS = 20
ALONE = "The paper's numbers; there is no record of ours."
SIZES = {  # columns of the paper's table of data sets, by field of ours
    "n_train": ("training cases", "Train set"),
    "n_test": ("test cases", "Test set"),
    "n_times": ("time steps", "Sequence Length"),
    "n_channels": ("channels", "Channel"),
    "n_classes": ("classes", "Class"),
}


def scores_part(
    records: Records, suite: str, family: str, labels: str = "linear", hours: bool = False
) -> Iterator[Part]:
    """Show a table of contenders and data sets; `labels` says which protocol of the paper, `hours` adds the times."""
    data = records.of(suite)
    same = data.protocol.map(lambda name: SAME_LABELS.get(name, name))
    own = data[(data.metric == "accuracy") & (same == labels)]
    if family in ARCHIVES:  # of which the paper leaves sets out; and two schedules would make 124 rows twice as wide
        own = own[own.schedule.isin(("", PAPER_SCHEDULE)) & of_the_paper(own)]
    numbers, averages = printed(suite, labels), printed_averages(suite, labels)
    if own.empty:
        yield Part("", printed_only(numbers, averages))
        return
    names, columns = columns_of(own, EXPECTED[family])
    lines = in_lines(own, names, printed_names([suite]))
    more = {"time to fit": time_cells(lines)} if hours else {}
    yield Part("", score_grid(lines, columns, numbers, averages, more, turned=len(columns) > MANY_SETS))


def printed_averages(suite: str, labels: str) -> dict[str, float]:
    """Give the averages of a table as the paper prints them."""
    tables = paper_tables()
    if suite in ARCHIVES:
        return dict(tables[f"{suite}_average"])
    table, column = (
        (tables["knn"][labels.removeprefix("knn_")], "Avg Acc")
        if suite == "knn"
        else (tables[AVERAGES[suite][0]], AVERAGES[suite][1])
    )
    cells = {name: row[column] for name, row in table.items()}
    return {name: cell["mean"] if isinstance(cell, dict) else cell for name, cell in cells.items()}


def printed_hours() -> dict[str, float]:
    """Give the hours that the paper says training on its six large sets takes."""
    rows = {name: row[TIME] for name, row in paper_tables()["linear_probe"].items()}
    return {name: cell["mean"] if isinstance(cell, dict) else cell for name, cell in rows.items() if cell is not None}


def time_cells(lines: Lines) -> list[Cell]:
    """Make the column of times to fit, over the sets of the average, the paper's hours behind ours."""
    block, paper = lines.block(), printed_hours()
    times = {} if block is None else fit_times(block)
    cells = []
    for line in lines.every:
        own = times_text(times[line]) if line in times else ""
        printed = f" ({paper[line]:.2f} h)" if line in paper else ""
        cells.append(Cell(f"{own}{printed}".strip(), "" if times.get(line) else ABSENT))
    return cells


def printed_only(numbers: Mapping[tuple[str, str], float], averages: Mapping[str, float] | None = None) -> Table:
    """Show the paper's numbers alone."""
    names, columns = (list(dict.fromkeys(key[i] for key in numbers)) for i in (0, 1))
    digits = 3 if all(abs(value) < 1 for value in numbers.values()) else 2
    rows = []
    for name in names:
        cells = [f"{numbers[name, column]:.{digits}f}" if (name, column) in numbers else "" for column in columns]
        cells += [f"{averages[name]:.{digits}f}" if name in averages else ""] if averages is not None else []
        rows.append((name, [Cell(text, ABSENT) for text in cells]))
    table = text_table("contender", rows, [*columns, *(["average"] if averages is not None else [])], ALONE)
    return table.turned("data set") if len(columns) > MANY_COLUMNS else table


def archives_part(records: Records) -> Iterator[Part]:
    """Show the summary of both archives, and what the schedule of the authors' code makes of each method."""
    data = records.of(*ARCHIVES)
    if data.empty:
        rows = paper_tables()["ucr_uea_summary"]
        numbers = {(name, key): value for name, row in rows.items() for key, value in row.items() if value is not None}
        yield Part("", printed_only(numbers))
        return
    yield Part("", summary_of_archives(data))
    if (schedules := schedule_table(records.of(*FAMILIES))) is not None:
        yield Part("Both schedules", schedules)


def clustering_average_part(records: Records) -> Iterator[Part]:
    """Show NMI, ARI and the rank over both, averaged over data sets."""
    table = paper_tables()["clustering_average"]
    theirs = {row: {SHORT.get(name, name): value for name, value in cells.items()} for row, cells in table.items()}
    if (made := _clustering(records)) is None:
        yield Part("", printed_only({(name, row): v for row, cells in theirs.items() for name, v in cells.items()}))
        return
    lines, columns = made
    block = lines.block()
    cells = {f"average {name}": _metric_average(lines, columns, name, theirs[name]) for name in ("NMI", "ARI")}
    ranks = {} if block is None else standings(block)["rank"].dropna().to_dict()
    own = []
    for line in lines.every:
        text = beside(f"{ranks[line]:.2f}" if line in ranks else "", theirs["AvgRank"].get(line), None, 2).strip()
        own.append(Cell(text, mean=round(ranks[line], 2)) if line in ranks else Cell(text, ABSENT))
    cells["average rank"] = mark_best(own, -1)
    over = "" if block is None else block.missing_text()
    yield Part("", table_of(lines, cells, over, reading(columns), spread=False))


def clustering_part(records: Records) -> Iterator[Part]:
    """Show NMI and ARI on every data set."""
    if (made := _clustering(records)) is None:
        yield Part("", printed_only(printed("clustering")))
        return
    lines, columns = made
    cells = score_cells(lines, columns, printed("clustering"), decimals(lines.runs))
    for name in ("NMI", "ARI"):
        rows = paper_tables()["clustering_per_dataset"].items()
        theirs = {line: row[f"average_{name.lower()}"] for line, row in rows}
        cells[f"average {name}"] = _metric_average(lines, columns, name, theirs)
    yield Part("", table_of(lines, cells, reading(columns)))


def _clustering(records: Records) -> tuple[Lines, list[Column]] | None:
    """Place NMI and ARI in the paper's lines and columns; None where there is no record of them."""
    data = records.of("clustering")
    own = data[data.metric.isin(("nmi", "ari"))]
    if own.empty:
        return None
    labels, columns = columns_of(own, LARGE, ("nmi", "ari"))
    return in_lines(own, labels, printed_names(["clustering"])), columns


def _metric_average(lines: Lines, columns: Sequence[Column], name: str, theirs: Mapping[str, float]) -> list[Cell]:
    chosen = [column for column in columns if column.metric == name.lower()]
    return average_cells(lines, lines.block(), chosen, printed("clustering"), theirs, decimals(lines.runs))


def variants_part(records: Records, suite: str) -> Iterator[Part]:
    """Show the variants of Di-COT, as differences from it and beside the paper's."""
    data = records.of(suite)
    if data.empty:
        rows = paper_tables()[TABLES.get(suite, suite)]
        numbers = {(name, key): value for name, row in rows.items() for key, value in row.items()}
        yield Part("", printed_only(numbers))
        return
    yield from variant_tables(suite, groups(data))


def data_sets_part(records: Records) -> Iterator[Part]:
    """Show the sizes of the paper's large sets and of what stands in for them: ours beside the paper's."""
    table = paper_tables()["datasets"]
    recorded = set(records.data.target) | set(records.data.source)
    rows = []
    for name in LARGE:
        for one in sorted(_sets_for(name), key=lambda one: (bool(one.stands_in_for), one.name)):
            rows.append((one.name, _sizes(one, table[name], one.name in recorded)))
    about = (
        "Ours (the paper's). A stand-in is another data set of the same kind. Where ours differ from the paper's, "
        "docs/divergences.md says why (D-42 to D-49, D-92 to D-96)."
    )
    heads = [head for head, _ in SIZES.values()]
    yield Part("", text_table("data set", rows, ["in the paper", "is", *heads, "records"], about))


def _sets_for(name: str) -> list[DataSet]:
    """List the registered sets that are this one of the paper's or stand in for it, whatever a machine has."""
    known = [DATASETS.registered(one) for one in DATASETS]
    return [one for one in known if one is not None and name == data_set_key(one.stands_in_for or one.name).upper()]


def _sizes(one: DataSet, paper: Mapping[str, float], recorded: bool) -> list[str]:
    own = (one.sizes or Sizes())._asdict()
    stand_in = bool(one.stands_in_for)
    cells = []
    for field, (_, column) in SIZES.items():
        size = own[field]
        shown = "differs" if size is None else f"{size:,}"
        cells.append(f"{shown} ({paper[column]:,.0f})" if not stand_in else shown)
    exact = column_of(one.name, one.name).exact
    what = "a stand-in" if stand_in else "the paper's" if exact else "another preparation"
    return [data_set_key(one.stands_in_for or one.name).upper(), what, *cells, "yes" if recorded else "none"]
