// SPDX-License-Identifier: Apache-2.0

package order

import "github.com/fumehood/fumehood/pkg/proposal"

// Pause stops every process of the session, and records that. Commands in the background have as much
// of their time left as before. Files can be moved meanwhile; the next proposal resumes the session.
// The error is as for Do.
func (s *Session) Pause() error {
	if s.paused {
		return nil
	}
	err := s.recordTransfer(transferPause, func(string, *proposal.Transfer) error {
		if s.runner == nil {
			return nil // nothing has run
		}
		return s.runner.Pause()
	})
	s.paused = err == nil
	return err
}

// IsPaused reports whether the session is paused.
func (s *Session) IsPaused() bool { return s.paused }

// Resume lets the processes of a paused session go on when that is recorded. The error is as for Do.
func (s *Session) Resume() error {
	if !s.paused {
		return nil
	}
	err := s.recordTransfer(transferResume, func(string, *proposal.Transfer) error { return nil })
	if err == nil && s.runner != nil {
		err = s.runner.Resume()
		s.stopped = err
	}
	s.paused = err != nil
	return err
}
