// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A maker makes layers of random rules. Its choices come from a seed, so that what
// fails can be made again.
type maker struct{ *rand.Rand }

func (m maker) of(choices ...string) string { return choices[m.IntN(len(choices))] }

// condition is about a command or, where it is not, about the proposal.
func (m maker) condition(command bool) string {
	about := []string{
		`input.proposal.form == "run"`, `input.proposal.fresh`, `not input.proposal.fresh`, `input.proposal.phase == "setup"`, `count(input.proposal.network) > 0`,
		`"CI" in {e.name | some e in input.proposal.env}`, `input.proposal.commands > 1`, `"go" in input.proposal.programs`, `true`,
	}
	if command {
		about = append(about, `input.command.program == "`+m.of("go", "ls", "sudo", "unknown-tool", "cat", "echo")+`"`, `"x" in input.command.argv`, `not input.command.static`,
			`startswith(input.command.program, "`+m.of("g", "u", "s")+`")`, `{o.place | some o in input.command.operands} != {"workspace"}`, `input.command.argv[0] == "test"`, `count(input.command.redirects) == 0`)
	}
	return m.of(about...)
}

func (m maker) rule() (pkg, rule string) {
	command := m.IntN(2) == 0
	pkg = "fumehood.proposal"
	if command {
		pkg = "fumehood.command"
	}
	set := m.of("deny", "ask", "limits")
	if m.IntN(3) == 0 {
		set = m.of("allow", "exec")
		if !command {
			set = m.of("network", "env", "limits")
		}
	}
	id := fmt.Sprintf("r.%d", m.IntN(1000))
	body := map[string]string{
		"deny":    fmt.Sprintf(`{"rule": %q, "message": "m", "suggestion": "s"}`, id),
		"ask":     fmt.Sprintf(`{"rule": %q, "message": "m", "suggestion": "s"}`, id),
		"allow":   fmt.Sprintf(`{"rule": %q}`, id),
		"exec":    fmt.Sprintf(`{"rule": %q, "kind": "built"}`, id),
		"limits":  fmt.Sprintf(`{"rule": %q, "%s": %d}`, id, m.of("wall_ms", "pids", "memory_bytes", "files"), 1+m.IntN(1<<m.IntN(40))),
		"network": fmt.Sprintf(`{"rule": %q, "host": "x.example"}`, id),
		"env":     fmt.Sprintf(`{"rule": %q, "name": "LD_PRELOAD"}`, id),
	}[set]
	return pkg, fmt.Sprintf("%s contains %s if {\n\t%s\n\t%s\n}\n", set, body, m.condition(command), m.condition(command))
}

func (m maker) layer(role policy.Role) policy.Layer {
	l := policy.Layer{Name: fmt.Sprintf("layer%d", m.IntN(1_000_000)), Role: role}
	for i := range 1 + m.IntN(4) {
		pkg, rule := m.rule()
		text := "package " + pkg + "\n\n" + rule
		for range m.IntN(3) {
			if other, more := m.rule(); other == pkg {
				text += "\n" + more
			}
		}
		l.Files = append(l.Files, policy.File{Name: fmt.Sprintf("f%d.rego", i), Content: []byte(text)})
	}
	return l
}

func engineOf(t *testing.T, layers ...policy.Layer) *policy.Engine {
	t.Helper()
	e, err := policy.New(t.Context(), policy.Options{Layers: layers})
	if err != nil {
		t.Fatalf("%v\n%s", err, shown(layers))
	}
	return e
}

func shown(layers []policy.Layer) string {
	var b strings.Builder
	for _, l := range layers {
		for _, f := range l.Files {
			fmt.Fprintf(&b, "-- %s (%v) %s --\n%s", l.Name, l.Role, f.Name, f.Content)
		}
	}
	return b.String()
}

// rounds is how many random layers each property is tried with.
const rounds = 6

// TestAddingALayerLoosensNothing: a layer that may not grant never turns a deny or ask
// into an allow, raises a limit, or adds a host, a variable or a kind of program.
func TestAddingALayerLoosensNothing(t *testing.T) {
	lanetest.SkipShort(t)
	for seed := range uint64(rounds) {
		m := maker{rand.New(rand.NewPCG(seed, 1))}
		base := []policy.Layer{m.layer(policy.Allows), m.layer(policy.Opens), m.layer(policy.Restricts)}
		added := append(slices.Clone(base), m.layer(policy.Restricts))
		before, after := engineOf(t, base...), engineOf(t, added...)
		for _, p := range trials {
			p.ID = "t"
			loosened(t, p, judged(t, before, p), judged(t, after, p), nil)
		}
		if t.Failed() {
			t.Fatalf("seed %d\n%s", seed, shown(added))
		}
	}
}

// TestOrderMattersNot: neither the order of layers of one role nor that of a layer's
// files changes what is decided.
func TestOrderMattersNot(t *testing.T) {
	lanetest.SkipShort(t)
	for seed := range uint64(rounds) {
		m := maker{rand.New(rand.NewPCG(seed, 2))}
		layers := []policy.Layer{m.layer(policy.Allows), m.layer(policy.Restricts), m.layer(policy.Restricts), m.layer(policy.Restricts)}
		turned := []policy.Layer{layers[0], layers[3], layers[1], layers[2]}
		for i := range turned {
			turned[i].Files = slices.Clone(turned[i].Files)
			slices.Reverse(turned[i].Files)
		}
		one, other := engineOf(t, layers...), engineOf(t, turned...)
		for _, p := range trials {
			p.ID = "t"
			a, b := judged(t, one, p), judged(t, other, p)
			if diff := cmp.Diff(said(a), said(b)); diff != "" || a.Effect != b.Effect || !cmp.Equal(a.Grant, b.Grant) || !slices.Equal(a.Rules, b.Rules) {
				t.Fatalf("seed %d: %+v: %v %v, %v %v\n%s\n%s", seed, p, a.Effect, a.Rules, b.Effect, b.Rules, diff, shown(layers))
			}
		}
	}
	l := maker{rand.New(rand.NewPCG(1, 3))}.layer(policy.Restricts)
	reversed := l
	reversed.Files = slices.Clone(l.Files)
	slices.Reverse(reversed.Files)
	if engineOf(t, l).Digest() != engineOf(t, reversed).Digest() {
		t.Error("the digest depends on the order of files")
	}
}

// said is what reasons say, in no order.
func said(d proposal.Decision) []string {
	var all []string
	for _, r := range d.Reasons {
		all = append(all, fmt.Sprintf("%s %v %d %s", r.Rule, r.Effect, r.Command, r.Message))
	}
	slices.Sort(all)
	return all
}

// TestAnErrorInAnyLayerIsNoDecision: where one layer cannot answer, the others decide
// nothing, whatever its role and place.
func TestAnErrorInAnyLayerIsNoDecision(t *testing.T) {
	for i, text := range []string{
		denyHead + `to_number(input.proposal.id) == 1`,
	} {
		for _, role := range []policy.Role{policy.Restricts, policy.Opens, policy.Allows} {
			broken := policy.Layer{Name: "broken", Role: role, Files: []policy.File{{Name: "a.rego", Content: []byte(text)}}}
			m := maker{rand.New(rand.NewPCG(uint64(i), uint64(role)))}
			for _, observe := range []bool{false, true} {
				e, err := policy.New(t.Context(), policy.Options{Observe: observe, Layers: []policy.Layer{m.layer(policy.Allows), broken, m.layer(policy.Restricts)}})
				if err != nil {
					t.Fatal(err)
				}
				p := proposal.Proposal{ID: "t", Run: "ls"}
				if d, err := e.Decide(t.Context(), p, analysis(p)); codeOf(err) == "" || d.Effect != proposal.Deny || d.Grant != nil {
					t.Errorf("%s (%v, observe %v): %+v, %v", text, role, observe, d, err)
				}
			}
		}
	}
}

// TestMalformedAnswers: an answer that means nothing denies what it is about, names its rule's
// place, and nothing else changes. In an observed layer it only says so.
func TestMalformedAnswers(t *testing.T) {
	granting := policy.Layer{Name: "granting", Role: policy.Grants, Files: []policy.File{
		{Name: "programs.rego", Content: []byte("package fumehood.command\n\nallow contains {\"rule\": \"t.programs\"} if input.command.program in {\"ls\", \"cat\"}\n")},
		{Name: "limits.rego", Content: []byte("package fumehood.proposal\n\nlimits contains {\"wall_ms\": 7200000, \"cpus\": 4, \"memory_bytes\": 4294967296, \"pids\": 1024, " +
			"\"disk_bytes\": 8589934592, \"files\": 4096, \"output_bytes\": 4294967296}\n")},
	}}
	for text, what := range map[string]string{
		"package fumehood.command\n\nallow contains {\"rule\": \"x.y\", \"unknown\": \"x\"} if input.command.program == \"ls\"":                 `a member of allow has the unknown key "unknown" (a.rego:3)`,
		"package fumehood.proposal\n\nlimits contains {\"rule\": \"x.y\", \"memory_bytes\": \"2G\"} if \"ls\" in input.proposal.programs":       `a member of limits has no positive number for "memory_bytes" (a.rego:3)`,
		"package fumehood.proposal\n\nlimits contains {\"wall_ms\": 1}\n\nlimits contains {\"pids\": 0.5} if \"ls\" in input.proposal.programs": `a member of limits has less than 1 for "pids" (a.rego:3 or a.rego:5)`,
		"package fumehood.proposal\n\nnetwork contains 1 if \"ls\" in input.proposal.programs":                                                  "a member of network is not an object (a.rego:3)",
	} {
		for _, role := range []policy.Role{policy.Restricts, policy.Opens, policy.Allows} {
			for _, observe := range []bool{false, true} {
				broken := policy.Layer{Name: "broken", Role: role, Files: []policy.File{{Name: "a.rego", Content: []byte(text)}}}
				e, err := policy.New(t.Context(), policy.Options{Observe: observe, Layers: []policy.Layer{granting, broken}})
				if err != nil {
					t.Fatal(err)
				}
				p := proposal.Proposal{ID: "t", Run: "ls"}
				d, err := e.Decide(t.Context(), p, analysis(p))
				if effect := d.Effect; err != nil || (effect == proposal.Allow) != (observe && role == policy.Restricts) || !strings.Contains(fmt.Sprint(said(d)), what) {
					t.Errorf("%s (%v, observe %v): %v by %v, %v", text, role, observe, effect, said(d), err)
				}
				if p.Run = "cat x"; !strings.Contains(text, "wall_ms") {
					if d, err := e.Decide(t.Context(), p, analysis(p)); err != nil || d.Effect != proposal.Allow || len(d.Reasons) > 0 {
						t.Errorf("%s (%v, observe %v): another proposal: %v, %v", text, role, observe, said(d), err)
					}
				}
			}
		}
	}
}
