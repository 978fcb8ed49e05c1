// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/lanetest"
	"github.com/fumehood/fumehood/pkg/attestation"
	"github.com/fumehood/fumehood/pkg/attestation/attestationtest"
	"github.com/fumehood/fumehood/pkg/audit"
)

// attested is a sealed log with an attestation of it, as files.
type attested struct{ dir, log, bundle, root, identity string }

func newAttested(t *testing.T) attested {
	t.Helper()
	dir := t.TempDir()
	a := attested{dir, filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "bundle.json"), filepath.Join(dir, "root.json"),
		"https://github.com/acme/shop/.github/workflows/evidence.yml@refs/heads/main"}
	log, s := jobtest.ReadFile(t, "../../testdata/vectors/sealed.log"), attestationtest.New(t)
	a.write(t, a.log, log)
	a.write(t, a.bundle, s.Attest(a.identity, attestation.GitHubIssuer, attestationtest.Statement(log), time.Minute))
	a.write(t, a.root, s.Root())
	return a
}

func (a attested) write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// verify runs fumehood verify with the attestation of a, and more flags.
func (a attested) verify(t *testing.T, more ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, warnings bytes.Buffer
	args := append([]string{"verify", a.log, "--attestation", a.bundle, "--trusted-root", a.root, "--certificate-identity", a.identity}, more...)
	code = run(t.Context(), args, nil, &out, &warnings)
	return code, out.String(), warnings.String()
}

// THREATS 94: an attestation makes a sealed log complete, and the answer says as what it is
// attested, by whom and when.
func TestVerifyAttestation(t *testing.T) {
	t.Parallel()
	a := newAttested(t)
	code, stdout, stderr := a.verify(t)
	if code != exitOK || stderr != "" || !strings.HasPrefix(stdout, "sealed and complete: 4 entries, attested as "+attestationtest.PredicateType+" by "+a.identity+" at 20") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	var answer struct {
		State       string            `json:"state"`
		Trusted     bool              `json:"key_trusted"`
		Attestation audit.Attestation `json:"attestation"`
	}
	code, stdout, _ = a.verify(t, "--json")
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil {
		t.Fatal(err)
	}
	by := answer.Attestation
	if code != exitOK || answer.State != "sealed" || !answer.Trusted || by.Time.IsZero() ||
		by.PredicateType != attestationtest.PredicateType || by.Identity != a.identity || by.Issuer != attestation.GitHubIssuer {
		t.Errorf("exit %d: %s", code, stdout)
	}
}

// THREATS 94: exit codes and messages for a log that is not attested.
func TestVerifyAttestationRefuses(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	const log, unsealed, edited = "../../testdata/vectors/sealed-100.log", "../../testdata/vectors/unsealed.log", "../../testdata/vectors/entry-edited.log"
	for name, c := range map[string]struct {
		change func(t *testing.T, a *attested)
		more   []string
		code   int
		want   string
	}{
		"another log":      {func(t *testing.T, a *attested) { a.log = log }, nil, exitRefused, "not about this log: its SHA-256 is not a subject (attestation-subject)"},
		"another identity": {func(t *testing.T, a *attested) { a.identity = "https://x.example" }, nil, exitRefused, "(attestation-identity)"},
		"another issuer":   {nil, []string{"--certificate-oidc-issuer", "https://x.example"}, exitRefused, "(attestation-identity)"},
		"another root":     {func(t *testing.T, a *attested) { a.write(t, a.root, attestationtest.New(t).Root()) }, nil, exitRefused, "(attestation)"},
		"JSON":             {func(t *testing.T, a *attested) { a.log = log }, []string{"--json"}, exitRefused, `"fault":{"code":"attestation-subject"`},
		"not sealed":       {func(t *testing.T, a *attested) { a.log = unsealed }, nil, exitRefused, "unsealed: 4 entries"},
		"altered":          {func(t *testing.T, a *attested) { a.log = edited }, nil, exitRefused, "(entry-changed)"},
		"no bundle":        {func(t *testing.T, a *attested) { a.bundle = "none" }, nil, exitStopped, "attestation.not-readable"},
		"not a bundle":     {func(t *testing.T, a *attested) { a.bundle = a.log }, nil, exitStopped, "attestation.not-readable"},
		"huge bundle":      {func(t *testing.T, a *attested) { a.write(t, a.bundle, make([]byte, 1<<20+1)) }, nil, exitStopped, "larger than 1048576 bytes"},
		"no root":          {func(t *testing.T, a *attested) { a.root = "none" }, nil, exitStopped, "attestation.trusted-root"},
		"no log":           {func(t *testing.T, a *attested) { a.log = "none" }, nil, exitStopped, "audit.not-readable"},
		"no identity":      {func(t *testing.T, a *attested) { a.identity = "" }, nil, exitUsage, "verify --attestation needs"},
		"no bundle named":  {func(t *testing.T, a *attested) { a.bundle = "" }, nil, exitUsage, "verify --attestation needs"},
		"no issuer":        {nil, []string{"--certificate-oidc-issuer", ""}, exitUsage, "verify --attestation needs"},
		"a key":            {nil, []string{"--key", "k"}, exitUsage, "nothing else to trust"},
		"a checkpoint":     {nil, []string{"--checkpoint", "c"}, exitUsage, "nothing else to trust"},
		"any key":          {nil, []string{"--untrusted-key"}, exitUsage, "nothing else to trust"},
		"cosigned":         {nil, []string{"--cosigned", "c"}, exitUsage, "nothing else to trust"},
		"a proof":          {nil, []string{"--proof", "p"}, exitUsage, "nothing else to trust"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAttested(t)
			if c.change != nil {
				c.change(t, &a)
			}
			if code, stdout, stderr := a.verify(t, c.more...); code != c.code || !strings.Contains(stdout+stderr, c.want) || strings.Contains(stdout, "complete") {
				t.Errorf("exit %d, want %d and %q:\n%s%s", code, c.code, c.want, stdout, stderr)
			}
		})
	}
}
