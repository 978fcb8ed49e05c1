// SPDX-License-Identifier: Apache-2.0

package names

import (
	"errors"
	"fmt"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	headerSize    = 12
	maxAnswer     = 512 // what every client accepts over UDP
	maxNote       = 180
	answerTTL     = 5  // seconds: short, so that programs ask again
	badVersion    = 16 // extended RCODE, RFC 6891
	extendedError = 15 // option code, RFC 8914
	noteBlocked   = 15 // its info code "Blocked": the operator's policy
	typeOption    = 41
)

// A query is a message with one question.
type query struct {
	header   dnsmessage.Header
	question dnsmessage.Question
	edns     bool // the client understands more than RFC 1035
}

// readQuery reads message. Without an error the code is success. With an error, code
// is the answer to send; answer is false if none must be sent.
//
// It is strict: one question, at most one other record, which must be EDNS's, and no
// further bytes.
func readQuery(message []byte) (q query, code dnsmessage.RCode, answer bool, err error) {
	var p dnsmessage.Parser
	q.header, err = p.Start(message)
	if err != nil || q.header.Response {
		return q, 0, false, errors.New("invalid message: not a question")
	}
	malformed := func(format string, args ...any) (query, dnsmessage.RCode, bool, error) {
		return q, dnsmessage.RCodeFormatError, true, fmt.Errorf("invalid question: "+format, args...)
	}
	if len(message) > maxMessage {
		return malformed("%d bytes", len(message))
	}
	if q.header.OpCode != 0 {
		return q, dnsmessage.RCodeNotImplemented, true, fmt.Errorf("invalid question: operation %d", q.header.OpCode)
	}
	counts := [8]byte(message[4:headerSize])
	if counts != [8]byte{1: 1} && counts != [8]byte{1: 1, 7: 1} {
		return malformed("counts of records")
	}
	if q.question, err = p.Question(); err != nil {
		return malformed("%v", err)
	}
	size := headerSize + len(q.question.Name.String()) + 1 + 4
	if q.question.Name.String() == "." {
		size--
	}
	version := 0
	if counts[7] == 1 {
		opt, err := readOption(&p)
		if err != nil {
			return malformed("%v", err)
		}
		q.edns, version = true, int(opt.TTL>>16&0xff)
		size += 11 + int(opt.Length)
	}
	switch {
	case len(message) != size:
		return malformed("%d unexpected bytes", len(message)-size)
	case version != 0:
		return q, badVersion, true, fmt.Errorf("invalid question: EDNS version %d", version)
	case q.question.Class != dnsmessage.ClassINET:
		return q, dnsmessage.RCodeRefused, true, fmt.Errorf("invalid question: %s", q.question.Class)
	}
	return q, dnsmessage.RCodeSuccess, true, nil
}

// readOption reads EDNS's record, which is for the root name.
func readOption(p *dnsmessage.Parser) (dnsmessage.ResourceHeader, error) {
	if err := errors.Join(p.SkipAllQuestions(), p.SkipAllAnswers(), p.SkipAllAuthorities()); err != nil {
		return dnsmessage.ResourceHeader{}, err
	}
	h, err := p.AdditionalHeader()
	if err != nil {
		return h, err
	}
	if h.Type != typeOption || h.Name.String() != "." {
		return h, errors.New("an additional record")
	}
	_, err = p.OPTResource()
	return h, err
}

// packAnswer returns the message that answers q with code and body; body may be nil. note
// says in words what refused the name; it is sent only to clients that use EDNS, which
// can show it.
func (q query) packAnswer(code dnsmessage.RCode, body dnsmessage.ResourceBody, note string) []byte {
	if message, err := q.buildAnswer(code, body, note); err == nil && len(message) <= maxAnswer {
		return message
	}
	if message, err := q.buildAnswer(code, body, ""); err == nil {
		return message
	}
	return nil
}

func (q query) buildAnswer(code dnsmessage.RCode, body dnsmessage.ResourceBody, note string) ([]byte, error) {
	m := dnsmessage.Message{Header: dnsmessage.Header{
		ID:                 q.header.ID,
		Response:           true,
		OpCode:             q.header.OpCode,
		RecursionDesired:   q.header.RecursionDesired,
		RecursionAvailable: true,
		RCode:              code & 0xf,
	}}
	if q.question.Name.Length > 0 {
		m.Questions = []dnsmessage.Question{q.question}
	}
	if body != nil {
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.question.Name, Class: q.question.Class, TTL: answerTTL},
			Body:   body,
		}}
	}
	if q.edns {
		opt := &dnsmessage.OPTResource{}
		if note != "" {
			data := append([]byte{0, noteBlocked}, note[:min(len(note), maxNote)]...)
			opt.Options = []dnsmessage.Option{{Code: extendedError, Data: data}}
		}
		r := dnsmessage.Resource{Body: opt}
		if err := r.Header.SetEDNS0(maxMessage, code, false); err != nil {
			return nil, err
		}
		m.Additionals = []dnsmessage.Resource{r}
	}
	return m.Pack()
}

// typeNames are the types that policy knows by name; others are "TYPE" and a number,
// as in RFC 3597.
var typeNames = map[dnsmessage.Type]string{
	1: "A", 2: "NS", 5: "CNAME", 6: "SOA", 10: "NULL", 12: "PTR", 13: "HINFO", 15: "MX", 16: "TXT",
	28: "AAAA", 29: "LOC", 33: "SRV", 35: "NAPTR", 37: "CERT", 39: "DNAME", 43: "DS", 44: "SSHFP",
	46: "RRSIG", 47: "NSEC", 48: "DNSKEY", 52: "TLSA", 64: "SVCB", 65: "HTTPS", 251: "IXFR", 252: "AXFR",
	255: "ANY", 256: "URI", 257: "CAA",
}

func typeName(t dnsmessage.Type) string {
	if name, ok := typeNames[t]; ok {
		return name
	}
	return fmt.Sprintf("TYPE%d", uint16(t))
}
