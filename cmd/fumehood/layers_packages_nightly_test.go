// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// The second run of a project with dependencies does not install them again: it asks no
// registry, and its commands find what the first run's set-up left. With another lock file,
// set-up runs.
func TestNightlyLayersOfPackages(t *testing.T) {
	n := newInternet(t)
	d, s := company(t, n)
	left := s.npm(t, "left", map[string]any{"main": "index.js"}, map[string]string{"index.js": "module.exports = () => 'left of npm'\n"})
	d.lockfile(t, "ws", map[string]string{"test": `node -p "require('left')()"`}, map[string]map[string]any{"left": left})
	sum := s.goModule(t, "code.example/greet", "v1.2.3", "package greet\n\nfunc Greet() string { return \"greeting of go\" }\n")
	d.file(t, "ws/go.mod", "module project\n\ngo 1.21\n\nrequire code.example/greet v1.2.3\n")
	d.file(t, "ws/go.sum", "%s", sum)
	d.file(t, "ws/main.go", "package main\n\nimport \"code.example/greet\"\n\nfunc main() { println(greet.Greet()) }\n")
	d.write(t, "plan.yaml", "schema: fumehood.plan/v1\nproposals:\n  - {id: js, run: npm test}\n  - {id: go, argv: [go, list, -f, '{{.Dir}}', code.example/greet]}\n")

	run := func(name, mode string) (proposal.Report, time.Duration) {
		begin := time.Now()
		r := n.run(t, d, name, nil, "--setup", "auto", "--layers", mode, "--layers-dir", d.path("layers"))
		d.checkSealed(t, name)
		for _, rec := range r.Records {
			if rec.Result == nil || !rec.Result.Succeeded() {
				t.Fatalf("%s: %s: %+v", name, rec.Proposal.ID, rec.Result)
			}
		}
		return r, firstResult(r, begin)
	}
	cold, coldTook := run("cold", "write")
	asked := len(s.asked)
	warm, warmTook := run("warm", "read")
	if len(s.asked) != asked {
		t.Errorf("the second run asked registries: %q", s.asked[asked:])
	}
	if replaced(cold) != 0 || replaced(warm) != len(cold.Records)-2 {
		t.Errorf("from a layer: %d and then %d of %d", replaced(cold), replaced(warm), len(cold.Records))
	}
	for i := range 2 {
		was, is := cold.Records[len(cold.Records)-2+i].Result, warm.Records[len(warm.Records)-2+i].Result
		if string(was.Stdout.Head) != string(is.Stdout.Head) || len(is.Changes.Files) > 0 {
			t.Errorf("%q, with the layer %q %+v", was.Stdout.Head, is.Stdout.Head, is.Changes.Files)
		}
	}
	t.Logf("until the first command: %s, with the layer %s", coldTook, warmTook)

	// A pull request that changes a lock file has another key: it sees nothing of the layer,
	// and leaves nothing in the store.
	right := s.npm(t, "right", map[string]any{"main": "index.js"}, map[string]string{"index.js": "module.exports = 1\n"})
	d.lockfile(t, "ws", map[string]string{"test": `node -p "require('left')()"`}, map[string]map[string]any{"left": left, "right": right})
	changed, _ := run("changed", "read")
	installed := len(s.asked) - asked
	if replaced(changed) != 0 || installed == 0 {
		t.Errorf("another lock file: %d from the layer, %d requests", replaced(changed), installed)
	}
	// Its new sandboxes have what its own set-up left, which asks the registries once, too.
	asked = len(s.asked)
	d.write(t, "plan.yaml", "schema: fumehood.plan/v1\nproposals:\n  - {id: js, run: npm test, new-sandbox: true}\n  - {id: more, run: \"node -p \\\"require('right')\\\"\", new-sandbox: true}\n")
	renewed, _ := run("renewed", "read")
	if l := renewed.Records[len(renewed.Records)-3].Result.Layer; replaced(renewed) != 0 || len(s.asked)-asked != installed || l == nil || !l.Private {
		t.Errorf("new sandboxes: %d requests, want %d; layer %+v", len(s.asked)-asked, installed, l)
	}
	if files, err := os.ReadDir(d.path("layers")); err != nil || len(files) != 1 || filepath.Ext(files[0].Name()) != ".layer" {
		t.Errorf("the store has %v, %v", files, err)
	}
}

// A lifecycle script whose name is escaped runs, and the file that it reads is an input of the
// layer: with another one, set-up runs. Other files do not matter.
func TestNightlyLayersOfScripts(t *testing.T) {
	n := newInternet(t)
	d, s := company(t, n)
	left := s.npm(t, "left", map[string]any{"main": "index.js"}, map[string]string{"index.js": "module.exports = 1\n"})
	d.lockfile(t, "ws", map[string]string{"test": "cat node_modules/made", "postinstall": "node hook.js"}, map[string]map[string]any{"left": left})
	manifest, err := os.ReadFile(d.path("ws/package.json"))
	if err != nil || !strings.Contains(string(manifest), `"postinstall"`) {
		t.Fatalf("%s, %v", manifest, err)
	}
	write(t, d.path("ws/package.json"), strings.Replace(string(manifest), `"postinstall"`, `"p\u006fstinstall"`, 1))
	write(t, d.path("ws/hook.js"), "require('fs').writeFileSync('node_modules/made', require('fs').readFileSync('data.txt'))\n")
	write(t, d.path("ws/data.txt"), "first\n")
	write(t, d.path("ws/src/a.js"), "1\n")
	d.write(t, "plan.yaml", "schema: fumehood.plan/v1\nproposals:\n  - {id: js, run: npm test}\n")
	run := func(name, mode string) (int, string) {
		r := n.run(t, d, name, nil, "--setup", "auto", "--layers", mode, "--layers-dir", d.path("layers"))
		last := r.Records[len(r.Records)-1].Result
		if last == nil || !last.Succeeded() {
			t.Fatalf("%s: %+v", name, last)
		}
		return replaced(r), string(last.Stdout.Head)
	}
	if from, out := run("cold", "write"); from != 0 || !strings.Contains(out, "first") {
		t.Fatalf("%d from a layer, %q", from, out)
	}
	write(t, d.path("ws/src/a.js"), "another\n")
	if from, out := run("warm", "read"); from != 1 || !strings.Contains(out, "first") {
		t.Errorf("with another source file: %d from the layer, %q", from, out)
	}
	write(t, d.path("ws/data.txt"), "second\n")
	if from, out := run("changed", "read"); from != 0 || !strings.Contains(out, "second") {
		t.Errorf("with another file that the script reads: %d from the layer, %q", from, out)
	}
}

// replaced counts the commands that a layer replaced.
func replaced(r proposal.Report) (n int) {
	for _, rec := range r.Records {
		if rec.Result != nil && rec.Result.FromLayer() {
			n++
		}
	}
	return n
}

// firstResult returns how long the run took without its last two commands.
func firstResult(r proposal.Report, begin time.Time) time.Duration {
	took := time.Since(begin)
	for _, rec := range r.Records[len(r.Records)-2:] {
		took -= time.Duration(rec.Result.WallMS) * time.Millisecond
	}
	return took
}
