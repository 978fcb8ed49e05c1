// SPDX-License-Identifier: Apache-2.0

package report

import "fmt"

// A Notice is something that a reader must know before reading on. Its text is the
// caller's; quotations in it are between backticks or quotes.
type Notice struct {
	Level string // "warning" or "note"; anything else is a warning
	Text  string
}

// Moved says that the pull request has a newer commit than the results.
func Moved(head string) Notice {
	return Notice{"warning", fmt.Sprintf("The pull request has moved on to commit `%.12s`: these results are about an older one", head)}
}

// SelfReported says that the results come from a workflow run that the pull
// request's author could change, and what was checked nevertheless.
func SelfReported(checked string) Notice {
	return Notice{"warning", "Self-reported: these results come from the pull request's own workflow run, which its author can change; " + checked}
}

// Touches says that the pull request itself changes the files that control its checks.
func Touches(paths []string) Notice {
	const most = 3
	list := ""
	for i, path := range paths {
		if i == most {
			list += fmt.Sprintf(" and %d more", len(paths)-most)
			break
		}
		list += fmt.Sprintf(" %q", path)
	}
	return Notice{"warning", "This pull request changes workflows or policy, which were not taken from it:" + list}
}

// PartlyListed says that the list of changed files is incomplete.
func PartlyListed() Notice {
	return Notice{"warning", "GitHub does not list all files of this pull request: it may change workflows or policy, too, which were not taken from it"}
}
