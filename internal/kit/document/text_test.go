// SPDX-License-Identifier: Apache-2.0

package document

import (
	"testing"
	"unicode"
)

// The table is in the order that unicode.Is needs, and contains every control
// and every bidirectional control.
func TestHidden(t *testing.T) {
	shown := map[rune]bool{'\n': true, '\t': true}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		must := (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.In(r, unicode.Zl, unicode.Zp)) && !shown[r]
		if must && !isHidden(r) {
			t.Errorf("%U is let through", r)
		}
		if isHidden(r) && unicode.IsGraphic(r) && !unicode.In(r, unicode.Lo, unicode.Mn) {
			t.Errorf("%U is refused", r)
		}
	}
	for _, r := range "\n\t aé中\u200c\u200d\ufe0f😀👩" {
		if isHidden(r) {
			t.Errorf("%U is refused", r)
		}
	}
	for _, r := range "\u00ad\u034f\u115f\u180e\u200b\u2060\u3164\ufeff\uffa0\U000e0041\U000e0100" {
		if !isHidden(r) {
			t.Errorf("%U is let through", r)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"id", "run", "argv", "timeout", "outputs", "needs"}
	for name, want := range map[string]string{
		"tiemout": "timeout", "time-out": "timeout", "output": "outputs", "rnu": "run", "agrv": "argv",
		"sudo": "", "x": "", "": "", "privileged": "",
	} {
		if got := NearestName(name, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
