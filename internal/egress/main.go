// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/egress/confine"
	"github.com/fumehood/fumehood/internal/egress/relay"
	"github.com/fumehood/fumehood/internal/egress/wire"
)

// Descriptors of the gateway's process.
const (
	controlFile = 3
	tapFile     = 4
)

// Main runs the gateway's process, from start to end, and returns the exit code. It
// works only in a process that Start started; in any other it prints an error and
// does nothing.
func Main(stderr io.Writer) int {
	if err := serveProcess(); err != nil {
		fmt.Fprintf(stderr, "fumehood gateway: %v\n", err)
		return 3
	}
	return 0
}

// serveProcess gives up every privilege it can before it reads the first untrusted byte.
func serveProcess() error {
	// This goroutine's thread lives as long as the process; see confine.Self.
	runtime.LockOSThread()
	if kind, err := unix.GetsockoptInt(controlFile, unix.SOL_SOCKET, unix.SO_TYPE); err != nil ||
		kind != unix.SOCK_SEQPACKET {
		return errors.New("fumehood run starts this process; it cannot be started by hand")
	}
	setup, roots, err := readSettings()
	if err != nil {
		return err
	}
	ca, err := relay.NewCA()
	if err != nil {
		return err
	}
	if err := confine.Self(); err != nil {
		return err
	}
	control, err := connOf(os.NewFile(controlFile, "control"))
	if err != nil {
		return fmt.Errorf("cannot use the control socket: %v", err)
	}
	w, err := newGatewayServer(setup, roots, ca, newControl(control))
	if err != nil {
		return err
	}
	return w.serve(os.NewFile(tapFile, "tap"), string(ca.CertificatePEM()))
}

// readSettings reads the Setup and, if it names no roots, the host's certificates: later
// there are no files.
func readSettings() (wire.Setup, *x509.CertPool, error) {
	text, err := io.ReadAll(io.LimitReader(os.Stdin, wire.MaxSetup+1))
	if err != nil {
		return wire.Setup{}, nil, err
	}
	setup, err := wire.DecodeSetup(text)
	if err != nil {
		return wire.Setup{}, nil, err
	}
	if err := unix.Dup3(1, 0, 0); err != nil { // ends the pipe; 1 is /dev/null
		return wire.Setup{}, nil, err
	}
	if setup.Roots == "" {
		roots, err := x509.SystemCertPool()
		return setup, roots, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(setup.Roots)) {
		return wire.Setup{}, nil, errors.New("no certificate among the roots")
	}
	return setup, roots, nil
}
