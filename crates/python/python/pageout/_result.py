"""The result of a study: its JSON, its rows as columns, a chart; or an error."""


class Error(RuntimeError):
    """A command has failed. The text is the program's, ``code`` its exit code, ``json`` the partial result."""

    def __init__(self, text, code, result=None):
        super().__init__(text)
        self.code, self.json = code, result


class Result:
    """The result of a study.

    ``json`` is the program's ``--json`` output; ``columns`` and ``result["misses"]`` are the rows of ``--format csv``, as numpy arrays. polars, pandas,
    pyarrow and DuckDB read a result as a table.
    """

    def __init__(self, text, result, table):
        self.text, self.json, self._table = text, result, table

    @property
    def columns(self):
        """The names of the columns."""
        return self._table.columns

    def __getitem__(self, name):
        return self._table[name]

    def __len__(self):
        return len(self._table)

    def __iter__(self):
        """The names of the columns, as of a dict or a data frame."""
        return iter(self.columns)

    def __contains__(self, name):
        return name in self.columns

    def list(self, name):
        """A column as a list, with ``None`` where there is no value."""
        return self._table.list(name)

    def to_dict(self):
        """Columns by name, as arrays."""
        return {name: self._table[name] for name in self.columns}

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)

    def to_polars(self):
        import polars

        return polars.DataFrame(self)

    def to_arrow(self):
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self):
        import pandas

        return pandas.DataFrame({name: self._table[name] for name in self.columns})

    def _frame(self):
        """What is shown: the names of columns, and rows of texts. Variants stand side by side, a row a figure."""
        if {"variant", "group", "figure", "mean"} <= set(self.columns):
            return self._side_by_side()
        shown = self._shown()[:12]
        columns = [map(_text, self._table.list(name)) for name in shown]
        return shown, [list(row) for row in zip(*columns)]

    def _shown(self):
        """Columns that differ from row to row, or all where there is one row."""
        if len(self) < 2:
            return self.columns
        return [name for name in self.columns if len(set(map(str, self._table.list(name)))) > 1] or self.columns

    def _side_by_side(self):
        names = ["variant", "group", "figure", "mean", "difference_percent", "difference_points", "within_noise"]
        columns = [self._table.list(name) if name in self.columns else [None] * len(self) for name in names]
        variants, figures = [], {}
        for variant, group, figure, mean, percent, points, is_noise in zip(*columns):
            if variant not in variants:
                variants.append(variant)
            if figure is None:
                continue
            cell = _text(mean)
            if variant != variants[0] and (percent is not None or points is not None):
                change = f"{percent:+.1f} %" if percent is not None else f"{points:+.1f} pp"
                cell += f" ({change}{' ~' if is_noise else ''})"
            figures.setdefault((group, figure), {})[variant] = cell
        # Rows that are 0 everywhere are omitted; ``columns`` have them.
        figures = {name: cells for name, cells in figures.items() if any(not cell.startswith("0 ") and cell != "0" for cell in cells.values())}
        rows = [[group, figure, *(cells.get(variant, "-") for variant in variants)] for (group, figure), cells in figures.items()]
        return ["", "figure", *variants], rows

    def __repr__(self):
        most = 40
        names, rows = self._frame()
        columns = [list(column) for column in zip(names, *rows[:most])]
        widths = [max(map(len, column)) for column in columns]
        lines = ["  ".join(text.rjust(width) for text, width in zip(row, widths)).rstrip() for row in zip(*columns)]
        if len(rows) > most:
            lines.append(f"... {len(rows)} rows")
        return "\n".join(lines)

    def _repr_html_(self):
        from html import escape

        most = 60
        names, rows = self._frame()
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows[:most])
        more = f"<p>{len(rows)} rows</p>" if len(rows) > most else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def plot(self, x=None, y=None, color=None):
        """Draws an altair chart: by default miss ratios over memory, one line per policy, one chart per trace. The axis is logarithmic if sizes
        differ by more than a factor of ten. Estimates have a band from the smallest to the largest sample."""
        import altair
        import polars

        frame = polars.DataFrame(self)
        x = x or ("memory_bytes" if "memory_bytes" in frame.columns else self._shown()[0])
        y = y or ("miss_ratio" if "miss_ratio" in frame.columns else self._shown()[-1])
        color = color or ("policy" if "policy" in frame.columns else None)
        facet = next((name for name in ("trace", "input") if name not in (x, y, color) and name in frame.columns), None)
        if facet and frame[facet].n_unique() < 2:
            facet = None
        return altair.Chart.from_dict(_picture(frame, x, y, color, facet))


def _text(value):
    """A value as it is shown."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return "-" if value is None else str(value)


def _is_wide(values):
    """True if sizes differ by more than a factor of ten: then equal factors are equally far apart."""
    sizes = [value for value in values if isinstance(value, (int, float)) and value > 0]
    return bool(sizes) and len(sizes) == sum(value is not None for value in values) and max(sizes) > 10 * min(sizes)


def _picture(frame, x, y, color, facet):
    """A chart as Vega-Lite has it. ``frame`` has columns by name."""
    names = frame.columns
    least, most = f"{y}_least", f"{y}_most"
    has_band = least in names and most in names
    keep = [name for name in dict.fromkeys([x, y, color, facet, *([least, most] if has_band else [])]) if name]
    lists = [frame[name].to_list() for name in keep]
    rows = [dict(zip(keep, row)) for row in zip(*lists)]
    scale = {"type": "log"} if x.endswith(("_bytes", "_pages", "_kb")) and _is_wide(frame[x].to_list()) else {"type": "linear"}
    colours = {"color": {"field": color, "type": "nominal"}} if color else {}
    across = {"field": x, "type": "quantitative", "axis": {"format": "~s"}, "scale": scale}
    title = f"{y} (estimated)" if has_band else y
    line = {
        "mark": {"type": "line", "point": True},
        "encoding": {"x": across, "y": {"field": y, "type": "quantitative", "title": title}, **colours},
    }
    layers = [line]
    if has_band:
        band = {"x": across, "y": {"field": least, "type": "quantitative", "title": title}, "y2": {"field": most}, **colours}
        layers.insert(0, {"mark": {"type": "area", "opacity": 0.2}, "encoding": band})
    spec = line if len(layers) == 1 else {"layer": layers}
    if facet:
        spec = {"facet": {"field": facet, "type": "nominal"}, "columns": 2, "spec": spec, "resolve": {"scale": {"x": "independent"}}}
    return {**spec, "data": {"values": rows}}
