// SPDX-License-Identifier: Apache-2.0

// Package attestationtest is a Sigstore for tests: it signs statements about files, and has a
// trusted root.
package attestationtest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"google.golang.org/protobuf/encoding/protojson"
)

// PredicateType is the type of the predicate in every statement.
const PredicateType = "https://test.example/reported/v1"

// A Sigstore has a certificate authority, a transparency log and a timestamp authority.
type Sigstore struct {
	t  testing.TB
	ca *ca.VirtualSigstore
}

// New makes a Sigstore with new keys.
func New(t testing.TB) *Sigstore {
	t.Helper()
	virtual, err := ca.NewVirtualSigstore()
	check(t, err)
	return &Sigstore{t, virtual}
}

// Roots returns trusted roots: with the transparency log and the timestamp authority, with only
// one of them, with neither, and with a log of certificates in addition.
func (s *Sigstore) Roots() (both, logOnly, timeOnly, neither, certificates []byte) {
	logs := s.ca.RekorLogs()
	for id, log := range logs {
		var err error
		log.ID, err = hex.DecodeString(id)
		check(s.t, err)
	}
	return s.root(logs, s.ca.TimestampingAuthorities(), nil), s.root(logs, nil, nil), s.root(nil, s.ca.TimestampingAuthorities(), nil), s.root(nil, nil, nil),
		s.root(logs, s.ca.TimestampingAuthorities(), s.ca.CTLogs())
}

func (s *Sigstore) root(logs map[string]*root.TransparencyLog, times []root.TimestampingAuthority, certificates map[string]*root.TransparencyLog) []byte {
	r, err := root.NewTrustedRoot(root.TrustedRootMediaType01, s.ca.FulcioCertificateAuthorities(), certificates, times, logs)
	check(s.t, err)
	data, err := json.Marshal(r)
	check(s.t, err)
	return data
}

// Root returns a trusted root with the transparency log and the timestamp authority.
func (s *Sigstore) Root() []byte {
	both, _, _, _, _ := s.Roots()
	return both
}

// Statement returns an in-toto statement about a file with this content.
func Statement(file []byte) []byte {
	return fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"other","digest":{"sha256":"%064d"}},`+
		`{"name":"audit.jsonl","digest":{"sha256":"%x"}}],"predicateType":%q,"predicate":{"pull_request":"1"}}`, 0, sha256.Sum256(file), PredicateType)
}

// Attest returns a bundle with the statement. The certificate is valid for ten minutes from now;
// the transparency log has signed it this much later.
func (s *Sigstore) Attest(identity, issuer string, statement []byte, later time.Duration) []byte {
	s.t.Helper()
	entity, err := s.ca.AttestAtTime(identity, issuer, statement, time.Now().Add(later), true)
	check(s.t, err)
	content, err := entity.SignatureContent()
	check(s.t, err)
	return s.bundle(entity, "dsseEnvelope", content.EnvelopeContent().RawEnvelope())
}

// Sign returns a bundle with a signature of a file, without a statement.
func (s *Sigstore) Sign(identity, issuer string, file []byte) []byte {
	s.t.Helper()
	entity, err := s.ca.Sign(identity, issuer, file)
	check(s.t, err)
	content, err := entity.SignatureContent()
	check(s.t, err)
	message := content.MessageSignatureContent()
	return s.bundle(entity, "messageSignature", map[string]any{
		"messageDigest": map[string]any{"algorithm": "SHA2_256", "digest": message.Digest()}, "signature": message.Signature(),
	})
}

// kinds are the kinds of entries in the transparency log, by the bundle's content.
var kinds = map[string]string{"dsseEnvelope": "dsse", "messageSignature": "hashedrekord"}

func (s *Sigstore) bundle(entity *ca.TestEntity, kind string, content any) []byte {
	s.t.Helper()
	material, err := entity.VerificationContent()
	check(s.t, err)
	times, err := entity.Timestamps()
	check(s.t, err)
	entries, err := entity.TlogEntries()
	check(s.t, err)
	media := "application/vnd.dev.sigstore.bundle.v0.3+json"
	if !entries[0].HasInclusionProof() {
		media = "application/vnd.dev.sigstore.bundle+json;version=0.1"
	}
	data, err := json.Marshal(map[string]any{
		"mediaType": media, kind: content,
		"verificationMaterial": map[string]any{
			"certificate":               map[string]any{"rawBytes": material.Certificate().Raw},
			"tlogEntries":               []any{s.entry(entries[0], kinds[kind])},
			"timestampVerificationData": map[string]any{"rfc3161Timestamps": []any{map[string]any{"signedTimestamp": times[0]}}},
		},
	})
	check(s.t, err)
	return data
}

// entry returns the entry of the transparency log with what it does not have of its own: its
// kind, and the log's signature of its time.
func (s *Sigstore) entry(e *tlog.Entry, kind string) map[string]any {
	s.t.Helper()
	plain := e.TransparencyLogEntry()
	encoded, err := protojson.Marshal(plain)
	check(s.t, err)
	var entry map[string]any
	check(s.t, json.Unmarshal(encoded, &entry))
	id, err := s.ca.RekorLogID()
	check(s.t, err)
	promise, err := s.ca.RekorSignPayload(tlog.RekorPayload{Body: plain.CanonicalizedBody, IntegratedTime: plain.IntegratedTime, LogIndex: plain.LogIndex, LogID: id})
	check(s.t, err)
	entry["kindVersion"] = map[string]string{"kind": kind, "version": "0.0.1"}
	entry["inclusionPromise"] = map[string]any{"signedEntryTimestamp": promise}
	return entry
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
