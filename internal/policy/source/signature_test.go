// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/bundle"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy"
)

// A pair is the two files of a key.
type pair struct{ private, public string }

func write(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func pairOf(t testing.TB, key crypto.Signer) pair {
	t.Helper()
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return pair{write(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))),
		write(t, "key.pub", string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})))}
}

func ed25519Pair(t testing.TB) pair {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return pairOf(t, key)
}

func rsaPair(t testing.TB, bits int) pair {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return pairOf(t, key)
}

func ecPair(t testing.TB, curve elliptic.Curve) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return pairOf(t, key)
}

func mustKey(t testing.TB, file string) Keys {
	t.Helper()
	k, err := ReadKeys([]string{file})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func mustSign(t testing.TB, data []byte, key, scope string) []byte {
	t.Helper()
	s, err := ReadSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s.Sign("bundle", data, DefaultKeyID, scope)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// repacked changes the files of a bundle, the signature among them.
func repacked(t testing.TB, data []byte, change func(files []policy.File) []policy.File) []byte {
	t.Helper()
	files, err := unpackArchive(data)
	if err != nil {
		t.Fatal(err)
	}
	out, err := packFiles(change(files))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func replaced(name, content string) func([]policy.File) []policy.File {
	return func(files []policy.File) []policy.File {
		files = slices.DeleteFunc(files, func(f policy.File) bool { return f.Name == name })
		if content == "" {
			return files
		}
		return append(files, policy.File{Name: name, Content: []byte(content)})
	}
}

func TestSignatures(t *testing.T) {
	secret := write(t, "secret", strings.Repeat("s", 40)+"\n")
	plain := tarball(t, file(".manifest", `{"revision":"3"}`), file("a.rego", rule), file("acme/data.json", `{"b":[1,2.50],"a":"x"}`), file("README.md", "text"))
	for name, p := range map[string]pair{
		"RSA": rsaPair(t, 2048), "P-256": ecPair(t, elliptic.P256()), "P-384": ecPair(t, elliptic.P384()), "P-521": ecPair(t, elliptic.P521()),
		"Ed25519": ed25519Pair(t), "a secret": {"hs256:" + secret, "hs256:" + secret},
	} {
		t.Run(name, func(t *testing.T) {
			key, signed := mustKey(t, p.public), mustSign(t, plain, p.private, "")
			b, err := Open("bundle", signed, Options{Keys: key})
			if err != nil || b.SignedBy == "" || b.SignedBy != key[0].name || b.Revision != "3" {
				t.Fatalf("signed by %q, revision %q: %v", b.SignedBy, b.Revision, err)
			}
			_, err = Open("bundle", signed, Options{Keys: mustKey(t, ed25519Pair(t).public)})
			wantCode(t, err, CodeSignature, "invalid signature")
			_, err = Open("bundle", repacked(t, signed, replaced("a.rego", rule+"\n")), Options{Keys: key})
			wantCode(t, err, CodeSignature, "a.rego")
		})
	}
}

// TestRotation: a bundle signed with the old or the new key is accepted while both are
// trusted, and names the key that signed it; one signed with neither is not.
func TestRotation(t *testing.T) {
	lanetest.SkipShort(t)
	plain := tarball(t, file(".manifest", `{"revision":"3"}`), file("a.rego", rule))
	old, next, other := ed25519Pair(t), ecPair(t, elliptic.P256()), rsaPair(t, 2048)
	contents := func(p pair) string {
		data, err := os.ReadFile(p.public)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	both := []string{old.public, next.public}
	one := []string{write(t, "set", "# before 2027\n"+contents(old)+"# from 2027\n"+contents(next))}
	secret := "hs256:" + write(t, "secret", strings.Repeat("s", 40))
	for name, tt := range map[string]struct {
		signer pair
		keys   []string
		by     string // the public key that is reported; "" for a refusal
	}{
		"old":             {old, both, old.public},
		"new":             {next, both, next.public},
		"neither":         {other, both, ""},
		"old, one file":   {old, one, old.public},
		"new, one file":   {next, one, next.public},
		"neither, one":    {other, one, ""},
		"new alone":       {old, both[1:], ""},
		"the same twice":  {old, []string{old.public, old.public}, old.public},
		"beside a secret": {next, []string{secret, next.public}, next.public},
		"neither, secret": {other, []string{secret, next.public}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := ReadKeys(tt.keys)
			if err != nil {
				t.Fatal(err)
			}
			b, err := Open("bundle", mustSign(t, plain, tt.signer.private, ""), Options{Keys: keys})
			if tt.by == "" {
				wantCode(t, err, CodeSignature, "invalid signature")
			} else if err != nil || b.SignedBy != mustKey(t, tt.by)[0].name {
				t.Errorf("signed by %q: %v", b.SignedBy, err)
			}
			_, err = Open("bundle", plain, Options{Keys: keys})
			wantCode(t, err, CodeSignature, "is not signed")
		})
	}
	// A signature that each of two keys has made a part of counts for neither.
	mixed := func(data []byte) []byte {
		return repacked(t, data, replaced(".signatures.json", `{"signatures":[`+tokenOf(t, mustSign(t, plain, old.private, ""))+`,`+tokenOf(t, mustSign(t, plain, next.private, ""))+`]}`))
	}
	keys, err := ReadKeys(both)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open("bundle", mixed(mustSign(t, plain, old.private, "")), Options{Keys: keys})
	wantCode(t, err, CodeSignature, "want one signature")
	// Shared secrets and public keys stay apart: a public key's text is no secret.
	_, err = Open("bundle", mustSign(t, plain, "hs256:"+write(t, "s", strings.Repeat("x", 40)), ""), Options{Keys: keys})
	wantCode(t, err, CodeSignature, "none of 2 keys")
	if _, err := ReadKeys(slices.Repeat(both, 9)); code(err) != CodeKey {
		t.Errorf("18 keys: %v", err)
	}
}

// tokenOf returns the signature of a bundle, as JSON.
func tokenOf(t *testing.T, data []byte) string {
	t.Helper()
	files, err := unpackArchive(data)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Signatures []json.RawMessage `json:"signatures"`
	}
	if err := json.Unmarshal(fileNamed(files, signaturesName), &config); err != nil || len(config.Signatures) != 1 {
		t.Fatal(config, err)
	}
	return string(config.Signatures[0])
}

// TestSignatureAttacks: without the key nothing under a signature can be changed, and
// chooses neither algorithm, key nor hash.
func TestSignatureAttacks(t *testing.T) {
	lanetest.SkipShort(t)
	p := rsaPair(t, 2048)
	key := mustKey(t, p.public)
	plain := tarball(t, file(".manifest", `{"revision":"3"}`), file("a.rego", rule), file("acme/data.json", `{"b":1}`), file("README.md", "text"))
	signed, scoped := mustSign(t, plain, p.private, ""), mustSign(t, plain, p.private, "write")
	signature := string(fileNamed(mustUnpack(t, signed), signaturesName))
	token := strings.Split(strings.Split(signature, `"`)[3], ".")
	forge := func(algorithm string, secret []byte) string {
		text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"`+algorithm+`"}`)) + "." + token[1]
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(text))
		return `{"signatures":["` + text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)) + `"]}`
	}
	public, err := os.ReadFile(p.public)
	if err != nil {
		t.Fatal(err)
	}
	weak := func(algorithm bundle.HashingAlgorithm) string {
		var infos []bundle.FileInfo
		h, _ := bundle.NewSignatureHasher(algorithm)
		for _, f := range mustUnpack(t, plain) {
			var value any = f.Content
			if bundle.IsStructuredDoc(f.Name) {
				_ = json.Unmarshal(f.Content, &value)
			}
			sum, _ := h.HashFile(value)
			infos = append(infos, bundle.NewFile(f.Name, hex.EncodeToString(sum), string(algorithm)))
		}
		token, err := bundle.GenerateSignedToken(infos, bundle.NewSigningConfig(p.private, "RS256", ""), "default")
		if err != nil {
			t.Fatal(err)
		}
		return `{"signatures":["` + token + `"]}`
	}
	tests := []struct {
		name string
		data []byte
		said string
	}{
		{"unsigned", plain, "not signed"},
		{"empty signatures", repacked(t, signed, replaced(signaturesName, `{"signatures":[]}`)), "one signature"},
		{"none at all", repacked(t, signed, replaced(signaturesName, `{}`)), "one signature"},
		{"two", repacked(t, signed, replaced(signaturesName, strings.Replace(signature, "]", `,"x.y.z"]`, 1))), "one signature"},
		{"no JSON", repacked(t, signed, replaced(signaturesName, `"`)), "signatures"},
		{"another verifier", repacked(t, signed, replaced(signaturesName, strings.Replace(signature, "{", `{"plugin":"mine",`, 1))), "plugin"},
		{"no algorithm", repacked(t, signed, replaced(signaturesName, forge("none", nil))), `"none"`},
		{"the public key as a secret", repacked(t, signed, replaced(signaturesName, forge("HS256", public))), `"HS256"`},
		{"another payload", repacked(t, signed, replaced(signaturesName, strings.Replace(signature, token[1], token[1][:len(token[1])-4]+"AAAA", 1))), ""},
		{"another signature", repacked(t, signed, replaced(signaturesName, strings.Replace(signature, token[2][:8], "AAAAAAAA", 1))), "verify"},
		{"rules changed", repacked(t, signed, replaced("a.rego", rule+" ")), "a.rego"},
		{"data changed", repacked(t, signed, replaced("acme/data.json", `{"b":2}`)), "data.json"},
		{"revision changed", repacked(t, signed, replaced(manifestName, `{"revision":"9"}`)), manifestName},
		{"manifest gone", repacked(t, signed, replaced(manifestName, "")), "signed but missing"},
		{"rules gone", repacked(t, signed, replaced("acme/data.json", "")), "signed but missing"},
		{"a file more", repacked(t, signed, replaced("b.rego", rule)), "b.rego"},
		{"a file more that is not read", repacked(t, signed, replaced("NOTES", "x")), "NOTES"},
		{"MD5", repacked(t, signed, replaced(signaturesName, weak(bundle.MD5))), "MD5"},
		{"SHA-1", repacked(t, signed, replaced(signaturesName, weak(bundle.SHA1))), "SHA-1"},
		{"SHA-224", repacked(t, signed, replaced(signaturesName, weak(bundle.SHA224))), "SHA-224"},
		{"a scope that nobody asked for", scoped, "scope"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Open("bundle", tt.data, Options{Keys: key})
			wantCode(t, err, CodeSignature, tt.said)
		})
	}
	for data, scope := range map[string]string{string(signed): "", string(scoped): "write", string(repacked(t, signed, replaced(signaturesName, weak(bundle.SHA512)))): ""} {
		if _, err := Open("bundle", []byte(data), Options{Keys: key, Scope: scope}); err != nil {
			t.Error(err)
		}
	}
	_, err = Open("bundle", signed, Options{Keys: key, Scope: "write"})
	wantCode(t, err, CodeSignature, "scope")
	_, err = Open("bundle", signed, Options{Keys: key, MinimumRevision: "4"})
	wantCode(t, err, CodeRevision, "older")
}

func mustUnpack(t testing.TB, data []byte) []policy.File {
	t.Helper()
	files, err := unpackArchive(data)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestKeys(t *testing.T) {
	small, p := rsaPair(t, 1024), ed25519Pair(t)
	public, err := os.ReadFile(p.public)
	if err != nil {
		t.Fatal(err)
	}
	private, err := os.ReadFile(p.private)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, file, said string }{
		{"missing", "/nonexistent", "cannot open"},
		{"a folder", t.TempDir(), "not a regular file"},
		{"private", p.private, "private key"},
		{"short RSA", small.public, "too short"},
		{"P-224", ecPair(t, elliptic.P224()).public, "kind"},
		{"no PEM", write(t, "k", "ssh-ed25519 AAAA"), "complete PEM keys"},
		{"empty", write(t, "k", ""), "complete PEM keys"},
		{"no name", "", "cannot open"},
		{"too many keys", write(t, "k", strings.Repeat(string(public), 17)), "more than 16 keys"},
		{"half a second key", write(t, "k", string(public)+string(public[:60])), "complete PEM keys"},
		{"a private key below a public one", write(t, "k", string(public)+string(private)), "private key"},
		{"a certificate beside a key", write(t, "k", string(public)+"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "a certificate beside other keys"},
		{"broken", write(t, "k", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"), "invalid key"},
		{"a public key as a secret", "hs256:" + p.public, "does not contain a secret"},
		{"a short secret", "hs256:" + write(t, "k", "hunter2"), "does not contain a secret"},
		{"huge", write(t, "k", strings.Repeat("x", maxKey+1)), "too large"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadKeys([]string{tt.file})
			wantCode(t, err, CodeKey, tt.said)
		})
	}
	for name, file := range map[string]string{"public": p.public, "short RSA": small.private, "missing": "/nonexistent"} {
		if _, err := ReadSigner(file); code(err) != CodeKey {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBuildIsReproducible(t *testing.T) {
	files := []policy.File{{Name: "b.rego", Content: []byte(rule)}, {Name: "a_test.rego", Content: []byte(rule)}, {Name: "acme/data.yaml", Content: []byte("x: 1\n")}, {Name: "cases.yaml", Content: []byte("[]")}}
	first, err := Build(Recipe{Files: files, Revision: "1", Roots: []string{"fumehood", "acme"}})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(files)
	second, err := Build(Recipe{Files: files, Revision: "1", Roots: []string{"fumehood", "acme"}})
	if err != nil || Digest(first) != Digest(second) {
		t.Errorf("%s and %s: %v", Digest(first), Digest(second), err)
	}
	p := ed25519Pair(t)
	if a, b := mustSign(t, first, p.private, ""), mustSign(t, second, p.private, ""); Digest(a) != Digest(b) {
		t.Error("the signed bundles differ")
	}
	var names []string
	for _, f := range mustUnpack(t, first) {
		names = append(names, f.Name)
	}
	if got := strings.Join(names, " "); got != ".manifest acme/data.yaml b.rego" {
		t.Errorf("files %q", got)
	}
	_, err = Build(Recipe{Files: files, Roots: []string{"fumehood/exec"}})
	wantCode(t, err, CodeBundle, "outside the roots")
}
