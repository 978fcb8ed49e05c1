def shown_charts():
    """Makes plt.show show each figure with its data."""
    import io
    import re
    from datetime import date
    import matplotlib.dates
    import matplotlib.pyplot as plt
    from matplotlib.collections import PathCollection
    from matplotlib.lines import Line2D
    from matplotlib.patches import PathPatch, Rectangle, Wedge
    from matplotlib.text import Text

    if getattr(plt, "_shows_charts", False):
        return

    def plain(value):
        if isinstance(value, date):
            return value.isoformat()
        if type(value).__module__ == "numpy":
            if type(value).__name__ == "datetime64":
                return str(value.astype("datetime64[s]"))
            value = value.item()
        if isinstance(value, float) and value != value or value in (float("inf"), float("-inf")):
            return None
        return value

    def is_grid(line):
        x, y = line.get_xdata(), line.get_ydata()
        return len(x) == len(y) == 2 and (x[0] == x[1] or y[0] == y[1])

    def kind_of(ax):
        found = [a for a in ax._children if not isinstance(a, Text)]
        if all(isinstance(a, Line2D) for a in found):
            return "line"
        if all(isinstance(a, (PathPatch, Line2D)) for a in found):
            return "box_and_whisker"
        found = [a for a in found if not (isinstance(a, Line2D) and is_grid(a))]
        for name, kind in (("scatter", PathCollection), ("pie", Wedge), ("bar", Rectangle)):
            if all(isinstance(a, kind) for a in found):
                return name
        return "unknown"

    def unit(label):
        found = re.search(r"\s\((.*?)\)|\[(.*?)\]", label or "")
        return found and (found.group(1) or found.group(2))

    def labels(ax):
        x, y = ax.get_xlabel() or None, ax.get_ylabel() or None
        return {"x_label": x, "y_label": y, "x_unit": unit(x), "y_unit": unit(y)}

    def swapped(chart):
        for what in ("label", "unit"):
            chart["x_" + what], chart["y_" + what] = chart["y_" + what], chart["x_" + what]

    def scale(axis, name):
        names = [t.get_text() for t in axis.get_ticklabels()]
        ticks = axis.get_majorticklocs()
        dates = "Date" in type(getattr(axis, "converter", None)).__name__
        if dates:
            ticks = [matplotlib.dates.num2date(t).isoformat() for t in ticks]
            name = "datetime"
        else:
            ticks = [plain(t) for t in ticks]
            if name == "linear" and all(t == i and str(i) != n for i, (t, n) in enumerate(zip(ticks, names))):
                name = "categorical"
        return ticks, names, name

    def points(xs, ys):
        return [[plain(x), plain(y)] for x, y in zip(xs, ys)]

    def bars(ax, chart):
        chart["elements"] = []
        for container in ax.containers:
            group = container.get_label()
            if group.startswith("_container"):
                group = "Group " + group[len("_container"):]
            values, ticks = [r.get_height() for r in container], ax.get_xticklabels()
            if len(set(values)) == 1 and len({r.get_width() for r in container}) > 1:
                swapped(chart)
                values, ticks = [r.get_width() for r in container], ax.get_yticklabels()
            chart["elements"] += [{"label": t.get_text(), "group": group, "value": float(v)} for t, v in zip(ticks, values)]

    def boxes(ax, chart):
        """The lines of a box are within its width: whiskers end at it, its median is in it, outliers are points."""
        spans = []
        for box in ax.patches:
            v = box.get_path().vertices
            spans.append([[round(float(f(v[:, i])), 8) for f in (min, max)] for i in (0, 1)])
        flat = len(spans) > 1 and len({s[1][1] - s[1][0] for s in spans}) == 1
        across, along = (1, 0) if flat else (0, 1)
        if flat:
            swapped(chart)
        names = [t.get_text() for t in (ax.get_yticklabels() if flat else ax.get_xticklabels())]
        chart["elements"] = []
        for name, span in zip(names, spans):
            low, high = span[along]
            one = {"label": name, "min": low, "first_quartile": low, "median": low, "third_quartile": high, "max": high,
                   "outliers": []}
            for line in ax.lines:
                data = [[round(float(v), 8) for v in d] for d in (line.get_xdata(), line.get_ydata())]
                if not data[0] or min(data[across]) < span[across][0] or max(data[across]) > span[across][1]:
                    continue
                place = data[along]
                if len(set(data[across])) == 1 and len(place) == 2:
                    one["min"], one["max"] = min(one["min"], *place), max(one["max"], *place)
                elif len(place) == 2 and place[0] == place[1] and low <= place[0] <= high:
                    one["median"] = place[0]
                elif line.get_linestyle() in ("None", "none", " ", ""):
                    one["outliers"] += place
            chart["elements"].append(one)

    def chart_of(ax):
        kind = kind_of(ax)
        chart = {"type": kind, "title": ax.get_title() or None, "elements": []}
        if kind == "pie":
            chart["elements"] = [{"label": w.get_label(), "angle": abs(round(float(w.theta2) - float(w.theta1), 4)),
                                  "radius": w.r} for w in ax.patches]
        elif kind != "unknown":
            chart.update(labels(ax))
        if kind in ("line", "scatter"):
            for name, axis, how in (("x", ax.xaxis, ax.get_xscale()), ("y", ax.yaxis, ax.get_yscale())):
                chart[name + "_ticks"], chart[name + "_tick_labels"], chart[name + "_scale"] = scale(axis, how)
        if kind == "line":
            for line in ax.get_lines():
                if not is_grid(line):
                    label = line.get_label()
                    label = "Line " + label[len("_child"):] if label.startswith("_child") else label
                    chart["elements"].append({"label": label, "points": points(line.get_xdata(), line.get_ydata())})
        elif kind == "scatter":
            chart["elements"] = [{"label": c.get_label(), "points": [[plain(x), plain(y)] for x, y in c.get_offsets()]}
                                 for c in ax.collections]
        elif kind == "bar":
            bars(ax, chart)
        elif kind == "box_and_whisker":
            boxes(ax, chart)
        return chart

    def data_of(figure):
        axes = figure.get_axes()
        if not axes:
            return None
        if len(axes) == 1:
            return chart_of(axes[0])
        title = figure._suptitle.get_text() if figure._suptitle else None
        return {"type": "superchart", "title": title, "elements": [chart_of(ax) for ax in axes]}

    class Shown:
        def __init__(self, figure):
            self.figure = figure

        def _repr_mimebundle_(self, include=None, exclude=None):
            image = io.BytesIO()
            self.figure.savefig(image, format="png", bbox_inches="tight")
            forms = {"text/plain": repr(self.figure), "image/png": image.getvalue()}
            try:
                chart = data_of(self.figure)
            except Exception:
                chart = None
            if chart:
                forms["application/vnd.fumehood.chart+json"] = chart
            return forms

        def __repr__(self):
            return repr(self.figure)

    def show(*args, **named):
        for number in plt.get_fignums():
            display(Shown(plt.figure(number)))
        plt.close("all")

    plt.show, plt._shows_charts = show, True


shown_charts()
del shown_charts
