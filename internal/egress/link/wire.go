// SPDX-License-Identifier: Apache-2.0

package link

import (
	"sync"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/rawfile"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/link/stopfd"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// A linkEndpoint is the stack's device. Frames are sent by gVisor's own endpoint. They are
// received by our reader, because gVisor's stops permanently at the first frame for
// another host, and parses a packet before anything could refuse it.
type linkEndpoint struct {
	stack.LinkEndpoint // for sending

	fd   int
	stop stopfd.StopFD
	// admit classifies a frame and reports whether the stack should see it.
	admit func(frame []byte) bool

	mu     sync.Mutex
	to     stack.NetworkDispatcher
	reader sync.WaitGroup
}

// spacious is the size of the buffer that one frame is read into. It is more than the
// link's MTU and the largest size that the buffer pool keeps.
const spacious = buffer.MaxChunkSize

// small is the size up to which a frame is copied. The stack may keep a frame of a few
// bytes for long, and must not keep the whole buffer with it.
const small = spacious / 4

func newLinkEndpoint(fd int, mtu int, address tcpip.LinkAddress, admit func([]byte) bool) (*linkEndpoint, error) {
	out, err := fdbased.New(&fdbased.Options{
		FDs: []int{fd}, MTU: uint32(mtu), EthernetHeader: true, Address: address, ProcessorsPerChannel: 1,
	})
	if err != nil {
		return nil, err
	}
	stop, err := stopfd.New()
	if err != nil {
		return nil, err
	}
	return &linkEndpoint{LinkEndpoint: out, fd: fd, stop: stop, admit: admit}, nil
}

// Attach starts the reader. With nil it does nothing: the stack then holds a lock that
// the reader may be waiting for, so the reader must have been ended before.
func (w *linkEndpoint) Attach(to stack.NetworkDispatcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if to != nil && w.to == nil {
		w.reader.Go(func() { w.readFrames(to) })
	}
	w.to = to
}

// stopReader ends the reader and waits for it. It must be called only once.
func (w *linkEndpoint) stopReader() {
	w.stop.Stop()
	w.reader.Wait()
	unix.Close(w.stop.EFD)
}

// IsAttached implements stack.LinkEndpoint.
func (w *linkEndpoint) IsAttached() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to != nil
}

// Wait implements stack.LinkEndpoint.
func (w *linkEndpoint) Wait() { w.reader.Wait() }

// readFrames reads frames until the link ends.
func (w *linkEndpoint) readFrames(to stack.NetworkDispatcher) {
	space := newSpace()
	defer func() { space.Release() }()
	for {
		iovec := rawfile.AppendIovecFromBytes(nil, space.AsSlice(), 1)
		n, errno := rawfile.BlockingReadvUntilStopped(w.stop.EFD, w.fd, iovec)
		if n <= 0 || errno != 0 {
			return
		}
		if !w.admit(space.AsSlice()[:n]) {
			continue
		}
		if n <= small {
			deliverFrame(to, buffer.NewViewWithData(space.AsSlice()[:n]))
			continue
		}
		space.CapLength(n)
		deliverFrame(to, space)
		space = newSpace()
	}
}

func newSpace() *buffer.View {
	v := buffer.NewView(spacious)
	v.Grow(spacious)
	return v
}

// deliverFrame gives a frame to the stack, which then owns it.
func deliverFrame(to stack.NetworkDispatcher, frame *buffer.View) {
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithView(frame)})
	defer pkt.DecRef()
	b, ok := pkt.LinkHeader().Consume(header.EthernetMinimumSize)
	if !ok {
		return
	}
	pkt.NetworkProtocolNumber = header.Ethernet(b).Type()
	to.DeliverNetworkPacket(pkt.NetworkProtocolNumber, pkt)
}
