package nats

import (
	"cmp"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Usage is what a key takes of a server.
type Usage struct {
	User            string // its public half; empty of those who have yet to say who they are
	From            string // of these, the address that most come from, and
	Turned          int    // how many were turned away since the server was asked last
	Connections     int    // that are open now
	Closed          int    // since the server was asked last
	Messages, Bytes int64  // sent over these since the server was asked last
}

// greetings bounds the handshakes that addresses begin and prove no key after: what they cost is taken from all others.
// What it turns away costs a tenth.
type greetings struct {
	mu     sync.Mutex
	since  time.Time
	by     map[netip.Prefix]int // above what has passed since
	turned int
}

// Of one address, or a network of IPv6: a burst, of as many sites behind one, and what passes in a second.
const burstGreetings, passGreetings = 1000, 10

func (g *greetings) admit(h *tls.ClientHelloInfo) (*tls.Config, error) {
	if !g.add(h.Conn.RemoteAddr().String(), 1) {
		return nil, errors.New("too many handshakes")
	}
	return nil, nil
}

// add counts handshakes of an address, unless that would be too many.
func (g *greetings) add(address string, n int) bool {
	from, _ := netip.ParseAddrPort(address)
	network := netip.PrefixFrom(from.Addr().Unmap(), 32)
	if from.Addr().Unmap().Is6() {
		network = netip.PrefixFrom(from.Addr(), 64).Masked()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if passed := int(time.Since(g.since).Seconds() * passGreetings); passed > 0 {
		g.since = time.Now()
		maps.DeleteFunc(g.by, func(network netip.Prefix, n int) bool {
			g.by[network] = n - passed
			return n <= passed
		})
	}
	if g.by[network]+n > burstGreetings {
		g.turned++
		return false
	}
	g.by[network] += n
	return true
}

// sentBy is whose a connection is, and what it had sent when the server was asked last.
type sentBy struct {
	user            string
	messages, bytes int64
}

// userOf is whose key a connection has proved to have, and of which end, as its token says; empty if it has none. What
// a client calls itself beside it, which NATS takes for the user, it may make up.
func userOf(c *server.ConnInfo) (user, name string) {
	var claims struct {
		Subject string `json:"sub"`
		Name    string `json:"name"`
	}
	if parts := strings.Split(c.JWT, "."); c.IssuerKey != "" && len(parts) == 3 {
		if data, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
			json.Unmarshal(data, &claims) // the server has read it
		}
	}
	return claims.Subject, claims.Name
}

// connections lists those that are open, by age, with their keys or without: each key costs the check of a signature.
func connections(of *server.Server, keys bool) []*server.ConnInfo {
	open, err := of.Connz(&server.ConnzOptions{Username: keys, Limit: maxConnections})
	if err != nil {
		return nil // of other options
	}
	return open.Conns
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
	begun, messages := int64(sum.TotalConnections)-s.total[0], sum.InMsgs-s.total[1]
	if begun == 0 && messages >= 0 && messages < few {
		return nil, nil
	}
	s.total = [2]int64{int64(sum.TotalConnections), sum.InMsgs}
	// Keys are asked for when somebody has made a handshake since.
	open := connections(s.running, false)
	if slices.ContainsFunc(open, func(c *server.ConnInfo) bool {
		return s.sent[c.Cid].user == "" && (c.TLSVersion != "" || c.IP == "")
	}) {
		open = connections(s.running, true)
	}
	ended, err := s.running.Connz(&server.ConnzOptions{State: server.ConnClosed, Limit: maxClosed})
	if err != nil {
		return nil, err
	}
	sent, by, from := map[uint64]sentBy{}, map[string]*Usage{}, map[string]int{}
	now := time.Now()
	for _, c := range append(open, ended.Conns...) {
		if c.Stop != nil && !c.Stop.After(s.asked) {
			continue // counted before
		}
		before := s.sent[c.Cid]
		user, _ := userOf(c)
		user = cmp.Or(before.user, user)
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
		switch {
		case user == "":
			if from[c.IP]++; from[c.IP] > from[u.From] {
				u.From = c.IP
			}
		case before.user == "": // it has proved its key since
			s.greetings.add(net.JoinHostPort(c.IP, "0"), -1)
		}
		sent[c.Cid] = sentBy{user, c.InMsgs, c.InBytes}
		u.Messages, u.Bytes = u.Messages+c.InMsgs-before.messages, u.Bytes+c.InBytes-before.bytes
	}
	s.sent, s.asked = sent, now
	s.greetings.mu.Lock()
	defer s.greetings.mu.Unlock()
	if u := by[""]; u != nil {
		u.Turned, s.greetings.turned = s.greetings.turned, 0
	}
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
	for _, c := range connections(s.running, true) {
		if of, _ := userOf(c); of == user {
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

// Who can hold how many of a broker's places, of which there are maxConnections:
//
//   - known sites, by the first connection of each key: all of them;
//   - strangers, who have shown no key, guests, and what a site has beyond its first connection: half, together. What
//     is above is closed within everyLook, of strangers first, the oldest; then of the key that has most, where a
//     guest's first counts as a second. Those whom greetings or the coordinator refuse take none of it.
//
// So half is left to those who come: the server would have to take 40 thousand a second to be full in between.
const (
	maxConnections = 8192 // places
	everyLook      = 100 * time.Millisecond
)

// keepPlaces makes room as long as a server runs.
func (s *Server) keepPlaces(ns *server.Server, places int) {
	most := places / 2
	for left := most; ns.Running(); time.Sleep(everyLook) {
		switch n := ns.NumClients(); {
		case n <= most:
			left = most
		case n > left: // than what had to stay last
			s.makeRoom(ns, n-most+places/16) // and some, so that it need not be looked at each time who is there
			left = max(most, ns.NumClients()+places/64)
		}
	}
}

// makeRoom closes so many connections, or all that may be. Keys are looked at if strangers are too few.
func (s *Server) makeRoom(ns *server.Server, many int) {
	for _, keys := range []bool{false, true} {
		rank, has := map[uint64]int{}, map[string]int{}
		for _, c := range slices.Backward(connections(ns, keys)) { // the newest of each key first
			switch user, name := userOf(c); {
			case c.Lang == "" && c.IP != "": // a client says its language with its key
				rank[c.Cid] = math.MaxInt
			case user != "":
				has[user]++
				if rank[c.Cid] = has[user]; strings.HasPrefix(name, guest) {
					rank[c.Cid]++
				}
			}
		}
		ids := slices.SortedFunc(maps.Keys(rank), func(a, b uint64) int {
			return cmp.Or(cmp.Compare(rank[b], rank[a]), cmp.Compare(a, b))
		})
		for _, id := range ids[:min(many, len(ids))] {
			if rank[id] > 1 && ns.DisconnectClientByID(id) == nil {
				many--
			}
		}
		if many <= 0 {
			return
		}
	}
}
