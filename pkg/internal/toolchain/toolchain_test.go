// SPDX-License-Identifier: Apache-2.0

package toolchain

import "testing"

func TestStep(t *testing.T) {
	for _, tt := range []struct{ tool, file, want string }{
		{"node", "package.json", "- {uses: actions/setup-node@v6, with: {node-version-file: package.json}}"},
		{"go", "a/go.mod", "- {uses: actions/setup-go@v6, with: {go-version-file: a/go.mod}}"},
		{"java", ".java-version", "- {uses: actions/setup-java@v5, with: {java-version-file: .java-version, distribution: temurin}}"},
		{"ruby", "Gemfile", "- {uses: ruby/setup-ruby@v1}"},
		{"rust", "Cargo.toml", ""},
		{"python", "mise.toml", ""},
		{"cobol", "x", ""},
	} {
		if got := Step(tt.tool, tt.file); got != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.tool, tt.file, got, tt.want)
		}
	}
}
