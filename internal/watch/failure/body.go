// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A body is what is read from the lines that a runner prints about one failure.
type body struct {
	messages         []string // lines of the message, without the values and the stack
	expected, actual string
	frames           []proposal.Frame
}

var (
	codeFrame  = pattern.New(`^\s{0,12}(?:[>❯]\s{0,4})?\d{1,7}\s{0,6}[|│:]|^\s{0,14}[|│]`)
	pointing   = pattern.New(`^\s*[|│]?\s*[\^~]+\s*$`)
	valueLabel = pattern.New(`^(?i:(expected|should be|want|wanted|right)|(received|actual|got|but got|but was|was|have|left))(?: (?:value|string|length|path|substring|pattern|message|name|constructor|number of calls|object|type|has value|array|to be|to equal|function|number of assertions))?\s{0,3}:(?:\s+(.*))?$`)
	signs      = []struct {
		header      *pattern.Pattern
		minusIsWant bool
	}{
		{pattern.New(`^(?:- Expected\b|- Snapshot\b|--- Expected\b|--- expected\b|\+ actual - expected|- expected\b.*\+ actual)`), true},
		{pattern.New(`^(?:\+ expected - actual|'?Difference \(- actual, \+ expected\)|--- actual\b|- actual\b|\+ Expected\b)`), false},
	}
)

// readBody reads what a runner prints about one failure.
func (o Options) readBody(lines []string) (b body) {
	inStack := false
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		t := strings.TrimSpace(line)
		if t == "" || isRule(t) || pointing.MatchString(line) {
			continue
		}
		if p, isFrame := parseFrame(line); isFrame {
			inStack = true
			if f, ok := o.resolvePlace(p); ok && len(b.frames) < maxFrames && !slices.Contains(b.frames, f) {
				b.frames = append(b.frames, f)
			}
			continue
		}
		if n := b.readDiff(lines[i:]); n > 0 {
			i += n - 1
			continue
		}
		if n := b.readValue(lines[i:], t); n > 0 {
			i += n - 1
			continue
		}
		if codeFrame.MatchString(line) || inStack || t == "(compared using ==)" || t == "Diff:" ||
			strings.HasPrefix(t, "@@ ") {
			continue
		}
		if len(b.messages) < 20 {
			b.messages = append(b.messages, t)
		}
	}
	return b
}

// readValue reads "Expected: 4", or a label and the value on the lines below that are more
// indented. It returns the number of lines read.
func (b *body) readValue(lines []string, t string) int {
	if !strings.Contains(t, ":") || len(t) > maxLine {
		return 0
	}
	m := valueLabel.FindStringSubmatch(t)
	if m == nil {
		return 0
	}
	value, n := m[3], 1
	if value == "" || value == "|-" || value == "|" || value == ">-" {
		value = ""
		for n < len(lines) && n < 20 && strings.TrimSpace(lines[n]) != "" &&
			indentWidth(lines[n]) > indentWidth(lines[0]) {
			value += " " + strings.TrimSpace(lines[n])
			n++
		}
		value = strings.TrimSpace(value)
	}
	target := &b.expected
	if m[1] == "" {
		target = &b.actual
	}
	if *target == "" {
		*target = clipText(unquoteYAML(strings.TrimSuffix(value, ",")))
	}
	return n
}

// unquoteYAML removes the quotes that a TAP runner puts around text.
func unquoteYAML(s string) string {
	if len(s) >= 2 && s[0] == '\'' && s[len(s)-1] == '\'' {
		return strings.ReplaceAll(s[1:len(s)-1], "''", "'")
	}
	return s
}

// readDiff reads two values that differ, after a line that gives the meaning of the signs.
func (b *body) readDiff(lines []string) int {
	t := strings.TrimSpace(lines[0])
	if t == "" || !strings.ContainsAny(t, "+-") {
		return 0
	}
	for _, s := range signs {
		if !s.header.MatchString(t) {
			continue
		}
		var minus, plus []string
		n := 1
		for ; n < len(lines) && n < 400; n++ {
			line := strings.TrimSpace(lines[n])
			if _, isFrame := parseFrame(lines[n]); isFrame || codeFrame.MatchString(lines[n]) {
				break
			}
			switch {
			case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "+ Received"),
				strings.HasPrefix(line, "+ Actual"), strings.HasPrefix(line, "- Actual"), strings.HasPrefix(line, "@@"):
			case strings.HasPrefix(line, "-"):
				minus = append(minus, strings.TrimSpace(line[1:]))
			case strings.HasPrefix(line, "+"):
				plus = append(plus, strings.TrimSpace(line[1:]))
			}
		}
		want, have := minus, plus
		if !s.minusIsWant {
			want, have = plus, minus
		}
		if b.expected == "" && b.actual == "" {
			b.expected, b.actual = joinValues(want), joinValues(have)
		}
		return n
	}
	return 0
}

// joinValues joins the lines of a value, without a comma at the end.
func joinValues(lines []string) string {
	return clipText(strings.TrimSuffix(strings.Join(lines, " "), ","))
}

// inline are the forms of messages that have both values: groups want and have.
var inline = []struct {
	has  string
	form *pattern.Pattern
}{
	{"but was", pattern.New(`expected:? ?<(?P<want>.{0,900}?)> but was:? ?<(?P<have>.{0,900})>`)},
	{"but was", pattern.New(`[Ee]xpected:? (?P<want>.{1,400}?),? but was:? (?P<have>.{1,400})$`)},
	{" to ", pattern.New(`^(?:\w*Error: |\S{1,60}: )?expected (?P<have>.{1,400}?) to (?:deeply |strictly |loosely )?(?:equal|be|eql|match|include|contain|have (?:a )?(?:length|property) (?:of )?)(?: at (?:least|most))? (?P<want>.{1,400}?)(?: // .*)?$`)},
	{"!==", pattern.New(`(?:^|: )(?P<have>.{1,400}) !== (?P<want>.{1,400})$`)},
	{"assert ", pattern.New(`^(?:AssertionError: )?assert (?P<have>.{1,400}?) == (?P<want>.{1,400})$`)},
	{" != ", pattern.New(`^AssertionError: (?P<have>.{1,400}?) != (?P<want>.{1,400}?)(?: : .*)?$`)},
	{" matches expected ", pattern.New(`^Failed asserting that (?P<have>.{1,400}?) matches expected (?P<want>.{1,400}?)\.$`)},
	{" is identical to ", pattern.New(`^Failed asserting that (?P<have>.{1,400}?) is identical to (?P<want>.{1,400}?)\.$`)},
	{"want", pattern.New(`(?:got|= ?|have) ?(?P<have>.{1,300}?)[,;] ?want(?:ed)?:? (?P<want>.{1,300})$`)},
	{"got", pattern.New(`(?:[Ee]xpected|want(?:ed)?):? (?P<want>.{1,300}?)[,;]? (?:but )?(?:got|actual|received):? (?P<have>.{1,300})$`)},
	{" expected but was", pattern.New(`<(?P<want>.{0,400})> expected but was\s*<(?P<have>.{0,400})>`)},
	{" == ", pattern.New(`^(?:AssertionError(?: \[\w+\])?: )(?P<have>.{1,400}?) == (?P<want>.{1,400})$`)},
}

// readInline reads the values of a message that contains both.
func readInline(message string) (want, have string) {
	for _, in := range inline {
		if !strings.Contains(message, in.has) {
			continue
		}
		if m := in.form.FindStringSubmatch(message); m != nil {
			return clipText(m[in.form.SubexpIndex("want")]), clipText(m[in.form.SubexpIndex("have")])
		}
	}
	return "", ""
}

// shortMessage returns the first lines of a message as one: if a line ends in a colon, what it
// announces is on the next.
func (b body) shortMessage() string {
	if len(b.messages) == 0 {
		switch {
		case b.expected != "" && b.actual != "":
			return clipText("expected " + b.expected + ", got " + b.actual)
		case b.expected != "":
			return clipText("expected " + b.expected)
		}
		return ""
	}
	m := b.messages[0]
	for i := 1; i < len(b.messages) && i < 3 && strings.HasSuffix(m, ":"); i++ {
		m += " " + b.messages[i]
	}
	return clipText(m)
}

// fillReport sets the message, values and places of a report from the lines about it.
func (o Options) fillReport(f *proposal.Diagnostic, lines []string) {
	b := o.readBody(lines)
	if f.Message == "" {
		f.Message = b.shortMessage()
	}
	if f.Expected == "" && f.Actual == "" {
		f.Expected, f.Actual = b.expected, b.actual
	}
	o.completeValues(f)
	if len(b.frames) > 0 {
		o.choosePlace(f, b.frames)
	}
	o.placeInMessage(f, b.messages)
}

var (
	parenPlace   = pattern.New(`^(\w*Error: )?((?:file://)?/[^\s:]{1,400}): (.{1,900}) \((\d{1,7}):(\d{1,5})\)$`)
	leadingPlace = pattern.New(`^(\w*Error: )?((?:/workspace/|\./)?[^\s:()]{1,300}\.\w{1,8}):(\d{1,7})(?::(\d{1,5}))?(?::| -) (.{1,900})$`)
	javaPlace    = pattern.New(`^((?:\w{1,60}\.){1,12}\w{1,100}) at ([\w$-]{1,100}\.(?:java|kt|scala|groovy)):(\d{1,7})$`)
	namedFile    = pattern.New(`\((/workspace/[^\s()]{1,300})\)$`)
)

// placeInMessage reads the place of a report without a stack, which compilers and loaders
// write into the message. A report of a file has that file, without a line.
func (o Options) placeInMessage(f *proposal.Diagnostic, messages []string) {
	if f.File != "" && f.Line > 0 {
		return
	}
	for _, message := range append([]string{f.Message}, messages...) {
		if m := matchContaining(parenPlace, " (", message); m != nil {
			if frame, ok := o.resolvePlace(place{name: m[2], row: parseNumber(m[4]), col: parseNumber(m[5])}); ok {
				f.File, f.Line, f.Column, f.Message = frame.File, frame.Line, frame.Column, m[1]+m[3]
				return
			}
		}
		if m := matchContaining(leadingPlace, ":", message); m != nil {
			if frame, ok := o.resolvePlace(place{name: m[2], row: parseNumber(m[3]), col: parseNumber(m[4])}); ok {
				f.File, f.Line, f.Column = frame.File, frame.Line, frame.Column
				f.Message = strings.Replace(f.Message, message, m[1]+m[5], 1)
				return
			}
		}
		if m := matchContaining(javaPlace, " at ", message); m != nil {
			if frame, ok := o.resolvePlace(place{name: m[2], row: parseNumber(m[3]), className: "?"}); ok {
				f.File, f.Line, f.Message = frame.File, frame.Line, m[1]
				return
			}
		}
		if m := matchContaining(namedFile, "(/", message); m != nil && f.File == "" {
			if frame, ok := o.resolvePlace(place{name: m[1], row: 1}); ok {
				f.File = frame.File
			}
		}
	}
	if f.File == "" && isFileName(f.Suite) && (f.Tool != "junit" || strings.Contains(f.Suite, "/")) {
		if frame, ok := o.resolvePlace(place{name: "/workspace/" + f.Suite, row: 1}); ok {
			f.File = frame.File
		}
	}
}

// completeValues sets the values of a report whose message has them.
func (o Options) completeValues(f *proposal.Diagnostic) {
	if f.Expected == "" && f.Actual == "" {
		f.Expected, f.Actual = readInline(f.Message)
	}
}

// clipText returns a text of at most maxText bytes.
func clipText(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}
