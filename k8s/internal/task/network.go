// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/egress"
	"github.com/fumehood/fumehood/internal/egress/segment"
	"github.com/fumehood/fumehood/internal/egress/trust"
	"github.com/fumehood/fumehood/k8s/internal/pod"
	"github.com/fumehood/fumehood/pkg/gate"
)

// networkAnnotation requests hosts for a pod, separated by blanks or commas.
const networkAnnotation = "fumehood.dev/network"

// Gateway runs the gateway of a pod if this process was started as one, and returns its exit code
// and true. It is started twice: the first process enters the pod's network namespace, which holds
// for a whole program only if that is started in it.
func Gateway() (code int, is bool) {
	if len(os.Args) != 3 || os.Args[1] != enterName {
		return gate.Helper()
	}
	fmt.Fprintln(os.Stderr, enter(os.Args[2]))
	return 1, true
}

const enterName = "enter-gateway"

// enter starts the gateway in a network namespace. It returns only with an error.
func enter(path string) error {
	runtime.LockOSThread()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot open the network namespace %q: %w", path, err)
	}
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("cannot enter the network namespace %q: %w", path, err)
	}
	return syscall.Exec("/proc/self/exe", []string{os.Args[0], egress.DoorName}, os.Environ())
}

// connect gives the pod the network that it requests, if policy grants it, and writes what its
// containers must see of it.
func (s *service) connect(ctx context.Context, spec specs.Spec) error {
	entries := strings.FieldsFunc(spec.Annotations[networkAnnotation],
		func(r rune) bool { return r == ' ' || r == ',' || r == '\n' })
	if len(entries) == 0 {
		return nil
	}
	resolvers, err := nameServers(spec)
	if err != nil {
		return err
	}
	namespace := namespaceOf(spec)
	if namespace == "" {
		return stop("pod.network", "the pod has no network namespace of its own", "do not use the node's network", nil)
	}
	path, ca, err := s.pod.Connect(ctx,
		pod.Network{Entries: entries, Resolvers: resolvers, Argv: []string{"/proc/self/exe", enterName, namespace}})
	if err != nil {
		return err
	}
	trusted, err := trust.ReadRoots()
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(s.shown(resolvConf),
			fmt.Appendf(nil, "nameserver %s\noptions timeout:5 attempts:2\n", segment.Default().Gateway.V4), 0o644),
		os.WriteFile(s.shown(trust.Inside), append([]byte(strings.TrimSpace(trusted)+"\n"), ca...), 0o644),
		os.Symlink(path, s.netns()))
}

const resolvConf = "/etc/resolv.conf"

// nameServers returns those that Kubernetes has given to the pod.
func nameServers(spec specs.Spec) (list []netip.AddrPort, err error) {
	for _, m := range spec.Mounts {
		if m.Destination != resolvConf {
			continue
		}
		f, err := os.Open(m.Source)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			words := strings.Fields(lines.Text())
			if len(words) > 1 && words[0] == "nameserver" {
				if a, err := netip.ParseAddr(words[1]); err == nil {
					list = append(list, netip.AddrPortFrom(a, 53))
				}
			}
		}
	}
	if len(list) == 0 {
		err = stop("pod.network", "the pod has no name servers", "set the pod's dnsPolicy or dnsConfig", nil)
	}
	return list, err
}

func namespaceOf(spec specs.Spec) string {
	for _, n := range spec.Linux.Namespaces {
		if n.Type == specs.NetworkNamespace {
			return n.Path
		}
	}
	return ""
}

// shown is the file on the host that containers of a pod with a network see at a path.
func (p place) shown(inside string) string { return filepath.Join(p.dir, filepath.Base(inside)) }

// netns is a link to the network namespace of a pod that has a network.
func (p place) netns() string { return filepath.Join(p.dir, "netns") }

// online changes the spec of a container of a pod that has a network.
func (p place) online(spec *specs.Spec) error {
	path, err := os.Readlink(p.netns())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for i := range spec.Linux.Namespaces {
		if spec.Linux.Namespaces[i].Type == specs.NetworkNamespace {
			spec.Linux.Namespaces[i].Path = path
		}
	}
	seen := []string{resolvConf, trust.Inside}
	spec.Mounts = slices.DeleteFunc(spec.Mounts,
		func(m specs.Mount) bool { return slices.Contains(seen, m.Destination) })
	for _, inside := range seen {
		spec.Mounts = append(spec.Mounts,
			specs.Mount{Destination: inside, Type: "bind", Source: p.shown(inside),
				Options: []string{"bind", "ro", "nosuid", "nodev"}})
	}
	variables := trust.Variables()
	spec.Process.Env = slices.DeleteFunc(spec.Process.Env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(variables, name) // of two the first would count
	})
	for _, name := range variables {
		spec.Process.Env = append(spec.Process.Env, name+"="+trust.Inside)
	}
	return nil
}
