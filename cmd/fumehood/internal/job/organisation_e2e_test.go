// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package job_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/github/githubtest"
	"github.com/fumehood/fumehood/internal/policy"
	policysource "github.com/fumehood/fumehood/internal/policy/source"
)

// An acme is an organization with a registry, a key, and a bundle that denies grep.
type acme struct {
	spec, key string
	sign      func(revision string, age time.Duration, data string) []byte // such a bundle, with this acme/data.json
}

func newAcme(t *testing.T) acme {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	pkix, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600); err != nil {
		t.Fatal(err)
	}
	signer, err := policysource.ReadSigner(file)
	if err != nil {
		t.Fatal(err)
	}
	a := acme{key: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pkix}))}
	a.sign = func(revision string, age time.Duration, denied string) []byte {
		data, err := policysource.Build(policysource.Recipe{Revision: revision, MaxCopyAge: age, Files: []policy.File{
			{Name: "rules.rego", Content: []byte(jobtest.AcmeRules)}, {Name: "acme/data.json", Content: []byte(denied)}}})
		if err == nil {
			data, err = signer.Sign("bundle", data, policysource.DefaultKeyID, "")
		}
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	a.spec = serveBundle(t, a.sign("3", 0, `{"denied":["grep"]}`))
	return a
}

// serveBundle serves a registry with one artifact.
func serveBundle(t *testing.T, data []byte) string {
	t.Helper()
	manifest := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"%s","size":2},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"%s","size":%d}]}`,
		policysource.Digest([]byte("{}")), policysource.Digest(data), len(data))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v2/": // without credentials
		case strings.HasSuffix(r.URL.Path, "/manifests/"+policysource.Digest(manifest)):
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			w.Header().Set("Content-Length", fmt.Sprint(len(manifest)))
			w.Header().Set("Docker-Content-Digest", policysource.Digest(manifest))
			w.Write(manifest)
		case strings.HasSuffix(r.URL.Path, "/blobs/"+policysource.Digest(data)):
			w.Write(data)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return "oci://" + strings.TrimPrefix(server.URL, "http://") + "/acme/policy@" + policysource.Digest(manifest)
}

// An organization's bundle applies in both workflows of a fork's pull request,
// together with the repository's own rules, and the comment says where it came from.
func TestE2EActionOrganisation(t *testing.T) {
	t.Parallel()
	a := newAcme(t)
	own := "package fumehood.command\n\ndeny contains {\"rule\": \"own.curl\", \"message\": \"m\", \"suggestion\": \"s\"} if input.command.program == \"curl\"\n"
	w := newWorld(t, true, map[string]string{".github/fumehood/a.rego": own}, map[string]string{".github/fumehood/a.rego": "package fumehood.command\nallow contains {\"rule\": \"x.all\"} if true\n"})
	keys := newAcme(t).key + "\n" + a.key // any one of them signs
	inputs := []string{"INPUT_ORGANIZATION=" + a.spec, "INPUT_POLICY_KEY=" + keys, "INPUT_MINIMUM_REVISION=3"}
	w.SetPermissions("contents:read", "pull_requests:read")
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil), inputs...)
	jobtest.CheckContains(t, "summary", s.Summary, "acme.grep", "own.curl", "revision 3", "signed by sha256:", "git:master:.github/fumehood at "+w.Base[:12])
	if s.Code != cli.Refused || s.Outputs["allowed"] != "0" || s.Outputs["denied"] != "3" {
		t.Errorf("exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
	}
	w.UploadArtifact(s, nil)
	w.SetPermissions("contents:read", "pull_requests:write", "actions:read")
	w.RunReport(nil, inputs...)
	body := w.BotComment().Body
	jobtest.CheckContains(t, "comment", body, "acme.grep", "own.curl", "revision 3", "signed by sha256:", "oci://127.0.0.1")
	if strings.Contains(body, "policy other than") {
		t.Errorf("the comment doubts an honest report:\n%s", body)
	}
	w.RunReport(nil) // the reporting workflow lacks the organization
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "policy other than")
}

// Nothing runs under a bundle other than the requested one.
func TestE2EActionOrganisationRefused(t *testing.T) {
	t.Parallel()
	a, b := newAcme(t), newAcme(t)
	w := newWorld(t, false, nil, nil)
	for name, tt := range map[string]struct {
		inputs []string
		code   string
	}{
		"another key":        {[]string{"INPUT_ORGANIZATION=" + a.spec, "INPUT_POLICY_KEY=" + b.key}, "policy.signature"},
		"neither of two":     {[]string{"INPUT_ORGANIZATION=" + a.spec, "INPUT_POLICY_KEY=" + b.key + "\n" + newAcme(t).key}, "policy.signature"},
		"an old one":         {[]string{"INPUT_ORGANIZATION=" + a.spec, "INPUT_POLICY_KEY=" + a.key, "INPUT_MINIMUM_REVISION=4"}, "policy.revision"},
		"not there":          {[]string{"INPUT_ORGANIZATION=" + a.spec[:len(a.spec)-4] + "0000"}, "policy.fetch"},
		"a key for nothing":  {[]string{"INPUT_POLICY_KEY=" + a.key}, "input.organisation"},
		"an age for nothing": {[]string{"INPUT_MINIMUM_REVISION=4"}, "input.organisation"},
	} {
		t.Run(name, func(t *testing.T) {
			s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), tt.inputs...)
			if s.Code != cli.Stopped || s.Outputs["conclusion"] != "error" {
				t.Errorf("exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
			}
			jobtest.CheckContains(t, "comment", w.BotComment().Body, tt.code)
			if strings.Contains(s.Log, "greet") {
				t.Errorf("something ran:\n%s", s.Log)
			}
		})
	}
}

// A shelf is a private repository on GitHub with the organization's bundle, and the token of an app that reads it.
type shelf struct {
	w     *jobtest.World
	git   string
	token string
}

func newShelf(w *jobtest.World) *shelf {
	s := &shelf{w: w, git: filepath.Join(w.Dir, "policy.git"), token: "ghs_ThisIsTheTokenOfThePolicyApp00000000"}
	w.GitIn("", "init", "-q", "--bare", "--template=", "-b", "main", s.git)
	w.GH.AddRepository(githubtest.Repository{Name: "acme/policy", Private: true, Git: s.git})
	w.GH.AddToken(s.token, githubtest.Token{Login: "policy[bot]", Permissions: map[string]string{"contents": "read"}, Repositories: []string{"acme/policy"}})
	return s
}

// put commits a bundle to the branch main.
func (s *shelf) put(data []byte) (commit string) {
	commit = s.w.Commit(s.git, "policy", "", map[string]string{"out/policy.tar.gz": string(data)})
	s.w.GitIn(s.git, "update-ref", "refs/heads/main", commit)
	return commit
}

// An organization's private policy is read with the token of an app. What its branch names applies to the next
// run, without a change of the repository.
func TestE2EActionOrganisationOnGitHub(t *testing.T) {
	t.Parallel()
	a, w := newAcme(t), newWorld(t, false, nil, nil)
	shelf := newShelf(w.World)
	inputs := []string{"INPUT_ORGANIZATION=github:acme/policy/out/policy.tar.gz@main", "INPUT_POLICY_KEY=" + a.key, "INPUT_MINIMUM_REVISION=3",
		"INPUT_ORGANIZATION_TOKEN=" + shelf.token}
	run := func(code int, more ...string) jobtest.Step {
		t.Helper()
		s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), append(inputs, more...)...)
		if s.Code != code {
			t.Errorf("exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
		}
		if strings.Contains(w.BotComment().Body, shelf.token) || code == cli.Stopped && s.Outputs["allowed"] != "0" {
			t.Errorf("outputs %q, comment:\n%s", s.Outputs, w.BotComment().Body)
		}
		return s
	}
	commit := shelf.put(a.sign("3", 0, `{"denied":["grep"]}`))
	s := run(cli.Refused)
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "acme.grep", "github:acme/policy/out/policy.tar.gz@main at "+commit[:12], "revision 3", "signed by sha256:")
	log, err := os.ReadFile(s.Outputs["audit-log"])
	if err != nil {
		t.Fatal(err)
	}
	jobtest.CheckContains(t, "log", string(log), commit, `"kind":"github"`, `"signed_by":"sha256:`)

	commit = shelf.put(a.sign("4", time.Hour, `{"denied":["nothing"]}`))
	cache := "RUNNER_TEMP=" + s.Temp
	if s := run(cli.Refused, cache, "INPUT_ORGANIZATION_CACHE=copies"); s.Outputs["allowed"] == "0" { // curl is denied
		t.Errorf("the moved branch has no effect: %q\n%s", s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "at "+commit[:12], "revision 4")

	limited := githubtest.Fault{Op: "repos/get-commit", Kind: githubtest.PrimaryLimit, Delay: time.Hour, Count: -1}
	w.GH.InjectFault(limited)
	run(cli.Stopped)
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "policy.fetch", "rate")
	s = run(cli.Refused, cache, "INPUT_ORGANIZATION_CACHE=copies")
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "at "+commit[:12], "revision 4", "copy of 20", "GitHub did not answer")
	jobtest.CheckContains(t, "log", s.Log, "::warning", "copy of 20")
	w.GH.RemoveFaults()

	shelf.put(a.sign("2", time.Hour, `{"denied":["nothing"]}`))
	run(cli.Stopped, cache, "INPUT_ORGANIZATION_CACHE=copies")
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "policy.revision")
	run(cli.Stopped, "INPUT_ORGANIZATION_TOKEN=", cache, "INPUT_ORGANIZATION_CACHE=copies")
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "policy.fetch", "404", "organization-token")
}
