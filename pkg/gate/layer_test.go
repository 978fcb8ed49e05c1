// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/sandbox/image/layers"
	"github.com/fumehood/fumehood/internal/sandbox/install/installtest"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A layered is one session with layers.
type layered struct {
	setup   []proposal.Record
	after   *proposal.Result
	changes proposal.Changes
	notices []string
	report  proposal.Report
}

// withLayers runs set-up and one command, both scripts of the workspace, in a session.
func withLayers(t *testing.T, dir, workspace string, write bool, text, after string) (l layered) {
	t.Helper()
	kept := gate.Store{Mode: "read", Dir: dir}
	if write {
		kept.Mode = "write"
	}
	err := os.WriteFile(filepath.Join(workspace, "set.sh"), []byte(text+"\n"), 0o644)
	if err == nil {
		err = os.WriteFile(filepath.Join(workspace, "look.sh"), []byte(after+"\n"), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, newGate(t, gate.Options{
		Workspace: workspace, Layers: kept, Notice: func(text string) { l.notices = append(l.notices, text) },
		Setup: gate.Setup{Steps: []gate.SetupStep{{Proposal: run("setup-1", "sh set.sh")}, {Proposal: run("setup-2", "true")}}},
	}), gate.SessionOptions{})
	if err := s.SetUp(t.Context(), proposal.Proposal{}, func(r proposal.Record) { l.setup = append(l.setup, r) }); err != nil {
		t.Fatal(err)
	}
	l.after = ran(t, s, run("after", "sh look.sh"))
	if l.changes, err = s.Changes(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l.report, err = s.Close(); err != nil {
		t.Fatal(err)
	}
	checkLog(t, l.report, true)
	return l
}

func (l layered) replaced() bool {
	return !slices.ContainsFunc(l.setup, func(r proposal.Record) bool { return r.Result == nil || !r.Result.FromLayer() })
}

func testWorkspace(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A session's set-up is replaced by the layer of an earlier one with the same workspace and
// commands. Only a session that may write makes one.
func TestSessionLayers(t *testing.T) {
	t.Parallel()
	dir, workspace := filepath.Join(t.TempDir(), "layers"), testWorkspace(t, "a")
	text, look := "mkdir -p deps ~/.cache && echo one > deps/made && echo two > ~/.cache/made", "cat deps/made ~/.cache/made && echo more >> deps/made"
	if l := withLayers(t, dir, workspace, false, text, look); l.replaced() || l.setup[1].Result.Layer != nil {
		t.Fatalf("%+v", l.setup)
	}
	cold := withLayers(t, dir, workspace, true, text, look)
	kept := cold.setup[1].Result.Layer
	if cold.replaced() || kept == nil || !kept.Kept || kept.Run != cold.report.Run.ID {
		t.Fatalf("%+v %q", kept, cold.notices)
	}
	warm := withLayers(t, dir, workspace, false, text, look)
	if !warm.replaced() || warm.setup[0].Result.Layer.Digest != kept.Digest || warm.setup[0].Result.Layer.Run != cold.report.Run.ID {
		t.Fatalf("%+v %q", warm.setup, warm.notices)
	}
	if string(warm.after.Stdout.Head) != "one\ntwo\n" || string(cold.after.Stdout.Head) != "one\ntwo\n" {
		t.Errorf("%q, with the layer %q", cold.after.Stdout.Head, warm.after.Stdout.Head)
	}
	if len(warm.changes.Files) != 1 || warm.changes.Files[0].Path != "deps/made" || warm.changes.Files[0].Kind != "changed" {
		t.Errorf("changes %+v", warm.changes)
	}
	if l := withLayers(t, dir, workspace, false, text+"; true", look); l.replaced() {
		t.Error("another command got the layer")
	}
	if err := os.WriteFile(filepath.Join(workspace, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if l := withLayers(t, dir, workspace, false, text, look); !l.replaced() {
		t.Error("a file that set-up did not read matters")
	}
}

// A layer depends on nothing that a command before set-up read: set-up begins in a sandbox of its own, also
// where no layer is made. Where a layer has its effects, all commands share one.
func TestLayersAfterCommands(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "layers")
	plan := proposal.Plan{Proposals: []proposal.Proposal{run("read", "cat unread"), run("test", "sh look.sh")}}
	runAll := func(workspace, mode string) []proposal.Record {
		t.Helper()
		edit(t, workspace, "set.sh", "cat read >deps; date +%N >>deps\n")
		edit(t, workspace, "look.sh", "cat deps\n")
		g := newGate(t, gate.Options{Workspace: workspace, Layers: gate.Store{Mode: mode, Dir: dir},
			Setup: gate.Setup{Steps: []gate.SetupStep{{Proposal: run("setup-1", "sh set.sh"), Detected: true}}}})
		report, err := g.Run(t.Context(), plan)
		if err != nil || len(report.Records) != 3 || !report.Records[0].Result.Succeeded() || !report.Records[2].Result.Succeeded() {
			t.Fatalf("%+v, %v", report.Records, err)
		}
		checkLog(t, report, true)
		return report.Records
	}
	cold := runAll(testWorkspace(t, "read", "unread"), "write")
	if l := cold[1].Result.Layer; l == nil || !l.Kept || !cold[1].Result.NewSandbox || cold[2].Result.NewSandbox {
		t.Fatalf("set-up was not kept, or not in a sandbox of its own: %+v", cold[1].Result)
	}
	workspace := testWorkspace(t, "read", "unread")
	edit(t, workspace, "unread", "changed")
	if warm := runAll(workspace, "read"); !warm[1].Result.FromLayer() || string(warm[2].Result.Stdout.Head) != string(cold[2].Result.Stdout.Head) {
		t.Errorf("a file that only a command before set-up read matters: %+v", warm[1].Result)
	}
	edit(t, workspace, "read", "changed")
	if warm := runAll(workspace, "read"); warm[1].Result.FromLayer() || !warm[1].Result.NewSandbox {
		t.Errorf("used for another file, or set-up has no sandbox of its own: %+v", warm[1].Result)
	}
}

// A layer of all set-up, which another plan has made, is used by a plan that touches a part of it. A
// run that makes layers has set-up even if its plan needs none.
func TestLayerOfAllSetUp(t *testing.T) {
	t.Parallel()
	dir, workspace := filepath.Join(t.TempDir(), "layers"), testWorkspace(t, "a/go.mod", "b/go.mod")
	edit(t, workspace, "b/look.sh", "cat deps\n")
	step := func(dir string) gate.SetupStep {
		p := run("setup-"+dir, "cp go.mod deps")
		p.Cwd = dir
		return gate.SetupStep{Proposal: p, Detected: true, Language: "go", Dir: dir}
	}
	runAll := func(mode string, p proposal.Proposal) (from []string) {
		t.Helper()
		g := newGate(t, gate.Options{Workspace: workspace, Layers: gate.Store{Mode: mode, Dir: dir}, Setup: gate.Setup{Steps: []gate.SetupStep{step("a"), step("b")}}})
		report, err := g.Run(t.Context(), proposal.Plan{Proposals: []proposal.Proposal{p}})
		if err != nil {
			t.Fatal(err)
		}
		checkLog(t, report, true)
		for _, r := range report.Records {
			id := r.Proposal.ID
			if r.Result.FromLayer() {
				id += " from a layer"
			}
			if from = append(from, id); !r.Result.Succeeded() {
				t.Errorf("%+v", r.Result)
			}
		}
		return from
	}
	look := run("look", "sh look.sh")
	look.Cwd = "b"
	for _, c := range []struct {
		mode string
		p    proposal.Proposal
		want string
	}{
		{"read", look, "setup-b, look"},
		{"write", run("true", "true"), "true, setup-a, setup-b"},
		{"read", look, "setup-a from a layer, setup-b from a layer, look"},
		{"read", run("true", "true"), "true"},
	} {
		if got := strings.Join(runAll(c.mode, c.p), ", "); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	// Runs of one Gate touch other parts: the first that needs one runs all, for its private layer.
	g := newGate(t, gate.Options{Workspace: workspace, Repeated: true,
		Setup: gate.Setup{Steps: []gate.SetupStep{step("a"), step("b")}}})
	for i, p := range []proposal.Proposal{run("true", "true"), look, run("all", "sh b/look.sh")} {
		report, err := g.Run(t.Context(), proposal.Plan{Proposals: []proposal.Proposal{p}})
		if want := min(1, i)*2 + 1; err != nil || len(report.Records) != want || report.Records[0].Result.FromLayer() != (i == 2) {
			t.Errorf("run %d: %+v, %v", i, report.Records, err)
		}
	}
}

// By default a run takes a layer of what its plan needs and makes one where there is none. A directory that
// cannot be used, a set-up that cannot be kept and other limits of its commands are no reason not to run it.
func TestLayersByDefault(t *testing.T) {
	t.Parallel()
	dir, workspace := filepath.Join(t.TempDir(), "layers"), testWorkspace(t, "a/go.mod", "b/go.mod")
	edit(t, workspace, "b/look.sh", "cat deps\n")
	step := func(dir string, limits *proposal.Limits) gate.SetupStep {
		p := run("setup-"+dir, "cp go.mod deps")
		p.Cwd, p.Limits = dir, limits
		return gate.SetupStep{Proposal: p, Detected: true, Language: "go", Dir: dir}
	}
	look := run("look", "sh look.sh")
	look.Cwd = "b"
	notWritable := filepath.Join(t.TempDir(), "file", "layers")
	edit(t, filepath.Dir(filepath.Dir(notWritable)), "file", "")
	for _, c := range []struct {
		name, dir string
		limits    *proposal.Limits
		ids       string
		notices   []string // their beginnings
	}{
		{"the first", dir, nil, "setup-b, look", []string{"set-up kept in a layer of "}},
		{"the second", dir, nil, "setup-b from a layer, look", []string{"set-up from a layer, "}},
		{"a limit that a part of set-up may meet", dir, &proposal.Limits{Memory: 128 * proposal.MiB}, "setup-b, look", []string{"set-up kept in a layer of "}},
		{"a limit that ends the command", dir, &proposal.Limits{Wall: proposal.Duration(time.Minute)}, "setup-b from a layer, look", []string{"set-up from a layer, "}},
		{"no directory", notWritable, nil, "setup-b, look", []string{"set-up is not kept: layers.store: "}},
	} {
		var notices []string
		g := newGate(t, gate.Options{Workspace: workspace, Layers: gate.Store{Mode: "auto", Dir: c.dir},
			Notice: func(text string) { notices = append(notices, text) },
			Setup:  gate.Setup{Steps: []gate.SetupStep{step("a", c.limits), step("b", c.limits)}}})
		report, err := g.Run(t.Context(), proposal.Plan{Proposals: []proposal.Proposal{look}})
		if err != nil {
			t.Fatal(err)
		}
		checkLog(t, report, true)
		var ids []string
		for _, r := range report.Records {
			id := r.Proposal.ID
			if r.Result.FromLayer() {
				id += " from a layer"
			}
			if ids = append(ids, id); !r.Result.Succeeded() {
				t.Errorf("%s: %+v", c.name, r.Result)
			}
		}
		if got := strings.Join(ids, ", "); got != c.ids {
			t.Errorf("%s: got %q, want %q; %q", c.name, got, c.ids, notices)
		}
		notices = slices.DeleteFunc(notices, func(text string) bool { return !strings.HasPrefix(text, "set-up ") })
		if !slices.EqualFunc(notices, c.notices, strings.HasPrefix) {
			t.Errorf("%s: %q", c.name, notices)
		}
	}
}

// THREATS 67: a layer is used where all files are the same that set-up read, in whatever way, and
// nowhere else. Where they are, no other file matters.
func TestLayersFollowReads(t *testing.T) {
	t.Parallel()
	for _, x := range sample.EveryNth(t, []struct{ name, text, file, content string }{
		{"a file that another one names", "read f <name; cat $f >deps", "sub/one", "changed"},
		{"the one that names it", "read f <name; cat $f >deps", "name", "other\n"},
		{"through a link", "cat link >deps", "sub/one", "changed"},
		{"the link", "cat link >deps", "link", "->other"},
		{"a link of a directory", "cat dir/one >deps", "dir", "->away"},
		{"nothing there", "if [ -e flag ]; then echo yes; else echo no; fi >deps", "flag", ""},
		{"nothing there, below", "cat conf/x/y >deps || true", "conf/x/y", "x"},
		{"a list", "ls sub >deps", "sub/two", ""},
		{"a mode", "if [ -x name ]; then echo yes; else echo no; fi >deps", "name", "+x"},
		{"a script of a script", "sh sub/run", "other", "changed"},
		{"from elsewhere", "cd / && cat /proc/self/root/workspace/other >/workspace/deps", "other", "changed"},
	}, 3, 11) {
		t.Run(x.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "layers")
			make := func() string {
				workspace := testWorkspace(t, "other", "sub/one", "away/one", "unread")
				edit(t, workspace, "name", "sub/one\n")
				edit(t, workspace, "link", "->sub/one")
				edit(t, workspace, "dir", "->sub")
				edit(t, workspace, "sub/run", ". ./other >deps 2>&1; true\n")
				return workspace
			}
			cold := withLayers(t, dir, make(), true, x.text, "cat deps")
			if cold.replaced() || cold.setup[1].Result.Layer == nil {
				t.Fatalf("not kept: %q", cold.notices)
			}
			same := make()
			edit(t, same, "unread", "changed")
			if l := withLayers(t, dir, same, false, x.text, "cat deps"); !l.replaced() || string(l.after.Stdout.Head) != string(cold.after.Stdout.Head) {
				t.Errorf("not used for a workspace that is the same: %q", l.notices)
			}
			changed := make()
			edit(t, changed, x.file, x.content)
			if l := withLayers(t, dir, changed, false, x.text, "cat deps"); l.replaced() {
				t.Errorf("used for one that is not, with %q", l.after.Stdout.Head)
			}
		})
	}
}

// edit writes a file of a workspace, or a link if its content begins with "->". "+x" makes it a program.
func edit(t *testing.T, workspace, name, content string) {
	t.Helper()
	path := filepath.Join(workspace, name)
	if content == "+x" {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
		return
	}
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.RemoveAll(path))
	if target, link := strings.CutPrefix(content, "->"); link {
		err = errors.Join(err, os.Symlink(target, path))
	} else {
		err = errors.Join(err, os.WriteFile(path, []byte(content), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Of what optional commands at the end of set-up read, Go files without C decide nothing, and all others do.
func TestLayersOfCaches(t *testing.T) {
	t.Parallel()
	keep := func(optional bool, workspace, dir string) (*proposal.Layer, bool) {
		s := open(t, newGate(t, gate.Options{
			Workspace: workspace, Layers: gate.Store{Mode: "write", Dir: dir},
			Setup: gate.Setup{Steps: []gate.SetupStep{{Proposal: run("need", "cat a")}, {Proposal: proposal.Proposal{ID: "warm", Argv: []string{"sh", "warm.sh"}}, Optional: optional}}},
		}), gate.SessionOptions{})
		var last proposal.Record
		if err := s.SetUp(t.Context(), proposal.Proposal{}, func(r proposal.Record) { last = r }); err != nil || last.Result == nil {
			t.Fatalf("%+v, %v", last, err)
		}
		return last.Result.Layer, last.Result.FromLayer()
	}
	for _, x := range []struct {
		optional bool
		file     string
		replaced bool
	}{{true, "b.go", true}, {true, "b.h", false}, {true, "c.go", false}, {false, "b.go", false}} {
		dir := filepath.Join(t.TempDir(), "layers")
		workspace := testWorkspace(t, "a", x.file)
		edit(t, workspace, "b.go", "package b\n")
		edit(t, workspace, "c.go", "package b\nimport \"\\x43\"\n")
		edit(t, workspace, "warm.sh", "mkdir -p ~/.cache/w && cat "+x.file+" >~/.cache/w/b\n")
		if made, replaced := keep(x.optional, workspace, dir); made == nil || replaced {
			t.Fatalf("%+v, %v", made, replaced)
		}
		edit(t, workspace, x.file, "changed")
		if _, replaced := keep(x.optional, workspace, dir); replaced != x.replaced {
			t.Errorf("%+v: from the layer %v", x, replaced)
		}
	}
}

// A set-up in whose time the workspace changed is not kept.
func TestLayersOfChangingWorkspaces(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "layers")
	store, err := layers.Open(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	workspace := testWorkspace(t, "a", "b")
	var notices []string
	s := open(t, newGate(t, gate.Options{
		Workspace: workspace, Layers: gate.Store{Mode: "write", Dir: dir}, Notice: func(text string) { notices = append(notices, text) },
		Setup: gate.Setup{Steps: []gate.SetupStep{{Proposal: run("one", "cat a")}, {Proposal: run("two", "true")}}},
	}), gate.SessionOptions{})
	err = s.SetUp(t.Context(), proposal.Proposal{}, func(r proposal.Record) {
		if r.Proposal.ID == "one" {
			edit(t, workspace, "a", "x") // as large as before would not matter
		}
	})
	if list, errList := store.List(); err != nil || errList != nil || len(list) != 0 || !strings.Contains(strings.Join(notices, "\n"), layers.CodeChanged) {
		t.Errorf("kept %+v, %v, %v, %q", list, err, errList, notices)
	}
}

// THREATS 67: what hostile set-up leaves is confined to the sandbox, or is not kept.
func TestHostileLayers(t *testing.T) {
	t.Parallel()
	for _, x := range sample.EveryNth(t, []struct{ name, text, look, want, notice string }{
		{"links", "mkdir d && ln -s /etc d/etc && ln -s ../../../../../../etc/shadow d/up", "readlink d/etc d/up", "/etc\n../../../../../../etc/shadow\n", ""},
		{"a newline in a name", `printf x > "$(printf 'a\nb')"`, `ls a* | wc -l`, "3\n", ""},
		{"setuid", "cp /bin/true su && chmod 6755 su", "stat -c %a su", "755\n", ""},
		{"a removed file", "rm a", "ls", "", "set-up removed"},
		{"a replaced directory", "rm -r dir && mkdir dir", "ls", "", "set-up removed"},
		{"git", "mkdir -p .git/hooks && echo x > .git/hooks/pre-commit", "ls", "", "other commits may change"},
		{"a large file", "truncate -s 2G big", "ls", "", "too many bytes"},
	}, 3, 7) {
		t.Run(x.name, func(t *testing.T) {
			dir, workspace := filepath.Join(t.TempDir(), "layers"), testWorkspace(t, "a", "dir/b")
			cold := withLayers(t, dir, workspace, true, x.text, x.look)
			kept := cold.setup[1].Result.Layer != nil
			if kept != (x.notice == "") || !kept && !strings.Contains(strings.Join(cold.notices, "\n"), x.notice) {
				t.Fatalf("kept: %v, notices %q", kept, cold.notices)
			}
			if !kept {
				return
			}
			warm := withLayers(t, dir, workspace, false, x.text, x.look)
			if !warm.replaced() || string(warm.after.Stdout.Head) != x.want {
				t.Errorf("%v, %q", warm.replaced(), warm.after.Stdout.Head)
			}
		})
	}
}

// Nothing is kept of a session in which something else came before set-up.
func TestLayersOfSetUpAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "layers")
	store, err := layers.Open(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, newGate(t, gate.Options{Workspace: testWorkspace(t, "a"), Layers: gate.Store{Mode: "write", Dir: dir}, Setup: gate.Setup{Steps: []gate.SetupStep{{Proposal: run("setup-1", "true")}}}}), gate.SessionOptions{})
	if out, err := s.Put(t.Context(), "foreign", []byte("x")); err != nil || out.Refused != "" {
		t.Fatal(out, err)
	}
	if err := s.SetUp(t.Context(), proposal.Proposal{}, nil); err != nil {
		t.Fatal(err)
	}
	if list, err := store.List(); err != nil || len(list) != 0 {
		t.Errorf("kept %+v, %v", list, err)
	}
}

// renewing are two proposals in new sandboxes, which look at what set-up left and change it.
func renewing() proposal.Plan {
	look := func(id string) proposal.Proposal {
		return proposal.Proposal{ID: id, Run: "sh look.sh", Fresh: true}
	}
	return proposal.Plan{Schema: proposal.PlanSchema, Proposals: []proposal.Proposal{look("one"), look("two")}}
}

// renewingOnce has the first proposal of renewing.
func renewingOnce() proposal.Plan {
	plan := renewing()
	plan.Proposals = plan.Proposals[:1]
	return plan
}

// lookingOnce is renewingOnce in the sandbox of the set-up.
func lookingOnce() proposal.Plan {
	plan := renewingOnce()
	plan.Proposals[0].Fresh = false
	return plan
}

// privateCache gives the test a cache directory of its own, except for fumehood-runsc.
func privateCache(t *testing.T, o *gate.Options) string {
	t.Helper()
	o.Runsc = installtest.Runsc(t).Path
	dir := t.TempDir()
	t.Setenv("FUMEHOOD_CACHE", dir)
	return dir
}

// withSetUp returns options whose set-up leaves two files, and says that it ran.
func withSetUp(t *testing.T) gate.Options {
	t.Helper()
	workspace := testWorkspace(t, "a")
	for name, text := range map[string]string{
		"set.sh":  "mkdir -p deps ~/.cache && echo one > deps/made && echo two > ~/.cache/made\n",
		"look.sh": "cat deps/made ~/.cache/made && echo more >> deps/made\n",
	} {
		if err := os.WriteFile(filepath.Join(workspace, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return gate.Options{Workspace: workspace, Setup: gate.Setup{Steps: []gate.SetupStep{{Proposal: run("setup-1", "sh set.sh")}}}}
}

// ofRuns lists the stores of runs in a cache directory.
func ofRuns(t *testing.T, cache string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(cache, "layers-of-run-*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// THREATS 81: what set-up left is in each new sandbox of its run, as it was after set-up, and
// nowhere after it.
func TestPrivateLayer(t *testing.T) {
	o := withSetUp(t)
	cache := privateCache(t, &o)
	g := newGate(t, o)
	first, err := g.Run(t.Context(), renewing())
	if err != nil {
		t.Fatal(err)
	}
	made := first.Records[0].Result.Layer
	if made == nil || !made.Kept || !made.Private || made.Run != first.Run.ID || first.Records[0].Result.FromLayer() {
		t.Fatalf("%+v", made)
	}
	for _, r := range first.Records[1:] {
		if !r.Result.Succeeded() || string(r.Result.Stdout.Head) != "one\ntwo\n" || !r.Result.NewSandbox {
			t.Errorf("%s: %+v", r.Proposal.ID, r.Result)
		}
		if c := r.Result.Changes.Files; len(c) != 1 || c[0].Path != "deps/made" || c[0].Kind != "changed" {
			t.Errorf("%s: changes %+v", r.Proposal.ID, c)
		}
	}
	checkLog(t, first, true)
	if left := ofRuns(t, cache); len(left) > 0 {
		t.Errorf("the run has left %q", left)
	}
	second, err := g.Run(t.Context(), renewingOnce())
	if err != nil || second.Records[0].Result.FromLayer() {
		t.Errorf("another run has the layer: %+v, %v", second.Records[0].Result, err)
	}
	o.Layers.Mode = "off"
	off, err := newGate(t, o).Run(t.Context(), renewingOnce())
	if err != nil || off.Records[0].Result.Layer != nil || off.Records[1].Result.Succeeded() {
		t.Errorf("switched off: %+v, %v", off.Records[1].Result, err)
	}
}

// THREATS 81: a private layer that was changed is not used, and what set-up left is not made one
// where it could hide files: the commands then run without it.
func TestPrivateLayerRefused(t *testing.T) {
	o := withSetUp(t)
	cache := privateCache(t, &o)
	o.Repeated = true
	var notices []string
	o.Notice = func(text string) { notices = append(notices, text) }
	g := newGate(t, o)
	if _, err := g.Run(t.Context(), proposal.Plan{Schema: proposal.PlanSchema}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(cache, "layers-of-run-*", "*.layer"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(files[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := g.Run(t.Context(), lookingOnce())
	if err != nil || r.Records[0].Result.FromLayer() || !r.Records[1].Result.Succeeded() || !strings.Contains(strings.Join(notices, "\n"), layers.CodeInvalid) {
		t.Errorf("%+v, %v, %q", r.Records[0].Result, err, notices)
	}
	if err := os.WriteFile(filepath.Join(o.Workspace, "set.sh"), []byte("rm a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 { // tried once
		r, err = g.Run(t.Context(), lookingOnce())
		if err != nil || r.Records[0].Result.Layer != nil || !r.Records[0].Result.Succeeded() {
			t.Errorf("%+v, %v", r.Records[0].Result, err)
		}
	}
	if n := strings.Count(strings.Join(notices, "\n"), "set-up removed"); n != 1 {
		t.Errorf("%d notices of %q", n, notices)
	}
}
