"""How the site is built, by `make docs`. Nothing is loaded from elsewhere, at build time or by readers."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from unfog.version import __version__  # noqa: E402

project = "unfog"
author = "the unfog authors"
version = release = __version__
language = "en-GB"

extensions = [
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "docs._ext.mathml",
    "docs._ext.order",
    "docs._ext.contributing",
    "docs._ext.lean",
    "docs._ext.reachable",
    "docs._ext.search",
    "docs._ext.generate",
    "docs._ext.phases",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_ext", "_templates", "gallery", "skeletons", "images/*.py"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
html_math_renderer = "mathml"
python_maximum_signature_line_length = 88
add_module_names = False

html_theme = "furo"
html_title = "unfog"
html_static_path = ["_static"]
html_css_files = ["unfog.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
html_permalinks_icon = "#"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5e8a", "color-brand-content": "#0b5e8a"},
    "dark_css_variables": {"color-brand-primary": "#7cc4ec", "color-brand-content": "#7cc4ec"},
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"/plot_",
    "plot_gallery": True,
    "image_scrapers": ("docs._ext.pictures.scraper", "matplotlib"),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "backreferences_dir": None,
    "write_computation_times": False,
    "min_reported_time": 1e9,  # a picture does not say how busy the machine was that drew it
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
}
