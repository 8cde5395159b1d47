"""Sphinx: the site that ``make docs`` builds. Every warning is an error there."""

import re

from discreet import __version__

project = "discreet"
author = "The discreet authors"
copyright = author
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "index"
source_suffix = {".md": "markdown"}
exclude_patterns: list[str] = []
highlight_language = "text"
language = "en"

# Anchors are those that code hosts make of headings, so that one link works in both places.
myst_heading_anchors = 4
myst_enable_extensions: list[str] = []

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"discreet {__version__}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_domain_indices = False
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
# Summaries would be fetched, which a browser forbids on pages from disk.
html_show_search_summary = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"


MARKUP = re.compile(r"([\\*|`_])")
PAGE = re.compile(r"\bdocs/([\w/-]+)\.md")


def plain_prose(app, what, name, obj, options, lines):  # noqa: ARG001
    """Escape |F| and f* in docstrings: they are prose with ``code`` and examples, not markup.

    A page that they name by its path becomes a link.
    """
    example = False
    for i, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            parts = re.split(r"(``.+?``)", line)
            parts[::2] = [MARKUP.sub(r"\\\1", part) for part in parts[::2]]
            parts[::2] = [PAGE.sub(r":doc:`/\1`", part) for part in parts[::2]]
            lines[i] = "".join(parts)


SIGNATURE = re.compile(r'(<span class="sig-paren">\(</span>\s*)<dl>(.*?)</dl>', re.DOTALL)


def for_every_reader(app, pagename, templatename, context, doctree):  # noqa: ARG001
    """Correct levels of headings, and make scrollable parts reachable by keyboard."""
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace(
        'role="heading"', 'role="heading" aria-level="2"'
    )
    body = context.get("body", "")
    body = body.replace("<pre>", '<pre tabindex="0">')
    body = body.replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')
    context["body"] = SIGNATURE.sub(_as_lines, body)


def _as_lines(signature):
    """Format arguments as lines, not as definitions without a term."""
    lines = signature[2].replace("<dd>", '<div class="argument">').replace("</dd>", "</div>")
    return f"{signature[1]}{lines}"


def setup(app):
    app.connect("autodoc-process-docstring", plain_prose, priority=400)  # before napoleon
    app.connect("html-page-context", for_every_reader, priority=900)  # after the theme
