// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/internal/shell/snippet"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// checkSetup checks what holds for every Setup: its steps are a valid plan, of set-up
// alone, that reads registries only, and everything can be printed.
func checkSetup(t testing.TB, s Setup) {
	t.Helper()
	if n := len(s.ChoosePart(Everything).Steps); n > MaxSteps || len(s.Notes) > MaxNotes {
		t.Fatalf("%d steps, %d notes", n, len(s.Notes))
	}
	p, all := proposal.Plan{Schema: proposal.PlanSchema}, s.ChoosePart(slices.Concat(Everything, touchEach(s)))
	for _, step := range all.Steps {
		if step.Phase != proposal.PhaseSetup || step.Env != nil || step.Timeout <= 0 || step.Why == "" || strings.Contains(step.Why, "\n") {
			t.Fatalf("step %+v", step)
		}
		for _, entry := range step.Network {
			if !strings.HasPrefix(entry, "registry:") {
				t.Fatalf("%s requests %s", step.ID, entry)
			}
		}
		p.Proposals = append(p.Proposals, step.Proposal)
	}
	for _, n := range s.Notes {
		if strings.ContainsFunc(n.String(), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("note that cannot be printed: %q", n)
		}
	}
	if len(p.Proposals) == 0 {
		return
	}
	document, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, problems := plan.Decode(document, "x.json"); len(problems) > 0 {
		t.Fatalf("%s\n%s", plan.Describe("setup", problems[0]), document)
	}
}

// touchEach touches each project of s.
func touchEach(s Setup) (touches []Touch) {
	for _, step := range s.Steps {
		touches = append(touches, Touch{Dir: step.Dir})
	}
	return touches
}

// setupOnly are the steps that the shipped policy allows to set-up and refuses to a
// proposer, with the rule that refuses.
var setupOnly = map[string]string{
	"mkdir -p .fumehood/bin && corepack enable --install-directory .fumehood/bin": "default.no-rule",
	"corepack pnpm install --frozen-lockfile":                                     "default.no-rule",
	"corepack yarn install --immutable":                                           "default.no-rule",
	"corepack yarn install --non-interactive --frozen-lockfile":                   "default.no-rule",
	"bun install --frozen-lockfile":                                               "code.verb",
	"mix local.hex --force --if-missing":                                          "code.verb",
	"mix local.rebar --force --if-missing":                                        "code.verb",
	"mix deps.get":                                                                "code.verb",
	"flutter pub get":                                                             "code.verb",
	"deno install --frozen":                                                       "code.publish",
	"pixi install --frozen":                                                       "code.verb",
	"conda env create --quiet --file environment.yml --prefix .conda":             "code.verb",
	"micromamba create --yes --quiet --file environment.yml --prefix .conda":      "default.no-rule",
}

// The shipped policy allows each step to set-up when the example that grants registries is
// added, and grants exactly the step's registries.
func TestPolicyAllows(t *testing.T) {
	content, err := os.ReadFile("../../../policies/examples/registries/network.rego")
	if err != nil {
		t.Fatal(err)
	}
	engine, err := policy.New(t.Context(), policy.Options{Layers: []policy.Layer{
		{Name: "hosts", Role: policy.Opens, Files: []policy.File{{Name: "network.rego", Content: content}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	decided := map[string]bool{}
	steps := map[string][]Step{}
	for _, c := range cases {
		steps[c.name] = host(c.tools...).Detect(c.root).Steps
	}
	for _, in := range installers {
		scan := &setupScan{ids: map[string]bool{}, dir: projectDir{path: ".", locked: true}, found: Setup{Env: map[string]string{}}}
		scan.addInstaller(".", "x", in, true)
		scan.addInstaller(".", "x", in, false)
		steps["table, "+in.Tool] = append(steps["table, "+in.Tool], scan.found.Steps...)
	}
	for name, list := range steps {
		for _, step := range list {
			command := step.Run
			if step.Argv != nil {
				command = strings.Join(step.Argv, " ")
			}
			decided[command] = true
			analysis := parse.Analyze(step.Proposal)
			analysis.Snippets = snippet.ReadSnippets(step.Proposal, analysis)
			decide := func(origin string) proposal.Decision {
				asked := step.Proposal
				asked.Origin = origin
				d, err := engine.Decide(t.Context(), asked, analysis)
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			if rule := setupOnly[command]; rule != "" {
				d := decide("")
				if d.Effect != proposal.Deny || !slices.ContainsFunc(d.Reasons, func(r proposal.Reason) bool { return r.Rule == rule }) {
					t.Errorf("%s: a proposer's %s: %s by %v, want deny by %s", name, command, d.Effect, d.Rules, rule)
				}
			}
			d := decide(proposal.OriginSetup)
			if d.Effect != proposal.Allow {
				t.Errorf("%s: %s: %s: %+v", name, command, d.Effect, d.Reasons)
				continue
			}
			if diff := cmp.Diff(slices.Clip(append([]string{}, step.Network...)), append([]string{}, d.Grant.Network...)); diff != "" || d.Grant.Phase != proposal.PhaseSetup {
				t.Errorf("%s: %s: phase %s, network (-want +got):\n%s", name, command, d.Grant.Phase, diff)
			}
			if d.Grant.Limits.Wall != step.Timeout {
				t.Errorf("%s: %s: granted %s of %s", name, command, d.Grant.Limits.Wall, step.Timeout)
			}
		}
	}
	for command := range setupOnly {
		if !decided[command] {
			t.Errorf("no case has %s", command)
		}
	}
}
