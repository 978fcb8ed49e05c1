// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

// verifiers are the programs that docs/EVIDENCE.md verifies attestations with. gh of a distribution
// can be older than attestations.
var verifiers = []struct{ name, module, version string }{
	{"cosign", "github.com/sigstore/cosign/v3", "v3.1.3"},
	{"gh", "github.com/cli/cli/v2", "v2.83.0"},
}

// installVerifiers returns a PATH with the verifiers. They are in the user's cache, and are built
// when they are not, each as its own module: go install would ask the proxy for all its versions.
func installVerifiers(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	path := os.Getenv("PATH")
	for _, v := range verifiers {
		dir := filepath.Join(cache, "fumehood-test", "verifiers", v.name+"-"+v.version)
		path = dir + ":" + path
		if _, err := os.Stat(filepath.Join(dir, v.name)); err == nil {
			continue
		}
		began := time.Now()
		source := struct{ Dir string }{}
		found := runGo(t, t.TempDir(), "mod", "download", "-json", v.module+"@"+v.version)
		if err := json.Unmarshal(found, &source); err != nil {
			t.Fatal(err)
		}
		runGo(t, source.Dir, "build", "-o", dir+"/", "./cmd/"+v.name)
		t.Logf("built %s in %s", v.name, time.Since(began).Round(time.Second))
	}
	return path
}

// runGo returns what the go command prints.
func runGo(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	var stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir, command.Stderr = dir, &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s%s", args[0], err, out, &stderr)
	}
	return out
}

// documentedCommands returns the block of docs/EVIDENCE.md that has a command.
func documentedCommands(t *testing.T, command string) string {
	t.Helper()
	page := jobtest.ReadFile(t, "../../docs/EVIDENCE.md")
	block := regexp.MustCompile("(?ms)^```sh\n([^`]*^" + regexp.QuoteMeta(command) + " .*?)^```$").FindSubmatch(page)
	if block == nil {
		t.Fatalf("no block has %s", command)
	}
	return strings.ReplaceAll(string(block[1]), "OWNER/NAME", "acme/shop")
}

// THREATS 94: the documented commands accept a log that the named workflow has attested, and no other,
// without a network. Only gh compares the repository that called the workflow.
func TestNightlyAttestation(t *testing.T) {
	path := installVerifiers(t)
	log := jobtest.ReadFile(t, "../../testdata/vectors/sealed.log")
	instance, otherRoot := newSigstore(t, "sigstore.dev"), newSigstore(t, "sigstore.dev").trustedRoot()
	right := attestation{
		repository: "https://github.com/acme/shop", identity: "https://github.com/acme/shop/.github/workflows/evidence.yml@refs/heads/main",
		issuer: "https://token.actions.githubusercontent.com", predicateType: "https://github.com/fumehood/fumehood/reported-log/v1",
		file: log, later: time.Minute, promised: true, logged: true,
	}
	changed := func(change func(*attestation)) []byte {
		a := right
		change(&a)
		return instance.attest(a)
	}
	bundle, root := instance.attest(right), append(instance.trustedRoot(), newSigstore(t, "acme").trustedRoot()...) // of two instances
	edited, unsealed := jobtest.ReadFile(t, "../../testdata/vectors/entry-edited.log"), jobtest.ReadFile(t, "../../testdata/vectors/unsealed.log")
	for name, c := range map[string]struct {
		log, bundle, root []byte
		gh, cosign        bool // it accepts the log
	}{
		"attested":             {log, bundle, root, true, true},
		"another log":          {jobtest.ReadFile(t, "../../testdata/vectors/sealed-100.log"), bundle, root, false, false},
		"one byte more":        {append(bytes.Clone(log), '\n'), bundle, root, false, false},
		"another workflow":     {log, changed(func(a *attestation) { a.identity += "2" }), root, false, false},
		"another repository":   {log, changed(func(a *attestation) { a.repository = "https://github.com/acme/fork" }), root, false, true},
		"another issuer":       {log, changed(func(a *attestation) { a.issuer = "https://issuer.example" }), root, false, false},
		"another predicate":    {log, changed(func(a *attestation) { a.predicateType = "https://slsa.dev/provenance/v1" }), root, false, false},
		"another root":         {log, bundle, otherRoot, false, false},
		"expired":              {log, changed(func(a *attestation) { a.later = 11 * time.Minute }), root, false, false},
		"not yet valid":        {log, changed(func(a *attestation) { a.later = -time.Minute }), root, false, false},
		"not promised":         {log, changed(func(a *attestation) { a.promised = false }), root, false, false},
		"not logged":           {log, changed(func(a *attestation) { a.logged = false }), root, false, false},
		"tampered":             {log, bytes.Replace(bundle, []byte(`"payload":"eyJ`), []byte(`"payload":"eyK`), 1), root, false, false},
		"attested and altered": {edited, changed(func(a *attestation) { a.file = edited }), root, false, false},
		"attested, not sealed": {unsealed, changed(func(a *attestation) { a.file = unsealed }), root, false, false},
	} {
		for command, accepted := range map[string]bool{"gh attestation verify": c.gh, "cosign verify-blob-attestation": c.cosign} {
			t.Run(name+"/"+command, func(t *testing.T) {
				dir := t.TempDir()
				for file, data := range map[string][]byte{"audit.jsonl": c.log, "bundle.jsonl": c.bundle, "trusted_root.jsonl": c.root} {
					if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				shell := exec.CommandContext(t.Context(), "sh", "-ec", documentedCommands(t, command))
				shell.Dir, shell.Env = dir, []string{"PATH=" + path, "HOME=" + dir}
				shell.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
				out, err := shell.CombinedOutput()
				if (err == nil) != accepted || accepted != bytes.Contains(out, []byte("consistent and sealed: 4 entries")) {
					t.Errorf("%v, accepted %v:\n%s", err, accepted, out)
				}
			})
		}
	}
}
