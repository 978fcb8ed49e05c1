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

	"github.com/fumehood/fumehood/pkg/policy"
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

func mustKey(t testing.TB, file string) *Key {
	t.Helper()
	k, err := ReadKey(file)
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
	files, err := unpack(data)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pack(change(files))
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
			b, err := Open("bundle", signed, Options{Key: key})
			if err != nil || b.SignedBy == "" || b.SignedBy != key.name || b.Revision != "3" {
				t.Fatalf("signed by %q, revision %q: %v", b.SignedBy, b.Revision, err)
			}
			_, err = Open("bundle", signed, Options{Key: mustKey(t, ed25519Pair(t).public)})
			wantCode(t, err, CodeSignature, "invalid signature")
			_, err = Open("bundle", repacked(t, signed, replaced("a.rego", rule+"\n")), Options{Key: key})
			wantCode(t, err, CodeSignature, "a.rego")
		})
	}
}

// TestSignatureAttacks: without the key nothing under a signature can be changed, and
// chooses neither algorithm, key nor hash.
func TestSignatureAttacks(t *testing.T) {
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
			_, err := Open("bundle", tt.data, Options{Key: key})
			wantCode(t, err, CodeSignature, tt.said)
		})
	}
	for data, scope := range map[string]string{string(signed): "", string(scoped): "write", string(repacked(t, signed, replaced(signaturesName, weak(bundle.SHA512)))): ""} {
		if _, err := Open("bundle", []byte(data), Options{Key: key, Scope: scope}); err != nil {
			t.Error(err)
		}
	}
	_, err = Open("bundle", signed, Options{Key: key, Scope: "write"})
	wantCode(t, err, CodeSignature, "scope")
	_, err = Open("bundle", signed, Options{Key: key, MinimumRevision: "4"})
	wantCode(t, err, CodeRevision, "older")
}

func mustUnpack(t testing.TB, data []byte) []policy.File {
	t.Helper()
	files, err := unpack(data)
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
	tests := []struct{ name, file, said string }{
		{"missing", "/nonexistent", "cannot open"},
		{"a folder", t.TempDir(), "not a regular file"},
		{"private", p.private, "private key"},
		{"short RSA", small.public, "too short"},
		{"P-224", ecPair(t, elliptic.P224()).public, "kind"},
		{"no PEM", write(t, "k", "ssh-ed25519 AAAA"), "exactly one PEM key"},
		{"two keys", write(t, "k", string(public)+string(public)), "exactly one PEM key"},
		{"broken", write(t, "k", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"), "invalid key"},
		{"a public key as a secret", "hs256:" + p.public, "does not contain a secret"},
		{"a short secret", "hs256:" + write(t, "k", "hunter2"), "does not contain a secret"},
		{"huge", write(t, "k", strings.Repeat("x", maxKey+1)), "too large"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadKey(tt.file)
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
