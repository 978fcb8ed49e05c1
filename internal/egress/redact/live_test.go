// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// receiver keeps what it receives; while slow is locked it waits.
type receiver struct {
	slow sync.Mutex
	text map[string]string
	lost map[string]int64
	why  string
	show []string
}

func (r *receiver) take(c proposal.Chunk) {
	r.slow.Lock()
	defer r.slow.Unlock()
	r.text[c.Stream] += string(c.Data)
	r.lost[c.Stream] += c.Dropped
	r.why += c.Withheld
	if c.Display != nil {
		r.show = append(r.show, c.Display.Forms["text/plain"])
	}
}

func newReceiver() *receiver { return &receiver{text: map[string]string{}, lost: map[string]int64{}} }

func out(text string) proposal.Chunk {
	return proposal.Chunk{Stream: proposal.ChunkStdout, Data: []byte(text)}
}

func TestLive(t *testing.T) {
	r, a := newReceiver(), &asked{}
	take, end := redactor(t, a).Live(t.Context(), "c", r.take)
	for _, c := range []proposal.Chunk{out("a " + canary[:5]), {Stream: proposal.ChunkStderr, Data: []byte("err\n")}, out(canary[5:] + "\n"), out(token + " b"),
		{Stream: proposal.ChunkDisplay, Display: &proposal.Display{Forms: map[string]string{"text/plain": "is " + canary}}}} {
		take(c)
	}
	end()
	want := map[string]string{"stdout": "a [redacted CANARY]\n[redacted github-pat] b", "stderr": "err\n", "display": ""}
	if d := cmp.Diff(want, r.text); d != "" || len(r.show) != 1 || r.show[0] != "is [redacted CANARY]" {
		t.Errorf("display %q\n%s", r.show, d)
	}
}

// Policy is asked before the first byte, and before what contains a find is passed on.
func TestLiveWithheld(t *testing.T) {
	for _, test := range []struct {
		name   string
		denies func(points.Outgoing) bool
	}{
		{"always", func(points.Outgoing) bool { return true }},
		{"a masked value", func(x points.Outgoing) bool { return x.Masked > 0 }},
	} {
		r := newReceiver()
		a := &asked{answer: func(x points.Outgoing) (points.OutputDecision, error) {
			if test.denies(x) {
				return points.OutputDecision{Effect: proposal.Deny, Reason: &proposal.Reason{Rule: "r.x", Message: "no"}}, nil
			}
			return points.OutputDecision{Effect: proposal.Allow}, nil
		}}
		take, end := redactor(t, a).Live(t.Context(), "c", func(c proposal.Chunk) { r.take(c) })
		for _, text := range []string{"one\n", "two " + canary + "\n", "three\n"} {
			take(out(text))
		}
		end()
		if got := r.text["stdout"]; got != "" && got != "one\n" || test.name == "always" && got != "" || r.why != "r.x: no" {
			t.Errorf("%s: %q, withheld %q", test.name, r.text["stdout"], r.why)
		}
	}
}

// A slow receiver does not block the command. What does not fit is dropped and counted, and
// neither part of a secret that was cut by that leaves.
func TestLiveSlow(t *testing.T) {
	r := newReceiver()
	take, end := redactor(t, &asked{}).Live(t.Context(), "c", r.take)
	r.slow.Lock()
	total := 0
	line := strings.Repeat("x", 1000) + "\n"
	for i := range 4000 {
		text := line
		if i%2 == 1 {
			text = canary[:7]
		}
		take(out(text))
		total += len(text)
	}
	r.slow.Unlock()
	end()
	text, lost := r.text["stdout"], r.lost["stdout"]
	if len(text) > maxQueued+len(line) || int(lost)+len(text) < total-total/10 || int(lost)+len(text) > total {
		t.Errorf("%d bytes came, %d were dropped, of %d", len(text), lost, total)
	}
}

// A receiver that does not return delays the end of the command only by the grace period, and
// is not called after it.
func TestLiveNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var came []string
		release := make(chan struct{})
		take, end := redactor(t, &asked{}).Live(t.Context(), "c", func(c proposal.Chunk) {
			came = append(came, string(c.Data))
			<-release
		})
		take(out("first\n"))
		synctest.Wait()
		take(out("second\n"))
		began := time.Now()
		end()
		if waited := time.Since(began); waited != lastGrace {
			t.Errorf("the end waited %v", waited)
		}
		close(release)
		synctest.Wait()
		if diff := cmp.Diff([]string{"first\n"}, came); diff != "" {
			t.Error(diff)
		}
	})
}

// After a gap the text goes on, without the second part of a secret.
func TestLiveGap(t *testing.T) {
	r := newReceiver()
	u := redactor(t, &asked{})
	l := &liveQueue{u: u, ctx: t.Context(), id: "c", to: r.take, lost: map[string]int64{}, streams: map[string]*liveStream{}}
	l.searchChunk(out("one\n" + canary[:7]))
	after := out(canary[7:] + "\n" + strings.Repeat("y", margin) + "\nlast\n")
	after.Dropped = 500
	l.searchChunk(after)
	if got := r.text["stdout"]; !strings.HasPrefix(got, "one\n") || !strings.HasSuffix(got, "\nlast\n") || strings.Contains(got, canary[:5]) || strings.Contains(got, canary[8:]) {
		t.Errorf("got %q", got)
	}
	if got, want := fmt.Sprint(r.lost["stdout"]), fmt.Sprint(500+7+margin); got != want {
		t.Errorf("%s bytes dropped, want %s", got, want)
	}
}
