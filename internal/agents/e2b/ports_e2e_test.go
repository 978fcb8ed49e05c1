// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2b

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
)

// The bridge's program outlives a connection that the port resets, whatever comes for it after that.
func TestE2EBridge(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	cmd := exec.Command("python3", "-c", portBridge, port)
	var failed strings.Builder
	cmd.Stderr = &failed
	input, _ := cmd.StdinPipe()
	output, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	send := func(kind byte, number uint16, data string) {
		message := binary.BigEndian.AppendUint16([]byte{kind}, number)
		_, _ = input.Write(append(binary.BigEndian.AppendUint16(message, uint16(len(data))), data...))
	}
	read := func(want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(output, got); err != nil || string(got) != want {
			t.Fatalf("%v: %q, want %q; %s", err, got, want, failed.String())
		}
	}
	for number, last := range []byte("cd") { // it is reset while its window is full
		send('o', uint16(number), "")
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		for range bridgeWindow {
			_, _ = io.WriteString(conn, "x")
			read(fmt.Sprintf("%d:1:x\n", number))
		}
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
		send(last, uint16(number), "x")
		send('a', uint16(number), "")
		read(fmt.Sprintf("%d:0:\n", number))
		send('d', uint16(number), "x") // it is gone
	}
	input.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, failed.String())
	}
}
