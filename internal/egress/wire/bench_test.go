// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"testing"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// BenchmarkAsk is a question about a connection and its answer, written and read.
func BenchmarkAsk(b *testing.B) {
	e := proposal.Egress{Kind: points.EgressConnect, Name: "a.example", Address: "192.0.2.1", Port: 443, Protocol: "tcp"}
	d := proposal.EgressDecision{Effect: proposal.Allow, Rules: []string{"hosts"}, Most: 1 << 20}
	for b.Loop() {
		through(b, KindAsk, &Ask{Egress: e}, new(Ask))
		through(b, KindAnswer, &Answer{Decision: d}, new(Answer))
	}
}

func through(b *testing.B, kind Kind, body, into Body) {
	message, err := Encode(kind, 1, body)
	if err != nil {
		b.Fatal(err)
	}
	_, text, err := Open(message)
	if err != nil {
		b.Fatal(err)
	}
	if err := Decode(text, into); err != nil {
		b.Fatal(err)
	}
}
