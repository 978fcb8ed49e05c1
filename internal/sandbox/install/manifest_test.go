// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Whatever a manifest contains, only the four known files are ever read, and it
// is either refused with a code or of the pinned version.
func FuzzManifest(f *testing.F) {
	whole := `{"schema":"fumehood.runsc/v1","gvisor":"` + GVisorVersion + `","go":"go1","platform":"` + hostPlatform() + `",
"source":"x","prewarmer":"none","files":[{"name":"fumehood-init","size":1,"sha256":"0"},
{"name":"fumehood-runsc","size":1,"sha256":"0"},{"name":"gvisor-bin/gvisor_sentry","size":1,"sha256":"0"}]}`
	f.Add(whole)
	f.Add(strings.Replace(whole, `"none"`, `""`, 1))
	f.Add(strings.Replace(whole, "fumehood-init", "../fumehood-init", 1))
	f.Add("{}")
	f.Add("")
	f.Add(`{"files":[{"name":"/etc/passwd"}]} {"schema":1}`)
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, manifestName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := readManifest(dir, "")
		if err != nil {
			var stop *proposal.StopError
			if !errors.As(err, &stop) || stop.Hint == "" {
				t.Errorf("refused without a code or a hint: %v", err)
			}
			return
		}
		if m.GVisor != GVisorVersion || len(m.Files) < 3 || len(m.Files) > 4 {
			t.Errorf("accepted gVisor %q with %d files", m.GVisor, len(m.Files))
		}
		for _, file := range m.Files {
			switch file.Name {
			case initName, runscName, sentryName, prewarmerName:
			default:
				t.Errorf("accepted a file called %q", file.Name)
			}
		}
	})
}
