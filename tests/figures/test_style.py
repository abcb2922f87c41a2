"""Every colour of the figures is readable on the white page and, inverted, on the dark one."""

import matplotlib as mpl
import pytest
from matplotlib.colors import to_rgb

from denselayer_figures import style

DARK_PAGE = "#15181d"


def luminance(rgb) -> float:
    channels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2]


def contrast(one, other) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def inverted(rgb):
    """What the CSS filter ``invert(1) hue-rotate(180deg)`` makes of a colour (Filter Effects Module 1)."""
    r, g, b = (1 - channel for channel in rgb)
    rotated = (
        -0.574 * r + 1.430 * g + 0.144 * b,
        0.426 * r + 0.430 * g + 0.144 * b,
        0.426 * r + 1.430 * g - 0.856 * b,
    )
    return tuple(min(1.0, max(0.0, channel)) for channel in rotated)


@pytest.mark.parametrize("name", style.PALETTE)
def test_ink_is_readable_on_white(name):
    assert contrast(to_rgb(style.PALETTE[name]), (1, 1, 1)) >= 4.5


@pytest.mark.parametrize("name", style.PALETTE)
def test_inverted_ink_is_readable_on_the_dark_page(name):
    assert contrast(inverted(to_rgb(style.PALETTE[name])), to_rgb(DARK_PAGE)) >= 4.5


def test_figures_have_no_background_of_their_own():
    figure, axes = style.new_figure()
    assert figure.get_facecolor()[3] == 0
    assert axes.get_facecolor()[3] == 0
    mpl.pyplot.close(figure)


def test_the_style_leaves_the_readers_own_settings_alone():
    before = dict(mpl.rcParams)
    mpl.pyplot.close(style.new_figure()[0])
    assert dict(mpl.rcParams) == before


def test_an_instructor_can_use_an_own_file_of_parameters(tmp_path, monkeypatch):
    own = tmp_path / "own.yml"
    own.write_text("neuron: {bias: 7}\n", encoding="utf-8")
    assert style.parameters("neuron", own) == {"bias": 7}
    monkeypatch.setenv("DENSELAYER_PARAMETERS", str(own))
    assert style.parameters("neuron") == {"bias": 7}


def test_a_missing_section_is_answered_with_those_that_exist(tmp_path):
    own = tmp_path / "own.yml"
    own.write_text("neuron: {}\n", encoding="utf-8")
    with pytest.raises(KeyError, match=r"no section 'nueron'.*neuron"):
        style.parameters("nueron", own)
