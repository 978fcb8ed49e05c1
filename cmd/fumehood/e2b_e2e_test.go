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

// e2bReleases are releases of E2B's SDK, from the oldest that are used to the newest.
var e2bReleases = []string{"2.10.4", "2.30.5", "2.39.0", "2.46.1", "2.50.0", "2.51.0"}

// e2bClients makes the directory with E2B's SDKs and the script that uses them.
var e2bClients = sync.OnceValues(func() (string, error) {
	return installE2B("e2b-clients", "sdk.mjs", "sdk.test.mjs", e2bPackages...)
})

// installE2B makes a directory with packages of npm and a script.
func installE2B(name, source, script string, packages ...string) (string, error) {
	dir := filepath.Join(shared, name)
	text, err := os.ReadFile(filepath.Join("testdata/e2b", source))
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	for name, text := range map[string]string{"package.json": `{"private":true,"type":"module"}`, script: string(text)} {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
		}
	}
	if err != nil {
		return "", err
	}
	cmd := exec.Command("npm", append([]string{"install", "--ignore-scripts", "--no-audit", "--no-fund", "--save-exact"}, packages...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm: %w\n%s", err, out)
	}
	return dir, nil
}

// TestE2EE2B runs what E2B documents of its SDKs with the unmodified packages, without a network.
// Every sandbox's log is sealed and verifies.
func TestE2EE2B(t *testing.T) {
	t.Parallel()
	clients, err := e2bClients()
	if err != nil {
		t.Fatal(err)
	}
	s := startServe(t, newServeDesk(t), "--sandboxes", "3", "--ports", "8000-8001")
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

// TestE2EE2BReleases runs the same script with six releases of E2B's SDK.
func TestE2EE2BReleases(t *testing.T) {
	t.Parallel()
	s := startServe(t, newServeDesk(t), "--sandboxes", "2")
	for _, release := range e2bReleases {
		dir, err := installE2B("e2b-"+release, "releases.mjs", "releases.mjs", "e2b@"+release)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "node", "releases.mjs")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "E2B_API_URL="+s.url, "E2B_SANDBOX_URL="+s.url, "E2B_API_KEY="+serveKey)
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "done\n" {
			t.Errorf("%s: %v\n%s", release, err, out)
		}
	}
	s.end(t)
}
