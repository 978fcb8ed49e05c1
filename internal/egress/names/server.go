// SPDX-License-Identifier: Apache-2.0

package names

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/fumehood/fumehood/internal/egress/address"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Server's limits.
const (
	DefaultRate = 1000 // messages per second
	maxAtOnce   = 128  // messages being answered
)

// The codes in the Flow of a lookup.
const (
	CodePolicy      = "policy"      // refused by policy, or policy could not be asked
	CodeProtocol    = "protocol"    // not a valid question, or not a valid name
	CodeAddress     = "address"     // one of the name's addresses must not be connected to
	CodeUnresolved  = "unresolved"  // there is no such name
	CodeUnreachable = "unreachable" // no server gave a valid answer
	CodeCut         = "cut"         // the command ended before the answer
	CodeLimit       = "limit"       // too many messages or names
)

// Options configure a Server; all functions and the Pool must be set.
type Options struct {
	Pool *Pool
	// Ask asks policy. The Server sets Kind, Name, Type and Protocol.
	Ask func(context.Context, proposal.Egress) (proposal.EgressDecision, error)
	// Find resolves the name outside, as Resolver.Find does: a name that does not
	// exist there, or whose address is forbidden, does not exist inside either.
	Find func(ctx context.Context, name string, private bool) error
	// Elsewhere reports whether the host's upstream proxy would resolve a name that Find
	// cannot; nil means that there is none. It counts if policy says Unresolved.
	Elsewhere func(name string) bool
	// Report receives the outcome of each lookup, from many goroutines.
	Report func(proposal.Flow)
	// Rate is the maximum number of messages per second; 0 means DefaultRate. Any more
	// are answered with a failure, and reported as one Flow per second.
	Rate int
}

// A Server answers DNS messages. It may be used by many goroutines at once.
type Server struct {
	o    Options
	now  func() time.Time
	rate *eventLimiter
	busy chan struct{}
}

// NewServer returns a Server, or an error if o is incomplete.
func NewServer(o Options) (*Server, error) {
	if o.Pool == nil || o.Ask == nil || o.Find == nil || o.Report == nil {
		return nil, errors.New("cannot answer look-ups: an option is missing")
	}
	if o.Rate == 0 {
		o.Rate = DefaultRate
	}
	return &Server{o: o, now: time.Now, rate: newEventLimiter(o.Rate), busy: make(chan struct{}, maxAtOnce)}, nil
}

// Query answers one message, of UDP or of TCP without its length. nil means no answer,
// because the message was not a question. An answer has at most 512 bytes, whatever
// was asked.
//
// A refused name does not exist for the program (NXDOMAIN): this makes most programs
// stop at once with a clear error. Types other than A and AAAA have no data. localhost and the names
// below it are the sandbox's own loopback addresses: policy is not asked, and they are not reported.
func (s *Server) Query(ctx context.Context, message []byte) []byte {
	start := time.Now()
	q, code, answer, err := readQuery(message)
	flow := proposal.Flow{Egress: proposal.Egress{Kind: points.EgressLookup, Protocol: "udp"}}
	if !s.reserveSlot(&flow) {
		if !answer {
			return nil
		}
		return q.packAnswer(dnsmessage.RCodeServerFailure, nil, "fumehood: too many look-ups")
	}
	defer func() { <-s.busy }()

	var body dnsmessage.ResourceBody
	note := ""
	if err == nil && isLocal(q.question.Name.String()) {
		return q.packAnswer(dnsmessage.RCodeSuccess, localBody(q.question.Type), "")
	}
	if err != nil {
		flow.Code = CodeProtocol
	} else {
		code, body, note = s.resolveQuestion(ctx, q.question, &flow)
	}
	flow.WallMS = time.Since(start).Milliseconds()
	s.o.Report(flow)
	if !answer {
		return nil
	}
	return q.packAnswer(code, body, note)
}

// isLocal reports whether name is localhost or below it, which is the sandbox itself: RFC 6761 §6.3.
func isLocal(name string) bool {
	name = strings.TrimSuffix(lowerASCII(name), ".")
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

func localBody(t dnsmessage.Type) dnsmessage.ResourceBody {
	if t != dnsmessage.TypeA && t != dnsmessage.TypeAAAA {
		return nil
	}
	return addressBody(t, netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback())
}

// reserveSlot reserves a slot for one more message, or returns false if all are in use.
func (s *Server) reserveSlot(flow *proposal.Flow) bool {
	ok, report := s.rate.allowEvent(s.now())
	if ok {
		select {
		case s.busy <- struct{}{}:
			return true
		default:
			report = s.rate.shouldReport(s.now())
		}
	}
	if report {
		flow.Code = CodeLimit
		s.o.Report(*flow)
	}
	return false
}

// resolveQuestion decides one question. It fills flow and returns the answer.
func (s *Server) resolveQuestion(
	ctx context.Context, q dnsmessage.Question, flow *proposal.Flow,
) (dnsmessage.RCode, dnsmessage.ResourceBody, string) {
	flow.Egress.Type = typeName(q.Type)
	name, err := Parse(q.Name.String())
	if err != nil {
		flow.Egress.Name, flow.Code = printableASCII(q.Name.String()), CodeProtocol
		return dnsmessage.RCodeNameError, nil, "fumehood: not a name of a host"
	}
	flow.Egress.Name = name
	d, err := s.o.Ask(ctx, flow.Egress)
	if err != nil {
		flow.Code = CodePolicy
		if ctx.Err() != nil {
			flow.Code = CodeCut
		}
		return dnsmessage.RCodeServerFailure, nil, "fumehood: policy could not be asked"
	}
	flow.Decision = d
	isAddress := q.Type == dnsmessage.TypeA || q.Type == dnsmessage.TypeAAAA
	if d.Effect != proposal.Allow {
		flow.Code = CodePolicy
		if !isAddress && s.o.Pool.HasAddresses(name) {
			return dnsmessage.RCodeSuccess, nil, refusalNote(d) // the name exists, but not this type
		}
		return dnsmessage.RCodeNameError, nil, refusalNote(d)
	}
	if !isAddress {
		return dnsmessage.RCodeSuccess, nil, ""
	}
	// Take an address first: it limits the names that one command can look up outside,
	// whether or not they exist.
	v4, v6, err := s.o.Pool.AssignAddresses(name)
	if err != nil {
		flow.Code = CodeLimit
		return dnsmessage.RCodeServerFailure, nil, "fumehood: too many names"
	}
	if err := s.o.Find(ctx, name, d.Private); err != nil && !s.isResolvedElsewhere(ctx, err, flow) {
		return notFound(ctx, err, flow)
	}
	if q.Type == dnsmessage.TypeAAAA && !v6.IsValid() { // the sandbox has no IPv6
		return dnsmessage.RCodeSuccess, nil, ""
	}
	return dnsmessage.RCodeSuccess, addressBody(q.Type, v4, v6), ""
}

// isResolvedElsewhere reports whether the name of flow, for which Find returned err, has an address
// nevertheless, because only the upstream proxy knows its real one.
func (s *Server) isResolvedElsewhere(ctx context.Context, err error, flow *proposal.Flow) bool {
	var refused *address.Refused
	if ctx.Err() != nil || errors.As(err, &refused) || s.o.Elsewhere == nil || !s.o.Elsewhere(flow.Egress.Name) {
		return false
	}
	if !flow.Decision.Unresolved {
		flow.Decision.Reason = &proposal.Reason{Rule: "egress.unresolved", Effect: proposal.Deny, Command: -1,
			Message:    "this host cannot resolve the name, and the upstream proxy only gets names that are granted themselves",
			Suggestion: "request the host by its name, not by a wildcard"}
	}
	return flow.Decision.Unresolved
}

func addressBody(t dnsmessage.Type, v4, v6 netip.Addr) dnsmessage.ResourceBody {
	if t == dnsmessage.TypeA {
		return &dnsmessage.AResource{A: v4.As4()}
	}
	return &dnsmessage.AAAAResource{AAAA: v6.As16()}
}

// notFound answers for a name that policy allows but that has no usable address.
func notFound(ctx context.Context, err error, flow *proposal.Flow) (dnsmessage.RCode, dnsmessage.ResourceBody, string) {
	var refused *address.Refused
	switch {
	case errors.As(err, &refused):
		flow.Code, flow.Egress.Address = CodeAddress, refused.Addr.String()
		return dnsmessage.RCodeNameError, nil, "fumehood: " + refused.Error()
	case errors.Is(err, ErrNotFound):
		flow.Code = CodeUnresolved
		return dnsmessage.RCodeNameError, nil, ""
	}
	flow.Code = CodeUnreachable
	if ctx.Err() != nil {
		flow.Code = CodeCut
	}
	return dnsmessage.RCodeServerFailure, nil, "fumehood: no name server answers"
}

// refusalNote returns the note for a refused name. It contains only the rule, because its
// message may contain untrusted text.
func refusalNote(d proposal.EgressDecision) string {
	if d.Reason == nil {
		return "fumehood: refused by policy"
	}
	return "fumehood: refused by rule " + printableASCII(d.Reason.Rule)
}

// printableASCII returns text in printable ASCII, of limited length.
func printableASCII(text string) string {
	quoted := strconv.QuoteToASCII(text[:min(len(text), MaxName)])
	return quoted[1 : len(quoted)-1]
}
