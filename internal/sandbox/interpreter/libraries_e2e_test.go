// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package interpreter

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image/png"
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
