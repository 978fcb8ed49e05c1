// SPDX-License-Identifier: Apache-2.0

package spend

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Unlimited is an Amount that no budget reaches.
var Unlimited = Amount{1<<53 - 1, unlimited} // the largest whole number that the log can have

// Limits are the maximum of what may be spent. The zero Limits allow nothing.
type Limits struct {
	Review  Amount `json:"review"`
	Subject Amount `json:"subject"`
	Day     Amount `json:"day"`
}

// maxTokens bounds one request, so that no product overflows: see maxPrice.
const maxTokens = 1e8

// addAmount returns the sum. It is at most Unlimited.
func (a Amount) addAmount(b Amount) Amount {
	return Amount{addSaturating(a.Tokens, b.Tokens), USD(addSaturating(int64(a.USD), int64(b.USD)))}
}

func addSaturating(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// exceededPart returns which part of a is more than limit allows, or "".
func (a Amount) exceededPart(limit Amount) string {
	switch {
	case a.Tokens > limit.Tokens:
		return fmt.Sprintf("%d tokens of %d", a.Tokens, limit.Tokens)
	case a.USD > limit.USD:
		return fmt.Sprintf("%v of %v", a.USD, limit.USD)
	}
	return ""
}

// Exceeded is the code of the *proposal.StopError for a request that a limit does not allow.
const Exceeded = "model.budget"

func exceededError(whose, what string) error {
	return &proposal.StopError{Code: Exceeded,
		Message: fmt.Sprintf("the next request could exceed the budget of %s: %s", whose, what),
		Hint:    "raise the limit, or review a smaller change"}
}

// A Budget is that of one review.
type Budget struct {
	limits  Limits
	price   Price // zero if it is not known
	subject string
	ledger  *Ledger
	now     func() time.Time

	mu    sync.Mutex
	spent Amount // with what is reserved
}

// NewBudget returns a Budget. A model without a known price needs limits in tokens for the
// review, and can have none in dollars: the caller checks that.
func NewBudget(limits Limits, price Price, subject string, ledger *Ledger) *Budget {
	return &Budget{limits: limits, price: price, subject: subject, ledger: ledger, now: time.Now}
}

// Subject is the digest of what Limits.Subject applies to, as NewBudget got it.
func (b *Budget) Subject() string { return b.subject }

// A Reservation is what one request may cost. Exactly one of its methods is called, once.
type Reservation struct {
	budget        *Budget
	input, output int64
	amount        Amount
	day           string
}

// Amount is what is reserved.
func (r *Reservation) Amount() Amount { return r.amount }

// ReserveRequest reserves a request of at most so many tokens. The error is a *proposal.StopError:
// Exceeded, or the ledger's.
func (b *Budget) ReserveRequest(input, output int64) (*Reservation, error) {
	if input < 0 || output < 0 || input > maxTokens || output > maxTokens {
		return nil, exceededError("this review", "an impossible number of tokens")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &Reservation{budget: b, input: input, output: output, amount: b.costOf(input, output),
		day: b.now().UTC().Format(time.DateOnly)}
	after := b.spent.addAmount(r.amount)
	if what := after.exceededPart(b.limits.Review); what != "" {
		return nil, exceededError("this review", what)
	}
	if err := b.ledger.addReservation(b.subject, r.day, r.amount, b.limits); err != nil {
		return nil, err
	}
	b.spent = after
	return r, nil
}

func (b *Budget) costOf(input, output int64) Amount {
	return Amount{input + output, USD(min(input, maxTokens))*b.price.Input + USD(min(output, maxTokens))*b.price.Output}
}

// SettleUsed replaces the reservation by what the provider reports, and returns that. Negative
// numbers mean that it reports nothing. More than was reserved is counted, and an error.
func (r *Reservation) SettleUsed(input, output int64) (Amount, error) {
	if input < 0 || output < 0 {
		return r.amount, nil
	}
	used := r.budget.costOf(min(input, maxTokens), min(output, maxTokens))
	err := r.replaceAmount(used)
	if err == nil && (input > r.input || output > r.output) {
		err = &proposal.StopError{Code: "model.usage",
			Message: fmt.Sprintf("the provider reports %d and %d tokens for a request of at most %d and %d", input,
				output, r.input, r.output),
			Hint: "check what the provider bills; its limit of output has no effect"}
	}
	return used, err
}

// GiveBack gives the reservation back: the provider did not work on the request.
func (r *Reservation) GiveBack() error { return r.replaceAmount(Amount{}) }

func (r *Reservation) replaceAmount(used Amount) error {
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	change := Amount{used.Tokens - r.amount.Tokens, used.USD - r.amount.USD}
	b.spent = b.spent.addAmount(change)
	return b.ledger.settleReservation(b.subject, r.day, change)
}

// SpentAmount returns what this review has spent.
func (b *Budget) SpentAmount() Amount {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spent
}

// InputShare returns how many tokens of input one part of so many of the smallest limit allows.
func (b *Budget) InputShare(parts int64) int64 {
	n := int64(maxTokens)
	for _, l := range []Amount{b.limits.Review, b.limits.Subject, b.limits.Day} {
		n = min(n, l.Tokens/parts)
		if b.price.Input > 0 {
			n = min(n, int64(l.USD/b.price.Input)/parts)
		}
	}
	return n
}

// Limits returns the limits.
func (b *Budget) Limits() Limits { return b.limits }
