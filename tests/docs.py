"""The parts of the README that are made from the code: `python -m tests.docs` writes them, test_docs.py holds them."""

import re
from pathlib import Path

from queries import CATALOG, JOBS, Entry
from service.settings import SETTINGS

README = Path(__file__).parent.parent / "README.md"


def fields_of(entry: Entry) -> str:
    if entry.shape == "parts":
        return ", ".join(f"`{name}`" for name, _ in entry.members)
    return ", ".join(f"`{field.name}`" for field in entry.fields)


def endpoint_table() -> str:
    rows = [
        f"| `{path}` | {entry.description} | {fields_of(entry)} |"
        for entry, path in [*((entry, f"/analytics/{entry.name}") for entry in CATALOG), (JOBS, "/jobs")]
    ]
    return "\n".join(["| path | answer | fields |", "|---|---|---|", *rows])


def settings_table() -> str:
    rows = [
        f"| `{setting.variable}` | {f'`{setting.default}`' if setting.default else ''} | {setting.meaning} |"
        for setting in SETTINGS
    ]
    return "\n".join(["| variable | default | meaning |", "|---|---|---|", *rows])


def rendered(text: str) -> str:
    for name, table in (("endpoints", endpoint_table()), ("settings", settings_table())):
        pattern = re.compile(rf"(<!-- {name}: .*? -->\n).*?(<!-- end -->)", re.DOTALL)
        text = pattern.sub(lambda found, table=table: f"{found[1]}{table}\n{found[2]}", text, count=1)
    return text


if __name__ == "__main__":
    README.write_text(rendered(README.read_text("utf-8")), "utf-8")
