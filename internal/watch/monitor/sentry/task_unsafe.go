// SPDX-License-Identifier: Apache-2.0

package sentry

import (
	"errors"
	"reflect"
	"unsafe"

	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/vfs"
)

// gVisor passes to a sink only the *name* of the file that an execve opened, and
// some of its attributes. Opening the name again could open a different file. The
// opened file itself is a field in the state of the task's goroutine, which is the
// goroutine that runs this code, and is read from there. The gate refuses to start
// if the fields differ from the gVisor version pinned in go.mod, and a test execs
// in every way.

const (
	stateField      = "runState"
	executableField = "executable"
	stateType       = "runExecveAfterExecveCredsLock"
)

var (
	errLayout      = errors.New("sink fumehood-gate: gVisor's task is not the one that this was written for")
	executableType = reflect.TypeFor[*vfs.FileDescription]()
)

// checkLayout checks everything about the layout that can be checked without a
// task.
func checkLayout() error {
	f, ok := reflect.TypeFor[kernel.Task]().FieldByName(stateField)
	if !ok || f.Type.Kind() != reflect.Interface {
		return errLayout
	}
	return nil
}

// openedExecutable returns the file that the execve in progress opened first. It does not
// take a reference: the file lives at least as long as the call of the sink.
//
// Precondition: the caller is the task's goroutine, in Sink.Execve.
func openedExecutable(t *kernel.Task) (*vfs.FileDescription, error) {
	state := reflect.ValueOf(t).Elem().FieldByName(stateField)
	if !state.IsValid() || state.Kind() != reflect.Interface || state.IsNil() {
		return nil, errLayout
	}
	state = state.Elem()
	if state.Kind() != reflect.Pointer || state.IsNil() || state.Elem().Type().Name() != stateType {
		return nil, errLayout
	}
	field, ok := state.Elem().Type().FieldByName(executableField)
	if !ok || field.Type != executableType {
		return nil, errLayout
	}
	f := *(**vfs.FileDescription)(unsafe.Add(state.UnsafePointer(), field.Offset))
	if f == nil {
		return nil, errLayout
	}
	return f, nil
}
