"""Draws samples as SVG: one small chart below the other, all over the same time."""

from html import escape

WIDTH, HEIGHT, LEFT, GAP = 900, 130, 70, 46
COLOURS = ("#1f6feb", "#d1480f", "#1a7f37", "#8250df")
CHARTS = [
    ("Files ready, each second", ["ready per second"]),
    ("Files under way", ["unfinished"]),
    ("Processors in use", ["server CPU", "clients CPU", "machine idle"]),
    ("Processor time of a fixed work, ms: how fast the machine is", ["fixed work CPU ms"]),
    ("Memory of the server, MB", ["rss MB", "readers MB"]),
    ("Open files and sockets", ["files open"]),
    ("Database, MB", ["database MB"]),
    ("Streams and idle connections", ["streams", "connections"]),
    ("From the confirmation to ready, ms", ["confirm to ready p50 ms", "confirm to ready p99 ms"]),
    ("Confirmation, ms", ["confirm p50 ms", "confirm p99 ms"]),
    ("Search, ms", ["search p50 ms", "search p99 ms"]),
    ("Events: from the change to the client, ms", ["event lag p50 ms", "event lag p99 ms"]),
]


def svg(samples, title):
    last = max(line["seconds"] for line in samples)
    total = 50 + len(CHARTS) * (HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH + LEFT + 40}" height="{total}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{LEFT}" y="24" font-size="16">{escape(title)}</text>',
    ]
    for number, (name, columns) in enumerate(CHARTS):
        parts += chart(samples, name, columns, last, 50 + number * (HEIGHT + GAP))
    return "\n".join([*parts, "</svg>\n"])


def chart(samples, name, columns, last, top):
    most = max([line[column] or 0 for line in samples for column in columns] + [0]) or 1
    bottom = top + 14 + HEIGHT
    yield f'<text x="{LEFT}" y="{top + 6}" font-weight="bold">{escape(name)}</text>'
    yield f'<rect x="{LEFT}" y="{top + 14}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#ccc"/>'
    for part in (0, 0.5, 1):
        y = bottom - part * HEIGHT
        yield f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y}" y2="{y}" stroke="#eee"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{number(most * part)}</text>'
    for part in (0, 0.25, 0.5, 0.75, 1):
        x = LEFT + part * WIDTH
        yield f'<text x="{x}" y="{bottom + 14}" text-anchor="middle" fill="#666">{last * part / 60:.1f} min</text>'
    for index, column in enumerate(columns):
        points = [
            f"{LEFT + line['seconds'] / last * WIDTH:.1f},{bottom - line[column] / most * HEIGHT:.1f}"
            for line in samples if line[column] is not None
        ]
        colour = COLOURS[index]
        yield f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        if len(columns) > 1:
            yield f'<text x="{LEFT + WIDTH - 8}" y="{top + 30 + index * 15}" text-anchor="end" fill="{colour}">{escape(column)}</text>'


def number(value):
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
