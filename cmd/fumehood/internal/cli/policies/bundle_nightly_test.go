// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package policies

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/policy/opatest"
)

// A workshop is a directory with a policy, keys, and both programs.
type workshop struct {
	t   *testing.T
	dir string
	opa string
}

func (w workshop) do(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = w.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (w workshop) must(name string, args ...string) string {
	w.t.Helper()
	out, err := w.do(name, args...)
	if err != nil {
		w.t.Fatalf("%s %q: %v\n%s", filepath.Base(name), args, err, out)
	}
	return out
}

// fumehood runs in this process; files are given by absolute paths.
func (w workshop) fumehood(args ...string) (int, string) {
	for i, a := range args {
		if strings.HasPrefix(a, "@") {
			args[i] = filepath.Join(w.dir, a[1:])
		}
	}
	code, out, diagnostics := runFumehood(w.t, args...)
	return code, out + diagnostics
}

func newWorkshop(t *testing.T) workshop {
	t.Helper()
	w := workshop{t, t.TempDir(), opatest.Binary(t)}
	for name, content := range map[string]string{
		"policy/a.rego":            jobtest.AcmeRules,
		"policy/acme/data.json":    `{"denied": ["grep"], "n": 2.50, "text": "ä <&> \u2028", "deep": {"b": [1, {"z": null, "a": true}]}}`,
		"policy/acme/eu/data.yaml": "x: [1, two]\n",
		"secret":                   strings.Repeat("0123456789", 4),
	} {
		path := filepath.Join(w.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, args := range map[string][]string{"rsa": {"RSA", "-pkeyopt", "rsa_keygen_bits:2048"}, "ec": {"EC", "-pkeyopt", "ec_paramgen_curve:P-256"}, "ed": {"ed25519"}, "other": {"RSA", "-pkeyopt", "rsa_keygen_bits:2048"}} {
		w.must("openssl", append([]string{"genpkey", "-out", name + ".pem", "-algorithm"}, args...)...)
		w.must("openssl", "pkey", "-in", name+".pem", "-pubout", "-out", name+".pub")
	}
	return w
}

// TestNightlyOPABundles: fumehood reads and verifies what opa builds and signs, opa reads
// and verifies what fumehood builds and signs, and both refuse bundles signed with
// another key.
func TestNightlyOPABundles(t *testing.T) {
	w := newWorkshop(t)
	for _, k := range []struct{ algorithm, private, public, ours, oursPrivate string }{
		{"RS256", "rsa.pem", "rsa.pub", "@rsa.pub", "@rsa.pem"}, {"ES256", "ec.pem", "ec.pub", "@ec.pub", "@ec.pem"}, {"EdDSA", "ed.pem", "ed.pub", "@ed.pub", "@ed.pem"},
		{"HS256", "secret", "secret", "hs256:" + filepath.Join(w.dir, "secret"), "hs256:" + filepath.Join(w.dir, "secret")},
	} {
		t.Run(k.algorithm, func(t *testing.T) {
			w := w
			w.t = t
			w.must(w.opa, "build", "-b", "policy", "--revision", "5", "--signing-key", k.private, "--signing-alg", k.algorithm, "-o", "theirs.tar.gz")
			if code, out := w.fumehood("policy", "bundle", "verify", "@theirs.tar.gz", "--policy-key", k.ours, "--minimum-revision", "5"); code != cli.OK {
				t.Errorf("opa's bundle, exit %d: %s", code, out)
			}
			if code, out := w.fumehood("policy", "bundle", "verify", "@theirs.tar.gz", "--policy-key", "@other.pub"); code != cli.Refused || !strings.Contains(out, "policy.signature") {
				t.Errorf("opa's bundle with another key, exit %d: %s", code, out)
			}
			if code, out := w.fumehood("policy", "bundle", "build", "@policy", "--revision", "6", "--signing-key", k.oursPrivate, "--out", "@ours.tar.gz"); code != cli.OK {
				t.Fatalf("exit %d: %s", code, out)
			}
			w.must(w.opa, "build", "-b", "ours.tar.gz", "--verification-key", k.public, "--signing-alg", k.algorithm, "-o", "x.tar.gz")
			if out, err := w.do(w.opa, "build", "-b", "ours.tar.gz", "--verification-key", "other.pub", "--signing-alg", "RS256", "-o", "y.tar.gz"); err == nil {
				t.Errorf("opa takes our bundle with another key: %s", out)
			}
			if code, out := w.fumehood("policy", "bundle", "sign", "@theirs.tar.gz", "--signing-key", k.oursPrivate, "--scope", "write", "--out", "@again.tar.gz"); code != cli.OK {
				t.Fatalf("exit %d: %s", code, out)
			}
			w.must(w.opa, "build", "-b", "again.tar.gz", "--verification-key", k.public, "--signing-alg", k.algorithm, "--scope", "write", "-o", "x.tar.gz")
			if out, err := w.do(w.opa, "build", "-b", "again.tar.gz", "--verification-key", k.public, "--signing-alg", k.algorithm, "-o", "y.tar.gz"); err == nil {
				t.Errorf("opa takes another scope: %s", out)
			}
		})
	}
	t.Run("opa sign of a folder", func(t *testing.T) {
		w := w
		w.t = t
		cmd := exec.Command(w.opa, "sign", "-b", ".", "--signing-key", "../rsa.pem")
		cmd.Dir = filepath.Join(w.dir, "policy")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		w.must("tar", "-C", "policy", "-czf", "folder.tar.gz", ".")
		if code, out := w.fumehood("policy", "bundle", "verify", "@folder.tar.gz", "--policy-key", "@rsa.pub"); code != cli.OK {
			t.Errorf("exit %d: %s", code, out)
		}
	})
}

// TestNightlyOPAData: data has the same meaning in fumehood's bundles as for opa.
func TestNightlyOPAData(t *testing.T) {
	w := newWorkshop(t)
	if code, out := w.fumehood("policy", "bundle", "build", "@policy", "--out", "@ours.tar.gz"); code != cli.OK {
		t.Fatalf("exit %d: %s", code, out)
	}
	ours := w.must(w.opa, "eval", "-b", "ours.tar.gz", "data.acme", "--format", "raw")
	theirs := w.must(w.opa, "eval", "-b", "policy", "data.acme", "--format", "raw")
	if ours != theirs || !strings.Contains(ours, `"two"`) {
		t.Errorf("from our bundle %s, from the folder %s", ours, theirs)
	}
}
