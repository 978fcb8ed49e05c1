// SPDX-License-Identifier: Apache-2.0

// Package wire defines the messages between the gateway's process and its supervisor,
// and their encoding. Both are the same program.
//
// # Format
//
// One message is one record of a SOCK_SEQPACKET socket, of at most MaxMessage bytes:
//
//	header   that of package frame, with Version, a Kind and a seq
//	body     the kind's struct as encoding/json writes it; empty for Ping and Pong
//
// Each message has exactly one encoding: a body whose decoding does not encode to the
// same bytes is malformed, so there are no unknown, repeated or misspelt fields.
//
// Each side's seq begins with 1 and increases by one with each message that is not an
// answer. An Answer, a Done and a Pong have the seq of the message that they answer. The
// supervisor sends Begin and End in turn, and the gateway answers each with Done. Between
// them the gateway sends Ask and Flow. Every Flow of a command comes before the Done
// that answers its End.
//
// A Setup is not a message: it is the gateway's whole standard input, read before the
// process confines itself.
//
// # What it does not protect against
//
// The supervisor treats every byte as written by an attacker, because the gateway reads
// what untrusted programs and servers send. Decoding allocates in proportion to the message,
// and no text in it is longer than its bound. What the gateway reports of its traffic
// is believed: no other process sees that traffic.
package wire

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/fumehood/fumehood/internal/kit/frame"
)

// Version is the protocol's version. A message with another version is refused.
const Version = 1

// Bounds in bytes. The sender truncates longer texts in records. Texts in questions are
// never truncated: longer ones are refused.
const (
	MaxMessage = 80 << 10
	MaxSetup   = 4 << 20
	// MaxAsks is how many Asks may wait for their Answer.
	MaxAsks = 64

	maxName    = 255
	maxPath    = 4096
	maxWord    = 64
	maxText    = 1024 // of a Reason or a Fault
	maxSecrets = 16
	maxRules   = 32
	maxPEM     = 8 << 10
)

// A Kind is a kind of message.
type Kind uint8

// The kinds. The gateway sends the first six, the supervisor the others.
const (
	KindHello Kind = iota + 1
	KindAsk
	KindFlow
	KindDone
	KindPong
	KindFault
	KindBegin
	KindEnd
	KindAnswer
	KindPing
	kinds
)

var format = frame.Format[Kind]{Version: Version, Kinds: kinds, Max: MaxMessage}

// Open splits a message. It checks the header, not the body.
func Open(message []byte) (frame.Header[Kind], []byte, error) { return format.Open(message) }

// A Body is that of one kind of message.
type Body interface {
	// trim cuts what may be cut, so that it can be sent.
	trim()
	// check says what a sender must not have sent.
	check() error
}

// Encode returns a message. A nil body is empty. Texts in body that are too long are cut, in
// place, unless it would then be another question: that is an error.
func Encode(kind Kind, seq uint64, body Body) ([]byte, error) {
	b := format.Append(nil, kind, seq)
	if body == nil {
		return b, nil
	}
	body.trim()
	if err := body.check(); err != nil {
		return nil, fmt.Errorf("cannot encode message: %v", err)
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("cannot encode message: %v", err)
	}
	if len(b)+len(text) > MaxMessage {
		return nil, fmt.Errorf("cannot encode message of %d bytes", len(text))
	}
	return append(b, text...), nil
}

// Decode reads a body. Unless the error is nil into must not be used.
func Decode(body []byte, into Body) error {
	if err := decodeExactly(body, into); err != nil {
		return err
	}
	return into.check()
}

func decodeExactly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %v", frame.ErrMalformed, err)
	}
	again, err := json.Marshal(into)
	if err != nil || !bytes.Equal(again, text) {
		return fmt.Errorf("%w: not in canonical encoding", frame.ErrMalformed)
	}
	return nil
}
