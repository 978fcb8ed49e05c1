// SPDX-License-Identifier: Apache-2.0

package action

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sethvargo/go-githubactions"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/audit"
)

const (
	maxInput    = 4096      // bytes of an input that is not a document
	maxDocument = 120 << 10 // Linux limits a variable to 128 KiB
	maxBots     = 50
	maxCount    = 100_000
)

// inputReader reads inputs one by one and collects the problems.
type inputReader struct {
	action   *githubactions.Action
	getenv   func(string) string
	problems []Problem
}

func (r *inputReader) refuse(input, hint, format string, args ...any) {
	r.problems = append(r.problems, Problem{
		Input: input, Message: fmt.Sprintf(format, args...), Hint: "with:\n  " + input + ": " + hint,
	})
}

// variable is the name under which action.yml maps input, without INPUT_.
func variable(input string) string {
	return strings.ToUpper(strings.ReplaceAll(input, "-", "_"))
}

// line reads an input of one line. ok is false when it is empty or was refused.
func (r *inputReader) line(input, hint string) (value string, ok bool) {
	value = r.action.GetInput(variable(input))
	if len(value) > maxInput {
		r.refuse(input, hint, "has more than %d bytes", maxInput)
		return "", false
	}
	if i := strings.IndexFunc(value, text.Hidden); i >= 0 || !utf8.ValidString(value) {
		r.refuse(input, hint, "%s contains a newline, a control character or an invisible character", quoted(value))
		return "", false
	}
	return value, value != ""
}

// quoted formats an untrusted value.
func quoted(value string) string { return `"` + text.Inline(value, 60) + `"` }

// word reads one of the words; the first is the default.
func (r *inputReader) word(input string, words ...string) string {
	value, ok := r.line(input, words[0])
	if !ok {
		return words[0]
	}
	if !slices.Contains(words, value) {
		r.refuse(input, words[0], "%s is not %s", quoted(value), alternatives(words))
		return words[0]
	}
	return value
}

func alternatives(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// boolean accepts the spellings of YAML 1.2, as the runner's toolkit does.
func (r *inputReader) boolean(input string, otherwise bool) bool {
	hint := strconv.FormatBool(otherwise)
	value, ok := r.line(input, hint)
	if !ok {
		return otherwise
	}
	switch value {
	case "true", "True", "TRUE":
		return true
	case "false", "False", "FALSE":
		return false
	}
	r.refuse(input, hint, "%s is not true or false", quoted(value))
	return otherwise
}

func (r *inputReader) duration(input string, otherwise, low, high time.Duration) time.Duration {
	hint := cmp.Or(otherwise, 20*time.Minute).String()
	value, ok := r.line(input, hint)
	if !ok {
		return otherwise
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < low || d > high {
		r.refuse(input, hint, "%s is not a duration from %s to %s", quoted(value), low, high)
		return otherwise
	}
	return d
}

var digits = pattern.New(`^(0|[1-9][0-9]{0,17})$`)

func (r *inputReader) count(input string, otherwise int) int {
	hint := strconv.Itoa(otherwise)
	value, ok := r.line(input, hint)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(value)
	if err != nil || !digits.MatchString(value) || n > maxCount {
		r.refuse(input, hint, "%s is not a number from 0 to %d", quoted(value), maxCount)
		return otherwise
	}
	return n
}

var plainName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$`)

// name reads a name that may become part of the name of a file or an artifact.
func (r *inputReader) name(input, hint string) string {
	value, ok := r.line(input, hint)
	if ok && !plainName.MatchString(value) {
		r.refuse(input, hint, "%s is not a name of at most 60 letters, digits, dots, hyphens and underscores", quoted(value))
		return ""
	}
	return value
}

// path reads a path inside the repository.
func (r *inputReader) path(input, otherwise, hint string) string {
	value, ok := r.line(input, hint)
	if !ok {
		return otherwise
	}
	if path.IsAbs(value) || strings.Contains(value, `\`) || !within(path.Clean(value)) {
		r.refuse(input, hint, "%s is not a relative path that stays in its directory", quoted(value))
		return otherwise
	}
	return path.Clean(value)
}

func within(clean string) bool { return clean != ".." && !strings.HasPrefix(clean, "../") }

func (r *inputReader) rootfs(input string) string {
	value, ok := r.line(input, "host")
	switch {
	case !ok:
		return "host"
	case config.ValidRootfs(value):
		return value
	case strings.HasPrefix(value, "image:"):
		r.refuse(input, "host", "%s is not an image with a digest: use image:REPOSITORY@sha256:…", quoted(value))
	default:
		r.refuse(input, "host", "%s is not host, dir:/absolute/path, image:REPOSITORY@sha256:…, oci:/absolute/path, oci-archive:/absolute/path or devcontainer", quoted(value))
	}
	return "host"
}

// document reads a text of several lines unchanged: digests are of these bytes.
func (r *inputReader) document(input, hint string) string {
	value := r.getenv("INPUT_" + variable(input))
	switch {
	case len(value) > maxDocument:
		r.refuse(input, hint, "has more than %d bytes: use a file, which can be larger", maxDocument)
	case !utf8.ValidString(value):
		r.refuse(input, hint, "is not UTF-8")
	case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\n' && c != '\r' && c != '\t' }):
		r.refuse(input, hint, "contains a control character")
	default:
		return value
	}
	return ""
}

var tokenText = pattern.New(`^[!-~]{1,1000}$`)

// token reads a secret: no message ever quotes it.
func (r *inputReader) token(input string) string {
	value := r.action.GetInput(variable(input))
	if value != "" && !tokenText.MatchString(value) {
		r.refuse(input, "${{ github.token }}", "is not one word of visible ASCII characters")
		return ""
	}
	return value
}

// ids reads user ids between blanks, newlines or commas.
func (r *inputReader) ids(input string) []int64 {
	value := r.action.GetInput(variable(input))
	words := strings.FieldsFunc(value, func(c rune) bool { return strings.ContainsRune(" \t\r\n,", c) })
	if len(words) > maxBots || len(value) > maxInput {
		r.refuse(input, "41898282", "names more than %d bots", maxBots)
		return nil
	}
	var list []int64
	for _, word := range words {
		id, err := strconv.ParseInt(word, 10, 64)
		if err != nil || id <= 0 || !digits.MatchString(word) {
			r.refuse(input, "41898282", "%s is not a user id: give the bot's number, because any app can take a name", quoted(word))
			return nil
		}
		list = append(list, id)
	}
	return list
}

// detail reads how much the comment shows.
func (r *inputReader) detail(input string) string {
	const configured = "configured"
	if value := r.word(input, append([]string{configured}, config.Details...)...); value != configured {
		return value
	}
	return ""
}

// result reads how a job ended.
func (r *inputReader) result(input string) string {
	const hint = ReviewerSucceeded
	value, ok := r.line(input, hint)
	if ok && !slices.Contains(ReviewerResults, value) {
		r.refuse(input, hint, "%s is not %s", quoted(value), alternatives(ReviewerResults))
		return ""
	}
	return value
}

// parts reads the number of parts of a plan.
func (r *inputReader) parts(input string) int {
	n := r.count(input, DefaultParts)
	if n < 1 || n > MaxSplit {
		r.refuse(input, "4", "%d is not a number from 1 to %d", n, MaxSplit)
		return DefaultParts
	}
	return n
}

// length reads the maximum length of the comment.
func (r *inputReader) length(input string) int {
	n := r.count(input, 0)
	if n != 0 && (n < config.MinComment || n > config.MaxComment) {
		r.refuse(input, "20000", "%d is not a number from %d to %d", n, config.MinComment, config.MaxComment)
		return 0
	}
	return n
}

// signer reads a private key of logs, a secret: no message ever quotes it.
func (r *inputReader) signer(input string) *audit.Signer {
	value := r.action.GetInput(variable(input))
	if value == "" {
		return nil
	}
	s, err := audit.NewSigner(value)
	if len(value) > maxInput || err != nil {
		r.refuse(input, "${{ secrets.FUMEHOOD_AUDIT_KEY }}", "is not a private key that fumehood key generate --log made")
		return nil
	}
	return s
}
