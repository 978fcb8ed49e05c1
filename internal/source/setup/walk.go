// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// A projectDir is a directory that may be a project.
type projectDir struct {
	path   string // relative to the root
	locked bool   // it has a lock file
}

// skipped are directories that hold dependencies, samples for tests or data, and aside those whose
// projects serve no test of the others.
var (
	skipped = []string{"node_modules", "vendor", "third_party", "testdata", "fixtures", "__fixtures__", "dist", "build",
		"target"}
	aside = []string{"doc", "docs", "documentation", "website", "site", "example", "examples", "sample", "samples",
		"demo", "demos"}
)

// isAside reports whether dir is in a directory for documentation or examples.
func isAside(dir string) bool {
	return slices.ContainsFunc(strings.Split(dir, "/"),
		func(name string) bool { return slices.Contains(aside, strings.ToLower(name)) })
}

// isWalked reports whether the projects in an entry of a directory are looked for.
func isWalked(e fs.DirEntry) bool {
	return e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(skipped, e.Name())
}

// listProjects returns the directories that have a lock file or a manifest, the root first, and those
// nearer to it before others.
func (s *setupScan) listProjects() (found []projectDir) {
	if s.projects != nil {
		return s.projects
	}
	level := []string{"."}
	for depth, seen := 0, 0; len(level) > 0 && depth <= MaxDepth; depth++ {
		var next []string
		for _, dir := range level {
			if seen++; seen > MaxDirectories {
				s.addNote(".", "has more than %d directories: further ones are not looked at", MaxDirectories)
				level = nil
				break
			}
			at, isProject := projectDir{path: dir}, dir == "."
			for _, e := range s.listDirectory(dir) {
				if isWalked(e) {
					next = append(next, path.Join(dir, e.Name()))
				}
				if e.Type()&fs.ModeSymlink != 0 {
					s.addLink(path.Join(dir, e.Name()))
				}
				at.locked = at.locked || s.isLock(dir, e)
				isProject = isProject || at.locked || slices.Contains(manifests, e.Name()) ||
					isTableFile(e.Name(), false) || isUnsupported(e.Name())
			}
			if isProject {
				found = append(found, at)
			}
		}
		if level != nil {
			level = next
		}
	}
	s.projects = found
	return found
}

func (s *setupScan) addLink(name string) {
	if s.found.Links = append(s.found.Links, name); len(s.found.Links) > MaxLinks {
		s.found.Links = []string{"."}
	}
}

// isLock reports whether an entry of dir makes it a project of its own.
func (s *setupScan) isLock(dir string, e fs.DirEntry) bool {
	if e.Name() == "requirements" && e.IsDir() {
		return slices.ContainsFunc(slices.Concat(requirementFiles...), func(file string) bool {
			return strings.HasPrefix(file, "requirements/") && s.hasFile(dir, file)
		})
	}
	return slices.Contains(locks, e.Name()) || isTableFile(e.Name(), true) ||
		slices.Contains(slices.Concat(requirementFiles...), e.Name())
}

// listDirectory returns up to MaxEntries entries of a directory, sorted by name.
func (s *setupScan) listDirectory(name string) []fs.DirEntry {
	f, err := s.root.Open(name)
	if err != nil {
		if name == "." {
			s.addNote(".", "could not read the repository: %s", reasonWithoutPath(err))
		}
		return nil
	}
	defer f.Close()
	dir, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil
	}
	entries, err := dir.ReadDir(MaxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		s.addNote(name, "could not read the whole directory: %s", reasonWithoutPath(err))
	}
	if len(entries) > MaxEntries {
		s.addNote(name, "has more than %d entries: further ones are not looked at", MaxEntries)
		entries = entries[:MaxEntries]
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries
}

// workspaceMembers are the directories that belong to a workspace in dir, as patterns relative to it.
// A pattern that begins with ! excludes.
type workspaceMembers struct {
	dir      string
	patterns []string
}

// isCovered reports whether a project above dir is also that of dir: dir is a member of its
// workspace, or has no lock file.
func (s *setupScan) isCovered(language, dir string) bool {
	for _, w := range s.covered[language] {
		if rel, below := relativeTo(w.dir, dir); below && w.hasMember(rel) {
			return true
		}
	}
	return !s.dir.locked && slices.ContainsFunc(s.found.Steps, func(step Step) bool {
		_, below := relativeTo(step.Dir, dir)
		return below && step.Language == language
	})
}

// relativeTo returns dir relative to top, if it is below it.
func relativeTo(top, dir string) (rel string, below bool) {
	if top == "." {
		return dir, dir != "."
	}
	return strings.CutPrefix(dir, top+"/")
}

func (w workspaceMembers) hasMember(dir string) (member bool) {
	for _, pattern := range w.patterns {
		pattern, excludes := strings.CutPrefix(pattern, "!")
		if patternCovers(pattern, dir) {
			member = !excludes
		}
	}
	return member
}

// patternCovers reports whether a workspace's pattern ("./web", "packages/*", "apps/**") covers dir.
func patternCovers(pattern, dir string) bool {
	if len(pattern) > maxPattern || len(dir) > maxPattern {
		return false
	}
	// reached has the numbers of dir's parts that the pattern's parts so far can match.
	parts := strings.Split(dir, "/")
	reached := map[int]bool{0: true}
	for part := range strings.SplitSeq(path.Clean(strings.TrimPrefix(pattern, "./")), "/") {
		next := map[int]bool{}
		for n := range reached {
			if part == "**" {
				for ; n <= len(parts); n++ {
					next[n] = true
				}
			} else if n < len(parts) {
				if matched, err := path.Match(part, parts[n]); err == nil && matched {
					next[n+1] = true
				}
			}
		}
		reached = next
	}
	return reached[len(parts)]
}
