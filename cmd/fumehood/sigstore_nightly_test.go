// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A sigstore signs statements as the public Sigstore instance does: its certificates have the
// promise of a certificate log, and its transparency log has the statement.
type sigstore struct {
	testing.TB
	authority, certificateLog, transparencyLog *ecdsa.PrivateKey
	authorityCertificate                       *x509.Certificate
}

func newSigstore(t testing.TB, organization string) *sigstore {
	s := &sigstore{TB: t, authority: newECDSAKey(t), certificateLog: newECDSAKey(t), transparencyLog: newECDSAKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{organization}, CommonName: "sigstore"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	s.authorityCertificate = s.certify(template, template, &s.authority.PublicKey)
	return s
}

func newECDSAKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (s *sigstore) certify(template, parent *x509.Certificate, key *ecdsa.PublicKey) *x509.Certificate {
	s.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, s.authority)
	if err != nil {
		s.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		s.Fatal(err)
	}
	return certificate
}

func (s *sigstore) sign(key *ecdsa.PrivateKey, message []byte) []byte {
	s.Helper()
	digest := sha256.Sum256(message)
	signature, err := ecdsa.SignASN1(rand.Reader, key, digest[:])
	if err != nil {
		s.Fatal(err)
	}
	return signature
}

func (s *sigstore) encode(value any) []byte {
	s.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		s.Fatal(err)
	}
	return data
}

func (s *sigstore) publicKey(key *ecdsa.PrivateKey) []byte {
	s.Helper()
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		s.Fatal(err)
	}
	return der
}

// logID is the SHA-256 of a log's key.
func (s *sigstore) logID(key *ecdsa.PrivateKey) []byte {
	id := sha256.Sum256(s.publicKey(key))
	return id[:]
}

// trustedRoot is the instance's keys, as a line.
func (s *sigstore) trustedRoot() []byte {
	since := map[string]any{"start": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)}
	log := func(key *ecdsa.PrivateKey) []any {
		return []any{map[string]any{
			"baseUrl": "https://log.test.example", "hashAlgorithm": "SHA2_256", "logId": map[string]any{"keyId": s.logID(key)},
			"publicKey": map[string]any{"rawBytes": s.publicKey(key), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": since},
		}}
	}
	return append(s.encode(map[string]any{
		"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
		"tlogs":     log(s.transparencyLog), "ctlogs": log(s.certificateLog),
		"certificateAuthorities": []any{map[string]any{
			"subject": map[string]any{"organization": s.authorityCertificate.Subject.Organization[0], "commonName": "sigstore"}, "uri": "https://authority.test.example", "validFor": since,
			"certChain": map[string]any{"certificates": []any{map[string]any{"rawBytes": s.authorityCertificate.Raw}}},
		}},
	}), '\n')
}

// An attestation is what an attestation says, and by whom and when it was signed.
type attestation struct {
	repository, identity, issuer string
	predicateType                string
	file                         []byte
	later                        time.Duration // the log has it this much later; the certificate is valid for ten minutes
	promised, logged             bool          // the certificate log has promised to log the certificate; the transparency log has the entry
}

// attest returns a bundle, in one line.
func (s *sigstore) attest(a attestation) []byte {
	s.Helper()
	key := newECDSAKey(s)
	certificate := s.signerCertificate(a, &key.PublicKey)
	statement := s.encode(map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "predicateType": a.predicateType, "predicate": map[string]any{"pull_request": "1"},
		"subject": []any{map[string]any{"name": "audit.jsonl", "digest": map[string]any{"sha256": fmt.Sprintf("%x", sha256.Sum256(a.file))}}},
	})
	const payloadType = "application/vnd.in-toto+json"
	signature := s.sign(key, fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(statement), statement))
	envelope := map[string]any{"payload": statement, "payloadType": payloadType, "signatures": []any{map[string]any{"sig": signature}}}
	entries := []any{}
	if a.logged {
		entries = append(entries, s.logEntry(certificate, s.encode(envelope), statement, signature, time.Now().Add(a.later)))
	}
	return s.encode(map[string]any{
		"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "dsseEnvelope": envelope,
		"verificationMaterial": map[string]any{
			"certificate": map[string]any{"rawBytes": certificate.Raw},
			"tlogEntries": entries,
		},
	})
}

// signerCertificate is a certificate as GitHub's jobs get it. The extensions are those of
// https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md.
func (s *sigstore) signerCertificate(a attestation, key *ecdsa.PublicKey) *x509.Certificate {
	s.Helper()
	name, err := url.Parse(a.identity)
	if err != nil {
		s.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), URIs: []*url.URL{name}, NotBefore: time.Now(), NotAfter: time.Now().Add(10 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	extensions := map[int]string{
		8: a.issuer, 9: a.identity, 18: a.identity, // who signed, and the workflow that called it
		12: a.repository, 16: a.repository[:strings.LastIndex(a.repository, "/")], // and its owner
	}
	for number, text := range extensions {
		value, err := asn1.MarshalWithParams(text, "utf8")
		if err != nil {
			s.Fatal(err)
		}
		id := asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, number}
		template.ExtraExtensions = append(template.ExtraExtensions, pkix.Extension{Id: id, Value: value})
	}
	if a.promised {
		promise := s.promise(s.certify(template, s.authorityCertificate, key).RawTBSCertificate)
		id := asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}
		template.ExtraExtensions = append(template.ExtraExtensions, pkix.Extension{Id: id, Value: promise})
	}
	return s.certify(template, s.authorityCertificate, key)
}

// promise is a list of one signed certificate timestamp (RFC 6962, section 3.2) of a certificate
// without it.
func (s *sigstore) promise(certificate []byte) []byte {
	s.Helper()
	issuer := sha256.Sum256(s.authorityCertificate.RawSubjectPublicKeyInfo)
	at := binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixMilli()))
	length := binary.BigEndian.AppendUint32(nil, uint32(len(certificate)))[1:]
	signature := s.sign(s.certificateLog, bytes.Join([][]byte{{0, 0}, at, {0, 1}, issuer[:], length, certificate, {0, 0}}, nil))
	timestamp := bytes.Join([][]byte{{0}, s.logID(s.certificateLog), at, {0, 0, 4, 3}, prefixLength(signature)}, nil)
	value, err := asn1.Marshal(prefixLength(prefixLength(timestamp)))
	if err != nil {
		s.Fatal(err)
	}
	return value
}

func prefixLength(data []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(data))), data...)
}

// logEntry is the only entry of a transparency log: its inclusion, and the log's signature of its time.
func (s *sigstore) logEntry(certificate *x509.Certificate, envelope, statement, signature []byte, at time.Time) map[string]any {
	s.Helper()
	digest := func(data []byte) map[string]any {
		return map[string]any{"algorithm": "sha256", "value": fmt.Sprintf("%x", sha256.Sum256(data))}
	}
	body := s.encode(map[string]any{
		"apiVersion": "0.0.1", "kind": "dsse",
		"spec": map[string]any{
			"envelopeHash": digest(envelope), "payloadHash": digest(statement),
			"signatures": []any{map[string]any{
				"signature": base64.StdEncoding.EncodeToString(signature),
				"verifier":  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}),
			}},
		},
	})
	id, leaf := s.logID(s.transparencyLog), sha256.Sum256(append([]byte{0}, body...))
	promised := s.encode(map[string]any{"body": body, "integratedTime": at.Unix(), "logIndex": 0, "logID": hex.EncodeToString(id)})
	root := base64.StdEncoding.EncodeToString(leaf[:])
	text := "log.test.example - 1\n1\n" + root + "\n"
	line := base64.StdEncoding.EncodeToString(append(bytes.Clone(id[:4]), s.sign(s.transparencyLog, []byte(text))...))
	return map[string]any{
		"logIndex": "0", "logId": map[string]any{"keyId": id}, "kindVersion": map[string]any{"kind": "dsse", "version": "0.0.1"},
		"integratedTime": strconv.FormatInt(at.Unix(), 10), "canonicalizedBody": body,
		"inclusionPromise": map[string]any{"signedEntryTimestamp": s.sign(s.transparencyLog, promised)},
		"inclusionProof": map[string]any{
			"logIndex": "0", "treeSize": "1", "rootHash": root, "hashes": []any{},
			"checkpoint": map[string]any{"envelope": text + "\n— log.test.example " + line + "\n"},
		},
	}
}
