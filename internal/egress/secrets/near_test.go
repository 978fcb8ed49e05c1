// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"math/rand/v2"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// examplePart appends what p may match.
func examplePart(b *strings.Builder, p *syntax.Regexp, r *rand.Rand) {
	times, most := 1, 1
	switch p.Op {
	case syntax.OpLiteral:
		for _, c := range p.Rune {
			if p.Flags&syntax.FoldCase != 0 && r.IntN(2) == 0 {
				c = []rune(strings.ToUpper(string(c)))[0]
			}
			b.WriteRune(c)
		}
		return
	case syntax.OpCharClass:
		at := 2 * r.IntN(len(p.Rune)/2)
		b.WriteRune(p.Rune[at] + rune(r.IntN(int(min(p.Rune[at+1]-p.Rune[at], 200)+1))))
		return
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte(byte(' ' + r.IntN(95)))
		return
	case syntax.OpAlternate:
		examplePart(b, p.Sub[r.IntN(len(p.Sub))], r)
		return
	case syntax.OpStar, syntax.OpQuest:
		times = 0
	case syntax.OpPlus:
		most = 9
	case syntax.OpRepeat:
		if times, most = p.Min, p.Max; most < 0 {
			most = p.Min + 9
		}
	}
	for range times + r.IntN(max(most, times)-times+1) {
		for _, sub := range p.Sub {
			examplePart(b, sub, r)
		}
	}
}

// matchesEverywhere are the matches of rules in a text, as found near keywords and in the whole text.
func matchesEverywhere(s *Scanner, rules []int, text string) (near, whole [][][]int) {
	lower := lowerASCII(text)
	if hasFolded(text) {
		lower = ""
	}
	for _, i := range rules {
		near = append(near, s.rules[i].findMatches(text, lower))
		whole = append(whole, s.rules[i].pattern().FindAllStringSubmatchIndex(text, -1))
	}
	return near, whole
}

// What is found near keywords is what is found in the whole text: in examples of all rules, beside each other, cut, and
// between words that begin like them.
func TestNearIsWhole(t *testing.T) {
	s := scanner(t)
	r := rand.New(rand.NewPCG(1, 2))
	by, found := 0, 0
	noise := []string{" ", "\n", "\"", "': '", " = ", ": ", "x", "abcdefghij0123456789", "key", "Token", "api_key=", "-", "=", ";", "\\n", "é", "\xff", ",", "secret",
		strings.Repeat("ab1/", 40), strings.Repeat(" ", 300), strings.Repeat("word. ", 60)}
	for i := range s.rules {
		one := &s.rules[i]
		if one.vicinity() == nil {
			continue
		}
		by++
		pattern, err := syntax.Parse(one.Regex, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		for range 6 {
			var b strings.Builder
			for range 12 {
				switch r.IntN(4) {
				case 0:
					var example strings.Builder
					examplePart(&example, pattern, r)
					text := example.String()
					b.WriteString(text[:len(text)-r.IntN(2)*r.IntN(len(text))])
				case 1:
					b.WriteString(one.Keywords[r.IntN(len(one.Keywords))])
				default:
					b.WriteString(noise[r.IntN(len(noise))])
				}
			}
			text := b.String()
			near, whole := matchesEverywhere(s, []int{i}, text)
			if diff := cmp.Diff(whole, near); diff != "" {
				t.Fatalf("%s in %q: %s", one.ID, text, diff)
			}
			found += len(whole[0])
		}
	}
	t.Logf("%d of %d rules have a vicinity; %d finds", by, len(s.rules), found)
	if by < 180 || found < 500 {
		t.Errorf("%d of %d rules have a vicinity; %d finds", by, len(s.rules), found)
	}
}

func FuzzNear(f *testing.F) {
	for _, text := range []string{"api_key: 'abcdefghij0123456789x'\n", "token=ghp_0123456789abcdefghijklmnopqrstuvwxyzABCD key", "\u212aey = abcdefghij0123456789x;", "AKIA0123456789ABCDEF secret"} {
		f.Add(text)
	}
	s := scanner(f)
	f.Fuzz(func(t *testing.T, text string) {
		near, whole := matchesEverywhere(s, s.candidateRules(lowerASCII(text)), text)
		if diff := cmp.Diff(whole, near); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	})
}
