"""The site in a browser, from the disk and without a network."""

import time

import numpy as np
import pytest
from website.browser import Browser, need_browser


@pytest.fixture(scope="module")
def browser():
    need_browser()
    found = Browser()
    yield found
    found.close()


def test_no_page_complains(browser, pages, site):
    """No error in the console, no picture that is not drawn, formulas set."""
    complaints = []
    for page in pages:
        browser.open(page)
        name = page.relative_to(site)
        browser.wait("return document.readyState === 'complete'")
        if browser.run("return Boolean(window.MathJax)"):
            browser.run("MathJax.startup.promise.then(() => { window.allIsSet = true; })")
            browser.wait("return window.allIsSet")
        complaints += [f"{name}: {error}" for error in browser.errors()]
        missing = browser.run(
            "return [...document.images].filter(i => i.loading !== 'lazy' && !i.naturalWidth)"
            ".map(i => i.src)"
        )
        complaints += [f"{name}: no picture {source}" for source in missing]
        bad = browser.run("return document.querySelectorAll('mjx-merror').length")
        complaints += [f"{name}: {bad} formulas are wrong"] if bad else []
    assert not complaints


def test_code_and_formulas_fit(browser, pages, site):
    """In a window of 1280 pixels, no block of code and no formula is wider than its column."""
    browser.resize(1280, 900)
    wide = []
    for page in pages:
        browser.open(page)
        browser.wait("return document.readyState === 'complete'")
        if browser.run("return Boolean(window.MathJax)"):
            browser.run("MathJax.startup.promise.then(() => { window.allIsSet = true; })")
            browser.wait("return window.allIsSet")
        wide += [
            f"{page.relative_to(site)}: {over} pixels in {words!r}"
            for over, words in browser.run(
                "return [...document.querySelectorAll('.bd-article pre, mjx-container[display]')]"
                ".map(e => [e.scrollWidth - e.clientWidth, e.textContent.trim().slice(0, 40)])"
                ".filter(([over]) => over > 1)"
            )
        ]
    assert not wide


def test_filter_of_messages(browser, site):
    """The table of messages shows the rows with the words that are typed, and their remedies."""
    browser.open(site / "guide" / "errors.html")
    browser.wait("return document.readyState === 'complete'")
    shown = (
        "return [...document.querySelectorAll('table.messages tbody tr')]"
        ".filter(row => row.checkVisibility()).map(row => row.textContent)"
    )
    everything = browser.run(shown)
    browser.run(
        "const f = document.getElementById('filter'); f.value = 'degree 1.0';"
        "f.dispatchEvent(new Event('input'));"
    )
    found = browser.run(shown)
    assert 0 < len(found) < 10 < 500 < len(everything)
    assert any("degree must be one of 1, 2, 3, 4, not 1.0" in row for row in found)
    assert all("Give one of 1, 2, 3, 4" in row for row in found if "degree must be one of" in row)


def test_cards_of_a_tag(browser, site):
    """A button of the gallery leaves the cards with its tag, and the sections that have one."""
    browser.open(site / "gallery" / "index.html")
    browser.wait("return document.querySelectorAll('.gallery-filter button').length > 5")
    shown = "return [...document.querySelectorAll('.sd-col')].filter(c => c.checkVisibility())"
    every = browser.run(f"{shown}.length")
    buttons = "[...document.querySelectorAll('.gallery-filter button')]"
    browser.run(f"{buttons}.find(b => b.textContent === 'statics').click()")
    chosen = browser.run(f"{shown}.map(c => c.textContent)")
    assert 0 < len(chosen) < every
    assert all("statics" in words for words in chosen)
    assert not browser.run("return document.getElementById('fields').checkVisibility()")
    browser.run(f"{buttons}.find(b => b.textContent === 'all').click()")
    assert browser.run(f"{shown}.length") == every


def test_search(browser, site):
    browser.open(site / "search.html", "?q=RATTLE")
    browser.wait("return document.querySelectorAll('#search-results li a').length > 3")
    found = browser.run(
        "return [...document.querySelectorAll('#search-results li a')].map(a => a.textContent)"
    )
    assert any("RATTLE" in title for title in found)


@pytest.mark.parametrize("word", ["rotor", "tendon", "damping"])
def test_search_finds_what_beams_may_have(browser, site, word):
    browser.open(site / "search.html", f"?q={word}")
    browser.wait("return document.querySelectorAll('#search-results li a').length > 0")
    found = browser.run(
        "return [...document.querySelectorAll('#search-results li a')].map(a => a.href)"
    )
    assert any("guide/beams.html" in link for link in found), found
    # The table of all messages would drown the others.
    assert not any("guide/errors.html" in link for link in found), found


@pytest.mark.parametrize(("width", "dark"), [(400, False), (400, True), (1280, True)])
def test_legible(browser, pages, site, width, dark):
    """No page is wider than its window; text stands out from what is behind it."""
    browser.prefer(dark)
    browser.resize(width, 900)
    wide, faint = [], []
    for page in pages:
        browser.open(page)
        browser.wait("return document.readyState === 'complete'")
        over = browser.run(
            "return Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
            " - window.innerWidth"
        )
        if over > 0:
            wide.append(f"{page.relative_to(site)}: {over} pixels")
        contrast, words = browser.run(CONTRAST)
        if contrast < 4.5:
            # Colours of some buttons change slowly when a page takes its theme.
            time.sleep(1)
            contrast, words = browser.run(CONTRAST)
        # WCAG AA wants 4.5.
        if contrast < 4.5:
            faint.append(f"{page.relative_to(site)}: {contrast:.1f} of {words!r}")
    assert not wide
    assert not faint


# The least contrast of all text on a page: prose, links, code and its colours, tables, what is in the bars.
CONTRAST = """
const numbers = (c) => c.match(/[\\d.]+/g).map(Number);
const light = (c) => {
  const [r, g, b] = numbers(c).map((x) => x / 255).map((x) =>
    x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const seen = new Map();
for (const element of document.querySelectorAll('p, li, a, code, span, td, th, h1, h2, h3, dt, summary')) {
  const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  if (!own || element.closest('mjx-container, .visually-hidden') || !element.checkVisibility()) continue;
  let behind = element;
  while (behind.parentElement && numbers(getComputedStyle(behind).backgroundColor)[3] === 0)
    behind = behind.parentElement;
  const pair = [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor];
  if (seen.has(pair.join())) continue;
  const [a, b] = pair.map(light);
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  seen.set(pair.join(), [contrast, element.textContent.trim().slice(0, 30)]);
}
return [...seen.values()].sort((a, b) => a[0] - b[0])[0] || [21, ''];
"""


def test_scenes_of_the_site(browser, site):
    """Each scene draws something that moves, with the one copy of k3d that the site has."""
    browser.resize(900, 600)
    browser.prefer(still=True)
    scenes = [
        p for p in site.rglob("*.html") if 'name="generator" content="fdgeom"' in p.read_text()
    ]
    assert len(scenes) >= 4
    assert [p.parent.name for p in site.rglob("standalone.js")] == ["scenes"]
    for scene in scenes:
        assert scene.stat().st_size < 1.2e6
        at = [shown(browser, scene, f"?at={part}") for part in (0.05, 0.5)]
        background = at[1][-1, 2]
        drawn = np.abs(at[1] - background).sum(axis=2) > 60
        assert drawn.sum() > 300, scene.name
        moved = np.abs(at[1] - at[0]).sum(axis=2) > 60
        assert moved.sum() > 100, scene.name
        assert not browser.errors(), scene.name
        assert not browser.requests(), scene.name


def shown(browser, scene, query):
    """The picture of a scene, below its title and above its controls."""
    browser.open(scene, query)
    browser.wait("return document.documentElement.dataset.ready === 'yes'")
    time.sleep(0.3)
    return browser.pixels()[80:520]
