// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"testing"

	"github.com/fumehood/fumehood/internal/sandbox/install"
	"github.com/fumehood/fumehood/internal/sandbox/install/installtest"
)

// BenchmarkFind measures what every fumehood process does once: compute all
// digests.
func BenchmarkFind(b *testing.B) {
	installtest.Runsc(b)
	for b.Loop() {
		install.Forget()
		if _, err := install.Find(b.Context(), install.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFindKnown measures it for a process that others have left the digests to.
func BenchmarkFindKnown(b *testing.B) {
	installtest.Runsc(b)
	o := install.Options{Remember: b.TempDir()}
	for b.Loop() {
		install.Forget()
		if _, err := install.Find(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUnchanged measures what every start of a sandbox does.
func BenchmarkUnchanged(b *testing.B) {
	r := installtest.Runsc(b)
	for b.Loop() {
		if err := r.CheckUnchanged(); err != nil {
			b.Fatal(err)
		}
	}
}
