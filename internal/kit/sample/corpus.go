// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"os"
	"strings"
	"testing"
)

// ReadCorpus reads the texts of a file: one a line, or several lines between lines of "---".
func ReadCorpus(t testing.TB, name string) []string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for i, block := range strings.Split(string(content), "\n---\n") {
		if i%2 == 1 {
			texts = append(texts, strings.TrimSpace(block))
			continue
		}
		for line := range strings.Lines(block) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				texts = append(texts, line)
			}
		}
	}
	return texts
}
