"""What a figure drew: its artists, by the names that the figure gave them."""

from matplotlib.artist import Artist
from matplotlib.figure import Figure


def artists(figure: Figure, prefix: str = "") -> dict[str, Artist]:
    """The artists whose name (gid) starts with ``prefix``, by name."""
    found = figure.findobj(lambda artist: artist.get_gid() and artist.get_gid().startswith(prefix))
    return {artist.get_gid(): artist for artist in found}
