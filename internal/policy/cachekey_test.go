// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func execOf(path, layer string, argv ...string) proposal.Exec {
	x := plainExec()
	x.Path, x.Layer, x.Argv = path, layer, argv
	return x
}

// TestShippedAnswersAreReused holds that the gate need not ask twice about what starts
// often, and asks about what is judged by its words.
func TestShippedAnswersAreReused(t *testing.T) {
	e := shipped(t)
	for path, want := range map[string]bool{
		"/usr/bin/git": true, "/usr/bin/bash": true, "/usr/bin/curl": true, "/usr/bin/make": true, "/usr/local/go/pkg/tool/linux_amd64/compile": true,
		"/usr/lib/gcc/x86_64-linux-gnu/12/cc1": true, "/etc/init.d/x": true, "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2": true,
		"/usr/bin/node": false, "/usr/bin/python3.11": false, "/usr/bin/env": false, "/usr/local/cargo/bin/cargo": false, "/usr/bin/busybox": false, "/usr/bin/openssl": false,
		"/usr/lib/node_modules/npm/bin/npm-cli.js": false,
	} {
		x := execOf(path, proposal.LayerRootfs, "x")
		x.Grants = []string{points.ExecBuilt} // without, what git starts is judged by who starts it
		if d := judge(t, e, x); d.Cacheable != want {
			t.Errorf("%s: cacheable %v, want %v", path, d.Cacheable, want)
		}
	}
	built := execOf("/tmp/go-build1/b001/x.test", proposal.LayerWritten, "x.test")
	built.Grants = []string{"built"}
	if d := judge(t, e, built); !d.Cacheable || d.Effect != proposal.Allow {
		t.Errorf("a built test: %+v", d)
	}
	steered := plainExec()
	steered.Env = []string{"PYTHONPATH"}
	if d := judge(t, e, steered); d.Cacheable || d.Effect != proposal.Allow {
		t.Errorf("with a steering variable: %+v", d)
	}
}

// beyondRules are layers with rules that look beyond the key, and whether the answer
// about git may still be reused under them.
var beyondRules = []struct {
	name, text string
	reused     bool
}{
	{"by the key", `deny contains d if input.path == "/usr/bin/x"`, true},
	{"by the context", `deny contains d if input.context.draft`, true},
	{"of another program", `deny contains d if { input.name == "make"; input.argv[1] == "evil" }`, true},
	{"of another program, the other way round", `deny contains d if { input.argv[1] == "evil"; input.name == "make" }`, true},
	{"of each program", `deny contains d if input.argv[1] == "evil"`, false},
	{"by the folder", `deny contains d if input.cwd == "/tmp"`, false},
	{"by the parent", `deny contains d if input.parent == "/usr/bin/make"`, false},
	{"by a field of a variable name", `deny contains d if { some key in ["argv"]; input[key] == [] }`, false},
	{"by the whole input", `deny contains d if count(input) > 1`, false},
	{"by the whole input, renamed", `deny contains d if { x := input; x.cwd == "/tmp" }`, false},
	{"by an imported field", `import input.argv as given
deny contains d if given[1] == "evil"`, false},
	{"by the imported input", `import input as seen
deny contains d if seen.cwd == "/tmp"`, false},
	{"by a rule", `deny contains d if bad
bad if input.argv[1] == "evil"`, false},
	{"by the path of a rule", `deny contains d if data.fumehood.exec.bad
bad if input.argv[1] == "evil"`, false},
	{"by a rule of a variable name", `deny contains d if { some name in ["bad"]; data.fumehood.exec[name] }
bad if input.name == "x"`, false},
	{"by a function", `deny contains d if f(1)
f(x) if input.argv[x] == "evil"`, false},
	{"by an else", `deny contains d if bad
bad if input.name == "x" else if input.cwd == "/tmp"`, false},
	{"by a default", `deny contains d if not good
default good := true
good if input.cwd == "/tmp"`, false},
	{"by the library", `import data.fumehood.lib
deny contains d if lib.bad`, false},
	{"by a negation", `deny contains d if not input.argv[1] == "good"`, false},
	{"by a comprehension", `deny contains d if count([w | some w in input.argv; w == "evil"]) > 0`, false},
	{"by every", `deny contains d if { every w in input.argv { w == "evil" } }`, false},
	{"by its message", `deny contains object.union(d, {"text": concat(" ", input.argv)}) if input.layer == "rootfs"`, false},
	{"by its message, of another program", `deny contains object.union(d, {"text": concat(" ", input.argv)}) if input.name == "x"`, true},
	{"by a template", "deny contains d if $\"{input.cwd}\" == \"/tmp\"", false},
	{"guarded by a rule", `deny contains d if { other; input.argv[1] == "evil" }
other if input.name == "make"`, true},
	{"guarded by a shared variable", `deny contains d if { some i; input.argv[i] == "evil"; ["make"][i] == input.name }`, false},
	{"a variable with the name of a rule", `deny contains d if { other := input.argv[0]; other == "git" }
other := "none" if input.name == "git"`, false},
	{"a variable of some with the name of a rule", `deny contains d if { some other in input.argv; startswith(other, "git") }
other := "none" if input.name == "git"`, false},
	{"the name of the guards is taken", `deny contains d if { beyond_key; input.name == "make"; input.argv[1] == "x" }
beyond_key if input.name == "make"`, false},
	{"an ask", `ask contains d if input.cwd == "/workspace"`, false},
	{"a left-over variable", `deny contains d if { name := input.name; name == "make"; words := input.argv; words[1] == name }`, false},
	{"a variable that only the message uses", `deny contains object.union(d, {"text": concat(name, input.argv)}) if { name := input.name; input.layer == "other" }`, true},
}

const beyondHead = `package fumehood.exec

d := {"rule": "mine.x", "message": "m", "suggestion": "s"}
`

const beyondLib = `package fumehood.lib

bad if input.cwd == "/tmp"
`

func beyondEngine(t *testing.T, text string) *policy.Engine {
	t.Helper()
	imports, rules := "", text
	for len(rules) > 7 && rules[:7] == "import " {
		for i := range rules {
			if rules[i] == '\n' {
				imports, rules = imports+rules[:i+1], rules[i+1:]
				break
			}
		}
	}
	head := "package fumehood.exec\n\n" + imports + beyondHead[len("package fumehood.exec\n"):]
	return with(t, folder(t, "a.rego", head+rules+"\n", "lib.rego", beyondLib))
}

func TestReuse(t *testing.T) {
	lanetest.SkipShort(t)
	for _, c := range beyondRules {
		e := beyondEngine(t, c.text)
		if d := judge(t, e, plainExec()); d.Cacheable != c.reused {
			t.Errorf("%s: cacheable %v, want %v", c.name, d.Cacheable, c.reused)
		}
	}
}

// TestKeyFields holds that the input's fields on which a reusable answer may depend are made
// from the key of an Exec, and the others are not.
func TestKeyFields(t *testing.T) {
	e := shipped(t)
	document := func(x proposal.Exec) map[string]any {
		doc, _ := e.InputOf(&x)
		data, err := doc.JSON()
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(data, &fields); err != nil {
			t.Fatal(err)
		}
		return fields
	}
	base := plainExec()
	key := proposal.Exec{Command: "u", Path: "/tmp/busybox", Asked: "/tmp/x", Env: []string{"A"}, Digest: "sha256:01", ELF: &proposal.ELF{Type: "dyn"},
		Layer: proposal.LayerWritten, Same: []string{"/bin/x"}, Grants: []string{"built"}, Argv: base.Argv, Cwd: base.Cwd, Pid: base.Pid, Parent: base.Parent, ParentPath: base.ParentPath}
	beyond := base
	beyond.Argv, beyond.ArgvCut, beyond.ArgvDigest, beyond.Cwd, beyond.ParentPath, beyond.From = []string{"x", "y"}, true, "z", "/z", "/z", "/z"
	beyond.Chain, beyond.Under = []string{"git"}, "git"
	beyond.Script, beyond.First, beyond.Named, beyond.Text, beyond.Lineage, beyond.Whole = "/z", true, "z", true, 7, []string{"z"}
	loaded := base
	loaded.Loaded = true
	changed := map[string]bool{}
	for name, value := range document(base) {
		if name == "context" { // the engine's
			changed[name] = true
			continue
		}
		if !cmp.Equal(value, document(beyond)[name]) && slices.Contains(module.KeyFields, name) {
			t.Errorf("%s is one of the key, and depends on more", name)
		}
		for _, x := range []proposal.Exec{key, loaded} {
			changed[name] = changed[name] || !cmp.Equal(value, document(x)[name])
		}
		if !changed[name] && cmp.Equal(value, document(beyond)[name]) {
			t.Errorf("%s is always the same: set it in execInput, and vary here what it is made of", name)
		}
	}
	for _, name := range module.KeyFields {
		if !changed[name] {
			t.Errorf("%s is not a field that the key changes", name)
		}
	}
}

// TestReusedAnswersHold changes all that is not in the key of an exec, and holds that
// an answer that may be reused stays the same.
func TestReusedAnswersHold(t *testing.T) {
	lanetest.SkipShort(t)
	engines := []*policy.Engine{shipped(t)}
	for _, c := range beyondRules {
		engines = append(engines, beyondEngine(t, c.text))
	}
	random := rand.New(rand.NewPCG(1, 2))
	reused, rounds := 0, sample.Rounds(t, 60, 30, 10)
	for _, e := range engines {
		for range rounds {
			x := randomExec(random)
			first := judge(t, e, x)
			if !first.Cacheable {
				continue
			}
			reused++
			for range 8 {
				y := randomExec(random)
				setKey(&y, points.KeyOf(x))
				if diff := cmp.Diff(first, judge(t, e, y)); diff != "" {
					t.Fatalf("%+v\nand %+v\n-first +second:\n%s", x, y, diff)
				}
			}
		}
	}
	if reused < 2*rounds {
		t.Errorf("only %d answers were reused", reused)
	}
}

// setKey gives x the key k.
func setKey(x *proposal.Exec, k points.ExecKey) {
	to, from := reflect.ValueOf(x).Elem(), reflect.ValueOf(k)
	for field := range from.Type().Fields() {
		to.FieldByName(field.Name).Set(from.FieldByIndex(field.Index))
	}
}

func randomExec(r *rand.Rand) proposal.Exec {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	words := func() []string {
		list := make([]string, r.IntN(4))
		for i := range list {
			list[i] = pick("git", "make", "evil", "good", "x", "busybox", "wget", "npm", "publish", "-m", "twine", "upload", "/usr/bin/npm")
		}
		return list
	}
	x := plainExec()
	x.Path = pick("/usr/bin/git", "/usr/bin/make", "/usr/bin/x", "/usr/bin/curl", "/usr/bin/node", "/usr/bin/busybox", "/usr/bin/python3", "/tmp/x")
	x.Layer = pick("rootfs", "written", "workspace", "memory", "other")
	x.Argv, x.Cwd = words(), pick("/workspace", "/tmp")
	x.ParentPath, x.Script = pick("/usr/bin/make", "/usr/bin/bash", ""), pick("", "/workspace/x.sh")
	x.First, x.Pid, x.Loaded = r.IntN(2) == 0, r.IntN(99), r.IntN(4) == 0
	x.Asked = pick("", "/workspace/node_modules/.bin/x")
	if r.IntN(2) == 0 {
		x.Grants = []string{"built"}
	}
	if r.IntN(4) == 0 {
		x.Env = []string{pick("LD_PRELOAD", "PYTHONPATH")}
	}
	return x
}
