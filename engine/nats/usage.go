package nats

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"
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

// manyFresh is from how many connections on whose they are is asked of all at once.
const manyFresh = 500

// userOf is whose key a connection has proved to have, as its token says; empty if it has none. What a client calls
// itself beside it, which NATS takes for the user, it may make up.
func userOf(c *server.ConnInfo) string {
	var claims struct {
		Subject string `json:"sub"`
	}
	if parts := strings.Split(c.JWT, "."); c.IssuerKey != "" && len(parts) == 3 {
		if data, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
			json.Unmarshal(data, &claims) // the server has read it
		}
	}
	return claims.Subject
}

// Usage is what each key takes; nil if, since the server was asked last, nobody has connected, and fewer than few
// messages have come: these count when it is asked again.
func (s *Server) Usage(few int64) ([]Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return nil, errStopped
	}
	sum, err := s.running.Varz(nil)
	if err != nil {
		return nil, err
	}
	connections, messages := int64(sum.TotalConnections)-s.total[0], sum.InMsgs-s.total[1]
	if connections == 0 && messages >= 0 && messages < few {
		return nil, nil
	}
	s.total = [2]int64{int64(sum.TotalConnections), sum.InMsgs}
	// Whose an open connection is costs the check of a signature: it is asked once, after its handshake, and of all at
	// once where there are many, since each question costs a walk over all.
	all := server.ConnzOptions{State: server.ConnOpen, Limit: maxConnections}
	open, err := s.running.Connz(&all)
	if err != nil {
		return nil, err
	}
	var fresh []*server.ConnInfo
	for _, c := range open.Conns {
		if s.sent[c.Cid].user == "" && (c.TLSVersion != "" || c.IP == "") {
			fresh = append(fresh, c)
		}
	}
	if all.Username = len(fresh) > manyFresh; all.Username {
		if open, err = s.running.Connz(&all); err != nil {
			return nil, err
		}
		fresh = nil
	}
	for _, c := range fresh {
		one, err := s.running.Connz(&server.ConnzOptions{CID: c.Cid, Username: true})
		if err == nil && len(one.Conns) == 1 {
			c.JWT, c.IssuerKey = one.Conns[0].JWT, one.Conns[0].IssuerKey
		}
	}
	ended, err := s.running.Connz(&server.ConnzOptions{State: server.ConnClosed, Limit: maxClosed})
	if err != nil {
		return nil, err
	}
	sent, by, from := map[uint64]sentBy{}, map[string]*Usage{}, map[string]int{}
	now := time.Now()
	for _, c := range append(open.Conns, ended.Conns...) {
		if c.Stop != nil && !c.Stop.After(s.asked) {
			continue // counted before
		}
		before := s.sent[c.Cid]
		user := cmp.Or(before.user, userOf(c))
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

// Connections is how many connections a user has at this server now, by the user's public key.
func (s *Server) Connections(user string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return 0
	}
	open, err := s.running.Connz(&server.ConnzOptions{Username: true, Limit: maxConnections})
	if err != nil {
		return 0
	}
	for _, c := range open.Conns {
		if userOf(c) == user {
			n++
		}
	}
	return n
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
