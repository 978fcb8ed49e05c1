// SPDX-License-Identifier: Apache-2.0

package review

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxSuggested is the maximum size in bytes of a file that a suggestion changes.
const maxSuggested = 4 << 20

// applySuggestion replaces the lines of f's file below dir by its suggestion. dir is a copy of head that
// nothing else uses. No link is followed.
func applySuggestion(dir string, f proposal.ReviewFinding) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Lstat(f.File)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSuggested {
		return errors.New("it is not a regular file of at most 4 MiB")
	}
	data, err := root.ReadFile(f.File)
	if err != nil {
		return err
	}
	text, err := replaceLines(string(data), f)
	if err != nil {
		return err
	}
	return root.WriteFile(f.File, []byte(text), info.Mode().Perm())
}

// replaceLines returns text with the lines of f replaced. A file whose lines end in CRLF keeps that.
func replaceLines(text string, f proposal.ReviewFinding) (string, error) {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	first := f.Line
	if f.Start > 0 {
		first = f.Start
	}
	if f.Line > len(lines) {
		return "", fmt.Errorf("it has %d lines, not %d", len(lines), f.Line)
	}
	with := *f.Suggestion
	if with != "" && !strings.HasSuffix(with, "\n") {
		with += "\n"
	}
	if strings.HasSuffix(lines[f.Line-1], "\r\n") {
		with = strings.ReplaceAll(strings.ReplaceAll(with, "\r\n", "\n"), "\n", "\r\n")
	}
	return strings.Join(lines[:first-1], "") + with + strings.Join(lines[f.Line:], ""), nil
}
