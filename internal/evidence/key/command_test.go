// SPDX-License-Identifier: Apache-2.0

package key

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// TestMain also is a command: it prints its second argument or, if that is SEED:seed, the signature of standard
// input in base64.
func TestMain(m *testing.M) {
	if len(os.Args) != 3 || os.Args[1] != "sign-in-test" {
		os.Exit(m.Run())
	}
	seed, signs := strings.CutPrefix(os.Args[2], "SEED:")
	if !signs {
		fmt.Print(os.Args[2])
		return
	}
	message, err := io.ReadAll(os.Stdin)
	key, err2 := base64.StdEncoding.DecodeString(seed)
	if err := errors.Join(err, err2); err != nil {
		panic(err)
	}
	fmt.Println(base64.StdEncoding.EncodeToString(ed25519.Sign(ed25519.NewKeyFromSeed(key), message)))
}

// describe writes the file of a command that prints text.
func describe(t *testing.T, public any, change func(map[string]any), text string) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]any{"name": "acme.example/fumehood", "public": der, "command": []string{program, "sign-in-test", text}}
	if change != nil {
		change(fields)
	}
	data, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "signer.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A log that a command signs verifies with its public key.
func TestCommandSigns(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	name := commandPrefix + describe(t, public, nil, "SEED:"+base64.StdEncoding.EncodeToString(private.Seed()))
	signer, err := ReadSigner(name)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Create(file, audit.Options{Origin: "acme.example/run", Signer: signer})
	if err != nil {
		t.Fatal(err)
	}
	_, err = log.Append("kind", map[string]string{"a": "b"})
	_, err2 := log.Seal()
	data, err3 := os.ReadFile(file)
	verifier, err4 := ReadPublic(name)
	if err := errors.Join(err, err2, err3, err4, log.Close()); err != nil {
		t.Fatal(err)
	}
	found, err := audit.Verify(bytes.NewReader(data), audit.Trust{Key: strings.TrimSpace(verifier)})
	if err != nil || found.State != audit.Sealed {
		t.Errorf("%+v, %v", found, err)
	}
}

// What a command's file or answer has wrong is an error before there is a log.
func TestCommandRefuses(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signature := base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte("another message")))
	set := func(name string, v any) func(map[string]any) { return func(m map[string]any) { m[name] = v } }
	for want, file := range map[string]string{
		"is not a signature":         describe(t, public, nil, "no"),
		"not that of the configured": describe(t, public, nil, signature),
		"does not sign":              describe(t, public, set("command", []string{"/bin/false"}), ""),
		"no answer in 100ms":         describe(t, public, func(m map[string]any) { m["timeout"], m["command"] = "100ms", []string{"/bin/sleep", "60"} }, ""),
		"printed too much":           describe(t, public, set("command", []string{"/bin/cat", "/dev/zero"}), ""),
		"absolute path":              describe(t, public, set("command", []string{"false"}), ""),
		"invalid timeout":            describe(t, public, set("timeout", "2h"), ""),
		"unknown field":              describe(t, public, set("shell", "x"), ""),
		"invalid public key":         describe(t, public, set("public", "AAAA"), ""),
		"signer's key is invalid":    describe(t, public, set("name", "a b"), ""),
		"another user can change":    open(t, describe(t, public, nil, signature)),
		"no such file":               "/missing",
	} {
		signer, err := ReadSigner(commandPrefix + file)
		if err == nil {
			_, err = audit.Create(filepath.Join(t.TempDir(), "audit.jsonl"), audit.Options{Origin: "acme.example/fumehood", Signer: signer})
		}
		if err == nil || !strings.Contains(text(err), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// text returns an error with its causes.
func text(err error) string {
	f := proposal.FailureOf(err)
	return f.Message + " " + err.Error()
}

func open(t *testing.T, file string) string {
	t.Helper()
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}
