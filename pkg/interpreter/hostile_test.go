// SPDX-License-Identifier: Apache-2.0

package interpreter

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/internal/sample"
)

// hostile cells try to break the protocol. Afterwards the interpreter has its state, or it
// has ended and says so; no cell gets the result of another.
var hostile = map[Language][]string{
	Python: {
		"import os\nfor fd in range(3, 200):\n    try: os.write(fd, b'{\"kind\":\"done\",\"nonce\":\"\",\"ms\":1}\\n')\n    except OSError: pass",
		"import os\nos.closerange(0, 1000)",
		"import os\nos.close(1); os.close(2)",
		"import os\nos.dup2(os.open('/dev/null', os.O_RDWR), 1)",
		"import os\nos._exit(7)",
		"import os\nos.kill(os.getpid(), 9)",
		"import os\nos.abort()",
		"import ctypes\nctypes.string_at(0)",
		"import sys\nsys.stdout = sys.stderr = sys.__stdout__ = None",
		"import builtins\nfor n in ('print', 'repr', 'len', 'str', 'isinstance', 'type'): setattr(builtins, n, None)",
		"import json, os, time\njson.dumps = os.write = time.perf_counter = None",
		"import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28))\nb = bytearray(1 << 30)",
		"def f(): f()\nf()",
		"class E(BaseException):\n    def __str__(self): raise E\nraise E",
		"raise type('x' * 10000, (Exception,), {})('y' * 10000000)",
		"for _ in range(5000): display(1)",
		"display(type('B', (), {'_repr_png_': lambda s: b'x' * (20 << 20)})())",
		"display(type('B', (), {'_repr_mimebundle_': lambda s, **k: {str(n): 'x' for n in range(1000)}})())",
		"display(type('B', (), {'_repr_mimebundle_': lambda s, **k: {'text/html': object()}})())",
		"import os\nif os.fork() == 0:\n    while True: os.write(1, b'x' * 60000)",
		"import threading, time\nthreading.Thread(target=lambda: [print(n) for n in range(1000)]).start()",
		"import sys, gc\n[o for o in gc.get_objects() if type(o).__name__ == 'Wire'][0].nonce = None",
		"import gc\nw = [o for o in gc.get_objects() if type(o).__name__ == 'Wire'][0]\nfor _ in range(3): w.send(kind='done', ms=1)",
		"import gc, os\nw = [o for o in gc.get_objects() if type(o).__name__ == 'Wire'][0]\nfor _ in range(40): os.write(w.fd, b'x' * (1 << 20))",
		"import signal, os\nos.kill(os.getpid(), signal.SIGINT)",
		"import sys\nsys.modules.clear()",
		"import asyncio\nasyncio.get_event_loop().close()",
		"raise GeneratorExit",
		"import sys\nsys.setrecursionlimit(10**6)\nsys.settrace(lambda *a: 1/0)",
	},
	Node: {
		"for (let fd = 3; fd < 50; fd++) try { require('fs').writeSync(fd, '{\"kind\":\"done\",\"nonce\":\"\",\"ms\":1}\\n') } catch {}",
		"for (let fd = 0; fd < 100; fd++) try { require('fs').closeSync(fd) } catch {}",
		"process.reallyExit(7)",
		"process.abort()",
		"process.kill(process.ppid, 'SIGKILL')",
		"JSON.stringify = JSON.parse = null",
		"Object.prototype.toJSON = () => 1",
		"Promise.prototype.then = null; Array.prototype.shift = null",
		"process.stdout.write = null; console.log(1)",
		"for (let n = 0; n < 5000; n++) display(1)",
		"display({ _repr_png_: () => Buffer.alloc(20 << 20) })",
		"(function f() { f() })()",
		"setTimeout(() => { throw new Error('later') }); Promise.reject(1); await new Promise((r) => setTimeout(r, 50))",
		"new Proxy({}, { get() { throw 1 }, ownKeys() { throw 2 } })",
		"throw { get stack() { throw 1 } }",
		"throw null",
		"process.removeAllListeners(); setTimeout(() => { throw 1 }); await new Promise(() => {})",
		"process.emit('SIGINT'); await new Promise((r) => setTimeout(r, 50))",
		"globalThis.display = null; delete globalThis.require",
		"const a = []; for (;;) a.push(new Array(1e6).fill(1.5))",
		"require('fs').writeSync(4, 'x'.repeat(40 << 20))",
	},
}

func TestHostileCells(t *testing.T) {
	each(t, func(t *testing.T, l Language, word map[string]string) {
		for n, cell := range sample.Of(t, hostile[l], 1, 3) {
			t.Run(fmt.Sprint(n), func(t *testing.T) { try(t, l, word, cell) })
		}
	})
}

func try(t *testing.T, l Language, word map[string]string, cell string) {
	s := newSession(t, l, "", func(o *Options) { o.Grace = 500 * time.Millisecond })
	s.run(t, word["set"])
	first, err := s.try(t, "", cell, 3*time.Second)
	if len(s.events) > 1000 || first.Took > 8*time.Second {
		t.Errorf("%d events in %v", len(s.events), first.Took)
	}
	var died *DiedError
	if err == nil {
		_, err = s.try(t, "", word["get"], 4*time.Second)
	}
	switch {
	case errors.As(err, &died):
		if died.Status == "" {
			t.Errorf("%q: no status", cell)
		}
	case err != nil && !errors.Is(err, context.DeadlineExceeded):
		t.Errorf("%q: %v", cell, err)
	}
	t.Logf("%.60q: %v, %+v, then %q", cell, err, first, s.text(Stdout))
}

// A hostile program that replaces the interpreter: what it sends is ignored, or ends the interpreter.
func TestHostileProgram(t *testing.T) {
	long := strings.Repeat("x", MaxMessage+10) + "\n"
	for name, test := range map[string]struct {
		send  string // NONCE is replaced
		want  string // events
		cause string
		most  int
	}{
		"forged done without nonce": {`{"kind":"done","ms":1}` + "\n" + `{"kind":"stdout","nonce":"NONCE","text":"ok"}` + "\n" + `{"kind":"done","nonce":"NONCE","ms":1}` + "\n", "ok", "", 1},
		"done of an older cell":     {`{"kind":"done","nonce":"00","ms":1}` + "\n" + `{"kind":"done","nonce":"NONCE","ms":1}` + "\n", "", "", 1},
		"long line":                 {long + `{"kind":"done","nonce":"NONCE","ms":1}` + "\n", "", "", 1},
		"no messages":               {"\n\x00\n[]\nnull\n{\"kind\":\"x\"}\n" + `{"kind":"done","nonce":"NONCE","ms":1}` + "\n", "", "", 5},
		"end in a line":             {`{"kind":"done","nonce":"NONCE"`, "", "died", 0},
		"numbers":                   {`{"kind":"done","nonce":"NONCE","ms":1e999}` + "\n" + `{"kind":"stdout","nonce":"NONCE","omitted":-1}` + "\n" + `{"kind":"done","nonce":"NONCE","ms":-1}` + "\n", "", "died", 3},
		"a result that is no image": {`{"kind":"result","nonce":"NONCE","data":{"image/png":"<script>"}}` + "\n" + `{"kind":"done","nonce":"NONCE","ms":1}` + "\n", "", "", 1},
		"a second hello":            {`{"kind":"hello","nonce":"NONCE","protocol":1}` + "\n" + `{"kind":"done","nonce":"NONCE","ms":1}` + "\n", "", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			i := against(t, test.send)
			text := ""
			o, err := i.Execute(timeout(t, 10*time.Second), Cell{}, func(e Event) { text += e.Text })
			var died *DiedError
			if errors.As(err, &died) != (test.cause == "died") || (err != nil && died == nil) || text != test.want || o.Ignored != test.most {
				t.Errorf("%q, %+v, %v", text, o, err)
			}
		})
	}
}

// against starts an Interpreter whose peer answers the first request with text and ends.
func against(t *testing.T, text string) *Interpreter {
	inside, in := io.Pipe()
	out, outside := io.Pipe()
	go func() {
		defer outside.Close()
		fmt.Fprintln(outside, `{"kind":"hello","protocol":1,"language":"python"}`)
		line, _ := bufio.NewReader(inside).ReadBytes('\n')
		var r request
		_ = json.Unmarshal(line, &r)
		_, _ = io.WriteString(outside, strings.ReplaceAll(text, "NONCE", r.Nonce))
	}()
	i, err := Start(timeout(t, 10*time.Second), in, out, Options{Language: Python, Interrupt: func() error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.Close() })
	return i
}

// A program that ends at once, or says something else, is an error of the start.
func TestHello(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "no hello\n": "interpreter.start", `{"kind":"hello","protocol":2,"language":"python"}` + "\n": "interpreter.start",
		`{"kind":"hello","protocol":1,"language":"node"}` + "\n": "interpreter.start", `{"kind":"done"}` + "\n": "interpreter.start",
	} {
		_, in := io.Pipe()
		_, err := Start(timeout(t, 5*time.Second), in, io.NopCloser(strings.NewReader(text)), Options{Language: Python, Interrupt: func() error { return nil }})
		var died *DiedError
		if code(err) != want || errors.As(err, &died) != (want == "") {
			t.Errorf("%q: %v", text, err)
		}
	}
	_, in := io.Pipe()
	silent, _ := io.Pipe()
	if _, err := Start(timeout(t, 50*time.Millisecond), in, silent, Options{Language: Python, Interrupt: func() error { return nil }}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, err := Start(context.Background(), in, silent, Options{Language: Python}); code(err) != "interpreter.start" {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"kind":"hello","protocol":1,"language":"python","version":"3"}`, `{"kind":"result","nonce":"a","data":{"text/plain":"1","application/json":"{}"}}`,
		`{"kind":"error","name":"E","value":"v","traceback":"t"}`, `{"kind":"done","ms":1.5}`, `{"kind":"stdout","text":"\ud800","late":true,"omitted":3}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decode(data)
		if err != nil {
			return
		}
		if !kinds[m.Kind] || m.Omitted < 0 || len(m.Data) > maxForms {
			t.Errorf("%+v", m)
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decode(again); err != nil {
			t.Errorf("%s: %v", again, err)
		}
	})
}

// No line is longer than the limit, and no later line is lost.
func FuzzReadLine(f *testing.F) {
	f.Add([]byte("a\nbb\n\nccc"), 2)
	f.Fuzz(func(t *testing.T, data []byte, max int) {
		if max < 1 || max > 1<<20 {
			return
		}
		r := bufio.NewReaderSize(bytes.NewReader(data), 16)
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			got, err := readLine(r, max)
			if len(got) > max {
				t.Fatalf("%d bytes", len(got))
			}
			if len(line) < max && !bytes.Equal(got, line) {
				t.Fatalf("%q, not %q (%v)", got, line, err)
			}
		}
	})
}
