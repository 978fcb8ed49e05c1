// SPDX-License-Identifier: Apache-2.0

package process

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestParseOwner(t *testing.T) {
	for _, text := range []string{"1000", "a:b", "-1:0", "1:2:3", "1:", ":"} {
		if o, err := ParseOwner(text); err == nil {
			t.Errorf("%q is taken for %+v", text, o)
		}
	}
	if o, err := ParseOwner("1:2"); err != nil || *o != (Owner{1, 2}) {
		t.Errorf("1:2 is %+v, %v", o, err)
	}
	if o, err := ParseOwner(""); err != nil || o != nil || o.TakePaths("/") != nil {
		t.Errorf("without an owner something changed hands: %+v, %v", o, err)
	}
}

// A link is not followed, and what does not exist is no error.
func TestTakeLink(t *testing.T) {
	o := &Owner{os.Getuid(), os.Getgid()}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/nowhere", link); err != nil {
		t.Fatal(err)
	}
	if err := o.TakePaths(link, link+".none"); err != nil {
		t.Error(err)
	}
}

func TestUntilEnd(t *testing.T) {
	r, w := io.Pipe()
	ctx, cancel := UntilEnd(t.Context(), r)
	defer cancel()
	if ctx.Err() != nil {
		t.Error("it is done before the pipe is closed")
	}
	w.Close()
	<-ctx.Done()
}
