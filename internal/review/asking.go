// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/review/model"
	"github.com/fumehood/fumehood/internal/review/spend"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// ReviewerOptions is how an operator describes a Reviewer.
type ReviewerOptions struct {
	Provider, Model string
	Command         string   // program of the provider command
	Env             []string // names of its variables
	Getenv          func(string) string
	// Through asks in place of a provider with a key, which then is read nowhere; nil for none.
	Through   model.Provider
	Rounds    int
	MaxOutput int64
	Timeout   time.Duration // DefaultTimeout if 0
	// Review, PR and Day are the limits of this review, of all reviews of Subject, and of all of
	// one day.
	Review, PR, Day LimitText
	Subject         string
	Prices          string // file with a table of prices; spend.Shipped if empty
}

// A LimitText is a limit as an operator writes it.
type LimitText struct {
	USD    string // dollars, such as 0.50; "" for none
	Tokens int64  // of input and output; negative for none
}

// DefaultUSD is Asking.Review.USD of a model whose price is known.
const DefaultUSD = "2"

// PrepareReviewer returns the Reviewer that a describes, without Redactor, Signer and Guidance, and the values to
// redact from everything. It sends nothing. The error is a *proposal.StopError.
func (a ReviewerOptions) PrepareReviewer() (r Reviewer, masks []redact.Mask, err error) {
	limits, price, err := a.readLimits()
	if err != nil {
		return r, nil, err
	}
	r = Reviewer{Name: a.Provider, Model: a.Model, Rounds: a.Rounds, MaxOutput: a.MaxOutput,
		Timeout: cmp.Or(a.Timeout, DefaultTimeout)}
	if r.Provider, masks, err = a.newProvider(); err != nil {
		return r, nil, err
	}
	r.Prices = price.table
	r.Budget, err = a.newBudget(limits, price)
	return r, masks, err
}

// OpenProvider returns the provider that a describes, and the values to redact from everything, for a
// process that only asks: see model.Serve. Everything that Prepare would refuse is refused. The
// error is a *proposal.StopError.
func (a ReviewerOptions) OpenProvider() (model.Provider, []redact.Mask, error) {
	if _, _, err := a.readLimits(); err != nil {
		return nil, nil, err
	}
	return a.newProvider()
}

func (a ReviewerOptions) newProvider() (p model.Provider, masks []redact.Mask, err error) {
	if a.Through != nil {
		return a.Through, nil, nil
	}
	p, values, err := model.New(model.Options{Provider: a.Provider, Getenv: a.Getenv, Command: a.Command, Env: a.Env})
	for i, value := range values {
		if len(value) >= redact.MinMask {
			masks = append(masks, redact.Mask{Name: fmt.Sprintf("MODEL_KEY_%d", i+1), Value: value})
		}
	}
	return p, masks, err
}

// ReplayAnswers returns a Reviewer that repeats recorded answers, without the parts that Prepare's lacks.
// Its ledger is in dir.
func ReplayAnswers(answers []string, dir string) (r Reviewer, err error) {
	ledger, err := spend.OpenLedger(dir)
	free := spend.Limits{Review: spend.Unlimited, Subject: spend.Unlimited, Day: spend.Unlimited}
	return Reviewer{Provider: model.NewRecorded(answers), Name: "recorded", Model: "conversation",
		Rounds: DefaultRounds, MaxOutput: DefaultMaxOutput, Timeout: DefaultTimeout,
		Budget: spend.NewBudget(free, spend.Price{}, "demo", ledger)}, err
}

// A modelPrice is the price of a model, and the digest of its table: zero if it is not known.
type modelPrice struct {
	price spend.Price
	table string
}

// readLimits checks a and returns its limits.
func (a ReviewerOptions) readLimits() (limits spend.Limits, price modelPrice, err error) {
	if a.Model == "" || a.Rounds < 1 || a.Rounds > MaxRounds || a.MaxOutput < 1 || a.MaxOutput > DefaultMaxOutput {
		return limits, price, &proposal.StopError{Code: "model.options", Message: "invalid options for a model",
			Hint: fmt.Sprintf("name a model, 1 to %d rounds and 1 to %d tokens of output", MaxRounds, DefaultMaxOutput)}
	}
	prices, err := a.readPrices()
	if err != nil {
		return limits, price, err
	}
	known, priced := prices.PriceOf(a.Model)
	if err := a.checkEnforceable(priced); err != nil {
		return limits, price, err
	}
	if priced {
		price = modelPrice{known, prices.Digest}
		a.Review.USD = cmp.Or(a.Review.USD, DefaultUSD)
	}
	for _, c := range []struct {
		given LimitText
		limit *spend.Amount
	}{{a.Review, &limits.Review}, {a.PR, &limits.Subject}, {a.Day, &limits.Day}} {
		if *c.limit, err = c.given.parseAmount(); err != nil {
			return limits, price, err
		}
	}
	return limits, price, nil
}

func (a ReviewerOptions) newBudget(limits spend.Limits, price modelPrice) (*spend.Budget, error) {
	state, err := process.StateHome()
	if err != nil {
		return nil, err
	}
	ledger, err := spend.OpenLedger(filepath.Join(state, "fumehood", "reviews"))
	return spend.NewBudget(limits, price.price, digestOf([]byte(a.Subject)), ledger), err
}

// checkEnforceable refuses limits that cannot be kept.
func (a ReviewerOptions) checkEnforceable(priced bool) error {
	switch {
	case priced:
		return nil
	case a.Review.Tokens < 0:
		return &proposal.StopError{Code: "model.price",
			Message: fmt.Sprintf("the price of the model %q is not known", a.Model),
			Hint:    "set --max-tokens, or name a table with its price with --prices"}
	case a.Review.USD != "" || a.PR.USD != "" || a.Day.USD != "":
		return &proposal.StopError{Code: "model.price",
			Message: fmt.Sprintf("the price of the model %q is not known, so that a limit in dollars has no effect",
				a.Model), Hint: "set limits in tokens only, or name a table with its price with --prices"}
	}
	return nil
}

func (a ReviewerOptions) readPrices() (spend.Prices, error) {
	if a.Prices == "" {
		return spend.ReadPrices(spend.Shipped)
	}
	data, err := os.ReadFile(a.Prices)
	if err != nil {
		return spend.Prices{}, &proposal.StopError{Code: "model.prices", Message: "cannot read the table of prices",
			Hint: "check --prices", Err: err}
	}
	return spend.ReadPrices(data)
}

func (c LimitText) parseAmount() (spend.Amount, error) {
	limit := spend.Unlimited
	if c.Tokens >= 0 {
		limit.Tokens = c.Tokens
	}
	if c.USD == "" {
		return limit, nil
	}
	usd, err := spend.ParseUSD(c.USD)
	if err != nil {
		return limit, &proposal.StopError{Code: "model.options", Message: "invalid limit: " + err.Error(),
			Hint: "write dollars, such as 0.50"}
	}
	limit.USD = usd
	return limit, nil
}
