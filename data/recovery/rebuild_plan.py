"""Decides which of a lake's visit files count, from their footers and the remains of the manifest.

Replaced files and files from repeated imports do not count. Undecided cases become questions for the operator.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import NamedTuple

from data.errors import LakeDamaged
from data.manifest.logs import Batch
from data.progress import Progress, ignore_progress
from data.recovery.repetitions import Repetition, repetitions
from data.store.footers import VisitFile, merged_batches, read_visit_file
from data.store.unknown import partition_of
from data.text import plural


class Question(NamedTuple):
    """A question for the operator."""

    text: str  # the finding, as a sentence without a full stop
    asks: str
    files: list[VisitFile]  # files that do not count if the answer is no
    repetitions: Sequence[Repetition] = ()  # repetitions that count once if the answer is yes


@dataclass
class RebuildPlan:
    """The visit files, divided by whether they will count, and the questions to answer first."""

    counted: list[VisitFile] = field(default_factory=list)
    replaced: list[VisitFile] = field(default_factory=list)
    """Files with visits that are in other files or have been erased. These files are deleted a day after the rebuild.
    """
    repeated: list[VisitFile] = field(default_factory=list)
    """Other files that do not count. The new manifest does not list them."""
    damaged: list[str] = field(default_factory=list)  # for each unreadable file, why it cannot be read
    questions: list[Question] = field(default_factory=list)  # all of their files are in `counted`
    repetitions: list[Repetition] = field(default_factory=list)
    """Files that will count without the visits that are also in older files."""

    @property
    def files(self) -> list[VisitFile]:
        """All readable files."""
        return [*self.counted, *self.replaced, *self.repeated]

    def answer(self, question: Question, is_yes: bool) -> None:
        """Apply the answer to a question: whether its files count, or whether its repeated visits count only once."""
        if is_yes:
            self.repetitions += question.repetitions
        else:
            self.repeated += question.files
            self.counted = [file for file in self.counted if file not in question.files]


def plan_rebuild(root: Path, known: Mapping[str, bool], progress: Progress = ignore_progress) -> RebuildPlan:
    """Decide which visit files of the lake at `root` count.

    `known` maps the name of each file listed in the remains of the manifest to whether the file was live.
    """
    plan = RebuildPlan()
    paths: dict[str, Path] = {}  # by the name of the file; a file in visits/ takes precedence over one in unknown/
    for folder in ("unknown", "visits"):
        paths |= {path.name: path for path in sorted(root.glob(f"{folder}/organization=[!_]*/day=*/*.parquet"))}
    files = []
    for number, path in enumerate(paths.values(), 1):
        try:
            partition_of(path)
            files.append(read_visit_file(path))
        except LakeDamaged as error:
            plan.damaged.append(str(error))
        progress(number, len(paths))
    replaced, rewritten, doubtful = _judge_rewrites(files)
    gone = {name for name, is_live in known.items() if not is_live} | replaced
    plan.replaced = [file for file in files if file.path.name in gone]
    open_files = [file for file in files if file.path.name not in gone]
    repeated = {file.path for file in (*rewritten, *_repeated_batches(files), *_repeated_flushes(files))}
    plan.repeated = [file for file in open_files if file.path in repeated]
    plan.counted = [file for file in open_files if file.path not in repeated]
    _ask_about_repetitions(plan, known, doubtful, root / ".staging")
    _ask_about_unfinished(plan, known)
    return plan


def missing_files(root: Path, known: Iterable[tuple[str, str, bool]], plan: RebuildPlan) -> Iterator[Path]:
    """Yield the paths of missing files that the old manifest lists as live.

    `known` are its rows: path, SHA-256 and whether the file is live.

    Replaced files do not count as missing. An unknown file that replaced other files of its day has the visits of all
    missing files of that day, even of files replaced earlier, since names are not kept forever. An unknown file without
    visits may have replaced files of any day.
    """
    known = list(known)
    names = {path.rpartition("/")[2] for path, *_ in known}
    there = {name for file in plan.files for name in (file.path.name, *file.footer.replaces)}
    newer = [file for file in plan.files if file.footer.replaces and file.path.name not in names]
    rewritten = {(file.footer.organization, file.footer.day if file.visits else None) for file in newer}
    for path in (root / path for path, _, is_live in known if is_live):
        organization, day = partition_of(path)
        is_replaced = path.name in there or not rewritten.isdisjoint({(organization, day), (organization, None)})
        if not is_replaced and not path.exists():
            yield path


def _judge_rewrites(files: list[VisitFile]) -> tuple[set[str], list[VisitFile], list[VisitFile]]:
    """Examine the files that replaced others; return the names they replaced, repeated files, and doubtful files.

    If two files replaced the same file, only the newer was registered, unless an older manifest was restored. A file is
    repeated if each file it was meant to replace has been replaced by newer files or still exists. A file is doubtful
    if newer files have only some of its visits and the rest exist nowhere else.
    """
    replaced, repeated, doubtful = set[str](), [], []
    there = {file.path.name for file in files}
    rewrites = [file for file in files if file.footer.replaces]
    for file in sorted(rewrites, key=lambda file: file.footer.written_at, reverse=True):
        sources = set(file.footer.replaces)
        if file.path.name not in replaced and not replaced.isdisjoint(sources):
            if sources <= replaced | there:
                repeated.append(file)
                continue
            doubtful.append(file)
        replaced |= sources
    return replaced, repeated, doubtful


def _batches(files: Iterable[VisitFile]) -> dict[tuple[str, int], Batch]:
    """Return the longest record of each batch, by organization and id."""
    records: defaultdict[str, list[Batch]] = defaultdict(list)
    for file in files:
        records[file.footer.organization] += file.footer.batches
    return {
        (organization, batch.id): batch
        for organization, batches in records.items()
        for batch in merged_batches(batches)
    }


def _repeated_batches(files: list[VisitFile]) -> Iterable[VisitFile]:
    """Yield the files from imports of contents that were also imported under another id.

    For each content, one import is chosen, which counts on each day for which it has a file, even if its visits were
    removed. The other import may have overwritten the chosen import's files for other days, since files with the same
    content have the same names.
    """
    rewritten = {
        (file.footer.organization, batch.id) for file in files if file.footer.replaces for batch in file.footer.batches
    }
    chosen: dict[tuple[str, str], int] = {}
    batches = _batches(files)
    for (organization, key), batch in sorted(batches.items(), key=lambda item: item[1].imported_at):
        content = organization, batch.sha256
        if batch.sha256 and batch.imported_at and (organization, chosen.get(content, 0)) not in rewritten:
            chosen[content] = key
    days = {(file.footer.organization, batch.id, file.footer.day) for file in files for batch in file.footer.batches}
    for file in files:
        organization, day = file.footer.organization, file.footer.day
        if file.footer.batches and not file.footer.replaces:
            mine = [batches[organization, batch.id] for batch in file.footer.batches]
            kept = [chosen.get((organization, one.sha256), one.id) for one in mine]
            if all(key != one.id and (organization, key, day) in days for one, key in zip(mine, kept, strict=True)):
                yield file


def _repeated_flushes(files: Iterable[VisitFile]) -> Iterable[VisitFile]:
    """Yield each file of pending visits that are all contained in another such file of the same day.

    Such files remain if the process was killed before the commit, or if an older manifest was restored with the visits
    still pending.
    """
    days: defaultdict[tuple[str, date], list[VisitFile]] = defaultdict(list)
    for file in files:
        if file.footer.pending and not file.footer.replaces:
            days[file.footer.organization, file.footer.day].append(file)
    for flushed in days.values():
        kept: list[VisitFile] = []
        sizes = {file.path: sum(part.last - part.first for part in file.footer.pending) for file in flushed}
        for file in sorted(flushed, key=lambda file: (sizes[file.path], file.footer.written_at), reverse=True):
            others = [other.footer.pending for other in kept]
            if any(all(any(part.contains(one) for part in other) for one in file.footer.pending) for other in others):
                yield file
            else:
                kept.append(file)


def _ask_about_repetitions(
    plan: RebuildPlan, known: Mapping[str, bool], doubtful: list[VisitFile], staging: Path
) -> None:
    """Ask about visits in the manifest's files that repeat visits in older files that the manifest does not list."""
    unknown = {file.path.name for file in plan.counted if known and file.path.name not in known}
    unknown |= {file.path.name for file in doubtful}
    newer = {file.path.name for file in plan.counted} - unknown
    found = defaultdict[str, list[Repetition]](list)
    for repetition in repetitions(plan.counted, newer, unknown, staging) if unknown else ():
        found[repetition.file.footer.organization].append(repetition)
    for organization, repeated in found.items():
        older = [file for repetition in repeated for file in repetition.older]
        batches = {batch.id for file in older for batch in file.footer.batches}
        visits, files = sum(one.visits for one in repeated), len({file.path for file in older})
        text = (
            f"{plural(visits, 'visit')} of {organization} in {plural(len(repeated), 'file')} of the manifest are also "
            f"in {plural(files, 'older file')} that the manifest does not list, perhaps because a log that has grown "
            "was imported again; answer n if they are different visits"
        )
        lines = [file for file in plan.counted if file.path.name in unknown and file.footer.unfinished_of in batches]
        repeated[-1] = repeated[-1]._replace(unfinished=lines)
        plan.questions.append(Question(text, "Count them once?", [], repeated))


def _ask_about_unfinished(plan: RebuildPlan, known: Mapping[str, bool]) -> None:
    """Ask about imports without their last file, which records that the import was finished."""
    finished = {key for key, batch in _batches([*plan.counted, *plan.replaced]).items() if batch.imported_at}
    unfinished: defaultdict[tuple[str, int], list[VisitFile]] = defaultdict(list)
    for file in plan.counted:
        if file.footer.batches and file.path.name not in known:
            keys = [(file.footer.organization, batch.id) for batch in file.footer.batches]
            if not finished.intersection(keys):
                unfinished[keys[0]].append(file)
    for (organization, _), files in unfinished.items():
        visits = sum(file.visits for file in files)
        least = f"an import of {organization} with at least {plural(visits, 'visit')}"
        text = f"{least} was not finished, or its last file is lost; answer n if you will import the log again"
        plan.questions.append(Question(text, "Count them?", files))
