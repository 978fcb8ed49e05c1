// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/github/githubtest"
)

// The inputs of docs/ORGANIZATION.md, with the secret as the app's token.
const organizationInputs = `
          organization: github:acme/policy/policy.tar.gz@main
          organization-token: ${{ secrets.POLICY_TOKEN }}
          minimum-revision: "1"
          policy-key: |
            `

// A commit to the private repository of the organization's policy is in force for the next run of the same
// workflow. Without the secret, as in a workflow on a fork's pull request, nothing runs.
func TestE2EActOrganization(t *testing.T) {
	t.Parallel()
	const token = "ghs_ThisIsTheTokenOfThePolicyApp00000000"
	s := newStage(t, false, nil, nil)
	git := s.path("policy.git")
	s.GitIn("", "init", "-q", "--bare", "--template=", "-b", "main", git)
	s.GH.AddRepository(githubtest.Repository{Name: "acme/policy", Private: true, Git: git})
	s.GH.AddToken(token, githubtest.Token{Login: "policy[bot]", Permissions: map[string]string{"contents": "read"}, Repositories: []string{"acme/policy"}})
	work := s.path("work")
	s.must(os.MkdirAll(filepath.Join(work, "policy"), 0o755))
	fumehood := func(args ...string) string {
		cmd := exec.Command(s.Binary, args...)
		cmd.Dir = work
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return string(out)
	}
	publish := func(revision, denied string) (commit string) {
		s.must(os.WriteFile(filepath.Join(work, "policy/rules.rego"), []byte(strings.ReplaceAll(jobtest.AcmeRules, "data.acme.denied", `{"`+denied+`"}`)), 0o600))
		fumehood("policy", "bundle", "build", "policy", "--revision", revision, "--max-copy-age", "24h", "--signing-key", "policy.pem", "--out", "policy.tar.gz")
		bundle, err := os.ReadFile(filepath.Join(work, "policy.tar.gz"))
		s.must(err)
		commit = s.Commit(git, "policy", "", map[string]string{"policy.tar.gz": string(bundle)})
		s.GitIn(git, "update-ref", "refs/heads/main", commit)
		return commit
	}
	key := fumehood("key", "generate", "policy.pem", "--bundle")
	inputs := organizationInputs + strings.ReplaceAll(strings.TrimSpace(key), "\n", "\n            ")
	s.edit("one-job.yml", "run: npm test", "run: "+show+inputs)
	payload := s.EventPayload("pull_request.opened", nil)

	commit := publish("1", "cat")
	r := s.play("one-job.yml", "pull_request", payload)
	if r.code == 0 || !strings.Contains(s.BotComment().Body, "policy.fetch") {
		t.Fatalf("without the token: exit %d\n%s", r.code, r.log)
	}
	s.local = append(s.local, "-s", "POLICY_TOKEN="+token)
	r = s.play("one-job.yml", "pull_request", payload)
	jobtest.CheckContains(t, "comment", s.BotComment().Body, "acme.grep", "at "+commit[:12], "revision 1", "signed by sha256:")
	if r.code == 0 || strings.Contains(r.log, token) {
		t.Errorf("exit %d\n%s", r.code, r.log)
	}
	commit = publish("2", "grep")
	if r = s.play("one-job.yml", "pull_request", payload); r.code != 0 {
		t.Errorf("exit %d\n%s", r.code, r.log)
	}
	jobtest.CheckContains(t, "comment", s.BotComment().Body, "1 succeeded", "at "+commit[:12], "revision 2")
}
