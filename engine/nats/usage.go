package nats

import (
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

// Usage is what each key takes.
func (s *Server) Usage() ([]Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return nil, errStopped
	}
	open, err := s.running.Connz(&server.ConnzOptions{Username: true, State: server.ConnAll, Limit: maxConnections + maxClosed})
	if err != nil {
		return nil, err
	}
	sent, by, from := map[uint64][2]int64{}, map[string]*Usage{}, map[string]int{}
	now := time.Now()
	for _, c := range open.Conns {
		if c.Stop != nil && !c.Stop.After(s.asked) {
			continue // counted before
		}
		u := by[c.AuthorizedUser]
		if u == nil {
			u = &Usage{User: c.AuthorizedUser}
			by[c.AuthorizedUser] = u
		}
		if c.Stop != nil {
			u.Closed++
		} else {
			u.Connections++
		}
		if u.User == "" {
			if from[c.IP]++; from[c.IP] > from[u.From] {
				u.From = c.IP
			}
		}
		before := s.sent[c.Cid]
		sent[c.Cid] = [2]int64{c.InMsgs, c.InBytes}
		u.Messages, u.Bytes = u.Messages+c.InMsgs-before[0], u.Bytes+c.InBytes-before[1]
	}
	s.sent, s.asked = sent, now
	var list []Usage
	for _, u := range by {
		list = append(list, *u)
	}
	return list, nil
}

// Connections is how many connections a user has at this server now, by the user's public key; a few at most are counted.
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
