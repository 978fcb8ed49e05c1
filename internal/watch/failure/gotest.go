// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var (
	goRuns      = pattern.New(`^=== (?:RUN|NAME|CONT|PAUSE)\s+(\S{1,400})$`)
	goVerdict   = pattern.New(`^(\s*)--- (PASS|FAIL|SKIP): (\S{1,400}) \([0-9.]+s\)$`)
	goPackage   = pattern.New(`^(ok  |FAIL|---)\t(\S{1,400})(?:\s|$)(.*)$`)
	goPanics    = pattern.New(`^(panic: .+?|fatal error: .+?)(?: \[recovered.*\])?$`)
	goFrame     = pattern.New(`^\t(/\S{1,400}\.go):(\d{1,7})(?: \+0x[0-9a-f]+)?$`)
	goRaceFrame = pattern.New(`^ {6}(/\S{1,400}\.go):(\d{1,7}) \+0x[0-9a-f]+$`)
	goLog       = pattern.New(`^(\s{4,64})([^\s:/]{1,200}\.go):(\d{1,7}): ?(.*)$`)
	goCompile   = pattern.New(`^(?:vet: )?([^\s:][^:]{0,400}\.go):(\d{1,7})(?::(\d{1,5}))?: (.+)$`)
	goTestFn    = pattern.New(`^\S{1,300}\.(Test[A-Z0-9_]\w{0,200}|Test|Fuzz\w{1,200}|Benchmark\w{1,200}|Example\w{0,200})(?:\.func[\d.]{1,20})?\(`)
)

// A goLine is a line that a Go test printed with t.Error or t.Log. It has a bare file name.
// Its package, and whether the test failed, are not known yet.
type goLine struct {
	test, file, row string
	text            []string
}

// maxLogs is the maximum number of lines of Go tests that are kept until the verdict is known.
const maxLogs = 5000

// A goScan reads the output of go test.
type goScan struct {
	*scan
	test     string
	verdicts map[string]string
	order    []string // tests that failed
	logs     []*goLine
	open     *goLine // whose text may go on
	width    int     // indent of open
	panics   *proposal.Diagnostic
	frames   []proposal.Frame
	race     []proposal.Frame // of the first data race
	inRace   bool
	building string // the package whose errors follow
	compile  []proposal.Diagnostic
	broken   map[string]bool // packages that could not be built
	ran      map[string]bool // tests that go test -v says it ran
	verbose  bool
	said     string // the last line that is none of go test's
	fails    bool   // the line FAIL, which a test binary prints if one of its tests failed

	inner     []*goInner
	innerOpen bool
	innerEnds bool            // the last line says that a suite of gocheck failed
	wrappers  map[string]bool // tests that only run such a suite
	example   *goExample      // whose output may go on
	examples  map[string]*goExample
}

// readGo reads the output of go test, also as JSON.
func readGo(s *scan) {
	lines := goJSON(s.lines)
	g := &goScan{scan: s, verdicts: map[string]string{}, broken: map[string]bool{}, ran: map[string]bool{},
		wrappers: map[string]bool{}, examples: map[string]*goExample{}}
	for _, line := range lines {
		g.readLine(line)
	}
	g.reportPackage("", "")
	for _, f := range g.compile {
		rank := rankTool
		if g.broken[f.Suite] {
			rank = rankRunner
		}
		g.addReport(rank, f)
	}
}

// goJSON returns the lines in the events of go test -json, by package, or the lines as they
// are.
func goJSON(lines []string) []string {
	var packages []string
	output := map[string]*strings.Builder{}
	for _, line := range lines {
		if !strings.HasPrefix(line, `{"`) || !strings.Contains(line, `"Action":`) {
			continue
		}
		var event struct{ Action, Package, ImportPath, Output string }
		if json.Unmarshal([]byte(line), &event) != nil || event.Output == "" {
			continue
		}
		key := event.Package
		if output[key] == nil {
			packages, output[key] = append(packages, key), &strings.Builder{}
		}
		output[key].WriteString(event.Output)
	}
	if len(packages) == 0 {
		return lines
	}
	var all []string
	for _, p := range packages {
		all = append(all, splitLines([]byte(output[p].String()))...)
	}
	return all
}

// readLine reads one line.
func (g *goScan) readLine(line string) {
	if g.readExample(line) {
		return
	}
	wraps := g.innerEnds
	g.readInner(line)
	if m := matchContaining(goLog, ".go:", line); m != nil {
		if len(g.logs) < maxLogs {
			g.open, g.width = &goLine{test: g.test, file: m[2], row: m[3], text: []string{m[4]}}, len(m[1])
			g.logs = append(g.logs, g.open)
		}
		return
	}
	if g.open != nil && indentWidth(line) > g.width && len(g.open.text) < 60 {
		g.open.text = append(g.open.text, line)
		return
	}
	g.open = nil
	if m := matchContaining(goRuns, "=== ", line); m != nil {
		g.test, g.verbose, g.ran[m[1]] = m[1], true, true
		g.panics, g.frames = nil, nil // only printed: another test runs
		return
	}
	if m := matchContaining(goVerdict, "--- ", line); m != nil {
		if !g.verbose || g.ran[m[3]] { // or else a test printed it
			g.noteVerdict(m[2], m[3])
			if m[2] == "PASS" {
				g.panics, g.frames = nil, nil // only printed
			}
			if wraps && m[2] == "FAIL" && len(g.inner) > 0 {
				g.wrappers[m[3]] = true
			}
		}
		return
	}
	if m := matchContaining(goPackage, "\t", line); m != nil {
		g.reportPackage(m[2], strings.TrimSpace(m[1]+" "+m[3]))
		return
	}
	if name, ok := strings.CutPrefix(line, "# "); ok && !strings.Contains(name, "  ") {
		g.building, _, _ = strings.Cut(name, " ")
		return
	}
	if m := matchContaining(goCompile, ".go:", line); m != nil && g.building != "" {
		f := proposal.Diagnostic{Tool: "go", Message: m[4], Suite: g.building}
		if g.setPlace(&f, place{name: m[1], row: parseNumber(m[2]), col: parseNumber(m[3])}) &&
			len(g.compile) < maxReports {
			g.compile = append(g.compile, f)
		}
		return
	}
	if line == "" || line[0] != '\t' {
		g.building = ""
	}
	g.fails = g.fails || line == "FAIL"
	if t := strings.TrimSpace(line); t != "" && t != "FAIL" && !isNoise(t) {
		g.said = t
	}
	g.notePanic(line)
	if line == "WARNING: DATA RACE" {
		g.inRace = len(g.race) == 0
	} else if m := matchContaining(goRaceFrame, ".go:", line); m != nil && g.inRace {
		g.race = g.appendInnermost(g.race, place{name: m[1], row: parseNumber(m[2])})
	} else if strings.HasPrefix(line, "Goroutine ") {
		g.inRace = false
	}
}

// noteVerdict notes how a test ended.
func (g *goScan) noteVerdict(word, test string) {
	old := g.verdicts[test]
	if old == "" || word == "FAIL" {
		g.verdicts[test] = word
	}
	if word == "FAIL" && old != "FAIL" && len(g.order) < g.maxListed() {
		g.order = append(g.order, test)
		if strings.HasPrefix(test, "Example") {
			g.example = &goExample{test: test}
			g.examples[test] = g.example
		}
	}
	g.test = test
}

// notePanic reads a panic and its stack.
func (g *goScan) notePanic(line string) {
	if m := matchContaining(goPanics, ": ", line); m != nil && g.panics == nil {
		g.panics = &proposal.Diagnostic{Tool: "go panic", Message: m[1], Test: g.test}
		return
	}
	if g.panics == nil {
		return
	}
	if t := strings.TrimSpace(line); strings.HasPrefix(line, "\t\tTest") && strings.HasSuffix(t, ")") {
		g.panics.Test, _, _ = strings.Cut(t, " ") // the one that was running when time was up
		return
	}
	if m := matchContaining(goFrame, ".go:", line); m != nil {
		g.frames = g.appendInnermost(g.frames, place{name: m[1], row: parseNumber(m[2])})
	}
	if m := matchContaining(goTestFn, "(", line); m != nil &&
		(g.panics.Test == "" || !strings.HasPrefix(g.panics.Test, m[1])) && len(g.frames) > 0 && g.panics.Test == "" {
		g.panics.Test = m[1]
	}
}

// appendInnermost appends a frame of a stack that begins with the innermost.
func (s *scan) appendInnermost(frames []proposal.Frame, p place) []proposal.Frame {
	f, ok := s.resolvePlace(p)
	if !ok || len(frames) >= maxFrames || slices.Contains(frames, f) {
		return frames
	}
	return append(frames, f)
}

// reportPackage ends a package: names of tests are unique only within one. Logs of tests that did not
// fail are dropped. A test that failed and printed nothing is reported by its name, unless a
// test below it has failed.
func (g *goScan) reportPackage(pkg, outcome string) {
	reported := map[string]bool{}
	if g.panics != nil {
		g.panics.Suite = pkg
		g.choosePlace(g.panics, g.frames)
		rank := rankStack
		if pkg != "" || g.panics.Test != "" {
			rank = rankTest
		}
		reported[g.panics.Test] = g.panics.Test != ""
		g.addReport(rank, *g.panics)
	}
	tree := g.Tree
	if tree == nil {
		tree = anyFile
	}
	betterAt := map[string]int{} // the last log of each test that looks like a failure
	for i, l := range g.logs {
		if !isGoLog(strings.Join(l.text, " ")) {
			betterAt[l.test] = i
		}
	}
	for i, l := range g.logs {
		level := Warning // the end of the output may have been cut
		switch g.verdicts[l.test] {
		case "FAIL":
			level = Error
		case "PASS", "SKIP":
			continue
		}
		f := proposal.Diagnostic{Tool: "go test", Level: level, Test: l.test, Suite: pkg}
		g.goText(&f, l.text)
		f.File, f.Line = tree.goFile(l.file, pkg, g.GoModules), parseNumber(l.row)
		if l.file == "testing.go" && len(g.race) > 0 {
			g.choosePlace(&f, g.race)
		}
		if f.File == "" {
			f.Line = 0
		}
		if f.Message == "" {
			continue
		}
		if level == Error && isGoLog(strings.Join(l.text, " ")) && betterAt[l.test] > i {
			f.Level = Notice // t.Log before t.Error
		}
		reported[l.test] = true
		g.addReport(rankTest, f)
	}
	g.settleInner(tree, pkg)
	for _, test := range g.order {
		hasChild := slices.ContainsFunc(g.order, func(other string) bool { return strings.HasPrefix(other, test+"/") })
		f := proposal.Diagnostic{Tool: "go test", Test: test, Suite: pkg}
		switch e := g.examples[test]; {
		case reported[test] || hasChild:
		case g.wrappers[test]:
			f.Tool = "gocheck"
			g.addReport(rankRunner, f)
		default:
			if e != nil {
				e.describeDifference(&f)
			}
			g.addReport(rankTest, f)
		}
	}
	if strings.Contains(outcome, "[build failed]") {
		g.broken[pkg] = true
	}
	if strings.HasPrefix(outcome, "FAIL") && len(g.order) == 0 && g.panics == nil && pkg != "" &&
		!strings.Contains(outcome, "build failed") {
		message := "failed outside its tests"
		if g.fails {
			message = "a test failed that the output does not show"
		}
		if g.said != "" {
			message += ": " + g.said
		}
		if strings.Contains(outcome, "[setup failed]") {
			message = "the package cannot be loaded"
		}
		f := proposal.Diagnostic{Tool: "go test", Suite: pkg, Message: message}
		if m := matchContaining(goCompile, ".go:", g.said); m != nil { // log.Fatal
			if f.File = tree.inPackage(m[1], pkg); f.File != "" {
				f.Line = parseNumber(m[2])
			}
		}
		g.addReport(rankRunner, f)
	}
	g.logs, g.verdicts, g.order, g.test, g.panics, g.frames, g.open = g.logs[:0], map[string]string{}, nil, "", nil,
		nil, nil
	g.race, g.inRace = nil, false
	g.said, g.fails, g.ran, g.verbose = "", false, map[string]bool{}, false
	g.inner, g.innerOpen, g.innerEnds, g.example = nil, false, false, nil
	g.wrappers, g.examples = map[string]bool{}, map[string]*goExample{}
}

// isGoLog is a guess: output does not say whether t.Log or t.Error printed a line.
func isGoLog(text string) bool {
	t := strings.ToLower(text)
	for _, word := range []string{"want", "expected", "got", "error", "fail", "not equal", "unexpected", "should",
		"mismatch", "cannot", "diff", "!=", "no "} {
		if strings.Contains(t, word) {
			return false
		}
	}
	return true
}

// goText reads the text of t.Error, also of testify and of cmp.Diff.
func (g *goScan) goText(f *proposal.Diagnostic, text []string) {
	first := strings.TrimSpace(text[0])
	if len(text) == 1 {
		f.Message = first
		return
	}
	var body []string
	skips := false
	for _, line := range text {
		t := strings.TrimSpace(line)
		label, rest, _ := strings.Cut(t, ":")
		switch label {
		case "Error Trace", "Test":
			skips = true
		case "Error", "Messages":
			skips, t = false, strings.TrimSpace(rest)
		}
		if !skips {
			body = append(body, t)
		}
	}
	b := g.readBody(body)
	f.Message, f.Expected, f.Actual = b.shortMessage(), b.expected, b.actual
	if first != "" && f.Expected == "" {
		f.Message = first
		if strings.HasPrefix(first, "got ") || strings.HasSuffix(first, ":") || len(text) == 2 {
			f.Message = joinTrimmed(text[:min(3, len(text))])
		}
	}
}
