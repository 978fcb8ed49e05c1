// SPDX-License-Identifier: Apache-2.0

package action

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Limits for a payload.
const (
	maxBody    = 65536 * 4 // bytes: GitHub accepts 65,536 characters
	maxRef     = 1024
	maxInputs  = 50 // GitHub accepts 25
	maxInputed = 65535
)

// fields reads values of a payload by their grammar. The first error is kept in
// err; values returned after it are meaningless.
type fields struct{ *payload }

func (f fields) refuseValue(path, want string) {
	v := f.values[path]
	switch v.kind {
	case absent:
		f.recordError(v.at, "has no %s: want %s", path, want)
	case str, number, boolean:
		f.recordError(v.at, "has invalid %[2]s %[1]s: want %[3]s", quoteUntrusted(v.text), path, want)
	default:
		f.recordError(v.at, "has invalid %s: want %s", path, want)
	}
}

// refuseUnusable refuses a value that is well formed but cannot be used.
func (f fields) refuseUnusable(code, path, hint string) {
	if f.err == nil {
		f.err = &proposal.StopError{Code: code, Message: path + " is " + quoteUntrusted(f.values[path].text),
			Hint: hint}
	}
}

// isNullOrMissing reports whether a value is null or missing.
func (f fields) isNullOrMissing(path string) bool { return f.values[path].kind <= null }

func (f fields) requireObject(path string) {
	if f.values[path].kind != object {
		f.refuseValue(path, "an object")
	}
}

func (f fields) readID(path string) int64 {
	v := f.values[path]
	n, err := strconv.ParseInt(v.text, 10, 64)
	if v.kind != number || err != nil || !positive.MatchString(v.text) {
		f.refuseValue(path, "a positive whole number")
	}
	return n
}

func (f fields) readInt(path string) int {
	n := f.readID(path)
	if n > math.MaxInt32 {
		f.refuseValue(path, "a number below 2,147,483,648")
	}
	return int(n)
}

func (f fields) readBool(path string) bool {
	v := f.values[path]
	if v.kind != boolean {
		f.refuseValue(path, "true or false")
	}
	return v.text == "true"
}

// readText reads a string of low to high bytes without control characters.
func (f fields) readText(path string, low, high int) string {
	v := f.values[path]
	if v.kind != str || len(v.text) < low || len(v.text) > high || strings.ContainsFunc(v.text, unicode.IsControl) {
		f.refuseValue(path, "a string of one line with "+strconv.Itoa(low)+" to "+strconv.Itoa(high)+" bytes")
	}
	return v.text
}

// readOptionalText reads a text that may be null, empty or missing.
func (f fields) readOptionalText(path string, high int) string {
	if f.isNullOrMissing(path) {
		return ""
	}
	return f.readText(path, 0, high)
}

func (f fields) readMatching(path string, grammar *pattern.Pattern, want string) string {
	v := f.values[path]
	if v.kind != str || !grammar.MatchString(v.text) {
		f.refuseValue(path, want)
	}
	return v.text
}

func (f fields) readSHA(path string) string {
	return f.readMatching(path, fullSHA, "a full commit SHA")
}

func (f fields) readLogin(path string) string { return f.readMatching(path, loginName, "a login") }

func (f fields) readRepository(path string) Repository {
	f.requireObject(path)
	return Repository{
		ID: f.readID(path + ".id"), Name: f.repositoryName(path + ".full_name"),
		DefaultBranch: f.readOptionalText(path+".default_branch", maxRef),
		Visibility:    f.readOptionalText(path+".visibility", 40),
	}
}

func (f fields) repositoryName(path string) string {
	v := f.values[path]
	if v.kind != str || !isRepository(v.text) {
		f.refuseValue(path, "a repository's owner/name")
	}
	return v.text
}

// readBranch reads a branch name. It refuses what git refuses, and a leading hyphen,
// which would make it an option on a command line.
func (f fields) readBranch(path string) string {
	return f.branchName(path, f.readText(path, 1, maxRef))
}

// fullRef reads a branch as refs/heads/NAME.
func (f fields) fullRef(path string) string {
	name, ok := strings.CutPrefix(f.readText(path, 1, maxRef), "refs/heads/")
	if !ok {
		f.refuseValue(path, "a branch as refs/heads/NAME")
	}
	return f.branchName(path, name)
}

func (f fields) branchName(path, s string) string {
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "/") || strings.HasSuffix(s, "/") ||
		strings.HasSuffix(s, ".") ||
		strings.HasSuffix(s, ".lock") || strings.ContainsAny(s, " ~^:?*[\\") ||
		strings.Contains(s, "..") || strings.Contains(s, "@{") || strings.Contains(s, "//") {
		f.refuseUnusable("event.branch", path,
			"rename the branch: git or GitHub rejects its name, or a program could read it as an option")
	}
	return s
}

func (f fields) readTime(path string) time.Time {
	v := f.values[path]
	t, err := time.Parse(time.RFC3339, v.text)
	if v.kind != str || err != nil {
		f.refuseValue(path, "a time")
	}
	return t.UTC()
}
