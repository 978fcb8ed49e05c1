// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readAll(data []byte) (lines []string, err error) {
	for r := NewReader(bytes.NewReader(data)); ; {
		e, err := r.Next()
		if err != nil {
			return lines, err
		}
		lines = append(lines, fmt.Sprintf("%c %q %d %d %d %d %d", e.Kind, e.Path, e.Size, e.Mtime, e.Ctime, e.Inode,
			e.Mapped))
	}
}

// What was appended is read, with paths, and a listing that was cut is not taken for a complete one.
func TestListing(t *testing.T) {
	long := strings.Repeat("x", 4000)
	b := AppendDirectory(nil, "")
	b = AppendEntry(b, "d", Entry{Kind: Opaque, Mtime: 1, Ctime: 2, Inode: 3, Mapped: 4})
	b = AppendEntry(b, "line\n", Entry{Kind: File, Size: 1 << 40, Mtime: -1})
	b = AppendDirectory(b, "d")
	b = AppendUnread(b)
	b = AppendEntry(b, long, Entry{Kind: Whiteout})
	b = AppendEnd(b)
	want := []string{`D "d" 0 1 2 3 4`,
		`f "line\n" 1099511627776 -1 0 0 0`, `? "" 0 0 0 0 0`, `w "d/` + long + `" 0 0 0 0 0`}
	got, err := readAll(b)
	if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, io.EOF) {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	for size := range len(b) {
		if _, err := readAll(b[:size]); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("of %d bytes: %v", size, err)
		}
	}
	if _, err := readAll([]byte("x")); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("an unknown record: %v", err)
	}
}
