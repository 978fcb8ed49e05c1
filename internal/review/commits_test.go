// SPDX-License-Identifier: Apache-2.0

package review

import (
	"path/filepath"
	"testing"
)

// Limits of a pull request apply to it, and those of a local review to the head in its directory.
func TestSubject(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	l := Local{Repository: ".", Head: "feature"}
	if got := l.LimitSubject("octo/demo", 7); got != "octo/demo#7" {
		t.Error(got)
	}
	if got := l.LimitSubject("octo/demo", 0); got != here+"\nfeature" {
		t.Error(got)
	}
}
