// SPDX-License-Identifier: Apache-2.0

package review

import (
	"os"
	"path/filepath"
	"testing"
)

// The logs of a review are kept under the names that the document has, also if the model's is there
// and the directory is a relative path. None replaces a file.
func TestKeepLogs(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name string) string {
		path, err := filepath.Abs(name)
		if err != nil || os.MkdirAll(filepath.Dir(path), 0o755) != nil || os.WriteFile(path, []byte(name), 0o600) != nil {
			t.Fatal(name, err)
		}
		return path
	}
	session := Run{Log: write("state/session.jsonl")}
	d := Document{Schema: Schema, Runs: []Run{{Log: write("state/a.jsonl")}, {Log: write("state/b.jsonl")}},
		Model: &ModelUse{Log: Run{Log: write(filepath.Join(ModelDir("out"), logName))}, Session: &session}}
	again := Document{Schema: Schema, Runs: []Run{{Log: write("state/c.jsonl")}}}
	if err := d.KeepFiles(Files{Logs: "out"}, nil); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{d.Runs[0].Log: "state/a.jsonl", d.Runs[1].Log: "state/b.jsonl", d.Model.Log.Log: "out/model/audit.jsonl", d.Model.Session.Log: "state/session.jsonl"} {
		if data, err := os.ReadFile(filepath.Join("out", name)); err != nil || string(data) != content {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if err := again.KeepFiles(Files{Logs: "out"}, nil); err == nil {
		t.Error("a log was replaced")
	}
}
