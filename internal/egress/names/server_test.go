// SPDX-License-Identifier: Apache-2.0

package names

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/fumehood/fumehood/internal/egress/address"
	"github.com/fumehood/fumehood/internal/egress/segment"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A desk is a Server with a policy that is a list of names, and the flows it reported.
type desk struct {
	*Server
	pool *Pool

	mu    sync.Mutex
	flows []proposal.Flow
	asked []proposal.Egress
	found []string
}

// where maps the names that can be resolved to their result.
var where = map[string]error{
	"a.example":       nil,
	"b.example":       nil,
	"nowhere.example": fmt.Errorf("cannot resolve: %w", ErrNotFound),
	"inside.example":  fmt.Errorf("cannot connect: %w", &address.Refused{Addr: netip.MustParseAddr("169.254.169.254"), Kind: "metadata"}),
	"dark.example":    errors.New("no server answers"),
}

func newDesk(t testing.TB, change func(*Options)) *desk {
	t.Helper()
	d := &desk{pool: NewPool(segment.Default())}
	o := Options{
		Pool: d.pool,
		Ask: func(_ context.Context, e proposal.Egress) (proposal.EgressDecision, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.asked = append(d.asked, e)
			if e.Name == "broken.example" {
				return proposal.EgressDecision{Effect: proposal.Allow}, errors.New("policy is gone")
			}
			if e.Name == "ask.example" {
				return proposal.EgressDecision{Effect: proposal.Ask}, nil
			}
			if _, ok := where[e.Name]; ok && (e.Type == "A" || e.Type == "AAAA" || e.Type == "MX") {
				return proposal.EgressDecision{Effect: proposal.Allow, Rules: []string{"test.allow"}}, nil
			}
			return proposal.EgressDecision{Reason: &proposal.Reason{Rule: "egress.no-rule", Message: "never shown"}}, nil
		},
		Find: func(_ context.Context, name string, _ bool) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.found = append(d.found, name)
			return where[name]
		},
		Report: func(f proposal.Flow) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.flows = append(d.flows, f)
		},
	}
	if change != nil {
		change(&o)
	}
	s, err := NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	d.Server = s
	return d
}

func (d *desk) reported() []proposal.Flow {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]proposal.Flow(nil), d.flows...)
}

// questionOf returns the message of a client, with or without EDNS.
func questionOf(t testing.TB, name string, kind dnsmessage.Type, edns bool) []byte {
	t.Helper()
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 0xbeef, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	if edns {
		r := dnsmessage.Resource{Body: &dnsmessage.OPTResource{}}
		if err := r.Header.SetEDNS0(1232, dnsmessage.RCodeSuccess, true); err != nil {
			t.Fatal(err)
		}
		m.Additionals = []dnsmessage.Resource{r}
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// line formats an answer as one line: its code, its addresses and its note.
func line(t testing.TB, answer []byte) string {
	t.Helper()
	if answer == nil {
		return "silence"
	}
	var m dnsmessage.Message
	if err := m.Unpack(answer); err != nil {
		t.Fatalf("cannot read the answer: %v", err)
	}
	if !m.Response || m.ID != 0xbeef || m.Authoritative || m.Truncated || len(answer) > maxAnswer {
		t.Errorf("header of the answer: %+v, %d bytes", m.Header, len(answer))
	}
	words := []string{strings.TrimPrefix(m.RCode.String(), "RCode")}
	for _, a := range m.Answers {
		if a.Header.TTL != answerTTL || a.Header.Name != m.Questions[0].Name {
			t.Errorf("record %+v", a.Header)
		}
		switch b := a.Body.(type) {
		case *dnsmessage.AResource:
			words = append(words, netip.AddrFrom4(b.A).String())
		case *dnsmessage.AAAAResource:
			words = append(words, netip.AddrFrom16(b.AAAA).String())
		}
	}
	for _, a := range m.Additionals {
		for _, o := range a.Body.(*dnsmessage.OPTResource).Options {
			words = append(words, fmt.Sprintf("(%d/%d %s)", o.Code, o.Data[1], o.Data[2:]))
		}
	}
	return strings.Join(words, " ")
}

func TestQuery(t *testing.T) {
	const a, aaaa, mx, txt, https, any = dnsmessage.TypeA, dnsmessage.TypeAAAA, dnsmessage.TypeMX, dnsmessage.TypeTXT, dnsmessage.Type(65), dnsmessage.TypeALL
	for _, tt := range []struct {
		name  string
		asked string
		kind  dnsmessage.Type
		want  string
		flow  string // type, name, effect and code
	}{
		{"allowed", "a.example.", a, "Success 198.18.1.0", "A a.example allow "},
		{"allowed, IPv6", "a.example.", aaaa, "Success fd66:756d:6568::100", "AAAA a.example allow "},
		{"in mixed case", "A.eXaMpLe.", a, "Success 198.18.1.0", "A a.example allow "},
		{"refused", "evil.example.", a, "NameError (15/15 fumehood: refused by rule egress.no-rule)", "A evil.example deny policy"},
		{"for a person to say", "ask.example.", a, "NameError (15/15 fumehood: refused by policy)", "A ask.example ask policy"},
		{"policy fails", "broken.example.", a, "ServerFailure (15/15 fumehood: policy could not be asked)", "A broken.example deny policy"},
		{"nowhere", "nowhere.example.", a, "NameError", "A nowhere.example allow unresolved"},
		{"at an address that must not be", "inside.example.", a, "NameError (15/15 fumehood: address 169.254.169.254 is refused: metadata)", "A inside.example allow address"},
		{"not to be found out", "dark.example.", a, "ServerFailure (15/15 fumehood: no name server answers)", "A dark.example allow unreachable"},
		{"another type, allowed", "a.example.", mx, "Success", "MX a.example allow "},
		{"another type, refused", "a.example.", txt, "NameError (15/15 fumehood: refused by rule egress.no-rule)", "TXT a.example deny policy"},
		{"HTTPS", "a.example.", https, "NameError (15/15 fumehood: refused by rule egress.no-rule)", "HTTPS a.example deny policy"},
		{"ANY", "a.example.", any, "NameError (15/15 fumehood: refused by rule egress.no-rule)", "ANY a.example deny policy"},
		{"a type without a name", "a.example.", 999, "NameError (15/15 fumehood: refused by rule egress.no-rule)", "TYPE999 a.example deny policy"},
		{"a tunnel's label", strings.Repeat("x", 63) + ".evil.example.", txt, "NameError (15/15 fumehood: refused by rule egress.no-rule)", "TXT " + strings.Repeat("x", 63) + ".evil.example deny policy"},
		{"this machine", "localhost.", a, "Success 127.0.0.1", ""},
		{"below this machine", "Api.LocalHost.", aaaa, "Success ::1", ""},
		{"below this machine, another type", "api.localhost.", mx, "Success", ""},
		{"an IP address", "127.0.0.1.", a, "NameError (15/15 fumehood: not a name of a host)", "A 127.0.0.1. deny protocol"},
		{"the root", ".", dnsmessage.TypeNS, "NameError (15/15 fumehood: not a name of a host)", "NS . deny protocol"},
		{"control signs", "a\x1b[2J\n.example.", a, "NameError (15/15 fumehood: not a name of a host)", `A a\x1b[2J\n.example. deny protocol`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, edns := range []bool{true, false} {
				d := newDesk(t, nil)
				want := tt.want
				if !edns {
					want, _, _ = strings.Cut(want, " (")
				}
				if got := line(t, d.Query(context.Background(), questionOf(t, tt.asked, tt.kind, edns))); got != want {
					t.Errorf("answer %q, want %q", got, want)
				}
				flows := []string{}
				for _, f := range d.reported() {
					flows = append(flows, fmt.Sprintf("%s %s %s %s", f.Egress.Type, f.Egress.Name, f.Decision.Effect, f.Code))
				}
				wantFlows := []string{tt.flow}
				if tt.flow == "" { // nothing was asked
					wantFlows = []string{}
				}
				if diff := cmp.Diff(wantFlows, flows); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// Before policy allows a name, no outside server learns of it, nor of a type other than A and AAAA.
func TestQueryLooksOnlyForWhatIsAllowed(t *testing.T) {
	d := newDesk(t, nil)
	for _, name := range []string{"evil.example.", "ask.example.", "broken.example.", "127.0.0.1.", "a.example."} {
		for _, kind := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeTXT, dnsmessage.TypeMX} {
			d.Query(context.Background(), questionOf(t, name, kind, true))
		}
	}
	if diff := cmp.Diff([]string{"a.example"}, d.found); diff != "" {
		t.Error(diff)
	}
	want := proposal.Egress{Kind: points.EgressLookup, Name: "evil.example", Type: "A", Protocol: "udp"}
	if diff := cmp.Diff(want, d.asked[0]); diff != "" {
		t.Error(diff)
	}
}

// A known name remains known when another type of it is refused.
func TestQueryOtherTypesOfAKnownName(t *testing.T) {
	d := newDesk(t, nil)
	d.Query(context.Background(), questionOf(t, "a.example.", dnsmessage.TypeA, false))
	if got := line(t, d.Query(context.Background(), questionOf(t, "a.example.", 65, false))); got != "Success" {
		t.Errorf("got %q, want Success without data", got)
	}
}

func TestQueryWithout6(t *testing.T) {
	d := newDesk(t, func(o *Options) { o.Pool = NewPool(segment.Default().WithoutIPv6()) })
	for kind, want := range map[dnsmessage.Type]string{dnsmessage.TypeA: "Success 198.18.1.0", dnsmessage.TypeAAAA: "Success"} {
		if got := line(t, d.Query(context.Background(), questionOf(t, "a.example.", kind, false))); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}

// A private address is looked up only if policy allows it.
func TestQueryPrivate(t *testing.T) {
	for _, private := range []bool{true, false} {
		var got bool
		d := newDesk(t, func(o *Options) {
			o.Ask = func(context.Context, proposal.Egress) (proposal.EgressDecision, error) {
				return proposal.EgressDecision{Effect: proposal.Allow, Private: private}, nil
			}
			o.Find = func(_ context.Context, _ string, p bool) error { got = p; return nil }
		})
		d.Query(context.Background(), questionOf(t, "a.example.", dnsmessage.TypeA, false))
		if got != private {
			t.Errorf("private %v was asked for as %v", private, got)
		}
	}
}

func TestQueryTooManyNames(t *testing.T) {
	d := newDesk(t, nil)
	for i := range MaxNames {
		take(t, d.pool, fmt.Sprintf("h%d.example", i))
	}
	if got := line(t, d.Query(context.Background(), questionOf(t, "a.example.", dnsmessage.TypeA, false))); got != "ServerFailure" {
		t.Errorf("got %q", got)
	}
	if f := d.reported()[0]; f.Code != CodeLimit || len(d.found) > 0 {
		t.Errorf("code %q, want %q; looked for %v", f.Code, CodeLimit, d.found)
	}
}

// Names that do not exist count too: looking them up outside can leak information.
func TestQueryNamesThatAreNowhereCount(t *testing.T) {
	looked := 0
	d := newDesk(t, func(o *Options) {
		o.Rate = 1 << 20
		o.Ask = func(context.Context, proposal.Egress) (proposal.EgressDecision, error) {
			return proposal.EgressDecision{Effect: proposal.Allow}, nil
		}
		o.Find = func(context.Context, string, bool) error { looked++; return ErrNotFound }
	})
	for i := range MaxNames + 100 {
		d.Query(context.Background(), questionOf(t, fmt.Sprintf("h%d.a.example.", i), dnsmessage.TypeA, false))
	}
	if looked != MaxNames {
		t.Errorf("%d names were looked for outside, at most %d", looked, MaxNames)
	}
}

// A rule that is long or has unusual characters does not make the answer long or unusual.
func TestQueryNoteIsBounded(t *testing.T) {
	longest := strings.Repeat(strings.Repeat("a", 61)+".", 4)
	d := newDesk(t, func(o *Options) {
		o.Ask = func(context.Context, proposal.Egress) (proposal.EgressDecision, error) {
			return proposal.EgressDecision{Reason: &proposal.Reason{Rule: strings.Repeat("r\n\x1bé", 500)}}, nil
		}
	})
	got := line(t, d.Query(context.Background(), questionOf(t, longest, dnsmessage.TypeA, true)))
	if !strings.HasPrefix(got, `NameError (15/15 fumehood: refused by rule r\n\x1b\u00e9`) || strings.ContainsAny(got, "\n\x1b") {
		t.Errorf("got %q", got)
	}
}

// Every message that is not exactly one question, and its answer.
func TestQueryIsStrict(t *testing.T) {
	plain := questionOf(t, "a.example.", dnsmessage.TypeA, false)
	option := questionOf(t, "a.example.", dnsmessage.TypeA, true)
	change := func(from []byte, at int, to ...byte) []byte {
		b := bytes.Clone(from)
		copy(b[at:], to)
		return b
	}
	end := len(plain)
	pointer := append(change(plain, 4, 0, 1)[:12], 0xc0, 12, 0, 1, 0, 1)
	for _, tt := range []struct {
		name    string
		message []byte
		want    string
	}{
		{"plain", plain, "Success 198.18.1.0"},
		{"with EDNS", option, "Success 198.18.1.0"},
		{"empty", nil, "silence"},
		{"short of a header", plain[:11], "silence"},
		{"an answer", change(plain, 2, 0x81), "silence"},
		{"header alone", change(plain, 4, 0, 0)[:12], "FormatError"},
		{"no question", change(plain, 4, 0, 0), "FormatError"},
		{"two questions", append(change(plain, 4, 0, 2), plain[12:]...), "FormatError"},
		{"many questions", change(plain, 4, 0xff, 0xff), "FormatError"},
		{"a question cut short", plain[:end-1], "FormatError"},
		{"a name cut short", plain[:15], "FormatError"},
		{"a byte more", append(bytes.Clone(plain), 0), "FormatError"},
		{"a byte more after EDNS", append(bytes.Clone(option), 0), "FormatError"},
		{"an answer record", change(plain, 6, 0, 1), "FormatError"},
		{"an authority record", change(plain, 8, 0, 1), "FormatError"},
		{"two additional records", change(option, 10, 0, 2), "FormatError"},
		{"an additional record that is not EDNS's", change(option, end+1, 0, 16), "FormatError"},
		{"EDNS for a name", append(append(bytes.Clone(option[:end]), 1, 'a'), option[end:]...), "FormatError"},
		{"EDNS longer than it is", change(option, len(option)-1, 9), "FormatError"},
		{"a name that points at itself", pointer, "FormatError"},
		{"a name that points back", append(change(plain, 4, 0, 1)[:12], 1, 'a', 0xc0, 4, 0, 1, 0, 1), "FormatError"},
		{"a label of 64 bytes", append(append(change(plain, 4, 0, 1)[:12], 64), make([]byte, 70)...), "FormatError"},
		{"a dot within a label", change(plain, 14, '.'), "FormatError"},
		{"a notification", change(plain, 2, 0x20), "NotImplemented"},
		{"an update", change(plain, 2, 0x28), "NotImplemented"},
		{"class CHAOS", change(plain, end-1, 3), "Refused"},
		{"class ANY", change(plain, end-1, 255), "Refused"},
		{"too long", append(bytes.Clone(plain), make([]byte, 2000)...), "FormatError"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDesk(t, nil)
			if got := line(t, d.Query(context.Background(), tt.message)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			flows := d.reported()
			if len(flows) != 1 {
				t.Fatalf("%d flows, want one", len(flows))
			}
			if bad := !strings.HasPrefix(tt.want, "Success"); bad != (flows[0].Code == CodeProtocol) || bad != (len(d.asked) == 0) {
				t.Errorf("code %q, policy asked %d times", flows[0].Code, len(d.asked))
			}
		})
	}
}

// A later EDNS version is answered with the code for that, part of which is outside the message's
// header.
func TestQueryOfAnotherEDNS(t *testing.T) {
	b := questionOf(t, "a.example.", dnsmessage.TypeA, true)
	b[len(b)-5] = 1
	d := newDesk(t, nil)
	var m dnsmessage.Message
	if err := m.Unpack(d.Query(context.Background(), b)); err != nil {
		t.Fatal(err)
	}
	if code := m.Additionals[0].Header.ExtendedRCode(m.RCode); code != badVersion || len(m.Answers) > 0 {
		t.Errorf("code %d, %d answers", code, len(m.Answers))
	}
}

func TestQueryFlood(t *testing.T) {
	d := newDesk(t, func(o *Options) { o.Rate = 20 })
	now := time.Now()
	d.now = func() time.Time { return now }
	message := questionOf(t, "evil.example.", dnsmessage.TypeA, true)
	answers := map[string]int{}
	for range 500 {
		answers[line(t, d.Query(context.Background(), message))]++
	}
	refused := answers["NameError (15/15 fumehood: refused by rule egress.no-rule)"]
	if refused != 20 || answers["ServerFailure (15/15 fumehood: too many look-ups)"] != 500-refused {
		t.Errorf("answers %v", answers)
	}
	limit := 0
	for _, f := range d.reported() {
		if f.Code == CodeLimit {
			limit++
		}
	}
	if limit != 1 {
		t.Errorf("reported %d times of the limit", limit)
	}
	now = now.Add(time.Second / 2)
	if got := line(t, d.Query(context.Background(), message)); !strings.HasPrefix(got, "NameError") {
		t.Errorf("half a second later: %s", got)
	}
}

// Messages that wait for policy do not pile up.
func TestQueryAtOnce(t *testing.T) {
	open := make(chan struct{})
	d := newDesk(t, func(o *Options) {
		o.Ask = func(context.Context, proposal.Egress) (proposal.EgressDecision, error) {
			<-open
			return proposal.EgressDecision{}, nil
		}
	})
	message := questionOf(t, "a.example.", dnsmessage.TypeA, false)
	var wg sync.WaitGroup
	for range maxAtOnce {
		wg.Go(func() { d.Query(context.Background(), message) })
	}
	for len(d.busy) < maxAtOnce {
		time.Sleep(time.Millisecond)
	}
	if got := line(t, d.Query(context.Background(), message)); got != "ServerFailure" {
		t.Errorf("one more: %q", got)
	}
	close(open)
	wg.Wait()
	if got := line(t, d.Query(context.Background(), message)); got != "NameError" {
		t.Errorf("afterwards: %q", got)
	}
}

// The end of a command cuts its lookups, and they are reported as cut.
func TestQueryCut(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	d := newDesk(t, func(o *Options) {
		o.Find = func(ctx context.Context, _ string, _ bool) error { return ctx.Err() }
	})
	if got := line(t, d.Query(ctx, questionOf(t, "a.example.", dnsmessage.TypeA, false))); got != "ServerFailure" {
		t.Errorf("got %q", got)
	}
	if f := d.reported()[0]; f.Code != CodeCut {
		t.Errorf("code %q, want %q", f.Code, CodeCut)
	}
}

func TestNewServerNeedsWhatItNeeds(t *testing.T) {
	if _, err := NewServer(Options{Pool: NewPool(segment.Default())}); err == nil {
		t.Error("no error")
	}
}

// An independent client, the standard library's, reads our answers by UDP and by TCP, and the whole
// path from its query to a server outside works.
func TestQueryByAClient(t *testing.T) {
	outside := newUpstream(t, func(a asked) {
		switch a.name {
		case "a.example":
			a.replyOwn(alias("a.example", "cdn.example", 60), at("cdn.example", "8.8.8.8", 60))
		case "b.example":
			a.replyOwn(at("b.example", "127.0.0.1", 60))
		default:
			a.replyCode(dnsmessage.RCodeNameError)
		}
	})
	r := resolverOf(t, outside)
	d := newDesk(t, func(o *Options) { o.Find = r.Find })
	inside := newUpstream(t, func(a asked) {
		a.send(d.Query(context.Background(), withID(questionOf(t, a.q.Name.String(), a.q.Type, true), a.id)))
	})
	for _, network := range []string{"udp", "tcp"} {
		client := &net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, inside.addr.String())
		}}
		// In this order: each name that policy allows takes the next address, whether or not it is found.
		for _, row := range [][2]string{
			{"a.example.", "198.18.1.0 fd66:756d:6568::100"}, {"b.example.", "no such host"}, {"evil.example.", "no such host"}, {"nowhere.example.", "no such host"},
		} {
			name, want := row[0], row[1]
			t.Run(network+" "+name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				found, err := client.LookupNetIP(ctx, "ip", name)
				var failed *net.DNSError
				if errors.As(err, &failed) && failed.IsNotFound {
					if failed.Err != want {
						t.Errorf("got %v, want %q", err, want)
					}
					return
				}
				if got := outcome(sortUniqueAddresses(found), err); got != want {
					t.Errorf("got %q, %v; want %q", got, err, want)
				}
			})
		}
	}
	if n := outside.counted("udp A evil.example"); n != 0 {
		t.Errorf("a refused name was asked for outside %d times", n)
	}
}

func withID(message []byte, id uint16) []byte {
	message[0], message[1] = byte(id>>8), byte(id)
	return message
}

func FuzzQuery(f *testing.F) {
	for _, kind := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA, dnsmessage.TypeTXT, 65} {
		for _, edns := range []bool{true, false} {
			f.Add(questionOf(f, "A.example.", kind, edns))
			f.Add(questionOf(f, "evil.example.", kind, edns))
		}
	}
	f.Add([]byte{0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 1, 0, 1})
	f.Fuzz(func(t *testing.T, message []byte) {
		d := newDesk(t, nil)
		answer := d.Query(context.Background(), message)
		if flows := d.reported(); len(flows) != 1 || len(flows[0].Egress.Name) > 4*MaxName {
			t.Fatalf("reported %v", flows)
		}
		if answer == nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(answer); err != nil {
			t.Fatalf("an answer that cannot be read: %v", err)
		}
		if len(answer) > maxAnswer || !m.Response || !bytes.Equal(answer[:2], message[:2]) || len(m.Answers) > 1 {
			t.Fatalf("answer %+v", m)
		}
		if len(m.Answers) == 0 {
			return
		}
		name := textOf(m.Questions[0].Name)
		if err, ok := where[name]; !ok || err != nil || len(d.found) != 1 || d.found[0] != name {
			t.Errorf("%q got an address; looked for %v", name, d.found)
		}
	})
}

func BenchmarkQuery(b *testing.B) {
	d := newDesk(b, func(o *Options) {
		o.Rate = 1 << 30
		o.Ask = func(context.Context, proposal.Egress) (proposal.EgressDecision, error) {
			return proposal.EgressDecision{Effect: proposal.Allow}, nil
		}
		o.Find = func(context.Context, string, bool) error { return nil }
		o.Report = func(proposal.Flow) {}
	})
	message := questionOf(b, "a.example.", dnsmessage.TypeA, true)
	b.ReportAllocs()
	for b.Loop() {
		if d.Query(context.Background(), message) == nil {
			b.Fatal("no answer")
		}
	}
}
