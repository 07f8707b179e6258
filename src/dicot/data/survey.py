"""What recordings look like, in words: what is in them, what is odd, how to read them, and what to do next."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, final

from dicot.core.errors import listed
from dicot.core.settings import text_of, words_of
from dicot.data.clocks import remark_sentences
from dicot.data.devices import JoinAdvice, join_advice
from dicot.data.folders import named_recordings
from dicot.data.inspection import Inspected, inspect_recordings, names_sentence
from dicot.data.kinds import (
    Kinds,
    joined_by_devices,
    others_sentence,
    pattern_of,
    problem_sentences,
    sort_by_kind,
)
from dicot.data.looking import merged_sentence
from dicot.data.reading import Reading
from dicot.data.suggestion import (
    LabelAdvice,
    Suggestion,
    label_advice,
    no_rate_sentence,
    suggest_windows,
)
from dicot.data.tags import find_table

# What a look at recordings goes by.
LOOKED_AT = (
    "time",
    "unit",
    "duplicates",
    "channels",
    "ignore",
    "label",
    "group",
    "gap",
    "names",
    "join",
    "table",
    "table_unit",
)
SUGGESTED = ("unit", "window", "stride", "gap", "resample", "rate", "missing", "scale")
LONGEST_TABLE = 20  # recordings: of more, what is said below the table would be off the screen

PLAIN, WARNING, ERROR = "plain", "warning", "error"


class Line(NamedTuple):
    """A sentence of a survey, and how serious it is."""

    text: str
    tone: str = PLAIN


@final
@dataclass(frozen=True, eq=False)
class Survey:
    """What recordings look like, and what is suggested for them."""

    sources: list[str]  # folders, patterns or files
    settings: Mapping[str, Any]  # of the reading, that were given
    looked: Reading  # what the look went by
    kinds: Kinds
    join: JoinAdvice | None  # where files of several devices may become one recording
    needs_join: bool  # no channel is shared, so that nothing can be suggested before the files are joined
    labels: LabelAdvice
    advice: Suggestion | None  # None: nothing can be suggested
    lines_of_advice: tuple[Line, ...]

    @property
    def is_sound(self) -> bool:
        """Tell whether each file is a recording that can be read."""
        return not self.kinds.unreadable and not self.kinds.others

    def table(self) -> dict[str, list[Any]]:
        """Return a row for each of the first recordings, by the title of its column."""
        rows = self.kinds.readable[:LONGEST_TABLE]
        return {
            "recording": [row.file for row in rows],
            "rows": [f"{row.rows:,}" for row in rows],
            "lasts": ["" if row.seconds is None else _duration(row.seconds) for row in rows],
            "per second": ["" if row.rate is None else f"{row.rate:g}" for row in rows],
            "gaps": [row.gaps for row in rows],
            "missing": [f"{row.missing:.1%}" for row in rows],
            "over time": [row.sparkline for row in rows],
        }

    def lines(self) -> Iterator[Line]:
        """Say what stands below the table."""
        rows = self.kinds.readable
        if len(rows) > LONGEST_TABLE:
            n_more = len(rows) - LONGEST_TABLE
            more = "1 more recording" if n_more == 1 else f"{n_more} more recordings"
            yield Line(f"... and {more}. {_totals(rows)}")
        for channels in dict.fromkeys(row.channels for row in rows):
            yield Line(f"{len(channels)} channel(s): {listed(channels)}")
        yield from _lines_of_offsets(rows)
        for sentence in remark_sentences({row.file: row.remarks for row in rows}):
            yield Line(sentence, WARNING)
        yield from _lines_of_merged(rows, self.looked.duplicates)
        yield from self._lines_of_others()
        if self.join is not None:
            yield Line(self.join.sentence)
        for sentence in self.labels.sentences:
            yield Line(sentence, WARNING)
        yield from self.lines_of_advice

    def problems(self) -> Iterator[Line]:
        """Say which files cannot be read, and why."""
        for sentence in problem_sentences(self.kinds.unreadable):
            yield Line(sentence, ERROR)

    def _lines_of_others(self) -> Iterator[Line]:
        """Name what is no recording, and what tells the recordings from it."""
        if not self.kinds.others:
            return
        yield Line(others_sentence(self.kinds), ERROR)
        pattern = self._pattern()
        if pattern is None:
            yield Line(
                "No simple pattern tells them apart. Other commands leave out what is no recording by themselves, "
                "name it, and end with exit code 3."
            )
        else:
            quoted = shlex.quote(pattern)
            yield Line(f"To leave out what is no recording, name the others by a pattern, as below: {quoted}")

    def _pattern(self) -> str | None:
        """Return a pattern that names the recordings alone, where there is one."""
        folder = Path(self.sources[0])
        if not self.kinds.others or len(self.sources) > 1 or not folder.is_dir():
            return None
        return pattern_of(folder, self.kinds)

    def next_command(self, texts: Mapping[str, str], *, is_written: bool = False) -> list[str]:
        """Return the words of the command that comes next; none where nothing can be read.

        texts : settings as they were written on the command line
        is_written : whether a dicot.toml beside the recordings says what is suggested
        """
        pattern = self._pattern()
        sources = self.sources if pattern is None else [pattern]
        if self.kinds.settings:
            # The same once more, with the setting that was missing.
            missing = {name: str(value) for name, value in self.kinds.settings.items()}
            words = ["inspect", *sources, *words_of(texts), *words_of(missing)]
            return ["dicot", *words, *self.labels.options]
        if self.kinds.readable:
            options = [] if is_written else self._options()
            return ["dicot", "explore", *sources[:1], *options]
        return []

    def command_to_join(self, texts: Mapping[str, str]) -> list[str]:
        """Return the words of the same command, with the options that join the files of several devices."""
        assert self.join is not None
        others = {name: text for name, text in texts.items() if name not in ("names", "join")}
        words = ["dicot", "inspect", *self.sources, *words_of(others)]
        return [*words, *self.join.options, *self.labels.options]

    def _options(self) -> list[str]:
        """Write what was given and what is suggested as a command has it."""
        if self.advice is None:
            return []
        suggested = [name for name in (*SUGGESTED, "label") if name in self.advice.reasons]
        if self.advice.reasons["channels"].startswith("those"):
            suggested.append("channels")  # not all recordings have all channels
        texts: dict[str, str] = {}
        for name in (*LOOKED_AT, *SUGGESTED):
            value = getattr(self.advice.reading, name)
            if value is not None and (name in self.settings or name in suggested):
                texts.setdefault(name, text_of(value))
        return words_of(texts)


def survey_recordings(
    sources: Sequence[str], settings: Mapping[str, Any], of_toml: Mapping[str, Any] | None = None
) -> Survey:
    """Look at recordings, and suggest how to read and cut them.

    settings : fields of a Reading, which count as given
    of_toml : what a dicot.toml beside the recordings says; it counts where `settings` say nothing
    """
    sources = list(sources)
    known = {**(of_toml or {}), **settings}
    looked = Reading(**{name: value for name, value in known.items() if name in LOOKED_AT})
    kinds = sort_by_kind(inspect_recordings(sources, looked))
    join = None if looked.join is not None else _join_advice(kinds)
    needs_join = join is not None and bool(kinds.others)
    if needs_join:
        kinds = joined_by_devices(kinds)

    has_table = find_table(sources, looked.table) is not None
    labels = label_advice(kinds.readable, looked, has_table)
    advice, lines = None, tuple[Line, ...]()
    if kinds.readable and not needs_join:
        advice = suggest_windows(kinds.readable, looked)
        names = _names_sentence(sources, kinds, looked)
        lines = tuple(_lines_of_advice(advice, kinds, known, looked, names))
        if names:
            advice.reasons["names"] = names
        advice = _with_labels(replace(advice, reading=advice.reading.replace(**settings)), labels)
    return Survey(sources, settings, looked, kinds, join, needs_join, labels, advice, lines)


def _join_advice(kinds: Kinds) -> JoinAdvice | None:
    """Tell how files of several devices become one recording, where their names look like it."""
    columns = {}
    for row in (*kinds.readable, *kinds.unreadable, *kinds.others):
        if row.path and row.columns:
            columns[row.file.removesuffix(row.path.suffix)] = row.columns
    return join_advice(columns)


def _names_sentence(sources: Sequence[str], kinds: Kinds, looked: Reading) -> str:
    """Say what the names of the files tell; empty where it is nothing."""
    others = {row.path for row in kinds.others}
    files = named_recordings(sources, looked.table)
    return names_sentence([name for name, file in files.items() if file not in others], looked.names)


def _lines_of_advice(
    advice: Suggestion, kinds: Kinds, known: Mapping[str, Any], looked: Reading, names: str
) -> Iterator[Line]:
    """Say what is suggested and why, and what would lie in no window."""
    for name in SUGGESTED:
        if name in advice.reasons:
            value = text_of(getattr(advice.reading, name)) or "none"
            yield Line(f"{name} {value}: {advice.reasons[name]}")
    without_rate = no_rate_sentence(kinds.readable)
    if without_rate and "rate" not in known:
        yield Line(without_rate)
    if names:
        yield Line(f"names {looked.names or 'none'}: {names}")
    left_out = _left_out_sentence(advice, kinds)
    if left_out:
        yield Line(left_out, WARNING)


def _left_out_sentence(advice: Suggestion, kinds: Kinds) -> str:
    """Say what would lie in no window; empty where it is nothing."""
    if not advice.left:
        return ""
    rates = [row.rate for row in kinds.readable if row.rate is not None]
    return advice.left.sentence(rates[0] if rates else None)


def _with_labels(advice: Suggestion, labels: LabelAdvice) -> Suggestion:
    """Return a suggestion in which columns that look like labels are labels and no channels."""
    if not labels.columns:
        return advice
    channels = tuple(name for name in advice.reading.channels or () if name not in labels.columns)
    reading = advice.reading.replace(label=labels.label, channels=channels or None)
    reasons = {**advice.reasons, "label": " ".join(labels.sentences)}
    if advice.reading.channels != reading.channels:
        reasons["channels"] += ", but for what looks like a label"
    return replace(advice, reading=reading, reasons=reasons)


def _lines_of_merged(rows: Sequence[Inspected], duplicates: str) -> Iterator[Line]:
    """Say how many rows of equal time stamps became one."""
    n_merged = sum(row.n_merged for row in rows)
    if n_merged:
        n_rows = n_merged + sum(row.rows for row in rows)
        n_files = sum(row.n_merged > 0 for row in rows)
        yield Line(merged_sentence(n_merged, n_rows, n_files, duplicates))


def _totals(rows: Sequence[Inspected]) -> str:
    """Say what all recordings hold together."""
    n_rows = sum(row.rows for row in rows)
    seconds = [row.seconds for row in rows if row.seconds is not None]
    lasting = f", {_duration(sum(seconds))}" if len(seconds) == len(rows) else ""
    n_gaps = sum(row.gaps for row in rows)
    # Each value counts alike: recordings have different numbers of rows and of channels.
    n_values = sum(row.rows * len(row.channels) for row in rows)
    n_missing = sum(row.missing * row.rows * len(row.channels) for row in rows)
    missing = n_missing / n_values if n_values else 0.0
    return f"All {len(rows)} together: {n_rows:,} rows{lasting}, {n_gaps:,} gaps, {missing:.1%} missing."


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _lines_of_offsets(rows: Sequence[Inspected]) -> Iterator[Line]:
    """Say once for each channel that its signal stands on a large offset, of the first recording where it does."""
    files: dict[str, list[str]] = {}
    sentences: dict[str, str] = {}
    for row in rows:
        for channel, sentence in row.offsets.items():
            files.setdefault(channel, []).append(row.file)
            sentences.setdefault(channel, sentence)
    for channel, sentence in sentences.items():
        n_others = len(files[channel]) - 1
        where = files[channel][0] + (f" and {n_others} more" if n_others else "")
        yield Line(f"channel {channel} of {where}: {sentence}", WARNING)
