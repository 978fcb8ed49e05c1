// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxDepth bounds the nesting of directories.
const maxDepth = 128

// checkName returns why an entry is not written, judged by its name and place alone.
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
// control, invisible and bidirectional characters, bytes that are not UTF-8, and
// the backslash. A joiner is allowed between emoji.
func badName(name string) bool {
	return !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool {
		return r == '\\' || r != '\u200d' && isIgnorable(r)
	})
}

func isIgnorable(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co)
}

// dotGit refuses every name that some file system treats as .git: HFS+ ignores
// invisible characters; NTFS drops trailing dots and blanks and anything after a
// colon, and has the short name GIT~1.
func dotGit(name string) bool {
	name = strings.ToLower(stripIgnorable(name))
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimRight(name, " .")
	short, digits := strings.CutPrefix(name, "git~")
	return name == ".git" || digits && short != "" && strings.Trim(short, "0123456789") == ""
}

func stripIgnorable(name string) string {
	return strings.Map(func(r rune) rune {
		if isIgnorable(r) {
			return -1
		}
		return r
	}, name)
}

// foldName maps names to the same string if a file system without case, or with a
// single Unicode form, would treat them as the same name.
func foldName(name string) string {
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			// Upper case first: some letters, such as ſ and K (Kelvin), only become
			// equal there.
			return norm.NFC.String(strings.ToLower(strings.ToUpper(norm.NFD.String(stripIgnorable(name)))))
		}
	}
	return strings.ToLower(name)
}

// badLink returns why a symlink is not written, or "". path is the link's own path.
//
// Only leading ".." are allowed. After a name, ".." goes up from wherever that
// name, perhaps itself a symlink, leads. Leading ones go up from a real directory,
// so no chain of written links leaves the tree.
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

// maxTarget is the longest symlink target that Linux accepts.
const maxTarget = 4095
