// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A place is what a line of output says about a line of a file, before it is resolved.
type place struct {
	name      string
	row, col  int
	className string // of a JVM frame, whose name has no directory
}

var (
	pythonFrame = pattern.New(`^File "([^"]{1,400})", line (\d{1,7})`)
	onLine      = pattern.New(`(?:^| )(?:at|in) ([^\s:()"'` + "`" +
		`]{1,300}|[A-Za-z0-9_./-][^:()"]{0,200}) (?:on )?line (\d{1,7})\b`)
	jvmFrame    = pattern.New(`^at (?:[\w.@-]{1,100}/{1,2})?([\w.$<>]{1,300})\(([\w$-]{1,100}\.(?:java|kt|scala|groovy|clj)):(\d{1,7})\)`)
	jvmShort    = pattern.New(`^at ([\w$-]{1,100}\.(?:java|kt|scala|groovy)):(\d{1,7})$`)
	phpFrame    = pattern.New(`^#\d{1,3} (/[^\s()]{1,400})\((\d{1,7})\): `)
	rubyFrame   = pattern.New(`^(?:from |# |\d{1,3}: from |\[)?([^\s:][^:]{0,300}):(\d{1,7}):in [` + "`" + `'‘"]`)
	nativeFrame = pattern.New(`^#\d{1,3} +0x[0-9a-f]+ in .{1,400} ([^\s:()]{1,400}):(\d{1,7})(?::(\d{1,5}))?$`)
	dotnetFrame = pattern.New(`^at .{1,400} in (/[^:]{1,400}):line (\d{1,7})$`)
)

// parsePlace splits "path:line" or "path:line:col".
func parsePlace(s string) (p place, ok bool) {
	name, first, ok := cutNumber(s)
	if !ok {
		return p, false
	}
	if rest, second, ok := cutNumber(name); ok {
		return place{name: rest, row: second, col: first}, rest != ""
	}
	return place{name: name, row: first}, name != ""
}

// cutNumber splits "text:12".
func cutNumber(s string) (rest string, n int, ok bool) {
	i := len(s)
	for i > 0 && s[i-1] >= '0' && s[i-1] <= '9' {
		i--
	}
	if i == len(s) || len(s)-i > 7 || i == 0 || s[i-1] != ':' {
		return s, 0, false
	}
	return s[:i-1], parseNumber(s[i:]), true
}

func parseNumber(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// parseFrame reads a line of a stack, of any language. isFrame is true for frames that name
// no file, such as "at new Promise (<anonymous>)".
func parseFrame(line string) (p place, isFrame bool) {
	t := strings.TrimSpace(line)
	t = strings.TrimPrefix(t, "│ ")
	t = strings.TrimSpace(strings.TrimPrefix(t, "| "))
	if len(t) < 5 || len(t) > 1000 {
		return p, false
	}
	switch {
	case strings.HasPrefix(t, "at "):
		return parseAtFrame(t)
	case strings.HasPrefix(t, "❯ "), strings.HasPrefix(t, "› "):
		fields := strings.Fields(t)
		p, isFrame = parsePlace(strings.Trim(fields[len(fields)-1], "()"))
		return p, isFrame
	case strings.HasPrefix(t, "File: "), strings.HasPrefix(t, "file: "):
		p, isFrame = parsePlace(strings.TrimSpace(t[len("File: "):]))
		return p, isFrame
	case strings.HasPrefix(t, "File \""):
		if m := pythonFrame.FindStringSubmatch(t); m != nil {
			return place{name: m[1], row: parseNumber(m[2])}, true
		}
	case t[0] == '#':
		if m := phpFrame.FindStringSubmatch(t); m != nil {
			return place{name: m[1], row: parseNumber(m[2])}, true
		}
		if m := nativeFrame.FindStringSubmatch(t); m != nil {
			return place{name: m[1], row: parseNumber(m[2]), col: parseNumber(m[3])}, true
		}
		if rest := strings.TrimPrefix(t, "# "); rest != t && !strings.Contains(rest, " ") {
			if p, ok := parsePlace(rest); ok {
				return p, strings.ContainsAny(p.name, "/.")
			}
		}
		if rest, ok := strings.CutPrefix(t, "# "); ok {
			return parseFrame(strings.TrimLeft(rest, "# "))
		}
	case strings.HasSuffix(t, ")") && strings.Contains(t, " ("):
		// a V8 frame without "at", as in TAP
		i := strings.LastIndex(t, "(")
		if p, ok := parsePlace(t[i+1 : len(t)-1]); ok && p.col > 0 {
			return p, true
		}
	}
	if strings.Contains(t, ":in ") {
		if m := rubyFrame.FindStringSubmatch(t); m != nil {
			return place{name: m[1], row: parseNumber(m[2])}, true
		}
	}
	if i := strings.LastIndex(t, " +0x"); i > 0 && strings.Contains(t, ".go:") {
		p, ok := parsePlace(t[:i])
		return p, ok
	}
	if !strings.ContainsAny(t, " \t") && strings.Contains(t, ":") {
		p, ok := parsePlace(t)
		return p, ok && (strings.Contains(p.name, "/") || isFileName(p.name))
	}
	return p, false
}

// parseAtFrame reads the frames that begin with "at".
func parseAtFrame(t string) (p place, isFrame bool) {
	if m := jvmFrame.FindStringSubmatch(t); m != nil {
		return place{name: m[2], row: parseNumber(m[3]), className: m[1]}, true
	}
	if m := jvmShort.FindStringSubmatch(t); m != nil {
		return place{name: m[1], row: parseNumber(m[2]), className: "?"}, true
	}
	if m := dotnetFrame.FindStringSubmatch(t); m != nil {
		return place{name: m[1], row: parseNumber(m[2])}, true
	}
	if m := onLine.FindStringSubmatch(t); m != nil {
		return place{name: m[1], row: parseNumber(m[2])}, true
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(t, "at "), "async ")
	if strings.HasSuffix(rest, ")") {
		i := strings.LastIndex(rest, "(")
		if i < 0 {
			return p, false
		}
		if p, ok := parsePlace(rest[i+1 : len(rest)-1]); ok {
			return p, true
		}
		return p, i > 0 && rest[i-1] == ' ' || strings.Contains(rest, "(Native Method)") ||
			strings.Contains(rest, "(Unknown Source)")
	}
	if p, ok := parsePlace(rest); ok {
		return p, strings.ContainsAny(p.name, "/.<")
	}
	return p, rest == "<anonymous>" || rest == "native"
}

var runsIn = pattern.New(`^(?:g?make(?:\[\d{1,3}\])?: Entering directory '|npm (?:error|ERR!) (?:location|path) |\s{1,4}(?:Compiling|Checking) \S{1,100} v\S{1,60} \(|\s{1,2}RUN  v\S{1,40} |rootdir: )/workspace/([^\s'()]{1,300})['),]?`)

// maxDirs is the maximum number of directories that output is read for.
const maxDirs = 8

// runDirectories returns the directories below the workspace that wrappers and runners say they
// run in: the names that they print are relative to them.
func runDirectories(lines []string) (dirs []string) {
	for _, line := range lines {
		if m := matchContaining(runsIn, "/workspace/", line); m != nil && !slices.Contains(dirs, m[1]) &&
			len(dirs) < maxDirs {
			dirs = append(dirs, m[1])
		}
	}
	return dirs
}

// resolvePlace returns the frame of a place in the workspace.
func (o Options) resolvePlace(p place) (f proposal.Frame, ok bool) {
	tree := o.Tree
	if tree == nil {
		tree = anyFile
	}
	name := ""
	if p.className != "" {
		name = tree.jvmFile(p)
	} else {
		name = tree.Resolve(o.Cwd, p.name)
		for _, dir := range o.dirs {
			if tree.Has(name) {
				break
			}
			if inDir := tree.Resolve(dir, p.name); tree.Has(inDir) ||
				inDir != "" && len(o.dirs) == 1 && !path.IsAbs(p.name) {
				name = inDir
			}
		}
		if tree.open && name != "" && !tree.Has(name) && strings.Contains(name, "/") {
			if known := tree.withSuffix(name); known != "" {
				name = known // the command changed the directory
			}
		}
	}
	return proposal.Frame{File: name, Line: p.row, Column: p.col}, name != "" && p.row > 0
}

// libraries are the packages of JVM frames that are never the repository's.
var libraries = []string{"java.", "javax.", "jdk.", "sun.", "com.sun.", "org.junit.", "junit.", "org.opentest4j.",
	"org.apache.maven.", "org.gradle.", "kotlin.", "scala.", "groovy.", "org.codehaus.groovy.", "org.hamcrest.", "org.assertj.", "org.testng.", "org.mockito."}

// jvmFile returns the file of a JVM frame, which has its package and its bare name.
func (t *Tree) jvmFile(p place) string {
	for _, prefix := range libraries {
		if strings.HasPrefix(p.className, prefix) {
			return ""
		}
	}
	parts := strings.Split(p.className, ".")
	dir := strings.Join(parts[:max(0, len(parts)-2)], "/")
	if found := t.withSuffix(strings.TrimPrefix(dir+"/"+p.name, "/")); found != "" {
		return found
	}
	if found := t.inPackage(p.name, dir); found != "" && found != p.name {
		return found
	}
	if len(t.bases[p.name]) == 1 {
		return t.bases[p.name][0]
	}
	if !t.open || !shownName.MatchString(p.name) {
		return ""
	}
	if p.className == "?" {
		return p.name
	}
	return strings.TrimPrefix(dir+"/"+p.name, "/")
}

// choosePlace sets the frames of a report, innermost first, and its place: the innermost known
// file, or else the innermost in the workspace.
func (o Options) choosePlace(f *proposal.Diagnostic, frames []proposal.Frame) {
	f.Frames = frames
	if len(frames) == 0 {
		return
	}
	best := frames[0]
	for _, frame := range frames {
		if o.Tree != nil && o.Tree.Has(frame.File) {
			best = frame
			break
		}
	}
	f.File, f.Line, f.Column = best.File, best.Line, best.Column
}
