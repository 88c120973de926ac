"""gnuplot: draws what a list of its commands says, and hands it over as SVG for a page.

The SVG stands inside HTML, several times on one page: so its ids begin with a name of its own,
it is as wide as its place allows, and what gnuplot says of itself gives way to a title and a
description for people who hear the page instead of seeing it.
"""

import html
import os
import re
import shutil
import subprocess

from lib import Trouble

FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"  # what is there, never fetched
LIMIT_SECONDS = 60


def available():
    return shutil.which("gnuplot") is not None


def quoted(text):
    """A string for gnuplot that means nothing but itself: no escapes, no `commands`."""
    return "'%s'" % " ".join(str(text).split()).replace("'", "''")


def colour(rgb):
    """'#0072B2' as gnuplot takes it."""
    return "rgb '%s'" % rgb


def font(size, bold=False):
    return "font 'Arial%s,%d'" % (":Bold" if bold else "", size)


def draw(commands, size, name, title, description):
    """The picture as SVG text; None if there is no gnuplot. Trouble if it does not understand."""
    if not available():
        return None
    terminal = ("set terminal svg dynamic noenhanced size %d,%d name 'gnuplot' font 'Arial,15' "
                "background '#ffffff'" % size)
    script = "\n".join(["set encoding utf8", terminal, *commands, ""])
    try:  # -d: nobody's ~/.gnuplot
        done = subprocess.run(["gnuplot", "-d"], input=script, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, encoding="utf-8", timeout=LIMIT_SECONDS,
                              env=dict(os.environ, LC_ALL="C.UTF-8"), check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Trouble("gnuplot: %s" % error) from error
    if done.returncode or "</svg>" not in done.stdout:
        raise Trouble("gnuplot: %s" % (done.stderr.strip() or "status %d" % done.returncode))
    return for_a_page(done.stdout, name, title, description)


def for_a_page(svg, name, title, description):
    """gnuplot's SVG, fit to stand inside HTML beside others."""
    view = re.search(r'viewBox="[^"]*"', svg).group()
    body = svg[svg.index("<g id="):]  # past its head, title and description
    body = re.sub(r"<title>.*?</title>", "", body, flags=re.DOTALL)  # a tip on every line drawn
    body = re.sub(r"\t<g [^>]*>\s*<text></text>\s*</g>\n", "", body)  # a marker without a name
    body = re.sub(r'<g fill="none"[^>]*>\s*</g>\n?', "", body)  # nothing in it
    body = re.sub(r"\t?<filter.*?</filter>\n", "", body, flags=re.DOTALL)  # for boxed text: unused
    body = re.sub(r'\b(id=["\']|href=["\']#)', lambda found: found.group() + name + "-", body)
    body = re.sub(r'font-family="Arial(:Bold)?"', lambda found: 'font-family="%s"%s' % (
        FONT, ' font-weight="bold"' if found.group(1) else ""), body)
    head = ('<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
            '%s role="img" aria-labelledby="%s-title %s-description">\n'
            '<title id="%s-title">%s</title>\n<desc id="%s-description">%s</desc>\n' % (
                view, name, name, name, html.escape(title), name, html.escape(description)))
    return head + body
