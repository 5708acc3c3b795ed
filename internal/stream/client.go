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

package stream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/ktechhub/configwatch/internal/feed"
	"github.com/ktechhub/configwatch/internal/source"
)

const (
	// reconnect is after how long a client should connect again if the connection breaks.
	reconnect = 3 * time.Second
	// leastRate is how fast a client has to take in what is large, in bytes a second.
	leastRate = 64 << 10
)

var (
	errGone      = errors.New("the client has gone")
	errStuck     = errors.New("the client doesn't take in what it is sent")
	errBrokenOff = errors.New("it was broken off")
)

// client is one stream. It belongs to one goroutine, but for one more that waits for the client to go.
type client struct {
	*Server
	conn  net.Conn
	gone  chan struct{} // closed when the other end has
	user  string
	token string
	query *query

	subscription *feed.Subscription
	events       <-chan feed.Change
	// live is the change that was received last. It is kept here, as it would double the stack.
	live feed.Change
	// place is up to where the client was told.
	place
	// ahead is what of that another replica had told it, where this one has not come to yet, which it is to by
	// catchUpBy.
	ahead     feed.Position
	catchUpBy time.Time
	// resumed tells that it goes on after an earlier stream, and missed what came in between.
	resumed bool
	missed  []*feed.Change
	// gap tells that it should, and begins anew, as that can't be done.
	gap bool

	// change waits for its data, which is being read; again, if what was read was older.
	change  *feed.Change
	reading *reading
	again   bool

	// verdict will tell whether the stream may go on, while that is reviewed.
	verdict     chan error
	reviewAt    time.Time
	confirmedAt time.Time
}

// subscribe begins anew. With present objects asked for, these come first.
func (c *client) subscribe() (err error) {
	if c.subscription != nil {
		c.subscription.Close()
	}
	c.told, c.ahead, c.missed = nil, nil, nil // what is present now is told, whatever was
	c.subscription, c.position, err = c.History.Subscribe(c.query.filter, buffer)
	if err != nil {
		return fmt.Errorf("beginning a stream: %w", err)
	}
	c.events = c.subscription.Events()
	return nil
}

// leave gives back what the client has.
func (c *client) leave() {
	if c.conn != nil {
		cut(c.conn)
	}
	c.subscription.Close()
	if c.reading != nil {
		c.readings.release(c.reading)
	}
	c.limits.leave(c.user)
}

// run serves the client until either end has had enough. The frames of this function and of loop are what the stack
// holds while the client waits: as long as they are small, the runtime can shrink it to 4 KB.
func (c *client) run(streams context.Context) {
	defer c.recovered()
	defer c.leave()
	c.spawn(c.awaitEnd)
	ticker := c.Clock.NewTicker(heartbeat)
	defer ticker.Stop()
	err := c.start()
	if err == nil {
		err = c.loop(streams, ticker.C())
	}
	c.part(err)
}

func (c *client) log(message string, more ...any) {
	if log := c.Log.V(1); log.Enabled() {
		log.WithValues("user", c.user, "namespace", c.query.filter.Namespace, "from", c.conn.RemoteAddr()).Info(message, more...)
	}
}

// awaitEnd waits until the client has gone. It has nothing to send any more, so that anything is an end: TLS's own,
// for example, which is read below TLS, as that takes a larger stack.
func (c *client) awaitEnd() {
	defer close(c.gone)
	_, _ = transport(c.conn).Read(make([]byte, 1))
}

// start sends what comes before all events.
func (c *client) start() error {
	c.log("A stream begins", "resumed", c.resumed)
	now := c.Clock.Now()
	c.confirmedAt, c.reviewAt = now, now.Add(nextReview())
	head := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n" +
		"X-Accel-Buffering: no\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n" +
		"Date: " + now.UTC().Format(http.TimeFormat) + "\r\n\r\n")
	head = append(head, retry(reconnect)...)
	if !c.resumed && !c.gap && !c.query.filter.Initial {
		head = append(head, c.idLine()...)
	}
	if err := c.write(append(head, '\n')); err != nil {
		return err
	}
	if c.gap {
		c.History.CountGap()
		return c.tellGap(c.idLine(), c.mark(feed.Gap))
	}
	return nil
}

// loop hands over what comes, in order, until something ends it.
func (c *client) loop(ctx context.Context, heartbeats <-chan time.Time) (err error) {
	for err == nil {
		missed, events, read := c.next()
		if missed != nil {
			if err = c.take(ctx, missed); err == nil {
				err = context.Cause(ctx)
			}
			continue
		}
		select {
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-c.gone:
			err = errGone
		case c.live = <-events:
			err = c.take(ctx, &c.live)
		case <-read:
			err = c.takeData(ctx)
		case <-heartbeats:
			err = c.beat(ctx)
		case err = <-c.verdict:
			err = c.judge(err)
		}
	}
	return err
}

// next is what is to be waited for: the data of a change, or else, if no change was missed, the next one.
func (c *client) next() (missed *feed.Change, events <-chan feed.Change, read <-chan struct{}) {
	switch {
	case c.reading != nil:
		return nil, nil, c.reading.done
	case len(c.missed) > 0:
		missed, c.missed = c.missed[0], c.missed[1:]
		return missed, nil, nil
	default:
		return nil, c.events, nil
	}
}

// take hands a change or a mark over, or has its data read first.
func (c *client) take(ctx context.Context, change *feed.Change) error {
	switch change.Type {
	case feed.Gap:
		return c.lost(*change)
	case feed.Synced:
		return c.tell(c.idLine(), *change)
	case feed.Added, feed.Modified, feed.Deleted:
	}
	if elsewhere, skipped := c.overtaken(change.Step); skipped {
		return c.beginAnew()
	} else if elsewhere {
		return nil
	}
	if c.knows(change) {
		c.move(change)
		return nil
	}
	if c.query.data && change.Type != feed.Deleted {
		awaited := *change
		c.change, c.reading = &awaited, c.readings.of(ctx, change)
		return nil
	}
	f, err := c.frames.of(change)
	return c.tellChange(change, f, err)
}

// overtaken tells whether a step was told by another replica, which was ahead of this one; or whether this one has
// skipped the state up to which it was, with this step or before, so that it can't tell what became of that.
func (c *client) overtaken(step *source.Step) (elsewhere, skipped bool) {
	if c.ahead == nil || step == nil {
		return false, false
	}
	at := c.ahead.Of(step)
	if at == nil || at.Version == "" {
		return false, false
	}
	if !feed.Earlier(at.Version, step.Version) {
		return true, false
	}
	skipped = !c.History.ReachesBack(step, at.Version)
	at.Version = "" // caught up
	return false, skipped
}

// takeData hands over the change whose data has been read.
func (c *client) takeData(ctx context.Context) error {
	change, reading, again := c.change, c.reading, c.again
	c.change, c.reading, c.again = nil, nil, false
	defer c.readings.release(reading)
	switch {
	case reading.err != nil:
		return reading.err
	case !reading.shows(&c.query.filter):
		// The object is gone, or no longer one that was asked for. Its Deleted comes next.
		f, err := c.frames.of(change)
		return c.tellChange(change, f, err)
	case !again && feed.Earlier(reading.object.ResourceVersion, change.ResourceVersion):
		c.change, c.reading, c.again = change, c.readings.of(ctx, change), true // it was under way before the change
		return nil
	}
	if feed.Earlier(change.ResourceVersion, reading.object.ResourceVersion) {
		c.place.tell(change.UID, reading.object.ResourceVersion)
		if reading.object.Content.Hash(nil) == change.PreviousHash {
			c.move(change)
			return nil // it was changed back: no news (F3)
		}
	}
	f, err := c.readings.frame(reading, change)
	return c.tellChange(change, f, err)
}

// lost tells that changes were lost (F2). If present objects were asked for, they come anew.
func (c *client) lost(gap feed.Change) error {
	if c.query.filter.Initial {
		if err := c.subscribe(); err != nil {
			return err
		}
	}
	return c.tellGap(nil, gap) // what was lost may still be there for a client that connects again
}

// beginAnew is for what can't be gone on from.
func (c *client) beginAnew() error {
	if err := c.subscribe(); err != nil {
		return err
	}
	c.History.CountGap()
	return c.tellGap(c.idLine(), c.mark(feed.Gap))
}

// tellGap hands a gap over. If present objects come next, the client can't go on from anywhere until they have come.
func (c *client) tellGap(idLine []byte, gap feed.Change) error {
	if c.query.filter.Initial {
		idLine = lineOf(noID)
	}
	return c.tell(idLine, gap)
}

// tell hands a mark over.
func (c *client) tell(idLine []byte, mark feed.Change) error {
	f, err := encode(&mark)
	return c.send(idLine, f, err)
}

// tellChange hands a change over. Until all present objects have come, the client can't go on from anywhere.
func (c *client) tellChange(change *feed.Change, f frame, err error) error {
	c.move(change)
	if change.Initial {
		return c.send(nil, f, err)
	}
	return c.send(c.idLine(), f, err)
}

// idLine is the line that has the client remember its place.
func (c *client) idLine() []byte {
	return lineOf(c.id())
}

func lineOf(id string) []byte {
	return []byte("id: " + id + "\n")
}

func (c *client) mark(event feed.EventType) feed.Change {
	f := &c.query.filter
	return feed.Change{Type: event, Namespace: f.Namespace, Kind: f.Kind, Name: f.Name, Time: c.Clock.Now()}
}

// beat sends a heartbeat. With it comes the position that the client has reached, so that it can go on from
// there even if nothing that concerns it happens for long. If it is time to, its rights are reviewed.
func (c *client) beat(ctx context.Context) error {
	if c.verdict == nil && !c.Clock.Now().Before(c.reviewAt) {
		verdict := make(chan error, 1)
		c.verdict = verdict
		c.spawn(func() {
			err := errBrokenOff // in a panic
			defer func() { verdict <- err }()
			err = c.review(ctx, c.token, c.query)
		})
	}
	beat := []byte(": heartbeat\n")
	if c.reading == nil {
		position, ahead, err := c.History.Passed(c.subscription, c.ahead)
		switch {
		case errors.Is(err, feed.ErrForgotten) || ahead != nil && c.Clock.Now().After(c.catchUpBy):
			return c.beginAnew()
		case err == nil:
			c.position, c.ahead = position, ahead
			c.prune()
			beat = append(beat, c.idLine()...)
		}
	}
	return c.write(append(beat, '\n'))
}

// judge takes the outcome of a review in.
func (c *client) judge(verdict error) error {
	c.verdict = nil
	now := c.Clock.Now()
	var because *refusal
	switch {
	case verdict == nil:
		c.confirmedAt, c.reviewAt = now, now.Add(nextReview())
		return nil
	case errors.As(verdict, &because):
		return because
	case now.Sub(c.confirmedAt) > reviewPatience:
		return unavailable("the API server could not be asked for long whether you may still watch this")
	default:
		// F11: a reconnect to the API server is none of the client's business.
		c.reviewAt = now.Add(reviewRetry)
		c.Log.V(1).Info("Could not review a stream; it goes on for now", "user", c.user, "reason", verdict.Error())
		return nil
	}
}

// nextReview spreads reviews over the time, where many clients came at once.
func nextReview() time.Duration {
	const spread = reviewInterval / 5
	return reviewInterval - rand.N(spread) //nolint:gosec // nothing depends on its not being guessed
}

// send writes a frame that could be made, after an id. What is large isn't copied for it.
func (c *client) send(idLine []byte, f frame, err error) error {
	const large = 8 << 10
	switch {
	case err != nil:
		return err
	case len(f) <= large:
		return c.write(slices.Concat(idLine, f))
	case len(idLine) > 0:
		if err := c.write(idLine); err != nil {
			return err
		}
	}
	return c.write(f)
}

// write fails if the client doesn't take it in, in the time of the kernel's clock.
func (c *client) write(text []byte) error {
	return c.writeWithin(c.writeTimeout+time.Duration(len(text))*time.Second/leastRate, text)
}

func (c *client) writeWithin(timeout time.Duration, text []byte) error {
	if err := c.conn.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return fmt.Errorf("%w: %w", errStuck, err)
	}
	if _, err := c.conn.Write(text); err != nil {
		return fmt.Errorf("%w: %w", errStuck, err)
	}
	return nil
}

// part tells the client why it is the end, unless it has gone.
func (c *client) part(reason error) {
	c.log("A stream ends", "because", reason.Error())
	if errors.Is(reason, errGone) || errors.Is(reason, errStuck) {
		return
	}
	var because *refusal
	if !errors.As(reason, &because) {
		c.Log.Error(reason, "A stream failed", "user", c.user)
		because = unavailable("the stream failed: connect again")
	}
	// Not all at once, if it is all of them.
	after := reconnect + rand.N(reconnect) //nolint:gosec // nothing depends on its not being guessed
	f, err := farewell(c.mark(feed.Synced), because, after)
	if err != nil {
		c.Log.Error(err, "Failed to tell the end of a stream")
		return
	}
	if c.writeWithin(farewellTimeout, f) == nil {
		_ = c.conn.Close() // says goodbye in TLS, too
	}
}
