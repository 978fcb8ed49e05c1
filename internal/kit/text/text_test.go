// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestInline(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		max      int
		want     string
	}{
		{"plain", "go test ./...", 40, "go test ./..."},
		{"cut", "0123456789", 5, "0123…"},
		{"exact", "01234", 5, "01234"},
		{"one unit", "abc", 1, "…"},
		{"newline and tab", "a\n\tb", 40, "a↵⇥b"},
		{"escape", "\x1b[31mred", 40, "⟨ESC⟩[31mred"},
		{"nul, backspace, delete", "\x00\b\x7f", 40, "⟨NUL⟩⟨BS⟩⟨DEL⟩"},
		{"C1", "\u0085\u009b", 40, "⟨U+0085⟩⟨U+009B⟩"},
		{"bidi", "\u202egnp.exe", 40, "⟨U+202E⟩gnp.exe"},
		{"zero width", "a\u200bb\ufeffc\u00ad", 60, "a⟨U+200B⟩b⟨U+FEFF⟩c⟨U+00AD⟩"},
		{"filler and tag", "\u3164\U000e0041", 40, "⟨U+3164⟩⟨U+E0041⟩"},
		{"no-break space", "a\u00a0b", 40, "a⟨U+00A0⟩b"},
		{"invalid UTF-8", "\xff\xc3(", 40, "⟨0xFF⟩⟨0xC3⟩("},
		{"replacement character itself", "\ufffd", 40, "\ufffd"},
		{"emoji presentation", "⚠️", 40, "⚠"},
		{"variation selector on a letter", "a\ufe0f", 40, "a⟨U+FE0F⟩"},
		{"four marks stay, a fifth does not", "e\u0301\u0302\u0303\u0304\u0305", 40, "e\u0301\u0302\u0303\u0304⟨U+0305⟩"},
		{"escape is not cut in two", "ab\u200b", 5, "ab…"},
		{"surrogate pairs count twice", "😀😀😀", 5, "😀😀…"},
		{"command", "::error::x", 40, ": :error::x"},
		{"command after blanks", "  ::error::x", 40, "  : :error::x"},
		{"old command", "a ##[error]x", 40, "a ## [error]x"},
		{"old command in more hashes", "####[error]x", 40, "#### [error]x"},
		{"not a command", "std::vector #[derive] a::b", 40, "std::vector #[derive] a::b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Inline(tt.in, tt.max)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestExcerpt(t *testing.T) {
	numbered := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, "line %05d\n", i)
		}
		return b.String()
	}
	for _, tt := range []struct {
		name       string
		head, tail string
		total      int64
		max        int
		want       Block
	}{
		{"nothing", "", "", 0, 1000, Block{}},
		{"no newline at the end", "a\nb", "", 3, 1000, Block{Text: "a\nb\n", Units: 4}},
		{"head and tail meet in a line", "ab", "cd\n", 5, 1000, Block{Text: "abcd\n", Units: 5}},
		{"progress bar", "50%\r100%\r\ndone\n", "", 15, 1000, Block{Text: "50%⟨CR⟩\n100%\ndone\n", Units: 18}},
		{"colours", "\x1b[1;31mred\x1b[m\x1b[K\n", "", 17, 1000, Block{Text: "red\n", Units: 4, Colours: 3}},
		{"other sequences stay visible", "\x1b[2J\x1b]8;;u\a", "", 11, 1000, Block{Text: "⟨ESC⟩[2J⟨ESC⟩]8;;u⟨BEL⟩\n", Units: 24}},
		{"tab stays, no-break space is a space", "\ta\u00a0b\n", "", 6, 1000, Block{Text: "\ta b\n", Units: 5}},
		{"commands", "::error::x\n\t ::debug::y\nok ##[group]z\na::b\n", "", 43, 1000, Block{Text: ": :error::x\n\t : :debug::y\nok ## [group]z\na::b\n", Units: 46, Commands: 3}},
		{"command behind a carriage return", "x\r::error::x\n", "", 13, 1000, Block{Text: "x⟨CR⟩\n: :error::x\n", Units: 18, Commands: 1}},
		{"backticks", strings.Repeat("`", 70) + "x\n", "", 72, 1000, Block{Text: strings.Repeat("`", 64) + "⟨`…⟩x\n", Units: 70}},
		{"gap of the stream", "a\n", "z\n", 104, 1000, Block{Text: "a\n⟨… 100 bytes left out here …⟩\nz\n", Units: 34, Omitted: 100}},
		{"too long", numbered(0, 100), "", 1100, 160, Block{
			Text: numbered(0, 3) + "⟨… 1,001 bytes left out here …⟩\n" + numbered(94, 100), Units: 131, Omitted: 1001,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Excerpt([]byte(tt.head), []byte(tt.tail), tt.total, tt.max)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLongLine(t *testing.T) {
	b := Excerpt([]byte(strings.Repeat("x", 10000)+"END\nnext\n"), nil, 10009, 60000)
	if !strings.HasSuffix(b.Text, "xEND\nnext\n") || !strings.HasPrefix(b.Text, "xxx") {
		t.Errorf("beginning and end of the line are not both there: %q", b.Text)
	}
	if b.Units > maxLine+10 || b.Omitted < 7900 {
		t.Errorf("%d units, %d omitted", b.Units, b.Omitted)
	}
	kept := strings.Count(b.Text, "x") - strings.Count("next", "x")
	if int64(kept)+b.Omitted != 10000 {
		t.Errorf("%d kept and %d omitted of 10000", kept, b.Omitted)
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234: "-1,234", 1234567: "1,234,567"} {
		if got := FormatCount(n); got != want {
			t.Errorf("Count(%d) = %s, want %s", n, got, want)
		}
	}
}

// FuzzExcerpt checks the size, alphabet and byte counts of a Block.
func FuzzExcerpt(f *testing.F) {
	for _, s := range []string{"", "a\r\nb\rc", "\x1b[31mx", "::a::b\n##[x]", "\xff\u202e`````", strings.Repeat("long ", 3000)} {
		f.Add([]byte(s), []byte(s), int64(0), uint16(300))
	}
	f.Fuzz(func(t *testing.T, head, tail []byte, gap int64, room uint16) {
		total := int64(len(head)+len(tail)) + max(0, gap%(1<<40))
		b := Excerpt(head, tail, total, max(200, int(room)))
		if n := CountUnits(b.Text); n != b.Units || n > max(200, int(room)) {
			t.Errorf("%d units, said to be %d, room %d", n, b.Units, room)
		}
		if b.Omitted < 0 || b.Omitted > total {
			t.Errorf("%d of %d bytes omitted", b.Omitted, total)
		}
		if b.Text != "" && !strings.HasSuffix(b.Text, "\n") || !utf8.ValidString(b.Text) {
			t.Errorf("not lines of UTF-8: %q", b.Text)
		}
		for line := range strings.SplitSeq(b.Text, "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "::") || strings.Contains(line, "##[") {
				t.Errorf("workflow command %q", line)
			}
		}
		if strings.Contains(b.Text, Fence(b.Text)) || len(Fence(b.Text)) > maxTicks+1 {
			t.Errorf("fence %q does not hold", Fence(b.Text))
		}
		for _, r := range b.Text {
			if r != '\n' && r != '\t' && IsHidden(r) {
				t.Errorf("%U survives", r)
			}
		}
	})
}
