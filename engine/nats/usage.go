package nats

import (
	"cmp"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Usage is what a key takes of a server.
type Usage struct {
	User            string // its public half; empty of those who have yet to say who they are
	From            string // of these, the address that most come from
	Connections     int    // that are open now
	Closed          int    // since the server was asked last
	Messages, Bytes int64  // sent over these since the server was asked last
}

// sentBy is whose a connection is, and what it had sent when the server was asked last.
type sentBy struct {
	user            string
	messages, bytes int64
}

// Usage is what each key takes; nil if, since the server was asked last, nobody has connected, and fewer than few
// messages have come: these count when it is asked again.
func (s *Server) Usage(few int64) ([]Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return nil, errStopped
	}
	all, err := s.running.Varz(nil)
	if err != nil {
		return nil, err
	}
	connections, messages := int64(all.TotalConnections)-s.total[0], all.InMsgs-s.total[1]
	if connections == 0 && messages >= 0 && messages < few {
		return nil, nil
	}
	s.total = [2]int64{int64(all.TotalConnections), all.InMsgs}
	// Whose a connection is costs the check of a signature: it is asked once for each that is open, and of those that
	// have ended if one was never seen open.
	open, err := s.running.Connz(&server.ConnzOptions{State: server.ConnOpen, Limit: maxConnections})
	if err != nil {
		return nil, err
	}
	past := server.ConnzOptions{State: server.ConnClosed, Limit: maxClosed}
	ended, err := s.running.Connz(&past)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(ended.Conns, func(c *server.ConnInfo) bool {
		return c.Stop.After(s.asked) && s.sent[c.Cid].user == ""
	}) {
		past.Username = true
		if ended, err = s.running.Connz(&past); err != nil {
			return nil, err
		}
	}
	sent, by, from := map[uint64]sentBy{}, map[string]*Usage{}, map[string]int{}
	now := time.Now()
	for _, c := range append(open.Conns, ended.Conns...) {
		if c.Stop != nil && !c.Stop.After(s.asked) {
			continue // counted before
		}
		before := s.sent[c.Cid]
		user := cmp.Or(before.user, c.AuthorizedUser)
		if user == "" && c.Stop == nil {
			one, err := s.running.Connz(&server.ConnzOptions{CID: c.Cid, Username: true})
			if err == nil && len(one.Conns) == 1 {
				user = one.Conns[0].AuthorizedUser
			}
		}
		u := by[user]
		if u == nil {
			u = &Usage{User: user}
			by[user] = u
		}
		if c.Stop != nil {
			u.Closed++
		} else {
			u.Connections++
		}
		if user == "" {
			if from[c.IP]++; from[c.IP] > from[u.From] {
				u.From = c.IP
			}
		}
		sent[c.Cid] = sentBy{user, c.InMsgs, c.InBytes}
		u.Messages, u.Bytes = u.Messages+c.InMsgs-before.messages, u.Bytes+c.InBytes-before.bytes
	}
	s.sent, s.asked = sent, now
	var list []Usage
	for _, u := range by {
		list = append(list, *u)
	}
	return list, nil
}

// Connections is how many connections a user has at this server now, by the user's public key; a few at most are
// counted.
func (s *Server) Connections(user string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return 0
	}
	open, err := s.running.Connz(&server.ConnzOptions{Username: true, User: user, Limit: 16})
	if err != nil {
		return 0
	}
	return open.NumConns
}

// Stored is how many values have been stored since the first call, and in the buckets that there were then; that of no
// server is an error. Revisions begin at a time, so that only what they grow by is counted.
func (s *Server) Stored() (values uint64, err error) {
	if s == nil {
		return 0, errStopped
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return 0, errStopped
	}
	all, err := s.running.Jsz(&server.JSzOptions{Accounts: true, Streams: true, Config: true})
	if err != nil {
		return 0, err
	}
	now := map[string]uint64{}
	for _, account := range all.AccountDetails {
		for _, stream := range account.Streams {
			name := account.Id + stream.Name
			now[name] = stream.State.LastSeq + 1
			if from := max(s.next[name], stream.Config.FirstSeq, 1); now[name] > from {
				s.stored += now[name] - from
			}
		}
	}
	s.next = now
	return s.stored, nil
}
