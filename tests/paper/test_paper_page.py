"""The paper on one page: every exhibit, ours beside the paper's, what each rests on; the published page is current."""

import re
from pathlib import Path

import pytest
from scipy import stats
from tests.paper.records import CONTROLS, everything, paper_markdown

from bench.ledger import read_records
from bench.paper import reports
from bench.paper.grid import Column, column_of
from bench.paper.numbers import paper_tables
from bench.paper.page import EXHIBITS, name_of
from bench.report.benchmark import Request
from bench.report.frame import frame, trial_note
from bench.report.pages import to_document
from bench.suites import SuiteOptions, suite_jobs
from dicot.judge.report.page import drawn

ROOT = Path(__file__).resolve().parents[2]
ORDER = (
    "figure1 figure2 table1 table2 figure3 table3 figure4 table4 figure5 table5 table6 table7 figure6 table8 table9 "
    "table10 figure7 table11 table12 table13 table14 table15 table16 table17"
)


@pytest.fixture(scope="module")
def page():
    return paper_markdown(frame(everything()))


def section(text, key):
    """What stands on the page about one exhibit."""
    return text.split(f"\n## {name_of(key)}. ")[1].split("\n## ")[0]


def table(text):
    """The first table of a text: rows by name, cells by heading."""
    lines = text[text.index("\n| ") :].strip().split("\n\n")[0].splitlines()
    (_, *head), _, *rows = ([cell.strip() for cell in line[1:-1].split(" | ")] for line in lines)
    return {name: dict(zip(head, cells, strict=True)) for name, *cells in rows}


@pytest.mark.slow
def test_every_figure_and_table_of_the_paper_is_there_in_its_order(page):
    assert " ".join(EXHIBITS) == ORDER
    found = re.findall(r"^## ((?:Figure|Table) \d+)\. ", page, flags=re.M)
    assert found == [name_of(key) for key in EXHIBITS]


def test_without_a_record_each_exhibit_says_what_is_missing_and_shows_the_papers_numbers():
    text = paper_markdown(frame([]))
    for key, one in EXHIBITS.items():
        own = section(text, key)
        assert one.caption in own
        if one.suites:
            assert f"nothing yet: there is no record of the suite {' or '.join(one.suites)}." in own
            assert f"`python -m bench paper --run --only {key}`" in own
        if key.startswith("table"):
            assert "\n| " in own
    assert "| Di-COT | 85.28 | 93.23 | 71.38 | 99.41 | 85.21 | 63.92 | 83.07 |" in section(text, "table1")
    assert "nothing yet: there is no file maps.npz" in section(text, "figure5")


def test_an_exhibit_says_what_stands_in_for_a_set_and_what_is_missing(page):
    own = section(page, "table1")
    assert "0 of the paper's 6 large sets; stand-ins: mitbih-arrhythmia for ECG, hapt for HARTH" in own
    assert "missing: PAMAP2, SKODA." in own
    row = table(own)["Di-COT"]
    assert re.fullmatch(r"\**\d\d\.\d\d ± \d\.\d\d \(93\.23\)\**", row["hapt, for HARTH"])  # no difference
    assert row["PAMAP2, missing"] == "(71.38)"
    assert "commonest class of the training cases: hapt 16.46, mitbih-arrhythmia 55.08, sleepedf-night 7.34" in own


def test_intervals_are_students_over_the_seeds_of_a_line_and_one_seed_has_none():
    rows = [row for row in everything() if row["suite"] == "large" and row["protocol"] == "linear"]
    for row in rows:
        row["value"] = 80.0 + row["seed"]
    rows = [row for row in rows if row["contender"] not in ("cost", "tnc") or row["seed"] == 1]
    rows = [row for row in rows if (row["contender"], row["target"], row["seed"]) != ("soft", "hapt", 2)]
    text = section(paper_markdown(frame(rows), only=["table1"]), "table1")
    own, half = table(text), stats.t.ppf(0.975, 1) * 0.5  # two seeds, 81 and 82: a standard error of 0.5
    assert own["Di-COT"]["hapt, for HARTH"].strip("*").startswith(f"81.50 ± {half:.2f} (93.23)")
    assert own["Di-COT"]["average of 4"].strip("*").startswith(f"81.50 ± {half:.2f} (")
    assert own["CoST"]["hapt, for HARTH"].startswith("81.00 (") and own["CoST"]["average of 4"].startswith("81.00 (")
    assert own["Soft"]["hapt, for HARTH"].startswith("81.00 (n = 1) (")
    assert "Seeds 1, 2: n = 1 to 2 for Soft; n = 1 for TNC, CoST; n = 2 for all others." in text


def test_ours_stand_beside_the_papers_with_the_difference_on_the_same_set(page):
    row = table(section(page, "table17"))["Beef"]
    printed = paper_tables()["ucr"]["Beef"]["CaTT"]
    ours, paper, gap = re.fullmatch(r"\**([\d.]+) \(([\d.]+), ([+-][\d.]+)\)\**", row["CaTT"]).groups()
    assert "per_epoch" not in " ".join(row)
    assert float(paper) == printed and abs(float(ours) - printed - float(gap)) < 0.006


def test_controls_stand_in_every_table_of_scores_and_never_in_the_papers_ranks(page):
    for key in ("table1", "table3", "table5", "table6", "table7", "table10", "table11", "figure3", "figure4"):
        rows = table(section(page, key))
        assert {"calibrated"} < set(rows) and {"random", "Random Init."} & set(rows), key
    first = table(section(page, "table2"))
    assert list(first)[:12] == list(paper_tables()["ucr_uea_summary"])
    ranks = [float(first[name]["UCR rank"].strip("*").split(" ")[0]) for name in list(first)[:12]]
    assert abs(sum(ranks) - 12 * 13 / 2) < 0.1  # the mean of ranks 1 to 12, twelve times
    assert all(first[name]["UCR rank"] == "" for name in list(first)[12:])
    assert "of 6 that every contender ranked has" in section(page, "table2")


def test_both_schedules_are_compared_method_by_method_on_the_sets_that_have_both(page):
    data = frame(everything())
    own = data[(data.metric == "accuracy") & (data.protocol == "linear") & (data.source == data.target)]
    own = own[own.suite.isin(["ucr", "uea"]) & (own.contender == "catt")]
    means = own.groupby("schedule").value.mean()
    row = table(section(page, "table2").partition("### Both schedules")[2])["CaTT"]
    assert row["data sets"] == str(own.target.nunique())
    assert [row["per_step"], row["per_epoch"]] == [f"{means[name]:.2f}" for name in ("per_step", "per_epoch")]
    few = frame([r for r in everything() if r["schedule"] != "per_epoch"])
    assert "### Both" not in section(paper_markdown(few, only=["table2"]), "table2")


def test_seconds_of_a_shared_gpu_are_no_times():
    """Figures 1 and 7, Tables 1 and 2: not measured, unless every run was alone on one device with a name."""
    shared = [{**row, "device": "NVIDIA H200 (shared)"} for row in everything()]
    text = paper_markdown(frame(shared), only=["figure1", "table1", "table2", "figure7"])
    for key in ("figure1", "table1", "table2"):
        assert table(section(text, key))["Di-COT"]["time to fit"].startswith("not measured")
    assert "figure1.svg" not in text and "figure7-" not in text and "Not measured: there is no file times.csv" in text


def test_a_share_of_the_labels_says_how_many_cases_that_is_and_where_it_is_all():
    rows = everything()
    for row in rows:
        row["subsets"] = "authors" if row["protocol"] == "few_1pct" else "per-seed" if "knn" in row["protocol"] else ""
    text = paper_markdown(frame(rows), only=["table3", "table15"])
    few = "hapt 86 of 9,031, mitbih-arrhythmia 23 of 2,297, sleepedf-night 5 of 504, wisdm2019 38 of 5,272."
    assert f"few_1pct is, by data set: {few}" in section(text, "table3")
    many = "hapt 3,708 of 9,031, mitbih-arrhythmia 1,092 of 2,297, sleepedf-night all 504, wisdm2019 all 5,272."
    assert f"knn_500 is, by data set: {many}" in section(text, "table15")


def test_the_plan_counts_what_is_recorded_in_the_precision_of_its_family():
    """The published records of the large sets are in TF32, those of the archives in float32."""
    sets = ("hapt", "wisdm2019", "sleepedf-night", "mitbih-arrhythmia")
    jobs = {job.key for job in suite_jobs(["large"], SuiteOptions(sets=sets, seeds=(1,)))}
    recorded = {one.key for one in published_results() if one.suite == "large" and one.schedule != "per_epoch"}
    assert len(jobs) == 76 and len(recorded & jobs) >= 75  # CaTT on ECG's stand-in had another temperature
    trained = [job.contender.settings for job in suite_jobs(["ablation"], SuiteOptions()) if job.contender.trained]
    assert {one["precision"] for one in trained} == {"tf32", "float32"}
    assert {
        job.contender.settings.get("precision") for job in suite_jobs(["large"], SuiteOptions(precision="float32"))
    } == {"float32", None}


def test_an_archive_has_three_seeds_of_those_that_are_close_and_one_of_all_others():
    seeds = {}
    for job in suite_jobs(["uea"], SuiteOptions(sets=("ERing",))):
        seeds.setdefault(job.contender.name, set()).add(job.seed)
    assert {name for name, own in seeds.items() if own == {1, 2, 3}} == {"dicot", "catt", "ts2vec", *CONTROLS}
    assert len(seeds) == 15 and all(own in ({1}, {1, 2, 3}) for own in seeds.values())
    few = suite_jobs(["uea"], SuiteOptions(sets=("ERing",), contenders=("cost",)))
    assert {job.contender.name for job in few} == {"cost", *CONTROLS}


def test_the_papers_random_forest_and_minirocket_are_ours_by_their_own_classifier():
    rows = everything()
    for row in rows:
        if row["suite"] == "ucr" and row["contender"] in ("minirocket", "raw-mean"):
            row["value"] = {"ridge": 91.0, "forest": 31.0}.get(row["protocol"], 50.0)
    own = table(section(paper_markdown(frame(rows), only=["table2"]), "table2"))
    assert own["MiniRocket"]["UCR accuracy, 6 sets"].strip("*").startswith("91.00")
    assert own["Random Forest"]["UCR accuracy, 6 sets"].startswith("31.00")


def published_results(folder="."):
    return read_records(None, ROOT / "results" / folder)[0]


def published(folder="."):
    return frame(row for result in published_results(folder) for row in result.tidy())


@pytest.mark.slow
def test_the_published_page_is_that_of_the_published_results():
    page = ROOT / "docs" / "results" / "paper" / "report.md"
    assert page.read_text(encoding="utf-8") == paper_markdown(published(), ROOT / "results"), (
        "Make it anew: python -m bench paper --records results --out docs/results/paper"
    )


@pytest.mark.parametrize(
    ("suite", "how"),
    [("ucr", {"beside": reports}), ("uea", {"beside": reports}), pytest.param("best", {}, marks=pytest.mark.slow)],
)
def test_the_published_reports_are_those_of_the_published_results(suite, how):
    request = Request.of(suite, published("best" if suite == "best" else "."), **how)
    parts = drawn(request.parts(), named_only=True)
    made = to_document(f"Benchmark: {suite}", request.facts(), trial_note(request.data), parts)
    text = (ROOT / "docs" / "results" / suite / "report.md").read_text(encoding="utf-8")
    changing = re.compile(r"^- (report made|command|no record of): .*\n", flags=re.M)
    assert changing.sub("", text) == changing.sub("", made), "Make it anew, by the command in results/README.md"


def test_a_set_that_the_paper_used_otherwise_stands_beside_its_number_without_a_difference():
    assert column_of("pamap2-paper", "pamap2-paper") == Column("PAMAP2", "PAMAP2", True)
    assert not column_of("pamap2", "pamap2").exact and column_of("ecg-full", "ecg-full").paper == "ECG"
    assert column_of("hapt", "sleepedf-night").paper == ""  # no such transfer in the paper
    assert column_of("hapt", "hapt").by("nmi") == Column("hapt NMI, for HARTH", "HARTH NMI", metric="nmi")


def test_the_data_sets_stand_beside_the_papers_sizes(page):
    rows = table(section(page, "table8"))
    assert rows["harth"]["test cases"] == "2,784 (2,785)" and rows["harth"]["records"] == "none"
    assert rows["hapt"] == rows["hapt"] | {"in the paper": "HARTH", "is": "a stand-in", "records": "yes"}
    assert rows["pamap2"]["is"] == "another preparation"
