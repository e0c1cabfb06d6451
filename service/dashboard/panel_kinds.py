"""Kinds of panels beyond the plain table: with a chart, or with derived rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from markupsafe import Markup

from data.text import plural
from service.core.pages import formats
from service.core.pages.charts import columns as column_chart
from service.core.pages.charts import multiples
from service.core.pages.columns import PEOPLE_VISITORS, PROOF, SHARE_OF_PEOPLE, TableColumn
from service.core.pages.markup import joined
from service.dashboard.comparison import REST
from service.dashboard.panel import FilledPanel, PageAnswers, Panel, Selection, Wanted
from service.dashboard.tables import OWN_SITE, Row
from service.dashboard.world_map import MAP_SHAPES, world_map

_JUDGED_BY_ADDRESS: Final = frozenset(("verified", "contradicted"))
_PER_ANSWER: Final = "visits_per_answer"
_MAX_COUNTRIES: Final = 5
"""Maximum number of countries named below the map."""
_TOP_COUNTRIES: Final = Markup('<ol class="largest">{countries}</ol>')
_COUNTRY: Final = Markup("<li>{name} <strong>{count}</strong></li>")


def _share(part: int, whole: int) -> float:
    """Return a part as a percentage of a whole, rounded half up to two decimals, as in answers."""
    return (20_000 * part + whole) // (2 * whole) / 100


@dataclass(frozen=True)
class _Charted(Panel):
    """A panel with a chart, with columns in the order of the answer, and without a comparison of rows."""

    is_compared: bool = False
    leading: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True)
class WeeksByName(_Charted):
    """A line over complete weeks for each AI platform or coding agent."""

    chart_name: ClassVar[str] = "lines"

    def chart(self, _columns: Sequence[TableColumn], rows: Sequence[Row], selection: Selection) -> Markup:
        """Return a line for each name."""
        weeks = selection.days.whole_weeks if selection.days else []
        if not weeks:
            return Markup("")
        counts: dict[str, dict[str, int]] = {}
        for row in rows:
            counts.setdefault(str(row.get("ai_source") or row["tool"]), {})[str(row["week"])] = int(row["visits"])
        return multiples({name: [found.get(week, 0) for week in weeks] for name, found in counts.items()})

    def notes(self, _rows: Sequence[Row], selection: Selection) -> Sequence[str]:
        """Return the notes, including one if no week is complete."""
        has_none = selection.days and not selection.days.whole_weeks
        return ["No complete week in this period." if has_none else "", self.note]


@dataclass(frozen=True)
class Purposes(_Charted):
    """A line for each numeric column of the answer, over the complete days or weeks."""

    unit: str = "day"
    chart_name: ClassVar[str] = "purposes"

    def chart(self, columns: Sequence[TableColumn], rows: Sequence[Row], selection: Selection) -> Markup:
        """Return a line for each numeric column, over the rows that are complete and covered."""
        counted, days = [column for column in columns if column.kind == "number"], selection.days
        drawn = [
            row
            for row in rows
            if days
            and days.is_whole(self.unit, row)
            and not days.is_missing(self.unit, {**row, "total_visits": sum(row[one.field] for one in counted)})
        ]
        return multiples({one.label: [row[one.field] for row in drawn] for one in counted if drawn})


@dataclass(frozen=True)
class Hours(_Charted):
    """A column for each hour of the day."""

    chart_name: ClassVar[str] = "hours"
    drawn: ClassVar[frozenset[str]] = frozenset(("visits",))
    is_in_text: ClassVar[bool] = False

    def chart(self, _columns: Sequence[TableColumn], rows: Sequence[Row], selection: Selection) -> Markup:
        """Return a column for each hour."""
        return column_chart([(f"{row['hour']:02}", int(row["visits"])) for row in rows], selection.group.color)


@dataclass(frozen=True)
class Weekdays(_Charted):
    """A column for each day of the week, as high as its average."""

    chart_name: ClassVar[str] = "weekdays"
    drawn: ClassVar[frozenset[str]] = frozenset(("avg_visits",))

    def chart(self, _columns: Sequence[TableColumn], rows: Sequence[Row], selection: Selection) -> Markup:
        """Return a column for each day of the week."""
        averages = [(str(row["day_name"])[:3], row["avg_visits"] or 0) for row in rows]
        return column_chart(averages, selection.group.color)


@dataclass(frozen=True)
class OfPeople(Panel):
    """A panel that shows only rows with visits by people, ranked by these visits before the limit applies."""

    color: str = "people"
    hint: str = "Visits by people, without people sent by AI."
    empty: str = "No visits by people in this period."
    figures: ClassVar[tuple[str, ...]] = ("human_clicks",)
    leading: ClassVar[tuple[str, ...]] = ("human_clicks", SHARE_OF_PEOPLE.field)
    added: ClassVar[tuple[TableColumn, ...]] = (SHARE_OF_PEOPLE,)

    def rows_of(self, answer: Sequence[Row]) -> Sequence[Row]:
        """Return the rows with visits by people, the largest first, each with its share of all such visits."""
        whole = sum(int(row["human_clicks"]) for row in answer)
        by_people = [row for row in answer if row["human_clicks"]]
        ranked = sorted(by_people, key=lambda row: (REST in row.values(), -int(row["human_clicks"])))
        return [{**row, SHARE_OF_PEOPLE.field: _share(int(row["human_clicks"]), whole)} for row in ranked]


@dataclass(frozen=True)
class CountryMap(OfPeople):
    """The countries that people come from, with a map."""

    chart_name: ClassVar[str] = "map"

    def chart(self, _columns: Sequence[TableColumn], rows: Sequence[Row], _selection: Selection) -> Markup:
        """Return the world map, and the names of the countries with the most visits."""
        people = {str(row["country"]): int(row["human_clicks"]) for row in rows}
        names = {str(row["country"]): str(row["country_name"]) for row in rows}
        known = [code for code in people if code in MAP_SHAPES][:_MAX_COUNTRIES]
        largest = joined(*(_COUNTRY.format(name=names[code], count=f"{people[code]:,}") for code in known))
        return joined(world_map(people, names), _TOP_COUNTRIES.format(countries=largest) if known else Markup(""))

    def nothing(self, rows: Sequence[Row], selection: Selection) -> Mapping[str, str] | None:
        """Return the text to show instead of the table if there are no rows, or if no row has a known country."""
        if not rows or any(row["country"] != "unknown" for row in rows):
            return super().nothing(rows, selection)
        text, command = "These visits have no country.", ""
        if selection.links:
            text = "Addresses are not kept, so past visits remain without countries. For new visits, run:"
            command = "traffic countries"
        return {"title": "Countries are unknown", "text": text, "command": command}


@dataclass(frozen=True)
class Agents(Panel):
    """Agents. On the page Agents, notes state the total visits and bytes and explain unknown agents. They also explain
    how to verify agents, as long as no agent's address has been checked.
    """

    explains: bool = False  # whether the panel has these notes

    def notes(self, rows: Sequence[Row], selection: Selection) -> Sequence[str]:
        """Return the notes; on the page Agents, these are about totals, unknown agents and verification."""
        if not self.explains:
            return super().notes(rows, selection)
        visits, sent = (sum(int(row[name]) for row in rows) for name in ("visits", "bytes_sent"))
        notes = [f"In total: {plural(visits, 'visit')}{f', {formats.size(sent)}' if sent else ''}.", self.note]
        if any(row["agent"] == "unknown" for row in rows):
            notes.append(
                "Unknown agents give no name: they request what only scanners request, pretend to be browsers, have "
                "no user agent, or show another sign of a program."
            )
        if selection.links and not any(row["confidence"] in _JUDGED_BY_ADDRESS for row in rows):
            notes.append(
                "No agent is verified: run `traffic agents refresh` to fetch the addresses that operators publish."
            )
        return notes


@dataclass(frozen=True)
class Operators(Panel):
    """Operators, with the evidence for their agents; visits per answer only if every day is covered."""

    added: ClassVar[tuple[TableColumn, ...]] = (PROOF,)

    def filled(self, answer: Sequence[Row], selection: Selection, before: Sequence[Row] | None = None) -> FilledPanel:
        """Return the panel, without visits per answer if days are missing, since that figure would compare different
        days.
        """
        if selection.days and selection.days.uncovered_days:
            answer = [{**row, _PER_ANSWER: None} for row in answer]
        return super().filled(answer, selection, before)

    def rows_of(self, answer: Sequence[Row]) -> Sequence[Row]:
        """Return the rows with their proof in words."""
        return [{**row, PROOF.field: _proof(row)} for row in answer]

    def notes(self, rows: Sequence[Row], selection: Selection) -> Sequence[str]:
        """Return the notes, including one if visits per answer are left out."""
        missing = selection.days.uncovered_days if selection.days else 0
        told = f"Sent per answer is left out, since data is missing on {plural(missing, 'day')}." if missing else ""
        return [told, *super().notes(rows, selection)]


def _proof(row: Row) -> str:
    """Return the number of verified, signed and merely claimed fetches, and of contradicted visits, in words."""
    counts = {name: int(row[name]) for name in ("verified", "signed")}
    counts["claimed"] = int(row["agent_fetches"]) - sum(counts.values())
    counts["under a fake name"] = int(row["contradicted"])
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)


@dataclass(frozen=True)
class Referrers(Panel):
    """Referring hosts, with the organization's own hosts as one row."""

    def rows_of(self, answer: Sequence[Row]) -> Sequence[Row]:
        """Return the rows, the largest first, with all internal referrers summed up in one row."""
        own = [row for row in answer if row["referrer_type"] == "internal"]
        if not own:
            return answer
        sums = {name: sum(int(row[name]) for row in own) for name in ("visits", "human_clicks", "ai_referrals")}
        whole = sum(int(row["visits"]) for row in answer)
        share = _share(sums["visits"], whole)
        merged = {**own[0], **sums, "referrer": OWN_SITE, "source": OWN_SITE, "percentage": share}
        others = [row for row in answer if row["referrer_type"] != "internal"]
        return sorted([merged, *others], key=lambda row: (REST in row.values(), -int(row["visits"])))

    def compared(self, rows: Sequence[Row], before: Sequence[Row]) -> list[Row]:
        """Return the rows compared with the previous period, after summing up its internal referrers as well."""
        return super().compared(rows, self.rows_of(before))

    def notes(self, rows: Sequence[Row], selection: Selection) -> Sequence[str]:
        """Return the notes, including an explanation if people sent by AI arrived without a referrer."""
        has_tagged = any(row["referrer_type"] == "direct" and row["ai_referrals"] for row in rows)
        told = (
            "Direct visits by people sent by AI have a parameter, such as utm_source, that names the product."
            if has_tagged
            else ""
        )
        return [told, *super().notes(rows, selection)]


@dataclass(frozen=True)
class Values(Panel):
    """The estimated value of visits; without rows if no values are configured."""

    def rows_of(self, answer: Sequence[Row]) -> Sequence[Row]:
        """Return the rows, or none if every visit is worth nothing."""
        return answer if any(row["value_per_visit"] for row in answer) else []


@dataclass(frozen=True)
class Domains(Panel):
    """Domains with their human visitors, which come from a second answer that counts only people."""

    added: ClassVar[tuple[TableColumn, ...]] = (PEOPLE_VISITORS,)

    def wants(self, selection: Selection) -> list[Wanted]:
        """Return the domains of the shown visits, and the domains of people's visits unless rows are compared."""
        wanted = super().wants(selection)
        scope = wanted[0][1]
        return wanted if wanted[1:] else [*wanted, (self.entry, replace(scope, traffic_group="people"))]

    def render(self, answers: PageAnswers, selection: Selection) -> FilledPanel:
        """Return the domains and, unless compared, their human visitors: None if these may be counted in (other)."""
        (wanted, of_people), compared = self.wants(selection), selection.filters.compares and selection.comparison
        if compared:
            return super().render(answers, selection)
        found = {row["domain"]: row["unique_visitors"] for row in answers[of_people]}
        missing = None if REST in found else 0
        rows = [
            {**row, PEOPLE_VISITORS.field: found.get(row["domain"], missing) if row["domain"] != REST else None}
            for row in answers[wanted]
        ]
        return self.filled(rows, selection)


@dataclass(frozen=True)
class LinkList(Panel):
    """A part of the list of all links."""

    is_compared: bool = False
    is_list: ClassVar[bool] = True

    def wants(self, selection: Selection) -> list[Wanted]:
        """Return the part of the list of all links that the page's URL requests."""
        scope = selection.scope_for(self.entry)
        return [(self.entry, selection.listing.scope(scope) if selection.listing else scope)]

    def count(self, rows: Sequence[Row]) -> int:
        """Return the total number of links found."""
        return int(rows[0]["links_found"]) if rows else 0


@dataclass(frozen=True)
class WithJobs(Panel):
    """Rows that may each have a job."""

    is_compared: bool = False
    has_jobs: ClassVar[bool] = True
