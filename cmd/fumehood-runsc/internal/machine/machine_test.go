// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArgs(t *testing.T) {
	bundle := t.TempDir()
	config := `{"linux": {"resources": {"memory": {"limit": 512}, "cpu": {"quota": 250000, "period": 100000}}}}`
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, args string
		host       int
		want       string
	}{
		{"boot", "runsc --root=x boot --bundle=B --total-memory 4096 id", 8, "runsc --root=x boot --cpu-num 3 --cpu-quota 250000 --cpu-period 100000 --bundle=B --total-memory 512 id"},
		{"a small host", "boot --bundle=B --total-memory 256 id", 1, "boot --cpu-num 1 --cpu-quota 250000 --cpu-period 100000 --bundle=B --total-memory 256 id"},
		{"boot again", "boot --cpu-num 3 --bundle=B --total-memory 4096 id", 8, "boot --cpu-num 3 --bundle=B --total-memory 4096 id"},
		{"no bundle", "boot --bundle=/nowhere --total-memory 4096 id", 8, "boot --bundle=/nowhere --total-memory 4096 id"},
		{"gofer", "gofer --bundle=B", 8, "gofer --bundle=B"},
	} {
		fill := func(s string) []string { return strings.Fields(strings.ReplaceAll(s, "=B", "="+bundle)) }
		if diff := cmp.Diff(fill(c.want), Args(fill(c.args), c.host)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestFewProcessors(t *testing.T) {
	bundle := t.TempDir()
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), []byte(`{"linux": {"resources": {"cpu": {"quota": 50000, "period": 100000}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{"boot", "--cpu-num", "2", "--cpu-quota", "50000", "--cpu-period", "100000", "--bundle=" + bundle}
	if diff := cmp.Diff(want, Args([]string{"boot", "--bundle=" + bundle}, 8)); diff != "" {
		t.Errorf("half a processor (-want +got):\n%s", diff)
	}
}
