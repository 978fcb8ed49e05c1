// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var (
	tapResult  = pattern.New(`^(\s{0,60})(not )?ok\b(?: (\d{1,7}))?(?: -)?(?: (.{0,900}))?$`)
	tapSubtest = pattern.New(`^(\s{0,60})# Subtest: (.{1,900})$`)
	tapKey     = pattern.New(`^(\s{0,60})([A-Za-z_]{1,40})\s{0,10}:(?: (.*))?$`)
	bailOut    = pattern.New(`^(?:FAILED--|Bailout called\.\s{1,3})[Ff]urther testing stopped:\s{1,3}(.{1,600})$`)
	tapSuffix  = pattern.New(` # (?:time=|SKIP|skip|TODO|todo).{0,200}$`)
	batsPlace  = pattern.New(`in (?:test )?file ([^,]{1,400}), line (\d{1,7})`)
	batsFailed = pattern.New("^`.{1,1000}' failed")
	batsPretty = pattern.New(`^ ✗ (.{1,900})$`)
	perlTest   = pattern.New(`^(\s{0,40})# {1,3}Failed (?:\(TODO\) )?test(?: '(.{0,900})')?(?: at (\S{1,400}) line (\d{1,7})\.)?$`)
	perlAt     = pattern.New(`^\s{0,40}# {1,3}(?:at|in) (?:.{0,300} at )?(\S{1,400}) line (\d{1,7})\.$`)
	perlValue  = pattern.New(`^\$?(got|expected)(?:->\S{1,200})? = (.{0,900})$`)
)

// A tapLine is a result of one test.
type tapLine struct {
	at, depth  int
	isExpected bool // its number is the next one of its level
	parents    []string
	name       string
	comment    string // the last one above
}

// readTAP reads the Test Anything Protocol. A line whose number is not the next one was
// printed by a test, unless all are like that.
func readTAP(s *scan) {
	var failed []tapLine
	next := map[int]int{}
	subtests := map[int]string{}
	deepest := -1 // level of the failed tests since the last result of the same or a lower level
	inYAML := -1
	comment := "" // the last one: tape names tests so
	for i, line := range s.lines {
		if inYAML >= 0 {
			if strings.TrimSpace(line) == "..." && indentWidth(line) <= inYAML {
				inYAML = -1
			}
			continue
		}
		t := strings.TrimSpace(line)
		if t == "---" {
			inYAML = indentWidth(line)
			continue
		}
		if m := matchContaining(tapSubtest, "# Subtest: ", line); m != nil {
			subtests[indentWidth(line)] = m[2]
			for depth := range next {
				if depth > indentWidth(line) {
					delete(next, depth)
				}
			}
			continue
		}
		if rest, ok := strings.CutPrefix(line, "# "); ok {
			comment = rest
		}
		if m := matchContaining(bailOut, "urther testing stopped: ", t); m != nil {
			s.addReport(rankRunner, proposal.Diagnostic{Tool: "tap", Message: m[1]})
		} else if rest, ok := strings.CutPrefix(t, "Bail out!"); ok {
			s.addReport(rankRunner, proposal.Diagnostic{Tool: "tap", Message: strings.TrimSpace(rest)})
		}
		if !strings.HasPrefix(t, "ok") && !strings.HasPrefix(t, "not ok") {
			continue
		}
		m := tapResult.FindStringSubmatch(line)
		if m == nil || t == "ok" {
			continue
		}
		depth, n := len(m[1]), parseNumber(m[3])
		isExpected := n == 0 || n == next[depth]+1
		if isExpected {
			next[depth]++
		}
		if m[2] == "" {
			deepest = -1
			continue
		}
		if upper := strings.ToUpper(m[4]); strings.Contains(upper, "# TODO") || strings.Contains(upper, "# SKIP") {
			continue
		}
		if deepest > depth {
			deepest = depth // the parent of tests that failed
			continue
		}
		if name, ok := strings.CutSuffix(m[4], " {"); ok { // vitest: its tests follow
			subtests[depth] = tapSuffix.ReplaceAllString(name, "")
			delete(next, depth+4)
			deepest = -1
			continue
		}
		deepest = depth
		r := tapLine{at: i, comment: comment, depth: depth, isExpected: isExpected,
			name: tapSuffix.ReplaceAllString(m[4], "")}
		for d := 0; d < depth; d++ {
			if name := subtests[d]; name != "" && !strings.Contains(name, "/") && !isFileName(name) {
				r.parents = append(r.parents, name)
			}
		}
		if len(failed) < maxReports {
			failed = append(failed, r)
		}
	}
	accepted := 0
	for _, r := range failed {
		if r.isExpected {
			accepted++
		}
	}
	for _, r := range failed {
		if r.isExpected || accepted == 0 || s.Every {
			s.tapFailure(r)
		}
	}
}

// tapFailure reads what follows the line of a test that failed: a YAML document, or comments.
func (s *scan) tapFailure(r tapLine) {
	f := proposal.Diagnostic{Tool: "tap", Test: strings.Join(append(slices.Clone(r.parents), r.name), " > ")}
	if r.name == "" {
		f.Test = strings.Join(r.parents, " > ")
	}
	i := r.at + 1
	if i < len(s.lines) && strings.TrimSpace(s.lines[i]) == "---" {
		end := s.findLine(i+1, 4*maxBlock,
			func(t, line string) bool { return t == "..." && indentWidth(line) <= indentWidth(s.lines[i]) })
		s.tapYAML(f, s.lines[i+1:end], r)
		return
	}
	// mocha
	if i < len(s.lines) && indentWidth(s.lines[i]) > r.depth && strings.TrimSpace(s.lines[i]) != "" &&
		!strings.HasPrefix(strings.TrimSpace(s.lines[i]), "#") {
		end := s.findLine(i, maxBlock, func(t, line string) bool { return t != "" && indentWidth(line) <= r.depth })
		s.addBlock(rankTest, f, s.lines[i:end])
		return
	}
	var comments []string
	for ; i < len(s.lines) && len(comments) < maxBlock; i++ {
		t := strings.TrimSpace(s.lines[i])
		if !strings.HasPrefix(t, "#") || strings.HasPrefix(t, "# Subtest:") {
			break
		}
		comments = append(comments, strings.TrimPrefix(strings.TrimPrefix(t, "#"), " "))
	}
	s.readBats(f, comments)
}

// readBats reads the lines that bats prints about a test, and other comments of a TAP runner.
func (s *scan) readBats(f proposal.Diagnostic, lines []string) {
	var frames []proposal.Frame
	var said, rest []string
	for _, line := range lines {
		t := strings.TrimSpace(line)
		places := batsPlace.FindAllStringSubmatch(t, 10)
		for _, m := range places {
			if frame, ok := s.resolvePlace(place{name: m[1], row: parseNumber(m[2])}); ok && len(frames) < maxFrames {
				frames = append(frames, frame)
			}
		}
		switch {
		case len(places) > 0, t == "":
		case len(said) == 0 && batsFailed.MatchString(t):
			said = append(said, t)
		default:
			rest = append(rest, line)
		}
	}
	if len(frames) == 0 && len(said) == 0 {
		if inner, ok := s.readNested(rest); ok {
			f.Message, f.File, f.Line, f.Column, f.Frames = inner.Message, inner.File, inner.Line, inner.Column,
				inner.Frames
			f.Tool = "bats"
			s.addReport(rankTest, f)
			return
		}
		s.addBlock(rankTest, f, rest)
		return
	}
	f.Tool = "bats"
	f.Message = strings.Join(append(said, rest[:min(1, len(rest))]...), ": ")
	s.choosePlace(&f, frames)
	s.addReport(rankTest, f)
}

// tapYAML reads the document of a test that failed. Its keys are those of node's runner, tape,
// tap and QUnit.
func (s *scan) tapYAML(f proposal.Diagnostic, lines []string, r tapLine) {
	keys := map[string]string{}
	blocks := map[string][]string{}
	for i := 0; i < len(lines); i++ {
		m := matchContaining(tapKey, ":", lines[i])
		if m == nil {
			continue
		}
		key, value := m[2], strings.TrimSpace(m[3])
		end := i + 1
		for end < len(lines) && (strings.TrimSpace(lines[end]) == "" || indentWidth(lines[end]) > len(m[1])) {
			end++
		}
		if _, known := blocks[key]; !known {
			keys[key], blocks[key] = unquoteTAP(value), lines[i+1:end]
		}
		i = end - 1
	}
	if keys["failureType"] == "subtestsFailed" {
		return
	}
	body := blocks["error"]
	for _, line := range body[:min(len(body), 4)] { // vitest
		if m := matchContaining(tapKey, ":", line); m != nil && (m[2] == "name" || m[2] == "message") &&
			keys["error"] == "" {
			keys[m[2]] = unquoteTAP(strings.TrimSpace(m[3]))
		}
	}
	if keys["error"] == "" && keys["message"] != "" {
		body = nil
	}
	message := keys["error"]
	if message == "" || strings.HasPrefix(message, "|") || strings.HasPrefix(message, ">") {
		message = ""
	}
	if message == "" && len(body) == 0 {
		if message = keys["message"]; strings.HasPrefix(message, "|") {
			message, body = "", blocks["message"]
		}
	}
	for _, line := range blocks["details"] { // AVA
		if m := matchContaining(tapKey, "message:", line); m != nil && m[2] == "message" && message != "" {
			message += ": " + strings.TrimSuffix(strings.TrimSpace(m[3]), ",")
			break
		}
	}
	f.Message = message
	if message != "" {
		body = nil
	}
	if strings.Contains(strings.Join(lines, "\n"), "failureType:") {
		f.Tool = "node:test"
	}
	if keys["operator"] != "" && f.Tool == "tap" && r.comment != "" && len(r.parents) == 0 {
		f.Test = r.comment + " > " + f.Test
	}
	b := s.readBody(append(append(append([]string{}, body...), blocks["diff"]...),
		append(blocks["details"], blocks["stack"]...)...))
	if at := strings.TrimSpace(keys["at"]); len(b.frames) == 0 && at != "" {
		b.frames = s.readBody([]string{"at " + at}).frames
	}
	if f.Message == "" {
		f.Message = b.shortMessage()
	}
	if name := keys["name"]; name != "" && f.Message != "" && !strings.HasPrefix(f.Message, name) && name != "Error" &&
		name != "AssertionError" {
		f.Message = name + ": " + f.Message
	}
	f.Expected, f.Actual = b.expected, b.actual
	for _, v := range []struct {
		key string
		to  *string
	}{{"expected", &f.Expected}, {"actual", &f.Actual}} {
		if value := keys[v.key]; value != "" && !strings.HasPrefix(value, "|") {
			*v.to = clipText(value)
		} else if *v.to == "" {
			*v.to = clipText(joinTrimmed(blocks[v.key]))
		}
	}
	if p, ok := parsePlace(keys["location"]); ok {
		s.setPlace(&f, p)
		f.Suite = f.File
	}
	if len(b.frames) > 0 {
		s.choosePlace(&f, b.frames)
	}
	rank := rankTest
	if name := s.workspacePath(r.name); keys["exitCode"] != "" && (name == f.File || isFileName(name)) {
		// The file did not run: the comments above say why.
		rank, f.Test, f.Suite = rankRunner, "", name
		if inner, ok := s.readNested(s.commentsAbove(r.at)); ok {
			f.Message, f.Expected, f.Actual = inner.Message, inner.Expected, inner.Actual
			f.File, f.Line, f.Column, f.Frames = inner.File, inner.Line, inner.Column, inner.Frames
		} else {
			rank = rankLine
		}
	}
	s.addReport(rank, f)
}

// commentsAbove returns the text of the comments above a line.
func (s *scan) commentsAbove(at int) []string {
	i := at
	for i > 0 && at-i < maxBlock && strings.HasPrefix(strings.TrimSpace(s.lines[i-1]), "#") {
		i--
	}
	var list []string
	for _, line := range s.lines[i:at] {
		list = append(list, strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "#"), " "))
	}
	return list
}

func unquoteTAP(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return strings.ReplaceAll(s[1:len(s)-1], `\"`, `"`)
	}
	return unquoteYAML(s)
}

func joinTrimmed(lines []string) string {
	var list []string
	for _, line := range lines[:min(len(lines), 20)] {
		if t := strings.TrimSpace(line); t != "" {
			list = append(list, t)
		}
	}
	return strings.Join(list, " ")
}

// readBatsPretty reads the form of bats for terminals.
func readBatsPretty(s *scan) {
	for i := 0; i < len(s.lines); i++ {
		m := matchContaining(batsPretty, "✗", s.lines[i])
		if m == nil {
			continue
		}
		end := s.findLine(i+1, maxBlock,
			func(t, line string) bool { return indentWidth(line) < 3 || strings.Contains(line, "   ✓ ") })
		var body []string
		for _, line := range s.lines[i+1 : end] {
			body = append(body, strings.TrimSpace(line))
		}
		s.readBats(proposal.Diagnostic{Tool: "bats", Test: m[1]}, body)
		i = end - 1
	}
}

// readPerl reads the comments of Perl's Test::More.
func readPerl(s *scan) {
	for i := 0; i < len(s.lines); i++ {
		m := matchContaining(perlTest, "Failed", s.lines[i])
		if m == nil {
			continue
		}
		f := proposal.Diagnostic{Tool: "perl", Test: m[2]}
		if m[3] != "" {
			s.setPlace(&f, place{name: m[3], row: parseNumber(m[4])})
		}
		end := s.findLine(i+1, maxBlock, func(t, line string) bool {
			return !strings.HasPrefix(t, "#") || perlTest.MatchString(line) || strings.HasPrefix(t, "# Looks like")
		})
		var body []string
		for _, line := range s.lines[i+1 : end] {
			if m := perlAt.FindStringSubmatch(line); m != nil {
				s.setPlace(&f, place{name: m[1], row: parseNumber(m[2])})
				continue
			}
			t := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#"))
			if v := matchContaining(perlValue, " = ", t); v != nil {
				if v[1] == "got" {
					f.Actual = v[2]
				} else {
					f.Expected = v[2]
				}
				continue
			}
			body = append(body, t)
		}
		s.addBlock(rankTest, f, body)
		i = end - 1
	}
}
