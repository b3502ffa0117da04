"""What the scripts that write pages share."""


def table(rows, head):
    """Return a Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def fill(page, start, end, text):
    """Return a page's text with what stands between two comments replaced."""
    before, rest = page.split(start)
    _, after = rest.split(end)
    return f"{before}{start}\n{text}\n{end}{after}"
