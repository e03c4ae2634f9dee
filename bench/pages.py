"""What pages weigh, whether they move while they load, and when they first show something.

    python -m bench.pages --home FOLDER [--quick] [--json]   # a home with the demo; a copy is used

Chromium visits each page with an empty cache. Fonts are left out of the weight.
"""

import gzip
import json
import shutil
import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Page, Response, sync_playwright

from bench.command import EXIT_UNAVAILABLE, add_origin, build_parser
from bench.prepared import run_python_here, serve_web_here, set_up_site_here
from scripts.chromium import CHROMIUM
from scripts.pictures import DEMO, People, site

PAGES = {
    "home": "/",
    "task": DEMO,
    "write": f"{DEMO}write/",
    "judge": f"{DEMO}judge/",
    "board": f"{DEMO}leaderboard/",
    "dashboard": "/own/demo-simulated/?round=3",
}
MOST_BYTES, MOST_SHIFT = 60_000, 0
SHIFT = """() => new Promise(done => {
    let sum = 0;
    new PerformanceObserver(list => {
        for (const one of list.getEntries()) if (!one.hadRecentInput) sum += one.value;
    }).observe({type: "layout-shift", buffered: true});
    setTimeout(() => done(sum), 500);
})"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def compute_weight(response: Response) -> int:
    """Bytes of an answer as a web server in front sends them: what is text is compressed."""
    if response.request.resource_type == "font" or response.status != 200:
        return 0
    headers, sizes = response.headers, response.request.sizes()
    head = sizes["responseHeadersSize"]
    if "content-encoding" in headers:
        return head + sizes["responseBodySize"]
    return head + len(gzip.compress(response.body()))


def visit_page(page: Page, path: str) -> dict[str, float]:
    """Bytes, layout shift and milliseconds to the first paint of one visit."""
    answers: list[Response] = []
    page.on("response", lambda answer: answers.append(answer))
    tools = page.context.new_cdp_session(page)
    tools.send("Network.enable")
    tools.send("Network.setCacheDisabled", {"cacheDisabled": True})
    page.goto(path, wait_until="networkidle")
    return {
        "bytes": sum(map(compute_weight, answers)),
        "requests": len(answers),
        "layout_shift": page.evaluate(SHIFT),
        "first_paint_ms": page.evaluate(PAINT),
    }


def measure(
    known: BrowserContext, pages: Mapping[str, str], visits: int
) -> dict[str, dict[str, float]]:
    """Medians over the visits of each page, as the browser's user sees it."""
    found = {}
    for name, path in pages.items():
        seen = []
        for _ in range(visits):
            page = known.new_page()
            seen.append(visit_page(page, path))
            page.close()
        found[name] = {key: statistics.median(one[key] for one in seen) for key in seen[0]}
    return found


def main() -> None:
    parser = build_parser(__doc__, quick="one visit of each page, not five")
    parser.add_argument("--home", type=Path, help="a home with the demo")
    args = parser.parse_args()
    if not CHROMIUM:
        parser.exit(EXIT_UNAVAILABLE, "There is no Chromium on the path. CHROMIUM=… names one.\n")
    if not (args.home or args.smoke):
        parser.error("--home names a home with the demo")
    visits = 1 if args.quick else 5
    print_report(
        measure_empty_site(1) if args.smoke else measure_home(args.home, visits),
        as_json=args.json,
    )


def measure_home(original_home: Path, visits: int) -> dict[str, dict[str, float]]:
    """Measure a copy of a home with the demo, as its administrator."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        home = shutil.copytree(original_home, Path(folder) / "home")
        with site(home) as url:
            known = People(playwright, url, home).page("admin@example.com").context
            return measure(known, PAGES, visits)


def measure_empty_site(visits: int) -> dict[str, dict[str, float]]:
    """Measure a site in this process that has only the official tasks, as a stranger."""
    set_up_site_here()
    run_python_here("from tasks.services import install_official_tasks as go; go()")
    pages = {"home": "/", "task": "/t/nli/"}
    with serve_web_here() as (port, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            stranger = browser.new_context(base_url=f"http://127.0.0.1:{port}")
            return measure(stranger, pages, visits)
        finally:
            browser.close()


def print_report(found: dict[str, Any], *, as_json: bool) -> None:
    """Print the figures; a page that is over a limit is named."""
    if as_json:
        ratios = {
            **{f"{name}: kB / most": one["bytes"] / MOST_BYTES for name, one in found.items()},
            **{f"{name}: layout shift": one["layout_shift"] for name, one in found.items()},
        }
        results = {"ratios": ratios, "pages": found}
        print(json.dumps(add_origin(results, "playwright", lower=ratios)))
        return
    for name, one in found.items():
        is_over = one["bytes"] > MOST_BYTES or round(one["layout_shift"], 3) > MOST_SHIFT
        print(
            f"{name:10} {one['bytes'] / 1000:5.1f} kB, {one['requests']:.0f} requests, shift "
            f"{one['layout_shift']:.3f}, first paint {one['first_paint_ms']:.0f} ms"
            + (" OVER" if is_over else "")
        )


if __name__ == "__main__":
    main()
