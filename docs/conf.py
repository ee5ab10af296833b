"""Sphinx: the site (make docs) and the manual pages (make man), from docs/ and what docs/tools generates."""

import os

project = "Propeller for Kubernetes"
version = release = os.environ.get("VERSION", "")
extensions = ["myst_parser"]
exclude_patterns = ["tools", "requirements.txt"]
source_suffix = {".md": "markdown"}
root_doc = "index"

# Headings are targets of links, as on a forge; generated pages set targets of their own for each field.
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4
nitpicky = True

html_theme = "furo"
html_title = project
html_copy_source = False
html_show_sphinx = False
# No page loads anything from another host.
html_theme_options = {"footer_icons": []}

man_show_urls = True
man_pages = [
    (f"reference/commands/{program}", program, about, "", section)
    for program, about, section in (
        ("propeller-controller", "run WebAssembly modules on devices, controlled by Kubernetes objects", 8),
        ("propeller-webhook", "validate and complete Propeller objects for the API server", 8),
        ("propeller-certgen", "create and renew the certificates of propeller-webhook", 8),
        ("propeller-standalone", "serve the Propeller API and run the controller without Kubernetes", 1),
        ("propeller-graph", "check files of resources, and match requests with them", 1),
        ("kubectl-propeller", "run and explain WebAssembly work on the devices of a cluster", 1),
    )
]
