// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"slices"
	"testing"
)

func TestPattern(t *testing.T) {
	p := New(`^(?P<name>[a-z]+)=(\d+)$`)
	if got, want := p.FindStringSubmatch("a=1"), []string{"a=1", "a", "1"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if !p.MatchString("b=2") || p.MatchString("b=") || p.SubexpIndex("name") != 1 || p.String() != `^(?P<name>[a-z]+)=(\d+)$` {
		t.Error("it is not the expression that was given")
	}
	if got := New("x+").ReplaceAll([]byte("axxb"), nil); string(got) != "ab" {
		t.Errorf("replaced: %q", got)
	}
}

// An invalid pattern is detected when it is used, not before.
func TestPatternIsCompiledOnUse(t *testing.T) {
	p := New("(")
	defer func() {
		if recover() == nil {
			t.Error("a broken pattern matched")
		}
	}()
	p.MatchString("")
}
