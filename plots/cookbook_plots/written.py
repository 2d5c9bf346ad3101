# SPDX-License-Identifier: MIT
"""Somebody's Markdown as HTML: text, lists, tables, code and pictures. Raw HTML in it becomes text, and nothing in it becomes a
script. Pictures are those of its folder, and are put into the page."""
import base64
import html

from markdown_it import MarkdownIt
from markdown_it.token import Token

from . import book
from .results import ResultError

QUESTIONS = book.ROOT / "tools/capstone/templates/README.md"
KINDS = {".svg": "svg+xml", ".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".gif": "gif", ".webp": "webp"}
UNANSWERED = '<p class="small">Not answered.</p>\n'


def picture(folder, source, words):
    """An image of the folder as a part of the page. In an <img> an SVG runs no script and loads nothing."""
    file = (folder / source).resolve()
    if file.suffix.lower() in KINDS and file.is_file() and folder.resolve() in file.parents:
        data = base64.b64encode(file.read_bytes()).decode()
        return f'<img src="data:image/{KINDS[file.suffix.lower()]};base64,{data}" alt="{html.escape(words)}">'
    return f'<span class="bad">[no picture {html.escape(source)} in this folder: {html.escape(words)}]</span>'


def parser_of(folder):
    # js-default: CommonMark and tables, no raw HTML, no links such as javascript:
    parser = MarkdownIt("js-default", {"html": False})
    parser.add_render_rule("image", lambda self, tokens, index, options, env: picture(
        folder, tokens[index].attrGet("src") or "", tokens[index].content))
    return parser


def paragraphs(tokens):
    """(where it begins, its text) of each paragraph; it has three tokens."""
    return [(i, tokens[i + 1].content) for i, token in enumerate(tokens) if token.type == "paragraph_open"]


def page_of(file):
    """The Markdown of a file without its title, and without the questions of ./run new; "" where there is no such file."""
    if not file.exists():
        return ""
    parser = parser_of(file.parent)
    try:
        tokens = parser.parse(file.read_text())
        asked = parser.parse(QUESTIONS.read_text())
    except UnicodeDecodeError as error:
        raise ResultError(f"{file}: cannot be read: {error}") from error
    if tokens and tokens[0].type == "heading_open" and tokens[0].tag == "h1":
        tokens = tokens[3:]
    questions = {text for _, text in paragraphs(asked)}
    for i, text in reversed(paragraphs(tokens)):
        if text in questions:
            del tokens[i:i + 3]
    headings = {asked[i + 1].content for i, token in enumerate(asked) if token.type == "heading_open"}
    for i in reversed(range(len(tokens))):
        if tokens[i].type != "heading_open":
            continue
        is_empty = i + 3 == len(tokens) or tokens[i + 3].type == "heading_open"
        if is_empty and tokens[i + 1].content in headings:
            tokens.insert(i + 3, Token("html_block", "", 0, content=UNANSWERED))
        if tokens[i].tag == "h1":
            tokens[i].tag = tokens[i + 2].tag = "h2"
    return parser.renderer.render(tokens, parser.options, {})
