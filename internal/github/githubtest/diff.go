// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// The size of a file's diff above which GitHub does not show it, and leaves it out of lists.
const (
	maxPatch      = 500_000
	maxPatchLines = 20_000
)

// diffs are the answers of diffFiles by both commits, in any repository.
var diffs sync.Map

// diffFiles are the files that differ between two commits as GitHub lists them: with renames,
// and with each file's patch unless it is too large. git's own machine-readable list says which
// sections of the diff are whose.
func (r *repository) diffFiles(from, to string) []File {
	key := from + " " + to
	if list, ok := diffs.Load(key); ok {
		return list.([]File)
	}
	raw, _ := r.runGit("diff", "--raw", "-z", "-M", "--no-abbrev", from, to)
	text, ok := r.runGit("diff", "-M", "-U3", "--no-color", "--no-ext-diff", "--no-textconv", from, to)
	if !ok {
		return nil
	}
	sections := strings.Split("\n"+text, "\ndiff --git ")[1:]
	var list []File
	for _, f := range rawFiles(raw) {
		count := 1
		if f.Status == "changed" { // of another type: git removes one and adds the other
			count = 2
		}
		if len(sections) < count {
			panic(fmt.Sprintf("githubtest: the diff lacks %s", f.Path))
		}
		if count == 1 {
			f.Patch = patchOf(sections[0])
		}
		sections = sections[count:]
		list = append(list, f)
	}
	diffs.Store(key, list)
	return list
}

// rawFiles reads the output of git diff --raw -z.
func rawFiles(raw string) (list []File) {
	kinds := map[byte]string{'A': "added", 'D': "removed", 'M': "modified", 'T': "changed", 'R': "renamed",
		'C': "copied"}
	fields := strings.Split(strings.TrimSuffix(raw, "\x00"), "\x00")
	for len(fields) > 1 {
		words := strings.Fields(fields[0])
		f := File{Status: kinds[words[len(words)-1][0]], Path: fields[1]}
		fields = fields[2:]
		if f.Status == "renamed" || f.Status == "copied" {
			f.Previous, f.Path, fields = f.Path, fields[0], fields[1:]
		}
		list = append(list, f)
	}
	return list
}

// patchOf is the part of a file's diff from its first hunk on, as the field patch has it.
func patchOf(section string) string {
	_, hunks, found := strings.Cut(section, "\n@@ ")
	if !found || len(hunks) > maxPatch || strings.Count(hunks, "\n") > maxPatchLines {
		return ""
	}
	return "@@ " + hunks
}

var hunkRE = regexp.MustCompile(`^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@`)

// numberLines numbers the lines of a patch: by side and number, the hunk that shows them.
func (f File) numberLines() map[string]map[int]int {
	shown := map[string]map[int]int{"LEFT": {}, "RIGHT": {}}
	hunk, left, right := 0, 0, 0
	for line := range strings.SplitSeq(f.Patch, "\n") {
		if m := hunkRE.FindStringSubmatch(line); m != nil {
			hunk++
			left, _ = strconv.Atoi(m[1])
			right, _ = strconv.Atoi(m[2])
			continue
		}
		if line == "" || line[0] == '\\' {
			continue
		}
		if line[0] != '+' {
			shown["LEFT"][left] = hunk
			left++
		}
		if line[0] != '-' {
			shown["RIGHT"][right] = hunk
			right++
		}
	}
	return shown
}

// carryLine returns the number that a line of a file has in another commit, or 0 if it is not
// there any more.
func (r *repository) carryLine(path string, line int, from, to string) int {
	if from == to {
		return line
	}
	text, ok := r.runGitCached("diff", "-U0", "--no-color", "--no-ext-diff", "--no-textconv", from, to, "--", path)
	if !ok {
		return 0
	}
	shift := 0
	for _, m := range regexp.MustCompile(`(?m)^@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@`).FindAllStringSubmatch(text,
		-1) {
		first, _ := strconv.Atoi(m[1])
		removed, _ := strconv.Atoi(cmp.Or(m[2], "1"))
		added, _ := strconv.Atoi(cmp.Or(m[3], "1"))
		switch {
		case removed == 0 && line <= first, removed > 0 && line < first:
			return line + shift
		case line < first+removed:
			return 0
		}
		shift += added - removed
	}
	return line + shift
}
