"""Pictures of the gallery that pyplot does not know of: those that `unfog.figure` and others hand back."""

from typing import Any

from matplotlib import pyplot
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst  # type: ignore[import-untyped]


def scraper(block: Any, variables: dict[str, Any], conf: dict[str, Any]) -> str:  # noqa: ARG001
    """Save each figure that a script holds by a name, once, with its title for those who cannot see it."""
    paths, titles = [], []
    for found in _figures(variables["example_globals"]):
        path = next(variables["image_path_iterator"])
        found.savefig(path, dpi=120, bbox_inches="tight", facecolor="white")
        vars(found)["shown_in_the_gallery"] = True
        paths.append(path)
        titles.append(next((axes.get_title() for axes in found.axes if axes.get_title()), ""))
    return figure_rst(paths, conf["src_dir"], ", ".join(filter(None, titles))) if paths else ""


def _figures(names: dict[str, Any]) -> list[Figure]:
    """Those not shown yet, and not drawn by pyplot: sphinx-gallery finds these by itself."""
    open_ = [pyplot.figure(number) for number in pyplot.get_fignums()]
    held = {id(one): one for one in names.values() if isinstance(one, Figure)}
    return [one for one in held.values() if "shown_in_the_gallery" not in vars(one) and one not in open_]
