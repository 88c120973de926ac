"""gnuplot: draws what a list of gnuplot commands says, and returns it as SVG for a page.

The SVG may be inside HTML, several times on one page, or a file of its own. So its ids begin with a
name, it loads nothing, and it has colours for a dark page as well. gnuplot's own title is replaced
by a title and a description for people who hear the page instead of seeing it.
"""

import html
import os
import re
import shutil
import subprocess

from lib import Trouble

COMMON = ('fill="none"', 'color="black"', 'stroke="currentColor"', 'stroke-linecap="butt"',
          'stroke-linejoin="miter"')
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
LIMIT_SECONDS = 60

# As in the chapters' drawings. Any other colour is lightened for a dark page if that needs it.
PAPER, INK, FAINT, GRID, OTHERS = "#ffffff", "#1f2328", "#525c66", "#e6eaed", "#c8cfd6"
DARK = {PAPER: "#10151c", INK: "#e8ecf1", FAINT: "#a7b1bc", GRID: "#262f39", OTHERS: "#46515e"}
LIGHT_ENOUGH = 120  # of 255
OVER_LINES = 13  # letters of this size have some space around them
STYLE = """\
[font-size="%d.00"] text { stroke: %s; stroke-width: 3px; paint-order: stroke }
@media (prefers-color-scheme: dark) {
[font-size="%d.00"] text { stroke: %s }
%%s
}""" % (OVER_LINES, PAPER, OVER_LINES, DARK[PAPER])


def available():
    return shutil.which("gnuplot") is not None


def quoted(text):
    """A string for gnuplot that is taken literally: no escapes, no `commands`."""
    return "'%s'" % " ".join(str(text).split()).replace("'", "''")


def brightness(rgb):
    """The brightness of '#0072b2', for example, as an eye sees it: 0 to 255."""
    red, green, blue = (int(rgb[at:at + 2], 16) for at in (1, 3, 5))
    return 0.3 * red + 0.59 * green + 0.11 * blue


def for_dark(rgb):
    """The colour that replaces this one on a dark page."""
    white = max(0.0, (LIGHT_ENOUGH - brightness(rgb)) / (255 - brightness(rgb) or 1))
    return DARK.get(rgb) or "#" + "".join(
        "%02x" % round(part + (255 - part) * white) for part in bytes.fromhex(rgb[1:]))


def draw(commands, size, name, title, description):
    """The picture as SVG text; None if there is no gnuplot. Trouble if gnuplot refuses the
    commands."""
    if not available():
        return None
    terminal = ("set terminal svg noenhanced size %d,%d name 'gnuplot' font 'Arial,15' "
                "background '%s'" % (*size, PAPER))
    script = "\n".join(["set encoding utf8", terminal, *commands, ""])
    try:  # -d: does not read ~/.gnuplot
        done = subprocess.run(["gnuplot", "-d"], input=script, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, encoding="utf-8", timeout=LIMIT_SECONDS,
                              env=dict(os.environ, LC_ALL="C.UTF-8"), check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Trouble("gnuplot: %s" % error) from error
    if done.returncode or "</svg>" not in done.stdout:
        raise Trouble("gnuplot: %s" % (done.stderr.strip() or "status %d" % done.returncode))
    return for_a_page(done.stdout, size, name, title, description)


def for_a_page(svg, size, name, title, description):
    """gnuplot's SVG, fit to stand inside HTML beside others."""
    body = svg[svg.index("<g id="):]  # past its head, title and description
    body = body.replace("<rect ", '<rect stroke="none" ', 1)  # the paper
    for useless in (r"<title>.*?</title>",  # a tip on every line drawn
                    r"\t<g [^>]*>\s*<text></text>\s*</g>\n",  # a marker without a name
                    r"\t?<filter.*?</filter>\n",  # for boxed text, which there is none of
                    r"<g [^>]*>\s*</g>\n?"):  # nothing in it
        body = re.sub(useless, "", body, flags=re.DOTALL)
    body = re.sub(r'\b(id=["\']|href=["\']#)', lambda found: found.group() + name + "-", body)
    body = body.replace('font-family="Arial:Bold"', 'font-weight="bold"')
    for everywhere in (*COMMON, 'font-family="Arial"'):  # stands once, at the head
        body = body.replace(" " + everywhere, "")
    body = re.sub(r"rgb\( *(\d+), *(\d+), *(\d+)\)", lambda found: "#%02x%02x%02x" % tuple(
        map(int, found.groups())), body)
    head = ('<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
            'viewBox="0 0 {1} {2}" width="{1}" height="{2}" font-family="{6}" {7} role="img" '
            'aria-labelledby="{0}-title {0}-description">\n<title id="{0}-title">{3}</title>\n'
            '<desc id="{0}-description">{4}</desc>\n<style>\n{5}\n</style>\n'.format(
                name, *size, html.escape(title), html.escape(description), _style(body),
                FONT, " ".join(COMMON)))
    return head + body


def _style(body):
    """Replaces the colours of the picture by those for a dark page."""
    found = set(re.findall(r"""\b(fill|stroke|color) ?= ?["'](#[0-9a-f]{6})["']""", body))
    return STYLE % "\n".join("svg [{0}='{1}'] {{ {0}: {2} }}".format(where, rgb, for_dark(rgb))
                             for where, rgb in sorted(found) if for_dark(rgb) != rgb)
