// SPDX-License-Identifier: Apache-2.0

package attestation_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/testing/data"

	"github.com/fumehood/fumehood/internal/lanetest"
	"github.com/fumehood/fumehood/pkg/attestation"
	"github.com/fumehood/fumehood/pkg/attestation/attestationtest"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	identity = "https://github.com/acme/shop/.github/workflows/evidence.yml@refs/heads/main"
	issuer   = attestation.GitHubIssuer
)

func vector(t *testing.T, name string) []byte {
	t.Helper()
	log, err := os.ReadFile(filepath.Join("../../testdata/vectors", name))
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// read writes the files and reads them.
func read(t *testing.T, bundle, root []byte) (*attestation.Check, error) {
	t.Helper()
	dir := t.TempDir()
	o := attestation.Options{Bundle: filepath.Join(dir, "bundle"), Root: filepath.Join(dir, "root"), Identity: identity, Issuer: issuer}
	for path, data := range map[string][]byte{o.Bundle: bundle, o.Root: root} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return attestation.Read(o)
}

func inspect(t *testing.T, log, bundle, root []byte) audit.Finding {
	t.Helper()
	check, err := read(t, bundle, root)
	if err != nil {
		t.Fatal(err)
	}
	return check.Inspect(bytes.NewReader(log))
}

func wantComplete(t *testing.T, found audit.Finding) {
	t.Helper()
	if !found.Complete() || found.Attested.PredicateType != attestationtest.PredicateType || found.Attested.Identity != identity || found.Attested.Issuer != issuer ||
		time.Since(found.Attested.Time).Abs() > time.Hour {
		t.Errorf("complete %v, attested %+v: %s", found.Complete(), found.Attested, found)
	}
}

func wantCode(t *testing.T, found audit.Finding, code string) {
	t.Helper()
	var fault *audit.VerifyError
	if found.Complete() || found.KeyTrusted || found.Attested != (audit.Attestation{}) || !errors.As(found.Fault, &fault) || fault.Code != code {
		t.Errorf("complete %v, attested %+v, want %s: %s", found.Complete(), found.Attested, code, found)
	}
}

// THREATS 94: an attestation of this log, by this identity, vouches for it. So it does among
// others, and under each trusted root whose proofs it has.
func TestAttested(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	log, s, another := vector(t, "sealed.log"), attestationtest.New(t), attestationtest.New(t)
	bundle := s.Attest(identity, issuer, attestationtest.Statement(log), time.Minute)
	foreign := another.Attest(identity, issuer, attestationtest.Statement(log), time.Minute)
	both, logOnly, timeOnly, _, _ := s.Roots()
	for _, root := range [][]byte{both, logOnly, timeOnly, append(append(another.Root(), '\n'), both...)} {
		wantComplete(t, inspect(t, log, bundle, root))
	}
	wantComplete(t, inspect(t, log, append(append(foreign, '\n'), bundle...), both))
}

// THREATS 94: what is not an attestation of this log by this identity does not vouch for it.
func TestAttestedRefuses(t *testing.T) {
	t.Parallel()
	log, s := vector(t, "sealed.log"), attestationtest.New(t)
	statement := attestationtest.Statement(log)
	right := s.Attest(identity, issuer, statement, time.Minute)
	both, logOnly, timeOnly, neither, certificates := s.Roots()
	for name, c := range map[string]struct {
		bundle, root []byte
		code         string
	}{
		"another log":            {s.Attest(identity, issuer, attestationtest.Statement(vector(t, "sealed-100.log")), time.Minute), both, attestation.CodeSubject},
		"no subject":             {s.Attest(identity, issuer, []byte(`{"_type":"https://in-toto.io/Statement/v1","predicateType":"x"}`), time.Minute), both, attestation.CodeSubject},
		"the digest as SHA-512":  {s.Attest(identity, issuer, bytes.ReplaceAll(statement, []byte(`"sha256"`), []byte(`"sha512"`)), time.Minute), both, attestation.CodeSubject},
		"another identity":       {s.Attest(identity+"2", issuer, statement, time.Minute), both, attestation.CodeSigner},
		"identity as a part":     {s.Attest("x"+identity, issuer, statement, time.Minute), both, attestation.CodeSigner},
		"another issuer":         {s.Attest(identity, "https://issuer.example", statement, time.Minute), both, attestation.CodeSigner},
		"another root":           {right, attestationtest.New(t).Root(), attestation.CodeInvalid},
		"certificate expired":    {s.Attest(identity, issuer, statement, 11*time.Minute), both, attestation.CodeInvalid},
		"not yet valid":          {s.Attest(identity, issuer, statement, -time.Minute), both, attestation.CodeInvalid},
		"a file's signature":     {s.Sign(identity, issuer, log), both, attestation.CodeInvalid},
		"envelope tampered with": {tampered(t, right, func(s string) string { return strings.ReplaceAll(s, "reported/v1", "reported/v2") }), both, attestation.CodeInvalid},
		"tampered, not logged":   {tampered(t, right, func(s string) string { return strings.ReplaceAll(s, "reported/v1", "reported/v2") }), timeOnly, attestation.CodeInvalid},
		"a key, no certificate":  {keyed(t, right), both, attestation.CodeInvalid},
		"two signatures":         {twice(t, right), both, attestation.CodeInvalid},
		"no log entry":           {without(t, right, "tlogEntries"), logOnly, attestation.CodeInvalid},
		"no log entry but times": {without(t, right, "tlogEntries"), both, attestation.CodeInvalid},
		"no timestamp":           {without(t, right, "timestampVerificationData"), timeOnly, attestation.CodeInvalid},
		"nothing to prove times": {right, neither, attestation.CodeInvalid},
		"certificate not logged": {right, certificates, attestation.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantCode(t, inspect(t, log, c.bundle, c.root), c.code)
		})
	}
}

// edited returns a bundle that edit has changed.
func edited(t *testing.T, bundle []byte, edit func(map[string]any)) []byte {
	t.Helper()
	var b map[string]any
	if err := json.Unmarshal(bundle, &b); err != nil {
		t.Fatal(err)
	}
	edit(b)
	data, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func tampered(t *testing.T, bundle []byte, edit func(string) string) []byte {
	return edited(t, bundle, func(b map[string]any) {
		envelope := b["dsseEnvelope"].(map[string]any)
		payload, err := base64.StdEncoding.DecodeString(envelope["payload"].(string))
		if err != nil || edit(string(payload)) == string(payload) {
			t.Fatal("nothing to change", err)
		}
		envelope["payload"] = []byte(edit(string(payload)))
	})
}

func twice(t *testing.T, bundle []byte) []byte {
	return edited(t, bundle, func(b map[string]any) {
		envelope := b["dsseEnvelope"].(map[string]any)
		list := envelope["signatures"].([]any)
		envelope["signatures"] = append(list, list[0])
	})
}

func keyed(t *testing.T, bundle []byte) []byte {
	return edited(t, bundle, func(b map[string]any) {
		material := b["verificationMaterial"].(map[string]any)
		delete(material, "certificate")
		material["publicKey"] = map[string]string{"hint": "key"}
	})
}

func without(t *testing.T, bundle []byte, part string) []byte {
	return edited(t, bundle, func(b map[string]any) { delete(b["verificationMaterial"].(map[string]any), part) })
}

// THREATS 94: an attestation does not make a log whole. A log that was altered later is not the
// one that was attested, whatever is altered.
func TestAttestedLog(t *testing.T) {
	t.Parallel()
	s := attestationtest.New(t)
	unsealed := vector(t, "unsealed.log")
	found := inspect(t, unsealed, s.Attest(identity, issuer, attestationtest.Statement(unsealed), time.Minute), s.Root())
	if found.Complete() || found.State != audit.Unsealed || found.KeyTrusted {
		t.Errorf("unsealed: %s", found)
	}
	changed := vector(t, "entry-edited.log")
	wantCode(t, inspect(t, changed, s.Attest(identity, issuer, attestationtest.Statement(changed), time.Minute), s.Root()), audit.CodeChanged)
	more := vector(t, "sealed-then-byte.log")
	wantCode(t, inspect(t, more, s.Attest(identity, issuer, attestationtest.Statement(more), time.Minute), s.Root()), audit.CodeAfterSeal)

	log := vector(t, "sealed.log")
	bundle := s.Attest(identity, issuer, attestationtest.Statement(log), time.Minute)
	wantCode(t, inspect(t, vector(t, "sealed-empty.log"), bundle, s.Root()), attestation.CodeSubject) // sealed anew
	wantCode(t, inspect(t, append(bytes.Clone(log), '\n'), bundle, s.Root()), audit.CodeAfterSeal)
}

// An attestation of npm's, in the public log and with a certificate that is logged: under the
// public trusted root only the subject and the signer are wrong.
func TestAttestedPublic(t *testing.T) {
	t.Parallel()
	bundle, err := json.Marshal(data.Bundle(t, "sigstore.js@2.0.0-provenance.sigstore.json"))
	if err != nil {
		t.Fatal(err)
	}
	root, err := json.Marshal(data.TrustedRoot(t, "public-good.json"))
	if err != nil {
		t.Fatal(err)
	}
	found := inspect(t, vector(t, "sealed.log"), bundle, root)
	wantCode(t, found, attestation.CodeSigner)
	if !strings.Contains(found.String(), "sigstore/sigstore-js/.github/workflows/release.yml") {
		t.Error(found)
	}
}

// What cannot be read stops: it is larger than its limit, has too many values, or is something
// else.
func TestReadAttestationRefuses(t *testing.T) {
	t.Parallel()
	log, s := vector(t, "sealed.log"), attestationtest.New(t)
	bundle, root := s.Attest(identity, issuer, attestationtest.Statement(log), time.Minute), s.Root()
	padding := bytes.Repeat([]byte(" "), 1<<20)
	for name, c := range map[string]struct {
		bundle, root []byte
		code         string
	}{
		"huge bundle":     {append(bytes.Clone(bundle), padding...), root, "attestation.not-readable"},
		"many bundles":    {bytes.Repeat(append(bytes.Clone(bundle), '\n'), 33), root, "attestation.not-readable"},
		"empty bundle":    {nil, root, "attestation.not-readable"},
		"not JSON":        {[]byte("-----BEGIN"), root, "attestation.not-readable"},
		"JSON, no bundle": {[]byte(`{}`), root, "attestation.not-readable"},
		"null":            {[]byte(`null`), root, "attestation.not-readable"},
		"something after": {append(bytes.Clone(bundle), "x"...), root, "attestation.not-readable"},
		"a root":          {root, root, "attestation.not-readable"},
		"huge root":       {bundle, append(bytes.Clone(root), padding...), "attestation.trusted-root"},
		"root not JSON":   {bundle, []byte("no"), "attestation.trusted-root"},
		"empty root":      {bundle, nil, "attestation.trusted-root"},
		"bundle as root":  {bundle, bundle, "attestation.trusted-root"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stop *proposal.StopError
			if _, err := read(t, c.bundle, c.root); !errors.As(err, &stop) || stop.Code != c.code || stop.Hint == "" {
				t.Errorf("%v, want %s", err, c.code)
			}
		})
	}
	for _, o := range []attestation.Options{{Issuer: issuer}, {Identity: identity}} {
		var stop *proposal.StopError
		if _, err := attestation.Read(o); !errors.As(err, &stop) || stop.Code != "attestation.signer" {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
