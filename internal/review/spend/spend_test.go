// SPDX-License-Identifier: Apache-2.0

package spend

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestPrices(t *testing.T) {
	p, err := ReadPrices(Shipped)
	if err != nil || p.Date == "" || !strings.HasPrefix(p.Digest, "sha256:") {
		t.Fatal(err, p)
	}
	price, ok := p.PriceOf("claude-sonnet-4-6")
	if !ok || price != (Price{3_000_000, 15_000_000}) {
		t.Errorf("%+v", price)
	}
	if _, ok := p.PriceOf("claude-sonnet-4"); ok {
		t.Error("a name that the table lacks has a price")
	}
	for _, bad := range []string{"", "{}", `{"schema":"fumehood.prices/v1","models":{}}`, `{"schema":"fumehood.prices/v1","models":{"a":{"input":"-1","output":"1"}}}`,
		`{"schema":"fumehood.prices/v1","models":{"a":{"input":"1","output":"1e9"}}}`, string(Shipped) + "{}"} {
		if _, err := ReadPrices([]byte(bad)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

func TestUSD(t *testing.T) {
	for s, want := range map[string]USD{"2": 2 * dollar, "0.50": dollar / 2, "0.000001": million, "0": 0} {
		if got, err := ParseUSD(s); err != nil || got != want {
			t.Errorf("%s: %d, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "-1", "1e3", "1.0000001", "1234567", ".5", "$2", "1,0", "١"} {
		if _, err := ParseUSD(s); err == nil {
			t.Errorf("%q is an amount", s)
		}
	}
	for _, u := range []USD{0, 1, dollar - 1, 999_999*dollar + 7, unlimited} {
		var back USD
		if text, err := u.MarshalText(); err != nil || back.UnmarshalText(text) != nil || back != u {
			t.Errorf("%d is written as %s and read as %d", u, text, back)
		}
	}
	if got := (dollar + 1).String(); got != "$1.000001" {
		t.Error(got)
	}
}

func newBudget(t *testing.T, dir string, limits Limits, day string) *Budget {
	t.Helper()
	l, err := OpenLedger(dir)
	if err != nil {
		t.Fatal(err)
	}
	b := NewBudget(limits, Price{1, 2}, "pr", l)
	b.now = func() time.Time { at, _ := time.Parse(time.DateOnly, day); return at }
	return b
}

// The limits of a pull request and of a day apply to all reviews together, also to one whose
// process was killed after it had reserved.
func TestLedger(t *testing.T) {
	dir := t.TempDir()
	limits := Limits{Review: Unlimited, Subject: Amount{250, Unlimited.USD}, Day: Amount{350, Unlimited.USD}}
	for _, step := range []struct {
		day, subject string
		tokens       int64
		want         string
	}{
		{"2026-01-01", "pr", 100, ""}, {"2026-01-01", "pr", 100, ""}, {"2026-01-01", "pr", 100, "of this pull request"}, {"2026-01-01", "other", 150, ""},
		{"2026-01-01", "third", 1, "of the day"}, {"2025-12-31", "third", 1, "of the day"}, {"2026-01-02", "third", 1, ""}, {"2026-01-02", "pr", 51, "of this pull request"}, {"2026-06-02", "pr", 250, ""},
	} {
		b := newBudget(t, dir, limits, step.day)
		b.subject = step.subject
		_, err := b.ReserveRequest(step.tokens, 0)
		var stop *proposal.StopError
		if got := errors.As(err, &stop); got != (step.want != "") || got && (stop.Code != Exceeded || !strings.Contains(stop.Message, step.want)) {
			t.Errorf("%+v: %v", step, err)
		}
	}
}

func TestReservation(t *testing.T) {
	dir := t.TempDir()
	limits := Limits{Review: Amount{1000, 1500}, Subject: Amount{1000, 1500}, Day: Amount{1000, 1500}}
	b := newBudget(t, dir, limits, "2026-01-01")
	r, err := b.ReserveRequest(500, 500)
	if err != nil || r.Amount() != (Amount{1000, 1500}) {
		t.Fatal(err, r)
	}
	if _, err := b.ReserveRequest(1, 0); err == nil {
		t.Error("one token more was reserved")
	}
	if used, err := r.SettleUsed(100, 50); err != nil || used != (Amount{150, 200}) || b.SpentAmount() != used {
		t.Errorf("%+v, %v, %+v", used, err, b.SpentAmount())
	}
	if r, err = b.ReserveRequest(850, 0); err != nil || r.GiveBack() != nil || b.SpentAmount().Tokens != 150 {
		t.Errorf("%v, %+v", err, b.SpentAmount())
	}
	if _, err := b.ReserveRequest(851, 0); err == nil {
		t.Error("the ledger and the review disagree, or a limit is not kept")
	}
	for _, n := range []int64{-1, maxTokens + 1} {
		if _, err := b.ReserveRequest(n, 0); err == nil {
			t.Errorf("%d tokens were reserved", n)
		}
	}
}

// Reviews at the same time do not spend more than one after the other.
func TestConcurrent(t *testing.T) {
	dir := t.TempDir()
	limits := Limits{Review: Unlimited, Subject: Unlimited, Day: Amount{100, Unlimited.USD}}
	var wait sync.WaitGroup
	var mu sync.Mutex
	got := 0
	for range 30 {
		b := newBudget(t, dir, limits, "2026-01-01")
		wait.Go(func() {
			if _, err := b.ReserveRequest(9, 0); err == nil {
				mu.Lock()
				got++
				mu.Unlock()
			}
		})
	}
	if wait.Wait(); got != 11 {
		t.Errorf("%d reservations of 9 fit in 100", got)
	}
}

// A ledger that is not one stops the review before it begins.
func TestBrokenLedger(t *testing.T) {
	for _, text := range []string{"", "{", `{"schema":"fumehood.spend/v1","day":"","spent":{"tokens":-5,"usd":"0.000000000000"},"subjects":{}}`, `{"schema":"x","subjects":{}}`, strings.Repeat(" ", maxLedger+1)} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, ledgerName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenLedger(dir); err == nil || !strings.HasPrefix(err.Error(), "model.ledger") {
			t.Errorf("%.30s: %v", text, err)
		}
	}
	dir := t.TempDir()
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, ledgerName)); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLedger(dir); err == nil {
		t.Error("a link was followed")
	}
}
