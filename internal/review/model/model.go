// SPDX-License-Identifier: Apache-2.0

// Package model asks language models one question at a time, within bounds.
//
// A Provider sends one request and returns one answer. It never retries, follows no redirect,
// reads at most MaxAnswer bytes, and its errors contain no key. What it returns is untrusted
// text: the caller decodes it as strictly as anything that a stranger wrote.
//
// # What it does not do
//
// It does not count money, log or retry: package review does. It cannot know what a provider
// charges for; Request.MaxInput is an upper bound of the tokens that it sends.
package model

import (
	"context"
	"fmt"
	"time"
)

// MaxAnswer is the maximum size in bytes of what is read of a provider for one request.
const MaxAnswer = 4 << 20

// A Request is one question. Everything in it is sent to the provider.
type Request struct {
	Model     string
	System    string
	Turns     []Turn // the first and the last are not the model's
	Schema    []byte // JSON Schema of the answer, in the subset that all providers know
	MaxOutput int64  // tokens of the answer, from 1
}

// A Turn is one text of a conversation.
type Turn struct {
	Model bool   `json:"model"` // said by the model
	Text  string `json:"text"`
}

// roleName returns who said t: "user", or the format's word for the model.
func (t Turn) roleName(model string) string {
	if t.Model {
		return model
	}
	return "user"
}

// What a provider can add to a request: its own words about the schema, and the marks of a turn.
const (
	addedTokens   = 1024
	addedEachTurn = 16
)

// MaxInput returns an upper bound of the tokens of r. A token of a byte-level vocabulary has at
// least one byte, so that no more tokens are sent than bytes. The schema counts twice, because a
// provider can repeat it.
func (r Request) MaxInput() int64 {
	n := len(r.System) + 2*len(r.Schema) + addedTokens
	for _, t := range r.Turns {
		n += len(t.Text) + addedEachTurn
	}
	return int64(n)
}

// An Answer is what a model said. All of it is untrusted.
type Answer struct {
	Text string
	Stop Stop
	// Input and Output are the tokens that the provider reports, -1 if it reports none.
	Input, Output int64
}

// A Stop is why an answer ended.
type Stop string

// The reasons. Only an answer that is Complete is used.
const (
	Complete Stop = "complete"
	Length   Stop = "length"  // MaxOutput was reached
	Refusal  Stop = "refusal" // the model refused
	Filter   Stop = "filter"  // the provider withheld the answer
	TooLong  Stop = "too-long"
	Other    Stop = "other"
)

// A Provider asks one kind of service. Its methods are safe for concurrent use.
type Provider interface {
	// Ask sends r once. Its error is an *Error, or ctx's.
	Ask(ctx context.Context, r Request) (Answer, error)
}

// An Error is why there is no answer. Its text contains no key, and of the provider's text at
// most maxDetail characters in one line.
type Error struct {
	Message string
	Status  int // of HTTP; 0 if there was none
	// Again says that the same request may succeed later, at the earliest after After.
	Again bool
	After time.Duration
	// Spent says that the provider may have worked on the request, and charge for it.
	Spent bool
	// TooLong says that the request is longer than the model accepts.
	TooLong bool
}

func (e *Error) Error() string { return e.Message }

// An unsuitable returns an error about an answer that cannot be used and was paid for.
func unsuitableAnswer(format string, args ...any) *Error {
	return &Error{Message: fmt.Sprintf(format, args...), Again: true, Spent: true}
}
