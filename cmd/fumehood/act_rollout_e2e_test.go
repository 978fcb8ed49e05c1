// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

// trialRule is on trial until a day, which is its argument.
const trialRule = `package fumehood.command

# METADATA
# title: Nothing is sorted
# custom: {rule: acme.sort, text_only: true, mode: observe, until: %s, match: ["sort x"], not_match: [ls]}
deny contains {"rule": "acme.sort", "message": "lists stay as they are", "suggestion": "remove sort"} if {
	input.command.program == "sort"
}
`

// askRule overrides a default rule until a day. Its arguments are the day and the default rule's digest.
const askRule = `
# METADATA
# title: Plans are shown after a look at them
# custom: {rule: judged.verb, owner: platform, reason: reviewers need the plan, ticket: ACME-9, expires: %s%s}
override contains {"rule": "judged.verb", "effect": "ask"} if input.command.tool == "terraform"

# METADATA
# title: terraform is allowed with what no rule denies
# custom: {rule: acme.terraform}
allow contains {"rule": "acme.terraform"} if input.command.tool == "terraform"
`

// A policyTeam is the repository of an organization's policy, and the registry of its bundles.
type policyTeam struct {
	*stage
	repository string
	registry   string
	public     string // key of the bundles
	published  int
}

func newPolicyTeam(s *stage) *policyTeam {
	s.T.Helper()
	p := &policyTeam{stage: s, repository: s.path("policies")}
	bundles := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	s.T.Cleanup(bundles.Close)
	p.registry = strings.TrimPrefix(bundles.URL, "http://")
	s.GitIn("", "init", "-q", "-b", "main", p.repository)
	p.public, _ = p.call(0, "key", "generate", s.path("bundle.key"), "--bundle")
	return p
}

// day returns the date of the roll-out's day n.
func (p *policyTeam) day(n int) string {
	return p.Now().Add(-time.Duration(p.Ahead.Load())).UTC().AddDate(0, 0, n).Format(time.DateOnly)
}

// call runs fumehood in the policy's repository.
func (p *policyTeam) call(code int, args ...string) (stdout, stderr string) {
	p.T.Helper()
	cmd := exec.CommandContext(p.T.Context(), p.Binary, args...)
	var failed strings.Builder
	cmd.Dir, cmd.Stderr = p.repository, &failed
	out, err := cmd.Output()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		p.T.Fatalf("fumehood %q: %v, want exit code %d\n%s%s", args, err, code, out, &failed)
	}
	return string(out), failed.String()
}

// commit writes the rules, as the next commit of the policy.
func (p *policyTeam) commit(rules string) {
	p.T.Helper()
	path := filepath.Join(p.repository, "org", "a.rego")
	p.must(os.MkdirAll(filepath.Dir(path), 0o755))
	p.must(os.WriteFile(path, []byte(rules), 0o644))
	p.GitIn("", "-C", p.repository, "add", "-A")
	p.GitIn("", "-C", p.repository, "commit", "-q", "-m", "policy")
}

// publish signs the last commit as the next revision, and pins it in the workflow of the repository that uses it.
func (p *policyTeam) publish() {
	p.T.Helper()
	p.published++
	file := p.path(fmt.Sprintf("policy-%d.tar.gz", p.published))
	p.call(0, "policy", "bundle", "build", "git:HEAD:org", "--revision", fmt.Sprint(p.published), "--signing-key", p.path("bundle.key"), "--out", file)
	data, err := os.ReadFile(file)
	p.must(err)
	manifest, err := json.Marshal(v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: p.push(types.OCIConfigJSON, []byte("{}")), Layers: []v1.Descriptor{p.push(types.OCILayer, data)}})
	p.must(err)
	digest := p.push(types.OCIManifestSchema1, manifest).Digest
	var with strings.Builder
	for _, line := range []string{"with:", fmt.Sprintf("  organization: oci://%s/acme/policy@%s", p.registry, digest),
		fmt.Sprintf("  minimum-revision: %d", p.published), "  policy-key: |"} {
		fmt.Fprintf(&with, "        %s\n", line)
	}
	for line := range strings.Lines(p.public) {
		with.WriteString("            " + line)
	}
	workflow, err := os.ReadFile("../../.github/examples/one-job.yml")
	p.must(err)
	head, _, found := strings.Cut(string(workflow), "        with:\n")
	if !found {
		p.T.Fatal("the example has no inputs")
	}
	p.addWorkflow("one-job.yml", head+with.String()+"          run: |\n            sort README.md\n            terraform plan\n")
}

// push stores a manifest, or else a blob, in the registry.
func (p *policyTeam) push(media types.MediaType, data []byte) v1.Descriptor {
	p.T.Helper()
	digest, size, err := v1.SHA256(bytes.NewReader(data))
	p.must(err)
	method, path := http.MethodPost, "blobs/uploads/?digest="+digest.String()
	if media.IsImage() {
		method, path = http.MethodPut, "manifests/"+digest.String()
	}
	request, err := http.NewRequestWithContext(p.T.Context(), method, "http://"+p.registry+"/v2/acme/policy/"+path, bytes.NewReader(data))
	p.must(err)
	request.Header.Set("Content-Type", string(media))
	response, err := http.DefaultClient.Do(request)
	p.must(err)
	response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		p.T.Fatalf("the registry refuses %s: %s", media, response.Status)
	}
	return v1.Descriptor{MediaType: media, Digest: digest, Size: size}
}

// playOn runs the workflow on a day of the roll-out, by GitHub's clock, and returns its log and the path
// of the run's audit log.
func (p *policyTeam) playOn(n int, pieces ...string) (r actRun, log string) {
	p.T.Helper()
	p.Ahead.Store(int64(n) * 24 * int64(time.Hour))
	r = p.play("one-job.yml", "pull_request", p.EventPayload("pull_request.opened", nil))
	p.Said = r.log
	jobtest.CheckContains(p.T, fmt.Sprintf("comment of day %d", n), p.BotComment().Body, pieces...)
	for file, data := range p.artifactFiles("fumehood-fumehood") {
		if filepath.Base(file) == jobtest.AuditName {
			log = p.path(fmt.Sprintf("day-%d.jsonl", n))
			p.must(os.WriteFile(log, data, 0o644))
		}
	}
	if log == "" {
		p.T.Fatalf("day %d: no audit log\n%s", n, r.log)
	}
	return r, log
}

// releaseChanged builds a release in which the default rule that is overridden reads otherwise.
func releaseChanged(s *stage) string {
	s.T.Helper()
	tree, dir := s.path("next"), s.path("next-release")
	for _, name := range strings.Split(s.GitIn("", "-C", "../..", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00") {
		data, err := os.ReadFile(filepath.Join("../..", name))
		if name == "" || errors.Is(err, fs.ErrNotExist) { // removed since the last commit
			continue
		}
		s.must(err)
		if name == "policies/command/judged.rego" {
			changed := bytes.Replace(data, []byte(`"mkdocs": {"build", `), []byte(`"mkdocs": {"build", "get-deps", `), 1)
			if bytes.Equal(changed, data) {
				s.T.Fatalf("nothing to change in %s", name)
			}
			data = changed
		}
		s.must(os.MkdirAll(filepath.Dir(filepath.Join(tree, name)), 0o755))
		s.must(os.WriteFile(filepath.Join(tree, name), data, 0o644))
	}
	s.must(runRelease(tree, dir, "v0.0.1-e2e"))
	return dir
}

// An organization rolls a rule out: two weeks in which it is observed, the difference that its end makes, its
// day; an override of a default rule, the override's end; and a new release whose default rule voids the next
// override. Only GitHub's clock moves between the days; no file is changed for a date.
func TestE2EActRollOut(t *testing.T) {
	t.Parallel()
	s := newStage(t, false, nil, nil)
	p := newPolicyTeam(s)
	trial := fmt.Sprintf(trialRule, p.day(14))

	// Two weeks of observation.
	p.commit(trial)
	p.publish()
	var logs []string
	for _, n := range []int{0, 7} {
		r, log := p.playOn(n, "would have been denied by <code>acme.sort</code>", "1 denied", "1 succeeded", "judged.verb")
		if r.code == 0 {
			t.Errorf("day %d: a denied command did not fail the job", n)
		}
		p.checkLog(log, "on trial until "+p.day(14)+", in the policy", `"rule":"acme.sort"`, `"observed":true`)
		logs = append(logs, "--log", log)
	}

	// What its end changes for what ran.
	p.commit(strings.Replace(trial, "mode: observe, until: "+p.day(14)+", ", "", 1))
	difference, _ := p.call(0, append([]string{"policy", "diff", "git:HEAD~1:org", "org", "--as", "organization"}, logs...)...)
	jobtest.CheckContains(t, "difference", difference, "newly allowed: not seen in", "allow → deny, by acme.sort", "sort README.md")

	// The next version asks where the default denies. It needs the digest of the default's rule, which check prints.
	p.commit(trial + fmt.Sprintf(askRule, p.day(28), ""))
	checked, failed := p.call(1, "policy", "check", "--organization", "org")
	digest := regexp.MustCompile(`digest: sha256:[0-9a-f]{12}`).FindString(checked + failed)
	if digest == "" {
		t.Fatalf("no digest in %s%s", checked, failed)
	}
	digest = strings.Replace(digest, ": ", `: "`, 1) + `"`
	p.commit(trial + fmt.Sprintf(askRule, p.day(28), ", "+digest))
	difference, _ = p.call(1, append([]string{"policy", "diff", "git:HEAD~2:org", "org", "--as", "organization"}, logs...)...)
	jobtest.CheckContains(t, "difference", difference, "override judged.verb", "deny → ask", "terraform plan")
	p.publish()

	// The rule's day, and the override's days.
	_, log := p.playOn(14, "1 denied", "denied: <code>acme.sort</code>", "1 waiting", "needs approval: <code>judged.verb</code>",
		"override until <code>"+p.day(28), "owner platform, ticket <code>ACME-9", "Not enforced in this run", "asks in place of denying")
	p.checkLog(log, "override until "+p.day(28)+" in the policy")
	_, log = p.playOn(28, "2 denied", "judged.verb", "denied: <code>judged.verb</code>", "override without effect since <code>"+p.day(28))
	p.checkLog(log, "override without effect since "+p.day(28)+" in the policy")

	// It is renewed, and fumehood's next release has another rule.
	p.commit(trial + fmt.Sprintf(askRule, p.day(60), ", "+digest))
	p.publish()
	p.playOn(29, "1 denied", "1 waiting", "override until <code>"+p.day(60))
	p.release(releaseChanged(s))
	r, log := p.playOn(30, "2 denied", "judged.verb", "override without effect, since the rule has changed")
	p.checkLog(log, "override without effect, since the rule has changed in the policy")
	jobtest.CheckContains(t, "log", r.log, "policy.override", "the override of judged.verb")
}

// checkLog verifies a run's audit log and looks for pieces in it.
func (p *policyTeam) checkLog(log string, pieces ...string) {
	p.T.Helper()
	p.call(0, "verify", log, "--untrusted-key")
	data, err := os.ReadFile(log)
	p.must(err)
	jobtest.CheckContains(p.T, "audit log", string(data), pieces...)
}

// release makes the release in dir the one that the action downloads.
func (s *stage) release(dir string) {
	s.T.Helper()
	files := httptest.NewServer(http.FileServer(http.Dir(dir)))
	s.T.Cleanup(files.Close)
	s.releases = files
	s.copyAction(dir)
}
