/*
Copyright 2026 The ConfigWatch Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

	http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
)

// Guard decides whether a connection to an address may be made. It is asked when a name has been resolved and a
// connection is about to be made to that address and no other, so that a name that resolves to something else the
// next time doesn't get past it (F7).
//
// An error that is an *AddressError refuses the address. Any other error means that it can't be told now, and the
// message is tried again. It must be safe for concurrent use.
type Guard func(ctx context.Context, address netip.Addr) error

// AddressError tells that webhooks may not go to an address.
type AddressError struct {
	Address netip.Addr
	// What says what it is, such as "a link-local address".
	What string
}

// Error is such as "169.254.169.254 is a link-local address".
func (e *AddressError) Error() string {
	return fmt.Sprintf("%s is %s", e.Address, e.What)
}

// NewGuard makes the guard of an operator. It refuses addresses that are loopback, link-local, unspecified, multicast,
// reserved, or known for cloud metadata, all of these also inside of IPv6 addresses that stand for an IPv4 address,
// and those of the API server. Private addresses pass, as Services of the cluster have these.
//
// The API server is given by one or more hosts: a URL or a host as a rest.Config has it, and the bare address in
// KUBERNETES_SERVICE_HOST. Names among them are resolved each time, by the resolver, nil being net.DefaultResolver;
// as long as one can't be, no address passes. A host that is none is an error, as is the lack of any.
func NewGuard(resolver *net.Resolver, apiServer ...string) (Guard, error) {
	if len(apiServer) == 0 {
		return nil, errors.New("the host of the API server is needed, to keep webhooks away from it")
	}
	server := apiServerHosts{resolver: resolver}
	for _, host := range apiServer {
		if err := server.add(host); err != nil {
			return nil, fmt.Errorf("reading the host of the API server: %w", err)
		}
	}
	return func(ctx context.Context, address netip.Addr) error {
		if what := whyForbidden(address); what != "" {
			return &AddressError{Address: address, What: what}
		}
		return server.check(ctx, address)
	}, nil
}

// apiServerHosts are where the API server is.
type apiServerHosts struct {
	resolver  *net.Resolver
	addresses []netip.Addr // with what they stand for
	names     []string
}

func (s *apiServerHosts) add(host string) error {
	if address, err := netip.ParseAddr(host); err == nil {
		s.addresses = append(s.addresses, forms(address)...)
		return nil
	}
	name, err := hostOf(host)
	if err != nil {
		return err
	}
	if address, err := netip.ParseAddr(name); err == nil {
		s.addresses = append(s.addresses, forms(address)...)
		return nil
	}
	s.names = append(s.names, name)
	return nil
}

// hostOf is the host of a URL, or of one whose scheme is left out.
func hostOf(server string) (string, error) {
	if !strings.Contains(server, "://") {
		server = "https://" + server
	}
	u, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	if u.Hostname() == "" {
		return "", fmt.Errorf("%q has no host", server)
	}
	return u.Hostname(), nil
}

// check refuses an address of the API server.
func (s *apiServerHosts) check(ctx context.Context, address netip.Addr) error {
	addresses := s.addresses
	for _, name := range s.names {
		resolved, err := s.resolver.LookupNetIP(ctx, "ip", name)
		if err != nil {
			return fmt.Errorf("resolving the API server's host %s: %w", name, err)
		}
		for _, a := range resolved {
			addresses = append(slices.Clip(addresses), forms(a)...)
		}
	}
	for _, form := range forms(address) {
		if slices.Contains(addresses, form) {
			return &AddressError{Address: address, What: "an address of the API server"}
		}
	}
	return nil
}

// withoutOwn refuses also what this process listens on by an address of its host, which is that of its pod: there it
// would be let in where a NetworkPolicy keeps others out (F7).
func withoutOwn(ports []uint16, others Guard) destinationGuard {
	return func(ctx context.Context, destination netip.AddrPort) error {
		if slices.Contains(ports, destination.Port()) {
			own, err := isOwn(destination.Addr())
			if err != nil {
				return err
			}
			if own {
				return &AddressError{Address: destination.Addr(), What: "an address of the operator itself"}
			}
		}
		return others(ctx, destination.Addr())
	}
}

// isOwn tells whether an address is one of this host.
func isOwn(address netip.Addr) (bool, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return false, fmt.Errorf("listing the addresses of this host: %w", err)
	}
	for _, own := range addresses {
		prefix, err := netip.ParsePrefix(own.String())
		if err == nil && slices.Contains(forms(address), prefix.Addr().Unmap()) {
			return true, nil
		}
	}
	return false, nil
}

// destinationGuard is a Guard that knows the port too.
type destinationGuard func(ctx context.Context, destination netip.AddrPort) error

// undecidedError tells that a guard couldn't decide, so that its errors are not taken for those of the connection.
type undecidedError struct{ err error }

func (e *undecidedError) Error() string {
	return fmt.Sprintf("checking the address: %v", e.err)
}

// control is called with each address that is dialed, after names are resolved: see net.Dialer.ControlContext.
func (g destinationGuard) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	destination, err := netip.ParseAddrPort(address)
	if err != nil {
		return &undecidedError{err}
	}
	err = g(ctx, destination)
	if refused, ok := errors.AsType[*AddressError](err); ok {
		return refused
	}
	if err != nil {
		return &undecidedError{err}
	}
	return nil
}
