// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/bounds"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A policy directory from pairs of name and content.
func folder(t testing.TB, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		name := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func with(t *testing.T, dir string) *policy.Engine {
	t.Helper()
	e, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Restricts, dir)})
	if err != nil {
		t.Fatalf("cannot make an engine: %v", err)
	}
	return e
}

// hurried is an engine that soon gives up dir's rules.
func hurried(t *testing.T, dir string) *policy.Engine {
	t.Helper()
	e, err := policy.New(t.Context(), policy.Options{Deadline: 50 * time.Millisecond, Layers: layersOf(t, policy.Restricts, dir)})
	if err != nil {
		t.Fatalf("cannot make an engine: %v", err)
	}
	return e
}

func codeOf(err error) string {
	var stop *proposal.StopError
	if errors.As(err, &stop) {
		return stop.Code
	}
	return ""
}

const denyHead = "package fumehood.command\n\ndeny contains {\"rule\": \"x.y\", \"message\": \"m\", \"suggestion\": \"s\"} if "

func TestNewRefusesPolicies(t *testing.T) {
	symlinked := folder(t, "a.rego", denyHead+"input.command.program == \"x\"")
	if err := os.Symlink("a.rego", filepath.Join(symlinked, "b.rego")); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder(t, "a.rego", denyHead+"input.command.program == \"x\""), link); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ dir, code, says string }{
		"absent":          {filepath.Join(t.TempDir(), "none"), "policy.missing", "does not exist"},
		"empty":           {folder(t), "policy.missing", "no .rego file"},
		"no rule":         {folder(t, "a.rego", "package fumehood.command\n\nx := 1\n"), "policy.missing", "no rule"},
		"syntax":          {folder(t, "a.rego", "package fumehood.command\n\ndeny contains {"), "policy.compile", "a.rego:3"},
		"typo in input":   {folder(t, "a.rego", denyHead+"input.comand.program == \"x\""), "policy.compile", "comand"},
		"typo in field":   {folder(t, "a.rego", denyHead+"input.command.progam == \"x\""), "policy.compile", "progam"},
		"wrong type":      {folder(t, "a.rego", denyHead+"input.command.program == 3"), "policy.compile", "match error"},
		"typo in package": {folder(t, "a.rego", "package fumehood.comand\n\ndeny contains 1 if true"), "policy.unknown-key", "comand"},
		"typo in set":     {folder(t, "a.rego", "package fumehood.command\n\ndenny contains 1 if input.command.program == \"x\""), "policy.unknown-key", "denny"},
		"deny no set":     {folder(t, "a.rego", "package fumehood.command\n\ndeny if input.command.program == \"x\""), "policy.compile", "must be a set"},
		"with":            {folder(t, "a.rego", denyHead+"count(input.command.argv) == 0 with input as {}"), "policy.compile", "tests only"},
		"symlinked file":  {symlinked, "policy.symlink", "b.rego"},
		"symlinked dir":   {link, "policy.symlink", "not a directory"},
		"too large":       {folder(t, "a.rego", denyHead+"true # "+strings.Repeat("x", 300<<10)), "policy.too-large", "a.rego"},
		"only tests":      {folder(t, "a_test.rego", "package fumehood.command\n\ntest_x if true"), "policy.missing", "no .rego file"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := policy.ReadDirectory(c.dir)
			if err == nil {
				_, err = policy.New(t.Context(), policy.Options{Layers: []policy.Layer{l}})
			}
			if codeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %s with %q", err, c.code, c.says)
			}
		})
	}
}

func TestRemovedBuiltinsDoNotCompile(t *testing.T) {
	for name, call := range map[string]string{
		"http.send":                      `http.send({"method": "get", "url": "http://x"}).status_code == 200`,
		"net.lookup_ip_addr":             `net.lookup_ip_addr("x") != set()`,
		"opa.runtime":                    `opa.runtime().env.HOME != ""`,
		"rand.intn":                      `rand.intn("x", 3) == 1`,
		"uuid.rfc4122":                   `uuid.rfc4122("x") != ""`,
		"time.now_ns":                    `time.now_ns() > 0`,
		"io.jwt.decode":                  `io.jwt.decode("x") != []`,
		"json.match_schema":              `json.match_schema({}, {}) != []`,
		"trace":                          `trace("x")`,
		"rego.parse_module":              `rego.parse_module("x", "package x") != {}`,
		"bits.lsh":                       `bits.lsh(1, 8000000000) > 0`,
		"graph.reachable_paths":          `graph.reachable_paths({"a": ["b"]}, {"a"}) != set()`,
		"providers.aws.sign_req":         `providers.aws.sign_req({}, {}, 1) != {}`,
		"crypto.x509.parse_certificates": `crypto.x509.parse_certificates("x") != []`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Restricts, folder(t, "a.rego", denyHead+call))})
			if codeOf(err) != "policy.builtin" || !strings.Contains(err.Error(), name) {
				t.Errorf("got %v, want policy.builtin naming %s", err, name)
			}
		})
	}
}

// failure is the code of an error, or policy.malformed if a rule's answer was not valid.
func failure(err error, rules []string) string {
	if err == nil && slices.Contains(rules, "policy.malformed") {
		return "policy.malformed"
	}
	return codeOf(err)
}

func TestEvaluationFailsClosed(t *testing.T) {
	for name, c := range map[string]struct{ rego, code string }{
		"bomb":          {denyHead + "count([1 | some a in numbers.range(1, 3000); some b in numbers.range(1, 3000); some c in numbers.range(1, 3000); a + b == c]) == 1", "policy.deadline"},
		"builtin error": {denyHead + "to_number(input.command.program) > 3", "policy.eval"},
		"unknown key":   {"package fumehood.command\n\ndeny contains {\"rule\": \"x.y\", \"message\": \"m\", \"sugestion\": \"s\"} if true", "policy.malformed"},
		"missing key":   {"package fumehood.command\n\ndeny contains {\"rule\": \"x.y\", \"message\": \"m\"} if true", "policy.malformed"},
		"no object":     {"package fumehood.command\n\ndeny contains \"x\" if true", "policy.malformed"},
		"wrong limit":   {"package fumehood.proposal\n\nlimits contains {\"wall\": 3} if true", "policy.malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			e := hurried(t, folder(t, "a.rego", c.rego))
			p := proposal.Proposal{ID: "t", Run: "ls"}
			began := bounds.ProcessorTime()
			d, err := e.Decide(t.Context(), p, parse.Analyze(p))
			if failure(err, d.Rules) != c.code || d.Effect != proposal.Deny || d.Grant != nil {
				t.Errorf("got %+v, %v; want %s", d, err, c.code)
			}
			if used := bounds.ProcessorTime() - began; used > 5*time.Second {
				t.Errorf("used %v", used)
			}
		})
	}
}

func TestLayersMayOnlyDenyAskAndLower(t *testing.T) {
	e := with(t, folder(t, "a.rego", `package fumehood.command

allow contains {"rule": "mine.all"}

deny contains {"rule": "mine.tail", "message": "m", "suggestion": "s"} if input.command.program == "tail"

ask contains {"rule": "mine.head", "message": "m", "suggestion": "s"} if input.command.program == "head"
`, "sub/p.rego", `package fumehood.proposal

limits contains {"rule": "mine.limits", "wall_ms": 1000, "memory_bytes": 999999999999999}
`))
	for text, want := range map[string]proposal.Effect{"curl x": proposal.Deny, "tail x": proposal.Deny, "head x": proposal.Ask, "cat x": proposal.Allow, "head x | tail": proposal.Deny} {
		if d := decide(t, e, text); d.Effect != want {
			t.Errorf("%q: %v %v, want %v", text, d.Effect, d.Rules, want)
		}
	}
	limits := decide(t, e, "cat x").Grant.Limits
	if limits.Wall.Std() != time.Second || limits.Memory != 4*proposal.GiB {
		t.Errorf("limits %+v: want the smaller of both layers", limits)
	}
	if w := unlinted(e); len(w) != 1 || !strings.Contains(w[0], "mine.all") {
		t.Errorf("warnings %q", w)
	}
}

// A variable before a launcher is one of the commands that it runs, and of no others.
func TestVariablesOfLaunchers(t *testing.T) {
	e := with(t, folder(t, "a.rego", denyHead+`{ input.command.tool == "go"; some o in input.command.options; o.name == "-tags"; "network" in o.values }`+"\n"))
	for text, want := range map[string]proposal.Effect{
		"GOFLAGS=-tags=network timeout 9 go test ./...": proposal.Deny, "GOFLAGS=-tags=network sh -c 'ls && timeout 9 go test ./...'": proposal.Deny,
		"f() { go test ./...; }; GOFLAGS=-tags=network f": proposal.Deny, "env GOFLAGS=-tags=network go test ./...": proposal.Deny,
		"while ls x; do go test ./...; export GOFLAGS=-tags=network; done": proposal.Deny, "GOFLAGS=-tags=network timeout 9 go vet ./...; go test ./...": proposal.Deny,
		"GOFLAGS=-tags=network timeout 9 ls; go test ./...": proposal.Allow, "env GOFLAGS=-tags=network ls; timeout 9 go test ./...": proposal.Allow,
		"go test ./...; GOFLAGS=-tags=network": proposal.Allow,
	} {
		if d := decide(t, e, text); d.Effect != want {
			t.Errorf("%q: %v %v, want %v", text, d.Effect, d.Rules, want)
		}
	}
}

// DecideProgram applies what the added layers deny and ask, except for rules that are text_only.
func TestDecideProgram(t *testing.T) {
	ask := func(e *policy.Engine, argv ...string) (proposal.Effect, bool) {
		t.Helper()
		p := proposal.Proposal{ID: "x", Argv: argv}
		d, decided, err := e.DecideProgram(t.Context(), p, parse.Analyze(p))
		if err != nil {
			t.Fatal(err)
		}
		return d.Effect, decided
	}
	e := with(t, folder(t, "a.rego", `package fumehood.command

deny contains {"rule": "mine.tail", "message": "m", "suggestion": "s"} if input.command.program == "tail"

ask contains {"rule": "mine.head", "message": "m", "suggestion": "s"} if input.command.program == "head"

# METADATA
# custom: {rule: mine.text, text_only: true}
deny contains {"rule": "mine.text", "message": "m", "suggestion": "s"} if input.command.program == "cat"
`))
	for program, want := range map[string]proposal.Effect{"/usr/bin/tail": proposal.Deny, "tail": proposal.Deny, "/usr/bin/head": proposal.Ask, "/usr/bin/cat": proposal.Allow, "/usr/bin/curl": proposal.Allow} {
		if got, decided := ask(e, program, "x"); got != want || !decided {
			t.Errorf("%s: %v, %v", program, got, decided)
		}
	}
	only := with(t, folder(t, "a.rego", "# METADATA\n# scope: package\n# custom: {text_only: true}\n"+denyHead+`input.command.program == "tail"`+"\n"))
	for name, e := range map[string]*policy.Engine{"the shipped policy": shipped(t), "a package about texts": only} {
		if got, decided := ask(e, "/usr/bin/tail"); got != proposal.Allow || decided {
			t.Errorf("%s: %v, %v", name, got, decided)
		}
	}
}

func TestGrantingFolderReplacesTheShippedPolicy(t *testing.T) {
	dir := folder(t, "a.rego", "package fumehood.command\n\nallow contains {\"rule\": \"org.ls\"} if input.command.program == \"ls\"\n", "p.rego", `package fumehood.proposal

limits contains {"rule": "org.limits", "wall_ms": 1000, "cpus": 0.5, "memory_bytes": 16777216, "pids": 8, "disk_bytes": 1048576, "files": 10, "output_bytes": 1000}
`)
	e, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Grants, dir)})
	if err != nil {
		t.Fatal(err)
	}
	if d := decide(t, e, "ls"); d.Effect != proposal.Allow || d.Grant.Limits.CPUs != 0.5 {
		t.Errorf("ls: %+v", d)
	}
	for _, text := range []string{"cat x", "eval \"$x\""} {
		if d := decide(t, e, text); d.Effect != proposal.Deny || len(d.Reasons) == 0 {
			t.Errorf("%q: %+v", text, d)
		}
	}
}

func TestDigestCoversNamesContentsAndOrder(t *testing.T) {
	rule := denyHead + "input.command.program == \"x\"\n"
	digests := map[string]string{
		"none":  shipped(t).Digest(),
		"a":     with(t, folder(t, "a.rego", rule)).Digest(),
		"b":     with(t, folder(t, "b.rego", rule)).Digest(),
		"other": with(t, folder(t, "a.rego", rule+"# x\n")).Digest(),
	}
	seen := map[string]string{}
	for name, digest := range digests {
		if other, ok := seen[digest]; ok || !strings.HasPrefix(digest, "sha256:") {
			t.Errorf("%s and %s: digest %s", name, other, digest)
		}
		seen[digest] = name
	}
	if again := with(t, folder(t, "a.rego", rule)).Digest(); again != digests["a"] {
		t.Errorf("digest is not stable: %s, %s", again, digests["a"])
	}
}

func TestProposalIsJudgedAsAWhole(t *testing.T) {
	e := shipped(t)
	limits := func(l proposal.Limits) *proposal.Limits { return &l }
	for name, c := range map[string]struct {
		p    proposal.Proposal
		rule string // "" allows
	}{
		"plain":            {proposal.Proposal{Run: "ls"}, ""},
		"argv":             {proposal.Proposal{Argv: []string{"go", "test", "./..."}}, ""},
		"argv denied":      {proposal.Proposal{Argv: []string{"go", "test", "-exec", "./x", "./..."}}, "code.program"},
		"python":           {proposal.Proposal{Code: "print(1)", Language: "python"}, ""},
		"javascript":       {proposal.Proposal{Code: "console.log(1)", Language: "javascript"}, ""},
		"bash":             {proposal.Proposal{Code: "curl x", Language: "bash"}, "network.client"},
		"network":          {proposal.Proposal{Run: "ls", Network: []string{"x.example"}}, "network.none"},
		"env":              {proposal.Proposal{Run: "ls", Env: map[string]string{"CI": "1", "PYTHONPATH": "src"}}, ""},
		"env steering":     {proposal.Proposal{Run: "ls", Env: map[string]string{"LD_PRELOAD": "x"}}, "env.name"},
		"env path outside": {proposal.Proposal{Run: "ls", Env: map[string]string{"PYTHONPATH": "../x"}}, "env.name"},
		"env unknown":      {proposal.Proposal{Run: "ls", Env: map[string]string{"MYSTERY_PATH": "x"}}, "env.name"},
		"goflags":          {proposal.Proposal{Run: "ls", Env: map[string]string{"GOFLAGS": "-toolexec=x"}}, "env.name"},
		"cwd":              {proposal.Proposal{Run: "ls", Cwd: "pkg"}, ""},
		"cwd outside":      {proposal.Proposal{Run: "ls", Cwd: "../x"}, "proposal.cwd"},
		"cwd git":          {proposal.Proposal{Run: "ls", Cwd: ".git/hooks"}, "proposal.cwd"},
		"output":           {proposal.Proposal{Run: "ls", Outputs: []string{"out/*.png"}}, ""},
		"output outside":   {proposal.Proposal{Run: "ls", Outputs: []string{"out/../../x"}}, "proposal.outputs"},
		"output git":       {proposal.Proposal{Run: "ls", Outputs: []string{".git/config"}}, "proposal.outputs"},
		"output absolute":  {proposal.Proposal{Run: "ls", Outputs: []string{"/workspace/x"}}, "proposal.outputs"},
		"long":             {proposal.Proposal{Run: "ls", Timeout: proposal.Duration(5 * time.Minute)}, ""},
		"too long":         {proposal.Proposal{Run: "ls", Timeout: proposal.Duration(3 * time.Hour)}, "limits.too-much"},
		"too much memory":  {proposal.Proposal{Run: "ls", Limits: limits(proposal.Limits{Memory: 65 * proposal.GiB})}, "limits.too-much"},
		"fewer pids":       {proposal.Proposal{Run: "ls", Limits: limits(proposal.Limits{Pids: 10})}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.p.ID = "t"
			d, err := e.Decide(t.Context(), c.p, parse.Analyze(c.p))
			if err != nil {
				t.Fatal(err)
			}
			if c.rule == "" && d.Effect != proposal.Allow || c.rule != "" && (d.Effect != proposal.Deny || !strings.Contains(strings.Join(d.Rules, " "), c.rule)) {
				t.Errorf("got %+v, want rule %q", d, c.rule)
			}
			if c.p.Timeout > 0 && c.rule == "" && d.Grant.Limits.Wall != c.p.Timeout {
				t.Errorf("granted %v", d.Grant.Limits)
			}
			for _, r := range d.Reasons {
				if r.Message == "" || r.Suggestion == "" {
					t.Errorf("a reason is silent: %+v", r)
				}
			}
		})
	}
}

// A granting policy that allows and says nothing of limits has not decided.
func TestGrantWithoutLimitsIsNoDecision(t *testing.T) {
	dir := folder(t, "a.rego", "package fumehood.command\n\nallow contains {\"rule\": \"org.ls\"} if input.command.program == \"ls\"\n")
	e, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Grants, dir)})
	if err != nil {
		t.Fatal(err)
	}
	p := proposal.Proposal{ID: "x", Run: "ls"}
	d, err := e.Decide(t.Context(), p, parse.Analyze(p))
	var stopped *proposal.StopError
	if !errors.As(err, &stopped) || stopped.Code != "policy.no-decision" || d.Effect != proposal.Deny {
		t.Errorf("%v, %v; want policy.no-decision", d.Effect, err)
	}
}

// No shell reads a snippet, so a tilde in it is not a directory; in shell text it is.
func TestTildeInSnippet(t *testing.T) {
	e, err := policy.New(t.Context(), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		p    proposal.Proposal
		want proposal.Effect
	}{
		{proposal.Proposal{ID: "x", Code: "print('~/x')", Language: "python"}, proposal.Allow},
		{proposal.Proposal{ID: "x", Code: "cat ~/.ssh/id_rsa", Language: "bash"}, proposal.Deny},
		{proposal.Proposal{ID: "x", Run: "cat ~/.ssh/id_rsa"}, proposal.Deny},
		{proposal.Proposal{ID: "x", Argv: []string{"bash", "-c", "cat ~/.ssh/id_rsa"}}, proposal.Deny},
	} {
		d, err := e.Decide(t.Context(), test.p, parse.Analyze(test.p))
		if err != nil || d.Effect != test.want {
			t.Errorf("%+v: %v %v, %v; want %v", test.p, d.Effect, d.Rules, err, test.want)
		}
	}
}

// TestFloorHolds holds what no layer can take away: that there is a command at all, one
// that no rule allows beside one that a rule does, a variable that nothing lets in.
func TestFloorHolds(t *testing.T) {
	e, err := policy.New(t.Context(), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		p      proposal.Proposal
		change func(*proposal.Analysis)
		rule   string
	}{
		"the next command": {proposal.Proposal{Run: "cat x | no-such-program"}, func(*proposal.Analysis) {}, "default.no-rule"},
		"no command":       {proposal.Proposal{Run: "cat x"}, func(a *proposal.Analysis) { a.Commands = nil }, "floor.no-command"},
		"a variable":       {proposal.Proposal{Run: "cat x", Env: map[string]string{"NO_SUCH_PATH": "1"}}, func(*proposal.Analysis) {}, "env.name"},
	} {
		c.p.ID = "t"
		a := parse.Analyze(c.p)
		c.change(&a)
		d, err := e.Decide(t.Context(), c.p, a)
		if err != nil || d.Effect != proposal.Deny || !slices.Contains(d.Rules, c.rule) {
			t.Errorf("%s: %v, %v by %q, want a denial by %s", name, err, d.Effect, d.Rules, c.rule)
		}
	}
}

// unlinted are e's warnings, those of style excepted.
func unlinted(e *policy.Engine) []string {
	return slices.DeleteFunc(e.Warnings(), func(w string) bool { return strings.HasPrefix(w, "policy.lint") })
}
