// SPDX-License-Identifier: Apache-2.0

package report

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// People paste the command from a comment whose report may be a stranger's.
func TestVerifyCommand(t *testing.T) {
	for name, a := range map[string]proposal.Audit{
		"plain":   {File: "/home/x/audit.jsonl", Key: "fumehood/r+01+AbC/+=", Checkpoint: "fumehood/r\n7\nroot=\n\n— fumehood/r sig=\n"},
		"hostile": {File: "$(touch x)/a'b `id`.jsonl", Key: "k'; touch x; '", Checkpoint: "a\"$(touch x)'\n'\n```\n`touch x`"},
		"option":  {File: "--untrusted-key", Key: "", Checkpoint: "-"},
	} {
		t.Run(name, func(t *testing.T) {
			script := `fumehood() { printf '%s\0' "$@"; }; ` + verifyCommand(&a, false)
			out, err := exec.Command("sh", "-c", script).Output()
			if err != nil {
				t.Fatal(err)
			}
			file := a.File
			if file[0] == '-' {
				file = "./" + file
			}
			want := []string{"verify", file, "--key", a.Key, "--checkpoint", strings.TrimSuffix(a.Checkpoint, "\n"), ""}
			if diff := cmp.Diff(want, strings.Split(string(out), "\x00")); diff != "" {
				t.Errorf("words (-want +got):\n%s", diff)
			}
		})
	}
}
