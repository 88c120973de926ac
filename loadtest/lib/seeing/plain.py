"""plain: the colours of a style sheet as attributes of the elements, for readers of SVG that know no
CSS, or none with variables (librsvg, and some that make PDF). A style sheet, where it is understood,
overrides an attribute.
"""

import re

RULE = re.compile(r"^\.xray ([\w.]+) \{ ([^}]*) \}$", re.MULTILINE)  # without those in a @media
ELEMENT = re.compile(r'<(\w+) class="([^"]*)"')
FONT = re.compile(r"font: ([\d.]+px) [^;]*")  # a short form, which is no attribute


def attributed(svg, style):
    """The SVG; of several rules that set the same property the last one counts, as in CSS (whose
    rules here are in the order in which they count)."""
    variables = dict(re.findall(r"(--\w+): ([^;]+);", style.split("@media")[0]))
    rules = [(selector.partition(".")[0], set(selector.split(".")[1:]), dict(re.findall(
        r"([\w-]+): ([^;]+);", FONT.sub(r"font-family: sans-serif; font-size: \1", declarations))))
        for selector, declarations in RULE.findall(style)]

    def element(found):
        name, classes = found.group(1), set(found.group(2).split())
        values = {}
        for tag, wanted, declarations in rules:
            if tag in ("", name) and wanted <= classes:
                values.update(declarations)
        values.pop("pointer-events", None)
        return found.group() + "".join(' %s="%s"' % (key, variables.get(
            value.replace("var(", "").rstrip(")"), value)) for key, value in values.items())

    return ELEMENT.sub(element, svg)
