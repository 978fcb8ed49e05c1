// SPDX-License-Identifier: Apache-2.0

package install

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/fumehood/fumehood/internal/kit/strictjson"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	runscName     = "fumehood-runsc"
	initName      = "fumehood-init"
	sidecarDir    = "gvisor-bin"
	sentryName    = sidecarDir + "/gvisor_sentry"
	prewarmerName = sidecarDir + "/gvisor-sentry-prewarmer"
	manifestName  = "fumehood-runsc.json"

	manifestSchema  = "fumehood.runsc/v1"
	maxManifestSize = 64 << 10
)

// manifest is an installation's description by its builder.
type manifest struct {
	Schema    string         `json:"schema"`
	GVisor    string         `json:"gvisor"`    // module version
	Go        string         `json:"go"`        // the compiler's version
	Platform  string         `json:"platform"`  // GOOS/GOARCH
	Source    string         `json:"source"`    // digest of our sources, as in the cache's path
	Prewarmer string         `json:"prewarmer"` // why it is left out; empty if it is included
	Files     []manifestFile `json:"files"`
}

type manifestFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// readManifest reads dir's manifest and checks that it is consistent. If digest
// is not empty, the file must have it.
func readManifest(dir, digest string) (manifest, error) {
	var m manifest
	path := filepath.Join(dir, manifestName)
	info, err := os.Lstat(path)
	if err != nil {
		return m, badDigest(dir, "cannot read its manifest: "+err.Error())
	}
	if info.Size() > maxManifestSize {
		return m, badDigest(dir, fmt.Sprintf("its manifest has %d bytes", info.Size()))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return m, badDigest(dir, "cannot read its manifest: "+err.Error())
	}
	if sum := sha256.Sum256(text); digest != "" && hex.EncodeToString(sum[:]) != digest {
		return m, badDigest(dir, "its manifest is not the one that was released with this program")
	}
	if err := strictjson.Decode(text, &m); err != nil {
		return m, badDigest(dir, "invalid manifest: "+err.Error())
	}
	return m, m.checkContents(dir)
}

func (m manifest) checkContents(dir string) error {
	if m.Schema != manifestSchema {
		return badDigest(dir, fmt.Sprintf("unsupported manifest %q", m.Schema))
	}
	if want := hostPlatform(); m.Platform != want {
		return badVersion(dir, fmt.Sprintf("it is for %q, this is %s", m.Platform, want))
	}
	if m.GVisor != GVisorVersion {
		return badVersion(dir, fmt.Sprintf("it is gVisor %q, pinned is %s", m.GVisor, GVisorVersion))
	}
	var names []string
	for _, f := range m.Files {
		names = append(names, f.Name)
	}
	want := []string{initName, runscName, prewarmerName, sentryName}
	if !m.isPrewarmed() {
		want = slices.DeleteFunc(want, func(n string) bool { return n == prewarmerName })
	}
	slices.Sort(want)
	if slices.Sort(names); !slices.Equal(names, want) {
		return badDigest(dir, fmt.Sprintf("its manifest names %q, want %q", names, want))
	}
	return nil
}

func (m manifest) isPrewarmed() bool { return m.Prewarmer == "" }

func (m manifest) writeManifest(dir string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, manifestName), append(text, '\n'), 0o644)
}

func hostPlatform() string { return runtime.GOOS + "/" + runtime.GOARCH }

func platformOf(arch string) string { return "linux/" + arch }

func badDigest(dir, message string) error {
	return refusalError(CodeDigest, dir, message, "remove that directory and run fumehood again")
}

func badVersion(dir, message string) error {
	return refusalError(CodeVersion, dir, message,
		"fumehood and "+runscName+" must come from the same release or the same source")
}

func refusalError(code, dir, message, hint string) error {
	return &proposal.StopError{
		Code:    code,
		Message: fmt.Sprintf("refused the %s in %q: %s", runscName, dir, message),
		Hint:    hint,
	}
}
