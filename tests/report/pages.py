"""Read a page as a browser would, with the standard library's parser."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

from coremcmc.report import render

LIMIT = 3_000_000
VOID = {"meta", "link", "br", "img", "hr", "input"}


@dataclass
class Page(HTMLParser):
    """What a page holds; the constructor reads it.

    Elements that are not closed, or closed out of turn, raise.
    """

    source: str
    tags: list = field(default_factory=list)
    links: list = field(default_factory=list)
    tables: list = field(default_factory=list)
    text: str = ""

    def __post_init__(self):
        super().__init__(convert_charrefs=True)
        self._open = []
        self.feed(self.source)
        self.close()
        assert not self._open, f"not closed: {self._open}"

    def handle_starttag(self, tag, attributes):
        self._start(tag, dict(attributes))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self._start(tag, dict(attributes))

    def handle_endtag(self, tag):
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag, f"</{tag}> closes another element"

    def _start(self, tag, attributes):
        self.tags.append((tag, attributes))
        self.links += [attributes[name] for name in ("href", "src", "srcset") if name in attributes]
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_data(self, data):
        if "style" in self._open:
            return
        self.text += data
        if self._open and self._open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data

    def count(self, tag, **wanted):
        """How many elements of this kind have these attributes."""
        return sum(
            name == tag and all(given.get(k.rstrip("_")) == v for k, v in wanted.items())
            for name, given in self.tags
        )

    def ids(self):
        return [attributes["id"] for _, attributes in self.tags if "id" in attributes]

    def table(self, heading):
        """Return the table whose header has this word, as dicts of its rows by header."""
        for rows in self.tables:
            for place, header in enumerate(rows):
                if heading in header:
                    return header, rows[place + 1 :]
        raise AssertionError(f"no table has a column {heading!r}")


def page_of(fit, **options):
    text = render(fit, **options)
    assert len(text.encode()) < LIMIT
    return Page(text)


def numbers_in(cell):
    return float(cell.replace(",", ""))
