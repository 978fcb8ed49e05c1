// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// What a pull request asks for counts only if its base asks for something that is not there, too.
func TestFindUnmet(t *testing.T) {
	dir := t.TempDir()
	write := func(wants string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"engines": {"node": "`+wants+`"}}`), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %q: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	commit := func(wants string) string {
		write(wants)
		git("add", "-A")
		git("commit", "-qm", wants)
		return git("rev-parse", "HEAD")
	}
	git("init", "-q")
	low, high := commit(">=18"), commit(">=22")
	write(">=99")
	for name, tt := range map[string]struct {
		subject  Subject
		compared string // commit that commands are compared with
		want     bool
	}{
		"no pull request":          {Subject{}, "", true},
		"the base asks, too":       {Subject{PR: 1, BaseSHA: high}, low, true},
		"the base is content":      {Subject{PR: 1, BaseSHA: low}, high, false},
		"the base is not there":    {Subject{PR: 1, BaseSHA: strings.Repeat("1", 40)}, "", false},
		"the base is not known":    {Subject{PR: 1}, "", false},
		"compared, and content":    {Subject{}, low, false},
		"compared, and asks, too":  {Subject{}, high, true},
		"a base that is no commit": {Subject{BaseSHA: "HEAD"}, "", false},
	} {
		o := Options{Workspace: dir, Subject: tt.subject}
		if tt.compared != "" {
			o.Base = &BaseTree{Commit: tt.compared}
		}
		g := &Gate{o: o, tools: []proposal.Toolchain{{Name: "node", Version: "20.1.0"}}}
		want := []proposal.Unmet{{Tool: "node", Version: "20.1.0", File: "package.json", Wants: ">=99", Least: "99", Base: tt.want}}
		if diff := cmp.Diff(want, g.findUnmet(t.Context())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
