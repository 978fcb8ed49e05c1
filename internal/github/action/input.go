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

func (r *inputReader) refuseInput(input, hint, format string, args ...any) {
	r.problems = append(r.problems, Problem{
		Input: input, Message: fmt.Sprintf(format, args...), Hint: "with:\n  " + input + ": " + hint,
	})
}

// inputVariableName is the name under which action.yml maps input, without INPUT_.
func inputVariableName(input string) string {
	return strings.ToUpper(strings.ReplaceAll(input, "-", "_"))
}

// readLine reads an input of one line. ok is false when it is empty or was refused.
func (r *inputReader) readLine(input, hint string) (value string, ok bool) {
	value = r.action.GetInput(inputVariableName(input))
	if len(value) > maxInput {
		r.refuseInput(input, hint, "has more than %d bytes", maxInput)
		return "", false
	}
	if i := strings.IndexFunc(value, text.IsHidden); i >= 0 || !utf8.ValidString(value) {
		r.refuseInput(input, hint, "%s contains a newline, a control character or an invisible character",
			quoteUntrusted(value))
		return "", false
	}
	return value, value != ""
}

// quoteUntrusted formats an untrusted value.
func quoteUntrusted(value string) string { return `"` + text.Inline(value, 60) + `"` }

// readWord reads one of the words; the first is the default.
func (r *inputReader) readWord(input string, words ...string) string {
	value, ok := r.readLine(input, words[0])
	if !ok {
		return words[0]
	}
	if !slices.Contains(words, value) {
		r.refuseInput(input, words[0], "%s is not %s", quoteUntrusted(value), joinAlternatives(words))
		return words[0]
	}
	return value
}

func joinAlternatives(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// readBoolean accepts the spellings of YAML 1.2, as the runner's toolkit does.
func (r *inputReader) readBoolean(input string, otherwise bool) bool {
	hint := strconv.FormatBool(otherwise)
	value, ok := r.readLine(input, hint)
	if !ok {
		return otherwise
	}
	switch value {
	case "true", "True", "TRUE":
		return true
	case "false", "False", "FALSE":
		return false
	}
	r.refuseInput(input, hint, "%s is not true or false", quoteUntrusted(value))
	return otherwise
}

func (r *inputReader) readDuration(input string, otherwise, low, high time.Duration) time.Duration {
	hint := cmp.Or(otherwise, 20*time.Minute).String()
	value, ok := r.readLine(input, hint)
	if !ok {
		return otherwise
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < low || d > high {
		r.refuseInput(input, hint, "%s is not a duration from %s to %s", quoteUntrusted(value), low, high)
		return otherwise
	}
	return d
}

var digits = pattern.New(`^(0|[1-9][0-9]{0,17})$`)

func (r *inputReader) readCount(input string, otherwise int) int {
	hint := strconv.Itoa(otherwise)
	value, ok := r.readLine(input, hint)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(value)
	if err != nil || !digits.MatchString(value) || n > maxCount {
		r.refuseInput(input, hint, "%s is not a number from 0 to %d", quoteUntrusted(value), maxCount)
		return otherwise
	}
	return n
}

var plainName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$`)

// readName reads a name that may become part of the name of a file or an artifact.
func (r *inputReader) readName(input, hint string) string {
	value, ok := r.readLine(input, hint)
	if ok && !plainName.MatchString(value) {
		r.refuseInput(input, hint, "%s is not a name of at most 60 letters, digits, dots, hyphens and underscores",
			quoteUntrusted(value))
		return ""
	}
	return value
}

// readPath reads a path inside the repository.
func (r *inputReader) readPath(input, otherwise, hint string) string {
	value, ok := r.readLine(input, hint)
	if !ok {
		return otherwise
	}
	if path.IsAbs(value) || strings.Contains(value, `\`) || !isBelowRoot(path.Clean(value)) {
		r.refuseInput(input, hint, "%s is not a relative path that stays in its directory", quoteUntrusted(value))
		return otherwise
	}
	return path.Clean(value)
}

func isBelowRoot(clean string) bool { return clean != ".." && !strings.HasPrefix(clean, "../") }

func (r *inputReader) readRootfs(input string) string {
	value, ok := r.readLine(input, "host")
	switch {
	case !ok:
		return "host"
	case config.ValidRootfs(value):
		return value
	case strings.HasPrefix(value, "image:"):
		r.refuseInput(input, "host", "%s is not an image with a digest: use image:REPOSITORY@sha256:…",
			quoteUntrusted(value))
	default:
		r.refuseInput(input, "host", "%s is not host, dir:/absolute/path, image:REPOSITORY@sha256:…, oci:/absolute/path, oci-archive:/absolute/path or devcontainer", quoteUntrusted(value))
	}
	return "host"
}

// readDocument reads a text of several lines unchanged: digests are of these bytes.
func (r *inputReader) readDocument(input, hint string) string {
	value := r.getenv("INPUT_" + inputVariableName(input))
	switch {
	case len(value) > maxDocument:
		r.refuseInput(input, hint, "has more than %d bytes: use a file, which can be larger", maxDocument)
	case !utf8.ValidString(value):
		r.refuseInput(input, hint, "is not UTF-8")
	case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\n' && c != '\r' && c != '\t' }):
		r.refuseInput(input, hint, "contains a control character")
	default:
		return value
	}
	return ""
}

var tokenText = pattern.New(`^[!-~]{1,1000}$`)

// readToken reads a secret: no message ever quotes it.
func (r *inputReader) readToken(input string) string {
	value := r.action.GetInput(inputVariableName(input))
	if value != "" && !tokenText.MatchString(value) {
		r.refuseInput(input, "${{ github.token }}", "is not one word of visible ASCII characters")
		return ""
	}
	return value
}

// readUserIDs reads user ids between blanks, newlines or commas.
func (r *inputReader) readUserIDs(input string) []int64 {
	value := r.action.GetInput(inputVariableName(input))
	words := strings.FieldsFunc(value, func(c rune) bool { return strings.ContainsRune(" \t\r\n,", c) })
	if len(words) > maxBots || len(value) > maxInput {
		r.refuseInput(input, "41898282", "names more than %d bots", maxBots)
		return nil
	}
	var list []int64
	for _, word := range words {
		id, err := strconv.ParseInt(word, 10, 64)
		if err != nil || id <= 0 || !digits.MatchString(word) {
			r.refuseInput(input, "41898282",
				"%s is not a user id: give the bot's number, because any app can take a name", quoteUntrusted(word))
			return nil
		}
		list = append(list, id)
	}
	return list
}

// readDetail reads how much the comment shows.
func (r *inputReader) readDetail(input string) string {
	const configured = "configured"
	if value := r.readWord(input, append([]string{configured}, config.Details...)...); value != configured {
		return value
	}
	return ""
}

// readJobResult reads how a job ended.
func (r *inputReader) readJobResult(input string) string {
	const hint = ReviewerSucceeded
	value, ok := r.readLine(input, hint)
	if ok && !slices.Contains(ReviewerResults, value) {
		r.refuseInput(input, hint, "%s is not %s", quoteUntrusted(value), joinAlternatives(ReviewerResults))
		return ""
	}
	return value
}

// readPlanParts reads the number of parts of a plan.
func (r *inputReader) readPlanParts(input string) int {
	n := r.readCount(input, DefaultParts)
	if n < 1 || n > MaxSplit {
		r.refuseInput(input, "4", "%d is not a number from 1 to %d", n, MaxSplit)
		return DefaultParts
	}
	return n
}

// readMaxLength reads the maximum length of the comment.
func (r *inputReader) readMaxLength(input string) int {
	n := r.readCount(input, 0)
	if n != 0 && (n < config.MinComment || n > config.MaxComment) {
		r.refuseInput(input, "20000", "%d is not a number from %d to %d", n, config.MinComment, config.MaxComment)
		return 0
	}
	return n
}

// readSigner reads a private key of logs, a secret: no message ever quotes it.
func (r *inputReader) readSigner(input string) *audit.Signer {
	value := r.action.GetInput(inputVariableName(input))
	if value == "" {
		return nil
	}
	s, err := audit.NewSigner(value)
	if len(value) > maxInput || err != nil {
		r.refuseInput(input, "${{ secrets.FUMEHOOD_AUDIT_KEY }}",
			"is not a private key that fumehood key generate --log made")
		return nil
	}
	return s
}
