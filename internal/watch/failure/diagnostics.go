// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A matcher recognizes one form of line that reports something about a location.
type matcher struct {
	tool string
	has  string // a part of every matching line: lines without it need not be matched
	form *pattern.Pattern
}

// matchers lists the more specific first. Groups: path, line, col, level, rule, text.
var matchers = []matcher{
	{"tsc", "TS", pattern.New(`^(?P<path>[^\s(][^(]{0,400})\((?P<line>\d{1,7}),(?P<col>\d{1,5})\): (?P<level>error|warning|message) (?P<text>(?P<rule>TS\d+): .+)$`)},
	{"tsc", " - ", pattern.New(`^(?P<path>[^\s:][^:]{0,400}):(?P<line>\d{1,7}):(?P<col>\d{1,5}) - (?P<level>error|warning|message) (?P<text>(?P<rule>TS\d+): .+)$`)},
	{"compiler", "): ", pattern.New(`^(?P<path>[^\s(][^(]{0,400})\((?P<line>\d{1,7}),\s?(?P<col>\d{1,5})\): ?(?P<level>error|warning|Error|Warning|info) (?P<text>(?:(?P<rule>[A-Z]{1,8}\d+): )?.+)$`)},
	{"eslint", "]", pattern.New(`^(?P<path>[^\s:][^:]{0,400}):(?P<line>\d{1,7}):(?P<col>\d{1,5}): (?P<text>.+) \[(?P<level>Error|Warning)(?:/(?P<rule>[^\]]+))?\]$`)},
	{"javac", ":[", pattern.New(`^(?P<path>/[^\s:]{1,400}):\[(?P<line>\d{1,7}),(?P<col>\d{1,5})\] (?P<text>.+)$`)},
	{"kotlinc", "e: ", pattern.New(`^(?P<level>e|w): (?P<path>(?:file://)?/[^\s:]{1,400}):(?P<line>\d{1,7}):(?P<col>\d{1,5}):? (?P<text>.+)$`)},
	{"", ": ", pattern.New(`^(?P<path>[^\s:][^:]{0,400}):(?P<line>\d{1,7}):(?:(?P<col>\d{1,5}):)? (?P<level>fatal error|error|warning|note|info|style|Error|Warning)(?:\[(?P<rule>[\w-]{1,40})\])?: (?P<text>.+)$`)},
	{"standard", "  /", pattern.New(`^ {2}(?P<path>/[^\s:][^:]{0,400}):(?P<line>\d{1,7}):(?P<col>\d{1,5}): (?P<text>.+ \((?P<rule>[\w@/-]{1,60})\))$`)},
	{"pyright", " - ", pattern.New(`^ {2}(?P<path>/[^\s:][^:]{0,400}):(?P<line>\d{1,7}):(?P<col>\d{1,5}) - (?P<level>error|warning): (?P<text>.+?(?: \((?P<rule>report\w{1,60})\))?)$`)},
	{"go", ".go:", pattern.New(`^(?:vet: )?(?P<path>[^\s:][^:]{0,400}\.go):(?P<line>\d{1,7})(?::(?P<col>\d{1,5}))?: (?P<text>.+)$`)},
	{"python", ".py", pattern.New(`^(?P<path>[^\s:][^:]{0,400}\.pyi?):(?P<line>\d{1,7}):(?P<col>\d{1,5}): (?P<text>(?P<rule>[A-Z]{1,4}\d{2,4}):? .+)$`)},
	{"rubocop", ".rb:", pattern.New(`^(?P<path>[^\s:][^:]{0,400}\.rb):(?P<line>\d{1,7}):(?P<col>\d{1,5}): (?P<level>[CWEF]): (?:\[Correctable\] )?(?P<text>(?:(?P<rule>\w{1,40}/\w{1,60}): )?.+)$`)},
	{"prettier", "[error] ", pattern.New(`^\[error\] (?P<path>\S{1,400}): (?P<text>\w*Error: .{1,900}) \((?P<line>\d{1,7}):(?P<col>\d{1,5})\)$`)},
	{"babel", "Error: /", pattern.New(`^(?P<level>\w*Error): (?P<path>/[^\s:]{1,400}): (?P<text>.{1,900}) \((?P<line>\d{1,7}):(?P<col>\d{1,5})\)$`)},
	{"perl", " line ", pattern.New(`^(?P<text>.{1,900}) at (?P<path>[^\s()'"]{1,400}\.(?:pl|pm|t|cgi)) line (?P<line>\d{1,7})(?:\.|, .{0,300})$`)},
	{"ocaml", "File \"", pattern.New(`^File "(?P<path>[^"]{1,400})", line (?P<line>\d{1,7}), characters (?P<col>\d{1,5})-\d{1,5}:(?P<text>)$`)},
	{"", ":", pattern.New(`^(?P<path>(?:/workspace/)?[\w@./+-]{1,300}\.\w{1,8}):(?P<line>\d{1,7}):(?P<col>\d{1,5}):? (?P<level>error|warning|note|syntax error)(?::? (?P<text>.+))?$`)},
}

// genericPlace is a line that begins with a place of any file. It ranks last: any log may.
var genericPlace = pattern.New(`^([\w@./+\[\]-]{1,300}\.\w{1,8}):(\d{1,7})(?::(\d{1,5}))?:? {1,3}(\S.{0,900})$`)

var levelOf = map[string]string{
	"error": Error, "fatal error": Error, "Error": Error, "e": Error, "E": Error, "F": Error, "C": Error, "syntax error": Error, "SyntaxError": Error,
	"warning": Warning, "Warning": Warning, "w": Warning, "W": Warning, "style": Notice, "note": Notice, "info": Notice, "message": Notice,
}

// tools identifies the tools that use the common form, by the end of their lines. The group is
// the rule.
var tools = []struct {
	tool string
	ends *pattern.Pattern
}{
	{"shellcheck", pattern.New(`\[(SC\d{4})\]$`)},
	{"mypy", pattern.New(`\s\[([a-z-]+)\]$`)},
	{"compiler", pattern.New(`\[(-W[^\]]+)\]$`)},
}

var (
	listedProblem = pattern.New(`^\s{1,8}(\d{1,7}):(\d{1,5})\s{1,8}(error|warning|✖|⚠|×)\s+(.+?)(?:\s{2,}(\S{1,100}))?$`)
	arrow         = pattern.New(`^\s{0,8}(?:-->|╭─\[|┌─|,-\[) ?(.{1,400}?):(\d{1,7}):(\d{1,5})\]?$`)
	oxSays        = pattern.New(`^ {1,3}([x×✖!⚠]) (.{1,900})$`)
	oxRule        = pattern.New(`^[\w@-]{1,60}\(([\w@/-]{1,60})\): `)
	rollupSays    = pattern.New(`^\[!\] (?:\(.{1,100}?\) )?(\w*Error: )?(?:([^\s:()]{1,300}) \((\d{1,7}):(\d{1,5})\): )?(.{1,900})$`)
	rollupAt      = pattern.New(`^([^\s:()]{1,300}) \((\d{1,7}):(\d{1,5})\)$`)
	fortranAt     = pattern.New(`^([^\s:]{1,300}\.[fF]\w{0,3}):(\d{1,7}):(\d{1,5}):$`)
	fortranSays   = pattern.New(`^(?:Fatal )?(Error|Warning): (.{1,900})$`)
	rustSays      = pattern.New(`^(error|warning)(?:\[([A-Z]\w{1,20}|clippy::\w{1,60})\])?: (.+)$`)
	ruffSays      = pattern.New(`^([A-Z]{1,4}\d{3,4}) (?:\[\*\] )?(.+)$`)
	ghCommand     = pattern.New(`^::(error|warning|notice) ([^:]{1,600})::(.{1,900})$`)
	shellcheckAt  = pattern.New(`^In (\S{1,400}) line (\d{1,7}):$`)
	shellcheckIs  = pattern.New(`^\s{0,400}\^[-^]{0,400}-*\^? ?(SC\d{4}) \((error|warning|info|style)\): (.{1,600})$`)
	esbuildSays   = pattern.New(`^(?:✘ |X )?\[(ERROR|WARNING)\] (.{1,600})$`)
	esbuildAt     = pattern.New(`^\s{2,8}([^\s:]{1,300}):(\d{1,7}):(\d{1,5}):$`)
	prettierWarn  = pattern.New(`^\[warn\] (\S.{0,400})$`)
)

// A remark is the message of a tool that prints the location after it.
type remark struct{ tool, level, rule, text string }

// readDiagnostics reads what compilers and linters print.
func readDiagnostics(s *scan) {
	file := ""    // of the problems below
	var r remark  // awaits its location
	ruled := ""   // file of shellcheck's problems
	ruledRow := 0 // and their line
	for i, line := range s.lines {
		t := strings.TrimSpace(line)
		if t == "" {
			file = ""
			continue
		}
		switch {
		case s.readCompleteLine(i, line):
			continue
		case file != "" && s.readListedProblem(file, line):
			continue
		}
		if m := matchContaining(arrow, ":", line); m != nil {
			if r.text != "" {
				f := proposal.Diagnostic{Tool: r.tool, Level: r.level, Rule: r.rule, Message: r.text}
				if s.setPlace(&f, place{name: m[1], row: parseNumber(m[2]), col: parseNumber(m[3])}) {
					s.addReport(rankTool, f)
				}
			}
			r = remark{}
			continue
		}
		if m := matchContaining(rustSays, ": ", line); m != nil {
			r = remark{"rustc", levelOf[m[1]], m[2], m[3]}
			continue
		}
		if m := oxSays.FindStringSubmatch(line); m != nil {
			r = remark{"oxlint", Error, "", m[2]}
			if m[1] == "!" || m[1] == "⚠" {
				r.level = Warning
			}
			if rule := oxRule.FindStringSubmatch(m[2]); rule != nil {
				r.rule = rule[1]
			}
			continue
		}
		if m := matchContaining(rollupSays, "[!] ", line); m != nil {
			f := proposal.Diagnostic{Tool: "rollup", Message: m[1] + m[5]}
			s.setPlace(&f, place{name: m[2], row: parseNumber(m[3]), col: parseNumber(m[4])})
			for j := i + 1; j < min(i+6, len(s.lines)) && f.File == ""; j++ {
				if at := matchContaining(rollupAt, " (", s.lines[j]); at != nil {
					s.setPlace(&f, place{name: at[1], row: parseNumber(at[2]), col: parseNumber(at[3])})
				}
			}
			s.addReport(rankTool, f)
			continue
		}
		if m := matchContaining(fortranAt, ":", line); m != nil {
			end := s.findLine(i+1, 12, func(t, line string) bool {
				return fortranSays.MatchString(line) ||
					fortranAt.MatchString(line)
			})
			if end < len(s.lines) {
				if said := fortranSays.FindStringSubmatch(s.lines[end]); said != nil {
					s.addAt(rankTool, proposal.Diagnostic{Tool: "gfortran", Level: levelOf[said[1]], Message: said[2]},
						place{name: m[1], row: parseNumber(m[2]), col: parseNumber(m[3])})
				}
			}
			continue
		}
		if m := ruffSays.FindStringSubmatch(line); m != nil {
			r = remark{"ruff", Error, m[1], m[1] + " " + m[2]}
			continue
		}
		if m := matchContaining(esbuildSays, "] ", line); m != nil {
			r = remark{"esbuild", levelOf[strings.ToLower(m[1])], "", m[2]}
			continue
		}
		if m := matchContaining(esbuildAt, ":", line); m != nil && r.tool == "esbuild" {
			f := proposal.Diagnostic{Tool: r.tool, Level: r.level, Message: r.text}
			if s.setPlace(&f, place{name: m[1], row: parseNumber(m[2]), col: parseNumber(m[3])}) {
				s.addReport(rankTool, f)
			}
			r = remark{}
			continue
		}
		if t == "error during build:" {
			r = remark{"vite", Error, "", s.nextMessage(i)}
			continue
		}
		if name, ok := strings.CutPrefix(line, "file: "); ok && r.tool == "vite" {
			p, ok := parsePlace(name)
			if !ok || p.row == 0 {
				p = place{name: name}
			}
			f := proposal.Diagnostic{Tool: r.tool, Message: r.text, File: s.knownFile(p.name), Line: p.row,
				Column: p.col}
			if f.File != "" {
				s.addReport(rankTool, f)
			}
			r = remark{}
			continue
		}
		if m := matchContaining(ghCommand, "::", line); m != nil {
			s.workflowCommand(m)
			continue
		}
		if m := matchContaining(shellcheckAt, " line ", line); m != nil {
			ruled, ruledRow = m[1], parseNumber(m[2])
			continue
		}
		if m := matchContaining(shellcheckIs, "SC", line); m != nil && ruled != "" {
			f := proposal.Diagnostic{Tool: "shellcheck", Level: levelOf[m[2]], Rule: m[1], Message: m[3]}
			if s.setPlace(&f, place{name: ruled, row: ruledRow}) {
				s.addReport(rankTool, f)
			}
			continue
		}
		if m := matchContaining(prettierWarn, "[warn] ", line); m != nil {
			f := proposal.Diagnostic{Tool: "prettier", Message: "not formatted as Prettier does",
				File: s.knownFile(m[1])}
			if f.File != "" {
				s.addReport(rankTool, f)
			}
			continue
		}
		if line[0] != ' ' && line[0] != '\t' && len(line) < 500 {
			file = s.knownFile(line)
		}
	}
}

// knownFile returns the file that a line names, or "".
func (s *scan) knownFile(name string) string {
	if f, ok := s.resolvePlace(place{name: name, row: 1}); ok {
		return f.File
	}
	return ""
}

// readListedProblem reads one of the problems below the name of their file.
func (s *scan) readListedProblem(file, line string) bool {
	m := matchContaining(listedProblem, ":", line)
	if m == nil {
		return false
	}
	f := proposal.Diagnostic{Tool: "eslint", Level: Error, Rule: m[5], Message: m[4], File: file,
		Line: parseNumber(m[1]), Column: parseNumber(m[2])}
	if m[3] == "warning" || m[3] == "⚠" {
		f.Level = Warning
	}
	if m[3] == "✖" || m[3] == "×" || m[3] == "⚠" {
		f.Tool = "stylelint"
	}
	if f.Rule != "" {
		f.Message += " (" + f.Rule + ")"
	}
	if f.Line > 0 {
		s.addReport(rankTool, f)
	}
	return true
}

// readCompleteLine looks for a line that is complete by itself.
func (s *scan) readCompleteLine(i int, line string) bool {
	line = mavenLevel.ReplaceAllString(line, "")
	if prefix, rest, ok := strings.Cut(line, "[error] "); ok && strings.TrimSpace(prefix) == "" &&
		!strings.Contains(rest, " (") {
		return false
	}
	for _, m := range matchers {
		groups := matchContaining(m.form, m.has, line)
		if groups == nil && m.tool == "prettier" {
			groups = matchContaining(m.form, m.has, s.lines[i])
		}
		if groups == nil {
			continue
		}
		get := func(name string) string {
			if i := m.form.SubexpIndex(name); i > 0 {
				return groups[i]
			}
			return ""
		}
		f := proposal.Diagnostic{Tool: m.tool, Level: levelOf[get("level")], Rule: get("rule"), Message: get("text")}
		if f.Message == "" && i+1 < len(s.lines) { // ghc and ocaml print it below
			f.Message = strings.TrimSpace(s.nextMessage(i))
		}
		if f.Tool == "" {
			f.Tool, f.Rule = toolOf(f.Message, f.Rule)
		}
		rank := rankTool
		switch f.Tool {
		case "perl":
			rank = rankStack
		case "babel":
			f.Message = get("level") + ": " + f.Message
		case "prettier":
			if j := strings.Index(line, "[error] "); j > 0 {
				return false
			}
		}
		if s.setPlace(&f, place{name: get("path"), row: parseNumber(get("line")), col: parseNumber(get("col"))}) {
			s.addReport(rank, f)
			return true
		}
	}
	return false
}

// nextMessage returns the next line that has a message: not of source code.
func (s *scan) nextMessage(i int) string {
	for j := i + 1; j < len(s.lines) && j < i+6; j++ {
		if t := strings.TrimSpace(s.lines[j]); t != "" && !codeFrame.MatchString(s.lines[j]) &&
			!pointing.MatchString(s.lines[j]) {
			return t
		}
	}
	return ""
}

func toolOf(text, rule string) (string, string) {
	for _, n := range tools {
		if m := n.ends.FindStringSubmatch(text); m != nil {
			return n.tool, m[1]
		}
	}
	return "compiler", rule
}

// workflowCommand reads the form that tools print for GitHub.
func (s *scan) workflowCommand(m []string) {
	f := proposal.Diagnostic{Tool: "annotation", Level: levelOf[m[1]],
		Message: strings.NewReplacer("%0A", " ", "%0D", "", "%25", "%").Replace(m[3])}
	if f.Level == "" {
		f.Level = Notice
	}
	p := place{}
	for _, property := range strings.Split(m[2], ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(property), "=")
		switch key {
		case "file":
			p.name = value
		case "line":
			p.row = parseNumber(value)
		case "col":
			p.col = parseNumber(value)
		}
	}
	if s.setPlace(&f, p) {
		s.addReport(rankTool, f)
	}
}
