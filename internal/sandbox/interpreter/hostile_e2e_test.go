// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package interpreter

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
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

// Hostile cells lose no more than their own interpreter.
func TestE2EHostileCells(t *testing.T) {
	each(t, func(t *testing.T, l Language, word map[string]string) {
		for n, cell := range hostile[l] {
			t.Run(fmt.Sprint(n), func(t *testing.T) { attack(t, l, word, cell) })
		}
	})
}

func attack(t *testing.T, l Language, word map[string]string, cell string) {
	s := newSession(t, l, "", func(o *Options) { o.Grace = 500 * time.Millisecond })
	s.run(t, word["set"])
	first, err := s.try(t, cell, 3*time.Second)
	if len(s.events) > 1000 || first.Took > 8*time.Second {
		t.Errorf("%d events in %v", len(s.events), first.Took)
	}
	var died *DiedError
	if err == nil {
		_, err = s.try(t, word["get"], 4*time.Second)
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
