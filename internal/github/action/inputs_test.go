// SPDX-License-Identifier: Apache-2.0

package action

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func makeFIFO(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// environment returns a getenv function.
func environment(pairs ...string) func(string) string {
	set := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		set[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return set[name] }
}

func defaults() Inputs {
	return Inputs{
		Mode: "enforce", Phase: "auto", Rootfs: "host", Network: "none", Setup: "configured", WorkingDirectory: ".",
		UnsupportedEvent: UnsupportedNotice, Upload: UploadAuto, RetentionDays: 7, FailOn: "failed", Comment: true, CompareBase: true, MaxRunsPerPR: 20, MaxRunsPerDay: 200, Parts: 4,
	}
}

func TestInputs(t *testing.T) {
	tests := []struct {
		name string
		env  []string
		want func(*Inputs)
	}{
		{"none", nil, func(*Inputs) {}},
		{"blank is none", []string{"INPUT_MODE", " ", "INPUT_COMMENT", "\n", "INPUT_TIMEOUT", "\t"}, func(*Inputs) {}},
		{"branches", []string{"INPUT_POLICY_BRANCHES", "release/*,\n legacy"}, func(in *Inputs) { in.PolicyBranches = []string{"release/*", "legacy"} }},
		{"words", []string{"INPUT_MODE", "observe", "INPUT_PHASE", "trigger", "INPUT_FAIL_ON", "never", "INPUT_NETWORK", "policy"},
			func(in *Inputs) { in.Mode, in.Phase, in.FailOn, in.Network = "observe", "trigger", "never", "policy" }},
		{"booleans", []string{"INPUT_COMMENT", "False", "INPUT_CHECK_RUN", "TRUE", "INPUT_DRY_RUN", "true"},
			func(in *Inputs) { in.Comment, in.CheckRun, in.DryRun = false, true, true }},
		{"the comment", []string{"INPUT_COMMENT_DETAIL", "quiet", "INPUT_COMMENT_LENGTH", "20000"},
			func(in *Inputs) { in.CommentDetail, in.CommentLength = "quiet", 20000 }},
		{"the configured comment", []string{"INPUT_COMMENT_DETAIL", "configured", "INPUT_COMMENT_LENGTH", "0"}, func(*Inputs) {}},
		{"paths", []string{"INPUT_WORKING_DIRECTORY", "a/./b/", "INPUT_POLICY", ".github/fumehood", "INPUT_PLAN", " /tmp/plan.json\n"},
			func(in *Inputs) {
				in.WorkingDirectory, in.Policy, in.Plan = "a/b", ".github/fumehood", " /tmp/plan.json\n"
			}},
		{"a root folder", []string{"INPUT_ROOTFS", "dir:/srv/root"}, func(in *Inputs) { in.Rootfs = "dir:/srv/root" }},
		{"numbers", []string{"INPUT_MAX_RUNS_PER_PR", "0", "INPUT_MAX_RUNS_PER_DAY", "7", "INPUT_TIMEOUT", "90s"},
			func(in *Inputs) { in.MaxRunsPerPR, in.MaxRunsPerDay, in.Timeout = 0, 7, 90*time.Second }},
		{"bots", []string{"INPUT_ALLOWED_BOTS", "41898282, 5\n7\r\n"}, func(in *Inputs) { in.AllowedBots = []int64{41898282, 5, 7} }},
		{"a model", []string{"INPUT_PHASE", "find", "INPUT_PROVIDER", "openai", "INPUT_MODEL", "meta/llama-4:free", "INPUT_MAX_USD", "0.50", "INPUT_MAX_TOKENS", "200000", "INPUT_MAX_ROUNDS", "20"},
			func(in *Inputs) {
				in.Phase, in.Provider, in.Model, in.MaxUSD, in.MaxTokens, in.MaxRounds = "find", "openai", "meta/llama-4:free", "0.50", 200_000, 20
			}},
		{"names", []string{"INPUT_NAME", "unit-tests", "INPUT_ARTIFACT", "fumehood", "INPUT_GITHUB_TOKEN", "ghs_abc"},
			func(in *Inputs) { in.Name, in.Artifact, in.Token = "unit-tests", "fumehood", "ghs_abc" }},
		{"limits", []string{"INPUT_LIMITS", "memory=4GiB, cpus: 1.5\npids=512,,disk=1024,output = 2 MB, files=64,wall=90s,"},
			func(in *Inputs) {
				in.Limits = proposal.Limits{Memory: 4 * proposal.GiB, CPUs: 1.5, Pids: 512, Disk: 1024, Output: 2e6, Files: 64, Wall: proposal.Duration(90 * time.Second)}
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := defaults()
			tt.want(&want)
			got, problems := ReadInputs(environment(tt.env...))
			if diff := cmp.Diff(want, got); diff != "" || len(problems) > 0 {
				t.Errorf("problems %v, inputs (-want +got):\n%s", problems, diff)
			}
		})
	}
}

func TestInputProblems(t *testing.T) {
	tests := []struct{ name, variable, value, input, message string }{
		{"mode", "MODE", "audit", "mode", `"audit" is not enforce or observe`},
		{"mode in another case", "MODE", "Enforce", "mode", `"Enforce" is not enforce or observe`},
		{"phase", "PHASE", "all", "phase", `"all" is not auto, run, review, report, trigger, find or split`},
		{"a program as provider", "PROVIDER", "command", "provider", `"command" is not anthropic, openai or gemini`},
		{"a model with a space", "MODEL", "claude sonnet", "model", `"claude sonnet" is not the name of a model`},
		{"a model upwards", "MODEL", "../x", "model", `"../x" is not the name of a model`},
		{"no dollars", "MAX_USD", "$1", "max-usd", `"$1" is not an amount in dollars, such as 0.50, of at most 999999`},
		{"zero dollars", "MAX_USD", "0.00", "max-usd", `"0.00" is not an amount in dollars, such as 0.50, of at most 999999`},
		{"negative dollars", "MAX_USD", "-1", "max-usd", `"-1" is not an amount in dollars, such as 0.50, of at most 999999`},
		{"no limit of tokens", "MAX_TOKENS", "-1", "max-tokens", `"-1" is not a number from 1 to 1000000000`},
		{"no tokens", "MAX_TOKENS", "0", "max-tokens", `"0" is not a number from 1 to 1000000000`},
		{"too many rounds", "MAX_ROUNDS", "21", "max-rounds", `"21" is not a number from 1 to 20`},
		{"network", "NETWORK", "github.com", "network", `"github.com" is not none or policy`},
		{"fail-on", "FAIL_ON", "always", "fail-on", `"always" is not failed, denied, error, never or could-not-run`},
		{"yes is no boolean", "COMMENT", "yes", "comment", `"yes" is not true or false`},
		{"a number is no boolean", "DRY_RUN", "1", "dry-run", `"1" is not true or false`},
		{"a wide boolean", "DRY_RUN", "ｔｒｕｅ", "dry-run", `"ｔｒｕｅ" is not true or false`},
		{"a newline", "MODE", "enforce\nobserve", "mode", `"enforce↵observe" contains a newline, a control character or an invisible character`},
		{"an invisible character", "MODE", "enforce\u200b", "mode", `"enforce⟨U+200B⟩" contains a newline, a control character or an invisible character`},
		{"no UTF-8", "NAME", "\xff", "name", `"⟨0xFF⟩" contains a newline, a control character or an invisible character`},
		{"too long", "POLICY", strings.Repeat("a", 4097), "policy", "has more than 4096 bytes"},
		{"branches by an open class", "POLICY_BRANCHES", "main, [a", "policy-branches", `"[a" is not a pattern of branch names`},
		{"branches with a hidden character", "POLICY_BRANCHES", "ma\u200bin", "policy-branches", `"ma⟨U+200B⟩in" is not a pattern of branch names`},
		{"path outside", "POLICY", "a/../../b", "policy", `"a/../../b" is not a relative path that stays in its directory`},
		{"absolute path", "WORKING_DIRECTORY", "/etc", "working-directory", `"/etc" is not a relative path that stays in its directory`},
		{"backslash", "WORKING_DIRECTORY", `a\b`, "working-directory", `"a\b" is not a relative path that stays in its directory`},
		{"rootfs", "ROOTFS", "alpine", "rootfs", `"alpine" is not host, dir:/absolute/path, image:REPOSITORY@sha256:…, oci:/absolute/path, oci-archive:/absolute/path or devcontainer`},
		{"an image", "ROOTFS", "image:alpine@sha256:0a", "rootfs", `"image:alpine@sha256:0a" is not an image with a digest: use image:REPOSITORY@sha256:…`},
		{"relative rootfs", "ROOTFS", "dir:x", "rootfs", `"dir:x" is not host, dir:/absolute/path, image:REPOSITORY@sha256:…, oci:/absolute/path, oci-archive:/absolute/path or devcontainer`},
		{"rootfs upwards", "ROOTFS", "dir:/x/..", "rootfs", `"dir:/x/.." is not host, dir:/absolute/path, image:REPOSITORY@sha256:…, oci:/absolute/path, oci-archive:/absolute/path or devcontainer`},
		{"timeout without a unit", "TIMEOUT", "20", "timeout", `"20" is not a duration from 1s to 6h0m0s`},
		{"no time", "TIMEOUT", "0s", "timeout", `"0s" is not a duration from 1s to 6h0m0s`},
		{"negative time", "TIMEOUT", "-5m", "timeout", `"-5m" is not a duration from 1s to 6h0m0s`},
		{"too much time", "TIMEOUT", "7h", "timeout", `"7h" is not a duration from 1s to 6h0m0s`},
		{"count", "MAX_RUNS_PER_PR", "-1", "max-runs-per-pr", `"-1" is not a number from 0 to 100000`},
		{"count with a plus", "MAX_RUNS_PER_PR", "+1", "max-runs-per-pr", `"+1" is not a number from 0 to 100000`},
		{"count in another base", "MAX_RUNS_PER_DAY", "0x10", "max-runs-per-day", `"0x10" is not a number from 0 to 100000`},
		{"detail", "COMMENT_DETAIL", "loud", "comment-detail", `"loud" is not configured, normal, quiet or full`},
		{"a comment without room", "COMMENT_LENGTH", "100", "comment-length", "100 is not a number from 4000 to 65536"},
		{"a comment longer than GitHub's", "COMMENT_LENGTH", "65537", "comment-length", "65537 is not a number from 4000 to 65536"},
		{"bots by name", "ALLOWED_BOTS", "claude[bot]", "allowed-bots", `"claude[bot]" is not a user id: give the bot's number, because any app can take a name`},
		{"a collector without a scheme", "OTLP", "otlp.example:4318", "otlp", "is not an https:// URL without user, password, query and fragment"},
		{"a password in the collector's address", "OTLP", "https://u:hunter22@otlp.example", "otlp", "is not an https:// URL without user, password, query and fragment"},
		{"a header's value", "OTLP_HEADERS", "Authorization=Bearer hunter22", "otlp-headers", "has an entry that is not NAME=VARIABLE: the name of a header and of the variable in env: that holds its value"},
		{"too many headers", "OTLP_HEADERS", strings.Repeat("A=B ", 11), "otlp-headers", "names more than 10 headers"},
		{"every bot", "ALLOWED_BOTS", "*", "allowed-bots", `"*" is not a user id: give the bot's number, because any app can take a name`},
		{"bot zero", "ALLOWED_BOTS", "0", "allowed-bots", `"0" is not a user id: give the bot's number, because any app can take a name`},
		{"too many bots", "ALLOWED_BOTS", strings.Repeat("5 ", 51), "allowed-bots", "names more than 50 bots"},
		{"artifact", "ARTIFACT", "../x", "artifact", `"../x" is not a name of at most 60 letters, digits, dots, hyphens and underscores`},
		{"token", "GITHUB_TOKEN", "ghs_a ghs_b", "github-token", "is not one word of visible ASCII characters"},
		{"plan", "PLAN", "a\x00b", "plan", "contains a control character"},
		{"plan in another encoding", "PLAN", "\xff", "plan", "is not UTF-8"},
		{"findings", "FINDINGS", "a\x00b", "findings", "contains a control character"},
		{"request", "REQUEST", "{\x1b}", "request", "contains a control character"},
		{"checkout", "CHECKOUT", "../../tmp", "checkout", `"../../tmp" is not a relative path that stays in its directory`},
		{"organization without a digest", "ORGANIZATION", "https://policy.example/p.tar.gz", "organization", `"https://policy.example/p.tar.gz" is neither a bundle pinned by its digest nor github:OWNER/REPO/FILE.tar.gz@REF`},
		{"organization on GitHub without a ref", "ORGANIZATION", "github:acme/policy", "organization", `"github:acme/policy" is neither a bundle pinned by its digest nor github:OWNER/REPO/FILE.tar.gz@REF`},
		{"organization by a tag", "ORGANIZATION", "oci://registry.example/acme/policy:1", "organization", `"oci://registry.example/acme/policy:1" is neither a bundle pinned by its digest nor github:OWNER/REPO/FILE.tar.gz@REF`},
		{"organization in the workspace", "ORGANIZATION", "policy.tar.gz@sha256:" + strings.Repeat("0a", 32), "organization", `"policy.tar.gz@sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a…" is neither a bundle pinned by its digest nor github:OWNER/REPO/FILE.tar.gz@REF`},
		{"a key's file", "POLICY_KEY", ".github/key.pem", "policy-key", "is not one or more complete public keys in PEM format"},
		{"a private key", "POLICY_KEY", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "policy-key", "is not one or more complete public keys in PEM format"},
		{"revision", "MINIMUM_REVISION", "v1.2", "minimum-revision", `"v1.2" is neither an integer nor an RFC 3339 time`},
		{"long plan", "PLAN", strings.Repeat("a", maxDocument+1), "plan", "has more than 122880 bytes: use a file, which can be larger"},
		{"unknown limit", "LIMITS", "ram=1GiB", "limits", `"ram=1GiB" is not wall, cpus, memory, pids, disk, files or output`},
		{"a limit without a value", "LIMITS", "memory", "limits", `"memory" is not a size such as "512MiB"`},
		{"a limit twice", "LIMITS", "pids=1,pids=2", "limits", `"pids=2" is given twice`},
		{"a size too large", "LIMITS", "memory=2TiB", "limits", `"memory=2TiB" is more than 1TiB`},
		{"a size that overflows", "LIMITS", "memory=9999999999999TiB", "limits", `"memory=9999999999999TiB" is more than 1TiB`},
		{"no size at all", "LIMITS", "memory=0", "limits", `"memory=0" is not a size such as "512MiB"`},
		{"no processes", "LIMITS", "pids=0", "limits", `"pids=0" is not a number from 1 to 4194304`},
		{"no processors", "LIMITS", "cpus=0.0", "limits", `"cpus=0.0" is not a number of CPUs up to 256`},
		{"processors in another form", "LIMITS", "cpus=1e2", "limits", `"cpus=1e2" is not a number of CPUs up to 256`},
		{"processors without end", "LIMITS", "cpus=inf", "limits", `"cpus=inf" is not a number of CPUs up to 256`},
		{"no wall", "LIMITS", "wall=0s", "limits", `"wall=0s" is not a positive duration`},
		{"wall without a unit", "LIMITS", "wall=5", "limits", `"wall=5" invalid duration "5": want for example "90s" or "2m"`},
		{"long limits", "LIMITS", strings.Repeat("pids=1,", 1000), "limits", "has more than 4096 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, problems := ReadInputs(environment("INPUT_"+tt.variable, tt.value))
			if len(problems) != 1 || problems[0].Input != tt.input || problems[0].Message != tt.message {
				t.Fatalf("problems: %+v\nwant %s: %s", problems, tt.input, tt.message)
			}
			checkHint(t, problems[0])
		})
	}
}

// checkHint checks that the hint is YAML and that its value is accepted.
func checkHint(t *testing.T, p Problem) {
	t.Helper()
	var hint struct{ With map[string]string }
	if err := yaml.Unmarshal([]byte(p.Hint), &hint); err != nil {
		t.Fatalf("hint %q is no YAML: %v", p.Hint, err)
	}
	value := hint.With[p.Input]
	if strings.Contains(value, "${{") {
		value = "ghs_token"
	}
	if p.Input == "audit-key" {
		value = auditKey(t)
	}
	if _, problems := ReadInputs(environment("INPUT_"+inputVariableName(p.Input), value)); value == "" || len(problems) > 0 {
		t.Errorf("hint %q is refused itself: %v", p.Hint, problems)
	}
}

func auditKey(t testing.TB) string {
	t.Helper()
	key, err := audit.GenerateKey("acme.example/fumehood")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A signing key is kept only as a Signer, which prints as its verifier key.
func TestAuditKey(t *testing.T) {
	key := auditKey(t)
	in, problems := ReadInputs(environment("INPUT_AUDIT_KEY", key+"\n"))
	if len(problems) > 0 || !strings.HasPrefix(in.AuditKey.Key(), "acme.example/fumehood+") {
		t.Fatalf("%v, %v", in.AuditKey, problems)
	}
	for _, shown := range []string{fmt.Sprint(in.AuditKey), fmt.Sprintf("%v", in)} {
		if strings.Contains(shown, "PRIVATE") {
			t.Errorf("shows the key: %s", shown)
		}
	}
	for _, bad := range []string{key[:len(key)-1], in.AuditKey.Key(), "hunter22", strings.Repeat("x", 5000)} {
		_, problems := ReadInputs(environment("INPUT_AUDIT_KEY", bad))
		if len(problems) != 1 || problems[0].Input != "audit-key" || strings.Contains(fmt.Sprint(problems), bad) {
			t.Errorf("%.20q: %v", bad, problems)
			continue
		}
		checkHint(t, problems[0])
	}
}

func TestEveryProblemIsTold(t *testing.T) {
	_, problems := ReadInputs(environment("INPUT_MODE", "x", "INPUT_PHASE", "x", "INPUT_LIMITS", "x", "INPUT_GITHUB_TOKEN", "hunter2 hunter2"))
	var names []string
	for _, p := range problems {
		names = append(names, p.Input)
		if strings.Contains(p.Message+p.Hint, "hunter2") {
			t.Errorf("%v quotes a secret", p)
		}
	}
	if diff := cmp.Diff([]string{"mode", "phase", "limits", "github-token"}, names); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestPlanIsAPathOrADocument(t *testing.T) {
	tests := []struct {
		name, plan, path string
		inline           bool
	}{
		{"none", "", "", false},
		{"a path", " plan.json\n", "plan.json", false},
		{"JSON", ` {"schema":"fumehood.plan/v1"}`, "", true},
		{"YAML", "schema: fumehood.plan/v1\nproposals: []\n", "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := Inputs{Plan: tt.plan}
			document, inline := in.PlanDocument()
			if inline != tt.inline || in.PlanPath() != tt.path || inline && string(document) != tt.plan {
				t.Errorf("document %q, inline %v, path %q", document, inline, in.PlanPath())
			}
		})
	}
}

// TestPlanOfCommands: each line is a command with an id of its own, and a position in the plan is one in the input.
func TestPlanOfCommands(t *testing.T) {
	for run, want := range map[string]string{
		"npm test":                           `{"schema":"fumehood.plan/v1","proposals":[{"id":"npm-test","run":"npm test"}]}`,
		"\ngo vet ./...\r\n  go test ./... ": `{"schema":"fumehood.plan/v1","proposals":[` + "\n" + `{"id":"go-vet","run":"go vet ./..."}` + "\n" + `,{"id":"go-test","run":"go test ./..."}]}`,
		"npm run a\nnpm run b\nnpm run":      `{"schema":"fumehood.plan/v1","proposals":[{"id":"npm-run","run":"npm run a"}` + "\n" + `,{"id":"npm-run.2","run":"npm run b"}` + "\n" + `,{"id":"npm-run.3","run":"npm run"}]}`,
		"# all\ngo test \\\n  ./a\n\n":       `{"schema":"fumehood.plan/v1","proposals":[` + "\n\n" + `{"id":"go-test","run":"go test   ./a"}]}`,
		`X=1 ./a.sh "é" && true`:             `{"schema":"fumehood.plan/v1","proposals":[{"id":"command","run":"X=1 ./a.sh \"é\" \u0026\u0026 true"}]}`,
		"./scripts/a.sh\\":                   `{"schema":"fumehood.plan/v1","proposals":[{"id":"command","run":"./scripts/a.sh\\"}]}`,
		" \n":                                "",
	} {
		in, problems := ReadInputs(environment("INPUT_RUN", run))
		if strings.TrimSuffix(in.Plan, "\n") != want || len(problems) > 0 {
			t.Errorf("%q: %q, %v, want %q", run, in.Plan, problems, want)
		}
		document, inline := in.PlanDocument()
		if _, problems := plan.Decode(document, "plan"); inline != (want != "") || inline && len(problems) > 0 {
			t.Errorf("%q: %v", run, problems)
		}
	}
	if _, problems := ReadInputs(environment("INPUT_RUN", "npm test", "INPUT_PLAN", "plan.json")); len(problems) != 1 || problems[0].Input != "run" {
		t.Errorf("both: %v", problems)
	}
}

// inputNames are all inputs that ReadInputs reads.
var inputNames = []string{
	"plan", "run", "policy", "mode", "phase", "rootfs", "network", "setup", "layers-cache", "results-cache", "parts", "durations", "timeout", "limits", "working-directory", "fail-on", "comment", "comment-detail", "comment-length", "compare-base", "check-run",
	"dry-run", "unsupported-event", "upload", "retention-days", "github-token", "artifact", "allowed-bots", "max-runs-per-pr", "max-runs-per-day", "name", "request", "reviewer", "reviewer-result", "checkout",
	"policy-branches", "organization", "findings", "policy-key", "minimum-revision",
	"otlp", "otlp-headers", "mask", "provider", "model", "max-usd", "max-tokens", "max-rounds", "audit-key",
	"organization-token", "organization-cache",
}

func TestEveryInputIsRead(t *testing.T) {
	asked := map[string]bool{}
	ReadInputs(func(name string) string { asked[name] = true; return "" })
	for _, name := range inputNames {
		if !asked["INPUT_"+inputVariableName(name)] {
			t.Errorf("input %s is not read", name)
		}
	}
	if len(asked) != len(inputNames) {
		t.Errorf("%d variables are read, there are %d inputs: %v", len(asked), len(inputNames), asked)
	}
}

// action.yml declares exactly the inputs that are read, with the same defaults.
func TestActionFileDeclaresTheseInputs(t *testing.T) {
	data, err := os.ReadFile("../../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Inputs map[string]struct{ Default string }
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	declared := slices.Sorted(maps.Keys(file.Inputs))
	if diff := cmp.Diff(slices.Sorted(slices.Values(inputNames)), declared); diff != "" {
		t.Errorf("inputs (-read +declared):\n%s", diff)
	}
	env := map[string]string{}
	for name, input := range file.Inputs {
		env["INPUT_"+inputVariableName(name)] = strings.ReplaceAll(input.Default, "${{ github.token }}", "ghs_token")
	}
	got, problems := ReadInputs(func(name string) string { return env[name] })
	want := defaults()
	want.Token, want.Artifact = "ghs_token", "fumehood"
	if diff := cmp.Diff(want, got); diff != "" || len(problems) > 0 {
		t.Errorf("problems %v, inputs (-want +got):\n%s", problems, diff)
	}
}

// FuzzReadInputs: a value of an input is either accepted, and matches its grammar,
// or reported as a problem on one visible line.
func FuzzReadInputs(f *testing.F) {
	lanetest.SkipShort(f)
	for _, s := range append(hostile, "true", "run", "5", "90s", "memory=1GiB", "a/b", "../x", "dir:/x", "5,7") {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		in, problems := ReadInputs(func(string) string { return s })
		for _, p := range problems {
			if !slices.Contains(inputNames, p.Input) || strings.ContainsFunc(p.Message, text.IsHidden) || len(p.Message) > 500 {
				t.Fatalf("problem %q", p)
			}
			checkHint(t, p)
		}
		if strings.ContainsAny(in.Policy+in.WorkingDirectory+in.Name+in.Artifact+in.Rootfs+in.Token, "\n\r\x00") || !isBelowRoot(in.Policy) ||
			!isBelowRoot(in.WorkingDirectory) || in.Timeout < 0 || in.MaxRunsPerPR < 0 || len(in.AllowedBots) > maxBots {
			t.Fatalf("inputs %+v", in)
		}
	})
}

func TestSecrets(t *testing.T) {
	const token = "ghs_16C7e42F292c6912E7710c838347Ae178B4a"
	list := ListSecrets(environment("INPUT_GITHUB_TOKEN", token, "GITHUB_TOKEN", token, "ACTIONS_RUNTIME_TOKEN", "run/time+token=\n", "GH_TOKEN", "short"))
	for name, want := range map[string]string{
		"itself": token, "git's header": base64.StdEncoding.EncodeToString([]byte("x-access-token:" + token)),
		"base64": base64.StdEncoding.EncodeToString([]byte(token)), "hexadecimal": "6768735f3136433765343246323932633639313245373731306338333833343741653137384234" + "61",
		"another": "run/time+token=", "another in an address": "run%2Ftime%2Btoken%3D",
	} {
		if !slices.Contains(list, want) {
			t.Errorf("%s is not masked: %q", name, want)
		}
	}
	if slices.Contains(list, "short") {
		t.Error("a short word is masked")
	}
	if slices.Sort(list); len(slices.Compact(slices.Clone(list))) != len(list) {
		t.Errorf("a value is listed twice: %q", list)
	}
	if got := ListSecrets(environment()); len(got) != 0 {
		t.Errorf("without variables: %q", got)
	}
}

// A pattern matches whole names, and * no slash.
func TestOwnPolicy(t *testing.T) {
	in := Inputs{PolicyBranches: []string{"release/*", "legacy"}}
	for branch, want := range map[string]bool{"release/1": true, "legacy": true, "release/1/x": false, "legacy2": false, "main": false, "": false} {
		if got := in.OwnPolicy(branch); got != want {
			t.Errorf("%q: %t", branch, got)
		}
	}
	if (Inputs{PolicyBranches: []string{"*"}}).OwnPolicy("") || (Inputs{}).OwnPolicy("main") {
		t.Error("no branch, or no pattern, matches")
	}
}
