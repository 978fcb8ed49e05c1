// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package interpreter

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Debian's pandas, matplotlib and PIL show their results unchanged.
func TestE2ELibraries(t *testing.T) {
	s := newSession(t, Python, "/usr/bin/python3")
	s.run(t, "import pandas as pd, matplotlib.pyplot as plt\ndf = pd.DataFrame({'a': [1, 2, 3], 'b': ['x', 'y', None]})")
	s.run(t, "df")
	data := s.events[0].Data
	if len(s.events) != 1 || !strings.Contains(data["text/html"], "<table") || !strings.Contains(data["text/plain"], "a") {
		t.Errorf("%+v", s.events)
	}
	var table struct {
		Schema struct{ Fields []struct{ Name string } }
		Data   []map[string]any
	}
	if err := json.Unmarshal([]byte(data["application/vnd.dataresource+json"]), &table); err != nil || len(table.Data) != 3 || len(table.Schema.Fields) != 3 {
		t.Errorf("%v: %+v", err, data)
	}
	s.run(t, "pd.DataFrame({'a': range(10_000_000)})")
	if err := json.Unmarshal([]byte(s.events[0].Data["application/vnd.dataresource+json"]), &table); err != nil || len(table.Data) != 200 {
		t.Errorf("%v: %d rows", err, len(table.Data))
	}
	s.run(t, "df.a.plot(); plt.figure(); plt.plot([1, 2]); plt.show()")
	if picture(t, s, 0); len(s.events) != 2 || s.text(Stderr) != "" {
		t.Errorf("%d events, %q", len(s.events), s.text(Stderr))
	}
	picture(t, s, 1)
	if s.run(t, "plt.get_fignums()"); s.text(Result) != "[]" {
		t.Errorf("figures are left: %+v", s.events)
	}
	if o := s.run(t, "plt.plot([1])\n1 / 0"); o.Error == nil || s.run(t, "plt.get_fignums()").Error != nil || s.text(Result) != "[]" {
		t.Errorf("after an error: %+v", s.events)
	}
	s.run(t, "from PIL import Image\nImage.new('RGB', (3, 2))")
	picture(t, s, 0)
	s.run(t, "df.a.mean()")
	if !strings.Contains(s.text(Result), "2.0") {
		t.Errorf("%+v", s.events)
	}
	s.run(t, "df.missing")
	if tb := s.events[0].Error.Traceback; !strings.Contains(tb, "AttributeError") || strings.Contains(tb, "repl.py") {
		t.Error(tb)
	}
}

func picture(t *testing.T, s *session, n int) {
	t.Helper()
	if len(s.events) <= n {
		t.Fatalf("no event %d", n)
	}
	image, err := base64.StdEncoding.DecodeString(s.events[n].Data["image/png"])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(bytes.NewReader(image)); err != nil {
		t.Errorf("%v: %+v", err, s.events[n])
	}
}

// Cells may import IPython's display functions where IPython is not installed: Python starts without its packages.
func TestE2EWithoutIPython(t *testing.T) {
	bare := filepath.Join(t.TempDir(), "python3")
	if err := os.WriteFile(bare, []byte("#!/bin/sh\nexec /usr/bin/python3 -S \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := newSession(t, Python, bare)
	for _, c := range []struct{ code, mime, want string }{
		{"from IPython.display import *", "", ""},
		{"HTML('<b>x</b>')", "text/html", "<b>x</b>"},
		{"display(Markdown('**x**'))", "text/markdown", "**x**"},
		{"JSON({'a': 1})", "application/json", `{"a": 1}`},
		{"Image(b'\\x89PNG')", "image/png", "iVBORw=="},
		{"open('x.jpg', 'wb').write(b'\\xff\\xd8'); Image('x.jpg')", "image/jpeg", "/9g="},
		{"Image(url='https://x.example')", "text/plain", "<IPython.core.display.Image object>"},
		{"from IPython.core.display import HTML as H\nH('y')", "text/html", "y"},
		{"import IPython\nIPython.get_ipython().run_line_magic('pwd', '') == __import__('os').getcwd()", "text/plain", "True"},
		{"import IPython.lib", "", "ModuleNotFoundError"},
	} {
		s.run(t, c.code)
		got := ""
		for _, e := range s.events {
			if got += e.Data[c.mime]; e.Error != nil {
				got += e.Error.Name
			}
		}
		if got != c.want {
			t.Errorf("%q: %q; want %q: %+v", c.code, got, c.want, s.events)
		}
	}
}

// What replaces something that was shown is shown at most twice a second, and the last of it always.
func TestE2EReplacedDisplays(t *testing.T) {
	s := newSession(t, Python, "/usr/bin/python3")
	s.run(t, "from IPython.display import clear_output\nh = display('start', display_id=True)\nfor n in range(1000): h.update(n)")
	if len(s.events) < 2 || len(s.events) > 10 || s.events[len(s.events)-1].Data["text/plain"] != "999" {
		t.Errorf("%d events: %+v", len(s.events), s.events)
	}
	s.run(t, "for n in range(1000): clear_output(wait=True); display(n)\n1 / 0")
	if n := len(s.events); n < 2 || n > 10 || s.events[n-2].Data["text/plain"] != "999" || s.events[n-1].Error == nil {
		t.Errorf("%d events: %+v", n, s.events)
	}
}
