// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/sample"
)

const token = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"

var key = "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat(strings.Repeat("Zm9v", 16)+"\n", 20) + "-----END RSA PRIVATE KEY-----\n"

// written returns what l passes on after each of texts, and after its end.
func written(t *testing.T, masks []Mask, texts ...string) []string {
	t.Helper()
	r, err := NewRedactor(masks)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	l := r.Live(&out)
	var list []string
	next := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, out.String())
		out.Reset()
	}
	for _, text := range texts {
		_, err := l.Write([]byte(text))
		next(err)
	}
	next(l.Close())
	return list
}

func TestLive(t *testing.T) {
	masks := []Mask{{Name: "PASS", Value: "hunter2hunter2"}}
	for _, test := range []struct {
		name        string
		texts, want []string
	}{
		{"a line", []string{"one\n", "two\nthr", "ee\n"}, []string{"one\n", "two\n", "three\n", ""}},
		{"a prompt", []string{"name? ", ">>> ", "x"}, []string{"name? ", ">>> ", "", "x"}},
		{"a line that ends like a mask begins", []string{"ok h\n", "ok hu\n", "x\n"}, []string{"ok h\n", "ok ", "hu\nx\n", ""}},
		{"a token in two parts", []string{"a " + token[:9], token[9:] + "\n"}, []string{"", "a [redacted github-pat]\n", ""}},
		{"its name on the line before", []string{"api_token =\n", "'q8FzR2kLmX0pWv7Ty4Nb'\n"}, []string{"api_token =\n", "'[redacted generic-api-key]'\n", ""}},
		{"a mask in two lines", []string{"is hunter2\n", "hunter2\n"}, []string{"is ", "", "[redacted PASS]\n"}},
		{"a key, line by line", slices.Collect(strings.Lines("k\n" + key + "after\n")), append(append([]string{"k\n"}, make([]string, 21)...), "[redacted private-key]\n", "after\n", "")},
		{"a key without end", []string{key[:200], "x\n"}, []string{"", "", key[:200] + "x\n"}},
		{"a marker", []string{"[redacted PASS]\n"}, []string{"(redacted PASS]\n", ""}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := written(t, masks, test.texts...); !slices.Equal(got, test.want) {
				t.Errorf("got %q\nwant %q", got, test.want)
			}
		})
	}
}

// However a text is divided into writes, no secret of it leaves, except for the first letter
// of a mask.
func TestLiveByParts(t *testing.T) {
	mask := "hunter2hunter2"
	text := "before\n" + mask + " " + token + "\nname " + key + "tail " + mask
	sizes := make([]int, 119)
	for i := range sizes {
		sizes[i] = i + 1
	}
	for _, size := range sample.EveryNth(t, sizes, 5, 20) {
		var parts []string
		for part := range slices.Chunk([]byte(text), size) {
			parts = append(parts, string(part))
		}
		got := strings.Join(written(t, []Mask{{Name: "PASS", Value: mask}}, parts...), "")
		if want := "before\n[redacted PASS] [redacted github-pat]\nname [redacted private-key]\ntail [redacted PASS]"; got != want {
			t.Fatalf("in parts of %d: %q", size, got)
		}
	}
	// Each letter on its own line.
	got := strings.Join(written(t, []Mask{{Name: "PASS", Value: mask}}, strings.SplitAfter("x\n"+strings.Join(strings.Split(mask, ""), "\n"), "\n")...), "")
	if got != "x\nh\n[redacted PASS]" {
		t.Errorf("letter by letter: %q", got)
	}
}

// A text without lines is passed on in windows, and memory stays bounded.
func TestLiveBounded(t *testing.T) {
	r, err := NewRedactor(nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	l := r.Live(&out)
	for range 300 {
		if _, err := l.Write(bytes.Repeat([]byte("x"), 1000)); err != nil {
			t.Fatal(err)
		}
		if l.HeldBytes() > 2*window {
			t.Fatalf("%d bytes are held", l.HeldBytes())
		}
	}
	if err := l.Close(); err != nil || out.Len() != 300_000 {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
}
