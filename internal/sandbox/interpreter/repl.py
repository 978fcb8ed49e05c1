# SPDX-License-Identifier: Apache-2.0
#
# The Python end of the protocol in interpreter.go: Python 3.9 or newer, standard
# library only. Cells run in this process. The protocol's descriptors are duplicates
# that children do not inherit; descriptors 1 and 2 are pipes that a thread reads.
import ast
import base64
import builtins
import codecs
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


def shown(value):
    """The fields of a result: its forms, and the size of those that are too large."""
    if isinstance(value, dict) and value.get("__bundle__") is Interpreter:
        found = dict(value["data"])
    else:
        found = {"text/plain": repr(value)}
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


class Context:
    def __init__(self):
        self.module = types.ModuleType("__main__")
        self.names = self.module.__dict__
        self.names["__builtins__"] = builtins
        self.flags = 0  # of the cells' __future__ imports


FUTURES = 0
for name in __future__.all_feature_names:
    FUTURES |= getattr(__future__, name).compiler_flag


class Interpreter:
    def __init__(self, wire, pipes):
        self.wire, self.pipes = wire, pipes
        self.contexts, self.count, self.loop = {}, 0, None

    def display(self, *values):
        """Shows values, as the last expression of a cell is shown."""
        for value in values:
            self.show("display", value)

    def show(self, kind, value):
        fields = shown(value)
        self.flush()
        self.wire.send(kind=kind, **fields)

    def flush(self):
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass
        self.pipes.drain()

    def figures(self):
        plt = sys.modules.get("matplotlib.pyplot")
        if plt is None or not hasattr(plt, "get_fignums"):
            return
        try:
            for number in plt.get_fignums():
                image = io.BytesIO()
                plt.figure(number).savefig(image, format="png", bbox_inches="tight")
                self.show("display", {"__bundle__": Interpreter, "data": {"image/png": image.getvalue()}})
        finally:
            plt.close("all")

    def evaluate(self, code, names):
        value = eval(code, names)
        if not code.co_flags & 0x80:  # CO_COROUTINE: the cell awaits
            return value
        import asyncio
        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        task = self.loop.create_task(value)
        try:
            return self.loop.run_until_complete(task)
        except KeyboardInterrupt:
            task.cancel()
            self.loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
            raise

    def run(self, context, code):
        self.wire.send(kind="began")
        self.count += 1
        name = "<cell %d>" % self.count
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        linecache.cache.pop("<cell %d>" % (self.count - SOURCES), None)
        flags = context.flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        tree = compile(code, name, "exec", flags | ast.PyCF_ONLY_AST, True)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not code.rstrip().endswith(";"):
            last = ast.Expression(tree.body.pop().value)
        body = compile(tree, name, "exec", flags, True)
        context.flags |= body.co_flags & FUTURES
        self.evaluate(body, context.names)
        if last is None:
            return
        value = self.evaluate(compile(last, name, "eval", flags | context.flags, True), context.names)
        if value is not None:
            context.names["_"] = value
            self.show("result", value)

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
        self.flush()
        self.wire.send(kind="error", name=type(e).__name__[:200], value=cut(value, PLAIN), traceback=cut(lines, PLAIN))

    def cell(self, request):
        context = self.contexts.setdefault(request["context"], Context())
        sys.modules["__main__"] = context.module
        env = request.get("env", {})
        before = {name: os.environ.get(name) for name in env}
        os.environ.update(env)
        try:
            self.pipes.restore()
            self.attempt(self.run, context, request["code"])
            self.attempt(self.figures)
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
            if request["op"] == "remove":
                self.contexts.pop(request["context"], None)
            else:
                self.cell(request)
            self.wire.end(ms=round((time.perf_counter() - began) * 1e3, 3))


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
    os.environ.setdefault("MPLBACKEND", "agg")
    warnings.filterwarnings("ignore", message=".*(non-interactive|non-GUI backend).*", category=UserWarning)
    signal.signal(signal.SIGINT, wire.interrupt)
    sys.argv, sys.path[0] = [""], ""
    version = "%d.%d.%d" % sys.version_info[:3]
    wire.send(kind="hello", protocol=1, language="python", version=version)
    interpreter.serve(requests)
    os._exit(0)


main()
