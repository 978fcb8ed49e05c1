// SPDX-License-Identifier: Apache-2.0

package toolchain

import "testing"

func TestStep(t *testing.T) {
	for _, tt := range []struct{ tool, least, want string }{
		{"node", "22", `- {uses: actions/setup-node@v6, with: {node-version: "22"}}`},
		{"node", "20.11.1", `- {uses: actions/setup-node@v6, with: {node-version: "20"}}`},
		{"go", "1.23.4", `- {uses: actions/setup-go@v6, with: {go-version: "1.23", cache: false}}`},
		{"python", "3", `- {uses: actions/setup-python@v6, with: {python-version: "3"}}`},
		{"java", "17", `- {uses: actions/setup-java@v5, with: {java-version: "17", distribution: temurin}}`},
		{"rust", "1.80", ""},
		{"node", "", ""},
		{"cobol", "1", ""},
	} {
		if got := InstallStep(tt.tool, tt.least); got != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.tool, tt.least, got, tt.want)
		}
	}
}
