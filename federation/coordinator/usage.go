package coordinator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"parley/engine/nats"
)

// What a key may take of the embedded broker, many times what a site with large studies does: connections at once, and
// of connections one after the other, messages and bytes a burst above what passes in a second.
const (
	mostConnections             = 16
	burstClosed, passClosed     = 300, 10
	burstMessages, passMessages = 20_000, 5_000
	burstBytes, passBytes       = 512 << 20, 32 << 20
	suspension, suspensionMost  = time.Minute, time.Hour
	// messages of all keys together that need no look at who sends them
	fewMessages = 100
	// connections at once that do not say who they are, beside one for each key that has
	manyStrangers = 300
)

// taken is what a key takes of the embedded broker, so that none takes the others' places.
type taken struct {
	closed, messages, bytes float64       // above what has passed with time
	until                   time.Time     // before which it is refused; zero if it is not
	last                    time.Duration // for how long it was refused last
	text                    string        // why it is, or was
}

// watchUsage refuses a key that takes too much for a while, each time twice as long.
func (d *Daemon) watchUsage(ctx context.Context) {
	own, err := nats.PublicOf(d.Folder.Secrets.User)
	if err != nil {
		return // it could not have connected
	}
	keys := map[string]*taken{}
	strangers := false
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(d.untilLook(time.Second)):
		}
		now := time.Now()
		usage, err := d.server.Usage(fewMessages)
		if err != nil {
			continue // it starts anew
		}
		changed := false
		for _, t := range keys {
			if !t.until.IsZero() && now.After(t.until) {
				t.until, changed = time.Time{}, true
			}
		}
		for _, u := range usage {
			switch {
			case u.User == own:
				continue
			case u.User == "":
				if many := u.Turned > 0 || u.Connections > manyStrangers+len(keys); many && !strangers {
					d.audit("noted", "", "", fmt.Sprintf("%d connections at once that do not say who they are, most "+
						"of them from %s: each ends within seconds, and %d were turned away", u.Connections, u.From,
						u.Turned))
				}
				strangers = u.Turned > 0 || u.Connections > manyStrangers
				continue
			}
			if keys[u.User] == nil {
				keys[u.User] = &taken{}
			}
			if t := keys[u.User]; t.takes(u, now, now.Sub(last)) {
				changed = true
				d.audit("suspended", "", d.nameOf(u.User),
					fmt.Sprintf("it took too much of the broker, and is refused for %v: %s", t.last, t.text))
			}
		}
		if usage != nil {
			last = now
		}
		if changed {
			d.suspend(keys)
		}
	}
}

// takes adds what a key has taken in a time, and says whether it is to be refused from now on.
func (t *taken) takes(u nats.Usage, now time.Time, elapsed time.Duration) bool {
	t.closed = max(0, t.closed-passClosed*elapsed.Seconds()) + float64(u.Closed)
	t.messages = max(0, t.messages-passMessages*elapsed.Seconds()) + float64(u.Messages)
	t.bytes = max(0, t.bytes-passBytes*elapsed.Seconds()) + float64(u.Bytes)
	switch {
	case !t.until.IsZero():
		return false
	case t.closed > burstClosed:
		t.text = fmt.Sprintf("%d connections in %v", u.Closed, elapsed.Round(time.Millisecond))
	case u.Connections > mostConnections:
		t.text = fmt.Sprintf("%d connections at once, more than %d", u.Connections, mostConnections)
	case t.messages > burstMessages:
		t.text = fmt.Sprintf("%d messages in %v", u.Messages, elapsed.Round(time.Millisecond))
	case t.bytes > burstBytes:
		t.text = fmt.Sprintf("%d MB in %v", u.Bytes/1e6, elapsed.Round(time.Millisecond))
	default:
		return false
	}
	t.last = min(max(suspension, 2*t.last), suspensionMost)
	t.until, t.closed, t.messages, t.bytes = now.Add(t.last), 0, 0, 0
	return true
}

// nameOf is whose key it is, as the list of sites says.
func (d *Daemon) nameOf(user string) string {
	r, err := d.Folder.Registry()
	if err != nil {
		return ""
	}
	for _, m := range r.Members {
		if m.User == user {
			return m.Site
		}
	}
	for _, i := range r.Invitations {
		if i.User == user {
			return i.Site
		}
	}
	return ""
}

// suspend tells the broker whom to refuse now.
func (d *Daemon) suspend(keys map[string]*taken) {
	refused := maps.Clone(keys)
	maps.DeleteFunc(refused, func(_ string, t *taken) bool { return t.until.IsZero() })
	d.once.Say(d.Log, "refusing keys at the broker", d.server.Suspend(slices.Sorted(maps.Keys(refused))...))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.suspended = map[string]string{}
	for user, t := range refused {
		d.suspended[user] = fmt.Sprintf("it is refused until %s: %s", t.until.Format(time.TimeOnly), t.text)
	}
}
