// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
)

func wantVerify(t testing.TB, err error, code string, line, entry int64) {
	t.Helper()
	var ve *VerifyError
	if !errors.As(err, &ve) {
		t.Fatalf("error = %v, want a VerifyError %s", err, code)
	}
	if ve.Code != code || ve.Line != line || ve.Entry != entry {
		t.Errorf("error = %v, want %s at line %d, entry %d", err, code, line, entry)
	}
}

// TestCutAtEveryByte cuts a sealed log at every byte: it must never be reported as
// complete, and every entry whose line is whole is listed, in order, as signed or not.
func TestCutAtEveryByte(t *testing.T) {
	whole := logOf(t, 4, true)
	key := testSigner(t, "test.example").Key()
	sum, err := Verify(bytes.NewReader(whole), Trust{Key: key})
	if err != nil || !sum.Complete() {
		t.Fatalf("whole log: %v, %v", sum, err)
	}
	for _, cut := range places(t, len(whole)) {
		var listed, unsigned int64
		got, err := Scan(bytes.NewReader(whole[:cut]), Trust{Key: key}, func(e Entry) error {
			if e.N != listed {
				t.Errorf("cut %d: entry %d listed as number %d", cut, e.N, listed)
			}
			if listed++; e.Unsigned {
				unsigned++
			}
			return nil
		})
		if err != nil {
			t.Errorf("cut %d: %v, want it told apart from tampering", cut, err)
		}
		lines := bytes.SplitAfter(whole[:cut], []byte("\n"))
		wholeEntries := int64(0)
		signed := int64(0)
		for i, line := range lines {
			if !bytes.HasSuffix(line, []byte("\n")) {
				continue
			}
			if bytes.HasPrefix(line, []byte(`{"entry"`)) {
				wholeEntries++
			} else if i > 0 {
				signed = wholeEntries
			}
		}
		if listed != wholeEntries || got.Entries != signed || got.Unsigned != unsigned || unsigned != wholeEntries-signed {
			t.Errorf("cut %d: %d listed, %d unsigned of %d; summary %+v", cut, listed, unsigned, wholeEntries, got)
		}
		if got.State == Sealed || got.State == Broken || got.SignedBytes+got.TornBytes != int64(cut) {
			t.Errorf("cut %d: %+v", cut, got)
		}
		if _, err := Verify(bytes.NewReader(whole[:cut]), Trust{Key: key, Checkpoint: sum.Checkpoint}); err == nil {
			t.Errorf("cut %d: not found with the seal known", cut)
		} else if ve := new(VerifyError); !errors.As(err, &ve) || ve.Code != codeTruncated {
			t.Errorf("cut %d: %v, want truncated", cut, err)
		} else if got.Entries == sum.Entries != strings.Contains(ve.Message, "without the seal") {
			t.Errorf("cut %d of %d: it does not say what is missing: %v", cut, len(whole), err)
		}
	}
}

// TestFlipEveryByte changes each byte of a sealed log in several ways: none may
// verify as sealed, and the reported line must be the changed one.
func TestFlipEveryByte(t *testing.T) {
	lanetest.SkipShort(t)
	whole := logOf(t, 3, true)
	key := testSigner(t, "test.example").Key()
	for _, i := range places(t, len(whole)) {
		b, line := whole[i], int64(1+bytes.Count(whole[:i], []byte("\n")))
		for _, c := range []byte{b ^ 1, b ^ 0x20, b ^ 0x80, '\n', '"', '0'} {
			if c == b {
				continue
			}
			bad := bytes.Clone(whole)
			bad[i] = c
			sum, err := Verify(bytes.NewReader(bad), Trust{Key: key})
			if sum.State == Sealed {
				t.Fatalf("byte %d: %q as %q verifies as sealed", i, b, c)
			}
			if err == nil && i != len(whole)-1 {
				t.Fatalf("byte %d: %q as %q is %v, not tampering", i, b, c, sum)
			}
			if ve := new(VerifyError); errors.As(err, &ve) && ve.Line != line {
				t.Errorf("byte %d of line %d: %q as %q is found at %v", i, line, b, c, err)
			}
		}
	}
}

// places returns the offsets in a log that a test tries.
func places(t *testing.T, n int) []int {
	t.Helper()
	var all []int
	for i := range n {
		all = append(all, i)
	}
	return sample.EveryNth(t, all, 3, 31)
}

// TestRemoveOrInsertEveryByte does the same with one byte removed and one added.
func TestRemoveOrInsertEveryByte(t *testing.T) {
	whole := logOf(t, 2, true)
	key := testSigner(t, "test.example").Key()
	for _, i := range places(t, len(whole)) {
		less := append(bytes.Clone(whole[:i]), whole[i+1:]...)
		if sum, err := Verify(bytes.NewReader(less), Trust{Key: key}); err == nil && i != len(whole)-1 || sum.State == Sealed {
			t.Errorf("without byte %d: %v, %v", i, sum, err)
		}
		for _, c := range []byte("\n x\"") {
			more := append(append(bytes.Clone(whole[:i]), c), whole[i:]...)
			if sum, err := Verify(bytes.NewReader(more), Trust{Key: key}); err == nil {
				t.Errorf("%q before byte %d: %v", c, i, sum)
			}
		}
	}
}

// TestLinesMoved removes, repeats and swaps whole lines and pairs of lines.
func TestLinesMoved(t *testing.T) {
	lanetest.SkipShort(t)
	lines := bytes.SplitAfter(logOf(t, 5, true), []byte("\n"))
	lines = lines[:len(lines)-1] // the empty rest after the last newline
	key := testSigner(t, "test.example").Key()
	check := func(name string, changed [][]byte) {
		sum, err := Verify(bytes.NewReader(bytes.Join(changed, nil)), Trust{Key: key})
		if err == nil {
			t.Errorf("%s: %v", name, sum)
		}
	}
	join := func(parts ...[][]byte) (all [][]byte) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for n := 1; n <= 4; n++ {
		for i := 0; i+n <= len(lines); i++ {
			part := lines[i : i+n]
			if i+n < len(lines) {
				check(fmt.Sprintf("%d lines removed at %d", n, i), join(lines[:i], lines[i+n:]))
			}
			check(fmt.Sprintf("%d lines repeated at %d", n, i), join(lines[:i+n], part, lines[i+n:]))
			for j := i + n; j+n <= len(lines); j++ {
				check(fmt.Sprintf("%d lines swapped at %d and %d", n, i, j),
					join(lines[:i], lines[j:j+n], lines[i+n:j], part, lines[j+n:]))
			}
		}
	}
}
