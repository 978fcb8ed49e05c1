// SPDX-License-Identifier: Apache-2.0

package report

import "fmt"

// A Notice is something that a reader must know before reading on. The caller provides
// its text and puts quotations in backticks or quotes.
type Notice struct {
	Level string // "warning" or "note"; anything else is a warning
	Text  string
}

// Moved returns the notice that the pull request has a newer commit than the results.
func Moved(head string) Notice {
	return Notice{"warning", fmt.Sprintf("The pull request has a newer commit `%.12s`: these results are for an older one", head)}
}

// SelfReported returns the notice that the results come from a workflow run that the
// pull request's author can change, and what was checked.
func SelfReported(checked string) Notice {
	return Notice{"warning", "Self-reported: these results come from the pull request's own workflow run, which its author can change; " + checked}
}

// Touches returns the notice that the pull request changes the files that control its
// checks.
func Touches(paths []string) Notice {
	return Notice{"warning", "This pull request changes workflows or policy. Its versions were not used:" +
		listPaths(paths)}
}

// SetupTouched returns the notice that set-up failed and that the pull request changes files
// that set-up reads.
func SetupTouched(paths []string) Notice {
	return Notice{"warning", "Set-up failed, and this pull request changes files that it reads:" + listPaths(paths)}
}

// listPaths lists the first of paths.
func listPaths(paths []string) string {
	const max = 3
	list := ""
	for i, path := range paths {
		if i == max {
			list += fmt.Sprintf(" and %d more", len(paths)-max)
			break
		}
		list += fmt.Sprintf(" %q", path)
	}
	return list
}

// PartlyListed returns the notice that the list of changed files is incomplete.
func PartlyListed() Notice {
	return Notice{"warning", "GitHub does not list all files of this pull request: it may also change workflows or policy. Its versions were not used"}
}
