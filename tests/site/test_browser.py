"""The real book in a real browser: phone and desk, light and dark, from a server and from a folder."""

import re

import pytest

from tools.book import load_book
from tools.environment import ROOT

pytestmark = pytest.mark.browser

PAGES = [page.href for page in load_book(ROOT).pages]
CHAPTER = next(page.href for page in load_book(ROOT).pages if page.notebook)
SCROLLING = "main :is(pre, .table-scroll, .figure-scroll, .equation-body)"
OVERFLOWING = """() => {
  const wide = [];
  for (const element of document.querySelectorAll("body *")) {
    const box = element.getBoundingClientRect();
    if (box.right <= innerWidth + 1 || !box.width) continue;
    if (element.closest("dialog, .visually-hidden, #sidebar, math")) continue;
    let inside = false;
    for (let up = element.parentElement; up && up !== document.body; up = up.parentElement) {
      if (getComputedStyle(up).overflowX !== "visible") inside = true;
    }
    if (!inside) wide.push(element.tagName + "." + element.className);
  }
  const scrolls = document.documentElement.scrollWidth > innerWidth;
  return scrolls ? ["the page"].concat(wide) : wide;
}"""


@pytest.fixture(params=["file", "http"])
def address(request, book_site):
    if request.param == "file":
        return book_site.as_uri() + "/"
    return request.getfixturevalue("book_address")


class Opened:
    """A page and what went wrong while it was open."""

    def __init__(self, context, base):
        self.base = base
        self.wrong = []
        self.page = context.new_page()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("requestfailed", self._failed)
        self.page.on("request", self._request)

    def _console(self, message):
        if message.type in ("error", "warning"):
            self.wrong.append(f"{message.type}: {message.text}")

    def _failed(self, request):
        if request.failure != "net::ERR_ABORTED":  # which is what leaving a page does to its requests
            self.wrong.append(f"failed: {request.url}: {request.failure}")

    def _request(self, request):
        if not request.url.startswith((self.base, "data:", "blob:")):
            self.wrong.append(f"request: {request.url}")

    def go(self, href):
        self.page.goto(self.base + href)
        self.page.evaluate("document.fonts.ready.then(() => true)")
        return self.page


@pytest.fixture
def open_page(chromium, address):
    contexts = []

    def open_(href, width=1280, scheme="light", **options):
        context = chromium.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce", **options
        )
        context.set_default_timeout(15_000)
        contexts.append(context)
        opened = Opened(context, address)
        opened.go(href)
        return opened

    yield open_
    for context in contexts:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_every_page_opens_without_an_error_a_foreign_request_or_overflow(open_page, width, scheme):
    opened = open_page(PAGES[0], width, scheme)
    for href in PAGES:
        page = opened.go(href)
        assert page.evaluate(OVERFLOWING) == [], href
        broken = page.evaluate(
            "[...document.images].filter((i) => i.complete && !i.naturalWidth).map((i) => i.src)"
        )
        assert broken == [], href
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        red = int(re.search(r"\d+", ground)[0])
        assert (red < 64) if scheme == "dark" else (red > 192), f"{href}: {ground}"
    assert opened.wrong == []


def test_formulas_are_set_in_the_mathematical_font_of_the_site(open_page):
    page = open_page(CHAPTER).page
    loaded = page.evaluate("[...document.fonts].filter((f) => f.status === 'loaded').map((f) => f.family)")
    assert {"STIX Two Math", "STIX Two Text"} <= {name.strip('"') for name in loaded}
    family = page.evaluate("getComputedStyle(document.querySelector('math')).fontFamily")
    assert family.startswith('"STIX Two Math"')
    height = page.evaluate("document.querySelector('.equation math').getBoundingClientRect().height")
    assert height > 15


def test_figures_are_dark_on_white_and_light_on_dark(open_page):
    filter_of = "getComputedStyle(document.querySelector('main figure img')).filter"
    assert open_page(CHAPTER, scheme="light").page.evaluate(filter_of) == "none"
    assert "invert" in open_page(CHAPTER, scheme="dark").page.evaluate(filter_of)


def test_the_search_finds_a_word_and_opens_its_section_with_the_keyboard_alone(open_page):
    opened = open_page(PAGES[0])
    page = opened.page
    page.keyboard.press("/")
    page.wait_for_function("globalThis.denseSearchIndex !== undefined")
    page.keyboard.type("hyperplane")
    page.wait_for_selector("#search-results a mark")
    first = page.locator("#search-results a").first
    assert first.get_attribute("aria-selected") == "true"
    if page.locator("#search-results a").count() > 1:
        page.keyboard.press("ArrowDown")
        assert page.locator("#search-results a").nth(1).get_attribute("aria-selected") == "true"
        page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r".*chapters/.*\.html.*"))
    assert "hyperplane" in page.locator("main").inner_text().lower()
    assert opened.wrong == []


def test_the_search_says_when_there_is_nothing_and_closes_with_escape(open_page):
    page = open_page(PAGES[0]).page
    page.keyboard.press("Control+k")
    page.wait_for_function("globalThis.denseSearchIndex !== undefined")
    page.keyboard.type("xyzzyxyzzy")
    page.wait_for_function("document.querySelector('.search-note').textContent === 'Nothing found.'")
    page.keyboard.press("Escape")
    assert not page.locator("#search").evaluate("(dialog) => dialog.open")


def test_the_colours_can_be_chosen_and_stay_chosen(open_page):
    opened = open_page(PAGES[0], scheme="light")
    page = opened.page
    theme = "document.documentElement.dataset.theme"
    assert page.evaluate(theme) == "light"
    button = page.locator(".theme-button")
    button.click()
    button.click()
    assert page.evaluate(theme) == "dark"
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
    assert opened.go(CHAPTER).evaluate(theme) == "dark"
    page.locator(".theme-button").click()
    page.reload()
    assert page.evaluate("document.documentElement.dataset.themeChoice") == "auto"
    assert opened.wrong == []


def test_the_copy_button_copies_the_code_and_nothing_else(open_page, address):
    options = {"permissions": ["clipboard-read", "clipboard-write"]} if address.startswith("http") else {}
    page = open_page(CHAPTER, **options).page
    page.evaluate("navigator.clipboard.writeText = async (text) => { globalThis.copied = text; }")
    block = page.locator("main div.sourceCode").first
    code = block.locator("code").evaluate("(code) => code.textContent")
    button = block.locator(".copy-button")
    button.focus()
    page.keyboard.press("Enter")
    page.wait_for_function("globalThis.copied !== undefined")
    assert page.evaluate("globalThis.copied").rstrip("\n") == code.rstrip("\n")
    assert button.inner_text() == "Copied"


def test_every_control_can_be_reached_and_seen_with_the_keyboard(open_page):
    page = open_page(CHAPTER).page
    expected = page.evaluate(
        """() => [...document.querySelectorAll("a[href], button, summary, input")].filter(
          (e) => e.tabIndex >= 0 && e.checkVisibility({ contentVisibilityAuto: true })
        ).length"""
    )
    page.evaluate("globalThis.seen = new Set(); globalThis.faint = []")
    record = """() => {
      const element = document.activeElement;
      if (element === document.body) return false;
      const style = getComputedStyle(element);
      if (style.outlineStyle === "none" && element.id !== "main") faint.push(element.outerHTML.slice(0, 80));
      seen.add(element);
      return true;
    }"""
    for _ in range(expected + 200):
        page.keyboard.press("Tab")
        if not page.evaluate(record):
            break
    reached = page.evaluate("[...seen].filter((e) => e.matches('a[href], button, summary, input')).length")
    assert reached == expected
    assert page.evaluate("faint") == []


def test_the_first_tab_offers_the_way_to_the_text(open_page):
    page = open_page(CHAPTER).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip-link"
    assert page.evaluate("document.activeElement.getBoundingClientRect().top") >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_the_menu_on_a_phone_opens_closes_and_leads_on(open_page):
    opened = open_page(CHAPTER, width=360)
    page = opened.page
    sidebar, button = page.locator("#sidebar"), page.locator(".menu-button")
    assert not sidebar.is_visible()
    button.click()
    assert sidebar.is_visible()
    assert button.get_attribute("aria-expanded") == "true"
    assert page.evaluate("document.activeElement.getAttribute('aria-current')") == "page"
    page.keyboard.press("Escape")
    assert not sidebar.is_visible()
    assert page.evaluate("document.activeElement.className") == "menu-button"
    button.click()
    sidebar.locator("a").first.click()
    page.wait_for_url("**/index.html")
    assert opened.wrong == []


def test_boxes_that_scroll_sideways_can_be_scrolled_with_the_keyboard(open_page):
    opened = open_page(CHAPTER, width=360)
    for href in PAGES:
        stuck = opened.go(href).evaluate(
            """(boxes) => [...document.querySelectorAll(boxes)]
              .filter((box) => box.scrollWidth > box.clientWidth + 1 && box.getClientRects().length)
              .filter((box) => box.tabIndex !== 0).length""",
            SCROLLING,
        )
        assert stuck == 0, href


def test_a_link_into_closed_text_opens_it(open_page):
    page = open_page(CHAPTER).page
    page.evaluate(
        """() => {
          const closed = document.querySelector("main details:not([open])");
          closed.lastElementChild.id = "deep-inside";
          location.hash = "deep-inside";
        }"""
    )
    page.wait_for_function("document.getElementById('deep-inside').closest('details').open")


def test_an_address_with_a_broken_anchor_opens_the_page_all_the_same(open_page):
    opened = open_page(CHAPTER + "#50%")
    assert opened.page.locator("main .copy-button").count() > 0
    assert opened.page.evaluate("window.dispatchEvent(new Event('hashchange'))")
    assert opened.wrong == []


def test_a_reference_shows_what_it_means_when_the_pointer_rests_on_it(open_page):
    opened = open_page(CHAPTER)
    page = opened.page
    link = page.locator("main a.quarto-xref[href^='#eq-']").first
    link.hover()
    page.wait_for_selector(".preview math")
    assert page.locator(".preview [id]").count() == 0
    page.keyboard.press("Escape")
    assert page.locator(".preview").is_hidden()
    assert opened.wrong == []


def test_the_contents_follow_the_reading(open_page):
    page = open_page(CHAPTER).page
    link = page.locator("#toc a").nth(5)
    link.click()
    page.wait_for_function("document.querySelector('#toc a[aria-current]') !== null")
    assert page.locator("#toc a[aria-current]").get_attribute("href") == link.get_attribute("href")


def test_the_text_is_all_there_without_scripts(chromium, book_site):
    context = chromium.new_context(java_script_enabled=False, viewport={"width": 360, "height": 800})
    page = context.new_page()
    for href in PAGES:
        page.goto((book_site / href).as_uri())
        assert page.locator("#sidebar").is_visible()
        assert page.locator("main h1").is_visible()
        for pane in page.locator(".tab-pane").all():
            assert pane.is_visible()
    context.close()


def test_tabs_are_tabs_for_the_keyboard_too(chromium, sample_site):
    page = chromium.new_page()
    page.goto((sample_site / "chapters" / "01-first.html").as_uri())
    tabs = page.locator(".panel-tabset [role=tab]")
    assert [tab.inner_text() for tab in tabs.all()] == ["Loop", "NumPy"]
    assert page.get_by_text("Second pane.").is_hidden()
    tabs.first.focus()
    page.keyboard.press("ArrowRight")
    assert tabs.nth(1).get_attribute("aria-selected") == "true"
    assert page.get_by_text("Second pane.").is_visible()
    page.keyboard.press("Home")
    assert tabs.first.get_attribute("aria-selected") == "true"
    page.close()
