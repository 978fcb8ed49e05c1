// SPDX-License-Identifier: Apache-2.0

package proposal

import "errors"

// A StopError is fumehood's own failure: it could not do its work, so nothing
// (more) runs. Code is stable and in docs/ERRORS.md; Message says what is wrong, Hint how to fix it.
// Denied, failed and killed are never a StopError.
type StopError struct {
	Code    string // for example "sandbox.runsc-version"
	Message string
	Hint    string
	Err     error // the cause, or nil
}

func (e *StopError) Error() string {
	text := e.Code + ": " + e.Message
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *StopError) Unwrap() error { return e.Err }

// FailureOf describes err for a report. An err without a code gets "internal".
func FailureOf(err error) *Failure {
	if err == nil {
		return nil
	}
	var stop *StopError
	if !errors.As(err, &stop) {
		return &Failure{Code: "internal", Message: err.Error()}
	}
	message := stop.Message
	if stop.Err != nil {
		message += ": " + stop.Err.Error()
	}
	return &Failure{Code: stop.Code, Message: message, Hint: stop.Hint}
}
