// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/internal/watch/diagnose"
)

// What a Cause advises works: set-up is detected from each file that it says to write, and reads the
// registry.
func TestManifestsAreDetected(t *testing.T) {
	text := map[string]string{
		"go.mod": "module m\n\ngo 1.21\n\nrequire example.com/a v1.0.0\n", "package.json": `{"devDependencies": {"mocha": "*"}}`, "requirements.txt": "pytest\n",
		"Cargo.toml": "[package]\nname = \"a\"\nversion = \"0.1.0\"\n\n[dependencies]\nserde = \"1\"\n", "pom.xml": "<project/>", "Gemfile": "gem 'rake'\n", "pubspec.yaml": "name: a\n",
	}
	for registry, file := range diagnose.Manifests {
		found := host().Detect(tree(strings.Replace(file, "*", "a", 1), text[file]))
		if !slices.ContainsFunc(found.Steps, func(s Step) bool { return slices.Contains(s.Network, "registry:"+registry) }) {
			t.Errorf("%s: no command of set-up reads %s: %s", file, registry, summary(found))
		}
		if !slices.Contains(document.Registries, registry) {
			t.Errorf("%s is no registry that the configuration may name", registry)
		}
	}
}
