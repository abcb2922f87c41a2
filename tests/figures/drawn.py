"""What a figure drew: its artists, by the names that the figure gave them."""

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.text import Text


def artists(figure: Figure, prefix: str = "") -> dict[str, Artist]:
    """The artists whose name (gid) starts with ``prefix``, by name."""
    found = figure.findobj(lambda artist: artist.get_gid() and artist.get_gid().startswith(prefix))
    return {artist.get_gid(): artist for artist in found}


def check_saved(figure: Figure, path) -> None:
    """Something is drawn, on a transparent ground."""
    figure.savefig(path)
    assert path.stat().st_size > 5_000
    assert figure.get_facecolor()[3] == 0


def check_readable(figure: Figure) -> None:
    """Narrow enough for a phone, and no text is small."""
    assert figure.get_size_inches()[0] <= 6
    written = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
    assert min(text.get_fontsize() for text in written) >= 10


def check_apart(figure: Figure) -> None:
    """No text inside the axes lies on another."""
    figure.canvas.draw()
    for axes in figure.axes:
        boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]
        for at, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[at + 1 :])
