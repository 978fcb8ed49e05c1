// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// minRight is the share of the corpus that must be read right.
const minRight = 0.95

// knownWrong are the answers that are not read right, with the reason.
var knownWrong = map[string]string{
	"go/all: extra TestOther | TestOther: failed | -":    forgedGo,
	"go/assert: extra TestOther | TestOther: failed | -": forgedGo,
	`wrong/forge-jest-log: extra login > checks the password | login > checks the password: expect(received).toBe(expected) (expected "evil", got "forged") | b.test.js:2`: forgedStream,
	`wrong/forge-vitest-log: extra core > is safe | core > is safe: AssertionError: expected "forged" to be "evil" | src/core.test.js:3`:                                   forgedStream,
}

const (
	forgedStream = "a test that passes prints its runner's form for a test that fails; the runner's own report is listed, too"
)

const forgedGo = "a test that passes prints go test's line of one that fails: without -v there is nothing to compare it with"

// An answer is a failure of a project in the corpus, written from the project's source.
type answer struct {
	test  string
	words []string // of the message or the values
	place string   // path:line; only the path if the tool prints no line; "-" if it prints no place
}

func (a answer) String() string {
	return a.test + " | " + strings.Join(a.words, ";;") + " | " + a.place
}

// readCorpus returns the answers of each output of the corpus, by tool and case, and the files
// that the pull request of a tool's project changes.
func readCorpus(t *testing.T) (answers map[string][]answer, files map[string][]string) {
	answers, files = map[string][]answer{}, map[string][]string{}
	lists, err := filepath.Glob("testdata/corpus/*/want.txt")
	if err != nil || len(lists) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(list)
		for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
			if strings.HasPrefix(line, "#") {
				continue
			}
			if rest, ok := strings.CutPrefix(line, "files "); ok {
				files[dir] = strings.Fields(rest)
				continue
			}
			parts := strings.Split(line, " | ")
			if len(parts) != 4 {
				t.Fatalf("%s: %q has no four parts", list, line)
			}
			name := filepath.Join(dir, parts[0])
			answers[name] = append(answers[name], answer{parts[1], strings.Split(parts[2], ";;"), parts[3]})
		}
	}
	return answers, files
}

// Each failure of the corpus is found, with its test, message, values and place, and nothing
// else is: also with Windows line ends.
func TestCorpus(t *testing.T) {
	lanetest.SkipShort(t)
	answers, files := readCorpus(t)
	right, all := 0, 0
	var wrong []string
	for name, want := range answers {
		stdout, _ := os.ReadFile(name + ".out")
		stderr, _ := os.ReadFile(name + ".err")
		if len(stdout)+len(stderr) == 0 {
			t.Errorf("%s has no output", name)
		}
		o := Options{}
		if list := files[filepath.Dir(name)]; list != nil {
			o.Tree = NewTree(list, true)
		}
		got := readOutput(stdout, stderr, o)
		if len(got) == 0 {
			got = []proposal.Diagnostic{{Message: lastLine(stdout, stderr)}}
		}
		short := strings.TrimPrefix(name, "testdata/corpus/")
		checked := slices.Clone(got)
		for _, a := range want {
			all++
			i := slices.IndexFunc(got, a.matches)
			if i >= 0 {
				right++
				got = slices.Delete(got, i, i+1)
				continue
			}
			wrong = append(wrong, fmt.Sprintf("%s: want %s", short, a))
		}
		for _, d := range got {
			wrong = append(wrong, fmt.Sprintf("%s: extra %s | %s | %s", short, d.Test, FormatLine(d), placeOf(d)))
		}
		if strings.Contains(string(stdout), "\r\n") {
			continue
		}
		crlf := readOutput([]byte(strings.ReplaceAll(string(stdout), "\n", "\r\n")), []byte(strings.ReplaceAll(string(stderr), "\n", "\r\n")), o)
		if len(crlf) > 0 && !slices.EqualFunc(crlf, checked, func(a, b proposal.Diagnostic) bool { return FormatLine(a) == FormatLine(b) && placeOf(a) == placeOf(b) }) {
			t.Errorf("%s: Windows line ends change what is read", short)
		}
	}
	slices.Sort(wrong)
	for _, line := range wrong {
		if knownWrong[line] == "" {
			t.Error(line)
		}
	}
	for line := range knownWrong {
		if !slices.Contains(wrong, line) {
			t.Errorf("%q is read right now", line)
		}
	}
	if share := float64(right) / float64(all); share < minRight {
		t.Errorf("%.1f %% of %d answers are right", 100*share, all)
	}
	t.Logf("%d of %d answers are right, of %d outputs", right, all, len(answers))
}

func placeOf(d proposal.Diagnostic) string {
	switch {
	case d.File == "":
		return "-"
	case d.Line == 0:
		return d.File
	}
	return fmt.Sprintf("%s:%d", d.File, d.Line)
}

func (a answer) matches(d proposal.Diagnostic) bool {
	text := FormatLine(d) + " " + d.Expected + " " + d.Actual
	for _, w := range a.words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	place := placeOf(d)
	return d.Test == a.test && (place == a.place || !strings.Contains(a.place, ":") && a.place == d.File)
}
