#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Opens the built site from disk in a headless Chromium and uses it as a reader would.

On a desktop and on a phone, light and dark: no error in the console, nothing that fails to load, every image
drawn, no page wider than the window, text that can be read against its background. The search finds words
of the text; the switch between light and dark switches; the menu and lists fold; the first page loads at most 300 KB in
one second; and from the README a chapter's page, its kernel and
its dot under the roofs are three clicks apart. A dot of a roofline and a lane of a picture can be hovered, and without
JavaScript their SVGs are there. The sliders of the other pictures change what they say, and a number that was changed in a page's
data keeps a picture from being live.

    check_browser.py build/docs/html [--screenshots FOLDER]

Needs Playwright for Python, and a Chromium: the system's (chromium, google-chrome) or Playwright's own."""
import argparse
import re
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

from check_site import FIRST_PAGE
from playwright.sync_api import Error, sync_playwright

SAMPLE = ("index.html", "chapter_3.html", "chapter_8.html", "chapter_10.html", "guide_adding.html", "files.html")
SCREENS = {"desktop": (1440, 900), "phone": (390, 844)}
# (page, kind of a twin, which of these on the page, its sliders, what its title or its sentence then says)
TWINS = (("chapter_5.html", "zoom", 0, (31,), "d0 row 7 column 6, d1 row 7 column 7, d2 row 15 column 6"),
         ("chapter_6.html", "order", 0, (1,), "Thread 0 arrives at full and expects 32,768 bytes. full: phase 0, parity 0."),
         ("chapter_6.html", "order", 1, (16,), "Warp 3 arrives at empty[0]. full[0]: phase 1, parity 1; empty[0]: phase 1, parity 1."),
         ("chapter_6.html", "descriptor", 0, (0, 1), "Start 3,072, leading 1,024, stride 128"),
         ("chapter_6.html", "descriptor", 0, (1, 3), "Start 1,120, stride 1,024"),
         ("chapter_6.html", "stages", 0, (1, 100), "1 stage: the tensor cores wait 50 % of the time"),
         ("chapter_6.html", "stages", 0, (4, 100), "4 stages: the tensor cores wait 0 % of the time"),
         ("chapter_7.html", "swizzle", 0, (0, 3), "No swizzle: 8 wavefronts"),
         ("chapter_7.html", "swizzle", 0, (2, 3), "Span of 64 bytes: 1 wavefront"),
         ("chapter_7.html", "waves", 0, (1, 1), "Wave 1 reads 144.7 MB of A and B"),
         ("chapter_8.html", "timeline", 0, (33,), "ping_pong: tensor cores multiply, consumer 0 store, consumer 1 multiply."),
         ("chapter_9.html", "online_softmax", 0, (4, 1), "After 4 numbers: maximum 5, sum 1.203"),
         ("chapter_9.html", "online_softmax", 0, (8, 2), "merge to maximum 6, sum 1.135 x 0.05 + 1.892 x 1 = 1.948."),
         ("chapter_10.html", "attention_schedule", 0, (8, 1), "The last SM ends after 20 key tiles"),
         ("chapter_10.html", "attention_schedule", 1, (133,), "Query tile 133 is divided among "))
# (page, kind, a piece of its data, what it becomes, what the console then says)
PLANTED = (("chapter_3.html", "requests", '"counted": 32,', '"counted": 31,', "32 wavefronts here, 31 counted"),
           ("chapter_5.html", "zoom", "[0, 1, 64,", "[1, 0, 64,", "other elements"),
           ("chapter_6.html", "descriptor", '"high": 8,', '"high": 16,', "other places"),
           ("chapter_6.html", "stages", '"2": 616.6', '"2": 348.6', "other speeds"),
           ("chapter_7.html", "swizzle", "9, 8, 11, 10,", "8, 9, 11, 10,", "other places"),
           ("chapter_7.html", "waves", '"tiles": [0, 32,', '"tiles": [32, 0,', "another order"),
           ("chapter_9.html", "online_softmax", '"sum": 1.5032', '"sum": 1.6032', "other sums"),
           ("chapter_10.html", "attention_schedule", '"key_tiles": 7}', '"key_tiles": 6}', "other key tiles"))
HELPERS = Path(__file__).with_suffix(".js")  # what runs in the page


class Site:
    """The site in a browser, and what was found wrong."""

    def __init__(self, browser, folder, screenshots):
        self.browser, self.folder, self.screenshots, self.problems = browser, folder, screenshots, []

    def open(self, screen, scheme):
        width, height = SCREENS[screen]
        context = self.browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme,
                                           has_touch=screen == "phone")
        page = context.new_page()
        page.set_default_timeout(30000)
        page.add_init_script(path=HELPERS)

        def wrong(what):
            self.problems.append(f"{page.url.split('/')[-1]} ({screen}, {scheme}): {what}")
        page.wrong = wrong
        page.on("console", lambda m: wrong(f"console: {m.text}") if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong(f"error: {error}"))
        page.on("requestfailed", lambda request: wrong(f"failed to load {request.url}: {request.failure}")
                if "ERR_ABORTED" not in (request.failure or "") else None)  # left before it was read
        page.on("request", lambda request: None if request.url.startswith(("file:", "data:", "about:", "blob:"))
                else wrong(f"fetches {request.url}"))
        return page

    def visit(self, page, name):
        page.goto((self.folder / name).as_uri())
        page.wait_for_load_state("load")

    def picture(self, page, name):
        if self.screenshots:
            self.screenshots.mkdir(parents=True, exist_ok=True)
            page.wait_for_timeout(500)
            page.screenshot(path=str(self.screenshots / f"{name}.png"))

    def check_page(self, page, name, picture):
        self.visit(page, name)
        for source in page.evaluate("check.undrawn()"):
            page.wrong(f"image not drawn: {source}")
        wide, window = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        if wide > window:
            page.wrong(f"{wide} pixels wide in a window of {window}")
        for text in page.evaluate("check.faint()"):
            page.wrong(f"hardly readable: {text}")
        for text in page.evaluate("check.long()"):
            page.wrong(f"lines too long: {text}")
        for text in page.evaluate("check.cut()"):
            page.wrong(f"cut off: {text}")
        self.picture(page, picture)

    def check_search(self, page, query, expected):
        self.visit(page, "index.html")
        page.click("#MSearchField")
        page.keyboard.type(query, delay=20)
        try:
            page.wait_for_selector("#cookbook-results a")
        except Error:
            page.wrong(f"searching for {query!r} shows nothing")
            return
        self.picture(page, f"search-{query}")
        links = page.eval_on_selector_all("#cookbook-results a", "links => links.map(link => link.getAttribute('href'))")
        if not any(link.startswith(expected) for link in links):
            page.wrong(f"searching for {query!r} does not find {expected}: {links[:5]}")
            return
        names = [bool(re.match(r"(namespace|struct|class)\w|\w+_8[a-z]+(_source)?\.html", link)) for link in links]
        if names != sorted(names):
            page.wrong(f"searching for {query!r} lists names of the API before pages: {links[:5]}")
        page.keyboard.press("Enter")
        page.wait_for_url("**/" + links[0])

    def check_explorer(self, page, name):
        """The roofline of a chapter: hover a dot, zoom, choose another ladder, follow a dot to its level."""
        self.visit(page, name)
        page.wait_for_selector(".explore svg a.mark")
        dot = page.locator(".explore a.mark").nth(1)
        for _ in range(3):  # on a busy machine the page may still move below the mouse
            dot.scroll_into_view_if_needed()
            dot.locator("path").hover(force=True)
            try:
                page.wait_for_selector(".explore-tip:visible", timeout=2000)
                break
            except Error:
                page.mouse.move(0, 0)
        else:
            page.wrong("hovering a dot shows nothing")
            return
        text = page.inner_text(".explore-tip")
        self.picture(page, f"explorer-{Path(name).stem}")
        parts = {"time and speed": r"s, [\d.,]+ (GB|TFLOP)/s", "bytes": r"[\d.]+ [MG]B \(",
                 "roof": "bound by|nearest|asks", "link": "to this level"}
        for what, pattern in parts.items():
            if not re.search(pattern, text):
                page.wrong(f"a dot's text lacks the {what}: {text!r}")
        where = "() => document.querySelector('.explore a.mark').getAttribute('transform')"
        before = page.evaluate(where)
        page.click(".explore-bar button >> nth=0")
        if page.evaluate(where) == before:
            page.wrong("zooming moves no dot")
        values = page.eval_on_selector_all(".explore select option", "options => options.map(option => option.value)")
        ladders = [value for value in values if not value.startswith("energy")]  # that view has bars, no dots
        if len(ladders) > 1:
            page.select_option(".explore select", ladders[1])
            if page.evaluate(where) == before:
                page.wrong("another ladder shows the same dots")
            page.select_option(".explore select", ladders[0])
        other = page.locator(".explore select option", has_text="NVIDIA").first  # of a GPU that is not the page's own
        if other.count():
            page.select_option(".explore select", other.get_attribute("value"))
            label = page.get_attribute(".explore svg", "aria-label")
            if other.inner_text().split(" · ")[-1] not in label:
                page.wrong(f"another GPU is chosen, and shown are the {label}")
            page.select_option(".explore select", ladders[0])
        if energy := [value for value in values if value.startswith("energy")]:
            page.select_option(".explore select", energy[0])
            self.picture(page, f"energy-{Path(name).stem}")
            if not re.search(r"\d [mµ]?J · \d+ W", page.text_content(".explore svg.energy")):
                page.wrong("the view of energy names no joules and watts")
            page.select_option(".explore select", index=0)
        page.click(".explore-bar button >> nth=2")
        page.locator(".explore a.mark path").last.click(force=True)
        page.wait_for_timeout(300)
        if not page.evaluate("location.hash && Boolean(document.getElementById(location.hash.slice(1)))"):
            page.wrong(f"clicking a dot leads to {page.url}, no level")

    def check_dots(self, page, name):
        """Every level's dot can be read, also where others lie over it."""
        self.visit(page, name)
        page.wait_for_selector(".explore svg a.mark")
        page.locator(".explore a.mark").first.scroll_into_view_if_needed()
        page.wait_for_timeout(500)
        for level, place in page.evaluate("check.dots()"):
            page.mouse.move(0, 0)
            page.locator(".explore a.mark .dot").nth(place).hover(force=True)
            if level not in page.inner_text(".explore-tip"):
                page.wrong(f"hovering the dot of {level} does not name it")

    def check_taps(self, page, name):
        """On a phone bars fit, and the first tap on a dot shows it, and the second one leads to its level."""
        self.visit(page, name)
        page.wait_for_selector(".explore svg a.mark")
        if not page.locator(".on-phone a.bar").count():
            page.wrong("no bars in place of the ladders' figure")
        dot, hashes = page.locator(".explore a.mark .dot").first, []
        for _ in range(2):  # images that are drawn on the way move it again
            dot.evaluate("node => node.scrollIntoView({block: 'center', behavior: 'instant'})")
            page.wait_for_timeout(500)
        for _ in range(2):
            box = dot.bounding_box()
            page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            page.wait_for_timeout(400)
            hashes.append(page.evaluate("location.hash"))
        if hashes[0] or not hashes[1]:
            page.wrong(f"two taps on a dot lead to {hashes}; the first one should show")

    def check_lanes(self, page, name):
        """The live picture of 32 lanes in one bank: hover one, step on, pad the rows by the slider, and swizzle them."""
        self.visit(page, name)
        box = page.locator(".lanes", has=page.locator("code", has_text="tile[threadIdx.x][y];")).first
        if (top := box.locator("g.lane").last.get_attribute("data-lane")) != "0":
            page.wrong(f"of lanes with one address, lane {top} lies above lane 0")
        try:
            box.locator("g.lane[data-lane='5']").last.hover(force=True, timeout=3000)
        except Error:
            page.wrong("no picture of a request is live")
            return
        title, says = box.locator("strong"), box.locator(".lanes-says")
        for what, expected, found in (("title", "32 wavefronts (ideal: 1)", title.inner_text()),
                                      ("lane", "bank 4, wavefront 6 of 32", says.inner_text())):
            if expected not in found:
                page.wrong(f"the {what} of a live picture says {found!r}, not {expected!r}")
        self.picture(page, f"lanes-{Path(name).stem}")
        page.mouse.move(0, 0)  # the page may scroll under the pointer
        box.locator("svg").press("ArrowRight")
        if "lane 6:" not in says.inner_text():
            page.wrong(f"the arrow key leads to {says.inner_text()!r}")
        slider, swizzle = box.locator("input[type=range]"), box.locator("input[type=checkbox]")
        for stride, swizzled, expected in ((132, False, "1 wavefront"), (128, False, "32 wavefronts"), (128, True, "1 wavefront")):
            slider.fill(str(stride))
            swizzle.set_checked(swizzled)
            if f"{expected} (ideal: 1)" not in title.inner_text():
                page.wrong(f"a live picture with a stride of {stride}, swizzled: {swizzled}, says {title.inner_text()!r}")

    def check_twins(self, page, names):
        """The sliders of the other pictures change what they say."""
        for name, kind, which, values, expected in TWINS:
            if name not in names:
                continue
            self.visit(page, name)
            page.evaluate("check.undrawn()")  # images that are drawn later would move what is hovered
            folded = page.locator("div.picture > details", has=page.locator(f".twin[data-kind={kind}]")).nth(which)
            twin = folded.locator(".twin")
            try:
                folded.locator("summary").click(timeout=3000)
            except Error:
                page.wrong(f"no live picture {which} of kind {kind}")
                continue
            for slider, value in zip(twin.locator("input").all(), values):
                slider.fill(str(value))
            said = f"{twin.locator('strong').inner_text()} | {twin.locator('.lanes-says').inner_text()}"
            if expected not in said:
                page.wrong(f"{kind} at {values} says {said!r}, not {expected!r}")
            for look in page.evaluate("check.idle()"):
                page.wrong(f"{kind} at {values}: the legend has {look}, and nothing is drawn so")
            if twin.locator("g[data-says]").count():
                twin.locator("g[data-says]").first.hover(force=True)
                if twin.locator(".lanes-says").inner_text() == said.split(" | ")[1]:
                    page.wrong(f"{kind}: hovering says nothing")
            twin.evaluate("""node => { const cell = node.querySelector("svg > g");
                cell.classList.add("swatch");
                cell.firstChild.setAttribute("fill", "#123456"); }""")
            if "#123456" not in page.evaluate("check.idle()"):
                page.wrong(f"{kind}: a colour of a legend that nothing has is not found")

    def check_planted(self, names):
        """A page whose data were changed has no live picture of them, and says so."""
        for name, kind, right, wrong, expected in PLANTED:
            if name not in names:
                continue
            text = (self.folder / name).read_text(encoding="utf-8")
            changed = self.folder / f"planted_{name}"
            changed.write_text(text.replace(right, wrong, 1), encoding="utf-8")
            page, said = self.browser.new_page(), []
            page.on("console", lambda message: said.append(message.text))
            try:
                page.goto(changed.as_uri())
                page.wait_for_timeout(500)
            finally:
                changed.unlink()
            stays = page.locator("div.picture:not(.is-live, .has-twin):has(script.twin-data, script.request-data) img.picture")
            for image in stays.all():
                image.evaluate("image => { image.loading = 'eager'; return image.decode(); }")
            if right not in text or not any(expected in one for one in said) or stays.count() != 1 or not stays.first.is_visible():
                self.problems.append(f"{name}: with {wrong} as data of kind {kind} the console says {said}, and {stays.count()} pictures "
                                     "are not live")
            page.close()

    def check_without_scripts(self, name):
        """The figures that JavaScript replaces are there without it."""
        context = self.browser.new_context(java_script_enabled=False, color_scheme="light")
        page = context.new_page()
        page.goto((self.folder / name).as_uri())
        if not page.locator(f"#{Path(name).stem}_roofline img.figure").first.is_visible():
            self.problems.append(f"{name}: no roofline without JavaScript")
        if page.locator("div.picture").count() and not page.locator("img.picture").first.is_visible():
            self.problems.append(f"{name}: no picture without JavaScript")
        context.close()

    def check_slides(self, page, names):
        """What a slide holds fits on it. The arrow keys turn them, and without scripts all are there: of one chapter."""
        for name in names:
            self.visit(page, name)
            for place in page.evaluate("""all.flatMap((section, i) => (show(i + 1),
                    [section, ...section.querySelectorAll('pre')].some((part) => part.scrollWidth > part.clientWidth + 2
                                                                    || part.scrollHeight > part.clientHeight + 2) ? [i + 1] : []))"""):
                page.wrong(f"slide {place} does not fit")
        shown, texts = page.locator("section:visible"), []
        for key in ("Home", "ArrowRight", "ArrowRight", "ArrowLeft", "End", "ArrowRight"):
            page.keyboard.press(key)
            texts.append(f"{shown.count()}: {page.locator('output').inner_text()}")
        count = page.locator("section").count()
        expected = [f"1: {place} / {count}" for place in (1, 2, 3, 2, count, count)]
        if texts != expected:
            page.wrong(f"the keys lead to {texts}, and not to {expected}")
        context = self.browser.new_context(java_script_enabled=False)
        plain = context.new_page()
        plain.goto((self.folder / names[-1]).as_uri())
        if plain.locator("section:visible").count() != count:
            page.wrong("without scripts some slides are hidden")
        context.close()

    def check_first_page(self, page):
        """How much it loads, and how soon."""
        loaded = set()
        page.on("request", lambda request: loaded.add(Path(unquote(urlsplit(request.url).path))))
        self.visit(page, "index.html")
        page.wait_for_timeout(1000)
        size = sum(file.stat().st_size for file in loaded if file.is_file())
        took = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
        if not 0 < size <= FIRST_PAGE or took > 1000:
            page.wrong(f"loads {size:,} bytes in {took:.0f} ms")

    def check_menu(self, page):
        """A phone's menu opens and leads to a chapter, whose sections it lists; and a list of files folds."""
        self.visit(page, "index.html")
        link = page.locator('#menu a[href="chapter_3.html"]')
        if link.is_visible():
            page.wrong("the menu is not folded")
        page.click("#menu-box + label")
        link.click()
        page.wait_for_url("**/chapter_3.html")
        page.click("#menu-box + label")
        if not page.locator('#menu a[href="#chapter_3-results"]').is_visible():
            page.wrong("the menu does not list the sections of the page")
        self.visit(page, "files.html")
        rows, shown = page.locator("table.directory tr:visible"), []
        for click in (None, ".levels span >> nth=0", ".arrow >> nth=0", ".arrow >> nth=0", ".levels span >> nth=4"):
            if click:
                page.click(click)
            shown.append(rows.count())
        if not shown[0] == shown[4] > shown[2] > shown[1] == shown[3]:
            page.wrong(f"folding a list shows {shown} rows")

    def check_line_length(self, page):
        """check_page finds lines of more than 75 characters: of text that is made so wide."""
        self.visit(page, "guide_measuring.html")
        page.add_style_tag(content=".textblock > p { max-width: 40em !important; }")
        if not page.evaluate("check.long()"):
            page.wrong("lines of 90 characters are not found")

    def check_switch(self, page):
        self.visit(page, "index.html")
        dark = "document.documentElement.classList.contains('dark-mode')"
        before = page.evaluate(dark)
        page.click("#scheme")
        if page.evaluate(dark) == before:
            page.wrong("the switch between light and dark does nothing")
        page.click("#scheme")

    def three_clicks(self, page, chapter):
        """README -> chapter -> kernel -> dot."""
        self.visit(page, "index.html")
        page.click(f'div.contents table a[href="{chapter}"]')
        page.wait_for_url(f"**/{chapter}")
        level = page.locator(f'div.contents table.markdownTable a[href*="{Path(chapter).stem}_"]').last
        level.click()
        page.wait_for_timeout(300)
        where = page.evaluate("decodeURIComponent(location.hash.slice(1))")
        source = page.evaluate("id => check.showsSource(id)", where)
        if not source:
            page.wrong(f"the link to {where} shows no source")
        self.picture(page, f"three-clicks-2-{Path(chapter).stem}")
        page.locator(f'a.dot[href="#{Path(chapter).stem}_roofline"]').last.click()
        page.wait_for_timeout(500)
        top = page.evaluate(f"document.getElementById('{Path(chapter).stem}_roofline').getBoundingClientRect().top")
        if not -5 <= top <= SCREENS["desktop"][1] / 2:
            page.wrong(f"the link to the dot does not show the roofline (at {top})")
        self.picture(page, f"three-clicks-3-{Path(chapter).stem}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--screenshots", type=Path)
    options = parser.parse_args()
    folder = options.folder.resolve()
    names = ["index.html", "chapters.html", *(f.name for f in sorted(folder.glob("chapter_[0-9]*.html"))),
             *(f.name for f in sorted(folder.glob("guide_*.html"))), "files.html", "namespacecookbook.html"]
    names = [name for name in names if (folder / name).exists()]
    with sync_playwright() as playwright:
        system = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        try:
            browser = playwright.chromium.launch(executable_path=system, args=["--no-sandbox"])
        except Error as error:
            print(f"Skipped: the check in a browser: {str(error).splitlines()[0]}", file=sys.stderr)
            return 0
        site = Site(browser, folder, options.screenshots)
        for screen, scheme in (("desktop", "light"), ("desktop", "dark"), ("phone", "light"), ("phone", "dark")):
            page = site.open(screen, scheme)
            # Every page on two of the four; on the others what has every kind of content.
            every = (screen, scheme) in (("desktop", "light"), ("phone", "dark"))
            for name in names if every else [name for name in names if name in SAMPLE]:
                site.check_page(page, name, f"{Path(name).stem}-{screen}-{scheme}")
            page.context.close()
        page = site.open("desktop", "light")
        site.check_search(page, "coalesc", "chapter_1.html")
        site.check_search(page, "flash attention", "chapter_10.html")
        site.check_search(page, "mbarrier", "chapter_6.html")
        site.check_search(page, "mbarrier_invalidate", "namespacecookbook.html")
        site.check_switch(page)
        site.check_line_length(page)
        site.check_first_page(page)
        site.check_twins(page, names)
        site.check_planted(names)
        if "chapter_3.html" in names:
            site.check_lanes(page, "chapter_3.html")
            site.check_menu(site.open("phone", "light"))
            site.check_taps(site.open("phone", "light"), "chapter_3.html")
        site.check_slides(page, [file.name for file in sorted(folder.glob("slides_*.html"))])
        if "chapter_8.html" in names:
            site.check_dots(page, "chapter_8.html")
        for name in ("chapter_3.html", "chapter_10.html"):
            if (folder / name).exists() and "roofline-data" in (folder / name).read_text():
                site.check_explorer(page, name)
                site.check_without_scripts(name)
        clicked = 0
        for name in names:
            if (folder / name).stem.startswith("chapter_") and f'id="{Path(name).stem}_roofline"' in (folder / name).read_text():
                site.three_clicks(page, name)
                clicked += 1
        version = browser.version
        browser.close()
    for problem in site.problems[:60]:
        print(problem, file=sys.stderr)
    print(f"Chromium {version}: {len(names)} pages on {len(SCREENS)} screens, light and dark, 3 searches, three clicks in "
          f"{clicked} chapters, {len(site.problems)} problems")
    return 1 if site.problems else 0


if __name__ == "__main__":
    sys.exit(main())
