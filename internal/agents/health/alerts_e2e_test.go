// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package health

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/golden"
)

// promtool runs Prometheus's own checker in dir.
func promtool(t *testing.T, dir, stdin string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "promtool", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %q: %v\n%s", args, err, out)
	}
}

// The chart's rules, to which docs/OPERATIONS.md refers, are valid for Prometheus, and fire above the
// targets only.
func TestE2EAlerts(t *testing.T) {
	page := golden.Read(t, "../../../docs/OPERATIONS.md")
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllSubmatch(page, -1)
	if len(blocks) != 1 {
		t.Fatalf("%d blocks of YAML", len(blocks))
	}
	rules := golden.Read(t, "../../../k8s/deploy/chart/files/alerts.yaml")
	for _, m := range regexp.MustCompile(`alert: (\w+)`).FindAllSubmatch(rules, -1) {
		if !bytes.Contains(page, m[1]) {
			t.Errorf("docs/OPERATIONS.md does not say what to do about %s", m[1])
		}
	}
	dir := t.TempDir()
	for name, text := range map[string][]byte{"rules.yml": rules, "prometheus.yml": blocks[0][1], "alerts_test.yml": golden.Read(t, "testdata/alerts_test.yml")} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	promtool(t, dir, "", "check", "rules", "rules.yml")
	promtool(t, dir, "", "test", "rules", "alerts_test.yml")
	promtool(t, dir, "", "check", "config", "prometheus.yml")
}

// The metrics have the names, units and texts that Prometheus recommends.
func TestE2EMetricsLint(t *testing.T) {
	_, page := get(t, used(t).Handler(ready), http.MethodGet, MetricsPath)
	promtool(t, t.TempDir(), page, "check", "metrics")
}
