// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Above the fold is the assertion that failed, of whichever tool, or else the last
// line that says something.
func TestMatters(t *testing.T) {
	for _, tt := range []struct{ name, cmd, stdout, stderr, want string }{
		{"go test", "go test ./stats", failingTest, "", "<code>stats_test.go:31</code>: <code>TestMedian/even: Median([1 2 3 4]) = 2, want 2.5</code>"},
		{"pytest", "pytest -q", "E       assert 1 == 2\n\ntests/test_a.py:4: AssertionError\n1 failed in 0.1s\n", "", "<code>tests/test_a.py:4</code>: <code>assert 1 == 2</code>"},
		{"pytest in a directory", "pytest -q", "tests/test_a.py:4: AssertionError\n", "", "<code>tests/test_a.py:4</code>: <code>AssertionError</code>"},
		{"tsc", "npx tsc", "src/a.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.\n", "", "<code>src/a.ts:3</code>: <code>TS2322: Type &#39;string&#39; is not assignable to type &#39;number&#39;.</code>"},
		{"rust", "cargo test", "thread 'tests::adds' panicked at src/lib.rs:9:9:\nassertion `left == right` failed\n", "", "<code>src/lib.rs:9</code>: <code>assertion `left == right` failed</code>"},
		{"mocha", "npm test", "  1) adds\n\n  AssertionError [ERR_ASSERTION]: 1 == 2\n      at Context.<anonymous> (test/a.js:5:12)\n", "npm error code 1\n", "<code>AssertionError [ERR_ASSERTION]: 1 == 2</code>"},
		{"node's runner", "node --test", "not ok 1 - adds\n  error: 'Expected values to be strictly equal'\n# fail 1\n", "", "<code>adds: error: &#39;Expected values to be strictly equal&#39;</code>"},
		{"jest", "npx jest", "", "FAIL ./a.test.js\n  ● adds\n\n    expect(received).toBe(expected)\n\n    Expected: 3\n", "<code>a.test.js</code>: <code>adds: expect(received).toBe(expected) (expected 3)</code>"},
		{"make", "make", "cc -c a.c\n", "make: *** No rule to make target 'x'.  Stop.\n", "<code>No rule to make target &#39;x&#39;.</code>"},
		{"npm, no package.json", "npm i", "", "npm error code ENOENT\nnpm error syscall open\nnpm error path /workspace/package.json\nnpm error enoent Could not read package.json: Error: ENOENT\nnpm error enoent\nnpm error A complete log of this run can be found in: /x\n", "<code>npm error enoent Could not read package.json: Error: ENOENT</code>"},
		{"npm, stale lock file", "npm ci", "", "npm error code EUSAGE\nnpm error\nnpm error `npm ci` can only install packages when\nnpm error\nnpm error Missing: a@1.0.0 from lock file\nnpm error\nnpm error Usage:\nnpm error A complete log of this run can be found in: /x\n", "<code>npm error Missing: a@1.0.0 from lock file</code>"},
		{"pytest, an option", "pytest --cov", "", "ERROR: usage: pytest [options]\npytest: error: unrecognized arguments: --cov\n  inifile: None\n  rootdir: /workspace\n\n", "<code>pytest: error: unrecognized arguments: --cov</code>"},
		{"go test, cut", "go test -v ./... | tail -3", "FAIL\nFAIL\texample.org/x\t0.012s\nFAIL\n", "", "<code>a test failed that the output does not show</code>"},
		{"only a last line", "true", "one\ntwo\n", "", "<code>two</code>"},
		{"more than fit", "go vet ./...", "a.go:1:1: one\nb.go:2:1: two\nc.go:3:1: three\nd.go:4:1: four\n", "", "<code>c.go:3</code>: <code>three</code> and 1 more"},
	} {
		r := finish(proposal.Report{Records: []proposal.Record{ran("unit", tt.cmd, proposal.Exited, 1, tt.stdout, tt.stderr)}})
		first, _, _ := strings.Cut(Page{Parts: []Part{{Report: r}}}.Body(), "<details>")
		if !strings.Contains(first, tt.want) {
			t.Errorf("%s: %q is not above the fold:\n%s", tt.name, tt.want, first)
		}
	}
}

// A command that ends with another code than it was expected to is a failure, and says both.
func TestUnexpectedCode(t *testing.T) {
	rec := ran("unit", "sh x.sh", proposal.Exited, 1, "", "")
	rec.Proposal.Expect = "exits with 2"
	page := Page{Parts: []Part{{Report: finish(proposal.Report{Records: []proposal.Record{rec}})}}}
	const want = "expected exit code 2, got 1"
	if body, plain := page.Body(), Text(page.Parts[0].Report); !strings.Contains(body, "❌ fumehood: 1 failed") || !strings.Contains(body, want) || !strings.Contains(plain, want) {
		t.Errorf("%s\n%s", body, plain)
	}
}

// A link leads to a line of a file of the commit, or nowhere, whatever is printed.
func TestLineLinks(t *testing.T) {
	good := "https://github.example/octo/demo/blob/" + sha + "/"
	files := []string{"a.go", "pkg/b c.go", "pkg/é.go", "x%2f..%2fy.go", "a\"b.go", "weird#L1.go", "sub/(a).go", "../out.go", "/etc/passwd.go", "a//b.go"}
	for name, want := range map[string]string{
		"a.go": good + "a.go#L7", "./a.go": good + "a.go#L7", "/workspace/a.go": good + "a.go#L7", "pkg/../a.go": good + "a.go#L7", "pkg/b c.go": good + "pkg/b%20c.go#L7",
		"sub/(a).go": good + "sub/%28a%29.go#L7",
		"b.go":       "", "pkg/é.go": "", "x%2f..%2fy.go": "", "a\"b.go": "", "weird#L1.go": "", "../out.go": "", "../../../octo/other/a.go": "", "/etc/passwd.go": "", "a//b.go": "",
		"https://evil.example/a.go": "", "//evil.example/a.go": "", "javascript:a.go": "", "@octocat.go": "", "A.GO": "",
	} {
		rec := ran("unit", "go vet ./...", proposal.Exited, 1, name+":7:1: boom\n", "")
		p := Page{Parts: []Part{{Report: finish(proposal.Report{Records: []proposal.Record{rec}})}}, Repository: ownRepository, RunURL: ownRun, Head: sha, Files: files}
		body := p.Body()
		var links []string
		for _, part := range strings.Split(body, `<a href="`)[1:] {
			if href, _, _ := strings.Cut(part, `"`); href != ownRun {
				links = append(links, href)
			}
		}
		if got := strings.Join(links, " "); got != want {
			t.Errorf("%s: links to %q, want %q", name, got, want)
		}
		for _, q := range []Page{{Files: files, Head: sha, Repository: ownRepository}, {Files: files, Head: "main", Repository: ownRepository, RunURL: ownRun}, {Files: files, Head: sha, Repository: "evil/demo", RunURL: ownRun}, {Head: sha, Repository: ownRepository, RunURL: ownRun}} {
			q.Parts = p.Parts
			if strings.Contains(q.Body(), "/blob/") {
				t.Errorf("%s: a link without a trusted run, commit, repository or list of files", name)
			}
		}
	}
}

// A run in which nothing needs attention is one line and one fold; anything else is not.
func TestFine(t *testing.T) {
	all := cases()
	for name, p := range map[string]Page{
		"all_ok": {Parts: []Part{{Report: all["all_ok"]}}}, "approved": {Parts: []Part{{Report: all["approved"]}}},
		"two plans": {Parts: []Part{{Name: "a", Report: all["all_ok"]}, {Name: "b", Report: all["all_ok"]}}},
	} {
		body := p.Body()
		line, rest, _ := strings.Cut(body, "\n\n")
		if !strings.HasPrefix(line, "## ✅ fumehood: ") || !strings.HasPrefix(rest, "<details>\n<summary>") || !strings.HasSuffix(rest, "\n\n</details>\n") {
			t.Errorf("%s is not a line and a fold:\n%.300s", name, body)
		}
	}
	late := Page{Parts: []Part{{Report: all["all_ok"]}}, Notices: []Notice{Moved(sha)}}
	doubted := Page{Parts: []Part{{Report: all["all_ok"], Doubt: []string{"the log does not verify"}}}}
	foreign := Page{Parts: []Part{{Report: all["all_ok"], Foreign: true}}}
	for name, p := range map[string]Page{
		"toolchains": {Parts: []Part{{Report: all["toolchains"]}}}, "empty": {Parts: []Part{{Report: all["empty"]}}}, "late": late, "doubted": doubted, "foreign": foreign,
		"dry run": {Parts: late.Parts, DryRun: true}, "an older result": {Parts: late.Parts, Notices: []Notice{{"note", "the approval is void"}}},
	} {
		if _, rest, _ := strings.Cut(p.Body(), "\n\n"); strings.HasPrefix(rest, "<details>") {
			t.Errorf("%s: what needs attention is folded", name)
		}
	}
}

// A report that only the pull request's own run vouches for has no mark of success, and nothing
// in it is stated as known.
func TestForeignClaims(t *testing.T) {
	lanetest.SkipShort(t)
	for name, r := range cases() {
		p := Page{Parts: []Part{{Report: r, Foreign: true, Audit: "sealed and complete: 24 entries"}}}
		for _, s := range []string{p.Body(), p.Summary(), p.Check().Title + p.Check().Summary} {
			if strings.Contains(s, "✅") && name != "hostile" {
				t.Errorf("%s: the comment has a ✅", name)
			}
			if strings.Contains(s, "sealed and complete") && !strings.Contains(s, "<code>sealed and complete: 24 entries</code>") || strings.Contains(s, "<p>Enforced:") {
				t.Errorf("%s: the comment states what is not known", name)
			}
		}
		if whole := endOf(r) == endWhole; whole && !strings.HasPrefix(p.Body(), "## fumehood: the "+map[bool]string{true: "fork", false: "pull request"}[r.Run.Fork != ""]+"'s own run reports: ") {
			t.Errorf("%s: begins %.100q", name, p.Body())
		}
	}
}

// Detail and length shorten what is shown, and never what a person is asked to approve.
func TestSized(t *testing.T) {
	lanetest.SkipShort(t)
	base := Page{Parts: []Part{{Report: mixed()}}}
	for detail, want := range map[string][2]bool{config.DetailQuiet: {false, false}, config.DetailNormal: {true, false}, config.DetailFull: {true, true}, "": {true, false}} {
		body := base.Sized(config.Comment{Detail: detail}).Body()
		if got := [2]bool{strings.Contains(body, "=== RUN"), strings.Contains(body, "<details open>")}; got != want || !strings.Contains(body, "want 2.5") || !strings.Contains(body, "net.fetch") {
			t.Errorf("%q: output shown and open: %v, want %v", detail, got, want)
		}
	}
	all := cases()
	for _, name := range sample.EveryNthKey(t, all, 2, 4) {
		r := all[name]
		for _, length := range []int{config.MinComment, 9000, 20000} {
			if n := text.CountUnits(Comment(r, config.Comment{Length: length})); n > length {
				t.Errorf("%s: %d units of at most %d", name, n, length)
			}
		}
	}
	parts := askedFor(15, nil)
	asking := Page{Parts: parts, Pending: &Pending{Command: "/fumehood approve 3fa2b91c"}}
	for _, detail := range config.Details {
		body := asking.Sized(config.Comment{Detail: detail, Length: config.MinComment}).Body()
		if n := strings.Count(body, "sort a\n"); n != 15 {
			t.Errorf("%q: %d of 15 commands that wait are shown", detail, n)
		}
	}
}

// The same denial is explained once, and each command is listed.
func TestExplainedOnce(t *testing.T) {
	body := Page{Parts: []Part{{Report: fifty()}}}.Body()
	if n := strings.Count(body, "needs the network, and the sandbox has none"); n != 1 {
		t.Errorf("one reason is explained %d times", n)
	}
	for i := range 50 {
		if id := fmt.Sprintf("<b><code>check-%02d</code></b>", i+1); strings.Count(body, id) != 1 {
			t.Errorf("%s is shown %d times", id, strings.Count(body, id))
		}
	}
}

// SARIF has what was denied, found and failed, each with a place in a file of the sources.
func TestSARIF(t *testing.T) {
	sources := []string{"stats/stats_test.go"}
	for name, r := range cases() {
		var b bytes.Buffer
		if err := SARIF(&b, r, sources); err != nil {
			t.Fatal(err)
		}
		checkPlain(t, "SARIF", b.String())
		var log sarifLog
		if err := json.Unmarshal(b.Bytes(), &log); err != nil {
			t.Fatal(err)
		}
		rules := map[string]bool{}
		for _, rule := range log.Runs[0].Tool.Driver.Rules {
			rules[rule.ID] = true
		}
		for _, result := range log.Runs[0].Results {
			place := result.Locations[0].Physical
			if !rules[result.Rule] || place.Region.Line < 1 || !slices.Contains([]string{"error", "warning", "note"}, result.Level) || !slices.Contains(append(sources, config.Path), place.Artifact.URI) {
				t.Errorf("%s: %+v", name, result)
			}
		}
	}
	var b bytes.Buffer
	if err := SARIF(&b, mixed(), sources); err != nil {
		t.Fatal(err)
	}
	var log sarifLog
	if err := json.Unmarshal(b.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range log.Runs[0].Results {
		got = append(got, fmt.Sprintf("%s %s %s:%d", r.Level, r.Rule, r.Locations[0].Physical.Artifact.URI, r.Locations[0].Physical.Region.Line))
	}
	want := []string{"error net.fetch .github/fumehood.yml:1", "error shell.stdin-script .github/fumehood.yml:1", "error parse.dynamic-program .github/fumehood.yml:1", "error command.failed stats/stats_test.go:31"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, rule := range log.Runs[0].Tool.Driver.Rules {
		if rule.Short.Text == rule.ID || rule.Help.Text == "" || !strings.HasPrefix(rule.Link, "https://") {
			t.Errorf("the rule %+v has no title, help or link", rule)
		}
	}
}

// TestSARIFSeverity: a rule's severity is GitHub's score and the level of its results, and the
// worst of two counts. Without one there is neither score nor tag.
func TestSARIFSeverity(t *testing.T) {
	r := mixed()
	var reasons []proposal.Reason
	for _, s := range append([]string{""}, valid.Severities...) {
		reasons = append(reasons, proposal.Reason{Rule: "a." + s, Severity: s, Category: s}, proposal.Reason{Rule: "a.both", Severity: s})
	}
	r.Records = []proposal.Record{{Proposal: proposal.Proposal{ID: "x"}, Decision: proposal.Decision{Effect: proposal.Deny, Reasons: reasons}}}
	var b bytes.Buffer
	if err := SARIF(&b, r, nil); err != nil {
		t.Fatal(err)
	}
	var log sarifLog
	if err := json.Unmarshal(b.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, rule := range log.Runs[0].Tool.Driver.Rules {
		if got[rule.ID] = "none"; rule.Properties != nil {
			got[rule.ID] = rule.Properties.Severity + " " + strings.Join(rule.Properties.Tags, ",")
		}
	}
	want := map[string]string{"a.": "none", "a.critical": "9.5 security,critical", "a.high": "8.0 security,high", "a.medium": "5.5 security,medium", "a.low": "2.0 security,low", "a.both": "9.5 security"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	levels := map[string]string{"a.": "error", "a.critical": "error", "a.high": "error", "a.medium": "warning", "a.low": "note"}
	for _, result := range log.Runs[0].Results {
		if want := levels[result.Rule]; want != "" && result.Level != want {
			t.Errorf("%s is %s, want %s", result.Rule, result.Level, want)
		}
	}
}

// JUnit has one case for each command, and one for a run that stopped; its counts are those of the
// cases. It has a failure or an error exactly if the check run is a failure.
func TestJUnit(t *testing.T) {
	lanetest.SkipShort(t)
	for name, r := range cases() {
		var b bytes.Buffer
		if err := JUnit(&b, r); err != nil {
			t.Fatal(err)
		}
		elements, kinds := map[string]int{}, countKinds(trustedCauses(r, false))
		for d := xml.NewDecoder(&b); ; {
			token, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if e, ok := token.(xml.StartElement); ok {
				elements[e.Name.Local]++
			}
		}
		stops := 0
		if r.Error != nil {
			stops = 1
		} else if kinds[failed]+kinds[broken]+kinds[denied] == 0 {
			kinds[broken], kinds[notRun] = kinds[notRun], 0
		}
		if c := (Page{Parts: []Part{{Report: r}}}).Check().Conclusion; (c == "failure" || c == "cancelled") != (elements["failure"]+elements["error"] > 0) {
			t.Errorf("%s: the check's conclusion is %s, JUnit has %v", name, c, elements)
		}
		got := [4]int{elements["testcase"], elements["failure"], elements["error"], elements["skipped"]}
		want := [4]int{len(r.Records) + stops, kinds[failed], kinds[broken] + kinds[denied] + stops, kinds[asked] + kinds[unable] + kinds[before] + kinds[notRun]}
		if got != want {
			t.Errorf("%s: cases, failures, errors and skipped %v, want %v", name, got, want)
		}
	}
}

// Sources are regular files inside the directory; no link is followed.
func TestSourcesIn(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.go", "b/c.go", ".git/config", "b/.git/x"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"etc": "/etc", "passwd": "/etc/passwd", "self": "."} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := SourcesIn(dir)
	if diff := cmp.Diff([]string{"a.go", "b/c.go"}, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if _, err := SourcesIn(filepath.Join(dir, "none")); proposal.FailureOf(err).Code != "report.workspace" {
		t.Error(err)
	}
}
