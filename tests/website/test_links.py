"""Every link leads somewhere, every picture is there and has words for those who do not see it."""

from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest


class Page(HTMLParser):
    """Links, sources, anchors and pictures of a page."""

    def __init__(self, file):
        super().__init__()
        self.links, self.anchors, self.pictures = [], set(), []
        self.scripts = ""
        self.feed(file.read_text())

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        self.links += [found[name] for name in ("href", "src", "poster") if found.get(name)]
        if tag == "img":
            self.pictures.append(found)


@pytest.fixture(scope="module")
def read(pages):
    return {page: Page(page) for page in pages}


def test_links(read, site):
    broken = []
    for page, content in read.items():
        for link in content.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not target.is_file():
                broken.append(f"{page.relative_to(site)}: {link}")
            elif target in read and unquote(parts.fragment) not in {"", *read[target].anchors}:
                broken.append(f"{page.relative_to(site)}: {link} (no such place)")
    assert not broken


def test_nothing_is_fetched(read, site):
    """Sources of scripts, styles, fonts and pictures are files of the site."""
    for page in read:
        for word in ('src="http', "src='http", "@import", 'src="//'):
            assert word not in page.read_text(), f"{page.relative_to(site)}: {word}"
    for style in site.rglob("*.css"):
        assert "url(http" not in style.read_text().replace('"', ""), style


def test_pictures_have_words(read, site):
    for page, content in read.items():
        for picture in content.pictures:
            assert picture.get("alt", "").strip(), f"{page.relative_to(site)}: {picture['src']}"
