"""The documentation builds without a warning, its links lead somewhere, and its pages are quiet in a browser."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "docs" / "tools"), str(ROOT / "tests" / "helpers")]
import chromium  # noqa: E402
import links  # noqa: E402

for package in ("mkdocs", "material", "mkdocstrings"):
    pytest.importorskip(package, reason="needs the packages of the extra docs")
pytestmark = pytest.mark.slow
MENTIONED = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "BUGS_FOUND.md")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class has it
        """Prints nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()


def test_every_link_leads_somewhere(site: Path) -> None:
    assert list(links.problems(site)) == []
    assert [p for name in MENTIONED for p in links.broken(ROOT / name)] == []


def test_every_rule_and_command_has_its_place(site: Path) -> None:
    from trilift.reports.base.explanations import declared
    from trilift.reports.cli import main

    for name in declared():
        assert (site / "reference" / "rules" / f"{name}.html").is_file()
    page = (site / "reference" / "cli.html").read_text()
    assert [name for name in main.commands if f'id="{name}"' not in page] == []


def test_every_kind_of_error_has_a_page() -> None:
    from trilift.reports.base.explanations import ERRORS

    folder = ROOT / "docs" / "reference" / "errors"
    assert {p.stem for p in folder.glob("*.md")} == {*ERRORS, "index"}


@pytest.mark.skipif(chromium.found() is None, reason="needs a Chromium")
def test_pages_are_quiet_and_ask_no_other_host(site: Path, address: str) -> None:
    pages = ["index.html", "explanation/architecture.html", "reference/json.html", "tutorials/flash-attention.html"]
    with chromium.browser() as browser:
        for page in pages:
            browser.open(address + page)
            assert browser.messages() == [], page
            outside = [r for r in browser.requests() if not r.startswith((address, "data:", "blob:"))]
            assert outside == [], page
            assert browser.evaluate("[...document.images].every(i => i.naturalWidth > 0)"), page
