// SPDX-License-Identifier: Apache-2.0

package spend

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fumehood/fumehood/internal/kit/replace"
	"github.com/fumehood/fumehood/internal/kit/strictjson"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	ledgerName  = "spend.json"
	maxLedger   = 4 << 20 // bytes
	maxSubjects = 10_000
	keptDays    = 90 // after which a subject that nothing is spent for is forgotten
)

// A Ledger is the file with the totals of subjects and of the day. It is safe for use by
// several processes.
type Ledger struct{ dir string }

// OpenLedger returns the ledger in dir, which is created with mode 0700.
func OpenLedger(dir string) (*Ledger, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, ledgerError(err)
	}
	l := &Ledger{dir}
	return l, l.changeLocked(func(*totals) error { return nil }) // a broken ledger stops the review before it begins
}

// totals are the content of the file.
type totals struct {
	Schema   string             `json:"schema"`
	Day      string             `json:"day"` // the latest, UTC
	Spent    Amount             `json:"spent"`
	Subjects map[string]subject `json:"subjects"`
}

type subject struct {
	Day   string `json:"day"` // of the last request
	Spent Amount `json:"spent"`
}

const ledgerSchema = "fumehood.spend/v1"

// addReservation adds a reservation, if the limits allow it.
func (l *Ledger) addReservation(name, day string, a Amount, limits Limits) error {
	return l.changeLocked(func(t *totals) error {
		if day > t.Day {
			t.Day, t.Spent = day, Amount{}
		}
		t.forgetOld()
		s := t.Subjects[name]
		s.Day, s.Spent = t.Day, s.Spent.addAmount(a)
		t.Spent = t.Spent.addAmount(a)
		if what := s.Spent.exceededPart(limits.Subject); what != "" {
			return exceededError("this pull request", what)
		}
		if what := t.Spent.exceededPart(limits.Day); what != "" {
			return exceededError("the day", what)
		}
		if _, known := t.Subjects[name]; !known && len(t.Subjects) >= maxSubjects {
			return ledgerError(fmt.Errorf("it has %d subjects", maxSubjects))
		}
		t.Subjects[name] = s
		return nil
	})
}

// settleReservation replaces a reservation of day. A day that is over is not corrected.
func (l *Ledger) settleReservation(name, day string, change Amount) error {
	return l.changeLocked(func(t *totals) error {
		if day == t.Day {
			t.Spent = t.Spent.addAmount(change)
		}
		s := t.Subjects[name]
		s.Spent = s.Spent.addAmount(change)
		t.Subjects[name] = s
		return nil
	})
}

// forgetOld removes subjects of long ago.
func (t *totals) forgetOld() {
	today, err := time.Parse(time.DateOnly, t.Day)
	if err != nil {
		return
	}
	limit := today.AddDate(0, 0, -keptDays).Format(time.DateOnly)
	for name, s := range t.Subjects {
		if s.Day < limit {
			delete(t.Subjects, name)
		}
	}
}

// changeLocked locks the ledger, applies f and writes the result. Nothing changes if f fails.
func (l *Ledger) changeLocked(f func(*totals) error) error {
	lock, err := os.OpenFile(filepath.Join(l.dir, ledgerName+".lock"), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return ledgerError(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return ledgerError(err)
	}
	t, err := l.readTotals()
	if err != nil {
		return ledgerError(err)
	}
	if err := f(&t); err != nil {
		return err
	}
	if err := l.writeTotals(t); err != nil {
		return ledgerError(err)
	}
	return nil
}

func (l *Ledger) readTotals() (t totals, err error) {
	f, err := os.OpenFile(filepath.Join(l.dir, ledgerName), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return totals{Schema: ledgerSchema, Subjects: map[string]subject{}}, nil
	}
	if err != nil {
		return t, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxLedger+1))
	if err != nil {
		return t, err
	}
	if err := strictjson.Decode(data, &t); err != nil || len(data) > maxLedger || !t.isValid() {
		return t, errors.Join(errors.New("it is not a ledger"), err)
	}
	return t, nil
}

func (t totals) isValid() bool {
	ok := t.Schema == ledgerSchema && t.Subjects != nil && t.Spent.isValid()
	for _, s := range t.Subjects {
		ok = ok && s.Spent.isValid()
	}
	return ok
}

func (a Amount) isValid() bool { return a.Tokens >= 0 && a.USD >= 0 && a.Tokens < math.MaxInt64 }

// writeTotals replaces the file, so that a reader sees the old totals or the new.
func (l *Ledger) writeTotals(t totals) error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if len(data) > maxLedger {
		return errors.New("it is too large")
	}
	return replace.File(filepath.Join(l.dir, ledgerName), data, 0o600)
}

func ledgerError(err error) error {
	return &proposal.StopError{Code: "model.ledger", Message: "cannot use the ledger of what reviews have spent",
		Hint: "check the directory; remove " + ledgerName + " to begin at zero", Err: err}
}
