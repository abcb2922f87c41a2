"""Definitions in a real browser, both engines: hover, keyboard focus, tap, Escape; light and dark."""

import re

import pytest

from tools.book import load_book
from tools.environment import ROOT

pytestmark = pytest.mark.browser

BOOK = load_book(ROOT)
CHAPTER = next(page.href for page in BOOK.pages if page.id == "sec-gradient-checking")
TERMS = "main a.glossary-term"
BOX = ".glossary-popover"
ENGINES = ["pandoc", pytest.param("quarto", marks=[pytest.mark.quarto, pytest.mark.slow])]


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


@pytest.fixture(params=["file", "http"])
def address(request, engine):
    site = "book" if engine == "pandoc" else "quarto"
    if request.param == "file":
        return request.getfixturevalue(f"{site}_site").as_uri() + "/"
    return request.getfixturevalue(f"{site}_address")


@pytest.fixture
def open_page(chromium, address):
    contexts = []

    def open_(width=1280, scheme="light", **options):
        context = chromium.new_context(
            viewport={"width": width, "height": 740}, color_scheme=scheme, reduced_motion="reduce", **options
        )
        context.set_default_timeout(15_000)
        contexts.append(context)
        page = context.new_page()
        page.goto(address + CHAPTER)
        page.wait_for_load_state("networkidle")
        return page

    yield open_
    for context in contexts:
        context.close()


def contrast(page, selector):
    """The ratio of the luminances of an element's text and of the box around it."""
    colours = page.evaluate(
        """([selector, box]) => {
          const canvas = document.createElement("canvas").getContext("2d");
          const bytes = (colour) => {
            canvas.fillStyle = colour;
            canvas.fillRect(0, 0, 1, 1);
            return [...canvas.getImageData(0, 0, 1, 1).data];
          };
          const of = (name, property) => bytes(getComputedStyle(document.querySelector(name))[property]);
          return [of(selector, "color"), of(box, "backgroundColor")];
        }""",
        [selector, BOX],
    )
    lights = []
    for red, green, blue, _ in colours:
        parts = [
            c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)
        ]
        lights.append(0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2])
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def is_inside(page):
    box = page.locator(BOX).bounding_box()
    size = page.viewport_size
    return (
        box["x"] >= 0
        and box["x"] + box["width"] <= size["width"]
        and box["y"] + box["height"] <= size["height"]
    )


def test_a_pointer_that_rests_on_a_term_opens_its_definition_and_may_move_into_it(open_page):
    page = open_page()
    link = page.locator(TERMS).nth(3)
    link.scroll_into_view_if_needed()
    link.hover()
    page.wait_for_selector(BOX)
    assert page.locator(BOX).count() == 1 and is_inside(page)
    name = link.get_attribute("href").split("#term-")[1]
    assert page.locator(f"{BOX} > strong").inner_text().lower().replace(" ", "-") == name
    page.locator(f"{BOX} > a").hover()
    page.wait_for_timeout(500)
    assert page.locator(BOX).is_visible()
    page.mouse.move(2, 2)
    page.wait_for_selector(BOX, state="detached")


def test_a_click_of_the_mouse_goes_to_the_glossary(open_page):
    page = open_page()
    page.locator(TERMS).first.click()
    page.wait_for_url(re.compile(r"82-glossary\.html#term-"))
    assert page.evaluate("document.querySelector(':target') !== null")


def test_the_keyboard_opens_a_definition_closes_it_and_goes_on_to_the_next_control(open_page):
    page = open_page()
    page.locator(TERMS).first.evaluate(
        """(link) => {
          for (const [id, place] of [["before", "before"], ["behind", "after"]]) {
            const button = document.createElement("button");
            button.id = id;
            link[place](button);
          }
          document.getElementById("before").focus();
        }"""
    )
    page.keyboard.press("Tab")
    page.wait_for_selector(BOX)
    page.keyboard.press("Escape")
    page.wait_for_selector(BOX, state="detached")
    assert page.evaluate("document.activeElement.className") == "glossary-term"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    page.wait_for_selector(BOX)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "behind"
    page.wait_for_selector(BOX, state="detached")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"82-glossary\.html#term-"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_tap_opens_a_definition_and_a_tap_elsewhere_closes_it(open_page, scheme):
    page = open_page(360, scheme, has_touch=True, is_mobile=True)
    before = page.url
    links = page.locator(TERMS)
    assert links.count() > 20
    for number in range(0, links.count(), 7):
        link = links.nth(number)
        if not link.is_visible():
            continue
        link.scroll_into_view_if_needed()
        link.tap()
        page.wait_for_selector(BOX)
        assert page.url == before and is_inside(page), link.inner_text()
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert contrast(page, BOX) >= 7 and contrast(page, f"{BOX} > a") >= 4.5
        page.touchscreen.tap(355, 735)
        page.wait_for_selector(BOX, state="detached")
    links.first.scroll_into_view_if_needed()
    links.first.tap()
    page.wait_for_selector(BOX)
    links.first.tap()
    page.wait_for_selector(BOX, state="detached")
    links.first.tap()
    page.keyboard.press("Escape")
    page.wait_for_selector(BOX, state="detached")
    links.first.tap()
    page.locator(f"{BOX} > a").tap()
    page.wait_for_url(re.compile(r"82-glossary\.html#term-"))


def test_a_formula_in_a_definition_is_set(open_page):
    page = open_page()
    link = page.locator(f"{TERMS}[href$='#term-central-difference']")
    link.scroll_into_view_if_needed()
    link.hover()
    page.wait_for_selector(f"{BOX} math")
    assert page.locator(f"{BOX} [id]").count() == 0


def test_without_scripts_a_term_is_a_link(open_page):
    page = open_page(java_script_enabled=False)
    page.locator(TERMS).first.click()
    page.wait_for_url(re.compile(r"82-glossary\.html#term-"))
