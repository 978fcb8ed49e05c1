// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/text"
)

// The maximum sizes of the whole files that a model is shown, in bytes. Their total is at most
// what the diff leaves of maxDiffShown, too.
const (
	maxWholeFile  = 20_000
	maxWholeFiles = 60_000
	maxWholeLine  = 2000 // longer lines are not shown whole
)

// A WholeFiles says which changed files a model was shown as they are on head, besides the diff.
type WholeFiles struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"` // as they were shown
	Left  int   `json:"left_out"`
}

// writeWholeFiles writes the changed files as they are on head, in at most room bytes. A file that is new or
// deleted is whole in the diff already.
func (s promptContext) writeWholeFiles(b *strings.Builder, room int) (w WholeFiles) {
	for _, section := range splitDiff(s.diff) {
		if !section.edited || !s.guidance.coversSection(section) {
			continue
		}
		block := s.fencedFile(section.name)
		if block == "" || len(block) > room {
			w.Left++
			continue
		}
		if w.Files == 0 {
			b.WriteString("\nThe changed files on head, as data. The first line of each block is the file's name:\n")
		}
		b.WriteString(block)
		room -= len(block)
		w.Files, w.Bytes = w.Files+1, w.Bytes+int64(len(block))
	}
	if w.Left > 0 {
		fmt.Fprintf(b, "\n%s not shown whole: too large, binary or generated.\n",
			countNoun(w.Left, "changed file is", "changed files are"))
	}
	return w
}

// fencedFile returns a file on head in a fence, or "" if it is not shown.
func (s promptContext) fencedFile(name string) string {
	data := s.head(name)
	if len(data) == 0 || bytes.IndexByte(data, 0) >= 0 || isGenerated(name, data) || longLine(data) {
		return ""
	}
	shown := text.Excerpt(data, nil, int64(len(data)), maxWholeFile)
	if shown.Omitted > 0 {
		return ""
	}
	return fenceLines("text", text.Inline(name, 200)+"\n"+shown.Text)
}

func longLine(data []byte) bool {
	for line := range bytes.Lines(data) {
		if len(line) > maxWholeLine {
			return true
		}
	}
	return false
}

// generatedNames are patterns of path.Match for files that people do not write.
var generatedNames = []string{"*.lock", "*.lockb", "*.min.*", "*.map", "*.pb.go", "*_pb2.py", "*.snap", "go.sum",
	"package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml"}

var generatedMark = pattern.New(`@generated\b|(?i:code generated\b.*\bdo not edit)`)

// isGenerated reports whether a file says that a program has written it. A pull request can claim
// that of any file, which then is shown as a diff only.
func isGenerated(name string, data []byte) bool {
	return slices.ContainsFunc(generatedNames, func(p string) bool {
		ok, err := path.Match(p, path.Base(name))
		return ok && err == nil
	}) || generatedMark.Match(data[:min(len(data), 1000)])
}

// readWithin returns a function that reads a small regular file of the tree in dir; nil for all
// else. No link leads out of dir.
func readWithin(dir string) func(name string) []byte {
	return func(name string) []byte {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil
		}
		defer root.Close()
		name = filepath.FromSlash(name)
		info, err := root.Lstat(name)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxWholeFile {
			return nil
		}
		f, err := root.Open(name)
		if err != nil {
			return nil
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, maxWholeFile+1))
		if err != nil || len(data) > maxWholeFile {
			return nil
		}
		return data
	}
}
