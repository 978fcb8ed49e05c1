// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// closeTime is how long the server may take to end the session, and between two parts of the log.
const closeTime = 2 * time.Minute

// handleClose ends the session and answers with its report and, for a client on another machine, its log.
func (s *server) handleClose(w http.ResponseWriter, _ *http.Request, session gate.Session) error {
	report, err := session.Close()
	<-s.ended
	p := partHeader{Report: &report, Error: proposal.FailureOf(err)}
	if report.Audit == nil || s.local {
		defer s.fetch()
		_ = p.sendPart(w, strings.NewReader(""))
		return nil
	}
	f, err := os.Open(report.Audit.File)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	p.Size = info.Size()
	if p.sendPart(w, f) != nil {
		panic(http.ErrAbortHandler) // the client must see that it is cut; it can ask again
	}
	if http.NewResponseController(w).Flush() == nil {
		s.fetch()
	}
	return nil
}

// Close ends the session, as gate.Session.Close does. From another machine it puts the log into a
// new file in ClientOptions.Logs; the Report's Audit.File is its path. The error says why the session
// stopped early, if it did. It is session.log if the log does not verify, is not of this session
// or was cut: the file then has what came. If the server is lost, the Report says only which
// session it was. Later calls return the same.
func (s *Session) Close() (proposal.Report, error) {
	report, stopped, err := s.End()
	return report, errors.Join(err, stopped)
}

// End is Close. err is about the report and the log, and stopped says why the session stopped early.
func (s *Session) End() (_ proposal.Report, stopped, err error) {
	s.closing.Store(true)
	s.once.Do(func() {
		report, stopped, err := s.endSession()
		if report == nil {
			report = &proposal.Report{Schema: proposal.ReportSchema, Run: proposal.Run{ID: s.id},
				Records: []proposal.Record{}, Error: proposal.FailureOf(err)}
		}
		s.report, s.stopped, s.err = *report, stopped, err
		s.Detach()
	})
	return s.report, s.stopped, s.err
}

// endSession ends the session and fetches its report and its log. The report is nil only if there is an error.
func (s *Session) endSession() (report *proposal.Report, stopped, err error) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(s.ctx))
	defer cancel(nil)
	if cause := context.Cause(s.ctx); cause != nil {
		return nil, nil, cause
	}
	defer context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })()
	late := time.AfterFunc(closeTime, func() { cancel(s.client.lost(errSilent)) })
	defer late.Stop()
	answer, err := s.client.sendRequest(ctx, request{method: http.MethodPost, path: "/session/close", token: s.token})
	if err != nil {
		return nil, nil, causeOrError(ctx, err)
	}
	defer answer.Body.Close()
	body := &progressReader{answer.Body, late}
	err = s.client.readPart(body, s.client.bounds.report, s.client.bounds.log,
		func(p partHeader, data io.Reader) error {
			report, stopped, err = s.readSealed(p, data)
			return err
		})
	if report != nil && err != nil {
		err = logError(err)
	}
	return report, stopped, causeOrError(ctx, err)
}

// A progressReader resets a timer with each read.
type progressReader struct {
	in   io.Reader
	late *time.Timer
}

func (p *progressReader) Read(data []byte) (int, error) {
	p.late.Reset(closeTime)
	return p.in.Read(data)
}

// readSealed returns the report, and writes its log if that is on another machine.
func (s *Session) readSealed(p partHeader, data io.Reader) (report *proposal.Report, stopped, err error) {
	if p.Report == nil || p.Report.Run.ID != s.id {
		return nil, nil, errors.New("there is no report of this session")
	}
	report = p.Report
	if p.Error != nil {
		stopped = toStopError(p.Error)
	}
	if s.client.local {
		return report, stopped, nil
	}
	for i, r := range report.Records {
		report.Records[i] = relocateFiles(r, func(proposal.Stream) string { return "" })
	}
	if report.Audit == nil {
		return report, stopped, errors.New("the report names no log")
	}
	report.Audit.File = s.Log()
	if err := createPrivateFile(s.Log(), data); err != nil {
		return report, stopped, err
	}
	return report, stopped, s.verifyLog(*report.Audit)
}

// verifyLog checks the log that was written.
func (s *Session) verifyLog(a proposal.Audit) error {
	f, err := audit.OpenFile(a.File)
	if err != nil {
		return err
	}
	defer f.Close()
	if a.Key == "" || a.Checkpoint == "" {
		return errors.New("the report has no key or no checkpoint")
	}
	sum, err := audit.Verify(f, audit.Trust{Key: a.Key, Checkpoint: a.Checkpoint})
	switch {
	case err != nil:
		return err
	case !sum.Complete():
		return errors.New(sum.String())
	case sum.Origin != "fumehood/"+s.id || a.Origin != sum.Origin || a.Entries != sum.Entries:
		return fmt.Errorf("it is the log of %q with %d entries", sum.Origin, sum.Entries)
	}
	return nil
}

func logError(err error) error {
	return &proposal.StopError{Code: "session.log", Message: "the log of the session is not complete and unaltered",
		Hint: "do not rely on the log; the one on the machine that ran the session may be complete", Err: err}
}
