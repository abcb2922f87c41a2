"""Tables as aligned text for a terminal and as HTML for a notebook."""

from html import escape


def text_table(header, rows, *, left=1):
    """Align the cells of a table in columns; the first ``left`` columns to the left, the others to the right.

    >>> print(text_table(["what", "ulp"], [["out", "0"], ["d_weight", "12"]]))
    what      ulp
    --------  ---
    out         0
    d_weight   12
    """
    table = [list(header), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    table.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    )


def html_table(css_class, caption, header, rows):
    """Write a table with a caption and scoped header cells, and leave its looks to the page.

    Objects hand it out as Markdown (``_repr_markdown_``), which may hold HTML tables: Quarto takes an HTML
    output for a widget and makes its page load scripts from another host.

    >>> print(html_table("agreement", "a < b", ["what", "ulp"], [["out", "0"]]))
    <table class="agreement">
    <caption>a &lt; b</caption>
    <thead>
    <tr><th scope="col">what</th><th scope="col">ulp</th></tr>
    </thead>
    <tbody>
    <tr><th scope="row">out</th><td>0</td></tr>
    </tbody>
    </table>
    """
    lines = [f'<table class="{css_class}">', f"<caption>{escape(caption)}</caption>", "<thead>"]
    lines.append("<tr>" + "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header) + "</tr>")
    lines += ["</thead>", "<tbody>"]
    for first, *others in rows:
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in others)
        lines.append(f'<tr><th scope="row">{escape(first)}</th>{cells}</tr>')
    return "\n".join([*lines, "</tbody>", "</table>"])
