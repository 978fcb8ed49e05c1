// SPDX-License-Identifier: Apache-2.0

package action

import (
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// Providers are the values of Inputs.Provider. The program that package review/model also knows is
// not among them: it would have to come from a checkout.
var Providers = []string{"anthropic", "openai", "gemini"}

// The maximum values of inputs about a model.
const (
	MaxModelRounds = 20
	maxModelTokens = 1_000_000_000
)

var (
	modelName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,99}$`)
	dollars   = pattern.New(`^(0|[1-9][0-9]{0,5})(\.[0-9]{1,6})?$`)
)

// readProvider reads the name of a provider, or "".
func (r *inputReader) readProvider(input string) string {
	value, ok := r.readLine(input, Providers[0])
	if !ok {
		return ""
	}
	for _, name := range Providers {
		if value == name {
			return value
		}
	}
	r.refuseInput(input, Providers[0], "%s is not %s", quoteUntrusted(value), joinAlternatives(Providers))
	return ""
}

// readModel reads the name of a model, or "".
func (r *inputReader) readModel(input string) string {
	const hint = "claude-sonnet-4-6"
	value, ok := r.readLine(input, hint)
	if ok && !modelName.MatchString(value) {
		r.refuseInput(input, hint, "%s is not the name of a model", quoteUntrusted(value))
		return ""
	}
	return value
}

// readUSD reads an amount in dollars, or "". Zero is refused: nothing could be asked.
func (r *inputReader) readUSD(input string) string {
	const hint = `"0.50"`
	value, ok := r.readLine(input, hint)
	if ok && (!dollars.MatchString(value) || strings.Trim(value, "0.") == "") {
		r.refuseInput(input, hint, "%s is not an amount in dollars, such as 0.50, of at most 999999",
			quoteUntrusted(value))
		return ""
	}
	return value
}

// readAmount reads a number from 1 to high, or 0 if there is none.
func (r *inputReader) readAmount(input, hint string, high int) int {
	value, ok := r.readLine(input, hint)
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(value)
	if err != nil || !digits.MatchString(value) || n < 1 || n > high {
		r.refuseInput(input, hint, "%s is not a number from 1 to %d", quoteUntrusted(value), high)
		return 0
	}
	return n
}
