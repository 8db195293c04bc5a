"""The report in a real browser: nothing complains, all figures are drawn, a phone can show it."""

import functools
import json
import os
import re
import shutil
import subprocess
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from coremcmc.report import write_report
from tests.report.pages import Page
from tests.report.report_fits import NASTY, QUOTED, empty_fit, make_config, make_coreset, make_fit

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-extensions")
FLAGS += (
    "--no-first-run",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--virtual-time-budget=5000",
)

# Loads the report in a frame of a given width, as a phone would show it, and measures it there.
PROBE = """<!DOCTYPE html><meta charset="utf-8"><link rel="icon" href="data:,">
<iframe id="frame" src="report.html" style="width: WIDTHpx; height: 900px; border: 0"></iframe>
<pre id="found"></pre>
<script>
document.getElementById("frame").addEventListener("load", event => {
  const page = event.target.contentDocument, view = event.target.contentWindow;
  const size = element => {
    const box = element.getBoundingClientRect();
    return [box.width, box.height];
  };
  const parts = ".chart > svg > *, .chart > line";
  const small = [...page.querySelectorAll(".chart text")].filter(text => {
    const scale = text.ownerSVGElement.getBoundingClientRect().width
      / text.ownerSVGElement.viewBox.baseVal.width;
    return parseFloat(view.getComputedStyle(text).fontSize) * scale < 9;
  });
  const outside = [...page.querySelectorAll("body *")].filter(element => {
    const box = element.getBoundingClientRect();
    return box.right > WIDTH + 1 && !element.closest(".scroll, pre, .chart > svg");
  });
  document.getElementById("found").textContent = JSON.stringify({
    width: page.documentElement.clientWidth,
    scroll: page.documentElement.scrollWidth,
    charts: [...page.querySelectorAll(".chart")].map(size),
    marks: [...page.querySelectorAll(".chart")].map(
      chart => chart.querySelectorAll("path, rect, polygon, circle, line").length),
    unpainted: [...page.querySelectorAll(parts)].filter(part => {
      const style = view.getComputedStyle(part);
      return style.stroke === "none" && style.fill === "none";
    }).length,
    small: small.length,
    outside: outside.map(element => element.tagName + " " + element.textContent.slice(0, 40)),
    paper: view.getComputedStyle(page.body).backgroundColor,
    ink: view.getComputedStyle(page.body).color,
    text: page.body.innerText,
    requests: view.performance.getEntriesByType("resource").map(entry => entry.name),
  });
});
</script>
"""


@pytest.fixture(scope="module")
def browser():
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is on PATH (Debian: chromium)")
    return found


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        self.server.asked.append(self.path)


@pytest.fixture
def served(tmp_path):
    """A folder, and the address that serves it."""
    handler = functools.partial(QuietHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.asked = []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield tmp_path, server
        server.shutdown()
        thread.join()


def run(browser, folder, *arguments):
    """Run the browser; return what it prints and what its console says."""
    profile = folder / "profile"
    environment = {**os.environ, "HOME": str(folder), "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [browser, *FLAGS, f"--user-data-dir={profile}", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=True,
    )
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def look(browser, served, fit, width, *flags, **options):
    """Show the report of a fit at a width; return what the probe found."""
    folder, server = served
    write_report(fit, folder / "report.html", **options)
    (folder / "probe.html").write_text(PROBE.replace("WIDTH", str(width)), encoding="utf-8")
    address = f"http://127.0.0.1:{server.server_port}/probe.html"
    size = f"--window-size={max(width, 500) + 50},1000"
    dom, console = run(browser, folder, size, *flags, "--dump-dom", address)
    assert not console
    assert set(server.asked) == {"/probe.html", "/report.html"}
    found = re.search(r'<pre id="found">(.*?)</pre>', dom, re.S)
    assert found is not None, dom[-2_000:]
    assert found.group(1), "the report did not load"
    return json.loads(Page(f"<pre>{found.group(1)}</pre>").text)


def check(found, width):
    assert found["width"] == width
    assert found["scroll"] <= width, found["outside"]
    assert not found["outside"]
    assert not found["small"]  # letters of figures are at least 9 pixels high
    assert not found["unpainted"]
    assert not found["requests"]
    for size, marks in zip(found["charts"], found["marks"], strict=True):
        assert min(size) > 20
        assert marks > 0


@pytest.mark.parametrize("width", [360, 768, 1_200])
def test_a_report_is_drawn_at_every_width(browser, served, width):
    found = look(browser, served, make_fit(), width)
    check(found, width)
    assert len(found["charts"]) == 4 + 3 + 2 + 9
    for expected in ("Good", "Pareto k = 0.31", "12.3 s", "beta[2]", "TestModel(scale=2.0)"):
        assert expected in found["text"]


def test_dark_and_light_have_contrast(browser, served):
    def luminance(colour):
        channels = np.array([int(x) for x in re.findall(r"\d+", colour)[:3]]) / 255
        linear = np.where(
            channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
        )
        return float(linear @ [0.2126, 0.7152, 0.0722])

    papers = []
    for scheme in ("0", "1"):
        flag = f"--blink-settings=preferredColorScheme={scheme}"
        found = look(browser, served, make_fit(), 1_200, flag)
        paper, ink = luminance(found["paper"]), luminance(found["ink"])
        papers.append(paper)
        assert (max(paper, ink) + 0.05) / (min(paper, ink) + 0.05) > 7
    assert min(papers) < 0.05
    assert max(papers) > 0.9


def test_odd_fits_are_drawn_on_a_phone(browser, served):
    """Long and hostile names, many columns, no certificate."""
    names = {NASTY: (2,), QUOTED * 6: (), "a" * 200: (), "theta": (60,)}
    columns = {f"column_{i}_{'x' * 30}": np.arange(20) for i in range(40)}
    config = make_config()
    config["model"] = "Model(" + "x" * 500 + ")"
    fit = make_fit(names, judged=False, sampled=False, config=config, coreset=make_coreset(columns=columns))  # fmt: skip  # noqa: E501
    found = look(browser, served, fit, 360, title="T" * 120, extra={"k" * 90: "v" * 400})
    check(found, 360)
    assert NASTY in found["text"]
    assert len(found["charts"]) == 24 + 2 + 2 + 9


def test_a_run_without_records_is_shown(browser, served):
    found = look(browser, served, empty_fit(), 360)
    check(found, 360)
    assert len(found["charts"]) == 2
    assert "There are no draws" in found["text"]


def test_a_screenshot_of_the_file_itself_can_be_taken(browser, tmp_path):
    path = write_report(make_fit(), tmp_path / "report.html")
    picture = tmp_path / "report.png"
    _, console = run(browser, tmp_path, f"--screenshot={picture}", path.as_uri())
    assert not console
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000
