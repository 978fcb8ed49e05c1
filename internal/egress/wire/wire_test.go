// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fumehood/fumehood/internal/egress/segment"
	"github.com/fumehood/fumehood/internal/kit/frame"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func fullEgress() proposal.Egress {
	return proposal.Egress{Kind: points.EgressRequest, Name: "a.example", Type: "A", Address: "203.0.113.7", Port: 443, Protocol: "https", SNI: "a.example",
		Method: "GET", Path: "/<x>&\u2028", Query: 3, Size: -1, Secrets: []proposal.EgressSecret{{Rule: "r", Where: "url"}}}
}

func fullDecision() proposal.EgressDecision {
	return proposal.EgressDecision{Effect: proposal.Ask, Rules: []string{"x.y"}, Reason: &proposal.Reason{Rule: "x.y", Message: "m", Command: -1}, Intercept: true, Most: 9}
}

// bodies are one full message of each kind.
func bodies() map[Kind]Body {
	return map[Kind]Body{
		KindHello: &Hello{CA: "-----BEGIN"}, KindAsk: &Ask{fullEgress()}, KindFlow: &Flow{Time: 7, Flow: proposal.Flow{Egress: fullEgress(), Decision: fullDecision(), Code: "cut", Sent: 1}},
		KindDone: &Done{Dropped: 4}, KindPong: nil, KindFault: &Fault{"why"}, KindBegin: &Begin{},
		KindEnd: &End{}, KindAnswer: &Answer{fullDecision()}, KindPing: nil,
	}
}

func empty(kind Kind) Body {
	return map[Kind]Body{KindHello: &Hello{}, KindAsk: &Ask{}, KindFlow: &Flow{}, KindDone: &Done{}, KindFault: &Fault{}, KindBegin: &Begin{}, KindEnd: &End{}, KindAnswer: &Answer{}}[kind]
}

func TestRoundTrip(t *testing.T) {
	all := bodies()
	for kind := KindHello; kind < kinds; kind++ {
		message, err := Encode(kind, 5, all[kind])
		if err != nil {
			t.Fatal(kind, err)
		}
		h, body, err := Open(message)
		if err != nil || h != (frame.Header[Kind]{Kind: kind, Seq: 5}) {
			t.Fatalf("header %+v, %v", h, err)
		}
		if all[kind] == nil {
			if len(body) != 0 {
				t.Errorf("kind %d has a body", kind)
			}
			continue
		}
		got := empty(kind)
		if err := Decode(body, got); err != nil {
			t.Fatal(kind, err)
		}
		if d := cmp.Diff(all[kind], got, cmpopts.EquateComparable(netip.Addr{})); d != "" {
			t.Error(d)
		}
		for n := range body {
			if Decode(body[:n], empty(kind)) == nil {
				t.Fatalf("kind %d: the first %d of %d bytes decode", kind, n, len(body))
			}
		}
		for _, more := range []string{" ", "\n", "{}", "x"} {
			if Decode(append(bytes.Clone(body), more...), empty(kind)) == nil {
				t.Errorf("kind %d: %q after it decodes", kind, more)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		name string
		body string
		into Body
	}{
		{"unknown field", `{"text":"","x":1}`, &Fault{}},
		{"field twice", `{"text":"a","text":"b"}`, &Fault{}},
		{"other case", `{"Text":"a"}`, &Fault{}},
		{"escape", `{"text":"\u0061"}`, &Fault{}},
		{"no field", `{}`, &Fault{}},
		{"null", `null`, &Fault{}},
		{"long", `{"text":"` + strings.Repeat("a", maxText+1) + `"}`, &Fault{}},
		{"bytes", "{\"text\":\"\xff\"}", &Fault{}},
		{"negative", `{"dropped":-1}`, &Done{}},
		{"effect", `{"decision":{"effect":"Allow","rules":null}}`, &Answer{}},
		{"number for effect", `{"decision":{"effect":2,"rules":null}}`, &Answer{}},
	}
	for _, test := range tests {
		if err := Decode([]byte(test.body), test.into); err == nil {
			t.Errorf("%s: decodes", test.name)
		}
	}
	for name, message := range map[string][]byte{
		"empty": nil, "short": make([]byte, frame.HeaderSize-1), "version": append([]byte{Version + 1, 1}, make([]byte, 20)...),
		"kind 0": append([]byte{Version, 0}, make([]byte, 20)...), "kind": append([]byte{Version, byte(kinds)}, make([]byte, 20)...),
		"long": append([]byte{Version, 1}, make([]byte, MaxMessage)...),
	} {
		if _, _, err := Open(message); err == nil {
			t.Errorf("%s: opens", name)
		}
	}
}

// An Ask cannot say for which command, phase or grant it is.
func TestOnlySupervisorKnows(t *testing.T) {
	e := fullEgress()
	e.Command, e.Phase, e.Grants, e.Registries = "c", proposal.PhaseSetup, []string{"x"}, []string{"npm"}
	message, err := Encode(KindAsk, 1, &Ask{e})
	if err != nil {
		t.Fatal(err)
	}
	var got Ask
	if err := Decode(message[frame.HeaderSize:], &got); err != nil || got.Egress.Command != "" || got.Egress.Grants != nil {
		t.Errorf("%+v, %v", got, err)
	}
	for _, forged := range []string{`"command":"c"`, `"phase":"setup"`, `"grants":["x"]`, `"registries":["npm"]`} {
		key, _, _ := strings.Cut(forged, ":")
		text := string(message[frame.HeaderSize:])
		for _, was := range []string{`:""`, `:null`} {
			text = strings.Replace(text, key+was, forged, 1)
		}
		if !strings.Contains(text, forged) {
			t.Fatalf("%s is not in %s", forged, text)
		}
		if err := Decode([]byte(text), &Ask{}); err == nil {
			t.Errorf("%s decodes", forged)
		}
	}
}

// A Flow cannot say that nothing was enforced.
func TestVerdictIsTheSupervisors(t *testing.T) {
	f := &Flow{Flow: proposal.Flow{Egress: fullEgress(), Verdict: proposal.VerdictObserved}}
	f.Flow.Decision.Rules = []string{}
	message, err := Encode(KindFlow, 1, f)
	if err != nil {
		t.Fatal(err)
	}
	text := message[frame.HeaderSize:]
	if err := Decode(text, &Flow{}); err != nil || bytes.Contains(text, []byte("verdict")) {
		t.Fatalf("%v: %s", err, text)
	}
	forged := bytes.Replace(text, []byte(`"sent"`), []byte(`"verdict":"observed","sent"`), 1)
	if err := Decode(forged, &Flow{}); err == nil {
		t.Errorf("decodes: %s", forged)
	}
}

// The largest Flow, whatever is in it, fits one message once it is trimmed.
func TestLargest(t *testing.T) {
	for _, worst := range []string{"\x01", "\xff", "<", "\u2028", "é"} {
		text := strings.Repeat(worst, 2*maxPath)
		e := proposal.Egress{Kind: text, Name: text, Type: text, Address: text, Protocol: text, SNI: text, Method: text, Path: text}
		d := proposal.EgressDecision{Reason: &proposal.Reason{Rule: text, Message: text, Suggestion: text, Text: text}}
		for range 100 {
			e.Secrets = append(e.Secrets, proposal.EgressSecret{Rule: text, Where: text})
			d.Rules = append(d.Rules, text)
		}
		message, err := Encode(KindFlow, 1, &Flow{Flow: proposal.Flow{Egress: e, Decision: d, Code: text}})
		if err != nil {
			t.Fatalf("%q: %v", worst, err)
		}
		if err := Decode(message[frame.HeaderSize:], &Flow{}); err != nil {
			t.Errorf("%q: %v", worst, err)
		}
		if _, err := Encode(KindAsk, 1, &Ask{proposal.Egress{Path: text}}); err == nil {
			t.Errorf("%q: asked about after it was cut", worst)
		}
	}
}

func TestSetup(t *testing.T) {
	want := Setup{Segment: segment.Default().WithoutIPv6(),
		Resolvers: []netip.AddrPort{netip.MustParseAddrPort("[::1]:53")}, Hosts: map[string][]netip.Addr{"a.example": {netip.MustParseAddr("192.0.2.1")}},
		Credentials: []Credential{{Name: "n", Value: "v"}}}
	text, err := EncodeSetup(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeSetup(text)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{})); d != "" {
		t.Error(d)
	}
	if _, err := EncodeSetup(Setup{Roots: strings.Repeat("x", MaxSetup)}); err == nil {
		t.Error("a setup that is too large encodes")
	}
	for n := range text {
		if _, err := DecodeSetup(text[:n]); err == nil {
			t.Fatalf("the first %d bytes decode", n)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for kind, body := range bodies() {
		message, err := Encode(kind, 1, body)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		h, body, err := Open(message)
		if err != nil || empty(h.Kind) == nil {
			return
		}
		into := empty(h.Kind)
		if Decode(body, into) != nil {
			return
		}
		again, err := Encode(h.Kind, h.Seq, into)
		if err != nil || !bytes.Equal(again, message) {
			t.Fatalf("decodes and encodes to other bytes, %v:\n%s\n%s", err, again, message)
		}
	})
}
