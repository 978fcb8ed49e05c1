// SPDX-License-Identifier: Apache-2.0

package action

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/text"
)

const (
	maxKey     = 16 << 10
	hintBundle = "oci://registry.example/acme/policy@sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"
	hintKey    = "|\n    -----BEGIN PUBLIC KEY-----\n    MCowBQYDK2VwAyEA…\n    -----END PUBLIC KEY-----"
)

// bundleText are the places of bundles that package source of policy reads, without those on this machine.
var bundleText = pattern.New(`^((https|oci)://[!-~]{1,1000}@sha256:[0-9a-f]{64}|github:[!-~]{1,500}@[!-~]{1,200})$`)

// readBundle reads the location of a bundle, which must have a digest or be on GitHub: a file of the
// workspace would come from the pull request.
func (r *inputReader) readBundle(input string) string {
	value, ok := r.readLine(input, hintBundle)
	if ok && !bundleText.MatchString(value) {
		r.refuseInput(input, hintBundle, "%s is neither a bundle pinned by its digest nor github:OWNER/REPO/FILE.tar.gz@REF", quoteUntrusted(value))
		return ""
	}
	return value
}

var keyText = pattern.New(`^(\n*-----BEGIN (PUBLIC KEY|RSA PUBLIC KEY|CERTIFICATE)-----\n[^-]+\n-----END (PUBLIC KEY|RSA PUBLIC KEY|CERTIFICATE)-----)+$`)

// publicKeys reads the text of one or more keys. The user of the keys validates them.
func (r *inputReader) publicKeys(input string) string {
	value := strings.TrimSpace(strings.ReplaceAll(r.getenv("INPUT_"+inputVariableName(input)), "\r\n", "\n"))
	if value != "" && (len(value) > maxKey || !keyText.MatchString(value)) {
		r.refuseInput(input, hintKey, "is not one or more complete public keys in PEM format")
		return ""
	}
	return value
}

const (
	maxBranches  = 50
	hintBranches = "release/*, legacy"
)

// readBranches reads patterns of branch names separated by commas, blanks or newlines.
func (r *inputReader) readBranches(input string) []string {
	value := r.action.GetInput(inputVariableName(input))
	list := strings.FieldsFunc(value, func(c rune) bool { return strings.ContainsRune(" \t\r\n,", c) })
	if len(list) == 0 {
		return nil
	}
	if len(list) > maxBranches || len(value) > maxInput {
		r.refuseInput(input, hintBranches, "has more than %d patterns", maxBranches)
		return nil
	}
	for _, pattern := range list {
		if _, err := path.Match(pattern, ""); err != nil || strings.ContainsFunc(pattern, text.IsHidden) {
			r.refuseInput(input, hintBranches, "%s is not a pattern of branch names", quoteUntrusted(pattern))
			return nil
		}
	}
	return list
}

// OwnPolicy reports whether a base branch may have rules of its own. In a pattern, * and ?
// do not match a slash.
func (in Inputs) OwnPolicy(branch string) bool {
	return slices.ContainsFunc(in.PolicyBranches, func(pattern string) bool {
		matched, err := path.Match(pattern, branch)
		return matched && err == nil && branch != ""
	})
}

var integer = pattern.New(`^[0-9]{1,30}$`)

// readRevision reads a revision in a comparable form.
func (r *inputReader) readRevision(input string) string {
	value, ok := r.readLine(input, "14")
	if _, err := time.Parse(time.RFC3339Nano, value); ok && err != nil && !integer.MatchString(value) {
		r.refuseInput(input, "14", "%s is neither an integer nor an RFC 3339 time", quoteUntrusted(value))
		return ""
	}
	return value
}
