# SPDX-License-Identifier: Apache-2.0
#
# The Python end of the protocol in interpreter.go: Python 3.9 or newer, standard
# library only. Cells run in this process. The protocol's descriptors are duplicates
# that children do not inherit; descriptors 1 and 2 are pipes that a thread reads.
import ast
import base64
import builtins
import codecs
import collections
import io
import json
import linecache
import os
import select
import signal
import sys
import threading
import time
import traceback
import types
import warnings
import __future__

PIECE = 32 << 10  # bytes of output in one message
LATE = 64 << 10  # characters of output that are kept between two cells
PLAIN = 64 << 10  # characters of text/plain and of a traceback
BUNDLE = 6 << 20  # characters of all forms of one result
ROWS = 200  # rows of a table
SOURCES = 256  # cells whose source tracebacks can show
DRAIN = 1 << 20  # bytes that are read from each pipe at the end of a cell

METHODS = {
    "_repr_html_": "text/html",
    "_repr_markdown_": "text/markdown",
    "_repr_latex_": "text/latex",
    "_repr_svg_": "image/svg+xml",
    "_repr_png_": "image/png",
    "_repr_jpeg_": "image/jpeg",
    "_repr_json_": "application/json",
}


class Stop(OSError):
    """The protocol's descriptor is gone."""


class Wire:
    """Writes messages. A message without a cell is output that the next cell gets."""

    def __init__(self, fd):
        self.fd, self.pid, self.nonce = fd, os.getpid(), None
        self.lock = threading.RLock()
        self.late = {"stdout": ["", 0], "stderr": ["", 0]}
        self.holding, self.interrupted, self.running = 0, False, False
        # Cells may replace these.
        self.dumps, self.write, self.main = json.dumps, os.write, threading.main_thread()

    def begin(self, nonce):
        with self.lock:
            self.nonce = nonce
            for stream, (text, omitted) in self.late.items():
                if text:
                    self.send(kind=stream, text=text, late=True, omitted=omitted)
                self.late[stream] = ["", 0]

    def end(self, **message):
        with self.lock:
            self.send(kind="done", **message)
            self.nonce = None

    def output(self, stream, text):
        if not text:
            return
        with self.lock:
            if self.nonce is not None:
                return self.send(kind=stream, text=text)
            kept = self.late[stream]
            kept[0] += text
            kept[1] += max(0, len(kept[0]) - LATE)
            kept[0] = kept[0][-LATE:]

    def send(self, **message):
        """Writes a whole line: an interrupt waits until it is written. A forked child shows nothing."""
        if os.getpid() != self.pid:
            return
        self.hold(1)
        try:
            with self.lock:
                message["nonce"] = self.nonce
                line = self.dumps(message).encode() + b"\n"
                while line:
                    line = line[self.write(self.fd, line):]
        except OSError:
            os._exit(70)
        finally:
            self.hold(-1)

    def hold(self, step):
        if threading.current_thread() is not self.main:
            return
        self.holding += step
        if self.interrupted and not self.holding:
            self.interrupted = False
            if self.running:
                raise KeyboardInterrupt

    def interrupt(self, *_):
        if self.holding:
            self.interrupted = True
        elif self.running:
            raise KeyboardInterrupt


class Raw(io.RawIOBase):
    """sys.stdout's end: in order with results. A forked child writes to the pipe."""

    def __init__(self, wire, pipes, stream, fd):
        self.wire, self.pipes, self.stream, self.fd = wire, pipes, stream, fd
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self):
        return True

    def fileno(self):
        return self.fd

    def write(self, data):
        data = bytes(data)
        if os.getpid() != self.wire.pid:
            return os.write(self.fd, data)
        with self.wire.lock:
            self.pipes.drain()
            for at in range(0, len(data), PIECE):
                self.wire.output(self.stream, self.decoder.decode(data[at:at + PIECE]))
        return len(data)


class Pipes:
    """What children, and code below Python, write to descriptors 1 and 2."""

    def __init__(self, wire):
        self.wire, self.ends = wire, {}
        for fd, stream in ((1, "stdout"), (2, "stderr")):
            r, w = os.pipe()
            os.set_blocking(r, False)
            self.ends[r] = (fd, w, stream, codecs.getincrementaldecoder("utf-8")("replace"))
        self.restore()
        threading.Thread(target=self.follow, daemon=True).start()

    def restore(self):
        for fd, w, _, _ in self.ends.values():
            os.dup2(w, fd)

    def follow(self):
        poll = select.poll()
        for r in self.ends:
            poll.register(r, select.POLLIN)
        try:
            while True:
                poll.poll()
                self.drain()
        except (OSError, ValueError):
            return

    def drain(self):
        """Passes on what was written so far, and not what is written meanwhile."""
        with self.wire.lock:
            for r, (_, _, stream, decoder) in self.ends.items():
                left = DRAIN
                while left > 0:
                    try:
                        data = os.read(r, PIECE)
                    except BlockingIOError:
                        break
                    self.wire.output(stream, decoder.decode(data))
                    left -= len(data)
                    if len(data) < PIECE:
                        break


def cut(text, most):
    if len(text) <= most:
        return text
    return "%s\n… %d characters omitted …\n%s" % (text[:most // 2], len(text) - most, text[-(most // 2):])


def encoded(mime, value):
    """The text of a form: base64 for bytes, JSON for what is not text."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, str) and not mime.endswith("json"):
        return value
    return json.dumps(value, default=str)


def table(value):
    """A pandas data frame or series as a table schema document."""
    kind = type(value)
    if kind.__module__.partition(".")[0] == "pandas" and kind.__name__ in ("DataFrame", "Series"):
        return json.loads(value.head(ROWS).to_json(orient="table", date_format="iso"))


def png(figure):
    image = io.BytesIO()
    figure.savefig(image, format="png", bbox_inches="tight")
    return image.getvalue()


def is_figure(value):
    figure = sys.modules.get("matplotlib.figure")
    return figure is not None and isinstance(value, figure.Figure)


def is_plotly(value):
    plotly = sys.modules.get("plotly.basedatatypes")
    return plotly is not None and isinstance(value, plotly.BaseFigure)


class Pretty:
    """Lays out values as IPython does: in 79 columns, where a group that does not fit has a line for each of its
    elements. _repr_pretty_ methods get it as their printer, with the methods of IPython's."""

    WIDTH, MOST = 79, 1000  # columns, elements of a sequence
    OPEN, CLOSE, BREAK, LINE = range(4)

    def __init__(self):
        self.parts, self.inside = [], []

    def text(self, text):
        self.parts.append((None, text))

    def breakable(self, between=" "):
        self.parts.append((self.BREAK, between))

    def break_(self):
        self.parts.append((self.LINE, ""))

    def begin_group(self, indent=0, start=""):
        self.text(start)
        self.parts.append((self.OPEN, indent))

    def end_group(self, dedent=0, end=""):
        self.parts.append((self.CLOSE, dedent))
        self.text(end)

    def group(self, indent=0, start="", end=""):
        import contextlib

        @contextlib.contextmanager
        def inside():
            self.begin_group(indent, start)
            try:
                yield
            finally:
                self.end_group(indent, end)
        return inside()

    def items(self, start, values, end, each=None):
        """A group of values between commas."""
        self.begin_group(len(start), start)
        for n, value in enumerate(values):
            if n:
                self.text(",")
                self.breakable()
            if n == self.MOST:
                self.text("...")
                break
            (each or self.pretty)(value)
        self.end_group(len(start), end)

    def call(self, name, *values, **named):
        def each(item):
            if item[0]:
                self.text(item[0] + "=")
            self.pretty(item[1])
        self.items(name + "(", [("", v) for v in values] + list(named.items()), ")", each)

    def pretty(self, value):
        if any(value is outer for outer in self.inside):
            start, end = {list: "[]", tuple: "()", dict: "{}"}.get(type(value), ("<", ">"))
            return self.text(start + "..." + end)
        self.inside.append(value)
        try:
            for kind in type(value).__mro__:
                layout = LAYOUTS.get(kind)
                if (kind.__module__, kind.__name__) == ("re", "Pattern"):
                    return lay_pattern(self, value)
                own = kind.__dict__.get("__repr__")
                if layout is not None and (own is None or type(value).__repr__ is own):
                    return layout(self, value)
                if callable(kind.__dict__.get("_repr_pretty_")):
                    return value._repr_pretty_(self, False)
                if kind is not object and callable(own):
                    break
            self.lines(value)
        finally:
            self.inside.pop()

    def lines(self, value):
        for n, line in enumerate(repr(value).splitlines()):
            if n:
                self.break_()
            self.text(line)

    def __str__(self):
        """Lays out: a group is in one line if it fits there with what follows up to the next place for a break."""
        ends, stops, stack, stop = {}, {}, [], len(self.parts)
        at, places, whole = 0, [], True
        for n, (what, value) in enumerate(self.parts):
            places.append(at)
            if what is self.OPEN:
                stack.append(n)
            elif what is self.CLOSE and stack:
                ends.setdefault(stack.pop(), n)
            elif what is self.LINE:
                whole = False
                ends.update(dict.fromkeys(stack))  # what has several lines does not fit
            elif what not in (self.OPEN, self.CLOSE):
                at += len(value)
        places.append(at)
        for n in range(len(self.parts) - 1, -1, -1):
            stops[n] = stop  # the next break after n
            if self.parts[n][0] in (self.BREAK, self.LINE):
                stop = n
        out, column, indent, flat = [], 0, 0, [whole and places[-1] <= self.WIDTH]
        for n, (what, value) in enumerate(self.parts):
            if what is self.OPEN:
                end = ends.get(n)
                fits = end is not None and column + places[stops[end]] - places[n] <= self.WIDTH
                flat.append(flat[-1] or fits)
                indent += value
            elif what is self.CLOSE:
                flat.pop()
                indent -= value
            elif what is self.LINE or what is self.BREAK and not flat[-1]:
                out.append("\n" + " " * indent)
                column = indent
            else:
                out.append(value)
                column += len(value)
        return "".join(out)


def lay_type(p, kind):
    if next(k for k in type(kind).__mro__ if "__repr__" in k.__dict__) is not type:
        return p.lines(kind)
    module = kind.__module__
    p.text(kind.__qualname__ if module in (None, "builtins") else "%s.%s" % (module, kind.__qualname__))


def lay_function(p, value):
    import inspect
    name = value.__qualname__
    if value.__module__ not in (None, "builtins"):
        name = "%s.%s" % (value.__module__, name)
    try:
        name += str(inspect.signature(value))
    except (TypeError, ValueError):
        pass
    p.text("<function %s>" % name)


def lay_tuple(p, value):
    p.items("(", value, ",)" if len(value) == 1 else ")")


def lay_set(p, value):
    if not value:
        return p.lines(value)
    items = value
    if len(value) < p.MOST:
        try:
            items = sorted(value)
        except Exception:
            pass
    p.items("{" if isinstance(value, set) else "frozenset({", items, "}" if isinstance(value, set) else "})")


def lay_dict(p, value):
    def each(item):
        p.pretty(item[0])
        p.text(": ")
        p.pretty(item[1])
    p.items("{", value.items(), "}", each)


def lay_exception(p, value):
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else "%s.%s" % (kind.__module__, kind.__qualname__)
    p.items(name + "(", value.args, ")")


def lay_object(p, value):
    if type(value).__repr__ is not object.__repr__:
        return p.lines(value)
    p.text("<")
    p.pretty(type(value))
    p.text(" at 0x%x>" % id(value))


def lay_ordered(p, value):
    p.call(type(value).__name__, *([list(value.items())] if value else []))


def lay_deque(p, value):
    p.call(type(value).__name__, list(value), **({"maxlen": value.maxlen} if value.maxlen is not None else {}))


def lay_counter(p, value):
    p.call(type(value).__name__, *([dict(value.most_common())] if value else []))


def lay_pattern(p, value):
    import re
    names = ("IGNORECASE", "LOCALE", "MULTILINE", "DOTALL", "UNICODE", "VERBOSE", "DEBUG")
    flags = "|".join("re." + name for name in names if value.flags & getattr(re, name))
    p.text("re.compile(%s%s" % ("r" if isinstance(value.pattern, str) else "", repr(value.pattern)))
    p.text(", %s)" % flags if flags else ")")


LAYOUTS = {
    type: lay_type, types.FunctionType: lay_function, types.BuiltinFunctionType: lay_function, tuple: lay_tuple,
    list: lambda p, v: p.items("[", v, "]"), set: lay_set, frozenset: lay_set, dict: lay_dict,
    BaseException: lay_exception, object: lay_object,
    collections.OrderedDict: lay_ordered, collections.deque: lay_deque, collections.Counter: lay_counter,
    collections.defaultdict: lambda p, v: p.call(type(v).__name__, v.default_factory, dict(v)),
    types.SimpleNamespace: lambda p, v: p.call("namespace", **v.__dict__),
    types.MappingProxyType: lambda p, v: p.call("mappingproxy", dict(v)),
}


def pretty(value):
    p = Pretty()
    p.pretty(value)
    return str(p)


def forms(value):
    """Yields the forms of a value other than text/plain. A form that fails is left out."""
    def attempt(make):
        try:
            got = make()
        except Exception:
            return None
        return got[0] if isinstance(got, tuple) and got else got  # with metadata

    kind = type(value)
    if value is not kind and callable(getattr(kind, "_repr_mimebundle_", None)):
        bundle = attempt(lambda: value._repr_mimebundle_(include=None, exclude=None))
        if isinstance(bundle, dict):
            yield from bundle.items()
    for method, mime in METHODS.items():
        if callable(getattr(kind, method, None)):
            yield mime, attempt(lambda: getattr(value, method)())
    if "pandas" in sys.modules:
        yield "application/vnd.dataresource+json", attempt(lambda: table(value))
    if is_figure(value):
        yield "image/png", attempt(lambda: png(value))
    if is_plotly(value):
        yield "application/vnd.plotly.v1+json", attempt(lambda: json.loads(value.to_json()))
        yield "text/html", attempt(lambda: value.to_html(full_html=False, include_plotlyjs="cdn"))


def shown(value):
    """The fields of a result: its forms, and the size of those that are too large."""
    if isinstance(value, dict) and value.get("__bundle__") is Interpreter:
        found = dict(value["data"])
    else:
        found = {"text/plain": "Figure()" if is_plotly(value) else pretty(value)}
        found.update((m, v) for m, v in forms(value) if isinstance(m, str) and v is not None)
    data, omitted, left = {}, {}, BUNDLE
    for mime, form in found.items():
        try:
            text = encoded(mime, form)
        except (TypeError, ValueError):
            continue
        if mime == "text/plain":
            text = cut(text, PLAIN)
        if len(text) > left:
            omitted[mime] = len(text)
            continue
        data[mime], left = text, left - len(text)
    return {"data": data, "forms_omitted": omitted} if omitted else {"data": data}


def formatted(e, frames):
    """A traceback without this file's frames."""
    top = found = traceback.TracebackException(type(e), e, frames)
    while found is not None:
        found.stack[:] = [f for f in found.stack if f.filename != __file__]
        found = found.__cause__ or found.__context__
    return "".join(top.format())


class PolicyDenied(Exception):
    """The code was not run."""


class UsageError(Exception):
    """A magic that is not there, or not with these arguments."""


class Lines(list):
    """The output of a command: a list of its lines, and as one text."""

    @property
    def n(self):
        return "\n".join(self)

    @property
    def s(self):
        return " ".join(self)

    l = property(list)


class Shell:
    """What get_ipython() returns: the methods that package notebook translates to, with the names and the
    arguments of IPython's. Commands are started as any program is that a cell starts."""

    FORMS = {"html": "text/html", "markdown": "text/markdown", "latex": "text/latex", "svg": "image/svg+xml"}
    config = {}

    def __init__(self, interpreter):
        self.interpreter, self.last = interpreter, os.getcwd()

    @property
    def user_ns(self):
        return self.interpreter.context.names

    def expand(self, text):
        """Replaces {expression} and $name, where the cell's names have them, as IPython does; $$ is a $."""
        import re

        def braces(m):
            try:
                return str(eval(m[1], self.user_ns))
            except Exception:
                return m[0]

        def dollar(m):
            if m[1] is None:
                return "$"
            return str(self.user_ns[m[1]]) if m[1] in self.user_ns else m[0]

        return re.sub(r"\$(?:\$|([A-Za-z_]\w*))", dollar, re.sub(r"\{([^{}]+)\}", braces, text))

    def start(self, text, **options):
        import subprocess
        self.interpreter.flush()
        got = subprocess.run(["bash", "-c", text], **options)
        self.user_ns["_exit_code"] = got.returncode
        return got

    def system(self, text):
        self.start(self.expand(text))

    def getoutput(self, text):
        import subprocess
        got = self.start(self.expand(text), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
        return Lines(got.stdout.splitlines())

    def find(self, kind, name):
        found = getattr(self, kind + "_" + name.replace("!", "bash"), None)
        if found is None:
            mark = "%%" if kind == "cell" else "%"
            raise UsageError("%s%s is not available here" % (mark, name))
        return found

    def run_line_magic(self, name, line):
        return self.find("line", name)(self.expand(line) if name in ("cd", "ls", "pip") else line)

    def run_cell_magic(self, name, line, cell):
        return self.find("cell", name)(line, cell)

    def line_cd(self, line):
        before, to = os.getcwd(), line.strip() or "~"
        os.chdir(self.last if to == "-" else os.path.expanduser(to))
        self.last = before
        print(os.getcwd())

    def line_pwd(self, line):
        return os.getcwd()

    def line_ls(self, line):
        self.system("ls " + line)

    def line_pip(self, line):
        self.system(sys.executable + " -m pip " + line)

    def line_env(self, line):
        name, sign, value = line.partition("=")
        if not sign:
            name, sign, value = line.partition(" ")
        if not line.strip():
            return dict(os.environ)
        if not sign:
            return os.environ.get(name.strip())
        os.environ[name.strip()] = value.strip()
        print("env: %s=%s" % (name.strip(), value.strip()))

    line_set_env = line_env

    def line_matplotlib(self, line):
        """Figures are shown at the end of a cell, whatever the backend is called."""

    line_config = line_autoreload = line_matplotlib  # no other settings, and modules are not read again

    def line_load_ext(self, line):
        if line.strip() != "autoreload":
            raise UsageError("%%load_ext %s is not available here" % line.strip())

    class events:
        """Callbacks that libraries register are not called: cells end with all figures shown."""

        register = unregister = trigger = staticmethod(lambda event, function: None)

    def enable_gui(self, gui=None):
        """There is no window."""

    def line_who(self, line):
        print("\t".join(sorted(n for n in self.user_ns if not n.startswith("_"))) or "Interactive namespace is empty.")

    def line_pinfo(self, line, source=False):
        import inspect
        import re
        name = line.strip()
        if not re.fullmatch(r"%{0,2}[^\W\d][\w.]*", name):
            raise UsageError("%pinfo takes a name")
        if name.startswith("%"):
            kind, found = ("cell" if name.startswith("%%") else "line"), name.lstrip("%")
            value = self.find(kind, found)
        else:
            value = eval(name, self.user_ns)
        try:
            print("Signature: %s%s" % (name, inspect.signature(value)))
        except (TypeError, ValueError):
            print("Type: %s" % type(value).__name__)
        text = None
        if source:
            try:
                text = inspect.getsource(value)
            except (OSError, TypeError):
                pass
        print(text or inspect.getdoc(value) or "No documentation.")

    def line_pinfo2(self, line):
        self.line_pinfo(line, True)

    def line_time(self, line):
        return self.cell_time("", line)

    def line_timeit(self, line):
        import re
        options = re.match(r"(-([nr] *[0-9]+|[qotc]) +)*", line)[0]  # as the policy reads them
        return self.cell_timeit(options, line[len(options):])

    def cell_time(self, line, cell):
        if line:
            raise UsageError("%%time takes no statement in its own line")
        before, began = os.times(), time.perf_counter()
        try:
            return self.interpreter.execute(cell)
        finally:
            wall, after = time.perf_counter() - began, os.times()
            user = after.user + after.children_user - before.user - before.children_user
            system = after.system + after.children_system - before.system - before.children_system
            print("CPU times: user %s, sys: %s, total: %s" % tuple(map(duration, (user, system, user + system))))
            print("Wall time: %s" % duration(wall))

    def cell_timeit(self, line, cell):
        import re
        import timeit
        found = dict(re.findall(r"-([nr])\s*(\d+)", line))
        timer = timeit.Timer(cell, globals=self.user_ns)
        loops = int(found.get("n", 0)) or timer.autorange()[0]
        runs = [t / loops for t in timer.repeat(int(found.get("r", 7)), loops)]
        mean = sum(runs) / len(runs)
        spread = (sum((t - mean) ** 2 for t in runs) / len(runs)) ** 0.5
        print("%s ± %s per loop (mean ± std. dev. of %d runs, {:,} loops each)".format(loops)
              % (duration(mean), duration(spread), len(runs)))

    def cell_capture(self, line, cell):
        out, err = io.StringIO(), io.StringIO()
        sys.stdout.flush(), sys.stderr.flush()
        before = sys.stdout, sys.stderr, self.interpreter.hidden
        sys.stdout, sys.stderr, self.interpreter.hidden = out, err, True
        try:
            self.interpreter.execute(cell)
        finally:
            sys.stdout, sys.stderr, self.interpreter.hidden = before
        if line.strip():
            self.user_ns[line.split()[-1]] = types.SimpleNamespace(
                stdout=out.getvalue(), stderr=err.getvalue(), show=lambda: print(out.getvalue(), end=""))

    def cell_writefile(self, line, cell):
        append, _, path = line.strip().rpartition(" ")
        verb = "Appending to" if append else "Overwriting" if os.path.exists(path) else "Writing"
        with open(os.path.expanduser(path), "a" if append else "w") as f:
            f.write(cell if cell.endswith("\n") else cell + "\n")
        print(verb, path)

    def cell_bash(self, line, cell):
        import subprocess
        if self.start(cell).returncode:
            raise subprocess.CalledProcessError(self.user_ns["_exit_code"], "bash")

    cell_sh = cell_bash

    def __getattr__(self, name):
        kind, _, form = name.partition("_")
        if kind != "cell" or form not in Shell.FORMS:
            raise AttributeError(name)
        plain = "<IPython.core.display.%s object>" % {"html": "HTML", "svg": "SVG"}.get(form, form.capitalize())
        return lambda line, cell: self.interpreter.show(
            "display", {"__bundle__": Interpreter, "data": {"text/plain": plain, Shell.FORMS[form]: cell}})


def duration(seconds):
    """seconds with three digits and their unit."""
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= size:
            break
    return "%.3g %s" % (seconds / size, unit)


class Context:
    def __init__(self):
        self.module = types.ModuleType("__main__")
        self.names = self.module.__dict__
        self.names["__builtins__"] = builtins
        self.flags = 0  # of the cells' __future__ imports
        self.last = ""

    def keep(self, value):
        """Makes value the last result, unless a cell has another use for the name."""
        names = self.names
        if names.get("_", self.last) is self.last:
            names["___"], names["__"], names["_"], self.last = names.get("__", ""), self.last, value, value


FUTURES = 0
for name in __future__.all_feature_names:
    FUTURES |= getattr(__future__, name).compiler_flag


class Interpreter:
    def __init__(self, wire, pipes):
        self.wire, self.pipes = wire, pipes
        self.context, self.count, self.loop, self.hidden = Context(), 0, None, False
        self.waiting, self.released, self.cleared, self.result = {}, 0, False, None
        self.shell = Shell(self)

    def display(self, *values, display_id=None, raw=False, clear=False, **_):
        """Shows values, as the last expression of a cell is shown. With display_id, its handle can replace them."""
        if clear:
            self.clear_output(True)
        handle = Handle(self, display_id) if display_id is not None and display_id is not False else None
        for value in values:
            self.show("display", {"__bundle__": Interpreter, "data": value} if raw else value)
        return handle

    def update_display(self, value, *, display_id, **_):
        """Replaces what was shown: of several within half a second only the last is shown."""
        self.show("display", value, display_id)

    def clear_output(self, wait=False):
        """From now on, what is shown waits up to half a second for the next clear_output, which drops it."""
        self.cleared = True
        if time.monotonic() - self.released > 0.5:
            self.release()
        self.waiting.clear()

    def release(self):
        """Shows what waits."""
        waiting, self.waiting, self.released = self.waiting, {}, time.monotonic()
        for fields in waiting.values():
            self.flush()
            self.wire.send(**fields)

    def show(self, kind, value, name=None):
        if self.hidden:
            return
        method = getattr(type(value), "_ipython_display_", None)
        if callable(method) and not isinstance(value, type) and not is_plotly(value):
            return value._ipython_display_()
        fields = dict(shown(value), kind=kind)
        if kind == "display" and (name is not None or self.cleared):
            self.waiting[name or object()] = fields
            if name is not None and time.monotonic() - self.released > 0.5:
                self.release()
            return
        self.release()
        self.flush()
        self.wire.send(**fields)

    def flush(self):
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass
        self.pipes.drain()

    def figures(self):
        """Shows the open figures and closes them. One that is the cell's result was shown."""
        plt = sys.modules.get("matplotlib.pyplot")
        if plt is None or not hasattr(plt, "get_fignums"):
            return
        try:
            for number in plt.get_fignums():
                figure = plt.figure(number)
                if figure is not self.result:
                    self.show("display", {"__bundle__": Interpreter, "data": {
                        "text/plain": pretty(figure), "image/png": png(figure)}})
        finally:
            plt.close("all")

    def event_loop(self):
        import asyncio
        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        return self.loop

    def turn(self):
        """Lets tasks that cells left behind do what they can do at once."""
        asyncio = sys.modules.get("asyncio")
        if self.loop is None or asyncio is None or self.event_loop().is_running():
            return
        end = time.monotonic() + 0.02
        while asyncio.all_tasks(self.loop):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()
            if not getattr(self.loop, "_ready", None) or time.monotonic() > end:
                return

    def evaluate(self, code, names):
        value = eval(code, names)
        if not code.co_flags & 0x80:  # CO_COROUTINE: the cell awaits
            return value
        import asyncio
        loop = self.event_loop()
        task = loop.create_task(value)
        try:
            return loop.run_until_complete(task)
        except KeyboardInterrupt:
            task.cancel()
            loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
            raise

    def run(self, code):
        self.wire.send(kind="began")
        self.turn()
        value = self.execute(code)
        if value is not None:
            self.context.keep(value)
            self.show("result", value)
            self.result = value
        self.turn()

    def check(self, code):
        """Raises what is wrong with the syntax of code, of which nothing is run."""
        self.wire.send(kind="began")
        self.parse(code)
        raise PolicyDenied("policy does not read this syntax, so the code was not run")

    def parse(self, code):
        self.count += 1
        name = "<cell %d>" % self.count
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        linecache.cache.pop("<cell %d>" % (self.count - SOURCES), None)
        flags = self.context.flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        return name, flags, compile(code, name, "exec", flags | ast.PyCF_ONLY_AST, True)

    def execute(self, code):
        """Runs code, and returns the value of its last expression."""
        name, flags, tree = self.parse(code)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not code.rstrip().endswith(";"):
            last = ast.Expression(tree.body.pop().value)
        body = compile(tree, name, "exec", flags, True)
        self.context.flags |= body.co_flags & FUTURES
        self.evaluate(body, self.context.names)
        if last is not None:
            return self.evaluate(compile(last, name, "eval", flags | self.context.flags, True), self.context.names)

    def attempt(self, work, *arguments):
        """Runs work; what it raises is an error of the cell."""
        try:
            self.wire.running = True
            work(*arguments)
        except BaseException as e:
            self.wire.running = False
            self.fail(e)
        finally:
            self.wire.running = False
        self.leave(0)

    def leave(self, status):
        """Ends this process if it is a child that the cell forked and did not end."""
        if os.getpid() != self.wire.pid:
            sys.stdout.flush()
            os._exit(status)

    def fail(self, e):
        if isinstance(e, SystemExit):
            self.leave(e.code if isinstance(e.code, int) else bool(e.code))
        frames = e.__traceback__
        while frames and not frames.tb_frame.f_code.co_filename.startswith("<cell "):
            frames = frames.tb_next
        try:
            value = str(e)
        except BaseException:
            value = "cannot be printed"
        try:
            lines = formatted(e, frames)
        except BaseException:
            lines = ""
        if os.getpid() != self.wire.pid:
            sys.stderr.write(lines)
            self.leave(1)
        self.release()
        self.flush()
        self.wire.send(kind="error", name=type(e).__name__[:200], value=cut(value, PLAIN), traceback=cut(lines, PLAIN))

    def reseed(self):
        for name in ("random", "numpy.random"):
            if name in sys.modules:
                sys.modules[name].seed()

    def cell(self, request):
        sys.modules["__main__"] = self.context.module
        env = request.get("env", {})
        before = {name: os.environ.get(name) for name in env}
        os.environ.update(env)
        try:
            self.pipes.restore()
            self.cleared, self.result = False, None
            if request.get("reseed"):
                self.attempt(self.reseed)
            self.attempt(self.check if request["op"] == "check" else self.run, request["code"])
            self.attempt(self.figures)
            self.attempt(self.release)
        except KeyboardInterrupt as e:  # it came when the cell had just ended
            self.fail(e)
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        self.flush()

    def serve(self, requests):
        for line in requests:
            request = json.loads(line)
            began = time.perf_counter()
            self.wire.begin(request["nonce"])
            self.cell(request)
            self.wire.end(ms=round((time.perf_counter() - began) * 1e3, 3))


class Handle:
    """What display returns with a display_id."""

    def __init__(self, interpreter, name):
        self.interpreter, self.display_id = interpreter, name if isinstance(name, str) else os.urandom(8).hex()

    def update(self, value, **_):
        self.interpreter.update_display(value, display_id=self.display_id)

    display = update


class Shown:
    """What the classes of IPython.display have in common, where IPython is not installed."""

    mime = "text/plain"

    def __init__(self, data=None, url=None, filename=None, **_):
        if isinstance(data, str) and filename is None and self.mime in ("", "image/svg+xml") and os.path.isfile(data):
            data, filename = None, data
        if filename is not None:
            with open(filename, "rb") as f:
                data = f.read()
            if self.mime.startswith("text/") or self.mime.endswith("xml"):
                data = data.decode()
        self.data = data

    def __repr__(self):
        return "<IPython.core.display.%s object>" % type(self).__name__

    def _repr_mimebundle_(self, include=None, exclude=None):
        mime = self.mime or ("image/jpeg" if self.data[:2] == b"\xff\xd8" else "image/png")
        return {mime: self.data} if self.data is not None else {}

    KINDS = {"HTML": "text/html", "Markdown": "text/markdown", "Latex": "text/latex",
             "SVG": "image/svg+xml", "JSON": "application/json", "Javascript": "application/javascript",
             "Pretty": "text/plain", "Code": "text/plain", "Image": ""}


class Imports:
    """Finds modules of which a part is to be another here, and IPython where it is not installed."""

    def __init__(self, interpreter):
        self.interpreter = interpreter
        functions = ("display", "update_display", "clear_output")
        self.display = {name: getattr(interpreter, name) for name in functions}
        self.patches = {
            "asyncio": self.asyncio, "matplotlib.pyplot": self.pyplot, "plotly.basedatatypes": self.plotly,
            "IPython": lambda m: setattr(m, "get_ipython", builtins.get_ipython)}
        for name in ("IPython.display", "IPython.core.display", "IPython.core.display_functions"):
            self.patches[name] = self.functions
        kinds = {name: type(name, (Shown,), {"mime": mime}) for name, mime in Shown.KINDS.items()}
        shown = dict(kinds, DisplayHandle=Handle, DisplayObject=Shown, **self.display)
        self.own = {
            "IPython": {"get_ipython": lambda: interpreter.shell, "version_info": (8, 0, 0, ""), "__version__": "8.0.0",
                        "__path__": []},
            "IPython.core": {"__path__": []}, "IPython.display": shown, "IPython.core.display": shown,
            "IPython.core.getipython": {"get_ipython": lambda: interpreter.shell},
            "IPython.core.pylabtools": {"backend2gui": {}}}

    def find_spec(self, name, path=None, target=None):
        if name not in self.patches and name not in self.own:
            return None
        found = (f.find_spec(name, path, target) for f in sys.meta_path if f is not self and hasattr(f, "find_spec"))
        spec = next((s for s in found if s is not None), None)
        if spec is None and name in self.own:
            from importlib.machinery import ModuleSpec
            return ModuleSpec(name, self, is_package="__path__" in self.own[name])
        if spec is not None and name in self.patches and hasattr(spec.loader, "exec_module"):
            execute = spec.loader.exec_module

            def patched(module):
                execute(module)
                if module.__name__ == name:
                    self.patches[name](module)
            spec.loader.exec_module = patched
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__dict__.update(self.own[module.__name__])

    def functions(self, module):
        for name, function in self.display.items():
            if name in module.__dict__:
                setattr(module, name, function)

    def asyncio(self, module):
        """Outside of a task, tasks are those of the loop in which cells await."""
        interpreter, create = self.interpreter, module.create_task

        def create_task(coro, **options):
            try:
                module.get_running_loop()
            except RuntimeError:
                if threading.current_thread() is not interpreter.wire.main:
                    raise
                return interpreter.event_loop().create_task(coro, **options)
            return create(coro, **options)

        module.create_task = create_task
        interpreter.event_loop()

    def pyplot(self, module):
        module.show = lambda *args, **options: self.interpreter.figures()

    def plotly(self, module):
        module.BaseFigure.show = lambda figure, *args, **options: self.interpreter.display(figure)


def refuse(prompt=""):
    raise EOFError("input() has no input here: put the value into the code")


def main():
    requests = os.fdopen(os.dup(0), "rb")
    wire = Wire(os.dup(1))
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    pipes = Pipes(wire)
    for stream, fd in (("stdout", 1), ("stderr", 2)):
        raw = Raw(wire, pipes, stream, fd)
        text = io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)
        setattr(sys, stream, text)
        setattr(sys, "__%s__" % stream, text)
    interpreter = Interpreter(wire, pipes)
    builtins.display, builtins.input = interpreter.display, refuse
    builtins.get_ipython = lambda: interpreter.shell
    sys.meta_path.insert(0, Imports(interpreter))
    os.environ.setdefault("MPLBACKEND", "agg")
    warnings.filterwarnings("ignore", message=".*(non-interactive|non-GUI backend).*", category=UserWarning)
    signal.signal(signal.SIGINT, wire.interrupt)
    sys.argv, sys.path[0] = [""], ""
    version = "%d.%d.%d" % sys.version_info[:3]
    wire.send(kind="hello", protocol=1, language="python", version=version)
    interpreter.serve(requests)
    os._exit(0)


main()
