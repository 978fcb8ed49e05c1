// SPDX-License-Identifier: Apache-2.0

package names

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	maxRecords   = 256 // in one reply
	maxLinks     = 16  // aliases between a name and its addresses
	maxAddresses = 64  // of one name
)

var (
	errForeign   = errors.New("not an answer to the question")
	errTruncated = errors.New("the answer was cut off")
)

// A question is what an upstream server is queried for.
type question struct {
	name string // from Parse, or an alias's target in lower case
	kind dnsmessage.Type
}

// A reply is a server's answer.
type reply struct {
	addrs  []netip.Addr
	alias  string // the alias's target, if the reply has no addresses for it
	ttl    uint32 // the minimum of the records used
	absent bool   // the name, or the target of its alias, does not exist
}

// packQuery returns the message that queries q.
func (q question) packQuery(id uint16) ([]byte, error) {
	name, err := dnsmessage.NewName(q.name + ".")
	if err != nil {
		return nil, fmt.Errorf("cannot ask for %q: %w", q.name, err)
	}
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: id, RecursionDesired: true})
	var opt dnsmessage.ResourceHeader
	err = errors.Join(
		b.StartQuestions(),
		b.Question(dnsmessage.Question{Name: name, Type: q.kind, Class: dnsmessage.ClassINET}),
		b.StartAdditionals(),
		opt.SetEDNS0(maxMessage, dnsmessage.RCodeSuccess, false),
		b.OPTResource(opt, dnsmessage.OPTResource{}),
	)
	if err != nil {
		return nil, fmt.Errorf("cannot ask for %q: %w", q.name, err)
	}
	return b.Finish()
}

// readReply reads message as the answer to q with id. errForeign means that it is not
// the answer, which may still arrive; any other error is a failure of the server.
func readReply(message []byte, id uint16, q question) (reply, error) {
	var p dnsmessage.Parser
	h, err := p.Start(message)
	if err != nil || !h.Response || h.ID != id || h.OpCode != 0 {
		return reply{}, errForeign
	}
	asked, err := p.AllQuestions()
	if err != nil || len(asked) != 1 || asked[0].Type != q.kind ||
		asked[0].Class != dnsmessage.ClassINET || textOf(asked[0].Name) != q.name {
		return reply{}, errForeign
	}
	switch {
	case h.Truncated:
		return reply{}, errTruncated
	case h.RCode != dnsmessage.RCodeSuccess && h.RCode != dnsmessage.RCodeNameError:
		return reply{}, fmt.Errorf("the server answered %s", h.RCode)
	}
	found, err := readRecords(&p, q.kind)
	if err != nil {
		return reply{}, fmt.Errorf("invalid answer: %w", err)
	}
	r, err := found.followAliases(q.name)
	r.absent = h.RCode == dnsmessage.RCodeNameError
	if r.absent {
		r.addrs, r.alias = nil, ""
	}
	return r, err
}

// records are the relevant records of a reply, by name.
type records struct {
	addrs map[string][]netip.Addr
	alias map[string]string
	ttl   map[string]uint32
}

func readRecords(p *dnsmessage.Parser, kind dnsmessage.Type) (records, error) {
	f := records{addrs: map[string][]netip.Addr{}, alias: map[string]string{}, ttl: map[string]uint32{}}
	for range maxRecords {
		h, err := p.AnswerHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			return f, nil
		}
		if err != nil {
			return f, err
		}
		if err := f.readRecord(p, h, kind); err != nil {
			return f, err
		}
	}
	return f, errors.New("too many records")
}

// readRecord adds one record, unless it has another type or class.
func (f records) readRecord(p *dnsmessage.Parser, h dnsmessage.ResourceHeader, kind dnsmessage.Type) error {
	owner := textOf(h.Name)
	switch {
	case h.Class != dnsmessage.ClassINET:
		return p.SkipAnswer()
	case h.Type == dnsmessage.TypeCNAME:
		r, err := p.CNAMEResource()
		if err != nil {
			return err
		}
		to := textOf(r.CNAME)
		if had, ok := f.alias[owner]; ok && had != to {
			return errors.New("an alias of two names")
		}
		f.alias[owner] = to
	case h.Type == dnsmessage.TypeA && kind == h.Type:
		r, err := p.AResource()
		if err != nil {
			return err
		}
		f.addrs[owner] = append(f.addrs[owner], netip.AddrFrom4(r.A))
	case h.Type == dnsmessage.TypeAAAA && kind == h.Type:
		r, err := p.AAAAResource()
		if err != nil {
			return err
		}
		f.addrs[owner] = append(f.addrs[owner], netip.AddrFrom16(r.AAAA))
	default:
		return p.SkipAnswer()
	}
	if had, ok := f.ttl[owner]; !ok || h.TTL < had {
		f.ttl[owner] = h.TTL
	}
	return nil
}

// followAliases follows the aliases from name. Records for names that are not on that path are
// ignored.
func (f records) followAliases(name string) (reply, error) {
	var r reply
	for i := range maxLinks {
		if ttl, ok := f.ttl[name]; ok && (i == 0 || ttl < r.ttl) {
			r.ttl = ttl
		}
		if addrs := f.addrs[name]; len(addrs) > 0 {
			if len(addrs) > maxAddresses {
				return r, fmt.Errorf("invalid answer: %d addresses, at most %d", len(addrs), maxAddresses)
			}
			r.addrs, r.alias = addrs, ""
			return r, nil
		}
		next, ok := f.alias[name]
		if !ok {
			return r, nil
		}
		name, r.alias = next, next
	}
	return r, errors.New("invalid answer: too many aliases")
}

// textOf returns a name from a message in lower case and without its final dot.
func textOf(n dnsmessage.Name) string {
	s := lowerASCII(n.String())
	if len(s) > 0 && s[len(s)-1] == '.' {
		s = s[:len(s)-1]
	}
	return s
}
