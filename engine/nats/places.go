package nats

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

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
