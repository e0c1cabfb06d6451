"""A pytest plugin that gives the program one more column of visits, in the middle of the others.

`python -m pytest -p tests.support.newer_schema …` runs any test with such a program: the column's row is added to
data/visits.py while that module is imported, as a developer would add it, and nothing else is changed.
"""

import importlib.util
import sys
from importlib.machinery import SourceFileLoader

COLUMN = "made_up"
_BEFORE = '    Column("status", '
_ROW = f'    Column("{COLUMN}", _TEXT, "what no visit had before", "request", since=max_since + 1),\n'


class _WithColumn(SourceFileLoader):
    def get_code(self, fullname):
        text = self.get_data(self.path).decode()
        assert text.count(_BEFORE) == 1
        since = max([1, *(int(part.split(")")[0].split(",")[0]) for part in text.split("since=")[1:])])
        row = _ROW.replace("max_since + 1", str(since + 1))
        return compile(text.replace(_BEFORE, row + _BEFORE), self.path, "exec")


class _Finder:
    def find_spec(self, name, path=None, target=None):
        if name != "data.visits":
            return None
        file = f"{next(iter(path))}/visits.py"
        return importlib.util.spec_from_file_location(name, file, loader=_WithColumn(name, file))


assert "data.visits" not in sys.modules
sys.meta_path.insert(0, _Finder())
