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
	return l, l.change(func(*totals) error { return nil }) // a broken ledger stops the review before it begins
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

// add adds a reservation, if the limits allow it.
func (l *Ledger) add(name, day string, a Amount, limits Limits) error {
	return l.change(func(t *totals) error {
		if day > t.Day {
			t.Day, t.Spent = day, Amount{}
		}
		t.forget()
		s := t.Subjects[name]
		s.Day, s.Spent = t.Day, s.Spent.plus(a)
		t.Spent = t.Spent.plus(a)
		if what := s.Spent.exceeds(limits.Subject); what != "" {
			return exceeded("this pull request", what)
		}
		if what := t.Spent.exceeds(limits.Day); what != "" {
			return exceeded("the day", what)
		}
		if _, known := t.Subjects[name]; !known && len(t.Subjects) >= maxSubjects {
			return ledgerError(fmt.Errorf("it has %d subjects", maxSubjects))
		}
		t.Subjects[name] = s
		return nil
	})
}

// settle replaces a reservation of day. A day that is over is not corrected.
func (l *Ledger) settle(name, day string, change Amount) error {
	return l.change(func(t *totals) error {
		if day == t.Day {
			t.Spent = t.Spent.plus(change)
		}
		s := t.Subjects[name]
		s.Spent = s.Spent.plus(change)
		t.Subjects[name] = s
		return nil
	})
}

// forget removes subjects of long ago.
func (t *totals) forget() {
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

// change locks the ledger, applies f and writes the result. Nothing changes if f fails.
func (l *Ledger) change(f func(*totals) error) error {
	lock, err := os.OpenFile(filepath.Join(l.dir, ledgerName+".lock"), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return ledgerError(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return ledgerError(err)
	}
	t, err := l.read()
	if err != nil {
		return ledgerError(err)
	}
	if err := f(&t); err != nil {
		return err
	}
	if err := l.write(t); err != nil {
		return ledgerError(err)
	}
	return nil
}

func (l *Ledger) read() (t totals, err error) {
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
	if err := strictjson.Decode(data, &t); err != nil || len(data) > maxLedger || !t.valid() {
		return t, errors.Join(errors.New("it is not a ledger"), err)
	}
	return t, nil
}

func (t totals) valid() bool {
	ok := t.Schema == ledgerSchema && t.Subjects != nil && t.Spent.valid()
	for _, s := range t.Subjects {
		ok = ok && s.Spent.valid()
	}
	return ok
}

func (a Amount) valid() bool { return a.Tokens >= 0 && a.USD >= 0 && a.Tokens < math.MaxInt64 }

// write replaces the file, so that a reader sees the old totals or the new.
func (l *Ledger) write(t totals) error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if len(data) > maxLedger {
		return errors.New("it is too large")
	}
	name := filepath.Join(l.dir, ledgerName)
	f, err := os.OpenFile(name+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

func ledgerError(err error) error {
	return &proposal.StopError{Code: "model.ledger", Message: "cannot use the ledger of what reviews have spent", Hint: "check the directory; remove " + ledgerName + " to begin at zero", Err: err}
}
