// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"encoding/binary"
	"fmt"
	"strings"
	"syscall"
)

// Resolver is the address of the name server of a sandbox without a network. It knows only this
// machine: no other name exists. Without it, C libraries and runtimes report that no server
// answers, which programs take for a failure that passes, and try again.
const Resolver = "127.0.0.53"

// answerLookups answers the lookups of this sandbox until it ends. Nothing is forwarded: there is
// nowhere to forward to.
func answerLookups() error {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot answer lookups: %v", err)
	}
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Port: 53, Addr: [4]byte{127, 0, 0, 53}}); err != nil {
		return fmt.Errorf("cannot answer lookups: %v", err)
	}
	go func() {
		message := make([]byte, 512)
		for {
			n, from, err := syscall.Recvfrom(socket, message, 0)
			if err != nil && err != syscall.EINTR {
				return
			}
			if answer := answerLookup(message[:max(n, 0)]); answer != nil && from != nil {
				_ = syscall.Sendto(socket, answer, 0, from)
			}
		}
	}()
	return nil
}

// The parts of a DNS message that matter here, RFC 1035 §4.1.
const (
	headerSize = 12
	typeA      = 1
	typeAAAA   = 28
	noSuchName = 3
)

// answerLookup returns the answer to a DNS message: localhost and the names below it are this
// machine, and no other name exists. nil means no answer, because the message is not one question.
func answerLookup(message []byte) []byte {
	if len(message) < headerSize || message[2]&0xf8 != 0 || binary.BigEndian.Uint16(message[4:]) != 1 {
		return nil
	}
	name, end := readName(message)
	if end == 0 || len(message) < end+4 {
		return nil
	}
	answer := append([]byte{}, message[:end+4]...)
	answer[2], answer[3] = 0x80|message[2]&1, 0x80 // a response; recursion is available
	copy(answer[6:headerSize], make([]byte, 6))
	if name != "localhost" && !strings.HasSuffix(name, ".localhost") {
		answer[3] |= noSuchName
		return answer
	}
	var address []byte
	switch kind := binary.BigEndian.Uint16(message[end:]); kind {
	case typeA:
		address = []byte{127, 0, 0, 1}
	case typeAAAA:
		address = []byte{15: 1}
	default:
		return answer // the name has no data of this type
	}
	answer[7] = 1
	answer = append(answer, 0xc0, headerSize)                  // the name of the question
	answer = append(answer, message[end:end+4]...)             // its type and class
	answer = append(answer, 0, 0, 0, 5, 0, byte(len(address))) // seconds to keep it, and the size
	return append(answer, address...)
}

// readName returns the name in a question, in lower case, and where it ends; 0 if it is invalid.
func readName(message []byte) (name string, end int) {
	var labels []string
	for at := headerSize; at < len(message); {
		size := int(message[at])
		if at++; size == 0 {
			return strings.ToLower(strings.Join(labels, ".")), at
		}
		if size > 63 || at+size > len(message) {
			return "", 0
		}
		labels = append(labels, string(message[at:at+size]))
		at += size
	}
	return "", 0
}
