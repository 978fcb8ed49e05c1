// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/cputime"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// canaries are values of every kind that people mask.
var canaries = []string{
	"hunter2!",
	"s3cr3t",
	"npm_" + random(11, 36, letters),
	"p@ss/w+rd=&%41 \\n\"quoted\" <tag>",
	"pässwörd-日本語-ключ",
	"aaaaaaaaaaaaaaaaaaaab",
	random(12, 700, letters),
	"-----BEGIN THING-----\n" + random(13, 64, letters) + "\n" + random(14, 64, letters) + "\n" + random(15, 20, letters) + "\n-----END THING-----\n",
	`{"type": "robot", "id": "` + random(16, 30, letters) + `", "n": 7}`,
	"1234567890",
	"\xffno\x80text\xfe\xc3",
}

type way struct {
	name  string
	write func(string) string
}

// ways are the ways in which a value may be written; each must be found at any position.
var ways = []way{
	{"plain", func(s string) string { return s }},
	{"base64", func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }},
	{"base64 after one", func(s string) string { return base64.StdEncoding.EncodeToString([]byte(":" + s)) }},
	{"base64 after two", func(s string) string { return base64.StdEncoding.EncodeToString([]byte("u:" + s + "\n")) }},
	{"base64 of URLs", func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("u:" + s)) }},
	{"base64 in lines", func(s string) string { return wrapped(s) }},
	{"hex", func(s string) string { return hex.EncodeToString([]byte(s)) }},
	{"HEX", func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) }},
	{"hex with blanks", func(s string) string { return fmt.Sprintf("% x", s) }},
	{"hex with backslashes", func(s string) string { return separateHexBytes(hex.EncodeToString([]byte(s)), `\x`) }},
	{"query", url.QueryEscape},
	{"path", url.PathEscape},
	{"percent", fully},
	{"reversed", reverseBytes},
	{"reversed by characters", reverseRunes},
	{"rot13", rot13},
	{"small", func(s string) string { return swapCase(s, 'A', 'Z') }},
	{"capital", func(s string) string { return swapCase(s, 'a', 'z') }},
	{"JSON", func(s string) string { b, _ := json.Marshal(s); return string(b) }},
	{"JSON twice", func(s string) string { b, _ := json.Marshal(s); return string(b) + string(b) }},
	{"HTML", html.EscapeString},
	{"Go", func(s string) string { return fmt.Sprintf("%+q", s) }},
	{"over lines", func(s string) string { return every(s, "\n") }},
	{"over lines of Windows", func(s string) string { return every(s, "\r\n") }},
	{"coloured", func(s string) string { return every(s, "\x1b[1;31m") }},
	{"coloured in lines", func(s string) string { return every(s, "\x1b[0m\r\n\x1b[38;5;200m") }},
	{"after half a colour", func(s string) string { return "\x1b[" + s }},
	{"after an escape that is none", func(s string) string { return "\x1b\\%4" + s }},
}

// every puts mark between the characters of s.
func every(s, mark string) string {
	return strings.Join(strings.SplitAfter(s, ""), mark)
}

func redactor(t testing.TB, values ...string) *Redactor {
	t.Helper()
	var masks []Mask
	for i, v := range values {
		masks = append(masks, Mask{Name: fmt.Sprintf("CANARY_%d", i), Value: v})
	}
	r, err := NewRedactor(masks)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// leaks reports whether text still reveals value, in the way that it was written or
// in any that takes no key to read. Of a multi-line value each line counts.
func leaks(text, value string, write func(string) string) bool {
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if len(line) < minLine && line != strings.TrimSpace(value) || strings.HasPrefix(line, "-----") {
			continue
		}
		for _, text := range []string{text, removeSkippedChars(text), removeSkippedChars(colors.Replace(text)), unescapedAll(text)} {
			if strings.Contains(text, line) || strings.Contains(text, reverseBytes(line)) || strings.Contains(text, hex.EncodeToString([]byte(line))) {
				return true
			}
		}
	}
	return strings.Contains(text, write(value))
}

var colors = strings.NewReplacer("\x1b[1;31m", "", "\x1b[0m", "", "\x1b[38;5;200m", "")

func unescapedAll(text string) string {
	s, err := url.PathUnescape(text)
	if err != nil {
		return text
	}
	return s
}

// Each value in each form is removed, at every position of a text and for any chunks.
func TestMasksInEveryForm(t *testing.T) {
	lanetest.SkipShort(t)
	near := [][2]string{{"", ""}, {"token=", "\n"}, {"\"", "\","}, {"AAAA", "zz"}}
	far := [2]string{strings.Repeat("ok 1 2 3\n", 9000), strings.Repeat("\nend", 9000)}
	for i, value := range sample.EveryNth(t, canaries, 2, 4) {
		r := redactor(t, value)
		deep := sample.EveryNth(t, ways, 8, len(ways))
		for _, w := range ways {
			written, places := w.write(value), near
			if slices.ContainsFunc(deep, func(d way) bool { return d.name == w.name }) {
				places = append(slices.Clone(near), far)
			}
			for _, around := range places {
				if around[0] == "AAAA" && strings.HasPrefix(w.name, "base64") {
					continue // a longer run of base64 is a different text
				}
				text := around[0] + written + around[1]
				out, tally := r.Text([]byte(text))
				if leaks(string(out), value, w.write) || len(tally.Found) == 0 {
					t.Errorf("canary %d, %s, between %.8q and %.8q: found %v in %.300q", i, w.name, around[0], around[1], tally, out[max(0, len(around[0])-10):])
				}
				var small bytes.Buffer
				again, err := r.Copy(&small, iotest.OneByteReader(strings.NewReader(text)), nil)
				if err != nil || len(text) < 1000 && !bytes.Equal(small.Bytes(), out) || !cmp.Equal(again, tally) {
					t.Errorf("canary %d, %s: by single bytes %v, %v: %.300q, want %v %.300q", i, w.name, err, again, small.Bytes(), tally, out)
				}
			}
		}
	}
}

// The text around a value stays unchanged.
func TestMasksLeaveTheRest(t *testing.T) {
	r := redactor(t, "hunter2!", "s3cr3t", "s3cr3t-and-longer")
	for text, want := range map[string]string{
		"a hunter2! b":                              "a [redacted CANARY_0] b",
		"hunter2!hunter2!":                          "[redacted CANARY_0][redacted CANARY_0]",
		"x s3cr3t-and-longer y s3cr3t z":            "x [redacted CANARY_2] y [redacted CANARY_1] z",
		"hunter2 hunter\nhunter2?":                  "hunter2 hunter\nhunter2?",
		"hun\x1b[1mter2! \x1b[0mok":                 "[redacted CANARY_0] \x1b[0mok",
		"a\x1b[1mb\r\n%41 \\n \\u0041 \\":           "a\x1b[1mb\r\n%41 \\n \\u0041 \\",
		"%68unter2! \\u0068unter2!":                 "[redacted CANARY_0] [redacted CANARY_0]",
		"open [redacted github-pat] close":          "open (redacted github-pat] close",
		"eDpodW50ZXIyIQ== is x:hunter2!":            "eD[redacted CANARY_0] is x:[redacted CANARY_0]",
		"hun" + strings.Repeat("\n", 300) + "ter2!": "hun" + strings.Repeat("\n", 300) + "ter2!",
		"": "",
	} {
		out, _ := r.Text([]byte(text))
		if string(out) != want {
			t.Errorf("%q became %q, want %q", text, out, want)
		}
	}
}

func TestMaskRefused(t *testing.T) {
	for value, want := range map[string]string{"short": "fewer than 6 bytes", "    x  \n": "fewer", strings.Repeat("x", MaxMask+1): "more than"} {
		_, err := NewRedactor([]Mask{{Name: "NAME", Value: value}})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "NAME") || strings.Contains(err.Error(), value) {
			t.Errorf("%.10q: %v", value, err)
		}
	}
	if _, err := NewRedactor(make([]Mask, MaxMasks+1)); err == nil {
		t.Error("any number of masks is taken")
	}
	value := random(17, MaxMask-1, letters)
	many := slices.Repeat([]Mask{{Name: "NAME", Value: value}}, 5)
	if _, err := NewRedactor(many); err == nil || !strings.Contains(err.Error(), "together") || strings.Contains(err.Error(), value) {
		t.Errorf("masks of any length are taken: %.100v", err)
	}
}

// Text that looks like a secret is found at any position, and nothing else is changed.
func TestText(t *testing.T) {
	r := redactor(t)
	for _, at := range []int{0, 100, window - 20, window - overlap - 10, 3*window - 5} {
		filler := strings.Repeat("go test ok\n", 4*window/11)
		text := filler[:at] + "\n" + githubToken + "\n" + filler[at:]
		out, tally := r.Text([]byte(text))
		if diff := cmp.Diff([]proposal.Redaction{{Rule: "github-pat", Count: 1}}, tally.Found); diff != "" {
			t.Errorf("at %d: %s", at, diff)
		}
		if want := strings.Replace(text, githubToken, "[redacted github-pat]", 1); string(out) != want {
			t.Errorf("at %d: more or less than the secret was changed", at)
		}
	}
	out, tally := r.Text([]byte("a " + awsKey + " " + githubToken + "\n" + privateKey + encode("my key: "+githubToken)))
	if want := "a [redacted aws-access-token] [redacted github-pat]\n[redacted private-key]\n[redacted github-pat]"; string(out) != want || len(tally.Found) != 3 {
		t.Errorf("got %q, %v", out, tally)
	}
}

// Bytes that are not a text do not hide secrets, and do not make the search slow.
func TestTextInBytes(t *testing.T) {
	r := redactor(t)
	junk := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{}).Read(junk)
	wide := every(githubToken, "\x00") + "\x00"
	for _, at := range []int{0, 5, window - 20, len(junk)} {
		for _, secret := range []string{githubToken, awsKey, wide, "\xe9t\xe9: " + githubToken, "password=" + encode("my key: "+githubToken)} {
			text := slices.Concat(junk[:at], []byte("\xff "+secret+"\n\xff"), junk[at:])
			if _, tally := r.Text(text); len(tally.Found) != 1 || tally.Found[0].Count != 1 || tally.Found[0].Rule == Unscanned {
				t.Errorf("%q at %d: found %v", secret, at, tally.Found)
			}
		}
	}
	for i := range r.scanner.rules {
		rule := &r.scanner.rules[i]
		parsed, err := syntax.Parse(rule.pattern().String(), syntax.Perl)
		if err != nil || minLength(parsed) < minPrintable {
			t.Errorf("%s matches %d characters, fewer than minPrintable: %v", rule.ID, minLength(parsed), err)
		}
	}
}

// minLength returns how many characters a pattern matches at least.
func minLength(p *syntax.Regexp) (n int) {
	switch p.Op {
	case syntax.OpLiteral:
		n = len(p.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		n = 1
	case syntax.OpCapture, syntax.OpPlus:
		n = minLength(p.Sub[0])
	case syntax.OpRepeat:
		n = p.Min * minLength(p.Sub[0])
	case syntax.OpConcat:
		for _, sub := range p.Sub {
			n += minLength(sub)
		}
	case syntax.OpAlternate:
		n = minLength(slices.MinFunc(p.Sub, func(a, b *syntax.Regexp) int { return minLength(a) - minLength(b) }))
	}
	return n
}

// Colors and control characters do not hide secrets that are not masked either: a
// viewer that drops them would show the secret.
func TestTextInColours(t *testing.T) {
	r := redactor(t)
	half := len(githubToken) / 2
	for text, want := range map[string]string{
		"a ghp_\x1b[0m" + githubToken[4:] + "\x1b[0m b":                                   "a [redacted github-pat]\x1b[0m b",
		"\x1b[01;31m\x1b[Kghp_\x1b[m\x1b[K" + githubToken[4:] + " b":                      "\x1b[01;31m\x1b[K[redacted github-pat] b",
		"\x1b[33m" + awsKey + "\x1b[m":                                                    "\x1b[33m[redacted aws-access-token]\x1b[m",
		"Key\x1b[33m" + awsKey:                                                            "Key\x1b[33m[redacted aws-access-token]",
		every(githubToken, "\x00") + "\x00 b":                                             "[redacted github-pat]\x00 b",
		githubToken[:half] + "\x1b[\x1b[1m" + githubToken[half:]:                          githubToken[:half] + "\x1b[\x1b[1m" + githubToken[half:],
		"\x1b[1m" + encode("my key: "+githubToken[:half]+githubToken[half:]) + "\x1b[0m.": "\x1b[1m[redacted github-pat]\x1b[0m.",
		"[red\x1b[1macted github-pat] b":                                                  "(redacted github-pat] b",
		"ok \x1b[32mPASS\x1b[0m \x1b[":                                                    "ok \x1b[32mPASS\x1b[0m \x1b[",
	} {
		if out, _ := r.Text([]byte(text)); string(out) != want {
			t.Errorf("%q became %q, want %q", text, out, want)
		}
	}
}

// A find whose rule policy keeps stays; a masked value does not.
func TestKeep(t *testing.T) {
	var out bytes.Buffer
	r := redactor(t, "hunter2!")
	text := "a " + awsKey + " " + githubToken + " hunter2!"
	tally, err := r.Copy(&out, strings.NewReader(text), func(rule string) bool { return rule == "github-pat" || rule == "mask:CANARY_0" })
	if want := "a [redacted aws-access-token] " + githubToken + " [redacted CANARY_0]"; err != nil || out.String() != want || len(tally.Found) != 2 {
		t.Errorf("%q, %v, %v", out.String(), tally, err)
	}
}

// Thousands of finds neither hide the text between them nor take long.
func TestNoise(t *testing.T) {
	lanetest.SkipShort(t)
	r := redactor(t, canaries...)
	line := awsKey + " the test failed: want 4\n"
	clock := cputime.Start()
	out, tally := r.Text([]byte(strings.Repeat(line, 40000)))
	if n := bytes.Count(out, []byte("the test failed: want 4")); n != 40000 || tally.Found[0].Count != 40000 {
		t.Errorf("%d lines are left, found %v", n, tally)
	}
	if d := clock.Stop(); d > 20*time.Second {
		t.Errorf("took %v", d)
	}
}

// The search of text that is made to be slow ends, and its unsearched part does not leave.
func TestSlowText(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	r := redactor(t, canaries...)
	r.patience = minPatience / 6
	hard := strings.Repeat(hardest(r.scanner), sample.Rounds(t, 40, 20, 4))
	clock := cputime.Start()
	out, tally := r.Text([]byte(hard + "\n" + githubToken))
	if d := clock.Stop(); d > 5*r.patience {
		t.Errorf("took %v", d)
	}
	if bytes.Contains(out, []byte(githubToken)) {
		t.Error("what was not searched left")
	}
	if len(out) < len(hard) && !slices.ContainsFunc(tally.Found, func(f proposal.Redaction) bool { return f.Rule == Unscanned }) {
		t.Errorf("the rest went without a word: %v", tally)
	}
}

// A text that nearly matches the value everywhere takes no longer than another.
func TestAlmost(t *testing.T) {
	lanetest.SkipShort(t)
	r := redactor(t, canaries...)
	for _, part := range []string{"aaaaaaaaaaaaaaaaaaaaa", "hunter2?hunter2", "%%%%%41%4", "\\u00\\u004\\x", "\x1b[\x1b[1;\x1b[[", "h\nu\nn\nt\n", strings.Repeat("\n", 40)} {
		text := []byte(strings.Repeat(part, (1<<20)/len(part)))
		clock := cputime.Start()
		out, _ := r.Text(text)
		if d := clock.Stop(); d > 3*time.Second {
			t.Errorf("%.10q took %v", part, d)
		}
		if part != "aaaaaaaaaaaaaaaaaaaaa" && !bytes.Equal(out, text) {
			t.Errorf("%.10q was changed", part)
		}
	}
}

type tree struct {
	Name  string
	Next  *tree
	List  []string
	Table map[string]string
	Bytes []byte
	At    time.Time
	N     int
	Any   *string
}

func TestValue(t *testing.T) {
	r := redactor(t, "hunter2!")
	word := "the hunter2! word"
	v := tree{Name: "x " + githubToken, Next: &tree{List: []string{"ok", word}}, Table: map[string]string{"hunter2!": "b", "c": word}, Bytes: []byte(word), At: time.Now(), N: 7, Any: &word}
	before, _ := json.Marshal(v)
	got, found := RedactValue(r, v)
	if after, _ := json.Marshal(v); !bytes.Equal(before, after) {
		t.Error("the value itself was changed")
	}
	masked := "the [redacted CANARY_0] word"
	want := tree{Name: "x [redacted github-pat]", Next: &tree{List: []string{"ok", masked}}, Table: map[string]string{"[redacted CANARY_0]": "b", "c": masked}, Bytes: []byte(word), At: v.At, N: 7, Any: &masked}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]proposal.Redaction{{Rule: "github-pat", Count: 1}, {Rule: "mask:CANARY_0", Count: 4}}, found); diff != "" {
		t.Error(diff)
	}
	clean := tree{Name: "nothing of note", List: []string{"a", "b"}}
	if same, found := RedactValue(r, clean); found != nil || !cmp.Equal(same, clean) {
		t.Errorf("%v in %v", found, same)
	}
}

// FuzzMask checks that a value never appears in the output, whatever surrounds it and
// however it is cut.
func FuzzMask(f *testing.F) {
	for i := range canaries {
		for j := range ways {
			f.Add(uint8(i), uint8(j), []byte("x="), []byte("\n"), uint16(7))
		}
	}
	f.Add(uint8(0), uint8(0), []byte("hunterhunter2\x1b[1"), []byte("\x1b"), uint16(1))
	r := redactor(f, canaries...)
	f.Fuzz(func(t *testing.T, canary, way uint8, before, after []byte, cut uint16) {
		value, w := canaries[int(canary)%len(canaries)], ways[int(way)%len(ways)]
		text := slices.Concat(before, []byte(w.write(value)), after)
		if strings.HasPrefix(w.name, "base64") {
			text = slices.Concat(before, []byte("\" \t "), []byte(w.write(value)), []byte(" "), after)
		}
		if strings.HasPrefix(w.name, "coloured") { // an incomplete color would take its first letter
			text = slices.Concat(before, []byte("\n"), []byte(w.write(value)), after)
		}
		var out bytes.Buffer
		p := r.newPipe(&out, true, nil)
		rng := rand.New(rand.NewPCG(uint64(cut), 1))
		for rest := text; len(rest) > 0; {
			n := min(len(rest), 1+rng.IntN(1+int(cut)%300))
			if _, err := p.mask.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := p.close(); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), value) || strings.Contains(out.String(), w.write(value)) {
			t.Fatalf("%s is left in %q", w.name, out.String())
		}
		whole, _ := r.Text(text)
		if !bytes.Equal(whole, out.Bytes()) {
			t.Fatalf("by chunks %q, at once %q", out.Bytes(), whole)
		}
	})
}

func BenchmarkRedact(b *testing.B) {
	ordinary := strings.Repeat("=== RUN   TestParse/heredoc_with_tabs\n--- PASS: TestParse/heredoc_with_tabs (0.00s)\nok  \tgithub.com/x/y/pkg/parse\t0.412s\tcoverage: 81.2% of statements\n", 1<<20/130)[:1<<20]
	for name, r := range map[string]*Redactor{"no masks": redactor(b), "10 masks": redactor(b, canaries...)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(ordinary)))
			for b.Loop() {
				r.Text([]byte(ordinary))
			}
		})
	}
}
