// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// e2bPackages are E2B's SDKs, as npm has them.
var e2bPackages = []string{"e2b@2.51.0", "@e2b/code-interpreter@2.8.0"}

// e2bClients makes the directory with E2B's SDKs and the script that uses them.
var e2bClients = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(shared, "e2b-clients")
	script, err := os.ReadFile("testdata/e2b/sdk.mjs")
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	for name, text := range map[string]string{"package.json": `{"private":true,"type":"module"}`, "sdk.test.mjs": string(script)} {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
		}
	}
	if err != nil {
		return "", err
	}
	cmd := exec.Command("npm", append([]string{"install", "--ignore-scripts", "--no-audit", "--no-fund", "--save-exact"}, e2bPackages...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm: %w\n%s", err, out)
	}
	return dir, nil
})

// TestE2EE2B runs what E2B documents of its SDKs with the unmodified packages, without a network.
// Every sandbox's log is sealed and verifies.
func TestE2EE2B(t *testing.T) {
	t.Parallel()
	clients, err := e2bClients()
	if err != nil {
		t.Fatal(err)
	}
	s := startServe(t, newServeDesk(t), "--sandboxes", "2")
	cmd := exec.CommandContext(t.Context(), "node", "--test", "--test-force-exit", "--test-reporter=tap", "sdk.test.mjs")
	cmd.Dir = clients
	cmd.Env = append(os.Environ(), "E2B_API_URL="+s.url, "E2B_SANDBOX_URL="+s.url, "E2B_API_KEY="+serveKey, "OTHER_KEY="+serveOther, "http_proxy=http://127.0.0.1:9", "https_proxy=http://127.0.0.1:9")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "# fail 0") {
		t.Errorf("%v\n%s", err, out)
	}
	s.end(t)
	if n := s.verifyLogs(t); n < 6 {
		t.Errorf("%d logs", n)
	}
}
