// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/kit/retry"
	"github.com/fumehood/fumehood/internal/review/model"
	"github.com/fumehood/fumehood/internal/review/spend"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxLogged is the largest whole number that a log can have.
const maxLogged = 1<<53 - 1

// attempts is how often one request is sent at most, if it can succeed later.
const attempts = 4

// maxShownBack is how much of an answer that cannot be used its model is shown, in bytes.
const maxShownBack = 4000

// A conversation is what one model is asked about one change. Nothing that it or a command says
// changes any field but turns, found and use.
type conversation struct {
	provider model.Provider
	request  model.Request // without Turns
	reviewer string
	setting  promptContext
	budget   *spend.Budget
	redactor *redact.Redactor
	do       func(context.Context, proposal.Proposal) (proposal.Record, error)
	log      entries
	keep     func(name, text string) error
	wait     time.Duration // before the second attempt

	turns []model.Turn
	found proposal.ReviewFindings // of the last answer that could be used
	use   ModelUse
}

// entries is the review's log.
type entries interface {
	Append(kind string, v any) (int64, error)
}

// An incomplete is why a conversation did not end normally. It is a fact, not a failure.
type incomplete struct{ why string }

func (i *incomplete) Error() string { return i.why }

// askRounds asks until the model is done or the rounds are over. An *incomplete error means that
// found has what there is; any other that nothing may be concluded.
func (c *conversation) askRounds(ctx context.Context) error {
	opening, whole := c.setting.firstMessage()
	c.use.Whole = whole
	c.addTurn(false, opening)
	for round := 1; ; round++ {
		c.use.Rounds = round
		text, err := c.askModel(ctx)
		if err != nil {
			return err
		}
		a, wrong := decodeAnswer(text, round, c.reviewer)
		if wrong == nil {
			wrong = c.acceptFindings(a.findings)
		}
		last := round >= c.setting.rounds
		switch {
		case wrong == nil && (a.done || last) && (last || len(a.mistakes) == 0):
			return nil
		case last:
			return &incomplete{"the model's last answer cannot be used: " + wrong.Error()}
		}
		if err := c.runCommands(ctx, text, a, wrong); err != nil {
			return err
		}
	}
}

// acceptFindings keeps findings, redacted. An id that would have to be redacted could become that of
// another finding, and what was run for one would count for the other.
func (c *conversation) acceptFindings(found proposal.ReviewFindings) error {
	redacted := c.redactor.Findings(found)
	for i, f := range redacted.Findings {
		if f.ID != found.Findings[i].ID {
			return fmt.Errorf("the id of finding %d contains what looks like a secret", i+1)
		}
	}
	c.found = redacted
	return nil
}

// runCommands runs the commands of an answer, and says what came of them.
func (c *conversation) runCommands(ctx context.Context, text string, a answer, wrong error) error {
	var records []proposal.Record
	for _, p := range a.commands {
		r, err := c.do(ctx, p)
		if err != nil {
			return err
		}
		records = append(records, r)
		c.use.Commands++
		if r.Result != nil && r.Runnable() {
			c.use.Ran++
		}
	}
	if wrong != nil {
		a.mistakes, text = []string{wrong.Error()}, strings.ToValidUTF8(text[:min(len(text), maxShownBack)], "")
	}
	c.addTurn(true, text)
	c.addTurn(false, c.setting.resultsMessage(c.use.Rounds+1, records, a.mistakes))
	return nil
}

// addTurn adds a turn, of the model or of fumehood. Everything that is sent passes here, or is fixed.
func (c *conversation) addTurn(byModel bool, text string) {
	c.turns = append(c.turns, model.Turn{Model: byModel, Text: c.redactor.Text(text)})
}

// askModel sends the conversation and returns a complete answer. A request that can succeed later is
// sent again, as far as budget and time allow.
func (c *conversation) askModel(ctx context.Context) (string, error) {
	for attempt := 1; ; attempt++ {
		a, err := c.sendOnce(ctx)
		var failed *model.Error
		switch {
		case err == nil && a.Stop == model.Complete && strings.TrimSpace(a.Text) != "":
			return a.Text, nil
		case err == nil:
			return "", &incomplete{describeStop(a)}
		case !errors.As(err, &failed):
			return "", c.markIncomplete(ctx, err)
		}
		wait := max(failed.After, retry.Backoff(c.wait, attempt))
		if !failed.Again || attempt == attempts || !retry.FitsDeadline(ctx, time.Now(), wait) {
			return "", &incomplete{failed.Message}
		}
		if err := retry.Sleep(ctx, wait); err != nil {
			return "", c.markIncomplete(ctx, err)
		}
	}
}

// markIncomplete says whether err, which is not the provider's, still lets findings be verified.
func (c *conversation) markIncomplete(ctx context.Context, err error) error {
	var stop *proposal.StopError
	switch {
	case errors.As(err, &stop) && (stop.Code == spend.Exceeded || stop.Code == "model.usage"):
		return &incomplete{stop.Message}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &incomplete{"the time for the model is over"}
	}
	return err
}

// describeStop says why an answer that was received cannot be used.
func describeStop(a model.Answer) string {
	switch a.Stop {
	case model.Complete:
		return "the model's answer is empty"
	case model.Length:
		return "the model's answer reached the limit of its length"
	case model.Refusal:
		return "the model refused to answer"
	case model.Filter:
		return "the provider withheld the model's answer"
	case model.TooLong:
		return "the request is longer than the model accepts"
	}
	return "the model's answer ended for an unknown reason"
}

// A requestEntry is the entry before a request is sent. Digests are of the text without the key.
type requestEntry struct {
	N         int          `json:"n"`
	Model     string       `json:"model"`
	Digest    string       `json:"digest"`
	Bytes     int          `json:"bytes"`
	MaxInput  int64        `json:"max_input_tokens"`
	MaxOutput int64        `json:"max_output_tokens"`
	Reserved  spend.Amount `json:"reserved"`
	Spent     spend.Amount `json:"spent"` // by this review, with Reserved
}

// An answerEntry is the entry after a request. Without one, the process was killed meanwhile.
type answerEntry struct {
	N      int          `json:"n"`
	Stop   model.Stop   `json:"stop,omitempty"`
	Digest string       `json:"digest,omitempty"`
	Bytes  int          `json:"bytes"`
	Input  int64        `json:"input_tokens"`  // as the provider reports, or -1
	Output int64        `json:"output_tokens"` // likewise
	Used   spend.Amount `json:"used"`
	Status int          `json:"status,omitempty"`
	Error  string       `json:"error,omitempty"`
}

// sendOnce reserves, logs, sends and settles one request, in this order.
func (c *conversation) sendOnce(ctx context.Context) (a model.Answer, err error) {
	r := c.request
	r.Turns = c.turns
	reserved, err := c.budget.ReserveRequest(r.MaxInput(), r.MaxOutput)
	if err != nil {
		return a, err
	}
	if err := c.logRequest(r, reserved); err != nil {
		return a, err
	}
	a, failure := c.provider.Ask(ctx, r)
	used, err := settleReservation(reserved, a, failure)
	return a, cmp.Or(err, c.logAnswer(a, used, failure), failure)
}

// logRequest writes the entry of a request that is about to be sent.
func (c *conversation) logRequest(r model.Request, reserved *spend.Reservation) error {
	sent, err := json.Marshal(r)
	if err != nil {
		return err
	}
	c.use.Requests++
	c.use.SentBytes += int64(len(sent))
	e := requestEntry{N: c.use.Requests, Model: r.Model, Digest: digestOf(sent), Bytes: len(sent),
		MaxInput: r.MaxInput(), MaxOutput: r.MaxOutput, Reserved: reserved.Amount(), Spent: c.budget.SpentAmount()}
	if _, err := c.log.Append("model.request", e); err != nil {
		return err
	}
	return c.keep(fmt.Sprintf("request-%d.json", e.N), string(sent))
}

// logAnswer writes the entry of what came of a request.
func (c *conversation) logAnswer(a model.Answer, used spend.Amount, failure error) error {
	e := answerEntry{N: c.use.Requests, Stop: a.Stop, Bytes: len(a.Text), Input: min(a.Input, maxLogged),
		Output: min(a.Output, maxLogged), Used: used}
	if failure == nil {
		e.Digest = digestOf([]byte(a.Text))
	} else {
		e.describeFailure(c.redactor, failure)
	}
	if _, err := c.log.Append("model.answer", e); err != nil {
		return err
	}
	return c.keep(fmt.Sprintf("answer-%d.txt", e.N), c.redactor.Text(a.Text))
}

// settleReservation replaces a reservation by what the request used.
func settleReservation(r *spend.Reservation, a model.Answer, failure error) (spend.Amount, error) {
	var failed *model.Error
	if errors.As(failure, &failed) && !failed.Spent {
		return spend.Amount{}, r.GiveBack()
	}
	if failure != nil {
		return r.Amount(), nil
	}
	return r.SettleUsed(a.Input, a.Output)
}

func (e *answerEntry) describeFailure(u *redact.Redactor, failure error) {
	e.Input, e.Output, e.Error = -1, -1, u.Text(failure.Error())
	var failed *model.Error
	if errors.As(failure, &failed) {
		e.Status = failed.Status
	}
}

func digestOf(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }
