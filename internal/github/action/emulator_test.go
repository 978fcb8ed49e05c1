// SPDX-License-Identifier: Apache-2.0

package action

import (
	"errors"
	"slices"
	"strings"
	"unicode"
)

// This file emulates how GitHub's runner reads the output of a step, from the
// description of its behavior in actions/runner: ActionCommand (both grammars),
// ActionCommandManager (stop-commands), OutputManager (lines) and
// FileCommandManager (outputs). Where cultures or platforms could make the runner
// recognize more than is documented, the emulator recognizes more.

// registered are the commands that the runner knows.
var registered = []string{
	"add-mask", "add-matcher", "add-path", "debug", "echo", "endgroup", "error", "group", "internal-set-repo-path",
	"notice", "remove-matcher", "save-state", "set-env", "set-output", "stop-commands", "warning",
}

// command is a command that the runner executed.
type command struct {
	name       string
	properties map[string]string
	data       string
}

// log is the result of reading a step's standard output.
type log struct {
	commands []command
	shown    []string // lines of the log, masked
	secrets  []string
	stopped  string // the token while commands are stopped
	failed   string // the error that fails the step
}

// readLog reads captured output as the runner does, line by line.
func readLog(output string) *log {
	l := &log{}
	for _, line := range splitLines(output) {
		if c, ok := l.find(line); ok && l.carryOut(c, line) {
			continue
		}
		l.show(line)
	}
	return l
}

// splitLines splits where .NET's ReadLine does, and in addition wherever any
// other reader of lines might.
func splitLines(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("\r\n\v\f\x1c\x1d\x1e\u0085\u2028\u2029", r) })
}

func (l *log) known(name string) bool {
	names := registered
	if l.stopped != "" {
		names = append(slices.Clone(names), l.stopped)
	}
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

// find parses a line by the newer grammar, then by the older one. Characters that
// .NET's culture-sensitive comparison ignores are dropped first.
func (l *log) find(line string) (command, bool) {
	for _, s := range []string{line, strings.Map(dropIgnorable, line)} {
		if c, ok := l.parseColons(s); ok {
			return c, true
		}
		if c, ok := l.parseHashes(s); ok {
			return c, true
		}
	}
	return command{}, false
}

func dropIgnorable(r rune) rune {
	if r == 0 || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) ||
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || r != '\t' && unicode.IsControl(r) {
		return -1
	}
	return r
}

// parseColons is TryParseV2: "::name k=v,k=v::data" after leading blanks.
func (l *log) parseColons(line string) (command, bool) {
	rest, ok := strings.CutPrefix(strings.TrimLeftFunc(line, unicode.IsSpace), "::")
	if !ok {
		return command{}, false
	}
	info, data, ok := strings.Cut(rest, "::")
	if !ok {
		return command{}, false
	}
	return l.build(info, data, ",", strings.NewReplacer("%0D", "\r", "%0A", "\n", "%3A", ":", "%2C", ",", "%25", "%"),
		strings.NewReplacer("%0D", "\r", "%0A", "\n", "%25", "%"))
}

// parseHashes is TryParse: "##[name k=v;k=v]data" anywhere in a line.
func (l *log) parseHashes(line string) (command, bool) {
	_, rest, ok := strings.Cut(line, "##[")
	if !ok {
		return command{}, false
	}
	info, data, ok := strings.Cut(rest, "]")
	if !ok {
		return command{}, false
	}
	unescape := strings.NewReplacer("%3B", ";", "%0D", "\r", "%0A", "\n", "%5D", "]", "%25", "%")
	return l.build(info, data, ";", unescape, unescape)
}

func (l *log) build(info, data, separator string, property, message *strings.Replacer) (command, bool) {
	name, properties, _ := strings.Cut(info, " ")
	if !l.known(name) {
		return command{}, false
	}
	c := command{name: strings.ToLower(name), data: message.Replace(data)}
	for pair := range strings.SplitSeq(properties, separator) {
		if key, value, ok := strings.Cut(strings.TrimSpace(pair), "="); ok && key != "" && value != "" {
			if c.properties == nil {
				c.properties = map[string]string{}
			}
			c.properties[key] = property.Replace(value)
		}
	}
	return c, true
}

// carryOut does what ActionCommandManager does, and reports whether the line was handled.
func (l *log) carryOut(c command, line string) bool {
	if l.stopped != "" {
		if !strings.EqualFold(c.name, l.stopped) {
			return false
		}
		l.stopped = ""
		l.show(line)
		return true
	}
	if c.name == "stop-commands" {
		if c.data == "" || l.known(c.data) || strings.EqualFold(c.data, "pause-logging") {
			l.failed = "invalid stop token " + c.data
			return true
		}
		l.stopped = c.data
		if len(c.data) > 6 {
			l.secrets = append(l.secrets, c.data)
		}
		l.show(line)
		return true
	}
	if c.name == "add-mask" {
		if strings.TrimSpace(c.data) == "" {
			l.failed = "empty mask"
			return true
		}
		l.secrets = append(l.secrets, c.data)
	}
	l.commands = append(l.commands, c)
	return true
}

func (l *log) show(line string) {
	for _, secret := range l.secrets {
		line = strings.ReplaceAll(line, secret, "***")
	}
	l.shown = append(l.shown, line)
}

// named returns the commands of one name.
func (l *log) named(name string) (list []command) {
	for _, c := range l.commands {
		if c.name == name {
			list = append(list, c)
		}
	}
	return list
}

// output is an output that the runner read from GITHUB_OUTPUT.
type output struct{ name, value string }

// readOutputs is FileCommandManager's grammar: NAME=VALUE, or NAME<<DELIMITER, lines,
// DELIMITER. Empty lines between are skipped.
func readOutputs(text string) ([]output, error) {
	var list []output
	for text != "" {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		if line == "" {
			continue
		}
		equals, heredoc := strings.Index(line, "="), strings.Index(line, "<<")
		switch {
		case equals >= 0 && (heredoc < 0 || equals < heredoc):
			list = append(list, output{line[:equals], line[equals+1:]})
		case heredoc >= 0:
			name, delimiter := line[:heredoc], line[heredoc+2:]
			if name == "" || delimiter == "" {
				return nil, errors.New("invalid format")
			}
			value, rest, err := heredocValue(text, delimiter)
			if err != nil {
				return nil, err
			}
			list, text = append(list, output{name, value}), rest
		default:
			return nil, errors.New("invalid format")
		}
	}
	return list, nil
}

func heredocValue(text, delimiter string) (value, rest string, err error) {
	var lines []string
	for {
		line, after, newline := strings.Cut(text, "\n")
		if line == delimiter {
			return strings.Join(lines, "\n"), after, nil
		}
		if !newline {
			return "", "", errors.New("matching delimiter not found")
		}
		lines, text = append(lines, line), after
	}
}
