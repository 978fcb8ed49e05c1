// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/cputime"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/shell/notebook"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestCapabilities(t *testing.T) {
	for _, c := range []struct{ language, text, want string }{
		{"python", "print(1)", ""},
		{"python", "open('a')", "files-read"},
		{"python", "open('a', 'w')", "files-read files-write"},
		{"python", "open('a', mode=m)", "files-read files-write"},
		{"python", "open('a', mode='rb')", "files-read"},
		{"python", "import os\nos.system('id')", "process"},
		{"python", "import os as o\no.environ['A']", "environment"},
		{"python", "from os import system as s\ns('id')", "process"},
		{"python", "from os import *\nsystem('id')", "process"},
		{"python", "import os\nx = os\nx.remove('a')", "files-write"},
		{"python", "import os\nprint(os.path.join('a', 'b'))", ""},
		{"python", "import pathlib\npathlib.Path('a').write_text('b')", "files-read files-write"},
		{"python", "import urllib.parse", ""},
		{"python", "import urllib.request", "network"},
		{"python", "import subprocess", "process"},
		{"python", "import threading, time", "concurrency time"},
		{"python", "import app", "project-code"},
		{"python", "from . import app", "project-code"},
		{"python", "import ctypes", "native-code"},
		{"python", "import pickle\npickle.loads(b'')", "dynamic-code"},
		{"python", "__import__('os').system('id')", "dynamic-code process"},
		{"python", "def f():\n  o.system('id')\nimport os as o", "process"},
		{"python", "get_ipython().system('id')", "process"},
		{"python", "x = get_ipython().getoutput('id')", "process"},
		{"python", "get_ipython().run_cell_magic('bash', '', 'id')", "process"},
		{"python", "get_ipython().run_cell_magic('time', '', 'import os; os.remove(1)')", "files-write"},
		{"python", "get_ipython().run_line_magic('cd', 'docs')", ""},
		{"javascript", "console.log(1)", ""},
		{"javascript", "require('fs').readFileSync('a')", "files-read"},
		{"javascript", "const {writeFileSync: w} = require('node:fs'); w('a', '')", "files-read files-write"},
		{"javascript", "import {exec} from 'child_process'; exec('id')", "process"},
		{"javascript", "import('net').then(n => n.connect(1))", "network"},
		{"javascript", "fetch('/')", "network"},
		{"javascript", "process.env.A", "environment"},
		{"javascript", "require('lodash'); require('./x')", "project-code"},
		{"javascript", "new WebAssembly.Module(b)", "native-code"},
		{"typescript", "import fs from 'fs'; (fs as any).writeFileSync('a', '')", "files-read files-write"},
		{"typescript", "import fs = require('fs')", "files-read"},
	} {
		if got := strings.Join(Analyze(c.language, c.text).Capabilities, " "); got != c.want {
			t.Errorf("%q can %q, want %q", c.text, got, c.want)
		}
	}
}

func TestFindingsHaveTheirPlace(t *testing.T) {
	text := "import base64\n\nif 1:\n    exec(base64.b64decode('eA=='))\n"
	s := Analyze("python", text)
	if len(s.Findings) != 1 {
		t.Fatalf("%+v", s.Findings)
	}
	f := s.Findings[0]
	if got := text[f.Span.Start:f.Span.End]; got != "exec(base64.b64decode('eA=='))" || f.Span.Line != 4 || f.Span.Col != 5 || f.Message == "" {
		t.Errorf("%+v of %q", f, got)
	}
}

// TestDoubts checks that text that was not read is reported as such.
func TestDoubts(t *testing.T) {
	for want, c := range map[string][2]string{
		"too-large":        {"python", strings.Repeat("a", MaxSize+1)},
		"encoding":         {"python", "x = '\xff'"},
		"unknown-language": {"perl", "print 1"},
		"not-understood":   {"javascript", "const = ;"},
	} {
		if s := Analyze(c[0], c[1]); s.Complete || !slices.Contains(codes(s), want) {
			t.Errorf("%q: %+v", c[1][:min(20, len(c[1]))], s)
		}
	}
	many := ""
	for i := range 300 {
		many += fmt.Sprintf("import m%d\n", i)
	}
	if s := Analyze("python", many); s.Complete || len(s.Imports) > maxImports {
		t.Errorf("300 imports: complete %v, %d", s.Complete, len(s.Imports))
	}
}

// TestDeepNames analyzes expressions whose names grow: the walk must stay short.
func TestDeepNames(t *testing.T) {
	lanetest.SkipShort(t)
	for _, text := range sample.EveryNth(t, []string{
		strings.Repeat("exec('", 500), "import os\nos" + strings.Repeat(".a", 20000), "exec(" + strings.Repeat("'a'+", 10000) + "'a')",
		"exec('" + strings.Repeat(`exec(\'`, 200) + "')", "a=" + strings.Repeat("f(", 10000), strings.Repeat("a = b = ", 5000) + "eval",
	}, 3, 3) {
		Analyze("python", text)
		Analyze("javascript", text)
	}
}

// Code in strings must be read often enough to be useful, but never so often that it
// takes long.
func TestManyStringsWithCode(t *testing.T) {
	lanetest.SkipShort(t)
	clock := cputime.Start()
	for _, text := range []string{strings.Repeat("exec('import os')\n", 3000), strings.Repeat("exec('exec(\"import os\")')\n", 2000)} {
		if s := Analyze("python", text); s.Complete || !slices.ContainsFunc(s.Findings, func(f proposal.SnippetFinding) bool { return f.Code == "too-large" }) {
			t.Errorf("complete %v: %v", s.Complete, s.Findings)
		}
	}
	if d := clock.Stop(); d > 10*time.Second {
		t.Errorf("took %v of a processor", d)
	}
	if s := Analyze("python", strings.Repeat("exec('import os')\n", 60)); !s.Complete {
		t.Errorf("what people write is refused: %v", s.Findings)
	}
}

func TestEveryFindingHasAMessage(t *testing.T) {
	for _, list := range []string{"hostile.txt", "ordinary.txt"} {
		for _, c := range samples(t, list) {
			for _, f := range Analyze(c.language, c.text).Findings {
				if messages[f.Code] == "" || f.Message != messages[f.Code] {
					t.Errorf("%s says %q", f.Code, f.Message)
				}
			}
		}
	}
}

// FuzzAnalyze analyzes any text: the result must be the same each time, with
// positions inside the text and words that are fit to be listed.
func FuzzAnalyze(f *testing.F) {
	for _, list := range []string{"hostile.txt", "ordinary.txt"} {
		for _, c := range sample.EveryNth(f, samples(f, list), 1, 10) {
			f.Add(c.language, c.text)
		}
	}
	f.Fuzz(func(t *testing.T, language, text string) {
		s := Analyze(language, text)
		for _, found := range s.Findings {
			if found.Code == "unreadable" {
				t.Errorf("unreadable: %q", text)
			}
			if found.Span.Start < 0 || found.Span.End < found.Span.Start || found.Span.End > len(text) || found.Span.Line < 1 || found.Span.Col < 1 {
				t.Errorf("%+v of %d bytes", found, len(text))
			}
		}
		for _, module := range s.Imports {
			if len(module) > maxName || !utf8.ValidString(module) || strings.ContainsAny(module, "\n\x1b") {
				t.Errorf("import %q", module)
			}
		}
		if again := Analyze(language, text); !slices.Contains(codes(s), "too-long") && !reflect.DeepEqual(s, again) {
			t.Error(cmp.Diff(s, again))
		}
	})
}

func BenchmarkAnalyze(b *testing.B) {
	for name, text := range map[string]string{
		"typical": "import json, sys\nfrom app import total\nprint(json.dumps({'python': sys.version, 'total': total([1, 2])}))\n",
		"64 KiB":  strings.Repeat("def f(a, b=1):\n    return [x + a for x in range(b) if x % 2 == 0]\n", MaxSize/72),
	} {
		b.Run(name, func(b *testing.B) {
			Analyze("python", "")
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if s := Analyze("python", text); !s.Complete {
					b.Fatal(s.Findings)
				}
			}
		})
	}
}

// Magics and expansions of a notebook run no code that was not judged as Python is elsewhere.
func TestNotebookCodeIsJudged(t *testing.T) {
	const hidden = "exec(__import__('base64').b64decode('eA=='))"
	for cell, want := range map[string]string{
		"%time " + hidden:                           "decoded-code",
		"%timeit " + hidden:                         "decoded-code",
		"%timeit -n1 -r 2 -q " + hidden:             "decoded-code",
		"%timeit -n1# " + hidden:                    "",
		"%timeit -x# " + hidden:                     "",
		"%%time\n# a\r" + hidden:                    "decoded-code",
		"%%capture out\n" + hidden:                  "decoded-code",
		"!echo {" + hidden + "}":                    "decoded-code",
		"x = !echo {" + hidden + "} a":              "decoded-code",
		"%cd {" + hidden + "}":                      "decoded-code",
		"%ls {" + hidden + "}":                      "decoded-code",
		"%%time\n1 +":                               "not-understood",
		"%time !ls":                                 "not-understood",
		"get_ipython().cell_time('', 'x')":          "interpreter-internals",
		"s = get_ipython()\ns.expand('{x}')":        "interpreter-internals",
		"getattr(get_ipython(), 'expand')('{x}')":   "interpreter-internals",
		"get_ipython().interpreter.execute(1, 'x')": "interpreter-internals",
		"g = get_ipython()\ng.run_line_magic(name='time', line=\"" + hidden + "\")":                              "decoded-code",
		"from IPython import get_ipython\nget_ipython().run_line_magic('time', " + hidden + ")":                  "decoded-code",
		"import IPython as i\ni.get_ipython().run_line_magic('time', \"" + hidden + "\")":                        "decoded-code",
		"import builtins\nbuiltins.get_ipython().run_line_magic('time', \"" + hidden + "\")":                     "decoded-code",
		"from IPython.core.getipython import get_ipython as g\ng().expand('{x}')":                                "interpreter-internals",
		"import IPython.core.getipython\nIPython.core.getipython.get_ipython().run_cell_magic('bash', '', 'id')": "",
		"!ls {path} {a,b} ${HOME}":     "",
		"%timeit -n 10 f(x)":           "",
		"%%timeit\nf(x)":               "",
		"get_ipython().user_ns['x']":   "",
		"!awk '{print $1}' {files[0]}": "",
	} {
		found := ""
		for _, f := range Analyze("python", notebook.Translate(cell)).Findings {
			found = f.Code
		}
		if found != want {
			t.Errorf("%q: finding %q, want %q", cell, found, want)
		}
	}
}
