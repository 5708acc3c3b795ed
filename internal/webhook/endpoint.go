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
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Format is how a message is written; the values are those of spec.subscribers[].webhook.format.
type Format string

const (
	// CloudEvents: a CloudEvent 1.0 in binary mode, its data as JSON in the body.
	CloudEvents Format = "CloudEvents"
	// Slack: a line for an incoming webhook of Slack, or of what speaks like it.
	Slack Format = "Slack"
	// MSTeams: a line in an Adaptive Card, for a webhook of Teams' Workflows.
	MSTeams Format = "MSTeams"
	// GoogleChat: a line for an incoming webhook of a space.
	GoogleChat Format = "GoogleChat"
)

// longestURL is how many characters a URL has at most, as in the schema.
const longestURL = 2048

// Endpoint is where a message goes, and how. It prints as the scheme and host of its URL, or as Name says.
type Endpoint struct {
	// URL is https, or http if its host is a Service of the cluster. It may be a secret as a whole, as those of
	// chats are.
	URL string
	// Name stands for the URL in whatever is told, if nothing of it may be shown, not even its host: such as
	// "the URL in Secret chat". It is empty if the host may be shown.
	Name string
	// Format is CloudEvents if it is empty.
	Format Format
	// Token is sent as a bearer token, without the white space around it; none if it is empty.
	Token []byte
	// HMACKey signs the message, unless it is empty. With the prefix whsec_ the rest is the key as base64, as
	// Standard Webhooks has it; without, all of it is the key, to the last byte.
	HMACKey []byte
	// CABundle is the certificates, in PEM, that the server's is verified by, instead of the system's; these if
	// it is empty.
	CABundle []byte
}

// String is what of the endpoint may be shown, such as https://hooks.example.com:8443; if its URL is not valid, it is
// "the webhook".
func (e Endpoint) String() string {
	if e.Name != "" {
		return e.Name
	}
	u, err := url.Parse(e.URL)
	if err != nil || !isHost(u.Hostname()) {
		return "the webhook"
	}
	return u.Scheme + "://" + u.Host
}

// GoString is the same.
func (e Endpoint) GoString() string {
	return e.String()
}

// checkURL repeats what the schema says of a webhook's URL, and is stricter where it can be.
func checkURL(u *url.URL) error {
	switch host := u.Hostname(); {
	case utf8.RuneCountInString(u.String()) > longestURL:
		return fmt.Errorf("the URL must have at most %d characters", longestURL)
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the URL must begin with https://, or for a Service of the cluster with http://")
	case u.User != nil:
		return errors.New("the URL must have no user info: put a token into the Secret that secretRef names")
	case !isHost(host):
		return errors.New("the URL must have a host: a name in ASCII letters (xn--… for others) or an IP address")
	case u.Scheme == "http" && !isService(host):
		return errors.New("http:// is for hosts that end in .svc or .svc.cluster.local: write https://")
	default:
		return nil
	}
}

// isHost tells whether it is an IP address, or a name in a spelling that nothing on the way to DNS changes.
func isHost(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Zone() == ""
	}
	return len(validation.IsDNS1123Subdomain(canonicalHost(host))) == 0
}

func isService(host string) bool {
	host = canonicalHost(host)
	return strings.HasSuffix(host, ".svc") || strings.HasSuffix(host, ".svc.cluster.local")
}

// canonicalHost is the spelling in which hosts are compared.
func canonicalHost(host string) string {
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Unmap().String()
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// allowedHosts are the hosts that webhooks may go to: all if there are none in it (F7).
type allowedHosts struct {
	names    []string
	suffixes []string // with the dot before them
}

func parseAllowedHosts(patterns []string) (allowedHosts, error) {
	var allowed allowedHosts
	for _, pattern := range patterns {
		suffix, wild := strings.CutPrefix(pattern, "*.")
		if !isHost(suffix) {
			return allowedHosts{}, fmt.Errorf(
				"%q is no host: write a name such as hooks.example.com, or *.example.com, without a scheme or port", pattern)
		}
		if wild {
			allowed.suffixes = append(allowed.suffixes, "."+canonicalHost(suffix))
		} else {
			allowed.names = append(allowed.names, canonicalHost(suffix))
		}
	}
	return allowed, nil
}

func (a allowedHosts) check(host string) error {
	if len(a.names) == 0 && len(a.suffixes) == 0 {
		return nil
	}
	host = canonicalHost(host)
	if slices.Contains(a.names, host) {
		return nil
	}
	if slices.ContainsFunc(a.suffixes, func(suffix string) bool { return strings.HasSuffix(host, suffix) }) {
		return nil
	}
	return errors.New("its host is not among those that the operator's flag --webhook-allowed-hosts allows")
}
