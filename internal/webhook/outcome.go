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
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// longestRetryAfter is the longest that a server may ask to wait.
const longestRetryAfter = time.Hour

// Result is how an attempt ended.
type Result string

const (
	// Delivered: the server took the message, with a status of 2xx.
	Delivered Result = "Delivered"
	// Retry: the server wasn't reached or doesn't take it now, with a status of 408, 429 or 5xx.
	Retry Result = "Retry"
	// Refused: it will not be taken, or not be sent, unless someone changes something.
	Refused Result = "Refused"
)

// Outcome is what became of an attempt.
type Outcome struct {
	Result Result
	// Status is that of the HTTP answer; 0 if there was none.
	Status int
	// RetryAfter is how long the server asks to wait before the next attempt, at most an hour; 0 if it doesn't.
	RetryAfter time.Duration
	// Message says what went wrong and what to check, in a sentence that begins with the Endpoint as it prints and
	// ends without a full stop. No token, key or other part of the URL is in it, and nothing of the answer but its status.
	// It is empty if the message was delivered.
	Message string
}

// refused is the outcome of a message that was not sent.
func refused(to Endpoint, reason error) Outcome {
	return Outcome{Result: Refused, Message: fmt.Sprintf("%s: %v", to, reason)}
}

// answered is the outcome of a message that got an answer.
func answered(to Endpoint, response *http.Response, now time.Time) Outcome {
	status := response.StatusCode
	outcome := Outcome{Result: resultOf(status), Status: status}
	if outcome.Result == Delivered {
		return outcome
	}
	outcome.Message = strings.TrimSpace(fmt.Sprintf("%s answered %d %s", to, status, http.StatusText(status)))
	if outcome.Result == Retry {
		outcome.RetryAfter = retryAfter(response.Header.Get("Retry-After"), now)
	}
	if outcome.RetryAfter > 0 {
		outcome.Message += fmt.Sprintf(", and asks to wait for %s", outcome.RetryAfter)
	}
	outcome.Message += ": " + advice(status, to.Format)
	return outcome
}

func resultOf(status int) Result {
	switch {
	case status >= 200 && status <= 299:
		return Delivered
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests, status >= 500 && status <= 599:
		return Retry
	default:
		return Refused
	}
}

// advice is what to check after an answer that is no success.
func advice(status int, format Format) string {
	if status >= 300 && status <= 399 {
		return "redirects are not followed; write the URL that it leads to"
	}
	if status >= 500 {
		return "check the server and its log"
	}
	switch status {
	case http.StatusBadRequest, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return fmt.Sprintf("check that it expects the format %s", orCloudEvents(format))
	case http.StatusUnauthorized, http.StatusForbidden:
		return "check the URL, and token and hmacKey in the Secret that secretRef names"
	case http.StatusNotFound, http.StatusGone:
		return "check the path of the URL, and whether the webhook was removed"
	case http.StatusMethodNotAllowed:
		return "it takes no POST; check the path of the URL"
	case http.StatusRequestEntityTooLarge:
		return "the message is too large for it; payload: Keys makes smaller ones"
	case http.StatusTooManyRequests:
		return "it gets more than it allows; subscribe to fewer events or sources"
	default:
		return "check the log of the server"
	}
}

func orCloudEvents(format Format) Format {
	if format == "" {
		return CloudEvents
	}
	return format
}

// retryAfter reads the header: seconds, or a date. It is 0 if that is neither, or is past.
func retryAfter(value string, now time.Time) time.Duration {
	wait := time.Duration(0)
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		wait = time.Duration(min(seconds, uint64(longestRetryAfter/time.Second))) * time.Second
	} else if date, err := http.ParseTime(value); err == nil {
		wait = date.Sub(now)
	}
	return max(0, min(wait, longestRetryAfter))
}

// unreached is the outcome of a message that got no answer. The error itself is not shown: it may have a part of
// what the server said in it.
func (c *Client) unreached(to Endpoint, err error) Outcome {
	if address, ok := errors.AsType[*AddressError](err); ok {
		return refused(to, fmt.Errorf("its host leads to %s, where webhooks must not go: check the URL, "+
			"and what its host resolves to", leadsTo(to, address)))
	}
	if errors.Is(err, errAPIServer) {
		return refused(to, fmt.Errorf("it %w, where webhooks must not go: check the URL, and what its host resolves to", errAPIServer))
	}
	return Outcome{Result: Retry, Message: fmt.Sprintf("%s %s", to, c.whatFailed(to, err))}
}

// leadsTo says where a host leads to. The address of one that may not be shown tells what it is.
func leadsTo(to Endpoint, refused *AddressError) string {
	if to.Name != "" {
		return refused.What
	}
	return fmt.Sprintf("%s, which is %s", refused.Address, refused.What)
}

// whatFailed says what is wrong and what to check, for each kind of error.
func (c *Client) whatFailed(to Endpoint, err error) string {
	if _, ok := errors.AsType[*undecidedError](err); ok {
		return "is not connected to, as it can't be told now whether it is the API server: check the cluster's DNS"
	}
	if lookup, ok := errors.AsType[*net.DNSError](err); ok && lookup.IsNotFound {
		return "is not known to DNS: check the spelling of the host, and that its Service is there"
	} else if ok {
		return "can't be looked up now: check the cluster's DNS"
	}
	if invalid, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return whyUntrusted(to, invalid)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return "doesn't speak TLS: check the port of the URL"
	}
	if alert, ok := errors.AsType[*net.OpError](err); ok && alert.Op == "remote error" { // as crypto/tls has it
		return "failed the TLS handshake: check that the server offers TLS 1.2 or newer, and wants no client certificate"
	}
	switch timeout, _ := errors.AsType[net.Error](err); {
	case errors.Is(err, context.Canceled):
		return "was not waited for, as the operator stops or the subscriber changed"
	case timeout != nil && timeout.Timeout():
		return fmt.Sprintf("didn't answer within %s: check that the server runs, and that NetworkPolicies let the operator "+
			"reach it", c.timeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused the connection: check that the server runs, and the port of the URL"
	default:
		return "can't be reached, or broke the connection off: check the server, and NetworkPolicies between it and the operator"
	}
}

func whyUntrusted(to Endpoint, invalid *tls.CertificateVerificationError) string {
	if _, ok := errors.AsType[x509.HostnameError](invalid.Err); ok {
		return "has a certificate for other hosts: check the host of the URL, and the server's certificate"
	}
	if reason, ok := errors.AsType[x509.CertificateInvalidError](invalid.Err); ok && reason.Reason == x509.Expired {
		return "has a certificate that is expired, or not valid yet: renew it, and check the clocks"
	}
	if len(to.CABundle) > 0 {
		return "has a certificate that key ca.crt of the Secret doesn't verify: put the CA there that the server's is from"
	}
	return "has a certificate of an unknown authority: put its CA into key ca.crt of the Secret that secretRef names"
}
