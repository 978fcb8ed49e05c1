// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxDepth bounds how deep folders lie in each other.
const maxDepth = 128

// checkName says why an entry is not written, by its name and place alone.
func checkName(prefix string, e entry, limits Limits) Why {
	switch {
	case len(e.name) > limits.Name || len(prefix)+len(e.name) > limits.Path || strings.Count(prefix, "/") >= maxDepth:
		return LongName
	case badName(e.name) || dotGit(e.name):
		return BadName
	case e.kind == other:
		return BadMode
	}
	return ""
}

// badName refuses what a terminal, a log or another system would read differently:
// controls, invisible and bidirectional characters, bytes that are not UTF-8, and
// the backslash. A joiner may stand between emoji.
func badName(name string) bool {
	return !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool {
		return r == '\\' || r != '\u200d' && ignorable(r)
	})
}

func ignorable(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co)
}

// dotGit refuses every name that some file system takes for .git: HFS+ ignores
// invisible characters, NTFS drops dots and blanks at the end and what follows a
// colon, and knows it as GIT~1 too.
func dotGit(name string) bool {
	name = strings.ToLower(strip(name))
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimRight(name, " .")
	short, digits := strings.CutPrefix(name, "git~")
	return name == ".git" || digits && short != "" && strings.Trim(short, "0123456789") == ""
}

func strip(name string) string {
	return strings.Map(func(r rune) rune {
		if ignorable(r) {
			return -1
		}
		return r
	}, name)
}

// fold is the same for names that a file system without case or with one Unicode
// form would hold for one.
func fold(name string) string {
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			// Upper first: some letters, as ſ and K (Kelvin), only meet there.
			return norm.NFC.String(strings.ToLower(strings.ToUpper(norm.NFD.String(strip(name)))))
		}
	}
	return strings.ToLower(name)
}

// badLink says why a symlink is not written, or "". path is where it lies.
//
// Only leading ".." are let through: after a name, ".." goes up from wherever that
// name, perhaps a symlink itself, has led. Leading ones go up from a real folder. So
// no chain of written links leaves the tree.
func badLink(path, target string) bool {
	if target == "" || len(target) > maxTarget || strings.HasPrefix(target, "/") || badName(target) {
		return true
	}
	up, down := 0, false
	for name := range strings.SplitSeq(target, "/") {
		switch {
		case name == "..":
			if up++; down {
				return true
			}
		case name == "" || name == ".":
		case dotGit(name):
			return true
		default:
			down = true
		}
	}
	return up > strings.Count(path, "/")
}

// maxTarget is what Linux accepts as a symlink's target.
const maxTarget = 4095
