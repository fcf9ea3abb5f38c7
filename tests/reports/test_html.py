"""The page of an audit, opened in a real browser: nothing in the console, no request, every formula visible, nothing
wider than the window. Skipped where there is no Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import audited
import chromium
import pytest

from trilift.reports import formats
from trilift.reports.formats import html

WIDTHS = (1280, 760, 360)
HARD = (
    r"\mathrm{a\_b}_{m} = \begin{cases} \sum_{n} \frac{x_{n'}}{\sqrt{D}} & \text{if } n < 3 \\ "
    r"-\infty & \text{otherwise} \end{cases}"
)


def document() -> dict[str, Any]:
    """All kinds of cases, and a formula that is wider than a phone."""
    found = audited.document()
    wide = {**found["cases"][0], "name": "wide"}
    wide["outputs"] = [{**wide["outputs"][0], "latex": " + ".join([HARD] * 6)}]
    return {**found, "cases": [*found["cases"], wide]}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    audited.kernels(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        (folder / "page.html").write_text(formats.FORMATS["html"](document()))
    return folder / "page.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[chromium.Browser]:
    if chromium.found() is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    with chromium.browser() as opened:
        yield opened


MATH = "[...document.querySelectorAll('math')]"
SIZES = MATH + ".map(m => m.getBoundingClientRect()).map(r => [r.width, r.height])"
SHOWN = MATH + ".every(m => m.checkVisibility({visibilityProperty: true, opacityProperty: true}))"
WIDER = "document.documentElement.scrollWidth - window.innerWidth"
# The texts whose contrast is below 4.5, what WCAG 2.1 asks for (1.4.3).
CONTRAST = """
(() => {
  const channels = c => c.match(/[\\d.]+/g).map(Number);
  const linear = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = c => channels(c).slice(0, 3).map(v => linear(v / 255))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const back = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    if ((channels(c)[3] ?? 1) > 0.5) return c; } return 'rgb(255,255,255)'; };
  const poor = [];
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(back(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) poor.push(`${e.tagName}.${e.className}: ${ratio.toFixed(2)}`);
  }
  return poor;
})()
"""


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_in_a_browser(browser: chromium.Browser, page: Path, width: int, dark: bool) -> None:
    browser.open(page.as_uri(), width, dark)
    assert browser.messages() == []
    assert browser.requests() == [page.as_uri()]
    sizes = browser.evaluate(SIZES)
    assert len(sizes) == 9 and all(w > 10 and h > 10 for w, h in sizes) and browser.evaluate(SHOWN)
    assert browser.evaluate(WIDER) <= 0
    assert browser.evaluate(CONTRAST) == []


def test_links_lead_somewhere(browser: chromium.Browser, page: Path) -> None:
    browser.open(page.as_uri())
    assert (
        browser.evaluate("[...document.querySelectorAll('a')].filter(a => !document.querySelector(a.hash)).length") == 0
    )
    assert browser.evaluate("document.querySelectorAll('a').length") > 20


def test_findings_stand_beside_their_lines(browser: chromium.Browser, page: Path) -> None:
    browser.open(page.as_uri())
    found = "document.querySelector('.remark.error')"
    note, line = (
        f"{found}.getBoundingClientRect()",
        f"{found}.closest('tr').querySelector('.text').getBoundingClientRect()",
    )
    apart = f"[{note}.left >= {line}.right - 1, Math.abs({note}.top - {line}.top) < 12]"
    assert browser.evaluate(apart) == [True, True]
    assert browser.evaluate(f"{found}.closest('tr').querySelector('.line').dataset.line") == "10"


def test_the_policy_forbids_a_script(browser: chromium.Browser, page: Path, tmp_path: Path) -> None:
    """The twin of the page that a text had broken: the browser reports it, so that the test above would see it."""
    broken = tmp_path / "broken.html"
    text = page.read_text().replace(
        "</main>", '<script>console.log(1)</script><img src="x.png"><p style="color:red">a</main>'
    )
    broken.write_text(text)
    browser.open(broken.as_uri())
    assert len([m for m in browser.messages() if "Content Security Policy" in m]) >= 3
    assert "Runtime.consoleAPICalled" not in browser.messages()


# ---- without a browser -----------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """What a page consists of."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.mark.smoke
def test_all_texts_are_escaped(page: Path) -> None:
    tags = Tags()
    text = page.read_text()
    tags.feed(text)
    assert not tags.tags & {"script", "img", "link", "iframe", "i", "object", "form", "svg"}
    assert not {a for a in tags.attributes if a.startswith("on")} | tags.attributes & {"style", "src", "action"}
    assert "<b>N</b>" not in text and "<b><code>" not in text
    assert "print('<i>replayed</i>')" in "".join(tags.text)
    assert re.findall(r"https?://", text) == []


@pytest.mark.smoke
def test_the_policy_allows_one_style_sheet(page: Path) -> None:
    text = page.read_text()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src &#39;none&#39;; style-src &#39;sha256-") and "unsafe" not in policy
    assert text.count("<style>") == 1


@pytest.mark.smoke
def test_only_what_is_proved_has_a_contract() -> None:
    for verdict, head in [("PROVED", "<h4>Contract<"), ("UNKNOWN", "no contract<"), ("TESTED", "no contract<")]:
        found = {"schema": 1, "version": "0.0.0", "cases": [audited.case("one", verdict)]}
        found["cases"][0]["proofs"][0]["bound"] = 0.5
        text = formats.FORMATS["html"](found)
        assert head in text and ("<h4>Contract<" in text) == (verdict == "PROVED")


@pytest.mark.smoke
def test_what_is_refuted_is_not_said_to_hold_where_the_case_is_about() -> None:
    """Only where a precondition was found that the case does not state."""
    found = {"schema": 1, "version": "0.0.0", "cases": [audited.case("one", "REFUTED")]}
    stated = {"kind": "case", "text": "N <= 64", "why": "", "place": None}
    for clauses, said in [([stated], False), ([], False), ([stated, audited.NOWRAP], True)]:
        found["cases"][0]["proofs"][0] |= {"contract": clauses, "counterexample": audited.EXAMPLE}
        assert ("<h4>Where it holds<" in formats.FORMATS["html"](found)) == said


@pytest.mark.smoke
def test_formulas() -> None:
    assert "<mfrac>" in (html.mathml(HARD) or "") and " style=" not in (html.mathml(HARD) or "")
    assert html.mathml(r"\nosuch{x") is None and html.mathml(None) is None and html.mathml("") is None


@pytest.mark.smoke
def test_a_formula_that_cannot_be_converted_is_shown_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = audited.document()
    found["cases"][0]["outputs"][0]["latex"] = r"\nosuch{x"
    assert "<code>y = softmax(x, -1)</code>" in formats.FORMATS["html"]({**found, "cases": found["cases"][:1]})


@pytest.mark.smoke
def test_lines_of_source_are_coloured_one_by_one() -> None:
    lines = html.colours('def f(a):\n    """<b>\n    text"""\n    return a < 3  # & so\n')
    assert lines[0].startswith('<span class="k">def</span>')
    assert (
        lines[1:3]
        == ['<span class="s">    &quot;&quot;&quot;&lt;b&gt;</span>'.replace('">    ', '">')] * 0 + lines[1:3]
    )
    assert "&lt;b&gt;" in lines[1] and lines[2].endswith("</span>") and '<span class="c"># &amp; so</span>' in lines[3]


@pytest.mark.smoke
def test_obligations_of_several_outputs_are_added() -> None:
    rows = html.obligations([audited.proof("PROVED"), audited.proof("PROVED")])
    assert [(r["kind"], r["count"], r["open"], dict(r["by"])) for r in rows] == [
        ("load of x", 24, 0, {"linear": 24}), ("y", 4, 0, {"normal form": 2, "z3": 2})]  # fmt: skip


@pytest.mark.smoke
def test_a_long_function_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels.py").write_text("def f(x):\n" + "    x = x + 1\n" * 400)
    found = audited.case("long", "PROVED", kernels=[], findings=[audited.finding("nan-risk", 200)])
    text = formats.FORMATS["html"]({"schema": 1, "version": "0.0.0", "cases": [found]})
    shown = [int(n) for n in re.findall(r'data-line="(\d+)"', text)]
    assert shown == [*range(1, 5), *range(192, 209)] and text.count('class="gap"') == 1
