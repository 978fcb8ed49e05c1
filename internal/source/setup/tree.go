// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// A setupScan is one detection.
type setupScan struct {
	root        fs.FS
	look        func(string) (string, error)
	found       Setup
	ids         map[string]bool
	covered     map[string][]workspaceMembers // by language
	dir         projectDir                    // that is detected
	language    string                        // likewise
	projects    []projectDir                  // once listed
	directories int
	usesJSR     bool              // the project of Node.js has packages of JSR
	shims       string            // the id of the step that enables Corepack's shims, if it was added
	fetched     map[string]string // by package manager: the id of the step that installs it
	managers    map[string]string // by package manager: its version
}

// addNote adds a note, up to MaxNotes.
func (s *setupScan) addNote(file, format string, args ...any) {
	n := Note{File: file, Text: fmt.Sprintf(format, args...)}
	if len(s.found.Notes) < MaxNotes && !slices.Contains(s.found.Notes, n) {
		s.found.Notes = append(s.found.Notes, n)
	}
}

// hasFile reports whether dir has a regular file called name, which may contain slashes. A
// symbolic link is no such file, and neither is one below a link.
func (s *setupScan) hasFile(dir, name string) bool { return s.statRegular(path.Join(dir, name)) != nil }

// statRegular returns the size and mode of a regular file, or nil.
func (s *setupScan) statRegular(file string) fs.FileInfo {
	if !fs.ValidPath(file) {
		return nil
	}
	for i, c := range file {
		if c != '/' {
			continue
		}
		if info, err := fs.Lstat(s.root, file[:i]); err != nil || !info.IsDir() {
			return nil
		}
	}
	info, err := fs.Lstat(s.root, file)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return info
}

// exists reports whether dir has anything called name, of whatever kind.
func (s *setupScan) exists(dir, name string) bool {
	_, err := fs.Lstat(s.root, path.Join(dir, name))
	return err == nil
}

// readText returns the text of a file of at most MaxFile bytes. ok is false if there is no such
// regular file, and if it cannot be read, which is noted.
func (s *setupScan) readText(dir, name string) (text string, ok bool) {
	file := path.Join(dir, name)
	info := s.statRegular(file)
	if info == nil {
		return "", false
	}
	if info.Size() > MaxFile {
		s.addNote(file, "not read: it has more than %d bytes", MaxFile)
		return "", false
	}
	data, err := s.readBytes(file, MaxFile)
	switch {
	case err != nil:
		s.addNote(file, "not read: %s", reasonWithoutPath(err))
	case !utf8.Valid(data):
		s.addNote(file, "not read: it is not UTF-8")
	default:
		return string(data), true
	}
	return "", false
}

// readHead returns the first bytes of a file, "" if it cannot be read.
func (s *setupScan) readHead(dir, name string) string {
	file := path.Join(dir, name)
	if s.statRegular(file) == nil {
		return ""
	}
	data, err := s.readBytes(file, 4<<10)
	if err != nil {
		return ""
	}
	return string(data)
}

func (s *setupScan) readBytes(file string, limit int64) ([]byte, error) {
	f, err := s.root.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// reasonWithoutPath returns an error without the path, which the note has.
func reasonWithoutPath(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return strings.ToValidUTF8(err.Error(), "?")
}

// parseSections returns the names of the keys of each section of a TOML or INI file, at most 256
// keys in all. It reads line by line and does not know texts of several lines, so its
// callers use only names that they know.
func parseSections(text string) map[string][]string {
	found, section, count := map[string][]string{}, "", 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "["); ok {
			if name, _, closed := strings.Cut(name, "]"); closed && !strings.ContainsAny(name, `",`) {
				section = strings.ReplaceAll(strings.Trim(name, "[ "), " ", "")
				if len(found) < 256 && found[section] == nil {
					found[section] = []string{}
				}
				continue
			}
		}
		key, _, assigned := strings.Cut(line, "=")
		key = strings.Trim(strings.TrimSpace(key), `"'`)
		if assigned && count < 256 && found[section] != nil && !strings.ContainsAny(key, " #[]{},<>~!") {
			count++
			found[section] = append(found[section], key)
		}
	}
	return found
}

// sortedKeys returns the keys of m in order, at most 4096 of them.
func sortedKeys(m map[string]string) []string {
	keys := slices.Sorted(maps.Keys(m))
	return keys[:min(len(keys), 4096)]
}
